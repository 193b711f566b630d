"""Jobs: the launches of a store, named, and put in order as runs of one job.

A store whose files are all of one launch that only its files name is one job without a name.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from os.path import commonprefix
from pathlib import PurePath
from typing import ClassVar

from fabricobs.store.allocations import (
    Allocation,
    KnownAllocations,
    allocations_of,
    with_allocations,
)
from fabricobs.store.joining import find_launches
from fabricobs.store.launch_evidence import gap, may_follow, share_most_hosts
from fabricobs.store.launch_paths import (
    common_folder,
    folders_above,
    names_no_job,
    names_of,
    pod_of,
    scheduled,
)
from fabricobs.store.launches import Launch, Lines, Times
from fabricobs.store.launches import Trace as Trace

_RUN = "#"
# A failed host is found and replaced, containers start and a checkpoint is read.
RESTARTED_WITHIN = timedelta(minutes=30)
# What names a launch where neither a person nor a scheduler did.
_OF_FILES = frozenset({"file name", "file names", "no name"})


@dataclass(frozen=True, slots=True)
class Run:
    """One launch of a job. `label` is what rows say in `job`: the job's name, `NAME#2` for run 2.

    `named_by` says where the name is from, `candidates` of how many jobs the files may be, where
    that cannot be told. `last_step` and the times are None where no file tells. Benchmarks may be
    judged together: `of` are the runs that such a one stands for.
    """

    label: str | None
    name: str
    number: int
    named_by: str
    parts: tuple[Lines, ...]
    paths: tuple[str, ...]
    hosts: tuple[str, ...]
    ranks: int  # that its files name, of `nranks`
    nranks: int | None
    processes: int
    versions: tuple[str, ...]
    first_step: int | None
    last_step: int | None
    planned_steps: int | None
    replayed_steps: int
    begin: datetime | None
    end: datetime | None
    modified: datetime | None
    times: Mapping[str, Times] = field(hash=False)  # begin and end by the clock of each host
    goes_on: bool  # after `end`: no file tells how it ended
    candidates: int
    is_benchmark: bool = False
    allocated: tuple[str, ...] = ()  # hosts that a scheduler alone tells
    pods: tuple[str, ...] = ()  # what its logs call hosts whose names a scheduler tells
    of: tuple["Run", ...] = ()

    @property
    def labels(self) -> tuple[str | None, ...]:
        """What its rows say in `job`."""
        return tuple(run.label for run in self.of) or (self.label,)

    @property
    def names(self) -> tuple[str, ...]:
        """What rows of shared files say in `job` where they are its own."""
        return tuple(run.name for run in self.of) or (self.name,)

    @property
    def finished(self) -> bool:
        """Say whether it did the last step of its plan: the first is number 0 or 1."""
        if self.planned_steps is None or self.last_step is None:
            return False
        return self.last_step + (self.first_step == 0) >= self.planned_steps

    def reaches(self, since: datetime | None) -> bool:
        """Say whether it has data from `since` on, by its times or else by those of its files."""
        newest = self.end or self.modified
        return since is None or newest is None or newest >= since

    COLUMNS: ClassVar[tuple[str, ...]] = (
        "job", "run", "hosts", "ranks", "of ranks", "first step", "last step", "begin", "end",
        "files",
    )  # fmt: skip

    def cells(self) -> tuple[object, ...]:
        """Return a row of a listing in a notebook."""
        steps = self.first_step, self.last_step
        size = len(self.hosts), self.ranks, self.nranks
        return (self.name, self.number, *size, *steps, self.begin, self.end, len(self.paths))

    def tells(self) -> dict[str, object]:
        """Return what table `jobs` says of it."""
        return {
            "job": self.label,
            "name": self.name,
            "run": self.number,
            "named_by": self.named_by,
            "hosts": len(self.hosts),
            "ranks": self.ranks,
            "nranks": self.nranks,
            "processes": self.processes,
            "first_time": self.begin,
            "last_time": self.end,
            "first_step": self.first_step,
            "last_step": self.last_step,
            "planned_steps": self.planned_steps,
            "replayed_steps": self.replayed_steps,
            "nccl_version": ", ".join(self.versions) or None,
            "files": len(self.paths),
            "candidates": self.candidates,
        }


def find_runs(traces: Sequence[Trace], allocations: Sequence[Allocation] = ()) -> tuple[Run, ...]:
    """Return the runs of all jobs a store holds, by job and in order.

    Files that name jobs of a scheduler's table (`allocations`) are of one launch only where the job
    is one. Its hosts are those of the run, and say nothing of whose files are whose.
    """
    jobs: list[list[Launch]] = []
    known = KnownAllocations(allocations)
    for launch in find_launches(with_allocations(traces, known)):
        job = next((runs for runs in jobs if _is_next_run(runs[-1], launch)), None)
        if job is None:
            jobs.append([launch])
        else:
            job.append(launch)
    names = _names(jobs)
    only = len(jobs) == 1 and len(jobs[0]) == 1 and not jobs[0][0].given
    nameless = only and names[0][1] in _OF_FILES
    allocated = allocations_of(jobs, known)
    found = []
    for (name, named_by), runs in zip(names, jobs, strict=True):
        reached: int | None = None
        for number, launch in enumerate(runs, start=1):
            label = None if nameless else name if number == 1 else f"{name}{_RUN}{number}"
            run = _run(launch, label, name, number, named_by, reached)
            if id(launch) in allocated:
                run = _with_allocation(run, launch, allocated[id(launch)])
            found.append(run)
            reached = max((s for s in (reached, run.last_step) if s is not None), default=None)
    return tuple(found)


def _with_allocation(run: Run, launch: Launch, told: Allocation) -> Run:
    """Return a run with the hosts that a scheduler tells; a pod is none where its node is told."""
    own = launch.hosts - told.pods
    return replace(
        run,
        hosts=tuple(sorted(own | told.hosts)),
        allocated=tuple(sorted(told.hosts - own)),
        pods=tuple(sorted(launch.hosts & told.pods)),
    )


def name_in(label: str) -> str:
    """Return the name of the job that the label of one of its runs tells."""
    name, mark, number = label.rpartition(_RUN)
    return name if mark and number.isdecimal() else label


def _is_next_run(last: Launch, launch: Launch) -> bool:
    """Say whether a launch is the next run of the job of another: same name, file or place."""
    if last.given or launch.given:
        return bool(last.given & launch.given)
    if {p.file_id for p in last.parts} & {p.file_id for p in launch.parts}:
        return True
    if last.scheduled & launch.scheduled:
        return True
    if may_follow(last, launch):
        return True
    if last.end is None or launch.begin is None or launch.begin < last.end:
        return False
    if not last.families & launch.families:
        return False
    if last.hosts & launch.hosts and _resumes(last, launch):
        return True
    if last.scheduled and launch.scheduled:
        return False  # numbered anew
    if last.hosts == launch.hosts and last.nranks == launch.nranks:
        return True
    return not (last.steps or launch.steps) and _takes_over(last, launch)


def _takes_over(last: Launch, launch: Launch) -> bool:
    """Say whether a launch soon follows on most hosts of another: restarts replace a few hosts."""
    if last.versions and launch.versions and not last.versions & launch.versions:
        return False
    between = gap(last, launch)
    soon = between is not None and between <= RESTARTED_WITHIN
    return soon and share_most_hosts(last, launch)


def _resumes(last: Launch, launch: Launch) -> bool:
    """Say whether a launch goes on where another was, from one of its steps or the next."""
    if not last.steps or not launch.steps:
        return False
    first = min(first for first, _ in last.steps.values())
    reached = max(reached for _, reached in last.steps.values())
    return first < min(first for first, _ in launch.steps.values()) <= reached + 1


def _run(
    launch: Launch, label: str | None, name: str, number: int, named_by: str, reached: int | None
) -> Run:
    ranks = launch.known_ranks
    steps = list(launch.steps.values())
    first = min((first for first, _ in steps), default=None)
    last = max((last for _, last in steps), default=None)
    replayed = 0 if first is None or reached is None else max(0, reached - first + 1)
    return Run(
        label=label,
        name=name,
        number=number,
        named_by=named_by,
        parts=tuple(launch.parts),
        paths=tuple(sorted(launch.paths)),
        hosts=tuple(sorted(launch.hosts)),
        ranks=len(ranks),
        # A communicator beside others of its size, or with fewer ranks than are named, has not all.
        nranks=None if launch.is_split or launch.nranks <= max(ranks, default=0) else launch.nranks,
        processes=len(launch.processes),
        versions=tuple(sorted(launch.versions)),
        first_step=first,
        last_step=last,
        planned_steps=launch.planned_steps or None,
        replayed_steps=replayed,
        begin=launch.begin,
        end=launch.end,
        modified=launch.modified,
        times=launch.times,
        goes_on=not steps,
        candidates=launch.candidates,
        is_benchmark=launch.is_benchmark and not steps,
    )


def together(runs: Sequence[Run], name: str) -> Run:
    """Return some runs as one of that name, from the first's begin to the last's end."""
    begins = [run.begin for run in runs if run.begin is not None]
    ends = [run.end for run in runs if run.end is not None]
    changed = [run.modified for run in runs if run.modified is not None]
    return replace(
        runs[0],
        label=name,
        name=name,
        number=1,
        parts=tuple(part for run in runs for part in run.parts),
        paths=tuple(sorted({path for run in runs for path in run.paths})),
        hosts=tuple(sorted({host for run in runs for host in run.hosts})),
        allocated=tuple(sorted({host for run in runs for host in run.allocated})),
        pods=tuple(sorted({pod for run in runs for pod in run.pods})),
        ranks=max(run.ranks for run in runs),
        nranks=None,
        processes=sum(run.processes for run in runs),
        versions=tuple(sorted({version for run in runs for version in run.versions})),
        begin=min(begins, default=None),
        end=max(ends, default=None),
        modified=max(changed, default=None),
        candidates=max(run.candidates for run in runs),
        of=tuple(runs),
    )


def _names(jobs: Sequence[Sequence[Launch]]) -> list[tuple[str, str]]:
    """Return a name for each job that no other has, and where it is from."""
    paths = [{path for launch in runs for path in launch.paths} for runs in jobs]
    folders = Counter(
        folder
        for runs in jobs
        for folder in folders_above({f for launch in runs for f in launch.folders})
    )
    shares = Counter(name for runs in jobs for name in _job_folders(runs))
    names: list[tuple[str, str]] = []
    for own_paths, runs in zip(paths, jobs, strict=True):
        given = set().union(*(launch.given for launch in runs))
        own = (min(given), "--job") if given else _name_by_path(own_paths, runs, folders, shares)
        names.append(own)
    wanted = Counter(name for name, _ in names)
    taken: Counter[str] = Counter()
    unique = []
    for (name, named_by), own_paths in zip(names, paths, strict=True):
        if wanted[name] > 1 and own_paths and named_by != "--job":
            folder = PurePath(common_folder(own_paths))
            above = folder.parent if folder.name == name else folder
            name = f"{above.name}/{name}"
        taken[name] += 1
        unique.append((name if taken[name] == 1 else f"{name} ({taken[name]})", named_by))
    return unique


def _job_folders(runs: Sequence[Launch]) -> set[str]:
    return {name for launch in runs for name in launch.job_folders}


def _name_by_path(
    paths: set[str],
    runs: Sequence[Launch],
    folders: Mapping[str, int],
    shares: Mapping[str, int],
) -> tuple[str, str]:
    """Return a name by the paths of a job.

    `folders` says how many jobs have files in each, `shares` how many are in each job's folder.
    """
    own_folders = _job_folders(runs)
    if len(own_folders) == 1:
        (name,) = own_folders
        if shares[name] == 1 and not name.isdecimal():
            return name, "folder"
    for path in sorted(paths):
        if (number := scheduled(path)) is not None:
            named = (part for part in reversed(path.split("/")) if scheduled(part) is not None)
            return names_of([next(named, number)])[0], "id of the scheduler"
    pods = {pod_of(name) for launch in runs for name in (*launch.paths, *launch.hosts)} - {None}
    if len(pods) == 1:
        return str(pods.pop()), "name of its pods"
    stems = names_of(paths)
    if not stems:
        return "job without files", "no name"
    folder = common_folder(paths)
    if len(stems) > 1 and folder not in {"", "/"}:
        own = PurePath(folder)
        while names_no_job(own.name) and own.parent.name:
            own = own.parent
        if folders[str(own)] == 1:
            return own.name, "folder"
        prefix = commonprefix(stems)  # noqa: RUF071 (of names, no paths)
        # What several hosts begin with is no part of the job's name.
        begins = (stems[0].find(host) for launch in runs for host in launch.hosts)
        before_hosts = prefix[: min((at for at in begins if at >= 0), default=None)]
        prefix = before_hosts.rstrip("0123456789-_. ")
        if len(prefix) > 2:
            return prefix, "file names"
    return stems[0], "file name"
