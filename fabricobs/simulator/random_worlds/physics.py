"""How long each phase of a step takes in one state of the cluster, and what each link sees of it.

Flows share links; the slowest link of its paths sets a flow's time and the slowest flow that of its
group. A link that is slower than those that feed it has a queue: it marks packets, then the switch
pauses its feeders, which holds back everybody who shares them.
"""

from dataclasses import dataclass, fields, replace

import numpy as np

from fabricobs.simulator.effects import Floats, combined
from fabricobs.simulator.network import LOST_PACKET_SECONDS
from fabricobs.simulator.random_worlds.routing import (
    HOPS,
    Flows,
    Paths,
    hashes_of,
    route,
    spread_out,
)
from fabricobs.simulator.random_worlds.topology import NONE, Topology
from fabricobs.simulator.random_worlds.workload import Launch, Phase

PACKET_BYTES = 4096
_QUEUE_TOLERANCE = 0.02  # feeders this much faster than a link leave no lasting queue
_PAUSED_OF_OVERLOAD = 0.08  # share of a feeder's idle time that is a pause where ECN works
_PAUSED_UNMARKED = 0.9  # the same where nobody marks
_PASSED_ON = 0.4  # of a pause, per hop towards the senders
_MARKED_OF_OVERLOAD = 0.03  # of the packets through a queue
_MOST_PAUSED = 0.95
# NICs that send a lost packet alone again (EFA: Shalev et al., IEEE Micro 2020; Pollara: AMD's
# product page) recover so much faster than ConnectX, which goes back to it.
_RECOVERY = {"efa": 0.05, "cxi": 0.05, "ionic": 0.05}
_FACTORS = {"compute", "rate", "pace", "weight", "marking"}


@dataclass(frozen=True, slots=True)
class State:
    """What holds while some faults act: G GPUs of the cluster, D links.

    compute: [G] factor on computing time. loading: [G] added seconds. rate: [D] factor on what a
    link moves; pace: [D] factor on what the job brings it to, whoever else sends. weight: [D] share
    of its flows a hash puts on a link. lost: [D] share of packets bit errors destroy. dropped: [D]
    share of packets the sending port drops. paused: [D] share of time the receiver stops the link
    although it has room. foreign: [D] bytes a second of others; aside: [D] those of others in a
    class of their own. stall: [D] seconds a step the link is down. marking: [1] factor on ECN
    marks. eager: [D] share of packets that a sending port marks although its queue is not full.
    """

    compute: Floats
    loading: Floats
    rate: Floats
    pace: Floats
    weight: Floats
    lost: Floats
    dropped: Floats
    paused: Floats
    foreign: Floats
    aside: Floats
    stall: Floats
    marking: Floats
    eager: Floats

    def changed(self, **changes: Floats) -> "State":
        """The same state with some fields replaced."""
        return replace(self, **changes)


def calm(topology: Topology) -> State:
    """The state in which nothing is wrong."""
    gpus = topology.hosts * topology.spec.gpus_per_host
    sizes = {"compute": gpus, "loading": gpus, "marking": 1}
    return State(
        **{
            field.name: np.full(
                sizes.get(field.name, topology.links), float(field.name in _FACTORS)
            )
            for field in fields(State)
        }
    )


def together(topology: Topology, states: list[State]) -> State:
    """The state in which several act at once."""
    return combined(calm(topology), states, _FACTORS)


def others_traffic(
    topology: Topology, pairs: np.ndarray, rate: float, weight: Floats, purpose: str
) -> Floats:
    """Bytes a second [D] on the links between pairs [F, 2] of NICs, each sending at a rate."""
    if not len(pairs):
        return np.zeros(topology.links)
    flows = Flows(pairs[:, 0], pairs[:, 1], np.full(len(pairs), rate), np.zeros(len(pairs), int))
    hashes = hashes_of(flows, 1, topology.spec.stream("others", purpose))
    paths = route(topology, flows, weight, hashes)
    return _load(paths, rate * paths.share, topology.links)


@dataclass(frozen=True, slots=True)
class Transfer:
    """One phase in one state, for one step.

    `seconds` [groups] it takes; on each link [D]: `amount` bytes, `paused` share of the time for
    queues ahead, `marked`, `lost` and `dropped` packets; `marked_at` and `lost_at` [N] packets of
    flows that end at a NIC, `marked_from` and `lost_from` [N] of those that begin there.
    """

    seconds: Floats
    amount: Floats
    paused: Floats
    lost: Floats
    dropped: Floats
    marked: Floats
    marked_at: Floats
    marked_from: Floats
    lost_at: Floats
    lost_from: Floats


class Network:
    """The network of one launch: paths are found once for each way hashes may choose."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.topology = launch.topology
        pairs = launch.spec.queue_pairs
        random = launch.spec.stream("hashes", launch.number)
        self._hashes = [hashes_of(phase.flows, pairs, random) for phase in launch.phases]
        self._paths: dict[tuple[int, bytes], Paths] = {}

    def transfers(self, state: State) -> list[Transfer]:
        """Each phase in a state."""
        return [
            self._transfer(phase, self._route(number, state), state)
            for number, phase in enumerate(self.launch.phases)
        ]

    def placed(self, moved: list[Transfer], state: State, pull: Floats) -> list[Transfer]:
        """The same transfers, the bytes where flowlets drew them: `pull` [D] of each uplink."""
        placed = []
        for number, transfer in enumerate(moved):
            paths = spread_out(self._route(number, state), pull * state.weight)
            amounts = self.launch.phases[number].flows.amount[paths.flow] * paths.share
            placed.append(replace(transfer, amount=_load(paths, amounts, self.topology.links)))
        return placed

    def _route(self, number: int, state: State) -> Paths:
        key = (number, state.weight.tobytes())
        if key not in self._paths:
            flows = self.launch.phases[number].flows
            found = route(self.topology, flows, state.weight, self._hashes[number])
            self._paths[key] = found
        return self._paths[key]

    def _transfer(self, phase: Phase, paths: Paths, state: State) -> Transfer:
        topology, flows = self.topology, phase.flows
        used = paths.path != NONE
        link = np.where(used, paths.path, 0)
        amounts = flows.amount[paths.flow] * paths.share
        load = _load(paths, amounts, topology.links)
        others = state.foreign + state.aside
        free = np.maximum(topology.capacity * state.rate - others, 0.02 * topology.capacity)
        free = np.minimum(free, topology.capacity * state.pace)
        alone = load / free
        held = np.minimum(state.paused, _MOST_PAUSED)
        seconds = np.where(load > 0, alone / (1 - held) + state.stall, 0.0)
        on_path = np.where(used, seconds[link], 0.0)
        taken = on_path.max(axis=1) if len(on_path) else np.zeros(0)
        paused, overload = _queues(topology, state, seconds, paths, used, link)
        through = np.where(used, (seconds / (1 - np.minimum(paused, _MOST_PAUSED)))[link], 0.0)
        taken = np.maximum(taken, through.max(axis=1)) if len(taken) else taken
        packets = amounts / PACKET_BYTES
        lost_share = np.where(used, (state.lost + state.dropped)[link], 0.0).sum(axis=1)
        pairs = max(1, topology.spec.queue_pairs)
        recovery = LOST_PACKET_SECONDS * _RECOVERY.get(topology.spec.nic_driver, 1.0)
        taken = taken + packets * lost_share * recovery / pairs
        marked_share = (
            (
                state.marking[0] * _MARKED_OF_OVERLOAD * np.where(used, overload[link], 0.0)
                + np.where(used, state.eager[link], 0.0)
            ).max(axis=1)
            if len(taken)
            else taken
        )
        by_group = np.zeros(int(phase.group.max()) + 1)
        np.maximum.at(by_group, flows.group[paths.flow], taken)
        # A group within one host exchanges over NVLink.
        by_group[by_group == 0] = phase.algorithm_bytes / 200e9
        by_group += phase.latency
        source, target = flows.source[paths.flow], flows.target[paths.flow]

        def at(nic: np.ndarray, share: Floats) -> Floats:
            return np.bincount(nic, packets * share, topology.nics).astype(np.float64)

        return Transfer(
            seconds=by_group,
            amount=load,
            paused=paused,
            lost=load / PACKET_BYTES * state.lost,
            dropped=load / PACKET_BYTES * state.dropped,
            marked=load
            / PACKET_BYTES
            * (state.marking[0] * _MARKED_OF_OVERLOAD * overload + state.eager),
            marked_at=at(target, marked_share),
            marked_from=at(source, marked_share),
            lost_at=at(target, lost_share),
            lost_from=at(source, lost_share),
        )


def _load(paths: Paths, amounts: Floats, links: int) -> Floats:
    used = paths.path != NONE
    weights = np.repeat(amounts, HOPS)[used.ravel()]
    return np.bincount(paths.path[used], weights, links).astype(np.float64)


def _queues(
    topology: Topology,
    state: State,
    seconds: Floats,
    paths: Paths,
    used: np.ndarray,
    link: np.ndarray,
) -> tuple[Floats, Floats]:
    """Share of time [D] each link is paused for the queues ahead of it, and how overfull [D] it is.

    A queue stands before a link that takes longer than one that feeds it; it is 0 to 1.
    """
    paused, overload = np.zeros(topology.links), np.zeros(topology.links)
    marked = _PAUSED_OF_OVERLOAD if state.marking[0] >= 0.5 else _PAUSED_UNMARKED
    ahead = np.full(len(link), NONE)
    for hop in reversed(range(HOPS)):
        here = np.flatnonzero(used[:, hop])
        now, then = link[here, hop], ahead[here]
        fed = then != NONE
        now, then = now[fed], then[fed]
        slower = 1 - seconds[now] * (1 + _QUEUE_TOLERANCE) / np.maximum(seconds[then], 1e-12)
        slower = np.maximum(slower, 0)
        np.maximum.at(overload, then, slower)
        spread = np.maximum(marked * slower, _PASSED_ON * np.maximum(paused, state.paused)[then])
        np.maximum.at(paused, now, np.minimum(spread, _MOST_PAUSED))
        ahead[here] = link[here, hop]
    return paused, overload
