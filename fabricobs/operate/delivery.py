"""Sending messages to targets outside, all at once, with one deadline for everything.

Each target has a process of its own, which the system ends at the deadline: whatever it waits for
(a name, a handshake, an answer that drips or floods), no round waits longer, and nothing is left.
"""

import os
import resource
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, Literal

from fabricobs import stopping
from fabricobs.operate.post import DeliveryError, notify_chats, post_json

_TRIES = 2
_PAUSE_S = 1.0
_LOOK_EVERY_S = 0.2
# An answer that floods ends its sender, not the watch.
_MOST_MEMORY = 1 << 30

_SENDERS: dict[str, Callable[..., None]] = {"http": post_json, "chats": notify_chats}


@dataclass(frozen=True, slots=True)
class Order:
    """What one target is sent, in order: arguments of `post_json` or `notify_chats`."""

    target: str
    how: Literal["http", "chats"]
    messages: tuple[dict[str, Any], ...]


def send_all(
    orders: Sequence[Order], seconds: float, taken: Callable[[str], None]
) -> dict[str, str]:
    """Send every target its messages, calling `taken` for each one it took.

    A target that refuses one gets no further ones. Returns, by target, why it did not take all;
    the text holds neither address nor secret.
    """
    failures: dict[str, str] = {}
    give_up = time.monotonic() + seconds
    context = get_context("spawn")
    running: dict[Connection, tuple[Order, SpawnProcess]] = {}
    try:
        for order in orders:
            here, there = context.Pipe(duplex=False)
            process = context.Process(target=_send, args=(there, order, seconds), daemon=True)
            process.start()
            there.close()
            running[here] = (order, process)
        while running and (left := give_up - time.monotonic()) > 0:
            for answer in wait(list(running), min(left, _LOOK_EVERY_S)):
                assert isinstance(answer, Connection)
                order, process = running[answer]
                if not _heard(answer, order.target, taken, failures):
                    process.join(left)
                    if process.exitcode:
                        failures[order.target] = _ending(process.exitcode, seconds)
                    del running[answer]
            stopping.check()
        failures |= {order.target: _late(seconds) for order, _ in running.values()}
    finally:
        for _, process in running.values():
            process.kill()
            process.join()
    return failures


def _heard(
    answer: Connection, target: str, taken: Callable[[str], None], failures: dict[str, str]
) -> bool:
    """Take in what a sender says; False if it has ended."""
    try:
        problem = answer.recv_bytes().decode()
    except EOFError:
        return False
    if problem:
        failures[target] = problem
    else:
        taken(target)
    return True


def _ending(status: int, seconds: float) -> str:
    return _late(seconds) if status == -signal.SIGALRM else "its sender ended unexpectedly"


def _late(seconds: float) -> str:
    return f"not done in {seconds:g} s"


def _send(answers: Connection, order: Order, seconds: float) -> None:
    """Send the messages of one target; runs in a process of its own."""
    # The system ends this process, even in a library that waits for ever, even without a parent.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    # Libraries log what they do, addresses included.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    for message in order.messages:
        problem = _tried(partial(_SENDERS[order.how], **message))
        answers.send_bytes(problem.encode())
        if problem:
            return


def _tried(act: Callable[[], None]) -> str:
    """Return why the target did not take it, after another try; nothing if it did."""
    problem = ""
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(_PAUSE_S)
        try:
            act()
            return ""
        except DeliveryError as error:
            problem = str(error)
        except Exception as error:
            problem = type(error).__name__  # its text may hold the address
    return problem
