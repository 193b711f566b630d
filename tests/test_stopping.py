"""SIGTERM at any moment of a real command: it ends in seconds, and the store is as it should be.

$FABRICOBS_STOPS says how many moments are tried; the suite tries a few.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from loopback import drips, misbehaving, wait_for

from conftest import ROOT
from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.stopping import GRACE_S
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session

pytestmark = pytest.mark.slow

LOGS = ROOT / "sample_data" / "logs"
# Workers are processes from the first batch on, as in a large ingest.
COMMAND = [
    sys.executable,
    "-c",
    "from fabricobs import cli, ingest, planning; ingest._PARALLEL_BYTES = 0; "
    "ingest._PARALLEL_FILES = 10; planning._BATCH_FILES = 50; cli.main()",
]
# What a command may take to end: the grace it has, and what a busy machine adds.
MOST_S = 15


def start(*arguments: object) -> "subprocess.Popen[str]":
    """Start a command as the leader of a session of its own."""
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def stop(process: "subprocess.Popen[str]", number: int = signal.SIGTERM) -> str:
    """Send a signal and return what the command said; nothing of it is left."""
    process.send_signal(number)
    _, said = process.communicate(timeout=MOST_S)
    wait_for(lambda: not is_alive(process.pid), "all processes of the command to end", MOST_S)
    return said


def is_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def assert_sound(store: Path, said: str) -> None:
    lines = said.splitlines()
    assert all(line.startswith("fabricobs: ") for line in lines), said
    assert not list((store / ".incoming").glob("*")), said
    counted = "SELECT count(*) FROM files WHERE lines <> parsed + ignored + unparsed"
    assert open_session(store, counted).sql(counted).fetchall() == [(0,)]


@pytest.mark.parametrize("seed", range(int(os.environ.get("FABRICOBS_STOPS", "6"))))
def test_a_watch_ends_wherever_it_is(tmp_path: Path, seed: int) -> None:
    """Reading with workers, judging, drawing, telling a target that drips, or asleep."""
    chance = random.Random(seed)
    store = tmp_path / "store"
    with misbehaving(drips) as address:
        (tmp_path / "fabricobs.toml").write_text(
            f'store = "{store}"\n[notify.webhook]\nurl = "{address}"\n'
        )
        process = start("watch", LOGS, "--every", "1h", "--config", tmp_path / "fabricobs.toml")
        wait_for((store / "_log").exists, "the watch to begin")
        time.sleep(chance.uniform(0, float(os.environ.get("FABRICOBS_STOP_WITHIN", "12"))))
        began = time.monotonic()
        said = stop(process)
        ended_hard = time.monotonic() - began >= GRACE_S
    assert process.returncode == 0, said
    assert "stopped by SIGTERM" in said
    if ended_hard:  # on a loaded machine; what is left then goes with the next run
        Store(store).settle()
    assert_sound(store, said)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of the sample that commands may judge: none of them changes its rows."""
    path = tmp_path_factory.mktemp("whole") / "store"
    ingest([LOGS], Store(path), Options())
    return path


@pytest.mark.parametrize("command", ["diagnose", "report"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_judgement_ends_with_the_code_of_the_signal(
    tmp_path: Path, whole: Path, command: str, number: signal.Signals
) -> None:
    out = ["--out", tmp_path / "page.html"] if command == "report" else []
    process = start(command, "--store", whole, *out)
    wait_for(has_spilled_or_opened(process), "the command to ask the store")
    said = stop(process, number)
    assert (process.returncode, f"stopped by {number.name}" in said) == (128 + number, True), said
    assert not list(tmp_path.iterdir()), "no half of a page"
    assert_sound(whole, said)


def has_spilled_or_opened(process: "subprocess.Popen[str]") -> Callable[[], bool]:
    """Say whether DuckDB is there: the command has begun to judge."""
    maps = Path(f"/proc/{process.pid}/maps")
    return lambda: process.poll() is not None or "duckdb" in maps.read_text()


def test_an_ingest_ends_and_the_next_one_brings_the_rest(tmp_path: Path, whole: Path) -> None:
    store = tmp_path / "store"
    chance = random.Random(1)
    for _ in range(3):
        process = start("ingest", LOGS, "--store", store, "--workers", "2")
        wait_for((store / "_log").exists, "the ingest to begin")
        time.sleep(chance.uniform(0, 3))
        said = stop(process)
        assert process.returncode in {143, 0, -signal.SIGTERM}, said
        assert_sound(store, said)
    ingest([LOGS], Store(store), Options())
    count = "SELECT (SELECT count(*) FROM files), (SELECT count(*) FROM port_samples)"
    own, expected = (open_session(each, count).sql(count).fetchall() for each in (store, whole))
    assert own == expected


def test_a_signal_that_was_ignored_stays_ignored(tmp_path: Path) -> None:
    command = ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", *COMMAND, "watch", LOGS]
    process = subprocess.Popen(
        [*command, "--store", tmp_path / "store"], stderr=subprocess.PIPE, text=True
    )
    wait_for((tmp_path / "store" / "_log").exists, "the watch to begin")
    process.send_signal(signal.SIGHUP)
    time.sleep(1)
    assert process.poll() is None
    process.terminate()
    process.communicate(timeout=MOST_S)
    assert process.returncode == 0


def test_a_second_signal_ends_it_at_once() -> None:
    stuck = (
        "import threading, time\nfrom fabricobs import stopping\n"
        "stopping.listen()\nprint('up', flush=True)\n"
        "while True:\n    try:\n        stopping.pause(60)\n    except BaseException:\n"
        "        print('swallowed', flush=True)\n        time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", stuck], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == "up\n"
        process.terminate()
        assert process.stdout.readline() == "swallowed\n"
        time.sleep(1)
        process.terminate()
        assert process.wait(timeout=MOST_S) == 143
