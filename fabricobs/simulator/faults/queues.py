"""Faults in how traffic is spread, queued, marked and paused."""

import numpy as np

from fabricobs.simulator.effects import neutral
from fabricobs.simulator.facts import (
    EcnOff,
    LossyClass,
    PauseStorm,
)
from fabricobs.simulator.network import (
    bytes_per_second,
)
from fabricobs.simulator.scene import (
    Fault,
    Scene,
    fault_of,
    host_entity,
    hosts_of_leaf,
    nic_entity,
    port_entity,
    switch_entity,
)

POLARISED_SHARE = 0.97  # of the flows of the odd uplinks that a hash without its lowest bit moves
STORM_PAUSE_SHARE = 0.45  # above the 20 % at which a storm is suspected (METHODS 5)
FOREIGN_SHARE = 0.35  # of a NIC's line rate that storage takes in the RDMA class


def ecmp_polarisation(scene: Scene) -> Fault:
    """A leaf's hash loses its lowest bit: nearly all flows fold onto every other uplink."""
    leaf = scene.any_nic().leaf
    usable = np.ones(len(scene.cluster.uplinks))
    odd = [u.index for u in scene.cluster.uplinks_of_leaf(leaf) if u.position % 2]
    usable[odd] = 1 - POLARISED_SHARE
    effect = neutral(scene.cluster, up_usable=usable)
    victims = hosts_of_leaf(scene, leaf)
    return fault_of(scene, "ecmp_skew", [switch_entity(scene, leaf)], effect, victims=victims)


def pfc_storm(scene: Scene) -> Fault:
    """A NIC pauses its leaf port for most of the time; no watchdog ends it."""
    return _storm(scene, watchdog=False)


def pfc_storm_watchdog(scene: Scene) -> Fault:
    """A NIC's storm on a leaf whose watchdog drops what waits for it."""
    return _storm(scene, watchdog=True)


def incast(scene: Scene) -> Fault:
    """Many foreign senders fill the leaf port of one NIC."""
    nic = scene.any_nic()
    share = 1 - scene.nic_rate(0.5)
    foreign = share * bytes_per_second(scene.cluster.shape.nic_gbps, 1)
    mixed = scene.on_nics([nic.index], foreign, 0)
    return fault_of(
        scene,
        "congestion",
        [port_entity(scene, nic)],
        neutral(scene.cluster, mixed_bytes_per_second=mixed),
        victims=[nic_entity(nic)],
    )


def oversubscription(scene: Scene) -> Fault:
    """The leaves have fewer uplinks than their NICs can fill (in the cluster's shape)."""
    ratio = scene.cluster.shape.oversubscription
    wider = np.full(len(scene.cluster.uplinks), ratio)
    leaves = [switch_entity(scene, leaf) for leaf in range(scene.cluster.leaves)]
    relief = neutral(scene.cluster, up_rate=wider, down_rate=wider)
    return fault_of(scene, "oversubscription", leaves, neutral(scene.cluster), relief=relief)


def ecn_off(scene: Scene) -> Fault:
    """Marking thresholds far too high: nobody slows down before PFC stops everybody."""
    rate = np.full(len(scene.cluster.nics), scene.nic_rate(0.7))
    leaves = tuple(range(scene.cluster.leaves))
    return fault_of(
        scene,
        "ecn_misconfigured",
        [switch_entity(scene, leaf) for leaf in leaves],
        neutral(scene.cluster, nic_rate=rate, marking=np.zeros(1), congestion=np.full(1, 4.0)),
        facts=[EcnOff(leaves)],
    )


def mixed_traffic(scene: Scene) -> Fault:
    """Storage shares the RDMA class on every host."""
    share = FOREIGN_SHARE if scene.shape.slowdown is None else 1 - scene.nic_rate(1)
    foreign = share * bytes_per_second(scene.cluster.shape.nic_gbps, 1)
    mixed = np.full(len(scene.cluster.nics), foreign)
    hosts = [host_entity(scene, host) for host in scene.job.hosts]
    effect = neutral(scene.cluster, mixed_bytes_per_second=mixed)
    return fault_of(scene, "ecn_misconfigured", hosts, effect)


def lossy_class(scene: Scene) -> Fault:
    """A leaf without PFC for the RDMA class drops what its NIC ports cannot take at once."""
    leaf = scene.any_nic().leaf
    nics = [nic.index for nic in scene.cluster.nics_of_leaf(leaf)]
    dropped = scene.on_nics(nics, scene.lost_share(1.25), 0)
    return fault_of(
        scene,
        "packet_loss",
        [switch_entity(scene, leaf)],
        neutral(scene.cluster, dropped=dropped),
        victims=hosts_of_leaf(scene, leaf),
        facts=[LossyClass(leaf)],
    )


def _storm(scene: Scene, *, watchdog: bool) -> Fault:
    nic = scene.any_nic()
    share = STORM_PAUSE_SHARE if scene.shape.slowdown is None else 1 - scene.nic_rate(1)
    pausing = scene.on_nics([nic.index], share, 0)
    dropped = scene.on_nics([nic.index], scene.lost_share(1.05) if watchdog else 0, 0)
    return fault_of(
        scene,
        "pfc_storm",
        [nic_entity(nic), port_entity(scene, nic)],
        neutral(scene.cluster, nic_pausing=pausing, dropped=dropped),
        victims=hosts_of_leaf(scene, nic.leaf),
        facts=[PauseStorm(nic.index, watchdog)],
    )
