"""Records of CSV or TSV: the first line that is not blank is the header, which may come again."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from fabricobs.formats.decompression import SourceError
from fabricobs.formats.limits import LIMITS
from fabricobs.formats.records.arrow_cells import ArrowCells
from fabricobs.formats.records.blocks import line_count, lines_of, read_block, text_of
from fabricobs.formats.records.columns import Cells
from fabricobs.formats.records.sink import RecordSink
from fabricobs.formats.source import LineBlock

_CARRIAGE_RETURNS = (
    "its lines end with a carriage return alone, not a newline: convert it, as by tr '\\r' '\\n'"
)


def read_csv(blocks: Iterator[LineBlock], sink: RecordSink) -> None:
    """Read the blocks of a file."""
    reader: _Reader | None = None
    for block in blocks:
        data, first = block.data, block.first
        sink.count_overlong(block)
        while reader is None and data:
            line, _, data = data.partition(b"\n")
            if first not in block.overlong:
                sink.tally.skip()
            first += 1
            text = line.decode("utf-8-sig", "replace").strip()
            if "\r" in text and not data:  # the header would be all of the file
                raise SourceError(_CARRIAGE_RETURNS)
            if text:
                reader = _reader(text.replace("\r", " "), sink)
        if reader is not None and data:
            read_block(LineBlock(first, data, block.overlong), reader.in_bulk, reader.by_line)


def split_header(line: str) -> tuple[list[str], str]:
    """Split a CSV header at tab, semicolon or comma, whichever occurs most."""
    delimiter = max(",\t;", key=line.count)
    # A name given twice counts once: the first column of it.
    names: list[str] = []
    known: set[str] = set()
    for name in line.split(delimiter):
        bare = name.strip().strip('"')
        names.append(bare if bare not in known else f"{bare} #{len(names)}")
        known.add(names[-1])
    return names, delimiter


def _reader(text: str, sink: RecordSink) -> "_Reader":
    if max(map(text.count, ",\t;")) >= LIMITS.columns:
        raise SourceError(f"more than {LIMITS.columns:,} columns")
    names, delimiter = split_header(text)
    wanted = tuple(sink.record_format.sources_of(names))
    sink.dropped = tuple(name for name in names if name not in wanted)
    return _Reader(sink, text, names, delimiter, wanted)


@dataclass(frozen=True, slots=True)
class _Reader:
    """What reads the lines below a header."""

    sink: RecordSink
    header: str
    names: list[str]
    delimiter: str
    wanted: tuple[str, ...]

    def by_line(self, block: LineBlock) -> None:
        """Read a block line by line."""
        numbers: list[int] = []
        rows: list[list[str]] = []
        for number, line in enumerate(lines_of(block), block.first):
            text = _plain(line)
            if number in block.overlong:
                continue
            if not text:
                self.sink.tally.skip()
                continue
            if text == self.header:
                self.sink.tally.skip(1, "headers that come again")
                continue
            cells = split_line(text, self.delimiter)
            if len(cells) != len(self.names):
                self.sink.miss(number, f"{len(self.names)} columns", text)
                continue
            numbers.append(number)
            rows.append(cells)
        if rows:
            by_name = dict(zip(self.names, zip(*rows, strict=True), strict=True))
            columns: dict[str, Cells] = {
                name: ArrowCells(pa.array([text or None for text in by_name[name]], pa.string()))
                for name in self.wanted
            }
            self.sink.add(0, columns, np.array(numbers), text_of(block, _plain))

    def in_bulk(self, block: LineBlock) -> bool:
        """Read a block by Arrow."""
        table = self._table(block.data)
        if table is None:
            return False
        columns: dict[str, Cells] = {
            name: ArrowCells(table.column(name).chunk(0)) for name in self.wanted
        }
        numbers = np.arange(block.first, block.first + table.num_rows)
        self.sink.add(0, columns, numbers, text_of(block, _plain))
        return True

    def _table(self, data: bytes) -> pa.Table | None:
        """Return the texts of the lines; None if a line has other cells to `by_line`."""
        from pyarrow import csv as arrow_csv

        if self.header.encode() in data:
            return None
        if b"\x00" in data or (b"\r" in data and data.count(b"\r") != data.count(b"\r\n")):
            return None
        if b'"' in data and any(line.count(b'"') % 2 for line in data.split(b"\n")):
            return None
        # A quote that is still open would take in the line below: the last one too has one.
        end = b"" if data.endswith(b"\n") else b"\n"
        guard = self.delimiter.join("0" * len(self.names)).encode()
        try:
            table = arrow_csv.read_csv(
                pa.py_buffer(data + end + guard),
                arrow_csv.ReadOptions(
                    use_threads=False, block_size=2 * len(data), column_names=self.names
                ),
                arrow_csv.ParseOptions(delimiter=self.delimiter),
                arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(self.names, pa.string()),
                    include_columns=self.wanted,
                    strings_can_be_null=True,
                    null_values=[""],
                ),
            )
        except pa.ArrowInvalid:
            return None
        lines = line_count(data)
        return table.slice(0, lines) if self.wanted and table.num_rows == lines + 1 else None


def _plain(line: bytes) -> str:
    """Return the text of a line; a carriage return inside it is a blank."""
    text = line.replace(b"\x00", b"").decode("utf-8", "replace")
    return text.removesuffix("\r").replace("\r", " ")


def split_line(text: str, delimiter: str) -> list[str]:
    """Split a line into cells; the quotes of a line that leaves one open are text."""
    if text.count('"') % 2 or '"' not in text:
        return text.split(delimiter)
    try:
        return next(csv.reader([text], delimiter=delimiter))
    except csv.Error:
        return text.split(delimiter)
