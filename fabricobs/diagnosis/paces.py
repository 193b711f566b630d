"""Which steps to compare those of a cause with, by the paces of the job."""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from fabricobs.diagnosis.findings import Segment
from fabricobs.diagnosis.statistics import MAD_FLOOR, MAD_TO_SIGMA, Array, differs, is_less

FEWEST_STEPS = 10
# Sites read states and counters every 5 to 300 s: what began with a pace may be read so much later.
_READ_WITHIN_MS = 300_000.0
_SIGNIFICANT = 0.001
# Robust distance of all of few steps that needs no test; 300 healthy steps stay below 5.
_FAR = 8.0
_FEWEST_TO_TEST = 3
# Times as much work, from which steps do other work: a usual rank's computation varies by 1 to 2 %.
_OTHER_WORK = 1.1
# A cause that acts so many times as strongly grew, and by this part of what its steps did: half of
# either, a judgement. Of a cable that failed slowly 2.9 times the symbols, and 3.6 times the delay.
_MORE_STRONGLY = 1.5
_LEAST_PART = 0.5
_SURELY_MORE = 0.01  # largest p
# Of how transfers vary, what is left where they follow the work: a correlation of 0.9.
_FOLLOWS = 0.45


def steps_like(
    calm: pl.DataFrame,
    acting: pl.DataFrame,
    segments: Sequence[Segment],
    column: str,
    fewest: int,
) -> pl.DataFrame:
    """Return the steps without a cause to compare with: of its own paces, if it shows there.

    Else of those that it begins or ends as well: it may be read long after it changed the pace.
    Steps of another pace, before a longer sequence, say, are longer or shorter for another reason.
    """
    shared = [s for s in segments if all(len(each.filter(_of([s]))) for each in (calm, acting))]
    own = calm.filter(_of(shared))
    times = numbers(acting.filter(_of(shared)), column)
    if len(own) >= fewest and stand_out(times, numbers(own, column)):
        return own
    beside = calm.filter(_of(_paces_of(segments, acting)))
    return beside if len(beside) >= fewest else calm


def _of(segments: Iterable[Segment]) -> pl.Expr:
    """Say whether a step is of one of these paces."""
    within = (pl.col("step").is_between(each.first_step, each.last_step) for each in segments)
    return pl.any_horizontal(*within, pl.lit(value=False))


def _marks(steps: pl.DataFrame, segments: Iterable[Segment]) -> npt.NDArray[np.bool_]:
    """Mark the steps of these paces."""
    return steps.select(_of(segments).alias("own"))["own"].to_numpy()


def _paces_of(segments: Sequence[Segment], acting: pl.DataFrame) -> list[Segment]:
    """Return the paces in which a cause acts, and those that it may have ended or begun."""
    own: set[int] = set()
    for number, each in enumerate(segments):
        steps = acting.filter(_of([each]))["step"]
        if steps.is_empty():
            continue
        near = _READ_WITHIN_MS / each.step_time_ms
        begins = steps[0] <= each.first_step + near
        ends = steps[-1] >= each.last_step - near
        own |= {number, *([number - 1] if begins else []), *([number + 1] if ends else [])}
    return [each for number, each in enumerate(segments) if number in own]


def paces_beside(
    segments: Sequence[Segment],
    acting: pl.DataFrame,
    sure: pl.DataFrame,
    calm: pl.DataFrame,
    fewest: int,
) -> npt.NDArray[np.bool_]:
    """Mark steps of a cause in paces that it begins, ends or shares with steps without it.

    What changed while it acted on is not its own: another pace begins there for another reason.
    It acts in the steps that are `sure`; in the others it may not have begun, or be over.
    """
    own = acting.select("step", acts=pl.col("step").is_in(sure["step"].to_list()))
    steps = pl.concat([own, calm.select("step", acts=pl.lit(value=False))]).sort("step")
    paces = [steps.filter(_of([each]))["acts"] for each in segments]

    def is_calm(acts: pl.Series) -> bool:
        return 2 * int(acts.sum()) < len(acts)

    beside = np.zeros(len(acting), dtype=bool)
    for place, (each, acts) in enumerate(zip(segments, paces, strict=True)):
        begins = place > 0 and is_calm(paces[place - 1].tail(fewest))
        ends = place + 1 < len(paces) and is_calm(paces[place + 1].head(fewest))
        if begins or ends or len(acts) - acts.sum() >= fewest:
            beside |= _marks(acting, [each])
    return beside


def of_fastest(segments: Sequence[Segment], acting: pl.DataFrame) -> npt.NDArray[np.bool_]:
    """Mark the steps of the fastest pace of several steps, all where there is none."""
    paces = [own for each in segments if (own := _marks(acting, [each])).sum() >= FEWEST_STEPS]
    if not paces:
        return np.ones(len(acting), dtype=bool)
    return min(paces, key=lambda own: usual_step(acting.filter(own)))


def of_the_same_work(
    times: Array, work: Array, others: Array, others_work: Array
) -> tuple[Array, Array]:
    """Return times of a cause and those without it less what grows with the work of their steps.

    Work is what a usual rank computes. Only where the times without the cause follow it.
    """
    known = np.isfinite(others) & np.isfinite(others_work)
    if known.sum() < FEWEST_STEPS:
        return times, others
    x, y = others_work[known], others[known]
    least, most = np.quantile(x, (0.05, 0.95))
    if most < _OTHER_WORK * least:
        return times, others
    from scipy.stats import theilslopes

    # Steps at the edges of the cause are among them: neither may a few of them bend.
    a_unit = float(theilslopes(y, x).slope)
    if a_unit <= 0 or _spread(y - a_unit * x) > _FOLLOWS * _spread(y):
        return times, others

    def grown(by: Array) -> Array:
        return np.nan_to_num(a_unit * (by - np.median(x)))

    return times - grown(work), others - grown(others_work)


def _spread(values: Array) -> float:
    return float(np.median(np.abs(values - np.median(values))))


def most_by_work(added: Array, work: Array, beside: npt.NDArray[np.bool_]) -> Array:
    """Return what is added to transfers, of steps of other work no more than that work makes of it.

    What is added grows with the work at most; steps `beside` others without the cause tell it.
    """
    usual = work[beside & np.isfinite(work)]
    if not len(usual):
        return added
    times_as_much = np.nan_to_num(work / np.median(usual), nan=1.0)
    is_other = ~beside & (np.abs(np.log(times_as_much)) > np.log(_OTHER_WORK))
    return np.where(is_other, np.minimum(added, _own(added, beside) * times_as_much), added)


def most_by_pace(
    added: Array, acting: pl.DataFrame, beside: npt.NDArray[np.bool_], grown: Sequence[Segment]
) -> Array:
    """Return what is added to steps, of those of another pace no more than to steps `beside`.

    Unless the cause has `grown` with that pace.
    """
    if not beside.any():
        return added
    own = beside | _marks(acting, grown)
    return np.where(own, added, np.minimum(added, _own(added, beside)))


def grown_with(
    dose: pl.DataFrame | None,
    segments: Sequence[Segment],
    acting: pl.DataFrame,
    added: Array,
    beside: npt.NDArray[np.bool_],
) -> list[Segment]:
    """Return the other paces in which a cause acted more strongly than in the steps `beside`.

    `dose` has its strength by intervals: a cable that slowly fails corrupts more and more. It must
    be so surely, and by a good part of what the steps are longer: a delay need not be linear in it.
    """
    grown: list[Segment] = []
    own = _own(added, beside) if beside.any() else 0.0
    if dose is None or own <= 0:
        return grown
    then = _doses(dose, acting.filter(beside))
    for each in segments:
        marks = _marks(acting, [each]) & ~beside
        now = _doses(dose, acting.filter(marks))
        if min(len(then), len(now)) < _FEWEST_TO_TEST:
            continue
        times_as_much = float(np.median(now)) / max(float(np.median(then)), 1e-9)
        longer = float(np.median(added[marks])) / own
        is_as_much = times_as_much >= max(_MORE_STRONGLY, _LEAST_PART * longer)
        if is_as_much and is_less(then, now) < _SURELY_MORE:
            grown.append(each)
    return grown


def _doses(dose: pl.DataFrame, steps: pl.DataFrame) -> Array:
    """Return the strength in the intervals of which the middle lies in the time of steps."""
    if steps.is_empty():
        return np.array([])
    middle = pl.col("ts_before") + (pl.col("ts") - pl.col("ts_before")) / 2
    within = middle.is_between(steps["ts"].min(), steps["ts"].max())
    return numbers(dose.filter(within), "dose")


def _own(added: Array, beside: npt.NDArray[np.bool_]) -> float:
    """Return what a cause adds to a step, by those beside others without it."""
    return max(float(np.median(added[beside])), 0.0)


def stand_out(times: Array, others: Array) -> bool:
    """Say whether steps are longer than others, as a test of many tells, or each by far."""
    if len(times) >= _FEWEST_TO_TEST and differs(others, times) < _SIGNIFICANT:
        return True
    middle = float(np.median(others))
    spread = MAD_TO_SIGMA * float(np.median(np.abs(others - middle)))
    return bool(np.all(times - middle > _FAR * max(spread, MAD_FLOOR * middle)))


def usual_step(steps: pl.DataFrame) -> float:
    """Return the median time of steps, in ms."""
    return float(np.median(numbers(steps, "step_time_ms")))


def numbers(frame: pl.DataFrame, column: str) -> Array:
    """Return a column as numbers, NaN where it is not known."""
    return frame[column].cast(pl.Float64).to_numpy()
