"""Targets that are told each event once: the history in the store, a webhook, chats and mail.

An event is sent until the target has taken it. Should the watch be killed between that and its
noting so, it is sent again with the same key: a webhook finds it in `Idempotency-Key`, the store
knows it; a chat may show it twice.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fabricobs.diagnosis.incidents import Event
from fabricobs.exceptions import UserError
from fabricobs.operate.delivery import Order
from fabricobs.operate.links import Links
from fabricobs.operate.post import DeliveryError
from fabricobs.printing import chat_text
from fabricobs.report.documents import finding_document
from fabricobs.report.history import keep_event
from fabricobs.report.layout import few
from fabricobs.report.wording import cost_words, iso, since_words

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

    def keep(self, event: Event) -> None:
        """Keep the event; DeliveryError if the store cannot take it."""
        try:
            keep_event(event, self._store)
        except OSError as error:
            raise DeliveryError(error.strerror or type(error).__name__) from None


class Webhook:
    """An address that takes a JSON document an event."""

    name = "webhook"

    def __init__(self, url: str, token: str | None, links: Links) -> None:
        self._url = url
        self._token = token
        self._links = links

    def order(self, events: Sequence[Event]) -> Order:
        """Return what is sent: the document of each event, with its key."""
        messages = tuple(
            {
                "url": self._url,
                "document": event_document(event, self._links),
                "token": self._token,
                "headers": {"Idempotency-Key": event.key},
            }
            for event in events
        )
        return Order(self.name, "http", messages)


class Apprise:
    """Chats and mail."""

    name = "apprise"

    def __init__(self, urls: Sequence[str], links: Links) -> None:
        try:
            import apprise
        except ImportError:
            raise UserError(
                "notify.apprise needs a package of its own: pip install 'fabricobs[apprise]'"
            ) from None
        for position, url in enumerate(urls):
            if not apprise.Apprise().add(url):
                raise UserError(f"notify.apprise.urls[{position}] is no address apprise knows")
        self._urls = tuple(urls)
        self._links = links

    def order(self, events: Sequence[Event]) -> Order:
        """Return what is sent: each event as a short message."""
        messages = []
        for event in events:
            title, body = message(event, self._links)
            failed = event.news != "resolved"
            messages.append({"urls": self._urls, "title": title, "body": body, "failed": failed})
        return Order(self.name, "chats", tuple(messages))


def event_document(event: Event, links: Links) -> dict[str, Any]:
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
        "page": links.page(incident.finding.id) or None,
        "command": links.command(incident.finding.id),
        "finding": finding_document(incident.finding),
    }


def message(event: Event, links: Links) -> tuple[str, str]:
    """Return title and text of a message a person reads in a chat.

    Logs can neither mention a person nor add a link: the only link is that to the page.
    """
    incident = event.incident
    finding = incident.finding
    named = few([entity.label for entity in finding.entities])
    lines = [
        f"{finding.role.capitalize()}: {named or 'none named'}",
        f"Since: {since_words(finding)}",
        f"Cost: {cost_words(finding)}",
    ]
    if incident.ending is not None:
        lines.insert(0, _ENDINGS[incident.ending])
    elif finding.next_steps:
        lines.append(f"Next: {finding.next_steps[0]}")
    title = f"{_WORDS[event.news]} [{incident.severity}] {finding.title}"
    lines = [*map(chat_text, lines), links.page(finding.id), links.command(finding.id)]
    return chat_text(title), "\n".join(filter(None, lines))
