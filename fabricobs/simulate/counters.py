"""Cumulative counters of a group of ports, readable at any moment of the run."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

PRIORITIES = 8
DATA_PRIORITY = 3
DATA_PACKET_BYTES = 4096
CONTROL_PACKET_BYTES = 110

_BACKGROUND_SINCE = (
    3600.0  # seconds before the job; keeps background traffic above 0 at any reading
)


@dataclass(frozen=True, slots=True)
class Timeline:
    """The intervals in which data moves: `edges` [2K] alternates starts and ends, in seconds."""

    edges: Floats

    def meter(self, amounts: Floats) -> "Meter":
        """A meter of `amounts` [K, P] of P ports, spread evenly over each of the K intervals."""
        totals = np.zeros((len(self.edges), amounts.shape[1]))
        # Whole totals, so that rounding can never make a reading fall at an edge.
        totals[1::2] = np.floor(np.cumsum(amounts, axis=0))
        totals[2::2] = totals[1:-1:2]
        return Meter(self.edges, totals)


@dataclass(frozen=True, slots=True)
class Meter:
    """An amount growing from 0: `totals` [2K, P] at the moments `edges` [2K], straight between."""

    edges: Floats
    totals: Floats

    def at(self, moment: float) -> Integers:
        """Whole amounts [P] up to a moment in seconds since the start of the job."""
        after = int(np.searchsorted(self.edges, moment, side="right"))
        if after == 0:
            return np.zeros(self.totals.shape[1], dtype=np.int64)
        if after == len(self.edges):
            return _whole(self.totals[-1])
        before = self.edges[after - 1]
        weight = (moment - before) / (self.edges[after] - before)
        growth = self.totals[after] - self.totals[after - 1]
        return _whole(self.totals[after - 1] + growth * weight)


@dataclass(frozen=True, slots=True)
class Direction:
    """Traffic one way over P cables: data bytes, and LLDP, ARP and BGP on priorities 0 and 7.

    `background` [8, P] is in bytes a second.
    """

    data: Meter
    background: Floats

    def bytes_at(self, moment: float) -> Integers:
        """Bytes [8, P] by priority that crossed up to a moment."""
        by_priority = _whole(self.background * (moment + _BACKGROUND_SINCE))
        by_priority[DATA_PRIORITY] += self.data.at(moment)
        return by_priority


@dataclass(frozen=True, slots=True)
class Pauses:
    """PFC of the data priority one way over P cables: pause frames, and the time they asked for."""

    microseconds: Meter
    frames: Meter


@dataclass(frozen=True, slots=True)
class PortGroup:
    """The counters of P ports as their device shows them.

    `rx_before`, `tx_before` [8, P] bytes and `pause_before` [4, P] are what stood on the counters
    when the job began; the four are received and sent pause time (us), received and sent frames.
    """

    rx: Direction
    tx: Direction
    rx_pauses: Pauses
    tx_pauses: Pauses
    rx_before: Integers
    tx_before: Integers
    pause_before: Integers

    def rx_bytes(self, moment: float) -> Integers:
        """Received bytes [8, P] by priority."""
        value: Integers = self.rx_before + self.rx.bytes_at(moment)
        return value

    def tx_bytes(self, moment: float) -> Integers:
        """Sent bytes [8, P] by priority."""
        value: Integers = self.tx_before + self.tx.bytes_at(moment)
        return value

    def rx_pause_microseconds(self, moment: float) -> Integers:
        """Time [P] the neighbour asked this port to stop sending."""
        value: Integers = self.pause_before[0] + self.rx_pauses.microseconds.at(moment)
        return value

    def tx_pause_microseconds(self, moment: float) -> Integers:
        """Time [P] this port asked its neighbour to stop sending."""
        value: Integers = self.pause_before[1] + self.tx_pauses.microseconds.at(moment)
        return value

    def rx_pause_frames(self, moment: float) -> Integers:
        """Received pause frames [P]."""
        value: Integers = self.pause_before[2] + self.rx_pauses.frames.at(moment)
        return value

    def tx_pause_frames(self, moment: float) -> Integers:
        """Sent pause frames [P]."""
        value: Integers = self.pause_before[3] + self.tx_pauses.frames.at(moment)
        return value


def packets(by_priority: Integers) -> Integers:
    """Packets that many bytes [8, P] make, by priority."""
    sizes = np.full((PRIORITIES, 1), CONTROL_PACKET_BYTES)
    sizes[DATA_PRIORITY] = DATA_PACKET_BYTES
    count: Integers = by_priority // sizes
    return count


def _whole(values: Floats) -> Integers:
    whole: Integers = values.astype(np.int64)
    return whole
