"""`fabricobs bench scale`: what ingest and diagnosis take as a cluster grows.

`make bench-scale` measures commits and a cluster of workers too.

The scenario is a straggling rank, 500 steps long, with counters every 10 s of switches and NICs.
"""

import math
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from fabricobs.bench import commits, machines
from fabricobs.bench.processes import Run, timed
from fabricobs.simulator.cases import write_case
from fabricobs.simulator.scenarios import Scenario, load_scenario
from fabricobs.simulator.shapes import ScenarioShape

SIZES = (128, 512, 1024, 4096)
SCENARIO = "straggling_rank"
_STEPS = 500
_INTERVAL_SECONDS = 10
_SEED = 7_000
_MEASURED = ("collectives", "steps", "phases", "port_samples", "priority_samples")


@dataclass(frozen=True, slots=True)
class Scale:
    """One size: rows of the large tables, and what each command took."""

    gpus: int
    rows: int
    ingest: Run
    diagnose: Run


def bench(sizes: Sequence[int] = SIZES) -> str:
    """Simulate, ingest and diagnose a cluster of each size; the table as text."""
    measured = []
    for gpus in sizes:
        print(f"{gpus} GPUs ...", file=sys.stderr)
        with tempfile.TemporaryDirectory(prefix="fabricobs-scale-") as folder:
            measured.append(_measure(Path(folder), gpus))
    return table(measured)


def _measure(folder: Path, gpus: int) -> Scale:
    write_case(folder, _long(load_scenario(SCENARIO).sized(gpus)), seed=_SEED)
    store = folder / "store"
    command = Path(sys.executable).parent / "fabricobs"
    ingest = timed([command, "ingest", folder / "logs", "--store", store])
    diagnose = timed([command, "diagnose", "--store", store, "--fail-on", "never"])
    files = [pl.scan_parquet(f"{store}/*/{name}.parquet") for name in _MEASURED]
    rows = sum(int(file.select(pl.len()).collect().item()) for file in files)
    return Scale(gpus, rows, ingest, diagnose)


def _long(scenario: Scenario) -> Scenario:
    shape = scenario.shape.model_dump()
    for job in shape["jobs"]:
        job["steps"] = _STEPS
    shape["collection"] |= {
        "switch_interval": _INTERVAL_SECONDS,
        "host_interval": _INTERVAL_SECONDS,
    }
    return Scenario(scenario.name, ScenarioShape.model_validate(shape))


def table(measured: Sequence[Scale]) -> str:
    """Return one line a size; seconds a million rows tell whether it grows with the rows."""
    lines = [
        f"{_STEPS} steps, counters every {_INTERVAL_SECONDS} s, {SCENARIO}",
        f"{'GPUs':>6}{'rows':>14}{'ingest s':>10}{'MiB':>7}{'diagnose s':>12}{'MiB':>7}"
        f"{'s a million rows':>18}",
    ]
    lines += [
        f"{each.gpus:>6}{each.rows:>14,}{each.ingest.seconds:>10.1f}{each.ingest.peak_mib:>7.0f}"
        f"{each.diagnose.seconds:>12.1f}{each.diagnose.peak_mib:>7.0f}"
        f"{1e6 * each.diagnose.seconds / each.rows:>18.2f}"
        for each in measured
    ]
    if len(measured) > 1:
        first, last = measured[0], measured[-1]
        grown = math.log(last.diagnose.seconds / first.diagnose.seconds)
        exponent = grown / math.log(last.rows / first.rows)
        lines.append(f"diagnosis grows with the rows to the power of {exponent:.2f}")
    return "\n".join(lines)


def _all() -> None:
    """Measure commits, workers and sizes, each told as it is done."""
    for measure in (commits.table, machines.table, bench):
        print(measure(), end="\n\n", flush=True)


if __name__ == "__main__":
    _all()
