"""Wrappers of all lines of a file: pieces of containerd, records of an export, labels.

The lines come out as they were logged, each with what is told around it.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

from fabricobs.formats.documents.jsontext import documents
from fabricobs.formats.limits import in_mib
from fabricobs.formats.logs.exports import (
    Export,
    Record,
    csv_rows,
    end_of_head,
    export_of,
    journal_entries,
    object_of,
    records_in,
    texts_of_head,
)
from fabricobs.formats.logs.prefixes import Labels, Told
from fabricobs.formats.source import LONGEST_LINE, line_blocks, numbered_texts, read_document
from fabricobs.formats.values import parse_time

# Of an export that is newest first or in no order, as much is put in order.
LONGEST_EXPORT = 64 << 20
_CRI = re.compile(r"(\d{4}-\d\d-\d\dT\S+) (stdout|stderr) ([FP]) ?(.*)", re.DOTALL)
_LEAST_SHOWN = 2
_HEAD = 1 << 16
_QUOTE = re.compile(r'(?<!\\)"')


@dataclass(frozen=True, slots=True)
class Wrapping:
    """What is around the lines of a text."""

    cri: bool = False
    export: Export | None = None
    labels: Labels = ()
    blocks: bool = False  # a host between two rules stands above its lines

    @property
    def by_record(self) -> bool:
        """Say whether each line is a record of something else."""
        return self.cri or self.export is not None


NOT_WRAPPED = Wrapping()


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line as it was logged. `number` is that of its record.

    `text` is None for a line that is too long or a record that is torn: `problem` says why, if not
    for its length.
    """

    number: int
    text: str | None
    told: Told
    problem: str = ""


def wrapping_of(head: str, formats_in: Callable[[str], int]) -> Wrapping:
    """Say how the lines of a text are wrapped, from its first ones."""
    lines = [line for line in head[:_HEAD].split("\n")[:50] if line.strip()]
    # Between its lines may stand the pieces of one that a progress bar wrote with carriage returns.
    shown = sum(_CRI.match(line) is not None for line in lines)
    if lines and _CRI.match(lines[0]) and shown >= min(len(lines), _LEAST_SHOWN):
        return Wrapping(cri=True)
    return Wrapping(export=export_of(head, formats_in))


def text_inside(ends: str, wrapping: Wrapping) -> str:
    """Return the lines that the ends of a file hold, for recognition."""
    if wrapping.cri:
        lines = _from_cri(enumerate(ends.split("\n"), 1))
        return "\n".join(line.text or "" for line in lines)
    if wrapping.export is None:
        return ends
    # Of the middle and the end, where no document begins, the texts between quotes.
    rest = (
        "\n".join(_QUOTE.split(ends[end_of_head(ends, wrapping.export) :]))
        .replace(r"\"", '"')
        .replace(r"\n", "\n")
    )
    return "\n".join((*texts_of_head(ends, wrapping.export), rest))


def log_lines(stream: BinaryIO, wrapping: Wrapping, size_bytes: int) -> Iterator[LogLine]:
    """Yield the lines of a wrapped file; SourceError where it breaks off, after what it gave."""
    overlong: list[int] = []
    lines = _numbered(stream, overlong)
    export = wrapping.export
    if export is None:
        yield from _from_cri(lines)
    else:
        records = _records(stream, lines, export)
        if not export.in_order and order_problem(wrapping, size_bytes) is None:
            records = iter(_in_order(list(records)))
        for record in _whole(records, export):
            if record.is_torn:
                yield LogLine(record.number, None, {}, "a torn record of an export")
                continue
            for text in record.text.removesuffix("\n").split("\n"):
                fits = len(text) <= LONGEST_LINE
                yield LogLine(record.number, text if fits else None, record.told)
    for number in overlong:
        yield LogLine(number, None, {})


def order_problem(wrapping: Wrapping, size_bytes: int) -> str | None:
    """Say that an export is in no order of time and too long to be put in order; None if not."""
    export = wrapping.export
    if export is None or export.in_order or size_bytes <= LONGEST_EXPORT:
        return None
    return (
        f"its records are in no order of time, and above {in_mib(LONGEST_EXPORT)} they are read as "
        "they stand: what a line says of those below it may be wrong; export oldest first, or in "
        "shorter pieces"
    )


def _numbered(stream: BinaryIO, overlong: list[int]) -> Iterator[tuple[int, str]]:
    """Yield the lines of a stream with their numbers; those of overlong ones go to the list."""
    for block in line_blocks(stream):
        overlong.extend(block.overlong)
        # Recognition sees no colours either: a header may end in one.
        yield from numbered_texts(block)


def _from_cri(lines: Iterable[tuple[int, str]]) -> Iterator[LogLine]:
    """Join the pieces that containerd cuts long lines into; the first ones become empty lines."""
    begun: dict[str, str] = {}
    for number, line in lines:
        found = _CRI.fullmatch(line.removesuffix("\r"))
        if found is None:
            yield LogLine(number, line, {})
            continue
        ts, stream, tag, text = found.groups()
        if tag == "P":
            begun[stream] = (begun.get(stream, "") + text)[: LONGEST_LINE + 1]
            text = ""
        else:
            text = begun.pop(stream, "") + text
        yield LogLine(number, text if len(text) <= LONGEST_LINE else None, {"ts": ts})


def _records(
    stream: BinaryIO, lines: Iterable[tuple[int, str]], export: Export
) -> Iterator[Record]:
    if export.syntax == "json":
        text = read_document(stream, LONGEST_EXPORT).decode("utf-8", "replace")
        found = (r for d in documents(text) for r in records_in(d.value, export, 0))
        yield from (replace(record, number=number) for number, record in enumerate(found, 1))
    elif export.syntax == "csv":
        for number, row in csv_rows(f"{line}\n" for _, line in lines):
            yield from records_in(row, export, number)
    elif export.syntax == "journal":
        for number, entry in journal_entries(lines):
            yield from records_in(entry, export, number)
    else:
        for number, line in lines:
            yield from _of_line(number, line, export)


def _of_line(number: int, line: str, export: Export) -> Iterator[Record]:
    value: Any = object_of(line)
    if value is None:
        yield Record(number, line, {}, is_torn=line.lstrip().startswith('{"'))
    else:
        yield from records_in(value, export, number)


def _in_order(records: list[Record]) -> list[Record]:
    """Return records by time: those of one time as they stand, or turned if the newest is first."""
    times: list[int] = []
    for record in records:
        ts = record.told.get("ts")
        times.append(parse_time(ts) if ts is not None else times[-1] if times else 0)
    if times and times[0] > times[-1]:
        records.reverse()
        times.reverse()
    order = sorted(range(len(records)), key=times.__getitem__)
    return [records[place] for place in order]


def _whole(records: Iterable[Record], export: Export) -> Iterator[Record]:
    """Join the pieces of lines that were too long for one record; the first become empty lines."""
    begun: dict[tuple[tuple[str, str], ...], Record] = {}
    for record in records:
        if record.is_torn:
            yield record
            continue
        writer = tuple(sorted((k, v) for k, v in record.told.items() if k != "ts"))
        before = begun.pop(writer, None)
        whole = record if before is None else replace(record, text=before.text + record.text)
        cut = record.is_piece or (export.ends_lines and not record.text.endswith("\n"))
        if cut and len(whole.text) <= LONGEST_LINE:
            begun[writer] = whole
            yield replace(record, text="")
        else:
            yield whole
    yield from begun.values()
