"""The prometheus reader: metrics with labels, one sample a line.

The text exposition of Prometheus and OpenMetrics, `name{label="value"} number [time]`, and Influx's
line protocol, `measurement,tag=value field=number,... [time]`, whose fields are the metrics
`measurement.field`; `apis.py` reads what Prometheus' HTTP API answers. Labels tell the row, by
`join`, names the column; the samples of a scrape that tell one row are one row.
"""

import re
from collections.abc import Mapping
from typing import Any

from fabricobs.formats.cells import CellBlock, CellRows
from fabricobs.formats.context import Context, column_names
from fabricobs.formats.definition import Block, Definition
from fabricobs.formats.logs.lines import Outcome
from fabricobs.formats.rows import Rows
from fabricobs.formats.templates import TemplateError, compile_template
from fabricobs.formats.values import parse_time

_LABELS = r'\{(?P<labels>(?:[^"{}]|"(?:[^"\\]|\\.)*")*)\}'
_SAMPLE = re.compile(
    rf"(?P<name>[A-Za-z_:][\w:]*) ?(?:{_LABELS})?[ \t]+(?P<value>[-+]?(?:\d[\w.+-]*|\.\d+|NaN|Inf))"
    r"(?:[ \t]+(?P<ts>\d[\d.eE+]*))?(?:[ \t]+# .*)?\s*$",
    re.IGNORECASE,
)
_LABEL = re.compile(r'(\w+)\s*=\s*"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\(.)")
_COMMENT = re.compile(r"# (?:HELP|TYPE|UNIT) (?P<name>\S+)|# EOF\s*$")
_POINT = re.compile(
    r"(?P<name>[^,\s#]+)(?P<tags>(?:,(?:\\.|[^=,\s\\])+=(?:\\.|[^,\s\\])+)*)[ ]"
    r'(?P<fields>(?:(?:\\.|[^=,\s\\"])+=(?:"(?:[^"\\]|\\.)*"|[^,\s"]+),?)+)(?: (?P<ts>\d+))?\s*$'
)
_TAG = re.compile(r"((?:\\.|[^=,\\])+)=((?:\\.|[^,\\])+)")
_FIELD = re.compile(r'((?:\\.|[^=,\s\\"])+)=("(?:[^"\\]|\\.)*"|[^,\s"]+)')
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?")
# DCGM writes numbers from here on for "no value"; a counter this high is a negative number.
_BLANK = 0x7FFFFFFFFFFFFFF0
_MOST_KNOWN = 100_000


class MetricBlock(CellBlock):
    """A compiled block: the metrics it knows, and the columns their labels tell."""

    def __init__(self, block: Block, format_name: str) -> None:
        super().__init__(block, format_name)
        if block.table is None:
            raise TemplateError(f"{format_name}: a block of metrics needs a table")
        self._other = tuple(compile_template(source) for source in block.other)
        # What must be told of a row: which part of the device or host it is of.
        self.parts = frozenset(column_names(block.table)) & {"port", "gpu"}
        self._rows_of: dict[str, dict[str, Any]] = {}

    def knows(self, name: str) -> bool:
        """Say whether a metric fills a column, is kept in `other`, or is known and ignored."""
        if self.mapping.resolve(name) is not False:
            return True
        return any(template.pattern.match(name) for template in self._other)

    def ignores(self, name: str) -> bool:
        """Say whether a metric is known and not needed."""
        return self.mapping.resolve(name) is True

    def row_of(self, text: str, labels: Mapping[str, str]) -> dict[str, Any]:
        """Return the columns labels tell, `text` being how they are written."""
        found = self._rows_of.get(text)
        if found is None:
            found = self.join.columns(labels)
            if len(self._rows_of) < _MOST_KNOWN:
                self._rows_of[text] = found
        return found


class PrometheusFormat:
    """A compiled `prometheus` definition."""

    def __init__(self, definition: Definition) -> None:
        self.name = definition.name
        self.blocks = tuple(MetricBlock(block, definition.name) for block in definition.block)
        self._found: dict[str, MetricBlock | None] = {}
        kinds = (kind for block in definition.block for kind in block.kinds)
        self._kinds = tuple(dict.fromkeys(kinds))

    def full_name(self, name: str, labels: Mapping[str, str]) -> str:
        """Return a metric's name and the labels that tell what it counts."""
        told = (labels[kind] for kind in self._kinds if kind in labels)
        return ".".join((name, *told)) if self._kinds else name

    def keeps(self, name: str) -> bool:
        """Say whether the format keeps a metric of that name."""
        block = self.block_of(name)
        return block is not None and not block.ignores(name)

    def block_of(self, name: str) -> MetricBlock | None:
        """Return the first block that knows a metric."""
        if name not in self._found:
            if len(self._found) >= _MOST_KNOWN:
                self._found.clear()
            self._found[name] = next((block for block in self.blocks if block.knows(name)), None)
        return self._found[name]


class PrometheusReader:
    """One `prometheus` format reading one file."""

    def __init__(self, metrics: PrometheusFormat, context: Context, rows: Rows) -> None:
        self._format = metrics
        self._context = context
        self._cells = CellRows(context, rows)

    def offer(self, line: str, number: int) -> Outcome | str:
        """Take a sample or point whose metrics the format knows, and what is said about them."""
        found = _SAMPLE.match(line)
        if found is not None:
            text = found["labels"] or ""
            labels = labels_in(text)
            name = self._format.full_name(found["name"], labels)
            block = self._format.block_of(name)
            return self._take(block, [(name, found["value"])], text, labels, found["ts"], number)
        if line.startswith("#"):
            said = _COMMENT.match(line)
            known = said is not None and (
                said["name"] is None or self._format.block_of(said["name"]) is not None
            )
            return Outcome.IGNORED if known else Outcome.NOT_MINE
        found = _POINT.match(line)
        return Outcome.NOT_MINE if found is None else self._point(found, number)

    def opens(self, line: str) -> bool:
        """Say whether the line is beyond doubt one of the format's metrics."""
        found = _SAMPLE.match(line)
        if found is None:
            return False
        name = self._format.full_name(found["name"], labels_in(found["labels"] or ""))
        block = self._format.block_of(name)
        return block is not None and not block.ignores(name)

    def boundary(self, line: str, number: int) -> None:
        """End the scrape: a date, prompt or command stands here."""
        if line:
            self._cells.flush()

    def finish(self) -> None:
        """Hand over what is still open."""
        self._cells.flush()

    def _point(self, found: re.Match[str], number: int) -> Outcome | str:
        tags = {_plain(key): _plain(value) for key, value in _TAG.findall(found["tags"])}
        outcome: Outcome | str = Outcome.NOT_MINE
        by_block: dict[MetricBlock, list[tuple[str, str]]] = {}
        dropped: list[str] = []
        for key, value in _FIELD.findall(found["fields"]):
            name = f"{_plain(found['name'])}.{_plain(key)}"
            block = self._format.block_of(name)
            if block is None or not value[-2:].strip("-+.iu").isdecimal():
                dropped.append(name)  # nobody knows it, or it is a text or a truth
            else:
                by_block.setdefault(block, []).append((name, value.rstrip("iu")))
        if by_block:
            self._context.drop_fields(dropped)
        for block, cells in by_block.items():
            taken = self._take(block, cells, found["tags"], tags, found["ts"], number)
            if outcome is not Outcome.PARSED:
                outcome = taken
        return outcome

    def _take(
        self,
        block: MetricBlock | None,
        cells: list[tuple[str, str]],
        text: str,
        labels: Mapping[str, str],
        ts: str | None,
        number: int,
    ) -> Outcome | str:
        if block is None:
            return Outcome.NOT_MINE
        wanted = [(name, value) for name, value in cells if not block.ignores(name)]
        self._context.drop_fields(name for name, _ in cells if block.ignores(name))
        if not wanted:
            return Outcome.IGNORED
        try:
            given = dict(block.row_of(text, labels))
            if ts is not None:
                given["ts"] = parse_time(_decimal(ts) or ts)
            add_samples(self._cells, block, wanted, given, number)
        except ValueError as error:
            return f"{self._format.name}: {error}"
        return Outcome.PARSED


def add_samples(
    cells: CellRows,
    block: MetricBlock,
    samples: list[tuple[str, str]],
    given: Mapping[str, Any],
    number: int,
) -> None:
    """Add samples of one row; NaN and infinities are no value. ValueError for garbage."""
    missing = [name for name in ("port", "gpu") if name in block.parts and name not in given]
    if missing:
        raise ValueError(f"no label names the {missing[0]}")
    measured = [(name, text) for name, value in samples if (text := _decimal(value)) is not None]
    cells.add(block, measured, number, given)


def _decimal(value: str) -> str | None:
    """Return a number written as counters are, 1.2e+07 as 12000000; None for what is no value."""
    if value.isdecimal() and len(value) < 19:
        return value
    if _NUMBER.fullmatch(value) is None:
        if value.lower().lstrip("+-") in {"nan", "inf"}:
            return None
        raise ValueError(f"{value} is no number")
    exact = int(value) if value.lstrip("+-").isdecimal() else float(value)
    if abs(exact) >= _BLANK:
        return None
    return str(int(exact)) if exact == int(exact) else repr(exact)


def labels_in(text: str) -> dict[str, str]:
    """Return the labels written as `name="value", ...`."""
    return {key: _unescaped(value) for key, value in _LABEL.findall(text)}


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    return _ESCAPE.sub(lambda found: "\n" if found[1] == "n" else found[1], text)


def _plain(text: str) -> str:
    """Take Influx's escapes out of a name or tag."""
    return _ESCAPE.sub(r"\1", text) if "\\" in text else text
