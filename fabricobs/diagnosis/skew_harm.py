"""What harm an uneven uplink group does: collectives, bursts on its hottest link, pauses."""

from datetime import datetime

import numpy as np
import polars as pl

from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.job import Slowdown
from fabricobs.diagnosis.statistics import differs, relative_shift
from fabricobs.diagnosis.uplink_stretches import SharedStretch


def collective_rise(evidence: Evidence, onset: datetime, slowdown: Slowdown | None) -> float | None:
    """Return by how much pure collective time rose at the onset, None if it cannot be told."""
    calls = evidence.frame("collective_times").drop_nulls("ts")
    moment = slowdown.start if slowdown and slowdown.start else onset
    before = calls.filter(pl.col("ts") < moment)["pure_us"].to_numpy().astype(np.float64)
    after = calls.filter(pl.col("ts") >= moment)["pure_us"].to_numpy().astype(np.float64)
    if len(before) < 10 or len(after) < 10 or differs(before, after) >= 0.001:
        return None
    return relative_shift(before, after)


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


def pause_rise(evidence: Evidence, onset: datetime) -> tuple[float, float] | None:
    """Return the mean pause frames a second of a device before and after the onset."""
    pauses = evidence.frame("pauses")
    total = pl.col("rx_frames_per_second").fill_null(0) + pl.col("tx_frames_per_second").fill_null(
        0
    )
    before = pauses.filter(pl.col("ts") <= onset).select(total.mean()).item()
    after = pauses.filter(pl.col("ts_before") >= onset).select(total.mean()).item()
    return None if before is None or after is None else (float(before), float(after))
