"""How good one diagnosis is: its findings against the truth, one match a fault.

A finding is right if its kind is the fault's and its time overlaps the fault's; whether it names
the right entity is counted apart. No point adjustment: a fault is found once or not at all.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

from fabricobs.diagnosis.findings import Diagnosis, Finding
from fabricobs.diagnosis.model import Answers, load_models
from fabricobs.diagnosis.verdict import ANSWERED_BY


@dataclass(frozen=True, slots=True)
class Outcome:
    """One fault: was it found, who was named, how late, and how far off its cost was.

    Delay from the fault's begin to `detected_at`; None where the finding has no time.
    """

    scenario: str
    seed: int
    kind: str
    effect: float  # step time over that without the fault
    found: bool
    right_first: bool = False
    right_among_three: bool = False
    delay_seconds: float | None = None
    delay_steps: float | None = None
    delay_intervals: float | None = None
    true_loss: float = 0.0
    said_loss: float | None = None
    identifiable: bool = True  # the evidence written could show it
    loss_shown: bool = True  # and what it costs
    called_ok: bool = False  # missed, and the question that it answers was answered ok
    fault: str = ""
    onset_seconds: float | None = None  # between the begin said and the true one


@dataclass(frozen=True, slots=True)
class Claim:
    """One finding at `low` or above: its confidence, and whether a fault answers to it.

    `again` says that a fault answers which has another finding, or whose loss it is, that the
    cluster was built so, that chance makes it so and the finding is `low`, that other tenants cost
    what it tells, or that a lead (`low`, no loss) tells of a pace that ordinary life changed.
    """

    scenario: str
    seed: int
    kind: str
    severity: str
    confidence: float
    right: bool
    again: bool = False


@dataclass(frozen=True, slots=True)
class Score:
    """One case: its faults, its findings, its days of cluster time; whether all was called ok."""

    scenario: str
    seed: int
    outcomes: tuple[Outcome, ...]
    claims: tuple[Claim, ...]
    days: float
    called_ok: bool


def score_case(
    truth: Mapping[str, Any], found: Diagnosis, *, interval_seconds: float, step_seconds: float
) -> Score:
    """Match the findings of one case with its faults."""
    scenario, seed = truth["scenario"], truth["seed"]
    claimed = [finding for finding in found.findings if finding.severity != "info"]
    faults = [_named_or_only(fault, truth["jobs"]) for fault in truth["faults"]]
    matches = match_findings(faults, claimed)
    ok = {
        of
        for of, question in zip(ANSWERED_BY, found.verdict.questions, strict=True)
        if question.answer == "ok"
    }
    outcomes = tuple(
        _outcome(scenario, seed, fault, match, ok, interval_seconds, step_seconds)
        for fault, match in zip(faults, matches, strict=True)
    )
    right = {id(match) for match in matches if match is not None}
    claims = tuple(
        Claim(
            scenario, seed, f.kind, f.severity, f.confidence, id(f) in right,
            f.kind in truth.get("by_design", ())
            or (f.severity == "low" and f.kind in truth.get("by_chance", ()))
            or any(_answers(fault, f) for fault in faults)
            or any(_is_known(change, f) for change in truth.get("pace_changes", ())),
        )
        for f in claimed
    )  # fmt: skip
    answers = {question.answer for question in found.verdict.questions}
    stepping = sum(job["steps"] for job in truth["jobs"][:1]) * step_seconds
    days = truth.get("duration_seconds", stepping) / 86_400
    return Score(scenario, seed, outcomes, claims, days, not claimed and answers == {"ok"})


@cache
def _answered_by(kind: str) -> Answers | None:
    """Return which question a finding of the kind answers; None answers the first."""
    return next((m.answers for m in load_models().values() if m.kind == kind), None)


def _named_or_only(fault: Mapping[str, Any], jobs: Sequence[Any]) -> Mapping[str, Any]:
    """Return a fault whose culprit, the only job, may have any name: no log may tell it."""
    if len(jobs) > 1:
        return fault
    culprits = [{"type": "job"} if c["type"] == "job" else c for c in fault["culprits"]]
    return {**fault, "culprits": culprits}


def match_findings(
    faults: Sequence[Mapping[str, Any]], findings: Sequence[Finding]
) -> list[Finding | None]:
    """Give each fault at most one finding, and each finding at most one fault."""
    free = list(findings)
    matches: list[Finding | None] = []
    for fault in faults:
        fitting = [f for f in free if f.kind in _kinds(fault) and _overlap(f, fault)]
        fitting.sort(key=lambda finding: not _names(finding, fault, 1))
        matches.append(fitting[0] if fitting else None)
        if fitting:
            free.remove(fitting[0])
    return matches


def _outcome(
    scenario: str,
    seed: int,
    fault: Mapping[str, Any],
    match: Finding | None,
    ok: Set[Answers | None],
    interval_seconds: float,
    step_seconds: float,
) -> Outcome:
    """Return what became of a fault; `ok` are the questions that were answered ok."""
    effect = 1 / max(1 - fault["loss_share"], 0.01)
    common: dict[str, Any] = {
        "true_loss": fault["loss_share"],
        "identifiable": fault.get("identifiable", True),
        "loss_shown": fault.get("loss_shown", True),
        "fault": fault["fault"],
    }
    if match is None:
        called_ok = _answered_by(fault["kind"]) in ok
        return Outcome(scenario, seed, fault["kind"], effect, False, called_ok=called_ok, **common)
    delay = None
    if match.detected_at is not None:
        begin = datetime.fromisoformat(fault["start"])
        delay = max((_utc(match.detected_at) - begin).total_seconds(), 0.0)
    return Outcome(
        scenario=scenario,
        seed=seed,
        kind=fault["kind"],
        effect=effect,
        found=True,
        right_first=_names(match, fault, 1),
        right_among_three=_names(match, fault, 3),
        delay_seconds=delay,
        delay_steps=None if delay is None else delay / step_seconds,
        delay_intervals=None if delay is None else delay / interval_seconds,
        said_loss=match.loss_share,
        onset_seconds=_onset(match, fault),
        **common,
    )


def _onset(match: Finding, fault: Mapping[str, Any]) -> float | None:
    if match.start is None:
        return None
    return abs((_utc(match.start) - datetime.fromisoformat(fault["start"])).total_seconds())


def _kinds(fault: Mapping[str, Any]) -> set[str]:
    """What a finding of the fault may be called."""
    return {fault["kind"], *fault.get("also", ())}


def _answers(fault: Mapping[str, Any], finding: Finding) -> bool:
    """Whether a finding is about a fault: it names a culprit, or the loss without a cause."""
    if not _overlap(finding, fault):
        return False
    unexplained = finding.kind == "throughput_drop" and fault["loss_share"] > 0.01
    return unexplained or (finding.kind in _kinds(fault) and _names(finding, fault, 3))


def _is_known(change: Mapping[str, Any], finding: Finding) -> bool:
    """Whether a finding tells of a pace that ordinary life changed.

    It says that steps are longer, and not that this is a loss; what others cost is a loss.
    """
    if not _overlap(finding, change):
        return False
    is_lead = finding.kind == "throughput_drop" and finding.severity == "low"
    return finding.kind in change.get("is", ()) or (is_lead and finding.loss_share is None)


def _overlap(finding: Finding, fault: Mapping[str, Any]) -> bool:
    begin, end = (datetime.fromisoformat(fault[name]) for name in ("start", "end"))
    early = finding.start is None or _utc(finding.start) <= end
    late = finding.end is None or _utc(finding.end) >= begin
    return early and late


def _names(finding: Finding, fault: Mapping[str, Any], most: int) -> bool:
    """Whether one of the first `most` entities is a culprit: all that the culprit's key says.

    A finding that names no part is about the whole job.
    """
    said = [entity.as_dict() for entity in finding.entities[:most]] or [{"type": "job"}]
    return any(_same(entity, culprit) for entity in said for culprit in fault["culprits"])


def _same(said: Mapping[str, Any], culprit: Mapping[str, Any]) -> bool:
    """Whether an entity is a culprit: a rank is by its number, where no log tells its host."""
    told = {**culprit, **said} if culprit["type"] == "rank" and "host" not in said else said
    return all(told.get(name) == value for name, value in culprit.items() if name != "job") and (
        culprit["type"] != "job" or said.get("job") in {None, culprit.get("job", said.get("job"))}
    )


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
