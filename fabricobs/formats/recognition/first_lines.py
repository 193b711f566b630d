"""What the first lines of a file tell: the columns of CSV, the keys of a record, a document."""

from typing import Any

from fabricobs.formats.documents.jsontext import BEGINS, below_banner, loads
from fabricobs.formats.records.csv_records import split_header

# Prompts, commands and dates that may stand before the first document of a JSON file.
_MOST_LINES_ABOVE = 10


def begins_a_document(text: str) -> bool:
    """Say whether a JSON document stands at the top, below few lines of something else."""
    end = 0
    for _ in range(_MOST_LINES_ABOVE + 1):
        end = text.find("\n", end) + 1
        if end == 0:
            return BEGINS.search(text) is not None
    return BEGINS.search(text, 0, end) is not None


def keys_of_first_line(text: str, syntax: str) -> list[str] | None:
    """Return the columns of CSV, or the keys of the first record; None if there is neither."""
    line = text.lstrip().partition("\n")[0].strip()
    if syntax == "csv":
        return split_header(line)[0]
    lines = [line for line in below_banner(text).split("\n")[:50] if line.strip()]
    if not lines or not lines[0].lstrip().startswith("{"):
        return None
    if line != lines[0].strip() and not all(line.startswith("{") for line in lines):
        return None  # a log in which a record stands
    for candidate in lines:
        try:
            record = loads(candidate)
        except ValueError:
            continue
        return paths_of(record) if isinstance(record, dict) else None
    return []


def keys_of_record(ends: bytes) -> tuple[str, ...]:
    """Return the keys of a first line that is a JSON object; none of any other."""
    if not ends.startswith(b"{"):
        return ()
    try:
        record = loads(ends.partition(b"\n")[0])
    except ValueError:
        return ()
    return tuple(paths_of(record)) if isinstance(record, dict) else ()


def paths_of(record: dict[str, Any], prefix: str = "") -> list[str]:
    """Return the keys of a record, those of an object in it as `outer.inner`."""
    paths: list[str] = []
    for key, value in record.items():
        if isinstance(value, dict):
            paths.extend(paths_of(value, f"{prefix}{key}."))
        else:
            paths.append(f"{prefix}{key}")
    return paths
