"""Whether a fault lasts: does it reach to the end of the data, or do they go on without it?"""

from typing import Literal

from fabricobs.diagnosis.findings import Diagnosis, Finding

State = Literal["ongoing", "over", ""]

# Of the time of the data: the last interval of counters and the steps a test needs to see an end.
_NEAR_THE_END = 0.05


def state_of(finding: Finding, diagnosis: Diagnosis) -> State:
    """Return whether a finding was ongoing when the data end; empty where no end is known."""
    first, last = diagnosis.coverage.first_time, diagnosis.coverage.last_time
    if finding.end is not None and first is not None and last is not None:
        return "ongoing" if last - finding.end <= _NEAR_THE_END * (last - first) else "over"
    steps = [step for s in diagnosis.segments for step in (s.first_step, s.last_step)]
    if finding.end_step is not None and steps:
        left = max(steps) - finding.end_step
        return "ongoing" if left <= _NEAR_THE_END * (max(steps) - min(steps)) else "over"
    return ""
