"""Every query of queries/: its header, its cases in tests/queries/, and DuckDB alone."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from fabricobs.querying import StoredQuery, stored_queries
from fabricobs.store.arrow import table_schema
from fabricobs.store.parts import Store
from fabricobs.store.sandbox import check_read_only
from fabricobs.store.session import init_script, open_session
from fabricobs.store.tables import PORT_COUNTERS, PRIORITY_COUNTERS

CASES = Path(__file__).parent / "queries"
QUERIES = stored_queries()
COUNTERS = {"port_samples": PORT_COUNTERS, "priority_samples": PRIORITY_COUNTERS}

Row = dict[str, Any]


def _cases() -> Iterator[Any]:
    for path in sorted(CASES.glob("*.toml")):
        for case in tomllib.loads(path.read_text(encoding="utf-8"))["case"]:
            yield pytest.param(path.stem, case, id=f"{path.stem}: {case['says']}")


def _store(path: Path, tables: Mapping[str, Sequence[Row]]) -> Path:
    store = Store(path)
    store.create()
    store.append(
        "case",
        {
            table: pa.Table.from_pylist(list(rows), schema=table_schema(table))
            for table, rows in tables.items()
        },
    )
    return path


def _tables(case: Row) -> dict[str, list[Row]]:
    """Return the rows of a case: what they share filled in, a line number, plain counters."""
    common = case.get("common", {})
    tables = {
        table: [{"line": number, **common.get(table, {}), **row} for number, row in enumerate(rows)]
        for table, rows in case["rows"].items()
    }
    for table, rows in tables.items():
        known = set(table_schema(table).names)
        for row in rows:
            if "line" not in known:
                del row["line"]
            assert row.keys() <= known, f"{table} has no column {row.keys() - known}"
    return {**tables, "counter_info": _counter_info(tables)}


def _counter_info(tables: Mapping[str, list[Row]]) -> list[Row]:
    """Return the case's own statements, and 64-bit totals for the formats it says nothing of."""
    given = tables.get("counter_info", [])
    told = {(row["format"], row["table_name"]) for row in given}
    used = {(row["format"], table) for table in COUNTERS for row in tables.get(table, [])}
    plain = {"width": 64, "overflow": "wrap", "kind": "counter"}
    return given + [
        {"format": format_, "table_name": table, "counter": column.name, **plain}
        for format_, table in sorted(used - told)
        for column in COUNTERS[table]
    ]


def _answer(connection: duckdb.DuckDBPyConnection, query: StoredQuery) -> list[Row]:
    cursor = connection.execute(query.sql)
    assert cursor.description is not None
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _same(value: object) -> object:
    """Return what a cell is compared with: "NULL" stands for null, which TOML does not have."""
    if value == "NULL":
        return None
    return pytest.approx(value, rel=1e-6) if isinstance(value, float) else value


@pytest.mark.parametrize(("name", "case"), list(_cases()))
def test_case(name: str, case: Row, tmp_path: Path) -> None:
    query = QUERIES[name]
    store = _store(tmp_path / "store", _tables(case))
    rows = _answer(open_session(store, query.sql, keep=True), query)
    expected = case["expected"]
    compared = [{c: row[c] for c in want} for row, want in zip(rows, expected, strict=False)]
    assert compared == [{c: _same(value) for c, value in want.items()} for want in expected]
    assert len(rows) == len(expected), rows[len(expected) :]


def test_every_question_has_a_case_and_every_case_a_question() -> None:
    assert {path.stem for path in CASES.glob("*.toml")} == QUERIES.keys()


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("empty") / "store"
    Store(store).create()
    return store


@pytest.mark.parametrize("name", list(QUERIES))
def test_header_names_what_duckdb_returns(name: str, empty: Path) -> None:
    query = QUERIES[name]
    assert query.question.endswith("?")
    assert query.example == f"fabricobs query {name}"
    assert all(meaning for _, meaning in query.columns)
    cursor = open_session(empty, query.sql, keep=True).execute(query.sql)
    assert cursor.description is not None
    assert [column for column, _ in query.columns] == [c[0] for c in cursor.description]
    assert cursor.fetchall() == []


@pytest.mark.parametrize("name", list(QUERIES))
def test_reads_only(name: str) -> None:
    check_read_only(duckdb.connect(), QUERIES[name].sql)


def test_plain_duckdb_answers_every_question(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(empty)
    connection = duckdb.connect()
    connection.execute(init_script(Path()))
    for query in QUERIES.values():
        assert _answer(connection, query) == [], query.name


def test_a_case_with_an_unknown_column_is_refused() -> None:
    with pytest.raises(AssertionError, match="no column"):
        _tables({"rows": {"steps": [{"stepp": 1}]}})


def test_times_of_cases_are_naive() -> None:
    for path in CASES.glob("*.toml"):
        for case in tomllib.loads(path.read_text(encoding="utf-8"))["case"]:
            cells = [v for rows in case["rows"].values() for row in rows for v in row.values()]
            zoned = [cell for cell in cells if isinstance(cell, datetime) and cell.tzinfo]
            assert not zoned, f"{path.name}: times are UTC, without a zone"
