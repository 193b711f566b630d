"""More arrives for one NIC than its port sends on, by whatever counters a site has: drawn."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from test_congestion_diagnosis import priority
from test_link_diagnosis import SAMPLES, SINCE, at, samples, together

from conftest import Rows
from fabricobs.diagnosis.findings import Diagnosis
from fabricobs.diagnosis.run import diagnose

pytestmark = pytest.mark.slow

Make = Callable[[Rows], Path]
PORTS = 24
NIC_NAMES = ["ens{}f0np0", "rdma{}", "enp{}s0", "eth{}", "gpu{}"]
SIGNS = ["marks of the port", "pauses of the switch", "pauses of the hosts", "CNPs"]


def total(per_interval: np.ndarray) -> list[int]:
    return [10**12 + int(value) for value in np.cumsum(per_interval)]


def site(seed: int, sign: str, *, ratio: float) -> tuple[Rows, str, bool]:
    """Return counters of one kind, the label of the fullest port or NIC, whether from the start."""
    chance = np.random.default_rng([seed, SIGNS.index(sign)])
    by_host = sign in ("pauses of the hosts", "CNPs")
    full, whole = int(chance.integers(PORTS)), bool(chance.integers(2))
    name = str(chance.choice(NIC_NAMES))
    acting = (np.arange(SAMPLES) >= (0 if whole else SINCE)).astype(float)
    each = 4e10 * chance.uniform(1, 5)
    none = total(0 * acting)
    hosts = [f"node{place // 8:02d}" for place in range(PORTS)]
    ranks = enumerate(hosts)
    parts: list[Rows] = [
        {"steps": [{"file_id": "s", "line": r, "step": 0, "rank": r, "host": h} for r, h in ranks]}
    ]
    labels = []
    for place, host in enumerate(hosts):
        device = host if by_host else "leaf0"
        port = name.format(100 + place % 8) if by_host else f"Ethernet{place * 8}"
        labels.append(f"{device} {port}")
        is_full = place == full
        into = each * chance.normal(1, 0.004, SAMPLES)
        if is_full:
            into = into * (1 + (ratio - 1) * acting)
        counted = {
            "rx_bytes" if by_host else "tx_bytes": total(into),
            "tx_bytes" if by_host else "rx_bytes": total(each * chance.normal(1, 0.004, SAMPLES)),
        }
        if sign == "CNPs":
            counted["np_cnp_sent"] = total(acting * (9e4 if is_full else 20))
        parts.append(samples(device, port, counted))
        if sign == "marks of the port":
            marked = {"ecn_marked_packets": total(acting * (3e4 if is_full else 0))}
            parts.append(priority(device, port, marked, queue="3"))
        elif sign.startswith("pauses"):
            # Its switch pauses all who send to it: its ports, or the hosts below, but for its own.
            calm = by_host and place // 8 != (full // 8 + 1) % 3
            stopped = total(acting * (0 if is_full or calm else 2e3))
            told = {"pfc_rx_frames": stopped, "pfc_tx_frames": none}
            if not by_host:
                told = {"pfc_tx_frames": stopped, "pfc_rx_frames": none}
            parts.append(priority(device, port, told))
    if sign == "pauses of the switch":
        still = {"pfc_tx_frames": none, "pfc_rx_frames": none}
        others = [
            (f"leaf{leaf}", f"Ethernet{port * 8}") for leaf in range(1, 5) for port in range(4)
        ]
        parts += [priority(device, port, still) for device, port in others]
    return together(*parts), labels[full], whole


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
    # A port that does not mark may be an uplink on which flows are hashed anew.
    assert finding.severity == ("low" if sign == "pauses of the switch" and not whole else "medium")
    assert answer(found) == "problem"
    assert finding.start == at(0 if whole else SINCE - 1)


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
    for row in (row for table in rows.values() for row in table):
        row.update(dict.fromkeys(quiet & row.keys(), 7))
    found = diagnose(make_store(rows))
    assert "congestion" not in [f.kind for f in found.findings]
    if sign.startswith("pauses"):
        assert answer(found) == "unknown"
