"""A worker killed with SIGKILL costs no file anything but the one that has it killed."""

import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from loopback import wait_for

from conftest import ROOT
from fabricobs import batches, workers
from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.planning import PlannedFile
from fabricobs.store.parts import Store

pytestmark = pytest.mark.slow

_LOGS = ROOT / "sample_data" / "logs" / "switches" / "leaf01"


def _die_at(items: list[str], marker: str, once: Path | None) -> list[str]:
    """Kill this process if the marker is among the items; with `once`, the first time only."""
    if marker in items and (once is None or not once.exists()):
        if once is not None:
            once.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return items


def alone() -> AbstractContextManager[Executor]:
    return workers.processes(1)


class _Dying:
    def __init__(self, marker: str, once: Path | None = None) -> None:
        self.marker, self.once = marker, once

    def __call__(self, items: list[str]) -> list[str]:
        return _die_at(items, self.marker, self.once)


def test_a_list_that_has_its_process_killed_is_halved_down_to_the_culprit() -> None:
    lost = [["a", "b", "c", "x", "d"], ["e", "f"]]
    made = list(workers.one_by_one(_Dying("x"), lost, lambda item: [f"{item} refused"], alone))
    assert sorted(each for some in made for each in some) == [
        "a", "b", "c", "d", "e", "f", "x refused",
    ]  # fmt: skip


def test_a_process_killed_once_costs_nothing(tmp_path: Path) -> None:
    task = _Dying("a", once=tmp_path / "killed")
    made = list(workers.one_by_one(task, [["a", "b"]], lambda item: [f"{item} refused"], alone))
    assert sorted(each for some in made for each in some) == ["a", "b"]


def test_workers_end_when_who_started_them_is_killed() -> None:
    code = (
        "import os, time\n"
        "from fabricobs.workers import processes\n"
        "if __name__ == '__main__':\n"
        "    with processes(1) as pool:\n"
        "        print(pool.submit(os.getpid).result(), flush=True)\n"
        "        time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        worker = Path(f"/proc/{int(parent.stdout.readline())}")
        assert worker.exists()
        parent.kill()
    wait_for(lambda: not worker.exists(), "the worker to end")


class _Killer:
    """Stands for `ingest_batch`: the process dies at a file of this name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, batch: list[PlannedFile], store_path: Path, options: Options) -> object:
        if any(planned.path.name == self.name for planned in batch):
            # What a reader that is killed leaves behind.
            batches.BatchWriter(Store(store_path))
            os.kill(os.getpid(), signal.SIGKILL)
        return batches.ingest_batch(batch, store_path, options)


@pytest.mark.parametrize("batch_files", [1_000, 2])
def test_the_file_that_has_its_reader_killed_is_refused_by_name(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    batch_files: int,
) -> None:
    shutil.copytree(_LOGS, tmp_path / "logs" / "leaf01")
    monkeypatch.setattr("fabricobs.ingestion._PARALLEL_FILES", 1)
    monkeypatch.setattr("fabricobs.planning._BATCH_FILES", batch_files)
    monkeypatch.setattr("fabricobs.ingestion.ingest_batch", _Killer("show_pfc_priority.txt"))
    store = Store(tmp_path / "store")
    report = ingest([tmp_path / "logs"], store, Options(), workers=2)
    [refused] = report.problems
    assert refused.path.name == "show_pfc_priority.txt"
    assert refused.problem == workers.KILLED
    assert all(outcome.rows for outcome in report.outcomes if outcome is not refused)
    assert len(store.known_files()) == len(list(_LOGS.iterdir())) - 1
    store.clear(datetime.now(UTC).replace(tzinfo=None) + timedelta(days=2))
    assert not list((store.path / ".incoming").glob("*"))
    assert capfd.readouterr() == ("", "")
    monkeypatch.setattr("fabricobs.ingestion.ingest_batch", batches.ingest_batch)
    [again] = ingest([tmp_path / "logs"], store, Options()).read
    assert (again.path, again.problem) == (refused.path, None)
