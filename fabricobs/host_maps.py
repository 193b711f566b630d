"""Host maps of an input, read before all else: they name the hosts that addresses in paths mean."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath

from fabricobs.formats.budget import cpu_limit
from fabricobs.formats.context import Context
from fabricobs.formats.reading import read_file
from fabricobs.formats.recognition.catalogue import Catalogue
from fabricobs.formats.rows import Rows
from fabricobs.formats.source import read_ends

MAP_TABLE = "host_map"
# The content decides what a file is; its name, whether it is looked at before the others.
_NAME = re.compile(
    r"(?:.*[-_.])?(?:hosts?|hostmap|inventory|nodes?|site|map)(?:[-_.].*)?", re.IGNORECASE
)
MOST_BYTES = 1 << 20


def may_be_host_map(name: str) -> bool:
    """Say whether a file's name is one that people give to lists of hosts."""
    return _NAME.fullmatch(PurePath(name).name) is not None


def aliases_in(
    files: Iterable[tuple[Path, str]], catalogue: Catalogue, known: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the hosts that files name, by alias, with those known; one of two hosts is left out.

    Of each file its path is given, and what it is called. A file that is no host map, or cannot be
    read, says nothing: it is told when it is read.
    """
    hosts: dict[str, set[str]] = {alias: {host} for alias, host in (known or {}).items()}
    for path, name in files:
        for alias, host in _pairs(path, name, catalogue):
            hosts.setdefault(alias, set()).add(host)
    return {alias: names.pop() for alias, names in hosts.items() if len(names) == 1}


def _pairs(path: Path, name: str, catalogue: Catalogue) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    try:
        if path.stat().st_size > MOST_BYTES:
            return pairs
        with cpu_limit(path):
            recognised = catalogue.recognise(read_ends(path), name)
        if not any(MAP_TABLE in format_.definition.tables for format_ in recognised.formats):
            return pairs
        rows = Rows()
        read_file(path, recognised, Context("map", file_name=name), rows, lambda: None)
        for table, part in rows.drain():
            if table == MAP_TABLE and {"alias", "host"} <= set(part.column_names):
                told = zip(part["alias"].to_pylist(), part["host"].to_pylist(), strict=True)
                pairs += [(a, h) for a, h in told if a and h and a != h]
    except Exception:
        return []
    return pairs
