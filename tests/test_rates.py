"""Rises of counters: what a diagnosis works out once is what the plain definition gives."""

import random
from collections import Counter
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
    at = rng.choice([0, 7, -1, 2**32 - 1, 2**32 - 50, 2**32 - 50])
    moves, jumps = rng.random() < 0.5, rng.random() < 0.3

    def draw() -> int | None:
        nonlocal at
        if moves:
            at = (at + rng.randint(0, 100)) % 2**32
        if moves and jumps:
            at = rng.choice([at, rng.randint(0, 2**32 - 1)])
        return None if moves and jumps and rng.random() < 0.1 else at

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


def _breaks(rows: Rows) -> Counter[tuple[Any, ...]]:
    """Walk the samples of each series in order, as the query says what breaks."""
    rules: dict[Any, Any] = {(r["format"], r["counter"]): r for r in rows["counter_info"]}
    told: dict[tuple[Any, ...], dict[datetime, int]] = {}
    for row in rows["port_samples"]:
        named = row["job"], row["format"], row["device"], row["port"]
        ts: Any = row["ts"]
        for counter in row.keys() & {counter for _, counter in rules}:
            value: Any = row[counter]
            if ts is not None and value is not None and row["device"] is not None:
                moments = told.setdefault((*named, counter), {})
                moments[ts] = max(value, moments.get(ts, value))
    found: Counter[tuple[Any, ...]] = Counter()
    for (_, format_, device, _, counter), moments in told.items():
        rule = rules.get((format_, counter), {"kind": "gauge"})
        if rule["kind"] in {"delta", "gauge"}:
            continue
        before, last = None, None
        for ts, value in sorted(moments.items()):
            what = _break(rule, before, value, (ts - last).seconds if last else 0)
            found[device, counter, what, format_] += 1
            before, last = value, ts
    return Counter({key: times for key, times in found.items() if key[2] is not None})


def _break(rule: dict[str, Any], before: int | None, value: int, seconds: int) -> str | None:
    most = 2 ** rule["width"]
    if value < 0:
        return "nonsense"
    if rule["overflow"] == "saturate" and value == most - 1:
        return "stopped"
    if before is None or before < 0 or value >= before:
        return None
    near = before > 0.9 * most and value + most - before <= 18e6 * seconds
    return "wrapped" if rule["overflow"] == "wrap" and rule["width"] == 32 and near else "reset"


@pytest.mark.parametrize("seed", range(6))
def test_counters_that_break_are_those_of_a_walk_through_all_samples(
    seed: int, make_store: Callable[[Rows], Path]
) -> None:
    rows = _drawn(random.Random(seed), "port_samples")
    asked = (ROOT / "queries" / "evidence" / "counter_breaks.sql").read_text()
    with closing(open_session(make_store(rows), asked)) as session:
        told = session.execute(
            f"SELECT device, counter, what, source, times FROM ({asked})"
        ).fetchall()
    assert Counter({(*key, what): times for *key, what, times in told}) == _breaks(rows)


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
