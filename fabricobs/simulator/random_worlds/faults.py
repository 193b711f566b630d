"""The faults of a random world: on which parts each strikes, when, and how hard."""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from fabricobs.simulator.effects import Floats
from fabricobs.simulator.random_worlds.physics import Network, State, calm, others_traffic
from fabricobs.simulator.random_worlds.run import plain_seconds
from fabricobs.simulator.random_worlds.spec import Spec, fault_draw
from fabricobs.simulator.random_worlds.storage import served, servers_of
from fabricobs.simulator.random_worlds.topology import Topology
from fabricobs.simulator.random_worlds.workload import Launch
from fabricobs.simulator.randomness import Random

ANY = "any"  # the property `fault` of a world whose faults are drawn
_BISECTIONS = 10
_BATCH = 0.25  # share of the hosts that a bad batch of firmware is on
_FIRST_MOMENT = 5  # step
ENDS = {"hang", "ends"}  # the job
BAD_BENCHMARK = "bad_benchmark"  # the group of those that act in benchmarks alone, before the job
_FLAPS = 6
_SENDERS = 12  # foreign NICs that fill one port
_FEWEST_LEAVES = 4  # of which one differs from its peers
_EAGER = 0.06  # of the packets that a port sends are marked where thresholds are far too low
_STREAMS = {"setting_fault": ("apart",)}  # of groups of faults whose stream has another name
# Faults that are set up with the job act from its first step to its last.
_FROM_THE_FIRST_STEP = {
    "gdr_off", "socket_transport", "foreign_nics", "swapped_rails", "other_variable", "small_mtu",
    "other_priority", "no_watchdog", "conflicting_variables", "acs_on", "narrow_slot",
    "gdr_off_everywhere", "throttling_variable", "unmarked_queues",
}  # fmt: skip


class FaultKind(BaseModel):
    """One entry of `faults.toml`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    weight: float
    kind: str
    model: str = ""
    also: tuple[str, ...] = ()
    leaf_os: str | None = None
    only: Literal["ethernet", "infiniband"] | None = None
    nic_drivers: tuple[str, ...] = ("mlx5", "efa", "cxi", "ionic")
    strikes: Literal["gpu", "host", "nic", "uplink", "leaf", "leaves", "job", "spare"]
    does: str
    throttles: bool = False
    lasts: bool = False
    apart: str = ""
    natural: float = 1.0
    most: float = 1.0
    sizes: tuple[float, float] | None = None
    shown_by: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault in place: the parts it strikes, its size, and the steps [S] in which it acts.

    Parts are indices of what `kind.strikes` names: GPUs, hosts, NICs, cables, leaves; `spare` are
    hosts that the job does not use.
    """

    name: str
    kind: FaultKind
    parts: tuple[int, ...]
    size: float
    acts: np.ndarray

    def state(self, topology: Topology) -> State:
        """What the cluster is like while the fault acts."""
        return _state(self.kind, self.parts, self.size, topology)

    def gpus(self, topology: Topology) -> np.ndarray:
        """GPUs of the cluster it acts on."""
        return _gpus(self.kind, self.parts, topology)

    def cables(self, topology: Topology) -> np.ndarray:
        """Cables it acts on."""
        return _cables(self.kind, self.parts, topology)


@cache
def fault_kinds() -> dict[str, FaultKind]:
    """The kinds of fault by name."""
    text = Path(__file__).with_name("faults.toml").read_text(encoding="utf-8")
    return {name: FaultKind.model_validate(kind) for name, kind in tomllib.loads(text).items()}


def draw_faults(
    spec: Spec,
    network: Network,
    launches: tuple[Launch, ...],
    names: tuple[str, ...] | None = None,
) -> tuple[Fault, ...]:
    """Draw the faults of a world, each of another kind, or those named.

    They strike parts the first launch uses, and act by steps made: steps made twice count twice.
    """
    names = names if names is not None else _names(spec, network)
    return tuple(_put(spec, network, launches, name, number) for number, name in enumerate(names))


def _names(spec: Spec, network: Network) -> tuple[str, ...]:
    """Draw which faults a world has, of those that its cluster can have."""
    topology = network.topology
    fitting = {
        name: kind
        for name, kind in fault_kinds().items()
        if kind.only in {None, spec.fabric}
        and kind.leaf_os in {None, topology.switches(1)[0].os}
        and spec.nic_driver in kind.nic_drivers
        and _has(kind, topology, network)
    }
    if spec.fault != ANY:
        return (spec.fault,) if spec.fault in fitting else ()
    groups: dict[str, list[str]] = {}
    for name, kind in fitting.items():
        groups.setdefault(kind.apart, []).append(name)
    random, together = spec.stream("faults"), groups.pop("")
    weights = np.array([fitting[name].weight for name in together])
    chosen = random.choice(
        len(together), size=spec.fault_count, replace=False, p=weights / weights.sum()
    )
    on_top = [
        str(spec.stream(*_STREAMS.get(group, ("apart", group))).choice(names))
        for group, names in groups.items()
        if spec.fault_count
        and getattr(spec, group)
        and not (group == "failure" and "hang" in {together[place] for place in chosen})
    ]
    return (*(together[place] for place in chosen), *on_top)


def _has(kind: FaultKind, topology: Topology, network: Network) -> bool:
    """Whether the job uses what the kind strikes, and enough of it."""
    if kind.does == "polarised":
        return bool(_wide_leaves(topology, network.launch))
    if kind.does == "swapped":
        return bool(_rails_apart(topology, network.launch.hosts[0]))
    if kind.does in {"eager", "crowded"} and len(topology.switches(1)) < _FEWEST_LEAVES:
        return False
    if kind.strikes == "uplink":
        fewest = 4 if kind.does == "unused" else 1
        return len(_uplinks_used(topology, network.launch)) >= fewest
    if kind.strikes == "spare":
        return topology.hosts > len(network.launch.hosts)
    return kind.strikes in {"gpu", "host", "job"} or len(network.launch.phases[0].flows.source) > 0


def _put(
    spec: Spec, network: Network, launches: tuple[Launch, ...], name: str, number: int
) -> Fault:
    kind = fault_kinds()[name]
    random = spec.stream("fault", number)
    several = fault_draw(spec, "fault_parts", number)
    parts = (
        servers_of(network.topology, launches)
        if kind.strikes == "spare"
        else _parts(spec, network, kind, several, random)
    )
    effect = fault_draw(spec, "fault_effect", number)
    if kind.sizes:
        size = float(np.exp(spec.stream("size", name).uniform(*np.log(kind.sizes))))
        size = kind.sizes[1] if spec.fault_size == "large" else size
    else:
        size = kind.natural if effect == 0 else _sized(network, kind, parts, effect)
    span = fault_draw(spec, "fault_span", number)
    if name in _FROM_THE_FIRST_STEP:
        span = "whole"
    if kind.lasts and span != "whole":
        span = "to_end"
    made = sum(launch.steps for launch in launches)
    acts = _acts(made, span, random)
    if kind.apart == BAD_BENCHMARK:
        acts[:] = False
    used = _present(kind, parts, network.topology, launches)
    if not kind.lasts:
        acts &= used
    if kind.does in {"flap", *ENDS}:
        # A restart may have replaced the host by then: it stops while it is used.
        acts = _moments(kind, acts if acts[_FIRST_MOMENT:].any() else used, random)
    return Fault(name, kind, parts, size, acts)


def _parts(
    spec: Spec, network: Network, kind: FaultKind, several: str, random: Random
) -> tuple[int, ...]:
    launch, topology = network.launch, network.topology
    hosts = list(launch.hosts)
    if kind.strikes == "job":
        return (0,)
    if kind.strikes == "leaves":
        return tuple(np.unique(topology.leaf[launch.nic]).tolist())
    if kind.strikes == "leaf":
        if kind.does == "polarised":
            return (int(random.choice(_wide_leaves(topology, launch))),)
        return (int(random.choice(np.unique(topology.leaf[launch.nic]))),)
    if kind.strikes == "uplink":
        return (int(random.choice(_uplinks_used(topology, launch))),)
    first = int(random.choice(hosts))
    if kind.does == "swapped":
        pairs = _rails_apart(topology, first)
        return pairs[int(random.randint(len(pairs)))]
    chosen = [first]
    if several == "two" and len(hosts) > 3:
        chosen = [first, int(random.choice([h for h in hosts if h != first]))]
    if several == "rack" and kind.strikes != "nic":
        leaf = topology.leaf[topology.nics_of(first)[0]]
        chosen = [h for h in hosts if topology.leaf[topology.nics_of(h)[0]] == leaf]
    if several == "batch" and kind.strikes != "nic":
        chosen = [int(h) for h in random.permutation(hosts)[: max(1, int(len(hosts) * _BATCH))]]
    if len(chosen) > len(hosts) // 2 or kind.does == "ends":
        chosen = [first]  # a part that is the rule is no fault
    if kind.strikes == "host":
        return tuple(sorted(chosen))
    if kind.strikes == "gpu":
        local = random.randint(spec.gpus_per_host, size=len(chosen))
        return tuple(h * spec.gpus_per_host + int(g) for h, g in zip(chosen, local, strict=True))
    local = random.randint(topology.nics_per_host, size=len(chosen))
    return tuple(topology.nics_of(h)[int(n)] for h, n in zip(chosen, local, strict=True))


def _wide_leaves(topology: Topology, launch: Launch) -> list[int]:
    """Leaves whose NICs send over four uplinks or more."""
    leaves = np.unique(
        [topology.ends[cable][0].device for cable in _uplinks_used(topology, launch)]
    )
    return [int(leaf) for leaf in leaves if len(topology.uplinks_of(int(leaf))) >= 4]


def _rails_apart(topology: Topology, host: int) -> list[tuple[int, int]]:
    """Pairs of NICs, one of a host, that a hand may swap: on other rails of the same racks.

    Their leaves have ways to each other.
    """
    rails = min(topology.nics_per_host, int(topology.spec.rails) * topology.nics_per_host)
    if rails < 2 or not len(topology.uplinks_of(int(topology.leaf[topology.nics_of(host)[0]]))):
        return []
    own = {int(leaf) for leaf in topology.leaf[list(topology.nics_of(host))]}
    near = [
        nic
        for nic, leaf in enumerate(topology.leaf.tolist())
        if leaf in own and nic // topology.nics_per_host in {host, host + 1, host - 1}
    ]
    return [
        (nic, other)
        for nic in topology.nics_of(host)
        for other in near
        if topology.leaf[nic] != topology.leaf[other]
        and nic % topology.nics_per_host != other % topology.nics_per_host
    ]


def _uplinks_used(topology: Topology, launch: Launch) -> list[int]:
    """Uplinks of leaves whose NICs send over spines."""
    flows = [phase.flows for phase in launch.phases]
    leaves = {
        int(leaf)
        for f in flows
        for leaf, other in zip(topology.leaf[f.source], topology.leaf[f.target], strict=True)
        if leaf != other
    }
    return [int(c) for leaf in sorted(leaves) for c in topology.uplinks_of(leaf)]


def _sized(network: Network, kind: FaultKind, parts: tuple[int, ...], effect: float) -> float:
    """The size that gives the step time aimed at; the largest where none does."""
    if kind.natural == kind.most or kind.does in ENDS:
        return kind.natural
    topology = network.topology
    wanted = effect * plain_seconds(network, calm(topology))
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        # Squares, for the sizes of some faults range over orders of magnitude.
        state = _state(kind, parts, kind.most * middle**2, topology)
        low, high = (low, middle) if plain_seconds(network, state) > wanted else (middle, high)
    return float(kind.most * ((low + high) / 2) ** 2)


def _state(kind: FaultKind, parts: tuple[int, ...], size: float, topology: Topology) -> State:
    sound = calm(topology)
    if kind.does in {"compute", "loading"}:
        gpus = _gpus(kind, parts, topology)
        values = getattr(sound, kind.does).copy()
        unit = topology.spec.step_seconds if kind.does == "loading" else 1.0
        values[gpus] += size * unit
        return sound.changed(**{kind.does: values})
    cables = _cables(kind, parts, topology)
    both = np.concatenate([2 * cables, 2 * cables + 1])
    towards_nic = 2 * cables + 1

    def on(links: np.ndarray, value: float | Floats, otherwise: float = 0.0) -> Floats:
        values = np.full(topology.links, otherwise)
        values[links] = value
        return values

    match kind.does:
        case "lost":
            return sound.changed(lost=on(both, size))
        case "sent_again":
            return sound.changed(dropped=on(2 * cables, size))
        case "flap":
            return sound.changed(stall=on(both, size))
        case "half_speed" | "nic_rate":
            return sound.changed(rate=on(both, 1 - size, 1.0))
        case "paced":
            return sound.changed(pace=on(both, 1 - size, 1.0))
        case "unused":
            return sound.changed(weight=on(2 * cables, 0.0, 1.0))
        case "polarised":
            odd = topology.uplinks_of(parts[0])[1::2]
            return sound.changed(weight=on(2 * odd, 1 - size, 1.0))
        case "paused":
            return sound.changed(paused=on(towards_nic, size))
        case "foreign":
            random = topology.spec.stream("senders")
            pairs = np.array(
                [
                    (int(random.choice(topology.rail_of(n))), n)
                    for n in parts
                    for _ in range(_SENDERS)
                ]
            )
            rate = size * float(topology.capacity[0]) / _SENDERS
            return sound.changed(
                foreign=others_traffic(topology, pairs, rate, sound.weight, "incast")
            )
        case "unmarked":
            return sound.changed(marking=np.zeros(1))
        case "eager":
            sending = np.concatenate([towards_nic, 2 * topology.uplinks_of(parts[0])])
            # NICs that are told of marks send less: no queue stands before those they send to.
            return sound.changed(pace=on(2 * cables, 1 - size, 1.0), eager=on(sending, _EAGER))
        case "crowded":
            return sound.changed(foreign=_crowd(topology, parts[0], size))
        case "served":
            return sound.changed(foreign=served(topology, parts, size))
        case "dropped":
            return sound.changed(dropped=on(towards_nic, size))
    return sound


def _crowd(topology: Topology, uplink: int, share: float) -> Floats:
    """Bytes a second [D] of others below a leaf, which leave the fabric behind one of its uplinks.

    No file tells of the switch at the border that they go to.
    """
    below = np.flatnonzero(topology.leaf == topology.ends[uplink][0].device)
    rate = share * float(topology.capacity[2 * uplink])
    found = np.zeros(topology.links)
    found[2 * below], found[2 * uplink] = rate / len(below), rate
    return found


def _gpus(kind: FaultKind, parts: tuple[int, ...], topology: Topology) -> np.ndarray:
    each = topology.spec.gpus_per_host
    if kind.strikes == "job":
        return np.arange(topology.hosts * each)
    if kind.strikes == "host":
        return np.array([h * each + gpu for h in parts for gpu in range(each)])
    return np.array(parts)


def _cables(kind: FaultKind, parts: tuple[int, ...], topology: Topology) -> np.ndarray:
    """Cables a fault acts on; a NIC's cable has the NIC's index."""
    if kind.strikes == "host":
        return np.array([nic for host in parts for nic in topology.nics_of(host)])
    if kind.strikes == "leaf":
        return np.flatnonzero(topology.leaf == parts[0])
    if kind.strikes == "job":
        return np.arange(topology.nics)
    return np.array(parts, dtype=np.int64)


def _present(
    kind: FaultKind, parts: tuple[int, ...], topology: Topology, launches: tuple[Launch, ...]
) -> np.ndarray:
    """Steps [S] of launches that use a part of the fault."""
    each = {"gpu": topology.spec.gpus_per_host, "nic": topology.nics_per_host, "host": 1}
    hosts = {part // each[kind.strikes] for part in parts} if kind.strikes in each else set()
    return np.concatenate(
        [np.full(x.steps, not hosts or bool(hosts & set(x.hosts))) for x in launches]
    )


def _acts(steps: int, span: str, random: Random) -> np.ndarray:
    """Steps [S] in which a fault acts."""
    acts = np.zeros(steps, dtype=bool)
    begin = int(steps * random.uniform(0.2, 0.6))
    end = steps if span != "over" else begin + max(10, int(steps * random.uniform(0.1, 0.3)))
    if span == "whole":
        begin = 0
    acts[begin:end] = True
    if span == "bursts":
        length = max(5, steps // 30)
        acts &= (np.arange(steps) - begin) % (3 * length) < length
    return acts


def _moments(kind: FaultKind, acts: np.ndarray, random: Random) -> np.ndarray:
    """The single steps in which a link flaps, or all from the one in which a rank stops."""
    within = np.flatnonzero(acts)
    within = within[within >= _FIRST_MOMENT]
    moments = np.zeros_like(acts)
    if kind.does in ENDS:
        moments[int(random.choice(within)) :] = True
        return moments
    moments[random.choice(within, size=min(_FLAPS, len(within)), replace=False)] = True
    return moments
