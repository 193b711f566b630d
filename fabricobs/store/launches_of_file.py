"""Which lines of one file are of which launch: a log may go on over the restarts of its job."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise

from fabricobs.store.disjoint_sets import DisjointSets
from fabricobs.store.launches import Launch, Lines, Process, Times, Trace, attempts_of

Place = tuple[object, int]  # a rank among those of one size or one host


def working_times(traces: Sequence[Trace]) -> dict[Process, Times]:
    """Return from when to when each process took part in collectives, by the clock of its host."""
    found: dict[Process, Times] = {}
    for trace in traces:
        if trace.told_by == "collective" and trace.pid is not None and trace.begin and trace.end:
            begin, end = found.get((trace.host, trace.pid), (trace.begin, trace.end))
            found[trace.host, trace.pid] = min(begin, trace.begin), max(end, trace.end)
    return found


def launches_of_file(rows: Sequence[Trace], working: Mapping[Process, Times]) -> list[Launch]:
    """Return the launches of one file, one after another in its lines.

    A launch that follows another in a file shows a rank of the world a second time, in a process
    that nothing connects with the first; or its processes begin to work when all before it ended.
    """
    first = rows[0]
    shown = _connected([row for row in rows if row.told_by == "process" and row.pid is not None])
    shown.sort(key=lambda group: min(row.first_line or 0 for row in group))
    of_world = [_ranks_of_world(group) for group in shown]
    rounds = _rounds(shown, of_world) or _rounds_of_labels(shown) or _rounds_of_work(shown, working)
    begins = [0, *(min(row.first_line or 0 for row in shown[first]) for first in rounds)]
    units = []
    ends: list[int | None] = [*begins[1:], None]
    for order, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        unit = Launch([Lines(first.file_id, first.given, begin, end)], order=order)
        for row in rows:
            line = row.first_line or 0
            if line >= begin and (end is None or line < end):
                unit.add(row)
        unit.attempts = [] if unit.processes else attempts_of(rows)
        units.append(unit)
    return units


def _rounds(shown: Sequence[Sequence[Trace]], ranks: Sequence[set[Place]]) -> list[int]:
    """Return which groups begin another launch: they show a rank again after all lines so far."""
    begins: list[int] = []
    taken: set[Place] = set()
    last_line = -1
    for number, group in enumerate(shown):
        if ranks[number] & taken and min(row.first_line or 0 for row in group) > last_line:
            begins.append(number)
            taken = set()
        taken |= ranks[number]
        last_line = max(last_line, *(row.last_line or 0 for row in group))
    return begins


def _ranks_of_world(group: Sequence[Trace]) -> set[Place]:
    world = max((row.nranks or 0 for row in group), default=0)
    return {(world, row.rank) for row in group if row.rank is not None and row.nranks == world}


def _rounds_of_labels(shown: Sequence[Sequence[Trace]]) -> list[int]:
    """Return which groups begin another launch, by the ranks that the launcher writes before lines.

    A launcher may write the number of a task, of which several processes are: a launch has all
    labels, two and more, and each once.
    """
    labels: list[set[Place]] = [
        {(row.host, row.launch_rank) for row in group if row.launch_rank is not None}
        for group in shown
    ]
    begins = _rounds(shown, labels)
    everyone = set().union(*labels)
    for first, end in pairwise([0, *begins, len(shown)]):
        once = [label for own in labels[first:end] for label in own]
        if len(once) != len(everyone) or {*once} != everyone or len(everyone) < 2:
            return []
    return begins


def _rounds_of_work(
    shown: Sequence[Sequence[Trace]], working: Mapping[Process, Times]
) -> list[int]:
    """Return which groups begin another launch: all before them ended before they began to work.

    Most hosts of the file must show it, each by its own clock.
    """
    of_host: dict[str | None, list[tuple[int, Times]]] = {}
    for number, group in enumerate(shown):
        times = [working.get((row.host, row.pid or 0)) for row in group]
        if None in times:
            return []
        own = of_host.setdefault(group[0].host, [])
        own += [(number, each) for each in times if each is not None]
    proofs = Counter[int]()
    for own in of_host.values():
        until = list(accumulate((end for _, (_, end) in own), max))
        since = list(accumulate((begin for _, (begin, _) in own[::-1]), min))[::-1]
        for place in range(1, len(own)):
            proof = 1 if since[place] > until[place - 1] else -len(shown)
            for number in range(own[place - 1][0] + 1, own[place][0] + 1):
                proofs[number] += proof
    lines = accumulate((max(row.last_line or 0 for row in group) for group in shown), max)
    return [
        number
        for number, last_line in enumerate(lines, start=1)
        if 2 * proofs[number] > len(of_host)
        and min(row.first_line or 0 for row in shown[number]) > last_line
    ]


def _connected(rows: Sequence[Trace]) -> list[list[Trace]]:
    """Return the rows in groups that share processes or communicators."""
    found = DisjointSets(len(rows))
    for number, row in enumerate(rows):
        found.tie(number, ("process", row.host, row.pid))
        if row.comm_hash is not None:
            found.tie(number, ("comm", row.comm_hash))
    return [[rows[number] for number in group] for group in found.groups()]
