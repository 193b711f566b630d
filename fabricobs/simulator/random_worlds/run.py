"""The run of a random world: launch by launch, each step set by its slowest member."""

from dataclasses import dataclass

import numpy as np

from fabricobs.simulator.cluster import Integers
from fabricobs.simulator.effects import Floats
from fabricobs.simulator.random_worlds.physics import Network, State, Transfer
from fabricobs.simulator.random_worlds.workload import Launch, Noise

_OPTIMIZER_SHARE = 0.03  # of the computing time
_BETWEEN_PHASES = 0.0005
_BACKWARD = 2 / 3  # of a stage's computing time
_PLACEMENT_SECONDS = 20.0  # flowlets keep to about one placement so long
_PLACEMENT_SPREAD = 12.0  # shape of a placement's gamma: CV 0.29 in a block, as measured over 10 s
_MOST_BLOCKS = 60  # placements drawn for one launch


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive steps of a launch in one state and with one placement of the flows."""

    first: int
    steps: int
    transfers: list[Transfer]


@dataclass(frozen=True)
class Course:
    """What happened in one launch, in seconds since the world began.

    Axes: S steps, P phases, R ranks. `begin`, `end` [S] of each step; `data`, `compute` and
    `rollout` [S, R]; `arrival`, `done` [S, P, R] of each collective on each rank, `start` [S, P, R]
    when its group's last rank has come.
    """

    launch: Launch
    noise: Noise
    begin: Floats
    end: Floats
    data: Floats
    compute: Floats
    rollout: Floats
    arrival: Floats
    start: Floats
    done: Floats
    blocks: tuple[Block, ...]

    @property
    def seconds(self) -> Floats:
        """Step times [S], evaluation and checkpoints left out."""
        return self.end - self.begin

    @property
    def steps(self) -> int:
        """Steps made."""
        return len(self.begin)

    @property
    def exec_seconds(self) -> Floats:
        """Time [S, P, R] each rank spends in each collective, waiting included."""
        return self.done - self.arrival


def run_launch(
    network: Network, noise: Noise, states: list[State], state: Integers, since: float, steps: int
) -> Course:
    """Run the first `steps` steps of a launch; `state` [S] indexes `states`."""
    launch = network.launch
    gpus = launch.gpu
    factor = np.stack([s.compute[gpus] for s in states])[state[:steps]]
    loading = np.stack([s.loading[gpus] for s in states])[state[:steps]]
    data = noise.data[:steps] + loading
    compute = noise.compute[:steps] * factor
    rollout = noise.rollout[:steps] * factor
    seconds = np.stack([_phase_seconds(launch, network.transfers(each)) for each in states])[
        state[:steps]
    ]
    overlap = launch.spec.overlap
    ready = rollout.max(axis=1, keepdims=True) + data + _busy(launch, compute)
    now = ready - overlap * compute
    arrival, start, done = (np.zeros((steps, len(launch.phases), launch.ranks)) for _ in range(3))
    for number, phase in enumerate(launch.phases):
        arrival[:, number] = now
        last = np.full((steps, int(phase.group.max()) + 1), -np.inf)
        for group in range(last.shape[1]):
            last[:, group] = now[:, phase.group == group].max(axis=1)
        start[:, number] = last[:, phase.group]
        moved = seconds[:, number] * noise.transfer[:steps, number, None]
        done[:, number] = start[:, number] + moved
        now = done[:, number] + _BETWEEN_PHASES
    optimizer = _OPTIMIZER_SHARE * launch.spec.step_seconds * (1 - launch.spec.communication)
    length = np.maximum(now, ready).max(axis=1) + optimizer
    gaps = np.concatenate([[0.0], noise.gap[: steps - 1]])
    end = since + np.cumsum(length + gaps)
    begin = end - length
    at = begin[:, None, None]
    return Course(
        launch=launch, noise=noise, begin=begin, end=end, data=data, compute=compute,
        rollout=rollout, arrival=arrival + at, start=start + at, done=done + at,
        blocks=_blocks(network, states, state[:steps], length),
    )  # fmt: skip


def plain_seconds(network: Network, state: State) -> float:
    """Step time without noise in one state."""
    launch = network.launch
    spec = launch.spec
    factor = state.compute[launch.gpu][None]
    rollout = 0.4 if spec.job_kind == "rl" else 0.0
    compute = spec.step_seconds * (1 - spec.communication) * (1 - rollout) * factor
    slowest = spec.step_seconds * rollout * factor.max()
    seconds = _phase_seconds(launch, network.transfers(state))
    ready = slowest + state.loading[launch.gpu][None] + _busy(launch, compute)
    begun = float((ready - spec.overlap * compute).max())
    optimizer = _OPTIMIZER_SHARE * spec.step_seconds * (1 - spec.communication)
    return max(begun + float(seconds.max(axis=1).sum()), float(ready.max())) + optimizer


def _phase_seconds(launch: Launch, transfers: list[Transfer]) -> Floats:
    """Seconds [P, R] of each phase on each rank."""
    return np.stack([t.seconds[p.group] for t, p in zip(transfers, launch.phases, strict=True)])


def _busy(launch: Launch, compute: Floats) -> Floats:
    """Time [S, R] until each rank has its gradients: tensor groups keep step, pipelines fill."""
    steps, ranks = compute.shape
    by_group = compute.reshape(steps, ranks // launch.tensor, launch.tensor).max(axis=2)
    kept = np.repeat(by_group, launch.tensor, axis=1)
    if launch.stages == 1:
        return kept
    micro = 8 * launch.stages
    by_stage = kept.reshape(steps, launch.stages, -1) / micro
    whole = by_stage.sum(axis=1) + by_stage.max(axis=1) * (micro - 1)
    drained = (np.cumsum(by_stage, axis=1) - by_stage) * _BACKWARD
    finished: Floats = (whole[:, None] - drained).reshape(steps, ranks)
    return finished


def _blocks(
    network: Network, states: list[State], state: Integers, length: Floats
) -> tuple[Block, ...]:
    """Cut the steps where the state changes and, with flowlets, where their placement does."""
    launch = network.launch
    cuts = {0, len(state), *(np.flatnonzero(np.diff(state)) + 1).tolist()}
    flowlet = launch.spec.balancing == "flowlet"
    every = len(state)
    if flowlet:
        placements = min(float(length.sum()) / _PLACEMENT_SECONDS, _MOST_BLOCKS)
        every = max(1, int(len(state) / max(placements, 1)))
        cuts |= set(range(0, len(state), every))
    edges = sorted(cuts)
    moved = [network.transfers(each) for each in states]
    blocks = []
    for first, end in zip(edges, edges[1:], strict=False):
        which = int(state[first])
        transfers = moved[which]
        if flowlet:
            # Longer blocks are more even: the number of placements in them is larger.
            shape = _PLACEMENT_SPREAD * max(
                1.0, float(length[first:end].sum()) / _PLACEMENT_SECONDS
            )
            random = launch.spec.stream("placements", launch.number, first // every)
            pull = random.standard_gamma(shape, network.topology.links) / shape
            transfers = network.placed(transfers, states[which], pull)
        blocks.append(Block(first, end - first, transfers))
    return tuple(blocks)
