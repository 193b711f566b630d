"""What the client of NCCL's RAS prints: a report as text, or as JSON from release 2.29 on.

The text lists communicators in groups of one shape, and of one that does not fit only the ranks of
the smaller sides; a rank alone with its count has it on its own line.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fabricobs.simulator.cluster import Integers

# A side with at most so many of the ranks is listed; the NCCL user guide lists 6 of 32.
_OUTLIERS = 0.25


@dataclass(frozen=True, slots=True)
class RasProcess:
    """A process as RAS names it: address of its host, its id and its GPU; `lost`: no answer."""

    address: str
    pid: int
    gpu: int
    lost: bool = False


@dataclass(frozen=True, slots=True)
class RasCommunicator:
    """A communicator: its hash, its processes by rank, and the launches [N] of each operation."""

    comm_id: int
    members: Sequence[RasProcess]
    launched: Mapping[str, Integers]

    @property
    def here(self) -> list[int]:
        """The ranks that answer."""
        return [rank for rank, process in enumerate(self.members) if not process.lost]

    @property
    def lost(self) -> list[int]:
        """The ranks that do not."""
        return [rank for rank, process in enumerate(self.members) if process.lost]

    @property
    def differing(self) -> list[str]:
        """The operations of which not all ranks that answer have launched as many."""
        return [op for op, counts in self.launched.items() if len(set(counts[self.here])) > 1]

    @property
    def errors(self) -> str:
        """What the table of groups says of it."""
        said = [("INCOMPLETE", self.lost), ("MISMATCH", self.differing)]
        return ",".join(name for name, found in said if found) or "OK"


def ras_text(release: str, communicators: Sequence[RasCommunicator], *, dead: bool) -> str:
    """Return a report; lost processes are `dead` after a minute without an answer."""
    lines = [
        f"NCCL version {release} compiled with CUDA 12.9",
        "CUDA runtime version 12090, driver version 12090",
        "", "Job summary", "===========", "",
        "  Nodes  Processes         GPUs  Processes     GPUs",
        "(total)   per node  per process    (total)  (total)",
    ]  # fmt: skip
    everyone = {(p.address, p.pid): p for c in communicators for p in c.members}
    nodes = len({address for address, _ in everyone})
    total = len(everyone)
    lines += [f"{nodes:7d}  {total // nodes:9d}  {1:11d}  {total:9d}  {total:7d}", ""]
    lines += [
        "Communicators... (0.00s)", "=============", "",
        "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors",
        "    #  in group  per comm  per node  per comm  in group",
    ]  # fmt: skip
    groups: dict[tuple[int, int, str], list[RasCommunicator]] = {}
    for communicator in communicators:
        hosts = len({process.address for process in communicator.members})
        key = (len(communicator.members), hosts, communicator.errors)
        groups.setdefault(key, []).append(communicator)
    for number, ((size, hosts, errors), found) in enumerate(groups.items()):
        lines.append(
            f"{number:5d}  {len(found):8d}  {hosts:8d}  {size // hosts:8d}  {size:8d}  "
            f"{size * len(found):8d}   RUNNING  {errors:>8}"
        )
    lines += ["", "Errors", "======", ""]
    lost = [process for process in everyone.values() if process.lost]
    if lost:
        lines += _lost(lost, dead=dead)
    named = [
        (f"#{number}-{place} ({communicator.comm_id:x})", communicator)
        for number, found in enumerate(groups.values())
        for place, communicator in enumerate(found)
    ]
    for name, communicator in named:
        if communicator.lost:
            lines += [f"{name} INCOMPLETE", *_missing(communicator.lost), ""]
    lines += ["Warnings", "========", ""]
    for name, communicator in named:
        if communicator.differing:
            lines += [f"{name} MISMATCH", *_differences(communicator), ""]
    return "\n".join(lines) + "\n"


def ras_json(release: str, stamp: str, communicators: Sequence[RasCommunicator]) -> str:
    """Return a report of the moment `stamp`, as YYYY-MM-DD HH:MM:SS."""
    document = {
        "nccl_version": release,
        "cuda_runtime_version": 12090,
        "cuda_driver_version": 12090,
        "timestamp": stamp,
        "communicators_count": len(communicators),
        "communicators": [_document(communicator) for communicator in communicators],
        "ras": {"collection_time_sec": 0.01, "timeouts_count": 0},
    }
    return json.dumps(document, indent=1) + "\n"


def _document(communicator: RasCommunicator) -> dict[str, object]:
    ranks = [
        {
            **_place(communicator.members[rank], rank),
            "status": {"init_state": 0, "async_error": 0, "abort_flag": False},
            "collective_counts": {op: int(n[rank]) for op, n in communicator.launched.items()},
        }
        for rank in communicator.here
    ]
    missing = [
        {**_place(communicator.members[rank], rank), "status": {"unresponsive": True}}
        for rank in communicator.lost
    ]
    return {
        "hash": f"0x{communicator.comm_id:x}",
        "size": len(communicator.members),
        "ranks_count": len(ranks),
        "missing_ranks_count": len(missing),
        "ranks": ranks,
        "missing_ranks": missing,
    }


def _place(process: RasProcess, rank: int) -> dict[str, object]:
    return {
        "rank": rank, "host": process.address, "pid": process.pid,
        "cuda_dev": process.gpu, "nvml_dev": process.gpu,
    }  # fmt: skip


def _lost(lost: Sequence[RasProcess], *, dead: bool) -> list[str]:
    one = len(lost) == 1
    said = (
        f"  {len(lost)} job {'process is' if one else 'processes are'} considered dead "
        "(unreachable via the RAS network)"
        if dead
        else f"  Missing communicator data from {len(lost)} job process{'' if one else 'es'}"
    )
    named = [f"  Process {p.pid} on node {p.address} managing GPU {p.gpu}" for p in lost]
    return ["DEAD" if dead else "INCOMPLETE", said, *named, ""]


def _missing(ranks: Sequence[int]) -> list[str]:
    several = "" if len(ranks) == 1 else "s"
    numbers = ", ".join(map(str, ranks))
    return [
        f"  Missing communicator data from {len(ranks)} rank{several}",
        f"  The missing rank{several}: {numbers}",
    ]


def _differences(communicator: RasCommunicator) -> Iterator[str]:
    for op in communicator.differing:
        yield f"  Communicator ranks have different {op} operation counts"
        counts = communicator.launched[op]
        sides = Counter(counts[communicator.here].tolist())
        for count, ranks in sorted(sides.items(), key=lambda side: (-side[1], side[0])):
            alike = [rank for rank in communicator.here if counts[rank] == count]
            if ranks > 1:
                yield f"  {ranks} ranks have launched up to operation {count}"
            if ranks <= max(1, _OUTLIERS * len(communicator.here)):
                for rank in alike:
                    yield _outlier(communicator.members[rank], rank, count, alone=ranks == 1)


def _outlier(process: RasProcess, rank: int, count: int, *, alone: bool) -> str:
    said = f" has launched up to operation {count}" if alone else ""
    place = f"GPU {process.gpu} managed by process {process.pid} on node {process.address}"
    return f"  Rank {rank}{said} -- {place}"
