"""A random world come true: cluster, launches, faults, and the run they give together."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fabricobs.simulator.cluster import Integers
from fabricobs.simulator.effects import Floats
from fabricobs.simulator.random_worlds.faults import ENDS, Fault, draw_faults
from fabricobs.simulator.random_worlds.physics import Network, State, calm, others_traffic, together
from fabricobs.simulator.random_worlds.run import Course, run_launch
from fabricobs.simulator.random_worlds.spec import Spec
from fabricobs.simulator.random_worlds.storage import usual_state
from fabricobs.simulator.random_worlds.topology import Topology, build_topology
from fabricobs.simulator.random_worlds.workload import Launch, Noise, draw_noise, launches_of

HANG_SECONDS = 600.0  # PyTorch's watchdog
_TENANTS = 0.3  # share of the NICs over which other tenants send


@dataclass(frozen=True)
class World:
    """All that is true of one random world.

    `plans` are the launches as they would run, `courses` as they did: a hang ends all. `states` are
    those of the cluster that occur, `state` [steps planned] says when; each includes the other
    tenants' traffic.
    """

    spec: Spec
    topology: Topology
    faults: tuple[Fault, ...]
    plans: tuple[tuple[Network, Noise], ...]
    courses: tuple[Course, ...]
    states: tuple[State, ...]
    state: Integers

    @cached_property
    def hang(self) -> Fault | None:
        """The fault that made the job hang, if one did."""
        return next((fault for fault in self.faults if fault.kind.does == "hang"), None)

    @cached_property
    def failure(self) -> Fault | None:
        """The failure that ended the job, if one did."""
        return next((fault for fault in self.faults if fault.kind.does == "ends"), None)

    @property
    def duration(self) -> float:
        """Seconds until the last step ends or, hung, the job is given up."""
        return float(self.courses[-1].end[-1]) + (HANG_SECONDS if self.hang else 0.0)

    @cached_property
    def busy(self) -> np.ndarray:
        """Steps planned in which other tenants send."""
        return _tenants(self.spec, self.topology, len(self.state))

    @cached_property
    def steps_made(self) -> Integers:
        """Places among the steps planned of the steps made."""
        return np.concatenate(
            [self.made_before(c.launch.number) + np.arange(c.steps) for c in self.courses]
        )

    def made_before(self, number: int) -> int:
        """Steps planned before a launch."""
        return sum(network.launch.steps for network, _ in self.plans[:number])


def come_true(spec: Spec, faults: tuple[str, ...] | None = None) -> World:
    """Build a world and run it; with the faults named instead of drawn ones, if given."""
    launches = launches_of(spec, build_topology(spec))
    return _laid(spec, draw_faults(spec, Network(launches[0]), launches, faults))


def _laid(spec: Spec, faults: tuple[Fault, ...]) -> World:
    """Lay the cables, the wrong ones as faults have them, and run the launches over them."""
    topology = build_topology(spec)
    for fault in faults:
        if fault.kind.does == "swapped":
            topology = topology.swapped(*fault.parts)
    networks = [Network(launch) for launch in launches_of(spec, topology)]
    plans = tuple((network, draw_noise(network.launch)) for network in networks)
    return _run(spec, topology, plans, faults)


def without(world: World, fault: Fault) -> World:
    """The world's twin without a fault: same noise, same hashes."""
    others = tuple(other for other in world.faults if other is not fault)
    if fault.kind.does == "swapped":
        return _laid(world.spec, others)
    return _run(world.spec, world.topology, world.plans, others)


def without_tenants(world: World) -> World:
    """The world's twin in which nobody else sends."""
    spec = world.spec.model_copy(update={"tenants": 0.0})
    return _run(spec, world.topology, world.plans, world.faults)


def tenants_alone(world: World) -> State:
    """The state in which nothing is wrong and other tenants send."""
    return _tenant_state(world.spec, world.topology, calm(world.topology).weight)


def _run(
    spec: Spec,
    topology: Topology,
    plans: tuple[tuple[Network, Noise], ...],
    faults: tuple[Fault, ...],
) -> World:
    made = sum(network.launch.steps for network, _ in plans)
    acting = np.stack([fault.acts for fault in faults] or [np.zeros(made, dtype=bool)])
    busy = _tenants(spec, topology, made)
    combinations, state = np.unique(np.vstack([acting, busy]), axis=1, return_inverse=True)
    state = state.ravel()
    usual = usual_state(topology, tuple(network.launch for network, _ in plans))
    states = []
    for combination in combinations.T:
        chosen = [f.state(topology) for f, acts in zip(faults, combination, strict=False) if acts]
        faulty = together(topology, [usual, *chosen])
        tenants = [_tenant_state(spec, topology, faulty.weight)] if combination[-1] else []
        states.append(together(topology, [usual, *chosen, *tenants]))
    hung = [int(np.flatnonzero(f.acts)[0]) for f in faults if f.kind.does in ENDS]
    courses, before, now = [], 0, 0.0
    for network, noise in plans:
        launch: Launch = network.launch
        steps = min([launch.steps, *(h - before for h in hung)])
        if steps <= 0:
            break
        own = state[before : before + launch.steps]
        course = run_launch(network, noise, states, own, now + launch.pause, steps)
        courses.append(course)
        before += launch.steps
        now = float(course.end[-1])
        if steps < launch.steps:
            break
    return World(spec, topology, faults, plans, tuple(courses), tuple(states), state)


def _tenants(spec: Spec, topology: Topology, made: int) -> np.ndarray:
    """Steps [S] in which other tenants send: by stretches of a tenth of the run."""
    random = spec.stream("tenants")
    stretches = random.random_sample(10) < 0.5
    busy = stretches[np.arange(made) * 10 // made] & (spec.tenants > 0) & (topology.nics > 4)
    return busy.astype(bool)


def _tenant_state(spec: Spec, topology: Topology, weight: Floats) -> State:
    """The state in which other tenants send, over uplinks of these weights [D]."""
    random = spec.stream("tenant pairs")
    senders = random.permutation(topology.nics)[: max(2, int(topology.nics * _TENANTS))]
    pairs = np.array([(int(nic), int(random.choice(topology.rail_of(nic)))) for nic in senders])
    rate = spec.tenants * float(topology.capacity[0])
    return calm(topology).changed(foreign=others_traffic(topology, pairs, rate, weight, "tenants"))
