"""How evenly flowlets use the uplinks of a leaf: even over half an hour, uneven over a minute."""

import numpy as np

from fabricobs.simulator.cluster import Cluster, Integers
from fabricobs.simulator.effects import Floats
from fabricobs.simulator.randomness import Random

# Independent placements a second and uplink. Source: the uplinks of a healthy production fabric,
# whose shares vary with CV 0.167 over 60 s and fall with the square root of the window; 1/CV^2 is
# the number of placements in it.
PLACEMENTS_PER_SECOND = 1 / 0.167**2 / 60
# Leaves differ in it, log-normally: there the CV's 95th percentile is 1.6 to 2 times its median.
_LEAF_SPREAD = 1.0


def even_shares(
    cluster: Cluster,
    between: Floats,
    nic_bytes: Floats,
    usable: Floats,
    step: Integers,
    seconds: Floats,
    capacity: Floats,
    random: Random,
) -> tuple[Floats, Floats]:
    """Bytes up and down [K, U] of K transfers; on every spine as much comes in as goes out.

    `between` [L, L] bytes from leaf to leaf for each of `nic_bytes` [K]; `usable` [K, U] share of
    its flows that a leaf puts on each uplink; `step` [K] of each transfer: one placement of the
    flows stands for a step, `seconds` [S] long; `capacity` [K] in bytes of an uplink.
    """
    transfers, leaves = len(nic_bytes), cluster.leaves
    per_leaf, parallel = cluster.uplinks_per_leaf, cluster.links_per_spine
    by_leaf = np.exp(_LEAF_SPREAD * random.standard_normal(leaves))
    shape = (PLACEMENTS_PER_SECOND * seconds)[:, None, None] * by_leaf[None, :, None]
    weights = usable.reshape(transfers, leaves, per_leaf)
    placed = random.standard_gamma(np.broadcast_to(shape, (len(seconds), leaves, per_leaf)))
    drawn = weights * placed[step]
    leaving = between.sum(axis=1)[None, :, None] * nic_bytes[:, None, None]
    up = _share_out(drawn, leaving, capacity[:, None, None] * (weights > 0))

    to_spine = up.reshape(transfers, leaves, per_leaf // parallel, parallel).sum(axis=3)
    towards = between / np.maximum(between.sum(axis=1, keepdims=True), 1e-300)
    from_spine = np.einsum("kas,ab->kbs", to_spine, towards)
    many = (len(seconds), leaves, per_leaf // parallel, parallel)
    links = random.standard_gamma(np.broadcast_to(shape[..., None], many))
    down = _share_out(links[step], from_spine[..., None], capacity[:, None, None, None])
    return up.reshape(transfers, -1), down.reshape(transfers, -1)


def _share_out(weights: Floats, total: Floats, capacity: Floats) -> Floats:
    """Split `total` along the last axis by weight; what exceeds a link's capacity goes elsewhere.

    What no link has room for is split by room alone, so that nothing is lost.
    """
    positive = np.maximum(weights, 1e-12)
    given = total * positive / positive.sum(axis=-1, keepdims=True)
    room = np.broadcast_to(capacity, given.shape)
    kept = np.minimum(given, room)
    left = total - kept.sum(axis=-1, keepdims=True)
    free = room - kept
    all_free = free.sum(axis=-1, keepdims=True)
    fitting = np.minimum(left, all_free)
    kept = kept + fitting * free / np.maximum(all_free, 1e-300)
    shares: Floats = np.where(
        total > 0,
        kept + (left - fitting) * room / np.maximum(room.sum(-1, keepdims=True), 1e-300),
        0,
    )
    return shares
