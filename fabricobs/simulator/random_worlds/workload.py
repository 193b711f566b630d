"""The job of a random world: its launches, its ranks, what they exchange in a step, its noise."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fabricobs.simulator.cluster import Integers
from fabricobs.simulator.effects import Floats
from fabricobs.simulator.random_worlds.routing import Flows
from fabricobs.simulator.random_worlds.spec import Spec
from fabricobs.simulator.random_worlds.topology import Topology

_WARM_UP = (3.0, 1.4, 1.1)  # compute of the first steps: compilation and cold caches
_EXPERT_HOSTS = 4  # hosts an expert-parallel group spans at most
_EVALUATION_STEPS = 4.0  # an evaluation lasts as long as so many steps
_CHECKPOINT_SECONDS = {"none": 0.0, "all": 4.0, "one": 15.0}
_RAMP = 0.15  # of the steps before the batch doubles
_TAIL_SECONDS = 0.4  # median of a garbage collection
_SMALL_BYTES = (8e3, 4e6)  # that a NIC sends in a collective of small messages
# Seconds of a call and of each hop (NCCL, src/graph/tuning), and how much longer public runs take.
_CALL_SECONDS, _HOP_INSIDE, _HOP_BETWEEN = 8.4e-6, 3.4e-6, 14e-6
_TIMES_LATENCY = (0.8, 2.3)


@dataclass(frozen=True, slots=True)
class Phase:
    """One collective of each step over several groups; flows cross NICs, the rest stays inside.

    `message_bytes` is what one rank gives, as NCCL counts it; `group` [R] of each rank; `latency`
    seconds pass before the first byte.
    """

    name: str
    scope: str
    group: Integers
    ranks: int
    message_bytes: int
    flows: Flows
    latency: float = 0.0

    @property
    def bus_factor(self) -> float:
        """Bus bandwidth over algorithm bandwidth."""
        return (2 if self.name == "AllReduce" else 1) * (self.ranks - 1) / self.ranks

    @property
    def algorithm_bytes(self) -> int:
        """Bytes the algorithm bandwidth is counted from."""
        gathered = self.name in {"AllGather", "ReduceScatter"}
        return self.message_bytes * (self.ranks if gathered else 1)


@dataclass(frozen=True)
class Launch:
    """One start of the job on some hosts: it makes the steps `first` to `first + steps - 1`."""

    spec: Spec
    topology: Topology
    number: int
    hosts: tuple[int, ...]
    first: int
    steps: int
    pause: float  # seconds between the end of the launch before and this one

    @property
    def ranks(self) -> int:
        """Number of ranks R, one a GPU."""
        return len(self.hosts) * self.spec.gpus_per_host

    @cached_property
    def host(self) -> Integers:
        """Host [R] of each rank."""
        return np.repeat(np.array(self.hosts), self.spec.gpus_per_host)

    @cached_property
    def local(self) -> Integers:
        """GPU [R] of each rank on its host."""
        return np.arange(self.ranks) % self.spec.gpus_per_host

    @cached_property
    def gpu(self) -> Integers:
        """GPU [R] of each rank, counted over the cluster."""
        return self.host * self.spec.gpus_per_host + self.local

    @cached_property
    def pids(self) -> Integers:
        """Process id [R] of each rank."""
        return 10_000 + 1_000 * self.number + 17 * self.host + self.local

    @cached_property
    def nic(self) -> Integers:
        """NIC [R] beside each rank's GPU."""
        return np.array(
            [self.topology.nic_of_gpu(h, g) for h, g in zip(self.host, self.local, strict=True)]
        )

    @property
    def tensor(self) -> int:
        """Ranks of a tensor group, on one host."""
        return min(self.spec.tensor, self.spec.gpus_per_host) if self.spec.job_kind == "3d" else 1

    @property
    def stages(self) -> int:
        """Pipeline stages; those of the specification where the hosts divide by them."""
        wanted = self.spec.pipeline if self.spec.job_kind == "3d" else 1
        return wanted if len(self.hosts) % wanted == 0 and len(self.hosts) >= 2 * wanted else 1

    @cached_property
    def stage(self) -> Integers:
        """Stage [R] of each rank."""
        return np.arange(self.ranks) * self.stages // self.ranks

    @cached_property
    def data_group(self) -> Integers:
        """Data-parallel group [R] of each rank."""
        return self.stage * self.tensor + np.arange(self.ranks) % self.tensor

    @cached_property
    def phases(self) -> tuple[Phase, ...]:
        """The collectives of a step, in order; the share of time each should take is its weight."""
        kind = self.spec.job_kind
        data = self.data_group
        if kind == "fsdp":
            return self._phases(
                [("AllGather", "fsdp", data, 1), ("ReduceScatter", "fsdp", data, 1)]
            )
        if kind == "moe":
            expert = np.arange(self.ranks) // (_EXPERT_HOSTS * self.spec.gpus_per_host)
            return self._phases([("AllToAll", "ep", expert, 1), ("AllReduce", "dp", data, 1)])
        names: list[tuple[str, str, Integers, float]] = [("AllReduce", "dp", data, 1)]
        if self.stages > 1:
            pairs: Integers = np.arange(self.ranks) % (self.ranks // self.stages)
            names.insert(0, ("SendRecv", "pp", pairs, 0.2))
        return self._phases(names)

    def _phases(self, wanted: list[tuple[str, str, Integers, float]]) -> tuple[Phase, ...]:
        spec = self.spec
        seconds = spec.step_seconds * spec.communication
        rate = float(self.topology.capacity[0])
        total = sum(weight for *_, weight in wanted)
        phases = []
        for name, scope, group, weight in wanted:
            budget = seconds * weight / total * rate  # bytes a NIC sends
            if spec.small_messages:
                low, high = np.log(_SMALL_BYTES)
                budget = float(np.exp(spec.stream("message", name).uniform(low, high)))
            flows = (
                _all_to_all(self, group, budget)
                if name == "AllToAll"
                else _ring(self, group, budget, closed=name != "SendRecv")
            )
            ranks = int(np.bincount(group).max())
            per_nic = spec.gpus_per_host // self.topology.nics_per_host
            message = {
                "AllReduce": budget * self.topology.nics_per_host / max(self.tensor, 1) / 2,
                "AllGather": budget * self.topology.nics_per_host / ranks,
                "ReduceScatter": budget * self.topology.nics_per_host / ranks,
            }.get(name, budget / max(per_nic, 1))
            latency = self._latency(name, ranks) if spec.small_messages else 0.0
            size = max(8192, round(message))
            phases.append(Phase(name, scope, group, ranks, size, flows, latency))
        return tuple(phases)

    def _latency(self, name: str, ranks: int) -> float:
        """Seconds of all hops of a ring, as NCCL's cost model has them, times a site's own."""
        nodes = min(len(self.hosts), ranks)
        hops = (ranks - nodes) * _HOP_INSIDE + nodes * _HOP_BETWEEN
        rounds = 2 if name == "AllReduce" else 1
        times = float(self.spec.stream("latency").uniform(*_TIMES_LATENCY))
        return times * (_CALL_SECONDS + rounds * hops)


def launches_of(spec: Spec, topology: Topology) -> tuple[Launch, ...]:
    """Draw the launches: restarts replay steps, and may go on without a host, or with a spare."""
    random = spec.stream("launches")
    hosts = list(range(topology.hosts))
    used, spare = hosts[: spec.job_hosts], hosts[spec.job_hosts :]
    launches: list[Launch] = []
    done, pause = 0, 0.0
    for number in range(spec.restarts + 1):
        left = spec.steps - done
        last = number == spec.restarts or left < 40
        steps = left if last else int(left * random.uniform(0.3, 0.7))
        launches.append(Launch(spec, topology, number, tuple(used), done, steps, pause))
        if last:
            break
        saved = done + steps
        every = spec.checkpoint_every
        replay = saved % every if spec.checkpoint != "none" else int(random.randint(1, 15))
        done = max(0, saved - min(replay, steps // 2))
        pause = float(random.uniform(20, 200))
        lost = int(random.randint(len(used)))
        if spec.other_world_size and len(used) > 2:
            used = used[:lost] + used[lost + 1 :]
        elif spare:
            used[lost], spare = spare[0], spare[1:]
    return tuple(launches)


def _ring(launch: Launch, group: Integers, budget: float, *, closed: bool) -> Flows:
    """Each NIC of a group's hosts sends to the same NIC of the group's next host."""
    found: dict[tuple[int, int, int], float] = {}
    per_host = launch.topology.nics_per_host
    for number in np.unique(group):
        members = np.flatnonzero(group == number)
        hosts = list(dict.fromkeys(launch.host[members].tolist()))
        if len(hosts) < 2:
            continue
        own = sorted({int(nic) % per_host for nic in launch.nic[members]})
        following = hosts[1:] + (hosts[:1] if closed else [])
        for here, there in zip(hosts, following, strict=False):
            for nic in own:
                source, target = (launch.topology.nics_of(h)[nic] for h in (here, there))
                key = (source, target, int(number))
                found[key] = found.get(key, 0.0) + 1.0
    return _flows(found, budget)


def _all_to_all(launch: Launch, group: Integers, budget: float) -> Flows:
    """Each NIC sends a share to the same NIC of every other host of its group."""
    found: dict[tuple[int, int, int], float] = {}
    for number in np.unique(group):
        hosts = np.unique(launch.host[group == number]).tolist()
        for here in hosts:
            for there in hosts:
                if here != there:
                    pairs = zip(
                        launch.topology.nics_of(here), launch.topology.nics_of(there), strict=True
                    )
                    found.update({(a, b, int(number)): 1.0 for a, b in pairs})
    return _flows(found, budget)


def _flows(found: dict[tuple[int, int, int], float], budget: float) -> Flows:
    """Flows so that the busiest NIC sends `budget` bytes."""
    keys = np.array(list(found), dtype=np.int64).reshape(-1, 3)
    amount = np.array(list(found.values()))
    if len(keys):
        amount = amount * budget / np.bincount(keys[:, 0], weights=amount).max()
    return Flows(keys[:, 0], keys[:, 1], amount, keys[:, 2])


@dataclass(frozen=True, slots=True)
class Noise:
    """What chance does to one launch, the same with and without a fault.

    `compute`, `data`: seconds [S, R]; `gap` [S]: seconds after a step for evaluation and
    checkpoints; `transfer`: factor [S, phases]; `rollout`: seconds [S, R] before training.
    `batch`, `sequence` [S] are the batch size and sequence length as shares of the final ones.
    """

    compute: Floats
    data: Floats
    gap: Floats
    transfer: Floats
    rollout: Floats
    batch: Floats
    sequence: Floats
    evaluation: Integers
    saving: Integers


def draw_noise(launch: Launch) -> Noise:
    """Draw the noise of one launch."""
    spec = launch.spec
    random = spec.stream("noise", launch.number)
    steps, ranks = launch.steps, launch.ranks
    number = launch.first + np.arange(steps)
    progress = number / spec.steps
    rank_noise = _draw(spec.noise_law, spec.rank_noise, (steps, ranks), random)
    step_noise = _draw(spec.noise_law, spec.step_noise, (steps, 1), random)
    silicon = 1 + spec.silicon_spread * np.abs(spec.stream("silicon").standard_normal(4096))
    slow_changes = 1 + spec.drift * progress + spec.diurnal * np.sin(2 * np.pi * progress * 0.7)
    batch = np.where(number < _ramped_steps(spec), 0.5, 1.0)
    sequence = np.where(progress < 0.3, 0.5, 1.0) if spec.curriculum else np.ones(steps)
    warm = np.ones(steps)
    if spec.warm_up:
        warm[: len(_WARM_UP)] = _WARM_UP[:steps]
    rollout_share = 0.4 if spec.job_kind == "rl" else 0.0
    seconds = spec.step_seconds * (1 - spec.communication) * (1 - rollout_share)
    changing = (slow_changes * batch * sequence * warm)[:, None]
    compute = seconds * changing * step_noise * rank_noise * silicon[launch.gpu]
    tails = random.random_sample((steps, ranks)) < spec.gc_tails
    compute = compute + tails * _TAIL_SECONDS * random.lognormal(0, 0.7, (steps, ranks))
    rollout = np.zeros((steps, ranks))
    if rollout_share:
        mean = spec.step_seconds * rollout_share
        spread = spec.rollout_spread * random.standard_normal((steps, ranks))
        rollout = mean * np.exp(
            0.5 * spread + spec.rollout_spread * random.standard_normal((steps, 1))
        )
    evaluation = _every(number, spec.evaluation_every)
    saving = _every(number, spec.checkpoint_every if spec.checkpoint != "none" else 0)
    gap = (
        0.004
        + evaluation * _EVALUATION_STEPS * spec.step_seconds
        + saving * _CHECKPOINT_SECONDS[spec.checkpoint] * random.lognormal(0, 0.1, steps)
    )
    transfer = np.exp(0.01 * random.standard_normal((steps, len(launch.phases))))
    data = 0.01 * spec.step_seconds * random.gamma(25, 1 / 25, (steps, ranks))
    return Noise(compute, data, gap, transfer, rollout, batch, sequence, evaluation, saving)


def _ramped_steps(spec: Spec) -> float:
    """Steps in which the batch is half of the final one."""
    return _RAMP * spec.steps if spec.ramp_up else 0.0


def batches_done(spec: Spec, steps: int) -> float:
    """How many batches of the final size the first steps of a run consume."""
    return steps - 0.5 * min(steps, math.ceil(_ramped_steps(spec)))


def _draw(law: str, size: float, shape: tuple[int, int], random: np.random.RandomState) -> Floats:
    if law == "t":
        factors: Floats = 1 + size * np.clip(random.standard_t(4, shape), -6, 6) / np.sqrt(2)
        return np.maximum(factors, 0.5)
    return np.exp(size * random.standard_normal(shape))


def _every(number: Integers, every: int) -> Integers:
    return (number + 1) % every == 0 if every else np.zeros(len(number), dtype=bool)
