"""How far the clocks are apart: hosts by the ends of steps, devices by the job's rhythm of bytes.

Steps end together on all ranks, so a host whose steps end late has a fast clock. A switch carries
bytes while the job communicates: starts, checkpoints and changes of pace show in its counters, and
the shift that fits them best is its clock's. Where nothing fits better than anything else the
offset is refused, not guessed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from fabricobs.diagnosis.cables import CLOCK_SLACK
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.findings import Clock, Finding
from fabricobs.diagnosis.statistics import Array, nan_median

_SEARCHED_SECONDS = 30.0
_STEP_SECONDS = 0.1
_FEWEST_INTERVALS = 12
_FEWEST_STEPS = 20
# A shift fits as well as the best if its cost is within this factor of it. Measured on simulated
# leaves with 10 s counters: the true offset then lies inside in 95 of 100.
_AS_GOOD = 1.15
_MOST_AT_ONCE = 1_000_000  # pairs of a shift and an interval: 8 MB an array
_NAMED = 3
_PAUSED = 1.5  # times the usual step: a checkpoint or another pause of the whole job
_WIDEST = 0.5  # of an interval: beyond it the counters carry no rhythm to tell by


@dataclass(frozen=True, slots=True)
class Offset:
    """A device's clock: `seconds` ahead of the job's, give or take `error`; None if refused."""

    device: str
    seconds: float | None
    error: float

    @property
    def certain(self) -> bool:
        """Whether the clock is off for sure: by more than a second and twice the error."""
        return self.seconds is not None and abs(self.seconds) > max(1.0, 2 * self.error)


def host_offsets(evidence: Evidence) -> tuple[Offset, ...]:
    """Return each host's offset from the (lower) median host, by the ends of its steps."""
    ends = evidence.frame("host_steps")
    of_job = pl.col("ended").quantile(0.5, "lower").over("job", "step")
    apart = ends.with_columns((pl.col("ended") - of_job).alias("ahead"))
    rows = apart.group_by("host", maintain_order=True).agg(
        pl.len().alias("steps"),
        pl.col("ahead").median().alias("ahead"),
        (pl.col("ahead") - pl.col("ahead").median()).abs().median().alias("error"),
    )
    return tuple(
        Offset(host, ahead if steps >= _FEWEST_STEPS else None, error)
        for host, steps, ahead, error in rows.iter_rows()
    )


def device_offsets(evidence: Evidence) -> tuple[Offset, ...]:
    """Return the offset of every device that counts bytes; refused where they are steady."""
    steps = evidence.frame("job_steps").drop_nulls(["ts", "step_time_ms"])
    if len(steps) < _FEWEST_STEPS:
        return ()
    moments, done = _curve(steps)
    return tuple(
        _offset(str(rows["device"][0]), rows, moments, done)
        for rows in evidence.frame("device_traffic").partition_by("device", maintain_order=True)
    )


def _curve(steps: pl.DataFrame) -> tuple[Array, Array]:
    """Steps' worth of bytes moved up to each moment: each step moves its bytes in its transfer."""
    ends = steps["ts"].dt.epoch("us").to_numpy() / 1e6
    length = steps["step_time_ms"].to_numpy() / 1e3
    transfer = steps["transfer_ms"].cast(pl.Float64).to_numpy() / 1e3
    usual = np.nanmedian(transfer) if not np.isnan(transfer).all() else np.nan
    moving = np.where(np.isnan(transfer), np.where(np.isnan(usual), length, usual), transfer)
    # A checkpoint comes after the transfer, at the step's end.
    usual_length = np.median(length)
    pause = np.where(length > _PAUSED * usual_length, length - usual_length, 0)
    stops = ends - pause
    edges = np.stack([stops - np.minimum(moving, length), stops], axis=1).ravel()
    totals = np.repeat(np.arange(len(ends) + 1), 2)[1:-1].astype(np.float64)
    order = np.argsort(edges, kind="stable")
    return edges[order], np.maximum.accumulate(totals[order])


def _offset(device: str, rows: pl.DataFrame, moments: Array, done: Array) -> Offset:
    begin = rows["ts_before"].dt.epoch("us").to_numpy() / 1e6
    end = rows["ts"].dt.epoch("us").to_numpy() / 1e6
    bytes_sent = rows["tx_bytes"].cast(pl.Float64).to_numpy()
    near = (end > moments[0] - _SEARCHED_SECONDS) & (begin < moments[-1] + _SEARCHED_SECONDS)
    begin, end, bytes_sent = begin[near], end[near], bytes_sent[near]
    interval = float(np.median(end - begin)) if len(end) else 0.0
    refused = Offset(device, None, interval / 2)
    if len(end) < _FEWEST_INTERVALS:
        return refused
    shifts = np.arange(-_SEARCHED_SECONDS, _SEARCHED_SECONDS + _STEP_SECONDS, _STEP_SECONDS)
    at_once = max(_MOST_AT_ONCE // len(end), 1)
    costs = np.concatenate(
        [
            _misfits(begin, end, bytes_sent, shifts[first : first + at_once], moments, done)
            for first in range(0, len(shifts), at_once)
        ]
    )
    best = int(np.argmin(costs))
    as_good = shifts[costs <= costs[best] * _AS_GOOD]
    error = float(as_good.max() - as_good.min()) / 2
    if error > _WIDEST * interval or best in {0, len(shifts) - 1}:
        return refused
    return Offset(device, round(float(np.mean(as_good)), 2), max(error, 2 * _STEP_SECONDS))


def _misfits(
    begin: Array, end: Array, sent: Array, shifts: Array, moments: Array, done: Array
) -> Array:
    """By shift: mean distance of the bytes from what the steps let expect, far ones less."""
    back = shifts[:, None]
    if np.array_equal(begin[1:], end[:-1]):  # as nearly always: each moment is looked up once
        edges = np.concatenate([begin[:1], end])
        expected = np.diff(np.interp(edges - back, moments, done), axis=1)
    else:
        expected = np.interp(end - back, moments, done) - np.interp(begin - back, moments, done)
    busy = expected > 0
    some = busy.any(axis=1)
    expected, busy = expected[some], busy[some]
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = nan_median(np.where(busy, sent / expected, np.nan), axis=1)[:, None]
    usual = scale * nan_median(np.where(busy, expected, np.nan), axis=1)[:, None]
    distance = np.abs(sent - scale * expected) / np.maximum(usual, 1e-9)
    costs = np.full(len(shifts), np.inf)
    costs[some] = np.minimum(distance, 0.5).mean(axis=1)
    return costs


def with_clocks(findings: Iterable[Finding], clocks: Sequence[Clock]) -> list[Finding]:
    """Return findings that say how far the clocks of their culprits are off the job's.

    Who looks for a finding's time in the logs of its host or switch must know it.
    """
    slack = CLOCK_SLACK.total_seconds()
    off = {
        clock.name: clock.seconds
        for clock in clocks
        if clock.seconds is not None and abs(clock.seconds) > max(slack, 2 * clock.error)
    }
    return [replace(f, explanation=_with_clocks_of(f, off)) for f in findings]


def _with_clocks_of(finding: Finding, off: Mapping[str, float]) -> str:
    parts = dict.fromkeys(entity.host or entity.switch or "" for entity in finding.entities)
    told = [f"{name} {off[name]:+.0f} s" for name in parts if name in off][:_NAMED]
    if finding.start is None or not told:
        return finding.explanation
    return (
        f"{finding.explanation} Clocks ahead of the job's (+) or behind it (-): {', '.join(told)}; "
        "their own logs differ by that from the times here."
    )


def describe_offsets(offsets: Sequence[Offset], times: str) -> str:
    """Say in a line how far the clocks are off, the worst ones by name.

    `times` says what is done with the times of those that are off for sure.
    """
    known = [offset for offset in offsets if offset.seconds is not None]
    if not known:
        return "not known: too few steps or counters, or values too constant"
    worst = sorted(known, key=lambda offset: -abs(offset.seconds or 0.0))[:_NAMED]
    named = ", ".join(f"{o.device} {o.seconds:+.1f} ± {o.error:.1f} s" for o in worst)
    off = sum(offset.certain for offset in known)
    return f"{len(known)} of {len(offsets)} known, {off} {times}; largest: {named}"
