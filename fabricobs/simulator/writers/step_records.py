"""Step records of every rank as a site's own logger writes them, in another format on each host."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from fabricobs.simulator.effects import Floats
from fabricobs.simulator.fabric import Fabric
from fabricobs.simulator.output import JOB_START, write_text
from fabricobs.simulator.run import Run
from fabricobs.simulator.shapes import GPUS_PER_HOST
from fabricobs.simulator.world import World
from fabricobs.simulator.writers.processes import host_offset, job_folder

# [rows] each: step, rank, host, timestamp (end of the step, UTC), step_time_ms, compute_ms, comm_ms
# (waiting included), data_ms, and stage where there are several.
Columns = dict[str, NDArray[np.generic]]


def write_step_records(directory: Path, world: World, fabric: Fabric) -> None:
    """Write one file a host with the 8 ranks' records, step by step."""
    for course in world.courses:
        run = course.run
        folder = job_folder(directory, world, run.job)
        folder.mkdir(parents=True, exist_ok=True)
        moments = _milliseconds_of(run)
        for place, host in enumerate(run.job.hosts):
            suffix, write = _WRITERS[place % len(_WRITERS)]
            name, offset = world.cluster.host_name(host), host_offset(world, host)
            write(folder / f"{name}{suffix}", _records(run, moments, place, name, offset))


def _milliseconds_of(run: Run) -> dict[str, Floats]:
    """The times [S, R] of the records in milliseconds."""
    seconds = {
        "step_time_ms": run.step_seconds,
        "compute_ms": run.compute,
        "comm_ms": run.communication,
        "data_ms": run.data,
    }
    return {name: np.round(values * 1000, 2) for name, values in seconds.items()}


def _records(run: Run, moments: dict[str, Floats], place: int, host: str, offset: float) -> Columns:
    ranks = np.arange(place * GPUS_PER_HOST, (place + 1) * GPUS_PER_HOST)
    rows = run.steps * GPUS_PER_HOST
    ended = np.round((run.end[:, ranks] + offset) * 1000).astype("timedelta64[ms]")
    columns: Columns = {
        "step": np.repeat(np.arange(1, run.steps + 1), GPUS_PER_HOST),
        "rank": np.tile(ranks, run.steps),
        "host": np.full(rows, host),
        "timestamp": (np.datetime64(JOB_START.replace(tzinfo=None), "ms") + ended).ravel(),
        **{name: values[:, ranks].ravel() for name, values in moments.items()},
    }
    if run.job.shape.pipeline > 1:
        columns["stage"] = np.tile(run.job.stage[ranks], run.steps)
    return columns


def _write_json_lines(path: Path, columns: Columns) -> None:
    members = ", ".join(f'"{name}": {_place(name, quote=True)}' for name in columns)
    write_text(path, _filled(f"{{{members}}}\n", columns))


def _write_csv(path: Path, columns: Columns) -> None:
    row = ",".join(_place(name, quote=False) for name in columns)
    write_text(path, ",".join(columns) + "\n" + _filled(f"{row}\n", columns))


def _write_parquet(path: Path, columns: Columns) -> None:
    arrays = {name: pa.array(values) for name, values in columns.items()}
    arrays["timestamp"] = arrays["timestamp"].cast(pa.timestamp("us", tz="UTC"))
    pq.write_table(pa.table(arrays), path, compression="zstd")


_WRITERS: tuple[tuple[str, Callable[[Path, Columns], None]], ...] = (
    (".jsonl.gz", _write_json_lines),
    (".csv", _write_csv),
    (".csv.gz", _write_csv),
    (".parquet", _write_parquet),
)


def _place(name: str, *, quote: bool) -> str:
    if name in {"host", "timestamp"}:
        return '"%s"' if quote else "%s"
    return "%.10g" if name.endswith("_ms") else "%d"


def _filled(row: str, columns: Columns) -> str:
    """One row after another, from a row with a place for each column's value."""
    texts = columns | {"timestamp": np.char.add(columns["timestamp"].astype("U23"), "Z")}
    values = zip(*(column.tolist() for column in texts.values()), strict=True)
    return "".join([row % each for each in values])
