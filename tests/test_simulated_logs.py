"""The simulator's logs of jobs and hosts: every line is read, and they say what is true."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.querying import find_query
from fabricobs.simulator.fabric import observe
from fabricobs.simulator.facts import Hang, LinkFlap
from fabricobs.simulator.logs import KINDS
from fabricobs.simulator.output import epoch_microseconds
from fabricobs.simulator.shapes import (
    ClusterShape,
    CollectionShape,
    FaultShape,
    JobShape,
    ScenarioShape,
)
from fabricobs.simulator.world import World, come_true
from fabricobs.simulator.writers.processes import communicators, host_offset
from fabricobs.simulator.writers.rings import NOBODY, build_rings, build_trees
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session

pytestmark = pytest.mark.slow

JOB_SIDE = {"nccl", "inspector", "steps", "train", "watchdog", "kernel", "host_facts"}

PLAIN = JobShape(steps=24, checkpoint_every=10)
MODEL_PARALLEL = JobShape(steps=24, tensor=8, pipeline=4, checkpoint_every=10)
JOBS = {
    "plain": (32, (PLAIN,)),
    "model_parallel": (64, (MODEL_PARALLEL,)),
    "one_replica": (16, (JobShape(steps=20, pipeline=16),)),
    "two_jobs": (
        64,
        (
            PLAIN.model_copy(update={"share": 0.375}),
            JobShape(name="tune", steps=20, tensor=2, pipeline=2),
        ),
    ),
}
WORLDS = [
    ("plain", "roce", None),
    ("plain", "infiniband", None),
    ("plain", "roce", "gpudirect_off"),
    ("plain", "roce", "socket_fallback"),
    ("plain", "roce", "foreign_nics"),
    ("plain", "roce", "degraded_speed"),
    ("plain", "roce", "link_flap"),
    ("plain", "infiniband", "link_flap"),
    ("plain", "roce", "gpu_error"),
    ("plain", "roce", "hang"),
    ("model_parallel", "roce", "hang"),
    ("model_parallel", "infiniband", None),
    ("one_replica", "roce", "hang"),
    ("two_jobs", "roce", None),
]

MakeStore = Callable[[str, str, str | None], Path]


@cache
def make_world(jobs: str, fabric: str, fault: str | None) -> World:
    gpus, shapes = JOBS[jobs]
    shape = ScenarioShape(
        title="a test",
        teaches="nothing",
        cluster=ClusterShape.model_validate({"gpus": gpus, "fabric": fabric}),
        jobs=shapes,
        faults=(FaultShape(kind=fault),) if fault else (),
        collection=CollectionShape(clock_spread_seconds=0.4),
    )
    return come_true("test", shape, 11)


def write(directory: Path, world: World) -> None:
    fabric = observe(world)
    for kind in KINDS:
        if kind.name in JOB_SIDE:
            kind.write(directory / kind.name, world, fabric)


@pytest.fixture(scope="module")
def store_of(tmp_path_factory: pytest.TempPathFactory) -> MakeStore:
    """The store of a world's logs, ingested once."""

    @cache
    def make(jobs: str, fabric: str, fault: str | None) -> Path:
        directory = tmp_path_factory.mktemp("simulated")
        write(directory / "logs", make_world(jobs, fabric, fault))
        ingest([directory / "logs"], Store(directory / "store"), Options())
        return directory / "store"

    return make


def ask(store: Path, sql: str) -> list[tuple[Any, ...]]:
    return open_session(store, sql).sql(sql).fetchall()


@pytest.mark.parametrize(("jobs", "fabric", "fault"), WORLDS)
def test_every_line_is_read(store_of: MakeStore, jobs: str, fabric: str, fault: str | None) -> None:
    store = store_of(jobs, fabric, fault)
    assert ask(store, "SELECT path FROM files WHERE formats = ''") == []
    assert ask(store, "SELECT * FROM unparsed") == []
    assert ask(store, "SELECT sum(unparsed) FROM files") == [(0,)]


def test_measured_durations_are_those_of_the_run(store_of: MakeStore) -> None:
    key = ("model_parallel", "infiniband", None)
    run = make_world(*key).courses[0].run
    groups = {group.comm_id: group for group in communicators(run.job, 11)}
    rows = ask(
        store_of(*key),
        "SELECT comm_id, rank, op, seq, duration_us FROM collectives WHERE nranks = 2 ORDER BY seq",
    )
    gradients = [row for row in rows if row[2] == "AllReduce"]
    assert len(gradients) == run.job.ranks * run.steps
    index = [collective.scope for collective in run.job.collectives].index("data")
    for comm_id, place, _, step, microseconds in gradients:
        rank = groups[str(comm_id)].members[place]
        true = run.collective_seconds[step, index, rank]
        assert microseconds == pytest.approx(true * 1e6, abs=0.51)


@pytest.mark.parametrize("jobs", ["plain", "model_parallel"])
def test_step_records_are_those_of_the_run_by_the_clock_of_the_host(
    store_of: MakeStore, jobs: str
) -> None:
    key = (jobs, "infiniband", None)
    world = make_world(*key)
    run = world.courses[0].run
    rows = ask(
        store_of(*key),
        "SELECT step, rank, host, step_time_ms, compute_ms, comm_ms, data_ms, stage, "
        "epoch_us(ts) FROM steps WHERE rank IS NOT NULL ORDER BY step, rank",
    )
    assert len(rows) == run.steps * run.job.ranks
    told = np.array([row[3:7] for row in rows]).reshape(run.steps, run.job.ranks, 4)
    true = np.stack([run.step_seconds, run.compute, run.communication, run.data], axis=2)
    np.testing.assert_allclose(told, true * 1000, atol=0.0051)
    for step, rank, host, *_, stage, moment in rows[:: run.job.ranks + 1]:
        number = int(run.job.gpus[rank]) // 8
        assert host == world.cluster.host_name(number)
        ended = float(run.end[step - 1, rank]) + host_offset(world, number)
        assert moment == pytest.approx(epoch_microseconds(ended), abs=501)
        assert stage == (None if jobs == "plain" else run.job.stage[rank])


def test_every_rank_of_a_model_parallel_job_has_its_host(store_of: MakeStore) -> None:
    rows = ask(
        store_of("model_parallel", "infiniband", None),
        "SELECT rank, host, gpu FROM job_ranks ORDER BY rank",
    )
    world = make_world("model_parallel", "infiniband", None)
    assert rows == [(r, world.cluster.host_name(r // 8), r % 8) for r in range(64)]


def test_jobs_side_by_side_have_folders_of_their_own(store_of: MakeStore) -> None:
    rows = ask(
        store_of("two_jobs", "roce", None),
        "SELECT DISTINCT split_part(path, '/logs/', 2) FROM files WHERE path LIKE '%/train/%'",
    )
    assert sorted(row[0] for row in rows) == [
        "pretrain/train/node03.log",
        "tune/train/node08.log",
    ]


@pytest.mark.parametrize(
    ("fault", "unlike"),
    [
        ("gpudirect_off", "ring_gdr = false AND network = 'IB'"),
        ("socket_fallback", "network = 'Socket'"),
    ],
)
def test_nccl_says_how_one_host_is_unlike_the_others(
    store_of: MakeStore, fault: str, unlike: str
) -> None:
    key = ("plain", "roce", fault)
    culprit = make_world(*key).faults[0].culprits[0]["host"]
    counted = ask(store_of(*key), f"SELECT host, count(*) FROM ranks WHERE {unlike} GROUP BY host")
    assert counted == [(culprit, 8)]


def test_a_host_without_gpudirect_lacks_the_kernel_module(store_of: MakeStore) -> None:
    key = ("plain", "roce", "gpudirect_off")
    culprit = make_world(*key).faults[0].culprits[0]["host"]
    having = ask(
        store_of(*key),
        "SELECT DISTINCT host FROM hosts WHERE fact = 'module' AND value = 'nvidia_peermem'",
    )
    assert {host for (host,) in having} == {f"node{n:02d}" for n in (1, 2, 3, 4)} - {culprit}


def test_foreign_nics_are_across_the_numa_nodes(store_of: MakeStore) -> None:
    key = ("plain", "roce", "foreign_nics")
    culprit = make_world(*key).faults[0].culprits[0]["host"]
    paths = ask(
        store_of(*key),
        """
        SELECT DISTINCT t.value, c.host = $$HOST$$
        FROM nccl_channels c
        JOIN hosts t ON t.host = c.host AND t.part = 'GPU' || c.cuda_device
          AND t.fact = 'NIC' || c.nic_index
        WHERE c.transport = 'NET'
        """.replace("HOST", culprit),
    )
    assert sorted(paths) == [("PIX", False), ("SYS", True)]


def test_a_slow_port_is_slow_in_nccls_words(store_of: MakeStore) -> None:
    key = ("plain", "roce", "degraded_speed")
    nic = make_world(*key).faults[0].culprits[0]
    slow = ask(
        store_of(*key),
        "SELECT DISTINCT host, nic, speed_mbps FROM nccl_nics WHERE speed_mbps < 400000",
    )
    assert slow == [(nic["host"], nic["nic"], 200_000)]


def test_link_flaps_are_told_by_nccl_and_the_kernel_at_their_steps(store_of: MakeStore) -> None:
    key = ("plain", "roce", "link_flap")
    world = make_world(*key)
    (flap,) = [fact for fact in world.facts if isinstance(fact, LinkFlap)]
    nic, run = world.cluster.nics[flap.nic], world.courses[0].run
    by_nccl = ask(
        store_of(*key),
        "SELECT text, epoch(ts) FROM nccl_events WHERE kind = 'async_event' "
        f"AND host = '{nic.host_name}' AND nic = '{nic.device}' ORDER BY ts, text",
    )
    by_kernel = ask(
        store_of(*key),
        f"SELECT epoch(ts) FROM events WHERE kind = 'link_down' AND host = '{nic.host_name}' "
        f"AND part = '{nic.netdev}' ORDER BY ts",
    )
    assert len(by_nccl) == 2 * 8 * len(flap.steps)
    assert len(by_kernel) == len(flap.steps)
    offset = host_offset(world, nic.host)
    downs = [float(ts) for text, ts in by_nccl if text == "port error(10)"][::8]
    for step, of_nccl, (of_kernel,) in zip(flap.steps, downs, by_kernel, strict=True):
        begin = epoch_microseconds(float(run.begin[step].min()) + offset) / 1e6
        end = epoch_microseconds(float(run.end[step].max()) + offset) / 1e6
        assert begin - 1 <= of_nccl <= end  # whole seconds
        assert of_kernel == of_nccl


def test_a_gpu_error_is_in_the_kernel_log(store_of: MakeStore) -> None:
    key = ("plain", "roce", "gpu_error")
    world = make_world(*key)
    gpu = world.faults[0].culprits[0]
    address = world.cluster.nics[(int(gpu["host"][4:]) - 1) * 8 + gpu["gpu"]].gpu_pci_address
    told = ask(store_of(*key), "SELECT DISTINCT host, part, code FROM events WHERE kind = 'xid'")
    assert told == [(gpu["host"], address[:-2], 63)]


@pytest.mark.parametrize("jobs", ["plain", "model_parallel"])
def test_a_hang_shows_who_is_behind(store_of: MakeStore, jobs: str) -> None:
    key = (jobs, "roce", "hang")
    world = make_world(*key)
    (hang,) = [fact for fact in world.facts if isinstance(fact, Hang)]
    job = world.courses[0].run.job
    sql = find_query("hang_progress").sql.strip().rstrip(";")
    progress = ask(store_of(*key), f"SELECT process_group, rank, behind FROM ({sql})")
    behind = {(group.split(" ")[-1], rank) for group, rank, behind in progress if behind}
    in_data_group = {rank for name, rank in behind if name == "DATA_PARALLEL_GROUP"}
    assert in_data_group == {hang.rank}
    waiting = {rank for name, rank in behind if name == "default_pg"}
    mates = set(np.flatnonzero(job.data_group == job.data_group[hang.rank]).tolist())
    assert waiting == (set() if jobs == "plain" else mates)
    timeouts = ask(
        store_of(*key),
        "SELECT DISTINCT launch_rank FROM nccl_events WHERE kind = 'watchdog_timeout'",
    )
    assert {rank for (rank,) in timeouts} == set(range(job.ranks)) - {hang.rank}


def test_without_a_hang_there_is_no_watchdog(store_of: MakeStore) -> None:
    store = store_of("plain", "roce", None)
    assert ask(store, "SELECT * FROM nccl_events") == []
    assert not (store.parent / "logs" / "watchdog").exists()


def test_checkpoints_are_in_the_trainers_log(store_of: MakeStore) -> None:
    steps = ask(
        store_of("plain", "roce", None),
        "SELECT DISTINCT step FROM events WHERE kind = 'checkpoint' ORDER BY step",
    )
    assert steps == [(10,), (20,)]


def test_same_seed_gives_the_same_bytes(store_of: MakeStore, tmp_path: Path) -> None:
    key = ("model_parallel", "roce", "hang")
    first = store_of(*key).parent / "logs"
    write(tmp_path, make_world(*key))
    names = sorted(path.relative_to(first) for path in first.rglob("*") if path.is_file())
    again = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file())
    assert names == again
    assert all((first / name).read_bytes() == (tmp_path / name).read_bytes() for name in names)


@pytest.mark.parametrize("members", [1, 2, 4, 8])
@pytest.mark.parametrize("hosts", [2, 3, 4, 7, 16, 33])
def test_rings_visit_everybody_and_keep_to_their_rails(hosts: int, members: int) -> None:
    host_of = np.repeat(np.arange(hosts), members)
    for order in build_rings(host_of):
        assert sorted(order) == list(range(hosts * members))
        hops = [
            (source, target)
            for source, target in zip(order, np.roll(order, -1), strict=True)
            if host_of[source] != host_of[target]
        ]
        assert len(hops) == hosts
        crossing = [hop for hop in hops if hop[0] % members != hop[1] % members]
        assert len(crossing) == (1 if members == 2 and hosts % 2 else 0)


@pytest.mark.parametrize("hosts", [1, 2, 3, 4, 7, 16, 33])
def test_trees_reach_everybody_from_one_root(hosts: int) -> None:
    host_of = np.repeat(np.arange(hosts), 8)
    for parents, children in zip(*build_trees(host_of, 8), strict=True):
        (root,) = np.flatnonzero(parents == NOBODY)
        reached, ahead = set(), [int(root)]
        while ahead:
            member = ahead.pop()
            reached.add(member)
            below = [int(child) for child in children[member] if child != NOBODY]
            assert all(parents[child] == member for child in below)
            ahead += below
        assert reached == set(range(len(host_of)))


def test_rings_are_those_the_traffic_takes() -> None:
    job = make_world("plain", "roce", None).courses[0].run.job
    (group,) = communicators(job, 11)
    for order in build_rings(group.hosts):
        for source, target in zip(order, np.roll(order, -1), strict=True):
            if group.hosts[source] != group.hosts[target]:
                assert job.next_rank[source] == target
