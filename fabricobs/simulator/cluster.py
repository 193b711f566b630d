"""The simulated cluster: hosts, NICs, leaves, spines, the cables between them and their names."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fabricobs.simulator.shapes import GPUS_PER_HOST, ClusterShape

Integers = NDArray[np.int64]

_NIC_BUSES = (0x1A, 0x3C, 0x4D, 0x5E, 0x9C, 0xBC, 0xCC, 0xDC)
_GPU_BUSES = (0x18, 0x2A, 0x3A, 0x5D, 0x9A, 0xAB, 0xBA, 0xDB)
_LANES = {100: 4, 200: 4, 400: 8, 800: 8}
_SPINE_PORT_NAMES = {100: "", 200: "Two", 400: "Four", 800: "Eight"}


@dataclass(frozen=True, slots=True)
class Nic:
    """One NIC and the leaf port it is cabled to; `index` counts NICs (and GPUs) of the cluster.

    `position` counts the NIC ports of its leaf from 0.
    """

    index: int
    host: int
    host_name: str
    local: int
    leaf: int
    position: int

    @property
    def device(self) -> str:
        """RDMA device name."""
        return f"mlx5_{self.local}"

    @property
    def netdev(self) -> str:
        """Linux network interface of the same port, named after its PCI bus."""
        return f"enp{_NIC_BUSES[self.local]}s0np0"

    @property
    def pci_address(self) -> str:
        """PCI address of the NIC."""
        return f"0000:{_NIC_BUSES[self.local]:02x}:00.0"

    @property
    def gpu_pci_address(self) -> str:
        """PCI address of the GPU beside the NIC."""
        return f"0000:{_GPU_BUSES[self.local]:02x}:00.0"

    @property
    def gpu_bus_id(self) -> str:
        """PCI bus id of the GPU beside the NIC, in NCCL's form without separators."""
        return f"{_GPU_BUSES[self.local]:x}000"

    @property
    def mac(self) -> str:
        """MAC address."""
        high, low = divmod(self.host + 0x10, 256)
        return f"b8:3f:d2:{0x4A + high:02x}:{low:02x}:{self.local * 4:02x}"

    @property
    def guid(self) -> int:
        """InfiniBand port GUID."""
        return 0xB83FD203004A0000 + self.index * 8

    @property
    def lid(self) -> int:
        """InfiniBand local identifier."""
        return 1000 + self.index


@dataclass(frozen=True, slots=True)
class Uplink:
    """One leaf-to-spine cable; `index` counts those of the cluster, `position` those of its leaf.

    `spine_position` counts the ports of the spine from 0.
    """

    index: int
    leaf: int
    position: int
    spine: int
    spine_position: int


@dataclass(frozen=True)
class Cluster:
    """All cables. `nics` [N] in order of host and device, `uplinks` [U] in order of leaf.

    A NIC's GPU has the same index. Leaf ports are numbered NIC ports first, then uplinks.
    """

    shape: ClusterShape
    leaves: int
    uplinks_per_leaf: int
    nics: tuple[Nic, ...]
    uplinks: tuple[Uplink, ...]

    @property
    def spines(self) -> int:
        """Number of spines."""
        return self.uplinks_per_leaf // self.links_per_spine

    @property
    def links_per_spine(self) -> int:
        """Parallel cables from a leaf to each spine."""
        return min(self.shape.links_per_spine, self.uplinks_per_leaf)

    @property
    def infiniband(self) -> bool:
        """Whether the fabric is InfiniBand."""
        return self.shape.fabric == "infiniband"

    @cached_property
    def leaf_of_nic(self) -> Integers:
        """Leaf [N] of each NIC."""
        return np.array([nic.leaf for nic in self.nics])

    @cached_property
    def spine_of_uplink(self) -> Integers:
        """Spine [U] of each uplink."""
        return np.array([uplink.spine for uplink in self.uplinks])

    def host_name(self, host: int) -> str:
        """Short name of a host, as `gethostname` gives it."""
        return _numbered("node", host, self.shape.hosts)

    def leaf_name(self, leaf: int) -> str:
        """Name of a leaf."""
        return _numbered("leaf", leaf, self.leaves)

    def spine_name(self, spine: int) -> str:
        """Name of a spine."""
        return _numbered("spine", spine, self.spines)

    def nics_of_host(self, host: int) -> tuple[Nic, ...]:
        """NICs of one host, in device order."""
        return self.nics[host * GPUS_PER_HOST : (host + 1) * GPUS_PER_HOST]

    def nics_of_leaf(self, leaf: int) -> tuple[Nic, ...]:
        """NICs cabled to one leaf, in port order."""
        return tuple(sorted((n for n in self.nics if n.leaf == leaf), key=lambda nic: nic.position))

    def uplinks_of_leaf(self, leaf: int) -> tuple[Uplink, ...]:
        """Uplinks of one leaf, in port order."""
        first = leaf * self.uplinks_per_leaf
        return self.uplinks[first : first + self.uplinks_per_leaf]

    def uplinks_of_spine(self, spine: int) -> tuple[Uplink, ...]:
        """Uplinks that end at one spine, in order of its ports."""
        return tuple(
            sorted((u for u in self.uplinks if u.spine == spine), key=lambda u: u.spine_position)
        )

    def nic_lanes(self, nic: Nic) -> tuple[int, ...]:
        """Lanes of the leaf port a NIC is cabled to."""
        count = _LANES[self.shape.nic_gbps]
        return tuple(range(nic.position * count, (nic.position + 1) * count))

    def uplink_lanes(self, uplink: Uplink) -> tuple[int, ...]:
        """Lanes of the leaf port of an uplink."""
        count = _LANES[self.shape.uplink_gbps]
        before = self._nic_ports_of_leaf(uplink.leaf) * _LANES[self.shape.nic_gbps]
        first = before + uplink.position * count
        return tuple(range(first, first + count))

    def nic_port(self, nic: Nic) -> str:
        """SONiC name of the leaf port a NIC is cabled to."""
        return f"Ethernet{self.nic_lanes(nic)[0]}"

    def uplink_port(self, uplink: Uplink) -> str:
        """SONiC name of the leaf port of an uplink."""
        return f"Ethernet{self.uplink_lanes(uplink)[0]}"

    def spine_port(self, uplink: Uplink) -> str:
        """Name of the spine port of an uplink, as the spines' operating system calls it."""
        speed = _SPINE_PORT_NAMES[self.shape.uplink_gbps]
        return f"{speed}HundredGigE1/0/{uplink.spine_position + 1}"

    def nic_alias(self, nic: Nic) -> str:
        """Alias of the leaf port of a NIC; two NIC ports share a cage."""
        return f"etp{nic.position // 2 + 1}{'ab'[nic.position % 2]}"

    def uplink_alias(self, uplink: Uplink) -> str:
        """Alias of the leaf port of an uplink."""
        cages = (self._nic_ports_of_leaf(uplink.leaf) + 1) // 2
        return f"etp{cages + uplink.position + 1}"

    def nic_port_number(self, nic: Nic) -> int:
        """InfiniBand number of the leaf port a NIC is cabled to, from 1."""
        return nic.position + 1

    def uplink_port_number(self, uplink: Uplink) -> int:
        """InfiniBand number of the leaf port of an uplink."""
        return self._nic_ports_of_leaf(uplink.leaf) + uplink.position + 1

    def spine_port_number(self, uplink: Uplink) -> int:
        """InfiniBand number of the spine port of an uplink, from 1."""
        return uplink.spine_position + 1

    def leaf_guid(self, leaf: int) -> int:
        """InfiniBand GUID of a leaf."""
        return 0xFC6A1C0300A00000 + leaf * 64

    def spine_guid(self, spine: int) -> int:
        """InfiniBand GUID of a spine."""
        return 0xFC6A1C0300B00000 + spine * 64

    def leaf_lid(self, leaf: int) -> int:
        """InfiniBand local identifier of a leaf."""
        return 1 + leaf

    def spine_lid(self, spine: int) -> int:
        """InfiniBand local identifier of a spine."""
        return 1 + self.leaves + spine

    def _nic_ports_of_leaf(self, leaf: int) -> int:
        return int((self.leaf_of_nic == leaf).sum())


def build_cluster(shape: ClusterShape) -> Cluster:
    """Cable a cluster: leaves as full as `hosts_per_leaf` says, as many uplinks as they need."""
    pods = -(-shape.hosts // shape.hosts_per_leaf)
    rails = GPUS_PER_HOST if shape.wiring == "rail" else 1
    leaves = pods * rails
    nic_ports = shape.hosts_per_leaf * GPUS_PER_HOST // rails
    wanted = nic_ports * shape.nic_gbps / shape.uplink_gbps / shape.oversubscription
    per_leaf = max(2, round(wanted / shape.links_per_spine) * shape.links_per_spine)
    ports_used = [0] * leaves
    nics = []
    for index in range(shape.gpus):
        host, local = divmod(index, GPUS_PER_HOST)
        pod = host % pods if shape.placement == "scattered" else host // shape.hosts_per_leaf
        leaf = pod * rails + local % rails
        name = _numbered("node", host, shape.hosts)
        nics.append(Nic(index, host, name, local, leaf, ports_used[leaf]))
        ports_used[leaf] += 1
    if shape.swapped_nics:
        a, b = (nics[index] for index in shape.swapped_nics)
        nics[a.index] = replace(a, leaf=b.leaf, position=b.position)
        nics[b.index] = replace(b, leaf=a.leaf, position=a.position)
    parallel = min(shape.links_per_spine, per_leaf)
    uplinks = tuple(
        Uplink(
            index=leaf * per_leaf + position,
            leaf=leaf,
            position=position,
            spine=position // parallel,
            spine_position=leaf * parallel + position % parallel,
        )
        for leaf in range(leaves)
        for position in range(per_leaf)
    )
    return Cluster(shape, leaves, per_leaf, tuple(nics), uplinks)


def _numbered(kind: str, index: int, of: int) -> str:
    return f"{kind}{index + 1:0{max(2, len(str(of)))}d}"
