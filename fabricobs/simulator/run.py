"""The physics of a run: when every rank computes, arrives, transfers and ends, step by step."""

from dataclasses import dataclass

import numpy as np

from fabricobs.simulator.cluster import Integers
from fabricobs.simulator.effects import Floats
from fabricobs.simulator.job import Job
from fabricobs.simulator.randomness import stream

OPTIMIZER_SECONDS = 0.085
OTHER_SECONDS = 0.008
CHECKPOINT_SECONDS = 6.4
WARM_UP_FACTORS = (3.1, 1.35, 1.08)  # compute of the first steps: compilation and cold caches

COMPUTE_JITTER = 0.004
RANK_SPREAD = 0.001
TRANSFER_JITTER = 0.004
_TENSOR_CALL_SECONDS = 0.0004  # one call over NVLink
_BACKWARD_SHARE = 2 / 3  # of a stage's computing time


@dataclass(frozen=True, slots=True)
class Conditions:
    """What the cluster lets a job do, step by step: S steps, R ranks, G data communicators.

    compute: [S, R] factor on computing time. data_seconds: [S, R] added loading time.
    pace: [S, G] seconds a byte each NIC sends.
    """

    compute: Floats
    data_seconds: Floats
    pace: Floats


@dataclass(frozen=True, slots=True)
class Run:
    """All that happened to a job, in seconds since its start.

    Axes: S steps, C collectives of a step, R ranks. `begin`, `end`, `data`, `compute`: [S, R];
    `arrival`, `start`, `done`: [S, C, R], when a rank calls, when its communicator's last rank
    has, and when all have what they wanted.
    """

    job: Job
    begin: Floats
    end: Floats
    data: Floats
    compute: Floats
    arrival: Floats
    start: Floats
    done: Floats

    @property
    def steps(self) -> int:
        """Steps completed."""
        return len(self.begin)

    @property
    def step_seconds(self) -> Floats:
        """Step time of every rank, [S, R]."""
        return self.end - self.begin

    @property
    def collective_seconds(self) -> Floats:
        """Duration of every collective on every rank, waiting included, [S, C, R]."""
        return self.done - self.arrival

    @property
    def communication(self) -> Floats:
        """Exposed communication of every rank and step, waiting included, [S, R]."""
        busy = self.data + self.compute
        return np.maximum(self.done[:, -1] - self.begin - busy, 0)

    @property
    def duration(self) -> float:
        """Seconds from the start of the job to the end of its last step."""
        return float(self.end.max())

    def is_checkpoint(self) -> Integers:
        """Whether a step [S] ended with writing a checkpoint."""
        every = self.job.shape.checkpoint_every
        steps = np.arange(1, self.steps + 1)
        checkpoint: Integers = (steps % every == 0) if every else np.zeros(self.steps, dtype=bool)
        return checkpoint


@dataclass(frozen=True, slots=True)
class Noise:
    """All randomness of the step times; drawn before any fault, so that twins share it."""

    data: Floats
    compute: Floats
    optimizer: Floats
    other: Floats
    transfer: Floats


def draw_noise(job: Job, seed: int) -> Noise:
    """Draw a job's noise: [S, R] each, but `transfer`, which is [S, C, G]."""
    random = stream(seed, 3, job.index)
    shape, steps = job.shape, job.shape.steps
    size = (steps, job.ranks)
    per_rank = 1 + RANK_SPREAD * random.standard_normal(job.ranks)
    warm_up = np.ones(steps)
    warm_up[: len(WARM_UP_FACTORS)] = WARM_UP_FACTORS
    jitter = 1 + COMPUTE_JITTER * random.standard_normal(size)
    other = OTHER_SECONDS * random.gamma(16, 1 / 16, size)
    if shape.checkpoint_every:
        last = slice(shape.checkpoint_every - 1, None, shape.checkpoint_every)
        other[last] += CHECKPOINT_SECONDS * (1 + 0.01 * random.random_sample(job.ranks))
    sequences = 1 + shape.sequence_spread * random.standard_normal((steps, job.replicas))
    work = np.maximum(sequences, 0.3)[:, job.replica] * _stage_factor(job)
    groups = int(job.data_group.max()) + 1
    return Noise(
        data=shape.data_seconds * random.gamma(25, 1 / 25, size),
        compute=shape.compute_seconds * per_rank * warm_up[:, None] * jitter * work,
        optimizer=OPTIMIZER_SECONDS * (1 + 0.01 * random.standard_normal(size)),
        other=other,
        transfer=1
        + TRANSFER_JITTER * random.standard_normal((steps, len(job.collectives), groups)),
    )


def run_job(job: Job, noise: Noise, conditions: Conditions, steps: int) -> Run:
    """Run the first `steps` steps of a job."""
    data = (noise.data + conditions.data_seconds)[:steps]
    compute = (noise.compute * conditions.compute)[:steps]
    optimizer = noise.optimizer[:steps]
    shape = (steps, len(job.collectives), job.ranks)
    begin, end = np.zeros((steps, job.ranks)), np.zeros((steps, job.ranks))
    arrival, start, done = np.zeros(shape), np.zeros(shape), np.zeros(shape)

    now = np.zeros(job.ranks)
    for step in range(steps):
        begin[step] = now
        for index, collective in enumerate(job.collectives):
            if collective.scope == "tensor":
                called = begin[step] + data[step] + compute[step]
                seconds = np.full(job.ranks, _TENSOR_CALL_SECONDS)
            else:
                if collective.name == "AllReduce":
                    called = _computed(job, begin[step], data[step], compute[step])
                else:
                    # The gradients' norm is summed over all ranks before the weights change.
                    called = done[step, index - 1].max() + optimizer[step]
                moved = collective.nic_bytes * conditions.pace[step] * noise.transfer[step, index]
                seconds = moved[job.data_group]
            arrival[step, index] = called
            start[step, index] = _latest(called, job.group(collective.scope))
            done[step, index] = start[step, index] + seconds
        now = done[step, -1].max() + noise.other[step]
        end[step] = now
    return Run(
        job=job,
        begin=begin,
        end=end,
        data=data,
        compute=compute + optimizer,
        arrival=arrival,
        start=start,
        done=done,
    )


def _stage_factor(job: Job) -> Floats:
    """Computing time [R] of each rank's stage over the mean stage's."""
    weights = np.array(job.shape.stage_weights or (1.0,) * job.shape.pipeline)
    factors: Floats = (weights / weights.mean())[job.stage]
    return factors


def _latest(moments: Floats, group: Integers) -> Floats:
    latest = np.full(int(group.max()) + 1, -np.inf)
    np.maximum.at(latest, group, moments)
    return latest[group]


def _computed(job: Job, begin: Floats, data: Floats, compute: Floats) -> Floats:
    """When each rank has its gradients: its tensor group keeps step, the pipeline fills and drains.

    One forward, one backward: the slowest stage sets the pace of all but one microbatch.
    """
    ready = _latest(begin + data, job.tensor_group)
    busy = _latest(compute, job.tensor_group)
    if job.shape.pipeline == 1:
        return ready + busy
    first = slice(0, None, job.shape.tensor)  # one rank speaks for its tensor group
    by_stage = (job.shape.pipeline, job.replicas)
    work = busy[first].reshape(by_stage)
    per_microbatch = work / job.shape.microbatches
    through = per_microbatch.sum(axis=0) + per_microbatch.max(axis=0) * (job.shape.microbatches - 1)
    # The last stage drains first: its gradients are there before those of the stages above it.
    drained = np.cumsum(per_microbatch * _BACKWARD_SHARE, axis=0) - per_microbatch * _BACKWARD_SHARE
    finish = ready[first].reshape(by_stage).max(axis=0) + through - drained
    return np.repeat(finish.ravel(), job.shape.tensor)
