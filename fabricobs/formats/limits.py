"""The limits of reading one file; the table of the manual is made from them.

A limit stands well above what honest files need (the measurement is told beside it) and below what
would cost the other files of an ingest their memory or their turn. A file beyond one is refused by
name, with the limit in the reason.
"""

from dataclasses import Field, dataclass, field, fields
from typing import Any

MIB = 1 << 20


def _limit(value: Any, unit: str, meaning: str, measured: str) -> Any:
    return field(default=value, metadata={"unit": unit, "meaning": meaning, "measured": measured})


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits; each with unit, meaning and the measurement behind it."""

    cpu_s: float = _limit(
        2.0, "s",
        "CPU time that recognising or reading any file may take, whatever its size",
        "a file of 10 kB takes 0.5 ms, one of the slowest format 20 ms",
    )  # fmt: skip
    cpu_s_per_mib: float = _limit(
        5.0, "s/MiB",
        "CPU time on top for each MiB of the file; a MiB of a compressed file counts as 16",
        "1.8 s/MiB for the slowest format, 0.25 s/MiB for the median of all",
    )  # fmt: skip
    cpu_s_per_member: float = _limit(
        0.02, "s",
        "CPU time on top for each file in an archive",
        "1.7 ms for a file of one value, 3 ms on a busy machine",
    )  # fmt: skip
    line_bytes: int = _limit(
        MIB, "B",
        "longest line of any text, record lines included; a longer one is counted and left out",
        "2.8 kB is the longest line of 400 public logs",
    )  # fmt: skip
    offered_chars: int = _limit(
        128 << 10, "characters",
        "longest line that log and output formats are tried on; a longer one is only counted",
        "NCCL prints a ring of 16,384 ranks in 96 kB",
    )  # fmt: skip
    prefix_chars: int = _limit(
        500, "characters",
        "how far into a line the prefix of a launcher or log service is looked for",
        "a pod's name has at most 253 letters, a time 40",
    )  # fmt: skip
    unpacked_ratio: int = _limit(
        200, "",
        "how many times its size a compressed file may unpack to, beyond the first 64 MiB",
        "logs reach 100:1; 1 MiB of a bomb then takes 3 s of CPU time, as xz",
    )  # fmt: skip
    unpacked_free_bytes: int = _limit(
        64 * MIB, "B",
        "what a compressed file may unpack to, however small it is",
        "a small file of one line repeated is no bomb",
    )  # fmt: skip
    decompressor_bytes: int = _limit(
        128 * MIB, "B",
        "memory that xz or zstd may ask for to unpack a file",
        "`xz -9` asks for 65 MiB, `zstd --ultra -22` for 128 MiB",
    )  # fmt: skip
    unknown_bytes: int = _limit(
        64 * MIB, "B",
        "how much of a file that shows no known format is counted and told from other files by",
        "what is unknown gives 20 sample lines, which stand in the first",
    )  # fmt: skip
    hole_bytes: int = _limit(
        64 * MIB, "B",
        "holes (parts never written) in a sparse file",
        "a crashed host leaves holes of some MiB at the end of a log",
    )  # fmt: skip
    document_bytes: int = _limit(
        32 * MIB, "B",
        "longest JSON document file",
        "counters of 200,000 ports are 12 MB",
    )  # fmt: skip
    document_values: int = _limit(
        3_000_000, "values",
        "values of a JSON document, as its commas, colons and opening brackets count them",
        "counters of 200,000 ports are 1.5 million; a value takes up to 130 B of memory",
    )  # fmt: skip
    document_levels: int = _limit(
        100, "levels",
        "how deep objects and lists of a document (JSON, YAML, pickle) may nest",
        "the deepest format, a telemetry answer, has 14",
    )  # fmt: skip
    yaml_bytes: int = _limit(
        4 * MIB, "B",
        "longest YAML document",
        "a map of 10,000 hosts with 8 NICs each is 3 MB",
    )  # fmt: skip
    dump_bytes: int = _limit(
        64 * MIB, "B",
        "longest flight recorder dump, packed MLflow database or other file held in memory",
        "a dump of 20,000 collectives is 12 MB",
    )  # fmt: skip
    dump_values: int = _limit(
        4_000_000, "values",
        "values that a pickle may build, a shared one counted each time",
        "a dump of 20,000 collectives with their stacks has 3.6 million",
    )  # fmt: skip
    cell_bytes: int = _limit(
        MIB, "B",
        "longest text or blob of a database's cell",
        "metric names are some tens of bytes",
    )  # fmt: skip
    database_rows: int = _limit(
        10_000_000, "rows",
        "metrics of an MLflow database",
        "100 runs of 10,000 steps, 10 metrics each",
    )  # fmt: skip
    columns: int = _limit(
        10_000, "columns",
        "columns of a CSV or Parquet file",
        "telemetry exports have some hundreds",
    )  # fmt: skip
    footer_bytes: int = _limit(
        16 * MIB, "B",
        "footer of a Parquet file, which tells where its columns are",
        "1,000 row groups of 100 columns take 10 MB",
    )  # fmt: skip
    row_group_bytes: int = _limit(
        128 * MIB, "B",
        "largest row group of a Parquet file, unpacked, in the columns that are read",
        "writers make groups of 1 million rows of 8 B a column, or less",
    )  # fmt: skip
    record_bytes: int = _limit(
        16 * MIB, "B",
        "longest record of a TensorBoard file",
        "a scalar takes 60 B, a large image 4 MB",
    )  # fmt: skip
    event_bytes: int = _limit(
        MIB, "B",
        "longest event of a Chrome trace",
        "an event with a stack takes 10 kB",
    )  # fmt: skip
    members: int = _limit(
        50_000, "files",
        "files in an archive, archives in it included",
        "5 kB of memory each; counters of 125 hosts, 400 files each",
    )  # fmt: skip
    member_header_bytes: int = _limit(
        MIB, "B",
        "longest name or attribute of a file in an archive",
        "a path has at most 4 kB",
    )  # fmt: skip


LIMITS = Limits()


def described() -> list[tuple[str, str, str, str]]:
    """Return name, value with unit, meaning and measurement of every limit."""
    return [
        (limit.name, _shown(limit), limit.metadata["meaning"], limit.metadata["measured"])
        for limit in fields(Limits)
    ]


def in_mib(size: int) -> str:
    """Write a size of whole MiB, or else KiB."""
    return f"{size >> 20} MiB" if size >= MIB else f"{size >> 10} KiB"


def _shown(limit: Field[Any]) -> str:
    value: Any = limit.default
    unit = limit.metadata["unit"]
    if unit == "B":
        return in_mib(value)
    return f"{value:,} {unit}".strip()
