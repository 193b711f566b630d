"""What `show` commands print on a SONiC leaf: counters every minute, status and LLDP once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fabricobs.simulate.cluster import (
    LEAVES,
    NIC_GBPS,
    UPLINK_GBPS,
    Cluster,
    leaf_name,
    spine_name,
)
from fabricobs.simulate.counters import DATA_PRIORITY, PRIORITIES, Integers, packets
from fabricobs.simulate.fabric import Fabric
from fabricobs.simulate.output import clock, write_lines
from fabricobs.simulate.run import stream

ROUND_SECONDS = 60
CLOCK_OFFSETS = {"leaf02": 0.3}  # seconds a leaf's clock is ahead of the job's

_RATE_SECONDS = 5.0  # over which the switch smooths its rates
_PFC_DELAY = 0.4  # after the first command of a round
_QUEUE_DELAY = 0.9
_OLD_DROPS = {"Ethernet12": 214, "Ethernet88": 37}  # from before the job; they never grow


@dataclass(frozen=True, slots=True)
class _Ports:
    """Names and speeds of a leaf's ports, NIC ports first, and how to cut them from the fabric."""

    names: tuple[str, ...]
    gbps: tuple[int, ...]
    nic_ranks: tuple[int, ...]
    uplinks: tuple[int, ...]

    def select(self, of_nic_ports: Integers, of_uplinks: Integers) -> Integers:
        """Values of this leaf's ports from two fabric-wide arrays, ports on the last axis."""
        nic_ports = of_nic_ports[..., list(self.nic_ranks)]
        return np.concatenate([nic_ports, of_uplinks[..., list(self.uplinks)]], axis=-1)


def write_switches(
    directory: Path, cluster: Cluster, fabric: Fabric, *, end: float, seed: int
) -> None:
    """Write every leaf's folder; rounds run from the start of the job until after its `end`."""
    for leaf in range(LEAVES):
        name = leaf_name(leaf)
        ports = _ports_of_leaf(cluster, leaf)
        folder = directory / name
        write_lines(folder / "show_interfaces_status.txt", _status(cluster, leaf))
        write_lines(folder / "show_lldp_table.txt", _lldp(cluster, leaf))
        jitter = stream(seed, 100 + leaf)
        for number in range(int(end // ROUND_SECONDS) + 2):
            moment = number * ROUND_SECONDS + jitter.uniform(-1, 1)
            stamp = f"{clock(moment + CLOCK_OFFSETS.get(name, 0)):%Y%m%d_%H%M%S}"
            tables = {
                "show_interfaces_counters.txt": _interfaces(ports, fabric, moment),
                "show_pfc_counters.txt": _pfc(ports, fabric, moment + _PFC_DELAY),
                "show_queue_counters.txt.gz": _queues(ports, fabric, moment + _QUEUE_DELAY),
            }
            for command, lines in tables.items():
                write_lines(folder / f"{stamp}_{command}", lines)


def ruled_table(
    headers: Sequence[str], rows: Sequence[Sequence[str]], *, align: str = ">"
) -> Iterator[str]:
    """Lines of a table in the layout of SONiC's commands: a rule under each column, two blanks.

    Right-aligned columns are at least two wider than their header, left-aligned ones are not.
    """
    padding = 2 if align == ">" else 0
    widths = [
        max(len(header) + padding, *(len(row[column]) for row in rows))
        for column, header in enumerate(headers)
    ]
    for row in (headers, ["-" * width for width in widths], *rows):
        cells = (f"{cell:{align}{width}}" for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()


def _ports_of_leaf(cluster: Cluster, leaf: int) -> _Ports:
    nics, uplinks = cluster.nics_of_leaf(leaf), cluster.uplinks_of_leaf(leaf)
    return _Ports(
        names=(*(nic.leaf_port for nic in nics), *(uplink.port for uplink in uplinks)),
        gbps=(NIC_GBPS,) * len(nics) + (UPLINK_GBPS,) * len(uplinks),
        nic_ranks=tuple(nic.rank for nic in nics),
        uplinks=tuple(cluster.uplinks.index(uplink) for uplink in uplinks),
    )


def _rx_bytes(ports: _Ports, fabric: Fabric, moment: float) -> Integers:
    return ports.select(
        fabric.leaf_nic_ports.rx_bytes(moment), fabric.leaf_uplinks.rx_bytes(moment)
    )


def _tx_bytes(ports: _Ports, fabric: Fabric, moment: float) -> Integers:
    return ports.select(
        fabric.leaf_nic_ports.tx_bytes(moment), fabric.leaf_uplinks.tx_bytes(moment)
    )


def _interfaces(ports: _Ports, fabric: Fabric, moment: float) -> Iterator[str]:
    sides = []
    for read in (_rx_bytes, _tx_bytes):
        now, earlier = read(ports, fabric, moment), read(ports, fabric, moment - _RATE_SECONDS)
        sides.append((packets(now).sum(axis=0), (now - earlier).sum(axis=0) / _RATE_SECONDS))
    rows = []
    for index, (name, gbps) in enumerate(zip(ports.names, ports.gbps, strict=True)):
        row = [name, "U"]
        for (count, rate), drops in zip(sides, (_OLD_DROPS.get(name, 0), 0), strict=True):
            share = rate[index] * 8 / (gbps * 1e9)
            row += [f"{count[index]:,}", _rate(rate[index]), f"{share:.2%}", "0", f"{drops:,}", "0"]
        rows.append(row)
    columns = ("OK", "BPS", "UTIL", "ERR", "DRP", "OVR")
    headers = [f"{side}_{column}" for side in ("RX", "TX") for column in columns]
    return ruled_table(["IFACE", "STATE", *headers], rows)


def _rate(bytes_per_second: float) -> str:
    for threshold, unit, scale in ((10e6, "MB/s", 1e6), (10e3, "KB/s", 1e3)):
        if bytes_per_second > threshold:
            return f"{bytes_per_second / scale:.2f} {unit}"
    return f"{bytes_per_second:.2f} B/s"


def _pfc(ports: _Ports, fabric: Fabric, moment: float) -> Iterator[str]:
    nic_ports, uplinks = fabric.leaf_nic_ports, fabric.leaf_uplinks
    received = ports.select(nic_ports.rx_pause_frames(moment), uplinks.rx_pause_frames(moment))
    sent = ports.select(nic_ports.tx_pause_frames(moment), uplinks.tx_pause_frames(moment))
    classes = [f"PFC{priority}" for priority in range(PRIORITIES)]
    for title, frames in (("Port Rx", received), ("Port Tx", sent)):
        rows = []
        for name, count in zip(ports.names, frames, strict=True):
            cells = [f"{count:,}" if p == DATA_PRIORITY else "0" for p in range(PRIORITIES)]
            rows.append([name, *cells])
        yield from ruled_table([title, *classes], rows)
        yield ""


def _queues(ports: _Ports, fabric: Fabric, moment: float) -> Iterator[str]:
    sent = _tx_bytes(ports, fabric, moment)
    sent_packets = packets(sent)
    yield "For namespace :"
    headers = ["Port", "TxQ", "Counter/pkts", "Counter/bytes", "Drop/pkts", "Drop/bytes"]
    for index, name in enumerate(ports.names):
        rows = [
            [name, f"UC{p}", f"{sent_packets[p, index]:,}", f"{sent[p, index]:,}", "0", "0"]
            for p in range(PRIORITIES)
        ]
        rows += [[name, f"MC{queue}", "0", "0", "0", "0"] for queue in (8, 9)]
        yield from ruled_table(headers, rows)
        yield ""


def _status(cluster: Cluster, leaf: int) -> Iterator[str]:
    ports = [
        (n.leaf_port, n.lanes, NIC_GBPS, n.leaf_alias, "QSFP56") for n in cluster.nics_of_leaf(leaf)
    ]
    ports += [
        (u.port, u.lanes, UPLINK_GBPS, u.alias, "QSFP-DD") for u in cluster.uplinks_of_leaf(leaf)
    ]
    rows = []
    for name, lanes, gbps, alias, module in ports:
        lane_list = ",".join(str(lane) for lane in lanes)
        row = [name, lane_list, f"{gbps}G", "9100", "rs", alias, "routed", "up", "up", module]
        rows.append([*row, "off"])
    headers = ["Interface", "Lanes", "Speed", "MTU", "FEC", "Alias", "Vlan", "Oper", "Admin"]
    return ruled_table([*headers, "Type", "Asym PFC"], rows)


def _lldp(cluster: Cluster, leaf: int) -> Iterator[str]:
    rows = [
        [nic.leaf_port, nic.host_name, nic.mac, "O", nic.netdev]
        for nic in cluster.nics_of_leaf(leaf)
    ]
    rows += [
        [up.port, spine_name(up.spine), up.spine_port, "BR", f"{up.spine_port} Interface"]
        for up in cluster.uplinks_of_leaf(leaf)
    ]
    yield "Capability codes: (R) Router, (B) Bridge, (O) Other"
    headers = ["LocalPort", "RemoteDevice", "RemotePortID", "Capability", "RemotePortDescr"]
    yield from ruled_table(headers, rows, align="<")
    yield "-" * 50
    yield f"Total entries displayed:  {len(rows)}"
