"""Slurm's notation of hosts: `kst[01-02,05-06]`, `rack[1-2]n[01-04]`, `a1,b[3-5]`."""

import re
from itertools import product
from math import prod

_MOST_HOSTS = 1 << 16
# A host is text and lists of numbers in brackets; a comma outside of brackets ends it.
_HOST = re.compile(r"(?:[A-Za-z0-9_.-]+|\[[0-9,-]+\])+")
_PART = re.compile(r"[A-Za-z0-9_.-]+|\[[0-9,-]+\]")
_NUMBERS = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?")
_NONE = frozenset({"", "none", "none assigned", "(null)", "n/a", "unknown", "<none>"})


def hosts_of(text: str) -> tuple[str, ...]:
    """Return the hosts of a node list, in order; none of `(Resources)`, `(null)` and the like.

    ValueError for what is no node list, such as one that a narrow column cut off.
    """
    stripped = text.strip()
    if stripped.lower() in _NONE or (stripped.startswith("(") and stripped.endswith(")")):
        return ()
    hosts: list[str] = []
    at = 0
    while at <= len(stripped):
        found = _HOST.match(stripped, at)
        if found is None or stripped[found.end() : found.end() + 1] not in {"", ","}:
            raise ValueError(f"{text!r} is no node list")
        hosts += _expanded(found[0])
        if len(hosts) > _MOST_HOSTS:
            raise ValueError("more hosts than a cluster has")
        at = found.end() + 1
    return tuple(hosts)


def _expanded(host: str) -> list[str]:
    """Return the hosts that one text with lists of numbers stands for."""
    choices = [
        _numbers(part[1:-1]) if part.startswith("[") else [part] for part in _PART.findall(host)
    ]
    if prod(map(len, choices)) > _MOST_HOSTS:
        raise ValueError("more hosts than a cluster has")
    return ["".join(parts) for parts in product(*choices)]


def _numbers(text: str) -> list[str]:
    """Return the numbers of `01-03,07`, each as wide as the first of its range."""
    numbers: list[str] = []
    for each in text.split(","):
        found = _NUMBERS.fullmatch(each)
        if found is None:
            raise ValueError(f"{text!r} is no list of numbers")
        first, last = int(found[1]), int(found[2] or found[1])
        if not first <= last < first + _MOST_HOSTS:
            raise ValueError(f"{text!r} counts down, or too far")
        numbers += [str(number).zfill(len(found[1])) for number in range(first, last + 1)]
    return numbers
