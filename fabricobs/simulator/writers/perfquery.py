"""Counters of an InfiniBand fabric as one collector asks for them: perfquery and ibqueryerrors.

The collector's clock tells the time; a switch that restarts begins again at 0.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from fabricobs.simulator.cluster import Integers
from fabricobs.simulator.collection import (
    Device,
    Reader,
    read_leaf,
    read_spine,
    saturated,
    watch_device,
)
from fabricobs.simulator.counters import PortGroup, packets
from fabricobs.simulator.fabric import Fabric
from fabricobs.simulator.links import links_of
from fabricobs.simulator.output import write_snapshots
from fabricobs.simulator.world import World
from fabricobs.simulator.writers.infiniband import Node, Port, nic_node, switches, wait_ticks

_COLLECTOR = "sm01"
_ERRORS_DELAY = 2.0  # ibqueryerrors runs after perfquery
_LABEL_WIDTH = 33
# What the fabric has none of is left at 0.
_LABELS = (
    "PortXmitData",
    "PortRcvData",
    "PortXmitPkts",
    "PortRcvPkts",
    "PortUnicastXmitPkts",
    "PortUnicastRcvPkts",
    "PortMulticastXmitPkts",
    "PortMulticastRcvPkts",
    "CounterSelect2",
    "SymbolErrorCounter",
    "LinkErrorRecoveryCounter",
    "LinkDownedCounter",
    "PortRcvErrors",
    "PortRcvRemotePhysicalErrors",
    "PortRcvSwitchRelayErrors",
    "PortXmitDiscards",
    "PortXmitConstraintErrors",
    "PortRcvConstraintErrors",
    "LocalLinkIntegrityErrors",
    "ExcessiveBufferOverrunErrors",
    "VL15Dropped",
    "PortXmitWait",
    "QP1Dropped",
)
# Name and bits of the old error counters, and what they count here.
_ERRORS = (
    ("SymbolErrorCounter", 16, "symbol"),
    ("LinkDownedCounter", 8, "downs"),
    ("PortRcvErrors", 16, "crc"),
    ("PortXmitDiscards", 16, "dropped"),
)


def watch_fabric(world: World) -> Device:
    """The collector: its clock, and the rounds in which it asks the whole fabric."""
    number = world.cluster.leaves + world.cluster.spines
    return watch_device(world, number, _COLLECTOR, host=False)


def write_perfquery(directory: Path, world: World, fabric: Fabric) -> None:
    """Write a file of `perfquery -x` a switch, and one of `ibqueryerrors` for the fabric."""
    cluster, collector = world.cluster, watch_fabric(world)
    readers = [read_leaf(world, fabric, leaf) for leaf in range(cluster.leaves)]
    readers += [read_spine(world, fabric, spine) for spine in range(cluster.spines)]
    reports: list[list[str]] = [[] for _ in collector.moments]
    known = switches(cluster, links_of(world))
    for reader, (node, ports) in zip(readers, known, strict=True):
        name = reader.device.name
        asked = replace(reader.device, moments=collector.moments, offset=collector.offset)
        switch = Reader(asked, reader.groups)
        outputs = _perfquery(switch, node, ports)
        write_snapshots(directory / f"perfquery_x_{name}.txt.gz", asked.clock(), outputs)
        _report(reports, switch, [(node, port.number) for port in ports])
    nics = [(nic_node(nic), 1) for nic in cluster.nics]
    hcas = Reader(replace(collector, restart=None), (fabric.nics,))
    _report(reports, hcas, nics)
    checked = len(known) + len(nics), sum(len(ports) for _, ports in known) + len(nics)
    write_snapshots(
        directory / "ibqueryerrors.txt.gz",
        collector.clock(_ERRORS_DELAY),
        [_summary(report, *checked) for report in reports],
    )


def _perfquery(reader: Reader, node: Node, ports: Sequence[Port]) -> list[str]:
    """Output of each round: a block of 64-bit counters a port."""
    received, sent = reader.shown(PortGroup.rx_bytes), reader.shown(PortGroup.tx_bytes)
    received_packets, sent_packets = (packets(b).sum(axis=1) for b in (received, sent))
    counters = {
        "PortXmitData": sent.sum(axis=1) // 4,
        "PortRcvData": received.sum(axis=1) // 4,
        "PortXmitPkts": sent_packets,
        "PortRcvPkts": received_packets,
        "PortUnicastXmitPkts": sent_packets,
        "PortUnicastRcvPkts": received_packets,
        "PortXmitWait": wait_ticks(reader.shown(PortGroup.rx_pause_microseconds)),
    }
    counters |= {label: reader.errors(name) for label, _, name in _ERRORS}
    lines = [f"{f'{label}:':.<{_LABEL_WIDTH}}{_place(label, counters)}\n" for label in _LABELS]
    blocks = []
    for port in ports:
        blocks.append(
            f"# Port extended counters: Lid {node.lid} port {port.number} "
            "(CapMask: 0x5300 CapMask2: 0x0000002)\n"
            f"{'PortSelect:':.<{_LABEL_WIDTH}}{port.number}\n"
            f"{'CounterSelect:':.<{_LABEL_WIDTH}}0x0000\n"
        )
        blocks += lines
    template = "".join(blocks)
    told = [counters[label] for label in _LABELS if label in counters]
    values = np.stack(told, axis=-1).reshape(len(sent), -1).tolist()
    return [template % tuple(row) for row in values]


def _place(label: str, counters: dict[str, Integers]) -> str:
    if label == "CounterSelect2":
        return "0x00000000"
    return "%d" if label in counters else "0"


def _report(reports: list[list[str]], reader: Reader, ports: Sequence[tuple[Node, int]]) -> None:
    """Add to each round's report the ports of these nodes that have counted errors."""
    counts = np.stack(
        [saturated(reader.errors(name, _ERRORS_DELAY), bits) for _, bits, name in _ERRORS], axis=-1
    )
    bad = np.flatnonzero(counts.any(axis=(0, 2))).tolist()
    for report, now in zip(reports, counts, strict=True):
        last = None
        for index in bad:
            if not now[index].any():
                continue
            node, number = ports[index]
            if node != last:
                guid = f"{node.guid:#x} " if node.is_switch else ""
                report.append(f'Errors for {guid}"{node.description}"')
                if node.is_switch:
                    of_node = [i for i in bad if ports[i][0] == node]
                    total = now[of_node].sum(axis=0)
                    report.append(f"   GUID {node.guid:#x} port ALL: {_error_list(total)}")
                last = node
            report.append(f"   GUID {node.guid:#x} port {number}: {_error_list(now[index])}")


def _error_list(counts: Integers) -> str:
    pairs = zip(_ERRORS, counts.tolist(), strict=True)
    return " ".join(f"[{label} == {count}]" for (label, _, _), count in pairs if count)


def _summary(report: list[str], nodes: int, ports: int) -> str:
    bad_nodes = sum(line.startswith("Errors for") for line in report)
    bad_ports = sum(" port " in line and " port ALL:" not in line for line in report)
    lines = [
        *report,
        "",
        f"## Summary: {nodes} nodes checked, {bad_nodes} bad nodes found",
        f"##          {ports} ports checked, {bad_ports} ports have errors beyond threshold",
        "## Thresholds: ",
        "## Suppressed: PortXmitWait",
    ]
    return "\n".join(lines) + "\n"
