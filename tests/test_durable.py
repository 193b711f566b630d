"""What is visible is on the disk: the order of calls, and whose workplace is whose."""

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from small_store import STEP, write_days

from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.operate.state import Memory, save_memory
from fabricobs.store import upkeep
from fabricobs.store.parts import BatchWriter, Store
from fabricobs.store.workplaces import Workplace, remove_abandoned

LATER = datetime.now(UTC).replace(tzinfo=None) + timedelta(hours=2)


class Disk:
    """What a power cut would leave: which files and names have been brought to the disk."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._synced: dict[int, tuple[int, int]] = {}  # inode -> size and time of change
        self._unsynced_names: set[Path] = set()
        self._unsynced_removals: set[Path] = set()
        self.published = 0

    def fsync(self, opened: int) -> None:
        stat = os.fstat(opened)
        self._synced[stat.st_ino] = (stat.st_size, stat.st_mtime_ns)
        folder = Path(f"/proc/self/fd/{opened}").readlink()
        for names in (self._unsynced_names, self._unsynced_removals):
            names -= {name for name in names if name.parent == folder}

    def rename(self, source: Path, target: Path) -> None:
        self.nothing_is_pending()
        if target.is_relative_to(self._store / ".incoming"):
            self._unsynced_removals.add(source)
            return
        contents = [source, *source.iterdir()] if source.is_dir() else [source]
        for path in contents:
            stat = path.stat()
            assert self._synced.get(stat.st_ino) == (stat.st_size, stat.st_mtime_ns), path
        self._unsynced_names.add(target)
        self.published += 1

    def note_goes(self) -> None:
        assert not self._unsynced_removals, "the note goes before the batches that it names"

    def nothing_is_pending(self) -> None:
        assert not self._unsynced_names, "the name is not on the disk, and the next thing is done"


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    disk = Disk(tmp_path / "store")
    fsync, rename, unlink = os.fsync, os.replace, os.unlink

    def synced(opened: int) -> None:
        fsync(opened)
        disk.fsync(opened)

    def renamed(source: Path, target: Path, **_: object) -> None:
        disk.rename(Path(source), Path(target))
        rename(source, target)

    def unlinked(path: Path, *arguments: object, **options: object) -> None:
        if str(path).endswith("replaces.json") and ".incoming" not in str(path):
            disk.note_goes()
        unlink(path, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "rename", renamed)
    monkeypatch.setattr(os, "replace", renamed)
    monkeypatch.setattr(os, "unlink", unlinked)
    yield disk
    disk.nothing_is_pending()


def test_all_that_is_made_visible_is_on_the_disk(disk: Disk, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    logs = tmp_path / "logs"
    write_days(logs, 6, store.path)
    assert disk.published == 1 + 2 * 6, (
        "the schema; of each day a batch and a note of what was seen"
    )
    with (logs / "day06.jsonl").open("a") as file:
        file.write(STEP.format(7, 6))
    ingest([logs], store, Options())
    assert upkeep.prune(store, timedelta(days=3), LATER).files == 2
    assert upkeep.compact(store, LATER)
    (store.path / ".watch").mkdir()
    save_memory(Memory(), store.path)
    assert disk.published > 16


class TestWorkplaces:
    def test_one_in_use_stays(self, tmp_path: Path) -> None:
        place = Workplace(tmp_path)
        (place.path / "part").touch()
        remove_abandoned(tmp_path)
        assert (place.path / "part").exists()
        place.close()
        assert not list((tmp_path / ".incoming").iterdir())

    @pytest.mark.parametrize("left", ["killed", "no lock", "lock only", "of an older release"])
    def test_what_is_left_over_goes(self, tmp_path: Path, left: str) -> None:
        incoming = tmp_path / ".incoming"
        incoming.mkdir()
        if left == "killed":
            code = (
                "import sys, os, signal\nfrom pathlib import Path\n"
                "from fabricobs.store.workplaces import Workplace\n"
                "place = Workplace(Path(sys.argv[1]))\n(place.path / 'part').touch()\n"
                "os.kill(os.getpid(), signal.SIGKILL)\n"
            )
            killed = subprocess.run([sys.executable, "-c", code, tmp_path], check=False)
            assert killed.returncode == -signal.SIGKILL
            assert len(list(incoming.iterdir())) == 2
        elif left == "no lock":
            (incoming / "x" / "y").mkdir(parents=True)
        elif left == "lock only":
            (incoming / "x.lock").touch()
        else:
            # The process lives, but it is not the one that made this.
            (incoming / f"x@{os.uname().nodename}:{os.getpid()}").mkdir()
        remove_abandoned(tmp_path)
        assert not list(incoming.iterdir())

    def test_one_whose_owner_has_forked_stays_until_the_child_ends(self, tmp_path: Path) -> None:
        place = Workplace(tmp_path)
        child = subprocess.Popen(["sleep", "60"], pass_fds=[place._lock])
        os.close(place._lock)
        remove_abandoned(tmp_path)
        assert place.path.exists()
        child.kill()
        child.wait()
        remove_abandoned(tmp_path)
        assert not place.path.exists()
        place._lock = -1

    def test_a_lock_file_taken_before_it_was_locked_is_given_up(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Someone who looks for what is left over comes between the open and the lock."""
        flock, interrupted = fcntl.flock, []

        def late(opened: int, operation: int) -> None:
            if not interrupted:
                interrupted.append(opened)
                remove_abandoned(tmp_path)
            flock(opened, operation)

        monkeypatch.setattr(fcntl, "flock", late)
        place = Workplace(tmp_path)
        remove_abandoned(tmp_path)
        assert place.path.exists()
        place.close()
        assert not list((tmp_path / ".incoming").iterdir())


def test_a_failure_while_writing_leaves_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    store.create()
    with pytest.raises(ZeroDivisionError), BatchWriter(store):
        raise ZeroDivisionError
    assert not list((store.path / ".incoming").iterdir())
