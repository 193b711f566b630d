"""Ingest by workers of a Dask cluster, against as many processes that know nothing of each other.

All run on this machine: what is compared is what sharing the work costs, not what machines add.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from fabricobs.bench import inputs

_BYTES = 1_440_000_000  # eight files, a batch each; starting a client must not be what is measured
_COMMAND = Path(sys.executable).parent / "fabricobs"


def table(share: float = 1.0) -> str:
    """Measure, and return seconds, efficiency, and the overhead of a task."""
    with tempfile.TemporaryDirectory(prefix="fabricobs-machines-") as made:
        folder = Path(made)
        inputs.coll_lines(folder / "logs", size=int(_BYTES * share))
        logs = sorted((folder / "logs").glob("*.log"))
        alone = _ingest(folder, [logs], "--workers", "1")
        apart = _ingest(folder, [logs[::2], logs[1::2]], "--workers", "1")
        by_workers = []
        for workers in (1, 2):
            with _cluster(folder, workers) as address:
                by_workers.append(_ingest(folder, [logs], "--executor", address))
    one, two = by_workers
    return "\n".join(
        [
            f"{len(logs)} batches of {_BYTES * share / 1e6 / len(logs):.0f} MB",
            f"one process             {alone:8.1f} s",
            f"two apart, half each    {apart:8.1f} s",
            f"one worker of Dask      {one:8.1f} s",
            f"two workers of Dask     {two:8.1f} s",
            f"efficiency of two       {apart / two:8.2f}   (that of two apart is 1)",
            f"overhead of a task      {1000 * (one - alone) / len(logs):8.0f} ms",
        ]
    )


def _ingest(folder: Path, shares: Sequence[Sequence[Path]], *options: str) -> float:
    """Return the seconds until processes have read their shares, each into a store of its own."""
    stores = [folder / f"store{number}" for number in range(len(shares))]
    begun = time.perf_counter()
    running = [
        subprocess.Popen(
            [_COMMAND, "ingest", *logs, "--store", store, *options], stdout=subprocess.DEVNULL
        )
        for logs, store in zip(shares, stores, strict=True)
    ]
    codes = [process.wait() for process in running]
    if any(codes):
        raise RuntimeError("an ingest failed")
    took = time.perf_counter() - begun
    for store in stores:
        shutil.rmtree(store)
    return took


@contextmanager
def _cluster(folder: Path, workers: int) -> Iterator[str]:
    """Lend the address of a scheduler with so many workers, of a thread each."""
    from distributed import Client

    told = folder / "scheduler.json"
    told.unlink(missing_ok=True)
    with ExitStack() as stack:

        def start(kind: str, *arguments: str) -> None:
            command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *arguments]
            quiet = subprocess.DEVNULL
            process = subprocess.Popen(
                [*command, "--no-dashboard", "--scheduler-file", told],
                cwd=folder,
                stdout=quiet,
                stderr=quiet,
            )
            stack.callback(process.wait)
            stack.callback(process.kill)

        start("scheduler", "--host", "127.0.0.1", "--port", "0")
        for _ in range(workers):
            start("worker", "--nthreads", "1", "--no-nanny")
        while not told.exists():
            time.sleep(0.1)
        with Client(scheduler_file=str(told), timeout=120) as client:
            client.wait_for_workers(workers, timeout=120)
            address = client.scheduler.address
        yield address.replace("tcp", "dask")
