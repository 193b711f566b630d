"""What a diagnosis joins grows with the hosts, not with their square: rows are counted."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from conftest import Rows
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.run import diagnose
from fabricobs.store.arrow import table_schema
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session
from fabricobs.store.views import statements_of, view_scripts

pytestmark = pytest.mark.slow

START = datetime(2026, 3, 2, 9)
HOSTS_A_LEAF = 4
FEW, MANY = 12, 48
# Of four times the hosts a statement may pass on so many times the rows; a square passes on 16.
MOST_TIMES = 6
LEAST_ROWS = 500  # below, chance and what does not grow with the hosts rule
_BODY = re.compile(r"create\s+or\s+replace\s+view\s+(\w+)\s+AS\b", re.IGNORECASE)


def cluster(hosts: int) -> Rows:
    """Counters of NICs and leaves, cables, steps and collectives: each host read at its moments."""
    rows: Rows = {
        name: []
        for name in (
            *("port_samples", "priority_samples", "links", "port_status"),
            *("steps", "collectives", "nccl_ranks", "nccl_nics"),
        )
    }

    def add(table: str, file: str, **values: object) -> None:
        line = {"file_id": file, "line": len(rows[table]) + 1, "ts_source": "inline"}
        rows[table].append(line | values)

    for number in range(hosts):
        host, leaf = f"node{number:03d}", f"leaf{number // HOSTS_A_LEAF:02d}"
        own, port = f"Ethernet{number % HOSTS_A_LEAF * 8}", "ens1np0"
        begin = START + timedelta(milliseconds=370 * number)
        add("links", leaf, device=leaf, port=own, format="lldp", ts=START,
            remote_device=host, remote_port="ens1np0")  # fmt: skip
        add("port_status", leaf, device=leaf, port=own, ts=START, oper="up", speed_gbps=400.0)
        add("port_status", host, device=host, port=port, ts=START, oper="up", speed_gbps=400.0)
        add("nccl_ranks", host, host=host, rank=number, nranks=hosts, ts=START, pid=100 + number,
            comm="0xa", comm_id="0xb")  # fmt: skip
        add("nccl_nics", host, host=host, rank=number, nic="mlx5_0", nic_index=0, ts=START)
        for sample in range(12):
            sent = sample * (9 + number % 3) * 10**9
            for device, name, moment in (
                (host, port, begin + sample * timedelta(seconds=10)),
                (leaf, own, START + sample * timedelta(seconds=10)),
            ):
                told = {"device": device, "port": name, "ts": moment, "format": f"of {device[:4]}"}
                add("port_samples", device, **told, rx_bytes=sent, tx_bytes=sent, rx_errors=7,
                    rp_cnp_handled=50 * sample, np_cnp_sent=40 * sample)  # fmt: skip
                add("priority_samples", device, **told, priority=3, rx_bytes=sent, tx_bytes=sent,
                    pause_tx=9 * sample, pause_rx=9 * sample)  # fmt: skip
        for step in range(40):
            moment = START + timedelta(seconds=3 * step)
            add("steps", host, host=host, rank=number, step=step, ts=moment, step_time_ms=3000.0,
                compute_ms=2000.0, comm_ms=900.0)  # fmt: skip
            add("collectives", host, host=host, rank=number, seq=step, ts=moment, op="AllReduce",
                comm="0xa", bytes=10**9, nranks=hosts, duration_us=9e5)  # fmt: skip
    return rows


def stored(path: Path, rows: Rows) -> Path:
    """Make a store that holds the given rows."""
    store = Store(path)
    store.create()
    tables = {t: pa.Table.from_pylist(of, schema=table_schema(t)) for t, of in rows.items()}
    store.append("given", tables)
    return path


def cardinalities(node: dict[str, Any]) -> Iterator[int]:
    """Yield the rows that each operator of a plan passed on."""
    yield int(node["intermediate_rows"])
    for child in node.get("children", ()):
        yield from cardinalities(child)


def passed_on(session: Any, sql: str, limits: object = None) -> int:
    """Run a statement and return the rows that its operators passed on, all together."""
    ((_, plan),) = session.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", limits).fetchall()
    return sum(rows for root in json.loads(plan)["operator"] for rows in cardinalities(root))


def rows_by_statement(store: Path, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Return what the views, and the statements of a diagnosis, pass on."""
    counted: Counter[str] = Counter()
    answer = Evidence._answer

    def counting(self: Evidence, sql: str, asked: Any) -> Any:
        if sql.startswith("-- question"):
            counted[sql] = passed_on(self._session, sql, asked or None)
        return answer(self, sql, asked)

    monkeypatch.setattr(Evidence, "_answer", counting)
    assert diagnose(store).failures == ()
    monkeypatch.undo()
    with open_session(store, keep=True) as session:
        for name, text in view_scripts().items():
            for statement in statements_of(session, name, text):
                if found := _BODY.search(statement.query):
                    body = statement.query[found.end() :]
                    counted[f"view {found[1]}"] = passed_on(session, body)
    return counted


def test_rows_joined_grow_with_the_hosts_and_not_with_their_square(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few, many = (
        rows_by_statement(stored(tmp_path / str(hosts), cluster(hosts)), monkeypatch)
        for hosts in (FEW, MANY)
    )
    large = {sql for sql, rows in many.items() if rows >= LEAST_ROWS}
    assert any("hosts received more" in sql for sql in large)
    assert {sql: (few[sql], many[sql]) for sql in large if many[sql] > MOST_TIMES * few[sql]} == {}
