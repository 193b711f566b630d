"""CSV of a Weights & Biases chart: a column a run, headed `<run> - <metric>`.

A run is a job: its name fills `job` unless --job was given. A line gives a row for each run that
has a value in it.
"""

import csv
from datetime import UTC
from typing import Any

from fabricobs.formats.mapping import Target
from fabricobs.formats.records.values import from_text
from fabricobs.formats.source import line_blocks
from fabricobs.formats.values import parse_time
from fabricobs.formats.whole import WholeFile, whole_cell

_SEPARATOR = " - "
_RANGES = ("__MIN", "__MAX")


def read_wandb_csv(file: WholeFile) -> None:
    """Read one chart; a chart against anything but the step uses each run's own `_step`."""
    header: list[str] | None = None
    for block in line_blocks(file.stream):
        lines = block.data.decode("utf-8-sig" if block.first == 1 else "utf-8", "replace")
        for line, text in enumerate(lines.rstrip("\n").split("\n"), block.first):
            cells = _cells(text)
            if header is None or not text.strip():
                file.tally.skip()
                header = cells or header
            elif len(cells) != len(header):
                file.tally.miss(line, f"{file.format.name}: {len(header)} columns", text)
            elif _read_line(file, dict(zip(header, cells, strict=True)), line):
                file.tally.read()
            else:
                file.tally.skip()
            file.flush()


def _cells(text: str) -> list[str]:
    try:
        return next(csv.reader([text.replace("\x00", "")]), [])
    except csv.Error:
        return []


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
            if target is False:
                file.unused.add(heading)
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
