"""Upkeep: merging and pruning lose nothing, whoever is killed or reads meanwhile."""

import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from small_store import STEP, steps, write_days
from test_ingest import rows_of

from conftest import Run
from fabricobs.diagnosis.run import diagnose
from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.report.history import keep_findings
from fabricobs.store import compaction, upkeep
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session
from fabricobs.store.tables import TABLES

pytestmark = pytest.mark.slow

LATER = datetime.now(UTC).replace(tzinfo=None) + timedelta(hours=2)
DAYS = 12


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
    assert upkeep.compact(store, LATER) == DAYS - 1
    assert len(store.batches()) == 2
    assert rows_of(store.path) == before | {"counter_info": rows_of(store.path)["counter_info"]}
    report = ingest([store.path.parent / "logs"], store, Options())
    assert not report.read, "what is in the store is known by its account"
    assert upkeep.compact(store, LATER) == 0


def test_files_that_may_still_grow_are_left_alone(store: Store, tmp_path: Path) -> None:
    old = set(store.batches())
    for number in range(2):
        (tmp_path / f"{number}.jsonl").write_text(STEP.format(100 + number, DAYS))
        ingest([tmp_path / f"{number}.jsonl"], store, Options())
    fresh = set(store.batches()) - old
    assert upkeep.compact(store) == DAYS - 1
    assert fresh < set(store.batches())


def test_a_log_that_grows_after_all_takes_the_place_of_its_rows(
    store: Store, tmp_path: Path
) -> None:
    log = tmp_path / "grows.jsonl"
    log.write_text(STEP.format(DAYS + 1, DAYS))
    ingest([log], store, Options())
    upkeep.compact(store, LATER)
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
    assert upkeep.compact(store, LATER) >= 3
    keep_findings(diagnose(store.path, gpu_hour_price=2.0), store.path)
    rows = open_session(store.path).sql("SELECT count(*) FROM findings").fetchall()
    assert rows == [(4 * len(found.findings),)]


def test_pruning_takes_old_rows_and_keeps_their_accounts(store: Store, tmp_path: Path) -> None:
    pruned = upkeep.prune(store, timedelta(days=4), LATER)
    assert pruned.files == DAYS - 5
    assert pruned.freed_bytes > 0
    assert steps(store) == list(range(8, 13))
    session = open_session(store.path)
    assert session.sql("SELECT count(*), count(pruned) FROM files").fetchall() == [(DAYS, DAYS - 5)]
    assert not ingest([tmp_path / "logs"], store, Options()).read, "pruned is not read again"
    assert upkeep.prune(store, timedelta(days=4), LATER).files == 0
    assert steps(store) == list(range(8, 13))


def test_the_last_that_is_known_of_a_device_stays(store: Store, tmp_path: Path) -> None:
    cables = tmp_path / "cables.csv"
    cables.write_text("device,port,remote_device,remote_port\nleaf01,Ethernet0,node01,mlx5_0\n")
    os.utime(cables, (0, 0))
    ingest([cables], store, Options())
    links = "SELECT count(*) FROM links"
    assert open_session(store.path).sql(links).fetchall() == [(1,)]
    upkeep.prune(store, timedelta(days=4), LATER)
    assert open_session(store.path).sql(links).fetchall() == [(1,)]


@pytest.mark.parametrize("missing", ["nothing", "one old batch", "all old batches"])
def test_a_compaction_cut_anywhere_is_finished(store: Store, missing: str) -> None:
    before = steps(store)
    old = [name for name in store.batches() if name != "schema"]
    kept = store.path.parent / "kept"
    kept.mkdir()
    for name in old:
        shutil.copytree(store.path / name, kept / name)
    upkeep.compact(store, LATER)
    (merged,) = [name for name in store.batches() if name != "schema"]
    back = {"nothing": old, "one old batch": old[1:], "all old batches": []}[missing]
    for name in back:
        shutil.copytree(kept / name, store.path / name)
    (store.path / merged / "replaces.json").write_text(str(old).replace("'", '"'))
    with compaction.reading(store.path):
        assert steps(store) == before
    assert store.batches() == sorted([merged, "schema"])


def test_who_reads_is_waited_for(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "_LONGEST_WAIT_S", 0.3)
    with (
        compaction.reading(store.path),
        pytest.raises(compaction.BusyError, match="somebody has been reading"),
    ):
        upkeep.compact(store, LATER)
    assert upkeep.compact(store, LATER) == DAYS - 1


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
    assert set(TABLES) <= {p.stem for p in (store.path / "schema").iterdir()}


def test_a_store_of_an_older_version_lacks_columns_and_is_read(tmp_path: Path) -> None:
    write_days(tmp_path / "logs", 2, tmp_path / "store")
    for part in (tmp_path / "store").glob("*/steps.parquet"):
        older = pq.read_table(part).drop_columns(["samples"])
        pq.write_table(older, part)
    rows = open_session(tmp_path / "store").sql("SELECT step, samples FROM steps ORDER BY step")
    assert rows.fetchall() == [(1, None), (2, None)]
    assert diagnose(tmp_path / "store").failures == ()
