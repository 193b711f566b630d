"""Answers of Prometheus' HTTP API (query and query_range), read by `prometheus` definitions.

A series holds one counter over time, a row all counters at one time: the points are put in the
order of rows first. A series without a name is a rate or a sum of which nobody knows what it is.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from fabricobs.formats.cells import CellRows
from fabricobs.formats.context import Context
from fabricobs.formats.documents.jsontext import documents
from fabricobs.formats.documents.prometheus import (
    MetricBlock,
    PrometheusFormat,
    add_samples,
    series,
)
from fabricobs.formats.rows import Rows, Tally
from fabricobs.formats.values import parse_time

_Sample = tuple[float, str, str]


def read_answers(
    data: bytes,
    formats: Sequence[PrometheusFormat],
    context: Context,
    rows: Rows,
    tally: Tally,
) -> None:
    """Read the answers of a file; all their lines count as read but the first where one fails."""
    text = data.decode("utf-8", "replace")
    lines = text.count("\n") + (not text.endswith("\n") and text != "")
    problems: dict[str, None] = {}
    by_row: dict[tuple[Any, ...], tuple[MetricBlock, dict[str, Any], list[_Sample]]] = {}
    for document in documents(text):
        if document.problem:
            problems[document.problem] = None
        for labels, points in series(document.value):
            name = labels.get("__name__")
            if name is None:
                problems["a series without a name: ask for the counter, not for its rate"] = None
                continue
            found = _block(formats, name, labels)
            if found is None:
                context.drop_fields([name], len(points))
                continue
            name, block = found
            try:
                given = block.join.columns(labels)
            except ValueError as error:
                problems[str(error)] = None
                continue
            identity = (id(block), *sorted((k, str(v)) for k, v in given.items()))
            held = by_row.setdefault(identity, (block, given, []))[2]
            held.extend((ts, name, value) for ts, value in points)
    cells = CellRows(context, rows)
    for block, given, samples in by_row.values():
        for ts, name, value in sorted(samples):
            try:
                moment = parse_time(f"{ts:.6f}")
                add_samples(cells, block, [(name, value)], {**given, "ts": moment}, 1)
            except ValueError as error:
                problems[str(error)] = None
        cells.flush()
    missed = list(problems)[: max(lines, 1)]
    for number, problem in enumerate(missed, 1):
        tally.miss(number, f"{formats[0].name}: {problem}", "")
    tally.read(max(lines - len(missed), 0))


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
