"""Workers on other machines: a Dask cluster behind the calls of a pool of processes.

A task is a batch. A worker needs fabricobs in this version, and the logs and the store under the
names they have here. A task whose worker dies is given to another by the scheduler; one that keeps
killing its workers fails as it would in a pool of processes, and is then taken apart.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from fabricobs.exceptions import UserError
from fabricobs.resources import raise_gc_threshold
from fabricobs.store.location import is_address

if TYPE_CHECKING:
    from distributed import Client
    from distributed import Future as Remote

_ADDRESS = re.compile(r"dask://[^/\s]+:\d+")
_CONNECT_S = 30
_WORKER_S = 60  # until the first has joined: they may start with the command

_Made = TypeVar("_Made")


def check_address(address: str) -> None:
    """Raise UserError unless it names a scheduler."""
    if _ADDRESS.fullmatch(address) is None:
        raise UserError(f"--executor {address}: expected dask://HOST:PORT of a Dask scheduler")


@contextmanager
def cluster(address: str, places: Sequence[Path]) -> Iterator[Executor]:
    """Lend the workers of the scheduler at `dask://HOST:PORT`, all of which see `places`.

    UserError if there is no scheduler, no worker, or one that cannot do the work.
    """
    check_address(address)
    try:
        from distributed import Client
    except ImportError:
        raise UserError(
            f"--executor {address}: Dask is not installed; pip install 'fabricobs[dask]'"
        ) from None
    try:
        client = Client(address.replace("dask", "tcp", 1), timeout=_CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise UserError(f"--executor {address}: no scheduler answers: {error}") from error
    with client:
        with suppress(TimeoutError):  # what is wrong then is said below
            client.wait_for_workers(1, timeout=_WORKER_S)
        _check_workers(client, address, places)
        yield _Cluster(client, address)


class _Cluster(Executor):
    """The workers of a scheduler."""

    def __init__(self, client: "Client", address: str) -> None:
        self._client = client
        self._address = address
        self._running: set[Remote[Any]] = set()  # the scheduler forgets what nobody holds

    def submit(self, task: Callable[..., _Made], /, *given: Any, **named: Any) -> "Future[_Made]":
        """Run a task on some worker; its future fails by BrokenProcessPool if it kills workers."""
        future: Future[_Made] = Future()
        remote = self._client.submit(task, *given, pure=False, **named)
        self._running.add(remote)
        remote.add_done_callback(partial(self._pass_on, future))
        return future

    def _pass_on(self, future: "Future[Any]", remote: "Remote[Any]") -> None:
        from distributed import KilledWorker

        self._running.discard(remote)
        try:
            future.set_result(remote.result())
        except KilledWorker as error:
            future.set_exception(BrokenProcessPool(str(error)))
        except BaseException as error:
            lost = remote.status in {"cancelled", "lost"}
            future.set_exception(self._lost() if lost else error)

    def _lost(self) -> UserError:
        return UserError(
            f"--executor {self._address}: the connection to the scheduler is lost; what was "
            "committed stays, rerun the same command to resume"
        )


def _check_workers(client: "Client", address: str, places: Sequence[Path]) -> None:
    """Raise UserError unless every worker has this version and sees the places."""
    said = client.run(_state_of_worker, list(places))
    if not said:
        raise UserError(f"--executor {address}: the scheduler has no worker")
    for worker, (has, missing) in sorted(said.items()):
        if has != version("fabricobs"):
            raise UserError(
                f"--executor {address}: worker {worker} has fabricobs {has}, this is "
                f"{version('fabricobs')}: install one version on all"
            )
        if missing:
            raise UserError(f"--executor {address}: worker {worker} {missing[0]}")


def _state_of_worker(places: Sequence[Path]) -> tuple[str, list[str]]:
    """Return, on a worker, its version and what is wrong with the places it cannot reach."""
    raise_gc_threshold()
    return version("fabricobs"), [fault for place in places if (fault := _fault_of(place))]


def _fault_of(place: Path) -> str | None:
    if not is_address(place):
        mend = "logs and store must lie under one path on all machines"
        return None if place.exists() else f"does not see {place}: {mend}"
    from fabricobs.remote import check

    try:
        check(place)
    except UserError as error:
        return f"cannot use {error}"
    return None
