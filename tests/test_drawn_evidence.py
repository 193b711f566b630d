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

pytestmark = pytest.mark.slow

# A small site that collects little else, so that a world takes seconds.
PLAIN: dict[str, Any] = {
    "hosts": 4, "spare_hosts": 0, "gpus_per_host": 4, "nics_per_host": 2, "duration_minutes": 15.0,
    "step_seconds": 5.0, "switch_interval": 60.0, "host_interval": 60.0, "missing": 0.0, "only": "",
    "fabric": "ethernet", "tiers": 2, "hosts_per_leaf": 2, "foreign_files": False, "lldp": True,
    "port_status": True, "nccl_level": "warn", "inspector": False, "steps_from": "rank0",
    "switch_counters": "all",
    "gpu_form": "none", "optics": False, "lspci": False, "kernel_log": False, "restarts": 0,
    "tenants": 0.0, "trainer": "megatron", "layout": "appended", "stamp": "iso",
    "setting_fault": False, "line_fault": False, "failure": False,
    "nic_driver": "mlx5", "breakouts": False, "resending_fault": False, "sent_again": "few",
    "pace_fault": False, "unused_networks": False, "program_xids": False,
    "receiver_fault": False, "benchmarks": "none", "switch_log": "none", "counter_resets": 0,
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


@pytest.mark.parametrize("host_form", ["ethtool", "sysfs", "rdma"])
def test_a_host_without_receive_buffers_is_found(tmp_path: Path, host_form: str) -> None:
    given = {"fault": "full_receiver", "fault_span": "to_end", "few_buffers": True}
    truth, found = told(tmp_path, 3646, host_form=host_form, **given)
    assert truth["faults"][0]["identifiable"]
    entities = named(found, "full_receiver")
    assert entities and all(is_culprit(entity, truth) for entity in entities)


def test_a_packet_without_a_buffer_now_and_then_is_no_finding(tmp_path: Path) -> None:
    truth, found = told(tmp_path, 3647, fault_count=0, few_buffers=True, host_form="sysfs")
    assert not truth["faults"] and not named(found, "full_receiver")


@pytest.mark.parametrize(
    ("leaf_os", "form"),
    [("sonic", "cli"), ("eos", "json"), ("nxos", "cli"), ("cumulus", "nvue")],
)
def test_swapped_cables_to_ports_of_split_cages_are_found(
    tmp_path: Path, leaf_os: str, form: str
) -> None:
    given = {"leaf_os": leaf_os, f"{leaf_os}_form": form, "rails": True, "breakouts": True}
    truth, found = told(
        tmp_path, 5_721, fault="swapped_rails", hosts=6, hosts_per_leaf=8, steps_from="none",
        switch_counters="leaves", host_form="none", switch_interval=200.0, **given,
    )  # fmt: skip
    assert truth["faults"][0]["identifiable"]
    entities = named(found, "cabling")
    assert entities and is_culprit(entities[0], truth)


# What the NICs of a vendor are drawn with: in a fabric of the vendor's no switch tells anything.
_OWN_FABRIC = {"switch_counters": "none", "lldp": False, "port_status": False}
_SENDERS = [
    *(("efa", form, _OWN_FABRIC) for form in ("sysfs", "rdma", "node_exporter", "telegraf")),
    ("cxi", "sysfs_tree", _OWN_FABRIC),
    ("ionic", "sysfs", {"port_status": False}),
    ("ionic", "rdma", {"port_status": False}),
]


@pytest.mark.parametrize(("driver", "host_form", "more"), _SENDERS)
def test_a_nic_that_sends_far_more_again_is_found(
    tmp_path: Path, driver: str, host_form: str, more: dict[str, Any]
) -> None:
    given = {"fault": "resending_nic", "fault_span": "to_end", "fault_effect": 1.1}
    truth, found = told(tmp_path, 5_640, nic_driver=driver, host_form=host_form, **(given | more))
    assert truth["faults"][0]["identifiable"]
    entities = named(found, "resending_nic")
    assert entities and all(is_culprit(entity, truth) for entity in entities)


@pytest.mark.parametrize("sent_again", ["few", "many", "bursts"])
@pytest.mark.parametrize(("driver", "host_form", "more"), [_SENDERS[0], _SENDERS[4], _SENDERS[6]])
def test_what_all_nics_send_again_and_what_one_does_for_a_moment_are_no_finding(
    tmp_path: Path, driver: str, host_form: str, more: dict[str, Any], sent_again: str
) -> None:
    given = {"nic_driver": driver, "host_form": host_form, "sent_again": sent_again}
    truth, found = told(tmp_path, 5_641, fault_count=0, **(given | more))
    assert not truth["faults"]
    assert not named(found, "resending_nic") and not named(found, "packet_loss")


@pytest.mark.parametrize("seed", [5701, 5703])
def test_a_job_that_becomes_slower_on_all_ranks_is_told_as_a_loss_without_a_cause(
    tmp_path: Path, seed: int
) -> None:
    given = {"fault": "slow_everywhere", "fault_span": "to_end", "fault_effect": 1.1}
    truth, found = told(tmp_path, seed, ramp_up=False, curriculum=False, **given)
    assert truth["faults"][0]["identifiable"]
    assert [finding.kind for finding in found.findings] == ["throughput_drop"]


@pytest.mark.parametrize("seed", [5711, 5712])
def test_networks_that_nccl_does_not_use_and_errors_of_programs_are_no_finding(
    tmp_path: Path, seed: int
) -> None:
    given = {"unused_networks": True, "program_xids": True, "kernel_log": True, "restarts": 2}
    truth, found = told(tmp_path, seed, fault_count=0, nccl_level="info", compressed=False, **given)
    logs = [path.read_text() for path in (tmp_path / "world").rglob("*.[tl][xo][tg]")]
    assert not truth["faults"]
    assert any("Xid" in log for log in logs) and any("NET/Socket" in log for log in logs)
    kinds = ("gdr_disabled", "socket_fallback", "gpu_error", "nic_affinity", "config_mismatch")
    assert not [entity for kind in kinds for entity in named(found, kind)]


@pytest.mark.parametrize(
    ("fault", "seed", "kinds", "more"),
    [
        ("killed_process", 3670, {"process_failure"}, {"launcher_log": "torchrun"}),
        ("full_gpu", 3674, {"process_failure"}, {"launcher_log": "stderr"}),
        ("failed_nic", 3676, {"nccl_failure", "link_flap"}, {"nccl_level": "info"}),
        ("failed_nic", 3672, {"nccl_failure", "link_flap"}, {"nccl_version": "2.29.2"}),
        # Beside the runs of benchmarks, the host is known by its address alone.
        ("failed_nic", 3650, {"nccl_failure"}, {"nccl_version": "2.18.5", "benchmarks": "hosts"}),
    ],
)
def test_what_ended_a_job_is_found(
    tmp_path: Path, fault: str, seed: int, kinds: set[str], more: dict[str, Any]
) -> None:
    truth, found = told(tmp_path, seed, fault=fault, harmless_warnings=True, **more)
    assert truth["faults"][0]["identifiable"]
    entities = [entity for kind in sorted(kinds) for entity in named(found, kind)]
    assert any(is_culprit(entity, truth) for entity in entities)


@pytest.mark.parametrize("seed", [3675, 3678])
def test_a_job_that_ends_by_itself_and_harmless_warnings_are_no_finding(
    tmp_path: Path, seed: int
) -> None:
    given = {"harmless_warnings": True, "launcher_log": "torchrun", "kernel_log": True}
    _, found = told(tmp_path, seed, fault_count=0, **given)
    kinds = ("nccl_failure", "process_failure", "link_flap", "hang")
    assert not [entity for kind in kinds for entity in named(found, kind)]


_SWEEP: dict[str, Any] = {
    "hosts": 6, "job_kind": "dp", "steps_from": "none", "switch_counters": "leaves",
}  # fmt: skip


@pytest.mark.parametrize(
    ("fault", "seed", "kind", "benchmarks", "slow_by_chance"),
    [
        ("slow_swept_host", 3653, "slow_part", "pairs", 1),
        ("slow_swept_rail", 3656, "slow_part", "rails", 0),
        ("wrong_sums", 3658, "wrong_results", "hosts", 1),
    ],
)
def test_a_bad_part_of_benchmarks_is_found(
    tmp_path: Path, fault: str, seed: int, kind: str, benchmarks: str, slow_by_chance: int
) -> None:
    given = _SWEEP | {"fault": fault, "fault_parts": "one", "benchmarks": benchmarks}
    truth, found = told(tmp_path, seed, **given)
    assert truth["faults"][0]["identifiable"]
    entities = named(found, kind)
    assert any(is_culprit(entity, truth) for entity in entities)
    # What the part takes of its runs is told once; another run may be slow besides.
    assert len(named(found, "slow_benchmark")) == slow_by_chance


def test_benchmarks_of_sound_parts_are_no_alarm(tmp_path: Path) -> None:
    truth, found = told(tmp_path, 3664, **(_SWEEP | {"fault_count": 0, "benchmarks": "pairs"}))
    assert not truth["faults"]
    assert not named(found, "slow_part") and not named(found, "wrong_results")


@pytest.mark.parametrize("seed", [3650, 3651])
def test_switches_that_count_what_fec_mends_accuse_no_cable(tmp_path: Path, seed: int) -> None:
    truth, found = told(
        tmp_path, seed, fault_count=0, symbols_before_fec=True, hosts=8,
        switch_counters="leaves", leaf_os="eos", eos_form="json",
    )  # fmt: skip
    assert not truth["faults"]
    assert not named(found, "link_errors")
    assert "symbol_errors" in found.verdict.questions[2].evidence
