"""A Dask cluster of this machine, for tests."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from loopback import wait_for

if TYPE_CHECKING:
    from distributed import Client

_STARTS_WITHIN = 120


class Workers:
    """A scheduler and two workers, each a process; with `nanny` one that dies is started anew."""

    def __init__(
        self,
        folder: Path,
        *,
        nanny: bool = False,
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._folder = folder
        self._variables = variables
        self._start("scheduler", "--host", "127.0.0.1", "--port", "0")
        kind = "--nanny" if nanny else "--no-nanny"
        self.workers = [self._start("worker", "--nthreads", "1", kind) for _ in range(2)]

    def _start(self, kind: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *arguments]
        process = subprocess.Popen(
            [*command, "--no-dashboard", "--scheduler-file", "scheduler.json"],
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # A task whose worker dies is given up at once: what follows is ours.
            env={**os.environ, "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}
            | self._variables,
            start_new_session=True,
        )
        self.all = [*getattr(self, "all", []), process]
        return process

    def wait(self) -> None:
        """Wait until all have joined: a busy machine may take a minute to start them."""
        told = self._folder / "scheduler.json"
        wait_for(told.exists, "the scheduler to start", _STARTS_WITHIN)
        with self._client() as client:
            client.wait_for_workers(2, timeout=_STARTS_WITHIN)
            self.address = client.scheduler.address.replace("tcp", "dask")

    def pids(self) -> list[int]:
        """Return the processes of both workers, as soon as both are there."""
        with self._client() as client:
            client.wait_for_workers(2, timeout=_STARTS_WITHIN)
            return sorted(client.run(os.getpid).values())

    def rest(self) -> None:
        """Wait until the workers have done all they were given, also by who is gone."""
        with self._client() as client:
            client.wait_for_workers(2, timeout=_STARTS_WITHIN)
            for worker in client.scheduler_info()["workers"]:
                client.submit(int, workers=[worker], pure=False).result()

    def _client(self) -> "Client":
        from distributed import Client

        told = str(self._folder / "scheduler.json")
        return Client(scheduler_file=told, timeout=_STARTS_WITHIN, set_as_default=False)

    def stop(self) -> None:
        """Kill all that live, and what nannies have started."""
        for process in self.all:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
