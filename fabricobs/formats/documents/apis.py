"""Exported series of Prometheus metrics (`series.py`), read by `prometheus` definitions.

A series holds one counter over time, a row all counters at one time: the points are put in the
order of rows first. A series without a name is a rate or a sum of which nobody knows what it is.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from fabricobs.formats.cells import CellRows
from fabricobs.formats.context import Context
from fabricobs.formats.documents.prometheus import (
    MetricBlock,
    PrometheusFormat,
    add_samples,
)
from fabricobs.formats.documents.series import all_series
from fabricobs.formats.rows import Rows, Tally
from fabricobs.formats.values import parse_time

_Sample = tuple[int, str, str]


def read_answers(
    data: bytes,
    formats: Sequence[PrometheusFormat],
    context: Context,
    rows: Rows,
    tally: Tally,
) -> None:
    """Read the series of a file; all their lines count as read but the first where one fails."""
    text = data.decode("utf-8", "replace")
    lines = text.count("\n") + (not text.endswith("\n") and text != "")
    problems: dict[str, None] = {}
    by_row: dict[tuple[Any, ...], tuple[MetricBlock, dict[str, Any], list[_Sample]]] = {}
    for series in all_series(text, lambda name: _keeps(formats, name)):
        if series.problem:
            problems[series.problem] = None
            continue
        name = series.labels.get("__name__")
        if name is None:
            problems["a series without a name: ask for the counter, not for its rate"] = None
            continue
        found = _block(formats, name, series.labels)
        if found is None:
            context.drop_fields([name], len(series.points))
            continue
        name, block = found
        try:
            given = block.join.columns(series.labels)
            moments = [(parse_time(ts, context.zone), value) for ts, value in series.points]
        except ValueError as error:
            problems[str(error)] = None
            continue
        identity = (id(block), *sorted((k, str(v)) for k, v in given.items()))
        held = by_row.setdefault(identity, (block, given, []))[2]
        held.extend((ts, name, value) for ts, value in moments)
    cells = CellRows(context, rows)
    for block, given, samples in by_row.values():
        for ts, name, value in sorted(samples):
            try:
                add_samples(cells, block, [(name, value)], {**given, "ts": ts}, 1)
            except ValueError as error:
                problems[str(error)] = None
        cells.flush()
    missed = list(problems)[: max(lines, 1)]
    for number, problem in enumerate(missed, 1):
        tally.miss(number, f"{formats[0].name}: {problem}", "")
    tally.read(max(lines - len(missed), 0))


def _keeps(formats: Sequence[PrometheusFormat], name: str) -> bool:
    return any(metrics.keeps(name) for metrics in formats)


def _block(
    formats: Sequence[PrometheusFormat], name: str, labels: Mapping[str, str]
) -> tuple[str, MetricBlock] | None:
    """Return the first block that keeps a metric, and the metric's full name there."""
    for metrics in formats:
        full = metrics.full_name(name, labels)
        block = metrics.block_of(full)
        if block is not None and not block.ignores(full):
            return full, block
    return None
