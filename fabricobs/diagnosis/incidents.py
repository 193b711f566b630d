"""Incidents: faults over time. A finding says what is there; an incident begins, worsens and ends.

An incident fires while its finding reaches up to the newest data, recovers when the data have gone
on without it, and is resolved when they have done so for long enough. Those timers run on the time
of the data, so that a late, slow or restarted watch judges as one that was always there. Only that
the data themselves have stopped is told by our clock. All times are UTC without a zone.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from fabricobs.diagnosis.findings import SEVERITIES, UNEXPLAINED, Finding, Severity

State = Literal["firing", "recovering", "resolved"]
News = Literal["new", "worse", "resolved"]
Ending = Literal["recovered", "explained", "no_data"]


@dataclass(frozen=True, slots=True)
class Timers:
    """How long the data must go on without a fault, and how long they may be missing.

    `unexplained_after`: a loss without a cause opens an incident when it has lasted so long, since
    the evidence of a cause, counters above all, comes later than the steps that show the loss. What
    is found meanwhile without a loss, at most `medium`, may be a part of that cause: it waits, too.
    """

    recovering_after: timedelta = timedelta(minutes=5)
    resolved_after: timedelta = timedelta(minutes=15)
    unexplained_after: timedelta = timedelta(minutes=10)
    stale_after: timedelta = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Moment:
    """When a round judges: our time, the newest time of the data, and when that last advanced."""

    now: datetime
    newest: datetime
    advanced: datetime


@dataclass(frozen=True, slots=True)
class Raised:
    """A severity, and when (our time) the incident rose to it."""

    severity: Severity
    at: datetime


@dataclass(frozen=True, slots=True)
class Incident:
    """One fault from its beginning to its end.

    `finding` is as last seen, `last_seen` the data's time up to which it was there, `raised` the
    severities in rising order, `closed_at` our time of its end.
    """

    finding: Finding
    state: State
    last_seen: datetime
    raised: tuple[Raised, ...]
    closed_at: datetime | None = None
    ending: Ending | None = None

    @property
    def severity(self) -> Severity:
        """Return the worst severity so far: an incident never becomes milder, it ends."""
        return self.raised[-1].severity

    @property
    def opened_at(self) -> datetime:
        """Return our time of its beginning."""
        return self.raised[0].at


@dataclass(frozen=True, slots=True)
class Event:
    """What someone may want to be told about an incident; `key` is the same if told again."""

    news: News
    incident: Incident
    at: datetime

    @property
    def key(self) -> str:
        """Return a name of this event that no other has: receivers may drop what they know."""
        incident = self.incident
        opened = f"{incident.opened_at:%Y%m%dT%H%M%S%f}"
        return f"{incident.finding.id}-{opened}-{self.news}-{incident.severity}"


def advance(
    incidents: Sequence[Incident],
    findings: Iterable[Finding],
    moment: Moment,
    timers: Timers,
    least: Severity = "low",
    may_miss: Callable[[str], bool] = lambda kind: False,
) -> tuple[tuple[Incident, ...], tuple[Event, ...]]:
    """Return the incidents after a round, those it resolved among them, and the events of it.

    Resolved incidents of earlier rounds must not be among `incidents`. A fault opens an incident
    if it is of severity `least` or worse and still there. An incident without its finding stays as
    it is where the findings `may_miss` some of its kind.
    """
    present = _worst_by_id(findings)
    after = [
        one
        if one.finding.id not in present and may_miss(one.finding.kind)
        else _continued(one, present, moment, timers)
        for one in incidents
    ]
    events = [
        Event(news, new, moment.now)
        for old, new in zip(incidents, after, strict=True)
        if (news := _news(old, new)) is not None
    ]
    open_ids = {incident.finding.id for incident in incidents}
    for name, finding in present.items():
        waits = _waits_for_a_cause(finding, present.values())
        if name not in open_ids and _begins(finding, moment, timers, least, waits):
            raised = (Raised(finding.severity, moment.now),)
            incident = Incident(finding, "firing", finding.end or moment.newest, raised)
            after.append(incident)
            events.append(Event("new", incident, moment.now))
    return tuple(after), tuple(events)


def _worst_by_id(findings: Iterable[Finding]) -> dict[str, Finding]:
    worst: dict[str, Finding] = {}
    for finding in findings:
        known = worst.get(finding.id)
        if known is None or _rank(finding.severity) > _rank(known.severity):
            worst[finding.id] = finding
    return worst


def _continued(
    incident: Incident, present: Mapping[str, Finding], moment: Moment, timers: Timers
) -> Incident:
    """Return an open incident after a round, with what it found by id."""
    finding = present.get(incident.finding.id)
    if finding is not None:
        raised = incident.raised
        if _rank(finding.severity) > _rank(incident.severity):
            raised = (*raised, Raised(finding.severity, moment.now))
        last_seen = max(incident.last_seen, finding.end or moment.newest)
        incident = replace(incident, finding=finding, raised=raised, last_seen=last_seen)
    if moment.now - moment.advanced >= timers.stale_after:
        return replace(incident, state="resolved", closed_at=moment.now, ending="no_data")
    if finding is None and _is_explained(incident, present.values()):
        return replace(incident, state="resolved", closed_at=moment.now, ending="explained")
    without = moment.newest - incident.last_seen
    if without >= timers.resolved_after:
        return replace(incident, state="resolved", closed_at=moment.now, ending="recovered")
    return replace(incident, state="recovering" if without >= timers.recovering_after else "firing")


def _news(old: Incident, new: Incident) -> News | None:
    if new.state == "resolved":
        return "resolved"
    return "worse" if len(new.raised) > len(old.raised) else None


def _begins(finding: Finding, moment: Moment, timers: Timers, least: Severity, waits: bool) -> bool:
    still_there = moment.newest - (finding.end or moment.newest) < timers.recovering_after
    fresh = moment.now - moment.advanced < timers.stale_after
    begin = finding.start or moment.newest
    early = waits and moment.newest - begin < timers.unexplained_after
    serious = _rank(finding.severity) >= max(_rank(least), 1)
    return still_there and fresh and serious and not early


def _waits_for_a_cause(finding: Finding, findings: Collection[Finding]) -> bool:
    """Say whether it is a loss without a cause, or may be told under another name with one."""
    if finding.kind == UNEXPLAINED:
        return True
    mild = finding.loss_share is None and _rank(finding.severity) <= _rank("medium")
    return mild and any(other.kind == UNEXPLAINED for other in findings)


def _is_explained(incident: Incident, findings: Collection[Finding]) -> bool:
    """Say whether a finding now tells of its cause: of it by name, or of a loss without one."""
    return any(incident.finding.id in finding.symptoms for finding in findings) or (
        incident.finding.kind == UNEXPLAINED and _has_cause(incident, findings)
    )


def _has_cause(incident: Incident, findings: Iterable[Finding]) -> bool:
    """Say whether a finding costs something in the time of a loss without a cause."""
    return any(
        finding.loss_share is not None
        and finding.start is not None
        and finding.start <= incident.last_seen
        and incident.finding.start is not None
        and (finding.end is None or finding.end >= incident.finding.start)
        for finding in findings
    )


def _rank(severity: Severity) -> int:
    return SEVERITIES.index(severity)
