"""Faults in how a host reaches its NICs."""

from fabricobs.simulator.effects import neutral
from fabricobs.simulator.facts import (
    Fact,
    ForeignNics,
    GpuDirectOff,
    SocketTransport,
)
from fabricobs.simulator.scene import Fault, Scene, fault_of, host_entity

WITHOUT_GPU_DIRECT = 0.5  # of a NIC's rate: 40 to 60 % are lost (METHODS 9)
ACROSS_NUMA_NODES = 0.7  # of a NIC's rate: 20 to 40 % are lost (METHODS 9)
OVER_SOCKETS = 0.2  # of a NIC's rate: TCP on a host without tuning


def gpudirect_off(scene: Scene) -> Fault:
    """A host fell back from GPUDirect: data goes through its memory."""
    host = scene.any_host()
    return _slow_nics(scene, host, "gdr_disabled", WITHOUT_GPU_DIRECT, GpuDirectOff(host))


def socket_fallback(scene: Scene) -> Fault:
    """A host fell back from RDMA to TCP."""
    host = scene.any_host()
    return _slow_nics(scene, host, "socket_fallback", OVER_SOCKETS, SocketTransport(host))


def foreign_nics(scene: Scene) -> Fault:
    """A host's GPUs use the NICs of the other NUMA node."""
    host = scene.any_host()
    return _slow_nics(scene, host, "nic_affinity", ACROSS_NUMA_NODES, ForeignNics(host))


def _slow_nics(scene: Scene, host: int, kind: str, natural: float, fact: Fact) -> Fault:
    rate = scene.on_nics(scene.nics_of(host), scene.nic_rate(natural), 1)
    culprits = [host_entity(scene, host)]
    return fault_of(scene, kind, culprits, neutral(scene.cluster, nic_rate=rate), facts=[fact])
