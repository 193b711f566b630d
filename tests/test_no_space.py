"""A full disk, a file that may not grow, a read-only disk: one line, and the store stays valid."""

import random
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from small_store import write_days

from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.store import verification
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session

pytestmark = pytest.mark.slow

DAYS = 6
MORE = 20_000
COMMAND = [sys.executable, "-c", "from fabricobs.cli import main; main()"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A store with its logs, and one log more to be read."""
    write_days(tmp_path / "logs", DAYS, tmp_path / "store")
    chance = random.Random(1)
    records = (
        f'{{"step": {step}, "rank": 0, "step_time_ms": {chance.random()}}}\n'
        for step in range(1000, 1000 + MORE)
    )
    (tmp_path / "logs" / "more.jsonl").write_text("".join(records))
    return tmp_path


def check_whole(store: Path, steps: int = DAYS) -> None:
    assert not [fault for batch in verification.verify(store) for fault in batch.faults]
    assert open_session(store, "steps").sql("SELECT count(*) FROM steps").fetchall() == [(steps,)]
    assert not list((store / ".incoming").iterdir())


def check_one_line(done: "subprocess.CompletedProcess[str]", text: str) -> None:
    assert done.returncode == 3, done.stdout + done.stderr
    assert text in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr


def test_a_file_that_may_not_grow(place: Path) -> None:
    """As with a quota: the limit is met in the middle of a part."""
    done = subprocess.run(
        [*COMMAND, "ingest", "logs", "--store", "store"], cwd=place, capture_output=True, text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000)),
    )  # fmt: skip
    check_one_line(done, "File too large")
    check_whole(place / "store")
    ingest([place / "logs"], Store(place / "store"), Options())
    check_whole(place / "store", DAYS + MORE)


def in_namespace(mount: str, *command: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    """Run a command where something is mounted that nobody else sees."""
    unshare = ["unshare", "--mount", "--map-root-user", "sh", "-c"]
    if subprocess.run([*unshare, mount], capture_output=True, cwd=cwd).returncode:
        pytest.skip("no mount namespace of our own can be had here")
    return subprocess.run(
        [*unshare, f'{mount} && exec "$@"', "sh", *command], cwd=cwd, capture_output=True, text=True
    )


@pytest.mark.parametrize("command", ["ingest logs", "prune --keep 2d", "prune", "verify --repair"])
def test_a_full_disk(place: Path, command: str) -> None:
    (place / "disk").mkdir()
    kept = place / "kept"
    if command.startswith("verify"):
        batch = next(p for p in (place / "store").iterdir() if (p / "steps.parquet").exists())
        (batch / "steps.parquet").write_bytes(b"")
    shutil.move(place / "store", kept)
    script = (
        "cp -r kept disk/store; dd if=/dev/zero of=disk/filler bs=4k 2>/dev/null; "
        f'python=$1; shift; "$python" "$@" {command} --store disk/store; code=$?; '
        "cp -r disk/store store; exit $code"
    )
    done = in_namespace(
        "mount -t tmpfs -o size=2m none disk", "sh", "-c", script, "sh", *COMMAND, cwd=place
    )
    if command.startswith("verify"):
        # A rename needs no room: the damaged batch is out of the way.
        assert done.returncode in {1, 3}, done.stderr
        assert "Traceback" not in done.stderr
    else:
        check_one_line(done, "disk/store: No space left on device")
        check_whole(place / "store")


@pytest.mark.parametrize(
    "command", ["ingest logs", "prune --keep 2d", "verify --repair", "sql FROM_steps", "verify"]
)
def test_a_read_only_disk(place: Path, command: str) -> None:
    mount = "mount --bind store store && mount -o remount,ro,bind store"
    words = [word.replace("_", " ") for word in command.split()]
    done = in_namespace(mount, *COMMAND, *words, "--store", "store", cwd=place)
    if command.startswith(("sql", "verify")):
        assert (done.returncode, done.stderr) == (0, "")
    else:
        told = (
            "cannot be written there" if command.startswith("ingest") else "Read-only file system"
        )
        check_one_line(done, told)
    check_whole(place / "store")
