"""Attribution: one cause, one finding; symptoms folded in; what stays unexplained is said."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.findings import Finding, Severity, confidence_of, severity_of_loss
from fabricobs.diagnosis.job import Slowdown, StepTimeTrend
from fabricobs.diagnosis.model import Model
from fabricobs.diagnosis.places import Places

# Stragglers are dated by windows of 20 steps: two of them.
_SLACK_STEPS = 40
_REHASHED = (
    " A restart may bring other hosts and settings, and its new connections take other paths where "
    "switches hash: compare hosts, settings and uplinks before and after."
)
_BY_COLLECTIVES = " No log tells steps: they are counted by the rhythm of the collectives."
# Two counter intervals of a minute: which switch began cannot be told closer.
_SLACK_TIME = timedelta(minutes=2)


def in_order(findings: list[Finding]) -> tuple[Finding, ...]:
    """Order findings by loss times confidence, then by onset."""
    return tuple(
        sorted(
            findings,
            key=lambda f: (
                -(f.loss_share or 0.0) * f.confidence,
                f.start.timestamp() if f.start else float("inf"),
                f.id,
            ),
        )
    )


def fold_downstream(findings: list[Finding], evidence: Evidence) -> list[Finding]:
    """Drop the skew of a switch that only hands on what a skewed switch before it sent.

    A spine fed by a leaf that uses part of its uplinks looks skewed too: it begins with the
    leaf's skew, and is its symptom. So is a group one of whose links is named already.
    """
    links = {f.entities[0].switch for f in findings if f.kind == "ecmp_skew" and _is_port(f)}
    findings = [
        f
        for f in findings
        if f.kind != "ecmp_skew" or _is_port(f) or f.entities[0].switch not in links
    ]
    hosts_below = set(evidence.frame("leaf_hosts")["leaf"])
    leaves = [f for f in findings if f.kind == "ecmp_skew" and f.entities[0].switch in hosts_below]
    kept: list[Finding] = []
    for finding in findings:
        is_spine = finding.kind == "ecmp_skew" and finding.entities[0].switch not in hosts_below
        explained = any(
            leaf.start is None or finding.start is None or leaf.start <= finding.start + _SLACK_TIME
            for leaf in leaves
        )
        if not (is_spine and explained):
            kept.append(finding)
    return kept


def _is_port(finding: Finding) -> bool:
    return finding.entities[0].type == "port"


def fold_symptoms(
    findings: list[Finding], models: Mapping[str, Model], evidence: Evidence
) -> list[Finding]:
    """Fold each symptom into the cause that explains it: one part, one cause, one finding.

    A cause takes what its model says it explains, where both touch the same NIC, port, host or
    switch and the symptom did not begin before it.
    """
    explains: dict[str, set[str]] = {}
    for model in models.values():
        explains.setdefault(model.kind, set()).update(model.explains)
    places = Places(evidence)
    causes = list(findings)
    for symptom in findings:
        cause = next(
            (
                other
                for other in causes
                if symptom is not other
                and symptom.kind in explains.get(other.kind, ())
                and _not_after(other, symptom)
                and places.touch(other, symptom)
            ),
            None,
        )
        if cause is not None:
            causes = [each for each in causes if each is not symptom]
            causes = [_with_symptom(each, symptom) if each is cause else each for each in causes]
    return causes


def _not_after(cause: Finding, symptom: Finding) -> bool:
    if cause.start is None or symptom.start is None:
        return True
    return cause.start <= symptom.start + _SLACK_TIME


def _with_symptom(cause: Finding, symptom: Finding) -> Finding:
    """The cause with its symptom's evidence: its families, its victims, its loss if larger."""
    known = {*cause.entities, *cause.related}
    victims = [e for e in (*symptom.entities, *symptom.related) if e not in known]
    families = {*cause.families, *symptom.families}
    return replace(
        cause,
        related=(*cause.related, *victims),
        families=tuple(sorted(families)),
        confidence=max(cause.confidence, confidence_of(families)),
        explanation=f"{cause.explanation} With it: {symptom.title}.",
    )


def without_named(findings: list[Finding]) -> list[Finding]:
    """Drop outliers of ranks, or ranks of hosts, that a cause is named for already."""
    named = {(e.rank, e.host) for f in findings if f.severity != "info" for e in f.entities}

    def is_named(finding: Finding) -> bool:
        return any({(e.rank, e.host), (None, e.host)} & named for e in finding.entities)

    return [f for f in findings if f.kind != "outlier" or not is_named(f)]


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
    words = {
        "work": " for the same work" if slowdown.per_work else "",
        "restart": ", when the job was restarted" if slowdown.restarted else "",
        "rise": slowdown.after_ms / slowdown.before_ms - 1,
        "step": slowdown.first_step,
        "start": f"{slowdown.start:%Y-%m-%d %H:%M:%S} UTC"
        if slowdown.start
        else f"step {slowdown.first_step}",
        "before": slowdown.before_ms,
        "after": slowdown.after_ms,
        "split": _split_sentence(slowdown)
        + (_REHASHED if slowdown.restarted else "")
        + (_BY_COLLECTIVES if slowdown.by_collectives else ""),
        "why": _why(slowdown),
    }
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


def _severity(slowdown: Slowdown, loss: float) -> Severity:
    """Return the severity of a loss: of the run's throughput once it is over, of its own before."""
    if slowdown.is_lead:
        return "low"
    return severity_of_loss(loss if slowdown.goes_on else loss * slowdown.run_share)


def _why(slowdown: Slowdown) -> str:
    if slowdown.more_work:
        return "and nearly every rank computes longer alike"
    if slowdown.is_lead:
        return "and no log tells whether each does more work"
    return "and no cause explains it"


def _split_sentence(slowdown: Slowdown) -> str:
    network, compute = slowdown.network_part, slowdown.compute_part
    untold = "No per-rank records tell whether computation or communication grew."
    if slowdown.is_lead:
        return (
            f"{untold if network is None or compute is None else ''} A larger batch, longer "
            "sequences or another phase of the schedule look like this, and so do lower clocks "
            "of all GPUs and a slow part that no file shows. Whether throughput was lost is not "
            "known."
        ).lstrip()
    if network is not None and compute is not None:
        return (
            f"Of the added time {network:.0%} is longer transfers and {compute:.0%} the slowest "
            "rank's longer computation."
        )
    return untold if network is None else f"Of the added time {network:.0%} is longer collectives."
