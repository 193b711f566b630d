"""Whether a fault lasts: does it reach to the end of the data, or do they go on without it?"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

from fabricobs.diagnosis.cables import CLOCK_SLACK
from fabricobs.diagnosis.findings import Coverage, Finding, Segment, State
from fabricobs.diagnosis.model import Model

# Of the steps or the time of the data: the last interval of counters and the steps a test needs to
# see an end.
_NEAR_THE_END = 0.05
_SAME_STEPS = 20  # an onset is found by windows of as many
_SOME_STEPS = 3  # a step may be logged late
_SINCE = {"since": "from"}
_MOST_SHARING = 2  # causes of a loss that a headline names beside its own
_AGAIN = "If it comes back, "
# What an answer says of a loss, as it is and as it was.
LOSS_PAST = _SINCE | {
    "is lost": "was lost",
    "take longer": "took longer",
    "takes longer": "took longer",
    "wait": "waited",
    "is as before": "was as before",
    "are as before": "were as before",
    "is as after": "was as after",
    "are as after": "were as after",
}


def with_states(
    findings: Iterable[Finding],
    coverage: Coverage,
    segments: Sequence[Segment],
    models: Mapping[str, Model],
    job_end: datetime | None = None,
    *,
    finished: bool = False,
) -> list[Finding]:
    """Return findings with their state at the end of the data; what is over, in the past tense.

    `job_end` is when the last step ended, if there is one job and a log tells it; it is `finished`
    if that was the last of its plan.
    """
    first_judged = min((segment.first_step for segment in segments), default=-1)
    told = []
    for finding in findings:
        stands = _standing(finding, coverage, segments, job_end, finished)
        if stands.state == "over":
            stands = _as_over(stands, finding.state, models)
        was_sound, step = finding.begun_by is not None, finding.start_step
        from_first = step is not None and step <= first_judged and not was_sound
        read_first = step is None and not was_sound and _begins_with(finding, coverage)
        told.append(
            replace(
                stands,
                # Traffic that ends with the data ends nothing.
                traffic_ended=finding.traffic_ended and stands.state == "over",
                slower_from=finding.slower_from or _slower_from(finding, segments),
                from_first_step=from_first or finding.from_first_step,
                from_first_reading=read_first or finding.from_first_reading,
            )
        )
    return told


def _standing(
    finding: Finding,
    coverage: Coverage,
    segments: Sequence[Segment],
    job_end: datetime | None,
    finished: bool,
) -> Finding:
    """Return a finding with its state, and when and with what it ended.

    What was over when its job ended stays so, however long other data go on or began before. What
    lasts as long as its job ended with it if the job is finished, else it lasts until the job's
    last step, where other data go on. What a job bore until it ended is over `to_its_end`.
    """
    over = finding.state == "over" or finding.to_its_end
    seen = "over" if over else _state(finding, coverage, segments)
    if seen == "ongoing" and _ends_with(finding, job_end, coverage):
        if finished:
            end = _until_job_end(finding, job_end)
            return replace(finding, state="over", end=end, to_its_end=True, until_last_step=False)
        if _data_go_on(job_end, coverage, segments):
            return replace(finding, state="ongoing", end=job_end, until_last_step=True)
    if seen == "over" and job_end is not None and _reaches(job_end, finding, coverage):
        return replace(finding, state="over", end=job_end, to_its_end=True, until_last_step=False)
    state = seen or finding.state
    return replace(
        finding,
        state=state,
        to_its_end=finding.to_its_end or (finding.state == "ongoing" and state == "over"),
        until_last_step=finding.until_last_step and state == "ongoing",
    )


def _as_over(finding: Finding, before: State, models: Mapping[str, Model]) -> Finding:
    """Return a finding that is over with its next steps, and its title unless it was, as such."""
    own = [model for model in models.values() if model.kind == finding.kind]
    live = max((model.live_steps for model in own), default=0)
    finding = replace(finding, next_steps=_steps_after(finding.next_steps, live))
    if before == "over":
        return finding
    words = own[-1].wording.past if own else {}
    return replace(finding, title=in_past(finding.title, _SINCE | words))


def _slower_from(finding: Finding, segments: Sequence[Segment]) -> tuple[int, datetime] | None:
    """Return the first longer steps that begin between a finding's start and its detection."""
    start, known = finding.start, finding.detected_at
    if "counters" not in finding.families or start is None or known is None:
        return None
    return next(
        (
            (after.first_step, after.start)
            for before, after in pairwise(segments)
            if after.start is not None
            and start < after.start <= known + CLOCK_SLACK
            and after.first_step != finding.start_step
            and before.last_step < after.first_step
            and before.step_time_ms < after.step_time_ms
        ),
        None,
    )


def _steps_after(steps: tuple[str, ...], live: int) -> tuple[str, ...]:
    """Return next steps with the first `live` of them last: they show nothing after the fault."""
    if any(step.startswith(_AGAIN) for step in steps):
        return steps
    return (*steps[live:], *(f"{_AGAIN}{step[:1].lower()}{step[1:]}" for step in steps[:live]))


def in_past(text: str, words: Mapping[str, str]) -> str:
    """Return a text with each of the words once as it is in the past."""
    for now, then in words.items():
        text = re.sub(rf"(?<!\S){re.escape(now)}(?!\w)", then.replace("\\", r"\\"), text, count=1)
    return text


def _state(finding: Finding, coverage: Coverage, segments: Sequence[Segment]) -> State:
    """Return whether a finding was ongoing when the data end; empty where nobody can tell."""
    steps = [step for s in segments for step in (s.first_step, s.last_step)]
    # Steps that were not longer at the end do not end what counters still tell.
    if "counters" in finding.families and _is_at_the_end(finding, coverage):
        return "ongoing"
    if finding.end_step is not None and steps:
        if _ends_with_pace(finding.end_step, segments):
            return "over"
        left = max(steps) - finding.end_step
        if left <= _NEAR_THE_END * (max(steps) - min(steps)):
            return "ongoing"
        return "" if left < _longest_pause(finding) else "over"
    first, last = coverage.begin, coverage.last_time
    if finding.end is not None and first is not None and last is not None:
        return "ongoing" if last - finding.end <= _NEAR_THE_END * (last - first) else "over"
    return ""


def _ends_with_pace(end_step: int, segments: Sequence[Segment]) -> bool:
    """Say whether steps become shorter soon after this one, and stay so."""
    return any(
        abs(after.first_step - end_step) <= _SAME_STEPS
        and before.last_step < after.first_step
        and after.step_time_ms < before.step_time_ms
        for before, after in pairwise(segments)
    )


def _is_at_the_end(finding: Finding, coverage: Coverage) -> bool:
    """Say whether a finding lasts until the last interval of the counters, near the end of all."""
    first, last = coverage.begin, coverage.last_time
    if finding.end is None or first is None or last is None:
        return False
    left = last - finding.end
    return left <= min(_interval(coverage) + CLOCK_SLACK, _NEAR_THE_END * (last - first))


def _begins_with(finding: Finding, coverage: Coverage) -> bool:
    """Say whether a finding begins with the data."""
    if coverage.begin is None or finding.start is None:
        return False
    return finding.start <= coverage.begin + CLOCK_SLACK


def _interval(coverage: Coverage) -> timedelta:
    return timedelta(seconds=coverage.values.get("interval_seconds") or 0.0)


def _longest_pause(finding: Finding) -> int:
    """Return how many steps a fault that comes and goes has paused at most: it may come again."""
    bursts = sorted(finding.bursts)
    pauses = [after[0] - before[1] for before, after in pairwise(bursts)]
    return max(pauses, default=0) if len(pauses) > 1 else 0


def _ends_with(finding: Finding, job_end: datetime | None, coverage: Coverage) -> bool:
    """Say whether an ongoing finding lasts as long as its job: no shorter, nor beyond.

    Counters tell of the interval in which the job ended; steps, of one near its end.
    """
    if finding.after_step is not None:
        return False
    if job_end is None or finding.end is None:
        return finding.end_step is not None
    near = _interval(coverage) + CLOCK_SLACK
    if finding.end_step is None:
        return abs(finding.end - job_end) <= near
    if coverage.begin is not None:
        near = max(near, _NEAR_THE_END * (job_end - coverage.begin))
    return finding.end >= job_end - near


def _until_job_end(finding: Finding, job_end: datetime | None) -> datetime | None:
    """Return when a finding ended that ended with its job: its last interval may reach beyond."""
    if job_end is None:
        return finding.end
    if finding.end_step is None or finding.end is None:
        return job_end
    return min(finding.end, job_end)


def _data_go_on(job_end: datetime | None, coverage: Coverage, segments: Sequence[Segment]) -> bool:
    """Say whether data go on after a job's last step for longer than some of its steps take."""
    if job_end is None:
        return False
    step = timedelta(milliseconds=segments[-1].step_time_ms if segments else 0.0)
    last = coverage.last_time
    return last is not None and last - job_end > _SOME_STEPS * step + CLOCK_SLACK


def _reaches(job_end: datetime, finding: Finding, coverage: Coverage) -> bool:
    """Say whether what counters tell lasts until the last interval that is all within the job."""
    start, end = finding.start, finding.end
    if start is None or end is None or finding.end_step is not None:
        return False
    return start < job_end and end <= job_end <= end + _interval(coverage) + CLOCK_SLACK


def headline(finding: Finding) -> str:
    """Return a finding as a sentence: what, what it costs or has cost, when it ended."""
    costs = "cost" if finding.state == "over" else "costs"
    share = f" This {costs} {finding.lost} of the throughput." if finding.loss_share else ""
    named = finding.loss_shared_with[:_MOST_SHARING]
    more = len(finding.loss_shared_with) - len(named)
    others = "; ".join([*named, f"{more} more"] if more else named)
    shared = f" Other causes share that: {others}." if others else ""
    return f"{finding.title}.{share}{shared}{end_of(finding)}"


def end_of(finding: Finding) -> str:
    """Say when a fault ended, that its job did, or that it lasts as far as the logs go."""
    if finding.is_moment:
        return ""
    if finding.state == "ongoing":
        at = f", {finding.end:%Y-%m-%d %H:%M:%S} UTC" if finding.until_last_step else ""
        return f" It lasts {finding.lasts_until}{at}."
    if finding.state != "over":
        return ""
    # Of a job that stands still no step ends.
    step = None if finding.after_step is not None else finding.end_step
    when = "" if step is None else f" at step {step:,}"
    if not when and finding.end is not None:
        when = f" at {finding.end:%Y-%m-%d %H:%M:%S} UTC"
    ended = finding.ended_with
    return f" It lasted until {ended}{when}." if ended else f" It ended{when}."
