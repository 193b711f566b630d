"""Random worlds with one fault that was drawn: found by the evidence alone that can show it."""

from pathlib import Path
from typing import Any

import pytest

from fabricobs.diagnosis.findings import Diagnosis
from fabricobs.diagnosis.run import diagnose
from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.simulator.random_worlds.case import write_world
from fabricobs.simulator.random_worlds.spec import draw_spec
from fabricobs.store.parts import Store

# A small site that collects little else, so that a world takes seconds.
PLAIN: dict[str, Any] = {
    "hosts": 4, "spare_hosts": 0, "gpus_per_host": 4, "nics_per_host": 2, "duration_minutes": 15.0,
    "step_seconds": 5.0, "switch_interval": 60.0, "host_interval": 60.0, "missing": 0.0, "only": "",
    "fabric": "ethernet", "tiers": 2, "hosts_per_leaf": 2, "foreign_files": False, "lldp": True,
    "port_status": True, "nccl_level": "warn", "inspector": False, "steps_from": "rank0",
    "switch_counters": "all",
    "gpu_form": "none", "optics": False, "lspci": False, "kernel_log": False, "restarts": 0,
    "tenants": 0.0, "trainer": "megatron", "layout": "appended", "stamp": "iso",
    "setting_fault": False, "line_fault": False, "switch_log": "none", "counter_resets": 0,
}  # fmt: skip


def told(folder: Path, seed: int, **given: Any) -> tuple[dict[str, Any], Diagnosis]:
    """Write a world; return its truth and its diagnosis."""
    truth = write_world(folder / "world", draw_spec(seed, **(PLAIN | given)))
    ingest([folder / "world" / "logs"], Store(folder / "store"), Options(zone=truth["zone"]))
    return truth, diagnose(folder / "store")


def named(found: Diagnosis, kind: str) -> list[dict[str, Any]]:
    """Return the entities of findings of a kind."""
    return [e.as_dict() for f in found.findings if f.kind == kind for e in f.entities]


def is_culprit(entity: dict[str, Any], truth: dict[str, Any]) -> bool:
    """Say whether an entity is one that the fault's truth names."""
    return any(c.items() <= entity.items() for c in truth["faults"][0]["culprits"])


_SONIC = {"leaf_os": "sonic", "sonic_form": "cli"}


@pytest.mark.parametrize(
    ("fault", "seed", "more"),
    [
        ("noisy_leaf_line", 3640, _SONIC | {"nic_gbps": 400}),
        ("noisy_leaf_line", 3641, _SONIC | {"nic_gbps": 100, "sonic_form": "counters_db"}),
        ("noisy_uplink_line", 3642, _SONIC | {"nic_gbps": 200, "balancing": "flowlet"}),
        ("noisy_nic_line", 3643, {"host_form": "ethtool", "nic_gbps": 200}),
    ],
)
def test_a_noisy_line_is_found_by_what_fec_corrects(
    tmp_path: Path, fault: str, seed: int, more: dict[str, Any]
) -> None:
    truth, found = told(tmp_path, seed, fault=fault, fault_span="to_end", **more)
    assert truth["faults"][0]["identifiable"]
    entities = named(found, "link_errors")
    assert entities and all(is_culprit(entity, truth) for entity in entities)


@pytest.mark.parametrize("seed", [3644, 3645])
def test_worn_lines_within_their_margin_are_no_finding(tmp_path: Path, seed: int) -> None:
    truth, found = told(
        tmp_path, seed, fault_count=0, worn_lines=True, host_form="ethtool", **_SONIC
    )
    assert not truth["faults"]
    assert not named(found, "link_errors")
