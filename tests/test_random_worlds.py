"""Random worlds: same seed, same bytes; links carry what adds up; the truth is what steps show."""

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from conftest import ROOT
from fabricobs.bench.random_worlds import WorldResult, tables
from fabricobs.bench.scoring import Score, score_case
from fabricobs.cli import app
from fabricobs.diagnosis.verdict import QUESTIONS
from fabricobs.exceptions import UserError
from fabricobs.formats.values import VALUE_TYPES
from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.simulator.random_worlds.case import write_world
from fabricobs.simulator.random_worlds.faults import ENDS, fault_kinds
from fabricobs.simulator.random_worlds.given import given_of
from fabricobs.simulator.random_worlds.gpu_logs import write_gpus
from fabricobs.simulator.random_worlds.gpus import IDLE, POWER_CAP, SETTING, Gpus, throttle_of
from fabricobs.simulator.random_worlds.ledger import Ledger
from fabricobs.simulator.random_worlds.optics import optics_fields
from fabricobs.simulator.random_worlds.printing import outputs
from fabricobs.simulator.random_worlds.site import Site
from fabricobs.simulator.random_worlds.spec import Spec, distributions, draw_spec
from fabricobs.simulator.random_worlds.switch_logs import write_switch_logs
from fabricobs.simulator.random_worlds.trainer import step_fields
from fabricobs.simulator.random_worlds.truth import ground_truth
from fabricobs.simulator.random_worlds.world import World, come_true, without
from fabricobs.simulator.scenarios import scenario_names
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session

SMALL = {"hosts": 6, "duration_minutes": 15.0, "step_seconds": 4.0, "hosts_per_leaf": 2}
WORLDS = {
    "sonic": SMALL | {"fabric": "ethernet", "leaf_os": "sonic", "sonic_form": "cli", "tiers": 2},
    "eos": SMALL | {"fabric": "ethernet", "leaf_os": "eos", "eos_form": "json", "rails": True},
    "nxos": SMALL | {"fabric": "ethernet", "leaf_os": "nxos", "nxos_form": "cli", "lldp": False},
    "cumulus": SMALL | {"fabric": "ethernet", "leaf_os": "cumulus", "cumulus_form": "nvue"},
    "perfquery": SMALL | {"fabric": "infiniband", "infiniband_form": "perfquery", "tiers": 2},
    "ibdiagnet": SMALL | {"fabric": "infiniband", "infiniband_form": "ibdiagnet"},
    "snmp": SMALL | {"fabric": "ethernet", "leaf_os": "eos", "eos_form": "snmp"},
}  # fmt: skip


def _small(name: str, **more: object) -> Spec:
    return draw_spec(7_000 + list(WORLDS).index(name), **(WORLDS[name] | more))


def test_each_property_is_drawn_by_a_seed() -> None:
    specs = [draw_spec(seed, only="").model_dump() for seed in range(1, 201)]
    for name, drawn in distributions().items():
        if name in {"only", "fault", "fault_size"}:
            continue
        wanted = set(drawn.values) if drawn.values and 0 not in drawn.weights else None
        found = {spec[name] for spec in specs}
        assert len(found) > 1, name
        assert wanted is None or found == wanted, name


def test_a_property_given_leaves_the_others_as_they_are() -> None:
    free, bound = draw_spec(11).model_dump(), draw_spec(11, hosts=3).model_dump()
    assert {name for name in free if free[name] != bound[name]} <= {"hosts"}


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            digest.update(f"{path.relative_to(folder)}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def test_same_seed_same_bytes(tmp_path: Path) -> None:
    spec = _small("sonic")
    for name in ("one", "two"):
        write_world(tmp_path / name, spec)
    write_world(tmp_path / "other", _small("eos"))
    assert _digest(tmp_path / "one") == _digest(tmp_path / "two") != _digest(tmp_path / "other")


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 9_999), st.sampled_from([1, 2, 3]), st.booleans())
def test_switches_forward_what_they_receive(seed: int, tiers: int, rails: bool) -> None:
    world = come_true(draw_spec(seed, **(SMALL | {"tiers": tiers, "rails": rails})))
    ledger, topology = Ledger(world), world.topology
    moments = np.array([0.0, world.duration])
    sent = {}
    for device in topology.devices:
        cable = np.array([c for c, _, _ in topology.ports_of(device.index)])
        side = np.array([s for _, s, _ in topology.ports_of(device.index)])
        out = np.diff(ledger.total("amount", 2 * cable + side, moments), axis=0).sum()
        into = np.diff(ledger.total("amount", 2 * cable + 1 - side, moments), axis=0).sum()
        sent[device.tier] = sent.get(device.tier, 0.0) + out
        if device.tier:
            assert out == pytest.approx(into, rel=1e-9), device.name
    assert sent[1] > 0 or not any(len(p.flows.source) for p in world.plans[0][0].launch.phases)


def test_both_ends_of_a_cable_count_the_same() -> None:
    world = come_true(_small("eos"))
    ledger = Ledger(world)
    shown = {
        device.index: ledger.read(device.index, np.array([0.0, world.duration]))
        for device in world.topology.devices
    }
    for low, high in world.topology.ends:
        here, there = (
            np.diff(shown[port.device][name][:, port.number - 1])[0]
            for port, name in ((low, "tx_data_bytes"), (high, "rx_data_bytes"))
        )
        assert abs(int(here) - int(there)) <= 2


@pytest.mark.parametrize(
    "kind", sorted(name for name, kind in fault_kinds().items() if kind.does not in ENDS)
)
def test_a_fault_costs_what_the_twin_saves(kind: str) -> None:
    world = _with_fault(kind)
    fault = world.faults[0]
    twin = without(world, fault)
    own, sound = (np.concatenate([c.seconds for c in w.courses]) for w in (world, twin))
    acts = fault.acts[: len(own)]
    assert not twin.faults
    assert np.allclose(own[~acts], sound[~acts]), "outside of it nothing changes"
    as_they_are = {"unused", "polarised", "half_speed", "swapped", "unmarked"}
    if fault.kind.does in as_they_are or kind == "small_mtu":
        return  # as large as they are, and balancing may hide them
    if fault.kind.sizes and fault.kind.does != "nothing":
        # Transfers are 0.4 of a step, and take so many times longer.
        longer = 0.6 + 0.4 / (1 - fault.size)
        assert own[acts].mean() / sound[acts].mean() == pytest.approx(longer, rel=0.1)
        return
    if fault.kind.does == "nothing":
        assert np.allclose(own, sound)
        return
    cost = 1 - sound[acts].mean() / own[acts].mean()
    assert cost == pytest.approx(1 - 1 / 1.2, abs=0.06)


def _with_fault(kind: str, **more: object) -> World:
    """A world of that fault alone, in plain conditions, aimed at steps a fifth longer."""
    plain = SMALL | {
        "fabric": fault_kinds()[kind].only or "ethernet", "fault_effect": 1.2, "tiers": 2,
        "fault_parts": "one", "job_kind": "dp", "overlap": 0.0, "tenants": 0.0, "gc_tails": 0.0,
        "rank_noise": 0.001, "communication": 0.4, "restarts": 0, "nics_per_host": 8,
        "gpus_per_host": 8, "tensor": 1, "uplink_ratio": 1, "fault_span": "to_end",
        "parallel_links": 1, "rails": kind == "swapped_rails", "oversubscription": 1.0,
        "leaf_os": "sonic",
    } | ({"spare_hosts": 2} if fault_kinds()[kind].strikes == "spare" else {})  # fmt: skip
    spec = draw_spec(5, **(plain | more))
    return come_true(spec, (kind,))


def test_a_narrow_link_is_identifiable_only_where_an_output_told_its_speed(tmp_path: Path) -> None:
    """Status that is read before and after a fault cannot show it."""
    site = Site(_with_fault("narrow_nic"), tmp_path)
    fault = site.world.faults[0]
    host = site.world.topology.ends[fault.parts[0]][0].device
    begins = np.concatenate([course.begin for course in site.world.courses])
    acts = fault.acts[: len(begins)]

    def told(moment: float) -> bool:
        site.speed_told(site.world.topology.devices[host], np.array([moment]))
        return bool(ground_truth(site)["faults"][0]["identifiable"])

    assert not told(float(begins[~acts][0]))
    assert told(float(begins[acts][3]))


@pytest.mark.parametrize(("share", "identifiable"), [(0.9, True), (2.0, False)])
def test_a_dead_uplink_is_identifiable_only_where_counters_stand_still(
    share: float, identifiable: bool
) -> None:
    """Readings further apart than its bursts show an uplink that carries somewhat less."""
    world = _with_fault("dead_uplink", fault_span="bursts", switch_counters="all")
    fault, course = world.faults[0], world.courses[0]
    leaf = world.topology.devices[world.topology.ends[fault.parts[0]][0].device]
    acts = np.concatenate([[False], fault.acts[: len(course.begin)], [False]]).astype(int)
    starts, stops = (np.flatnonzero(np.diff(acts) == way) for way in (1, -1))
    site = Site(world, Path("logs"))
    for first, after in list(zip(starts, stops, strict=True))[:-1]:
        begin, end = course.begin[first] + 0.01, course.end[after - 1]
        site.counters_told(leaf, np.array([begin, begin + share * (end - begin)]))
    assert ground_truth(site)["faults"][0]["identifiable"] is identifiable


@pytest.mark.parametrize(
    "form", [form for form in distributions()["gpu_form"].values if form != "none"]
)
@pytest.mark.parametrize("driver", ["525.147.05", "570.133.20"])
def test_every_output_about_gpus_tells_their_clocks(form: str, driver: str, tmp_path: Path) -> None:
    world = _with_fault(
        "throttled_gpu", hosts=2, gpu_form=form, gpu_driver=driver, host_interval=60.0, only="",
        clock_bound="none", zone="Asia/Shanghai", clock_spread=0.005,
    )  # fmt: skip
    site = Site(world, tmp_path / "logs")
    write_gpus(site)
    ingest([tmp_path / "logs"], Store(tmp_path / "store"), Options(zone="Asia/Shanghai"))
    with open_session(tmp_path / "store", "gpu_states") as session:
        told = session.sql("FROM gpu_states").pl()
    struck = world.faults[0].parts[0] % world.spec.gpus_per_host
    busy = told.filter(pl.col("utilization_percent") > 50)
    lowest = busy.filter(pl.col("sm_clock_mhz") < 0.9 * pl.col("sm_clock_mhz").max())
    assert len(told) and set(lowest["gpu"]) == {struck}
    assert told["ts"].min().replace(tzinfo=UTC) == pytest.approx(
        site.start, abs=timedelta(minutes=5)
    )
    if form not in {"dcgm", "dmon"}:
        _, cause = throttle_of(world, world.faults[0])
        wanted = {"heat": 32, "overheat": 64, "brake": 128, "limit": 4}[cause]
        assert all(reasons & wanted for reasons in lowest["throttle_reasons"])


def test_a_dark_lane_is_told_by_its_module_and_the_log_of_its_switch(tmp_path: Path) -> None:
    world = _with_fault("dim_leaf_optic", leaf_os="nxos", switch_log="each", optics=True, only="")
    cable = world.faults[0].parts[0]
    site = Site(world, tmp_path)
    write_switch_logs(site)
    (nic, port) = world.topology.ends[cable]
    leaf = world.topology.devices[port.device]
    place = port.number - 1
    before, after = (
        optics_fields(world, leaf, moment)[place] for moment in (-30.0, world.duration + 10)
    )
    assert {before[f"alarm{n}"] for n in (1, 2, 3, 4)} == {"Off"}
    assert [after[f"alarm{n}"] for n in (1, 2, 3, 4)].count("On") == 1
    far = optics_fields(world, world.topology.devices[nic.device], world.duration)
    assert all(lane["alarm1"] == "Off" for lane in far)
    said = [line for path in tmp_path.rglob("syslog.log") for line in path.read_text().splitlines()
            if "Low Rx Power Alarm" in line and "cleared" not in line]  # fmt: skip
    assert any(f"Interface {port.name}," in line and leaf.name in line for line in said)


@pytest.mark.parametrize("bound", ["none", "power", "setting"])
def test_a_throttled_gpu_alone_runs_below_the_clock_of_its_peers(bound: str) -> None:
    """Its computing time follows its clock; what bounds all GPUs alike leaves a small spread."""
    world = _with_fault("throttled_gpu", clock_bound=bound, silicon_spread=0.005, gpu_form="query")
    fault, course = world.faults[0], world.courses[0]
    ((struck, ratio, cause),) = [(fault.parts[0], *throttle_of(world, fault))]
    gpus, each = Gpus(world), world.spec.gpus_per_host
    clocks = {False: [], True: []}
    for step in (5, course.steps - 5):
        moment = np.array(
            [course.begin[step] + 0.3 * (course.arrival[step].min() - course.begin[step])]
        )
        for host in world.topology.switches(0)[: len(course.launch.hosts)]:
            for local, told in enumerate(gpus.read(host, moment)[0]):
                hit = host.index * each + local == struck and bool(fault.acts[step])
                clocks[hit].append(told["clock"])
                assert (told["reasons"] & ~(POWER_CAP | SETTING) > 0) == (hit and cause != "limit")
    usual = np.median(clocks[False])
    assert min(clocks[False]) > 0.93 * usual
    assert clocks[True] == pytest.approx([ratio * usual], rel=0.05)
    assert 1 / ratio > 1 + fault.size > 1


def test_idle_gpus_are_told_as_idle() -> None:
    """Those of spare hosts, and all of them before the job."""
    world = come_true(draw_spec(5, **(SMALL | {"spare_hosts": 2, "restarts": 0})), ())
    gpus, hosts = Gpus(world), world.topology.switches(0)
    spare = gpus.read(hosts[-1], np.array([world.duration / 2]))[0]
    early = gpus.read(hosts[0], np.array([-300.0]))[0]
    assert {(told["reasons"], told["utilization"] < 5) for told in spare + early} == {(IDLE, True)}
    assert {told["clock"] for told in spare} == {gpus.model.idle_clock}


def test_swapped_rails_are_cabled_to_the_leaf_of_the_other() -> None:
    world = _with_fault("swapped_rails", hosts_per_leaf=8)
    one, other = world.faults[0].parts
    planned = without(world, world.faults[0]).topology
    assert world.topology.leaf[one] == planned.leaf[other] != planned.leaf[one]
    assert world.topology.ends[one][1] == planned.ends[other][1]
    told = ground_truth(Site(world, Path("logs")))["faults"][0]
    assert told["identifiable"] == bool(told["shown_by"])
    assert {c["type"] for c in told["culprits"]} == {"nic", "port"}


@pytest.mark.parametrize(("parts", "identifiable"), [("one", True), ("batch", False)])
def test_another_variable_is_identifiable_where_the_others_agree(
    parts: str, identifiable: bool
) -> None:
    world = _with_fault("other_variable", hosts=6 if parts == "one" else 4, nccl_level="info",
                        fault_parts=parts, spare_hosts=0, only="")  # fmt: skip
    world = world if identifiable else replace(
        world, faults=(replace(world.faults[0], parts=(0, 1)),)
    )  # fmt: skip
    told = ground_truth(Site(world, Path("logs")))["faults"][0]
    assert told["loss_share"] == 0 and told["identifiable"] is identifiable


@pytest.mark.parametrize("kind", ["hang", "nic_flap"])
@pytest.mark.parametrize("seed", range(6))
def test_a_part_that_a_restart_replaces_fails_while_it_is_used(kind: str, seed: int) -> None:
    spec = draw_spec(seed, **(SMALL | {"hosts": 2, "spare_hosts": 4, "restarts": 2}))
    (fault,) = come_true(spec, (kind,)).faults
    assert kind != "hang" or fault.acts.any()


def test_nobody_sends_over_a_dead_uplink() -> None:
    world = _with_fault("dead_uplink", tenants=0.2)
    (dead,) = world.faults[0].parts
    busy = [state for state in world.states if state.foreign.any()]
    assert {bool(state.weight[2 * dead]) for state in busy} == {False, True}
    assert all(bool(s.foreign[2 * dead]) == bool(s.weight[2 * dead]) for s in busy)


@pytest.mark.parametrize("name", sorted(WORLDS))
def test_all_that_is_meant_to_be_read_is_read(name: str, tmp_path: Path) -> None:
    spec = _small(
        name,
        foreign_files=False,
        trainer="megatron",
        switch_counters="all",
        stamp="iso",
        only="",
        # A copied sysfs tree is a file a value: a few rounds hold all that a hundred hold.
        host_interval=120.0,
        optics=True,
        switch_settings=True,
        host_settings="dcb" if name == "sonic" else "mlnx_qos",
        gpu_form="q" if name == "sonic" else "dmon",
    )
    truth = write_world(tmp_path / "world", spec)
    store = tmp_path / "store"
    ingest([tmp_path / "world" / "logs"], Store(store), Options(zone=truth["zone"]))
    files = pl.read_parquet(f"{store}/*/files.parquet")
    unread = files.filter(pl.col("unparsed") > 0)
    assert not len(unread), unread.select("path", "lines", "unparsed").head(5).to_dicts()
    assert files["parsed"].sum() > 0


@pytest.mark.parametrize("file", ["outputs.toml", "gpu_outputs.toml"])
def test_the_banner_above_an_output_is_read(file: str) -> None:
    """Without it the rows below have no time."""
    command = re.compile(VALUE_TYPES["command"].pattern)
    names = {
        output.name
        for output in outputs(file)
        if output.style != "document" and not output.extension and "ethtool" not in output.name
    }
    assert {name for name in names if not command.fullmatch(name)} == set()


def test_a_copied_sysfs_tree_tells_what_the_printed_one_does(tmp_path: Path) -> None:
    rows = {}
    for form in ("sysfs", "sysfs_tree"):
        spec = _small(
            "perfquery", host_form=form, switch_counters="none", only="", hosts=2,
            nccl_level="none", steps_from="none", inspector=False, host_interval=80.0,
        )  # fmt: skip
        write_world(tmp_path / form, spec)
        store = tmp_path / f"store-{form}"
        ingest([tmp_path / form / "logs"], Store(store), Options(zone=spec.zone))
        samples = pl.read_parquet(f"{store}/*/port_samples.parquet")
        highest = pl.col("tx_bytes", "rx_bytes", "link_downed").max()
        rows[form] = samples.group_by("device", "port").agg(highest).sort("device", "port").rows()
    assert rows["sysfs"] == rows["sysfs_tree"] != []


def scored(
    truth: Mapping[str, Any], findings: list[SimpleNamespace], answer: str = "unknown"
) -> Score:
    """Score what a diagnosis would hold that gives all questions one answer."""
    questions = [SimpleNamespace(answer=answer)] * len(QUESTIONS)
    found: Any = SimpleNamespace(findings=findings, verdict=SimpleNamespace(questions=questions))
    return score_case(truth, found, interval_seconds=10, step_seconds=1)


def test_the_score_knows_a_fault_said_twice_and_the_loss_of_a_fault() -> None:
    at = datetime(2026, 3, 2, 9, tzinfo=UTC)
    port = {"type": "port", "switch": "leaf01", "port": "Ethernet8"}
    fault = {
        "fault": "pause_storm", "kind": "pfc_storm", "also": ["congestion"], "culprits": [port],
        "start": at.isoformat(), "end": (at + timedelta(hours=1)).isoformat(), "loss_share": 0.2,
        "identifiable": True,
    }  # fmt: skip
    later = at + timedelta(hours=2)
    change = {"start": later.isoformat(), "end": (later + timedelta(hours=1)).isoformat()}
    missed = fault | {"fault": "bad_nic_cable", "kind": "link_errors", "also": []}
    truth = {
        "scenario": "random-1", "seed": 1, "faults": [fault, missed], "duration_seconds": 43_200,
        "jobs": [{"steps": 10}], "pace_changes": [change],
    }  # fmt: skip

    def finding(kind: str, entity: dict[str, str]) -> SimpleNamespace:
        return SimpleNamespace(
            kind=kind, severity="high", confidence=0.9, start=at, end=None, detected_at=at,
            loss_share=0.18, entities=[SimpleNamespace(as_dict=lambda: entity)],
        )  # fmt: skip

    wrong = finding("straggler", {"type": "host", "host": "n1"})
    lead, loss = (finding("throughput_drop", {}) for _ in range(2))
    lead.severity, lead.loss_share = "low", None
    lead.start = loss.start = later
    said = [finding("congestion", port), finding("pfc_storm", port), wrong, lead, loss]
    score = scored(truth, said, answer="ok")
    assert [(c.right, c.again) for c in score.claims] == [
        (True, True),
        (False, True),
        (False, False),
        (False, True),  # longer steps of a larger batch are no loss, and none is said
        (False, False),
    ]
    assert score.days == 0.5 and score.outcomes[0].right_first
    assert [(o.found, o.called_ok) for o in score.outcomes] == [(True, False), (False, True)]
    text = tables([WorldResult(1, score), WorldResult(2, None, failure="ValueError: no")])
    assert "0.33 of 3" in text and "random-2" in text and "1 straggler" in text


@pytest.mark.parametrize(
    ("kind", "known"),
    [
        ("throughput_drop", True),
        ("congestion", True),
        ("oversubscription", True),
        ("straggler", False),
        ("link_errors", False),
    ],
)
def test_what_others_cost_and_what_is_built_so_is_no_false_finding(kind: str, known: bool) -> None:
    spec = draw_spec(5, tiers=2, hosts=16, oversubscription=3.0, tenants=0.2, nccl_level="none")
    world = come_true(spec)
    truth = ground_truth(Site(world, Path("logs"))) | {"faults": []}
    (change,) = (c for c in truth["pace_changes"] if c["why"] == "Other tenants send.")
    claim = SimpleNamespace(
        kind=kind, severity="high", confidence=0.9, start=datetime.fromisoformat(change["start"]),
        end=None, detected_at=None, loss_share=0.1, entities=[],
    )  # fmt: skip
    score = scored(truth, [claim])
    assert [(c.right, c.again) for c in score.claims] == [(False, known)]


@pytest.mark.parametrize("balancing", ["static", "adaptive"])
@pytest.mark.parametrize("severity", ["low", "medium", "high"])
def test_uneven_links_by_chance_are_no_false_finding_while_no_alarm_is_made(
    severity: str, balancing: str
) -> None:
    spec = draw_spec(
        7,
        tiers=2,
        hosts=8,
        oversubscription=1.0,
        parallel_links=1,
        balancing=balancing,
        tenants=0.0,
    )
    truth = ground_truth(Site(come_true(spec, ()), Path("logs")))
    claim = SimpleNamespace(
        kind="ecmp_skew", severity=severity, confidence=0.9, start=None, end=None,
        detected_at=None, loss_share=None, entities=[],
    )  # fmt: skip
    score = scored(truth, [claim])
    assert [c.again for c in score.claims] == [severity == "low" and balancing == "static"]


@pytest.mark.parametrize(("jobs", "right"), [(1, True), (2, False)])
def test_the_only_job_is_right_under_any_name(jobs: int, right: bool) -> None:
    at = datetime(2026, 3, 2, 9, tzinfo=UTC)
    fault = {
        "fault": "slow_data", "kind": "workload_imbalance", "loss_share": 0.2,
        "culprits": [{"type": "job", "job": "pretrain"}],
        "start": at.isoformat(), "end": at.isoformat(),
    }  # fmt: skip
    truth = {"scenario": "w", "seed": 1, "faults": [fault], "jobs": jobs * [{"steps": 10}]}
    said = SimpleNamespace(
        kind="workload_imbalance", severity="high", confidence=0.9, start=None, end=None,
        detected_at=None, loss_share=0.2,
        entities=[SimpleNamespace(as_dict=lambda: {"type": "job", "job": "logs"})],
    )  # fmt: skip
    score = scored(truth, [said])
    assert score.outcomes[0].right_first is right


def test_the_command_writes_a_world(tmp_path: Path) -> None:
    target = tmp_path / "world"
    done = CliRunner().invoke(
        app,
        ["simulate", str(target), "--world", "random", "--seed", "29", "--given", "fault_count=0"],
    )
    assert done.exit_code == 0, done.output
    truth = json.loads((target / "truth.json").read_text())
    assert truth["seed"] == 29 and any((target / "logs").rglob("*"))
    assert not truth["faults"]
    refused = CliRunner().invoke(app, ["simulate", str(target), "--world", "random", "--gpus", "8"])
    assert isinstance(refused.exception, UserError)


def test_every_diagnosis_is_drawn_with_its_healthy_counterpart_or_the_table_says_why_not() -> None:
    """What nothing simulated shows is scored by nothing: `drawn_diagnoses.toml` is the table."""
    table = tomllib.loads((ROOT / "tests" / "drawn_diagnoses.toml").read_text(encoding="utf-8"))
    faults = fault_kinds().values()
    drawn = {name for fault in faults for name in (fault.model or fault.kind, *fault.also)}
    shown = drawn | {*scenario_names()}
    assert table.keys() == {path.stem for path in (ROOT / "models").glob("*.toml")}
    assert drawn <= table.keys()
    assert {name for name in table if name not in shown} == {
        name for name, row in table.items() if row.get("undrawn")
    }
    known = {*distributions(), *scenario_names()}
    assert all(row["healthy"] and {*row["healthy"]} <= known for row in table.values())


def _texts() -> list[str]:
    """Names of the properties that are texts."""
    fields = Spec.model_fields.items()
    return sorted(
        name
        for name, field in fields
        if name in distributions() and field.annotation not in {int, float, bool}
    )


@pytest.mark.parametrize("name", _texts())
def test_a_value_that_nothing_is_written_for_is_refused(name: str) -> None:
    """All texts that are drawn, and all kinds of fault, can be given; no other can."""
    known = [*fault_kinds()] if name == "fault" else distributions()[name].values
    for value in known:
        assert given_of([f"{name}={value}"]) == {name: value}
    said = f"--given {name}=nonesuch: {name} is one of "
    with pytest.raises(UserError, match=re.escape(said) + f".*{re.escape(known[0])}"):
        given_of([f"{name}=nonesuch"])


def test_trainers_tell_the_work_of_a_step() -> None:
    """Half a batch is half the operations, and samples add up over a ramp."""
    spec = _small("perfquery", hosts=2, ramp_up=True, curriculum=False, restarts=0)
    site = Site(come_true(spec, ()), Path())
    (course,) = site.world.courses
    fields = [step_fields(site, course, 0, step) for step in range(course.steps)]
    work = np.array([f["tflops"] * f["seconds"] for f in fields])
    ramp = course.noise.batch < 1
    assert work[ramp] == pytest.approx(work[-1] / 2) and work[~ramp] == pytest.approx(work[-1])
    consumed = np.diff([0, *(f["samples"] for f in fields)])
    assert consumed == pytest.approx([f["batch"] for f in fields], abs=1)
    (change,) = ground_truth(site)["pace_changes"]
    assert change["why"] == "The batch doubles."


# What each evidence that a truth names must fill in the store: one of the columns.
_FILLS = {
    "bytes": {"tx_bytes"},
    "errors": {"rx_errors", "symbol_errors"},
    "drops": {"tx_discards", "drop_packets", "drop_bytes"},
    "downs": {"link_downed"},
    "pauses": {"pfc_rx_frames"},
    "waits": {"xmit_wait"},
    "losses": {"packet_seq_err"},
}
_FORMS = [
    (name.removesuffix("_form"), form)
    for name, drawn in distributions().items()
    if name.endswith("_form") and name != "gpu_form"  # GPUs count no packets
    for form in drawn.values
    if form != "none"
]


def test_evidence_that_a_truth_names_is_read_of_every_output(tmp_path: Path) -> None:
    """Every form of every vendor fills the columns that the truth relies on."""
    wanted: dict[str, set[str]] = {}
    for system, form in _FORMS:
        fabric = "infiniband" if system == "infiniband" else "ethernet"
        leaf = system if system not in {"host", "infiniband"} else "sonic"
        spec = draw_spec(
            7_100, hosts=2, tiers=1, gpus_per_host=4, nics_per_host=2, step_seconds=4.0, only="",
            duration_minutes=15.0, switch_interval=200.0, host_interval=200.0, foreign_files=False,
            fabric=fabric, leaf_os=leaf, same_spine_os=True, layout="appended",
            **{f"{system}_form": form},
            **({"host_form": "none"} if system != "host" else {"switch_counters": "none"}),
            nccl_level="none", steps_from="none", inspector=False, kernel_log=False,
        )  # fmt: skip
        truth = write_world(tmp_path / "logs" / f"{system}-{form}", spec)
        side = "nic" if system == "host" else "leaf"
        told = {name.removeprefix(f"{side}_") for name in truth["evidence"]} & set(_FILLS)
        if fabric == "infiniband":  # it has credits, and no pauses
            told = {name.replace("pauses", "waits") for name in told}
        wanted[f"{system}-{form}"] = told
    store = tmp_path / "store"
    ingest([tmp_path / "logs"], Store(store), Options())
    path = pl.read_parquet(f"{store}/*/files.parquet").select("file_id", "path")
    filled: dict[str, set[str]] = {name: set() for name in wanted}
    for table in ("port_samples", "priority_samples"):
        rows = pl.read_parquet(f"{store}/*/{table}.parquet").join(path, on="file_id")
        for name in wanted:
            own = rows.filter(pl.col("path").str.contains(f"/{name}/"))
            filled[name] |= {c for c in own.columns if own[c].is_not_null().any()}
    missing = {
        name: sorted(kind for kind in kinds if not _FILLS[kind] & filled[name])
        for name, kinds in wanted.items()
    }
    assert {name: kinds for name, kinds in missing.items() if kinds} == {}
