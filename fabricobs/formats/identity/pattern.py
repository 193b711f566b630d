"""Patterns of paths that the user gives: `--host-from '{host}/{time}/**'`.

A pattern is matched with a path below the directory given, archives being directories: `*` is any
part of a component, `**` any number of components, `{host}`, `{port}`, `{time}` and `{rank}` are
what the part names. A pattern need not reach the end of the path.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import tzinfo
from functools import lru_cache

from fabricobs.exceptions import UserError
from fabricobs.formats.identity.times import time_of_path

_FIELDS = {"host": r"[^/]+?", "port": r"[^/]+?", "time": r"[^/]+?", "rank": r"\d+"}
_TOKENS = re.compile(r"\{(\w*)\}|(\*\*/?)|(\*)|([^{*]+|.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Said:
    """What a pattern reads from a path."""

    host: str | None = None
    port: str | None = None
    rank: int | None = None
    ts: int | None = None


def said_of(patterns: tuple[str, ...], path: str, zone: tzinfo) -> Said | None:
    """Return what the first pattern that fits a path reads from it; None if none fits."""
    for pattern in patterns:
        found = compile_pattern(pattern).match(path)
        if found is not None:
            told = found.groupdict()
            rank = told.get("rank")
            time = told.get("time")
            ts = time_of_path((time,), zone).ts if time else None
            return Said(told.get("host"), told.get("port"), int(rank) if rank else None, ts)
    return None


def unfit(patterns: Iterable[str], paths: Collection[str]) -> Iterator[str]:
    """Yield the patterns that fit none of the paths."""
    for pattern in patterns:
        if not any(map(compile_pattern(pattern).match, paths)):
            yield pattern


@lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a pattern; UserError names what is wrong with it."""
    parts = []
    named: set[str] = set()
    for field, folders, star, text in _TOKENS.findall(pattern):
        if field or text == "{":
            if field not in _FIELDS:
                raise UserError(
                    f"--host-from {pattern}: {{{field}}} is not one of "
                    f"{', '.join(f'{{{name}}}' for name in _FIELDS)}"
                )
            parts.append(f"(?P={field})" if field in named else f"(?P<{field}>{_FIELDS[field]})")
            named.add(field)
        elif folders:
            parts.append("(?:[^/]+/)*" if folders == "**/" else ".*")
        else:
            parts.append("[^/]*" if star else re.escape(text))
    if not named:
        raise UserError(
            f"--host-from {pattern}: names no {{host}}: write as '{{host}}/{{time}}/**'"
        )
    return re.compile("".join(parts) + ("$" if "." in pattern[-6:] else "(?:/.*)?$"))
