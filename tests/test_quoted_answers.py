"""Sentences that earlier versions said of sound or sick clusters, and what is right of each.

The others that were quoted have their tests beside what they are about: slow ranks and groups in
`test_job_diagnosis.py`, dead uplinks, collectives alone and contradictions in
`test_evidence_of_answers.py`, cables told twice in `test_link_diagnosis.py`.
"""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from test_evidence_of_answers import (
    LINKS,
    ROUTING,
    START,
    Tell,
    counters,
    question,
    stamp,
    steps,
    tell,
)
from test_ordinary_life import STEPS, Make, computing, job, loud

from fabricobs.api import ingest, open_store
from fabricobs.diagnosis.run import diagnose

pytestmark = pytest.mark.slow

__all__ = ["tell"]  # a fixture


@pytest.mark.parametrize("seed", range(4))
def test_replayed_steps_are_no_loss(make_store: Make, seed: int) -> None:
    """Six replayed steps were "critical, costs 30 %"."""
    chance = np.random.default_rng(seed)
    again, since = int(chance.integers(3, 16)), int(chance.integers(40, 120))
    rows = job(computing(seed), np.full(STEPS, 300.0))
    pause = timedelta(seconds=float(chance.uniform(20, 240)))
    records: list[dict[str, Any]] = rows["steps"]
    for row in records:
        if row["step"] >= since:
            row["step"] -= again
            row["ts"] += pause
    found = diagnose(make_store(rows))
    assert loud(found) == []
    assert found.verdict.questions[0].answer == "ok"


@pytest.mark.parametrize("seed", range(3))
def test_a_sound_fabric_of_six_hours_has_no_sick_cable(tell: Tell, seed: int) -> None:
    """209 cables were raised: a count grows with the hours, a rate does not."""
    chance = np.random.default_rng(seed)
    ports, every, hours = 96, 300, 6
    gbps, allowed = 40.0, 1e-13  # IEEE 802.3, of wrong bits after correction
    expected = gbps * 1e9 * every * allowed * chance.uniform(0, 1, ports)
    cables = ["device,port,remote_device,remote_port,speed_gbps"]
    cables += [f"leaf01,Ethernet{8 * i},node{i:03d},mlx5_0,400" for i in range(ports)]
    lines = ["time,device,port,tx_bytes,rx_bytes,rx_errors"]
    errors = chance.integers(0, 10**5, ports)  # of years before
    for sample in range(hours * 3600 // every + 1):
        carried = int(gbps * 1e9 / 8 * every * sample)
        lines += [
            f"{stamp(every * sample)},leaf01,Ethernet{8 * i},{carried},{carried},{errors[i]}"
            for i in range(ports)
        ]
        errors = errors + chance.poisson(expected)
    told = tell({"cables.csv": cables, "counters.csv": lines})
    assert told["findings"] == []
    assert question(told, LINKS)["answer"] == "ok"


def slowed(since: int, rest: int) -> list[str]:
    """Steps of 2 s, then of 2.6 s: their transfers take longer."""
    lines = steps(since)
    chance = np.random.default_rng(5)
    for number in range(1, int(rest / 2.6) + 1):
        for rank in range(8):
            compute = 1400 + float(chance.normal(0, 3))
            lines.append(
                f"{since // 2 + number},{rank},node{rank:02d},{stamp(since + 2.6 * number)},2600,"
                f"{compute:.1f},{2600 - compute:.1f}"
            )
    return lines


@pytest.mark.parametrize("since", [60, 90])
def test_a_skew_of_minutes_shows_where_ports_are_read_each_ten_seconds(
    tell: Tell, since: int
) -> None:
    """Shares of uplinks took five minutes before a skew and five after it."""
    cables = ["device,port,remote_device,remote_port,speed_gbps"]
    before: dict[tuple[str, str], tuple[float, float]] = {}
    for leaf in ("leaf00", "leaf01"):
        for host in range(4):
            name = f"Ethernet{8 * host}"
            cables.append(f"{leaf},{name},node{4 * int(leaf[-1]) + host:02d},mlx5_0,400")
            before[leaf, name] = (40, 40)
        for up in range(8):
            name = f"Ethernet{64 + 8 * up}"
            cables.append(f"{leaf},{name},spine{up:02d},Ethernet{leaf[-1]},400")
            before[leaf, name] = (40, 40)
    after = {
        (leaf, port): (80.0 * (int(port[8:]) // 8 % 2), 40.0)
        if leaf == "leaf01" and int(port[8:]) >= 64
        else rates
        for (leaf, port), rates in before.items()
    }
    lines = counters(before, since, 10)
    totals: dict[tuple[str, str], list[int]] = {}
    for line in lines[1:]:
        _, leaf, port, sent, received = line.split(",")
        totals[leaf, port] = [int(sent), int(received)]
    for moment in range(since + 10, since + 190, 10):
        for key, rates in after.items():
            totals[key] = [t + int(r * 1e10 / 8) for t, r in zip(totals[key], rates, strict=True)]
            lines.append(f"{stamp(moment)},{key[0]},{key[1]},{totals[key][0]},{totals[key][1]}")
    told = tell({"cables.csv": cables, "counters.csv": lines, "steps.csv": slowed(since, 180)})
    assert question(told, ROUTING)["answer"] == "problem"
    (skew,) = [f for f in told["findings"] if f["kind"] == "ecmp_skew"]
    assert [e["switch"] for e in skew["entities"]] == ["leaf01"]


def flap(
    told_by: str, netdev: str = "eth2", nic: str = "mlx5_2", downs: Sequence[int] = (200, 320)
) -> dict[str, list[str]]:
    """What a NIC of node03 that goes down at these seconds leaves in one kind of log."""
    if told_by == "kernel":
        moments = [(s, word) for down in downs for s, word in ((down, "down"), (down + 5, "up"))]
        head = f"mlx5_core 0000:1a:00.0 {netdev}: Link"
        return {
            "node03/dmesg.txt": [
                f"[{START + timedelta(seconds=s):%a %b %e %H:%M:%S %Y}] {head} {word}"
                for s, word in moments
            ]
        }
    if told_by == "NCCL":
        said = f"node03:80:99 [3] transport/net_ib.cc:94 NCCL WARN NET/IB : {nic}:1 Got async event"
        times = [f"{START + timedelta(seconds=s):%Y-%m-%d %H:%M:%S}" for s in downs]
        return {"nccl.node03.log": [f"[{time}] {said} : port error" for time in times]}
    risen = [(s, sum(s > down for down in downs)) for s in range(0, 600, 30)]
    lines = [
        f"{stamp(s)},node{host:02d},{netdev},{10**9 * s},{10**9 * s},{count * (host == 3)}"
        for s, count in risen
        for host in range(8)
    ]
    return {"nics.csv": ["time,device,port,tx_bytes,rx_bytes,link_downed", *lines]}


@pytest.mark.parametrize("has_steps", [True, False])
@pytest.mark.parametrize("told_by", ["kernel", "NCCL", "counters"])
def test_a_flap_is_found_by_whatever_tells_it(tell: Tell, told_by: str, has_steps: bool) -> None:
    """A flap ended the diagnosis with a traceback."""
    files = {"steps.csv": steps(600)} if has_steps else {"nics.csv": flap("counters")["nics.csv"]}
    if told_by != "counters" and not has_steps:
        files["nics.csv"] = [line.rpartition(",")[0] for line in files["nics.csv"]]
    told = tell(files | flap(told_by))
    assert told["failures"] == []
    (finding,) = told["findings"]
    assert finding["kind"] == "link_flap"
    assert "node03" in finding["title"] and "2 times" in finding["title"]
    assert question(told, LINKS)["answer"] == "problem"


@pytest.mark.parametrize("seed", range(4))
def test_each_of_flaps_close_together_is_told(tell: Tell, seed: int) -> None:
    """Of five flaps, two of them 12 s apart, four were told and priced."""
    draw = Random(seed)
    downs = [100]
    for _ in range(draw.randint(2, 5)):
        downs.append(downs[-1] + draw.choice([draw.randint(6, 14), draw.randint(15, 60)]))
    sources = [flap("kernel", downs=downs), flap("NCCL", downs=[d + 1 for d in downs])]
    told = tell({"steps.csv": steps(600)} | sources[0] | sources[1])
    # Without counters the NIC has two names, and no log says that they are one.
    kernel = [f["explanation"] for f in told["findings"] if "kernel" in f["explanation"]]
    assert kernel
    moments = [f"{START + timedelta(seconds=down):%H:%M:%S}" for down in downs]
    assert ", ".join(moments) in kernel[0]


@pytest.mark.parametrize(
    ("netdev", "nic", "has_steps"),
    [
        ("rdma2", "mlx5_2", True),
        ("rdma2", "mlx5_2", False),
        ("ens150f0np0", "ionic_1", True),
        ("ens150f0np0", "ionic_1", False),
        ("enp8s0", "bnxt_re0", True),
    ],
)
def test_a_flap_under_two_names_is_one(tell: Tell, netdev: str, nic: str, has_steps: bool) -> None:
    """LLDP and counters call the NIC by its net device, NCCL by its RDMA device: it was two."""
    cables = ["device,port,remote_device,remote_port,speed_gbps"]
    cables += [f"leaf01,Ethernet{8 * i},node{i:02d},{netdev},400" for i in range(8)]
    logs = flap("counters", netdev) | flap("NCCL", nic=nic)
    told = tell({"cables.csv": cables} | ({"steps.csv": steps(600)} if has_steps else {}) | logs)
    (finding,) = told["findings"]
    assert "2 times" in finding["title"]
    assert {e["switch"] for e in finding["entities"] if e["type"] == "port"} == {"leaf01"}


COUNTING = {
    "rdma2": True, "mlx5_0": True, "enp26s0np0": True, "ens3f1": True, "eno1": True,
    "rocep1s0": True, "bnxt_re1": True, "ionic_3": True, "hsn0": True, "eth2": True,
    "swp1": False, "eth0": False, "ethernet1/1/1": False, "xe-0/0/1": False, "ethernet-1/1": False,
    "hundredGigE1/1": False,
}  # fmt: skip


def test_what_counts_is_a_host_by_names_no_switch_has(tmp_path: Path) -> None:
    """A host whose NICs were counted, and no job known, was a switch: its NIC was called a port."""
    ends = [(f"unit{i:02d}", name) for i, name in enumerate(COUNTING)]
    cables = ["device,port,remote_device,remote_port,speed_gbps"]
    cables += [f"leaf01,Ethernet{8 * i},{unit},{name},400" for i, (unit, name) in enumerate(ends)]
    counts = ["time,device,port,tx_bytes,rx_bytes"]
    counts += [f"{stamp(30 * i)},{unit},{name},{i},{i}" for i in range(4) for unit, name in ends]
    (tmp_path / "cables.csv").write_text("\n".join(cables))
    (tmp_path / "counters.csv").write_text("\n".join(counts))
    ingest([tmp_path / "cables.csv", tmp_path / "counters.csv"], tmp_path / "store")
    parts = "SELECT part, is_nic FROM port_parts WHERE device <> 'leaf01'"
    assert dict(open_store(tmp_path / "store").sql(parts).fetchall()) == COUNTING


@pytest.mark.parametrize("downs", [1, 2, 7])
@pytest.mark.parametrize("ways", [1, 2])
def test_a_switch_that_counts_ups_too_does_not_double_the_downs(
    tell: Tell, downs: int, ways: int
) -> None:
    """EOS counts changes of the link: seven flaps were told as fourteen."""
    cables = ["device,port,remote_device,remote_port,speed_gbps"]
    cables += [f"leaf01,Ethernet{8 * i},node{i:02d},eth2,400" for i in range(8)]
    lines = ["time,device,port,tx_bytes,rx_bytes,link_downed"]
    for s in range(0, 600, 30):
        risen = sum(s > 100 + 60 * n for n in range(downs))
        for host in range(8):
            count, carried = risen * (host == 3), 10**9 * s
            lines.append(f"{stamp(s)},node{host:02d},eth2,{carried},{carried},{count}")
            lines.append(f"{stamp(s)},leaf01,Ethernet{8 * host},{carried},{carried},{ways * count}")
    told = tell({"cables.csv": cables, "counters.csv": lines, "steps.csv": steps(600)})
    (finding,) = told["findings"]
    assert ("once" if downs == 1 else f"{downs} times") in finding["title"]


@pytest.mark.parametrize("seed", range(6))
def test_a_gpu_error_counts_when_steps_became_longer_with_it(tell: Tell, seed: int) -> None:
    """A remapped row of memory was information beside a loss of 17 % that began with it."""
    draw = Random(seed)
    onset, away = draw.randint(120, 200), draw.choice([-80, -40, 0, 3, 40, 90])
    lines = ["step,rank,host,timestamp,step_time_ms,tokens_per_second"]
    now = 0.0
    for step in range(1, 301):
        ms = (1000 if step < onset else 1200) + draw.gauss(0, 4)
        now += ms / 1000
        lines += [f"{step},{r},node{r:02d},{stamp(now)},{ms:.1f},{1e9 / ms:.1f}" for r in range(8)]
        if step == onset + away:
            failed = START + timedelta(seconds=now)
    xid = "NVRM: Xid (PCI:0000:3a:00): 63, pid=4012, name=python3, Row Remapper: New row"
    text = (
        f"[{failed:%a %b %e %H:%M:%S %Y}] {xid} (0x4d) marked for remapping, reset gpu to activate."
    )
    told = tell({"train.csv": lines, "node03/dmesg.txt": [text]})
    (error,) = [f for f in told["findings"] if f["kind"] == "gpu_error"]
    assert error["severity"] == ("low" if abs(away) < 10 else "info")
    assert ("may be chance" in error["explanation"]) == (abs(away) < 10)
