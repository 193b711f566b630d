"""Operation timelines in Chrome JSON (NDTimeline, veScale): one event an operation of a step.

The process is the data-parallel rank and each pipeline stage has threads of its own, named in
events that may come last: operations are held for them, up to a bound; those of a longer file
whose stage is not named before have none.
"""

import re
from typing import Any

from fabricobs.formats.decompression import SourceError
from fabricobs.formats.readers.chrome import ChromeTrace
from fabricobs.formats.whole import WholeFile, number, text, whole, whole_cell

_WANTED = (re.compile(rb'"ph"\s*:\s*"[XM]"'),)
_MOST_HELD = 500_000
_STAGE = re.compile(r"\bPP rank (\d+)")

_Thread = tuple[str, str]
_Operation = tuple[int, _Thread, dict[str, Any]]


def read_ndtimeline(file: WholeFile) -> None:
    """Read one timeline."""
    stages: dict[_Thread, int] = {}
    operations: list[_Operation] = []
    problem: SourceError | None = None
    try:
        for line, event in ChromeTrace(file, _WANTED).events():
            thread = (str(event.get("pid")), str(event.get("tid")))
            args = event.get("args")
            args = args if isinstance(args, dict) else {}
            if event.get("ph") == "M":
                found = _STAGE.search(text(args.get("name")) or "")
                if found is not None and event.get("name") == "thread_name":
                    stages[thread] = int(found[1])
                file.tally.skip()
                continue
            row = _operation(event, args)
            if row is None:
                file.miss(line, "no step or no duration", str(event))
                continue
            file.tally.read()
            operations.append((line, thread, row))
            if len(operations) >= _MOST_HELD:
                _write(file, operations, stages)
    except SourceError as error:
        problem = error
    _write(file, operations, stages)
    if problem is not None:
        raise problem


def _write(file: WholeFile, operations: list[_Operation], stages: dict[_Thread, int]) -> None:
    for line, thread, row in operations:
        file.add("phases", row | {"stage": stages.get(thread)}, line)
        file.flush()
    operations.clear()


def _operation(event: dict[str, Any], args: dict[str, Any]) -> dict[str, Any] | None:
    step, duration, start = whole(args.get("step")), event.get("dur"), number(event.get("ts"))
    length = number(duration)
    if step is None or length is None:
        return None
    micro_batch = whole_cell(args.get("mb_id"))
    return {
        "step": step,
        "phase": text(event.get("name")),
        "start_ms": None if start is None else start / 1000,
        "duration_ms": length / 1000,
        # -1 stands for an operation of the whole step.
        "micro_batch": None if micro_batch == -1 else micro_batch,
    }
