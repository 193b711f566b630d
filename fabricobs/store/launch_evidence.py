"""Evidence that two groups of files are of one launch, and evidence that they are not."""

from collections import Counter
from collections.abc import Collection
from datetime import datetime, timedelta
from pathlib import PurePath

from fabricobs.store.launches import Launch, Process

# Logs of one launch may begin or end apart: initialisation before, a dump after the last step.
_APART = timedelta(hours=1)
# From the first communicator to the first collective: models are loaded and compiled.
_MADE_BEFORE = timedelta(minutes=10)
# Ranks that print the same step do so within seconds.
SAME_STEP = timedelta(seconds=60)
# Share of a log's time by which evaluations and checkpoints may move a step from its even place.
_UNEVEN = 0.1
# Groups of one job on other hosts: so many collectives, as many in each, and first and last at once
# but for clocks. Jobs that merely began together are out of step by then.
_FEWEST_CALLS = 20
_IN_STEP = timedelta(seconds=5)


def gap(a: Launch, b: Launch) -> timedelta | None:
    """Return the time between two launches, negative where they overlap; None where not known."""
    if a.begin is None or a.end is None or b.begin is None or b.end is None:
        return None
    return max(a.begin, b.begin) - min(a.end, b.end)


def contradict(a: Launch, b: Launch) -> bool:
    """Say whether two cannot be one launch."""
    for own, others in (
        (a.given, b.given),
        (a.scheduled, b.scheduled),
        (a.allocated, b.allocated),
        (a.versions, b.versions),
    ):
        if own and others and not own & others:
            return True
    if a.job_folders and b.job_folders and not (a.job_folders & b.job_folders or a.given & b.given):
        return True
    siblings = are_siblings(a, b)
    one_world = siblings or same_processes(a, b) or (a.given & b.given and _beside(a, b))
    if a.hashes and b.hashes and not one_world:
        return True
    if a.nranks and b.nranks and a.nranks != b.nranks:
        return True
    # Ranks of smaller communicators, which a job splits into, come again in each of them.
    elsewhere = _rank_elsewhere(a, b) or (not siblings and _place_taken(a, b))
    return elsewhere or _beyond(a, b) or _beyond(b, a) or _at_other_times(a, b)


def are_runs(a: Launch, b: Launch) -> bool:
    """Say whether two launches may be runs of one job: alike, and one after the other."""
    if a.given and b.given:
        return bool(a.given & b.given)
    between = gap(a, b)
    if between is None:
        return bool(a.hosts & b.hosts)  # which cannot do both at once
    return between > timedelta(0) and bool(a.families & b.families or a.hosts & b.hosts)


def may_follow(a: Launch, b: Launch) -> bool:
    """Say whether two launches without times are restarts of one job.

    They are on the same GPUs, which cannot do both at once, of the same hosts but for a few that a
    restart replaces, and named alike.
    """
    if a.begin or b.begin or a.is_benchmark or b.is_benchmark or not a.families & b.families:
        return False
    same_gpus = bool(a.gpus & b.gpus) or not (a.gpus or b.gpus)
    return same_gpus and share_most_hosts(a, b) and a.nranks == b.nranks > 0


def share_most_hosts(a: Launch, b: Launch) -> bool:
    """Say whether most hosts of the smaller of two launches are hosts of the other."""
    return 2 * len(a.hosts & b.hosts) > min(len(a.hosts), len(b.hosts))


def same_processes(a: Launch, b: Launch) -> bool:
    """Say whether all processes of one, two and more, are processes of the other at that time.

    Process ids come again, and in containers every job has the same: not all of them at once. A log
    that ends when the communicators are made is followed by what they do. Where one has no times,
    ids tell that differ between its hosts: no container gave them.
    """
    few, many = sorted((a.processes, b.processes), key=len)
    between = gap(a, b)
    if len(few) < 2 or not few <= many:
        return False
    if between is None:
        return _differ_by_host(many)
    made, follows = (a, b) if a.nranks else (b, a)
    if not made.nranks or follows.nranks:
        return between <= timedelta(0)
    is_made = made.begin is not None and follows.begin is not None and made.begin < follows.begin
    return between <= (_MADE_BEFORE if is_made else timedelta(0))


def _differ_by_host(processes: Collection[Process]) -> bool:
    """Say whether there are several hosts, and most process ids are of one of them alone."""
    hosts = Counter(pid for _, pid in processes)
    alone = sum(number == 1 for number in hosts.values())
    return len({host for host, _ in processes}) > 1 and 2 * alone > len(hosts)


def is_same_print(a: Launch, b: Launch) -> bool:
    """Say whether two logs that tell the same losses are of one run, not of two with one seed.

    They begin and end together; where one tells no times, they lie in one folder, named alike.
    """
    if a.begin is None or a.end is None or b.begin is None or b.end is None:
        return bool(a.folders & b.folders and a.families & b.families)
    return max(abs(a.begin - b.begin), abs(a.end - b.end)) <= SAME_STEP


def are_siblings(a: Launch, b: Launch) -> bool:
    """Say whether two show communicators that one job splits into, such as one a rail or a stage.

    They have as many ranks, in other processes, and begin and end together: on the same hosts, two
    and more, or on others with files in one folder. As many collectives tell that too, where one
    ends with the timeouts of a hang. Jobs of one size do so only where they are benchmarks. Where a
    log has no times, they are on other GPUs of the same hosts: the next run would take the same.
    """
    if not (a.hashes and b.hashes) or a.hashes & b.hashes or a.is_benchmark or b.is_benchmark:
        return False
    if not 1 < a.largest == b.largest or a.processes & b.processes:
        return False
    if a.begin is None or a.end is None or b.begin is None or b.end is None:
        return len(a.hosts) > 1 and a.hosts == b.hosts and _on_other_gpus(a, b)
    begins, ends = abs(a.begin - b.begin), abs(a.end - b.end)
    as_many = a.calls == b.calls >= _FEWEST_CALLS
    few, many = sorted((a.hosts, b.hosts), key=len)
    if len(few) > 1 and few <= many:
        return begins <= SAME_STEP and (as_many or ends <= SAME_STEP)
    beside = not few & many and bool(a.folders & b.folders)
    return beside and as_many and begins <= _IN_STEP and ends <= _IN_STEP


def _on_other_gpus(a: Launch, b: Launch) -> bool:
    return bool(a.gpus and b.gpus and a.folders & b.folders) and not a.gpus & b.gpus


def _alike(a: Launch, b: Launch) -> bool:
    """Say whether they are of other files that are named alike, but for numbers or the folder."""
    alike = a.families & b.families or _names(a) & _names(b)
    return bool(alike) and not a.paths & b.paths


def _names(launch: Launch) -> set[str]:
    return {PurePath(path).name for path in launch.paths}


def _beside(a: Launch, b: Launch) -> bool:
    """Say whether two groups of one given job may be one world: at once, on other hosts."""
    between = gap(a, b)
    return not a.hosts & b.hosts and (between is None or between <= timedelta(0))


def _rank_elsewhere(a: Launch, b: Launch) -> bool:
    """Say whether a rank of the job is on another host, or in another process, in each."""
    if any(
        hosts and b.ranks[rank] and not hosts & b.ranks[rank]
        for rank, hosts in a.ranks.items()
        if rank in b.ranks
    ):
        return True
    # In containers every run has the same process ids; addresses in memory are random.
    return any(
        not addresses & b.addresses[process]
        for process, addresses in a.addresses.items()
        if process in b.addresses
    )


def _place_taken(a: Launch, b: Launch) -> bool:
    """Say whether a rank of the largest communicator is another process in each."""
    return any(
        size in {None, a.nranks} and not processes & b.places[size, rank]
        for (size, rank), processes in a.places.items()
        if (size, rank) in b.places
    )


def _beyond(world: Launch, other: Launch) -> bool:
    """Say whether one has ranks that the world of the other has not."""
    whole = 0 < len(world.processes) <= world.nranks
    return whole and any(rank >= world.nranks for rank in other.ranks)


def _at_other_times(a: Launch, b: Launch) -> bool:
    between = gap(a, b)
    replays = _replay(a, b)
    alike = bool(a.families & b.families)
    if between is not None and between > _APART and not (alike and not replays):
        return True
    if any(x.made and y.steps and y.end and y.end < x.made for x, y in ((a, b), (b, a))):
        return True  # steps that ended before the launch had a communicator
    own_logs = _alike(a, b) and None in a.steps and None in b.steps and not a.folders & b.folders
    if own_logs and between is None and not a.pods & b.pods:
        return True  # a job has one log, or one in each of its pods
    return replays and _steps_apart(a, b, between)


def _replay(a: Launch, b: Launch) -> bool:
    """Say whether a rank, or the job, does the same steps in both."""
    return any(
        a.steps[rank][0] <= b.steps[rank][1] and b.steps[rank][0] <= a.steps[rank][1]
        for rank in a.steps
        if rank in b.steps
    )


def _steps_apart(a: Launch, b: Launch, between: timedelta | None) -> bool:
    """Say whether the steps both do were done at other times, or by files of one kind."""
    if between is not None and between > timedelta(0):
        return True
    shared = a.steps.keys() & b.steps.keys()
    # A rank has one log of its steps, and a job one, or one in each of its pods.
    if _alike(a, b) and (shared - {None} or not a.pods & b.pods):
        return True
    begins = [
        abs(a.step_begin[rank] - b.step_begin[rank])
        for rank in shared
        if rank in a.step_begin and rank in b.step_begin and a.steps[rank][0] == b.steps[rank][0]
    ]
    if begins:
        return min(begins) > SAME_STEP
    return any(_in_other_hours(a, b, rank) for rank in shared)


def _in_other_hours(a: Launch, b: Launch, rank: int | None) -> bool:
    """Say whether the first and the last step that both tell were done at quite other times.

    When each did them is worked out from its own first and last step, as if all were as long.
    """
    first = max(a.steps[rank][0], b.steps[rank][0])
    last = min(a.steps[rank][1], b.steps[rank][1])
    lengths = [
        each.step_end[rank] - each.step_begin[rank]
        for each in (a, b)
        if rank in each.step_begin and rank in each.step_end
    ]
    if len(lengths) < 2 or first >= last:
        return False
    least = max(SAME_STEP, _UNEVEN * max(lengths))
    return all(
        abs(_time_of(a, rank, step) - _time_of(b, rank, step)) > least for step in (first, last)
    )


def _time_of(launch: Launch, rank: int | None, step: int) -> datetime:
    first, last = launch.steps[rank]
    begin = launch.step_begin[rank]
    return begin + (step - first) / max(last - first, 1) * (launch.step_end[rank] - begin)
