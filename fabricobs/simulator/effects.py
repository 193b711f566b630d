"""Effects of an active fault as numbers for a GPU, a NIC and an uplink."""

from collections.abc import Iterable, Set
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from fabricobs.simulator.cluster import Cluster

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_State = TypeVar("_State", bound="DataclassInstance")
Floats = NDArray[np.float64]

# Fields that multiply where several faults act at once; all others add up.
_FACTORS = {
    "compute",
    "nic_rate",
    "up_rate",
    "down_rate",
    "up_usable",
    "congestion",
    "marking",
}


@dataclass(frozen=True, slots=True)
class Effect:
    """The state of the cluster; N GPUs and NICs, U uplinks.

    compute: [N] factor on computing time. data_seconds: [N] added loading time.
    nic_rate: [N] factor on what a NIC moves; up_rate, down_rate: [U] the same of the cable towards
    the spine and from it. up_usable: [U] share of its flows a leaf's hash still puts on the uplink.
    nic_pausing: [N] share of time a NIC stops its leaf port although no queue is full.
    congestion: [1] factor on pauses per overload; marking: [1] factor on ECN marks.
    nic_lost, uplink_lost: [N], [U] share of packets lost on the cable for bit errors.
    dropped: [N] share of the packets towards a NIC that its leaf port drops.
    mixed_bytes_per_second: [N] foreign bytes towards each NIC in the data class.
    """

    compute: Floats
    data_seconds: Floats
    nic_rate: Floats
    up_rate: Floats
    down_rate: Floats
    up_usable: Floats
    nic_pausing: Floats
    congestion: Floats
    marking: Floats
    nic_lost: Floats
    uplink_lost: Floats
    dropped: Floats
    mixed_bytes_per_second: Floats


def neutral(cluster: Cluster, **changes: Floats) -> Effect:
    """The effect that changes nothing, but for the fields given."""
    nics, uplinks = len(cluster.nics), len(cluster.uplinks)
    sizes = {
        "up_rate": uplinks,
        "down_rate": uplinks,
        "up_usable": uplinks,
        "uplink_lost": uplinks,
        "congestion": 1,
        "marking": 1,
    }
    values = {
        field.name: np.full(sizes.get(field.name, nics), float(field.name in _FACTORS))
        for field in fields(Effect)
    }
    return Effect(**(values | changes))


def together(cluster: Cluster, effects: Iterable[Effect]) -> Effect:
    """The effect of several faults at once."""
    return combined(neutral(cluster), effects, _FACTORS)


def combined(nothing: _State, several: Iterable[_State], factors: Set[str]) -> _State:
    """What several states come to at once: fields in `factors` multiply, all others add up."""
    total = {field.name: getattr(nothing, field.name) for field in fields(nothing)}
    for state in several:
        for name in total:
            value = getattr(state, name)
            total[name] = total[name] * value if name in factors else total[name] + value
    return replace(nothing, **total)
