"""What changed between two sides: steps, collectives, counters, uplinks, ranks, NCCL."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from fabricobs.diagnosis.change import Change, Drift, Occurrence, Pair, judge
from fabricobs.diagnosis.sides import Asker, Side, parsed_sides, resolved_sides
from fabricobs.diagnosis.statistics import Array
from fabricobs.notebook import percent, table
from fabricobs.store.session import NO_SITE, Site, open_session, runs_of

STEPS, COLLECTIVES, COUNTERS, UPLINKS, HOSTS, RANKS, ERRORS = (
    "steps", "collectives", "counters", "uplinks", "hosts", "ranks", "errors",
)  # fmt: skip

_STEP_MEASURES = (
    ("step_time_ms", "step time"),
    ("compute_ms", "computation, median rank"),
    ("longest_compute_ms", "computation, slowest rank"),
    ("exposed_comm_ms", "exposed communication, transfer alone"),
    ("comm_ms", "exposed communication, median rank"),
    ("data_ms", "wait for data, median rank"),
)
_COUNTERS = (
    ("pause_share", "time paused (PFC)", "share"),
    ("pause_rx_frames", "pause frames received", "/s a port"),
    ("pause_tx_frames", "pause frames sent", "/s a port"),
    ("ecn_marked", "packets marked (ECN)", "/s a queue"),
    ("ecn_received", "marked packets received (ECN)", "/s a port"),
    ("cnp_sent", "congestion notifications sent (CNP)", "/s a port"),
    ("cnp_handled", "congestion notifications handled (CNP)", "/s a port"),
)
_KIND = ["op", "bytes", "nranks"]
_MOST_KINDS = 12


@dataclass(frozen=True, slots=True)
class Setting:
    """What NCCL says of two jobs under one name: the values only A has, and only B has."""

    name: str
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two sides, what was compared, what is set differently, and what nobody measured."""

    a: Side
    b: Side
    changes: tuple[Change, ...]
    settings: tuple[Setting, ...]
    missing: tuple[str, ...]
    drift: tuple[Drift, ...] = ()

    def _repr_html_(self) -> str:
        changes = [
            (c.group, c.name, c.a, c.b, c.unit, percent(c.shift), c.answer) for c in self.changes
        ]
        other = [
            *(("setting", s.name, ", ".join(s.only_a), ", ".join(s.only_b)) for s in self.settings),
            *((d.kind, f"{d.part} {d.name}", d.before, d.after) for d in self.drift),
        ]
        sides = self.a.text, self.b.text
        shown = table(("group", "number", *sides, "unit", "change", "answer"), changes)
        return shown + (table(("what", "name", *sides), other) if other else "")

    def of_group(self, group: str) -> list[Change]:
        """Return the comparisons of one group, changes first, the largest first."""
        own = [change for change in self.changes if change.group == group]
        return sorted(own, key=lambda c: (not is_change(c), -abs(c.effect or 0.0)))

    @property
    def step_time(self) -> Change | None:
        """Return the comparison of the step time, None where there are no steps."""
        first = _STEP_MEASURES[0][1]
        return next((c for c in self.changes if (c.group, c.name) == (STEPS, first)), None)


def is_change(change: Change) -> bool:
    """Say whether the answer is that something changed."""
    return change.answer in {"higher", "lower"}


def compare(
    a: str,
    b: str,
    store: Path,
    job: str | None = None,
    extra: Sequence[Path] = (),
    *,
    site: Site = NO_SITE,
) -> Comparison:
    """Compare two jobs, windows or step ranges of a store; SideError where a side is none.

    `job` is whose windows and steps are meant, where the store holds several.
    """
    runs = runs_of(store)
    # A wrong side is told before the views are worked out.
    with open_session(store, Asker.sql_of("jobs", extra), extra, runs=runs) as connection:
        jobs = Asker(connection, extra).frame("jobs")["job"].to_list()
    # A job that no log names is listed by the name of its folder.
    names = {run.name: run.label for run in runs if run.label in jobs}
    written = parsed_sides(a, b, job, {**names, **{name: name for name in jobs if name}}, jobs)
    with open_session(store, extra=extra, keep=True, site=site, runs=runs) as connection:
        asker = Asker(connection, extra)
        sides = resolved_sides(written, asker)
        pairs = [
            *_of_steps(sides, asker),
            *_of_collectives(sides, asker),
            *_of_counters(sides, asker),
            *_of_uplinks(sides, asker),
            *_of_ranks(sides, asker),
        ]
        occurrences = list(_of_errors(sides, asker))
        counted = any(len(asker.frame("errors", side)) for side in sides)
        settings = tuple(_settings(sides, asker)) if sides[0].job != sides[1].job else ()
        drift = tuple(Drift(*row) for row in asker.frame("drift", *sides).rows())
    changes = tuple(judge(pairs, occurrences))
    return Comparison(*sides, changes, settings, tuple(_missing(changes, counted)), drift)


def _missing(changes: Sequence[Change], counted: bool) -> Iterator[str]:
    seen = {(change.group, change.name) for change in changes}
    for _, name in _STEP_MEASURES:
        if (STEPS, name) not in seen:
            yield name
    groups = {group for group, _ in seen}
    if COLLECTIVES not in groups:
        yield "collectives of one kind and size on both sides"
    for _, name, _ in _COUNTERS:
        if (COUNTERS, name) not in seen:
            yield name
    if UPLINKS not in groups:
        yield "balance of uplinks"
    if RANKS not in groups:
        yield "computation by rank"
    if not counted:
        yield "error counters"


def _of_steps(sides: tuple[Side, Side], asker: Asker) -> Iterator[Pair]:
    a, b = (asker.frame("steps", side) for side in sides)
    for column, name in _STEP_MEASURES:
        yield from _pair(STEPS, name, "ms", _values(a, column), _values(b, column))


def _of_collectives(sides: tuple[Side, Side], asker: Asker) -> Iterator[Pair]:
    """Pair the kinds of collectives both sides have, those most time is spent in.

    Bus bandwidth is compared by operation over the largest messages of each side, so that jobs of
    different sizes can be compared too.
    """
    a, b = (asker.frame("collectives", side) for side in sides)
    for op, bytes_, nranks in _kinds(a, b):
        kind = (
            (pl.col("op") == op)
            & pl.col("bytes").eq_missing(bytes_)
            & pl.col("nranks").eq_missing(nranks)
        )
        of_kind = a.filter(kind), b.filter(kind)
        name = f"{op} of {_size(bytes_)} over {nranks} ranks"
        for column, what in (("pure_us", "transfer"), ("wait_us", "mean wait")):
            values = (_values(frame, column) for frame in of_kind)
            yield from _pair(COLLECTIVES, f"{name}, {what}", "us", *values)
    for op in sorted(set(a["op"]) & set(b["op"])):
        largest = (_largest(frame.filter(pl.col("op") == op)) for frame in (a, b))
        values = (_values(frame, "busbw_gbytes_per_s") for frame in largest)
        yield from _pair(COLLECTIVES, f"{op}, bus bandwidth of the largest", "GB/s", *values)


def _kinds(a: pl.DataFrame, b: pl.DataFrame) -> list[tuple[str, int | None, int | None]]:
    spent_a, spent_b = (f.group_by(_KIND).agg(pl.col("pure_us").sum()) for f in (a, b))
    shared = spent_a.join(spent_b, on=_KIND, nulls_equal=True)
    longest = shared.sort(
        pl.col("pure_us") + pl.col("pure_us_right"), *_KIND, descending=[True, False, False, False]
    )
    return longest.head(_MOST_KINDS).select(_KIND).rows()


def _largest(calls: pl.DataFrame) -> pl.DataFrame:
    return calls.filter(pl.col("bytes").eq_missing(pl.col("bytes").max()))


def _of_counters(sides: tuple[Side, Side], asker: Asker) -> Iterator[Pair]:
    a, b = (asker.frame("counters", side) for side in sides)
    for counter, name, unit in _COUNTERS:
        values = (_values(f.filter(pl.col("counter") == counter), "rate") for f in (a, b))
        yield from _pair(COUNTERS, name, unit, *values)


def _of_uplinks(sides: tuple[Side, Side], asker: Asker) -> Iterator[Pair]:
    a, b = (asker.frame("uplinks", side) for side in sides)
    for group in sorted({*a["uplink_group"], *b["uplink_group"]}):
        values = (
            _values(f.filter(pl.col("uplink_group") == group), "top_half_share") for f in (a, b)
        )
        yield from _pair(UPLINKS, f"{group}, busier half", "share", *values)


def _of_ranks(sides: tuple[Side, Side], asker: Asker) -> Iterator[Pair]:
    """Pair the computation of each host and rank, as a ratio to its peers at the same step.

    A host's is the median of its ranks. One that only one side has is not compared.
    """
    a, b = (asker.frame("ranks", side) for side in sides)
    by_host = [
        f.drop_nulls("host").group_by("host", "step").agg(pl.col("ratio").median()) for f in (a, b)
    ]
    for group, column, of_both in ((HOSTS, "host", by_host), (RANKS, "rank", [a, b])):
        first, second = (_by_name(frame, column) for frame in of_both)
        for name in sorted(first.keys() & second.keys()):
            label = name if group == HOSTS else f"rank {name}"
            yield from _pair(group, f"{label}", "x peers", first[name], second[name])


def _by_name(frame: pl.DataFrame, column: str) -> dict[str | int, Array]:
    parts = frame.partition_by(column, as_dict=True)
    return {name: _values(part, "ratio") for (name,), part in parts.items()}


def _of_errors(sides: tuple[Side, Side], asker: Asker) -> Iterator[Occurrence]:
    """Pair the ports that counted errors on either side; without any there is nothing to test."""
    key = ["device", "port", "counter"]
    a, b = (asker.frame("errors", side) for side in sides)
    both = a.join(b, on=key, how="full", coalesce=True, nulls_equal=True).sort(key)
    counts = ("intervals_with_rise", "intervals", "risen")
    for row in both.fill_null(0).iter_rows(named=True):
        before = [row[column] for column in counts]
        after = [row[f"{column}_right"] for column in counts]
        if before[0] or after[0]:
            name = f"{row['device']} {row['port']} {row['counter']}"
            yield Occurrence(ERRORS, name, *before, *after)


def _settings(sides: tuple[Side, Side], asker: Asker) -> Iterator[Setting]:
    a, b = (
        {
            name: set(own["value"])
            for (name,), own in frame.partition_by("name", as_dict=True).items()
        }
        for frame in (asker.frame("settings", side) for side in sides)
    )
    for name in sorted(a.keys() | b.keys()):
        first, second = a.get(name, set()), b.get(name, set())
        if first != second:
            yield Setting(name, tuple(sorted(first - second)), tuple(sorted(second - first)))


def _pair(group: str, name: str, unit: str, a: Array, b: Array) -> Iterator[Pair]:
    """Yield the pair, unless neither side measured it."""
    if len(a) or len(b):
        yield Pair(group, name, unit, a, b)


def _values(frame: pl.DataFrame, column: str) -> Array:
    return frame[column].drop_nulls().to_numpy().astype(np.float64)


def _size(bytes_: int | None) -> str:
    if bytes_ is None:
        return "unknown size"
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if bytes_ >= size:
            return f"{bytes_ / size:.4g} {unit}"
    return f"{bytes_} B"
