"""Processes that plan and read, and what happens when one of them is killed."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import TypeVar

from fabricobs import stopping
from fabricobs.resources import raise_gc_threshold

KILLED = "its reader was killed (out of memory?)"

_Item = TypeVar("_Item")
_Made = TypeVar("_Made")
Lend = Callable[[], AbstractContextManager[Executor]]


@contextmanager
def processes(workers: int) -> Iterator[Executor]:
    """Lend processes that share nothing."""
    # Forking a process that has started threads may hang the child: start clean ones.
    with ProcessPoolExecutor(workers, get_context("spawn"), _begin_worker) as pool:
        yield pool


def _begin_worker() -> None:
    """Prepare a process that reads; it stops as its parent does, and leaves nothing behind."""
    stopping.listen()
    raise_gc_threshold()
    # It holds both ends of the pipe that tasks come from: it would wait for ever.
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process when the one that started it is killed."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def submitted(
    pool: Executor, task: Callable[[list[_Item]], _Made], items: list[_Item]
) -> Future[_Made]:
    """Submit a task; with a pool that is broken already its future says so."""
    try:
        return pool.submit(task, items)
    except BrokenProcessPool as error:
        future: Future[_Made] = Future()
        future.set_exception(error)
        return future


def one_by_one(
    task: Callable[[list[_Item]], _Made],
    lost: Sequence[list[_Item]],
    killed: Callable[[_Item], _Made],
    lend: Lend,
) -> Iterator[_Made]:
    """Run a task again on each list whose process was killed, by what `lend` gives: a new process.

    A list that has its process killed once more is halved, down to the one item that does it: for
    that one `killed` answers.
    """
    waiting = list(reversed(lost))
    while waiting:
        # A process serves until it is killed.
        with lend() as pool:
            while waiting:
                items = waiting.pop()
                try:
                    made = pool.submit(task, items).result()
                except BrokenProcessPool:
                    break
                yield made
            else:
                return
        if len(items) == 1:
            yield killed(items[0])
            continue
        half = len(items) // 2
        waiting += [items[half:], items[:half]]
