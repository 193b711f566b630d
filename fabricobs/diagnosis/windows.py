"""Stretches of intervals in a row in which something holds: raised at two, short gaps bridged."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import polars as pl


@dataclass(frozen=True, slots=True)
class Stretch:
    """Neighbouring intervals in which something holds; the first that suffice end `detected_at`.

    It began within the first and ended within the last: `longest` is how long any of them is.
    """

    begin: datetime
    end: datetime
    detected_at: datetime
    windows: int
    longest: timedelta


def stretches(rows: pl.DataFrame, least: int) -> list[Stretch]:
    """Join the intervals (`ts_before`, `ts`) of one device that follow each other.

    Gaps shorter than two intervals are bridged; stretches of fewer than `least` are dropped. Rows
    without both times are of no interval.
    """
    moments = rows.select("ts_before", "ts").drop_nulls().unique().sort("ts")
    found: list[Stretch] = []
    run: list[tuple[datetime, datetime]] = []
    for begin, end in moments.iter_rows():
        if run and begin - run[-1][1] >= 2 * (end - begin):
            found.extend(_closed(run, least))
            run = []
        run.append((begin, end))
    found.extend(_closed(run, least))
    return found


def _closed(run: Sequence[tuple[datetime, datetime]], least: int) -> list[Stretch]:
    if len(run) < least:
        return []
    longest = max(end - begin for begin, end in run)
    return [Stretch(run[0][0], run[-1][1], run[least - 1][1], len(run), longest)]


def overlapping(rows: pl.DataFrame, found: Sequence[Stretch]) -> pl.DataFrame:
    """Return the intervals that lie in one of the stretches for more than half of their time."""
    return rows.filter(_inside(found))


def outside(rows: pl.DataFrame, found: Sequence[Stretch]) -> pl.DataFrame:
    """Return the intervals of which more than half lies in none of the stretches."""
    return rows.filter(~_inside(found))


def _inside(found: Sequence[Stretch]) -> pl.Expr:
    middle = pl.col("ts_before") + (pl.col("ts") - pl.col("ts_before")) / 2
    return pl.any_horizontal(
        pl.lit(value=False), *(middle.is_between(each.begin, each.end) for each in found)
    )


def shared_time(one: Sequence[Stretch], other: Sequence[Stretch]) -> float:
    """Return the time that lies in stretches of both over that in either, 0 to 1."""
    ours, theirs = _united(one), _united(other)
    both = sum(
        max((min(a_end, b_end) - max(a, b)).total_seconds(), 0.0)
        for a, a_end in ours
        for b, b_end in theirs
    )
    whole = sum((end - begin).total_seconds() for begin, end in (*ours, *theirs))
    return both / (whole - both) if both else 0.0


def _united(found: Sequence[Stretch]) -> list[tuple[datetime, datetime]]:
    """Return the time in any of the stretches: those of several parts overlap."""
    united: list[tuple[datetime, datetime]] = []
    for begin, end in sorted(spans(found)):
        if united and begin <= united[-1][1]:
            united[-1] = (united[-1][0], max(united[-1][1], end))
        else:
            united.append((begin, end))
    return united


def spans(found: Sequence[Stretch]) -> list[tuple[datetime, datetime]]:
    """Return begin and end of each stretch."""
    return [(each.begin, each.end) for each in found]


def interval_of(found: Sequence[Stretch]) -> timedelta:
    """Return within which time each stretch began and ended."""
    return max((each.longest for each in found), default=timedelta(0))


def earliest(found: Sequence[Stretch]) -> tuple[datetime, datetime, datetime]:
    """Return when the first began, the last ended, and it was first sure."""
    return (
        min(each.begin for each in found),
        max(each.end for each in found),
        min(each.detected_at for each in found),
    )
