"""The world as the fabric saw it: bytes, pauses, marks and errors on every cable, as counters."""

from dataclasses import dataclass

import numpy as np

from fabricobs.simulator.cluster import Cluster, Integers
from fabricobs.simulator.counters import (
    DATA_PACKET_BYTES,
    DATA_PRIORITY,
    PRIORITIES,
    Direction,
    Meter,
    PortGroup,
    Sum,
    Timeline,
)
from fabricobs.simulator.effects import Floats
from fabricobs.simulator.facts import LinkFlap, PauseStorm
from fabricobs.simulator.network import LINK_EFFICIENCY, Network, bytes_per_second
from fabricobs.simulator.randomness import Random, stream
from fabricobs.simulator.routes import LOCAL
from fabricobs.simulator.spread import even_shares
from fabricobs.simulator.world import Course, World

ERRORS = ("symbol", "crc", "dropped", "downs")

_BACKGROUND_PAUSE = 0.0002  # of the transfer time
_PACKETS_PER_CNP = 6
_SYMBOLS_PER_LOST_PACKET = 3.0
_FAR_END_SHARE = 0.2  # of a bad cable's errors; the near end's receiver counts the rest
_TIMEOUTS_PER_LOST_PACKET = 0.02
_STORMS_PER_SECOND = 0.4  # that begin while a NIC pauses its port most of the time
_CHECKPOINT_BYTES_PER_PARAMETER = 14  # weights, master weights and two moments


@dataclass(frozen=True, slots=True)
class Fabric:
    """Counters of all ports: NICs and their leaf ports [N], uplinks and their spine ports [U].

    `ecn_marked`, `cnp_sent` and `out_of_sequence` [N] count at the receiving NIC; `cnp_handled`,
    `sequence_errors` and `timeouts` [N] at the sending one. `storms` [N] counts the pause storms of
    each NIC, which the watchdog of its leaf port detects if there is one.
    """

    nics: PortGroup
    leaf_nic_ports: PortGroup
    leaf_uplinks: PortGroup
    spine_ports: PortGroup
    ecn_marked: Sum
    cnp_sent: Sum
    cnp_handled: Sum
    out_of_sequence: Sum
    sequence_errors: Sum
    timeouts: Sum
    storms: Sum


def observe(world: World) -> Fabric:
    """Count what the jobs, their faults and everybody else put on every cable."""
    cluster, seed = world.cluster, world.seed
    parts = [_observe_course(world, course) for course in world.courses]
    random = stream(seed, 5)
    nics, uplinks = len(cluster.nics), len(cluster.uplinks)

    def summed(name: str, ports: int = nics) -> Sum:
        return Sum(ports, tuple(meter for part in parts for meter in part[name]))

    def direction(name: str, ports: int, storage: Floats) -> Direction:
        rates = _background(random, ports)
        rates[0] += storage
        return Direction(summed(name, ports), summed(f"{name}/storage", ports), rates)

    on_nics, on_uplinks = _storage_rates(world, random)
    to_leaf = direction("nic_tx", nics, 0.3 * on_nics)
    to_nic = direction("nic_rx", nics, on_nics)
    to_spine = direction("up", uplinks, 0.3 * on_uplinks)
    from_spine = direction("down", uplinks, on_uplinks)

    def group(
        end: str, ports: int, rx: Direction, tx: Direction, rx_pauses: str, tx_pauses: str
    ) -> PortGroup:
        return PortGroup(
            rx=rx,
            tx=tx,
            rx_pauses=summed(rx_pauses, ports),
            tx_pauses=summed(tx_pauses, ports),
            errors={name: summed(f"{end}/{name}", ports) for name in ERRORS},
            rx_before=_before_job(random, ports),
            tx_before=_before_job(random, ports),
            pause_before=random.randint(200_000, 4_000_000, size=(2, ports)),
            errors_before=_old_errors(random, ports, wanted=world.shape.collection.old_errors),
        )

    return Fabric(
        nics=group("nic", nics, to_nic, to_leaf, "leaf_to_nic", "nic_to_leaf"),
        leaf_nic_ports=group("leaf", nics, to_leaf, to_nic, "nic_to_leaf", "leaf_to_nic"),
        leaf_uplinks=group(
            "uplink", uplinks, from_spine, to_spine, "spine_to_leaf", "leaf_to_spine"
        ),
        spine_ports=group("spine", uplinks, to_spine, from_spine, "leaf_to_spine", "spine_to_leaf"),
        ecn_marked=summed("ecn_marked"),
        cnp_sent=summed("cnp_sent"),
        cnp_handled=summed("cnp_handled"),
        out_of_sequence=summed("out_of_sequence"),
        sequence_errors=summed("sequence_errors"),
        timeouts=summed("timeouts"),
        storms=summed("storms"),
    )


Meters = dict[str, list[Meter]]


def _observe_course(world: World, course: Course) -> Meters:
    """All meters of one job by name; those that several causes feed have several."""
    random = stream(world.seed, 6, course.run.job.index)
    steps = Timeline(
        np.stack([course.run.begin.min(axis=1), course.run.end.max(axis=1)], axis=1).ravel()
    )
    moving = _Transfers(course)
    amounts = _bytes(world.cluster, course, moving, random)
    meters: Meters = {name: [moving.timeline.meter(value)] for name, value in amounts.items()}
    for name in amounts:
        meters[f"{name}/storage"] = []
    _add_pauses(meters, course, moving, steps, random)
    _add_marks_and_losses(meters, course, moving)
    _add_errors(meters, world, course, moving, steps, amounts)
    _add_foreign(meters, world.cluster, course, steps)
    _add_checkpoints(meters, world.cluster, course, steps)
    return meters


class _Transfers:
    """The K = steps x collectives intervals in which a job's data moves."""

    def __init__(self, course: Course) -> None:
        run = course.run
        chosen = [i for i, c in enumerate(run.job.collectives) if c.scope == "data"]
        begin = run.start[:, chosen].min(axis=2).ravel()
        end = run.done[:, chosen].max(axis=2).ravel()
        sizes = [run.job.collectives[i].nic_bytes for i in chosen]
        self.timeline = Timeline(np.stack([begin, end], axis=1).ravel())
        self.seconds: Floats = end - begin
        self.nic_bytes: Floats = np.tile(np.array(sizes, dtype=float), run.steps)
        self.state: Integers = np.repeat(course.state, len(chosen))
        self.step: Integers = np.repeat(np.arange(run.steps), len(chosen))

    def scaled(self, values: list[Floats], scale: Floats) -> Floats:
        """Values [K, P] of the state of each interval, times `scale` [K]."""
        amounts: Floats = np.stack(values)[self.state] * scale[:, None]
        return amounts


def _bytes(
    cluster: Cluster, course: Course, moving: _Transfers, random: Random
) -> dict[str, Floats]:
    """Bytes [K, P] on NICs and uplinks."""
    networks = course.networks
    moved = {
        name: moving.scaled([getattr(n, name) for n in networks], moving.nic_bytes)
        for name in ("nic_tx", "nic_rx", "up", "down")
    }
    if cluster.shape.balancing == "static":
        return moved
    between = _between_leaves(cluster, networks[0])
    usable = np.stack([effect.up_usable for effect in course.effects])[course.state]
    durations = course.run.end.max(axis=1) - course.run.begin.min(axis=1)
    capacity = moving.seconds * bytes_per_second(cluster.shape.uplink_gbps, LINK_EFFICIENCY)
    up, down = even_shares(
        cluster,
        between,
        moving.nic_bytes,
        usable[moving.step],
        moving.step,
        durations,
        capacity,
        random,
    )
    return moved | {"up": up, "down": down}


def _between_leaves(cluster: Cluster, network: Network) -> Floats:
    """Bytes [L, L] from leaf to leaf for each byte a NIC sends."""
    routes = network.routes
    crossing = routes.up != LOCAL
    pair = (
        cluster.leaf_of_nic[routes.source[crossing]] * cluster.leaves
        + cluster.leaf_of_nic[routes.target[crossing]]
    )
    flows = np.bincount(pair, minlength=cluster.leaves**2) / cluster.shape.queue_pairs
    return flows.reshape(cluster.leaves, cluster.leaves)


def _add_pauses(
    meters: Meters, course: Course, moving: _Transfers, steps: Timeline, random: Random
) -> None:
    for name in ("leaf_to_nic", "leaf_to_spine", "spine_to_leaf"):
        shares = np.stack([getattr(n, name) for n in course.networks])[moving.state]
        quiet = _BACKGROUND_PAUSE * random.gamma(4, 1 / 4, shares.shape)
        noise = random.gamma(40, 1 / 40, shares.shape)
        microseconds = (shares * noise + quiet) * moving.seconds[:, None] * 1e6
        meters[name] = [moving.timeline.meter(microseconds)]
    # A NIC that storms does so with and without traffic.
    shares = np.stack([n.nic_to_leaf for n in course.networks])[course.state]
    noise = random.gamma(40, 1 / 40, shares.shape)
    seconds = (steps.edges[1::2] - steps.edges[::2])[:, None]
    quiet = _BACKGROUND_PAUSE * random.gamma(4, 1 / 4, shares.shape) * 0.3
    meters["nic_to_leaf"] = [steps.meter((shares * noise + quiet) * seconds * 1e6)]


def _add_marks_and_losses(meters: Meters, course: Course, moving: _Transfers) -> None:
    networks = course.networks
    nics = len(networks[0].nic_tx)
    packets = moving.nic_bytes / DATA_PACKET_BYTES / course.run.job.cluster.shape.queue_pairs

    def by_nic(share: str, end: str) -> Floats:
        values = [
            np.bincount(getattr(n.routes, end), getattr(n, share), nics).astype(np.float64)
            for n in networks
        ]
        return moving.scaled(values, packets)

    marked = by_nic("marked", "target")
    lost_here, lost_there = by_nic("lost", "target"), by_nic("lost", "source")
    amounts = {
        "ecn_marked": marked,
        "cnp_sent": marked / _PACKETS_PER_CNP,
        "cnp_handled": by_nic("marked", "source") / _PACKETS_PER_CNP,
        "out_of_sequence": lost_here,
        "sequence_errors": lost_there,
        "timeouts": lost_there * _TIMEOUTS_PER_LOST_PACKET,
    }
    for name, values in amounts.items():
        meters[name] = [moving.timeline.meter(values)]


def _add_errors(
    meters: Meters,
    world: World,
    course: Course,
    moving: _Transfers,
    steps: Timeline,
    amounts: dict[str, Floats],
) -> None:
    """Bit errors at both ends of bad cables, drops of full queues, links that went down."""
    effects = course.effects
    for near, far, sent, received, share in (
        ("nic", "leaf", "nic_tx", "nic_rx", "nic_lost"),
        ("uplink", "spine", "up", "down", "uplink_lost"),
    ):
        lost = np.stack([getattr(e, share) for e in effects])[moving.state]
        packets = (amounts[sent] + amounts[received]) / DATA_PACKET_BYTES * lost
        for end, part in ((near, 1 - _FAR_END_SHARE), (far, _FAR_END_SHARE)):
            meters[f"{end}/crc"] = [moving.timeline.meter(packets * part)]
            symbols = packets * part * _SYMBOLS_PER_LOST_PACKET
            meters[f"{end}/symbol"] = [moving.timeline.meter(symbols)]
            for name in ("dropped", "downs"):
                meters[f"{end}/{name}"] = []
    dropped = np.stack([e.dropped for e in effects])[moving.state]
    drops = amounts["nic_rx"] / DATA_PACKET_BYTES * dropped
    meters["leaf/dropped"] = [moving.timeline.meter(drops)]
    downs = np.zeros((course.run.steps, len(world.cluster.nics)))
    storms = np.zeros_like(downs)
    if course.run.job.index == 0:
        for fact in world.facts:
            if isinstance(fact, LinkFlap):
                downs[list(fact.steps), fact.nic] = 1
            if isinstance(fact, PauseStorm):
                seconds = steps.edges[1::2] - steps.edges[::2]
                pausing = np.stack([e.nic_pausing[fact.nic] for e in effects])[course.state]
                storms[:, fact.nic] = (pausing > 0) * seconds * _STORMS_PER_SECOND
    for end in ("nic", "leaf"):
        meters[f"{end}/downs"] = [steps.meter(downs)]
    meters["storms"] = [steps.meter(storms)]


def _add_foreign(meters: Meters, cluster: Cluster, course: Course, steps: Timeline) -> None:
    """Foreign traffic in the data class, from storage behind the spines."""
    if course.run.job.index != 0:
        return
    seconds = (steps.edges[1::2] - steps.edges[::2])[:, None]
    rates = np.stack([e.mixed_bytes_per_second for e in course.effects])[course.state]
    if not rates.any():
        return
    by_leaf = np.stack(
        [np.bincount(cluster.leaf_of_nic, weights=r, minlength=cluster.leaves) for r in rates]
    )
    over_uplinks = np.repeat(by_leaf, cluster.uplinks_per_leaf, axis=1) / cluster.uplinks_per_leaf
    meters["nic_rx"].append(steps.meter(rates * seconds))
    meters["down"].append(steps.meter(over_uplinks * seconds))


def _add_checkpoints(meters: Meters, cluster: Cluster, course: Course, steps: Timeline) -> None:
    """Every host writes its part of a checkpoint over its first NIC, in the storage class."""
    run = course.run
    job = run.job
    part = job.shape.parameters * _CHECKPOINT_BYTES_PER_PARAMETER / len(job.hosts)
    first_nics = [cluster.nics_of_host(host)[0] for host in job.hosts]
    on_nics, on_uplinks = np.zeros(len(cluster.nics)), np.zeros(len(cluster.uplinks))
    for nic in first_nics:
        on_nics[nic.index] += part
        uplinks = slice(
            nic.leaf * cluster.uplinks_per_leaf, (nic.leaf + 1) * cluster.uplinks_per_leaf
        )
        on_uplinks[uplinks] += part / cluster.uplinks_per_leaf
    writing = run.is_checkpoint().astype(float)[:, None]
    meters["nic_tx/storage"].append(steps.meter(writing * on_nics))
    meters["up/storage"].append(steps.meter(writing * on_uplinks))


def _storage_rates(world: World, random: Random) -> tuple[Floats, Floats]:
    """Bytes a second [N] and [U] that hosts read from storage all the time."""
    cluster = world.cluster
    on_nics = np.zeros(len(cluster.nics))
    for host in range(cluster.shape.hosts):
        rate = world.shape.storage_gbps * 1e9 / 8 * random.uniform(0.6, 1.4)
        on_nics[cluster.nics_of_host(host)[0].index] = rate
    by_leaf = np.bincount(cluster.leaf_of_nic, weights=on_nics, minlength=cluster.leaves)
    return on_nics, np.repeat(by_leaf / cluster.uplinks_per_leaf, cluster.uplinks_per_leaf)


def _background(random: Random, ports: int) -> Floats:
    rates = np.zeros((PRIORITIES, ports))
    rates[0] = 140 + 120 * random.random_sample(ports)
    rates[7] = 40 + 30 * random.random_sample(ports)
    return rates


def _before_job(random: Random, ports: int) -> Integers:
    """Bytes [8, P] that earlier jobs left on the counters of P ports."""
    before = np.zeros((PRIORITIES, ports), dtype=np.int64)
    before[DATA_PRIORITY] = (1e13 * (1 + 8 * random.random_sample(ports))).astype(np.int64)
    before[0] = (2e8 * (1 + random.random_sample(ports))).astype(np.int64)
    before[7] = (6e7 * (1 + random.random_sample(ports))).astype(np.int64)
    return before


def _old_errors(random: Random, ports: int, *, wanted: bool) -> dict[str, Integers]:
    """Errors of the past on one port in twenty: they stand on the counters and never grow."""
    old = {}
    for name, most in zip(ERRORS, (50_000, 2_000, 400, 5), strict=True):
        has = (random.random_sample(ports) < 0.05) & wanted
        old[name] = np.where(has, random.randint(1, most + 1, size=ports), 0)
    return old
