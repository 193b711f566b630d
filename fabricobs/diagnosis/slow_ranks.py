"""Which ranks stand out from their peers: for windows on end, or last again and again in bursts."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from fabricobs.diagnosis.findings import Power
from fabricobs.diagnosis.last_units import NEVER, last_too_often
from fabricobs.diagnosis.model import Model
from fabricobs.diagnosis.rank_compute_times import RankTimes
from fabricobs.diagnosis.statistics import (
    MAD_FLOOR,
    MAD_TO_SIGMA,
    Array,
    Flags,
    Integers,
    nan_median,
    rolling_median,
)

# Where more of the ranks are last by turns, they are a group with work of its own, not slow ones.
_MOST_LAST = 1 / 3
# From this share of late steps on a unit is slow throughout, not in bursts.
THROUGHOUT = 0.9
# Units late by this share of the largest excess, in this share of all steps of either, are alike.
_ALIKE = 2 / 3
_SHARED = 0.5
# A unit is slow by what so many of its steps stay below: bursts may be few.
_MOSTLY = 0.95
# What is so many times the noise of single steps shows in each: noise itself reaches 1.6 there.
_CLEAR = 4
# The standard deviation of a median over that of a mean, of normal values.
_OF_MEDIAN = 1.2533
# A rank slower than its slow host by this factor is slow for a reason of its own.
_FAR = 2
# An excess this small that would have shown needs no longer windows (Greyhound: half of 10 %).
_SMALL = 0.05
# Others must wait for this share at least of what a unit works longer: else it holds up nobody.
_LEAST_WAIT = 0.3
# Where computation hides collectives, a rank arrives late by less than it computes longer.
_COMPUTES = ("longer", "a rank that computes {}")
_ARRIVES = ("of a step later", "a rank that arrives {} at its collectives")
# A burst ends where so many steps pass without the unit standing out (METHODS: merge gaps < 5).
_GAP_STEPS = 5


@dataclass(frozen=True)
class SlowUnit:
    """A rank, all ranks of a host, or several of these alike, that fall behind their peers.

    `columns` index the ranks of the times, `hosts` are those whose ranks all do; `late` [S] marks
    the steps in which the unit stands out; `detected` is the index of the step at whose end the
    evidence sufficed.
    """

    columns: Integers
    hosts: tuple[str, ...]
    late: Flags
    detected: int

    @property
    def first(self) -> int:
        """Index of the first step in which it stands out."""
        return int(np.flatnonzero(self.late)[0])

    @property
    def last(self) -> int:
        """Index of the last one."""
        return int(np.flatnonzero(self.late)[-1])

    @property
    def share(self) -> float:
        """Share of the steps from first to last in which it stands out."""
        return float(self.late[self.first : self.last + 1].mean())

    @property
    def bursts(self) -> tuple[tuple[int, int], ...]:
        """First and last index of each stretch of such steps, gaps of less than 5 bridged."""
        late = np.flatnonzero(self.late)
        parts = np.split(late, np.flatnonzero(np.diff(late) > _GAP_STEPS) + 1)
        return tuple((int(part[0]), int(part[-1])) for part in parts)


def find_slow(times: RankTimes, model: Model) -> list[SlowUnit]:
    """Return the slow hosts and the slow ranks of other hosts of one job.

    Of times of which none has a peer's beside it nothing is told.
    """
    if not np.isfinite(times.excess).any():
        return []
    sustained = _sustained(times, model)
    for group in times.slower:
        sustained[group.columns] = np.minimum(sustained[group.columns], group.detected)
    again = _last_again(times.excess, sustained < NEVER, times, model)
    if (again < NEVER).mean() > _MOST_LAST:
        again[:] = NEVER
    moments = np.minimum(sustained, again)
    by_host = _hosts(times)
    units: list[SlowUnit] = []
    of_hosts = _host_excess(times, by_host, moments < NEVER, model)
    whole_hosts = _last_again(of_hosts, np.zeros(len(by_host), dtype=bool), times, model)
    for (host, columns), as_one in zip(by_host.items(), whole_hosts, strict=True):
        known = np.sort(moments[columns])
        share = float((known < NEVER).mean())
        as_one = as_one if len(columns) <= _MOST_LAST * len(times.ranks) else NEVER
        if len(columns) > 1 and (share >= model.limit("host_share") or as_one < NEVER):
            most = int(np.ceil(model.limit("host_share") * len(known))) - 1
            moment = int(min(known[most], as_one))
            lasts = bool((sustained[columns] < NEVER).any())
            found = _unit(times, columns, host, moment, model, lasts=lasts)
            units += found
            moments[columns[~_far_slower(times, columns, found)]] = NEVER
    for column in np.flatnonzero(moments < NEVER):
        lasts = bool(sustained[column] < NEVER)
        moment = int(moments[column])
        for unit in _unit(times, np.array([column]), None, moment, model, lasts=lasts):
            units.append(unit)
            for other in _company(times, unit, units, moments):
                units += _unit(times, np.array([other]), None, moment, model, lasts=lasts)
    return [unit for unit in units if _is_enough(times, unit, model)]


def _far_slower(times: RankTimes, columns: Integers, found: list[SlowUnit]) -> Flags:
    """Mark the ranks of a host that is slow as a whole which are so by far more than the host."""
    if not found:
        return np.ones(len(columns), dtype=bool)
    late = times.excess[found[0].late]
    return nan_median(late[:, columns], axis=0) > _FAR * usual_excess(times, found[0])


def _company(
    times: RankTimes, unit: SlowUnit, units: list[SlowUnit], moments: Integers
) -> list[int]:
    """Return the ranks not yet found that are late by about as much in the same steps.

    Of a tensor group that waits for one of its ranks each is last in some of these steps alone: too
    few of them to tell, where the group is slow in bursts.
    """
    known = {int(column) for each in units for column in each.columns}
    near = nan_median(times.excess[unit.late], axis=0) >= _ALIKE * usual_excess(times, unit)
    near &= moments == NEVER
    others = [int(column) for column in np.flatnonzero(near) if int(column) not in known]
    return others if len(others) < _MOST_LAST * len(times.ranks) else []


def without_most(times: RankTimes, units: list[SlowUnit]) -> list[SlowUnit]:
    """Return the units, but for those that together are most ranks of the job as they are late.

    Most ranks cannot be slower than their peers. They wait, where records count that as their work.
    """
    late = np.zeros((len(times.steps), len(times.ranks)), dtype=bool)
    for unit in units:
        late[np.ix_(unit.late, unit.columns)] = True
    crowded = 2 * late.sum(axis=1) > len(times.ranks)
    return [unit for unit in units if 2 * (unit.late & crowded).sum() <= unit.late.sum()]


def usual_excess(times: RankTimes, unit: SlowUnit) -> float:
    """Return the median excess of a unit's ranks over the steps in which it stands out."""
    return float(np.nanmedian(times.excess[unit.late][:, unit.columns]))


def _is_enough(times: RankTimes, unit: SlowUnit, model: Model) -> bool:
    """Say whether a unit is slow for long, or by much: in a few steps some rank is last by chance.

    Of computation that is measured a few steps tell; of arrivals at collectives they do not.
    """
    lasts = np.count_nonzero(unit.late) >= model.limit("window_steps")
    return bool(times.measured or lasts or usual_excess(times, unit) >= model.limit("excess"))


def alike(times: RankTimes, units: list[SlowUnit]) -> list[SlowUnit]:
    """Join units that are late in the same steps by about as much: each hides the others.

    The slowest come first. What would be won with one of two like it is nothing, with both all.
    One that is late for a part of the time only is a cause of its own.
    """
    if len(units) < 2:
        return units
    excess = {id(unit): usual_excess(times, unit) for unit in units}
    groups: list[list[SlowUnit]] = []
    for unit in sorted(units, key=lambda unit: -excess[id(unit)]):
        for group in groups:
            top = group[0]
            shared = (top.late & unit.late).sum() / max(top.late.sum(), unit.late.sum())
            # Other stages wait for a late one, and are late at their own collectives with it.
            peers = times.stages[top.columns[0]] == times.stages[unit.columns[0]]
            near = excess[id(unit)] >= _ALIKE * excess[id(top)]
            if (peers or not times.measured) and shared >= _SHARED and near:
                group.append(unit)
                break
        else:
            groups.append([unit])
    return [_joined(group) for group in groups]


def _joined(units: list[SlowUnit]) -> SlowUnit:
    if len(units) == 1:
        return units[0]
    return SlowUnit(
        np.sort(np.concatenate([unit.columns for unit in units])),
        tuple(sorted(host for unit in units for host in unit.hosts)),
        np.logical_or.reduce([unit.late for unit in units]),
        max(unit.detected for unit in units),
    )


def judged_ranks(times: RankTimes, units: list[SlowUnit], model: Model) -> int:
    """Count the ranks with enough steps, in stages whose other ranks are alike."""
    known = np.isfinite(times.excess)
    enough = known.sum(axis=0) >= 2 * model.limit("window_steps")
    named = {int(column) for unit in units for column in unit.columns}
    others = np.array([column not in named for column in range(len(times.ranks))]) & enough
    judged = 0
    several = len(set(times.hosts)) > 1
    for stage in np.unique(times.stages):
        members = times.stages == stage
        if several and len({times.hosts[column] for column in np.flatnonzero(members)}) == 1:
            continue  # a host that is slow as a whole has no peers there
        usual = nan_median(times.excess[:, members & others], axis=0)
        low, high = np.quantile(usual, [0.1, 0.9]) if len(usual) else (0.0, 0.0)
        if high - low <= model.limit("excess"):
            judged += int((members & enough).sum())
    return judged


def smallest_excess(times: RankTimes, model: Model) -> Power | None:
    """Return the smallest excess of a rank that two windows in a row would have shown, if any.

    The shortest windows that show `_SMALL` are told, else the longest that fit the run.
    """
    length, power = int(model.limit("window_steps")), None
    while 2 * length <= len(times.steps):
        count = len(times.steps) // length
        blocks = times.excess[: count * length].reshape(count, length, -1)
        middle = nan_median(blocks, axis=1)
        spread = MAD_TO_SIGMA * nan_median(np.abs(middle - nan_median(middle, 1)[:, None]), axis=1)
        spread = spread[np.isfinite(spread)]
        if not len(spread):
            return power
        effect = max(model.limit("z") * float(np.median(spread)), _small_excess(times, model))
        power = Power(
            effect, *(_COMPUTES if times.measured else _ARRIVES), steps=2 * length * times.spacing
        )
        if power.effect <= _SMALL:
            break
        length *= 2
    return power


def _hosts(times: RankTimes) -> dict[str | None, Integers]:
    names = sorted(host for host in times.by_host if host is not None)
    return {name: times.by_host[name] for name in names}


def _sustained(times: RankTimes, model: Model) -> Integers:
    """Return, per rank, the first step index at which two windows in a row stand out.

    Short windows find what is large soon; what is small beside the noise needs long ones, up to
    half of the run: the spread of the windows' medians falls with the root of their length.
    """
    moments = _in_windows(times, int(model.limit("quick_steps")), model.limit("excess"), model)
    length, small = int(model.limit("window_steps")), _small_excess(times, model)
    while 2 * length <= len(times.steps):
        moments = np.minimum(moments, _in_windows(times, length, small, model))
        length *= 2
    return moments


def _small_excess(times: RankTimes, model: Model) -> float:
    """Return the smallest excess that long windows show, of computing or of arriving."""
    return model.limit("small_excess" if times.measured else "small_lateness")


def _in_windows(times: RankTimes, length: int, limit: float, model: Model) -> Integers:
    count, ranks = times.excess.shape
    moments = np.full(ranks, NEVER)
    if count < 2 * length:
        return moments
    # Of peers that are alike, an excess of the limit is far.
    floor = min(MAD_FLOOR, limit / model.limit("z"))
    for stage in np.unique(times.stages):
        members = np.flatnonzero(times.stages == stage)
        # A window with a step that is not known tells nothing: NaN fails both comparisons.
        middle = rolling_median(times.excess[:, members], length)
        far = (middle > limit) & (_z_among_peers(middle, floor) > model.limit("z"))
        again = far[length:] & far[:-length]
        found = again.any(axis=0)
        # The window that begins at i + length ends at i + 2 length - 1.
        moments[members[found]] = again[:, found].argmax(axis=0) + 2 * length - 1
    return moments


def _z_among_peers(values: Array, floor: float) -> Array:
    """Distance [W, R] from the median of each row, in robust standard deviations, `floor` at least.

    The values are shares, and so is the floor.
    """
    centre = nan_median(values, axis=1)[:, None]
    spread = MAD_TO_SIGMA * nan_median(np.abs(values - centre), axis=1)[:, None]
    return np.asarray((values - centre) / np.maximum(spread, floor))


def _host_excess(
    times: RankTimes, by_host: dict[str | None, Integers], slow: Flags, model: Model
) -> Array:
    """Excess [S, H] that `host_share` of a host's ranks reach, without those `slow` by themselves.

    One slow rank makes no slow host: counted, it lifts what that share of its host's ranks reach,
    by little, but in all steps. NaN where less than the share is left.
    """
    share = model.limit("host_share")
    excess = np.full((len(times.steps), len(by_host)), np.nan)
    for place, columns in enumerate(by_host.values()):
        others = columns[~slow[columns]]
        if len(others) >= share * len(columns):
            excess[:, place] = np.quantile(times.excess[:, others], 1 - share, axis=1)
    return excess


def _last_again(excess: Array, slow: Flags, times: RankTimes, model: Model) -> Integers:
    """Return, per unit, the first step index at which it was last too often for chance."""
    return last_too_often(
        excess,
        slow,
        little=_small_excess(times, model),
        limits=(max(model.limit("excess"), _CLEAR * times.noise), model.limit("excess")),
        q=model.limit("last_q"),
    )


def _unit(
    times: RankTimes,
    columns: Integers,
    host: str | None,
    moment: int,
    model: Model,
    *,
    lasts: bool,
) -> list[SlowUnit]:
    """The unit with the steps in which it is late; nothing if that is by less than is asked.

    Small is enough where it `lasts`: where single steps vary, a rank that is ordinarily a little
    slower is last more often. Nothing, too, if it waits as long as the others do.
    """
    least = _small_excess(times, model) / 2 if lasts else model.limit("excess")
    raw = nan_median(times.excess[:, columns], axis=1)
    clear = _CLEAR * times.noise * _of_median(len(columns))
    varies = lasts or times.noise > model.limit("excess")
    excess = raw
    if varies and np.nanquantile(raw, _MOSTLY) <= clear:
        excess = _smoothed(raw, int(model.limit("window_steps")))
    usual = float(np.nanquantile(excess, _MOSTLY))
    late = excess > max(usual / 2, _small_excess(times, model) / 2)
    late &= _in_company(late)
    if not late.any() or float(np.nanmedian(excess[late])) < least:
        return []
    if not _makes_others_wait(times, columns, late):
        return []
    hosts = () if host is None else (host,)
    return [SlowUnit(columns, hosts, late, max(moment, int(np.flatnonzero(late)[0])))]


def _smoothed(excess: Array, steps: int) -> Array:
    """Return the running median: single steps of what is not clear come and go with noise."""
    padded = np.pad(excess, steps // 2, mode="edge")
    return nan_median(sliding_window_view(padded, steps)[: len(excess)], axis=1)


def _of_median(ranks: int) -> float:
    """Return how much less the median of so many ranks varies than one of them, if normal."""
    return 1.0 if ranks == 1 else _OF_MEDIAN / math.sqrt(ranks)


def _makes_others_wait(times: RankTimes, columns: Integers, late: Flags) -> bool:
    """Say whether the unit communicates less by what it works longer; true where nothing tells."""
    peers = times.stages == times.stages[columns[0]]
    comm = nan_median(times.comm_ms[late], axis=0)
    waited = float(np.median(comm[peers]) - np.median(comm[columns]))
    longer = nan_median((times.own_ms - times.peer_ms)[late], axis=0)
    return bool(np.isnan(waited) or waited > _LEAST_WAIT * float(np.median(longer[columns])))


def _in_company(late: Flags) -> Flags:
    """Late steps with another within two steps: a single one may be chance."""
    near = np.zeros_like(late)
    for shift in (1, 2):
        near[shift:] |= late[:-shift]
        near[:-shift] |= late[shift:]
    return near
