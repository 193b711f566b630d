"""Rises of counters: what a diagnosis works out once is what the plain definition gives."""

import random
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT, Rows
from fabricobs.store.session import open_session
from fabricobs.store.tables import TABLES

BEGIN = datetime(2026, 3, 2, 8)


def _drawn(rng: random.Random, table: str) -> Rows:
    """Draw samples of a few series: counters that rest, move, reset, stop, come late or twice."""
    counters = [column.name for column in TABLES[table].columns if column.is_counter]
    asked = rng.sample(counters, 5)
    info = [
        {"table_name": table, "format": format_, "counter": counter, "unit": "", "width": width,
         "kind": rng.choice(["total", "total", "delta", "gauge"]), "overflow": overflow}
        for format_ in ("a", "b")
        for counter in asked[:4]  # of the last nothing says how it counts
        for width, overflow in [rng.choice([(64, "wrap"), (32, "wrap"), (32, "saturate")])]
    ]  # fmt: skip
    rows: list[dict[str, Any]] = []
    clocks = [sorted(rng.sample(range(60), rng.randint(1, 9))) for _ in range(2)]
    for number in range(rng.randint(1, 8)):
        key: dict[str, Any] = {
            "job": rng.choice([None, "j"]), "format": rng.choice("abc"),
            "device": rng.choice([None, "leaf1", "leaf2"]), "port": f"p{number % 3}",
        }  # fmt: skip
        if table == "priority_samples":
            key |= {"priority": rng.choice([None, 3]), "queue": rng.choice([None, "UC3"])}
        draws = {counter: _series(rng) for counter in asked if rng.random() < 0.8}
        for seconds in rng.choice(clocks):
            row = key | {"ts": BEGIN + timedelta(seconds=seconds), "ts_source": "line"}
            row |= {counter: draw() for counter, draw in draws.items()}
            if rng.random() < 0.03:
                row["ts"] = None
            if rng.random() < 0.03:
                row["ts_source"] = rng.choice([None, "mtime"])
            rows += [row] * rng.choice([1, 1, 1, 2])
            if rng.random() < 0.05:  # counters of a dump in two files
                rows.append(key | {"ts": row["ts"], "ts_source": "line"})
    rng.shuffle(rows)
    return {table: rows, "counter_info": info}


def _series(rng: random.Random) -> Callable[[], int | None]:
    at = rng.choice([0, 0, 7, -1, 2**32 - 1, 2**32 - 50])
    moves = rng.random() < 0.5

    def draw() -> int | None:
        nonlocal at
        if moves:
            at = rng.choice([at, at + rng.randint(1, 100), rng.randint(0, 2**32 - 1)])
        return None if moves and rng.random() < 0.1 else at

    return draw


@pytest.mark.parametrize("table", ["port_samples", "priority_samples"])
@pytest.mark.parametrize("seed", range(15))
def test_rates_worked_out_once_are_those_of_the_plain_definition(
    seed: int, table: str, make_store: Callable[[Rows], Path]
) -> None:
    store = make_store(_drawn(random.Random(f"{seed} {table}"), table))
    rates = table.replace("samples", "rates")
    with (
        closing(open_session(store, rates)) as plain,
        closing(open_session(store, rates, keep=True)) as kept,
    ):
        columns = plain.table(rates).columns
        wanted = plain.execute(f"FROM {rates} ORDER BY ALL").fetchall()
        assert sorted(kept.table(rates).columns) == sorted(columns)
        asked = ", ".join(columns)
        assert kept.execute(f"SELECT {asked} FROM {rates} ORDER BY ALL").fetchall() == wanted
    assert wanted or seed


@pytest.mark.parametrize("table", ["port", "priority"])
def test_a_view_of_the_site_s_own_content_is_what_a_diagnosis_reads(
    make_store: Callable[[Rows], Path], tmp_path: Path, table: str
) -> None:
    store = make_store(_drawn(random.Random(1), f"{table}_samples"))
    own = tmp_path / "own" / "queries" / "views" / f"2_{table}_rates.sql"
    own.parent.mkdir(parents=True)
    packaged = (ROOT / "queries" / "views" / own.name).read_text()
    own.write_text(
        f"{packaged}\nCREATE OR REPLACE VIEW {table}_rates_of_the_site AS SELECT 1 AS one;"
    )
    with closing(open_session(store, extra=(tmp_path / "own",), keep=True)) as session:
        assert session.sql(f"SELECT one FROM {table}_rates_of_the_site").fetchall() == [(1,)]
