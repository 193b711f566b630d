"""Traces of NCCL's example profiler plugin: Chrome JSON, begin and end of every call.

The times are the host's: without kernel events a call's duration is that of its enqueueing. They
count from the profiler's start, so rows have no time. A call without end was still running.
"""

import re
from typing import Any

from fabricobs.formats.readers.chrome import ChromeTrace
from fabricobs.formats.readers.names import element_bytes, operation
from fabricobs.formats.source import SourceError
from fabricobs.formats.whole import WholeFile, number, text, whole

_WANTED = (re.compile(rb'"cat"\s*:\s*"(?:COLL|P2P)"'),)
_Begun = tuple[int, dict[str, Any]]


def read_nccl_trace(file: WholeFile) -> None:
    """Read one trace; of a killed job the list of events is left open, which is no damage."""
    begun: dict[tuple[Any, ...], _Begun] = {}
    problem: SourceError | None = None
    try:
        for line, event in ChromeTrace(file, _WANTED).events():
            key = tuple(str(event.get(part)) for part in ("cat", "id", "pid", "tid"))
            if event.get("ph") == "b":
                if key in begun:
                    _write(file, begun.pop(key), None)
                begun[key] = (line, event)
            elif event.get("ph") == "e" and key in begun:
                _write(file, begun.pop(key), number(event.get("ts")))
            else:
                file.tally.skip()
                continue
            file.tally.read()
    except SourceError as error:
        problem = error
    for call in begun.values():
        _write(file, call, None)
    if problem is not None:
        raise problem


def _write(file: WholeFile, call: _Begun, end: float | None) -> None:
    line, event = call
    args = event.get("args")
    args = args if isinstance(args, dict) else {}
    start = number(event.get("ts"))
    count, width = whole(args.get("Count")), element_bytes(args.get("Datatype"))
    comm = whole(args.get("CommHash"))
    row = {
        # In hexadecimal, as NCCL_DEBUG and NCCL Inspector print it.
        "comm_id": None if comm is None else f"{comm % 2**64:#x}",
        "rank": whole(args.get("Rank")),
        "op": operation(str(event.get("name"))),
        "seq": whole(args.get("SeqNum")),
        "peer": whole(args.get("Peer")),
        "bytes": None if count is None or width is None else whole(count * width),
        "datatype": text(args.get("Datatype")),
        "state": "started" if end is None else "completed",
        "duration_us": None if end is None or start is None else round(end - start, 6),
        "timing_source": "collective_cpu",
        "algorithm": _name(args.get("Algorithm")),
        "protocol": _name(args.get("Protocol")),
    }
    file.add("collectives", row, line)
    file.flush()


def _name(value: Any) -> str | None:
    """Write RING as Ring, LL128 as it is."""
    name = text(value)
    return name.capitalize() if name in {"RING", "TREE", "SIMPLE"} else name
