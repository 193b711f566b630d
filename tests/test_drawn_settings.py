"""Random worlds in which a setting of all hosts or leaves, or storage, is at fault.

Each has a sound counterpart that looks alike: small messages, slow links, other ECN thresholds,
storage in a class of its own.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_drawn_evidence import PLAIN, is_culprit, named, told

from fabricobs.simulator.random_worlds.ledger import Ledger
from fabricobs.simulator.random_worlds.site import Site
from fabricobs.simulator.random_worlds.spec import Spec, draw_spec
from fabricobs.simulator.random_worlds.storage import servers_of
from fabricobs.simulator.random_worlds.truth import ground_truth
from fabricobs.simulator.random_worlds.world import World, come_true
from fabricobs.store.session import open_session

_JOB: dict[str, Any] = {
    "inspector": True, "nic_gbps": 200, "oversubscription": 1.0, "uplink_ratio": 1,
    "job_kind": "dp", "tensor": 1, "parallel_links": 1, "uplinks_first": False,
}  # fmt: skip
_QUEUES: dict[str, Any] = {
    "hosts": 8, "oversubscription": 3.0, "leaf_os": "sonic", "sonic_form": "cli",
    "host_form": "sysfs", "uplink_ratio": 1, "parallel_links": 1, "job_kind": "dp",
    "communication": 0.4, "placement": "packed", "overlap": 0.0,
}  # fmt: skip
_STORAGE: dict[str, Any] = {
    "hosts": 6, "spare_hosts": 2, "host_form": "ethtool", "communication": 0.2, "job_kind": "dp",
    "tensor": 1, "fault_span": "whole", "fault_effect": 0.0,
}  # fmt: skip


def _spec(seed: int, **given: Any) -> Spec:
    return draw_spec(seed, **(PLAIN | given))


@pytest.mark.parametrize(
    ("fault", "seed", "kind", "more"),
    [
        ("throttling_variable", 3750, "slow_collectives", {}),
        ("throttling_variable", 3765, "slow_collectives", {"nccl_level": "info"}),
        ("gdr_off_everywhere", 3752, "gdr_disabled", {"nccl_level": "info", "inspector": False}),
    ],
)
def test_a_job_that_is_slow_from_its_first_step_is_found(
    tmp_path: Path, fault: str, seed: int, kind: str, more: dict[str, Any]
) -> None:
    truth, found = told(tmp_path, seed, **(_JOB | {"fault": fault} | more))
    (wrong,) = truth["faults"]
    assert wrong["identifiable"] and wrong["start_step"] == 1
    assert [entity["type"] for entity in named(found, kind)] == ["job"]


@pytest.mark.parametrize(
    ("seed", "more"),
    [(3753, {"small_messages": True}), (3754, {"small_messages": True}), (3755, {"nic_gbps": 100})],
)
def test_small_messages_and_slow_links_are_no_slow_collectives(
    tmp_path: Path, seed: int, more: dict[str, Any]
) -> None:
    truth, found = told(tmp_path, seed, **(_JOB | {"fault_count": 0} | more))
    assert not truth["faults"]
    assert not named(found, "slow_collectives")


def test_a_small_message_takes_longer_than_its_bytes() -> None:
    """The counterpart has teeth: by its bytes alone its collectives are far from the line rate."""
    world = come_true(_spec(3753, **(_JOB | {"fault_count": 0, "small_messages": True})))
    (phase,) = world.courses[0].launch.phases
    (transfer,) = world.courses[0].blocks[0].transfers
    moved = float(transfer.amount[::2].max()) / float(transfer.seconds.max())
    assert phase.latency > 0 and moved < 0.3 * 200e9 / 8


def test_a_throttled_job_is_not_identifiable_by_small_messages() -> None:
    """Latency bounds them with the fault and without it."""
    for small, wanted in ((False, True), (True, False)):
        spec = _spec(3750, **(_JOB | {"small_messages": small}))
        world = come_true(spec, ("throttling_variable",))
        (wrong,) = ground_truth(Site(world, Path("logs")))["faults"]
        assert wrong["identifiable"] is wanted


@pytest.mark.parametrize(("seed", "shown"), [(3756, "untold"), (3757, "usual")])
def test_leaves_that_never_mark_are_found(tmp_path: Path, seed: int, shown: str) -> None:
    given = {"fault": "unmarked_queues", "ecn_thresholds": shown, "switch_settings": True}
    truth, found = told(tmp_path, seed, **(_QUEUES | given))
    assert truth["faults"][0]["identifiable"]
    entities = named(found, "ecn_misconfigured")
    assert entities and all(is_culprit(entity, truth) for entity in entities)


@pytest.mark.parametrize("seed", [3758, 3759])
def test_leaves_that_mark_from_various_thresholds_on_are_no_finding(
    tmp_path: Path, seed: int
) -> None:
    given = {"fault_count": 0, "ecn_thresholds": "various", "switch_settings": True}
    _, found = told(tmp_path, seed, **(_QUEUES | given))
    with open_session(tmp_path / "store", "switch_settings") as session:
        rows = session.sql("FROM switch_settings WHERE name = 'green_min_threshold'").pl()
    thresholds = set(rows["value"])
    assert len(thresholds) > 1
    assert not named(found, "ecn_misconfigured")


@pytest.mark.parametrize("seed", [3760, 3761])
def test_storage_in_the_class_of_the_job_is_found(tmp_path: Path, seed: int) -> None:
    truth, found = told(tmp_path, seed, **(_STORAGE | {"fault": "storage_in_class"}))
    assert truth["faults"][0]["identifiable"]
    entities = named(found, "ecn_misconfigured")
    assert entities and all(is_culprit(entity, truth) for entity in entities)


@pytest.mark.parametrize("seed", [3762, 3763])
def test_storage_in_a_class_of_its_own_is_no_finding(tmp_path: Path, seed: int) -> None:
    """Though the NICs receive far more than they send."""
    given = _STORAGE | {"fault_count": 0, "own_class_storage": True, "communication": 0.05}
    world = come_true(_spec(seed, **given))
    ledger, moments = Ledger(world), np.array([0.0, world.duration])
    nics = np.unique(world.courses[0].launch.nic)
    sent, received, aside = (
        np.diff(ledger.total(name, links, moments), axis=0).sum()
        for name, links in (("amount", 2 * nics), ("amount", 2 * nics + 1), ("aside", 2 * nics + 1))
    )
    assert received + aside > 1.15 * sent
    _, found = told(tmp_path, seed, **given)
    assert not named(found, "ecn_misconfigured")


@pytest.mark.parametrize("given", [{"own_class_storage": True}, {"fault": "storage_in_class"}])
def test_what_is_read_from_storage_comes_from_hosts_that_the_job_does_not_use(
    given: dict[str, Any],
) -> None:
    world = come_true(_spec(3764, **(_STORAGE | {"fault_count": 0} | given)))
    assert _carried(world).any()
    topology = world.topology
    launches = tuple(course.launch for course in world.courses)
    servers = [nic for host in servers_of(topology, launches) for nic in topology.nics_of(host)]
    readers = np.setdiff1d(np.arange(topology.nics), servers)
    carried = _carried(world)
    assert carried[2 * np.array(servers)].sum() == pytest.approx(carried[2 * readers + 1].sum())
    assert not carried[2 * readers].any()
    for switch in (d for d in topology.devices if d.tier):
        ports = topology.ports_of(switch.index)
        into = sum(carried[2 * cable + 1 - side] for cable, side, _ in ports)
        out = sum(carried[2 * cable + side] for cable, side, _ in ports)
        assert into == pytest.approx(out)


_MARKS: dict[str, Any] = {
    "hosts": 12, "nics_per_host": 4, "hosts_per_leaf": 2, "rails": False, "few_marks": True,
    "host_form": "sysfs", "communication": 0.3, "overlap": 0.0, "job_kind": "dp", "pxn": False,
    "oversubscription": 1.0, "balancing": "flowlet", "uplink_ratio": 1, "parallel_links": 1,
    "switch_interval": 30.0, "uplinks_first": False,
}  # fmt: skip
_FORMS = ({"leaf_os": "sonic", "sonic_form": "cli"}, {"leaf_os": "cumulus", "cumulus_form": "nvue"})


@pytest.mark.parametrize(("seed", "form"), [(4100, _FORMS[0]), (4121, _FORMS[1])])
def test_a_leaf_with_far_lower_thresholds_is_one_finding_with_the_uplinks_that_mark(
    tmp_path: Path, seed: int, form: dict[str, Any]
) -> None:
    given = _MARKS | form | {"fault": "eager_leaf", "fault_effect": 1.1, "fault_span": "to_end"}
    truth, found = told(tmp_path, seed, **given)
    assert truth["faults"][0]["identifiable"]
    told_of = [finding for finding in found.findings if finding.severity != "info"]
    assert [finding.kind for finding in told_of] == ["ecn_misconfigured"]
    assert is_culprit(told_of[0].entities[0].as_dict(), truth)


@pytest.mark.parametrize("seed", [4111, 4112])
def test_an_uplink_that_fills_with_the_traffic_of_others_is_found(
    tmp_path: Path, seed: int
) -> None:
    given = _MARKS | _FORMS[0] | {"fault": "crowded_uplink", "fault_effect": 1.1}
    truth, found = told(tmp_path, seed, fault_span="to_end", **given)
    assert truth["faults"][0]["identifiable"]
    right = {truth["faults"][0]["kind"], *truth["faults"][0]["also"]}
    told_of = [finding for finding in found.findings if finding.severity != "info"]
    assert told_of and {finding.kind for finding in told_of} <= right
    assert all(is_culprit(e.as_dict(), truth) for f in told_of for e in f.entities)


@pytest.mark.parametrize("seed", [4124, 4127])
def test_marks_on_all_ports_and_flows_that_meet_by_chance_are_no_full_uplink_or_eager_leaf(
    tmp_path: Path, seed: int
) -> None:
    given = _MARKS | {"leaf_os": "eos", "eos_form": "json", "fault_count": 0}
    static = {"balancing": "static", "queue_pairs": 2} if seed == 4124 else {}
    _, found = told(tmp_path, seed, **(given | static))
    # Where few flows meet on a link it is full, and no alarm.
    full = [finding for finding in found.findings if finding.kind == "full_uplink"]
    assert len(full) <= (3 if static else 0)
    assert all(finding.severity == "low" for finding in full)
    assert not named(found, "ecn_misconfigured")


def _carried(world: World) -> np.ndarray:
    """Bytes a second [D] of storage on each link, in the state in which there is most."""
    return np.max([state.foreign + state.aside for state in world.states], axis=0)
