"""When a straggler began, and what it cost: by its own times, or by the longer steps it began."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fabricobs.diagnosis.rank_compute_times import RankTimes
from fabricobs.diagnosis.slow_ranks import THROUGHOUT, SlowUnit
from fabricobs.diagnosis.slowdowns import NEARLY_ALL, Slowdown
from fabricobs.diagnosis.statistics import change_points, nan_median

# So far may a unit's onset, dated by windows of 20 steps, be from that of the longer steps.
SAME_ONSET_STEPS = 20
# A unit that was late by more of that before did not begin to be: its work grew with everybody's.
_LATE_BEFORE = 1 / 3
# Of what a late unit adds to a step, its peers wait for this share at least where it can be seen:
# judged by eye, drawn jobs that overlap half of their transfers show a fifth and more.
_SEEN = 0.1
# A unit late so soon after the warm-up was so from the start; change points are as far off at most.
AT_START_STEPS = 10


@dataclass(frozen=True, slots=True)
class StragglerLoss:
    """The share of the throughput that a unit cost, 0 to 1.

    Where that is the loss of the longer steps that began with it, `explained` is the share of the
    added time that its own times explain, or the rest is `hidden` by computation.
    """

    share: float
    explained: float | None = None
    hidden: bool = False


def onset_of(times: RankTimes, unit: SlowUnit) -> int:
    """Return the index of the step at which a unit fell behind, near its first late one.

    One that comes and goes begins with its first burst.
    """
    if unit.share < THROUGHOUT:
        return unit.first
    excess = nan_median(times.excess[:, unit.columns], axis=1)
    known = np.flatnonzero(np.isfinite(excess))
    cuts = known[change_points(1 + excess[known], smallest=5)]
    near = [
        int(cut)
        for cut in cuts
        if abs(cut - unit.first) < 2 * AT_START_STEPS
        # The end of a short stretch is near its begin, too.
        and cut <= unit.last
        and np.nanmedian(excess[cut : unit.last + 1]) > np.nanmedian(excess[:cut])
    ]
    return min(near, key=lambda cut: abs(cut - unit.first), default=unit.first)


def begun_with(
    times: RankTimes, unit: SlowUnit, onset: int, slowdowns: Sequence[Slowdown]
) -> Slowdown | None:
    """Return the longer steps that begin when a unit begins to arrive late, if any.

    Where computation hides collectives, it arrives later by less than it holds up the others.
    """
    if unit.share < THROUGHOUT:
        return None
    begin = int(times.steps[onset])
    before, after = _lateness(times, unit, 0, onset), _lateness(times, unit, onset, unit.last + 1)
    if before > _LATE_BEFORE * after:
        return None
    own_ms = float(np.nanmedian(times.peer_ms[onset : unit.last + 1, unit.columns]))
    near = [
        each
        for each in slowdowns
        if not each.more_work
        # Of collectives the end of the delay would have to tell that it is the unit's.
        and (times.measured or not each.from_start)
        and abs(each.first_step - begin) <= SAME_ONSET_STEPS
        and after * own_ms >= _SEEN * (each.after_ms - each.before_ms)
    ]
    return min(near, key=lambda each: abs(each.first_step - begin), default=None)


def loss_of(
    times: RankTimes,
    unit: SlowUnit,
    first_step: int,
    last_step: int,
    priced: Sequence[int],
    longer: Slowdown | None,
) -> StragglerLoss:
    """Return what a unit cost in its steps; ranks already `priced` hide nobody.

    `longer` are the longer steps that begin with it: what they lost is its loss where its own times
    explain nearly all of that, or cannot, for computation hides collectives: peers wait in those
    while they compute, which took a rank of 28 % for one of 70. Evaluations that last
    longer by it are among the rest: of a drawn host 3.09 of 3.35 s a step, where 3.8 were lost.
    """
    # Rounded once: the text and the finding tell one share.
    loss = round(times.lost_share(unit.columns, first_step, last_step, priced), 4)
    if longer is None:
        return StragglerLoss(loss)
    share = round(longer.loss_share, 4)
    if not times.measured:
        return StragglerLoss(share, hidden=True)
    if share <= loss:
        return StragglerLoss(loss)
    won = times.won_back_ms(unit.columns, first_step, last_step, priced)
    explained = float(nan_median(won, axis=0)) / (longer.after_ms - longer.before_ms)
    return StragglerLoss(share, explained) if explained >= NEARLY_ALL else StragglerLoss(loss)


def _lateness(times: RankTimes, unit: SlowUnit, first: int, last: int) -> float:
    """Return the median excess of a unit from one index to before another, 0 where not known."""
    excess = times.excess[first:last, unit.columns]
    return float(np.nanmedian(excess)) if np.isfinite(excess).any() else 0.0
