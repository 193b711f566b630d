"""Per-port CSV of the spines: increments since the row before, every few seconds."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import numpy as np

from fabricobs.simulate.cluster import UPLINK_GBPS, Cluster, Uplink, spine_name
from fabricobs.simulate.counters import Floats, packets
from fabricobs.simulate.fabric import Fabric
from fabricobs.simulate.output import clock, epoch_microseconds, write_lines
from fabricobs.simulate.run import stream

_HEADER = (
    "SaveTime,SaveTimeUTC,DeviceName,PortName,InPkts,InOctets,OutPkts,OutOctets,InRatio,OutRatio"
)
_WEEKDAYS = "一二三四五六日"
_LOCAL_TIME = timedelta(hours=8)
_SHORTEST_INTERVAL, _LONGEST_INTERVAL = 7.0, 10.0


def write_spines(
    directory: Path, cluster: Cluster, fabric: Fabric, *, end: float, seed: int
) -> None:
    """Write one file a spine port, from shortly before the job until after its `end`."""
    for number, uplink in enumerate(cluster.uplinks):
        spine = spine_name(uplink.spine)
        moments = _moments(end, stream(seed, 200 + number))
        name = uplink.spine_port.replace("/", "_") + ".csv"
        rows = _rows(spine, uplink, number, fabric, moments)
        write_lines(directory / spine / name, [_HEADER, *rows])


def _moments(end: float, random: np.random.RandomState) -> Floats:
    count = int((end + 30) / _SHORTEST_INTERVAL)
    intervals = random.uniform(_SHORTEST_INTERVAL, _LONGEST_INTERVAL, count)
    # Whole milliseconds, as in the file, so that a row's interval is exactly its increment's.
    moments = np.round(np.cumsum(intervals) - 20, 3)
    return moments[: int(np.searchsorted(moments, end + 15))]


def _rows(
    spine: str, uplink: Uplink, number: int, fabric: Fabric, moments: Floats
) -> Iterator[str]:
    ports = fabric.spine_ports
    counters = np.stack(
        [
            [
                packets(received)[:, number].sum(),
                received[:, number].sum(),
                packets(sent)[:, number].sum(),
                sent[:, number].sum(),
            ]
            for received, sent in ((ports.rx_bytes(m), ports.tx_bytes(m)) for m in moments)
        ]
    )
    for row, increments in enumerate(np.diff(counters, axis=0), start=1):
        line_bits = (moments[row] - moments[row - 1]) * UPLINK_GBPS * 1e9
        ratios = [f"{increments[column] * 8 / line_bits * 100:.2f}" for column in (1, 3)]
        milliseconds = epoch_microseconds(moments[row]) // 1000
        cells = [_local_time(moments[row]), milliseconds, spine, uplink.spine_port]
        yield ",".join(str(cell) for cell in [*cells, *increments, *ratios])


def _local_time(moment: float) -> str:
    local = clock(moment) + _LOCAL_TIME
    weekday = _WEEKDAYS[local.weekday()]
    return f"{local:%Y/%m/%d} 星期{weekday} {local:%H:%M:%S}.{local.microsecond // 1000:03d}"
