"""Send notifications to the configured targets; one that is down is retried and stops nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from fabricobs.config.schema import Notify, Secret
from fabricobs.diagnosis.incidents import Event
from fabricobs.operate.alertmanager import Alertmanager
from fabricobs.operate.delivery import Order, send_all
from fabricobs.operate.links import Links
from fabricobs.operate.messages import Apprise, History, Webhook
from fabricobs.operate.post import DeliveryError
from fabricobs.operate.state import Memory

Say = Callable[[str], None]
Save = Callable[[Memory], object]


class Messenger(Protocol):
    """A target that gets each event once."""

    name: str

    def order(self, events: Sequence[Event]) -> Order:
        """Return the messages for some events, one for each."""
        ...


@dataclass(frozen=True, slots=True)
class Targets:
    """All targets, and how long sending to them may take in a round."""

    history: History
    messengers: tuple[Messenger, ...] = ()
    alertmanager: Alertmanager | None = None
    deadline: timedelta = timedelta(seconds=30)


def targets_of(notify: Notify, store: Path, interval: timedelta) -> Targets:
    """Return the targets of the configuration; ConfigError for a secret that is not there."""
    messengers: list[Messenger] = []
    alertmanager = None
    links = Links(store, notify.base_url)
    if notify.webhook is not None:
        messengers.append(
            Webhook(notify.webhook.url.reveal(), _revealed(notify.webhook.token), links)
        )
    if notify.apprise is not None:
        messengers.append(Apprise([url.reveal() for url in notify.apprise.urls], links))
    if notify.alertmanager is not None:
        target = notify.alertmanager
        alertmanager = Alertmanager(
            target.url.reveal(), _revealed(target.token), target.labels, interval, links
        )
    return Targets(History(store), tuple(messengers), alertmanager, notify.deadline)


def send_open_incidents(targets: Targets, memory: Memory, now: datetime, say: Say) -> bool:
    """Send open incidents to Alertmanager, as in every round; return whether it took them."""
    orders = _open_orders(targets, memory, now)
    return _log_failures(send_all(orders, targets.deadline.total_seconds(), lambda _: None), say)


def send_pending(
    targets: Targets, memory: Memory, now: datetime, save: Save, say: Say
) -> tuple[Memory, bool]:
    """Send open incidents and pending events, noting each event taken.

    Returns the memory, and whether every target took everything. Remote targets are sent to at the
    same time, all of them within the deadline.
    """
    memory, kept = _keep_history(targets.history, memory, save, say)

    def taken(name: str) -> None:
        nonlocal memory
        if name in memory.pending:
            memory = _without_first(memory, name)
            save(memory)

    orders = _open_orders(targets, memory, now)
    orders += [
        target.order(pending)
        for target in targets.messengers
        if (pending := memory.pending.get(target.name, ()))
    ]
    failures = send_all(orders, targets.deadline.total_seconds(), taken)
    return memory, _log_failures(failures, say) and kept


def add_pending(memory: Memory, events: Sequence[Event], targets: Targets) -> Memory:
    """Return the memory with events to be sent; those of targets that are gone are dropped."""
    names = [targets.history.name, *(target.name for target in targets.messengers)]
    pending = {name: (*memory.pending.get(name, ()), *events) for name in names}
    return replace(memory, pending=pending)


def _open_orders(targets: Targets, memory: Memory, now: datetime) -> list[Order]:
    if targets.alertmanager is None:
        return []
    order = targets.alertmanager.order(memory.incidents, now, memory.round_seconds)
    return [order] if order.messages else []


def _keep_history(history: History, memory: Memory, save: Save, say: Say) -> tuple[Memory, bool]:
    """Keep what is pending in the store; return the memory, and whether all of it is kept."""
    for event in memory.pending.get(history.name, ()):
        try:
            history.keep(event)
        except DeliveryError as error:
            return memory, _log_failures({history.name: str(error)}, say)
        memory = _without_first(memory, history.name)
        save(memory)
    return memory, True


def _without_first(memory: Memory, name: str) -> Memory:
    return replace(memory, pending={**memory.pending, name: memory.pending[name][1:]})


def _log_failures(failures: dict[str, str], say: Say) -> bool:
    """Log what failed; return whether nothing did."""
    for name, problem in failures.items():
        say(f"{name}: {problem}; tried again next round")
    return not failures


def _revealed(secret: Secret | None) -> str | None:
    return None if secret is None else secret.reveal()
