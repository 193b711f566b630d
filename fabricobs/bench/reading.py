"""`make bench`: whole processes from files to Parquet against the baselines, one table.

Every figure is the median of several runs of one session on one machine; what counts is the ratio.
"""

import argparse
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fabricobs.bench import inputs
from fabricobs.bench.processes import Run, timed
from fabricobs.resources import cores


@dataclass(frozen=True, slots=True)
class Case:
    """An input, what it is compared with, and the ratio (baseline / fabricobs) to reach."""

    name: str
    make: Callable[[Path], None]
    baseline: str
    least_ratio: float


def cases(share: float) -> list[Case]:
    """Return the cases at a share of their full size."""
    return [
        Case(
            "COLL lines, 1 GB",
            lambda folder: inputs.coll_lines(folder, int(1e9 * share)),
            "match_with_re",
            3.0,
        ),
        *(
            Case(
                f"INFO logs drawn by seed {seed}, 1 GB",
                partial(inputs.info_logs, size=int(1e9 * share), seed=seed),
                "search_with_re",
                3.0,
            )
            for seed in (1, 2, 3)
        ),
        Case(
            "trainer stdout, 300 MB",
            lambda folder: inputs.trainer_logs(folder, int(3e8 * share)),
            "search_with_re",
            1.0,
        ),
        Case(
            "Inspector JSON, 500 MB",
            lambda folder: inputs.inspector_lines(folder, int(5e8 * share)),
            "json_and_pandas",
            10.0,
        ),
        Case(
            "20,000 SONiC snapshots, 200 MB",
            lambda folder: inputs.snapshots(folder, int(20_000 * share)),
            "read_and_split",
            1 / 3,
        ),
        Case(
            "per-port CSV, 1 GB",
            lambda folder: inputs.port_rows(folder, int(1e9 * share)),
            "polars_csv",
            0.5,
        ),
    ]


def _median(runs: Sequence[Run]) -> Run:
    return Run(
        statistics.median(run.seconds for run in runs),
        statistics.median(run.processor_seconds for run in runs),
        max(run.peak_mib for run in runs),
    )


def _ingest(folder: Path, store: Path, workers: int) -> list[str | Path]:
    return [
        sys.executable, "-c", "from fabricobs.cli import main; main()",
        "ingest", folder, "--store", store, "--workers", str(workers),
    ]  # fmt: skip


def _measure(case: Case, folder: Path, runs: int) -> None:
    case.make(folder)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    most = cores()
    baseline: list[Run] = []
    one: list[Run] = []
    many: list[Run] = []
    again: list[Run] = []
    with tempfile.TemporaryDirectory() as name:
        out = Path(name)
        for _ in range(runs):
            parts = [sys.executable, "-m", "fabricobs.bench.baselines", case.baseline]
            baseline.append(timed([*parts, folder, out]))
            for workers, into in ((1, one), (most, many)):
                store = out / "store"
                shutil.rmtree(store, ignore_errors=True)
                into.append(timed(_ingest(folder, store, workers)))
            again.append(timed(_ingest(folder, store, most)))
    base, single, full, second = _median(baseline), _median(one), _median(many), _median(again)
    ratio = base.seconds / full.seconds
    met = "met" if ratio >= case.least_ratio else "MISSED"
    print(
        f"{case.name:33} {size / 1e6:7.0f} {case.baseline:16} {base.seconds:7.2f} "
        f"{full.seconds:7.2f} {base.processor_seconds:8.2f} {full.processor_seconds:8.2f} "
        f"{size / 1e6 / full.seconds:6.0f} {ratio:6.2f} "
        f"{case.least_ratio:5.2f} {met:6} {single.seconds / full.seconds:6.2f} "
        f"{second.seconds / full.seconds:6.1%} {full.peak_mib:6.0f}",
        flush=True,
    )


def _ripgrep(folder: Path) -> None:
    """Show the limit, where ripgrep is installed: counting the lines of the same shape."""
    program = shutil.which("rg")
    if program is None:
        return
    pattern = r"^\S+:\d+:\d+ \[\d+\] NCCL INFO \w+: opCount [0-9a-f]+ .*\[nranks=\d+\]"
    run = timed([program, "-c", pattern, *sorted(folder.glob("*.log"))])
    print(f"ripgrep counts the COLL lines in {run.seconds:.2f} s")


def main() -> None:
    """Run the bench and print its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="share of the full size")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="", help="part of a case's name")
    parser.add_argument("--inputs", type=Path, default=Path(tempfile.gettempdir()))
    options = parser.parse_args()
    root = options.inputs / f"fabricobs-bench-{options.share:g}"
    print(
        f"{'input':33} {'MB':>7} {'baseline':16} {'base s':>7} {'ours s':>7} "
        f"{'base cpu':>8} {'ours cpu':>8} {'MB/s':>6} "
        f"{'ratio':>6} {'bar':>5} {'':6} {'1 to N':>6} {'again':>6} {'MiB':>6}"
    )
    for case in cases(options.share):
        if options.only.lower() in case.name.lower():
            _measure(case, root / case.name.replace(" ", "-"), options.runs)
    _ripgrep(root / cases(options.share)[0].name.replace(" ", "-"))


if __name__ == "__main__":
    main()
