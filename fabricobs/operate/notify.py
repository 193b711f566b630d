"""Telling the targets of the configuration; one that is down is tried again and stops nothing."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Protocol

from fabricobs.config.schema import Notify, Secret
from fabricobs.diagnosis.incidents import Event, Incident
from fabricobs.operate.alertmanager import Alertmanager
from fabricobs.operate.messages import Apprise, History, Webhook
from fabricobs.operate.post import DeliveryError
from fabricobs.operate.state import Memory

_TRIES = 2
_PAUSE_S = 1.0

Say = Callable[[str], None]
Save = Callable[[Memory], object]


class Messenger(Protocol):
    """A target that is told each event once."""

    name: str

    def send(self, event: Event) -> None:
        """Send one event; DeliveryError if it is not taken."""
        ...


class Publisher(Protocol):
    """A target that is told the standing incidents every round."""

    name: str

    def publish(self, incidents: Sequence[Incident], now: datetime, round_seconds: float) -> None:
        """Tell them; DeliveryError if they are not taken."""
        ...


@dataclass(frozen=True, slots=True)
class Targets:
    """Everyone who is told."""

    messengers: tuple[Messenger, ...] = ()
    publishers: tuple[Publisher, ...] = ()


def targets_of(notify: Notify, store: Path, interval: timedelta) -> Targets:
    """Return the targets of the configuration; ConfigError for a secret that is not there."""
    messengers: list[Messenger] = [History(store)]
    publishers: list[Publisher] = []
    if notify.webhook is not None:
        messengers.append(Webhook(notify.webhook.url.reveal(), _revealed(notify.webhook.token)))
    if notify.apprise is not None:
        messengers.append(Apprise([url.reveal() for url in notify.apprise.urls]))
    if notify.alertmanager is not None:
        target = notify.alertmanager
        publishers.append(
            Alertmanager(target.url.reveal(), _revealed(target.token), target.labels, interval)
        )
    return Targets(tuple(messengers), tuple(publishers))


def publish(targets: Targets, memory: Memory, now: datetime, say: Say) -> bool:
    """Tell every publisher what stands; return whether all took it."""
    well = True
    for target in targets.publishers:
        told = partial(target.publish, memory.incidents, now, memory.round_seconds)
        well &= _tried(target.name, told, say)
    return well


def deliver(targets: Targets, memory: Memory, save: Save, say: Say) -> tuple[Memory, bool]:
    """Send what is pending, noting each event taken; return the memory and whether all is."""
    well = True
    for target in targets.messengers:
        for event in memory.pending.get(target.name, ()):
            if not _tried(target.name, partial(target.send, event), say):
                well = False
                break  # the order of events is kept, and a target that is down is not asked again
            left = memory.pending[target.name][1:]
            memory = replace(memory, pending={**memory.pending, target.name: left})
            save(memory)
    return memory, well


def add_pending(memory: Memory, events: Sequence[Event], targets: Targets) -> Memory:
    """Return the memory with events to be sent; those of targets that are gone are dropped."""
    pending = {
        target.name: (*memory.pending.get(target.name, ()), *events)
        for target in targets.messengers
    }
    return replace(memory, pending=pending)


def _tried(name: str, act: Callable[[], None], say: Say) -> bool:
    for attempt in range(1, _TRIES + 1):
        try:
            act()
            return True
        except DeliveryError as error:
            if attempt == _TRIES:
                say(f"{name}: {error}; tried again next round")
                return False
            time.sleep(_PAUSE_S)
    return False


def _revealed(secret: Secret | None) -> str | None:
    return None if secret is None else secret.reveal()
