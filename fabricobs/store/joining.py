"""Which files, and which lines of them, are of one launch.

What proves that two files are of one launch is a communicator hash both name, or a process both
show. Files that name neither join the launch that nothing contradicts and that names, hosts, a
folder or times point to; where several could be meant they stay apart.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from fabricobs.store.launch_evidence import (
    SAME_STEP,
    are_runs,
    contradict,
    gap,
    names_in_common,
)
from fabricobs.store.launch_paths import folders_above
from fabricobs.store.launches import Launch, Lines, Process, Trace

Signs = tuple[int, int, bool]

# Processes make their communicators minutes before the first step.
_AT_ONCE = timedelta(minutes=10)


def find_launches(traces: Sequence[Trace]) -> list[Launch]:
    """Return the launches behind the traces, in the order of their first times and files."""
    files: dict[tuple[str | None, str | None], list[Trace]] = {}
    for trace in traces:
        files.setdefault((trace.file_id, trace.given), []).append(trace)
    proven = _joined_by_proof([unit for rows in files.values() for unit in _units(rows)])
    folders = _Folders(proven)
    settled: list[Launch] = []
    anchors = [launch for launch in proven if launch.is_anchor]
    for launch in sorted(anchors, key=lambda each: (not each.hashes, -len(each.parts))):
        _settle(launch, settled, folders)
    named = list(settled)

    def clearest(launch: Launch) -> tuple[object, ...]:
        signs = max((_signs(launch, other, folders) for other in named), default=(0, 0, False))
        return tuple(-sign for sign in signs), not launch.ranks, -len(launch.parts)

    for launch in sorted((each for each in proven if not each.is_anchor), key=clearest):
        _settle(launch, settled, folders)
    latest = datetime.max
    return sorted(
        settled, key=lambda each: (each.begin or latest, min(each.paths, default=""), each.order)
    )


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


def _joined_by_proof(units: Sequence[Launch]) -> list[Launch]:
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
            if not (one.hashes and other.hashes) and not contradict(one, other):
                found.unite(a, b)
    joined = []
    for group in found.groups():
        launch = units[group[0]]
        for number in group[1:]:
            launch.join(units[number])
        joined.append(launch)
    return joined


def _settle(launch: Launch, settled: list[Launch], folders: "_Folders") -> None:
    """Join files without proof to the launch they are part of, or let them stand for themselves."""
    able = [other for other in settled if not contradict(launch, other)]
    signs = {id(other): _signs(launch, other, folders) for other in able}
    best = max(signs.values(), default=(0, 0, False))
    if any(best):
        able = [other for other in able if signs[id(other)] == best]
        if len(able) > 1:
            able = _begun_before(launch, able)
        if len(able) == 1:
            able[0].join(launch)
            return
    if not launch.processes and not launch.nranks:
        launch.candidates = sum(_lacks(other, launch) for other in able)
    settled.append(launch)


def _lacks(other: Launch, launch: Launch) -> bool:
    """Say whether files without a process may tell of a launch what its own files do not."""
    return bool(other.processes) and not (other.steps and launch.steps)


def _begun_before(launch: Launch, able: Sequence[Launch]) -> list[Launch]:
    """Of launches that follow each other, return the last that began before these files do."""
    begin = launch.begin
    if begin is None or any(other.begin is None for other in able):
        return list(able)
    before = sorted(
        (o for o in able if o.begin is not None and o.begin <= begin + SAME_STEP),
        key=lambda other: other.begin or datetime.min,
    )
    running = [other for other in before[:-1] if other.end is not None and other.end >= begin]
    return [before[-1]] if before and not running else list(able)


def _signs(launch: Launch, other: Launch, folders: "_Folders") -> Signs:
    """Return what speaks for one launch: names and hosts, a folder of one job, times."""
    between = gap(launch, other)
    at_once = between is not None and between <= _AT_ONCE
    return names_in_common(launch, other), folders.depth_of_shared(launch, other), at_once


class _Folders:
    """The folders of groups of files. One that holds a single job ties its files together."""

    def __init__(self, groups: Sequence[Launch]) -> None:
        self._groups: dict[str, list[Launch]] = {}
        for group in groups:
            for folder in folders_above(group.folders):
                self._groups.setdefault(folder, []).append(group)
        self._is_one_job: dict[str, bool] = {}

    def depth_of_shared(self, a: Launch, b: Launch) -> int:
        """Return how deep the deepest folder of one job lies that holds files of both, else 0."""
        shared = folders_above(a.folders) & folders_above(b.folders)
        depths = {folder: len(folder.rstrip("/").split("/")) for folder in shared}
        deepest = sorted(depths, key=lambda folder: -depths[folder])
        return next((depths[folder] for folder in deepest if self._holds_one_job(folder)), 0)

    def _holds_one_job(self, folder: str) -> bool:
        if folder not in self._is_one_job:
            self._is_one_job[folder] = _is_one_job(self._groups[folder])
        return self._is_one_job[folder]


def _is_one_job(groups: Sequence[Launch]) -> bool:
    """Say whether all groups may be of one job: none contradicts another but as its next run."""
    launches: list[Launch] = []
    for group in groups:
        home = None
        for launch in launches:
            if not contradict(group, launch):
                home = home or launch
            elif not are_runs(group, launch):
                return False
        if home is None:
            home = Launch()
            launches.append(home)
        home.join(group)
    return True


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
