"""The physics of the run: when every rank computes, arrives, transfers and ends, step by step."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabricobs.simulate import workload
from fabricobs.simulate.cluster import LEAVES, NIC_GBPS, RANKS, UPLINK_GBPS, UPLINKS_PER_LEAF
from fabricobs.simulate.routes import QUEUE_PAIRS, Routes, draw_routes, polarise

Floats = NDArray[np.float64]

FAULT_STEP = 157
FAULTY_LEAF = 0
POLARISED_SHARE = 0.97
LINK_EFFICIENCY = 0.92


@dataclass(frozen=True, slots=True)
class Run:
    """All that happened, in seconds since the start of the job.

    Axes: S steps, C collectives of a step, R ranks. `begin`, `end`, `data`, `compute`: [S, R];
    `arrival`: [S, C, R]; `transfer_start`, `transfer_end`: [S, C]. `faulty` [S] says which of the
    two `routes` (healthy, faulty) a step used.
    """

    begin: Floats
    end: Floats
    data: Floats
    compute: Floats
    arrival: Floats
    transfer_start: Floats
    transfer_end: Floats
    faulty: NDArray[np.bool_]
    routes: tuple[Routes, Routes]

    @property
    def step_seconds(self) -> Floats:
        """Step time of every rank, [S, R]."""
        return self.end - self.begin

    @property
    def collective_seconds(self) -> Floats:
        """Duration of every collective on every rank, waiting included, [S, C, R]."""
        return self.transfer_end[:, :, None] - self.arrival

    @property
    def duration(self) -> float:
        """Seconds from the start of the job to the end of its last step."""
        return float(self.end.max())


@dataclass(frozen=True, slots=True)
class _Noise:
    """All randomness of the step times; drawn before the fault is known, so that twins share it."""

    data: Floats
    compute: Floats
    optimizer: Floats
    other: Floats
    transfer: Floats


def stream(seed: int, number: int) -> np.random.RandomState:
    """One of a seed's independent streams of random numbers.

    The older generator is used because its numbers are promised never to change between releases.
    """
    return np.random.RandomState([seed, number])


def simulate(*, fault: bool, seed: int) -> Run:
    """Run the job; without `fault` the result is the healthy twin with the same noise."""
    healthy = draw_routes(stream(seed, 1))
    faulty = polarise(healthy, FAULTY_LEAF, POLARISED_SHARE, stream(seed, 2))
    steps = np.arange(1, workload.STEPS + 1)
    return _run_steps(
        _draw_noise(stream(seed, 3)), (healthy, faulty), (steps >= FAULT_STEP) & fault
    )


def flow_bytes(collective: workload.Collective) -> float:
    """Bytes one flow carries in one collective."""
    return collective.nic_bytes / QUEUE_PAIRS


def ideal_transfer_seconds(routes: Routes, collective: workload.Collective) -> float:
    """Transfer time without noise: that of the link with the most bytes for its capacity."""
    links = LEAVES * UPLINKS_PER_LEAF
    most_flows = max(
        np.bincount(routes.up, minlength=links).max(),
        np.bincount(routes.down, minlength=links).max(),
    )
    uplink_seconds = most_flows * flow_bytes(collective) / _bytes_per_second(UPLINK_GBPS)
    nic_seconds = collective.nic_bytes / _bytes_per_second(NIC_GBPS)
    return float(max(uplink_seconds, nic_seconds))


def _bytes_per_second(gbps: float) -> float:
    return gbps * 1e9 / 8 * LINK_EFFICIENCY


def _draw_noise(random: np.random.RandomState) -> _Noise:
    shape = (workload.STEPS, RANKS)
    per_rank = 1 + 0.001 * random.standard_normal(RANKS)
    warm_up = np.ones(workload.STEPS)
    warm_up[: len(workload.WARM_UP_FACTORS)] = workload.WARM_UP_FACTORS
    compute = 1 + workload.COMPUTE_JITTER * random.standard_normal(shape)
    other = workload.OTHER_SECONDS * random.gamma(16, 1 / 16, shape)
    for step in workload.CHECKPOINT_STEPS:
        other[step - 1] += workload.CHECKPOINT_SECONDS * (1 + 0.01 * random.random_sample(RANKS))
    return _Noise(
        data=workload.DATA_SECONDS * random.gamma(25, 1 / 25, shape),
        compute=workload.COMPUTE_SECONDS * per_rank * warm_up[:, None] * compute,
        optimizer=workload.OPTIMIZER_SECONDS * (1 + 0.01 * random.standard_normal(shape)),
        other=other,
        transfer=1
        + workload.TRANSFER_JITTER
        * random.standard_normal((workload.STEPS, len(workload.COLLECTIVES))),
    )


def _run_steps(noise: _Noise, routes: tuple[Routes, Routes], faulty: NDArray[np.bool_]) -> Run:
    ideal = np.array([[ideal_transfer_seconds(r, c) for c in workload.COLLECTIVES] for r in routes])
    transfer = ideal[faulty.astype(int)] * noise.transfer
    ranks, collectives = (workload.STEPS, RANKS), (workload.STEPS, len(workload.COLLECTIVES))
    begin, end = np.zeros(ranks), np.zeros(ranks)
    arrival = np.zeros((*collectives, RANKS))
    start, done = np.zeros(collectives), np.zeros(collectives)

    now = np.zeros(RANKS)
    for step in range(workload.STEPS):
        begin[step] = now
        now = now + noise.data[step] + noise.compute[step]
        for index in range(len(workload.COLLECTIVES)):
            if index > 0:
                now = now + noise.optimizer[step]
            arrival[step, index] = now
            start[step, index] = now.max()
            done[step, index] = start[step, index] + transfer[step, index]
            now = np.full(RANKS, done[step, index])
        now = now + noise.other[step]
        end[step] = now
    return Run(
        begin=begin,
        end=end,
        data=noise.data,
        compute=noise.compute + noise.optimizer,
        arrival=arrival,
        transfer_start=start,
        transfer_end=done,
        faulty=faulty,
        routes=routes,
    )
