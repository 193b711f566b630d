"""The answer key: what is wrong, where, when, what it costs, and what only looks wrong."""

from typing import Any

import numpy as np

from fabricobs.simulator.output import clock, iso_milliseconds
from fabricobs.simulator.run import WARM_UP_FACTORS, Run
from fabricobs.simulator.scene import Fault
from fabricobs.simulator.world import World, run_without


def ground_truth(world: World) -> dict[str, Any]:
    """The key as JSON; `faults` is empty for a healthy case.

    `loss_share` is the throughput lost while the fault acts, 0 to 1, against the twin without it;
    steps count from 1.
    """
    run = world.courses[0].run
    return {
        "schema_version": 1,
        "scenario": world.name,
        "title": world.shape.title,
        "seed": world.seed,
        "gpus": world.cluster.shape.gpus,
        "fabric": world.cluster.shape.fabric,
        "jobs": [
            {
                "job": course.run.job.label,
                "ranks": course.run.job.ranks,
                "steps": course.run.steps,
                "step_seconds": round(float(np.median(course.run.step_seconds)), 4),
                "hosts": [world.cluster.host_name(host) for host in course.run.job.hosts],
            }
            for course in world.courses
        ],
        "faults": [_fault(world, run, fault) for fault in world.faults],
        "benign": list(world.shape.benign),
    }


def lost_share(world: World, fault: Fault) -> float:
    """Share of throughput a fault costs while it acts, checkpoints and warm-up left out."""
    run = world.courses[0].run
    if not fault.acts[: run.steps].any():
        return 1.0  # a job that hangs loses everything
    twin = run_without(world, fault)
    judged = span_of(fault.acts)[: run.steps] & ~run.is_checkpoint()[: run.steps]
    judged[: len(WARM_UP_FACTORS)] = False
    faulty = run.step_seconds.max(axis=1)[judged].mean()
    healthy = twin.step_seconds.max(axis=1)[: run.steps][judged].mean()
    return float(max(1 - healthy / faulty, 0))


def span_of(acts: np.ndarray) -> np.ndarray:
    """Steps [S] from the first to the last in which a fault acts."""
    acting = np.flatnonzero(acts)
    span = np.zeros(len(acts), dtype=bool)
    if len(acting):
        span[acting[0] : acting[-1] + 1] = True
    return span


def _fault(world: World, run: Run, fault: Fault) -> dict[str, Any]:
    acting = np.flatnonzero(fault.acts)
    hung = int(acting[0]) >= run.steps
    first = int(acting[0])
    last = first if hung else int(acting[-1])
    begin = run.duration if hung else float(run.begin[first].min())
    end = world.duration if hung else float(run.end[last].max())
    return {
        "fault": fault.name,
        "kind": fault.kind,
        "culprits": list(fault.culprits),
        "victims": list(fault.victims),
        "start": iso_milliseconds(clock(begin)),
        "end": iso_milliseconds(clock(end)),
        "start_step": first + 1,
        "end_step": last + 1,
        "loss_share": round(lost_share(world, fault), 4),
    }
