"""Faults in cables and ports."""

import numpy as np

from fabricobs.simulator.effects import neutral
from fabricobs.simulator.facts import (
    BadCable,
    DeadUplink,
    LinkFlap,
    SlowPort,
)
from fabricobs.simulator.scene import (
    Fault,
    Scene,
    fault_of,
    hosts_of_leaf,
    nic_entity,
    port_entity,
    uplink_port,
)

_FLAP_SECONDS = 4.0


def one_way_dead_uplink(scene: Scene) -> Fault:
    """An uplink that is up and receives, but over which its leaf sends nothing."""
    leaf = scene.any_nic().leaf
    uplink = scene.cluster.uplinks_of_leaf(leaf)[
        int(scene.random.randint(scene.cluster.uplinks_per_leaf))
    ]
    usable = np.ones(len(scene.cluster.uplinks))
    usable[uplink.index] = 0
    port = scene.cluster.uplink_port(uplink)
    culprit = {"type": "port", "switch": scene.cluster.leaf_name(leaf), "port": port}
    return fault_of(
        scene,
        "ecmp_skew",
        [culprit],
        neutral(scene.cluster, up_usable=usable),
        victims=hosts_of_leaf(scene, leaf),
        facts=[DeadUplink(uplink.index)],
    )


def bad_cable(scene: Scene) -> Fault:
    """Bits flip on a NIC's cable: packets are lost and sent again."""
    nic = scene.any_nic()
    lost = scene.on_nics([nic.index], scene.lost_share(1.2), 0)
    return fault_of(
        scene,
        "link_errors",
        [nic_entity(nic), port_entity(scene, nic)],
        neutral(scene.cluster, nic_lost=lost),
        facts=[BadCable(nic.index, None)],
    )


def bad_uplink_cable(scene: Scene) -> Fault:
    """Bits flip on a cable between leaf and spine."""
    nic = scene.any_nic()
    choices = scene.cluster.uplinks_of_leaf(nic.leaf)
    uplink = choices[int(scene.random.randint(len(choices)))]
    lost = np.zeros(len(scene.cluster.uplinks))
    lost[uplink.index] = scene.lost_share(1.2)
    culprit = {
        "type": "port",
        "switch": scene.cluster.leaf_name(nic.leaf),
        "port": uplink_port(scene.cluster, uplink.index),
    }
    return fault_of(
        scene,
        "link_errors",
        [culprit],
        neutral(scene.cluster, uplink_lost=lost),
        victims=hosts_of_leaf(scene, nic.leaf),
        facts=[BadCable(None, uplink.index)],
    )


def link_flap(scene: Scene) -> Fault:
    """A NIC's link goes down for seconds, several times; its connections wait and retry."""
    nic = scene.any_nic()
    spells = np.flatnonzero(scene.spells())
    chosen = np.sort(scene.random.choice(spells, size=min(5, len(spells)), replace=False))
    acts = np.zeros(scene.job.shape.steps, dtype=bool)
    acts[chosen] = True
    slower = 1 + _FLAP_SECONDS / scene.transfer_seconds
    rate = scene.on_nics([nic.index], 1 / slower, 1)
    return fault_of(
        scene,
        "link_flap",
        [nic_entity(nic), port_entity(scene, nic)],
        neutral(scene.cluster, nic_rate=rate),
        facts=[LinkFlap(nic.index, tuple(int(step) for step in chosen), _FLAP_SECONDS)],
        acts=acts,
    )


def degraded_speed(scene: Scene) -> Fault:
    """A NIC's cable came up at half its speed."""
    nic = scene.any_nic()
    rate = scene.on_nics([nic.index], 0.5, 1)
    return fault_of(
        scene,
        "degraded_link",
        [nic_entity(nic), port_entity(scene, nic)],
        neutral(scene.cluster, nic_rate=rate),
        facts=[SlowPort(nic.index, scene.cluster.shape.nic_gbps // 2)],
    )


def swapped_rails(scene: Scene) -> Fault:
    """The cables of two NICs, as the cluster names them, are on the leaf ports of each other."""
    nics = [scene.cluster.nics[index] for index in scene.cluster.shape.swapped_nics or ()]
    culprits = [nic_entity(nic) for nic in nics] + [port_entity(scene, nic) for nic in nics]
    return fault_of(scene, "cabling", culprits, neutral(scene.cluster))
