"""Reading one file: the only place where an input is opened, and every line is accounted for."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from fabricobs import stopping
from fabricobs.exceptions import UserError
from fabricobs.formats import budget
from fabricobs.formats.context import Context
from fabricobs.formats.decompression import SourceError, open_text
from fabricobs.formats.documents.apis import read_answers
from fabricobs.formats.documents.json_documents import JsonFormat, read_json
from fabricobs.formats.documents.prometheus import PrometheusFormat, PrometheusReader
from fabricobs.formats.documents.yaml_documents import YamlFormat, YamlReader
from fabricobs.formats.failures import Failure, failure_of
from fabricobs.formats.limits import LIMITS, in_mib
from fabricobs.formats.logs.bulk import BulkReader, can_read, readable
from fabricobs.formats.logs.dispatch import Dispatcher
from fabricobs.formats.logs.lines import LineReader, TextReader
from fabricobs.formats.logs.messages import REPEATED_MARK
from fabricobs.formats.logs.prefixes import Labels, strip_prefix
from fabricobs.formats.logs.wrapping import LogLine, log_lines, order_problem
from fabricobs.formats.outputs.captures import CaptureReader
from fabricobs.formats.outputs.configuration import ConfigurationReader
from fabricobs.formats.outputs.keyvalue import KeyValueReader
from fabricobs.formats.outputs.matrix import MatrixReader
from fabricobs.formats.outputs.paragraphs import ParagraphReader
from fabricobs.formats.outputs.ruled import TableReader
from fabricobs.formats.outputs.sections import SectionsReader
from fabricobs.formats.outputs.walk import WalkReader
from fabricobs.formats.readers import READERS
from fabricobs.formats.recognition.format import RECORD_READERS, Format, Recognised
from fabricobs.formats.records.blocks import PART_BYTES
from fabricobs.formats.records.csv_records import read_csv
from fabricobs.formats.records.json_records import read_jsonl
from fabricobs.formats.records.parquet_records import read_parquet
from fabricobs.formats.records.sink import RecordFormat, RecordSink
from fabricobs.formats.records.within import RecordsWithin
from fabricobs.formats.rows import Rows, Tally
from fabricobs.formats.source import (
    LineBlock,
    line_blocks,
    read_document,
    whole_lines,
    without_colours,
)
from fabricobs.formats.whole import WholeFile, WholeFormat

# What reads a text line by line, by the reader its definition names.
_READERS: dict[str, Callable[[Any, Context, Rows], TextReader]] = {
    "lines": LineReader,
    "configuration": ConfigurationReader,
    "table": TableReader,
    "keyvalue": KeyValueReader,
    "paragraphs": ParagraphReader,
    "walk": WalkReader,
    "sections": SectionsReader,
    "matrix": MatrixReader,
    "prometheus": PrometheusReader,
}
_LINES_BETWEEN_CHECKS = 4096  # some milliseconds
_Piece = TypeVar("_Piece", LineBlock, LogLine)
_REPEATED = re.compile(r" \[repeated \d+x across cluster\].*")
_TOO_LONG = f"a line longer than {in_mib(LIMITS.offered_chars)}"
_LONG_LINE = 4096


@dataclass(slots=True)
class FileResult:
    """The account of one file; `problem` says why it was not read to its end.

    `unexpected` says that the reason is an error of fabricobs.
    """

    tally: Tally
    rows: int
    problem: str | None = None
    unexpected: bool = False
    untimed_steps: int = 0

    def with_note(self, note: str | None) -> "FileResult":
        """Return the account with one more note among its problems."""
        if note is None:
            return self
        return replace(self, problem="; ".join(filter(None, (self.problem, note))))


def result_of(tally: Tally, rows: int, failure: Failure | None) -> FileResult:
    """Return the account of a file that was read to its end, or up to a failure."""
    if failure is None:
        return FileResult(tally, rows)
    where = f"; read up to line {tally.lines:,}" if tally.lines else ""
    return FileResult(tally, rows, failure.reason + where, failure.unexpected)


def read_file(
    path: Path,
    recognised: Recognised,
    context: Context,
    rows: Rows,
    flush: Callable[[], None],
) -> FileResult:
    """Read a file into `rows`, calling `flush` whenever a batch is full.

    Raises nothing but what `flush` raises (UserError): the rows read before a failure are kept,
    and `problem` says why there are no more.
    """
    tally = Tally()
    context.unfit, context.not_kept = rows.unfit, tally.not_kept
    before = rows.count
    failure = None
    try:
        with budget.cpu_limit(path):
            _read(path, recognised, context, rows, tally, flush)
    except UserError:
        raise
    except Exception as error:
        failure = failure_of(error)
    result = result_of(tally, rows.count - before, failure)
    return result.with_note(order_problem(recognised.wrapping, path.stat().st_size))


def _read(
    path: Path,
    recognised: Recognised,
    context: Context,
    rows: Rows,
    tally: Tally,
    flush: Callable[[], None],
) -> None:
    """Read a file by the reader of its syntax."""
    if recognised.syntax == "text":
        _read_text(path, recognised, context, rows, tally, flush)
    elif recognised.syntax == "json":
        _read_json(path, recognised.formats, context, rows, tally)
    elif recognised.syntax == "whole":
        _read_whole(path, recognised.formats[0], context, rows, tally, flush)
    elif recognised.syntax == "yaml":
        document = recognised.formats[0].compiled
        assert isinstance(document, YamlFormat)
        with open_text(path) as stream:
            YamlReader(document, context, rows, tally).read(line_blocks(stream))
    else:
        record_format = recognised.formats[0].compiled
        assert isinstance(record_format, RecordFormat)
        sink = RecordSink(record_format, context, rows, tally)
        _read_records(path, recognised.syntax, sink, flush)


def reads_by_columns(recognised: Recognised, size_bytes: int) -> bool:
    """Say whether compiled code does most of the reading, so that threads run side by side."""
    if recognised.syntax in RECORD_READERS:
        return recognised.syntax == "parquet" or size_bytes >= PART_BYTES
    return any(can_read(format_.compiled, size_bytes) for format_ in recognised.formats)


def count_lines(path: Path) -> FileResult:
    """Account for a file no format claims: its lines counted up to a limit, the first few kept."""
    tally = Tally()
    failure = None
    left = LIMITS.unknown_bytes
    try:
        with budget.cpu_limit(path), open_text(path) as stream:
            for block in line_blocks(stream):
                if left <= 0:
                    longest = in_mib(LIMITS.unknown_bytes)
                    raise SourceError(f"no known format, and longer than {longest}")
                left -= len(block.data)
                block, blank = _without_blank_end(block)
                tally.skip(blank)
                for number, line in _numbered_lines(block, ()):
                    if line is None:
                        tally.miss(number, _TOO_LONG, "")
                    elif not line.strip():
                        tally.skip()
                    else:
                        tally.leave(number, line)
    except Exception as error:
        failure = failure_of(error)
    return result_of(tally, 0, failure)


def _read_records(path: Path, syntax: str, sink: RecordSink, flush: Callable[[], None]) -> None:
    if syntax == "parquet":
        read_parquet(path, sink, flush)
        return
    read = read_csv if syntax == "csv" else read_jsonl
    with open_text(path) as stream:
        blocks = map(_without_colours, line_blocks(stream))
        read(_flushing(blocks, sink.rows, flush), sink)


def _read_json(
    path: Path, formats: Sequence[Format], context: Context, rows: Rows, tally: Tally
) -> None:
    with open_text(path) as stream:
        data = read_document(stream, LIMITS.document_bytes)
    trees = [f.compiled for f in formats if isinstance(f.compiled, JsonFormat)]
    if trees:
        between = [_text_reader(f, context, rows) for f in formats if f.definition.separator]
        read_json(data, trees, context, rows, tally, between)
    else:
        metrics = [f.compiled for f in formats if isinstance(f.compiled, PrometheusFormat)]
        read_answers(data, metrics, context, rows, tally)


def _read_whole(
    path: Path,
    format_: Format,
    context: Context,
    rows: Rows,
    tally: Tally,
    flush: Callable[[], None],
) -> None:
    assert isinstance(format_.compiled, WholeFormat)

    def flush_if_full() -> None:
        if rows.is_full:
            flush()

    with open_text(path) as stream:
        file = WholeFile(format_.compiled, path, stream, context, rows, tally, flush_if_full)
        READERS[format_.definition.reader[0]](file)


def _flushing(pieces: Iterator[_Piece], rows: Rows, flush: Callable[[], None]) -> Iterator[_Piece]:
    for piece in pieces:
        if rows.is_full:
            flush()
        yield piece


def _read_text(
    path: Path,
    recognised: Recognised,
    context: Context,
    rows: Rows,
    tally: Tally,
    flush: Callable[[], None],
) -> None:
    context.labels = recognised.wrapping.labels
    context.blocks = recognised.wrapping.blocks
    readers = _text_readers(recognised.formats, context, rows)
    dispatcher = Dispatcher(readers, context, rows, tally)

    def line_by_line(block: LineBlock) -> None:
        _read_block(block, readers, dispatcher, tally)
        if rows.is_full:
            flush()

    wrapped = recognised.wrapping.by_record
    bulk = None
    if not wrapped and _is_worth_it(path, readers, context):
        bulk = BulkReader(readers, context, rows, tally, line_by_line, flush, dispatcher)
    # However the reading ends, each reader hands over what it holds; if one cannot, others can.
    with ExitStack() as ending:
        for reader in reversed(readers):
            finish = getattr(reader, "finish", None)
            if finish is not None:
                ending.callback(finish)
        ending.callback(dispatcher.finish)
        if bulk is not None:
            ending.callback(bulk.finish)
        with open_text(path) as stream:
            if wrapped:
                lines = log_lines(stream, recognised.wrapping, path.stat().st_size)
                _read_wrapped(_flushing(lines, rows, flush), dispatcher, tally)
            elif bulk is None:
                for block in line_blocks(stream):
                    line_by_line(block)
            else:
                number = 1
                for buffer, length in whole_lines(stream):
                    number = bulk.read(buffer, length, number)


def _is_worth_it(path: Path, readers: Sequence[TextReader], context: Context) -> bool:
    """Say whether a file is big, and has lines that the compiled matcher can take."""
    size_bytes = path.stat().st_size
    found, _ = readable(readers, context)
    return bool(found) and all(can_read(reader.format, size_bytes) for reader in found)


def _read_wrapped(lines: Iterator[LogLine], dispatcher: Dispatcher, tally: Tally) -> None:
    for count, line in enumerate(lines):
        if not count % _LINES_BETWEEN_CHECKS:
            stopping.check()
            budget.check()
        if line.text is None or len(line.text) > LIMITS.offered_chars:
            tally.miss(line.number, line.problem or _TOO_LONG, "")
        else:
            for piece in _pieces(_cleaned(line.text), dispatcher.labels):
                dispatcher.read(piece, line.number, line.told)


def _read_block(
    block: LineBlock, readers: list[TextReader], dispatcher: Dispatcher, tally: Tally
) -> None:
    capture = readers[0] if readers else None
    if isinstance(capture, CaptureReader) and capture.takes_rows and not block.overlong:
        _read_capture(block, capture, dispatcher, tally)
    else:
        _read_lines(block, dispatcher, tally)


def _read_lines(block: LineBlock, dispatcher: Dispatcher, tally: Tally) -> None:
    block, blank = _without_blank_end(block)
    for number, line in _numbered_lines(block, dispatcher.labels):
        if line is None:
            tally.miss(number, _TOO_LONG, "")
        else:
            dispatcher.read(line, number)
    if blank:
        dispatcher.read("", block.first)
        tally.skip(blank - 1)


def _read_capture(
    block: LineBlock, capture: CaptureReader, dispatcher: Dispatcher, tally: Tally
) -> None:
    """Read the rows of tables and dumps many at a time, what stands between them by line."""
    data = block.data
    at, number = 0, block.first
    while at < len(data):
        lines, at = capture.take_rows(data, at, number)
        tally.read(lines)
        number += lines
        end = data.find(b"\n", at) + 1 or len(data)
        _read_lines(LineBlock(number, data[at:end]), dispatcher, tally)
        at = end
        number += 1


def _without_blank_end(block: LineBlock) -> tuple[LineBlock, int]:
    """Take the blank lines off the end of a block: a packed file of 100 kB may hold 100 million."""
    text = block.data.rstrip()
    newline = block.data.find(b"\n", len(text))
    end = 0 if not text else newline + 1 if newline >= 0 else len(block.data)
    if block.overlong or len(block.data) - end < _LONG_LINE:
        return block, 0
    rest = block.data[end:]
    blank = rest.count(b"\n") + (not rest.endswith(b"\n"))
    return LineBlock(block.first, block.data[:end]), blank


def _numbered_lines(block: LineBlock, labels: Labels) -> Iterator[tuple[int, str | None]]:
    """Yield number and text; None for an overlong line."""
    overlong = frozenset(block.overlong)
    lines = _cleaned(block.data.decode("utf-8", "replace")).split("\n")
    if lines and not lines[-1]:
        lines.pop()
    for number, line in enumerate(lines, block.first):
        if not number % _LINES_BETWEEN_CHECKS:
            stopping.check()
        if not number % _LINES_BETWEEN_CHECKS or len(line) > _LONG_LINE:
            budget.check()
        if number in overlong or len(line) > LIMITS.offered_chars:
            yield number, None
        else:
            for piece in _pieces(line, labels):
                yield number, piece


def _without_colours(block: LineBlock) -> LineBlock:
    return replace(block, data=without_colours(block.data))


def _cleaned(text: str) -> str:
    """Return a text without colours, NUL bytes and Ray's count of repeated lines."""
    text = without_colours(text)
    if "\x00" in text:
        text = text.replace("\x00", "")
    if REPEATED_MARK in text:
        text = _REPEATED.sub("", text)
    return text


def _pieces(line: str, labels: Labels) -> Sequence[str]:
    """Cut a line at carriage returns, each of which ends a line too; a prefix is that of all."""
    if "\r" not in line:
        return (line,)
    first, *others = line.rstrip("\r").split("\r")
    *_, rest = (first, *(text for text, _ in strip_prefix(first, labels)))
    prefix = first[: len(first) - len(rest)]
    return first, *(f"{prefix}{other}" if other.strip() else other for other in others)


def _text_readers(formats: tuple[Format, ...], context: Context, rows: Rows) -> list[TextReader]:
    """Return a reader for each format; those of captures with separators are one."""
    separators = [f for f in formats if f.definition.separator]
    others = [f for f in formats if not f.definition.separator]

    def readers(chosen: Iterable[Format]) -> list[TextReader]:
        return [_text_reader(f, context, rows) for f in chosen]

    if not separators:
        return readers(others)
    captured = readers(f for f in others if f.is_captured)
    lines = readers(f for f in others if not f.is_captured)
    return [CaptureReader(readers(separators), captured, context), *lines]


def _text_reader(format_: Format, context: Context, rows: Rows) -> TextReader:
    compiled = format_.compiled
    if format_.definition.identity_from_path is not None:
        context.placed[format_.name] = format_.definition.identity_from_path
        context = context.within()
    if isinstance(compiled, RecordFormat):
        return RecordsWithin(compiled, context, rows)
    return _READERS[format_.reader](compiled, context, rows)
