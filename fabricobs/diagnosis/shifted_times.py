"""Sources whose times look shifted against the job's steps by a time zone.

A log in local time without a zone is read as if it were in UTC, or in `--tz`: its times are then
off by whole hours, or by quarters of one. That is told, never corrected: files may as well be of
another run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.name_lists import enumerated

# Zones differ by quarters of an hour, by 14 hours at most (RFC 9557 and the tz database).
_QUARTER = timedelta(minutes=15)
_FARTHEST = timedelta(hours=14)
# Share of the shorter of two spans that lies in the other at most where they are apart, and that
# lies outside it at most where they fit, or so long. A judgement: collectors start and stop with a
# job, give or take some minutes.
_APART = 0.1
_OUTSIDE = 0.1
_LONGEST_OUTSIDE = timedelta(minutes=10)
# What is less than half as long as the other may be of the job's begin, and fits too many shifts.
_LEAST_AS_LONG = 0.5
# So far may traffic begin and end from the steps, and two intervals more: the first step ends
# minutes after a job connects.
_SLACK = timedelta(minutes=3)
_STEPS = "steps"
_COUNTERS = "counters"


@dataclass(frozen=True, slots=True)
class Source:
    """When a source tells of a job; `busy` is when its counters carry traffic, if that is told."""

    name: str
    first: datetime
    last: datetime
    busy: tuple[datetime, datetime] | None = None
    interval: timedelta = timedelta()


@dataclass(frozen=True, slots=True)
class Shift:
    """`sources` fit the steps if these, read as `ahead` later than they are, are set back.

    `ahead` may be negative. `between` has the least and the most where several shifts fit.
    """

    sources: tuple[str, ...]
    ahead: timedelta
    between: tuple[timedelta, timedelta]
    overlap: bool

    @property
    def words(self) -> str:
        """Say how the times differ."""
        return f"the times {self.difference}"

    @property
    def difference(self) -> str:
        """Say how the times differ, behind a word for them."""
        named = enumerated(self.sources)
        low, high = sorted(self.between, key=abs)
        by = _told(self.ahead) if low == high else f"{_told(low)} to {_told(high)}"
        side = "late" if self.ahead > timedelta() else "early"
        apart = "do not fit" if self.overlap else "do not overlap"
        return f"of steps and {named} {apart}: the steps look {by} {side}, as by a time zone"

    @property
    def remedy(self) -> str:
        """Say what to do if one of the logs is in local time."""
        others = "the others" if len(self.sources) > 1 else f"the {self.sources[0]}"
        return (
            "All files read in the time zone of their times. If the trainer logs local time, "
            "ingest its files again, alone, with the `--tz` of a zone "
            f"{_from_utc(self.ahead)}; if {others} are in local time, these with one "
            f"{_from_utc(-self.ahead)}."
        )


def shift_of(sources: Sequence[Source]) -> Shift | None:
    """Return the shift by which other sources fit the steps, if they do not fit as they are."""
    steps = next((each for each in sources if each.name == _STEPS), None)
    if steps is None or steps.last <= steps.first:
        return None
    counters = next((each for each in sources if each.name == _COUNTERS), None)
    exact = _by_traffic(steps, counters) if counters is not None else None
    if counters is not None and exact is not None:
        overlap = _share(steps, counters) > _APART
        return Shift((_COUNTERS,), exact, (exact, exact), overlap) if exact else None
    apart = [each for each in sources if each.name != _STEPS and _are_apart(steps, each)]
    if not apart or (counters is not None and counters not in apart):
        return None
    fitting = {
        shift: outside
        for shift in _shifts()
        if (outside := max(_outside(steps, each, shift) for each in apart)) <= 1
    }
    if not fitting:
        return None
    # Of those that fit as well: most zones differ by whole hours.
    best = min(fitting, key=lambda s: (round(fitting[s], 1), bool(s % timedelta(hours=1)), abs(s)))
    names = tuple(each.name for each in apart)
    return Shift(names, best, (min(fitting), max(fitting)), overlap=False)


@lru_cache(maxsize=1)
def shifted_times(evidence: Evidence) -> Shift | None:
    """Return the shift of a store's times. Several methods ask: the last answer is kept."""
    sources = [
        Source(
            row["source"],
            row["first_time"],
            row["last_time"],
            (row["first_busy"], row["last_busy"]) if row["first_busy"] is not None else None,
            timedelta(seconds=row["seconds"] or 0.0),
        )
        for row in evidence.frame("source_times").iter_rows(named=True)
    ]
    return shift_of(sources)


def _by_traffic(steps: Source, counters: Source) -> timedelta | None:
    """Return the shift at which traffic begins and ends with the steps; None if none does."""
    if counters.busy is None:
        return None
    slack = _SLACK + 2 * counters.interval
    begins, ends = steps.first - counters.busy[0], steps.last - counters.busy[1]
    near = [
        shift
        for shift in (timedelta(), *_shifts())
        if abs(begins - shift) <= slack and abs(ends - shift) <= slack
    ]
    return min(near, key=abs) if near else None


def _shifts() -> list[timedelta]:
    count = _FARTHEST // _QUARTER
    return [place * _QUARTER for place in range(-count, count + 1) if place]


def _common(steps: Source, other: Source, shift: timedelta) -> tuple[timedelta, timedelta]:
    """Return how long steps, set back by `shift`, overlap another source, and the shorter span."""
    first, last = steps.first - shift, steps.last - shift
    both = min(last, other.last) - max(first, other.first)
    return both, min(last - first, other.last - other.first)


def _are_apart(steps: Source, other: Source) -> bool:
    """Say whether two sources are about as long and hardly overlap."""
    lengths = sorted([steps.last - steps.first, other.last - other.first])
    return lengths[0] >= _LEAST_AS_LONG * lengths[1] and _share(steps, other) < _APART


def _share(steps: Source, other: Source) -> float:
    """Return which share of the shorter of two sources lies in the other."""
    both, shorter = _common(steps, other, timedelta())
    return max(both / shorter, 0.0) if shorter else float(both >= timedelta())


def _outside(steps: Source, other: Source, shift: timedelta) -> float:
    """Return how much of the shorter of both lies outside the other: above 1 is too much."""
    both, shorter = _common(steps, other, shift)
    most = max(min(_OUTSIDE * shorter, _LONGEST_OUTSIDE), timedelta(seconds=1))
    return max((shorter - both) / most, 0.0)


def _told(shift: timedelta) -> str:
    minutes = abs(shift) // timedelta(minutes=1)
    hours, rest = divmod(minutes, 60)
    return f"{hours} h" if not rest else f"{hours} h {rest} min"


def _from_utc(shift: timedelta) -> str:
    """Name a zone by its distance from the one that the files were read in."""
    side = "ahead of" if shift > timedelta() else "behind"
    hours, rest = divmod(shift, timedelta(hours=1))
    # POSIX counts the other way round.
    such = f" (of UTC: Etc/GMT{-hours:+d})" if not rest and -12 <= hours <= 14 else ""
    return f"{_told(shift)} {side} the one they were read in{such}"
