"""What tools print of a whole InfiniBand fabric: its topology, and ibdiagnet's tables."""

import numpy as np

from fabricobs.simulator.random_worlds.ledger import Ledger
from fabricobs.simulator.random_worlds.ports import Fields, counted_fields, speeds
from fabricobs.simulator.random_worlds.printing import restart_of
from fabricobs.simulator.random_worlds.site import Site
from fabricobs.simulator.random_worlds.topology import Device

_WIDTHS = {100: "4xEDR", 200: "4xHDR", 400: "4xNDR", 800: "4xXDR", 50: "4xFDR"}
_SPEED_CODES = {50: 4, 100: 32, 200: 64, 400: 128, 800: 256}
_PM_COLUMNS = {
    "LinkDownedCounter": "downs:8", "LinkErrorRecoveryCounter": "recoveries:8",
    "SymbolErrorCounter": "symbol:16", "PortRcvErrors": "crc:16", "PortXmitDiscards": "tx_drops:16",
    "PortXmitData": "tx_words:32", "PortRcvData": "rx_words:32", "PortXmitWait": "xmit_wait:32",
    "PortXmitDataExtended": "tx_words", "PortRcvDataExtended": "rx_words",
    "PortXmitPktsExtended": "tx_packets", "PortRcvPktsExtended": "rx_packets",
    "SymbolErrorCounterExt": "symbol", "LinkErrorRecoveryCounterExt": "recoveries",
    "LinkDownedCounterExt": "downs", "PortRcvErrorsExt": "crc", "PortXmitDiscardsExt": "tx_drops",
    "PortXmitWaitExt": "xmit_wait",
}  # fmt: skip


def write_subnet(site: Site, ledger: Ledger) -> None:
    """Write ibnetdiscover's topology and ibdiagnet's runs where the site has them."""
    if not site.spec.infiniband:
        return
    switches = [device for device in site.world.topology.devices if device.tier]
    if site.spec.lldp:
        site.write(switches[0], "ibnetdiscover", "ibnetdiscover.txt", _topology(site))
    if site.spec.infiniband_form == "ibdiagnet" and site.spec.switch_counters != "none":
        _write_ibdiagnet(site, ledger, switches[0])


def _topology(site: Site) -> str:
    topology = site.world.topology
    local, first = site.true_clock.local(-600.0), topology.devices[0]
    lines = [
        "#",
        f"# Topology file: generated on {local:%a %b} {local.day:2d} {local:%H:%M:%S %Y}",
        "#",
        f"# Initiated from node {first.guid:016x} port {first.guid + 1:016x}",
    ]
    for device in sorted(topology.devices, key=lambda d: d.tier == 0):
        ports = topology.ports_of(device.index)
        node = f"{device.guid:016x}"
        if device.tier:
            lines += [
                "", "vendid=0x2c9", "devid=0xd2f2", f"sysimgguid=0x{node}",
                f"switchguid=0x{node}({node})",
                f'Switch\t65 "S-{node}"\t\t# "MF0;{device.name}:MQM9700/U1" enhanced port 0 lid '
                f"{device.lid} lmc 0",
            ]  # fmt: skip
        for cable, side, port in ports:
            other = topology.ends[cable][1 - side]
            peer = topology.devices[other.device]
            width = _WIDTHS[port.gbps]
            if device.tier == 0:
                own = f"{device.guid + port.number:016x}"
                lines += [
                    "", "vendid=0x2c9", "devid=0x1021", f"sysimgguid=0x{own}", f"caguid=0x{own}",
                    f'Ca\t1 "H-{own}"\t\t# "{device.name} {port.name}"',
                    f'[1]({own}) \t"S-{peer.guid:016x}"[{other.number}]\t\t# lid {1000 + cable} '
                    f'lmc 0 "MF0;{peer.name}:MQM9700/U1" lid {peer.lid} {width}',
                ]  # fmt: skip
            elif peer.tier:
                lines.append(
                    f'[{port.number}]\t"S-{peer.guid:016x}"[{other.number}]\t\t# '
                    f'"MF0;{peer.name}:MQM9700/U1" lid {peer.lid} {width}'
                )
            else:
                far = f"{peer.guid + other.number:016x}"
                lines.append(
                    f'[{port.number}]\t"H-{far}"[1]({far}) \t\t# "{peer.name} {other.name}" lid '
                    f"{1000 + cable} {width}"
                )
    return "\n".join(lines) + "\n"


def _write_ibdiagnet(site: Site, ledger: Ledger, runner: Device) -> None:
    topology = site.world.topology
    devices = topology.devices
    ports = 2 * len(topology.ends)
    moments = site.rounds(runner, ports, files=1)
    for device in devices:
        site.speed_told(device, moments)
    asked = [device for device in devices if device.tier]
    for device in asked:
        site.counters_told(device, moments)
    counted: dict[int, list[list[Fields]]] = {
        d.index: counted_fields(topology, ledger, d, moments, restart_of(site, d)) for d in asked
    }
    clock = site.clock(runner)
    for number, moment in enumerate(moments.tolist()):
        utc = np.datetime64(int(clock.epoch(moment)), "s").item()
        sections = {
            "RUN_INFO": [
                "IBDIAGNET_Version,IBDIAG_Version,IBDM_Version,IBIS_Version,Date,Args",
                f'"IBDIAGNET 2.10.0","IBDIAG 2.1.1","IBDM 2.1.1","IBIS 7.0.0","{utc} UTC +0000",""',
            ],
            "NODES": _nodes(site),
            "PORTS": _ports(site, moment),
            "LINKS": _links(site),
            "PM_INFO": [
                ",".join(["NodeGUID", "PortGUID", "PortNumber", *_PM_COLUMNS]),
                *(
                    f"0x{device.guid:016x},0x{device.guid:016x},{port.number},"
                    + ",".join(str(_shown(fields, column)) for column in _PM_COLUMNS.values())
                    for device in asked
                    for (_, _, port), fields in zip(
                        topology.ports_of(device.index), counted[device.index][number], strict=True
                    )
                ),
            ],
        }  # fmt: skip
        text = "# INDEX_TABLE offset:           0, line:           0\n\n\n" + "".join(
            f"START_{name}\n" + "\n".join(rows) + f"\nEND_{name}\n\n\n"
            for name, rows in sections.items()
        )
        local = clock.local(moment)
        site.write_run(f"ibdiagnet_{local:%Y%m%d_%H%M%S}", "ibdiagnet2.db_csv", text)


def _shown(fields: Fields, column: str) -> int:
    name, _, bits = column.partition(":")
    value = int(fields[name])
    return min(value, 2 ** int(bits) - 1) if bits else value


def _nodes(site: Site) -> list[str]:
    rows = ["NodeDesc,NumPorts,NodeType,ClassVersion,BaseVersion,SystemImageGUID,NodeGUID,PortGUID"]
    for device in site.world.topology.devices:
        if device.tier:
            guid = f"0x{device.guid:016x}"
            rows.append(f'"MF0;{device.name}:MQM9700/U1",65,2,1,1,{guid},{guid},{guid}')
            continue
        for _, _, port in site.world.topology.ports_of(device.index):
            guid = f"0x{device.guid + port.number:016x}"
            rows.append(f'"{device.name} {port.name}",1,1,1,1,{guid},{guid},{guid}')
    return rows


def _ends(site: Site, cable: int) -> list[tuple[int, int]]:
    """GUID and port number of both ends of a cable; each NIC is a node of its own."""
    topology = site.world.topology
    found = []
    for port in topology.ends[cable]:
        device = topology.devices[port.device]
        host = device.tier == 0
        found.append((device.guid + (port.number if host else 0), 1 if host else port.number))
    return found


def _ports(site: Site, moment: float) -> list[str]:
    topology = site.world.topology
    speed = {
        (device.index, port.number): gbps
        for device in topology.devices
        for (_, _, port), gbps in zip(
            topology.ports_of(device.index), speeds(site.world, device, moment), strict=True
        )
    }
    rows = ["NodeGuid,PortGuid,PortNum,LID,LinkWidthActv,LinkSpeedActv,PortPhyState,PortState"]
    for cable, ends in enumerate(topology.ends):
        for (guid, number), port in zip(_ends(site, cable), ends, strict=True):
            code = _SPEED_CODES[speed[port.device, port.number]]
            rows.append(f"0x{guid:016x},0x{guid:016x},{number},{1000 + cable},2,{code},5,4")
    return rows


def _links(site: Site) -> list[str]:
    rows = ["NodeGuid1,PortNum1,NodeGuid2,PortNum2"]
    for cable in range(len(site.world.topology.ends)):
        (low, a), (high, b) = _ends(site, cable)
        rows.append(f"0x{high:016x},{b},0x{low:016x},{a}")
    return rows
