"""Alertmanager (API v2): it is told the standing incidents every round, and notifies by itself.

Labels identify an alert, so telling it again is no second one; what changes from round to round is
in the annotations. An alert ends two intervals after it was last told, if the watch falls silent.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from fabricobs.diagnosis.findings import Entity
from fabricobs.diagnosis.incidents import Incident
from fabricobs.operate.delivery import Order
from fabricobs.operate.links import Links
from fabricobs.printing import chat_text, escaped
from fabricobs.report.wording import iso, money, percent, since_words

# So long an ended alert is told again, as Prometheus does, for an Alertmanager that was away.
TOLD_AFTER_END = timedelta(minutes=15)
# Names are shorter; what is longer is no name, and mail subjects and chats cut it anyway.
_LONGEST_LABEL = 200
_LONGEST_ANNOTATION = 4_000
_ENDS_OF_CABLES = frozenset({"nic", "port"})
_LABELS_OF_CULPRIT = ("job", "host", "rank", "gpu", "nic", "switch", "port", "priority", "pid")


class Alertmanager:
    """A target that is told the standing incidents; `interval` is that of the rounds."""

    name = "alertmanager"

    def __init__(
        self,
        url: str,
        token: str | None,
        labels: Mapping[str, str],
        interval: timedelta,
        links: Links,
    ) -> None:
        self._url = f"{url.rstrip('/')}/api/v2/alerts"
        self._token = token
        self._labels = labels
        self._interval = interval
        self._links = links

    def order(self, incidents: Sequence[Incident], now: datetime, round_seconds: float) -> Order:
        """Return what is sent of the incidents, those closed lately too; nothing of none."""
        # A round that takes longer than the interval must not let its alerts run out.
        longest = max(self._interval, timedelta(seconds=round_seconds))
        alerts = [
            alert
            for incident in incidents
            for alert in _alerts(incident, now, now + 2 * longest, self._labels, self._links)
        ]
        message = {"url": self._url, "document": alerts, "token": self._token}
        return Order(self.name, "http", (message,) if alerts else ())


def _alerts(
    incident: Incident, now: datetime, ends: datetime, labels: Mapping[str, str], links: Links
) -> Iterator[dict[str, Any]]:
    """Yield an alert a severity the incident had: the severity routes, so it is a label.

    A severity it has risen above ended then.
    """
    finding = incident.finding
    identity = {**labels, "alertname": f"fabricobs_{finding.kind}", "incident": finding.id}
    identity |= _culprit_labels(finding.entities)
    annotations = _annotations(incident) | {"command": links.command(finding.id)}
    page = links.page(finding.id)
    if page:
        # What to do stands on the page: it is the runbook.
        annotations |= {"report": page, "runbook_url": page}
    for position, raised in enumerate(incident.raised):
        rest = incident.raised[position + 1 :]
        if rest and now - rest[0].at > TOLD_AFTER_END:
            continue
        begin = raised.at
        if position == 0 and finding.start is not None:
            begin = min(begin, finding.start)
        yield {
            "labels": identity | {"severity": raised.severity},
            "annotations": annotations,
            **({"generatorURL": page} if page else {}),
            "startsAt": iso(begin),
            "endsAt": iso(rest[0].at if rest else incident.closed_at or ends),
        }


def _culprit_labels(culprits: Sequence[Entity]) -> dict[str, str]:
    """Return the labels of one culprit, or of both ends of a cable: `peer_` is before the second's.

    Several other culprits have none: which of them routes an alert would be chance.
    """
    ends = len(culprits) == 2 and {each.type for each in culprits} <= _ENDS_OF_CABLES
    if len(culprits) != 1 and not ends:
        return {}
    return {
        f"{prefix}{key}": escaped(told[key])[:_LONGEST_LABEL]
        for prefix, told in zip(("", "peer_"), (each.as_dict() for each in culprits), strict=False)
        for key in _LABELS_OF_CULPRIT
        if key in told
    }


def _annotations(incident: Incident) -> dict[str, str]:
    finding = incident.finding
    texts = {
        "summary": finding.title,
        "description": finding.explanation,
        "state": incident.state,
        "since": since_words(finding),
        "last_seen": iso(incident.last_seen) or "",
        "confidence": f"{finding.confidence:.2f}",
        "loss_share": "" if finding.loss_share is None else percent(finding.loss_share),
        "gpu_hours_lost": "" if finding.gpu_hours_lost is None else str(finding.gpu_hours_lost),
        "cost": money(finding.cost, finding.currency),
        "next_step": finding.next_steps[0] if finding.next_steps else "",
        "ending": incident.ending or "",
    }
    # Alertmanager's templates put them into chats.
    return {
        name: "\n".join(map(chat_text, text.split("\n")))[:_LONGEST_ANNOTATION]
        for name, text in texts.items()
        if text
    }
