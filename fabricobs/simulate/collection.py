"""When each device is asked for its counters, what its clock says then, and what it answers.

In life a round comes a little early or late, is missing or taken twice, clocks are off, and a
device that restarts begins again at 0.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from fabricobs.simulate.cluster import Integers
from fabricobs.simulate.counters import Sum
from fabricobs.simulate.randomness import stream
from fabricobs.simulate.world import World

WORD = 2**32


@dataclass(frozen=True, slots=True)
class Round:
    """One look at a device: when it really was, and when the device's clock says it was.

    Both in seconds since the start of the first job.
    """

    moment: float
    shown: float


@dataclass(frozen=True, slots=True)
class Device:
    """A switch or host as a collector sees it: `offset` seconds its clock is ahead.

    Its counters start from 0 again at `restart`, None if they never do.
    """

    name: str
    offset: float
    restart: float | None
    rounds: tuple[Round, ...]

    def since_restart(self, moment: float) -> Iterator[float]:
        """The moments whose readings make a counter's value: it, less the last restart if any."""
        yield moment
        if self.restart is not None and moment >= self.restart:
            yield self.restart


def watch_device(world: World, number: int, name: str, *, host: bool) -> Device:
    """A device's clock, restart and rounds; `number` is its own among all devices of the world."""
    wanted = world.shape.collection
    random = stream(world.seed, 8, int(host), number)
    interval = wanted.host_interval if host else wanted.switch_interval
    offset = wanted.clock_spread_seconds * float(random.standard_normal())
    end = world.duration + 2 * interval
    rounds = []
    for count in range(-2, int(end // interval) + 1):
        moment = interval * (count + float(random.uniform(-1, 1)) * wanted.jitter)
        missing, doubled = random.random_sample(2)
        if missing < wanted.missing:
            continue
        rounds.append(Round(moment, moment + offset))
        if doubled < wanted.duplicated:
            rounds.append(rounds[-1])
    return Device(name, offset, _restart(world, number, host=host), tuple(rounds))


def thirty_two_bits(world: World, device: Device, meter: Sum, moment: float) -> Integers:
    """A 32-bit counter [N] as a NIC shows it: it wraps, some time during the run if so wanted."""
    before = WORD - 50 if world.shape.collection.near_wrap else 0
    shown: Integers = (before + meter.at(moment)) % WORD
    return shown


def saturated(counts: Integers, bits: int) -> Integers:
    """InfiniBand's old counters stop at their highest value."""
    stopped: Integers = counts.clip(max=2**bits - 1)
    return stopped


def _restart(world: World, number: int, *, host: bool) -> float | None:
    """The first devices by a random order restart, switches before hosts."""
    wanted = world.shape.collection.resets
    devices = world.cluster.leaves
    if host or not wanted:
        return None
    random = stream(world.seed, 9)
    chosen = [int(device) for device in random.permutation(devices)[:wanted]]
    share = float(random.uniform(0.3, 0.7))
    return world.courses[0].run.duration * share if number in chosen else None
