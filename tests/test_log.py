"""The log of a store: whoever writes at the same time, each version is one writer's."""

import random
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fabricobs.store.location import place_of
from fabricobs.store.log import Batch, Change, KnownFile, Log, Part, Snapshot
from fabricobs.store.storage import Storage, storage_of


@pytest.fixture(params=["directory", "s3"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "s3":
        return storage_of(place_of(Path(request.getfixturevalue("s3"))))
    (tmp_path / "store").mkdir()
    return storage_of(tmp_path / "store")


def batch(name: str, *file_ids: str, replaces: str | None = None) -> Batch:
    files = tuple(
        KnownFile(
            name, id_, f"/logs/{id_}", 7, datetime(2026, 3, 1), "c", "s", "f", replaces, rows=3
        )
        for id_ in file_ids
    )
    return Batch(name, {"steps": Part(10, "d"), "files": Part(20, "e")}, files)


def add(log: Log, added: Batch, *removes: str) -> None:
    log.commit(lambda _: Change((added,), removes))


def contents(seen: Snapshot) -> dict[str, tuple[dict[str, Part], tuple[KnownFile, ...]]]:
    return {name: (dict(each.parts), each.files) for name, each in seen.batches.items()}


def test_another_process_reads_what_was_committed(storage: Storage) -> None:
    log = Log(storage)
    log.create()
    add(log, batch("a-1", "x", "y"))
    add(log, batch("b-1", "z"), "a-1")
    seen = Log(storage).snapshot()
    assert (seen.version, set(seen.batches)) == (2, {"b-1"})
    assert contents(seen) == contents(log.snapshot())
    assert seen.batch_of_file == {"z": "b-1"}
    assert set(seen.removed) == {"a-1"}


@pytest.mark.parametrize("seed", range(3))
def test_writers_that_race_bring_each_file_once(storage: Storage, seed: int) -> None:
    Log(storage).create()
    chance = random.Random(seed)
    wanted = [chance.sample(range(40), 12) for _ in range(4)]

    def write(number: int) -> None:
        log = Log(storage)
        for file in wanted[number]:

            def change(seen: Snapshot, id_: str = str(file)) -> Change | None:
                if id_ in seen.batch_of_file:
                    return None
                return Change((batch(f"w{number}-{id_}", id_),))

            log.commit(change)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    found = Log(storage).snapshot()
    assert sorted(f.file_id for f in found.files()) == sorted(
        {str(file) for files in wanted for file in files}
    )
    assert found.version == len(found.batches)


def test_a_checkpoint_says_what_its_entries_said(storage: Storage) -> None:
    log = Log(storage)
    log.create()
    sleeper = Log(storage)
    add(log, batch("first-1", "0"))
    assert sleeper.snapshot().version == 1
    for number in range(1, 180):
        gone = [f"b{number - 3}-1"] if number % 4 == 0 else []
        add(log, batch(f"b{number}-1", str(number)), *gone)
    assert any(key.endswith(".all.json.gz") for key in storage.keys("_log"))
    before = log.snapshot()
    assert contents(Log(storage).snapshot()) == contents(before)
    log.forget(datetime.now(UTC).replace(tzinfo=None) + timedelta(days=2))
    assert len(storage.keys("_log")) < 60
    assert contents(Log(storage).snapshot()) == contents(before)

    # A process that slept meanwhile knows a version whose successor is gone.
    add(sleeper, batch("late-1", "late"))
    assert contents(Log(storage).snapshot()) == contents(before) | {
        "late-1": contents(sleeper.snapshot())["late-1"]
    }


def test_another_store_in_the_same_place_is_another(storage: Storage) -> None:
    log = Log(storage)
    log.create()
    add(log, batch("a-1", "x"))
    storage.delete(storage.keys("_log"))
    Log(storage).create()
    assert not log.snapshot().batches


def test_a_commit_neither_lists_nor_reads_what_is_known(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log(storage)
    log.create()
    for number in range(120):
        add(log, batch(f"b{number}-1", str(number)))
    other = Log(storage)
    other.snapshot()
    calls: list[str] = []
    read, keys = storage.read, storage.keys
    monkeypatch.setattr(storage, "read", lambda key: calls.append("read") or read(key))
    monkeypatch.setattr(storage, "keys", lambda *given: calls.append("keys") or keys(*given))
    for number in range(120, 130):
        add(log, batch(f"b{number}-1", str(number)))
    assert not calls
    add(other, batch("late-1", "late"))
    assert calls == ["read"] * 10, "what the other has not seen, once"


def test_of_two_writers_one_makes_the_checkpoint(storage: Storage) -> None:
    logs = [Log(storage), Log(storage)]
    logs[0].create()
    for number in range(200):
        add(logs[number % 2], batch(f"b{number}-1", str(number)))
    assert len([key for key in storage.keys("_log") if ".all." in key]) == 4


class TestReplaced:
    def test_a_grown_file_hides_what_it_was(self) -> None:
        seen = Snapshot()
        seen.add(batch("a-1", "short", "other"))
        seen.add(batch("b-1", "long", replaces="short"))
        assert seen.replaced() == {"a-1": {"short"}}

    def test_a_file_read_again_as_it_once_was_is_the_newer(self) -> None:
        seen = Snapshot()
        seen.add(Batch("b-1", {}, batch("b-1", "new", replaces="old").files, version=1))
        seen.add(Batch("a-1", {}, batch("a-1", "old", replaces="new").files, version=2))
        assert seen.replaced() == {"b-1": {"new"}}
