"""From object store to object store, whatever dies or fails: the rows are those of a calm run.

`FABRICOBS_KILLS=30 pytest tests/test_remote_kills.py` disturbs 30 ingests in each way, each at a
random request. A run that ends early is repeated once; the next reader is another machine.
"""

import itertools
import json
import os
import random
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

import killed
import pytest
from dask_workers import Workers
from object_server import Faults, ObjectServer, failing_proxy, object_server
from remote_logs import rows_below, upload
from small_store import write_days

from conftest import ROOT
from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.store import verification
from fabricobs.store.location import place_of
from fabricobs.store.parts import Store
from fabricobs.store.storage import storage_of

pytest.importorskip("distributed")

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("FABRICOBS_KILLS", "1"))
LOGS = "s3://stores/logs"
PROCESSES = get_context("forkserver")
PROCESSES.set_forkserver_preload(["fabricobs.cli", "fabricobs.ingestion"])
_ENDS_WITHIN = 300


@dataclass
class Site:
    """A server with logs, a proxy before it, the rows of the logs, and a cluster."""

    folder: Path
    server: ObjectServer
    faults: Faults
    rows: dict[str, list[str]]
    workers: Workers
    on_cluster: bool = False
    requests: int = 0
    store: str = "s3://stores/calm"

    def start(self, machine: str = "first", workers: int = 1) -> BaseProcess:
        """Begin an ingest, on a machine with copies of its own."""
        folder = self.folder / machine
        folder.mkdir(exist_ok=True)
        (folder / "told").unlink(missing_ok=True)
        variables = {"XDG_CACHE_HOME": str(folder)} | self.server.variables(self.faults.port)
        command = ("ingest", LOGS, "--store", self.store)
        if self.on_cluster:
            command += ("--executor", self.workers.address)
        else:
            command += ("--workers", str(workers))
        process = PROCESSES.Process(target=killed.run_anywhere, args=(folder, command, variables))
        process.start()
        return process

    def succeeds(self, process: BaseProcess, machine: str = "first") -> None:
        """Wait for an ingest to end, and check that it did well."""
        process.join(_ENDS_WITHIN)
        assert process.exitcode == 0, f"{machine} has not ended: {process.exitcode}"
        told = json.loads((self.folder / machine / "told").read_text())
        assert told["code"] == 0, (self.folder / machine / "output").read_text()

    def count(self) -> None:
        """Count the requests of an ingest that nobody disturbs."""
        seen: list[str] = []
        self.faults.refuse = lambda _method, path: bool(seen.append(path))
        self.succeeds(self.start())
        self.requests = len(seen)

    def disturb(self, chance: random.Random, act: Callable[[], object]) -> None:
        """Act at a random request: it is then refused, or served and its answer lost."""
        numbers, last = itertools.count(1), chance.randint(1, self.requests)

        def now(_method: str, _path: str) -> bool:
            if next(numbers) != last:
                return False
            act()
            return True

        if chance.random() < 0.5:
            self.faults.refuse = now
        else:
            self.faults.lose = now

    def calm(self) -> None:
        """Disturb nothing from now on, and wait for what a dead coordinator has left running."""
        self.faults.refuse = self.faults.lose = self.faults.cut = lambda _method, _path: False
        if self.on_cluster:
            self.workers.rest()


def coordinator(site: Site, chance: random.Random) -> None:
    """Kill the process that was typed, which has processes of its own to read."""
    process = site.start(workers=2)
    site.disturb(chance, process.kill)
    process.join(_ENDS_WITHIN)


def worker(site: Site, chance: random.Random) -> None:
    """Kill a worker of the cluster: the ingest goes on to its end."""
    victim = chance.choice(site.workers.pids())
    site.disturb(chance, lambda: os.kill(victim, signal.SIGKILL))
    site.succeeds(site.start())


def race(site: Site, chance: random.Random) -> None:
    """Have four machines ingest the same logs, and kill one of them."""
    machines = ["first", "second", "third", "fourth"]
    processes = [site.start(machine) for machine in machines]
    site.disturb(chance, processes[0].kill)
    for process, machine in list(zip(processes, machines, strict=True))[1:]:
        site.succeeds(process, machine)
    processes[0].join(_ENDS_WITHIN)


def server(site: Site, chance: random.Random) -> None:
    """Kill the server, and start it again."""
    restarts: list[threading.Thread] = []

    def restart() -> None:
        site.server.kill()
        restarts.append(threading.Thread(target=site.server.start))
        restarts[0].start()

    process = site.start()
    site.disturb(chance, restart)
    site.succeeds(process)
    for thread in restarts:
        thread.join()


def answers(site: Site, chance: random.Random) -> None:
    """Answer 503, cut answers off, and lose some altogether."""
    lock = threading.Lock()

    def at_times(_method: str, _path: str) -> bool:
        with lock:
            return chance.random() < 0.08

    site.faults.refuse = site.faults.lose = site.faults.cut = at_times
    process = site.start()
    process.join(_ENDS_WITHIN)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Lend a server with logs, and a cluster; this process reads as on another machine."""
    folder = tmp_path_factory.mktemp("site")
    logs = folder / LOGS.removeprefix("s3://")
    for part in ("steps", "nccl"):
        shutil.copytree(ROOT / "sample_data" / "logs" / part, logs / part)
    write_days(logs / "days", 12)
    with ExitStack() as stack:
        server = stack.enter_context(object_server(folder / "server"))
        faults = stack.enter_context(failing_proxy(server))
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for name, value in (server.variables() | {"XDG_CACHE_HOME": str(folder)}).items():
            patch.setenv(name, value)
        stack.callback(storage_of.cache_clear)
        variables = server.variables(faults.port) | {"XDG_CACHE_HOME": str(folder / "worker")}
        workers = Workers(folder, nanny=True, variables=variables)
        stack.callback(workers.stop)
        upload(logs, LOGS)
        ingest([logs], Store(folder / "alone"), Options())
        workers.wait()
        found = Site(folder, server, faults, rows_below(folder / "alone", str(logs)), workers)
        found.count()
        yield found


@pytest.mark.parametrize(
    ("disturbance", "on_cluster"),
    [
        (coordinator, False),
        (coordinator, True),
        (worker, True),
        (race, False),
        (server, False),
        (answers, False),
        (answers, True),
    ],
)
def test_the_rows_are_those_of_a_calm_run(
    site: Site, disturbance: Callable[[Site, random.Random], None], on_cluster: bool
) -> None:
    chance = random.Random(KILLS)
    site.on_cluster = on_cluster
    for number in range(KILLS):
        site.store = f"s3://stores/{disturbance.__name__}-{on_cluster}-{number}"
        disturbance(site, chance)
        site.calm()
        site.succeeds(site.start())
        store = Store(place_of(Path(site.store)))
        assert rows_below(store.path, LOGS) == site.rows
        store.clear(datetime.now(UTC).replace(tzinfo=None) + timedelta(days=2))
        # SeaweedFS lists a folder for a while after its last object has gone.
        left = {folder for folder in store.storage.folders() if store.storage.keys(folder)}
        assert left == set(store.snapshot().batches)
        assert not any(batch.faults or batch.doubled for batch in verification.verify(store.path))
        print(f"{disturbance.__name__}: equal after {number + 1} of {KILLS}")
