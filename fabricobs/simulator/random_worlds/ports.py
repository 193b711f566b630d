"""What command outputs say of a port: its counters, what follows from them, and its peer."""

from typing import Any

import numpy as np

from fabricobs.simulator.cluster import Integers
from fabricobs.simulator.effects import Floats
from fabricobs.simulator.random_worlds.faults import Fault
from fabricobs.simulator.random_worlds.ledger import CONTROL_PACKET_BYTES, Ledger
from fabricobs.simulator.random_worlds.topology import Device, Topology
from fabricobs.simulator.random_worlds.world import World

_TICKS_PER_MICROSECOND = 46  # of PortXmitWait
_LANE_GBPS = {100: 25.78125, 200: 53.125, 400: 106.25, 800: 212.5}
_IB_NAMES = {50: "4X FDR", 100: "4X EDR", 200: "4X HDR", 400: "4X NDR", 800: "4X XDR"}
_SMALL_MTU = 1500
_MARKING_BYTES = (1_048_576, 153_600, 524_288, 2_097_152, 10_485_760)  # where sites have it begin
_NEVER_MARKS = 536_870_912  # more than the buffer of a switch
_MARKS_EARLY = 20_480  # a few packets
_FIRMWARES = ("28.39.1002", "28.43.2026")

Fields = dict[str, Any]


def fixed_fields(world: World, device: Device) -> list[Fields]:
    """What never changes of a device's ports, in port order."""
    topology = world.topology
    found = []
    lossless, mtu, unwatched = _settings(world, device)
    marking = _marking_bytes(world, device)
    struck = {fault.name for fault in world.faults if _is_struck(fault, device)}
    # Of the first slot, where a server has one of eight lanes, or its NIC came up on half of them.
    narrow = {1} if topology.spec.narrow_slots or "narrow_slot" in struck else set[int]()
    for cable, side, port in topology.ports_of(device.index):
        other = topology.ends[cable][1 - side]
        peer = topology.devices[other.device]
        host = peer.tier == 0
        found.append(
            {
                "device": device.name,
                "guid": device.guid,
                "lid": device.lid if device.tier else 1000 + cable,
                "name": port.name,
                "alias": port.alias or port.name,
                "netdev": port.netdev,
                "number": port.number,
                "lanes": ",".join(map(str, port.lanes)),
                "peer": peer.name,
                "peer_port": other.netdev if host else other.name,
                "peer_capability": "S" if host else "BR",
                "peer_number": 1 if host else other.number,
                "peer_lid": 1000 + cable if host else peer.lid,
                "peer_node": f"{peer.name} {other.name}" if host else peer.name,
                "description": f"to-{peer.name}",
                "name_pad": " " * 8,
                "name_rule": "-" * 12,
                "port_guid": device.guid + port.number,
                "port_lid": 1000 + cable,
                "link_layer": "InfiniBand" if topology.spec.infiniband else "Ethernet",
                "firmware": _FIRMWARES[int(device.index in _old_firmware(world))],
                "prio": topology.spec.priority,
                "prio_map": 1 << topology.spec.priority,
                "zero": 0,
                "interface": 3 + port.number,
                "mtu": mtu,
                "pfc_row": "   ".join(str(int(p == lossless)) for p in range(8)),
                "pfc_words": " ".join(f"{p}:{'on' if p == lossless else 'off'}" for p in range(8)),
                "watched": cable not in unwatched,
                "ecn_begins": marking,
                "ecn_certain": 2 * marking,
                "slot": f"{0x1A + port.number:02x}",
                "bridge": f"{0x60 + port.number:02x}",
                "controller": "Infiniband" if topology.spec.infiniband else "Ethernet",
                "acs": "+" if "acs_on" in struck else "-",
                "width": "x8 (downgraded)" if port.number in narrow else "x16",
            }
        )
    return found


def _is_struck(fault: Fault, device: Device) -> bool:
    return fault.kind.strikes == "host" and device.tier == 0 and device.index in fault.parts


def unwatched_ports(world: World, fault: Fault) -> list[int]:
    """Cables of the ports that a leaf's PFC watchdog leaves out: the newer half of its NICs."""
    own = np.flatnonzero(world.topology.leaf == fault.parts[0]).tolist()
    return [int(cable) for cable in own[len(own) // 2 :]]


def _settings(world: World, device: Device) -> tuple[int, int, set[int]]:
    """Lossless priority of a device, MTU of its ports, and the cables its watchdog leaves out."""
    spec = world.spec
    lossless, mtu, unwatched = spec.priority, spec.host_mtu, set[int]()
    for fault in world.faults:
        if device.index not in fault.parts:
            continue
        if fault.name == "other_priority":
            lossless = spec.priority + 1
        elif fault.name == "small_mtu":
            mtu = _SMALL_MTU
        elif fault.name == "no_watchdog":
            unwatched = set(unwatched_ports(world, fault))
    return lossless, mtu, unwatched


def _marking_bytes(world: World, device: Device) -> int:
    """Bytes in a queue of a switch from which on it marks packets."""
    if any(f.kind.does == "unmarked" and device.index in f.parts for f in world.faults):
        return _NEVER_MARKS
    if any(f.kind.does == "eager" and device.index in f.parts for f in world.faults):
        return _MARKS_EARLY
    random = world.spec.stream("ecn", device.index)
    various = world.spec.ecn_thresholds == "various"
    return int(random.choice(_MARKING_BYTES)) if various else _MARKING_BYTES[0]


def speeds(world: World, device: Device, moment: float) -> list[int]:
    """Speed in Gb/s of each port of a device at a moment."""
    narrow = {
        cable
        for fault in world.faults
        if fault.kind.does == "half_speed" and acts_at(world, fault.acts, moment)
        for cable in fault.parts
    }
    ports = world.topology.ports_of(device.index)
    return [port.gbps // 2 if cable in narrow else port.gbps for cable, _, port in ports]


def acts_at(world: World, acts: np.ndarray, moment: float) -> bool:
    """Whether a fault acts in the step made at a moment, or in the nearest."""
    begins = np.concatenate([course.begin for course in world.courses])
    place = max(0, int(np.searchsorted(begins, moment, side="right")) - 1)
    return bool(acts[world.steps_made[place]])


def counted_fields(
    topology: Topology, ledger: Ledger, device: Device, moments: Floats, restart: float | None
) -> list[list[Fields]]:
    """The counters of a device's ports at each moment [M], as the device shows them."""
    shown = ledger.read(device.index, moments)
    if restart is not None:
        begun = ledger.read(device.index, np.array([restart]))
        again = (moments >= restart)[:, None]
        shown = {name: np.where(again, v - begun[name], v) for name, v in shown.items()}
    shown |= _derived(topology, device, moments, shown)
    names = list(shown)
    stacked = np.stack([shown[name] for name in names], axis=-1).tolist()
    return [[dict(zip(names, port, strict=True)) for port in row] for row in stacked]


def _derived(
    topology: Topology, device: Device, moments: Floats, shown: dict[str, Integers]
) -> dict[str, Integers]:
    found = {
        "tx_words": shown["tx_bytes"] // 4,
        "rx_words": shown["rx_bytes"] // 4,
        "xmit_wait": shown["rx_pause_us"] * _TICKS_PER_MICROSECOND,
        "xmit_wait32": np.minimum(shown["rx_pause_us"] * _TICKS_PER_MICROSECOND, 2**32 - 1),
        "downs8": np.minimum(shown["downs"], 255),
        "recoveries8": np.minimum(shown["recoveries"], 255),
        "changes": 2 * shown["downs"],
        "tx_drop_bytes": shown["tx_drops"] * 4096,
        "marked_bytes": shown["marked"] * 4096,
    }
    if "sent_again" in shown:
        found["sent_again_bytes"] = shown["sent_again"] * 4096
    for way in ("rx", "tx"):
        control = shown[f"{way}_bytes"] - shown[f"{way}_data_bytes"]
        found[f"{way}_control_bytes"] = control
        aside = shown[f"{way}_aside_bytes"]
        found[f"{way}_control_packets"] = (control - aside) // CONTROL_PACKET_BYTES + aside // 4096
        found[f"{way}_data_packets"] = shown[f"{way}_data_bytes"] // 4096
        rises = np.diff(shown[f"{way}_bytes"], axis=0, prepend=shown[f"{way}_bytes"][:1])
        seconds = np.diff(moments, prepend=moments[0] - 1)[:, None]
        found[f"{way}_rate"] = (np.maximum(rises, 0) / np.maximum(seconds, 1e-3)).astype(np.int64)
        for priority in (0, 3, 4, 5):
            own = int(priority == topology.spec.priority)
            found[f"{way}_pfc{priority}"] = own * shown[f"{way}_pauses"]
            found[f"{way}_pause_us{priority}"] = own * shown[f"{way}_pause_us"]
    return found


def speed_fields(gbps: int, counted: Fields, asked: int) -> Fields:
    """What follows from a port's speed; `asked` is the speed it was bought for."""
    return {
        "gbps": gbps,
        "mbps": gbps * 1000,
        "bits": gbps * 10**9,
        "bytes_per_second": gbps * 1.25e8,
        "lane_gbps": _LANE_GBPS.get(gbps, 14.0625),
        "hint": f"Could be {_LANE_GBPS[asked]} Gbps" if gbps < asked else "",
        "rate_text": f"{gbps} Gb/sec ({_IB_NAMES.get(gbps, '4X')})",
        "state": "U",
    } | {
        f"{way}_{name}": value
        for way in ("rx", "tx")
        if f"{way}_rate" in counted
        for name, value in {
            "speed": _speed_text(counted[f"{way}_rate"]),
            "util": counted[f"{way}_rate"] * 8e-7 / gbps / 10,
        }.items()
    }


def _speed_text(rate: float) -> str:
    """Bytes a second as SONiC's commands print them."""
    if rate > 10e6:
        return f"{rate / 1e6:.2f} MB/s"
    return f"{rate / 1e3:.2f} KB/s" if rate > 10e3 else f"{rate:.2f} B/s"


def _old_firmware(world: World) -> set[int]:
    """Hosts on the older firmware: those of a fault that came as a batch, else a few by chance."""
    struck = {
        part
        for f in world.faults
        if f.kind.strikes == "host" and len(f.parts) > 2
        for part in f.parts
    }
    if struck:
        return struck
    random = world.spec.stream("firmware")
    return set(np.flatnonzero(random.random_sample(world.topology.hosts) < 0.1).tolist())
