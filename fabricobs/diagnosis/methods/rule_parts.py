"""Which rows of a rule's evidence are one finding: wrong for long enough, and of one cause."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import polars as pl

from fabricobs.diagnosis.cables import CLOCK_SLACK
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.grouping import in_groups
from fabricobs.diagnosis.model import Model, Rule
from fabricobs.diagnosis.windows import Stretch, earliest, overlapping, shared_time, stretches

# Parts wrong for more of the same time than of times apart share a cause.
_AT_ONCE = 0.5


@dataclass(frozen=True, slots=True)
class Wrong:
    """What is wrong of one finding: its rows, when, and when that was first sure.

    `minor` are rows of parts that are wrong at the same times by far less, empty where none are.
    """

    rows: pl.DataFrame
    stretches: tuple[Stretch, ...]
    start: datetime | None
    end: datetime | None
    sure: datetime | None
    minor: pl.DataFrame = field(default_factory=pl.DataFrame)


def wrong_parts(
    rows: pl.DataFrame, columns: list[str], model: Model, rule: Rule
) -> Iterator[Wrong]:
    """Yield each part that is wrong for long enough, with the rows of that time."""
    for own in rows.partition_by(columns, maintain_order=True):
        if not rule.for_:
            yield _of_any_time(own)
            continue
        found = _lasting(own, model, rule)
        if found:
            yield Wrong(overlapping(own, found), tuple(found), *earliest(found))


def _of_any_time(rows: pl.DataFrame) -> Wrong:
    """Return rows that are wrong however short: `sure` says when that was clear, else the first."""
    begin, end = first(rows, "ts_before"), last(rows, "ts")
    times = begin is not None and end is not None
    found = tuple(stretches(rows, 1)) if times else ()
    # The ends of a cable are read at other times: the one that was sure first tells the begin.
    begin = found[0].begin if found else begin
    sure = first(rows, "sure") or first(rows, "begun_by") or begin
    return Wrong(rows, found, begin, end, sure)


def _lasting(rows: pl.DataFrame, model: Model, rule: Rule) -> list[Stretch]:
    threshold = model.threshold[rule.for_]
    if threshold.unit != "s":
        return stretches(rows, int(threshold.value))
    enough = timedelta(seconds=threshold.value)
    return [
        replace(each, detected_at=each.begin + enough)
        for each in stretches(rows, 1)
        if each.end - each.begin >= enough
    ]


def first(rows: pl.DataFrame, column: str) -> Any:
    """Return the least value of a column, None where there is none."""
    return rows[column].min() if column in rows.columns else None


def last(rows: pl.DataFrame, column: str) -> Any:
    """Return the largest value of a column, None where there is none."""
    return rows[column].max() if column in rows.columns else None


def having(
    parts: list[Wrong], columns: list[str], evidence: Evidence, model: Model, rule: Rule
) -> list[Wrong]:
    """Return the parts whose rows satisfy `having`."""
    if not rule.having or not parts:
        return parts
    rows = pl.concat([part.rows for part in parts])
    names = ", ".join(columns)
    sql = f"SELECT {names} FROM evidence.rows GROUP BY {names} HAVING {rule.having}"
    kept = set(evidence.ask_of(rows, sql, model.limits).rows())
    return [part for part in parts if part.rows.select(columns).row(0) in kept]


def as_findings(
    parts: list[Wrong], columns: list[str], evidence: Evidence, model: Model, rule: Rule
) -> list[Wrong]:
    """Join the parts of one finding."""
    if rule.together is not None:
        return _together(parts, evidence, model, rule)
    shared: dict[tuple[Any, ...], list[Wrong]] = {}
    for part in parts:
        key = part.rows.select(rule.finding or columns).row(0)
        shared.setdefault(key, []).append(part)
    if rule.at_once:
        return _at_once(list(shared.values()), evidence, model, rule)
    return [_joined(own, 1) for own in shared.values()]


def _at_once(found: list[list[Wrong]], evidence: Evidence, model: Model, rule: Rule) -> list[Wrong]:
    """Join what is wrong at the same times as the largest of it, largest first.

    `found` has the parts of each finding. Those far below the largest part of all are `minor`.
    """

    def size(wrong: Wrong) -> float:
        sql = f"SELECT {rule.at_once} FROM evidence.rows"
        return float(evidence.ask_of(wrong.rows, sql, model.limits).item() or 0.0)

    joined = [(_joined(parts, 1), parts) for parts in found]
    joined.sort(key=lambda each: size(each[0]), reverse=True)
    groups = in_groups(
        joined,
        lambda one, other: shared_time(one[0].stretches, other[0].stretches) >= _AT_ONCE,
    )
    least = model.limit(rule.major) if rule.major else 0.0
    merged = ([part for _, parts in group for part in parts] for group in groups)
    return [_without_minor(parts, [size(part) for part in parts], least) for parts in merged]


def _without_minor(parts: list[Wrong], sizes: list[float], least: float) -> Wrong:
    """Join the parts that reach a share of the largest; the rows of the others are `minor`."""
    limit = least * max(sizes)
    major = [part for part, size in zip(parts, sizes, strict=True) if size >= limit]
    minor = [part.rows for part, size in zip(parts, sizes, strict=True) if size < limit]
    joined = _joined(major, 1)
    return replace(joined, minor=pl.concat(minor)) if minor else joined


def _together(parts: list[Wrong], evidence: Evidence, model: Model, rule: Rule) -> list[Wrong]:
    """Return one finding of all parts if enough of them are wrong at one time."""
    together = rule.together
    if together is None or not parts:
        return []
    total = int(last(parts[0].rows, together.of))
    needed = max(math.ceil(model.limit(together.share) * total), 1)
    if together.fewest:
        needed = max(needed, int(model.limit(together.fewest)))
    rows = pl.concat([part.rows for part in parts])
    if together.unless:
        sql = f"SELECT {together.unless} FROM evidence.rows"
        if evidence.ask_of(rows, sql, model.limits).item():
            return [_joined(parts, len(parts))]
    if len(parts) < needed:
        return []
    joined = _joined(parts, needed)
    sure = joined.sure
    # Parts that are wrong one after another do not share a cause.
    at_once = sum(
        sure is None or part.end is None or part.end >= sure - CLOCK_SLACK for part in parts
    )
    return [joined] if at_once >= needed else []


def _joined(parts: Sequence[Wrong], needed: int) -> Wrong:
    """Return parts as one, sure when the `needed` ones are, begun when half of them have."""
    if len(parts) == 1:
        return parts[0]
    begins = sorted(part.start for part in parts if part.start is not None)
    ends = [part.end for part in parts if part.end is not None]
    sure = sorted(part.sure for part in parts if part.sure is not None)
    start = begins[len(begins) // 2 if needed > 1 else 0] if begins else None
    found = (each for part in parts for each in part.stretches)
    return Wrong(
        rows=pl.concat([part.rows for part in parts]),
        stretches=tuple(s for s in found if start is None or s.end >= start),
        start=start,
        end=max(ends, default=None),
        sure=sure[min(needed, len(sure)) - 1] if sure else None,
    )
