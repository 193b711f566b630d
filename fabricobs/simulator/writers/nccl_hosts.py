"""What NCCL finds on a host: the network it uses, through which NIC, and whether GPUs reach it."""

from collections.abc import Iterator
from dataclasses import dataclass

from fabricobs.simulator.cluster import Nic
from fabricobs.simulator.facts import ForeignNics, GpuDirectOff, SlowPort, SocketTransport
from fabricobs.simulator.shapes import GPUS_PER_HOST
from fabricobs.simulator.world import World

_HOSTS_PER_SUBNET = 200


def host_address(host: int) -> str:
    """Return the address of a host in the management network."""
    subnet, number = divmod(host, _HOSTS_PER_SUBNET)
    return f"10.20.{subnet}.{number + 11}"


@dataclass(frozen=True, slots=True)
class NcclHost:
    """A host as NCCL sees it; `speeds_mbps` of its NICs in device order."""

    name: str
    nics: tuple[Nic, ...]
    speeds_mbps: tuple[int, ...]
    infiniband: bool
    rdma: bool
    gpu_direct: bool
    foreign_nics: bool

    @property
    def network(self) -> str:
        """NCCL's name of the network."""
        return "IB" if self.rdma else "Socket"

    @property
    def link_layer(self) -> str:
        """NCCL's name of the link layer."""
        return "IB" if self.infiniband else "RoCE"

    @property
    def address(self) -> str:
        """Interface and address of the management network."""
        return f"bond0:{host_address(self.nics[0].host)}<0>"

    def route(self, local: int) -> str:
        """How a connection of a GPU leaves or enters the host."""
        if not self.rdma:
            return "NET/Socket/0"
        nic = (local + GPUS_PER_HOST // 2) % GPUS_PER_HOST if self.foreign_nics else local
        return f"NET/IB/{nic}{'/GDRDMA' if self.gpu_direct else ''}"

    def network_lines(self, contexts: tuple[int, ...]) -> Iterator[str]:
        """What NCCL prints while it looks for a network."""
        if self.rdma:
            devices = " ".join(f"[{n.local}]{n.device}:1/{self.link_layer}" for n in self.nics)
            yield f"NET/IB : Using {devices} [RO]; OOB {self.address}"
            for nic in self.nics:
                yield self._device(nic, contexts[nic.local])
        else:
            yield "NET/IB : No device found."
            yield f"NET/Socket : Using [0]{self.address}"
        yield f"Initialized NET plugin {self.network}"
        yield f"Assigned NET plugin {self.network} to comm"
        yield f"Using network {self.network}"

    def gpu_direct_lines(self) -> Iterator[str]:
        """Whether each device can read GPU memory."""
        if not self.rdma:
            yield "NET/Socket : GPU Direct RDMA Disabled for HCA 0 'bond0'"
            return
        able = "Enabled" if self.gpu_direct else "Disabled"
        for nic in self.nics:
            yield f"NET/IB : GPU Direct RDMA {able} for HCA {nic.local} '{nic.device}'"

    def _device(self, nic: Nic, context: int) -> str:
        path = f"/sys/devices/pci{nic.pci_address[:7]}/{nic.pci_address}"
        return (
            f"NET/IB: [{nic.local}] {nic.device}:uverbs{nic.local}:1/{self.link_layer} "
            f"provider=Mlx5 speed={self.speeds_mbps[nic.local]} context=0x{context:x} "
            f"pciPath={path} ar={int(self.infiniband)}"
        )


def nccl_host(world: World, host: int) -> NcclHost:
    """Look at a host with all that the faults did to it."""
    nics = world.cluster.nics_of_host(host)
    speeds: dict[int, int] = {nic.index: world.cluster.shape.nic_gbps for nic in nics}
    for fact in world.facts:
        if isinstance(fact, SlowPort) and fact.nic in speeds:
            speeds[fact.nic] = fact.gbps
    rdma = SocketTransport(host) not in world.facts
    return NcclHost(
        name=world.cluster.host_name(host),
        nics=nics,
        speeds_mbps=tuple(gbps * 1000 for gbps in speeds.values()),
        infiniband=world.cluster.infiniband,
        rdma=rdma,
        gpu_direct=rdma and GpuDirectOff(host) not in world.facts,
        foreign_nics=ForeignNics(host) in world.facts,
    )
