"""Reading by the workers of a Dask cluster: the rows are those of one machine, whoever dies."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest
from dask_workers import Workers
from remote_logs import rows_below, upload
from small_store import rows_of, write_days

from conftest import ROOT, Run
from fabricobs.cluster import cluster
from fabricobs.exceptions import UserError
from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.store.location import place_of
from fabricobs.store.parts import Store

pytest.importorskip("distributed")

pytestmark = pytest.mark.slow
FILES = 2_400  # three batches


@pytest.fixture
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    """Lend a cluster of two workers that have joined it."""
    found = Workers(tmp_path_factory.mktemp("dask"))
    try:
        found.wait()
        yield found
    finally:
        found.stop()


def many(folder: Path) -> Path:
    """Write logs of steps that fill several batches."""
    for rank in range(FILES):
        path = folder / f"host{rank // 8:03d}" / f"rank{rank}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            "".join(
                f'{{"step": {step}, "rank": {rank}, "step_time_ms": {100 + step}}}\n'
                for step in range(3)
            )
        )
    return folder


def test_rows_are_those_of_one_machine(fabricobs: Run, workers: Workers, tmp_path: Path) -> None:
    logs = ROOT / "sample_data" / "logs"
    ran = fabricobs("ingest", logs, "--store", tmp_path / "s", "--executor", workers.address)
    assert (ran.returncode, ran.stderr) == (0, "")
    ingest([logs], Store(tmp_path / "alone"), Options())
    assert rows_of(tmp_path / "s") == rows_of(tmp_path / "alone")


def test_workers_fetch_from_an_object_store(
    fabricobs: Run, s3: str, workers: Workers, tmp_path: Path
) -> None:
    logs = f"{s3.removesuffix('/store')}/logs"
    folder = tmp_path / logs.removeprefix("s3://")
    shutil.copytree(ROOT / "sample_data" / "logs", folder)
    upload(folder, logs)
    ran = fabricobs("ingest", logs, "--store", s3, "--executor", workers.address)
    assert (ran.returncode, ran.stderr) == (0, "")
    ingest([folder], Store(tmp_path / "alone"), Options())
    assert rows_below(place_of(Path(s3)), logs) == rows_below(tmp_path / "alone", str(folder))


def test_a_worker_that_cannot_use_the_object_store_is_named(
    fabricobs: Run, workers: Workers, s3: str, tmp_path: Path
) -> None:
    logs, folder = f"{s3.removesuffix('/store')}/logs", tmp_path / "logs"
    write_days(folder, 1)
    upload(folder, logs)
    # The workers joined before the variables were set.
    ran = fabricobs("ingest", logs, "--store", s3, "--executor", workers.address)
    assert ran.returncode == 3
    assert "worker tcp://" in ran.stderr and "cannot use s3://stores: " in ran.stderr


def test_a_dead_worker_loses_nothing(workers: Workers, tmp_path: Path) -> None:
    logs, store = many(tmp_path / "logs"), tmp_path / "s"
    command = [sys.executable, "-c", "from fabricobs.cli import main; main()", "ingest", str(logs)]
    command += ["--store", str(store), "--executor", workers.address]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while not list((store / "_log").glob("*1.json")):  # the first batch is committed
        assert running.poll() is None
        time.sleep(0.05)
    workers.workers[0].send_signal(signal.SIGKILL)
    assert running.wait() == 0
    ingest([logs], Store(tmp_path / "alone"), Options())
    assert rows_of(store) == rows_of(tmp_path / "alone")


def test_a_task_that_kills_its_worker_fails_as_in_a_pool(workers: Workers) -> None:
    with cluster(workers.address, []) as pool, pytest.raises(BrokenProcessPool):
        pool.submit(os._exit, 9).result()


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("scheduler:8786", "expected dask://HOST:PORT"),
        ("dask://scheduler", "expected dask://HOST:PORT"),
        ("dask://127.0.0.1:1", "no scheduler answers"),
    ],
)
def test_what_is_no_cluster_is_said(
    address: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fabricobs.cluster._CONNECT_S", 1)
    with pytest.raises(UserError, match=f"--executor {address}: {says}"), cluster(address, []):
        pass


def test_workers_of_this_machine_are_not_ignored(fabricobs: Run, tmp_path: Path) -> None:
    options = ("--store", tmp_path / "s", "--workers", 2, "--executor", "dask://127.0.0.1:1")
    ran = fabricobs("ingest", ROOT / "sample_data", *options)
    assert (ran.returncode, ran.stdout) == (3, "")
    assert "leave --workers out" in ran.stderr


def test_workers_that_do_not_see_the_logs_are_named(workers: Workers, tmp_path: Path) -> None:
    places = [tmp_path, tmp_path / "only here"]
    with pytest.raises(UserError, match=r"does not see .*only here"):
        cluster(workers.address, places).__enter__()
