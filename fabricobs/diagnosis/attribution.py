"""Attribution: one cause, one finding; symptoms folded in."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from fabricobs.diagnosis.cables import CLOCK_SLACK, NO_END
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.finding_builder import COST_NOT_KNOWN, UNFELT
from fabricobs.diagnosis.findings import (
    SEVERITIES,
    Entity,
    Finding,
    Severity,
    confidence_of,
    severity_of_loss,
)
from fabricobs.diagnosis.job import StepTimeTrend
from fabricobs.diagnosis.model import Model, kinds_that_answer
from fabricobs.diagnosis.places import Places
from fabricobs.diagnosis.shared_losses import SLOW_COLLECTIVES
from fabricobs.notebook import share_words

# A loss that is over weighs by what the run lost, yet its cause is worth a look; less so where
# nothing but steps tells of it: noise looks like that, and no part can be tested for it any more.
_LEAST_OF_OVER, _LEAST_BY_STEPS = SEVERITIES.index("medium"), SEVERITIES.index("low")
_OF_STEPS = {"timing", "correlation"}
_MOST_LOST = 0.99  # of a step that stands still
_GOES_ON_STEPS = 20  # before the last step: what acted then may act on
# Two counter intervals of a minute: which switch began cannot be told closer.
_SLACK_TIME = timedelta(minutes=2)
_OF_CABLES = {"link_errors", "link_flap"}
# What is said of a cost until a symptom tells it.
_UNFELT_SENTENCE = rf"{re.escape(UNFELT)}[^.]*\."
_COST_SENTENCE = re.compile("|".join([*map(re.escape, COST_NOT_KNOWN), _UNFELT_SENTENCE]))


def in_order(findings: list[Finding]) -> tuple[Finding, ...]:
    """Order findings by loss times confidence, then by severity and onset.

    What is over comes after what may go on, by what the run lost, where that is known: a short
    fault costs less than its steps tell. What is `low`, as how a job is, comes after both,
    information last.
    """

    def cost(finding: Finding) -> float:
        of_run = finding.run_share if finding.state == "over" else None
        return (finding.loss_share or 0.0) if of_run is None else of_run

    return tuple(
        sorted(
            findings,
            key=lambda f: (
                f.severity == "info",
                f.severity == "low",
                f.state == "over",
                -cost(f) * f.confidence,
                -SEVERITIES.index(f.severity),
                f.start.timestamp() if f.start else float("inf"),
                f.id,
            ),
        )
    )


def weigh_what_is_over(findings: list[Finding], trends: Sequence[StepTimeTrend]) -> list[Finding]:
    """Lower the severity of losses that are over to what the run lost, at least `medium`.

    `loss_share` is over the steps of the finding: a link down for one step is not critical. One
    that steps alone show is at least `low`.
    """
    if not trends:
        return findings
    run = max((trend.segments for trend in trends), key=lambda parts: parts[-1].last_step)
    first, last = run[0].first_step, run[-1].last_step
    weighed: list[Finding] = []
    for finding in findings:
        begin, end, loss = finding.start_step, finding.end_step, finding.loss_share
        if begin is None or end is None or not loss or end >= last - _GOES_ON_STEPS:
            weighed.append(finding)
            continue
        # Steps that lost so much are longer: of the run's time they are more than of its steps.
        slow, sound = (end - begin + 1) / (1 - min(loss, _MOST_LOST)), last - first - end + begin
        severity = severity_of_past(finding, loss * slow / (slow + sound))
        weighed.append(replace(finding, severity=severity))
    return weighed


def severity_of_past(finding: Finding, lost: float) -> Severity:
    """Return the severity of a finding that is over, of which the run lost this share."""
    least = _LEAST_BY_STEPS if _OF_STEPS.issuperset(finding.families) else _LEAST_OF_OVER
    most = max(SEVERITIES.index(severity_of_loss(lost)), least)
    return SEVERITIES[min(SEVERITIES.index(finding.severity), most)]


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


def join_ends(findings: list[Finding], evidence: Evidence) -> list[Finding]:
    """Return the findings of one cable as one where no log tells that both are its ends.

    A host's counters call its NIC by the RDMA device, LLDP by the net device. Where of one kind one
    NIC of a host without a known cable, and one cable to an unknown NIC of it, are told at
    one time, or one without times, they are one. So are one NIC and one switch port of unknown
    cables that begin and end together.
    """
    nics = set(evidence.frame("host_nics").select("host", "nic").rows())
    kept = list(findings)
    for own in findings:
        if own.kind not in _OF_CABLES or [e.type for e in own.entities] != ["nic"]:
            continue
        nic = own.entities[0]
        alike = [f for f in findings if f.kind == own.kind and f is not own]
        cables = [f for f in alike if _is_cable_to(f, nic.host, nics)]
        lone = [f for f in alike if [e.type for e in f.entities] == ["nic"]]
        ports = [f for f in alike if [e.type for e in f.entities] == ["port"]]
        if not lone and len(ports) == 1 and _together(own, ports[0]):
            cables = ports
        if (
            len(cables) == 1
            and (nic.host, nic.nic) in nics
            and not any(f.entities[0].host == nic.host for f in lone)
            and _at_one_time(own, cables[0])
        ):
            cable = _ending_at(nic, cables[0])
            kept = [f for f in kept if f is not own and f is not cables[0]]
            kept.append(_with_symptom(cable, own))
    return kept


def _is_cable_to(finding: Finding, host: str | None, nics: set[tuple[str, str]]) -> bool:
    """Say whether a finding has a switch port, and a NIC of the host that RDMA knows by no name."""
    ends = [e for e in finding.entities if e.type == "nic"]
    return any(e.type == "port" for e in finding.entities) and any(
        e.host == host and (e.host, e.nic) not in nics for e in ends
    )


def _ending_at(nic: Entity, cable: Finding) -> Finding:
    """Return the finding of a cable with a NIC as its other end, and why it is that."""
    entities = *cable.entities, nic
    if NO_END not in cable.title:
        return replace(cable, entities=entities)
    return replace(
        cable,
        entities=entities,
        title=cable.title.replace(NO_END, nic.label),
        next_steps=tuple(step.replace(NO_END, nic.label) for step in cable.next_steps),
        explanation=f"{cable.explanation} No log tells where its cable leads: {nic.label} is taken "
        "for the other end, for both began and ended together, and no other of its kind did.",
    )


def _together(one: Finding, other: Finding) -> bool:
    """Say whether two begin and end within the slack of each other."""
    if not (one.start and other.start and one.end and other.end):
        return False
    return max(abs(one.start - other.start), abs(one.end - other.end)) <= _SLACK_TIME


def _at_one_time(one: Finding, other: Finding) -> bool:
    if one.start is None or other.start is None:
        return True  # a log of NCCL without times
    begins = [f.start for f in (one, other) if f.start is not None]
    ends = [f.end for f in (one, other) if f.end is not None]
    return len(begins) == len(ends) == 2 and max(begins) <= min(ends) + _SLACK_TIME


def fold_symptoms(
    findings: list[Finding], models: Mapping[str, Model], evidence: Evidence
) -> list[Finding]:
    """Fold each symptom into the cause that explains it: one part, one cause, one finding.

    A cause takes what its model says it explains, where both touch the same NIC, port, host or
    switch and the symptom did not begin before it nor lasts long after it. What nobody felt
    explains no slow job, and a longer computation is explained by what answers whether a rank is
    slow, not by the network. Slow collectives stay beside a cause whose cost is not known: it may
    be none of theirs.
    """
    explains: dict[str, set[str]] = {}
    stopping = {model.kind for model in models.values() if model.stops}
    of_ranks = kinds_that_answer("slow_rank", models)
    for model in models.values():
        explains.setdefault(model.kind, set()).update(model.explains)
    places = Places(evidence)
    told: list[Finding | None] = list(findings)
    # What each is made of: a symptom's parts touch what the symptom explains, no more.
    made_of = [[finding] for finding in findings]
    for place in range(len(told)):
        symptom = told[place]  # with symptoms of its own, if it has some by now
        if symptom is None:
            continue
        causes = [
            (at, other)
            for at, other in enumerate(told)
            if other is not None
            and at != place
            and not _outlasts(symptom, other)
            and not (_says_little(other, symptom) and symptom.entities[0].type == "job")
            and not _stands_beside(other, symptom)
            and not (symptom.computes and other.kind not in of_ranks)
            and any(
                symptom.kind in explains.get(part.kind, ())
                and (_not_after(part, symptom) or _is_named(part, symptom))
                and places.touch(part, symptom)
                for part in made_of[at]
            )
        ]
        # A switch that pauses its neighbours names the NIC that pauses it: that one is the cause.
        named = {*symptom.entities, *symptom.related}
        cause = min(causes, key=lambda each: named.isdisjoint(each[1].entities), default=None)
        if cause is not None:
            at, other = cause
            if symptom.kind in stopping:
                other = _stopping(other, symptom.severity)
            told[at], told[place] = _with_symptom(other, symptom), None
            made_of[at] += made_of[place]
    return [finding for finding in told if finding is not None]


def _says_little(cause: Finding, symptom: Finding) -> bool:
    """Say whether a cause cost nothing, or is a hint that would hide what it explains.

    Of a symptom whose loss may have other causes, or is not known, the cause takes no severity.
    """
    takes_severity = symptom.loss_share is not None and symptom.reached is None
    lower = SEVERITIES.index(cause.severity) < SEVERITIES.index(symptom.severity)
    hides = cause.severity in {"info", "low"} and lower and not takes_severity
    return cause.unfelt or hides


def _stands_beside(cause: Finding, symptom: Finding) -> bool:
    """Say whether neither a cause nor slow collectives have a known cost, and it is no mere hint.

    Two hints of one thing are told once; a link at half its speed may be none of their slowness.
    """
    is_more = SEVERITIES.index(cause.severity) > SEVERITIES.index(symptom.severity)
    return (
        symptom.kind == SLOW_COLLECTIVES
        and symptom.loss_share is None
        and cause.loss_share is None
        and is_more
    )


def _not_after(cause: Finding, symptom: Finding) -> bool:
    """Say whether a cause began before its symptom, or in the interval of its first reading.

    What is read every ten minutes may begin ten minutes after the reading before.
    """
    if cause.start is None or symptom.start is None:
        return True
    begun_by = max(symptom.start, symptom.first_read or symptom.start)
    return cause.start <= begun_by + _SLACK_TIME


def _is_named(cause: Finding, symptom: Finding) -> bool:
    """Say whether a switch is told to pause for the NIC that is the cause, whenever that is told.

    A NIC's pauses are a storm from so many on; those before are its own, too.
    """
    nics = {each for each in cause.entities if each.nic is not None}
    return symptom.entities[0].type == "switch" and not nics.isdisjoint(symptom.entities)


def _outlasts(symptom: Finding, cause: Finding) -> bool:
    """Say whether the cause had ended in half of the symptom's steps: then it is not the cause."""
    if symptom.start_step is None or symptom.end_step is None or cause.end_step is None:
        return False
    return 2 * cause.end_step < symptom.start_step + symptom.end_step


def _with_symptom(cause: Finding, symptom: Finding) -> Finding:
    """The cause with its symptom's evidence: its families, its victims, its loss if larger."""
    # A GPU whose rank no log tells is that of the rank which is slow with it.
    found = symptom.entities if any(_is_nameless(e) for e in cause.entities) else ()
    known = {*cause.entities, *cause.related, *found}
    victims = [e for e in (*symptom.entities, *symptom.related) if e not in known]
    families = {*cause.families, *symptom.families}
    told = replace(
        cause,
        entities=tuple(dict.fromkeys((*found, *cause.entities))),
        related=(*cause.related, *victims),
        families=tuple(sorted(families)),
        confidence=max(cause.confidence, confidence_of(families)),
        # What the same evidence says of the same part, the title says already.
        explanation=cause.explanation
        if {*symptom.entities} <= {*cause.entities} and families == {*cause.families}
        else f"{cause.explanation} With it: {symptom.title}.",
        symptoms=(*cause.symptoms, symptom.id, *symptom.symptoms),
    )
    return _at_the_loss_of(told, _while_it_acts(told, symptom))


def _stopping(cause: Finding, severity: Severity) -> Finding:
    """Return a cause that stopped its job, at least so severe: steps before it felt nothing."""
    return replace(
        cause,
        severity=max(cause.severity, severity, key=SEVERITIES.index),
        unfelt=False,
        explanation=re.sub(rf" ?{_UNFELT_SENTENCE}", "", cause.explanation),
    )


def _while_it_acts(cause: Finding, symptom: Finding) -> Finding:
    """Return a symptom that comes and goes with those of its bursts in which its cause acts.

    The time of a step is that of even steps between the symptom's first and last.
    """
    first, last, bursts = symptom.start_step, symptom.end_step, symptom.bursts
    if "counters" not in cause.families or first is None or last is None or first == last:
        return symptom
    if cause.start is None or cause.end is None or symptom.start is None or symptom.end is None:
        return symptom
    acts = cause.start - CLOCK_SLACK, cause.end + CLOCK_SLACK
    begin, a_step = symptom.start, (symptom.end - symptom.start) / (last - first)
    own = tuple(
        (a, b)
        for a, b in bursts
        if begin + a_step * (a - first) <= acts[1] and begin + a_step * (b - first) >= acts[0]
    )
    if own == bursts or not own:
        return symptom
    lost = sum(b - a + 1 for a, b in own) / sum(b - a + 1 for a, b in bursts)
    share = (symptom.loss_share or 0.0) * lost * (last - first + 1) / (own[-1][1] - own[0][0] + 1)
    return replace(
        symptom,
        start_step=own[0][0],
        end_step=own[-1][1],
        bursts=own,
        loss_share=None if symptom.loss_share is None else min(share, 1.0),
    )


def _is_nameless(entity: Entity) -> bool:
    return entity.type == "gpu" and entity.gpu is None


def _at_the_loss_of(cause: Finding, symptom: Finding) -> Finding:
    if symptom.loss_share is None or symptom.loss_share <= (cause.loss_share or 0.0):
        return cause
    # What is short of an expectation may have other causes: `with_shared_losses` weighs that.
    worst = cause.severity
    if symptom.reached is None:
        worst = max(cause.severity, symptom.severity, key=SEVERITIES.index)
    # Steps tell when it began to cost, which may be long after it began.
    start = symptom.start if cause.start_step is None else cause.start
    return replace(
        cause,
        start=start or cause.start,
        severity=worst,
        loss_share=symptom.loss_share,
        reached=symptom.reached,
        start_step=symptom.start_step,
        end_step=symptom.end_step,
        bursts=symptom.bursts,
        unfelt=False,
        explanation=_COST_SENTENCE.sub(
            f"It costs {share_words(symptom.loss_share)} of the throughput.", cause.explanation
        ),
    )


def without_named(findings: list[Finding]) -> list[Finding]:
    """Drop outliers of ranks, or ranks of hosts, of which another finding tells already.

    So is information on the same parts as a finding of its kind: a burst of all.
    """
    told = {f.id for f in findings if f.severity != "info"}
    findings = [f for f in findings if f.severity != "info" or f.id not in told]
    named = {(e.rank, e.pid, e.host) for f in findings if f.kind != "outlier" for e in f.entities}

    def is_named(finding: Finding) -> bool:
        return any(
            {(e.rank, e.pid, e.host), (None, None, e.host)} & named for e in finding.entities
        )

    return [f for f in findings if f.kind != "outlier" or not is_named(f)]
