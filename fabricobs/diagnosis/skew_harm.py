"""What harm an uneven uplink group does: collectives, bursts on its hottest link, pauses."""

from datetime import datetime, timedelta

import numpy as np
import polars as pl

from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.slowdowns import Slowdown
from fabricobs.diagnosis.statistics import differs, relative_shift
from fabricobs.diagnosis.uplink_stretches import SharedStretch

_NEAR = 4  # the part of a stretch next to its onset: a quarter
_FEWEST_CALLS = 10  # on each side, to compare their times
_CHANCE = 0.001  # p from which two sides are alike


def collective_rise(
    evidence: Evidence, stretch: SharedStretch, slowdown: Slowdown | None
) -> float | None:
    """Return by how much pure collective time rose as a stretch began, None if it cannot be told.

    Compared is as long before as the stretch lasts, and the quarter of it next to the onset: what
    rose earlier rose for another reason.
    """
    calls = evidence.frame("collective_times").drop_nulls("ts")
    onset = slowdown.start if slowdown and slowdown.start else stretch.begin
    length = stretch.end - stretch.begin
    rises = [_rise_within(calls, onset, span) for span in (length, length / _NEAR)]
    known = [rise for rise in rises if rise is not None]
    return min(known) if len(known) == len(rises) else None


def _rise_within(calls: pl.DataFrame, onset: datetime, span: timedelta) -> float | None:
    """Return the rise from calls at most `span` before the onset to those after; 0 if by chance."""
    since = pl.col("ts") - onset
    before = calls.filter(since.is_between(-span, timedelta(0), closed="left"))["pure_us"]
    after = calls.filter(since.is_between(timedelta(0), span))["pure_us"]
    if min(len(before), len(after)) < _FEWEST_CALLS:
        return None
    times = [each.to_numpy().astype(np.float64) for each in (before, after)]
    return 0.0 if differs(*times) >= _CHANCE else relative_shift(*times)


def burst_utilisation(stretch: SharedStretch, evidence: Evidence) -> float | None:
    """Return the busiest link's utilisation while collectives run: mean / share of the step."""
    steps = evidence.frame("rank_steps").drop_nulls(["comm_ms", "step_time_ms"])
    during = steps.filter(pl.col("ts").is_between(stretch.begin, stretch.end))
    if during.is_empty() or not stretch.capacity_gbps:
        return None
    transfers = during.group_by("step").agg(
        (pl.col("comm_ms").min() / pl.col("step_time_ms").median()).alias("busy")
    )
    busy = float(transfers["busy"].median() or 0.0)  # type: ignore[arg-type]
    share = stretch.loads / np.sum(stretch.loads)
    link_gbps = stretch.capacity_gbps / len(share)
    return float(np.max(share)) * stretch.tx_gbps / link_gbps / max(busy, 0.01)


def pause_rise(evidence: Evidence, stretch: SharedStretch) -> tuple[float, float] | None:
    """Return the mean pause frames a second of a device as long before a stretch, and in it."""
    pauses = evidence.frame("pauses")
    total = pl.sum_horizontal(pl.col("rx_frames_per_second", "tx_frames_per_second").fill_null(0))
    begin, length = stretch.begin, stretch.end - stretch.begin
    before = pauses.filter(pl.col("ts").is_between(begin - length, begin)).select(total.mean())
    after = pauses.filter(pl.col("ts_before").is_between(begin, stretch.end)).select(total.mean())
    means = before.item(), after.item()
    return None if None in means else means
