"""`make bench`: whole processes from files to Parquet against the baselines, one table.

Every figure is the median of several runs of one session on one machine; what counts is the bar.
Kinds of line are read alone, in this process, and compared with COLL lines read the same way.
"""

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from fabricobs import content
from fabricobs.bench import drawn, inputs
from fabricobs.bench.processes import Run, timed
from fabricobs.formats.context import Context
from fabricobs.formats.logs import bulk
from fabricobs.formats.reading import FileResult, read_file
from fabricobs.formats.recognition.catalogue import load_catalogue
from fabricobs.formats.recognition.format import Recognised
from fabricobs.formats.rows import Rows
from fabricobs.resources import cores

_QUICK = 0.005
_KIND_LINES = 40_000
_COLL = "nccl_debug 0"
_SLOWEST = 5.0  # times COLL
_MOST_MIB = 512
_FIRST = 1.5  # times the second ingest
_CONTENT: tuple[content.Kind, ...] = ("ingest", "queries", "models")


@dataclass(frozen=True, slots=True)
class Case:
    """An input, what it is compared with, and what is to be reached: the ratio (baseline /
    fabricobs) of wall-clock seconds, or CPU seconds a GB."""

    name: str
    make: Callable[[Path], None]
    baseline: str
    least_ratio: float | None = None
    most_cpu: float | None = None


def cases(share: float) -> list[Case]:
    """Return the cases at a share of their full size."""

    def case(
        name: str, size: float, make: Callable[..., None], baseline: str, **bar: float
    ) -> Case:
        return Case(name, partial(make, size=int(size * share)), baseline, **bar)

    return [
        case("COLL lines, 1 GB", 1e9, inputs.coll_lines, "match_with_re", least_ratio=3),
        *(
            case(
                f"INFO logs of seed {seed}, 1 GB",
                1e9,
                partial(inputs.info_logs, seed=seed),
                "search_with_re",
                least_ratio=3,
            )
            for seed in (1, 2, 3)
        ),
        case("trainer stdout, 300 MB", 3e8, inputs.trainer_logs, "search_with_re", least_ratio=1),
        case(
            "Inspector JSON, 500 MB", 5e8, inputs.inspector_lines, "json_and_pandas", least_ratio=10
        ),
        case("SONiC snapshots, 200 MB", 2e8, inputs.sonic, "read_and_split", most_cpu=60),
        case("ethtool snapshots, 100 MB", 1e8, inputs.ethtool, "read_and_split", most_cpu=60),
        case("sysfs snapshots, 100 MB", 1e8, inputs.sysfs, "read_and_split", most_cpu=60),
        case("per-port CSV, 1 GB", 1e9, inputs.port_rows, "polars_csv", least_ratio=0.5),
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


def _line(name: str, figures: str, measured: str, bar: str, met: bool) -> None:
    print(
        f"{name:36} {figures:50} {measured:>16} {bar:>14} {'met' if met else 'MISSED'}", flush=True
    )


def _measure(case: Case, folder: Path, runs: int) -> None:
    case.make(folder)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    most = cores()
    baseline: list[Run] = []
    one: list[Run] = []
    many: list[Run] = []
    with tempfile.TemporaryDirectory() as name:
        out = Path(name)
        for _ in range(runs):
            parts = [sys.executable, "-m", "fabricobs.bench.baselines", case.baseline]
            baseline.append(timed([*parts, folder, out]))
            for workers, into in ((1, one), (most, many)):
                store = out / "store"
                shutil.rmtree(store, ignore_errors=True)
                into.append(timed(_ingest(folder, store, workers)))
    base, single, full = _median(baseline), _median(one), _median(many)
    figures = (
        f"{size / 1e6:6.0f} {base.seconds:7.2f} {full.seconds:7.2f} {base.processor_seconds:8.2f} "
        f"{full.processor_seconds:8.2f} {single.seconds / full.seconds:6.2f}"
    )
    ratio, cpu = base.seconds / full.seconds, full.processor_seconds / (size / 1e9)
    if case.least_ratio is not None:
        bar = f"at least {case.least_ratio:g}"
        _line(case.name, figures, f"{ratio:.2f} x base", bar, ratio >= case.least_ratio)
    if case.most_cpu is not None:
        bar = f"at most {case.most_cpu:g}"
        _line(case.name, figures, f"{cpu:.0f} CPU s/GB", bar, cpu <= case.most_cpu)
    _line("", "", f"{full.peak_mib:.0f} MiB", f"at most {_MOST_MIB}", full.peak_mib <= _MOST_MIB)


def _measure_first(case: Case, folder: Path, runs: int) -> None:
    """Compare the first ingest on a machine, that compiles the kernels, with the second."""
    case.make(folder)
    first: list[Run] = []
    second: list[Run] = []
    package = Path(content.__file__).parent
    with tempfile.TemporaryDirectory() as name:
        for run in range(runs):
            root = Path(name) / str(run)
            # A checkout: the content lies beside the package.
            for part in (package, *map(content.shipped, _CONTENT)):
                shutil.copytree(part, root / part.name, ignore=shutil.ignore_patterns("*.o"))
            for into, store in ((first, "first"), (second, "second")):
                command = _ingest(folder, root / store, cores())
                into.append(timed(["env", f"PYTHONPATH={root}", *command]))
    begun, again = _median(first), _median(second)
    ratio = begun.seconds / again.seconds
    figures = f"{'':6} {again.seconds:7.2f} {begun.seconds:7.2f}"
    _line(
        f"first ingest: {case.name}", figures, f"{ratio:.2f} x second", f"at most {_FIRST:g}",
        ratio <= _FIRST,
    )  # fmt: skip


def _measure_kinds(lines: int, seed: int = 1) -> None:
    """Read each kind of line of NCCL alone; print the CPU time of all, the slowest last."""
    formats = tuple(load_catalogue().formats[name] for name in drawn.NCCL)
    found: list[tuple[float, str, FileResult]] = []
    kinds = drawn.kinds(drawn.NCCL)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kind.log"
        # The first is read twice: what loading costs is no line's.
        for name, draw in (next(iter(kinds.items())), *kinds.items()):
            rng = Random(seed)
            before = drawn.before_nccl(rng)
            path.write_text("\n".join(before(draw(rng)) for _ in range(lines)) + "\n")
            rows = Rows()
            started = time.process_time()
            flush = partial(_drop, rows)
            result = read_file(path, Recognised("text", formats), Context("bench"), rows, flush)
            flush()
            found.append(((time.process_time() - started) / lines * 1e6, name, result))
    del found[0]
    coll = next(micros for micros, name, _ in found if name.startswith(_COLL))
    for micros, name, result in sorted(found, key=lambda each: each[0]):
        figures = f"{result.rows:,} rows of {lines:,} lines, {result.tally.unparsed:,} unread"
        _line(
            name[:36], figures, f"{micros:.2f} us/line", f"at most {_SLOWEST * coll:.2f}",
            micros <= _SLOWEST * coll,
        )  # fmt: skip


def _drop(rows: Rows) -> None:
    for _ in rows.drain():
        pass


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
    parser.add_argument("--only", default="", help="part of the name of a case, or kinds")
    parser.add_argument("--inputs", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument(
        "--quick",
        action="store_true",
        help="see that it works: small, once; the bars are those of the full size",
    )
    options = parser.parse_args()
    share, runs = (_QUICK, 1) if options.quick else (options.share, options.runs)
    root = options.inputs / f"fabricobs-bench-{share:g}"
    print(
        f"{'input':36} {'MB':>6} {'base s':>7} {'ours s':>7} {'base cpu':>8} {'ours cpu':>8} "
        f"{'1 to N':>6} {'measured':>16} {'bar':>14}"
    )
    all_cases = cases(share)
    for case in all_cases:
        if options.only.lower() in case.name.lower():
            _measure(case, root / case.name.replace(" ", "-"), runs)
    for case in all_cases[:2]:
        if options.only.lower() in f"first ingest: {case.name}".lower():
            _measure_first(case, root / case.name.replace(" ", "-"), runs)
    if options.only.lower() in "kinds of line":
        bulk.LEAST_BYTES = 0
        _measure_kinds(max(500, int(_KIND_LINES * share)))
    _ripgrep(root / all_cases[0].name.replace(" ", "-"))


if __name__ == "__main__":
    main()
