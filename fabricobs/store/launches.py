"""Launches: what the files of one start of a job show of it. A launch is one world of processes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePath
from statistics import median

from fabricobs.store.launch_paths import family_of, job_folder, pod_of, scheduled

Process = tuple[str | None, int]
Steps = tuple[int, int]
Times = tuple[datetime, datetime]

# Stretches of lines a file is split into: each row of the file is compared with each.
_MOST_PARTS = 1_000
# Fields of a launch that are sets of names.
_SETS = (
    "paths given hashes processes hosts gpus versions printed folders families pods scheduled "
    "job_folders allocated"
).split()


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
    comm: str | None = None  # address of a communicator in the memory of the process
    calls: int | None = None  # timed collectives
    printed: str | None = None  # digest of the losses of all its steps
    attempt: int = 0  # how often the rank went back to a checkpoint before these steps
    gpu: str | None = None  # its bus id, or its number on the host
    planned_steps: int | None = None
    launch_rank: int | None = None  # what the launcher writes before the lines of the process
    allocated: str | None = None  # the job of a scheduler's table that its path names


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
    gpus: set[tuple[str, str]] = field(default_factory=set)  # host, and bus id or number
    versions: set[str] = field(default_factory=set)
    printed: set[str] = field(default_factory=set)
    nranks: int = 0
    largest: int = 0  # ranks of its largest communicator, by any file
    calls: int = 0  # timed collectives of one process in one communicator, the most
    is_benchmark: bool = False
    addresses: dict[Process, set[str]] = field(default_factory=dict)  # of its communicators
    # Processes by size of the communicator (None: of the list nccl-tests prints) and rank in it.
    places: dict[tuple[int | None, int], set[Process]] = field(default_factory=dict)
    ranks: dict[int, set[str]] = field(default_factory=dict)  # rank in the job: its hosts
    steps: dict[int | None, Steps] = field(default_factory=dict)
    step_begin: dict[int | None, datetime] = field(default_factory=dict)
    step_end: dict[int | None, datetime] = field(default_factory=dict)
    planned_steps: int = 0  # the most that a file says; 0: none does
    begin: datetime | None = None
    end: datetime | None = None
    times: dict[str, Times] = field(default_factory=dict)  # by the clock of each host
    made: datetime | None = None  # its first communicator
    modified: datetime | None = None  # of its files, the last
    order: int = 0  # of launches in one file
    candidates: int = 0  # launches it may be part of, where that cannot be told
    attempts: "list[Launch]" = field(default_factory=list)  # its steps, split where they replay
    # Told by the paths: folders, paths without numbers and roles, jobs of pods, schedulers' ids,
    # folders of single jobs.
    folders: set[str] = field(default_factory=set)
    families: set[str] = field(default_factory=set)
    pods: set[str] = field(default_factory=set)
    scheduled: set[str] = field(default_factory=set)
    job_folders: set[str] = field(default_factory=set)
    allocated: set[str] = field(default_factory=set)  # jobs of a scheduler's table, by the paths

    @property
    def is_anchor(self) -> bool:
        """Say whether it names a communicator of NCCL, which other files may be joined to."""
        return bool(self.hashes or self.nranks)

    @property
    def usual_pid(self) -> float:
        """Return the median of its process ids: a host counts them up, so a restart has larger."""
        return median(pid for _, pid in self.processes) if self.processes else 0

    @property
    def is_split(self) -> bool:
        """Say whether its largest communicators are several, each with some of its ranks."""
        largest = (who for (size, _), who in self.places.items() if size == self.nranks)
        return len(self.hashes) > 1 and any(len(processes) > 1 for processes in largest)

    @property
    def known_ranks(self) -> set[int]:
        """Return the ranks in the job that its files name."""
        of_job = {None} if self.is_split else {None, self.nranks}
        world = {rank for size, rank in self.places if size in of_job}
        return world | self.ranks.keys()

    def add(self, trace: Trace) -> None:
        """Take in what a trace shows."""
        if trace.path is not None and trace.path not in self.paths:
            self.paths.add(trace.path)
            self.folders.add(str(PurePath(trace.path).parent))
            self.families.add(family_of(trace.path))
            self.pods.update({pod_of(trace.path)} - {None})  # type: ignore[arg-type]
            self.scheduled.update({scheduled(trace.path)} - {None})  # type: ignore[arg-type]
            self.job_folders.update({job_folder(trace.path)} - {None})  # type: ignore[arg-type]
        for name, value in (
            ("given", trace.given),
            ("hashes", trace.comm_hash),
            ("hosts", trace.host),
            ("versions", trace.version),
            ("printed", trace.printed),
            ("allocated", trace.allocated),
        ):
            if value is not None:
                getattr(self, name).add(value)
        if trace.pid is not None:
            self.processes.add((trace.host, trace.pid))
            if trace.comm is not None:
                self.addresses.setdefault((trace.host, trace.pid), set()).add(trace.comm)
        if trace.host is not None and trace.gpu is not None:
            self.gpus.add((trace.host, trace.gpu))
        if trace.told_by == "process":
            self._add_place(trace)
        elif trace.rank is not None:
            self.ranks.setdefault(trace.rank, set()).update({trace.host} - {None})  # type: ignore[arg-type]
        if trace.first_step is not None and trace.last_step is not None:
            self._add_steps(trace.rank, (trace.first_step, trace.last_step), trace.begin, trace.end)
        self.largest = max(self.largest, trace.nranks or 0)
        self.calls = max(self.calls, trace.calls or 0)
        self.planned_steps = max(self.planned_steps, trace.planned_steps or 0)
        self.is_benchmark |= trace.told_by == "benchmark"
        self.begin = _earliest(self.begin, trace.begin)
        self.end = _latest(self.end, trace.end)
        self.modified = _latest(self.modified, trace.modified)
        if trace.host is not None and trace.begin is not None and trace.end is not None:
            self._add_times(trace.host, (trace.begin, trace.end))

    def join(self, other: "Launch") -> None:
        """Take in what another launch is: they are one."""
        self._join_attempts(other)
        self.parts += other.parts
        for name in _SETS:
            getattr(self, name).update(getattr(other, name))
        self.nranks = max(self.nranks, other.nranks)
        self.largest = max(self.largest, other.largest)
        self.calls = max(self.calls, other.calls)
        self.planned_steps = max(self.planned_steps, other.planned_steps)
        self.is_benchmark |= other.is_benchmark
        for process, addresses in other.addresses.items():
            self.addresses.setdefault(process, set()).update(addresses)
        for place, processes in other.places.items():
            self.places.setdefault(place, set()).update(processes)
        for rank, hosts in other.ranks.items():
            self.ranks.setdefault(rank, set()).update(hosts)
        for key, steps in other.steps.items():
            self._add_steps(key, steps, other.step_begin.get(key), other.step_end.get(key))
        self.begin = _earliest(self.begin, other.begin)
        self.made = _earliest(self.made, other.made)
        self.end = _latest(self.end, other.end)
        self.modified = _latest(self.modified, other.modified)
        for host, times in other.times.items():
            self._add_times(host, times)

    def _join_attempts(self, other: "Launch") -> None:
        """Join attempt with attempt, where both have as many; else none is told apart."""
        if len(self.attempts) == len(other.attempts):
            for own, theirs in zip(self.attempts, other.attempts, strict=True):
                own.join(theirs)
        else:
            self.attempts = []

    def _add_place(self, trace: Trace) -> None:
        self.nranks = max(self.nranks, trace.nranks or 0)
        if trace.nranks:
            self.made = _earliest(self.made, trace.begin)
        if trace.rank is not None and trace.pid is not None:
            place = (trace.nranks, trace.rank)
            self.places.setdefault(place, set()).add((trace.host, trace.pid))

    def _add_times(self, host: str, times: Times) -> None:
        begin, end = self.times.get(host, times)
        self.times[host] = min(begin, times[0]), max(end, times[1])

    def _add_steps(
        self, rank: int | None, steps: Steps, begin: datetime | None, end: datetime | None
    ) -> None:
        first, last = self.steps.get(rank, steps)
        self.steps[rank] = min(first, steps[0]), max(last, steps[1])
        if begin is not None:
            self.step_begin[rank] = min(self.step_begin.get(rank, begin), begin)
        if end is not None:
            self.step_end[rank] = max(self.step_end.get(rank, end), end)


def attempts_of(rows: Sequence[Trace]) -> list[Launch]:
    """Return the steps of one file, split where restarts repeat them; none where lines mingle.

    A file may have the steps of one rank after those of another: an attempt is lines of each.
    """
    steps = [row for row in rows if row.told_by == "step"]
    number = max((row.attempt for row in steps), default=0) + 1
    if number == 1 or any(row.first_line is None or row.last_line is None for row in steps):
        return []
    spans = sorted((row.first_line or 0, row.last_line or 0, row.attempt) for row in steps)
    runs: list[list[int]] = []  # first line, last line, attempt
    for first, last, attempt in spans:
        if runs and runs[-1][2] == attempt:
            runs[-1][1] = max(runs[-1][1], last)
        elif runs and first <= runs[-1][1]:
            return []
        else:
            runs.append([first, last, attempt])
    if len(runs) > _MOST_PARTS:
        return []
    attempts = [Launch(order=order) for order in range(number)]
    begins = [0, *(first for first, _, _ in runs[1:])]
    ends: list[int | None] = [*begins[1:], None]
    for begin, end, (_, _, attempt) in zip(begins, ends, runs, strict=True):
        file = steps[0]
        attempts[attempt].parts.append(Lines(file.file_id, file.given, begin, end))
    for row in steps:
        attempts[row.attempt].add(row)
    return attempts


def _earliest(a: datetime | None, b: datetime | None) -> datetime | None:
    return min(a, b) if a is not None and b is not None else a or b


def _latest(a: datetime | None, b: datetime | None) -> datetime | None:
    return max(a, b) if a is not None and b is not None else a or b
