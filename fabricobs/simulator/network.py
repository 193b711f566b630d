"""How fast a job's collectives can be while the cluster is in one state, and who must wait.

A collective lasts as long as the worst link of its paths allows. With `static` balancing a flow
keeps the link it was hashed onto; with `flowlet` balancing a leaf's flows share its uplinks.
"""

from dataclasses import dataclass

import numpy as np

from fabricobs.simulator.cluster import Cluster, Integers
from fabricobs.simulator.effects import Effect, Floats
from fabricobs.simulator.job import Job
from fabricobs.simulator.routes import LOCAL, Routes

NIC_EFFICIENCY = 0.80  # bus bandwidth NCCL reaches on NDR: 75 to 85 % of line rate (METHODS 1)
LINK_EFFICIENCY = 0.92  # of a switch port's line rate, headers and gaps taken off
LOST_PACKET_SECONDS = 0.002  # go-back-N after a NAK takes 0.1 ms, after a timeout tens
DATA_PACKET_BYTES = 4096

# Overload is a link's transfer time over that of an undisturbed NIC.
_MARKING_OVERLOAD = 1.05
_PAUSING_OVERLOAD = 1.4
_PAUSING_OVERLOAD_UNMARKED = 0.8
_MARKS_PER_OVERLOAD = 0.01
_PAUSE_PER_OVERLOAD = 0.11
_PAUSE_PASSED_ON = 0.5  # of a pause's share, per hop towards the senders
_HIGHEST_PAUSE_SHARE = 0.95


@dataclass(frozen=True, slots=True)
class Network:
    """One job's view of one state of the cluster.

    pace [G] is in seconds a byte that each NIC sends, by data-parallel communicator. `nic_rx`,
    `up`, `down` are the bytes on the links for one such byte. The pauses are shares of the
    transfer time: from NIC to leaf [N], leaf to NIC [N], leaf to spine [U] and spine to leaf [U].
    `marked` [F] and `lost` [F] are shares of each flow's packets.
    """

    routes: Routes
    pace: Floats
    nic_tx: Floats
    nic_rx: Floats
    up: Floats
    down: Floats
    nic_to_leaf: Floats
    leaf_to_nic: Floats
    leaf_to_spine: Floats
    spine_to_leaf: Floats
    marked: Floats
    lost: Floats


def bytes_per_second(gbps: float, efficiency: float) -> float:
    """Payload a link of a line rate moves."""
    return gbps * 1e9 / 8 * efficiency


def see_network(job: Job, routes: Routes, effect: Effect, busy: Floats) -> Network:
    """Work out a job's pace; `busy` [2, U] is others' traffic up and down, in bytes a second."""
    cluster = job.cluster
    share = 1 / cluster.shape.queue_pairs
    nics, uplinks = len(cluster.nics), len(cluster.uplinks)
    crossing = routes.up != LOCAL
    up_of, down_of = routes.up[crossing], routes.down[crossing]
    nic_tx = _times_seen(routes.source, nics) * share
    nic_rx = _times_seen(routes.target, nics) * share
    up = _times_seen(up_of, uplinks) * share
    down = _times_seen(down_of, uplinks) * share
    if cluster.shape.balancing == "flowlet":
        up = _evened(cluster, up, effect.up_usable)
        down = _evened(cluster, down, np.ones(uplinks))

    undisturbed = 1 / bytes_per_second(cluster.shape.nic_gbps, NIC_EFFICIENCY)
    uplink_rate = bytes_per_second(cluster.shape.uplink_gbps, LINK_EFFICIENCY)
    free = np.maximum(uplink_rate - busy, 0.05 * uplink_rate)
    up_seconds = up / (free[0] * effect.up_rate)
    down_seconds = down / (free[1] * effect.down_rate)
    receiving = 1 - effect.mixed_bytes_per_second / bytes_per_second(cluster.shape.nic_gbps, 1)
    rx_seconds = nic_rx * undisturbed / np.maximum(effect.nic_rate * receiving, 0.02)

    overload = _Overload(
        nic=np.where(nic_rx > 0, rx_seconds / undisturbed * _foreign(effect, cluster), 0),
        up=up_seconds / undisturbed,
        down=down_seconds / undisturbed,
    )
    pauses = _pauses(cluster, routes, overload, effect)
    lost = (
        effect.nic_lost[routes.source]
        + effect.nic_lost[routes.target]
        + effect.dropped[routes.target]
        + np.where(crossing, effect.uplink_lost[routes.up] + effect.uplink_lost[routes.down], 0)
    )
    packet_seconds = DATA_PACKET_BYTES * undisturbed
    seconds = np.maximum(
        undisturbed / effect.nic_rate[routes.source],
        rx_seconds[routes.target] / (1 - np.minimum(effect.nic_pausing, 0.95))[routes.target],
    )
    seconds = np.maximum(seconds, undisturbed / (1 - pauses.held_back[routes.source]))
    hottest = np.maximum(up_seconds[routes.up], down_seconds[routes.down])
    seconds = np.maximum(seconds, np.where(crossing, hottest, 0))
    seconds = seconds * (
        1 + lost * LOST_PACKET_SECONDS / packet_seconds / cluster.shape.queue_pairs
    )
    pace = np.zeros(int(job.data_group.max()) + 1)
    np.maximum.at(pace, routes.group, seconds)
    return Network(
        routes=routes,
        pace=pace,
        nic_tx=nic_tx,
        nic_rx=nic_rx,
        up=up,
        down=down,
        nic_to_leaf=np.where(nic_rx > 0, effect.nic_pausing, 0),
        leaf_to_nic=pauses.leaf_to_nic,
        leaf_to_spine=pauses.leaf_to_spine,
        spine_to_leaf=pauses.spine_to_leaf,
        marked=_marked(routes, overload, effect, crossing),
        lost=lost,
    )


@dataclass(frozen=True, slots=True)
class _Overload:
    nic: Floats
    up: Floats
    down: Floats


@dataclass(frozen=True, slots=True)
class _Pauses:
    leaf_to_nic: Floats
    leaf_to_spine: Floats
    spine_to_leaf: Floats
    held_back: Floats  # [N] share of time a source stands still for a device that pauses


def _times_seen(values: Integers, size: int) -> Floats:
    return np.bincount(values, minlength=size).astype(np.float64)


def _foreign(effect: Effect, cluster: Cluster) -> Floats:
    """A port that foreign traffic fills is overloaded; one whose NIC is slow is only waiting."""
    return np.where(effect.mixed_bytes_per_second > 0, 1.0, effect.nic_rate)


def _evened(cluster: Cluster, load: Floats, usable: Floats) -> Floats:
    """Each leaf's load spread over its uplinks in proportion to `usable`."""
    by_leaf = load.reshape(cluster.leaves, -1).sum(axis=1, keepdims=True)
    weights = usable.reshape(cluster.leaves, -1)
    evened: Floats = (by_leaf * weights / weights.sum(axis=1, keepdims=True)).ravel()
    return evened


def _pauses(cluster: Cluster, routes: Routes, overload: _Overload, effect: Effect) -> _Pauses:
    """Spread the pauses of every full queue and of every pausing NIC back towards the senders."""
    crossing = routes.up != LOCAL
    up_of, down_of = routes.up[crossing], routes.down[crossing]
    source, target = routes.source[crossing], routes.target[crossing]
    at_nic = np.maximum(_pause_share(overload.nic, effect), effect.nic_pausing)
    at_up, at_down = _pause_share(overload.up, effect), _pause_share(overload.down, effect)

    leaf_to_spine = _highest(len(at_up), down_of, at_nic[target] * _PAUSE_PASSED_ON)
    beyond = np.maximum(at_down, leaf_to_spine * _PAUSE_PASSED_ON)
    spine_to_leaf = _highest(len(at_up), up_of, beyond[down_of])
    ahead = np.maximum(at_up, spine_to_leaf * _PAUSE_PASSED_ON)
    leaf_to_nic = _highest(len(at_nic), source, ahead[up_of])
    local = ~crossing
    same_leaf = at_nic[routes.target[local]] * _PAUSE_PASSED_ON
    leaf_to_nic = np.maximum(leaf_to_nic, _highest(len(at_nic), routes.source[local], same_leaf))

    pausing = _highest(len(at_up), down_of, effect.nic_pausing[target] * _PAUSE_PASSED_ON)
    pausing = _highest(len(at_up), up_of, pausing[down_of] * _PAUSE_PASSED_ON)
    held_back = _highest(len(at_nic), source, pausing[up_of] * _PAUSE_PASSED_ON)
    return _Pauses(leaf_to_nic, leaf_to_spine, spine_to_leaf, held_back)


def _pause_share(overload: Floats, effect: Effect) -> Floats:
    marked = bool(effect.marking[0] >= 0.5)
    begins = _PAUSING_OVERLOAD if marked else _PAUSING_OVERLOAD_UNMARKED
    share = effect.congestion[0] * _PAUSE_PER_OVERLOAD * np.maximum(overload - begins, 0)
    limited: Floats = np.minimum(share, _HIGHEST_PAUSE_SHARE)
    return limited


def _marked(routes: Routes, overload: _Overload, effect: Effect, crossing: Integers) -> Floats:
    worst = np.maximum(overload.up[routes.up], overload.down[routes.down])
    worst = np.maximum(np.where(crossing, worst, 0), overload.nic[routes.target])
    excess = np.maximum(worst - _MARKING_OVERLOAD, 0)
    marked: Floats = effect.marking[0] * (1e-6 + _MARKS_PER_OVERLOAD * excess)
    return marked


def _highest(size: int, index: Integers, values: Floats) -> Floats:
    highest = np.zeros(size)
    np.maximum.at(highest, index, values)
    return highest
