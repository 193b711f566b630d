"""Faults in the work of ranks: they compute longer, wait for data, stop or break."""

from typing import Any

import numpy as np

from fabricobs.simulator.effects import neutral
from fabricobs.simulator.facts import (
    GpuError,
    Hang,
)
from fabricobs.simulator.scene import Fault, Scene, fault_of, host_entity, job_entity, rank_entity

_HANG_SECONDS = 600.0  # PyTorch's watchdog
_XID_ROW_REMAPPED = 63


def straggling_rank(scene: Scene) -> Fault:
    """One GPU computes slower."""
    gpu = scene.any_nic().index
    compute = scene.on_nics([gpu], scene.compute_factor(1.2), 1)
    effect = neutral(scene.cluster, compute=compute)
    return fault_of(scene, "straggler", [rank_entity(scene, gpu)], effect)


def straggling_host(scene: Scene) -> Fault:
    """All GPUs of a host compute slower."""
    host = scene.any_host()
    compute = scene.on_nics(scene.nics_of(host), scene.compute_factor(1.2), 1)
    return fault_of(
        scene, "straggler", [host_entity(scene, host)], neutral(scene.cluster, compute=compute)
    )


def slow_last_stage(scene: Scene) -> Fault:
    """The pipeline's stages are uneven (in the job's shape): nobody's hardware is at fault."""
    return _workload(scene, {"stage_weights": ()})


def uneven_sequences(scene: Scene) -> Fault:
    """Replicas get sequences of uneven length (in the job's shape)."""
    return _workload(scene, {"sequence_spread": 0.0})


def slow_data_loading(scene: Scene) -> Fault:
    """All ranks wait for data."""
    excess = ((scene.shape.slowdown or 1.2) - 1) * scene.step_seconds
    data = np.full(len(scene.cluster.nics), excess)
    effect = neutral(scene.cluster, data_seconds=data)
    return fault_of(scene, "workload_imbalance", [job_entity(scene)], effect)


def hang(scene: Scene) -> Fault:
    """One rank never arrives at a collective; the others wait until the watchdog gives up."""
    rank = int(scene.random.randint(scene.job.ranks))
    step = round(scene.shape.at * scene.job.shape.steps)
    culprit = rank_entity(scene, int(scene.job.gpus[rank]))
    acts = np.zeros(scene.job.shape.steps, dtype=bool)
    acts[step:] = True
    facts = [Hang(rank, step, _HANG_SECONDS)]
    return fault_of(scene, "hang", [culprit], neutral(scene.cluster), facts=facts, acts=acts)


def gpu_error(scene: Scene) -> Fault:
    """A GPU's memory fails row by row: the driver says so, and the GPU computes slower."""
    nic = scene.any_nic()
    spells = np.flatnonzero(scene.spells())
    steps = tuple(int(step) for step in spells[:: max(1, len(spells) // 4)])
    compute = scene.on_nics([nic.index], scene.compute_factor(1.15), 1)
    culprit = {"type": "gpu", "host": nic.host_name, "gpu": nic.local}
    return fault_of(
        scene,
        "gpu_error",
        [culprit],
        neutral(scene.cluster, compute=compute),
        victims=[rank_entity(scene, nic.index)],
        facts=[GpuError(nic.index, _XID_ROW_REMAPPED, steps)],
    )


def _workload(scene: Scene, without: dict[str, Any]) -> Fault:
    fault = fault_of(scene, "workload_imbalance", [job_entity(scene)], neutral(scene.cluster))
    return Fault(
        name=fault.name,
        kind=fault.kind,
        culprits=fault.culprits,
        effect=fault.effect,
        acts=np.ones(scene.job.shape.steps, dtype=bool),
        without=without,
    )
