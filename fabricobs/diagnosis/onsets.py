"""When a cause began: counters tell the reading after, steps that grow longer tell it closer."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from fabricobs.diagnosis.cables import CLOCK_SLACK, moment
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.findings import Finding
from fabricobs.diagnosis.job import StepTimeTrend
from fabricobs.diagnosis.slowdowns import Slowdown


def at_their_onsets(
    findings: Sequence[Finding], trends: Sequence[StepTimeTrend], evidence: Evidence
) -> list[Finding]:
    """Return findings that begin with the longer steps of the interval before their counters.

    The interval of counters in which a cause begins holds time without it, too: what tests whole
    intervals begins one later.
    """
    seconds = evidence.frame("coverage")["interval_seconds"][0]
    interval = timedelta(seconds=seconds or 0.0) + CLOCK_SLACK
    slowdowns = [slowdown for trend in trends for slowdown in trend.onsets]
    return [_at_onset(finding, slowdowns, interval) for finding in findings]


def _at_onset(finding: Finding, slowdowns: Sequence[Slowdown], interval: timedelta) -> Finding:
    start, step = finding.start, finding.start_step
    if "counters" not in finding.families or start is None or step is None or finding.bursts:
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


def retold(text: str, before: datetime, now: datetime) -> str:
    """Return a text that names a time with another."""
    clock, other = (f"{time:%H:%M:%S} UTC" for time in (before, now))
    return text.replace(moment(before), moment(now)).replace(clock, other)
