"""Whatever a store says is data: foreign stores are read or refused, and reach nothing outside."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fabricobs as in_python
from fabricobs.diagnosis.findings import Entity, Finding
from fabricobs.report.explanation import explain
from fabricobs.store import spill
from fabricobs.store.arrow import empty_table
from fabricobs.store.inspection import PartError
from fabricobs.store.parts import Store
from fabricobs.store.reading import reading
from fabricobs.store.session import open_session
from fabricobs.store.verification import rebuild
from tests.conftest import Rows, Run

COUNT = "SELECT count(*) AS n FROM steps"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    Store(tmp_path / "store").create()
    return tmp_path / "store"


def refused(fabricobs: Run, store: Path) -> str:
    """Ask a store that is not to be trusted; return the one line that refuses it."""
    told = fabricobs("sql", COUNT, "--store", store, "--format", "csv")
    assert (told.returncode, told.stdout) == (3, ""), told.stderr
    assert len(told.stderr.strip().splitlines()) == 1, told.stderr
    return told.stderr


@pytest.mark.parametrize(
    "name", ["a'b", 'a"b', "a*b", "a[b]c", "a?b", "a b", "zürich ☃", "{a,b}", "a;b", "-a", "a\nb"]
)
def test_a_store_of_any_name_is_asked(tmp_path: Path, name: str) -> None:
    Store(tmp_path / name).create()
    assert in_python.open(tmp_path / name).sql(COUNT).fetchall() == [(0,)]


def test_a_backslash_is_told(tmp_path: Path, fabricobs: Run) -> None:
    told = fabricobs("ingest", tmp_path, "--store", tmp_path / "a\\b")
    assert told.returncode == 3
    assert "backslash" in told.stderr


def test_a_link_to_a_store_is_followed(store: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(store)
    assert in_python.open(tmp_path / "link").sql(COUNT).fetchall() == [(0,)]


def _part(batch: Path, outside: Path) -> None:
    (batch / "steps.parquet").symlink_to(outside / "steps.parquet")


def _hidden(batch: Path, outside: Path) -> None:
    batch.with_name(".hidden").symlink_to(outside)


def _batch(batch: Path, outside: Path) -> None:
    batch.with_name("linked").symlink_to(outside)


def _pipe(batch: Path, outside: Path) -> None:
    os.mkfifo(batch / "steps.parquet")


@pytest.mark.parametrize("lead", [_part, _batch, _hidden, _pipe])
def test_a_part_that_leads_outside_is_refused(
    store: Path, tmp_path: Path, fabricobs: Run, lead: Callable[[Path, Path], None]
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    pq.write_table(empty_table("steps"), outside / "steps.parquet")
    (outside / "exchange.json").write_text("[]", encoding="utf-8")
    (store / "batch").mkdir()
    lead(store / "batch", outside)
    before = sorted(path.name for path in outside.iterdir())
    assert "a store holds plain files" in refused(fabricobs, store)
    for command in (("diagnose",), ("prune", "--keep", "1d"), ("ingest", tmp_path / "outside")):
        told = fabricobs(*command, "--store", store)
        assert told.returncode == 3, command
        assert "a store holds plain files" in told.stderr, command
    with pytest.raises(PartError):
        open_session(store)
    assert sorted(path.name for path in outside.iterdir()) == before


def put(store: Path, table: pa.Table) -> Path:
    """Put a part into a foreign store, whose log says that it is as it was written."""
    (store / "batch").mkdir()
    pq.write_table(table, store / "batch" / "steps.parquet")
    (store / "_log" / "000000000001.json").write_text(
        json.dumps(
            {
                "time": 0,
                "removes": [],
                "adds": [
                    {
                        "name": "batch",
                        "files": [],
                        "parts": {
                            "steps": [(store / "batch" / "steps.parquet").stat().st_size, ""]
                        },
                    }
                ],
            }
        )
    )
    return store / "batch" / "steps.parquet"


def test_a_part_that_is_no_parquet_is_named(store: Path, fabricobs: Run) -> None:
    part = put(store, empty_table("steps"))
    size = part.stat().st_size
    for text in (b"", b"PAR1" + b"\xff" * (size - 8) + b"PAR1", b"x" * size):
        part.write_bytes(text)
        assert "batch/steps.parquet" in refused(fabricobs, store)


@pytest.mark.parametrize(
    "column",
    [pa.array(["many"]), pa.array([1.5]), pa.array([[1]]), pa.array([{"a": 1}])],
    ids=["text", "double", "list", "struct"],
)
def test_a_part_of_other_types_is_named(store: Path, fabricobs: Run, column: pa.Array) -> None:
    put(store, pa.table({"step": column}))
    told = refused(fabricobs, store)
    assert "batch/steps.parquet" in told
    assert "column step" in told


def test_a_part_without_columns_or_with_more_is_read(store: Path) -> None:
    put(store, pa.table({"step": [1], "more": [2]}))
    (store / "batch" / "views.sql").write_text("DROP VIEW steps", encoding="utf-8")
    rows = in_python.open(store).sql("SELECT step, rank FROM steps").fetchall()
    assert rows == [(1, None)]


def test_odd_texts_are_data(make_store: Callable[[Rows], Path], fabricobs: Run) -> None:
    name = "/etc/../a'b;\x1b]0;x\x07\n$(id)"
    store = make_store({"files": [{"file_id": "1", "path": name, "formats": "x"}]})
    assert in_python.open(store).sql("SELECT path FROM files").fetchall() == [(name,)]
    assert fabricobs("diagnose", "--store", store).returncode in {0, 3}


def test_a_batch_of_an_odd_name_is_refused(make_store: Callable[[Rows], Path]) -> None:
    store = make_store({"files": [{"file_id": "1", "path": "/a", "formats": "x"}]})
    (batch,) = store.glob("given-*")
    batch.rename(store / "a'b; *[x]")
    assert "a'b; *[x]" in rebuild(store)[0]


def test_folders_that_are_no_batches_are_passed_over(store: Path) -> None:
    for number in range(500):
        (store / f"b{number}").mkdir()
        pq.write_table(empty_table("steps"), store / f"b{number}" / "steps.parquet")
    assert in_python.open(store).sql(COUNT).fetchall() == [(0,)]


def test_sql_in_a_kept_finding_is_not_run(store: Path, tmp_path: Path) -> None:
    finding = Finding(
        kind="straggler",
        entities=(Entity("host", host="a"),),
        severity="low",
        confidence=0.5,
        title="t",
        explanation="e",
        query=f"WITH x AS (COPY (SELECT 1) TO '{store}/x.csv') SELECT * FROM x",
    )
    assert "COPY" in explain(finding, store).with_sql
    assert not (store / "x.csv").exists()


class TestAccess:
    ROWS: ClassVar = {"steps": empty_table("steps")}

    def modes(self, store: Path) -> set[int]:
        found = (p for p in (store, *store.rglob("*")) if p.name != ".incoming")
        return {path.stat().st_mode & 0o777 for path in found}

    def test_a_store_is_private(self, store: Path) -> None:
        Store(store).append("batch", self.ROWS)
        with reading(store):
            assert self.modes(store) == {0o700, 0o600}

    def test_a_store_shared_by_its_directory_shares_new_batches(self, store: Path) -> None:
        store.chmod(0o750)
        Store(store).append("batch", self.ROWS)
        assert self.modes(next(store.glob("batch-*"))) == {0o750, 0o640}

    def test_a_stricter_umask_counts(self, store: Path) -> None:
        store.chmod(0o755)
        before = os.umask(0o077)
        try:
            Store(store).append("batch", self.ROWS)
        finally:
            os.umask(before)
        assert self.modes(next(store.glob("batch-*"))) == {0o700, 0o600}


class TestSpill:
    BIG = "CREATE TABLE x AS SELECT range AS a, md5(range::VARCHAR) AS b FROM range(1_000_000)"

    def test_what_spills_is_private_and_goes(
        self, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        monkeypatch.setattr(spill, "_directory_of", spill._directory_of.__wrapped__)
        with open_session(store, COUNT, keep=True, memory_mb=60) as session:
            session.execute(self.BIG)
            session.execute("CREATE TABLE y AS SELECT * FROM x ORDER BY b")
            directories = list(tmp_path.glob("fabricobs-spill-*"))
            assert {directory.stat().st_mode & 0o777 for directory in directories} == {0o700}
            assert list(tmp_path.rglob("*.tmp"))
        assert not list(tmp_path.rglob("*.tmp"))

    def test_what_a_killed_process_left_is_removed(
        self, tmp_path: Path, fabricobs: Run, store: Path
    ) -> None:
        left, held, foreign = (tmp_path / f"fabricobs-spill-{name}" for name in "abc")
        for directory in (left, held, foreign):
            directory.mkdir()
        descriptor = spill._lock(held)
        assert descriptor is not None
        if os.getuid() == 0:
            os.chown(foreign, 12345, 12345)
        told = fabricobs("sql", COUNT, "--store", store, env=os.environ | {"TMPDIR": str(tmp_path)})
        assert told.returncode == 0
        os.close(descriptor)
        kept = {held, foreign} if os.getuid() == 0 else {held}
        assert set(tmp_path.glob("fabricobs-spill-*")) == kept
