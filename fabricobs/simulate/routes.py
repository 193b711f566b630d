"""Which uplink each flow takes: static hashing on the leaf and on the spine."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fabricobs.simulate.cluster import (
    GPUS_PER_HOST,
    HOSTS,
    LEAVES,
    LINKS_PER_SPINE,
    RANKS,
    UPLINKS_PER_LEAF,
)

QUEUE_PAIRS = 8
FLOWS = RANKS * QUEUE_PAIRS
FLOWS_PER_LEAF = FLOWS // LEAVES


@dataclass(frozen=True, slots=True)
class Routes:
    """The path of every flow, one entry a flow; flows of a NIC are neighbours.

    `source` and `target` are NIC indices, `up` and `down` indices into the cluster's uplinks: the
    cable taken from the source's leaf to a spine and the one from that spine to the other leaf.
    """

    source: NDArray[np.int64]
    target: NDArray[np.int64]
    up: NDArray[np.int64]
    down: NDArray[np.int64]


def draw_routes(random: np.random.RandomState) -> Routes:
    """Hash every flow onto an uplink of its leaf and a link of the spine, all equally likely."""
    source = np.repeat(np.arange(RANKS), QUEUE_PAIRS)
    leaf = source // GPUS_PER_HOST % LEAVES
    uplink = random.randint(UPLINKS_PER_LEAF, size=FLOWS)
    spine = uplink // LINKS_PER_SPINE
    parallel = random.randint(LINKS_PER_SPINE, size=FLOWS)
    return Routes(
        source=source,
        target=(source + GPUS_PER_HOST) % (HOSTS * GPUS_PER_HOST),
        up=leaf * UPLINKS_PER_LEAF + uplink,
        down=(LEAVES - 1 - leaf) * UPLINKS_PER_LEAF + spine * LINKS_PER_SPINE + parallel,
    )


def polarise(routes: Routes, leaf: int, share: float, random: np.random.RandomState) -> Routes:
    """The routes after one leaf's hash lost its lowest bit for all but `1 - share` of its flows.

    Such flows move to the even uplink of the same spine, so loads beyond it stay as they were.
    """
    on_leaf = np.flatnonzero(routes.up // UPLINKS_PER_LEAF == leaf)
    odd = on_leaf[routes.up[on_leaf] % 2 == 1]
    staying = random.permutation(odd)[: round((1 - share) * len(on_leaf))]
    moving = np.setdiff1d(odd, staying)
    up = routes.up.copy()
    up[moving] -= 1
    return replace(routes, up=up)


def even_uplinks() -> range:
    """Indices, within a leaf, of the uplinks that a polarised hash prefers."""
    return range(0, UPLINKS_PER_LEAF, 2)
