"""Who became later as the steps became longer: where ranks vary too much for one to stand out.

Windows of steps find no host that is late among ranks that vary by a third. When the steps became
longer is known without them: what tells then is which part is later after that than before.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from fabricobs.diagnosis.rank_compute_times import RankTimes
from fabricobs.diagnosis.slow_ranks import THROUGHOUT, SlowUnit
from fabricobs.diagnosis.slowdowns import MOSTLY, Slowdown
from fabricobs.diagnosis.statistics import Flags, Integers, is_less, nan_median

# Largest one-sided p over all parts that are asked: steps follow each other, and noise drifts.
_SURELY = 1e-4
_FEWEST_STEPS = 20  # before it and after it
_FEWEST_PARTS = 2
_FEW_PARTS = 8  # up to which a part moves the median of all


def later_units(
    times: RankTimes, slowdowns: Sequence[Slowdown], known: Sequence[SlowUnit]
) -> list[SlowUnit]:
    """Return the hosts, or else the ranks, that became later by most of what a slowdown added.

    Asked of each slowdown with a pace before it that none of the units `known` begins with.
    """
    found: list[SlowUnit] = []
    for slowdown in slowdowns:
        if slowdown.from_start or slowdown.more_work or _begins_with_one(times, slowdown, known):
            continue
        unit = _later(times, slowdown, slowdowns)
        found += [unit] if unit is not None else []
    return found


def _begins_with_one(times: RankTimes, slowdown: Slowdown, known: Sequence[SlowUnit]) -> bool:
    begins = (int(times.steps[unit.first]) for unit in known if unit.share >= THROUGHOUT)
    return any(abs(first - slowdown.first_step) <= 2 * _FEWEST_STEPS for first in begins)


def _later(times: RankTimes, slowdown: Slowdown, slowdowns: Sequence[Slowdown]) -> SlowUnit | None:
    during = times.between(slowdown.first_step, slowdown.last_step)
    before = times.between(int(times.steps[0]), slowdown.first_step - 1)
    for other in slowdowns:
        before &= ~times.between(other.first_step, other.last_step)
    if min(during.sum(), before.sum()) < _FEWEST_STEPS:
        return None
    hosts = [columns for columns in times.by_host.values() if len(columns) > 1]
    ranks = [np.array([column]) for column in range(len(times.ranks))]
    for parts in (hosts, ranks):
        later = list(_later_of(times, parts, before, during, slowdown))
        # Fewer than half, or one of two.
        if 0 < len(later) <= max((len(parts) - 1) // 2, 1):
            columns = np.sort(np.concatenate(later))
            names = {times.hosts[part[0]] for part in later} if parts is hosts else set()
            return SlowUnit(
                columns,
                tuple(sorted(name for name in names if name is not None)),
                during,
                int(np.flatnonzero(during)[_FEWEST_STEPS - 1]),
            )
    return None


def _later_of(
    times: RankTimes,
    parts: Sequence[Integers],
    before: Flags,
    during: Flags,
    slowdown: Slowdown,
) -> Iterator[Integers]:
    """Yield the parts that are later than all others by most of what the steps grew, and surely."""
    if len(parts) < _FEWEST_PARTS:
        return
    added = slowdown.after_ms - slowdown.before_ms
    late = times.own_ms - times.peer_ms
    own = np.stack([nan_median(late[:, columns], axis=1) for columns in parts], axis=1)
    of_all = nan_median(own, axis=1)
    for place, columns in enumerate(parts):
        few = len(parts) <= _FEW_PARTS
        others = nan_median(np.delete(own, place, axis=1), axis=1) if few else of_all
        beyond = own[:, place] - others
        then, now = (beyond[steps & np.isfinite(beyond)] for steps in (before, during))
        if min(len(then), len(now)) < _FEWEST_STEPS:
            continue
        is_most = float(np.median(now) - np.median(then)) >= MOSTLY * added
        if is_most and is_less(then, now) * len(parts) < _SURELY:
            yield columns
