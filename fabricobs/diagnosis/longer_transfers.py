"""Longer steps whose collectives take longer with the same messages: the network is slower.

A trainer that logs only how long a step took leaves open whether it did more work. Records of the
collectives beside it settle that where most of the added time is theirs.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import polars as pl

from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.job import COVERED, StepTimeTrend
from fabricobs.diagnosis.slowdowns import MOSTLY, Slowdown

# Calls of one kind before and after: fewer tell little of a median.
_FEWEST_CALLS = 5
# A step of the same work has as many calls, but for those at the ends of a stretch.
_AS_MANY = 0.1


def with_transfers(evidence: Evidence, trends: Sequence[StepTimeTrend]) -> list[StepTimeTrend]:
    """Return the trends, with the network's part of slowdowns of which no log tells the work.

    A slow start is a slowdown where most of what it adds is known to be no more work.
    """
    return [_with_slow_start(evidence, trend) for trend in trends]


def _with_slow_start(evidence: Evidence, trend: StepTimeTrend) -> StepTimeTrend:
    slowdowns = tuple(_with_transfers(evidence, trend, s) for s in trend.slowdowns)
    start = trend.slow_start and _with_transfers(evidence, trend, trend.slow_start)
    if start is None or not (start.per_work or start.is_split):
        return replace(trend, slowdowns=slowdowns)
    later = (s for s in slowdowns if s.first_step > start.last_step)
    return replace(trend, slowdowns=(start, *later), slow_start=None)


def _with_transfers(evidence: Evidence, trend: StepTimeTrend, slowdown: Slowdown) -> Slowdown:
    before = [
        s
        for s in trend.segments
        if (
            s.first_step > slowdown.last_step
            if slowdown.from_start
            else s.last_step < slowdown.first_step
        )
    ]
    if not slowdown.is_lead or slowdown.more_work or not before:
        return slowdown
    best = min(before, key=lambda segment: segment.step_time_ms)
    usual = _times_of(trend, best.first_step, best.last_step)
    slow = _times_of(trend, slowdown.first_step, slowdown.last_step)
    if not usual or not slow:
        return slowdown
    limits: dict[str, float | datetime] = {
        "before_begin": usual[0], "before_end": usual[-1], "begin": slow[0], "end": slow[-1],
        "covered": COVERED, "fewest": _FEWEST_CALLS,
    }  # fmt: skip
    rows = evidence.frame("longer_transfers", limits)
    rows = rows.filter(pl.col("job").eq_missing(pl.lit(trend.job)))
    steps = [best.last_step - best.first_step + 1, slowdown.last_step - slowdown.first_step + 1]
    a_step, now = pl.col("calls_before") / steps[0], pl.col("calls") / steps[1]
    alike = rows.filter((now - a_step).abs() <= _AS_MANY * a_step)
    added = alike.select(a_step * (pl.col("after_ms") - pl.col("before_ms"))).to_series().sum()
    part = min(float(added) / (slowdown.after_ms - slowdown.before_ms), 1.0)
    return replace(slowdown, network_part=part) if part >= MOSTLY else slowdown


def _times_of(trend: StepTimeTrend, first: int, last: int) -> list[datetime]:
    """Return when the steps from one to another ended, in order; those that a log times."""
    steps = trend.steps.drop_nulls("ts").filter(pl.col("step").is_between(first, last))
    times: list[datetime] = steps["ts"].sort().to_list()
    return times
