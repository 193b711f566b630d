"""The readers that work in columns: CSV, JSON lines and Parquet.

A block of lines becomes a frame whose columns are named as the source names them (`header.rank`
for nested JSON); from there all three share the way to the table. Each line is accounted for: one
that the fast path refuses is read again alone.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet

from fabricobs.formats.context import Context, column_names
from fabricobs.formats.definition import Block, Definition
from fabricobs.formats.mapping import ColumnMapping, Target
from fabricobs.formats.rows import Rows, Tally
from fabricobs.formats.source import LineBlock
from fabricobs.formats.values import parse_time, parse_whole
from fabricobs.store.tables import Type

_POLARS: dict[Type, pl.DataType] = {
    "VARCHAR": pl.String(),
    "BIGINT": pl.Int64(),
    "DOUBLE": pl.Float64(),
    "BOOLEAN": pl.Boolean(),
    "TIMESTAMP": pl.String(),
}
_PARQUET_ROWS = 100_000


class RecordFormat:
    """A compiled csv, jsonl or parquet definition."""

    def __init__(self, definition: Definition) -> None:
        self.name = definition.name
        self.required = definition.detect.columns
        self.blocks = tuple((block, ColumnMapping(block)) for block in definition.block)

    def sources_of(self, keys: list[str]) -> dict[str, Target]:
        """Return which of the source's keys fill columns of the first block."""
        mapping = self.blocks[0][1]
        return {k: t for k in keys if isinstance(t := mapping.resolve(k), Target)}

    def fits(self, keys: list[str]) -> bool:
        """Say whether the keys fill every column the definition demands."""
        filled = {target.column.name for target in self.sources_of(keys).values()}
        return set(self.required) <= filled


@dataclass(slots=True)
class RecordReader:
    """One record format reading one file."""

    record_format: RecordFormat
    context: Context
    rows: Rows
    tally: Tally
    unused: set[str] = field(default_factory=set)
    _sticky: dict[str, Any] = field(default_factory=dict)

    def read_csv(self, blocks: Iterator[LineBlock]) -> None:
        """Read CSV or TSV: the first line that is not blank is the header."""
        header: list[str] | None = None
        delimiter = ","
        for block in blocks:
            data, first = block.data, block.first
            self._count_overlong(block)
            while header is None and data:
                line, _, data = data.partition(b"\n")
                first += 1
                self.tally.skip()
                text = line.decode("utf-8-sig", "replace").strip()
                if text:
                    header, delimiter = split_header(text)
                    self._note_unused(header)
            if header is not None and data:
                self._csv_block(data, first, header, delimiter, set(block.overlong))

    def _csv_block(
        self, data: bytes, first: int, header: list[str], delimiter: str, overlong: set[int]
    ) -> None:
        lines = _whole_lines(data)
        filled = [(first + i, line) for i, line in enumerate(lines) if line]
        self.tally.skip(len(lines) - len(filled) - len(overlong))
        if not filled:
            return
        wanted = list(self.record_format.sources_of(header))
        text = b"\n".join(line for _, line in filled)
        table, invalid = _parse_csv(text, len(filled), header, delimiter, wanted)
        for position in sorted(invalid):
            number, line = filled[position]
            reason = f"{self.record_format.name}: {len(header)} columns"
            self.tally.miss(number, reason, line.decode("utf-8", "replace"))
        numbers = [number for i, (number, _) in enumerate(filled) if i not in invalid]
        frame = pl.DataFrame(table).with_columns(pl.Series("line", numbers, pl.Int64))
        self._emit(frame, 0, required=True)

    def read_jsonl(self, blocks: Iterator[LineBlock]) -> None:
        """Read JSON lines; each record goes to the block whose `where` key it has."""
        schema = _json_schema([mapping for _, mapping in self.record_format.blocks], self._kinds())
        for block in blocks:
            self._count_overlong(block)
            overlong = set(block.overlong)
            numbered = [
                (block.first + i, line)
                for i, line in enumerate(_text_lines(block.data))
                if block.first + i not in overlong
            ]
            filled = [(number, line) for number, line in numbered if line.strip()]
            self.tally.skip(len(numbered) - len(filled))
            if filled:
                self._json_block(filled, schema)

    def _json_block(self, filled: list[tuple[int, str]], schema: pl.Struct) -> None:
        numbers = [number for number, _ in filled]
        try:
            records = pl.Series("record", [line for _, line in filled]).str.json_decode(schema)
            if len(records) != len(filled):
                raise ValueError("a line was taken for none or several records")
        except (pl.exceptions.PolarsError, ValueError):
            numbers, kept = self._json_one_by_one(filled, schema)
            records = pl.Series("record", kept, schema)
        if not len(records):
            return
        frame = records.struct.unnest().with_columns(pl.Series("line", numbers, pl.Int64))
        for key in self.record_format.blocks[0][0].sticky:
            frame = self._hold(frame, key)
        frame = _flatten(frame)
        self._emit_kinds(frame)

    def _json_one_by_one(
        self, filled: list[tuple[int, str]], schema: pl.Struct
    ) -> tuple[list[int], list[dict[str, Any]]]:
        numbers: list[int] = []
        kept: list[dict[str, Any]] = []
        for number, line in filled:
            try:
                record = json.loads(line)
                if not isinstance(record, dict):
                    raise ValueError("not an object")
                kept.append(_conform(record, schema))
                numbers.append(number)
            except (ValueError, TypeError, OverflowError, RecursionError) as error:
                self.tally.miss(number, f"{self.record_format.name}: {error}", line)
        return numbers, kept

    def _kinds(self) -> list[str]:
        return [block.where for block, _ in self.record_format.blocks if block.where]

    def _hold(self, frame: pl.DataFrame, key: str) -> pl.DataFrame:
        """Let an object that a record leaves out be the one given before it."""
        given = frame[key].to_list()
        held = self._sticky.get(key)
        for i, value in enumerate(given):
            if value is None or all(part is None for part in value.values()):
                given[i] = held
            else:
                held = value
        self._sticky[key] = held
        return frame.with_columns(pl.Series(key, given, frame.schema[key]))

    def _emit_kinds(self, frame: pl.DataFrame) -> None:
        claimed = pl.lit(value=False)
        for position, (block, _) in enumerate(self.record_format.blocks):
            mine = ~claimed
            if block.where is not None:
                mine = mine & pl.col(f"has.{block.where}")
                claimed = claimed | pl.col(f"has.{block.where}")
            part = frame.filter(mine)
            if block.table is None:
                self.tally.skip(part.height)
            else:
                self._emit(part, position, required=block.where is None)
            if block.where is None:
                return
        for number in frame.filter(~claimed)["line"]:
            reason = f"{self.record_format.name}: none of {', '.join(self._kinds())}"
            self.tally.miss(number, reason, "")

    def read_parquet(self, path: Path) -> None:
        """Read a Parquet file in batches; a row counts as a line."""
        file = pa_parquet.ParquetFile(path)
        self._note_unused(file.schema_arrow.names)
        wanted = list(self.record_format.sources_of(file.schema_arrow.names))
        number = 1
        for batch in file.iter_batches(batch_size=_PARQUET_ROWS, columns=wanted):
            frame = pl.DataFrame(pa.Table.from_batches([batch]))
            numbers = pl.int_range(number, number + frame.height, eager=True)
            self._emit(frame.with_columns(numbers.alias("line")), 0, required=True)
            number += frame.height

    def _emit(self, frame: pl.DataFrame, position: int, *, required: bool) -> None:
        """Turn source columns into table columns, count the rows and add them."""
        block, mapping = self.record_format.blocks[position]
        table = block.table
        assert table is not None
        targets = {
            name: target
            for name in frame.columns
            if isinstance(target := mapping.resolve(name), Target)
        }
        columns: dict[str, pl.Expr] = {}
        order = list(mapping.sources())
        for name in sorted(targets, key=order.index):
            target = targets[name]
            converted = _convert(name, frame.schema[name], target)
            known = columns.get(target.column.name)
            columns[target.column.name] = (
                converted if known is None else pl.coalesce(known, converted)
            )
        exact = [column for column in columns if _is_time(table, column)]
        frame = frame.with_columns(
            _times(frame.select(columns.pop(column)).to_series(), self.context).alias(column)
            for column in exact
        ).select("line", *exact, *(expr.alias(name) for name, expr in columns.items()))
        good = frame
        if required:
            present = [name for name in self.record_format.required if name in frame.columns]
            good = frame.drop_nulls(present)
            self._count_missing(frame, good, present)
        self.tally.read(good.height)
        self.rows.add_frame(table, self._complete(good, block, table))

    def _count_missing(self, frame: pl.DataFrame, good: pl.DataFrame, present: list[str]) -> None:
        if good.height == frame.height:
            return
        lost = frame.filter(pl.any_horizontal(pl.col(present).is_null()))
        for number in lost["line"]:
            reason = f"{self.record_format.name}: {', '.join(present)} must all be there"
            self.tally.miss(number, reason, "")

    def _complete(self, frame: pl.DataFrame, block: Block, table: str) -> pa.Table:
        base = self.context.base(table, self.record_format.name, snapshot=False)
        base.update((k, v) for k, v in block.set.items() if k in column_names(table))
        del base["line"]
        if "ts" in frame.columns:
            frame = frame.with_columns(
                pl.when(pl.col("ts").is_null())
                .then(pl.lit("none"))
                .otherwise(pl.lit(block.set.get("ts_source", "inline")))
                .alias("ts_source")
            )
        constants = [
            pl.lit(value).alias(name)
            for name, value in base.items()
            if name not in frame.columns and value is not None
        ]
        return frame.with_columns(constants).to_arrow()

    def _count_overlong(self, block: LineBlock) -> None:
        for number in block.overlong:
            self.tally.miss(number, "longer than 1 MiB", "")

    def _note_unused(self, names: list[str]) -> None:
        mapping = self.record_format.blocks[0][1]
        self.unused.update(name for name in names if mapping.resolve(name) is False)


def _whole_lines(data: bytes) -> list[bytes]:
    """Split a block as its numbers count: only a newline ends a line, whatever else is in it."""
    text = data.replace(b"\x00", b"").decode("utf-8", "replace").encode()
    lines = text.replace(b"\r\n", b"\n").replace(b"\r", b" ").split(b"\n")
    if lines and not lines[-1]:
        lines.pop()
    return lines


def _parse_csv(
    text: bytes, rows: int, header: list[str], delimiter: str, wanted: list[str]
) -> tuple[pa.Table, set[int]]:
    """Parse lines of CSV; returns the wanted columns as text, and which rows did not fit.

    A quote that is not closed would swallow the lines after it: where the rows do not add up, the
    lines are read again with quotes taken as text.
    """
    for quote in ('"', False):
        invalid: set[int] = set()

        def refuse(row: Any, invalid: set[int] = invalid) -> str:
            invalid.add((row.number or 1) - 1)
            return "skip"

        try:
            table = pa_csv.read_csv(
                pa.BufferReader(text),
                read_options=pa_csv.ReadOptions(use_threads=False, column_names=header),
                parse_options=pa_csv.ParseOptions(
                    delimiter=delimiter, quote_char=quote, invalid_row_handler=refuse
                ),
                convert_options=pa_csv.ConvertOptions(
                    column_types=dict.fromkeys(wanted, pa.string()),
                    include_columns=wanted,
                    strings_can_be_null=False,
                ),
            )
        except pa.ArrowInvalid:
            continue
        if table.num_rows + len(invalid) == rows:
            return table, invalid
    empty = pa.table({name: pa.array([], pa.string()) for name in wanted})
    return empty, set(range(rows))


def split_header(line: str) -> tuple[list[str], str]:
    """Split a CSV header at tab, semicolon or comma, whichever occurs most."""
    delimiter = max(",\t;", key=line.count)
    names: list[str] = []
    for name in line.split(delimiter):
        bare = name.strip().strip('"')
        # A name given twice counts once: the first column of it.
        names.append(bare if bare not in names else f"{bare} #{len(names)}")
    return names, delimiter


def _text_lines(data: bytes) -> list[str]:
    lines = data.replace(b"\x00", b"").decode("utf-8", "replace").split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return lines


def _is_time(table: str, column: str) -> bool:
    return column in {"ts"} and column in column_names(table)


def _convert(name: str, dtype: pl.DataType, target: Target) -> pl.Expr:
    column = pl.col(name)
    if target.column.type == "TIMESTAMP":
        return column
    if dtype == pl.String and target.column.type in {"BIGINT", "DOUBLE"}:
        column = column.str.strip_chars().str.replace_all(r",(\d{3})", "$1")
        column = column.cast(
            pl.Float64 if target.factor else _POLARS[target.column.type], strict=False
        )
    elif dtype == pl.String and target.column.type == "VARCHAR":
        column = column.str.strip_chars()
        column = pl.when(column == "").then(None).otherwise(column)
    if target.factor is not None:
        column = column * target.factor
    return column.cast(_POLARS[target.column.type], strict=False)


def _times(values: pl.Series, context: Context) -> pl.Series:
    """Convert texts or epoch numbers of any unit to microseconds UTC; null where unreadable."""
    if values.dtype == pl.String:
        unique = values.drop_nulls().unique()
        return values.replace_strict(
            unique, [_time_or_none(text, context) for text in unique], return_dtype=pl.Int64
        )
    if values.dtype.is_temporal():
        zone = getattr(values.dtype, "time_zone", None)
        utc = values if zone else values.dt.replace_time_zone(str(context.zone))
        return utc.dt.convert_time_zone("UTC").dt.epoch("us")
    number = pl.col("n")
    scaled = (
        pl.when(number < 1e11)
        .then(number * 1e6)
        .when(number < 1e14)
        .then(number * 1e3)
        .when(number < 1e17)
        .then(number)
        .otherwise(number / 1e3)
    )
    return pl.DataFrame({"n": values}).select(scaled.cast(pl.Int64, strict=False)).to_series()


def _time_or_none(text: str, context: Context) -> int | None:
    try:
        return parse_time(text, context.zone)
    except ValueError:
        return None


def _json_schema(mappings: list[ColumnMapping], kinds: list[str]) -> pl.Struct:
    """Build the nested type that holds every path the definition names."""
    tree: dict[str, Any] = {}
    for kind in kinds:
        node = tree
        for part in kind.split("."):
            node = node.setdefault(part, {})
    for mapping in mappings:
        for path, target in mapping.sources().items():
            node = tree
            *parents, leaf = path.split(".")
            for parent in parents:
                node = node.setdefault(parent, {})
            node[leaf] = pl.Float64() if target.factor else _POLARS[target.column.type]
    return _struct(tree)


def _struct(tree: dict[str, Any]) -> pl.Struct:
    return pl.Struct(
        {
            name: (_struct(node) if node else pl.Struct({"_": pl.Boolean()}))
            if isinstance(node, dict)
            else node
            for name, node in tree.items()
        }
    )


def _conform(record: dict[str, Any], schema: pl.Struct) -> dict[str, Any]:
    """Cut a decoded record to the schema; ValueError where a value cannot be what it must be."""
    conformed: dict[str, Any] = {}
    for field_ in schema.fields:
        value = record.get(field_.name)
        if isinstance(field_.dtype, pl.Struct):
            conformed[field_.name] = (
                _conform(value, field_.dtype) if isinstance(value, dict) else None
            )
        elif value is None:
            conformed[field_.name] = None
        elif field_.dtype == pl.Float64:
            conformed[field_.name] = float(value)
        elif field_.dtype == pl.Int64:
            conformed[field_.name] = parse_whole(
                str(value if isinstance(value, int) else int(float(value)))
            )
        elif field_.dtype == pl.String:
            conformed[field_.name] = value if isinstance(value, str) else json.dumps(value)
        else:
            conformed[field_.name] = bool(value)
    return conformed


def _flatten(frame: pl.DataFrame) -> pl.DataFrame:
    """Name nested fields by their path, and note which objects are there as `has.<path>`."""
    columns: list[pl.Expr] = []

    def visit(path: str, value: pl.Expr, dtype: object) -> None:
        if not isinstance(dtype, pl.Struct):
            columns.append(value.alias(path))
            return
        columns.append(value.is_not_null().alias(f"has.{path}"))
        for inner in dtype.fields:
            visit(f"{path}.{inner.name}", value.struct.field(inner.name), inner.dtype)

    for name, dtype in frame.schema.items():
        visit(name, pl.col(name), dtype)
    return frame.select(columns)
