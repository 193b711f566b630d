"""What a table and a column are, and the columns that many tables share."""

from dataclasses import dataclass
from typing import Literal

# What the rise of a counter means: `wire` a bad cable or optic, `link` the link was lost, `drop` a
# full buffer, `resend` data sent again, `error` another error, `host` a slow host, `storm` a NIC
# that pauses for long; the others are no errors.
Family = Literal[
    "traffic", "wire", "link", "drop", "resend", "error", "host", "storm",
    "congestion", "pause", "occupancy", "background",
]  # fmt: skip
Type = Literal["VARCHAR", "BIGINT", "DOUBLE", "BOOLEAN", "TIMESTAMP", "MAP(VARCHAR, BIGINT)"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column: name, DuckDB type, unit ('' where it has none) and a sentence.

    A counter has a `family`: what its rise means. A counter of 64 bits without a sign is kept as
    the negative number of the same bits.
    """

    name: str
    type: Type
    unit: str
    meaning: str
    family: Family | None = None

    @property
    def is_counter(self) -> bool:
        """Say whether this is a counter."""
        return self.family is not None


@dataclass(frozen=True, slots=True)
class Table:
    """One table: what a row is, where rows come from, its columns and the order of its rows.

    `dated` tables hold what happened at a time, which a window leaves out when it is over; the
    others hold what is so until something else is said.
    """

    name: str
    row: str
    source: str
    columns: tuple[Column, ...]
    sort: tuple[str, ...]
    dated: bool = False

    def column(self, name: str) -> Column | None:
        """Return the column of that name, or None."""
        return next((column for column in self.columns if column.name == name), None)


def text(name: str, meaning: str) -> Column:
    """Return a column of text."""
    return Column(name, "VARCHAR", "", meaning)


def whole(name: str, meaning: str, unit: str = "") -> Column:
    """Return a column of whole numbers."""
    return Column(name, "BIGINT", unit, meaning)


def number(name: str, meaning: str, unit: str = "") -> Column:
    """Return a column of decimal numbers."""
    return Column(name, "DOUBLE", unit, meaning)


def flag(name: str, meaning: str) -> Column:
    """Return a column of truth values."""
    return Column(name, "BOOLEAN", "", meaning)


def counters(family: Family, *rows: tuple[str, str, str]) -> tuple[Column, ...]:
    """Return a counter of a family for each name, unit and meaning."""
    return tuple(Column(name, "BIGINT", unit, meaning, family) for name, unit, meaning in rows)


JOB = text("job", "Name given with --job, else null")
FILE_ID = text("file_id", "The input file: key of `files`")
LINE = whole("line", "Line of the input file, from 1; null where a row has no line")
TIME = Column(
    "ts", "TIMESTAMP", "UTC", "When it happened or was sampled; null if the source is silent"
)
TIME_SOURCE = text(
    "ts_source",
    "inline, header, filename (file or folder), bundle (a file `date` beside it), day (the path "
    "tells the day alone), mtime, derived or none",
)
FORMAT = text("format", "Format definition the row was read with: key of `counter_info`")

ORIGIN = (JOB, FILE_ID, LINE)
TIMED = (TIME, TIME_SOURCE)
