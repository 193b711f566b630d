"""Hosts of launches that a scheduler tells: by the job's id in paths, or else by its name and time.

A log of a trainer rarely names all hosts, and NCCL does so at NCCL_DEBUG=INFO alone. What cannot be
told without a guess stays untold: names of several jobs, two jobs that one name may mean.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from fabricobs.store.launch_evidence import gap
from fabricobs.store.launch_paths import names_no_job, pod_of, scheduled
from fabricobs.store.launches import Launch, Trace

# Schedulers and trainers print times of their own clocks; steps begin after the job.
_SLACK = timedelta(minutes=2)
# The zone of a table may not be that of the logs: an id in a path is refused beyond it.
_ZONES = timedelta(hours=26)
# A number of four digits and more that may be an id: a part of a name, with the index of an array.
_NUMBER = re.compile(
    r"(?:^|[^0-9A-Za-z]|job|jobid)(\d{4,})(?:_(\d+))?(?![0-9A-Za-z])", re.IGNORECASE
)
_DATE = re.compile(r"(?:19|20)\d\d(?:[01]\d(?:[0-3]\d\d*)?)?")
# Names that say what any job is.
_ANY_JOB = re.compile(
    r"(?:jobs?|pretrain(?:ing)?|test|main|wrap|(?:ba)?sh|python3?|interactive|jupyter|sbatch|launch)"
    r"[-_.\d]*",
    re.IGNORECASE,
)
_SCRIPT = re.compile(r"\.(?:sh|py|sbatch)$")
_SEPARATOR = re.compile(r"[-_.]")
_MOST_MARKS = 32
# What sites write before the name of a job in a file or folder, and behind it. No two ways lead
# through a name: it may be hostile.
_BEFORE = re.compile(r"(?:(?:[A-Za-z]?\d{0,2}|\d{6,8}|log|logs|job|slurm|train)[-_.])?")
_BEHIND = re.compile(
    r"(?:[-_.](?:\d{4,}[\dTZ]*(?:[-_]\d\d)*|(?:rank|node|worker|master|attempt|try|run)s?[-_.]?\d{0,3}|"
    r"logs?|train(?:ing)?|stdout|stderr|metrics|out|err|txt|jsonl?|csv|pdsh|gz|zst))*"
)


@dataclass(frozen=True, slots=True)
class Allocation:
    """Hosts of one job of a scheduler; `seen` is when a capture last showed it.

    Logs in a pod call the host by the name of the pod: `pods` are those of the job.
    """

    job_id: str | None
    name: str | None
    hosts: frozenset[str]
    pods: frozenset[str]
    begin: datetime | None
    end: datetime | None
    seen: datetime | None

    def meets(self, launch: Launch, slack: timedelta) -> bool:
        """Say whether it may have been there in the time of a launch, as far as both are known."""
        if launch.begin is None or launch.end is None:
            return True
        begin, end = self.begin or self.seen, self.end or self.seen
        too_early = end is not None and end + slack < launch.begin
        return not too_early and not (begin is not None and launch.end + slack < begin)


def allocation_of(row: tuple[Any, ...]) -> Allocation:
    """Return what a row of `jobs/allocations` tells."""
    job_id, name, hosts, pods, begin, end, seen = row
    return Allocation(job_id, name, frozenset(hosts), frozenset(pods or ()), begin, end, seen)


def with_allocations(traces: Sequence[Trace], known: "KnownAllocations") -> list[Trace]:
    """Return traces with the job that the path of the file names, by its id or else by its name."""
    if not known.all:
        return list(traces)
    files: dict[str, Launch] = {}
    for trace in traces:
        if trace.path is not None:
            files.setdefault(trace.path, Launch()).add(trace)
    told = {path: known.of(file)[1] for path, file in files.items()}
    jobs = {path: each.job_id or each.name for path, each in told.items() if each is not None}
    return [replace(t, allocated=jobs[t.path]) if t.path in jobs else t for t in traces]


def allocations_of(
    jobs: Sequence[Sequence[Launch]], known: "KnownAllocations"
) -> dict[int, Allocation]:
    """Return what a scheduler tells of launches, by the `id` of the launch.

    `jobs` are the launches of each job. Of jobs that may be one allocation at one time, by its
    name, none is it.
    """
    if not known.all:
        return {}
    found: list[tuple[Launch, Allocation]] = []
    named: list[tuple[int, Launch, Allocation]] = []
    for number, launches in enumerate(jobs):
        for launch in launches:
            by_id, told = known.of(launch)
            if told is not None and by_id:
                found.append((launch, told))
            elif told is not None:
                named.append((number, launch, told))
    for number, launch, meant in named:
        rivals = (o for n, o, m in named if n != number and m == meant)
        if not any(_at_once(launch, other) for other in rivals):
            found.append((launch, meant))
    return {id(launch): told for launch, told in found if _adds(launch, told)}


class KnownAllocations:
    """The allocations of a store, found by id and by name."""

    def __init__(self, allocations: Iterable[Allocation]) -> None:
        self.all = _merged(allocations)
        self.by_id: dict[str, list[Allocation]] = {}
        self.by_name: dict[str, list[Allocation]] = {}
        for each in self.all:
            if each.job_id is not None:
                self.by_id.setdefault(each.job_id, []).append(each)
            if each.name is not None and not _says_nothing(each.name):
                self.by_name.setdefault(each.name, []).append(each)

    def of(self, launch: Launch) -> tuple[bool, Allocation | None]:
        """Return whether paths of a launch tell an id of a scheduler, and its allocation."""
        has_id, told = _by_id(launch, self.by_id)
        return (True, told) if has_id else (False, _by_name(launch, self.by_name))


def _says_nothing(name: str) -> bool:
    stem = _SCRIPT.sub("", name)
    return _ANY_JOB.fullmatch(stem) is not None or names_no_job(stem)


def _merged(allocations: Iterable[Allocation]) -> list[Allocation]:
    """Return allocations without those that captures repeat: one job on the same hosts."""
    found: dict[tuple[object, ...], Allocation] = {}
    for each in allocations:
        # A job without an id is known by its name; one with an id may be printed with a cut name.
        key = (each.job_id, each.job_id or each.name, each.hosts)
        last = found.get(key)
        found[key] = each if last is None else _joined(last, each)
    return list(found.values())


def _joined(a: Allocation, b: Allocation) -> Allocation:
    names = sorted({a.name, b.name} - {None}, key=lambda name: len(name or ""))
    return Allocation(
        a.job_id,
        names[-1] if names else None,
        a.hosts,
        a.pods | b.pods,
        min(filter(None, (a.begin, b.begin)), default=None),
        max(filter(None, (a.end, b.end)), default=None),
        max(filter(None, (a.seen, b.seen)), default=None),
    )


def _by_id(launch: Launch, by_id: dict[str, list[Allocation]]) -> tuple[bool, Allocation | None]:
    """Return whether paths tell an id of a scheduler, and the one allocation of that id."""
    told = {own for path in launch.paths if (own := scheduled(path)) is not None}
    numbers = {each for path in launch.paths for each in _numbers(path)}
    tasks = {each for each in numbers if "_" in each and each in by_id}
    for ids, slack in ((tasks, _ZONES), (told, None), (numbers, _ZONES)):
        fitting = [
            each
            for own in sorted(ids)
            for each in by_id.get(own, ())
            if slack is None or each.meets(launch, slack)
        ]
        if len(fitting) > 1:  # a job that was requeued has an allocation each time
            fitting = [each for each in fitting if each.meets(launch, _SLACK)]
        if fitting:
            return True, _only(fitting)
    return bool(told), None


def _numbers(path: str) -> Iterable[str]:
    """Yield what may be an id in a path: `48230/`, `out_61207.txt`, `7702_4.log`."""
    for part in path.split("/"):
        for found in _NUMBER.finditer(part):
            if not _DATE.fullmatch(found[1]):
                yield found[1]
                if found[2]:
                    yield f"{found[1]}_{found[2]}"


def _by_name(launch: Launch, by_name: Mapping[str, Sequence[Allocation]]) -> Allocation | None:
    """Return the one allocation of a launch's time whose name files or folders have."""
    words = {part for path in launch.paths for part in path.split("/") if part}
    names = {name for word in words for name in _names_in(word) if name in by_name}
    names |= by_name.keys() & {pod_of(path) for path in launch.paths}
    fitting = [each for name in names for each in by_name[name] if each.meets(launch, _SLACK)]
    # Of `gpt` and `gpt-large` in one name the longer one is meant.
    return _only([a for a in fitting if not any(_is_part(a, b) for b in fitting)])


def _names_in(word: str) -> Iterator[str]:
    """Yield what jobs a file or folder may be named after: `C_vit`, `moe_8x7b.pdsh.log`."""
    marks = [found.start() for found in _SEPARATOR.finditer(word)][:_MOST_MARKS]
    begins = [at for at in (0, *(mark + 1 for mark in marks)) if _BEFORE.fullmatch(word[:at])]
    ends = [at for at in (*marks, len(word)) if _BEHIND.fullmatch(word[at:])]
    yield from (word[begin:end] for begin in begins for end in ends if begin < end)


def _is_part(a: Allocation, b: Allocation) -> bool:
    return a.name != b.name and (a.name or "") in (b.name or "")


def _only(allocations: Sequence[Allocation]) -> Allocation | None:
    """Return the first if all have the same hosts, else None."""
    return allocations[0] if len({each.hosts for each in allocations}) == 1 else None


def _at_once(a: Launch, b: Launch) -> bool:
    between = gap(a, b)
    return between is None or between <= timedelta(0)


def _adds(launch: Launch, told: Allocation) -> bool:
    """Say whether a scheduler's hosts complete those that a launch's own logs name.

    They do not where the logs name others, all ranks, or a benchmark's hosts, which need not use
    all of its job.
    """
    own = launch.hosts - told.pods
    if not own:
        return True
    is_whole = 0 < launch.nranks <= len(launch.known_ranks)
    return not is_whole and not launch.is_benchmark and bool(own & told.hosts)
