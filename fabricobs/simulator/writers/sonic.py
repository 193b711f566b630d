"""What `show` commands print on a SONiC leaf: counters every round, the rest seldom or once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fabricobs.simulator.cluster import Integers
from fabricobs.simulator.collection import Reader, read_leaf
from fabricobs.simulator.counters import (
    DATA_PACKET_BYTES,
    DATA_PRIORITY,
    PRIORITIES,
    PortGroup,
    packets,
)
from fabricobs.simulator.effects import Floats
from fabricobs.simulator.fabric import Fabric
from fabricobs.simulator.facts import PauseStorm
from fabricobs.simulator.links import Links, links_of
from fabricobs.simulator.output import write_snapshots
from fabricobs.simulator.world import World
from fabricobs.simulator.writers.ruled import grouped, ruled_table
from fabricobs.simulator.writers.sonic_settings import ecn, lldp_table, pfc_priority

_RATE_SECONDS = 5.0  # over which the switch smooths its rates
_STATUS_SECONDS = 300.0  # between two looks at what seldom changes
_RESTORATION_SECONDS = 0.4  # of the watchdog
# The commands of a round run one after another.
_PFC_DELAY, _QUEUE_DELAY, _WATCHDOG_DELAY, _STATUS_DELAY, _SETTINGS_DELAY = 0.4, 0.9, 1.6, 2.1, 2.5

_MULTICAST_QUEUES = ("MC8", "MC9")
_QUEUES = (*(f"UC{priority}" for priority in range(PRIORITIES)), *_MULTICAST_QUEUES)
_MODULES = {
    100: "QSFP28 or later",
    200: "QSFP56",
    400: "QSFP-DD Double Density 8X Pluggable Transceiver",
    800: "OSFP 8X Pluggable Transceiver",
}


@dataclass(frozen=True, slots=True)
class _Port:
    """One port of a leaf; `nic` is the NIC cabled to it, None for an uplink."""

    name: str
    alias: str
    lanes: tuple[int, ...]
    gbps: int
    module: str
    nic: int | None


@dataclass(frozen=True, slots=True)
class _Leaf:
    number: int
    ports: tuple[_Port, ...]
    reader: Reader

    @property
    def names(self) -> list[str]:
        return [port.name for port in self.ports]


def write_switches(directory: Path, world: World, fabric: Fabric) -> None:
    """Write a folder a leaf, a file a command; each round is appended under the leaf's time."""
    links = links_of(world)
    watchdog = has_watchdog(world)
    for number in range(world.cluster.leaves):
        leaf = _leaf(world, fabric, number, links)
        device = leaf.reader.device
        folder = directory / device.name
        rounds = [
            ("interfaces_counters.txt.gz", 0.0, _interfaces(leaf, links)),
            ("pfc_counters.txt.gz", _PFC_DELAY, _pfc(leaf)),
            ("queue_counters.txt.gz", _QUEUE_DELAY, _queues(leaf)),
        ]
        if watchdog:
            rounds.append(("pfcwd_stats.txt.gz", _WATCHDOG_DELAY, _watchdog(leaf, world, fabric)))
        for command, delay, outputs in rounds:
            write_snapshots(folder / f"show_{command}", device.clock(delay), outputs)
        seldom = device.every(_STATUS_SECONDS)
        status = [_status(leaf, links, moment) for moment in seldom.moments + _STATUS_DELAY]
        write_snapshots(folder / "show_interfaces_status.txt", seldom.clock(_STATUS_DELAY), status)
        once = device.clock(_SETTINGS_DELAY)[:1]
        for command, output in (
            ("lldp_table", lldp_table(world.cluster, number)),
            ("pfc_priority", pfc_priority(world, number, leaf.names)),
            ("ecn", ecn(world, number)),
        ):
            write_snapshots(folder / f"show_{command}.txt", once, [output])


def has_watchdog(world: World) -> bool:
    """Whether the leaves have a PFC watchdog: where a storm lasts, nobody has switched it on."""
    return not any(isinstance(fact, PauseStorm) and not fact.watchdog for fact in world.facts)


def _leaf(world: World, fabric: Fabric, number: int, links: Links) -> _Leaf:
    cluster = world.cluster
    ports = [
        _Port(
            name=cluster.nic_port(nic),
            alias=cluster.nic_alias(nic),
            lanes=cluster.nic_lanes(nic),
            gbps=links.gbps[nic.index],
            module=_MODULES[cluster.shape.nic_gbps],
            nic=nic.index,
        )
        for nic in cluster.nics_of_leaf(number)
    ]
    ports += [
        _Port(
            name=cluster.uplink_port(uplink),
            alias=cluster.uplink_alias(uplink),
            lanes=cluster.uplink_lanes(uplink),
            gbps=cluster.shape.uplink_gbps,
            module=_MODULES[cluster.shape.uplink_gbps],
            nic=None,
        )
        for uplink in cluster.uplinks_of_leaf(number)
    ]
    return _Leaf(number, tuple(ports), read_leaf(world, fabric, number))


def _up(leaf: _Leaf, links: Links, moment: float) -> list[bool]:
    return [port.nic is None or links.is_up(port.nic, moment) for port in leaf.ports]


def _interfaces(leaf: _Leaf, links: Links) -> list[str]:
    received, sent = _traffic(leaf, PortGroup.rx_bytes), _traffic(leaf, PortGroup.tx_bytes)
    broken = leaf.reader.errors("crc").tolist()
    dropped = leaf.reader.errors("dropped").tolist()
    columns = ("OK", "BPS", "UTIL", "ERR", "DRP", "OVR")
    headers = ["IFACE", "STATE", *(f"{side}_{name}" for side in ("RX", "TX") for name in columns)]
    none = ["0"] * len(leaf.ports)
    tables = []
    for now, moment in enumerate(leaf.reader.device.moments.tolist()):
        state = ["U" if up else "D" for up in _up(leaf, links, moment)]
        rx = [*received[now], grouped(broken[now]), none, none]
        tx = [*sent[now], none, grouped(dropped[now]), none]
        tables.append(ruled_table(headers, [leaf.names, state, *rx, *tx]))
    return tables


def _traffic(
    leaf: _Leaf, counter: Callable[[PortGroup, Floats], Integers]
) -> list[tuple[list[str], list[str], list[str]]]:
    """Columns of packets, rate and utilisation one way, in each round."""
    reader, moments = leaf.reader, leaf.reader.device.moments
    line_rate = np.array([port.gbps for port in leaf.ports]) * 1e9 / 8
    counts = packets(reader.shown(counter)).sum(axis=1)
    rise = reader.at(counter, moments) - reader.at(counter, moments - _RATE_SECONDS)
    rates = rise.sum(axis=1) / _RATE_SECONDS
    rounds = zip(counts.tolist(), rates.tolist(), (rates / line_rate).tolist(), strict=True)
    return [
        (grouped(count), [_rate(value) for value in rate], [f"{value:.2%}" for value in share])
        for count, rate, share in rounds
    ]


def _rate(bytes_per_second: float) -> str:
    for threshold, unit, scale in ((10e6, "MB/s", 1e6), (10e3, "KB/s", 1e3)):
        if bytes_per_second > threshold:
            return f"{bytes_per_second / scale:.2f} {unit}"
    return f"{bytes_per_second:.2f} B/s"


def _pfc(leaf: _Leaf) -> list[str]:
    received = leaf.reader.shown(PortGroup.rx_pause_frames, _PFC_DELAY).tolist()
    sent = leaf.reader.shown(PortGroup.tx_pause_frames, _PFC_DELAY).tolist()
    classes = [f"PFC{priority}" for priority in range(PRIORITIES)]
    none = ["0"] * len(leaf.ports)
    names = leaf.names

    def table(title: str, frames: Sequence[int]) -> str:
        cells = [none] * PRIORITIES
        cells[DATA_PRIORITY] = grouped(frames)
        return ruled_table([title, *classes], [names, *cells])

    return [
        f"{table('Port Rx', rx)}\n{table('Port Tx', tx)}\n"
        for rx, tx in zip(received, sent, strict=True)
    ]


def _queues(leaf: _Leaf) -> list[str]:
    sent = leaf.reader.shown(PortGroup.tx_bytes, _QUEUE_DELAY)
    by_port = _by_port(sent), _by_port(packets(sent))
    dropped = leaf.reader.errors("dropped", _QUEUE_DELAY).tolist()
    headers = ["Port", "TxQ", "Counter/pkts", "Counter/bytes", "Drop/pkts", "Drop/bytes"]
    multicast = ["0"] * len(_MULTICAST_QUEUES)
    none = ["0"] * len(_QUEUES)
    names = [[name] * len(_QUEUES) for name in leaf.names]
    outputs = []
    for now, drops in enumerate(dropped):
        tables = ["For namespace :\n"]
        for index, name in enumerate(names):
            amounts, counts = by_port[0][now][index], by_port[1][now][index]
            lost, lost_bytes = none, none
            if drops[index]:
                lost, lost_bytes = [*none], [*none]
                lost[DATA_PRIORITY] = f"{drops[index]:,}"
                lost_bytes[DATA_PRIORITY] = f"{drops[index] * DATA_PACKET_BYTES:,}"
            cells = [grouped(counts) + multicast, grouped(amounts) + multicast]
            tables.append(ruled_table(headers, [name, _QUEUES, *cells, lost, lost_bytes]))
            tables.append("\n")
        outputs.append("".join(tables))
    return outputs


def _by_port(values: Integers) -> list[list[list[int]]]:
    """Values [M, 8, P] as lists, ports before priorities."""
    turned: list[list[list[int]]] = values.swapaxes(1, 2).tolist()
    return turned


def _watchdog(leaf: _Leaf, world: World, fabric: Fabric) -> list[str]:
    """`show pfcwd stats`; what the watchdog drops is what the queue drops."""
    device = leaf.reader.device
    nics = np.array([port.nic for port in leaf.ports if port.nic is not None], dtype=np.int64)
    storms = fabric.storms.of(nics)
    detected = device.shown(storms.at, _WATCHDOG_DELAY)
    restored = device.shown(lambda m: storms.at(m - _RESTORATION_SECONDS), _WATCHDOG_DELAY)
    dropped = leaf.reader.shown(lambda group, m: group.errors["dropped"].at(m), _WATCHDOG_DELAY)
    calm = len(leaf.ports) - len(nics)
    headers = ["QUEUE", "STATUS", "STORM DETECTED/RESTORED", "TX OK/DROP", "RX OK/DROP"]
    headers += ["TX LAST OK/DROP", "RX LAST OK/DROP"]
    queues = [f"{name}:{DATA_PRIORITY}" for name in leaf.names]
    none = ["0/0"] * len(leaf.ports)
    tables = []
    for began, ended, lost in zip(detected, restored, dropped[:, : len(nics)], strict=True):
        pairs = list(zip(began.tolist(), ended.tolist(), lost.tolist(), strict=True))
        status = ["stormed" if b > e else "operational" for b, e, _ in pairs]
        counts = [f"{b}/{e}" for b, e, _ in pairs]
        drops = [f"0/{d if b else 0}" for b, _, d in pairs]
        cells = [
            queues,
            status + ["operational"] * calm,
            counts + ["0/0"] * calm,
            drops + ["0/0"] * calm,
            none,
            none,
            none,
        ]
        tables.append(ruled_table(headers, cells))
    return tables


def _status(leaf: _Leaf, links: Links, moment: float) -> str:
    ports = leaf.ports
    up = ["up" if is_up else "down" for is_up in _up(leaf, links, moment)]
    columns = {
        "Interface": leaf.names,
        "Lanes": [",".join(map(str, port.lanes)) for port in ports],
        "Speed": [f"{port.gbps}G" for port in ports],
        "MTU": ["9100"] * len(ports),
        "FEC": ["rs"] * len(ports),
        "Alias": [port.alias for port in ports],
        "Vlan": ["routed"] * len(ports),
        "Oper": up,
        "Admin": ["up"] * len(ports),
        "Type": [port.module for port in ports],
        "Asym PFC": ["off"] * len(ports),
    }
    return ruled_table(list(columns), list(columns.values()))
