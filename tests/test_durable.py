"""What is visible is on the disk: the order of calls, and whose workplace is whose."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from small_store import STEP, steps, write_days

from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.operate.state import Memory, save_memory
from fabricobs.store import upkeep
from fabricobs.store.arrow import empty_table
from fabricobs.store.parts import BatchWriter, Store
from fabricobs.store.storage import make_workplace, remove_abandoned


class Disk:
    """What a power cut would leave: which files and names have been brought to the disk."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._synced: dict[int, tuple[int, int]] = {}  # inode -> size and time of change
        self._unsynced_names: set[Path] = set()
        self.published = 0

    def fsync(self, opened: int) -> None:
        stat = os.fstat(opened)
        self._synced[stat.st_ino] = (stat.st_size, stat.st_mtime_ns)
        folder = Path(f"/proc/self/fd/{opened}").readlink()
        self._unsynced_names -= {name for name in self._unsynced_names if name.parent == folder}

    def rename(self, source: Path, target: Path) -> None:
        self.nothing_is_pending()
        if target.is_relative_to(self._store / ".incoming"):
            return
        contents = [source, *source.iterdir()] if source.is_dir() else [source]
        for path in contents:
            stat = path.stat()
            assert self._synced.get(stat.st_ino) == (stat.st_size, stat.st_mtime_ns), path
        self._unsynced_names.add(target)
        self.published += 1

    def link(self, source: Path, target: Path) -> None:
        """An entry of the log gets its name: all that it names is on the disk."""
        self.nothing_is_pending()
        stat = source.stat()
        assert self._synced.get(stat.st_ino) == (stat.st_size, stat.st_mtime_ns), source
        self._unsynced_names.add(target)
        self.published += 1

    def nothing_is_pending(self) -> None:
        assert not self._unsynced_names, "the name is not on the disk, and the next thing is done"


def later() -> datetime:
    """Two hours from now, however long the tests before took."""
    return datetime.now(UTC).replace(tzinfo=None) + timedelta(hours=2)


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    disk = Disk(tmp_path / "store")
    fsync, rename, link = os.fsync, os.replace, os.link

    def synced(opened: int) -> None:
        fsync(opened)
        disk.fsync(opened)

    def renamed(source: Path, target: Path, **_: object) -> None:
        disk.rename(Path(source), Path(target))
        rename(source, target)

    def linked(source: Path, target: Path) -> None:
        disk.link(Path(source), Path(target))
        link(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "rename", renamed)
    monkeypatch.setattr(os, "replace", renamed)
    monkeypatch.setattr(os, "link", linked)
    yield disk
    disk.nothing_is_pending()


def test_all_that_is_made_visible_is_on_the_disk(disk: Disk, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    logs = tmp_path / "logs"
    write_days(logs, 6, store.path)
    assert disk.published == 1 + 3 * 6, (
        "the log; of each day a batch, its entry and a note of what was seen"
    )
    with (logs / "day06.jsonl").open("a") as file:
        file.write(STEP.format(7, 6))
    ingest([logs], store, Options())
    assert upkeep.prune(store, timedelta(days=3), later()).files == 2
    assert upkeep.compact(store, later())
    (store.path / ".watch").mkdir()
    save_memory(Memory(), store.path)
    assert disk.published > 16


def test_what_a_killed_writer_left_goes_a_day_later(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    write_days(tmp_path / "logs", 1, store.path)
    place = make_workplace(store.path)
    (place / "steps.parquet").touch()
    writer = BatchWriter(store)
    writer.write("steps", empty_table("steps"))
    left = writer.put("never-committed")
    (store.path / "hosts").mkdir()  # pages of a report
    now = datetime.now(UTC).replace(tzinfo=None)
    store.clear(now + timedelta(hours=20))
    assert place.exists(), "its writer may live"
    assert (store.path / left.name).exists()
    assert steps(store) == [1]
    store.clear(now + timedelta(hours=25))
    assert not place.exists()
    assert not (store.path / left.name).exists()
    assert (store.path / "hosts").exists()
    assert steps(store) == [1]


def test_what_changed_lately_is_in_use(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    store.create()
    place = make_workplace(store.path)
    (place / "steps.parquet").touch()
    os.utime(place, (0, 0))
    remove_abandoned(store.path, datetime.now(UTC).replace(tzinfo=None) - timedelta(days=1))
    assert place.exists()


def test_a_failure_while_writing_leaves_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    store.create()
    with pytest.raises(ZeroDivisionError), BatchWriter(store):
        raise ZeroDivisionError
    assert not list((store.path / ".incoming").iterdir())
