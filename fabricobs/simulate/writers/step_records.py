"""Step records of every rank as a site's own logger writes them, in another format on each host."""

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fabricobs.simulate import workload
from fabricobs.simulate.cluster import GPUS_PER_HOST, HOSTS, host_name
from fabricobs.simulate.output import clock, iso_milliseconds, write_lines
from fabricobs.simulate.run import Run


class StepRecord(NamedTuple):
    """One step of one rank; `timestamp` is its end in UTC, `comm_ms` includes waiting."""

    step: int
    rank: int
    host: str
    timestamp: datetime
    step_time_ms: float
    compute_ms: float
    comm_ms: float
    data_ms: float


def write_step_records(directory: Path, run: Run) -> None:
    """Write one file a host with the 8 ranks' records, step by step."""
    directory.mkdir(parents=True, exist_ok=True)
    writers: tuple[tuple[str, Callable[[Path, list[StepRecord]], None]], ...] = (
        (".jsonl.gz", _write_json_lines),
        (".csv", _write_csv),
        (".csv.gz", _write_csv),
        (".parquet", _write_parquet),
    )
    for host, (suffix, write) in zip(range(HOSTS), writers, strict=True):
        write(directory / f"{host_name(host)}{suffix}", _records(run, host))


def _records(run: Run, host: int) -> list[StepRecord]:
    communication = run.collective_seconds.sum(axis=1)
    first = host * GPUS_PER_HOST
    return [
        StepRecord(
            step=step + 1,
            rank=rank,
            host=host_name(host),
            timestamp=clock(float(run.end[step, rank])),
            step_time_ms=_milliseconds(run.step_seconds[step, rank]),
            compute_ms=_milliseconds(run.compute[step, rank]),
            comm_ms=_milliseconds(communication[step, rank]),
            data_ms=_milliseconds(run.data[step, rank]),
        )
        for step in range(workload.STEPS)
        for rank in range(first, first + GPUS_PER_HOST)
    ]


def _milliseconds(seconds: np.float64) -> float:
    return round(float(seconds) * 1000, 2)


def _as_text(record: StepRecord) -> dict[str, object]:
    return record._asdict() | {"timestamp": iso_milliseconds(record.timestamp)}


def _write_json_lines(path: Path, records: list[StepRecord]) -> None:
    write_lines(path, (json.dumps(_as_text(record)) for record in records))


def _write_csv(path: Path, records: list[StepRecord]) -> None:
    rows = (",".join(str(value) for value in _as_text(record).values()) for record in records)
    write_lines(path, [",".join(StepRecord._fields), *rows])


def _write_parquet(path: Path, records: list[StepRecord]) -> None:
    table = pa.Table.from_pylist([record._asdict() for record in records])
    pq.write_table(table, path, compression="zstd")
