"""Records of CSV or TSV: the first line that is not blank is the header.

A line of plain cells is read by compiled code, any other by Python; both give the same cells.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fabricobs.formats.compiled import ffi
from fabricobs.formats.limits import LIMITS
from fabricobs.formats.records.columns import Cells, PackedCells, ReadCells
from fabricobs.formats.records.sink import PACE, RecordSink
from fabricobs.formats.source import LineBlock, SourceError

_CARRIAGE_RETURNS = (
    "its lines end with a carriage return alone, not a newline: convert it, as by tr '\\r' '\\n'"
)


@dataclass(frozen=True, slots=True)
class _Header:
    """The columns of a file, and which of them are wanted."""

    columns: int
    delimiter: str
    wanted: tuple[tuple[str, int], ...]  # name and position


def read_csv(blocks: Iterator[LineBlock], sink: RecordSink, size_bytes: int) -> None:
    """Read the blocks of a file of about `size_bytes`."""
    header: _Header | None = None
    for block in blocks:
        data, first = block.data, block.first
        sink.count_overlong(block)
        while header is None and data:
            line, _, data = data.partition(b"\n")
            if first not in block.overlong:
                sink.tally.skip()
            first += 1
            text = line.decode("utf-8-sig", "replace").strip()
            if "\r" in text and not data:  # the header would be all of the file
                raise SourceError(_CARRIAGE_RETURNS)
            if text:
                header = _header(text.replace("\r", " "), sink)
        if header is None or not data:
            continue
        if PACE.is_compiled(len(data), size_bytes) and not block.overlong:
            _read_compiled(data, first, header, sink)
        else:
            _read(data, first, header, sink, frozenset(block.overlong))


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


def _header(text: str, sink: RecordSink) -> _Header:
    if max(map(text.count, ",\t;")) >= LIMITS.columns:
        raise SourceError(f"more than {LIMITS.columns:,} columns")
    names, delimiter = split_header(text)
    sink.unused.update(sink.record_format.unused(names))
    wanted = sink.record_format.sources_of(names)
    return _Header(len(names), delimiter, tuple((name, names.index(name)) for name in wanted))


def _read(
    data: bytes, first: int, header: _Header, sink: RecordSink, overlong: frozenset[int]
) -> None:
    """Read a block line by line."""
    numbers: list[int] = []
    texts: list[str] = []
    rows: list[list[str]] = []
    for number, line in enumerate(_lines(data), first):
        text = _plain(line)
        if number in overlong:
            continue
        if not text:
            sink.tally.skip()
            continue
        cells = _cells(text, header, number, sink)
        if cells is not None:
            numbers.append(number)
            texts.append(text)
            rows.append(cells)
    columns: dict[str, Cells] = {
        name: ReadCells([cells[position].strip() or None for cells in rows], of_json=False)
        for name, position in header.wanted
    }
    if rows:
        sink.add(0, columns, np.array(numbers), texts.__getitem__)


def _lines(data: bytes) -> list[bytes]:
    """Split a block as its numbers count: only a newline ends a line, whatever else is in it."""
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return lines


def _plain(line: bytes) -> str:
    """Return the text of a line; a carriage return inside it is a blank."""
    text = line.replace(b"\x00", b"").decode("utf-8", "replace")
    return text.removesuffix("\r").replace("\r", " ")


def _cells(text: str, header: _Header, number: int, sink: RecordSink) -> list[str] | None:
    """Return the cells of a line; None, and the line is counted, if they are not as many."""
    cells = _split(text, header.delimiter)
    if len(cells) != header.columns:
        sink.miss(number, f"{header.columns} columns", text)
        return None
    return cells


def _split(text: str, delimiter: str) -> list[str]:
    """Split a line into cells; the quotes of a line that leaves one open are text."""
    if text.count('"') % 2 or '"' not in text:
        return text.split(delimiter)
    try:
        return next(csv.reader([text], delimiter=delimiter))
    except csv.Error:
        return text.split(delimiter)


def _read_compiled(data: bytes, first: int, header: _Header, sink: RecordSink) -> None:
    """Read a block by compiled code; the lines it leaves are read by Python."""
    block = ffi.numbered(data)
    count = len(block.bounds) - 1
    slots = np.full(header.columns, -1)
    for slot, (_, position) in enumerate(header.wanted):
        slots[position] = slot
    cells = np.empty((len(header.wanted), count), np.int64)
    states = np.empty(count, np.uint8)
    delimiter = ord(header.delimiter)
    plain = ffi.is_plain(block.data, delimiter)
    ffi.csv_cells(block.data, block.bounds, plain, delimiter, slots, cells, states)
    for line in np.flatnonzero(states == ffi.SLOW).tolist():
        text = _plain(block.line(line))
        if not text:
            states[line] = ffi.BLANK
            continue
        read = _cells(text, header, first + line, sink)
        if read is not None:
            states[line] = ffi.FITS
            for slot, (_, position) in enumerate(header.wanted):
                cells[slot, line] = block.append(read[position].strip().encode())
    sink.tally.skip(int(np.count_nonzero(states == ffi.BLANK)))
    rows = np.flatnonzero(states == ffi.FITS)
    if len(rows) < count:
        cells = np.ascontiguousarray(cells[:, rows])
    given = block.text()
    columns: dict[str, Cells] = {
        name: PackedCells(given, cells[slot], of_json=False)
        for slot, (name, _) in enumerate(header.wanted)
    }
    if len(rows):
        sink.add(0, columns, rows + first, lambda row: _plain(block.line(int(rows[row]))))
