"""The cables of a random world: hosts, leaves, spines and cores, their ports and their names."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fabricobs.simulator.cluster import Integers
from fabricobs.simulator.effects import Floats
from fabricobs.simulator.random_worlds.spec import Spec

NONE = -1
GPU_BUSES = (0x18, 0x2A, 0x3A, 0x5D, 0x9A, 0xAB, 0xBA, 0xDB)
_BUSES = (0x1A, 0x3C, 0x4D, 0x5E, 0x9C, 0xBC, 0xCC, 0xDC)
# Names of NICs that their drivers give, where these are not those of ConnectX.
_RDMA_DEVICES = {"efa": "rdmap{bus}s0", "cxi": "cxi{n}", "ionic": "ionic_{n}"}
_NETDEVS = {"cxi": "hsn{n}"}
_TIERS = ("leaf", "spine", "core")
_HOST_EFFICIENCY = 0.80  # bus bandwidth NCCL reaches on NDR: 75 to 85 % of line rate (METHODS 1)
_SWITCH_EFFICIENCY = 0.92  # of a switch port's line rate, headers and gaps taken off
_PORTS_OF_A_CAGE = 4  # where a cable splits
_FIRST_BROKEN_OUT = 33  # cage: those below and far above hold uplinks
_POD_LEAVES = 4  # leaves of a pod where there are three tiers
_MOST_UPLINKS = 16
_LANES = {100: 4, 200: 4, 400: 8, 800: 8}


@dataclass(frozen=True, slots=True)
class Port:
    """One end of a cable: `device` by index, `number` on it from 1, and how it is called.

    `gbps` is the speed it was bought for; `alias` is a second name where the vendor has one.
    """

    device: int
    number: int
    name: str
    alias: str
    gbps: int
    lanes: tuple[int, ...]
    netdev: str = ""


@dataclass(frozen=True, slots=True)
class Device:
    """A host or switch; `tier` is 0 for a host, then 1 for a leaf and so on."""

    index: int
    name: str
    tier: int
    os: str
    guid: int
    lid: int


@dataclass(frozen=True)
class Topology:
    """Devices [V] (hosts first) and cables [C], those of NICs first, in order of host and NIC.

    Link 2c carries from the lower end of cable c to the upper one, link 2c + 1 back; D = 2C links.
    `ends` [C] are the two ports, the lower first. `up` [V, U] are the cables a switch or NIC's
    leaf may send up on; `down` [V, V, P] those from an upper device to a lower one; NONE fills.
    """

    spec: Spec
    devices: tuple[Device, ...]
    ends: tuple[tuple[Port, Port], ...]
    hosts: int
    nics_per_host: int
    up: Integers
    down: dict[tuple[int, int], tuple[int, ...]]
    pod: Integers

    @property
    def nics(self) -> int:
        """Number of NICs."""
        return self.hosts * self.nics_per_host

    @property
    def links(self) -> int:
        """Number of links, two a cable."""
        return 2 * len(self.ends)

    @cached_property
    def leaf(self) -> Integers:
        """Leaf [N] of each NIC, as a device."""
        return np.array([self.ends[nic][1].device for nic in range(self.nics)])

    @cached_property
    def capacity(self) -> Floats:
        """Bytes a second [D] each link carries when sound."""
        gbps = np.array([lower.gbps for lower, _ in self.ends], dtype=float)
        share = np.where(np.arange(len(gbps)) < self.nics, _HOST_EFFICIENCY, _SWITCH_EFFICIENCY)
        return np.repeat(gbps * share * 1e9 / 8, 2)

    @cached_property
    def upper_device(self) -> Integers:
        """Device [C] at the upper end of each cable."""
        return np.array([upper.device for _, upper in self.ends])

    def ports_of(self, device: int) -> list[tuple[int, int, Port]]:
        """Cable, side (0 lower, 1 upper) and port of each port of a device, in port order."""
        return self._ports.get(device, [])

    @cached_property
    def _ports(self) -> dict[int, list[tuple[int, int, Port]]]:
        found: dict[int, list[tuple[int, int, Port]]] = {}
        for cable, ends in enumerate(self.ends):
            for side, port in enumerate(ends):
                found.setdefault(port.device, []).append((cable, side, port))
        return {device: sorted(ports, key=lambda p: p[2].number) for device, ports in found.items()}

    @cached_property
    def below_core(self) -> dict[tuple[int, int], int]:
        """The spine of a pod that a core has cables to, by core and pod."""
        return {
            (high, int(self.pod[low])): low
            for high, low in self.down
            if self.devices[high].tier == 3
        }

    def uplinks_of(self, device: int) -> Integers:
        """Cables [U] from a switch to the tier above."""
        cables: Integers = self.up[device][self.up[device] != NONE]
        return cables

    def switches(self, tier: int) -> list[Device]:
        """Switches of one tier."""
        return [device for device in self.devices if device.tier == tier]

    def nics_of(self, host: int) -> range:
        """NICs of a host."""
        return range(host * self.nics_per_host, (host + 1) * self.nics_per_host)

    def swapped(self, nic: int, other: int) -> "Topology":
        """The same devices, the cables of two NICs plugged where the other belongs."""
        ends = list(self.ends)
        ends[nic] = (self.ends[nic][0], self.ends[other][1])
        ends[other] = (self.ends[other][0], self.ends[nic][1])
        below: dict[tuple[int, int], list[int]] = {}
        for cable, (lower, upper) in enumerate(ends):
            below.setdefault((upper.device, lower.device), []).append(cable)
        down = {pair: tuple(cables) for pair, cables in below.items()}
        return replace(self, ends=tuple(ends), down=down)

    def rail_of(self, nic: int) -> Integers:
        """The same NIC of all other hosts."""
        same = np.arange(nic % self.nics_per_host, self.nics, self.nics_per_host)
        others: Integers = same[same != nic]
        return others

    def nic_of_gpu(self, host: int, gpu: int) -> int:
        """The NIC beside a GPU of a host."""
        return host * self.nics_per_host + gpu * self.nics_per_host // self.spec.gpus_per_host


class _Builder:
    """Counts ports as cables are laid, and names them once all are."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.tiers: list[int] = []
        self.pods: list[int] = []
        self.cables: list[tuple[int, int, int, int]] = []  # lower, upper, gbps, NIC or NONE

    def devices(self, tier: int, number: int, pod: int = 0) -> list[int]:
        first = len(self.tiers)
        self.tiers += [tier] * number
        self.pods += [pod] * number
        return list(range(first, first + number))

    def cable(self, lower: int, upper: int, gbps: int, nic: int = NONE) -> None:
        self.cables.append((lower, upper, gbps, nic))


def build_topology(spec: Spec) -> Topology:
    """Lay the cables of a world."""
    build = _Builder(spec)
    nics = min(spec.nics_per_host, spec.gpus_per_host)
    hosts = build.devices(0, spec.job_hosts + spec.spare_hosts)
    rails = nics if spec.rails else 1
    one = spec.tiers == 1
    # One tier: a single switch, or one a rail.
    groups = 1 if one else -(-len(hosts) // spec.hosts_per_leaf)
    leaves = [build.devices(1, rails) for _ in range(groups)]
    order = np.arange(len(hosts)) % groups
    if spec.placement == "packed" and not one:
        order = np.arange(len(hosts)) // spec.hosts_per_leaf
    for host, group in zip(hosts, order, strict=True):
        for nic in range(nics):
            build.cable(host, leaves[group][nic % rails], spec.nic_gbps, host * nics + nic)
    if not one:
        down_ports = -(-len(hosts) // groups) * nics // rails
        _lay_upper_tiers(build, [leaf for group in leaves for leaf in group], down_ports)
    return _named(build, nics, len(hosts))


def _lay_upper_tiers(build: _Builder, leaves: list[int], down_ports: int) -> None:
    spec = build.spec
    gbps = min(800, spec.nic_gbps * spec.uplink_ratio)
    wanted = down_ports * spec.nic_gbps / gbps / spec.oversubscription
    parallel = spec.parallel_links
    spines = int(np.clip(round(wanted / parallel), 2, max(2, _MOST_UPLINKS // parallel)))
    pods = -(-len(leaves) // _POD_LEAVES) if spec.tiers == 3 else 1
    by_pod = []
    for pod in range(pods):
        uppers = build.devices(2, spines, pod)
        by_pod.append(uppers)
        for leaf in leaves[pod::pods]:
            build.pods[leaf] = pod
            for upper in uppers:
                for _ in range(parallel):
                    build.cable(leaf, upper, gbps)
    if pods > 1:
        for plane in range(spines):
            for core in build.devices(3, 2):
                for uppers in by_pod:
                    for _ in range(parallel):
                        build.cable(uppers[plane], core, gbps)


def _named(build: _Builder, nics: int, hosts: int) -> Topology:
    spec = build.spec
    names = _device_names(build)
    other_os = ("sonic", "eos", "nxos", "cumulus")[spec.seed % 4]
    systems = {0: "linux", 1: spec.leaf_os}
    spine_os = spec.leaf_os if spec.same_spine_os else other_os
    devices = tuple(
        Device(
            index=index,
            name=names[index],
            tier=tier,
            os="infiniband" if spec.infiniband and tier else systems.get(tier, spine_os),
            guid=(0xB83FD203004A0000 if tier == 0 else 0xFC6A1C0300A00000) + index * 64,
            lid=1 + index,
        )
        for index, tier in enumerate(build.tiers)
    )
    numbers = _port_numbers(build)
    ends = []
    for (lower, upper, gbps, nic), (low, high) in zip(build.cables, numbers, strict=True):
        below = (
            _nic_port(spec, lower, nic % nics)
            if nic != NONE
            else _switch_port(devices[lower], low, gbps)
        )
        broken_out = spec.breakouts and nic != NONE
        ends.append((below, _switch_port(devices[upper], high, gbps, broken_out=broken_out)))
    down: dict[tuple[int, int], tuple[int, ...]] = {}
    going_up: list[list[int]] = [[] for _ in devices]
    for cable, (lower, upper, _, nic) in enumerate(build.cables):
        down[upper, lower] = (*down.get((upper, lower), ()), cable)
        if nic == NONE:
            going_up[lower].append(cable)
    widest = max(1, max(map(len, going_up)))
    up = np.full((len(devices), widest), NONE)
    for device, cables in enumerate(going_up):
        up[device, : len(cables)] = cables
    return Topology(
        spec, devices, tuple(ends), hosts, nics, up, down, np.array(build.pods, dtype=np.int64)
    )


def _device_names(build: _Builder) -> list[str]:
    spec = build.spec
    counts: dict[int, int] = {}
    names = []
    for tier, pod in zip(build.tiers, build.pods, strict=True):
        n = counts[tier] = counts.get(tier, 0) + 1
        rack, slot = divmod(n - 1, max(2, spec.hosts_per_leaf))
        names.append(
            (spec.host_names if tier == 0 else spec.switch_names).format(
                n=n,
                rack=rack + 1,
                slot=slot + 1,
                letter=chr(ord("a") + (rack if tier == 0 else pod) % 26),
                tier=_TIERS[tier - 1],
                tier_letter=_TIERS[tier - 1][0],
            )
        )
    return names


def _port_numbers(build: _Builder) -> list[tuple[int, int]]:
    """Number of the lower and the upper port of each cable: NIC ports first, or uplinks first."""
    used = [0] * len(build.tiers)
    numbers = [(0, 0)] * len(build.cables)
    downward = [sum(upper == d for _, upper, _, _ in build.cables) for d in range(len(used))]
    upward = [sum(lower == d for lower, _, _, _ in build.cables) for d in range(len(used))]
    rising = [0] * len(used)
    for cable, (lower, upper, _, _) in enumerate(build.cables):
        first = build.spec.uplinks_first
        low = rising[lower] + 1 + (0 if first else downward[lower])
        rising[lower] += 1
        high = used[upper] + 1 + (upward[upper] if first else 0)
        used[upper] += 1
        numbers[cable] = (low, high)
    return numbers


def _nic_port(spec: Spec, host: int, nic: int) -> Port:
    bus = _BUSES[nic]
    device = _RDMA_DEVICES.get(spec.nic_driver, spec.rdma_devices).format(n=nic, bus=bus)
    netdevs = "ib{n}" if spec.infiniband else _NETDEVS.get(spec.nic_driver, spec.netdevs)
    netdev = netdevs.format(n=nic, bus=bus)
    return Port(host, nic + 1, device, "", spec.nic_gbps, (), netdev)


def _switch_port(device: Device, number: int, gbps: int, *, broken_out: bool = False) -> Port:
    """Name a port: one of a cage, or of four where the port of a NIC is broken out."""
    count = _LANES[gbps]
    lanes = tuple(range((number - 1) * 8, (number - 1) * 8 + count))
    cage, part = divmod(number - 1, _PORTS_OF_A_CAGE)
    cage += _FIRST_BROKEN_OUT
    whole = {
        "sonic": (f"Ethernet{(number - 1) * 8}", f"etp{number}"),
        "eos": (f"Ethernet{number}/1", f"Et{number}/1"),
        "nxos": (f"Ethernet1/{number}", f"Eth1/{number}"),
        "cumulus": (f"swp{number}", ""),
        "infiniband": (str(number), ""),
    }
    parts = {
        "sonic": (f"Ethernet{(cage - 1) * 8 + 2 * part}", f"etp{cage}{'abcd'[part]}"),
        "eos": (f"Ethernet{cage}/{2 * part + 1}", f"Et{cage}/{2 * part + 1}"),
        "nxos": (f"Ethernet1/{cage}/{part + 1}", f"Eth1/{cage}/{part + 1}"),
        "cumulus": (f"swp{cage}s{part}", ""),
    }
    name, alias = parts.get(device.os, whole[device.os]) if broken_out else whole[device.os]
    return Port(device.index, number, name, alias, gbps, lanes)
