"""Per-port CSV of the spines: increments since the row before, every few seconds."""

from datetime import timedelta
from pathlib import Path

import numpy as np

from fabricobs.simulator.collection import Device, Reader, read_spine
from fabricobs.simulator.counters import PortGroup, packets
from fabricobs.simulator.effects import Floats
from fabricobs.simulator.fabric import Fabric
from fabricobs.simulator.output import clock, epoch_microseconds, write_lines
from fabricobs.simulator.world import World

_HEADER = (
    "SaveTime,SaveTimeUTC,DeviceName,PortName,InPkts,InOctets,OutPkts,OutOctets,InRatio,OutRatio"
)
_ROW = "%s,%s,%s,%s,%d,%d,%d,%d,%.2f,%.2f"
_WEEKDAYS = "一二三四五六日"
_LOCAL_TIME = timedelta(hours=8)


def write_spines(directory: Path, world: World, fabric: Fabric) -> None:
    """Write one file a spine port, from shortly before the job until after it."""
    cluster = world.cluster
    for spine in range(cluster.spines):
        reader = read_spine(world, fabric, spine)
        name = reader.device.name
        moments, rows = np.unique(reader.device.moments, return_inverse=True)
        times = _times(reader.device)
        increments, ratios = _increments(reader, moments, cluster.shape.uplink_gbps)
        # The first round has no row before it; a round taken twice is written twice.
        written = [int(row) - 1 for row in rows if row]
        for index, uplink in enumerate(cluster.uplinks_of_spine(spine)):
            port = cluster.spine_port(uplink)
            counts, shares = increments[:, :, index].tolist(), ratios[:, :, index].tolist()
            lines = (
                _ROW % (*time, name, port, *counts[row], *shares[row])
                for time, row in zip(times[len(times) - len(written) :], written, strict=True)
            )
            path = directory / name / f"{port.replace('/', '_')}.csv"
            write_lines(path, [_HEADER, *lines])


def _increments(reader: Reader, moments: Floats, gbps: int) -> tuple[np.ndarray, Floats]:
    """Increments [M - 1, 4, P] of packets and bytes in and out, and per cent [M - 1, 2, P]."""
    received, sent = reader.at(PortGroup.rx_bytes, moments), reader.at(PortGroup.tx_bytes, moments)
    counters = [each.sum(axis=1) for b in (received, sent) for each in (packets(b), b)]
    increments = np.diff(np.stack(counters, axis=1), axis=0)
    line_bits = np.diff(moments)[:, None, None] * gbps * 1e9
    return increments, increments[:, (1, 3)] * 8 / line_bits * 100


def _times(device: Device) -> list[tuple[str, int]]:
    """Local text and Unix milliseconds of each round, by the device's clock."""
    moments = device.clock().tolist()
    return [(_local_time(moment), epoch_microseconds(moment) // 1000) for moment in moments]


def _local_time(moment: float) -> str:
    local = clock(moment) + _LOCAL_TIME
    weekday = _WEEKDAYS[local.weekday()]
    return f"{local:%Y/%m/%d} 星期{weekday} {local:%H:%M:%S}.{local.microsecond // 1000:03d}"
