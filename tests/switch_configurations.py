"""Configurations of drawn switches as EOS, NX-OS and NVUE document them, some of them odd.

Healthy switches of all vendors are set alike, so that they can stand in one site.
"""

import json
import random
import re
from dataclasses import dataclass, field
from pathlib import Path

PORTS = 12
STAMP = 1741075200
VENDORS = ("eos", "nxos", "nvue", "nvue commands", "nvue json", "sonic")
JUNOS = ("junos", "junos set")
# Their thresholds are percentages: switches of other vendors have no such values.
IN_PERCENT = (*JUNOS, "srl")
# Whose trust, classifiers and hash are read.
CLASSIFYING = (*VENDORS, *JUNOS)
PORT_NAMES = {"sonic": "Ethernet{}", "junos": "et-0/0/{}", "srl": "ethernet-1/{}", "nvue": "swp{}"}
FIELDS = "DST_IP, L4_DST_PORT, L4_SRC_PORT, SRC_IP"
PFC = "PFC priorities of switch ports: lossless_priorities"
WATCHDOG = "PFC watchdog: watchdog"
MINIMUM = "ECN thresholds: queue 3 min_threshold"
MAXIMUM = "ECN thresholds: queue 3 max_threshold"
ECN = "ECN thresholds: queue 3 ecn"
TRUST = "trust of switch ports: trust"
HASH = "hash fields: ECMP"
ADAPTIVE = "adaptive routing: adaptive_routing"
CHECKS = (ADAPTIVE, PFC, WATCHDOG, MINIMUM, MAXIMUM, ECN, TRUST, HASH, "MTU", "DSCP maps: DSCP 26")

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
    tells_hash: bool = True
    adapts: bool = True


def draw_switches(vendors: list[str]) -> list[Switch]:
    """Return healthy switches of these vendors."""
    switches = [Switch(f"leaf{n}", vendor) for n, vendor in enumerate(vendors, 1)]
    for switch in switches:
        name = PORT_NAMES.get(switch.vendor.split()[0], "Ethernet1/{}")
        switch.ports = [Port(name.format(n)) for n in range(1, PORTS + 1)]
    return switches


def make_odd(switch: Switch, port: Port, kind: str) -> list[Odd]:
    """Set a port, or what the vendor sets for a whole switch, oddly; return what is to be told."""
    part = f"{switch.name} {port.name}"
    if kind == "no PFC":
        port.priorities = None
        with_pfc = ("eos", *JUNOS)  # the watchdog is one of PFC
        unwatched = [(WATCHDOG, part, "not set")] if switch.vendor in with_pfc else []
        tells_none = switch.vendor in ("nxos", "srl")
        return [(PFC, part, "none" if tells_none else "not set"), *unwatched]
    if kind == "priority" and switch.vendor == "nxos":
        switch.priorities = "4"
        return [(PFC, f"{switch.name} {each.name}", "4") for each in switch.ports]
    if kind == "priority":
        port.priorities = "4"
        return [(PFC, part, "4")]
    if kind == "watchdog off":
        port.watchdog = False
        return [(WATCHDOG, part, "not set" if switch.vendor in ("sonic", *JUNOS) else "off")]
    if kind == "thresholds" and switch.vendor == "nxos":
        switch.minimum = 300_000_000
        return [(check, switch.name, "300000000") for check in (MINIMUM, MAXIMUM)]
    if (
        kind in ("class", "hash", "no hash", "no adaptive routing")
        and switch.vendor not in CLASSIFYING
    ):
        return []
    if kind == "thresholds" and switch.vendor in IN_PERCENT:
        port.minimum = 98
        return [(MINIMUM, part, "98 %"), (MAXIMUM, part, "98 %")]
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
    if kind == "no adaptive routing":
        switch.adapts = switch.vendor == "sonic"  # which tells none
        return [] if switch.adapts else [(ADAPTIVE, switch.name, "not set")]
    if kind == "no hash":
        switch.tells_hash = switch.vendor in JUNOS  # whose default is known
        return [] if switch.tells_hash else [(HASH, switch.name, "not set")]
    assert kind == "hash"
    switch.hashes_ports = False
    left = "DST_IP, SRC_IP" if switch.vendor == "nxos" else "DST_IP, L4_DST_PORT, SRC_IP"
    if switch.vendor in JUNOS:
        left = "DST_IP, IP_PROTOCOL, L4_DST_PORT, SRC_IP"
    return [(HASH, switch.name, left)]


KINDS = (
    "no PFC",
    "priority",
    "watchdog off",
    "thresholds",
    "mtu",
    "no mtu",
    "class",
    "hash",
    "no hash",
    "no adaptive routing",
)


def write_switch(folder: Path, switch: Switch, draw: random.Random) -> None:
    """Write the configuration of a switch as it is collected."""
    place = folder / switch.name
    place.mkdir(parents=True)
    ending = "json" if switch.vendor in ("sonic", "srl", "nvue json") else "txt"
    text = WRITERS[switch.vendor](switch, draw)
    (place / f"configuration-{STAMP}.{ending}").write_text(text)


def write_bare_switch(folder: Path, switch: Switch, draw: random.Random) -> None:
    """Write the configuration of a switch in whose ports nobody set anything but the MTU."""
    text = WRITERS[switch.vendor](switch, draw)
    if switch.vendor == "nvue json":
        header, tree = json.loads(text)
        del tree["set"]["qos"]
        for port in tree["set"]["interface"].values():
            port.pop("qos")
        text = json.dumps([header, tree], indent=2)
    elif switch.vendor in ("sonic", "srl"):
        kept = ("DEVICE_METADATA", "PORT", "SWITCH_HASH", "system", "interface")
        kept += ("srl_nokia-interfaces:interface",)
        text = json.dumps({k: v for k, v in json.loads(text).items() if k in kept}, indent=4)
    else:
        text = "\n".join(
            line for line in text.splitlines() if not _QOS[switch.vendor.split()[0]].search(line)
        )
    (file,) = (folder / switch.name).iterdir()
    file.write_text(text)


# Lines of QoS; of Junos and NVUE the words that nothing else holds.
_QOS = {
    "eos": re.compile(
        r"qos|priority-flow|tx-queue|random-detect|bandwidth percent|service-profile|^   !$"
    ),
    "nxos": re.compile(
        r"qos|ROCE|priority-flow|random-detect|class type|    set|pause|    mtu|system"
    ),
    "nvue": re.compile(
        r"qos|profile|congestion|pfc|traffic-class|threshold|probability|'\d'|'26'|ecn|mapping|"
        r"default-global|dscp|switch-priority|trust|state|watchdog"
    ),
    "junos": re.compile(
        r"class-of-service|classif|forwarding-class|loss-priority|drop-|dp\d\d|interpolate|"
        r"fill-level|NO-LOSS|best-effort|congestion|cnp|pfc|input|dscp|ieee|code-point|"
        r"scheduler|sm\d\d|s\d\d |explicit|unit \*|all \{|et-\*"
    ),
}


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
    ]
    if switch.tells_hash:
        source = " source-port" * switch.hashes_ports
        lines.append(f"ip load-sharing trident fields ip {fields}{source}")
    if switch.adapts:
        lines += ["!", "load-balance cluster", "   load-balance method flow round-robin"]
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
        f"vdc {switch.name} id 1",
        "  limit-resource vlan minimum 16 maximum 4094",
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
        *[f"ip load-sharing address source-destination{ports} universal-id 7"] * switch.tells_hash,
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
    lines += ["hardware profile dlb", "  mode flowlet"] * switch.adapts
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
    hashed = {**fields, "source-port": source}
    dscps = {"'26'": {"switch-priority": switch.roce_class}}
    mapping = {"default-global": {"dscp": dscps, "trust": "l3"}}
    return {
        "interface": interfaces,
        "qos": {"congestion-control": thresholds, "mapping": mapping, "pfc": classes},
        "system": {
            **({"forwarding": {"ecmp-hash": hashed}} if switch.tells_hash else {}),
            "hostname": switch.name,
        },
        **({"router": {"adaptive-routing": {"enable": "on"}}} if switch.adapts else {}),
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


def _sonic(switch: Switch, draw: random.Random) -> str:
    """Return CONFIG_DB, with names of maps and lists of ports as old or new releases write them."""
    is_old = draw.random() < 0.5

    def named(table: str, name: str) -> str:
        return f"[{table}|{name}]" if is_old else name

    queues = dict[str, dict[str, str]]()
    profiles = dict[str, dict[str, str]]()
    for port in switch.ports:
        profile = f"LOSSLESS_{port.minimum}"
        queues[f"{port.name}|3"] = {"wred_profile": named("WRED_PROFILE", profile)}
        queues[f"{port.name}|0-2"] = {"scheduler": "scheduler.0"}
        profiles[profile] = {
            "ecn": "ecn_all",
            "green_min_threshold": f"{port.minimum}",
            "green_max_threshold": f"{max(switch.maximum, port.minimum)}",
            "green_drop_probability": "100",
            "red_min_threshold": "1",
        }
    dscps = {f"{d}": "1" for d in range(64)} | {"26": switch.roce_class}
    fields = ["DST_IP", "SRC_IP", "L4_DST_PORT"] + ["L4_SRC_PORT"] * switch.hashes_ports
    maps = {"dscp_to_tc_map": named("DSCP_TO_TC_MAP", "AZURE"), "tc_to_pg_map": "AZURE"}
    config = {
        "DEVICE_METADATA": {"localhost": {"hostname": switch.name}},
        "DSCP_TO_TC_MAP": {"AZURE": dscps, "UNUSED": {"26": "7"}},
        "PFC_WD": {
            **{p.name: WATCHED for p in switch.ports if p.watchdog},
            "GLOBAL": {"POLL_INTERVAL": "200"},
        },
        "PORT": {
            p.name: {"admin_status": "up"} | ({"mtu": f"{p.mtu}"} if p.mtu is not None else {})
            for p in switch.ports
        }
        | {"Ethernet508": {"lanes": "508"}, "Ethernet510": {"admin_status": "down"}},
        "PORT_QOS_MAP": {
            p.name: maps | ({"pfc_enable": p.priorities} if p.priorities is not None else {})
            for p in switch.ports
        },
        "QUEUE": queues,
        **({"SWITCH_HASH": {"GLOBAL": {"ecmp_hash": fields}}} if switch.tells_hash else {}),
        "WRED_PROFILE": profiles,
    }
    return json.dumps(config, indent=4)


WATCHED = {"action": "drop", "detection_time": "200", "restoration_time": "400"}


def _junos_tree(switch: Switch, draw: random.Random) -> dict[str, object]:
    """Return a Junos configuration as a tree; a wildcard may set what most ports share."""
    bits = "011010"
    by_dscp = switch.roce_class == "3" and draw.random() < 0.5
    profiles = dict[str, object]()
    drops = dict[str, object]()
    schedulers = dict[str, object]()
    scheduler_maps = dict[str, object]()
    ports = dict[str, object]()
    interfaces = dict[str, object]()
    for port in switch.ports:
        low, high = (98, 98) if port.minimum == 98 else (55, 90)
        drops[f"dp{low}"] = {
            "interpolate": {
                f"fill-level [ {low} {high} ]": None,
                "drop-probability [ 0 100 ]": None,
            }
        }
        schedulers[f"s{low}"] = {
            f"drop-profile-map loss-priority any protocol any drop-profile dp{low}": None,
            "explicit-congestion-notification": None,
        }
        scheduler_maps[f"sm{low}"] = {f"forwarding-class NO-LOSS scheduler s{low}": None}
        settings: dict[str, object] = {}
        if port.priorities is not None:
            name = f"cnp-{port.priorities}-{'' if port.watchdog else 'un'}watched"
            pcp = {"ieee-802.1": {f"code-point {int(port.priorities):03b}": {"pfc": None}}}
            dscp = {"dscp": {f"code-point {bits}": {"pfc": None}}}
            profiles[name] = ({"pfc-watchdog": None} if port.watchdog else {}) | {
                "input": dscp if by_dscp and port.priorities == "3" else pcp
            }
            settings[f"congestion-notification-profile {name}"] = None
        settings[f"scheduler-map sm{low}"] = None
        ports[port.name] = settings
        mtu = {f"mtu {port.mtu}": None} if port.mtu is not None else {}
        interfaces[port.name] = mtu | {"unit 0": {"family inet": {"mtu 9170": None}}}
    classifier = {"unit *": {"classifiers": {"dscp roce": None}}}
    shared = max(ports.values(), key=list(ports.values()).count)
    if draw.random() < 0.5 and all(p == shared or len(p) == len(shared) for p in ports.values()):  # type: ignore[arg-type]
        ports = {n: p for n, p in ports.items() if p != shared} | {"et-*": shared | classifier}  # type: ignore[operator]
    else:
        ports["all"] = classifier
    of_dscp = "NO-LOSS" if switch.roce_class == "3" else "best-effort"
    left_out = {} if switch.hashes_ports else {"no-l4-source-port": None}
    return {
        "version 23.4X100-D20.7-EVO": None,
        "system": {f"host-name {switch.name}": None},
        "interfaces": interfaces | {"et-0/0/60": {"disable": None}, "irb": {"mtu 1500": None}},
        "forwarding-options": {
            "enhanced-hash-key": ({"inet": left_out} if left_out else {})
            | (
                {"ecmp-dlb": {"flowlet": {"inactivity-interval 128": None}}}
                if switch.adapts
                else {}
            )
        },
        "class-of-service": {
            "classifiers": {
                "dscp roce": {
                    f"forwarding-class {of_dscp}": {f"loss-priority low code-points {bits}": None}
                }
            },
            "drop-profiles": drops,
            "forwarding-classes": {
                "class best-effort queue-num 0": None,
                "class NO-LOSS queue-num 3 no-loss pfc-priority 3": None,
            },
            "congestion-notification-profile": profiles,
            "interfaces": ports,
            "scheduler-maps": scheduler_maps,
            "schedulers": schedulers,
        },
    }


def _junos(switch: Switch, draw: random.Random) -> str:
    def lines(tree: dict[str, object], indent: int) -> list[str]:
        found = []
        for key, value in tree.items():
            if isinstance(value, dict):
                found += [f"{' ' * indent}{key} {{", *lines(value, indent + 4), f"{' ' * indent}}}"]
            else:
                found.append(f"{' ' * indent}{key};")
        return found

    prompt = f"admin@{switch.name}> show configuration | no-more"
    return "\n".join([prompt, *lines(_junos_tree(switch, draw), 0)])


def _junos_set(switch: Switch, draw: random.Random) -> str:
    def commands(tree: dict[str, object], above: str) -> list[str]:
        found = []
        for key, value in tree.items():
            if isinstance(value, dict):
                found += commands(value, f"{above} {key}")
                continue
            name, *values = key.replace("[", " ").replace("]", " ").split()
            is_list = "[" in key
            found += [f"{above} {name} {v}" for v in values] if is_list else [f"{above} {key}"]
        return found

    return "\n".join(commands(_junos_tree(switch, draw), "set"))


def _srl(switch: Switch, draw: random.Random) -> str:
    """Return `info | as json`, with names as the command line or as the file writes them."""
    prefix = draw.choice([("", ""), ("srl_nokia-interfaces:", "srl_nokia-qos:")])
    ports = list[dict[str, object]]()
    slopes = dict[int, tuple[int, int]]()
    mappings = dict[str, dict[str, object]]()
    for port in switch.ports:
        low, high = (98, 98) if port.minimum == 98 else (30, 85)
        slopes[low] = (low, high)
        name = f"pfc-{port.priorities}-{port.watchdog}"
        mappings[name] = {
            "name": name,
            "pfc-priority": [
                {"index": n, "pfc-enable": f"{n}" == port.priorities} for n in range(8)
            ],
            "received-pfc-pause-frames": {
                "deadlock": {"enable": bool(port.watchdog), "detection-timer": 750}
            },
        }
        queue = {"queue-name": "unicast-3", "queue-management-profile": f"ecn-{low}"}
        ports.append(
            {
                "interface-id": port.name,
                "pfc": {"pfc-enable": port.priorities is not None, "pfc-mapping-profile": name},
                "output": {"queues": {"queue": [queue]}},
            }
        )
    managed = [
        {
            "name": f"ecn-{low}",
            "wred": {
                "wred-slope": [
                    {
                        "traffic-type": "all",
                        "enable-ecn": True,
                        "min-threshold-percent": low,
                        "max-threshold-percent": high,
                        "max-drop-probability-percent": 100,
                    },
                ]
            },
        }
        for low, high in slopes.values()
    ]
    config = {
        f"{prefix[0]}interface": [
            {"name": p.name, "admin-state": "enable"}
            | ({"mtu": p.mtu} if p.mtu is not None else {})
            for p in switch.ports
        ]
        + [{"name": "ethernet-1/60", "admin-state": "disable"}],
        f"{prefix[1]}qos": {
            "interfaces": {"interface": ports},
            "buffer-management": {"queue-management-profile": managed},
            "pfc-mapping-profile": list(mappings.values()),
        },
        "system": {"name": {"host-name": switch.name}},
    }
    return json.dumps(config, indent=2)


def _nvue_json(switch: Switch, draw: random.Random) -> str:
    def plain(tree: dict[str, object]) -> dict[str, object]:
        return {
            key.strip("'"): plain(value)
            if isinstance(value, dict)
            else {}
            if value == "{}"
            else value
            for key, value in tree.items()
        }

    header = {"header": {"version": "Cumulus Linux 5.11.0"}}
    return json.dumps([header, {"set": plain(_tree(switch))}], indent=2)


WRITERS = {
    "nvue json": _nvue_json,
    "srl": _srl,
    "eos": _eos,
    "nxos": _nxos,
    "nvue": _nvue,
    "nvue commands": _nvue_commands,
    "sonic": _sonic,
    "junos": _junos,
    "junos set": _junos_set,
}
