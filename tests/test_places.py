"""Hosts that are late together: they wait for the one among them whose NIC or cable is sick."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from fabricobs.diagnosis.findings import Entity, Finding
from fabricobs.diagnosis.places import Places

NO_PORTS = pl.DataFrame(
    schema=dict.fromkeys(("host", "nic", "switch", "port"), pl.String), orient="row"
)


def finding(kind: str, *entities: Entity, computes: bool = False) -> Finding:
    return Finding(
        kind=kind, entities=entities, severity="high", confidence=0.9, title="", explanation="",
        computes=computes,
    )  # fmt: skip


def places(*groups: list[str]) -> Places:
    hosts = pl.DataFrame(
        {"job": ["run"] * len(groups), "hosts": list(groups)},
        schema={"job": pl.String, "hosts": pl.List(pl.String)},
    )
    frames = {"nic_ports": NO_PORTS, "cable_ends": pl.DataFrame(), "hosts_of_groups": hosts}
    evidence: Any = SimpleNamespace(frame=frames.__getitem__)
    return Places(evidence)


@pytest.mark.parametrize("seed", range(10))
def test_hosts_of_one_communicator_are_late_for_one_of_them(seed: int) -> None:
    """Four hosts were "slow" of which one had a cable with 4 million symbol errors."""
    chance = np.random.default_rng(seed)
    size, groups = int(chance.integers(3, 9)), int(chance.integers(2, 6))
    names = [f"node{number:03d}" for number in range(size * groups)]
    own = places(*(names[at : at + size] for at in range(0, len(names), size)))
    at = size * int(chance.integers(groups))
    late = names[at : at + size]
    cable = finding("link_errors", Entity("nic", host=str(chance.choice(late)), nic="mlx5_0"))
    hosts = [Entity("host", host=name) for name in late]
    told = [*hosts[: -int(chance.integers(2)) or None]]
    if cable.entities[0].host not in {entity.host for entity in told}:
        told = hosts
    assert own.touch(cable, finding("straggler", *told))
    # A longer computation is no waiting, and other hosts do not wait for this group.
    assert not own.touch(cable, finding("straggler", *hosts, computes=True))
    others = [Entity("host", host=name) for name in names if name not in late]
    assert not own.touch(cable, finding("straggler", hosts[0], *others))
    assert not own.touch(cable, finding("straggler", *others))
    # Two of many that only share a large communicator are late for a reason of their own.
    few = {cable.entities[0].host, names[0], names[-1]}
    large = places(names)
    rare = finding("straggler", *(Entity("host", host=name) for name in sorted(map(str, few))))
    assert not large.touch(cable, rare) or 2 * len(few) >= len(names)
