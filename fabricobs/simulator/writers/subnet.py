"""What an InfiniBand fabric looks like: ibnetdiscover once, iblinkinfo every few minutes."""

from collections.abc import Iterator
from pathlib import Path

from fabricobs.simulator.fabric import Fabric
from fabricobs.simulator.links import Links, links_of
from fabricobs.simulator.output import clock, write_lines, write_snapshots
from fabricobs.simulator.world import World
from fabricobs.simulator.writers.infiniband import (
    LANES,
    Node,
    Port,
    nic_link,
    nic_node,
    switches,
)
from fabricobs.simulator.writers.perfquery import watch_fabric

_LINKS_SECONDS = 300.0  # between two runs of iblinkinfo
_LINKS_DELAY = 4.0


def write_subnet(directory: Path, world: World, fabric: Fabric) -> None:
    """Write `ibnetdiscover` of the beginning and `iblinkinfo` of every few minutes."""
    del fabric
    links, collector = links_of(world), watch_fabric(world)
    nodes: list[tuple[Node, list[Port]]] = [
        (nic_node(nic), [nic_link(world.cluster, nic, links)]) for nic in world.cluster.nics
    ]
    known = switches(world.cluster, links)
    start = float(collector.clock()[0])
    write_lines(directory / "ibnetdiscover.txt", _topology(known, nodes, start))
    seldom = collector.every(_LINKS_SECONDS)
    tables = [
        "".join(f"{line}\n" for line in _link_info([*nodes, *known], links, moment))
        for moment in seldom.moments + _LINKS_DELAY
    ]
    write_snapshots(directory / "iblinkinfo.txt", seldom.clock(_LINKS_DELAY), tables)


def _topology(
    known: list[tuple[Node, list[Port]]], hcas: list[tuple[Node, list[Port]]], start: float
) -> Iterator[str]:
    first = hcas[0][0].guid
    yield "#"
    yield f"# Topology file: generated on {clock(start):%a %b %e %H:%M:%S %Y}"
    yield "#"
    yield f"# Initiated from node {first:016x} port {first:016x}"
    for node, ports in [*known, *hcas]:
        yield ""
        yield "vendid=0x2c9"
        yield f"devid={'0xd2f2' if node.is_switch else '0x1021'}"
        yield f"sysimgguid={node.guid:#x}"
        guid = f"{node.guid:016x}"
        if node.is_switch:
            yield f"switchguid={node.guid:#x}({guid})"
            yield (
                f'Switch\t{len(ports)} "S-{guid}"\t\t# "{node.description}" '
                f"enhanced port 0 lid {node.lid} lmc 0"
            )
        else:
            yield f"caguid={node.guid:#x}"
            yield f'Ca\t{len(ports)} "H-{guid}"\t\t# "{node.description}"'
        for port in ports:
            yield _cable(node, port)


def _cable(node: Node, port: Port) -> str:
    remote, rate = port.remote, f"{port.lanes}x{port.lane_name}"
    far = f'"{"S" if remote.is_switch else "H"}-{remote.guid:016x}"[{port.remote_number}]'
    if not node.is_switch:
        return (
            f"[{port.number}]({node.guid:016x}) \t{far}\t\t# lid {node.lid} lmc 0 "
            f'"{remote.description}" lid {remote.lid} {rate}'
        )
    guid = "" if remote.is_switch else f"({remote.guid:016x}) "
    return f'[{port.number}]\t{far}{guid}\t\t# "{remote.description}" lid {remote.lid} {rate}'


def _link_info(nodes: list[tuple[Node, list[Port]]], links: Links, moment: float) -> Iterator[str]:
    for node, ports in nodes:
        kind = f"Switch: {node.guid:#018x}" if node.is_switch else "CA:"
        yield f"{kind} {node.description}:"
        guid = " " * 4 if node.is_switch else f"      {node.guid:#018x} "
        for port in ports:
            near = f"{guid}{node.lid:7d} {port.number:4d}[  ] =="
            if port.nic is not None and not links.is_up(port.nic, moment):
                yield f'{near}({"Down/ Polling":>29})==>             [  ] "" ( )'
                continue
            remote, width = port.remote, f"{port.lanes}X"
            hint = "" if port.lanes == LANES else f"Could be {LANES}X"
            yield (
                f"{near}({width:>3} {port.lane_rate:>14} Gbps Active/  LinkUp)==>  "
                f"{remote.lid:6d} {port.remote_number:4d}[  ] "
                f'"{remote.description}" ( {hint})'
            )
