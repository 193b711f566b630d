"""Cumulative counters of a group of ports, readable at any moment of the run."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fabricobs.simulator.cluster import Integers
from fabricobs.simulator.effects import Floats

PRIORITIES = 8
DATA_PRIORITY = 3
STORAGE_PRIORITY = 0
DATA_PACKET_BYTES = 4096
CONTROL_PACKET_BYTES = 110
MICROSECONDS_PER_FRAME = 11

Moments = float | Floats

# Seconds before the job; keeps background traffic above 0 at any reading.
BACKGROUND_SINCE = 3600.0


@dataclass(frozen=True, slots=True)
class Timeline:
    """The intervals in which something grows: `edges` [2K] alternates starts and ends, seconds."""

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

    def at(self, moments: Moments) -> Integers:
        """Whole amounts [..., P] up to moments [...] in seconds since the start of the job."""
        wanted = np.clip(moments, self.edges[0], self.edges[-1])
        after = np.clip(np.searchsorted(self.edges, wanted, side="right"), 1, len(self.edges) - 1)
        before = self.edges[after - 1]
        weight = (wanted - before) / np.maximum(self.edges[after] - before, 1e-9)
        growth = self.totals[after] - self.totals[after - 1]
        return _whole(self.totals[after - 1] + growth * weight[..., None])

    def of(self, ports: Integers) -> "Meter":
        """The meter of some of the ports."""
        return Meter(self.edges, self.totals[:, ports])


@dataclass(frozen=True, slots=True)
class Sum:
    """Several meters of the same P ports read as one: of several jobs, or of several causes."""

    ports: int
    meters: tuple[Meter, ...]

    def at(self, moments: Moments) -> Integers:
        """Whole amounts [..., P] up to moments [...] in seconds since the start of the job."""
        total = np.zeros((*np.shape(moments), self.ports), dtype=np.int64)
        for meter in self.meters:
            total += meter.at(moments)
        return total

    def of(self, ports: Integers) -> "Sum":
        """The sum for some of the ports."""
        return Sum(len(ports), tuple(meter.of(ports) for meter in self.meters))


@dataclass(frozen=True, slots=True)
class Direction:
    """Traffic one way over P cables: data, storage, and LLDP, ARP and BGP on priorities 0 and 7.

    `background` [8, P] is in bytes a second.
    """

    data: Sum
    storage: Sum
    background: Floats

    def bytes_at(self, moments: Moments) -> Integers:
        """Bytes [..., 8, P] by priority that crossed up to moments [...]."""
        seconds = np.asarray(moments)[..., None, None] + BACKGROUND_SINCE
        by_priority = _whole(self.background * seconds)
        by_priority[..., DATA_PRIORITY, :] += self.data.at(moments)
        by_priority[..., STORAGE_PRIORITY, :] += self.storage.at(moments)
        return by_priority

    def of(self, ports: Integers) -> "Direction":
        """The traffic over some of the cables."""
        return Direction(self.data.of(ports), self.storage.of(ports), self.background[:, ports])


@dataclass(frozen=True, slots=True)
class PortGroup:
    """The counters of P ports as their device shows them.

    The pauses are microseconds [P] of the data priority. `errors` are counts [P] by name: `symbol`,
    `crc` (received broken), `dropped` (not sent for want of room) and `downs` of the link.
    `rx_before`, `tx_before` [8, P] bytes, `pause_before` [2, P] microseconds received and sent, and
    `errors_before` [P] by name are what stood on the counters when the job began.
    """

    rx: Direction
    tx: Direction
    rx_pauses: Sum
    tx_pauses: Sum
    errors: Mapping[str, Sum]
    rx_before: Integers
    tx_before: Integers
    pause_before: Integers
    errors_before: Mapping[str, Integers]

    def rx_bytes(self, moments: Moments) -> Integers:
        """Received bytes [..., 8, P] by priority."""
        value: Integers = self.rx_before + self.rx.bytes_at(moments)
        return value

    def tx_bytes(self, moments: Moments) -> Integers:
        """Sent bytes [..., 8, P] by priority."""
        value: Integers = self.tx_before + self.tx.bytes_at(moments)
        return value

    def rx_pause_microseconds(self, moments: Moments) -> Integers:
        """Time [..., P] the neighbour asked this port to stop sending."""
        value: Integers = self.pause_before[0] + self.rx_pauses.at(moments)
        return value

    def tx_pause_microseconds(self, moments: Moments) -> Integers:
        """Time [..., P] this port asked its neighbour to stop sending."""
        value: Integers = self.pause_before[1] + self.tx_pauses.at(moments)
        return value

    def rx_pause_frames(self, moments: Moments) -> Integers:
        """Received pause frames [..., P]."""
        value: Integers = self.rx_pause_microseconds(moments) // MICROSECONDS_PER_FRAME
        return value

    def tx_pause_frames(self, moments: Moments) -> Integers:
        """Sent pause frames [..., P]."""
        value: Integers = self.tx_pause_microseconds(moments) // MICROSECONDS_PER_FRAME
        return value

    def error_count(self, name: str, moments: Moments) -> Integers:
        """Errors [..., P] of one name."""
        value: Integers = self.errors_before[name] + self.errors[name].at(moments)
        return value

    def of(self, ports: Integers) -> "PortGroup":
        """The counters of some of the ports."""
        return PortGroup(
            rx=self.rx.of(ports),
            tx=self.tx.of(ports),
            rx_pauses=self.rx_pauses.of(ports),
            tx_pauses=self.tx_pauses.of(ports),
            errors={name: total.of(ports) for name, total in self.errors.items()},
            rx_before=self.rx_before[:, ports],
            tx_before=self.tx_before[:, ports],
            pause_before=self.pause_before[:, ports],
            errors_before={name: before[ports] for name, before in self.errors_before.items()},
        )


def packets(by_priority: Integers) -> Integers:
    """Packets that many bytes [..., 8, P] make, by priority."""
    sizes = np.full((PRIORITIES, 1), CONTROL_PACKET_BYTES)
    sizes[DATA_PRIORITY] = DATA_PACKET_BYTES
    count: Integers = by_priority // sizes
    return count


def _whole(values: Floats) -> Integers:
    whole: Integers = values.astype(np.int64)
    return whole
