"""Which files, and which lines of them, are of one launch.

What proves that two files are of one launch is a communicator hash both name, or a process both
show. Other files are joined where all that have something in common may be one launch: an id of a
scheduler, a folder, names alike, a host at one time. A file that is then still alone joins the one
launch it can be of; where several could be meant, it stays apart.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import groupby, pairwise

from fabricobs.store.disjoint_sets import DisjointSets
from fabricobs.store.launch_evidence import (
    SAME_STEP,
    are_runs,
    are_siblings,
    contradict,
    gap,
    is_same_print,
    may_follow,
    same_processes,
)
from fabricobs.store.launch_paths import folders_above, pids_in
from fabricobs.store.launches import Launch, Process, Trace
from fabricobs.store.launches_of_file import launches_of_file, working_times

Signs = tuple[int, int, bool, int]

# Processes make their communicators minutes before the first step; a restart may follow sooner.
_APART = (timedelta(minutes=10), timedelta(minutes=1), timedelta(0))


def find_launches(traces: Sequence[Trace]) -> list[Launch]:
    """Return the launches behind the traces, in the order of their first times and files."""
    files: dict[tuple[str | None, str | None], list[Trace]] = {}
    for trace in _with_pids_of_names(traces):
        files.setdefault((trace.file_id, trace.given), []).append(trace)
    working = working_times(traces)
    units = [unit for rows in files.values() for unit in launches_of_file(rows, working)]
    hosts = {trace.host for trace in traces if trace.host is not None}
    for unit in units:
        unit.job_folders -= hosts  # jobs/node01/nccl.log
    proven = _joined_by_proof(units)
    proven.sort(key=lambda each: (min(each.paths, default=""), each.order))
    launches = _joined_alike(proven)
    folders = _Folders(launches)
    launches = _join_attempts(launches, folders)
    launches = _join_rest(launches, folders, lambda each: each.is_anchor)
    launches = _join_rest(launches, folders, lambda each: bool(each.processes or each.is_anchor))
    return sorted(launches, key=_in_order)


def _in_order(launch: Launch) -> tuple[datetime, str, int, float, str]:
    """Return what sorts launches as they began: by time, or place in a file and process ids."""
    folder, path = min(launch.folders, default=""), min(launch.paths, default="")
    return launch.begin or datetime.max, folder, launch.order, launch.usual_pid, path


def _with_pids_of_names(traces: Sequence[Trace]) -> list[Trace]:
    """Return the traces, those without a process with the one of their host that names their file.

    A library that shares the file of NCCL, as the watchdog of torch does, tells no process.
    """
    known: dict[str | None, set[int]] = {}
    for trace in traces:
        if trace.pid is not None:
            known.setdefault(trace.host, set()).add(trace.pid)
    found = []
    for trace in traces:
        named = set[int]()
        if trace.pid is None and trace.path:
            named = known.get(trace.host, set()) & pids_in(trace.path)
        found.append(replace(trace, pid=named.pop()) if len(named) == 1 else trace)
    return found


def _joined_by_proof(units: Sequence[Launch]) -> list[Launch]:
    """Join what shares a communicator, a process or what the job printed.

    Process ids come again: files that all name communicators must share all processes at one time,
    as where each tells of other communicators of one job.
    """
    found = DisjointSets(len(units))
    for number, unit in enumerate(units):
        for comm in unit.hashes:
            found.tie(number, ("comm", comm))
    printing: dict[str, list[int]] = {}
    sharing: dict[Process, list[int]] = {}
    for number, unit in enumerate(units):
        for losses in unit.printed:
            printing.setdefault(losses, []).append(number)
        for process in unit.processes:
            sharing.setdefault(process, []).append(number)
    for numbers in printing.values():
        for a, b in pairwise(sorted(numbers, key=lambda number: sorted(units[number].folders))):
            if is_same_print(units[a], units[b]):
                found.unite(a, b)
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
    return _joined_siblings(_joined_by_all_processes(joined))


def _joined_by_all_processes(launches: Sequence[Launch]) -> list[Launch]:
    """Join each launch to the one other that has all its processes at its time."""
    homes: list[Launch] = []
    for launch in sorted(launches, key=lambda each: -len(each.processes)):
        fitting = [
            home for home in homes if same_processes(launch, home) and not contradict(launch, home)
        ]
        if len(fitting) == 1 and launch.hashes and fitting[0].hashes:
            fitting[0].join(launch)
        else:
            homes.append(launch)
    return homes


def _joined_siblings(launches: Sequence[Launch]) -> list[Launch]:
    """Join launches that show the communicators one job splits into."""
    homes: list[Launch] = []
    begun: dict[int, list[Launch]] = {}  # by size, those that began within the last minute
    for launch in sorted(launches, key=lambda each: each.begin or datetime.max):
        near = [
            home
            for home in begun.get(launch.largest, ())
            if home.begin and launch.begin and launch.begin - home.begin <= SAME_STEP
        ]
        home = next(
            (h for h in near if are_siblings(launch, h) and not contradict(launch, h)), None
        )
        if home is None:
            homes.append(launch)
            begun[launch.largest] = [*near, launch]
        else:
            home.join(launch)
    return homes


def _joined_alike(groups: Sequence[Launch]) -> list[Launch]:
    """Join groups that have an id, a folder, names or a host in common, if they may be one launch.

    The deepest folder decides first. Where all groups cannot be one launch, those of one time may.
    """
    alike: dict[tuple[str, str], list[int]] = {}
    for number, group in enumerate(groups):
        for kind, names in (
            ("1 id", group.given | group.scheduled),
            ("2 folder", folders_above(group.folders)),
            ("3 family", group.families),
            ("4 host", group.hosts),
        ):
            for name in names:
                alike.setdefault((kind, name), []).append(number)
    homes = list(range(len(groups)))

    def order(key: tuple[str, str]) -> tuple[str, int, str]:
        return key[0], -len(key[1].rstrip("/").split("/")), key[1]

    for key in sorted(alike, key=order):
        members = list(dict.fromkeys(_root(homes, number) for number in alike[key]))
        if any(groups[number].is_anchor for number in members):
            # Steps of several attempts are of several launches: each attempt joins its own.
            members = [number for number in members if not groups[number].attempts]
        for together in _of_one_launch([groups[number] for number in members], key[0]):
            first, *others = [members[index] for index in together]
            for number in others:
                groups[first].join(groups[number])
                homes[number] = first
    return [group for number, group in enumerate(groups) if homes[number] == number]


def _root(homes: Sequence[int], number: int) -> int:
    while homes[number] != number:
        number = homes[number]
    return number


def _of_one_launch(groups: Sequence[Launch], kind: str) -> list[list[int]]:
    """Return the numbers of groups that may be one launch: all, or else those of one time."""
    if len(groups) < 2:
        return []
    if kind != "4 host" and _may_be_one(groups):
        return [list(range(len(groups)))]
    found: list[list[int]] = []
    timed = [number for number, group in enumerate(groups) if group.begin and group.end]
    if len(timed) < len(groups):
        return []  # one whose time is not known may be of any of them
    timed.sort(key=lambda number: groups[number].begin or datetime.max)
    for apart in _APART:
        free = [number for number in timed if not any(number in each for each in found)]
        found += [
            cluster
            for cluster in _clusters(free, groups, apart)
            if len(cluster) > 1 and _may_be_one([groups[number] for number in cluster])
        ]
    return found


def _clusters(
    numbers: Iterable[int], groups: Sequence[Launch], apart: timedelta
) -> list[list[int]]:
    """Return groups, in order of their begins, in clusters that lie further than that apart."""
    clusters: list[list[int]] = []
    reached = datetime.min
    for number in numbers:
        begin, end = groups[number].begin or datetime.max, groups[number].end or datetime.max
        if clusters and begin - reached <= apart:
            clusters[-1].append(number)
        else:
            clusters.append([number])
        reached = max(reached, end)
    return clusters


def _may_be_one(groups: Iterable[Launch]) -> bool:
    """Say whether no group contradicts another."""
    whole = Launch()
    for group in groups:
        if contradict(group, whole):
            return False
        whole.join(group)
    return True


def _join_rest(
    launches: Sequence[Launch], folders: "_Folders", is_home: Callable[[Launch], bool]
) -> list[Launch]:
    """Join launches that are no homes to the one home each can be of.

    Of those that choose one home with equal right, none joins if they contradict each other.
    """
    homes = [launch for launch in launches if is_home(launch)]
    rest = [launch for launch in launches if not is_home(launch)]
    chosen: dict[int, list[tuple[Signs, Launch]]] = {}
    for launch in rest:
        signs, able = _choose(launch, homes, folders)
        if len(able) == 1 and any(signs):
            chosen.setdefault(id(able[0]), []).append((signs, launch))
        elif not launch.processes:
            launch.candidates = sum(_lacks(other, launch) for other in able)
    joined: set[int] = set()
    for home in homes:
        choices = sorted(chosen.get(id(home), ()), key=lambda each: each[0], reverse=True)
        for _, equal in groupby(choices, key=lambda each: each[0]):
            together = [launch for _, launch in equal]
            if _may_be_one([home, *together]):
                for launch in together:
                    home.join(launch)
                    joined.add(id(launch))
            else:
                for launch in together:
                    launch.candidates = max(launch.candidates, 1)
    return [launch for launch in launches if id(launch) not in joined]


def _join_attempts(launches: Sequence[Launch], folders: "_Folders") -> list[Launch]:
    """Join steps that restarts repeat, split where they do, to the launches of the attempts.

    Those with times come first: others are told by the steps that these bring.
    """
    homes = [launch for launch in launches if launch.is_anchor]
    left = []
    for launch in sorted(launches, key=lambda each: each.begin is None):
        chosen = [] if launch in homes else _homes_of_attempts(launch.attempts, homes, folders)
        for attempt, home in zip(launch.attempts, chosen, strict=False):
            home.join(attempt)
        if not chosen:
            left.append(launch)
    return left


def _homes_of_attempts(
    attempts: Sequence[Launch], homes: Sequence[Launch], folders: "_Folders"
) -> list[Launch]:
    """Return the home of each attempt, none where that cannot be told.

    Each has one of its own; or as many launches as attempts follow each other, in a file or on the
    same GPUs.
    """
    if len(attempts) < 2:
        return []
    chosen = [_choose(attempt, homes, folders) for attempt in attempts]
    if not all(any(signs) for signs, _ in chosen):
        return []
    if all(len(able) == 1 for _, able in chosen):
        only = [able[0] for _, able in chosen]
        return only if len({id(home) for home in only}) == len(only) else []
    able_of = [{id(home) for home in able} for _, able in chosen]
    able = [home for home in homes if any(id(home) in own for own in able_of)]
    able.sort(key=_in_order)
    files = [{part.file_id for part in home.parts} for home in able]
    in_a_file = len({home.order for home in able}) == len(able) and bool(set.intersection(*files))
    follow = in_a_file or all(may_follow(a, b) for a, b in pairwise(able))
    fit = len(able) == len(attempts) and all(
        id(home) in own for home, own in zip(able, able_of, strict=True)
    )
    return able if follow and fit else []


def _choose(
    launch: Launch, homes: Sequence[Launch], folders: "_Folders"
) -> tuple[Signs, list[Launch]]:
    """Return the homes a launch can be of with the strongest signs for them."""
    able = [home for home in homes if not contradict(launch, home)]
    signs = {id(home): _signs(launch, home, folders) for home in able}
    best = max(signs.values(), default=(0, 0, False, 0))
    if not any(best):
        return best, able
    # A time alone decides only between homes whose times are known.
    able = [
        home
        for home in able
        if signs[id(home)] == best or (not any(best[:2]) and gap(launch, home) is None)
    ]
    return best, _begun_before(launch, able) if len(able) > 1 else able


def _signs(launch: Launch, home: Launch, folders: "_Folders") -> Signs:
    """Return what speaks for a home: names and hosts, a folder of one job, times, its steps."""
    named = bool(launch.given & home.given or launch.scheduled & home.scheduled)
    who = 2 * named + bool(launch.hosts & home.hosts)
    depth = folders.depth_of_shared(launch, home)
    between = gap(launch, home)
    at_once = between is not None and between <= _APART[0]
    return who, depth, at_once, _same_steps(launch, home) if who or depth else 0


def _same_steps(launch: Launch, home: Launch) -> int:
    """Return 2 where both print the same losses, 1 where both go from and to the same step."""
    if launch.printed & home.printed:
        return 2
    return int(not {*launch.steps.values()}.isdisjoint(home.steps.values()))


def _lacks(home: Launch, launch: Launch) -> bool:
    """Say whether files without a process may tell of a launch what its own files do not."""
    return bool(home.processes) and not (home.steps and launch.steps)


def _begun_before(launch: Launch, able: Sequence[Launch]) -> list[Launch]:
    """Of launches that follow each other, return the one that ran while these files were written.

    Where that does not tell one, it is the last that began before these files do.
    """
    begin = launch.begin
    if begin is None or any(other.begin is None for other in able):
        return list(able)
    until = launch.end or begin
    during = [o for o in able if o.begin and o.end and o.begin <= until and o.end >= begin]
    if len(during) == 1 and all(other.end is not None for other in able):
        return during
    before = sorted(
        (o for o in able if o.begin is not None and o.begin <= begin + SAME_STEP),
        key=lambda other: other.begin or datetime.min,
    )
    running = [other for other in before[:-1] if other.end is not None and other.end >= begin]
    return [before[-1]] if before and not running else list(able)


class _Folders:
    """The folders of launches. One that holds the runs of a single job ties its files together."""

    def __init__(self, launches: Sequence[Launch]) -> None:
        self._launches: dict[str, list[Launch]] = {}
        for launch in launches:
            for folder in folders_above(launch.folders):
                self._launches.setdefault(folder, []).append(launch)
        self._is_one_job: dict[str, bool] = {}

    def depth_of_shared(self, a: Launch, b: Launch) -> int:
        """Return how deep the deepest folder of one job lies that holds files of both, else 0."""
        shared = folders_above(a.folders) & folders_above(b.folders)
        depths = {folder: len(folder.rstrip("/").split("/")) for folder in shared}
        deepest = sorted(depths, key=lambda folder: -depths[folder])
        return next((depths[f] for f in deepest if self._holds_one_job(f)), 0)

    def _holds_one_job(self, folder: str) -> bool:
        if folder not in self._is_one_job:
            self._is_one_job[folder] = _may_be_runs(self._launches[folder])
        return self._is_one_job[folder]


def _may_be_runs(launches: Sequence[Launch]) -> bool:
    """Say whether all may be of one job: none contradicts another but as its next run."""
    runs: list[Launch] = []
    for launch in launches:
        home = None
        for run in runs:
            if not contradict(launch, run):
                home = home or run
            elif not are_runs(launch, run):
                return False
        if home is None:
            home = Launch()
            runs.append(home)
        home.join(launch)
    return True
