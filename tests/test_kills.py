"""The kill table: whatever is killed whenever, one more run makes the store it would have made.

`FABRICOBS_KILLS=50 pytest tests/test_kills.py` kills each 50 times. Every other kill is at a random
moment, the others at a random one of the calls that open, make, rename or remove something in the
store: moments are rarely there. Of an ingest with workers one worker is killed, and the ingest
itself goes on to the end.
"""

import contextlib
import json
import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

import killed
import pytest
from small_store import STEP, rows_of, write_days

from conftest import ROOT
from fabricobs.store import verification
from fabricobs.store.parts import Store

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("FABRICOBS_KILLS", "3"))
DAYS = 12
# Starts processes that have imported all this: most of a process is its start.
PROCESSES = get_context("forkserver")
PROCESSES.set_forkserver_preload(
    ["fabricobs.cli", "fabricobs.ingestion", "fabricobs.store.upkeep", "fabricobs.operate.watch"]
)


def prepare_ingest(folder: Path) -> None:
    for part in ("steps", "nccl"):
        shutil.copytree(ROOT / "sample_data" / "logs" / part, folder / "logs" / part)
    write_days(folder / "logs" / "days", DAYS)


def prepare_grown(folder: Path) -> None:
    logs = folder / "logs"
    write_days(logs, DAYS)
    _run(folder, "ingest", "logs")
    for day in (2, 5, 6):
        with (logs / f"day{day:02d}.jsonl").open("a") as log:
            log.write(STEP.format(100 + day, day))


def prepare_days(folder: Path) -> None:
    write_days(folder / "logs", DAYS, folder / "store")


@dataclass(frozen=True, slots=True)
class Scenario:
    """What is killed, and the store it starts from; paths are below the folder it runs in."""

    prepare: Callable[[Path], None]
    command: tuple[str, ...]
    kills_worker: bool = False


SCENARIOS = {
    "ingest": Scenario(prepare_ingest, ("ingest", "logs")),
    "worker": Scenario(prepare_ingest, ("ingest", "logs", "--workers", "2"), kills_worker=True),
    "grown": Scenario(prepare_grown, ("ingest", "logs")),
    "prune": Scenario(prepare_days, ("prune", "--keep", "4d")),
    "compaction": Scenario(prepare_days, ("prune",)),
    "watch": Scenario(
        prepare_grown,
        ("watch", "logs", "--once", "--keep", "9d", "--window", "1d", "--fail-on", "never"),
    ),
}


@dataclass(frozen=True, slots=True)
class Prepared:
    """The folder to start from, the rows of a run that nobody kills, and what that run took."""

    scenario: Scenario
    folder: Path
    rows: dict[str, list[str]]
    seconds: float
    calls: int


def _start(folder: Path, command: tuple[str, ...], last: int = 0) -> BaseProcess:
    for name in ("began", "told"):
        (folder / name).unlink(missing_ok=True)
    process = PROCESSES.Process(target=killed.run, args=(folder, command, last))
    process.start()
    return process


def _run(folder: Path, *command: str) -> dict[str, float]:
    process = _start(folder, command)
    process.join()
    told: dict[str, float] = json.loads((folder / "told").read_text())
    # 3: a watch that found nothing to judge.
    assert told["code"] in {0, 3}, (folder / "output").read_text()
    return told


def _kill(folder: Path, prepared: Prepared, chance: random.Random, *, at_call: bool) -> None:
    if at_call:
        process = _start(folder, prepared.scenario.command, chance.randint(1, prepared.calls))
    else:
        process = _start(folder, prepared.scenario.command)
        while not (folder / "began").exists():
            time.sleep(0.001)
        process.join(chance.uniform(0, prepared.seconds))
        process.kill()
    process.join()


def _kill_worker(folder: Path, prepared: Prepared, chance: random.Random) -> bool:
    """Kill one worker of an ingest, which ends as if nothing had been; False if none was left."""
    process = _start(folder, prepared.scenario.command)
    found: list[int] = []
    while not found and process.is_alive():
        found = _workers_of(process)
        time.sleep(0.001)
    process.join(chance.uniform(0, prepared.seconds))
    found = _workers_of(process)
    if found:
        os.kill(chance.choice(found), signal.SIGKILL)
    process.join()
    assert json.loads((folder / "told").read_text())["code"] == 0, (folder / "output").read_text()
    assert rows_of(folder / "store") == prepared.rows
    return bool(found)


def _workers_of(process: BaseProcess) -> list[int]:
    """Return the processes that a process has started to read for it."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    with contextlib.suppress(OSError):
        return [
            int(child)
            for child in children.read_text().split()
            if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
        ]
    return []


def leftovers(store: Path) -> list[str]:
    """Return what is in the store and not part of it, a day later."""
    Store(store).clear(datetime.now(UTC).replace(tzinfo=None) + timedelta(days=2))
    known = {".incoming", "_log", ".seen.json", ".watch", "report.html"}
    batches = {batch.name for batch in verification.verify(store)}
    return [
        *(path.name for path in store.iterdir() if path.name not in known | batches),
        *(path.name for path in (store / ".incoming").iterdir()),
        *(path.name for path in (store / ".watch").glob("*")
          if path.name not in {"lock", "state.json"}),
    ]  # fmt: skip


@pytest.fixture(scope="module", params=SCENARIOS)
def prepared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    scenario = SCENARIOS[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    # A store knows its inputs by their paths: all runs are in one place.
    scenario.prepare(folder / "place")
    shutil.copytree(folder / "place", folder / "begin", symlinks=True)
    took = _run(folder / "place", *scenario.command)
    return Prepared(
        scenario, folder, rows_of(folder / "place" / "store"), took["seconds"], int(took["calls"])
    )


def test_killed_anywhere_one_more_run_makes_the_same_store(prepared: Prepared) -> None:
    chance = random.Random(KILLS)
    killed_workers = 0
    place = prepared.folder / "place"
    for number in range(KILLS):
        shutil.rmtree(place)
        shutil.copytree(prepared.folder / "begin", place, symlinks=True)
        if prepared.scenario.kills_worker:
            killed_workers += _kill_worker(place, prepared, chance)
        else:
            _kill(place, prepared, chance, at_call=number % 2 == 0)
        store = place / "store"
        if (store / "_log" / "000000000000.json").exists():
            assert not [f for batch in verification.verify(store) for f in batch.faults]
        _run(place, *prepared.scenario.command)
        assert rows_of(store) == prepared.rows
        assert not leftovers(store)
        print(f"{' '.join(prepared.scenario.command)}: equal after kill {number + 1} of {KILLS}")
    assert killed_workers or not prepared.scenario.kills_worker
