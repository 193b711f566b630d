"""What is left of a hang: the watchdog's lines of those who wait, flight recorders, stacks and RAS.

The rank that hangs prints nothing; its flight recorder shows that it never made the call, and its
stack where the program stands instead. While the job hangs, somebody asks NCCL's RAS twice.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fabricobs.simulator.fabric import Fabric
from fabricobs.simulator.facts import Hang
from fabricobs.simulator.job import Collective, Job
from fabricobs.simulator.output import clock, epoch_microseconds, write_lines, write_text
from fabricobs.simulator.randomness import stream
from fabricobs.simulator.run import Run
from fabricobs.simulator.shapes import GPUS_PER_HOST
from fabricobs.simulator.world import World
from fabricobs.simulator.writers.nccl import VERSION
from fabricobs.simulator.writers.nccl_hosts import host_address
from fabricobs.simulator.writers.processes import (
    Communicator,
    GroupScope,
    communicators,
    host_offset,
    memberships,
    process_ids,
)
from fabricobs.simulator.writers.ras import RasCommunicator, RasProcess, ras_json
from fabricobs.simulator.writers.stacks import Doing, py_spy, recorded_frames

_RECORDED_STEPS = 3  # of the last ones; PyTorch keeps 2,000 calls
_CALLS_PER_STEP = 2  # of a data-parallel group
_CHECK_SECONDS = 1.0  # how often the watchdog looks
_ASKED_AFTER = (150.0, 510.0)  # seconds into the hang at which somebody runs ncclras
_STOPS: tuple[Doing, ...] = ("data", "checkpoint", "compute")  # what the rank does instead
_TYPES = {7: "Float", 9: "BFloat16"}  # PyTorch's names by NCCL's numbers
_CALLS = {
    "AllReduce": ("ALLREDUCE", "nccl:all_reduce"),
    "AllGather": ("_ALLGATHER_BASE", "nccl:_all_gather_base"),
}


# The groups of a process, with its rank in each.
_Own = dict[GroupScope, tuple[Communicator, int]]


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of a group's rank, in seconds since the start of the job; `done` None if it waits."""

    group: Communicator
    rank: int
    sequence: int
    collective: Collective
    called: float
    done: float | None

    @property
    def elements(self) -> tuple[int, int]:
        """Elements that go in and come out."""
        count = self.collective.count
        return count, count * (self.group.size if self.collective.name == "AllGather" else 1)


def write_watchdog(directory: Path, world: World, fabric: Fabric) -> None:
    """Write one file of lines a host and a flight recorder a rank, if the first job hangs."""
    run = world.courses[0].run
    for fact in world.facts:
        if not isinstance(fact, Hang) or fact.step != run.steps or not run.steps:
            continue
        recorders = _record(run, fact, communicators(run.job, world.seed))
        for host in run.job.hosts:
            offset = host_offset(world, host)
            first = host * GPUS_PER_HOST - run.job.first_gpu
            lines: list[tuple[float, str]] = []
            for rank in range(first, first + GPUS_PER_HOST):
                calls = recorders[rank]
                late = float(stream(world.seed, 600, rank).random_sample()) * _CHECK_SECONDS
                lines += _lines(calls, rank, fact.seconds, late, offset)
                dump = directory / "flight_recorder" / f"nccl_trace_rank_{rank}.json"
                write_text(dump, _dump(calls, offset))
            if lines:
                name = world.cluster.host_name(host)
                write_lines(directory / f"{name}.log", (line for _, line in sorted(lines)))
        _write_stacks(directory, world, run, fact)
        _write_reports(directory, world, run, recorders)


def _write_stacks(directory: Path, world: World, run: Run, hang: Hang) -> None:
    """Write what `py-spy dump` prints of each rank's process, one file a host."""
    stops = _STOPS[int(stream(world.seed, 601).randint(len(_STOPS)))]
    ids = process_ids(run.job, world.seed)
    for host in run.job.hosts:
        first = host * GPUS_PER_HOST - run.job.first_gpu
        dumps = [
            py_spy(int(ids[rank]), stops if rank == hang.rank else "collective", classes=True)
            for rank in range(first, first + GPUS_PER_HOST)
        ]
        write_text(directory / "stacks" / f"{world.cluster.host_name(host)}.txt", "".join(dumps))


def _write_reports(directory: Path, world: World, run: Run, recorders: list[list[_Call]]) -> None:
    """Write NCCL's RAS reports of the hang: the counts stay the same."""
    job, ids = run.job, process_ids(run.job, world.seed)
    processes = [
        RasProcess(
            host_address(int(gpu) // GPUS_PER_HOST), int(ids[rank]), int(gpu) % GPUS_PER_HOST
        )
        for rank, gpu in enumerate(job.gpus)
    ]
    found = [
        RasCommunicator(
            int(group.comm_id, 16),
            [processes[member] for member in group.members],
            _launched(run, group, recorders),
        )
        for group in communicators(job, world.seed)
        if group.scope != "tensor"
    ]
    offset = host_offset(world, job.hosts[0])
    for after in _ASKED_AFTER:
        moment = clock(float(run.end[-1].max()) + after + offset)
        text = ras_json(VERSION.split("+")[0], f"{moment:%Y-%m-%d %H:%M:%S}", found)
        write_text(directory / "ras" / f"ncclras_{moment:%Y%m%dT%H%M%S}.json", text)


def _launched(run: Run, group: Communicator, recorders: list[list[_Call]]) -> dict[str, np.ndarray]:
    """How many calls of each operation the members [N] of a group have launched."""
    made = [
        [call.sequence for call in recorders[member] if call.group.number == group.number]
        for member in group.members
    ]
    last = np.array([max(sequences, default=0) for sequences in made], dtype=np.int64)
    if group.scope == "world":
        return {"AllReduce": last}
    names = [run.job.collectives[index].name for index in _data_collectives(run.job)]
    launched = {name: np.zeros_like(last) for name in names}
    for place, name in enumerate(names):  # the calls of a step come in this order
        launched[name] += (last + len(names) - 1 - place) // len(names)
    return launched


def _record(run: Run, hang: Hang, groups: tuple[Communicator, ...]) -> list[list[_Call]]:
    """The last calls of each rank [R]; whoever waits at the end waits in its last one."""
    silent = run.job.data_group == run.job.data_group[hang.rank]
    recorders = []
    for rank, joined in enumerate(memberships(groups)):
        own = {group.scope: (group, place) for group, place in joined}
        calls = [
            call
            for step in range(max(run.steps - _RECORDED_STEPS, 0), run.steps)
            for call in _calls(run, step, rank, own)
        ]
        if rank != hang.rank:
            calls += _last_calls(run, rank, own, waits="data" in own and bool(silent[rank]))
        recorders.append(calls)
    return recorders


def _calls(run: Run, step: int, rank: int, own: _Own) -> Iterator[_Call]:
    """What a rank called in a step, the tensor group's many calls left out."""
    for place, index in enumerate(_data_collectives(run.job)):
        called, done = run.arrival[step, index, rank], run.done[step, index, rank]
        if "data" in own:
            collective = run.job.collectives[index]
            sequence = _CALLS_PER_STEP * step + place + 1
            yield _Call(*own["data"], sequence, collective, float(called), float(done))
        if place == 0 and "world" in own:
            summed = float(run.done[step, index].max())
            yield _norm(*own["world"], step, float(done), summed)


def _last_calls(run: Run, rank: int, own: _Own, *, waits: bool) -> Iterator[_Call]:
    """The step in which the job hangs: who has its gradients waits for the norm of the others'."""
    first = _data_collectives(run.job)[0]
    called = float(run.end[-1, rank] + run.arrival[-1, first, rank] - run.begin[-1, rank])
    done = called + float(np.median(run.done[-1, first] - run.start[-1, first]))
    if "data" in own:
        sequence = _CALLS_PER_STEP * run.steps + 1
        collective = run.job.collectives[first]
        yield _Call(*own["data"], sequence, collective, called, None if waits else done)
    if not waits and "world" in own:
        yield _norm(*own["world"], run.steps, done, None)


def _data_collectives(job: Job) -> list[int]:
    return [index for index, c in enumerate(job.collectives) if c.scope == "data"]


def _norm(world: Communicator, rank: int, step: int, called: float, done: float | None) -> _Call:
    """The sum of the gradients' norm over the job, one number; the first call is a barrier."""
    collective = Collective("AllReduce", "data", world.size, 1, 7, 4, 0)
    return _Call(world, rank, step + 2, collective, called, done)


def _lines(
    calls: list[_Call], rank: int, timeout: float, late: float, offset: float
) -> Iterator[tuple[float, str]]:
    """The watchdog's lines of a rank that waits, each with its time."""
    if calls[-1].done is not None:
        return
    call, group = calls[-1], calls[-1].group
    moment = call.called + timeout + late
    going_in, coming_out = call.elements
    operation, _ = _CALLS[call.collective.name]
    # PyTorch names the rank in the group; the launcher's prefix names that in the job.
    ids = f"PG ID {group.local_number} PG GUID {group.number}({group.name})"
    prefix = f"[{ids} Rank {call.rank}]"
    texts = (
        (
            632,
            f"[Rank {call.rank}] Watchdog caught collective operation timeout: "
            f"WorkNCCL(SeqNum={call.sequence}, OpType={operation}, NumelIn={going_in}, "
            f"NumelOut={coming_out}, Timeout(ms)={timeout * 1000:.0f}) ran for "
            f"{(timeout + late) * 1000:.0f} milliseconds before timing out.",
        ),
        (
            2268,
            f"{prefix}  failure detected by watchdog at work sequence id: {call.sequence} "
            f"PG status: last enqueued work: {call.sequence}, "
            f"last completed work: {call.sequence - 1}",
        ),
        (
            684,
            f"{prefix} To avoid data inconsistency, we are taking the entire process down.",
        ),
    )
    for count, (source, text) in enumerate(texts):
        when = moment + 0.0004 * count
        shown = clock(when + offset)
        stamp = f"{shown.month}{shown:%d %H:%M:%S.%f}{rank % 1000:03d}"
        yield when, f"[rank{rank}]:[E{stamp} ProcessGroupNCCL.cpp:{source}] {text}"


def _dump(calls: list[_Call], offset: float) -> str:
    """A flight recorder as JSON; the newest call is the last."""
    groups = {call.group.number: call.group for call in calls}
    status = {}
    for group in groups.values():
        own = [call for call in calls if call.group is group]
        ended = [call.sequence for call in own if call.done is not None]
        status[str(group.local_number)] = {
            "last_enqueued_collective": own[-1].sequence,
            "last_started_collective": own[-1].sequence,
            "last_completed_collective": max(ended, default=-1),
        }
    document = {
        "version": "2.4",
        "pg_config": {
            str(number): {
                "name": str(number),
                "desc": group.name,
                "ranks": str(group.members.tolist()),
            }
            for number, group in groups.items()
        },
        "pg_status": status,
        "entries": [_entry(number, call, offset) for number, call in enumerate(calls)],
    }
    return json.dumps(document)


def _entry(number: int, call: _Call, offset: float) -> dict[str, Any]:
    kind = _TYPES[call.collective.datatype]
    going_in, coming_out = call.elements

    def nanoseconds(moment: float | None) -> int | None:
        return None if moment is None else epoch_microseconds(moment + offset) * 1000

    return {
        "record_id": number,
        "pg_id": call.group.local_number,
        "process_group": [str(call.group.number), call.group.name],
        "collective_seq_id": call.sequence,
        "p2p_seq_id": 0,
        "op_id": number + 1,
        "profiling_name": _CALLS[call.collective.name][1],
        "time_created_ns": nanoseconds(call.called),
        "input_sizes": [[going_in]],
        "input_dtypes": [kind],
        "output_sizes": [[coming_out]],
        "output_dtypes": [kind],
        "state": "started" if call.done is None else "completed",
        "time_discovered_started_ns": nanoseconds(call.called),
        "time_discovered_completed_ns": nanoseconds(call.done),
        "retired": call.done is not None,
        "timeout_ms": 600000,
        "is_p2p": False,
        "frames": recorded_frames("collective"),
    }
