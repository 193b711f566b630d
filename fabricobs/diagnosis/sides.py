"""The two sides of a comparison: jobs, windows of time or ranges of steps of one job."""

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from fabricobs import content
from fabricobs.diagnosis.job import WARM_UP_STEPS
from fabricobs.exceptions import UserError

if TYPE_CHECKING:
    import duckdb

_STEPS = re.compile(r"steps:(\d*)\.\.(\d*)")
_DATE = re.compile(r"\d{4}-\d\d")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_PARAMETER = re.compile(r"\$(\w+)")
_MOST_NAMES = 5
_FORMS = (
    "a job, a day like 2026-03-02, a window like 2026-03-02T09:10..2026-03-02T09:20 (UTC), "
    "or steps like steps:100..150"
)


class SideError(UserError):
    """A side that cannot be told, or holds nothing."""


@dataclass(frozen=True, slots=True)
class Side:
    """One side: steps `first_step` to `last_step`, what happened after `begin` up to `end`, UTC.

    `steps` is their number; what the store does not tell is None.
    """

    text: str
    kind: Literal["job", "window", "steps"]
    job: str | None = None
    begin: datetime | None = None
    end: datetime | None = None
    first_step: int | None = None
    last_step: int | None = None
    steps: int = 0


class Asker:
    """Runs the queries of `queries/compare/` for one side at a time, on one session."""

    def __init__(self, connection: "duckdb.DuckDBPyConnection", extra: Sequence[Path] = ()) -> None:
        self._connection = connection
        self._extra = extra
        self._frames: dict[tuple[str, Side | None, Side | None], pl.DataFrame] = {}

    def frame(self, name: str, side: Side | None = None, other: Side | None = None) -> pl.DataFrame:
        """Return the rows of one query, for the side, or the two, that it asks for."""
        if (name, side, other) not in self._frames:
            self._frames[name, side, other] = self._asked(name, side, other)
        return self._frames[name, side, other]

    @staticmethod
    def sql_of(name: str, extra: Sequence[Path] = ()) -> str:
        """Return the text of one query."""
        return content.files("queries", ".sql", extra)[f"compare/{name}"].read_text(
            encoding="utf-8"
        )

    def _asked(self, name: str, side: Side | None, other: Side | None) -> pl.DataFrame:
        sql = self.sql_of(name, self._extra)
        given: dict[str, Any] = {}
        if side is not None:
            fields = ("job", "begin", "end", "first_step", "last_step")
            given = {field: getattr(side, field) for field in fields}
            given["whole_job"] = side.kind == "job"
        if other is not None:
            given |= {"other_begin": other.begin, "other_end": other.end}
        wanted = set(_PARAMETER.findall(sql))
        used = {field: value for field, value in given.items() if field in wanted}
        rows: pl.DataFrame = self._connection.sql(sql, params=used).pl()
        return rows.fill_nan(None)


Labels = Mapping[str, str | None]


def parsed_sides(
    a: str, b: str, job: str | None, labels: Labels, jobs: Sequence[str | None]
) -> tuple[Side, Side]:
    """Return both sides as they are written; SideError if a store of these jobs has no such side.

    `job` is whose windows and steps are meant, where the store holds several; `labels` are what
    rows have as `job`, by the name of each job.
    """
    if job is not None and job not in labels:
        raise SideError(f"--job {job}: no such job in the store; {_known(job, labels)}")
    return _parsed(a, job, labels, jobs), _parsed(b, job, labels, jobs)


def resolved_sides(sides: tuple[Side, Side], asker: Asker) -> tuple[Side, Side]:
    """Return both sides as the store fills them; SideError says what is wrong with them."""
    a, b = (_resolved(side, asker) for side in sides)
    _check_apart(a, b)
    return a, b


def _parsed(text: str, job: str | None, labels: Labels, jobs: Sequence[str | None]) -> Side:
    if text in labels:
        return Side(text, "job", job=labels[text])
    day = _moment(text) if _DAY.fullmatch(text) else None
    if day is None and _DATE.match(text) and ".." not in text:
        raise SideError(f"{text}: a window has two dots, like {text}.. or ..{text}")
    if day is None and not (".." in text or text.startswith("steps:")):
        raise SideError(f"{text}: no such job; {_known(text, labels)}. A side is {_FORMS}")
    own = labels[job] if job is not None else _own_job(jobs, labels)
    if text.startswith("steps:"):
        match = _STEPS.fullmatch(text)
        if match is None:
            raise SideError(f"{text}: steps are written steps:FIRST..LAST, like steps:100..150")
        first, last = (int(number) if number else None for number in match.groups())
        if first is not None and last is not None and first > last:
            raise SideError(f"{text}: it ends before it begins")
        return Side(text, "steps", job=own, first_step=first, last_step=last)
    if day is not None:
        return Side(text, "window", job=own, begin=day, end=day + timedelta(days=1))
    begin, _, end = text.partition("..")
    return Side(text, "window", job=own, begin=_moment(begin), end=_moment(end))


def _known(wrong: str, labels: Labels) -> str:
    close = difflib.get_close_matches(wrong, labels, n=1)
    return f"did you mean {close[0]}?" if close else f"jobs: {_listed(labels) or 'none named'}"


def _listed(labels: Labels) -> str:
    named = list(labels)
    more = f" and {len(named) - _MOST_NAMES:,} more" if len(named) > _MOST_NAMES else ""
    return f"{', '.join(named[:_MOST_NAMES])}{more}"


def _own_job(jobs: Sequence[str | None], labels: Labels) -> str | None:
    if len(jobs) > 1:
        raise SideError(f"the store holds several jobs: give --job, one of {_listed(labels)}")
    return jobs[0] if jobs else None


def _moment(text: str) -> datetime | None:
    """Return a time in UTC without a zone; None where a window is open."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise SideError(f"{text}: no time; a side is {_FORMS}") from error
    return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)


def _resolved(side: Side, asker: Asker) -> Side:
    """Return the side with the steps and times it covers; of a job without its first steps."""
    span = asker.frame("span", side).row(0, named=True)
    if side.kind == "job" and span["steps"] > 2 * WARM_UP_STEPS:
        warm = replace(side, first_step=span["first_step"] + WARM_UP_STEPS)
        span = asker.frame("span", warm).row(0, named=True)
    if side.kind == "steps" and not span["steps"]:
        raise SideError(f"{side.text}: the store has none of these steps")
    filled = replace(side, **span)
    if filled.begin is not None and filled.end is not None and filled.begin >= filled.end:
        raise SideError(f"{side.text}: it ends before it begins")
    return filled


def _check_apart(a: Side, b: Side) -> None:
    """Raise SideError if the sides share data: what is on both sides cannot have changed."""
    if a.job != b.job:
        return
    if None not in (a.first_step, a.last_step, b.first_step, b.last_step):
        shared = a.first_step <= b.last_step and b.first_step <= a.last_step  # type: ignore[operator]
    elif None not in (a.begin, a.end, b.begin, b.end):
        shared = a.begin < b.end and b.begin < a.end  # type: ignore[operator]
    else:
        shared = a == b
    if shared:
        raise SideError(f"{a.text} and {b.text} overlap: compare what is apart")
