"""Losses without a cause: what no named cause explains is told, with what changed at that time."""

from collections.abc import Sequence

from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.finding_builder import with_phrases
from fabricobs.diagnosis.findings import Finding, Severity, severity_of_loss
from fabricobs.diagnosis.job import Slowdown, StepTimeTrend
from fabricobs.diagnosis.model import Model

# Stragglers are dated by windows of 20 steps: two of them.
_SLACK_STEPS = 40


def unexplained(
    findings: list[Finding], trends: list[StepTimeTrend], model: Model, evidence: Evidence
) -> list[Finding]:
    """Return a finding for each slowdown that the named causes do not explain."""
    left: list[Finding] = []
    for pace in trends:
        for slowdown in pace.slowdowns:
            explained = sum(
                _explained_loss(finding, slowdown, pace.slowdowns)
                for finding in findings
                if finding.kind != model.kind
            )
            rest = slowdown.loss_share - explained
            if slowdown.loss_share < model.limit("loss"):
                continue
            if any(_is_burst(finding, slowdown) for finding in findings):
                continue
            if explained < model.limit("explained") * slowdown.loss_share:
                left.append(_drop(slowdown, rest, model, evidence))
    return left


def _explained_loss(finding: Finding, slowdown: Slowdown, slowdowns: Sequence[Slowdown]) -> float:
    """Return how much of a slowdown's loss a finding accounts for.

    All of its own, where they begin together. One that begins with a slowdown and outlasts it has
    its loss spread over all that follow while it lasts: the pace comes and goes with it.
    """
    loss = finding.loss_share or 0.0
    own = loss if _overlaps(finding, slowdown) else 0.0
    if finding.start_step is None or finding.end_step is None:
        return own
    earliest = finding.start_step - _SLACK_STEPS
    during = [s for s in slowdowns if earliest <= s.first_step <= finding.end_step]
    if slowdown not in during or not _overlaps(finding, during[0]):
        return own
    lost_steps = loss * (finding.end_step - finding.start_step + 1)
    slow_steps = sum(s.loss_share * (s.last_step - s.first_step + 1) for s in during)
    return max(own, slowdown.loss_share * min(lost_steps / slow_steps, 1.0))


def _overlaps(finding: Finding, slowdown: Slowdown) -> bool:
    """Say whether a finding may explain a slowdown: same job, begun with it or during it.

    A cause that comes and goes begins again and again.
    """
    jobs = {entity.job for entity in finding.entities if entity.type in {"rank", "host"}}
    if finding.start_step is None or (jobs and slowdown.job not in jobs):
        return False
    earliest = slowdown.first_step - _SLACK_STEPS
    begins = [finding.start_step, *(first for first, _ in finding.bursts)]
    return any(earliest <= first <= slowdown.last_step for first in begins)


def _is_burst(finding: Finding, slowdown: Slowdown) -> bool:
    """Say whether a slowdown is made of bursts of a cause that comes and goes.

    More than half of its steps: then the median that made it a slowdown is theirs.
    """
    jobs = {entity.job for entity in finding.entities if entity.type in {"rank", "host", "job"}}
    if jobs and slowdown.job not in jobs:
        return False
    first, last = slowdown.first_step, slowdown.last_step
    covered = sum(max(0, min(last, end) - max(first, begin) + 1) for begin, end in finding.bursts)
    return 2 * covered > last - first + 1


def _drop(slowdown: Slowdown, rest: float, model: Model, evidence: Evidence) -> Finding:
    words = with_phrases(
        model,
        {
            "rise": slowdown.after_ms / slowdown.before_ms - 1,
            "step": slowdown.first_step,
            "start": f"{slowdown.start:%Y-%m-%d %H:%M:%S} UTC"
            if slowdown.start
            else f"step {slowdown.first_step}",
            "before": slowdown.before_ms,
            "after": slowdown.after_ms,
            "network_part": slowdown.network_part,
            "compute_part": slowdown.compute_part,
            "changes": _changes(slowdown, model, evidence),
            **_conditions(slowdown, evidence),
        },
    )
    loss = None if slowdown.is_lead else rest
    return Finding(
        kind=model.kind,
        entities=(),
        severity=_severity(slowdown, rest),
        confidence=0.5,
        families=("timing",),
        title=model.wording.title.format(**words),
        explanation=model.wording.explanation.format(**words),
        start=slowdown.start,
        end=slowdown.end,
        start_step=slowdown.first_step,
        end_step=slowdown.last_step,
        detected_at=slowdown.start,
        loss_share=loss,
        gpu_hours_lost=evidence.gpu_hours(slowdown.job, slowdown.hours, loss),
        query=model.query,
        refuted_by=model.refuted_by,
        next_steps=tuple(text.format(**words) for text in model.next_steps),
    )


def _conditions(slowdown: Slowdown, evidence: Evidence) -> dict[str, str | None]:
    """Return what only decides between phrases: empty where it holds, else None."""
    holds = {
        "per_work": slowdown.per_work,
        "restarted": slowdown.restarted,
        "more_work": slowdown.more_work,
        "is_lead": slowdown.is_lead,
        "not_split": slowdown.network_part is None or slowdown.compute_part is None,
        "by_collectives": slowdown.by_collectives,
        "looked": slowdown.start is not None and not evidence.frame("counted_ports").is_empty(),
    }
    return {name: "" if value else None for name, value in holds.items()}


def _changes(slowdown: Slowdown, model: Model, evidence: Evidence) -> str | None:
    """Return what changed with a slowdown, strongest first; None if nothing did or is known."""
    if slowdown.start is None or slowdown.end is None:
        return None
    times = {"begin": slowdown.start, "end": slowdown.end}
    leads = evidence.frame("leads", {**model.limits, **times})["lead"]
    return "; ".join(leads.head(int(model.limit("leads")))) or None


def _severity(slowdown: Slowdown, loss: float) -> Severity:
    """Return the severity of a loss: of the run's throughput once it is over, of its own before."""
    if slowdown.is_lead:
        return "low"
    return severity_of_loss(loss if slowdown.goes_on else loss * slowdown.run_share)
