"""A store in an object store is the store that a directory would hold, whatever the server does."""

import json
import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from object_server import ObjectServer, through_proxy
from small_store import STEP, write_days

from conftest import ROOT, Run
from fabricobs.exceptions import UserError
from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.store import objects
from fabricobs.store.location import place_of
from fabricobs.store.parts import Store
from fabricobs.store.reading import reading
from fabricobs.store.session import open_session
from fabricobs.store.storage import StorageError, storage_of
from fabricobs.store.tables import TABLES
from fabricobs.store.upkeep import compact, prune


@pytest.fixture(autouse=True)
def _known_anew() -> Iterator[None]:
    """What a process knows of a storage holds for its variables of then."""
    yield
    storage_of.cache_clear()


def at(address: str) -> Store:
    return Store(place_of(Path(address)))


def rows_of(store: Path) -> dict[str, list[str]]:
    found = {}
    with reading(store), open_session(store, " ".join(TABLES)) as session:
        for table in TABLES:
            # Each store was judged at a time of its own.
            told = "* EXCLUDE (told)" if table == "findings" else "*"
            rows = list(map(repr, session.sql(f"SELECT {told} FROM {table}").fetchall()))
            # How a format counts is noted with each batch of its files.
            found[table] = sorted(set(rows) if table == "counter_info" else rows)
    return found


def local_copy(logs: Path, folder: Path) -> dict[str, list[str]]:
    """Return the rows of the same logs in a directory."""
    ingest([logs], Store(folder), Options())
    return rows_of(folder)


def copies(store: Store) -> set[str]:
    """Return the tables whose parts have been fetched."""
    return {copy.stem for copy in store.path.glob("*/*.parquet")}


def test_the_main_job_gives_what_a_directory_gives(
    s3: str, sample_store: Path, tmp_path: Path, fabricobs: Run
) -> None:
    local = shutil.copytree(sample_store, tmp_path / "local")
    done = fabricobs("ingest", ROOT / "sample_data" / "logs", "--store", s3)
    assert done.returncode == 0, done.stderr
    shutil.rmtree(at(s3).path)  # another machine
    told = [fabricobs("diagnose", "--store", store, "--format", "json")
            for store in (s3, local)]  # fmt: skip
    here, there = ({k: v for k, v in json.loads(one.stdout).items() if k != "store"}
                   for one in told)  # fmt: skip
    assert here == there
    assert rows_of(at(s3).path) == rows_of(local)


def test_a_question_fetches_the_parts_of_its_tables_once(
    s3: str, sample_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = at(s3)
    store.create()
    for batch in Store(sample_store).snapshot().batches.values():
        copy = shutil.copytree(sample_store / batch.name, store.path / ".incoming" / batch.name)
        store.storage.put_folder(copy, batch.name)
        store.replace([], batch)
    shutil.rmtree(store.path)
    store.path.mkdir()
    fetched: list[str] = []
    fetch = objects.Objects._fetch

    def counted(self: objects.Objects, key: str, part: objects.Part) -> None:
        fetched.append(key)
        fetch(self, key, part)

    monkeypatch.setattr(objects.Objects, "_fetch", counted)
    sql = "SELECT count(*) FROM port_samples"
    for _ in range(2):
        with reading(store.path), open_session(store.path, sql) as session:
            assert session.sql(sql).fetchall()[0][0] > 0
        assert copies(store) == {"port_samples"}
        assert sorted(fetched) == sorted(store.snapshot().parts("port_samples"))


def test_a_copy_that_is_torn_is_fetched_again_and_the_oldest_make_room(
    s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = at(s3)
    write_days(tmp_path / "logs", 3, store.path)
    before = rows_of(store.path)
    torn = next(store.path.glob("*/steps.parquet"))
    torn.unlink()
    assert rows_of(store.path) == before
    hours_ago = datetime.now(UTC).timestamp() - 7200
    old = sorted(store.path.glob("*/*.parquet"))
    for copy in old:
        os.utime(copy, (hours_ago, hours_ago))
    monkeypatch.setattr(objects, "_MOST_CACHED_BYTES", 0)
    parts = store.snapshot().parts("steps")
    key = next(iter(parts))
    (store.path / key).unlink()
    store.storage.fetch({key: parts[key]})
    assert [copy for copy in old if copy.exists()] == [store.path / key]


def test_grown_files_compaction_and_pruning(s3: str, tmp_path: Path) -> None:
    found = []
    for name, store in (("a", at(s3)), ("b", Store(tmp_path / "local"))):
        logs = tmp_path / "logs"
        shutil.rmtree(logs, ignore_errors=True)
        write_days(logs, 8, store.path)
        with (logs / "day02.jsonl").open("a") as log:
            log.write(STEP.format(100, 2))
        os.utime(logs / "day02.jsonl", (1_772_500_000, 1_772_500_000))
        assert [o.unchanged for o in ingest([logs], store, Options()).outcomes].count(False) == 1, (
            name
        )
        seen = [rows_of(store.path)["steps"]]
        merged = compact(store)
        assert merged > 0
        seen.append(rows_of(store.path)["steps"])
        assert prune(store, timedelta(days=3)).files > 0
        seen.append(rows_of(store.path)["steps"])
        later = datetime.now(UTC).replace(tzinfo=None) + timedelta(days=2)
        store.clear(later)
        # SeaweedFS lists a folder for a while after its last object has gone.
        left = {name for name in store.storage.folders() if store.storage.keys(name)}
        assert left == set(store.snapshot().batches)
        found.append(seen)
    assert found[0] == found[1]


def test_refusals_and_cut_answers_change_nothing(
    s3: str, s3_server: ObjectServer, tmp_path: Path
) -> None:
    logs = tmp_path / "logs"
    write_days(logs, 6)
    with through_proxy(s3_server) as faults:
        requests = iter(range(10_000))
        faults.refuse = lambda _method, _path: next(requests) % 7 == 3
        store = at(s3)
        for day in sorted(logs.iterdir()):
            ingest([day], store, Options())
        assert faults.refused > 3
        shutil.rmtree(store.path)
        store.path.mkdir()
        parts = iter(range(10_000))
        faults.cut = lambda method, path: (
            method == "GET" and path.endswith(".parquet") and next(parts) % 3 == 0
        )
        assert rows_of(store.path) == local_copy(logs, tmp_path / "local")
        assert faults.cuts > 0


def test_a_commit_whose_answer_is_lost_counts_once(
    s3: str, s3_server: ObjectServer, tmp_path: Path
) -> None:
    with through_proxy(s3_server) as faults:
        lost = iter([True])
        faults.lose = lambda method, path: (
            method == "PUT" and path.endswith("000000000002.json") and next(lost, False)
        )
        store = at(s3)
        write_days(tmp_path / "logs", 3, store.path)
        assert faults.lost == 1
        assert rows_of(store.path) == local_copy(tmp_path / "logs", tmp_path / "local")


def test_a_part_that_is_gone_or_changed_is_named_and_repaired(
    s3: str, tmp_path: Path, fabricobs: Run
) -> None:
    store = at(s3)
    write_days(tmp_path / "logs", 4, store.path)
    gone, changed = list(store.snapshot().parts("steps"))[:2]
    store.storage.delete([gone])
    store.storage.delete([changed])
    store.storage.create(changed, b"x" * 100)
    shutil.rmtree(store.path)
    asked = fabricobs("sql", "SELECT count(*) FROM steps", "--store", s3)
    assert asked.returncode == 3
    assert f"store {s3}: " in asked.stderr and "verify --store" in asked.stderr
    found = fabricobs("verify", "--store", s3)
    assert found.returncode == 2 and gone in found.stdout and changed in found.stdout
    assert fabricobs("verify", "--store", s3, "--repair").returncode == 1
    ingest([tmp_path / "logs"], store, Options())
    assert rows_of(store.path) == local_copy(tmp_path / "logs", tmp_path / "local")


class TestErrors:
    """One line that names the location and says what to do."""

    @pytest.mark.parametrize(
        ("variables", "words"),
        [
            ({"AWS_SECRET_ACCESS_KEY": "wrong"}, "AWS_SECRET_ACCESS_KEY"),
            ({"AWS_ENDPOINT": "http://127.0.0.1:1"}, "AWS_ENDPOINT"),
        ],
        ids=["credentials", "connection"],
    )
    def test_of_the_server(
        self, s3: str, variables: dict[str, str], words: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(objects, "_RETRIES", 1)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(StorageError) as told:
            at(s3).create()
        assert str(told.value).startswith(f"{s3}: ") and words in str(told.value)
        assert "\n" not in str(told.value)

    def test_of_an_address_without_a_store(self, s3: str, fabricobs: Run) -> None:
        done = fabricobs("sql", "SELECT 1", "--store", s3)
        assert done.returncode == 3
        assert f"{s3}: no store here" in done.stderr and len(done.stderr.splitlines()) == 1

    def test_of_an_address_that_is_too_long(self) -> None:
        with pytest.raises(UserError, match="shorter prefix"):
            place_of(Path("s3://bucket") / ("x" * 300))


def test_the_configuration_names_an_address(
    s3: str, tmp_path: Path, fabricobs: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_days(tmp_path / "logs", 1)
    named = tmp_path / "fabricobs.toml"
    named.write_text(f'store = "{s3}"\n')
    assert fabricobs("ingest", tmp_path / "logs", "--config", named).returncode == 0
    asked = fabricobs("sql", "SELECT step FROM steps", "--config", named, "--format", "csv")
    assert asked.stdout.split() == ["step", "1"]
    assert s3 in fabricobs("config", "--config", named).stdout
    # Found in the current directory it is not trusted: it sends data elsewhere.
    told = fabricobs("config", cwd=tmp_path)
    assert "ignored store" in told.stderr and s3 not in told.stdout
