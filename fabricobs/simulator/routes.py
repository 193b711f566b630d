"""Which uplink each flow takes: hashing on the leaf and on the spine."""

from dataclasses import dataclass, replace

import numpy as np

from fabricobs.simulator.cluster import Cluster, Integers
from fabricobs.simulator.effects import Floats
from fabricobs.simulator.job import Job
from fabricobs.simulator.randomness import Random

LOCAL = -1


@dataclass(frozen=True, slots=True)
class Routes:
    """The path of every flow [F] of a job; a flow is one queue pair of one hop between hosts.

    `source` and `target` are NIC indices, `group` the data-parallel communicator, `up` and `down`
    uplink indices: the cable from the source's leaf to a spine and the one from that spine to the
    target's leaf; LOCAL where both NICs hang on one leaf.
    """

    source: Integers
    target: Integers
    group: Integers
    up: Integers
    down: Integers


def draw_routes(job: Job, random: Random) -> Routes:
    """Hash every flow onto an uplink of its leaf and a link of the spine, all equally likely."""
    cluster = job.cluster
    queue_pairs = cluster.shape.queue_pairs
    source = np.repeat(job.gpus, queue_pairs)
    target = np.repeat(job.gpus[job.next_rank], queue_pairs)
    leaf_from, leaf_to = cluster.leaf_of_nic[source], cluster.leaf_of_nic[target]
    uplink = random.randint(cluster.uplinks_per_leaf, size=len(source))
    parallel = random.randint(cluster.links_per_spine, size=len(source))
    local = leaf_from == leaf_to
    up = leaf_from * cluster.uplinks_per_leaf + uplink
    down = _down(cluster, leaf_to, up, parallel)
    return Routes(
        source=source,
        target=target,
        group=np.repeat(job.data_group, queue_pairs),
        up=np.where(local, LOCAL, up),
        down=np.where(local, LOCAL, down),
    )


def rehash(cluster: Cluster, routes: Routes, usable: Floats, random: Random) -> Routes:
    """The routes where a leaf's hash uses its uplinks only as far as `usable` [U] (0 to 1) says.

    A flow that loses its uplink takes the nearest one before it that is fully used, so that two
    halves of a hash fold onto each other and the loads of the other leaves stay as they were.
    """
    chance = random.random_sample(len(routes.up))
    losing = (routes.up != LOCAL) & (chance >= usable[routes.up])
    if not losing.any():
        return routes
    instead = np.arange(len(usable))
    for uplink in cluster.uplinks:
        if usable[uplink.index] >= 1:
            continue
        first = uplink.leaf * cluster.uplinks_per_leaf
        for distance in range(1, cluster.uplinks_per_leaf):
            other = first + (uplink.position - distance) % cluster.uplinks_per_leaf
            if usable[other] >= 1:
                instead[uplink.index] = other
                break
    up = np.where(losing, instead[routes.up], routes.up)
    parallel = routes.down % cluster.links_per_spine
    down = _down(cluster, cluster.leaf_of_nic[routes.target], up, parallel)
    return replace(routes, up=up, down=np.where(routes.up == LOCAL, LOCAL, down))


def _down(cluster: Cluster, leaf: Integers, up: Integers, parallel: Integers) -> Integers:
    per_spine = cluster.links_per_spine
    spine = up % cluster.uplinks_per_leaf // per_spine
    down: Integers = leaf * cluster.uplinks_per_leaf + spine * per_spine + parallel
    return down
