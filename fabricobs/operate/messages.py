"""Targets that are told each event once: the history in the store, a webhook, chats and mail.

An event is sent until the target has taken it. Should the watch be killed between that and its
noting so, it is sent again with the same key: a webhook finds it in `Idempotency-Key`, the store
knows it; a chat may show it twice.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fabricobs.diagnosis.incidents import Event
from fabricobs.errors import UserError
from fabricobs.operate.post import DeliveryError, post_json
from fabricobs.report.documents import cost_words, finding_document, iso, moment_words
from fabricobs.report.history import keep_event

_WORDS = {"new": "New", "worse": "Worse", "resolved": "Resolved"}
_ENDINGS = {
    "recovered": "The data have gone on without it.",
    "explained": "Another finding names its cause.",
    "no_data": "No data come any more.",
}


class History:
    """Table `findings` of the store."""

    name = "history"

    def __init__(self, store: Path) -> None:
        self._store = store

    def send(self, event: Event) -> None:
        """Keep the event."""
        try:
            keep_event(event, self._store)
        except OSError as error:
            raise DeliveryError(error.strerror or type(error).__name__) from None


class Webhook:
    """An address that takes a JSON document an event."""

    name = "webhook"

    def __init__(self, url: str, token: str | None) -> None:
        self._url = url
        self._token = token

    def send(self, event: Event) -> None:
        """Send the event; DeliveryError if it is not taken."""
        post_json(
            self._url,
            event_document(event),
            token=self._token,
            headers={"Idempotency-Key": event.key},
        )


class Apprise:
    """Chats and mail."""

    name = "apprise"

    def __init__(self, urls: Sequence[str]) -> None:
        try:
            import apprise
        except ImportError:
            raise UserError(
                "notify.apprise needs a package of its own: pip install 'fabricobs[apprise]'"
            ) from None
        self._apprise = apprise.Apprise()
        self._failed = apprise.NotifyType.FAILURE
        self._fine = apprise.NotifyType.SUCCESS
        for position, url in enumerate(urls):
            if not self._apprise.add(url):
                raise UserError(f"notify.apprise.urls[{position}] is no address apprise knows")

    def send(self, event: Event) -> None:
        """Send the event as a short message; DeliveryError if not all targets took it."""
        kind = self._fine if event.news == "resolved" else self._failed
        title, body = message(event)
        if not self._apprise.notify(title=title, body=body, notify_type=kind):
            raise DeliveryError("not all of its targets took it")


def event_document(event: Event) -> dict[str, Any]:
    """Return an event as a JSON document, `schema_version` 1, the whole finding in it."""
    incident = event.incident
    return {
        "schema_version": 1,
        "key": event.key,
        "event": event.news,
        "at": iso(event.at),
        "severity": incident.severity,
        "state": incident.state,
        "opened_at": iso(incident.opened_at),
        "closed_at": iso(incident.closed_at),
        "ending": incident.ending,
        "last_seen": iso(incident.last_seen),
        "finding": finding_document(incident.finding),
    }


def message(event: Event) -> tuple[str, str]:
    """Return title and text of a message a person reads."""
    incident = event.incident
    finding = incident.finding
    lines = [
        f"Since: {moment_words(finding.start, finding.start_step)}",
        f"Cost: {cost_words(finding)}",
    ]
    if incident.ending is not None:
        lines.insert(0, _ENDINGS[incident.ending])
    elif finding.next_steps:
        lines.append(f"Next: {finding.next_steps[0]}")
    return f"{_WORDS[event.news]} [{incident.severity}] {finding.title}", "\n".join(lines)
