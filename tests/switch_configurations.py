"""Configurations of drawn switches as EOS, NX-OS and NVUE document them, some of them odd.

Healthy switches of all vendors are set alike, so that they can stand in one site.
"""

import random
from dataclasses import dataclass, field
from pathlib import Path

PORTS = 12
STAMP = 1741075200
VENDORS = ("eos", "nxos", "nvue", "nvue commands")
FIELDS = "DST_IP, L4_DST_PORT, L4_SRC_PORT, SRC_IP"
PFC = "PFC priorities of switch ports: lossless_priorities"
WATCHDOG = "PFC watchdog: watchdog"
MINIMUM = "ECN thresholds: queue 3 min_threshold"
MAXIMUM = "ECN thresholds: queue 3 max_threshold"
ECN = "ECN thresholds: queue 3 ecn"
TRUST = "trust of switch ports: trust"
HASH = "hash fields: ECMP"
CHECKS = (PFC, WATCHDOG, MINIMUM, MAXIMUM, ECN, TRUST, HASH, "MTU", "DSCP maps: DSCP 26")

Odd = tuple[str, str, str]  # the check, the part, its value


@dataclass
class Port:
    """What one port is set to; None: its configuration says nothing of it."""

    name: str
    priorities: str | None = "3"
    watchdog: bool | None = True
    minimum: int = 150_000
    trust: str = "dscp"
    mtu: int | None = 9214


@dataclass
class Switch:
    """What one switch is set to."""

    name: str
    vendor: str
    ports: list[Port] = field(default_factory=list)
    priorities: str = "3"
    minimum: int = 150_000
    maximum: int = 1_500_000
    roce_class: str = "3"
    hashes_ports: bool = True


def draw_switches(vendors: list[str]) -> list[Switch]:
    """Return healthy switches of these vendors."""
    switches = [Switch(f"leaf{n}", vendor) for n, vendor in enumerate(vendors, 1)]
    for switch in switches:
        name = "swp{}" if switch.vendor.startswith("nvue") else "Ethernet1/{}"
        switch.ports = [Port(name.format(n)) for n in range(1, PORTS + 1)]
    return switches


def make_odd(switch: Switch, port: Port, kind: str) -> list[Odd]:
    """Set a port, or what the vendor sets for a whole switch, oddly; return what is to be told."""
    part = f"{switch.name} {port.name}"
    if kind == "no PFC":
        port.priorities = None
        unwatched = [(WATCHDOG, part, "not set")] if switch.vendor == "eos" else []
        return [(PFC, part, "none" if switch.vendor == "nxos" else "not set"), *unwatched]
    if kind == "priority" and switch.vendor == "nxos":
        switch.priorities = "4"
        return [(PFC, f"{switch.name} {each.name}", "4") for each in switch.ports]
    if kind == "priority":
        port.priorities = "4"
        return [(PFC, part, "4")]
    if kind == "watchdog off":
        port.watchdog = False
        return [(WATCHDOG, part, "off")]
    if kind == "thresholds" and switch.vendor == "nxos":
        switch.minimum = 300_000_000
        return [(check, switch.name, "300000000") for check in (MINIMUM, MAXIMUM)]
    if kind == "thresholds":
        port.minimum = 300_000_000
        return [(check, part, "300000000") for check in (MINIMUM, MAXIMUM)]
    if kind == "mtu":
        port.mtu = 1500
        return [("MTU", part, "1500")]
    if kind == "no mtu":
        port.mtu = None
        return [("MTU", part, "not set")]
    if kind == "class":
        switch.roce_class = "0"
        return [("DSCP maps: DSCP 26", switch.name, "0")]
    assert kind == "hash"
    switch.hashes_ports = False
    left = "DST_IP, SRC_IP" if switch.vendor == "nxos" else "DST_IP, L4_DST_PORT, SRC_IP"
    return [(HASH, switch.name, left)]


KINDS = ("no PFC", "priority", "watchdog off", "thresholds", "mtu", "no mtu", "class", "hash")


def write_switch(folder: Path, switch: Switch, draw: random.Random) -> None:
    """Write the configuration of a switch as it is collected."""
    place = folder / switch.name
    place.mkdir(parents=True)
    text = {"eos": _eos, "nxos": _nxos, "nvue": _nvue, "nvue commands": _nvue_commands}[
        switch.vendor
    ](switch, draw)
    (place / f"configuration-{STAMP}.txt").write_text(text)


def _eos(switch: Switch, draw: random.Random) -> str:
    fields = "source-ip destination-ip destination-port"
    lines = [
        f"{switch.name}#show running-config",
        "! Command: show running-config",
        f"! device: {switch.name} (DCS-7060DX5-64S, EOS-4.31.2F)",
        "!",
        f"hostname {switch.name}",
        "ntp server 192.0.2.9",
        "!",
        "priority-flow-control pause watchdog default timeout 0.2",
        "priority-flow-control pause watchdog default recovery-time 0.4",
        "!",
        f"qos map dscp 26 to traffic-class {switch.roce_class}",
        "qos map dscp 48 to traffic-class 6",
        "!",
        f"ip load-sharing trident fields ip {fields}" + " source-port" * switch.hashes_ports,
    ]
    named = draw.random() < 0.5  # profiles, or everything at the port
    profiles = dict[tuple[str, ...], str]()
    stanzas: list[str] = []
    for port in switch.ports:
        body = _eos_port(switch, port)
        stanzas += ["!", f"interface {port.name}", f"   description to gpu-{port.name[-1]}"]
        stanzas += [f"   mtu {port.mtu}"] if port.mtu is not None else []
        stanzas += ["   no switchport"]
        if named:
            name = profiles.setdefault(tuple(body), f"ROCE{len(profiles)}")
            stanzas.append(f"   service-profile {name}")
        else:
            stanzas += body
    for body_lines, name in profiles.items():
        lines += ["!", f"qos profile {name}", *body_lines]
    lines += [*stanzas, "!", "interface Ethernet60/1", "!", "interface Ethernet61/1"]
    return "\n".join([*lines, "   shutdown", "!", "router bgp 65001", "   maximum-paths 8", "end"])


def _eos_port(switch: Switch, port: Port) -> list[str]:
    lines = [f"   qos trust {port.trust}"]
    if port.priorities is not None:
        lines += ["   priority-flow-control on"]
        lines += [f"   priority-flow-control priority {port.priorities} no-drop"]
    if port.watchdog is False:
        lines.append("   no priority-flow-control pause watchdog")
    threshold = f"minimum-threshold {port.minimum // 1000} kbytes"
    maximum = f"maximum-threshold {max(switch.maximum, port.minimum) // 1000} kbytes"
    lines += ["   !", "   uc-tx-queue 3", "      bandwidth percent 80"]
    return [*lines, f"      random-detect ecn {threshold} {maximum} max-mark-probability 100"]


def _nxos(switch: Switch, draw: random.Random) -> str:
    ports = " port source-destination" if switch.hashes_ports else ""
    maximum = max(switch.maximum, switch.minimum) // 1000
    lines = [
        "!Command: show running-config",
        "",
        "version 10.3(4a) Bios:version 05.47",
        f"hostname {switch.name}",
        "feature bgp",
        "class-map type qos match-all ROCE",
        "  match dscp 26",
        "policy-map type qos ROCE-IN",
        "  class ROCE",
        f"    set qos-group {switch.roce_class}",
        "policy-map type network-qos ROCE-NQ",
        "  class type network-qos c-8q-nq3",
        "    mtu 9216",
        f"    pause pfc-cos {switch.priorities}",
        "policy-map type queuing ROCE-OUT",
        "  class type queuing c-out-8q-q3",
        f"    random-detect minimum-threshold {switch.minimum // 1000} kbytes maximum-threshold "
        f"{maximum} kbytes drop-probability 100 weight 0 ecn",
        "system qos",
        "  service-policy type network-qos ROCE-NQ",
        "  service-policy type queuing output ROCE-OUT",
        "priority-flow-control watch-dog-interval on",
        f"ip load-sharing address source-destination{ports} universal-id 7",
        "",
    ]
    for port in switch.ports:
        mode = "off" if port.priorities is None else "on"
        settings = [
            "  service-policy type qos input ROCE-IN",
            f"  priority-flow-control mode {mode}",
            f"  priority-flow-control watch-dog-interval {'on' if port.watchdog else 'off'}",
        ]
        draw.shuffle(settings)
        settings += [f"  mtu {port.mtu}"] if port.mtu is not None else []
        lines += [f"interface {port.name}", *settings, "  no shutdown", ""]
    lines += ["interface Ethernet1/60", "", "interface mgmt0", "  vrf member management"]
    return "\n".join(lines)


def _grouped(switch: Switch) -> list[tuple[str, Port]]:
    """Return the ports that are set alike under one name, as NVUE prints them."""
    groups: list[tuple[list[int], Port]] = []
    for number, port in enumerate(switch.ports, 1):
        same = (p for p in groups if {**vars(p[1]), "name": ""} == {**vars(port), "name": ""})
        found = next(same, None)
        if found is None:
            groups.append(([number], port))
        else:
            found[0].append(number)
    return [(_ranges(numbers), port) for numbers, port in groups]


def _ranges(numbers: list[int]) -> str:
    pieces: list[list[int]] = []
    for number in numbers:
        if pieces and pieces[-1][-1] == number - 1:
            pieces[-1].append(number)
        else:
            pieces.append([number])
    return "swp" + ",".join(f"{p[0]}-{p[-1]}" if len(p) > 1 else f"{p[0]}" for p in pieces)


def _tree(switch: Switch) -> dict[str, object]:
    interfaces = dict[str, object]()
    thresholds = dict[str, object]()
    classes = dict[str, object]()
    for ports, port in _grouped(switch):
        state = "enable" if port.watchdog else "disable"
        qos: dict[str, object] = {
            "congestion-control": {"profile": f"ecn{port.minimum}"},
            "pfc-watchdog": {"state": state},
        }
        thresholds[f"ecn{port.minimum}"] = {
            "traffic-class": {
                "'3'": {
                    "ecn": "enable",
                    "max-threshold": max(switch.maximum, port.minimum),
                    "min-threshold": port.minimum,
                    "probability": 100,
                }
            }
        }
        if port.priorities is not None:
            qos["pfc"] = {"profile": f"pfc{port.priorities}"}
            classes[f"pfc{port.priorities}"] = {"switch-priority": {f"'{port.priorities}'": "{}"}}
        link = {"link": {"mtu": port.mtu}} if port.mtu is not None else {}
        interfaces[ports] = {**link, "qos": qos, "type": "swp"}
    source = "on" if switch.hashes_ports else "off"
    fields = {"destination-ip": "on", "destination-port": "on", "source-ip": "on"}
    dscps = {"'26'": {"switch-priority": switch.roce_class}}
    mapping = {"default-global": {"dscp": dscps, "trust": "l3"}}
    return {
        "interface": interfaces,
        "qos": {"congestion-control": thresholds, "mapping": mapping, "pfc": classes},
        "system": {
            "forwarding": {"ecmp-hash": {**fields, "source-port": source}},
            "hostname": switch.name,
        },
    }


def _nvue(switch: Switch, draw: random.Random) -> str:
    def lines(tree: dict[str, object], indent: int) -> list[str]:
        found = []
        for key, value in tree.items():
            if isinstance(value, dict):
                found += [" " * indent + f"{key}:", *lines(value, indent + 2)]
            else:
                found.append(" " * indent + f"{key}: {value}")
        return found

    header = ["- header:", "    model: SN5600", "    nvue-api-version: nvue_v1", "- set:"]
    return "\n".join([*header, *lines(_tree(switch), 4)])


def _nvue_commands(switch: Switch, draw: random.Random) -> str:
    def commands(tree: dict[str, object], above: str) -> list[str]:
        found = []
        for key, value in tree.items():
            path = f"{above} {key.strip(chr(39))}"
            if isinstance(value, dict):
                found += commands(value, path)
            else:
                found.append(path if value == "{}" else f"{path} {value}")
        return found

    return "\n".join(commands(_tree(switch), "nv set"))
