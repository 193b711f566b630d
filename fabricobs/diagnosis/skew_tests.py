"""Whether hashing explains how the links of a group share: by evenness, and by links left empty."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from fabricobs.diagnosis.job import StepTimeTrend
from fabricobs.diagnosis.model import Model
from fabricobs.diagnosis.slowdowns import Slowdown
from fabricobs.diagnosis.statistics import (
    hashing_p,
    jain,
    jain_of_hashing,
    links_used_p,
    top_half_share,
)
from fabricobs.diagnosis.uplink_stretches import SharedStretch

FEWEST_HALVED = 8  # links of which an idle half is told apart from few flows
# Of the traffic of before: flows that end leave links empty, too.
_AS_MUCH = 0.75


@dataclass(frozen=True, slots=True)
class Skew:
    """A stretch that hashing does not explain.

    `used_before` is how many links carried traffic until then, where it is by those left empty.
    """

    device: str
    stretch: SharedStretch
    flows: float
    p: float
    expected_jain: float
    largest_jain: float
    from_start: bool
    used_before: int | None = None


def skews_of(
    device: str,
    parts: Sequence[SharedStretch],
    flows: float | None,
    largest_p: float,
    model: Model,
    trends: Sequence[StepTimeTrend],
) -> list[Skew]:
    """Return the stretches of a group that hashing does not explain, in order of time.

    Where the number of flows is not known, links left empty alone tell it.
    """
    found = []
    for position, part in enumerate(parts):
        if part.persistence < model.limit("persistence"):
            continue
        most = largest_p / _chance_to_coincide(part, parts, trends)
        skew = _narrowed(device, part, parts[:position], most, model)
        if flows is not None:
            skew = _uneven(device, part, flows, most, model, from_start=position == 0) or skew
        if skew is not None:
            found.append(skew)
    return found


def _uneven(
    device: str,
    stretch: SharedStretch,
    flows: float,
    largest_p: float,
    model: Model,
    *,
    from_start: bool,
) -> Skew | None:
    """Return the stretch as skew if hashing `flows` does not explain how uneven it is."""
    p = hashing_p(stretch.loads, flows)
    expected = jain_of_hashing(len(stretch.loads), int(flows), model.limit("jain_quantile"))
    evenness = jain(stretch.loads)
    if p >= largest_p or evenness >= expected:
        return None
    # Less than hashing gives where half is not idle.
    loads, most = stretch.loads, model.limit("top_half_share")
    polarised = len(loads) >= FEWEST_HALVED and top_half_share(loads) > most
    largest = expected * (1.0 if polarised else model.limit("effect"))
    if evenness >= largest:
        return None
    return Skew(device, stretch, flows, p, expected, largest, from_start)


def _narrowed(
    device: str,
    stretch: SharedStretch,
    earlier: Sequence[SharedStretch],
    largest_p: float,
    model: Model,
) -> Skew | None:
    """Return the stretch as skew if the traffic of before goes over few of the links of before.

    Each link that carried traffic had a flow at least: it needs no log to tell so many.
    """
    links = len(stretch.loads)
    alike = [part for part in earlier if stretch.tx_gbps >= _AS_MUCH * part.tx_gbps]
    before = links_before(stretch, alike, model)
    if before is None:
        return None
    p = links_used_p(links, len(stretch.used), before)
    if p >= largest_p:
        return None
    expected = jain_of_hashing(links, before, model.limit("jain_quantile"))
    return Skew(device, stretch, float(before), p, expected, expected, False, before)


def links_before(
    stretch: SharedStretch, earlier: Iterable[SharedStretch], model: Model
) -> int | None:
    """Return how many links carried traffic earlier, None unless a stretch leaves half empty."""
    before = max((len(part.used) for part in earlier), default=0)
    return before if len(stretch.used) <= model.limit("links_used") * before else None


def slowdown_of(
    stretch: SharedStretch, trends: Sequence[StepTimeTrend]
) -> tuple[Slowdown, StepTimeTrend] | None:
    """Return the slowdown that began with a stretch: within an interval of its first window."""
    for pace in trends:
        for slowdown in pace.onsets:
            if slowdown.start and abs(slowdown.start - stretch.begin) <= _slack(stretch):
                return slowdown, pace
    return None


def _slack(stretch: SharedStretch) -> timedelta:
    return 1.5 * max(stretch.first_window_end - stretch.begin, timedelta(seconds=10))


def _chance_to_coincide(
    stretch: SharedStretch, parts: Sequence[SharedStretch], trends: Sequence[StepTimeTrend]
) -> float:
    """Return the chance that a stretch begins when a slowdown does; 1 where it does not.

    The first stretch begins with the data.
    Both begin once in the time of the group by chance, and hashes of a job are not drawn anew then.
    """
    if stretch is parts[0] or slowdown_of(stretch, trends) is None:
        return 1.0
    lasts = (parts[-1].end - parts[0].begin).total_seconds()
    return min(1.0, 2 * _slack(stretch).total_seconds() / lasts)
