"""The simulated cluster: hosts, NICs, leaves, spines and the names of their ports."""

from dataclasses import dataclass

HOSTS = 4
GPUS_PER_HOST = 8
RANKS = HOSTS * GPUS_PER_HOST
LEAVES = 2
UPLINKS_PER_LEAF = 8
LINKS_PER_SPINE = 2

NIC_GBPS = 200
UPLINK_GBPS = 400

_NIC_BUSES = (0x1A, 0x3C, 0x4D, 0x5E, 0x9C, 0xBC, 0xCC, 0xDC)
_GPU_BUSES = (0x18, 0x2A, 0x3A, 0x5D, 0x9A, 0xAB, 0xBA, 0xDB)
_NIC_PORT_LANES = 4
_UPLINK_LANES = 8


@dataclass(frozen=True, slots=True)
class Nic:
    """One NIC and the leaf port it is cabled to; its index among all NICs is its GPU's rank."""

    rank: int
    host: int
    local: int
    leaf: int
    leaf_port: str
    leaf_alias: str
    lanes: tuple[int, ...]

    @property
    def host_name(self) -> str:
        """Short host name, as `gethostname` gives it."""
        return host_name(self.host)

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
    def gpu_bus_id(self) -> str:
        """PCI bus id of the GPU beside the NIC, in NCCL's form without separators."""
        return f"{_GPU_BUSES[self.local]:x}000"

    @property
    def mac(self) -> str:
        """MAC address."""
        return f"b8:3f:d2:4a:{self.host + 0x10:02x}:{self.local * 4:02x}"


@dataclass(frozen=True, slots=True)
class Uplink:
    """One leaf-to-spine cable; `index` counts the uplinks of its leaf from 0."""

    leaf: int
    index: int
    port: str
    alias: str
    lanes: tuple[int, ...]

    @property
    def spine(self) -> int:
        """Index of the spine at the other end."""
        return self.index // LINKS_PER_SPINE

    @property
    def spine_port(self) -> str:
        """Name of the spine's port at the other end."""
        number = self.leaf * LINKS_PER_SPINE + self.index % LINKS_PER_SPINE + 1
        return f"FourHundredGigE1/0/{number}"


@dataclass(frozen=True, slots=True)
class Cluster:
    """All cables: `nics` by rank, `uplinks` by leaf and then by index."""

    nics: tuple[Nic, ...]
    uplinks: tuple[Uplink, ...]

    def nics_of_host(self, host: int) -> tuple[Nic, ...]:
        """NICs of one host, in device order."""
        return tuple(nic for nic in self.nics if nic.host == host)

    def nics_of_leaf(self, leaf: int) -> tuple[Nic, ...]:
        """NICs cabled to one leaf, in port order."""
        return tuple(nic for nic in self.nics if nic.leaf == leaf)

    def uplinks_of_leaf(self, leaf: int) -> tuple[Uplink, ...]:
        """Uplinks of one leaf, in port order."""
        return tuple(uplink for uplink in self.uplinks if uplink.leaf == leaf)


def host_name(host: int) -> str:
    """Name of a host from its index."""
    return f"node{host + 1:02d}"


def leaf_name(leaf: int) -> str:
    """Name of a leaf from its index."""
    return f"leaf{leaf + 1:02d}"


def spine_name(spine: int) -> str:
    """Name of a spine from its index."""
    return f"spine{spine + 1:02d}"


def build_cluster() -> Cluster:
    """Cable the cluster: neighbours on the ring of hosts hang on different leaves."""
    return Cluster(
        nics=tuple(_nic(rank) for rank in range(RANKS)),
        uplinks=tuple(
            _uplink(leaf, index) for leaf in range(LEAVES) for index in range(UPLINKS_PER_LEAF)
        ),
    )


def _nic(rank: int) -> Nic:
    host, local = divmod(rank, GPUS_PER_HOST)
    position = (host // LEAVES) * GPUS_PER_HOST + local
    first_lane = position * _NIC_PORT_LANES
    return Nic(
        rank=rank,
        host=host,
        local=local,
        leaf=host % LEAVES,
        leaf_port=f"Ethernet{first_lane}",
        leaf_alias=f"etp{position // 2 + 1}{'ab'[position % 2]}",
        lanes=tuple(range(first_lane, first_lane + _NIC_PORT_LANES)),
    )


def _uplink(leaf: int, index: int) -> Uplink:
    ports_before = HOSTS // LEAVES * GPUS_PER_HOST
    first_lane = ports_before * _NIC_PORT_LANES + index * _UPLINK_LANES
    return Uplink(
        leaf=leaf,
        index=index,
        port=f"Ethernet{first_lane}",
        alias=f"etp{ports_before // 2 + index + 1}",
        lanes=tuple(range(first_lane, first_lane + _UPLINK_LANES)),
    )
