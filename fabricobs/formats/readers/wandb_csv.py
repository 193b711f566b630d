"""CSV of a Weights & Biases chart: a column a run, headed `<run> - <metric>`.

A run is a job: its name fills `job` unless --job was given. A line gives a row for each run that
has a value in it.
"""

from datetime import UTC
from typing import Any

from fabricobs.formats.mapping import Target
from fabricobs.formats.records.csv_records import split_line
from fabricobs.formats.records.values import from_text
from fabricobs.formats.values import parse_time
from fabricobs.formats.whole import WholeFile, whole_cell

_SEPARATOR = " - "
_RANGES = ("__MIN", "__MAX")


def read_wandb_csv(file: WholeFile) -> None:
    """Read one chart; a chart against anything but the step uses each run's own `_step`."""
    header: list[str] | None = None
    for line, text in file.lines():
        cells = split_line(text, ",")
        if header is None:
            file.tally.skip()
            header = cells
        elif len(cells) != len(header):
            file.miss(line, f"{len(header)} columns", text)
        elif _read_line(file, dict(zip(header, cells, strict=True)), line):
            file.tally.read()
        else:
            file.tally.skip()
        file.flush()


def _read_line(file: WholeFile, cells: dict[str, str], line: int) -> bool:
    runs: dict[str, dict[str, Any]] = {}
    steps: dict[str, str] = {}
    for heading, cell in cells.items():
        run, found, metric = heading.rpartition(_SEPARATOR)
        if not found or not cell or heading.endswith(_RANGES):
            continue
        if metric == "_step":
            steps[run] = cell
            continue
        target = file.format.blocks[0][1].resolve(metric)
        if not isinstance(target, Target):
            file.context.drop_fields([metric])
            continue
        runs.setdefault(run, {})[target.column.name] = from_text(cell, target, UTC)
    for run, row in runs.items():
        step = whole_cell(cells.get("Step") or steps.get(run))
        file.add("steps", row | {"job": run, "step": step}, line, _time(cells.get("Wall Time")))
    return bool(runs)


def _time(text: str | None) -> int | None:
    try:
        return parse_time(text) if text else None
    except ValueError:
        return None
