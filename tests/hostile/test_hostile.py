"""Every hostile case, read through the command line beside good files."""

import shutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pyarrow.parquet as pq
import pytest

import hostile
from conftest import ROOT
from hostile.case import CASES, EXIT_CODES, MOST_MEMORY, Case
from hostile.measured import Measured, run_measured

pytestmark = pytest.mark.slow

for _module in iter_modules(hostile.__path__):
    if not _module.name.startswith("test_"):
        import_module(f"hostile.{_module.name}")

# One file or more for every way to collect rows; read before the hostile files and after them.
_BEFORE = (
    "nccl/node01.log",
    "steps/node01.jsonl.gz",
    "steps/node04.parquet",
    "switches/leaf01/show_pfc_counters.txt.gz",
)
_AFTER = (
    "ethtool/node01/ethtool.txt.gz",
    "inspector/node01-pid57071.log.gz",
    "spines/spine02/FourHundredGigE1_0_1.csv",
    "steps/node02.csv",
    "switches/leaf01/show_queue_counters.txt.gz",
)
_MOVES = {"path", "modified"}

Rows = dict[str, list[str]]


def copy_good_files(folder: Path) -> None:
    for place, names in (("a_good", _BEFORE), ("z_good", _AFTER)):
        for name in names:
            target = folder / place / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / "sample_data" / "logs" / name, target)


def parts_of(store: Path, table: str) -> Iterator[dict[str, object]]:
    for part in sorted(store.glob(f"*/{table}.parquet")):
        with pq.ParquetFile(part) as file:
            yield from file.read().to_pylist()


def good_rows(store: Path) -> Rows:
    """Return by table the rows of the good files, as sorted texts."""
    good = {
        row["file_id"]
        for row in parts_of(store, "files")
        if "_good/" in str(row["path"]) and row["problem"] is None
    }
    tables = {part.stem for part in store.glob("*/*.parquet")}
    rows = {
        table: sorted(
            repr({name: value for name, value in row.items() if name not in _MOVES})
            for row in parts_of(store, table)
            if row.get("file_id") in good
        )
        for table in tables
    }
    return {table: found for table, found in rows.items() if found}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[Measured, Rows]:
    """An ingest of the good files alone: the rows it gives, and what it takes."""
    folder = tmp_path_factory.mktemp("alone")
    copy_good_files(folder / "logs")
    done = run_measured(folder, "ingest", folder / "logs", "--store", folder / "store")
    assert done.code == 0, done.stderr
    rows = good_rows(folder / "store")
    assert len(rows["files"]) == len(_BEFORE) + len(_AFTER)
    return done, rows


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_hostile_file_costs_no_other_file_anything(
    case: Case, alone: tuple[Measured, Rows], tmp_path: Path
) -> None:
    logs, store = tmp_path / "logs", tmp_path / "store"
    copy_good_files(logs)
    (logs / "m_hostile").mkdir()
    case.write(logs / "m_hostile")

    done = run_measured(tmp_path, "ingest", logs, "--store", store)

    cpu_seconds = done.cpu_seconds - alone[0].cpu_seconds
    print(f"{case.name:48} {case.end:8} {cpu_seconds:5.2f} s {done.peak_bytes >> 20:4} MiB")  # -rP
    assert done.code == EXIT_CODES[case.end], done.stderr
    assert "Traceback" not in done.stderr
    notes = [line for line in done.stderr.splitlines() if "/m_hostile/" in line]
    if case.end == "read":
        assert not notes
    else:
        assert any(case.says in note for note in notes), done.stderr
    assert good_rows(store) == alone[1]
    files = list(parts_of(store, "files"))
    for file in files:
        assert file["lines"] == file["parsed"] + file["ignored"] + file["unparsed"]
    given = sum(file["rows"] for file in files if "/m_hostile/" in file["path"])
    if case.rows is not None or case.end == "refused":
        assert given == (case.rows or 0)
    elif case.end in {"cut", "cells"}:
        assert given > 0
    assert not list((store / ".incoming").glob("*"))
    assert done.peak_bytes < MOST_MEMORY
