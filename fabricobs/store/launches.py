"""Launches: which files, and which lines of them, one start of a job has written.

A launch is one world of processes. What proves that two files are of one launch is a communicator
hash both name, or a process both show. Files that name neither join the launch that nothing
contradicts and that hosts, folder or times point to; where several could be meant they stay apart.
"""

import os.path
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import PurePath

Process = tuple[str | None, int]
Steps = tuple[int, int]

# Logs of one launch may begin or end apart: initialisation before, a dump after the last step.
_APART = timedelta(hours=1)
# Ranks that print the same step do so within seconds.
_SAME_STEP = timedelta(seconds=60)
# Names schedulers give by default: slurm-%j.out, NAME-%j.out, NAME.o%j; and folders called so.
_SCHEDULED = re.compile(
    r"(?:^|[/_.-])(?:slurm|jobid|job_id|pbs|lsf)[-_.]?(\d{2,})(?![\d])|[-_.](\d{4,})(?:_\d+)?\.(?:out|err)$"
    r"|\.[oe](\d{3,})$",
    re.IGNORECASE,
)
_DATE = re.compile(r"20\d\d[01]\d[0-3]\d$")
# What an operator of Kubernetes puts behind the name of a job to name its pods.
_POD = re.compile(r"[-_.](?:master|worker|launcher|chief|leader|ps)(?:[-_.]\d+)*(?=[-_./]|$)")
# Fields of a launch that are sets of names.
_SETS = "paths given hashes processes hosts versions folders families scheduled".split()
_SUFFIXES = re.compile(r"(?:\.(?:log|txt|out|err|jsonl?|csv|parquet|gz|zst|xz|bz2))+$")


@dataclass(frozen=True, slots=True)
class Trace:
    """What one table of one file shows of one process, communicator or rank."""

    told_by: str
    file_id: str | None
    given: str | None
    path: str | None
    host: str | None
    pid: int | None
    comm_hash: str | None
    nranks: int | None
    rank: int | None
    version: str | None
    first_line: int | None
    last_line: int | None
    first_step: int | None
    last_step: int | None
    begin: datetime | None
    end: datetime | None
    modified: datetime | None = None


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a file from `first` to before `end`; None as `end`: to its last."""

    file_id: str | None
    given: str | None
    first: int = 0
    end: int | None = None


@dataclass(slots=True)
class Launch:
    """What is known of one launch, or of files that may be part of one."""

    parts: list[Lines] = field(default_factory=list)
    paths: set[str] = field(default_factory=set)
    given: set[str] = field(default_factory=set)
    hashes: set[str] = field(default_factory=set)
    processes: set[Process] = field(default_factory=set)
    hosts: set[str] = field(default_factory=set)
    versions: set[str] = field(default_factory=set)
    nranks: int = 0
    ranks: dict[int, set[str]] = field(default_factory=dict)  # rank in the job: its hosts
    steps: dict[int | None, Steps] = field(default_factory=dict)
    step_begin: dict[int | None, datetime] = field(default_factory=dict)
    begin: datetime | None = None
    end: datetime | None = None
    made: datetime | None = None  # its first communicator
    modified: datetime | None = None  # of its files, the last
    order: int = 0  # of launches in one file
    candidates: int = 0  # launches it may be part of, where that cannot be told
    # Told by the paths: folders, paths without numbers and roles, ids a scheduler gave.
    folders: set[str] = field(default_factory=set)
    families: set[str] = field(default_factory=set)
    scheduled: set[str] = field(default_factory=set)

    def add(self, trace: Trace) -> None:
        """Take in what a trace shows."""
        if trace.path is not None and trace.path not in self.paths:
            self.paths.add(trace.path)
            self.folders.add(str(PurePath(trace.path).parent))
            self.families.add(family_of(trace.path))
            self.scheduled.update({scheduled(trace.path)} - {None})  # type: ignore[arg-type]
        if trace.given is not None:
            self.given.add(trace.given)
        if trace.comm_hash is not None:
            self.hashes.add(trace.comm_hash)
        if trace.pid is not None:
            self.processes.add((trace.host, trace.pid))
        if trace.host is not None:
            self.hosts.add(trace.host)
        if trace.version is not None:
            self.versions.add(trace.version)
        if trace.told_by == "process":
            self.nranks = max(self.nranks, trace.nranks or 0)
            if trace.nranks:
                self.made = _earliest(self.made, trace.begin)
        if trace.told_by != "process" and trace.rank is not None:
            self.ranks.setdefault(trace.rank, set()).update({trace.host} - {None})  # type: ignore[arg-type]
        if trace.first_step is not None and trace.last_step is not None:
            first, last = self.steps.get(trace.rank, (trace.first_step, trace.last_step))
            self.steps[trace.rank] = min(first, trace.first_step), max(last, trace.last_step)
            if trace.begin is not None:
                known = self.step_begin.get(trace.rank, trace.begin)
                self.step_begin[trace.rank] = min(known, trace.begin)
        self.begin = _earliest(self.begin, trace.begin)
        self.end = _latest(self.end, trace.end)
        self.modified = _latest(self.modified, trace.modified)

    def join(self, other: "Launch") -> None:
        """Take in what another launch is: they are one."""
        self.parts += other.parts
        for name in _SETS:
            getattr(self, name).update(getattr(other, name))
        self.nranks = max(self.nranks, other.nranks)
        for rank, hosts in other.ranks.items():
            self.ranks.setdefault(rank, set()).update(hosts)
        for key, (first, last) in other.steps.items():
            own = self.steps.get(key, (first, last))
            self.steps[key] = min(own[0], first), max(own[1], last)
        for key, begin in other.step_begin.items():
            self.step_begin[key] = min(self.step_begin.get(key, begin), begin)
        self.begin = _earliest(self.begin, other.begin)
        self.made = _earliest(self.made, other.made)
        self.end = _latest(self.end, other.end)
        self.modified = _latest(self.modified, other.modified)


def _earliest(a: datetime | None, b: datetime | None) -> datetime | None:
    return min(a, b) if a is not None and b is not None else a or b


def _latest(a: datetime | None, b: datetime | None) -> datetime | None:
    return max(a, b) if a is not None and b is not None else a or b


def scheduled(path: str) -> str | None:
    """Return the id of a scheduler's job that a path is named after, None without one."""
    for part in reversed(path.split("/")):
        for found in _SCHEDULED.finditer(part):
            number = next(group for group in found.groups() if group)
            if not _DATE.match(number):
                return number
    return None


def family_of(path: str) -> str:
    """Return a path without its numbers and the roles of pods."""
    return re.sub(r"\d+", "#", _POD.sub("", path))


def pod_of(path: str) -> str | None:
    """Return the name of the job whose pod a file is named after, None without one."""
    name = _SUFFIXES.sub("", PurePath(path).name)
    stem = _POD.split(name)[0]
    return stem if stem and stem != name else None


def find_launches(traces: Sequence[Trace]) -> list[Launch]:
    """Return the launches behind the traces, in the order of their first times and files."""
    files: dict[tuple[str | None, str | None], list[Trace]] = {}
    for trace in traces:
        files.setdefault((trace.file_id, trace.given), []).append(trace)
    units = [unit for rows in files.values() for unit in _units(rows)]
    proven = _proven(units)
    root = os.path.commonpath(sorted({f for u in units for f in u.folders}) or ["/"])
    anchors = [launch for launch in proven if launch.hashes or launch.nranks]
    settled: list[Launch] = []
    for launch in sorted(anchors, key=lambda each: (not each.hashes, -len(each.parts))):
        _settle(launch, settled, root)
    rest = [launch for launch in proven if not (launch.hashes or launch.nranks)]
    named = list(settled)

    def clearest(launch: Launch) -> tuple[object, ...]:
        signs = max((_signs(launch, other, root) for other in named), default=(0, 0, 0))
        return tuple(-sign for sign in signs), not launch.ranks, -len(launch.parts)

    for launch in sorted(rest, key=clearest):
        _settle(launch, settled, root)
    latest = datetime.max
    return sorted(
        settled, key=lambda each: (each.begin or latest, min(each.paths, default=""), each.order)
    )


def _settle(launch: Launch, settled: list[Launch], root: str) -> None:
    home = _home_of(launch, settled, root)
    if home is None:
        settled.append(launch)
    else:
        home.join(launch)


def _units(rows: Sequence[Trace]) -> list[Launch]:
    """Return the launches of one file, one after another in its lines.

    A launch that follows another in a file shows a rank of the world a second time, in a process
    that nothing connects with the first.
    """
    first = rows[0]
    shown = _connected([row for row in rows if row.told_by == "process" and row.pid is not None])
    shown.sort(key=lambda group: min(row.first_line or 0 for row in group))
    begins = [0]
    taken: set[tuple[int, int]] = set()
    last_line = -1
    for group in shown:
        world = max((row.nranks or 0 for row in group), default=0)
        ranks = {(world, row.rank) for row in group if row.rank is not None and row.nranks == world}
        begin = min(row.first_line or 0 for row in group)
        if ranks & taken and begin > last_line:
            begins.append(begin)
            taken = set()
        taken |= ranks
        last_line = max(last_line, *(row.last_line or 0 for row in group))
    units = []
    ends: list[int | None] = [*begins[1:], None]
    for order, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        unit = Launch([Lines(first.file_id, first.given, begin, end)], order=order)
        for row in rows:
            line = row.first_line or 0
            if line >= begin and (end is None or line < end):
                unit.add(row)
        units.append(unit)
    return units


def _connected(rows: Sequence[Trace]) -> list[list[Trace]]:
    """Return the rows in groups that share processes or communicators."""
    found = _Sets(len(rows))
    for number, row in enumerate(rows):
        found.tie(number, ("process", row.host, row.pid))
        if row.comm_hash is not None:
            found.tie(number, ("comm", row.comm_hash))
    return [[rows[number] for number in group] for group in found.groups()]


def _proven(units: Sequence[Launch]) -> list[Launch]:
    """Join what shares a communicator or a process.

    Process ids come again: of two files that both name communicators these alone decide.
    """
    found = _Sets(len(units))
    for number, unit in enumerate(units):
        for comm in unit.hashes:
            found.tie(number, ("comm", comm))
    sharing: dict[Process, list[int]] = {}
    for number, unit in enumerate(units):
        for process in unit.processes:
            sharing.setdefault(process, []).append(number)
    for numbers in sharing.values():
        for a, b in pairwise(numbers):
            one, other = units[a], units[b]
            if not (one.hashes and other.hashes) and not _differ(one, other):
                found.unite(a, b)
    joined = []
    for group in found.groups():
        launch = units[group[0]]
        for number in group[1:]:
            launch.join(units[number])
        joined.append(launch)
    return joined


def _home_of(launch: Launch, settled: Sequence[Launch], root: str) -> Launch | None:
    """Return the launch that files without proof are part of; None if they stand for themselves."""
    able = [other for other in settled if not _differ(launch, other)]
    if not able:
        return None
    if len(able) == 1:
        return able[0] if len(settled) == 1 or any(_signs(launch, able[0], root)) else None
    signs = {id(other): _signs(launch, other, root) for other in able}
    best = max(signs.values())
    if not any(best):
        return None
    able = [other for other in able if signs[id(other)] == best]
    if len(able) > 1:
        able = _begun_before(launch, able)
    if len(able) == 1:
        return able[0]
    if not launch.processes and not launch.nranks:
        launch.candidates = len(able)
    return None


def _begun_before(launch: Launch, able: Sequence[Launch]) -> list[Launch]:
    """Of launches that follow each other, return the last that began before these files do."""
    begin = launch.begin
    if begin is None or any(other.begin is None for other in able):
        return list(able)
    before = sorted(
        (o for o in able if o.begin is not None and o.begin <= begin + _SAME_STEP),
        key=lambda other: other.begin or datetime.min,
    )
    running = [other for other in before[:-1] if other.end is not None and other.end >= begin]
    return [before[-1]] if before and not running else list(able)


def _signs(launch: Launch, other: Launch, root: str) -> tuple[int, int, int]:
    """Return what speaks for one launch: names and hosts, folders below those of all, times."""
    hosts = bool(launch.hosts & other.hosts)
    depth = max(
        (_common_depth(a, b) for a in launch.folders for b in other.folders), default=0
    ) - len([part for part in root.split("/") if part])
    named = bool(launch.given & other.given or launch.scheduled & other.scheduled)
    family = bool(launch.families & other.families)
    at_once = _gap(launch, other) is not None
    return 4 * named + 2 * family + hosts, max(depth, 0), int(at_once)


def _common_depth(a: str, b: str) -> int:
    return len([part for part in os.path.commonpath([a, b]).split("/") if part]) if a and b else 0


def _gap(a: Launch, b: Launch) -> timedelta | None:
    """Return the time between two launches, negative where they overlap; None where not known."""
    if a.begin is None or a.end is None or b.begin is None or b.end is None:
        return None
    return max(a.begin, b.begin) - min(a.end, b.end)


def _differ(a: Launch, b: Launch) -> bool:
    """Say whether two cannot be one launch."""
    for own, others in ((a.given, b.given), (a.scheduled, b.scheduled), (a.versions, b.versions)):
        if own and others and not own & others:
            return True
    if a.hashes and b.hashes and not (a.given & b.given and _beside(a, b)):
        return True
    if a.nranks and b.nranks and a.nranks != b.nranks:
        return True
    family = bool(a.families & b.families)
    gap = _gap(a, b)
    if gap is not None and gap > _APART and not (family and not _replays(a, b)):
        return True
    if any(x.made and y.steps and y.end and y.end < x.made for x, y in ((a, b), (b, a))):
        return True  # steps that ended before the launch had a communicator
    if _beyond(a, b) or _beyond(b, a):
        return True
    if any(
        h and b.ranks[rank] and not h & b.ranks[rank]
        for rank, h in a.ranks.items()
        if rank in b.ranks
    ):
        return True
    return _replays(a, b) and _other_times(a, b, gap, family=family)


def _beside(a: Launch, b: Launch) -> bool:
    """Say whether two groups of one given job may be one world: at once, on other hosts."""
    gap = _gap(a, b)
    return not a.hosts & b.hosts and (gap is None or gap <= timedelta(0))


def _beyond(world: Launch, other: Launch) -> bool:
    """Say whether one has ranks that the world of the other has not."""
    whole = 0 < len(world.processes) <= world.nranks
    return whole and any(rank >= world.nranks for rank in other.ranks)


def _replays(a: Launch, b: Launch) -> bool:
    """Say whether a rank, or the job, does the same steps in both."""
    return any(
        a.steps[rank][0] <= b.steps[rank][1] and b.steps[rank][0] <= a.steps[rank][1]
        for rank in a.steps
        if rank in b.steps
    )


def _other_times(a: Launch, b: Launch, gap: timedelta | None, *, family: bool) -> bool:
    """Say whether the steps both do were done at other times, or by files of one kind."""
    if gap is not None and gap > timedelta(0):
        return True
    shared = a.steps.keys() & b.steps.keys()
    if family and shared - {None} and not a.paths & b.paths:
        return True
    begins = [
        abs(a.step_begin[rank] - b.step_begin[rank])
        for rank in shared
        if rank in a.step_begin and rank in b.step_begin and a.steps[rank][0] == b.steps[rank][0]
    ]
    return bool(begins) and min(begins) > _SAME_STEP


class _Sets:
    """Disjoint sets of numbers, united by what their members are tied to."""

    def __init__(self, size: int) -> None:
        self._parents = list(range(size))
        self._tied: dict[object, int] = {}

    def tie(self, number: int, key: object) -> None:
        """Unite a number with all others of that key."""
        self.unite(number, self._tied.setdefault(key, number))

    def unite(self, a: int, b: int) -> None:
        """Unite the sets of two numbers."""
        self._parents[self._root(a)] = self._root(b)

    def _root(self, number: int) -> int:
        while self._parents[number] != number:
            self._parents[number] = self._parents[self._parents[number]]
            number = self._parents[number]
        return number

    def groups(self) -> list[list[int]]:
        """Return the sets, each in order, by their first numbers."""
        found: dict[int, list[int]] = {}
        for number in range(len(self._parents)):
            found.setdefault(self._root(number), []).append(number)
        return sorted(found.values())


def names_of(paths: Iterable[str]) -> list[str]:
    """Return the names of files without suffixes, in order."""
    return sorted({_SUFFIXES.sub("", PurePath(path).name) for path in paths})


def common_folder(paths: Iterable[str]) -> str:
    """Return the deepest folder that holds all files."""
    return os.path.commonpath([str(PurePath(path).parent) for path in paths])
