"""More arrives for one NIC than its port sends on, by whatever counters a site has: drawn."""

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from conftest import Rows
from fabricobs.diagnosis.findings import Diagnosis
from fabricobs.diagnosis.run import diagnose

pytestmark = pytest.mark.slow

Make = Callable[[Rows], Path]
START = datetime(2026, 3, 2, 9)
INTERVAL, SAMPLES, PORTS = 20.0, 16, 24
NIC_NAMES = ["ens{}f0np0", "rdma{}", "enp{}s0", "eth{}", "gpu{}"]
SIGNS = ["marks of the port", "pauses of the switch", "pauses of the hosts", "CNPs"]


def total(per_interval: np.ndarray) -> list[int]:
    return [10**12 + int(value) for value in np.cumsum(per_interval)]


def site(seed: int, sign: str, *, ratio: float) -> tuple[Rows, str, bool]:
    """Return counters of one kind, the label of the fullest port or NIC, whether from the start."""
    chance = np.random.default_rng([seed, SIGNS.index(sign)])
    by_host = sign in ("pauses of the hosts", "CNPs")
    full, whole = int(chance.integers(PORTS)), bool(chance.integers(2))
    since = 0 if whole else 8
    name = str(chance.choice(NIC_NAMES))
    rows: Rows = {"steps": [], "port_samples": [], "priority_samples": []}
    acting = (np.arange(SAMPLES) >= since).astype(float)
    each = 4e10 * chance.uniform(1, 5)

    def add(table: str, device: str, port: str, **counters: np.ndarray | str) -> None:
        told = {k: v if isinstance(v, str) else total(v) for k, v in counters.items()}
        rows[table] += [
            {"file_id": f"{device} {table}", "line": n, "format": "drawn", "device": device}
            | {"port": port, "ts": START + timedelta(seconds=n * INTERVAL), "ts_source": "inline"}
            | {k: v if isinstance(v, str) else v[n] for k, v in told.items()}
            for n in range(SAMPLES)
        ]

    for place in range(PORTS):
        host, nic = divmod(place, 8)
        device = f"node{host:02d}" if by_host else "leaf0"
        port = name.format(100 + nic) if by_host else f"Ethernet{place * 8}"
        is_full = place == full
        into = each * chance.normal(1, 0.004, SAMPLES)
        if is_full:
            into = into * (1 + (ratio - 1) * acting)
        out = each * chance.normal(1, 0.004, SAMPLES)
        told = (
            {"rx_bytes": into, "tx_bytes": out} if by_host else {"rx_bytes": out, "tx_bytes": into}
        )
        if sign == "CNPs":
            told["np_cnp_sent"] = acting * (9e4 if is_full else 20)
        add("port_samples", device, port, **told)
        if sign == "marks of the port":
            marked = acting * (3e4 if is_full else 0)
            add("priority_samples", device, port, queue="3", ecn_marked_packets=marked)
        elif sign.startswith("pauses"):
            # Its switch pauses all who send to it: the ports, or the hosts below, but for its own.
            stopped = acting * (0 if is_full else 2e3)
            key = "pfc_rx_frames" if by_host else "pfc_tx_frames"
            other = "pfc_tx_frames" if by_host else "pfc_rx_frames"
            calm = by_host and host != (full // 8 + 1) % 3
            add("priority_samples", device, port, **{key: stopped * (not calm), other: 0 * acting})
    if sign == "pauses of the switch":
        for leaf in range(1, 5):
            for port in range(4):
                still = {"pfc_tx_frames": 0 * acting, "pfc_rx_frames": 0 * acting}
                add("priority_samples", f"leaf{leaf}", f"Ethernet{port * 8}", **still)
    for step in range(40):
        for rank in range(PORTS):
            rows["steps"].append(
                {"file_id": "s", "line": len(rows["steps"]), "step": step, "rank": rank}
                | {"host": f"node{rank // 8:02d}"}
            )
    label = (
        f"node{full // 8:02d} {name.format(100 + full % 8)}"
        if by_host
        else f"leaf0 Ethernet{full * 8}"
    )
    return rows, label, whole


def answer(found: Diagnosis) -> str:
    (asked,) = (q for q in found.verdict.questions if "congested" in q.question)
    return asked.answer


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("seed", range(4))
def test_it_is_named_without_cables_and_without_names_of_rdma_devices(
    make_store: Make, seed: int, sign: str
) -> None:
    rows, label, whole = site(seed, sign, ratio=2.2)
    found = diagnose(make_store(rows))
    (finding,) = (f for f in found.findings if f.kind == "congestion")
    assert finding.entities[0].label == label
    assert finding.severity == "medium"
    assert answer(found) == "problem"
    begin = 0 if whole else 7
    assert finding.start == START + timedelta(seconds=begin * INTERVAL)


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("seed", range(2))
def test_a_sign_of_a_port_that_receives_like_its_peers_accuses_nobody(
    make_store: Make, seed: int, sign: str
) -> None:
    rows, _, _ = site(seed, sign, ratio=1.04)
    assert "congestion" not in [f.kind for f in diagnose(make_store(rows)).findings]


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("seed", range(2))
def test_bytes_alone_accuse_nobody_and_are_not_ok_where_marks_are_not_counted(
    make_store: Make, seed: int, sign: str
) -> None:
    """Marks begin before pauses do: without a counter of them a queue may be full."""
    rows, _, _ = site(seed, sign, ratio=2.2)
    quiet = {"ecn_marked_packets", "pfc_tx_frames", "pfc_rx_frames", "np_cnp_sent"}
    for row in (*rows["port_samples"], *rows["priority_samples"]):
        row.update(dict.fromkeys(quiet & row.keys(), 7))
    found = diagnose(make_store(rows))
    assert "congestion" not in [f.kind for f in found.findings]
    if sign.startswith("pauses"):
        assert answer(found) == "unknown"
