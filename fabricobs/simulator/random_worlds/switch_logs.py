"""Logs of the switches: ports that go down and come up, by a fault or by hand; light that fades."""

from collections.abc import Iterator
from datetime import datetime

import numpy as np

from fabricobs.simulator.random_worlds.faults import Fault
from fabricobs.simulator.random_worlds.site import Site
from fabricobs.simulator.random_worlds.topology import Device, Port

_FLAP_SECONDS = 4.0
_REBOOT_SECONDS = (90.0, 240.0)
_BY_HAND_SECONDS = 60.0
_SAYS = {
    "sonic": (
        "{stamp} {name} NOTICE swss#orchagent: :- updatePortOperStatus: "
        "Port {port} oper state set from {was} to {now}"
    ),
    "eos": (
        "{stamp} {name} Ebra: %LINEPROTO-5-UPDOWN: "
        "Line protocol on Interface {port}, changed state to {now}"
    ),
    "nxos": "{stamp} {name} %ETHPORT-5-{code}: Interface {port} is {now} {why}",
    "cumulus": "{stamp} {name} kernel: {port}: link {now}",
}
_BY_HAND = {
    "sonic": (
        "{stamp} {name} NOTICE swss#orchagent: :- doPortTask: Set port {port} admin status to down"
    ),
    "nxos": (
        "{stamp} {name} %ETHPORT-5-IF_DOWN_ADMIN_DOWN: "
        "Interface {port} is down (Administratively down)"
    ),
}
_OTHERS = {
    "sonic": "{stamp} {name} INFO bgp#bgpd: Keepalive of 10.1.0.7 is late",
    "eos": "{stamp} {name} Bgp: %BGP-5-ADJCHANGE: peer 10.1.0.7 (VRF default AS 64601) Established",
    "nxos": "{stamp} {name} %VSHD-5-VSHD_SYSLOG_CONFIG_I: Configured from vty by admin",
    "cumulus": "{stamp} {name} sshd[2207]: Accepted publickey for netops from 10.9.0.4",
}
# NX-OS alone is known to log it. A port whose far end is dark says the same.
_NO_LIGHT = "{stamp} {name} %ETHPORT-3-IF_XCVR_ALARM: Interface {port}, Low Rx Power Alarm"
_ALARM_CHANCE = 0.5  # that a cable which loses packets is dim enough for the module's threshold
_ALARM_SECONDS = (1.0, 60.0)  # until the switch reads the module
# When what is said: seconds since the world began, the port, whether it is up, whether by hand.
Change = tuple[float, Port, bool, bool]


def write_switch_logs(site: Site) -> None:
    """Write what Ethernet switches log, each or all at a syslog server, where a site keeps it."""
    spec = site.spec
    if spec.switch_log == "none" or spec.infiniband:
        return
    collected: list[tuple[datetime, str]] = []
    for device in site.world.topology.devices:
        if device.tier == 0:
            continue
        lines = sorted(_lines(site, device), key=lambda line: line[0])
        if spec.switch_log == "each":
            text = "".join(f"{line}\n" for _, line in lines)
            site.write(device, "syslog", "syslog.log", text)
        collected += lines
    if spec.switch_log == "server":
        collected.sort(key=lambda line: line[0])
        site.write_run("syslog", "network.log", "".join(f"{line}\n" for _, line in collected))


def _lines(site: Site, device: Device) -> Iterator[tuple[datetime, str]]:
    system, random = device.os, site.spec.stream("switch log", device.index)
    clock = site.clock(device)

    def line(moment: float, text: str, **of_port: str) -> tuple[datetime, str]:
        at = clock.local(moment)
        return at, text.format(stamp=_stamp(at, system), name=device.name, **of_port)

    for moment in np.sort(random.uniform(-600, site.world.duration, 6)):
        yield line(float(moment), _OTHERS[system])
    for moment, port, up, by_hand in _changes(site, device):
        words = {"port": port.name, "now": "up" if up else "down", "was": "down" if up else "up"}
        if by_hand and system in _BY_HAND:
            yield line(moment - 0.2, _BY_HAND[system], **words)
            if system == "nxos":
                continue
        words["code"] = "IF_UP" if up else "IF_DOWN_LINK_FAILURE"
        words["why"] = "in mode routed" if up else "(Link failure)"
        yield line(moment, _SAYS[system], **words)
        if system == "nxos":
            cleared = " cleared" if up else ""
            yield line(moment + 0.5, f"{_NO_LIGHT}{cleared}", **words)
    if system == "nxos":
        for moment, port in _dim(site, device):
            yield line(moment, _NO_LIGHT, port=port.name)


def _dim(site: Site, device: Device) -> Iterator[tuple[float, Port]]:
    """When a module of a switch raises an alarm because its cable is bad."""
    world, topology = site.world, site.world.topology
    random = site.spec.stream("optics", device.index)
    for cable, _, port in topology.ports_of(device.index):
        for fault in world.faults:
            certain = fault.name == "dim_leaf_optic"
            if not (certain or fault.kind.does == "lost") or cable not in fault.cables(topology):
                continue
            dim, late = random.random() < _ALARM_CHANCE, float(random.uniform(*_ALARM_SECONDS))
            begun = _begin(site, fault)
            if (dim or certain) and begun is not None:
                yield begun + late, port


def _begin(site: Site, fault: Fault) -> float | None:
    """When a fault first acts; None for one that never does."""
    for course in site.world.courses:
        before = site.world.made_before(course.launch.number)
        steps = np.flatnonzero(fault.acts[before : before + course.steps])
        if len(steps):
            return float(course.start[steps[0], 0].min())
    return None


def _stamp(at: datetime, system: str) -> str:
    """The time as a system writes it; one tells its zone, too."""
    if system == "eos":
        return at.isoformat(timespec="milliseconds")
    if system == "cumulus":
        return f"{at:%b} {at.day:2d} {at:%H:%M:%S}"
    return f"{at:%Y %b} {at.day:2d} {at:%H:%M:%S.%f}"


def _changes(site: Site, device: Device) -> Iterator[Change]:
    """Ports of a switch that go down or come up, in no order."""
    world, topology = site.world, site.world.topology
    used = {host for course in world.courses for host in course.launch.hosts}
    random = site.spec.stream("port changes", device.index)
    for cable, side, port in topology.ports_of(device.index):
        yield from ((at, port, up, False) for at, up in _flaps(site, cable))
        lower = topology.ends[cable][0]
        if side == 1 and lower.device < topology.hosts and lower.device not in used:
            down = float(random.uniform(0, world.duration))
            yield down, port, False, False
            yield down + float(random.uniform(*_REBOOT_SECONDS)), port, True, False
            by_hand = float(random.uniform(0, world.duration))
            if device.os in _BY_HAND:
                yield by_hand, port, False, True
                yield by_hand + _BY_HAND_SECONDS, port, True, False


def _flaps(site: Site, cable: int) -> Iterator[tuple[float, bool]]:
    world = site.world
    for fault in world.faults:
        if fault.kind.does != "flap" or cable not in fault.cables(world.topology):
            continue
        for course in world.courses:
            before = world.made_before(course.launch.number)
            for step in np.flatnonzero(fault.acts[before : before + course.steps]):
                down = float(course.start[step, 0].min())
                yield down, False
                yield down + min(fault.size, _FLAP_SECONDS), True
