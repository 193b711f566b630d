"""What grows with time at ports: what FEC corrects, and packets that no buffer was posted for.

FEC works on all that a line carries, idle words too: what it corrects grows with time, not with
traffic. Up to the rate that its code is made for it corrects all; beyond, words are lost.
"""

import math
from dataclasses import dataclass

import numpy as np

from fabricobs.simulator.effects import Floats
from fabricobs.simulator.random_worlds.faults import Fault
from fabricobs.simulator.random_worlds.topology import Topology
from fabricobs.simulator.random_worlds.world import World

NOISY_ENDS = {"noisy_nic_line": 0, "noisy_leaf_line": 1, "noisy_uplink_line": 0}  # that receive it
_WORN = 0.1  # share of the ports that wear, where lines do
_WORN_SHARES = (0.001, 0.5)  # of what their code is made for
_SYMBOL_BITS = 10
_FEW_BUFFERS = (0.05, 3.0)  # packets a second that a sound NIC finds no buffer for
_MOST_TERMS = 60  # of the sum over words with more wrong symbols than the code corrects


@dataclass(frozen=True, slots=True)
class Code:
    """A Reed-Solomon code: symbols of a word, of which it corrects some, and wrong bits allowed."""

    symbols: int
    corrects: int
    allowed: float

    @property
    def word_bits(self) -> int:
        """Bits of a word."""
        return self.symbols * _SYMBOL_BITS

    def words(self, wrong: Floats) -> Floats:
        """Share of the words that hold a wrong bit, where such a share of the bits is wrong."""
        shares: Floats = -np.expm1(self.word_bits * np.log1p(-wrong))
        return shares

    def lost(self, wrong: Floats) -> Floats:
        """Share of the words with more wrong symbols than the code corrects (Poisson)."""
        mean = self.symbols * -np.expm1(_SYMBOL_BITS * np.log1p(-wrong))
        shares: Floats = np.zeros_like(mean)
        for number in range(self.corrects + 1, self.corrects + 1 + _MOST_TERMS):
            shares += np.exp(-mean) * mean**number / math.factorial(number)
        return shares


# IEEE 802.3bm of lanes of 25 Gb/s, 802.3bs of those of 50 Gb/s and more.
_SLOW_CODE = Code(528, 7, 5e-5)
_FAST_CODE = Code(544, 15, 2.4e-4)


@dataclass(frozen=True, slots=True)
class Corrected:
    """What FEC counted [M, P]: bits and words it corrected, words it could not correct."""

    bits: Floats
    words: Floats
    lost: Floats


def code_of(topology: Topology, cable: int) -> Code:
    """The code of a cable's lanes."""
    port = topology.ends[cable][1]
    return _SLOW_CODE if port.gbps / len(port.lanes) < 30 else _FAST_CODE


def corrected(world: World, device: int, moments: Floats, since: float) -> Corrected:
    """What noise had FEC correct at a device's ports up to moments [M], from `since` s before."""
    ports = world.topology.ports_of(device)
    found = np.zeros((3, len(moments), len(ports)))
    for place, (cable, side, port) in enumerate(ports):
        code = code_of(world.topology, cable)
        for share, seconds in _noise(world, cable, side, moments, since):
            bits = seconds * port.gbps * 1e9
            wrong = np.array(share * code.allowed)
            per_bit = np.array([wrong, code.words(wrong) / code.word_bits,
                                code.lost(wrong) / code.word_bits])  # fmt: skip
            found[:, :, place] += per_bit[:, None] * bits
    return Corrected(*found)


def without_buffer(world: World, device: int, moments: Floats) -> Floats:
    """Packets [M, P] that a host's NICs dropped up to moments because it posted no buffer."""
    ports = world.topology.ports_of(device)
    found = np.zeros((len(moments), len(ports)))
    for place, (cable, _, _) in enumerate(ports):
        if world.spec.few_buffers:
            rate = float(world.spec.stream("few buffers", cable).uniform(*_FEW_BUFFERS))
            found[:, place] += rate * np.clip(moments, 0, world.duration)
        for fault in world.faults:
            if fault.name == "full_receiver" and cable in fault.parts:
                found[:, place] += fault.size * acting_seconds(world, fault, moments)
    return found


def acting_seconds(world: World, fault: Fault, moments: Floats) -> Floats:
    """For how long [M] a fault has acted up to moments, the time between two steps included."""
    begins = np.concatenate([course.begin for course in world.courses])
    edges = np.append(begins, max(world.duration, begins[-1]))
    acted = np.append(0.0, np.cumsum(np.diff(edges) * fault.acts[world.steps_made]))
    seconds: Floats = np.interp(moments, edges, acted)
    return seconds


def _noise(
    world: World, cable: int, side: int, moments: Floats, since: float
) -> list[tuple[float, Floats]]:
    """Noise of one port: wrong bits over those that its code is made for, and for how long [M]."""
    found = []
    random = world.spec.stream("worn line", cable, side)
    if world.spec.worn_lines and random.random_sample() < _WORN:
        share = float(np.exp(random.uniform(*np.log(_WORN_SHARES))))
        found.append((share, moments + since))
    return found + [
        (fault.size, acting_seconds(world, fault, moments))
        for fault in world.faults
        if NOISY_ENDS.get(fault.name) == side and cable in fault.parts
    ]
