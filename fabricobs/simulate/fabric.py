"""The run as the fabric saw it: bytes, pauses and marks on every cable, as counters."""

from dataclasses import dataclass

import numpy as np

from fabricobs.simulate import workload
from fabricobs.simulate.cluster import (
    LEAVES,
    RANKS,
    UPLINKS_PER_LEAF,
)
from fabricobs.simulate.counters import (
    DATA_PACKET_BYTES,
    DATA_PRIORITY,
    PRIORITIES,
    Direction,
    Floats,
    Integers,
    Meter,
    Pauses,
    PortGroup,
    Timeline,
)
from fabricobs.simulate.routes import FLOWS, QUEUE_PAIRS, Routes
from fabricobs.simulate.run import Run, flow_bytes, stream

_UPLINKS = LEAVES * UPLINKS_PER_LEAF

# A load of 1 is a link's fair share of its leaf's flows. Above these, queues reach the threshold.
_MARKING_LOAD = 1.2
_PAUSING_LOAD = 1.6
_MARKS_PER_LOAD = 0.01
_PAUSE_PER_LOAD = 0.11
_BACKGROUND_PAUSE = 0.0002  # of the transfer time
_PACKETS_PER_CNP = 6
_MICROSECONDS_PER_FRAME = 11


@dataclass(frozen=True, slots=True)
class Fabric:
    """Counters of all ports: 32 NICs and leaf ports by rank, 16 uplinks and spine ports by leaf.

    `ecn_marked` and `cnp_sent` [32] count at the receiving NIC, `cnp_handled` [32] at the sender.
    """

    nics: PortGroup
    leaf_nic_ports: PortGroup
    leaf_uplinks: PortGroup
    spine_ports: PortGroup
    ecn_marked: Meter
    cnp_sent: Meter
    cnp_handled: Meter


def observe(run: Run, *, seed: int) -> Fabric:
    """Count what the run put on every cable."""
    random = stream(seed, 4)
    transfers = len(workload.COLLECTIVES)
    routes = [run.routes[int(faulty)] for faulty in np.repeat(run.faulty, transfers)]
    seconds = (run.transfer_end - run.transfer_start).ravel()
    sizes = np.tile([flow_bytes(c) for c in workload.COLLECTIVES], workload.STEPS)
    edges = np.stack([run.transfer_start.ravel(), run.transfer_end.ravel()], axis=1).ravel()
    timeline = Timeline(edges)

    def direction(ends: list[Integers], ports: int) -> Direction:
        return Direction(timeline.meter(_spread(ends, sizes, ports)), _background(random, ports))

    def pauses(share: Floats) -> Pauses:
        microseconds = share * seconds[:, None] * 1e6
        frames = microseconds / _MICROSECONDS_PER_FRAME
        return Pauses(timeline.meter(microseconds), timeline.meter(frames))

    to_leaf = direction([r.source for r in routes], RANKS)
    to_nic = direction([r.target for r in routes], RANKS)
    to_spine = direction([r.up for r in routes], _UPLINKS)
    from_spine = direction([r.down for r in routes], _UPLINKS)

    noise = random.gamma(40, 1 / 40, (len(routes), RANKS))
    leaf_to_nic = pauses(_source_pause_share(routes) * noise)
    nic_to_leaf = pauses(_quiet(random, len(routes), RANKS))
    leaf_to_spine = pauses(_quiet(random, len(routes), _UPLINKS))
    spine_to_leaf = pauses(_quiet(random, len(routes), _UPLINKS))

    marks = np.stack([_marked_share(r) for r in routes]) * sizes[:, None] / DATA_PACKET_BYTES
    by_target = _per_nic(marks, [r.target for r in routes])
    by_source = _per_nic(marks, [r.source for r in routes])
    return Fabric(
        nics=_group(random, to_nic, to_leaf, leaf_to_nic, nic_to_leaf),
        leaf_nic_ports=_group(random, to_leaf, to_nic, nic_to_leaf, leaf_to_nic),
        leaf_uplinks=_group(random, from_spine, to_spine, spine_to_leaf, leaf_to_spine),
        spine_ports=_group(random, to_spine, from_spine, leaf_to_spine, spine_to_leaf),
        ecn_marked=timeline.meter(by_target),
        cnp_sent=timeline.meter(by_target / _PACKETS_PER_CNP),
        cnp_handled=timeline.meter(by_source / _PACKETS_PER_CNP),
    )


def _group(
    random: np.random.RandomState,
    rx: Direction,
    tx: Direction,
    rx_pauses: Pauses,
    tx_pauses: Pauses,
) -> PortGroup:
    ports = rx.background.shape[1]
    microseconds = random.randint(200_000, 4_000_000, size=(2, ports))
    return PortGroup(
        rx=rx,
        tx=tx,
        rx_pauses=rx_pauses,
        tx_pauses=tx_pauses,
        rx_before=_before_job(random, ports),
        tx_before=_before_job(random, ports),
        pause_before=np.vstack([microseconds, microseconds // _MICROSECONDS_PER_FRAME]),
    )


def _before_job(random: np.random.RandomState, ports: int) -> Integers:
    """Bytes [8, P] that earlier jobs left on the counters of P ports."""
    before = np.zeros((PRIORITIES, ports), dtype=np.int64)
    before[DATA_PRIORITY] = (1e13 * (1 + 8 * random.random_sample(ports))).astype(np.int64)
    before[0] = (2e8 * (1 + random.random_sample(ports))).astype(np.int64)
    before[7] = (6e7 * (1 + random.random_sample(ports))).astype(np.int64)
    return before


def _spread(ends: list[Integers], sizes: Floats, ports: int) -> Floats:
    flows = np.stack([np.bincount(end, minlength=ports) for end in ends])
    return flows * sizes[:, None]


def _background(random: np.random.RandomState, ports: int) -> Floats:
    rates = np.zeros((PRIORITIES, ports))
    rates[0] = 140 + 120 * random.random_sample(ports)
    rates[7] = 40 + 30 * random.random_sample(ports)
    return rates


def _worst_load(routes: Routes) -> Floats:
    """Load [flows] of the busier of the two links a flow crosses, as a multiple of fair share."""
    fair = FLOWS / _UPLINKS
    up = np.bincount(routes.up, minlength=_UPLINKS)[routes.up]
    down = np.bincount(routes.down, minlength=_UPLINKS)[routes.down]
    return np.maximum(up, down) / fair


def _marked_share(routes: Routes) -> Floats:
    return 1e-6 + _MARKS_PER_LOAD * np.maximum(_worst_load(routes) - _MARKING_LOAD, 0)


def _source_pause_share(routes: list[Routes]) -> Floats:
    """Share of the transfer time [K, 32] for which each leaf port stops the NIC behind it.

    Only the source's own leaf can pause it: a flow that is congested further on is marked instead.
    """
    fair = FLOWS / _UPLINKS
    shares = []
    for each in routes:
        load = np.bincount(each.up, minlength=_UPLINKS)[each.up] / fair
        excess = np.maximum(load - _PAUSING_LOAD, 0)
        by_nic = np.bincount(each.source, weights=excess, minlength=RANKS) / QUEUE_PAIRS
        shares.append(_BACKGROUND_PAUSE + _PAUSE_PER_LOAD * by_nic)
    return np.stack(shares)


def _quiet(random: np.random.RandomState, transfers: int, ports: int) -> Floats:
    shares: Floats = _BACKGROUND_PAUSE * random.gamma(4, 1 / 4, (transfers, ports))
    return shares


def _per_nic(amounts: Floats, ends: list[Integers]) -> Floats:
    return np.stack(
        [
            np.bincount(end, weights=row, minlength=RANKS)
            for end, row in zip(ends, amounts, strict=True)
        ]
    )
