"""The simulator: its physics hold, and the same seed tells the same story, byte for byte."""

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import ROOT
from conftest import Run as Command
from fabricobs.simulator import SEED
from fabricobs.simulator.cases import write_case
from fabricobs.simulator.fabric import Fabric, observe
from fabricobs.simulator.faults import FAULTS
from fabricobs.simulator.random_worlds.scenario import WorldShape
from fabricobs.simulator.run import Run
from fabricobs.simulator.scenarios import (
    Scenario,
    ScenarioError,
    load_scenario,
    scenario_names,
)
from fabricobs.simulator.shapes import (
    ClusterShape,
    CollectionShape,
    FaultShape,
    JobShape,
    ScenarioShape,
)
from fabricobs.simulator.truth import ground_truth, lost_share
from fabricobs.simulator.world import World, come_true

pytestmark = pytest.mark.slow

# A healthy production fabric, 20 leaves of 30 uplinks: seconds, max/mean p50 and p95, CV p50 and
# p95 (FIELD.md).
PRODUCTION = (
    (60, 1.40, 1.91, 0.167, 0.271),
    (300, 1.16, 1.32, 0.076, 0.150),
    (600, 1.11, 1.21, 0.055, 0.106),
    (1800, 1.07, 1.11, 0.032, 0.061),
)


def world_of(*faults: FaultShape, seed: int = 11, **changes: Any) -> World:
    """A small world; `changes` are parts of a scenario."""
    cluster = changes.pop("cluster", ClusterShape(gpus=64, hosts_per_leaf=2))
    jobs = changes.pop("jobs", (JobShape(steps=60, checkpoint_every=25),))
    shape = ScenarioShape(
        title="", teaches="", cluster=cluster, jobs=jobs, faults=faults, **changes
    )
    return come_true("test", shape, seed)


def data(direction: Any, moment: float) -> np.ndarray:
    """Bytes of the data class alone, those of earlier jobs and of the background left out."""
    value: np.ndarray = direction.data.at(moment)
    return value


@pytest.mark.parametrize("balancing", ["static", "flowlet"])
@pytest.mark.parametrize("wiring", ["fat-tree", "rail"])
@pytest.mark.parametrize("fault", ["ecmp_polarisation", "one_way_dead_uplink", "mixed_traffic"])
def test_bytes_are_conserved_along_every_path(balancing: str, wiring: str, fault: str) -> None:
    shape = ClusterShape.model_validate(
        {"gpus": 64, "hosts_per_leaf": 2, "balancing": balancing, "wiring": wiring}
    )
    world = world_of(FaultShape(kind=fault), cluster=shape)
    cluster, fabric, end = world.cluster, observe(world), world.duration
    sent, received = data(fabric.nics.tx, end), data(fabric.nics.rx, end)
    up, down = data(fabric.leaf_uplinks.tx, end), data(fabric.leaf_uplinks.rx, end)
    job = world.courses[0].run.job
    per_step = sum(collective.nic_bytes for collective in job.collectives)
    np.testing.assert_allclose(sent, per_step * job.shape.steps, rtol=1e-9)

    leaf_of = cluster.leaf_of_nic
    crosses = leaf_of[job.gpus] != leaf_of[job.gpus[job.next_rank]]
    for leaf in range(cluster.leaves):
        here = slice(leaf * cluster.uplinks_per_leaf, (leaf + 1) * cluster.uplinks_per_leaf)
        leaving = sent[(leaf_of == leaf) & crosses].sum()
        np.testing.assert_allclose(up[here].sum(), leaving, rtol=1e-6)
        local = sent[(leaf_of == leaf) & ~crosses].sum()
        np.testing.assert_allclose(
            received[leaf_of == leaf].sum(), local + down[here].sum(), rtol=1e-6
        )
    foreign = received.sum() - sent.sum()
    for spine in range(cluster.spines):
        at = cluster.spine_of_uplink == spine
        np.testing.assert_allclose(
            down[at].sum(), up[at].sum() + foreign / cluster.spines, rtol=1e-6
        )


def readers(fabric: Fabric) -> list[Any]:
    groups = (fabric.nics, fabric.leaf_nic_ports, fabric.leaf_uplinks, fabric.spine_ports)
    found: list[Any] = [read for g in groups for read in (g.rx_bytes, g.tx_bytes)]
    found += [read for g in groups for read in (g.rx_pause_frames, g.tx_pause_microseconds)]
    found += [lambda m, g=g, n=n: g.error_count(n, m) for g in groups for n in g.errors]
    meters = (fabric.ecn_marked, fabric.cnp_sent, fabric.cnp_handled, fabric.out_of_sequence)
    return [*found, *(m.at for m in meters), fabric.timeouts.at, fabric.storms.at]


@pytest.mark.parametrize("kind", sorted(FAULTS))
def test_counters_never_fall(kind: str) -> None:
    world = world_of(FaultShape(kind=kind, at=0.3), jobs=(JobShape(steps=40),))
    moments = np.linspace(-60, world.duration + 60, 120)
    for read in readers(observe(world)):
        values = np.stack([read(moment) for moment in moments])
        assert (np.diff(values, axis=0) >= 0).all()
        assert (values >= 0).all()


@pytest.mark.parametrize("name", ["straggling_rank", "straggling_rank_in_pipeline", "lossy_class"])
def test_the_last_arriver_has_the_shortest_collective(name: str) -> None:
    run = come_true(name, load_scenario(name).sized(64).shape, 12).courses[0].run
    for index, collective in enumerate(run.job.collectives):
        for group in range(int(run.job.group(collective.scope).max()) + 1):
            members = run.job.members(collective.scope, group)
            arrival = run.arrival[:, index, members]
            durations = run.collective_seconds[:, index, members]
            assert (durations.argmin(axis=1) == arrival.argmax(axis=1)).all()
            pure = run.done[:, index, members[0]] - arrival.max(axis=1)
            np.testing.assert_allclose(durations.min(axis=1), pure, atol=1e-9)


def test_a_step_is_the_sum_of_its_parts() -> None:
    run = world_of(jobs=(JobShape(steps=60, checkpoint_every=0),)).courses[0].run
    rest = run.step_seconds - run.data - run.compute - run.communication
    assert (rest > -1e-9).all()
    assert np.median(rest) < 0.1


def test_the_pipeline_takes_as_long_as_its_slowest_stage_asks() -> None:
    def median_step(weights: tuple[float, ...]) -> float:
        job = JobShape(steps=40, tensor=8, pipeline=4, stage_weights=weights, checkpoint_every=0)
        return float(np.median(world_of(jobs=(job,)).courses[0].run.step_seconds))

    even, uneven = median_step((1, 1, 1, 1)), median_step((1, 1, 1, 1.5))
    slowest = 1.5 / ((3 + 1.5) / 4)
    assert even < uneven < slowest * even


@pytest.fixture(scope="module")
def production() -> tuple[World, Fabric]:
    shape = ClusterShape(gpus=640, uplink_gbps=400, oversubscription=32 / 30, placement="packed")
    world = world_of(cluster=shape, jobs=(JobShape(steps=1400, checkpoint_every=0),), seed=13)
    assert (world.cluster.leaves, world.cluster.uplinks_per_leaf) == (20, 30)
    return world, observe(world)


@pytest.mark.parametrize("row", PRODUCTION, ids=lambda row: f"{row[0]}s")
def test_uplinks_are_as_even_as_in_production(
    production: tuple[World, Fabric], row: tuple[float, ...]
) -> None:
    world, fabric = production
    window, *expected = row
    moments = np.arange(60, world.duration, window)
    sent = np.diff([data(fabric.leaf_uplinks.tx, moment) for moment in moments], axis=0)
    loads = sent.reshape(len(moments) - 1, 20, 30)
    imbalance = loads.max(axis=2) / loads.mean(axis=2)
    spread = loads.std(axis=2) / loads.mean(axis=2)
    measured = [*np.quantile(imbalance, [0.5, 0.95]), *np.quantile(spread, [0.5, 0.95])]
    for value, wanted in zip(measured, expected, strict=True):
        assert wanted / 1.5 <= value <= wanted * 1.5


def test_a_healthy_ring_reaches_the_bus_bandwidth_of_the_field() -> None:
    run = world_of(cluster=ClusterShape(gpus=128)).courses[0].run
    gradients = run.job.collectives[0]
    seconds = np.median(run.done[:, 0] - run.start[:, 0])
    per_nic = gradients.message_bytes * gradients.bus_factor / seconds / run.job.channels
    assert 0.75 <= per_nic / (400e9 / 8) <= 0.85


def test_pauses_are_rare_in_health_and_long_in_a_storm() -> None:
    def pause_share(world: World) -> np.ndarray:
        end = world.duration
        share: np.ndarray = observe(world).nics.tx_pauses.at(end) / 1e6 / end
        return share

    assert (pause_share(world_of()) < 0.001).all()
    storm = world_of(FaultShape(kind="pfc_storm", at=0))
    share = pause_share(storm)
    culprit = storm.faults[0].culprits[0]
    stormy = storm.cluster.nics[int(share.argmax())]
    assert (stormy.host_name, stormy.device) == (culprit["host"], culprit["nic"])
    assert share.max() > 0.2
    assert np.sort(share)[-2] < 0.001


def test_pauses_spread_from_the_storm_towards_the_senders() -> None:
    world = world_of(FaultShape(kind="pfc_storm", at=0))
    fabric, end = observe(world), world.duration
    leaf = world.cluster.nics[int(fabric.nics.tx_pauses.at(end).argmax())].leaf
    of_leaf = np.array([u.leaf == leaf for u in world.cluster.uplinks])
    towards_spines = fabric.leaf_uplinks.tx_pauses.at(end)
    assert towards_spines[of_leaf].mean() > 20 * towards_spines[~of_leaf].mean()
    assert fabric.spine_ports.tx_pauses.at(end).max() > 20 * towards_spines[~of_leaf].mean()


@pytest.mark.parametrize("slowdown", [1.03, 1.10, 1.5])
@pytest.mark.parametrize(
    "kind",
    [
        "straggling_rank",
        "bad_cable",
        "bad_uplink_cable",
        "incast",
        "pfc_storm",
        "slow_data_loading",
    ],
)
def test_a_fault_costs_what_it_is_asked_to(kind: str, slowdown: float) -> None:
    world = world_of(
        FaultShape(kind=kind, slowdown=slowdown, at=0.2), jobs=(JobShape(steps=80),), seed=15
    )
    assert lost_share(world, world.faults[0]) == pytest.approx(1 - 1 / slowdown, abs=0.012)


def test_twins_share_their_noise() -> None:
    faulty = world_of(FaultShape(kind="straggling_rank", at=0.5)).courses[0].run
    healthy = world_of().courses[0].run
    np.testing.assert_array_equal(faulty.step_seconds[:30], healthy.step_seconds[:30])
    assert (faulty.step_seconds[31:] > healthy.step_seconds[31:]).all()


def test_a_second_fault_is_charged_its_own_part() -> None:
    world = come_true("two_faults", load_scenario("two_faults").sized(64).shape, 16)
    first, second = (lost_share(world, fault) for fault in world.faults)
    assert 0.08 < first < 0.16
    assert 0.10 < second < 0.20


DRAWN = [name for name in scenario_names() if isinstance(load_scenario(name).shape, WorldShape)]


@pytest.mark.parametrize("name", sorted({*scenario_names()} - {*DRAWN}))
def test_every_scenario_comes_true_with_an_answer(name: str) -> None:
    scenario = load_scenario(name)
    for gpus in (64, None):
        shape = scenario.sized(gpus).shape
        assert isinstance(shape, ScenarioShape)
        truth = ground_truth(come_true(name, shape, 17))
        assert len(truth["faults"]) == len(shape.faults)
        for fault in truth["faults"]:
            assert fault["culprits"]
            assert 0 <= fault["loss_share"] <= 1
            assert fault["start"] < fault["end"]


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("seed", [3731, 3732])
def test_the_evidence_of_every_drawn_scenario_shows_its_fault(
    name: str, seed: int, tmp_path: Path
) -> None:
    truth = write_case(tmp_path, load_scenario(name).sized(32), seed=seed)
    assert json.loads((tmp_path / "truth.json").read_text()) == truth
    assert truth["scenario"] == name and truth["jobs"][0]["ranks"] == 32
    (fault,) = truth["faults"]
    assert fault["identifiable"] and fault["culprits"]


def test_a_mistake_in_a_drawn_scenario_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    for world, said in (
        ('fault = "gremlins"', "no fault 'gremlins'"),
        ("colour = 3", "no property 'colour'"),
        ('nic_gbps = "fast"', "nic_gbps"),
    ):
        path.write_text(f'title = "t"\nteaches = "x"\n[world]\n{world}\n', encoding="utf-8")
        with pytest.raises(ScenarioError, match=said):
            load_scenario(str(path))


def test_kinds_of_logs_are_no_choice_of_a_drawn_scenario(
    fabricobs: Command, tmp_path: Path
) -> None:
    done = fabricobs("simulate", tmp_path / "x", "gpu_throttle", "--only", "train")
    assert done.returncode == 3 and "gpu_throttle: a drawn world" in done.stderr


def test_jobs_share_the_cluster() -> None:
    world = come_true("healthy_noisy", load_scenario("healthy_noisy").shape, 18)
    hosts = [set(course.run.job.hosts) for course in world.courses]
    assert not hosts[0] & hosts[1]
    assert len(hosts[0] | hosts[1]) == world.cluster.shape.hosts


@given(
    gpus=st.sampled_from([16, 64, 96, 256]),
    wiring=st.sampled_from(["fat-tree", "rail"]),
    hosts_per_leaf=st.integers(1, 8),
    oversubscription=st.sampled_from([0.5, 1.0, 2.0, 4.0]),
    seed=st.integers(0, 1000),
)
@settings(max_examples=40)
def test_every_shape_of_cluster_runs(
    gpus: int, wiring: str, hosts_per_leaf: int, oversubscription: float, seed: int
) -> None:
    shape = ClusterShape.model_validate(
        {
            "gpus": gpus,
            "wiring": wiring,
            "hosts_per_leaf": hosts_per_leaf,
            "oversubscription": oversubscription,
        }
    )
    world = world_of(cluster=shape, jobs=(JobShape(steps=20),), seed=seed)
    positions = {(nic.leaf, nic.position) for nic in world.cluster.nics}
    assert len(positions) == gpus
    run = world.courses[0].run
    assert np.isfinite(run.step_seconds).all()
    assert (run.step_seconds > 0).all()
    assert (observe(world).leaf_uplinks.tx_bytes(world.duration) >= 0).all()


def _same(one: Run, other: Run) -> bool:
    return bool((one.end == other.end).all() and (one.arrival == other.arrival).all())


def test_the_same_seed_tells_the_same_story_and_another_another() -> None:
    worlds = [come_true("x", load_scenario("two_faults").shape, seed) for seed in (19, 19, 20)]
    runs = [world.courses[0].run for world in worlds]
    assert _same(runs[0], runs[1])
    assert not _same(runs[0], runs[2])
    first, second = (observe(world) for world in worlds[:2])
    for one, other in zip(readers(first), readers(second), strict=True):
        np.testing.assert_array_equal(one(200.0), other(200.0))


def test_a_mistake_in_a_scenario_names_file_and_key(tmp_path: Any) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('title = "t"\nteaches = "x"\n[cluster]\ngpu = 64\n', encoding="utf-8")
    with pytest.raises(ScenarioError, match=r"mine\.toml: cluster\.gpu: "):
        load_scenario(str(path))
    with pytest.raises(ScenarioError, match=r"no scenario 'helthy'.*healthy"):
        load_scenario("helthy")


def test_an_unknown_fault_is_named() -> None:
    scenario = load_scenario("healthy")
    shape = scenario.shape.model_copy(update={"faults": (FaultShape(kind="gremlins"),)})
    with pytest.raises(ValueError, match="gremlins"):
        come_true("x", replace(scenario, shape=shape).shape, 1)


def test_a_size_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ScenarioError, match="100 GPUs"):
        Scenario("x", load_scenario("healthy").shape).sized(100)


def test_collection_limits_are_checked() -> None:
    with pytest.raises(ValueError, match="switch_interval"):
        CollectionShape(switch_interval=0.1)


def content(path: Path) -> object:
    """What a file says, free of what other releases of zlib or Arrow pack differently."""
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pydict()
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def files(directory: Path) -> dict[Path, Path]:
    """The generated files of a case by relative path."""
    found = [directory / "truth.json", *(directory / "logs").rglob("*")]
    return {path.relative_to(directory): path for path in found if path.is_file()}


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "other"):
        write_case(tmp_path / name, load_scenario("two_faults").sized(64), seed=21)
    one, other = files(tmp_path / "one"), files(tmp_path / "other")
    assert one.keys() == other.keys()
    assert all(one[name].read_bytes() == other[name].read_bytes() for name in one)


def test_the_committed_sample_is_what_the_simulator_writes(tmp_path: Path) -> None:
    write_case(tmp_path, load_scenario("sample"), seed=SEED)
    committed, written = files(ROOT / "sample_data"), files(tmp_path)
    assert committed.keys() == written.keys()
    for name, path in committed.items():
        assert content(path) == content(written[name]), name


def test_the_committed_sample_is_small() -> None:
    size = sum(p.stat().st_size for p in (ROOT / "sample_data").rglob("*") if p.is_file())
    assert size < 3_000_000


def test_a_practice_set_hides_its_answers(fabricobs: Command, tmp_path: Path) -> None:
    done = fabricobs("simulate", tmp_path, "--cases", 2, "--gpus", 64, "--only", "train")
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"answers", "case01", "case02"}
    assert not list(tmp_path.glob("case*/**/truth.json"))
    answer = json.loads((tmp_path / "answers" / "case01.json").read_text())
    assert answer["scenario"] in scenario_names()
    assert [path.name for path in (tmp_path / "case01" / "logs").iterdir()] == ["train"]


def test_a_kind_of_log_that_does_not_exist_is_named(fabricobs: Command, tmp_path: Path) -> None:
    done = fabricobs("simulate", tmp_path / "x", "healthy", "--without", "syslog")
    assert done.returncode == 3
    assert "no kind of log 'syslog'; one of nccl, " in done.stderr
    assert not (tmp_path / "x").exists()


def test_every_kind_of_log_is_listed(fabricobs: Command) -> None:
    listed = fabricobs("simulate", "--list").stdout
    for name in (*scenario_names(), "switches", "perfquery", "inspector"):
        assert f"  {name} " in listed
