"""What a site collects while a job hangs: RAS reports, Python stacks and flight recorders.

Some sites collect it of a sound job, too: RAS then counts what was launched at that moment, and the
ranks that came first wait in a collective for the others.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fabricobs.simulator.cluster import Integers
from fabricobs.simulator.random_worlds.nccl import comm_hash
from fabricobs.simulator.random_worlds.run import Course
from fabricobs.simulator.random_worlds.site import Site, host_address
from fabricobs.simulator.random_worlds.workload import Launch, Phase
from fabricobs.simulator.random_worlds.world import HANG_SECONDS
from fabricobs.simulator.randomness import Random
from fabricobs.simulator.writers.ras import RasCommunicator, RasProcess, ras_json, ras_text
from fabricobs.simulator.writers.stacks import (
    Doing,
    faulthandler,
    py_spy,
    py_spy_json,
    recorded_frames,
)

_SOUND_SHARE = 0.15  # of the sites with a sound job that ask RAS and dump stacks
# When ncclras runs, as shares of the time until a watchdog gives up; without one the job goes on.
_ASKED, _ASKED_LONG = (0.15, 0.9), (0.2, 1.4)
_MOST_DUMPS = 128  # ranks of which a site keeps a flight recorder
_PEERS = {"SendRecv", "AllToAll"}  # RAS counts these as sends and receives
_STOPS: tuple[Doing, ...] = ("data", "checkpoint", "compute")


@dataclass(frozen=True, slots=True)
class HangEvidence:
    """What is collected of a job: forms are empty where it is not."""

    ras: str  # text, json
    stacks: str  # py_spy, py_spy_json, faulthandler
    recorder: bool
    watchdog: bool
    stops: Doing  # what a rank that hangs does
    dead: bool  # or its process is gone
    hides: bool  # the dumps of that rank are missing


def hang_evidence(site: Site) -> HangEvidence:
    """Return what the site collects, as drawn."""
    random = site.spec.stream("hang evidence")
    world = site.world
    asked = world.hang is not None or random.random_sample() < _SOUND_SHARE
    ras = str(random.choice(["", "text", "json"], p=[0.4, 0.25, 0.35])) if asked else ""
    forms = ["", "py_spy", "py_spy_json", "faulthandler"]
    stacks = str(random.choice(forms, p=[0.4, 0.3, 0.15, 0.15])) if asked else ""
    recorder = bool(random.random_sample() < 0.4) and world.hang is not None
    watchdog = bool(random.random_sample() < 0.85)
    stops = _STOPS[int(random.randint(len(_STOPS)))]
    dead, hides = bool(random.random_sample() < 0.15), bool(random.random_sample() < 0.2)
    counted = ras == "json" and world.courses[-1].launch.phases[0].name not in _PEERS
    return HangEvidence(ras, stacks, recorder, watchdog or not counted, stops, dead, hides)


def write_hang_logs(site: Site) -> None:
    """Write RAS reports, stacks and flight recorders of the last launch, as far as collected."""
    evidence, world = hang_evidence(site), site.world
    course = world.courses[-1]
    if world.hang is None:
        random = site.spec.stream("asked")
        for moment in sorted(_in_a_step(course, random) for _ in _ASKED):
            launched = _launched_until(course, moment)
            _write_report(site, course.launch, evidence, moment, launched, [])
        doings = [_doing_at(course, rank, moment) for rank in range(course.launch.ranks)]
        _write_stacks(site, course.launch, evidence, doings, [])
        return
    stopped = [int(rank) for rank in np.flatnonzero(np.isin(course.launch.gpu, world.hang.parts))]
    launched = np.full((len(course.launch.phases), course.launch.ranks), course.steps)
    launched[0] += 1
    launched[0, stopped] -= 1
    gone = stopped if evidence.dead else []
    for share in _ASKED if evidence.watchdog else _ASKED_LONG:
        moment = float(course.end[-1]) + share * HANG_SECONDS
        _write_report(site, course.launch, evidence, moment, launched, gone)
    doings = [
        evidence.stops if rank in stopped else "collective" for rank in range(course.launch.ranks)
    ]
    hidden = stopped if evidence.dead or evidence.hides else []
    _write_stacks(site, course.launch, evidence, doings, hidden)
    if evidence.recorder and course.launch.ranks <= _MOST_DUMPS:
        _write_recorders(site, course, stopped, hidden)


def _in_a_step(course: Course, random: Random) -> float:
    """Return a moment in the exchange of a step, where the ranks differ most."""
    step = int(random.randint(course.steps))
    first, last = course.arrival[step].min(), course.done[step].max()
    return float(random.uniform(first, last))


def _launched_until(course: Course, moment: float) -> Integers:
    """Return how often [P, R] each rank launched each collective until a moment."""
    launched: Integers = (course.arrival <= moment).sum(axis=0)
    return launched


def _doing_at(course: Course, rank: int, moment: float) -> Doing:
    waits = (course.arrival[:, :, rank] <= moment) & (moment < course.done[:, :, rank])
    return "collective" if bool(waits.any()) else "compute"


def _communicators(
    site: Site, launch: Launch, launched: Integers, gone: Sequence[int]
) -> list[RasCommunicator]:
    """Return the communicators of a launch: one of each group of a scope, with all its phases."""
    processes = [
        RasProcess(
            host_address(int(launch.host[rank])),
            int(launch.pids[rank]),
            int(launch.local[rank]),
            lost=rank in gone,
        )
        for rank in range(launch.ranks)
    ]
    found: dict[int, tuple[Integers, dict[str, Integers]]] = {}
    for number, phase in enumerate(launch.phases):
        for group, members in _groups(phase):
            key = comm_hash(site, launch, phase, group)
            _, counts = found.setdefault(key, (members, {}))
            for name in ("Send", "Recv") if phase.name in _PEERS else (phase.name,):
                before = counts.get(name, np.zeros(len(members), dtype=np.int64))
                counts[name] = before + launched[number, members]
    return [
        RasCommunicator(key, [processes[member] for member in members], counts)
        for key, (members, counts) in found.items()
    ]


def _groups(phase: Phase) -> Iterator[tuple[int, Integers]]:
    for group in np.unique(phase.group).tolist():
        members: Integers = np.flatnonzero(phase.group == group)
        if len(members) > 1:
            yield int(group), members


def _write_report(
    site: Site,
    launch: Launch,
    evidence: HangEvidence,
    moment: float,
    launched: Integers,
    gone: Sequence[int],
) -> None:
    if not evidence.ras:
        return
    communicators = _communicators(site, launch, launched, gone)
    stamp = site.clock(site.world.topology.devices[int(launch.host[0])]).local(moment)
    name = f"ras/ncclras_{stamp:%Y%m%d_%H%M%S}"
    release = site.spec.nccl_release
    if evidence.ras == "json":
        site.write_job(f"{name}.json", ras_json(release, f"{stamp:%F %T}", communicators))
    else:
        site.write_job(f"{name}.txt", ras_text(release, communicators, dead=moment > 60))


def _write_stacks(
    site: Site,
    launch: Launch,
    evidence: HangEvidence,
    doings: Sequence[Doing],
    hidden: Sequence[int],
) -> None:
    for rank, doing in enumerate(doings):
        if not evidence.stacks or rank in hidden:
            continue
        pid = int(launch.pids[rank])
        host = site.world.topology.devices[int(launch.host[rank])].name
        if evidence.stacks == "py_spy":
            site.write_job(f"stacks/{host}/pyspy_{pid}.txt", py_spy(pid, doing, classes=True))
        elif evidence.stacks == "py_spy_json":
            site.write_job(f"stacks/{host}/pyspy_{pid}.json", py_spy_json(pid, doing))
        else:
            text = faulthandler(doing, seconds=300)
            site.write_job(f"stacks/rank{rank}.log", text)


def _write_recorders(
    site: Site, course: Course, stopped: Sequence[int], hidden: Sequence[int]
) -> None:
    """Write the flight recorders of all ranks but the hidden ones: the group of the first phase."""
    launch, phase = course.launch, course.launch.phases[0]
    calls = {"AllReduce": "all_reduce", "AllGather": "_all_gather_base", "AllToAll": "all_to_all"}
    name = calls.get(phase.name, "reduce_scatter_tensor_coalesced")
    done = course.steps * len(launch.phases)  # as the watchdog numbers them
    for number, (_, members) in enumerate(_groups(phase)):
        group = {"name": str(number), "desc": phase.scope, "ranks": str(members.tolist())}
        for rank in members.tolist():
            if rank in hidden:
                continue
            last = done + (rank not in stopped)
            clock = site.clock(site.world.topology.devices[int(launch.host[rank])])
            entries = [
                {
                    "record_id": seq - 1, "pg_id": 0,
                    "process_group": [str(number), phase.scope],
                    "collective_seq_id": seq, "p2p_seq_id": 0, "op_id": seq,
                    "profiling_name": f"nccl:{name}",
                    "time_created_ns": int(clock.epoch(float(course.end[-1])) * 1e9) + seq,
                    "input_sizes": [[phase.message_bytes // 4]], "input_dtypes": ["Float"],
                    "output_sizes": [[phase.message_bytes // 4]], "output_dtypes": ["Float"],
                    "state": "completed" if seq <= done else "started",
                    "is_p2p": False, "frames": recorded_frames("collective"),
                }
                for seq in range(max(last - 1, 1), last + 1)
            ]  # fmt: skip
            status = {
                "last_enqueued_collective": last,
                "last_started_collective": last,
                "last_completed_collective": done,
            }
            document = {
                "version": "2.5", "pg_config": {str(number): group}, "pg_status": {"0": status},
                "entries": entries,
            }  # fmt: skip
            site.write_job(f"recorder/nccl_trace_rank_{rank}.json", json.dumps(document))
