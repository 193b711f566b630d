"""Traces of NCCL's example profiler plugin: Chrome JSON, begin and end of every call.

The times are the host's: without kernel events a call's duration is that of its enqueueing. They
count from the profiler's start, so rows have no time. A call without end was still running. Of the
network's events only the sum by name is kept: long SendWait is a slow network, long RecvWait a peer
that is late.
"""

import re
from typing import Any

from fabricobs.formats.decompression import SourceError
from fabricobs.formats.readers.chrome import OTHERS, ChromeTrace
from fabricobs.formats.readers.names import element_bytes, operation
from fabricobs.formats.values import Unfit
from fabricobs.formats.whole import WholeFile, number, text, whole_cell

_WANTED = (re.compile(rb'"cat"\s*:\s*"(?:COLL|P2P|NET)"'),)
_Begun = tuple[int, dict[str, Any]]


def read_nccl_trace(file: WholeFile) -> None:
    """Read one trace; of a killed job the list of events is left open, which is no damage."""
    begun: dict[tuple[str, ...], _Begun] = {}
    network: dict[str, tuple[int, float]] = {}  # first line and us by the name of the wait
    problem: SourceError | None = None
    try:
        for line, event in ChromeTrace(file, _WANTED).events():
            key = tuple(str(event.get(part)) for part in ("cat", "name", "id", "pid", "tid"))
            if event.get("ph") == "b":
                _end(file, begun.pop(key, None), None, network)
                begun[key] = (line, event)
            elif event.get("ph") == "e" and key in begun:
                _end(file, begun.pop(key), number(event.get("ts")), network)
            else:
                file.tally.skip(about=OTHERS)
                continue
            file.tally.read()
    except SourceError as error:
        problem = error
    for call in begun.values():
        _end(file, call, None, network)
    for name, (line, total) in network.items():
        # The rank in the file's name is that of the communicator, which may not be the job's.
        wait = {"phase": f"network {name}", "duration_ms": round(total / 1000, 6), "rank": None}
        file.add("phases", wait, line)
    if problem is not None:
        raise problem


def _end(
    file: WholeFile, call: _Begun | None, end: float | None, network: dict[str, tuple[int, float]]
) -> None:
    if call is None:
        return
    line, event = call
    start = number(event.get("ts"))
    duration = None if end is None or start is None else round(end - start, 6)
    if event.get("cat") == "NET":
        name = str(event.get("name"))
        first, total = network.get(name, (line, 0.0))
        network[name] = (first, total + (duration or 0.0))
        return
    args = event.get("args")
    args = args if isinstance(args, dict) else {}
    count, width = whole_cell(args.get("Count")), element_bytes(args.get("Datatype"))
    comm = whole_cell(args.get("CommHash"))
    if isinstance(comm, Unfit):
        comm = comm.as_counter  # a hash has no sign
    row = {
        # In hexadecimal, as NCCL_DEBUG and NCCL Inspector print it.
        "comm_id": None if comm is None else f"{comm % 2**64:#x}",
        "rank": whole_cell(args.get("Rank")),
        "op": operation(str(event.get("name"))),
        "seq": whole_cell(args.get("SeqNum")),
        "peer": whole_cell(args.get("Peer")),
        "bytes": _product(count, width),
        "datatype": text(args.get("Datatype")),
        "state": "started" if end is None else "completed",
        "duration_us": duration,
        "timing_source": "collective_cpu",
        "algorithm": _name(args.get("Algorithm")),
        "protocol": _name(args.get("Protocol")),
    }
    file.add("collectives", row, line)
    file.flush()


def _product(count: int | Unfit | None, width: int | None) -> int | Unfit | None:
    if width is None or not isinstance(count, int):
        return count if isinstance(count, Unfit) else None
    return whole_cell(count * width)


def _name(value: Any) -> str | None:
    """Write RING as Ring, LL128 as it is."""
    name = text(value)
    return name.capitalize() if name in {"RING", "TREE", "SIMPLE"} else name
