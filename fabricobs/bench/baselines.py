"""What people do today, one function a baseline, each run as a process of its own.

python -m fabricobs.bench.baselines NAME FOLDER OUT
"""

import json
import os
import re
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

_COLL = re.compile(
    r"^(\S+):(\d+):(\d+) \[(\d+)\] NCCL INFO (\w+): opCount ([0-9a-f]+) sendbuff (\S+) "
    r"recvbuff (\S+) count (\d+) datatype (\d+) op (\d+) root (\d+) comm (\S+) "
    r"\[nranks=(\d+)\] stream (\S+)"
)

_NCCL = re.compile(r"(\S+):(\d+):(\d+) (?:\[(\d+)\] )?NCCL (INFO|WARN|TRACE) (.*)")
_TRAINERS = {
    "megatron": re.compile(
        r"iteration +(\d+)/ *(\d+) \|.*elapsed time per iteration \(ms\): ([\d.]+) \|"
        r".*lm loss: (\S+) \|"
    ),
    "deepspeed": re.compile(r"step=(\d+), skipped|CurrSamplesPerSec=([\d.]+)|time \(ms\) \| (.*)"),
    "nanogpt": re.compile(r"iter (\d+): loss ([\d.]+), time ([\d.]+)ms"),
}


def match_with_re(folder: Path, out: Path) -> None:
    """Match every line by a compiled expression, and keep nothing."""
    for path in sorted(folder.iterdir()):
        with path.open() as file:
            for line in file:
                _COLL.match(line)


def search_with_re(folder: Path, out: Path) -> None:
    """Search every line of NCCL or of a trainer by a compiled expression, and keep nothing."""
    for path in sorted(folder.iterdir()):
        expression = _TRAINERS.get(path.stem, _NCCL)
        with path.open(errors="replace") as file:
            for line in file:
                expression.search(line)


def json_and_pandas(folder: Path, out: Path) -> None:
    """Convert each file of JSON lines by json.loads and pandas, one process a core."""
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(_one_file, [(p, out) for p in sorted(folder.glob("*.log"))]))


def _one_file(job: tuple[Path, Path]) -> None:
    import pandas as pd

    path, out = job
    rows = []
    with path.open() as file:
        for line in file:
            record = json.loads(line)
            row = dict(record["header"])
            row.update(record["metadata"])
            row.update(record["coll_perf"])
            rows.append(row)
    pd.DataFrame(rows).to_parquet(out / f"{path.stem}.parquet")


def read_and_split(folder: Path, out: Path) -> None:
    """Read every file and split every line, one process."""
    for path in sorted(folder.rglob("*.txt")):
        for line in path.read_text().splitlines():
            line.split()


def polars_csv(folder: Path, out: Path) -> None:
    """Stream the CSV files to Parquet by polars."""
    import polars as pl

    pl.scan_csv(folder / "*.csv").sink_parquet(out / "ports.parquet")


BASELINES = {
    f.__name__: f
    for f in (match_with_re, search_with_re, json_and_pandas, read_and_split, polars_csv)
}

if __name__ == "__main__":
    BASELINES[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]))
