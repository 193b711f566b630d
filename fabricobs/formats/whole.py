"""Files read as a whole: what one reader function is given, and how a name finds its column.

A record of such a file (an event, an entry, a scalar) counts as a line: its number in the file is
the row's `line`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import Any, BinaryIO, cast

from fabricobs.formats.context import Context
from fabricobs.formats.decompression import BROKEN, SourceError
from fabricobs.formats.definition import Definition
from fabricobs.formats.limits import LIMITS, in_mib
from fabricobs.formats.mapping import ColumnMapping, Target
from fabricobs.formats.records.values import from_json
from fabricobs.formats.rows import Rows, Tally
from fabricobs.formats.source import LineBlock, line_blocks, numbered_texts, read_document
from fabricobs.formats.values import (
    EARLIEST_US,
    LATEST_US,
    OUT_OF_AGE,
    Unfit,
    parse_number,
    parse_whole,
)
from fabricobs.formats.values.nccl import parse_cuda_version, parse_nccl_version
from fabricobs.store.tables.columns import number as number_column
from fabricobs.store.tables.columns import whole as whole_column


class WholeFormat:
    """A compiled definition of a whole-file reader; its blocks map names to columns."""

    def __init__(self, definition: Definition) -> None:
        self.name = definition.name
        self.blocks = tuple((block, ColumnMapping(block)) for block in definition.block)


@dataclass(slots=True)
class WholeFile:
    """One file being read: `flush` may be called after any row and acts when a batch is full."""

    format: WholeFormat
    path: Path
    stream: BinaryIO
    context: Context
    rows: Rows
    tally: Tally
    flush: Callable[[], None]

    def add_versions(
        self, rank: int | None, nccl: Any, cuda_runtime: Any = None, cuda_driver: Any = None
    ) -> None:
        """Add the versions that a document tells of the process of a rank of the job, if any."""
        versions = {
            "version": _printed(nccl, parse_nccl_version),
            "cuda_runtime": _printed(cuda_runtime, parse_cuda_version),
            "cuda_driver": _printed(cuda_driver, parse_cuda_version),
        }
        if any(versions.values()):
            # What is read here as `rank` is the rank in the job.
            self.add("nccl_ranks", {**versions, "rank": None, "launch_rank": rank}, None)

    def add_frames(
        self,
        frames: Sequence[tuple[Any, Any, Any]],
        of: Mapping[str, Any],
        line: int | None,
        ts: float | Unfit | None = None,
    ) -> None:
        """Add the frames of a stack, the innermost first: function, file and line of the code."""
        for number, (function, place, code_line) in enumerate(frames):
            frame = {
                "frame": number,
                "function": text(function),
                "place": text(place),
                "code_line": whole_cell(code_line),
            }
            self.add("stack_frames", {**of, **frame}, line, ts)

    def add(
        self, table: str, row: Mapping[str, Any], line: int | None, ts: float | Unfit | None = None
    ) -> None:
        """Add a row; `ts` are microseconds since 1970 UTC that the record itself tells.

        One after 2100 is left out and told; one before 1990 counts from something else.
        What the path tells holds for the columns that `row` leaves out; the user's --job holds
        against a run's own name.
        """
        given = self.context.base(table, self.format.name, snapshot=False)
        given.update(row)
        given["line"] = line
        if self.context.job is not None:
            given["job"] = self.context.job
        if isinstance(ts, float | int) and EARLIEST_US < ts < LATEST_US:
            given["ts"], given["ts_source"] = round(ts), "inline"
        elif isinstance(ts, Unfit):
            given["ts"] = ts
        elif ts is not None and not ts <= EARLIEST_US:
            given["ts"] = Unfit(str(ts), OUT_OF_AGE)
        self.rows.add(table, given)

    def read_all(self) -> bytes:
        """Read a document that has to be in memory; SourceError if it is far too long."""
        return read_document(self.stream, LIMITS.dump_bytes)

    def lines(self, blocks: Iterable[LineBlock] | None = None) -> Iterator[tuple[int, str]]:
        """Yield the lines that hold something with their numbers; all others are counted.

        Without `blocks` they are those of the stream.
        """
        for block in line_blocks(self.stream) if blocks is None else blocks:
            for number in block.overlong:
                self.miss(number, f"longer than {in_mib(LIMITS.line_bytes)}", "")
            for number, line in numbered_texts(block):
                text = line.replace("\x00", "").rstrip("\r")
                if text.strip():
                    yield number, text
                else:
                    self.tally.skip()
            self.flush()

    def miss(self, number: int, reason: str, text: str) -> None:
        """Count a line that cannot be read."""
        self.tally.miss(number, f"{self.format.name}: {reason}", text)

    def pieces(self, size: int) -> Iterator[bytes]:
        """Yield the file piece by piece; SourceError where it breaks off, after what it gave."""
        read = getattr(self.stream, "read1", self.stream.read)
        while True:
            parts: list[bytes] = []
            wanted = size
            try:
                while wanted > 0 and (part := read(wanted)):
                    parts.append(part)
                    wanted -= len(part)
            except BROKEN as error:
                yield b"".join(parts)
                raise SourceError(f"breaks off: {error}") from error
            if not parts:
                return
            yield b"".join(parts)


Reader = Callable[[WholeFile], None]
_WHOLE = Target("", whole_column("", ""), parse_whole, None)


def whole(value: Any) -> int | None:
    """Return a whole number, or a text that is one, that fits 64 bits; else None."""
    cell = whole_cell(value)
    return cell if isinstance(cell, int) else None


def _printed(value: Any, parse: Callable[[str], str | None]) -> str | None:
    """Return a version that is told as a text or as a number."""
    told = isinstance(value, str | int) and not isinstance(value, bool)
    return parse(str(value)) if told else None


def whole_cell(value: Any) -> int | Unfit | None:
    """Return what a value is in a column of whole numbers: one that does not fit is told."""
    return cast("int | Unfit | None", from_json(value, _WHOLE, UTC))


def scaled_cell(value: Any, factor: float) -> float | Unfit | None:
    """Return what a value times a factor is in a column of numbers: what is none is told."""
    target = Target("", number_column("", ""), parse_number, factor)
    return cast("float | Unfit | None", from_json(value, target, UTC))


def number(value: Any) -> float | None:
    """Return a number as a float, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def text(value: Any) -> str | None:
    """Return a text that says something, else None."""
    return value if isinstance(value, str) and value else None
