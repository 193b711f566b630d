"""A value that its column cannot hold is that cell's problem: null, and told; never another value.

One conversion serves all readers of records: what CSV, JSON lines and Parquet give is the same.
"""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conftest import Run
from fabricobs.formats.context import Context
from fabricobs.formats.reading import read_file
from fabricobs.formats.recognition.catalogue import load_catalogue
from fabricobs.formats.recognition.format import Recognised
from fabricobs.formats.records import blocks
from fabricobs.formats.rows import Rows

CATALOGUE = load_catalogue()
HIGH, HIGHEST, BEYOND = 1 << 63, (1 << 64) - 1, 1 << 64
# A value, and what a column of whole numbers keeps of it: a number, or why it is null.
WHOLE = [
    (7, 7), (-7, -7), ("7", 7), ("1,234", 1234), (7.0, 7), ("7.0", 7), ("7e2", 700),
    ((1 << 53) + 1, (1 << 53) + 1), (f"{(1 << 53) + 1}.0", (1 << 53) + 1), (HIGH - 1, HIGH - 1),
    (7.9, "7.9 is no whole number"), ("7.9", "7.9 is no whole number"),
    (-0.5, "-0.5 is no whole number"), ("abc", "abc is no whole number"),
    ("0x1f", "0x1f is no whole number"), (True, "rue is no whole number"),
    (HIGH, f"{HIGH} does not fit 64 bits"), (str(HIGHEST), f"{HIGHEST} does not fit 64 bits"),
    (str(BEYOND), f"{BEYOND} does not fit 64 bits"), (1e30, "1e+30 does not fit 64 bits"),
    ("-", None), ("n/a", None), ("", None), (float("nan"), None),
]  # fmt: skip
READERS = ("csv", "jsonl", "parquet")


def _arrow_type(value: Any) -> pa.DataType | None:
    return pa.uint64() if isinstance(value, int) and HIGH <= value < BEYOND else None


def write(path: Path, reader: str, columns: dict[str, list[Any]]) -> None:
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if reader == "parquet":
        table = {name: pa.array(cells, _arrow_type(cells[0])) for name, cells in columns.items()}
        pq.write_table(pa.table(table), path)
    elif reader == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        cells = [[f'"{v}"' if "," in str(v) else str(v) for v in row.values()] for row in rows]
        path.write_text("".join(f"{','.join(row)}\n" for row in [[*columns], *cells]))


def read(path: Path, reader: str, name: str) -> tuple[dict[str, list[dict[str, Any]]], str | None]:
    rows = Rows()
    shown = Recognised(reader, (CATALOGUE.formats[name],))
    read_file(path, shown, Context("f"), rows, lambda: None)
    tables = {table: part.to_pylist() for table, part in rows.drain()}
    return tables, rows.unfit.of_file("f")


def steps_of(values: list[Any]) -> dict[str, list[Any]]:
    count = len(values)
    return {
        "step": list(range(count)), "rank": [0] * count, "step_time_ms": [1.5] * count,
        "stage": values,
    }  # fmt: skip


@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(("value", "kept"), WHOLE, ids=str)
def test_a_whole_number(
    reader: str, by_columns: bool, value: Any, kept: Any, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(blocks, "PART_BYTES", 1 if by_columns else 1 << 20)
    write(tmp_path / "steps", reader, steps_of([value, value, value]))
    tables, told = read(tmp_path / "steps", reader, "step_records")
    expected = kept if isinstance(kept, int) else None
    assert [row["stage"] for row in tables["steps"]] == [expected] * 3
    if isinstance(kept, str):
        assert told is not None
        assert kept in told
        assert told.endswith(": null, as in 2 more cells of it")
    else:
        assert told is None


@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize("column", ["stage", "loss"])
def test_a_number_beyond_what_a_double_holds(
    column: str, by_columns: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "PART_BYTES", 1 if by_columns else 1 << 20)
    write(tmp_path / "steps", "jsonl", steps_of([1]) | {column: [10**400]})
    tables, told = read(tmp_path / "steps", "jsonl", "step_records")
    assert tables["steps"][0][column] is None
    assert told is not None
    assert "does not fit" in told


@pytest.mark.parametrize("value", [HIGH, HIGHEST])
def test_a_counter_of_64_bits_without_a_sign_is_kept_as_the_negative_of_its_bits(
    value: int, tmp_path: Path
) -> None:
    columns = {
        "SaveTimeUTC": [1772442000500], "DeviceName": ["spine01"], "PortName": ["P1"],
        "InPkts": [1], "InOctets": [value], "OutPkts": [80], "OutOctets": [327680],
    }  # fmt: skip
    write(tmp_path / "ports", "csv", columns)
    tables, told = read(tmp_path / "ports", "csv", "port_csv")
    assert [row["rx_bytes"] for row in tables["port_samples"]] == [value - (1 << 64)]
    assert told is None


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("column", "value", "told"),
    [
        ("loss", "abc", "loss abc is no number"),
        ("timestamp", "yesterday", "ts yesterday is no time"),
        ("step_time_ms", "fast", "step_time_ms fast is no number"),
    ],
)
def test_a_text_that_is_none_of_its_type(
    reader: str, column: str, value: str, told: str, tmp_path: Path
) -> None:
    columns = steps_of([0, 1]) | {"step_time_s": [1.5, 1.5], column: ["2026-03-02T09:00:41", value]}
    columns[column][0] = {"loss": "2.5", "step_time_ms": "1.5"}.get(column, columns[column][0])
    write(tmp_path / "steps", reader, columns)
    tables, note = read(tmp_path / "steps", reader, "step_records")
    lost = note or ""
    if column == "step_time_ms":  # another column gives it: nothing is lost
        assert (lost, [row[column] for row in tables["steps"]]) == ("", [1.5, 1500.0])
    else:
        assert told in lost
        assert tables["steps"][1]["ts" if column == "timestamp" else column] is None


def test_every_column_is_told_once_with_its_count(fabricobs: Run, tmp_path: Path) -> None:
    logs, store = tmp_path / "logs", tmp_path / "store"
    logs.mkdir()
    rows = "".join(f"{step},0,10.5,{step}.5,x{step}\n" for step in range(1, 6))
    (logs / "steps.csv").write_text(f"step,rank,step_time_ms,stage,loss\n{rows}")
    done = fabricobs("ingest", logs, "--store", store)
    assert done.returncode == 1
    assert "line 2: stage 1.5 is no whole number: null, as in 4 more cells of it" in done.stderr
    assert "line 2: loss x1 is no number: null, as in 4 more cells of it" in done.stderr
    kept = fabricobs(
        "sql", "SELECT count(*), count(stage), count(loss), max(step) FROM steps", "--store", store,
        "--format", "csv",
    )  # fmt: skip
    assert kept.stdout.splitlines()[1] == "5,0,0,5"


def test_an_integer_that_wraps_is_no_step(fabricobs: Run, tmp_path: Path) -> None:
    logs, store = tmp_path / "logs", tmp_path / "store"
    logs.mkdir()
    lines = [{"step": step, "stage": HIGHEST, "rank": 0, "step_time_ms": 1.5} for step in (1, HIGH)]
    (logs / "steps.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = fabricobs("ingest", logs, "--store", store)
    assert f"stage {HIGHEST} does not fit 64 bits" in done.stderr
    found = fabricobs("sql", "SELECT step, stage FROM steps", "--store", store, "--format", "csv")
    assert found.stdout.splitlines()[1:] == ["1,"]
    reason = fabricobs("sql", "SELECT reason FROM unparsed", "--store", store, "--format", "csv")
    assert f"step {HIGH} does not fit 64 bits" in reason.stdout
