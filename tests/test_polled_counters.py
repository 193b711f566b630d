"""Counters that a script of a site polls: any order and names of columns, and lines of text."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabricobs.formats.context import Context
from fabricobs.formats.reading import read_file
from fabricobs.formats.recognition.catalogue import load_catalogue
from fabricobs.formats.rows import Rows

CATALOGUE = load_catalogue()
START = 1742296317
TIMES = ["time", "ts", "timestamp", "utc", "epoch", "t", "unix_time", "date"]
HOSTS = ["host", "hostname", "node", "switch", "server"]
# What names a port, and the port.
PORTS: list[tuple[dict[str, str], str]] = [
    ({"device": "mlx5_0", "port": "1"}, "mlx5_0/1"),
    ({"hca": "mlx5_0", "port": "1"}, "mlx5_0/1"),
    ({"rdma_dev": "mlx5_0", "netdev": "ens3f0np0"}, "mlx5_0/1"),
    ({"netdev": "ens3f0np0"}, "ens3f0np0"),
    ({"iface": "eth1"}, "eth1"),
    ({"if_name": "swp7"}, "swp7"),
    ({"port": "Eth1/7"}, "Eth1/7"),
    ({"interface": "Ethernet64"}, "Ethernet64"),
    ({"nic": "mlx5_3"}, "mlx5_3"),
]
# Names of counters, the table and column they fill, and what one is in its unit.
COUNTERS: dict[str, tuple[str, str, int]] = {
    "rx_bytes": ("port_samples", "rx_bytes", 1),
    "rx_bytes_phy": ("port_samples", "rx_bytes", 1),
    "port_rcv_data": ("port_samples", "rx_bytes", 4),
    "PortRcvData": ("port_samples", "rx_bytes", 4),
    "in_octets": ("port_samples", "rx_bytes", 1),
    "in-octets": ("port_samples", "rx_bytes", 1),
    "ifHCInOctets": ("port_samples", "rx_bytes", 1),
    "tx_discards_phy": ("port_samples", "tx_discards", 1),
    "out_disc": ("port_samples", "tx_discards", 1),
    "ifOutDiscards": ("port_samples", "tx_discards", 1),
    "tx_drops": ("port_samples", "tx_discards", 1),
    "symbol_error": ("port_samples", "symbol_errors", 1),
    "SymbolErrorCounter": ("port_samples", "symbol_errors", 1),
    "rx_prio3_pause": ("priority_samples", "pfc_rx_frames", 1),
    "rx_pfc3": ("priority_samples", "pfc_rx_frames", 1),
    "pfc3_tx": ("priority_samples", "pfc_tx_frames", 1),
    "tx_pfc_prio3": ("priority_samples", "pfc_tx_frames", 1),
    "ecn_marked": ("priority_samples", "ecn_marked_packets", 1),
    "out_of_sequence": ("port_samples", "out_of_sequence", 1),
}


def read(text: str, path: Path) -> tuple[tuple[str, ...], dict[str, list[dict[str, Any]]]]:
    path.write_text(text)
    rows = Rows()
    recognised = CATALOGUE.recognise(text.encode(), str(path))
    result = read_file(path, recognised, Context("f"), rows, lambda: None)
    assert result.tally.unparsed == 0
    tables: dict[str, list[dict[str, Any]]] = {}
    for table, part in rows.drain():
        tables.setdefault(table, []).extend(part.to_pylist())
    return recognised.names, tables


def moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)


@pytest.mark.parametrize("seed", range(40))
def test_a_poll_as_csv(seed: int, tmp_path: Path) -> None:
    draw = np.random.default_rng([seed, 61])
    parts, port = PORTS[int(draw.integers(len(PORTS)))]
    # Of names for one thing a poll has one; some are known well enough to show the format.
    by_column: dict[tuple[str, str], list[str]] = {}
    for name, (table, column, _) in COUNTERS.items():
        by_column.setdefault((table, column), []).append(name)
    names = [str(draw.choice(some)) for some in by_column.values() if draw.random() < 0.7]
    names = [name for name in names if COUNTERS[name][1] != "rx_bytes"]
    names.append("rx_bytes")
    time, host = str(draw.choice(TIMES)), str(draw.choice(HOSTS))
    columns = [time, host, *parts, *names, "note_of_ours"]
    columns = [columns[place] for place in draw.permutation(len(columns))]
    delimiter = str(draw.choice([",", ";", "\t"]))
    epoch = time == "epoch" or draw.random() < 0.5
    lines = ["# polled by cron"] if draw.random() < 0.3 else []
    lines.append(("#" if draw.random() < 0.3 else "") + delimiter.join(columns))
    for sample in range(3):
        at = START + 20 * sample
        told = {time: str(at) if epoch else f"{moment(at)}", host: "leaf-a7", **parts}
        told |= {name: str(100 * place + sample) for place, name in enumerate(names)}
        lines.append(delimiter.join(told.get(column, "x") for column in columns))
    formats, tables = read("\n".join(lines) + "\n", tmp_path / "poll.csv")
    assert formats == ("counter_records",)
    for place, name in enumerate(names):
        table, column, unit = COUNTERS[name]
        got = [(r["device"], r["port"], r["ts"], r[column]) for r in tables[table] if r.get(column)]
        samples = [(100 * place + sample) * unit for sample in range(3)]
        wanted = [("leaf-a7", port, moment(START + 20 * n), v) for n, v in enumerate(samples) if v]
        assert got == wanted, name
    aliases = [row["alias"] for row in tables.get("port_status", [])]
    assert aliases == (["ens3f0np0"] if len(parts) == 2 and "netdev" in parts else [])


@pytest.mark.parametrize("joint", [" ", "=", ": "])
@pytest.mark.parametrize("time", ["{at}", "{at}.250", "{moment}", "{moment}Z", "[{moment}]"])
@pytest.mark.parametrize(
    ("port", "name"),
    [
        ("mlx5_0/1", "mlx5_0/1"),
        ("mlx5_0:1", "mlx5_0/1"),
        ("mlx5_0 1", "mlx5_0/1"),
        ("mlx5_0", "mlx5_0"),
        ("gn048 mlx5_0/1", "mlx5_0/1"),
        ("gn048 ens3f0np0", "ens3f0np0"),
    ],
)
def test_a_poll_as_lines(joint: str, time: str, port: str, name: str, tmp_path: Path) -> None:
    lines = []
    for sample in range(3):
        at = START + 30 * sample
        begin = f"{time.format(at=at, moment=moment(at))} {port}"
        counters = ("port_xmit_data", "symbol_error", "of_ours")
        lines.extend(f"{begin} {counter}{joint}{sample}" for counter in counters)
    formats, tables = read("\n".join(lines) + "\n", tmp_path / "poll.txt")
    assert "counter_lines" in formats
    got = [
        (r["port"], r["ts"].replace(microsecond=0), r["tx_bytes"]) for r in tables["port_samples"]
    ]
    assert got == [(name, moment(START + 30 * n), 4 * n) for n in range(3)]
    assert {row["device"] for row in tables["port_samples"]} <= {"gn048", None, "unknown:"}


def test_a_state_that_is_neither_up_nor_down_is_not_kept(tmp_path: Path) -> None:
    lines = ["time,switch,port,oper,in_octets"]
    states = ["up", "up", "Down", "testing", "up"]
    lines += [f"{START + n},leaf1,Eth1/1,{state},5" for n, state in enumerate(states)]
    _, tables = read("\n".join(lines) + "\n", tmp_path / "poll.csv")
    assert len(tables["port_samples"]) == 5
    assert [row["oper"] for row in tables["port_status"]] == ["up", "up", "down", "up"]
