"""How findings name several culprits: GPUs of one host in one go, and the part that holds them."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

import numpy as np

from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.findings import Entity
from fabricobs.diagnosis.name_lists import at_most, enumerated
from fabricobs.diagnosis.statistics import Integers

# A part is named for the hosts in it when so many of its hosts are among them.
_MOST_OF_PART = 0.5


def ranges(numbers: Integers) -> str:
    """Sorted numbers as a person writes them: 0-7, 12."""
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1)
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)


def numbered(numbers: Iterable[int]) -> str:
    """Numbers within a sentence: 3; 1 and 5; 0-3, 5 and 7."""
    parts = ranges(np.array(sorted(set(numbers)), dtype=np.int64)).split(", ")
    return enumerated(parts)


def during(begin: datetime | None, end: datetime | None) -> str:
    """Return from when to when, UTC, within a sentence; without a time that there was one."""
    if begin is None or end is None:
        return "at that time"
    last = f"{end:%H:%M:%S}" if begin.date() == end.date() else f"{end:%Y-%m-%d %H:%M:%S}"
    return f"from {begin:%Y-%m-%d %H:%M:%S} to {last} UTC"


def listed(entities: Sequence[Entity], most: int = 3) -> str:
    """Name entities in a sentence, GPUs by host: GPU 3 of a; GPUs 1 and 5 of a and b; a, b and c.

    More than `most` names are cut short.
    """
    # The job is named where it is the culprit; a host of it has a name of its own.
    parts = [replace(e, job=None) if e.host is not None else e for e in entities]
    names = [*_gpus(parts, most), *(part.label for part in parts if not _is_gpu(part))]
    return at_most(names, most)


def _gpus(parts: Iterable[Entity], most: int) -> list[str]:
    """Return the GPUs of each host; hosts with the same ones share a name."""
    by_host: dict[str | None, set[int]] = {}
    for part in parts:
        if _is_gpu(part) and part.gpu is not None:
            by_host.setdefault(part.host, set()).add(part.gpu)
    alike: dict[frozenset[int], list[str]] = {}
    for host, gpus in by_host.items():
        alike.setdefault(frozenset(gpus), []).append(str(host))
    return [
        f"GPU{'s' if len(gpus) > 1 else ''} {numbered(gpus)} of {at_most(hosts, most)}"
        for gpus, hosts in alike.items()
    ]


def _is_gpu(entity: Entity) -> bool:
    return entity.type == "gpu" and entity.gpu is not None


def place_of(hosts: Iterable[str | None], evidence: Evidence) -> str:
    """Name the smallest part of the cluster with these hosts, empty where none is known.

    A part is a leaf with the hosts below it, or what numbered names have in common. It tells
    something where it holds several of these hosts, most of its hosts are among them, and others of
    the cluster are not in it.
    """
    own = {host for host in hosts if host is not None}
    if len(own) < 2:
        return ""
    rows = evidence.frame("host_groups").select("place", "host").rows()
    parts: dict[str, set[str]] = {}
    for place, host in rows:
        parts.setdefault(place, set()).add(host)
    everyone = {host for _, host in rows}
    holding = [
        (len(members), place)
        for place, members in parts.items()
        if own <= members < everyone and len(own) >= _MOST_OF_PART * len(members)
    ]
    if not holding:
        return ""
    count, place = min(holding)
    if count == len(own):
        return f" (all hosts {place})"
    return f" ({len(own)} of the {count} hosts {place})"
