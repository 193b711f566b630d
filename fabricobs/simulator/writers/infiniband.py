"""What InfiniBand's tools call switches, HCAs, rates and waiting, and what hangs on which port."""

from dataclasses import dataclass

from fabricobs.simulator.cluster import Cluster, Integers, Nic
from fabricobs.simulator.links import Links

LANES = 4
# Of a link by its full rate in Gb/s: name and signalling rate of a lane.
_LANE = {
    100: ("EDR", "25.78125"),
    200: ("HDR", "53.125"),
    400: ("NDR", "106.25"),
    800: ("XDR", "212.5"),
}
# PortXmitWait counts ticks of eight symbol times at SDR, 32 ns.
_TICKS, _PER_MICROSECONDS = 125, 4


@dataclass(frozen=True, slots=True)
class Node:
    """A switch or HCA as the fabric knows it."""

    description: str
    guid: int
    lid: int
    is_switch: bool


@dataclass(frozen=True, slots=True)
class Port:
    """A port with its cable: `gbps` it runs at, of `full_gbps`; `nic` is its NIC, None if none."""

    number: int
    remote: Node
    remote_number: int
    gbps: int
    full_gbps: int
    nic: int | None

    @property
    def lanes(self) -> int:
        """Lanes in use."""
        return LANES * self.gbps // self.full_gbps

    @property
    def lane_name(self) -> str:
        """Name of a lane's rate."""
        return _LANE[self.full_gbps][0]

    @property
    def lane_rate(self) -> str:
        """Signalling rate of a lane in Gb/s, as `iblinkinfo` prints it."""
        return _LANE[self.full_gbps][1]


def rate_name(gbps: int, full_gbps: int) -> str:
    """Width and name of a rate, `4X NDR`: a cable that came up slower lost lanes."""
    return f"{LANES * gbps // full_gbps}X {_LANE[full_gbps][0]}"


def wait_ticks(microseconds: Integers) -> Integers:
    """PortXmitWait of the time a port had data and had to wait."""
    ticks: Integers = microseconds * _TICKS // _PER_MICROSECONDS
    return ticks


def leaf_node(cluster: Cluster, leaf: int) -> Node:
    """A leaf."""
    name = f"MF0;{cluster.leaf_name(leaf)}:MQM9700/U1"
    return Node(name, cluster.leaf_guid(leaf), cluster.leaf_lid(leaf), is_switch=True)


def spine_node(cluster: Cluster, spine: int) -> Node:
    """A spine."""
    name = f"MF0;{cluster.spine_name(spine)}:MQM9700/U1"
    return Node(name, cluster.spine_guid(spine), cluster.spine_lid(spine), is_switch=True)


def nic_node(nic: Nic) -> Node:
    """An HCA, of one port."""
    return Node(f"{nic.host_name} {nic.device}", nic.guid, nic.lid, is_switch=False)


def nic_link(cluster: Cluster, nic: Nic, links: Links) -> Port:
    """The port of an HCA."""
    number, full = cluster.nic_port_number(nic), cluster.shape.nic_gbps
    return Port(1, leaf_node(cluster, nic.leaf), number, links.gbps[nic.index], full, nic.index)


def switches(cluster: Cluster, links: Links) -> list[tuple[Node, list[Port]]]:
    """Every switch with its ports in order, leaves before spines."""
    nic_gbps, gbps = cluster.shape.nic_gbps, cluster.shape.uplink_gbps
    found = []
    for leaf in range(cluster.leaves):
        ports = [
            Port(
                number=cluster.nic_port_number(nic),
                remote=nic_node(nic),
                remote_number=1,
                gbps=links.gbps[nic.index],
                full_gbps=nic_gbps,
                nic=nic.index,
            )
            for nic in cluster.nics_of_leaf(leaf)
        ]
        for uplink in cluster.uplinks_of_leaf(leaf):
            number, far = cluster.uplink_port_number(uplink), cluster.spine_port_number(uplink)
            remote = spine_node(cluster, uplink.spine)
            ports.append(Port(number, remote, far, gbps, gbps, None))
        found.append((leaf_node(cluster, leaf), ports))
    for spine in range(cluster.spines):
        ports = []
        for uplink in cluster.uplinks_of_spine(spine):
            number, far = cluster.spine_port_number(uplink), cluster.uplink_port_number(uplink)
            ports.append(Port(number, leaf_node(cluster, uplink.leaf), far, gbps, gbps, None))
        found.append((spine_node(cluster, spine), ports))
    return found
