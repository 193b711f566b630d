"""Which links the bytes of a flow take: hashed once (static), or spread (flowlet, adaptive)."""

from dataclasses import dataclass

import numpy as np

from fabricobs.simulator.cluster import Integers
from fabricobs.simulator.effects import Floats
from fabricobs.simulator.random_worlds.topology import NONE, Topology
from fabricobs.simulator.randomness import Random

HOPS = 6  # links of the longest path: host, leaf, spine, core and back


@dataclass(frozen=True, slots=True)
class Flows:
    """What NICs send each other in one phase of a step; axis F.

    `source` and `target` are NICs, `amount` bytes, `group` the communicator within the phase.
    """

    source: Integers
    target: Integers
    amount: Floats
    group: Integers


@dataclass(frozen=True, slots=True)
class Paths:
    """Parts of flows; axis X. A `share` of `flow` takes the links `path` [X, HOPS], NONE-filled."""

    flow: Integers
    share: Floats
    path: Integers


def route(topology: Topology, flows: Flows, weight: Floats, choices: Floats) -> Paths:
    """Find the paths of flows; `weight` [D] says how far a hash uses a link, 0 not at all.

    `choices` [F, Q, 4] are the flows' hashes, uniform in 0 to 1. Unless balancing is static, a flow
    has a part on each uplink, and `spread_out` says how much of it.
    """
    spread = topology.spec.balancing != "static"
    width = int((topology.up[topology.leaf] != NONE).sum(axis=1).max()) if spread else 0
    each = max(1, width) if spread else choices.shape[1]
    flow = np.repeat(np.arange(len(flows.source)), each)
    part = np.tile(np.arange(each), len(flows.source))
    hashes = choices[flow, part % choices.shape[1]]
    source, target = flows.source[flow], flows.target[flow]
    low, high = topology.leaf[source], topology.leaf[target]
    path = np.full((len(flow), HOPS), NONE)
    path[:, 0], path[:, -1] = 2 * source, 2 * target + 1
    crossing = np.flatnonzero(low != high)
    if len(crossing):
        first = topology.up[low[crossing]]
        if spread:
            cable = first[np.arange(len(crossing)), part[crossing]]
        else:
            weights = np.where(first != NONE, weight[2 * first], 0.0)
            cable = _chosen(first, weights, hashes[crossing, 0])
        path[crossing, 1] = 2 * cable
        _descend(topology, path, crossing, high, weight, hashes)
    paths = Paths(flow, np.full(len(flow), 1 / each), path)
    return spread_out(paths, weight) if spread else paths


def spread_out(paths: Paths, pull: Floats) -> Paths:
    """The same paths, the parts of each flow in proportion to `pull` [D] of their uplinks."""
    uplink = paths.path[:, 1]
    weights = np.where(uplink != NONE, pull[uplink], 1.0)
    totals = np.bincount(paths.flow, weights=weights)
    return Paths(paths.flow, weights / np.maximum(totals[paths.flow], 1e-300), paths.path)


def _descend(
    topology: Topology,
    path: Integers,
    crossing: Integers,
    leaf: Integers,
    pull: Floats,
    hashes: Floats,
) -> None:
    """Fill in the way from a spine to a leaf, over a core where the leaf is in another pod."""
    for place in crossing.tolist():
        wanted, at = int(leaf[place]), int(topology.upper_device[path[place, 1] // 2])
        if (at, wanted) not in topology.down:
            cables = topology.uplinks_of(at)
            cable = _pick(cables, pull[2 * cables], hashes[place, 1])
            path[place, 2] = 2 * cable
            core = int(topology.upper_device[cable])
            at, above = topology.below_core[core, int(topology.pod[wanted])], core
            parallel = np.array(topology.down[above, at])
            path[place, 3] = 2 * _pick(parallel, pull[2 * parallel + 1], hashes[place, 2]) + 1
        parallel = np.array(topology.down[at, wanted])
        path[place, 4] = 2 * _pick(parallel, pull[2 * parallel + 1], hashes[place, 3]) + 1


def _pick(cables: Integers, weights: Floats, hash_: float) -> int:
    if len(cables) == 1 or weights.sum() <= 0:
        return int(cables[0])
    edges = np.cumsum(weights) / weights.sum()
    return int(cables[min(int(np.searchsorted(edges, hash_, side="right")), len(cables) - 1)])


def _chosen(cables: Integers, weights: Floats, hashes: Floats) -> Integers:
    """One of the cables [X, U] for each hash [X], in proportion to the weights."""
    edges = np.cumsum(weights, axis=1) / weights.sum(axis=1, keepdims=True)
    last = weights.shape[1] - 1 - np.argmax(weights[:, ::-1] > 0, axis=1)
    place = np.minimum((edges <= hashes[:, None]).sum(axis=1), last)
    chosen: Integers = np.take_along_axis(cables, place[:, None], axis=1)[:, 0]
    return chosen


def hashes_of(flows: Flows, queue_pairs: int, random: Random) -> Floats:
    """Draw the hashes [F, Q, 4] of flows."""
    hashes: Floats = random.random_sample((len(flows.source), queue_pairs, 4))
    return hashes
