"""When a cause began and ended: counters tell the reading after, the steps tell it closer."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import polars as pl

from fabricobs.diagnosis.cables import CLOCK_SLACK, moment
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.findings import Finding
from fabricobs.diagnosis.job import StepTimeTrend
from fabricobs.diagnosis.slowdowns import Slowdown


def at_their_onsets(
    findings: Sequence[Finding], trends: Sequence[StepTimeTrend], evidence: Evidence
) -> list[Finding]:
    """Return findings that begin and end with the longer steps of the intervals of their counters.

    The interval of counters in which a cause begins or ends holds time without it, too: what tests
    whole intervals begins one later, and ends with the interval.
    """
    seconds = evidence.frame("coverage")["interval_seconds"][0]
    interval = timedelta(seconds=seconds or 0.0) + CLOCK_SLACK
    slowdowns = [slowdown for trend in trends for slowdown in trend.onsets]
    begun = [_at_onset(finding, slowdowns, interval) for finding in findings]
    return [_at_end(finding, trends, interval) for finding in begun]


def _is_of_counters(finding: Finding) -> bool:
    """Say whether counters tell when it begins and ends, and not the steps of its bursts."""
    return "counters" in finding.families and not finding.bursts


def _at_onset(finding: Finding, slowdowns: Sequence[Slowdown], interval: timedelta) -> Finding:
    start, step = finding.start, finding.start_step
    if not _is_of_counters(finding) or start is None or step is None:
        return finding
    for slowdown in slowdowns:
        begun = slowdown.start
        if begun is None or slowdown.first_step >= step or slowdown.last_step < step:
            continue
        if begun < start <= begun + interval:
            return replace(
                finding,
                start=begun,
                start_step=slowdown.first_step,
                title=retold(finding.title, start, begun),
                explanation=retold(finding.explanation, start, begun),
            )
    return finding


def _at_end(finding: Finding, trends: Sequence[StepTimeTrend], interval: timedelta) -> Finding:
    first, end, step = finding.start_step, finding.end, finding.end_step
    if not _is_of_counters(finding) or end is None or step is None:
        return finding
    slowdowns = ((trend, slowdown) for trend in trends for slowdown in trend.slowdowns)
    for trend, slowdown in slowdowns:
        over = slowdown.end
        if over is None or slowdown.goes_on or not (first or 0) <= slowdown.last_step < step:
            continue
        if over < end <= over + interval:
            return replace(
                finding,
                end=over,
                end_step=slowdown.last_step,
                loss_share=_lost_until(finding, trend.steps, slowdown.last_step),
                title=retold(finding.title, end, over),
                explanation=retold(finding.explanation, end, over),
            )
    return finding


def _lost_until(finding: Finding, steps: pl.DataFrame, last: int) -> float | None:
    """Return the share lost of the steps until `last`: those after it lost none."""
    if finding.loss_share is None:
        return None
    whole = steps.filter(pl.col("step").is_between(finding.start_step, finding.end_step))
    whole_ms = float(whole["step_time_ms"].sum())
    part_ms = float(whole.filter(pl.col("step") <= last)["step_time_ms"].sum())
    return min(finding.loss_share * whole_ms / part_ms, 1.0) if part_ms else finding.loss_share


def retold(text: str, before: datetime, now: datetime) -> str:
    """Return a text that names a time with another."""
    clock, other = (f"{time:%H:%M:%S} UTC" for time in (before, now))
    return text.replace(moment(before), moment(now)).replace(clock, other)
