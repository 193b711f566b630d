"""A job's output as Megatron prints it: sizes from its first rank, steps from its last."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from fabricobs.simulator.effects import Floats
from fabricobs.simulator.fabric import Fabric
from fabricobs.simulator.job import Job
from fabricobs.simulator.output import clock, write_lines
from fabricobs.simulator.randomness import Random, stream
from fabricobs.simulator.run import Run
from fabricobs.simulator.world import World
from fabricobs.simulator.writers.processes import host_offset, job_folder

_TIMER_STEPS = 50
_PEAK_LEARNING_RATE = 3e-4
_WARM_UP_STEPS = 100
_TOKENS_PER_SEQUENCE = 4096
_PLANNED = 10  # times the steps that are simulated: a job is asked about while it runs
_USUAL_TERAFLOPS = 400  # of a GPU while it computes: what sizes the batch


def write_megatron(directory: Path, world: World, fabric: Fabric) -> None:
    """Write an iteration line every step and the timers of every fiftieth."""
    for course in world.courses:
        run = course.run
        offset = host_offset(world, run.job.hosts[-1])
        name = world.cluster.host_name(run.job.hosts[-1])
        random = stream(world.seed, 22, run.job.index)
        path = job_folder(directory, world, run.job) / f"{name}.log"
        write_lines(path, [*_sizes(run.job), *_steps(run, offset, random)])


def sequences_per_step(job: Job) -> int:
    """Sequences all replicas train on in a step: a replica's fill its GPUs' computing time."""
    operations = 6 * job.shape.parameters * _TOKENS_PER_SEQUENCE
    gpus = job.shape.tensor * job.shape.pipeline
    fitting = _USUAL_TERAFLOPS * 1e12 * gpus * job.shape.compute_seconds / operations
    smallest = job.shape.microbatches if job.shape.pipeline > 1 else 1
    return max(1, round(fitting / smallest)) * smallest * job.replicas


def throughput_teraflops(job: Job, step_seconds: float) -> float:
    """Model TFLOP/s of one GPU at a step time in seconds, six operations a parameter and token."""
    operations = 6 * job.shape.parameters * sequences_per_step(job) * _TOKENS_PER_SEQUENCE
    return operations / job.ranks / step_seconds / 1e12


def _sizes(job: Job) -> Iterator[str]:
    yield (
        f"using world size: {job.ranks}, data-parallel size: {job.replicas}, "
        "context-parallel size: 1, hierarchical context-parallel sizes: None, "
        f"tensor-model-parallel size: {job.shape.tensor}, "
        f"pipeline-model-parallel size: {job.shape.pipeline}"
    )
    yield f"> initialized tensor model parallel with size {job.shape.tensor}"
    yield f"> initialized pipeline model parallel with size {job.shape.pipeline}"
    own = job.shape.parameters // (job.shape.tensor * job.shape.pipeline)
    yield f" > number of parameters on (tensor, pipeline) model parallel rank (0, 0): {own}"
    yield "training ..."


def _steps(run: Run, offset: float, random: Random) -> Iterator[str]:
    job, steps = run.job, run.job.shape.steps
    batch, noise = sequences_per_step(job), random.standard_normal((steps, 2))
    checkpoints = run.is_checkpoint()
    for step in range(1, run.steps + 1):
        slowest = float(run.step_seconds[step - 1].max())
        printed = clock(float(run.end[step - 1].max()) + 0.002 + offset)
        loss = 2.1 + 8.9 * np.exp(-step / 60) + 0.02 * noise[step - 1, 0]
        gradient_norm = (0.8 + 6 * np.exp(-step / 25)) * np.exp(0.1 * noise[step - 1, 1])
        learning_rate = _PEAK_LEARNING_RATE * min(1.0, step / _WARM_UP_STEPS)
        fields = [
            f"iteration {step:8d}/{_PLANNED * steps:8d}",
            f"consumed samples: {step * batch:12d}",
            f"elapsed time per iteration (ms): {slowest * 1000:.1f}",
            f"throughput per GPU (TFLOP/s/GPU): {throughput_teraflops(job, slowest):.1f}",
            f"learning rate: {learning_rate:.6E}",
            f"global batch size: {batch:5d}",
            f"lm loss: {loss:.6E}",
            "loss scale: 1.0",
            f"grad norm: {gradient_norm:.3f}",
            "number of skipped iterations:   0",
            "number of nan iterations:   0 |",
        ]
        yield f" [{printed:%Y-%m-%d %H:%M:%S.%f}] " + " | ".join(fields)
        if step % _TIMER_STEPS == 0:
            yield from _timers(run, step - 1)
        if checkpoints[step - 1]:
            yield from _checkpoint(run, step)


def _timers(run: Run, row: int) -> Iterator[str]:
    data = [i for i, c in enumerate(run.job.collectives) if c.scope == "data"]
    gradients, weights = data[0], data[-1]
    begun = run.begin[row] + run.data[row]
    timers: dict[str, Floats] = {
        "forward-backward": run.arrival[row, gradients] - begun,
        "batch-generator": run.data[row],
        "all-grads-sync": run.collective_seconds[row, gradients],
        "optimizer": run.arrival[row, weights] - run.done[row, gradients].max(),
        "params-all-gather": run.collective_seconds[row, weights],
    }
    yield from _timer_block(timers)


def _checkpoint(run: Run, step: int) -> Iterator[str]:
    """Rank 0's words, and the time all ranks took."""
    tensor, pipeline = run.job.shape.tensor, run.job.shape.pipeline
    folder = f"/checkpoints/{run.job.label}"
    saving = run.end[step - 1] - run.done[step - 1, -1].max()
    yield f"saving checkpoint at iteration {step:7d} to {folder} in torch_dist format"
    yield (
        f"  successfully saved checkpoint from iteration {step:7d} to {folder} "
        f"[ t 1/{tensor}, p 1/{pipeline} ]"
    )
    yield from _timer_block({"save-checkpoint": saving})


def _timer_block(timers: dict[str, Floats]) -> Iterator[str]:
    yield "(min, max) time across ranks (ms):"
    for name, seconds in timers.items():
        lowest, highest = seconds.min() * 1000, seconds.max() * 1000
        yield f"    {(name + ' ').ljust(48, '.')}: ({lowest:.2f}, {highest:.2f})"
