"""What launchers and log services write before a line: found, taken off, and what it tells kept.

A line may bear several (`0: [1,3]<stdout>:2026-01-05T10:00:00Z text`); they are taken off one after
the other. Only a line that no format takes as it is loses its prefixes, so a format whose own lines
begin with a time or a number keeps them.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import tzinfo
from functools import lru_cache
from typing import Any

from fabricobs.formats.recognition.detection import Detector
from fabricobs.formats.values import parse_time

_ISO = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
_LAUNCHERS = (
    r"\[\d+,(?P<rank>\d{1,7})\]<std\w+>:",  # mpirun --tag-output
    r"\[(?:rank|default)?(?P<rank>\d{1,7})\]:? ?",  # torchrun, mpiexec -prepend-rank
    r" *(?P<rank>\d{1,7}): ",  # srun --label, right-aligned
    r"\([\w.:-]+ pid=\d+(?:, ip=[\d.]+)?\) ",  # Ray
    r"\d{1,3}(?:\.\d{1,3}){3}: ",  # pdsh
    r"[A-Za-z][\w.-]*\d: ",  # pdsh, DeepSpeed: host names end in a number
)
_SERVICES = (
    rf"(?P<ts>{_ISO}):? ",
    rf" *\| (?P<ts>{_ISO}) \| ",  # pasted from CloudWatch
    r"(?P<ts>[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})<std\w+>:",
    r"\[(?P<ts>\d{4}-\d\d-\d\d[ T_]\d\d:\d\d:\d\d(?:\.\d{1,9})?)\] ",  # NCCL 2.26 and newer
    r"> ",  # quoted
)
_PREFIXES = tuple(re.compile(expression) for expression in (*_LAUNCHERS, *_SERVICES))
_UNNAMED = re.compile(r"\?P<\w+>")
_LABELLED = Detector(_UNNAMED.sub("?:", "|".join(rf"^{e}" for e in _LAUNCHERS)))
# One look for the many lines that bear none.
_ANY = re.compile(_UNNAMED.sub("?:", "|".join((*_LAUNCHERS, *_SERVICES))))
_MOST = 4  # prefixes on one line
_LOOKED_AT = 1 << 18


def peeled(line: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the line without its first prefix, its first two, ..., and what those told.

    One by one, because a format's own lines may begin like a prefix, with a time.
    """
    told: dict[str, str] = {}
    for _ in range(_MOST):
        if _ANY.match(line) is None:
            return
        found = next(filter(None, (prefix.match(line) for prefix in _PREFIXES)))
        told |= {name: text for name, text in found.groupdict().items() if text is not None}
        line = line[found.end() :]
        yield line, told


def columns_told(told: dict[str, str], zone: tzinfo) -> dict[str, Any]:
    """Return the columns that prefixes fill: `launch_rank`, and `ts` in microseconds."""
    columns: dict[str, Any] = {}
    if "rank" in told:
        columns["launch_rank"] = int(told["rank"])
    if "ts" in told:
        with suppress(ValueError):
            columns["ts"] = parse_time(told["ts"], zone)
    return columns


@lru_cache(maxsize=4096)
def prefix_of(before: str) -> tuple[int | None, bool]:
    """Return the rank that stands before a message, and whether nothing but prefixes does."""
    rest, told = before, dict[str, str]()
    for rest, told in peeled(before):  # noqa: B007 (the last one counts)
        pass
    alone = not rest.strip()
    return int(told["rank"]) if alone and "rank" in told else None, alone


def without_prefixes(text: str, *, always: bool) -> str:
    """Return the first lines of a text as they are below their prefixes, for recognition.

    Nothing if no launcher labelled them, unless `always`.
    """
    head = text[:_LOOKED_AT]
    if not always and not _LABELLED.found_in(head):
        return ""
    return "\n".join(rest for line in head.split("\n") for rest, _ in peeled(line))


class HostNames:
    """The hosts of one file. Where writers share a pipe, a host may bear a torn-off piece.

    `busId 97gpu1:17:17 [2] NCCL INFO ...` is gpu1 if lines before begin with gpu1.
    """

    def __init__(self) -> None:
        self._known: set[str] = set()

    def clean(self, host: str, before: str) -> str:
        """Return the host's name, given what stands before it in the line."""
        if host in self._known:
            return host
        if not before or prefix_of(before)[1]:
            self._known.add(host)
            return host
        glued = [known for known in self._known if host.endswith(known)]
        return max(glued, key=len, default=host)
