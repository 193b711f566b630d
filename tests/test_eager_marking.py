"""A switch that marks far more than its peers: on all its ports by thresholds, on one by load."""

from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from conftest import Rows
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.methods.rule import find_by_rule
from fabricobs.diagnosis.model import load_models

pytestmark = pytest.mark.slow
START = datetime(2026, 3, 2, 9)
SAMPLES = 30
Make = Callable[[Rows], Path]


def marks(
    seed: int, *, eager: float, ports_of_it: float = 1.0, leaves: int = 0, all_leaves: bool = False
) -> tuple[Rows, str]:
    """Return counters of a drawn fabric; from a time on a leaf marks `eager` times as often.

    It does so on the share `ports_of_it` of its ports, and only it unless on `all_leaves`.
    """
    chance = np.random.default_rng(seed)
    leaves = leaves or int(chance.integers(4, 12))
    ports, odd = int(chance.integers(6, 20)), int(chance.integers(leaves))
    begin, every = int(chance.integers(0, 20)), float(chance.choice([10, 30, 120]))
    usual = float(chance.choice([5.0, 80.0, 700.0]))
    rows = []
    for leaf in range(leaves):
        for port in range(ports):
            often = usual * chance.lognormal(0, 0.4)
            acts = (leaf == odd or all_leaves) and port < max(1, round(ports_of_it * ports))
            total = int(chance.integers(10**9))
            for sample in range(SAMPLES):
                times = eager if acts and sample > begin else 1.0
                total += round(times * often * every * chance.lognormal(0, 0.2))
                rows.append(
                    {
                        "file_id": f"leaf{leaf:02d}", "line": sample, "format": "f",
                        "device": f"leaf{leaf:02d}", "port": f"Ethernet{port}", "queue": "UC3",
                        "ts": START + timedelta(seconds=every * sample + 0.3 * leaf),
                        "ts_source": "inline", "ecn_marked_packets": total,
                    }
                )  # fmt: skip
    return {"priority_samples": rows}, f"leaf{odd:02d}"


def found(make_store: Make, rows: Rows) -> list[str]:
    with closing(Evidence(make_store(rows))) as evidence:
        result = find_by_rule(evidence, load_models()["eager_marking"], [])
    return [str(finding.entities[0].switch) for finding in result.findings]


@pytest.mark.parametrize("seed", range(10))
def test_a_leaf_that_marks_on_all_its_ports_is_named(make_store: Make, seed: int) -> None:
    """32 NICs below one leaf were told as an incast: "move the other traffic off trn-001"."""
    rows, leaf = marks(seed, eager=float(np.random.default_rng(seed).uniform(40, 600)))
    assert found(make_store, rows) == [leaf]


@pytest.mark.parametrize("seed", range(4))
def test_a_leaf_that_is_congested_at_a_port_or_marks_as_its_peers_do_is_not(
    make_store: Make, seed: int
) -> None:
    rows, _ = marks(seed, eager=300.0, ports_of_it=0.3)
    assert found(make_store, rows) == []


@pytest.mark.parametrize("seed", range(4))
def test_leaves_that_all_mark_more_are_a_fabric_under_load(make_store: Make, seed: int) -> None:
    rows, _ = marks(seed, eager=300.0, all_leaves=True)
    assert found(make_store, rows) == []


@pytest.mark.parametrize("seed", range(4))
def test_some_times_as_many_are_load_and_two_leaves_do_not_tell(
    make_store: Make, seed: int
) -> None:
    rows, _ = marks(seed, eager=3.0 if seed % 2 else 300.0, leaves=0 if seed % 2 else 2)
    assert found(make_store, rows) == []
