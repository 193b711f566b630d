"""Switches that pause their neighbours: which queue is full, and which pauses tell of none.

A leaf pauses what sends to a full queue, not the NIC that the queue leads to. Drawn: who receives,
how often it pauses, who counts it, what the other leaves do.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from test_congestion_diagnosis import NICS, PORTS, pauses, priority, received
from test_link_diagnosis import HOSTS, INTERVAL, SAMPLES, SINCE, cluster, rising, together

from conftest import Rows
from fabricobs.diagnosis.findings import Diagnosis, Finding
from fabricobs.diagnosis.run import diagnose

pytestmark = pytest.mark.slow

Make = Callable[[Rows], Path]
KINDS = {"pausing_switch", "congestion", "pfc_storm"}


def told(found: Diagnosis) -> list[Finding]:
    return [finding for finding in found.findings if finding.kind in KINDS]


def counted(by: str, place: int, rate: float, *, background: float, since: int = SINCE) -> Rows:
    """Frames a second that the leaf sends to a NIC from a sample on, as `by` counts them."""
    usual, more = round(background * INTERVAL), round(rate * INTERVAL)
    total = [700 + usual * n + more * max(0, n - since) for n in range(SAMPLES)]
    back = [700 + usual * n for n in range(SAMPLES)]
    if by == "switch":
        counters = {"pfc_tx_frames": total, "pfc_rx_frames": back}
        return priority("leaf00", PORTS[place], counters)
    return priority(NICS[place], "mlx5_0/1", {"pfc_tx_frames": back, "pfc_rx_frames": total})


def other_leaves(number: int, background: float) -> Rows:
    """Leaves whose cables no log tells, each paused as often as it pauses."""
    ports = [(f"leaf{n + 1:02d}", f"Ethernet{8 * p}") for n in range(number) for p in range(3)]
    return together(*(pauses(*port, sent=background, got=background) for port in ports))


@pytest.mark.parametrize("seed", range(6))
def test_the_nic_that_is_not_paused_while_all_others_are_is_the_one_that_receives(
    make_store: Make, seed: int
) -> None:
    draw = np.random.default_rng(seed)
    place, by = int(draw.integers(HOSTS)), str(draw.choice(["switch", "host"]))
    background, rate = draw.uniform(0, 2), 10 ** draw.uniform(2.2, 3.5)
    since = int(draw.choice([-1, SINCE]))
    paused = [
        counted(by, p, 0 if p == place else rate, background=background, since=since)
        for p in range(HOSTS)
    ]
    rows = [cluster(slower=1.3), received([1] * HOSTS)]
    rows.append(other_leaves(int(draw.integers(2, 6)), background))
    (finding,) = told(diagnose(make_store(together(*rows, *paused))))
    assert finding.kind == "pausing_switch" and finding.severity in {"medium", "high"}
    assert [e.label for e in finding.entities] == ["leaf00", f"{NICS[place]} mlx5_0"]
    assert f"more arrives for mlx5_0 of {NICS[place]}" in finding.title


@pytest.mark.parametrize("seed", range(4))
def test_no_nic_is_named_where_more_than_one_is_not_paused(make_store: Make, seed: int) -> None:
    draw = np.random.default_rng(100 + seed)
    by = str(draw.choice(["switch", "host"]))
    senders = draw.choice(HOSTS, int(draw.integers(1, HOSTS - 1)), replace=False)
    paused = [counted(by, p, 600 if p in senders else 0, background=1) for p in range(HOSTS)]
    (finding,) = told(diagnose(make_store(together(cluster(), other_leaves(3, 1), *paused))))
    assert [e.label for e in finding.entities] == ["leaf00"]
    assert "one of its queues is full" in finding.title


@pytest.mark.parametrize("since", [SINCE, -1])
@pytest.mark.parametrize(("rate", "kinds"), [(500, ["pausing_switch"]), (5, [])])
def test_a_lone_switch_is_set_against_itself(
    make_store: Make, rate: int, kinds: list[str], since: int
) -> None:
    """From the first reading on nothing tells that it ever paused less.

    Which queue is full is not known: the loss is left without a cause.
    """
    got = rising(round(rate * INTERVAL), since=since)
    counters = {"pfc_tx_frames": [0] * SAMPLES, "pfc_rx_frames": got}
    paused = [priority(host, "mlx5_0/1", counters) for host in NICS]
    rows = together(cluster(slower=1.3), received([1] * HOSTS), *paused)
    found = diagnose(make_store(rows))
    assert [finding.kind for finding in told(found)] == (kinds if since > 0 else [])
    assert all(finding.severity == "low" for finding in told(found))
    assert "throughput_drop" in {finding.kind for finding in found.findings}


@pytest.mark.parametrize("seed", range(6))
def test_a_switch_that_pauses_exactly_as_long_as_steps_are_longer_costs_them(
    make_store: Make, seed: int
) -> None:
    """No NIC of it is known, and the loss was without a cause though both came and went."""
    draw = np.random.default_rng(600 + seed)
    over = SINCE + int(draw.integers(6, 10))
    alike = seed % 2 == 0
    until = over + draw.uniform(-0.9, 0) if alike else SAMPLES
    sent = rising(round(draw.uniform(120, 600) * INTERVAL))
    sent = [min(total, sent[over]) for total in sent]
    counters = {"pfc_tx_frames": sent, "pfc_rx_frames": [0] * SAMPLES}
    paused = [priority("leaf00", port, counters) for port in PORTS]
    rows = cluster(slower=1.4, until=until) | {"links": []}
    found = diagnose(make_store(together(rows, other_leaves(3, 1), *paused)))
    (finding,) = told(found)
    assert [e.label for e in finding.entities] == ["leaf00"]
    losses = {each.kind: each.loss_share for each in found.findings if each.loss_share}
    assert list(losses) == ["pausing_switch" if alike else "throughput_drop"]
    assert losses.popitem()[1] == pytest.approx(0.4 * 300 / (1000 + 0.4 * 300), abs=0.02)
    assert finding.severity == ("medium" if alike else "low")


@pytest.mark.parametrize("seed", range(3))
def test_leaves_that_pause_alike_are_the_load_of_a_fabric(make_store: Make, seed: int) -> None:
    draw = np.random.default_rng(200 + seed)
    background = draw.uniform(20, 2_000)
    paused = [counted("switch", p, 0, background=background) for p in range(HOSTS)]
    rows = together(cluster(), other_leaves(3, background * draw.uniform(0.3, 3)), *paused)
    assert told(diagnose(make_store(rows))) == []


@pytest.mark.parametrize("place", range(HOSTS))
def test_a_nic_that_pauses_the_switch_for_less_than_a_storm_is_named(
    make_store: Make, place: int
) -> None:
    """The answer was that nothing tells what its queues fill for."""
    parts = []
    for number, host in enumerate(NICS):
        sent = rising(2_000 if number == place else 0)
        got = rising(0 if number == place else 1_700)
        counters = {"pfc_tx_frames": sent, "pfc_rx_frames": got}
        counters["pfc_tx_pause_us"] = [400 * total for total in sent]
        parts.append(priority(host, "mlx5_0/1", counters))
    rows = together(cluster(slower=1.3), received([1] * HOSTS), *parts)
    (finding,) = told(diagnose(make_store(rows)))
    assert [e.label for e in finding.entities] == ["leaf00", f"{NICS[place]} mlx5_0"]
    assert f"mlx5_0 of {NICS[place]} pauses it with 200 frames a second" in finding.title
    assert "paused it for 8.0% of the time: too little for a storm" in finding.explanation
    assert any("lspci" in step for step in finding.next_steps)
    assert finding.loss_share == pytest.approx(90 / 1090, abs=0.02)


@pytest.mark.parametrize("seed", range(4))
def test_a_nic_and_a_port_that_count_the_same_pauses_are_one_cable(
    make_store: Make, seed: int
) -> None:
    """No log tells cables: one storm was two findings, of a NIC and of "a device"."""
    draw = np.random.default_rng(300 + seed)
    place, frames = int(draw.integers(HOSTS)), int(draw.integers(30_000, 60_000))
    rows = cluster(slower=1.5) | {"links": []}
    seen = [
        pauses("leaf00", port, sent=1, got=frames if p == place else 1)
        for p, port in enumerate(PORTS)
    ]
    storm = pauses(NICS[place], "ens1np0", sent=frames, got=1)
    (finding,) = told(diagnose(make_store(together(rows, storm, *seen))))
    assert [e.label for e in finding.entities] == [
        f"{NICS[place]} mlx5_0",
        f"leaf00 {PORTS[place]}",
    ]
    assert "No log tells its cable" in finding.explanation


def test_two_that_pause_alike_are_not_joined(make_store: Make) -> None:
    rows = cluster(slower=1.5) | {"links": []}
    seen = [
        pauses("leaf00", port, sent=1, got=40_000 if p == 2 else 1) for p, port in enumerate(PORTS)
    ]
    storms = [pauses(NICS[p], "ens1np0", sent=40_000, got=1) for p in (1, 2)]
    found = told(diagnose(make_store(together(rows, *storms, *seen))))
    assert not any("No log tells its cable" in finding.explanation for finding in found)
    assert {e.label for f in found for e in f.entities} >= {"node01 mlx5_0", "node02 mlx5_0"}
