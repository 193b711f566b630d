"""What a scheduler says of jobs and their hosts: sacct, squeue, scontrol show job, kubectl.

A row is a host of a job. What runs has no end: squeue and scontrol print as END_TIME when its time
limit is over. A capture of squeue or kubectl tells the begin by the time of the capture, which a
line above it or the path of the file states; the time of the last change may be that of a copy.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from fabricobs.formats.readers.node_lists import hosts_of
from fabricobs.formats.readers.scheduler_tables import Table, ruled, table_of
from fabricobs.formats.values import parse_time
from fabricobs.formats.values.numbers import parse_clock
from fabricobs.formats.values.times import TIME_PATTERN
from fabricobs.formats.whole import WholeFile
from fabricobs.store.launch_paths import POD_ROLES

_SECOND_US = 1_000_000
# 7702, a task of an array (7702_4), a part of a heterogeneous job (7702+1).
_ID = re.compile(r"\d+(?:_\d+|_\[[^\]]*\])?(?:\+\d+)?")
_STEP = re.compile(r"\d[\w+]*\.\w+")
_POD_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?")
_ROLE = re.compile(rf"-{POD_ROLES}(?:-[a-z0-9]+)*$")
_BLOCK = re.compile(r"\s*JobId=\d")
_PAIR = re.compile(r"(?:^|\s)(?P<key>[A-Za-z][\w/:.]*)=(?P<value>.*?)(?=\s+[A-Za-z][\w/:.]*=|\s*$)")
_KEYS = {
    "JobId": "id",
    "ArrayJobId": "array",
    "ArrayTaskId": "task",
    "JobName": "name",
    "JobState": "state",
    "StartTime": "start",
    "EndTime": "end",
    "NodeList": "nodes",
}
_RUNNING = frozenset({"R", "RUNNING", "CG", "COMPLETING", "S", "SUSPENDED"})
_WAITING = frozenset({"PD", "PENDING", "CF", "CONFIGURING", "RQ", "REQUEUED"})
_CLOCK = re.compile(r"(?:(\d+)-)?((?:\d+:)?\d+:\d+)(?:\.\d+)?")
_DAY_US = 86_400 * _SECOND_US
_AGE = re.compile(r"(?:\d+[ydhms])+")
_AGE_UNITS = {"y": 365 * 86_400, "d": 86_400, "h": 3600, "m": 60, "s": 1}
_MOMENT = re.compile(rf"{TIME_PATTERN}|(?:^|\s)\d{{10}}(?:\.\d+)?(?:\s|$)")
_COMMAND = re.compile(r"\b(?:squeue|sacct|scontrol|kubectl)\b")
_SAYS_NOTHING = re.compile(r"[\s=#*_+-]*")


@dataclass(slots=True)
class _Captured:
    """The capture that is being read: its time, the table or block, and the header's text."""

    ts: int | None
    ts_source: str
    table: Table | None = None
    header: str = ""
    block: dict[str, str] | None = None
    block_line: int = 0
    block_text: str = ""


def read_allocations(file: WholeFile) -> None:
    """Read one file of captures; a line that tells neither job nor time is counted as unread."""
    identity = file.context.identity
    is_told = identity.ts_source not in {"mtime", "none", "day"}
    at = _Captured(identity.ts if is_told else None, identity.ts_source if is_told else "none")
    for number, line in file.lines():
        if _BLOCK.match(line):
            _end_block(file, at)
            at.block, at.block_line, at.block_text = {}, number, line
            _add_pairs(at.block, line)
        elif at.block is not None and _PAIR.search(line):
            _add_pairs(at.block, line)
            file.tally.skip()
        else:
            _end_block(file, at)
            _read_line(file, at, number, line)
    _end_block(file, at)


def _read_line(file: WholeFile, at: _Captured, number: int, line: str) -> None:
    """Read a line of a table, or what stands above one."""
    header, at.header = at.header, ""
    table = (ruled(header, line) if header else None) or table_of(line)
    if table is not None:
        at.table, at.header = table, line
        file.tally.skip()
        return
    cells = at.table.cells_of(line) if at.table else None
    if at.table is not None and cells is not None and _names_job(at.table, cells):
        _add(file, at, cells, number, line)
    elif cells is not None and _STEP.fullmatch(cells.get("id", "")):
        file.tally.skip()
    elif (moment := _moment_in(file, line)) is not None:
        at.ts, at.ts_source = moment, "header"
        file.tally.skip()
    elif _COMMAND.search(line) or _SAYS_NOTHING.fullmatch(line):
        file.tally.skip()
    else:
        file.miss(number, "no job", line)


def _names_job(table: Table, cells: Mapping[str, str]) -> bool:
    if table.of_pods:
        return _POD_NAME.fullmatch(cells["name"]) is not None
    return _ID.fullmatch(cells["id"]) is not None


def _add_pairs(block: dict[str, str], line: str) -> None:
    """Keep the fields of a line of a block that are needed; the first value of each counts."""
    for pair in _PAIR.finditer(line):
        meaning = _KEYS.get(pair["key"])
        if meaning is not None:
            block.setdefault(meaning, pair["value"].strip())


def _end_block(file: WholeFile, at: _Captured) -> None:
    """Add the job of a block of scontrol, all of whose lines have been read."""
    if at.block is None:
        return
    block, at.block = at.block, None
    if "array" in block and block.get("task", "").isdecimal():
        block["id"] = f"{block['array']}_{block['task']}"
    _add(file, at, block, at.block_line, at.block_text)


def _add(file: WholeFile, at: _Captured, cells: Mapping[str, str], number: int, line: str) -> None:
    """Add a row for each host of a job."""
    try:
        hosts = hosts_of(cells.get("nodes", ""))
        start, end = _times(file, at, cells)
    except ValueError as error:
        file.miss(number, str(error), line)
        return
    pod = cells["name"] if at.table is not None and at.table.of_pods and "id" not in cells else None
    row = {
        "ts": at.ts,
        "ts_source": at.ts_source,
        "job_id": cells.get("id"),
        "job_name": (_ROLE.sub("", pod) if pod else cells.get("name")) or None,
        "task": pod,
        "start_time": start,
        "end_time": end,
        "state": cells.get("state") or None,
    }
    for host in hosts or (None,):
        file.add("allocations", {**row, "host": host}, number)
    file.tally.read()


def _times(
    file: WholeFile, at: _Captured, cells: Mapping[str, str]
) -> tuple[int | None, int | None]:
    """Return since when and until when a job had its hosts, as far as that is told."""
    if "age" in cells:
        age = _age_us(cells["age"])
        return (at.ts - age if at.ts is not None and age is not None else None), None
    states = cells.get("state", "").upper().split()
    state = states[0] if states else ""
    if state in _WAITING:
        return None, None  # what is printed is when it may start
    start, end = _time(file, cells.get("start")), _time(file, cells.get("end"))
    elapsed = _elapsed_us(cells.get("elapsed", ""))
    runs = state in _RUNNING
    if start is None and runs and at.ts is not None and elapsed is not None:
        start = at.ts - elapsed
    if end is None and not runs and start is not None and elapsed is not None and state:
        end = start + elapsed
    return start, None if runs else end


def _time(file: WholeFile, text: str | None) -> int | None:
    """Return a time that a scheduler prints; None for Unknown, N/A and the like."""
    if text is None or not text[:1].isdigit():
        return None
    return parse_time(text, file.context.zone)


def _moment_in(file: WholeFile, line: str) -> int | None:
    found = _MOMENT.search(line)
    try:
        return parse_time(found[0], file.context.zone) if found else None
    except ValueError:
        return None


def _elapsed_us(text: str) -> int | None:
    """Return `1-02:03:04`, `3:31:00` or `29:20` in microseconds."""
    found = _CLOCK.fullmatch(text.strip())
    if found is None:
        return None
    return int(found[1] or 0) * _DAY_US + round(1000 * parse_clock(found[2]))


def _age_us(text: str) -> int | None:
    """Return `41m`, `3h24m` or `6d2h` in microseconds."""
    if not _AGE.fullmatch(text.strip()):
        return None
    parts = re.findall(r"(\d+)([ydhms])", text)
    return sum(int(count) * _AGE_UNITS[unit] for count, unit in parts) * _SECOND_US
