"""A link between switches that fills while the others have room; drawn fabrics, as tables."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from conftest import Rows
from fabricobs.diagnosis.findings import Diagnosis
from fabricobs.diagnosis.run import diagnose

pytestmark = pytest.mark.slow
START = datetime(2026, 3, 2, 9)
STEPS, STEP_SECONDS = 600, 4.0
Make = Callable[[Rows], Path]
Row = dict[str, object]


class Fabric:
    """Leaves with uplinks to spines and NICs below; marks of the uplinks, CNPs of the NICs."""

    def __init__(self, seed: int, *, full: str, slower: float) -> None:
        self.chance = chance = np.random.default_rng(seed)
        self.full, self.slower = full, slower
        self.leaves, self.spines = int(chance.integers(3, 7)), int(chance.integers(2, 5))
        self.hosts = int(chance.integers(2, 5))
        self.odd, self.link = int(chance.integers(self.leaves)), int(chance.integers(self.spines))
        self.first, self.last = sorted(int(n) for n in chance.integers(1, 10, 2) * 60)
        self.last = max(self.last, self.first + 120)
        self.marks_every = float(chance.choice([30, 120, 300]))

    def acts(self, begin: float, end: float) -> float:
        """The share of a time, in seconds since the start, in which the link is full."""
        first, last = self.first * STEP_SECONDS, self.last * STEP_SECONDS
        return max(0.0, min(end, last) - max(begin, first)) / (end - begin)

    def rows(self) -> Rows:
        return {
            "steps": list(self.steps()),
            "links": list(self.links()),
            "priority_samples": [*self.marks()],
            "port_samples": [*self.notified()],
        }

    def steps(self) -> Iterator[Row]:
        now = START
        for step in range(STEPS):
            slow = self.slower if self.first <= step < self.last else 1.0
            length = STEP_SECONDS * slow * self.chance.normal(1, 0.004)
            now = START + timedelta(seconds=(step + 1) * STEP_SECONDS)
            yield {
                "file_id": "t", "line": step, "step": step, "ts": now, "ts_source": "inline",
                "step_time_ms": 1000 * length, "tokens_per_second": 4e9 / length,
            }  # fmt: skip

    def links(self) -> Iterator[Row]:
        row = {"file_id": "l", "line": 1, "format": "lldp", "ts": START, "ts_source": "inline"}
        for leaf in range(self.leaves):
            for spine in range(self.spines):
                yield row | {
                    "device": f"leaf{leaf}", "port": f"Ethernet{64 + spine}",
                    "remote_device": f"spine{spine}", "remote_port": f"Ethernet{leaf}",
                }  # fmt: skip
            for host in range(self.hosts):
                yield row | {
                    "device": f"leaf{leaf}", "port": f"Ethernet{host}",
                    "remote_device": f"node{leaf}{host}", "remote_port": "mlx5_0",
                }  # fmt: skip

    def marks(self) -> Iterator[Row]:
        samples = int(STEPS * STEP_SECONDS / self.marks_every) + 1
        for leaf in range(self.leaves):
            for link in range(self.spines):
                is_full = self.full == "all" or (
                    self.full == "one" and (leaf, link) == (self.odd, self.link)
                )
                usual, total = self.chance.lognormal(4, 0.3), 0.0
                for sample in range(samples):
                    ends = sample * self.marks_every
                    share = self.acts(ends - self.marks_every, ends) if sample else 0.0
                    total += self.marks_every * usual * (1 + is_full * share * 400)
                    yield {
                        "file_id": f"leaf{leaf}", "line": sample, "format": "wred",
                        "device": f"leaf{leaf}", "port": f"Ethernet{64 + link}", "queue": "UC3",
                        "ts": START + timedelta(seconds=ends), "ts_source": "inline",
                        "ecn_marked_packets": int(total),
                    }  # fmt: skip

    def notified(self) -> Iterator[Row]:
        """CNPs that NICs below the next leaf send: they receive over the full link."""
        below = (self.odd + 1) % self.leaves
        for leaf in range(self.leaves):
            for host in range(self.hosts):
                total, told = 0.0, leaf == below and host == 0 and self.full == "one"
                for sample in range(int(STEPS * STEP_SECONDS / 60) + 1):
                    share = self.acts(60.0 * (sample - 1), 60.0 * sample) if sample else 0.0
                    total += 60 * (3 + told * share * 1500)
                    yield {
                        "file_id": f"n{leaf}{host}", "line": sample, "format": "rdma",
                        "device": f"node{leaf}{host}", "port": "mlx5_0", "ts_source": "inline",
                        "ts": START + timedelta(seconds=60 * sample), "np_cnp_sent": int(total),
                    }  # fmt: skip


def worst(found: Diagnosis) -> tuple[str, list[str], float | None]:
    finding = found.findings[0]
    return finding.kind, [e.label for e in finding.entities], finding.loss_share


@pytest.mark.parametrize("seed", range(8))
def test_the_link_that_fills_is_named_and_no_nic_behind_it(make_store: Make, seed: int) -> None:
    """A NIC that received over the full uplink was told of an incast: "move traffic off kst09"."""
    slower = float(np.random.default_rng(seed).uniform(1.12, 1.4))
    fabric = Fabric(seed, full="one", slower=slower)
    found = diagnose(make_store(fabric.rows()))
    kind, named, loss = worst(found)
    assert (kind, named) == ("full_uplink", [f"leaf{fabric.odd} Ethernet{64 + fabric.link}"])
    assert loss == pytest.approx(1 - 1 / slower, abs=0.03)
    assert not [f for f in found.findings if f.kind in {"congestion", "throughput_drop"}]


@pytest.mark.parametrize("seed", range(2))
def test_links_that_all_fill_are_a_fabric_under_load(make_store: Make, seed: int) -> None:
    found = diagnose(make_store(Fabric(100 + seed, full="all", slower=1.2).rows()))
    assert "full_uplink" not in {f.kind for f in found.findings}


@pytest.mark.parametrize("seed", range(2))
def test_a_full_link_that_no_step_felt_is_information(make_store: Make, seed: int) -> None:
    found = diagnose(make_store(Fabric(200 + seed, full="one", slower=1.0).rows()))
    told = [f.severity for f in found.findings if f.kind == "full_uplink"]
    assert told == ["info"]


class Drained(Fabric):
    """A leaf that is left with half of its uplinks: they fill, at both of their ends."""

    def __init__(self, seed: int) -> None:
        super().__init__(
            seed, full="", slower=float(np.random.default_rng(seed).uniform(1.15, 1.4))
        )
        self.spines, self.last, self.marks_every = 4, STEPS, float(self.chance.choice([120, 600]))
        self.dead = {int(n) for n in self.chance.choice(4, 2, replace=False)}

    def ends(self) -> Iterator[tuple[int, int, str, str]]:
        """Each end of each link between switches, with the leaf and the spine."""
        for leaf in range(self.leaves):
            for spine in range(self.spines):
                yield leaf, spine, f"leaf{leaf}", f"Ethernet{64 + spine}"
                yield leaf, spine, f"spine{spine}", f"Ethernet{leaf}"

    def marks(self) -> Iterator[Row]:
        for leaf, spine, device, port in self.ends():
            is_full, total = leaf == self.odd and spine not in self.dead, 0.0
            usual = self.chance.lognormal(4, 0.3)
            for sample in range(int(STEPS * STEP_SECONDS / self.marks_every) + 1):
                ends = sample * self.marks_every
                share = self.acts(ends - self.marks_every, ends) if sample else 0.0
                total += self.marks_every * usual * (1 + is_full * share * 100)
                yield {
                    "file_id": device, "line": sample, "format": "wred", "device": device,
                    "port": port, "queue": "UC3", "ts": START + timedelta(seconds=ends),
                    "ts_source": "inline", "ecn_marked_packets": int(total),
                }  # fmt: skip

    def notified(self) -> Iterator[Row]:
        """Bytes of the links between switches."""
        for leaf, spine, device, port in self.ends():
            total = 0.0
            for sample in range(int(STEPS * STEP_SECONDS / 60) + 1):
                share = self.acts(60.0 * (sample - 1), 60.0 * sample) if sample else 0.0
                shifted = (0.0 if spine in self.dead else 2.0) if leaf == self.odd else 1.0
                load = (1 - share) + share * shifted / self.slower
                total += 60 * 8e9 * load * self.chance.normal(1, 0.02)
                yield {
                    "file_id": device, "line": sample, "format": "counters", "device": device,
                    "port": port, "ts": START + timedelta(seconds=60 * sample),
                    "ts_source": "inline", "tx_bytes": int(total), "rx_bytes": int(total),
                }  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_a_leaf_left_with_half_of_its_uplinks_is_the_cause_of_their_full_ends(
    make_store: Make, seed: int
) -> None:
    """Two spines whose links to the leaf filled came first: "the hash fields of spine-1"."""
    fabric = Drained(300 + seed)
    kind, named, loss = worst(diagnose(make_store(fabric.rows())))
    assert kind in {"ecmp_skew", "one_way_uplink", "hash_collisions"}
    assert {label.split()[0] for label in named} == {f"leaf{fabric.odd}"}
    assert loss == pytest.approx(1 - 1 / fabric.slower, abs=0.03)
