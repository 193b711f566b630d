"""A scenario come true: the cluster, what ran on it, and what went wrong, before anybody looks."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fabricobs.simulator.cluster import Cluster, Integers, build_cluster
from fabricobs.simulator.effects import Effect, Floats, neutral, together
from fabricobs.simulator.facts import Fact, Hang
from fabricobs.simulator.faults import FAULTS
from fabricobs.simulator.job import Job, place_jobs
from fabricobs.simulator.network import LINK_EFFICIENCY, Network, bytes_per_second, see_network
from fabricobs.simulator.randomness import stream
from fabricobs.simulator.routes import Routes, draw_routes, rehash
from fabricobs.simulator.run import Conditions, Run, draw_noise, run_job
from fabricobs.simulator.scene import Fault, Scene
from fabricobs.simulator.shapes import JobShape, ScenarioShape


@dataclass(frozen=True, slots=True)
class Course:
    """One job's run and the states of the network it met: `state` [S] indexes `networks`."""

    run: Run
    networks: tuple[Network, ...]
    effects: tuple[Effect, ...]
    state: Integers


@dataclass(frozen=True)
class World:
    """All that is true of one simulated case."""

    name: str
    shape: ScenarioShape
    seed: int
    cluster: Cluster
    faults: tuple[Fault, ...]
    courses: tuple[Course, ...]

    @cached_property
    def facts(self) -> tuple[Fact, ...]:
        """Facts of all faults."""
        return tuple(fact for fault in self.faults for fact in fault.facts)

    @property
    def duration(self) -> float:
        """Seconds until the last job ends or, hung, is given up."""
        waiting = sum(fact.seconds for fact in self.facts if isinstance(fact, Hang))
        return max(course.run.duration for course in self.courses) + waiting


def come_true(name: str, shape: ScenarioShape, seed: int) -> World:
    """Build the cluster, let the faults strike, run the jobs; ValueError for an unknown fault."""
    cluster = build_cluster(shape.cluster)
    jobs = place_jobs(shape.jobs, cluster)
    routes = [draw_routes(job, stream(seed, 1, job.index)) for job in jobs]
    calm = _Surroundings(shape, cluster, jobs, routes)
    faults = []
    for number, wanted in enumerate(shape.faults):
        if wanted.kind not in FAULTS:
            raise ValueError(f"no fault {wanted.kind!r}; one of {', '.join(FAULTS)}")
        scene = Scene(cluster, jobs[0], calm.networks[0], wanted, stream(seed, 2, number))
        faults.append(FAULTS[wanted.kind](scene))
    courses = [calm.run(job, tuple(faults), seed) for job in jobs]
    return World(name, shape, seed, cluster, tuple(faults), tuple(courses))


def run_without(world: World, fault: Fault) -> Run:
    """The first job's twin: same noise, all faults but one."""
    job = world.courses[0].run.job
    shape: JobShape = job.shape.model_copy(update=fault.without)
    twin = replace(job, shape=shape)
    others = tuple(other for other in world.faults if other is not fault)
    jobs = (twin, *(course.run.job for course in world.courses[1:]))
    routes = [draw_routes(each, stream(world.seed, 1, each.index)) for each in jobs]
    surroundings = _Surroundings(world.shape, world.cluster, jobs, routes)
    return surroundings.run(twin, others, world.seed, relief=fault.relief).run


class _Surroundings:
    """The jobs beside each other: how much of the uplinks others take from each."""

    def __init__(
        self,
        shape: ScenarioShape,
        cluster: Cluster,
        jobs: tuple[Job, ...],
        routes: list[Routes],
    ) -> None:
        self._cluster = cluster
        self._routes = routes
        storage = _storage_bytes_per_second(shape, cluster)
        calm = neutral(cluster)
        alone = [see_network(j, r, calm, storage) for j, r in zip(jobs, routes, strict=True)]
        taken = [_mean_bytes_per_second(job, net) for job, net in zip(jobs, alone, strict=True)]
        total = storage + np.sum(taken, axis=0)
        self._busy = [total - own for own in taken]
        self.networks = [
            see_network(j, r, calm, b) for j, r, b in zip(jobs, routes, self._busy, strict=True)
        ]

    def run(
        self, job: Job, faults: tuple[Fault, ...], seed: int, relief: Effect | None = None
    ) -> Course:
        """Run one job under the faults; a fault acts in the same share of every job's steps."""
        steps = job.shape.steps
        acting = np.stack([_stretched(f.acts, steps) for f in faults] or [np.zeros(steps, bool)])
        combinations, state = np.unique(acting, axis=1, return_inverse=True)
        state = state.ravel()
        effects = []
        for combination in combinations.T:
            chosen = [f.effect for f, acts in zip(faults, combination, strict=False) if acts]
            effects.append(together(self._cluster, [*chosen, *([relief] if relief else [])]))
        networks = []
        for effect in effects:
            routes = rehash(
                self._cluster, self._routes[job.index], effect.up_usable, stream(seed, 4, job.index)
            )
            networks.append(see_network(job, routes, effect, self._busy[job.index]))
        gpus = job.gpus
        conditions = Conditions(
            compute=np.stack([e.compute[gpus] for e in effects])[state],
            data_seconds=np.stack([e.data_seconds[gpus] for e in effects])[state],
            pace=np.stack([n.pace for n in networks])[state],
        )
        last = min(
            [fact.step for f in faults for fact in f.facts if isinstance(fact, Hang)], default=steps
        )
        run = run_job(job, draw_noise(job, seed), conditions, last if job.index == 0 else steps)
        return Course(run, tuple(networks), tuple(effects), state[: run.steps])


def _stretched(acts: np.ndarray, steps: int) -> np.ndarray:
    return acts[np.arange(steps) * len(acts) // steps]


def _storage_bytes_per_second(shape: ScenarioShape, cluster: Cluster) -> Floats:
    """Storage traffic [2, U] up and down, spread over the uplinks."""
    total = shape.storage_gbps * 1e9 / 8 * cluster.shape.hosts
    return np.full((2, len(cluster.uplinks)), total / len(cluster.uplinks))


def _mean_bytes_per_second(job: Job, network: Network) -> Floats:
    sent = sum(collective.nic_bytes for collective in job.collectives)
    seconds = job.shape.compute_seconds + sent * network.pace.max()
    cap = 0.5 * bytes_per_second(job.cluster.shape.uplink_gbps, LINK_EFFICIENCY)
    mean: Floats = np.minimum(np.stack([network.up, network.down]) * sent / seconds, cap)
    return mean
