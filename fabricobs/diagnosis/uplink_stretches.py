"""Stretches of time in which an uplink group shares alike, and the flows that would explain it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import polars as pl

from fabricobs.diagnosis.model import Model
from fabricobs.diagnosis.statistics import Array, change_points, flows_that_explain, jain

# Of a group's rate; what carries less may be protocols alone, which are even without flows.
WITH_FLOWS = 0.1
_FEWEST_FLOWS = 4.0
_EMPTY = 0.1  # of the mean link: next to nothing
_LEAST_FREEDOM = 7
_SPLIT_WINDOWS = 3
# Fewer than five windows hardly differ from nine others with p < 0.01 (Mann-Whitney).
_NEWEST_WINDOWS = 4


@dataclass(frozen=True, slots=True)
class SharedStretch:
    """Intervals of one group that share alike: pooled load by port.

    `sure_after` is what a skew must last: two windows, and the seconds of the model. `persistence`
    is the spread (CV^2) of the pooled shares over that of the single intervals: 1 where the same
    links stay busy, one over their number where each interval is a new draw. `used` are the
    links that carried more than next to nothing in most of the intervals. `receipts` is what each
    received, known where no log tells that they are parallel.
    """

    begin: datetime
    end: datetime
    first_window_end: datetime
    sure_after: timedelta
    ports: tuple[str, ...]
    loads: Array
    tx_gbps: float
    capacity_gbps: float | None
    persistence: float
    used: tuple[str, ...]
    receipts: Array | None = None

    @property
    def rates(self) -> Array:
        """What each link carries a second."""
        return self.loads / (self.end - self.begin).total_seconds()


def by_group(intervals: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    """Return each uplink group with its intervals in order of time."""
    groups = intervals.partition_by("uplink_group", maintain_order=True)
    return [(str(rows["uplink_group"][0]), rows.sort("ts")) for rows in groups]


def shared_stretches(rows: pl.DataFrame, model: Model) -> list[SharedStretch]:
    """Cut a group's busy intervals where their evenness changes, and pool each part."""
    busy = rows.filter(pl.col("sent") >= _least_sent(rows, model))
    least = int(model.limit("least_windows"))
    if len(busy) < least:
        return []
    uneven = 1 - busy["jain"].to_numpy().astype(np.float64)
    bounds = _bounds(uneven)
    parts = [busy.slice(a, b - a) for a, b in zip(bounds, bounds[1:], strict=False)]
    shortest = timedelta(seconds=model.limit("seconds"))
    return [
        _pool(part, least, shortest)
        for part in parts
        if len(part) >= least and part["ts"][-1] - part["ts_before"][0] >= shortest
    ]


def ends_with_its_traffic(rows: pl.DataFrame, part: SharedStretch, model: Model) -> bool:
    """Say whether a group is read on after a stretch and carries no more traffic that counts."""
    later = rows.filter(pl.col("ts") > part.end)
    busy = later.filter(pl.col("sent") >= _least_sent(rows, model))
    return rows["read_until"][-1] > part.end and busy.is_empty()


def _least_sent(rows: pl.DataFrame, model: Model) -> float:
    """Return what an interval of a group must carry to count."""
    return model.limit("quiet_share") * float(rows["sent"].median() or 0.0)  # type: ignore[arg-type]


def _bounds(uneven: Array) -> list[int]:
    """Return where the evenness changes, with begin and end.

    The newest windows may be of a stretch too short to show as one, and hide the change before
    them: where nothing is found they are left out, one after another.
    """
    for left_out in range(_NEWEST_WINDOWS + 1):
        end = len(uneven) - left_out
        cuts = change_points(1 + uneven[:end], smallest=_SPLIT_WINDOWS, significance=0.01)
        if cuts:
            return [0, *cuts, end]
    return [0, len(uneven)]


def _pool(rows: pl.DataFrame, least: int, shortest: timedelta) -> SharedStretch:
    single = np.asarray(rows["loads"].to_list(), dtype=np.float64)
    loads = np.sum(single, axis=0)
    spread = float(np.mean(np.var(single, axis=1) / np.mean(single, axis=1) ** 2))
    of_mean = single / np.mean(single, axis=1, keepdims=True)
    ends = rows["ts"].to_list()
    capacity = rows["capacity_gbps"].mean()
    return SharedStretch(
        begin=rows["ts_before"][0],
        end=ends[-1],
        first_window_end=ends[0],
        sure_after=next(
            end - rows["ts_before"][0]
            for end in ends[least - 1 :]
            if end - rows["ts_before"][0] >= shortest
        ),
        ports=tuple(rows["ports"][0]),
        loads=loads,
        tx_gbps=float(rows["tx_gbps"].mean() or 0.0),  # type: ignore[arg-type]
        capacity_gbps=None if capacity is None else float(capacity),  # type: ignore[arg-type]
        persistence=float(np.var(loads) / np.mean(loads) ** 2) / max(spread, 1e-12),
        used=tuple(
            port
            for port, usual in zip(rows["ports"][0], np.median(of_mean, axis=0), strict=True)
            if usual >= _EMPTY
        ),
        receipts=_receipts(rows),
    )


def _receipts(rows: pl.DataFrame) -> Array | None:
    received = np.asarray(rows["receipts"].to_list(), dtype=np.float64)
    return None if np.isnan(received).any() else np.sum(received, axis=0)


@dataclass(frozen=True, slots=True)
class _Unevenness:
    """What groups of links tell of their flow number: degrees of freedom, CV^2 times traffic."""

    freedom: int = 0
    spread: float = 0.0

    def __add__(self, other: "_Unevenness") -> "_Unevenness":
        return _Unevenness(self.freedom + other.freedom, self.spread + other.spread)

    def flows(self, rate: float) -> float | None:
        """Return the flows that make a `rate`; None where the estimate would be worth nothing."""
        if self.freedom < _LEAST_FREEDOM:
            return None
        return self.freedom / max(self.spread, 1e-9) * rate


def _unevenness(rates: Iterable[Array]) -> _Unevenness:
    told = _Unevenness()
    for each in rates:
        freedom = len(each) - 1
        spread = freedom / flows_that_explain(each) * float(np.sum(each))
        told += _Unevenness(freedom, spread)
    return told


def estimated_flows(stretches: Mapping[str, Sequence[SharedStretch]]) -> dict[str, float | None]:
    """Estimate each group's flow number from others of as many links, else from its earlier times.

    Of the others those count that carry flows, too. None where neither is enough. A group has one
    number of links at all times.
    """
    alike: dict[int, list[str]] = {}
    for group, parts in stretches.items():
        if parts:
            alike.setdefault(len(parts[0].loads), []).append(group)
    estimates: dict[str, float | None] = dict.fromkeys(stretches)
    for groups in alike.values():
        rates = np.array([_usual_rate(stretches[group]) for group in groups])
        told = [_unevenness(part.rates for part in stretches[group]) for group in groups]
        freedom = np.array([each.freedom for each in told])
        spread = np.array([each.spread for each in told])
        for place, (group, rate) in enumerate(zip(groups, rates.tolist(), strict=True)):
            others = rates >= WITH_FLOWS * rate
            others[place] = False
            of_others = _Unevenness(int(freedom[others].sum()), float(spread[others].sum()))
            flows = of_others.flows(rate)
            if flows is None:
                flows = flows_of([part.rates for part in stretches[group][:-1]], rate)
            estimates[group] = None if flows is None else max(flows, _FEWEST_FLOWS)
    return estimates


def _usual_rate(parts: Sequence[SharedStretch]) -> float:
    return float(np.median([float(np.sum(part.rates)) for part in parts]))


def flows_of_even(parts: Sequence[SharedStretch], model: Model) -> float | None:
    """Return the flows that would make the least even stretch of links that are even at all times.

    What is even needs no number of flows to explain it. None where a stretch is uneven.
    """
    if not parts or min(jain(part.loads) for part in parts) < model.limit("even"):
        return None
    return min(flows_that_explain(part.rates) for part in parts)


def flows_of(rates: Sequence[Array], rate: float) -> float | None:
    """Estimate how many flows make a `rate`, by how uneven groups of links [n] are.

    CV^2 = (n - 1) / m for m equal flows on n links, and a group that carries more has more flows.
    None below seven degrees of freedom, where the estimate would be worth nothing.
    """
    return _unevenness(rates).flows(rate)
