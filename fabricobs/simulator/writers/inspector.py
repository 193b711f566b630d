"""NCCL Inspector v4.0 files, one a rank: the measured duration of every collective."""

from pathlib import Path

import numpy as np

from fabricobs.simulator.cluster import Integers
from fabricobs.simulator.effects import Floats
from fabricobs.simulator.fabric import Fabric
from fabricobs.simulator.job import Collective, Job
from fabricobs.simulator.output import epoch_microseconds, write_text
from fabricobs.simulator.randomness import stream
from fabricobs.simulator.run import Run
from fabricobs.simulator.shapes import GPUS_PER_HOST
from fabricobs.simulator.world import World
from fabricobs.simulator.writers.processes import (
    Communicator,
    communicators,
    host_offset,
    job_folder,
    memberships,
    process_ids,
)

_DUMP_SECONDS = 1.0
_LAYERS = 32
_CALLS_PER_LAYER = 4  # of a tensor group: two in the forward pass, two in the backward pass

# The values come in the order of the bandwidths: dump, sequence number, duration, two bandwidths.
_METADATA = (
    '"metadata":{{"inspector_output_format_version":"v4.0","git_rev":"",'
    '"rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":%d,'
    '"hostname":"{host}","pid":{pid}}}'
)
_HEADER = (
    '"header":{{"id":"{group.comm_id}","comm_name":"{group.name}","rank":{rank},'
    '"n_ranks":{group.size},"nnodes":{nodes}}}'
)
_PERFORMANCE = (
    '"coll_perf":{{"coll":"{collective.name}","coll_sn":%d,'
    '"coll_msg_size_bytes":{collective.message_bytes},"coll_exec_time_us":%d,'
    '"coll_timing_source":"kernel_gpu","coll_algobw_gbs":%.10g,"coll_busbw_gbs":%.10g}}'
)


def write_inspector(directory: Path, world: World, fabric: Fabric) -> None:
    """Write one file a rank, in order of completion.

    Of the many calls of a tensor group in a step only the last is there: the Inspector keeps one.
    """
    for course in world.courses:
        run = course.run
        job, folder = run.job, job_folder(directory, world, run.job)
        groups = communicators(job, world.seed)
        nodes = {group.number: len(np.unique(group.hosts)) for group in groups}
        pids, columns = process_ids(job, world.seed), _columns(run)
        offsets = {host: host_offset(world, host) for host in job.hosts}
        for rank, joined in enumerate(memberships(groups)):
            host = int(job.gpus[rank]) // GPUS_PER_HOST
            name, pid = world.cluster.host_name(host), int(pids[rank])
            own = {group.scope: (group, place) for group, place in joined}
            called = [i for i, c in enumerate(job.collectives) if c.scope in own]
            if not called:
                continue
            template = "".join(
                _line(*own[job.collectives[i].scope], nodes, job.collectives[i], name, pid)
                for i in called
            )
            values = columns[:, called, rank]
            values[:, :, 0] += _dumps(world, run, rank, offsets[host])[:, called]
            text = (template * run.steps) % tuple(values.ravel().tolist())
            write_text(folder / f"{name}-pid{pid}.log.gz", text)


def bandwidths(collective: Collective, microseconds: Floats) -> tuple[Floats, Floats]:
    """Algorithm and bus bandwidth in GB/s of calls that last so long."""
    algorithm = collective.algorithm_bytes / microseconds / 1000
    return algorithm, algorithm * collective.bus_factor


def _line(
    group: Communicator,
    rank: int,
    nodes: dict[int, int],
    collective: Collective,
    host: str,
    pid: int,
) -> str:
    """A record with places for its five values."""
    header = _HEADER.format(group=group, rank=rank, nodes=nodes[group.number])
    metadata = _METADATA.format(host=host, pid=pid)
    return f"{{{header},{metadata},{_PERFORMANCE.format(collective=collective)}}}\n"


def _columns(run: Run) -> Floats:
    """The values of all records, [S, C, R, 5]; the time of the dump is still 0."""
    microseconds = np.round(run.collective_seconds * 1e6)
    values = np.zeros((*microseconds.shape, 5))
    for index, collective in enumerate(run.job.collectives):
        algorithm, bus = bandwidths(collective, np.maximum(microseconds[:, index], 1))
        values[:, index, :, 1] = _sequence(run.job, collective, run.steps)[:, None]
        values[:, index, :, 2] = microseconds[:, index]
        values[:, index, :, 3] = np.round(algorithm, 3)
        values[:, index, :, 4] = np.round(bus, 3)
    return values


def _sequence(job: Job, collective: Collective, steps: int) -> Integers:
    """Sequence number [S] of each step's call, counted by communicator and function."""
    if collective.scope == "data":
        return np.arange(steps)
    layers = _LAYERS // job.shape.pipeline or 1
    calls = _CALLS_PER_LAYER * layers * job.shape.microbatches
    return np.arange(1, steps + 1) * calls - 1


def _dumps(world: World, run: Run, rank: int, offset: float) -> Floats:
    """When each record [S, C] was written, in microseconds by the host's clock.

    A thread wakes once a second and writes what has ended since.
    """
    random = stream(world.seed, 500, run.job.index, rank)
    phase = random.random_sample() * _DUMP_SECONDS
    ended = run.done[:, :, rank]
    woken = np.ceil((ended - phase) / _DUMP_SECONDS) * _DUMP_SECONDS + phase
    late = random.randint(40, 140, size=ended.shape)
    dumped = np.round((woken + offset) * 1e6) + late + epoch_microseconds(0)
    in_order: Floats = np.maximum.accumulate(dumped.ravel()).reshape(dumped.shape)
    return in_order
