"""Upkeep: merging and pruning lose nothing, whoever is killed or reads meanwhile."""

import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from small_store import STEP, steps, write_days
from test_ingest import rows_of

from conftest import Run
from fabricobs.diagnosis.run import diagnose
from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.report.history import keep_findings
from fabricobs.store import upkeep
from fabricobs.store.parts import Store
from fabricobs.store.session import init_script, open_session
from fabricobs.store.verification import rebuild

pytestmark = pytest.mark.slow

DAYS = 12


def later() -> datetime:
    """Two hours from now, however long the tests before took."""
    return datetime.now(UTC).replace(tzinfo=None) + timedelta(hours=2)


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve days, a log of one step a day, each a batch of its own."""
    folder = tmp_path_factory.mktemp("days")
    write_days(folder / "logs", DAYS, folder / "store")
    return folder


@pytest.fixture
def store(days: Path, tmp_path: Path) -> Store:
    """A copy of the store of those days, beside a copy of its logs."""
    shutil.copytree(days, tmp_path, dirs_exist_ok=True)
    return Store(tmp_path / "store")


def test_merging_changes_no_row(store: Store) -> None:
    before = rows_of(store.path)
    assert upkeep.compact(store, later()) == DAYS - 1
    assert len(store.snapshot().batches) == 1
    assert rows_of(store.path) == before | {"counter_info": rows_of(store.path)["counter_info"]}
    report = ingest([store.path.parent / "logs"], store, Options())
    assert not report.read, "what is in the store is known by its account"
    assert upkeep.compact(store, later()) == 0


def test_files_that_may_still_grow_are_left_alone(store: Store, tmp_path: Path) -> None:
    old = set(store.snapshot().batches)
    for number in range(2):
        (tmp_path / f"{number}.jsonl").write_text(STEP.format(100 + number, DAYS))
        ingest([tmp_path / f"{number}.jsonl"], store, Options())
    fresh = set(store.snapshot().batches) - old
    assert upkeep.compact(store) == DAYS - 1
    assert fresh < set(store.snapshot().batches)


def test_a_log_that_grows_after_all_takes_the_place_of_its_rows(
    store: Store, tmp_path: Path
) -> None:
    log = tmp_path / "grows.jsonl"
    log.write_text(STEP.format(DAYS + 1, DAYS))
    ingest([log], store, Options())
    upkeep.compact(store, later())
    with log.open("a") as file:
        file.write(STEP.format(DAYS + 2, DAYS))
    ingest([log], store, Options())
    assert steps(store) == list(range(1, DAYS + 3))


def test_merged_findings_are_still_known(sample_store: Path, tmp_path: Path) -> None:
    store = Store(Path(shutil.copytree(sample_store, tmp_path / "own")))
    found = diagnose(store.path)
    for kind in range(4):
        changed = diagnose(store.path, gpu_hour_price=float(kind))
        keep_findings(changed, store.path)
    assert upkeep.compact(store, later()) >= 3
    keep_findings(diagnose(store.path, gpu_hour_price=2.0), store.path)
    rows = open_session(store.path, "findings").sql("SELECT count(*) FROM findings").fetchall()
    assert rows == [(4 * len(found.findings),)]


def test_pruning_takes_old_rows_and_keeps_their_accounts(store: Store, tmp_path: Path) -> None:
    pruned = upkeep.prune(store, timedelta(days=4), later())
    assert pruned.files == DAYS - 5
    assert pruned.freed_bytes > 0
    assert steps(store) == list(range(8, 13))
    session = open_session(store.path, "files")
    assert session.sql("SELECT count(*), count(pruned) FROM files").fetchall() == [(DAYS, DAYS - 5)]
    assert not ingest([tmp_path / "logs"], store, Options()).read, "pruned is not read again"
    assert upkeep.prune(store, timedelta(days=4), later()).files == 0
    assert steps(store) == list(range(8, 13))


def test_the_last_that_is_known_of_a_device_stays(store: Store, tmp_path: Path) -> None:
    cables = tmp_path / "cables.csv"
    cables.write_text("device,port,remote_device,remote_port\nleaf01,Ethernet0,node01,mlx5_0\n")
    os.utime(cables, (0, 0))
    ingest([cables], store, Options())
    links = "SELECT count(*) FROM links"
    assert open_session(store.path, links).sql(links).fetchall() == [(1,)]
    upkeep.prune(store, timedelta(days=4), later())
    assert open_session(store.path, links).sql(links).fetchall() == [(1,)]


def test_who_began_to_read_keeps_what_was_there_for_an_hour(store: Store) -> None:
    rows = open_session(store.path, "steps").sql("SELECT step FROM steps ORDER BY step")
    upkeep.prune(store, timedelta(days=4))
    upkeep.compact(store, later() - timedelta(hours=2))
    assert rows.fetchall() == [(step,) for step in range(1, DAYS + 1)]
    assert steps(store) == list(range(8, DAYS + 1))


def test_what_nobody_reads_any_more_makes_room(store: Store) -> None:
    """An hour later plain Parquet tools see the rows that count, and no others."""
    upkeep.compact(store, later())
    assert len(list(store.path.glob("*/steps.parquet"))) == DAYS + 1
    store.clear(later())
    (part,) = store.path.glob("*/steps.parquet")
    assert pq.read_table(part)["step"].to_pylist() == list(range(1, DAYS + 1))


def test_of_two_compactions_one_counts(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second began before the first committed."""
    seen = store.snapshot()
    upkeep.compact(store, later())
    late = Store(store.path)
    monkeypatch.setattr(late, "snapshot", lambda: seen)
    assert upkeep.compact(late, later()) == 0
    assert steps(store) == list(range(1, DAYS + 1))


def test_a_row_is_read_once_while_its_file_is_being_replaced(tmp_path: Path) -> None:
    """Between the commit of a grown log and the rewriting of the batch it was in."""
    store = Store(tmp_path / "store")
    write_days(tmp_path / "logs", DAYS, store.path)
    log = tmp_path / "logs" / "day03.jsonl"
    with log.open("a") as file:
        file.write(STEP.format(99, 3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "settle", lambda store: None)
        ingest([tmp_path / "logs"], store, Options())
    assert steps(store) == [*range(1, DAYS + 1), 99]
    plain = duckdb.sql(init_script(store.path) + "SELECT count(*) FROM steps")
    assert plain.fetchall() == [(DAYS + 1,)]


def test_prune_beside_ingests(fabricobs: Run, store: Store, tmp_path: Path) -> None:
    """A watch that ingests and a prune that runs at the same time, over and over."""
    pruning = subprocess.Popen(
        [
            sys.executable, "-c",
            "import sys\nfrom datetime import *\nfrom pathlib import Path\n"
            "from fabricobs.store import upkeep\nfrom fabricobs.store.parts import Store\n"
            "store = Store(Path(sys.argv[1]))\n"
            "later = datetime.now(UTC).replace(tzinfo=None) + timedelta(hours=2)\n"
            "for _ in range(15):\n"
            "    upkeep.prune(store, timedelta(days=9), later)\n    upkeep.compact(store, later)\n",
            str(store.path),
        ],
        stderr=subprocess.PIPE,
    )  # fmt: skip
    log = tmp_path / "logs" / "grows.jsonl"
    for step in range(200, 215):
        with log.open("a") as file:
            file.write(STEP.format(step, DAYS))
        ingest([tmp_path / "logs"], store, Options())
    _, said = pruning.communicate(timeout=120)
    assert pruning.returncode == 0, said.decode()
    found = [step for step in steps(store) if step >= 3]
    assert found == [*range(3, DAYS + 1), *range(200, 215)]


def test_the_command_says_what_it_did(fabricobs: Run, store: Store) -> None:
    result = fabricobs("prune", "--keep", "4d", "--store", store.path)
    assert result.returncode == 0, result.stderr
    assert "Removed the rows of 7 files older than 4d" in result.stdout
    assert "small batches" in result.stdout
    assert fabricobs("prune", "--keep", "soon", "--store", store.path).returncode == 3


def test_a_store_of_an_older_version_lacks_columns_and_is_read(tmp_path: Path) -> None:
    write_days(tmp_path / "logs", 2, tmp_path / "store")
    for part in (tmp_path / "store").glob("*/steps.parquet"):
        older = pq.read_table(part).drop_columns(["samples"])
        pq.write_table(older, part)
    rebuild(tmp_path / "store")
    rows = open_session(tmp_path / "store", "steps").sql(
        "SELECT step, samples FROM steps ORDER BY step"
    )
    assert rows.fetchall() == [(1, None), (2, None)]
    assert diagnose(tmp_path / "store").failures == ()
