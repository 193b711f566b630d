"""What differs between two samples: a number, how clearly, or that nobody can tell; a state."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from fabricobs.diagnosis.model import Threshold
from fabricobs.diagnosis.statistics import (
    SMALLEST_SHIFT,
    Array,
    cliffs_delta,
    differs,
    false_discovery,
    median_interval,
    relative_shift,
    share_differs,
)

Answer = Literal["higher", "lower", "no change", "cannot tell"]

THRESHOLDS = {
    "fewest": Threshold(
        value=6,
        unit="values a side",
        meaning="Fewer cannot be told apart",
        source="The fewest whose extremes hold the median at 95 %: 1 - 2 * 0.5^6 = 0.97",
    ),
    "false_discoveries": Threshold(
        value=0.01,
        meaning="Largest share of false ones among the changes told (Mann-Whitney; errors: Fisher)",
        source="Benjamini and Hochberg 1995, over all numbers of one comparison",
    ),
    "effect": Threshold(
        value=0.33,
        meaning="Cliff's delta from which a difference is a change",
        source="Romano et al. 2006: a medium effect",
    ),
    "shift": Threshold(
        value=SMALLEST_SHIFT,
        meaning="Shift of the median from which a difference is a change",
        source="Half of the 10 % of Greyhound (arXiv 2410.12588)",
    ),
    "excluded": Threshold(
        value=0.10,
        meaning='Shift that the 95 % intervals of both medians must exclude for "no change"',
        source="Greyhound (arXiv 2410.12588): 10 %",
    ),
    "error_ratio": Threshold(
        value=2,
        meaning="Errors must come in so many times the share of intervals, or its inverse",
        source="As pauses must for ecmp_skew: they come in bursts",
    ),
}
FEWEST = int(THRESHOLDS["fewest"].value)
EXCLUDED_SHIFT = THRESHOLDS["excluded"].value


@dataclass(frozen=True, slots=True)
class Change:
    """One comparison: the numbers of both sides, how far apart, how surely, and the answer.

    `a` and `b` are medians, or shares of the intervals with a rise (`what` says which). `shift` is
    the change relative to `a`, `effect` Cliff's delta or the difference of the shares, -1 to 1,
    `p` of Mann-Whitney or Fisher, `q` the false discovery rate over all comparisons of one run.
    """

    group: str
    name: str
    unit: str
    a: float | None
    b: float | None
    a_count: int
    b_count: int
    shift: float | None = None
    effect: float | None = None
    p: float | None = None
    q: float | None = None
    answer: Answer = "cannot tell"
    reason: str = ""
    what: Literal["median", "share"] = "median"


@dataclass(frozen=True, slots=True)
class Drift:
    """What of the fabric or of a host is not as it was; None where one side does not tell it."""

    kind: str
    part: str
    name: str
    before: str | None
    after: str | None

    @property
    def words(self) -> str:
        """Return the part, what of it, and its value on both sides."""
        before, after = (
            each if each is not None else "not told" for each in (self.before, self.after)
        )
        return f"{self.part}, {self.name}: {before} -> {after}"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two samples of one number, to be compared."""

    group: str
    name: str
    unit: str
    a: Array
    b: Array


@dataclass(frozen=True, slots=True)
class Occurrence:
    """In how many of its intervals something happened on each side, and how much of it in all."""

    group: str
    name: str
    a_hits: int
    a_number: int
    a_total: int
    b_hits: int
    b_number: int
    b_total: int


def judge(pairs: Sequence[Pair], occurrences: Sequence[Occurrence] = ()) -> list[Change]:
    """Return the answer of every comparison, significance corrected over all of them."""
    measured = [_measured(pair) for pair in pairs]
    measured += [_happened(occurrence) for occurrence in occurrences]
    tested = [i for i, change in enumerate(measured) if change.p is not None]
    q_values = false_discovery([p for i in tested if (p := measured[i].p) is not None])
    for i, q in zip(tested, q_values, strict=True):
        measured[i] = replace(measured[i], q=q)
    samples: list[Pair | None] = [*pairs, *(None for _ in occurrences)]
    return [_answered(c, pair) for c, pair in zip(measured, samples, strict=True)]


def _measured(pair: Pair) -> Change:
    a, b = pair.a, pair.b
    change = Change(
        pair.group,
        pair.name,
        pair.unit,
        float(np.median(a)) if len(a) else None,
        float(np.median(b)) if len(b) else None,
        len(a),
        len(b),
    )
    if min(len(a), len(b)) < FEWEST:
        return change
    shift = relative_shift(a, b) if np.median(a) else None
    return replace(change, shift=shift, effect=cliffs_delta(a, b), p=differs(a, b))


def _happened(seen: Occurrence) -> Change:
    change = Change(
        seen.group,
        seen.name,
        "",
        seen.a_hits / seen.a_number if seen.a_number else None,
        seen.b_hits / seen.b_number if seen.b_number else None,
        seen.a_number,
        seen.b_number,
        reason=f"{seen.a_total:,} in {seen.a_number:,} intervals, "
        f"then {seen.b_total:,} in {seen.b_number:,}",
        what="share",
    )
    if change.a is None or change.b is None or min(seen.a_number, seen.b_number) < FEWEST:
        return change
    p = share_differs((seen.a_hits, seen.a_number), (seen.b_hits, seen.b_number))
    shift = change.b / change.a - 1 if change.a else None
    return replace(change, shift=shift, effect=change.b - change.a, p=p)


def _answered(change: Change, pair: Pair | None) -> Change:
    if change.q is None or change.effect is None:
        few = f"{change.a_count} and {change.b_count} values are too few"
        return replace(change, reason=change.reason or few)
    way: Answer = "higher" if change.effect > 0 else "lower"
    certain = change.q < THRESHOLDS["false_discoveries"].value
    if pair is None:
        return replace(change, answer=way) if certain and _doubled(change) else change
    large = change.shift is None or abs(change.shift) >= THRESHOLDS["shift"].value
    if certain and large and abs(change.effect) >= THRESHOLDS["effect"].value:
        return replace(change, answer=way)
    if _is_excluded(pair):
        return replace(change, answer="no change")
    return replace(change, reason="too noisy")


def _doubled(change: Change) -> bool:
    less, more = sorted((change.a or 0.0, change.b or 0.0))
    return more >= THRESHOLDS["error_ratio"].value * less


def _is_excluded(pair: Pair) -> bool:
    """Say whether the medians surely differ by less than `EXCLUDED_SHIFT` of the earlier one."""
    if not np.any(pair.a) and not np.any(pair.b):
        return True
    (a_low, a_high), (b_low, b_high) = median_interval(pair.a), median_interval(pair.b)
    if a_low <= 0 or not np.isfinite([a_high, b_low, b_high]).all():
        return False
    return b_low / a_high - 1 > -EXCLUDED_SHIFT and b_high / a_low - 1 < EXCLUDED_SHIFT
