"""When each device is asked for its counters, what its clock says then, and what it answers.

In life a round comes a little early or late, is missing or taken twice, clocks are off, and a
device that restarts begins again at 0.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from fabricobs.simulator.cluster import Integers
from fabricobs.simulator.counters import Moments, PortGroup
from fabricobs.simulator.effects import Floats
from fabricobs.simulator.fabric import Fabric
from fabricobs.simulator.randomness import stream
from fabricobs.simulator.world import World

WORD = 2**32
_SHORT_OF_WRAP = 50


@dataclass(frozen=True, slots=True)
class Device:
    """A switch or host as a collector sees it: `offset` seconds its clock is ahead.

    `moments` [M] are when its rounds really were, in seconds since the start of the first job; one
    taken twice stands there twice. Its counters start from 0 again at `restart`, None if never.
    """

    name: str
    offset: float
    restart: float | None
    moments: Floats

    def clock(self, delay: float = 0.0) -> Floats:
        """What the device's clock says [M] some seconds into each round."""
        return self.moments + delay + self.offset

    def shown(self, read: Callable[[Floats], Integers], delay: float = 0.0) -> Integers:
        """What a counter shows in each round [M, ...]: after a restart, its rise since."""
        moments = self.moments + delay
        values = read(moments)
        if self.restart is not None:
            values[moments >= self.restart] -= read(np.array([self.restart]))
        return values

    def every(self, seconds: float) -> "Device":
        """The device with only the first round of each so many seconds, for what seldom changes."""
        _, first = np.unique(self.moments // seconds, return_index=True)
        return replace(self, moments=self.moments[first])


@dataclass(frozen=True, slots=True)
class Reader:
    """The counters of the ports of one device, its groups of ports one after another."""

    device: Device
    groups: tuple[PortGroup, ...]

    def at(self, counter: Callable[[PortGroup, Floats], Integers], moments: Moments) -> Integers:
        """A counter [..., P] of all ports at any moments [...], as if it had never restarted."""
        parts = [counter(group, np.asarray(moments)) for group in self.groups]
        return np.concatenate(parts, axis=-1)

    def shown(
        self, counter: Callable[[PortGroup, Floats], Integers], delay: float = 0.0
    ) -> Integers:
        """What a counter [M, ..., P] of all ports shows in each round."""
        return self.device.shown(lambda moments: self.at(counter, moments), delay)

    def errors(self, name: str, delay: float = 0.0) -> Integers:
        """What an error counter [M, P] of all ports shows in each round."""
        return self.shown(lambda group, moments: group.error_count(name, moments), delay)


def read_leaf(world: World, fabric: Fabric, leaf: int) -> Reader:
    """A leaf: its NIC ports first, then its uplinks, in port order."""
    cluster = world.cluster
    device = watch_device(world, leaf, cluster.leaf_name(leaf), host=False)
    nics = np.array([nic.index for nic in cluster.nics_of_leaf(leaf)], dtype=np.int64)
    uplinks = np.array([uplink.index for uplink in cluster.uplinks_of_leaf(leaf)])
    return Reader(device, (fabric.leaf_nic_ports.of(nics), fabric.leaf_uplinks.of(uplinks)))


def read_spine(world: World, fabric: Fabric, spine: int) -> Reader:
    """A spine, in port order."""
    cluster = world.cluster
    device = watch_device(world, cluster.leaves + spine, cluster.spine_name(spine), host=False)
    uplinks = np.array([uplink.index for uplink in cluster.uplinks_of_spine(spine)])
    return Reader(device, (fabric.spine_ports.of(uplinks),))


def read_host(world: World, fabric: Fabric, host: int) -> Reader:
    """A host's NICs, in device order."""
    device = watch_device(world, host, world.cluster.host_name(host), host=True)
    nics = np.array([nic.index for nic in world.cluster.nics_of_host(host)])
    return Reader(device, (fabric.nics.of(nics),))


def watch_device(world: World, number: int, name: str, *, host: bool) -> Device:
    """A device's clock, restart and rounds; `number` is its own among all devices of the world.

    Moments and offsets are whole milliseconds, as collectors print them.
    """
    wanted = world.shape.collection
    random = stream(world.seed, 8, int(host), number)
    interval = wanted.host_interval if host else wanted.switch_interval
    offset = wanted.clock_spread_seconds * float(random.standard_normal())
    end = world.duration + 2 * interval
    moments = []
    for count in range(-2, int(end // interval) + 1):
        moment = interval * (count + float(random.uniform(-1, 1)) * wanted.jitter)
        missing, doubled = random.random_sample(2)
        if missing < wanted.missing:
            continue
        moments += [moment, moment] if doubled < wanted.duplicated else [moment]
    restart = None if host else _restart(world, number)
    return Device(name, round(offset, 3), restart, np.round(moments, 3))


def thirty_two_bits(world: World, counts: Integers) -> Integers:
    """A 32-bit counter [M, ...] as a NIC shows it: if so wanted, it wraps at its first rises."""
    if world.shape.collection.near_wrap:
        counts = counts - counts[0] + (WORD - _SHORT_OF_WRAP)
    shown: Integers = counts % WORD
    return shown


def saturated(counts: Integers, bits: int) -> Integers:
    """InfiniBand's old counters stop at their highest value."""
    stopped: Integers = counts.clip(max=2**bits - 1)
    return stopped


def _restart(world: World, number: int) -> float | None:
    """When a switch restarts: the first leaves of a random order do, in the midst of the job."""
    wanted = world.shape.collection.resets
    if not wanted:
        return None
    random = stream(world.seed, 9)
    chosen = [int(leaf) for leaf in random.permutation(world.cluster.leaves)[:wanted]]
    share = float(random.uniform(0.3, 0.7))
    return world.courses[0].run.duration * share if number in chosen else None
