"""Reading one file: the only place where an input is opened, and every line is accounted for."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fabricobs.formats.captures import CaptureReader
from fabricobs.formats.catalogue import Format, Recognised
from fabricobs.formats.context import Context
from fabricobs.formats.keyvalue import KeyValueFormat, KeyValueReader, ValueReader
from fabricobs.formats.lines import LineFormat, LineReader, Outcome, TextReader
from fabricobs.formats.paragraphs import ParagraphFormat, ParagraphReader
from fabricobs.formats.records import RecordFormat, RecordReader
from fabricobs.formats.rows import Rows, Tally
from fabricobs.formats.ruled import TableFormat, TableReader
from fabricobs.formats.source import LineBlock, SourceError, line_blocks, open_plain
from fabricobs.formats.walk import WalkFormat, WalkReader

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_FLUSH_ROWS = 100_000


@dataclass(slots=True)
class FileResult:
    """The account of one file; `problem` says why it was not read to its end."""

    tally: Tally
    rows: int
    problem: str | None = None
    unused: tuple[str, ...] = ()


def read_file(
    path: Path,
    recognised: Recognised,
    context: Context,
    rows: Rows,
    flush: Callable[[], None],
) -> FileResult:
    """Read a file into `rows`, calling `flush` whenever a batch is full.

    Never raises for what is in the file: an input that breaks off gives what it gave until then,
    and `problem` says so.
    """
    tally = Tally()
    before = rows.count
    unused: tuple[str, ...] = ()
    problem = None
    try:
        if recognised.syntax == "text":
            _read_text(path, recognised.formats, context, rows, tally, flush)
        else:
            reader = _record_reader(recognised.formats[0], context, rows, tally)
            _read_records(path, recognised.syntax, reader, flush)
            unused = tuple(sorted(reader.unused))
    except SourceError as error:
        problem = str(error)
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
    return FileResult(tally, rows.count - before, problem, unused)


def count_lines(path: Path) -> Tally:
    """Account for a file no format claims: every line counted, the first few kept."""
    tally = Tally()
    try:
        with open_plain(path) as stream:
            for block in line_blocks(stream):
                for number, line in _numbered_lines(block):
                    if line is None:
                        tally.miss(number, "longer than 1 MiB", "")
                    else:
                        tally.leave(number, line)
    except (SourceError, OSError):
        pass
    return tally


def _record_reader(format_: Format, context: Context, rows: Rows, tally: Tally) -> RecordReader:
    assert isinstance(format_.compiled, RecordFormat)
    return RecordReader(format_.compiled, context, rows, tally)


def _read_records(path: Path, syntax: str, reader: RecordReader, flush: Callable[[], None]) -> None:
    if syntax == "parquet":
        reader.read_parquet(path)
        return
    read = reader.read_csv if syntax == "csv" else reader.read_jsonl
    with open_plain(path) as stream:
        read(_flushing(line_blocks(stream), reader.rows, flush))


def _flushing(
    blocks: Iterator[LineBlock], rows: Rows, flush: Callable[[], None]
) -> Iterator[LineBlock]:
    for block in blocks:
        if rows.pending >= _FLUSH_ROWS:
            flush()
        yield block


def _read_text(
    path: Path,
    formats: tuple[Format, ...],
    context: Context,
    rows: Rows,
    tally: Tally,
    flush: Callable[[], None],
) -> None:
    readers = _text_readers(formats, context, rows)
    try:
        with open_plain(path) as stream:
            for block in line_blocks(stream):
                for number, line in _numbered_lines(block):
                    if line is None:
                        tally.miss(number, "longer than 1 MiB", "")
                    else:
                        _offer(line, number, readers, tally)
                if rows.pending >= _FLUSH_ROWS:
                    flush()
    finally:
        for reader in readers:
            finish = getattr(reader, "finish", None)
            if finish is not None:
                finish()


def _offer(line: str, number: int, readers: list[TextReader], tally: Tally) -> None:
    """Offer a line to every format until one takes it; blank lines need none."""
    if not line.strip():
        tally.skip()
        for reader in readers:
            reader.offer("", number)
        return
    failure = ""
    for reader in readers:
        outcome = reader.offer(line, number)
        if outcome is Outcome.PARSED:
            tally.read()
            return
        if outcome is Outcome.IGNORED:
            tally.skip()
            return
        if isinstance(outcome, str):
            # A prompt right under a table is no row of it: another format may know the line.
            failure = failure or outcome
    if failure:
        tally.miss(number, failure, line)
    else:
        tally.leave(number, line)


def _numbered_lines(block: LineBlock) -> Iterator[tuple[int, str | None]]:
    """Yield number and text; None for an overlong line. A carriage return ends a line too."""
    text = block.data.decode("utf-8", "replace")
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if "\x00" in text:
        text = text.replace("\x00", "")
    overlong = frozenset(block.overlong)
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    for number, line in enumerate(lines, block.first):
        if number in overlong:
            yield number, None
        elif "\r" in line:
            for piece in line.rstrip("\r").split("\r"):
                yield number, piece
        else:
            yield number, line


def _text_readers(formats: tuple[Format, ...], context: Context, rows: Rows) -> list[TextReader]:
    """Return a reader for each format; those of captures with companions are one."""
    companions = [_text_reader(f, context, rows) for f in formats if f.definition.companion]
    others = [_text_reader(f, context, rows) for f in formats if not f.definition.companion]
    if not companions:
        return others
    captured = [reader for reader in others if not isinstance(reader, LineReader)]
    lines = [reader for reader in others if isinstance(reader, LineReader)]
    return [CaptureReader(companions, captured), *lines]


def _text_reader(format_: Format, context: Context, rows: Rows) -> TextReader:
    compiled = format_.compiled
    if isinstance(compiled, LineFormat):
        return LineReader(compiled, context, rows)
    if isinstance(compiled, TableFormat):
        return TableReader(compiled, context, rows)
    if isinstance(compiled, ParagraphFormat):
        return ParagraphReader(compiled, context, rows)
    if isinstance(compiled, WalkFormat):
        return WalkReader(compiled, context, rows)
    assert isinstance(compiled, KeyValueFormat)
    if compiled.one_value:
        return ValueReader(compiled, context, rows)
    return KeyValueReader(compiled, context, rows)
