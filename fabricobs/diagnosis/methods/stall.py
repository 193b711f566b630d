"""A job that stands still: who waits, whom each source names as missing, and what follows.

Flight recorders, watchdogs, NCCL's RAS and Python stacks each tell a part, and none tells all: RAS
counts what was launched, a recorder also what ended, a stack where the program is. Each names
ranks by itself; the finding follows the best of them and says which of the others agree.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

import polars as pl

from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.model import Model

# What names the missing ranks, the best first. `recorder`: behind, and waiting in nothing; `order`:
# in another collective than its peers; `dead`: without a process; `ras`: behind by RAS; `gpu`:
# launched, and not begun by its GPU; `stack`: where the others wait, elsewhere; `silence`: without
# the time-out that the others report; `no_log`: without any log. `unfinished` stands alone:
# launched and not ended what peers have ended, where nobody says who waits.
Source = Literal[
    "recorder", "order", "dead", "ras", "gpu", "stack", "silence", "no_log", "unfinished"
]
# Sources that show a rank, and not merely miss it.
_SHOWN: tuple[Source, ...] = ("recorder", "order", "dead", "ras", "gpu", "stack")
# What a program does, in the words of the view `stack_places`.
LOADS = "loading data"
SAVES = "in checkpoint I/O"
_BESIDE = timedelta(minutes=1)  # of the clocks of a report and of the steps


@dataclass(frozen=True, slots=True)
class Stall:
    """A job that stands still: who waits, who is missing, since when and how long (s) it waited.

    Frames have the columns of `evidence.stalls`.
    """

    job: str | None
    waiting: pl.DataFrame
    missing: pl.DataFrame
    nameless: pl.DataFrame  # processes with a stack whose rank nothing tells
    source: Source
    agree: tuple[Source, ...]  # other sources that name one of the missing ranks
    others: Mapping[Source, pl.DataFrame]  # sources that name none of them, with whom they name
    unplaced: pl.DataFrame  # processes that RAS counts behind where ranks are missing
    start: datetime | None
    last_step: int | None
    waited: float
    seen_at: (
        datetime | None
    )  # the last report that shows it, where no watchdog says when it gave up
    taken_down: int  # ranks whose watchdog ended their process

    @property
    def by_progress(self) -> bool:
        """Say whether something shows the missing ranks to be behind."""
        return self.source in {"recorder", "dead", "ras", "order", "stack"}

    @property
    def stuck(self) -> bool:
        """Say whether the missing ranks have launched what their GPUs do not do."""
        return self.source in {"gpu", "unfinished"}


def stall_of(rows: pl.DataFrame, size: int, model: Model, evidence: Evidence) -> Stall | None:
    """Return how a job stands still, None where nothing tells that it does."""
    job = rows["job"][0]
    ended, last_step, longest_ms = _steps(job, evidence)
    rows = _without_stale_counts(rows, ended)
    named = _named(rows, size, model)
    waits = rows.filter("timed_out")
    told = not waits.is_empty() or not named["dead"].is_empty()
    if not told and not _stands_by_counts(rows, longest_ms, model):
        if named["unfinished"].is_empty():
            return None
        named = {"unfinished": named["unfinished"]}
    else:
        del named["unfinished"]
    source = _best(named, model.limit("most_missing") * len(rows))
    missing = named.get(source, rows.clear())
    numbered = "ras" in named and not missing.is_empty() and not missing["rank"].null_count()
    agree, others = _compared(named, source, missing)
    waiting = waits if len(waits) else _waiting(rows, missing)
    called = waiting["called_at"].min()
    waited = waiting["waited_ms"].median()
    seen = rows.filter(pl.col("ras_behind") > 0)["ras_ts"].max()
    return Stall(
        job=job,
        waiting=waiting,
        missing=missing,
        nameless=rows.filter(pl.col("rank").is_null() & pl.col("function").is_not_null()),
        source=source,
        agree=agree,
        others=others,
        unplaced=named["ras"].filter(pl.col("rank").is_null()) if numbered else rows.clear(),
        start=ended or (called if isinstance(called, datetime) else None),
        last_step=last_step,
        waited=float(waited) / 1000 if isinstance(waited, float) else 0.0,
        seen_at=seen if isinstance(seen, datetime) else None,
        taken_down=int(rows["taken_down"].sum()),
    )


def _named(rows: pl.DataFrame, size: int, model: Model) -> dict[Source, pl.DataFrame]:
    """Return whom each source names as missing, the best source first."""
    return {
        "recorder": _behind_by_recorder(rows),
        "order": _in_another_call(rows),
        "dead": rows.filter("dead"),
        "ras": _behind_by_ras(rows),
        "gpu": _not_begun(rows),
        "stack": _elsewhere_by_stack(rows, model.limit("most_missing")),
        "silence": _silent(rows),
        "no_log": _without_logs(rows, size),
        "unfinished": rows.filter(pl.col("unfinished") >= model.limit("unfinished")),
    }


def _best(named: Mapping[Source, pl.DataFrame], most: float) -> Source:
    """Return the best source that names somebody.

    A rank that is silent comes before a process that is behind and whose rank nothing tells.
    """
    telling: list[Source] = [source for source, ranks in named.items() if len(ranks)]
    numbered = [source for source in telling if not named[source]["rank"].null_count()]
    if not telling:
        return "silence"
    known = numbered[0] if numbered else telling[0]
    return known if len(named[known]) <= most else telling[0]


def is_told(rows: pl.DataFrame) -> bool:
    """Say whether the files tell if the job stands still: one report of RAS does not."""
    told = pl.col("timed_out") | pl.col("dead") | pl.col("behind").is_not_null()
    return not rows.filter(told | (pl.col("ras_reports") > 1)).is_empty()


def _steps(job: str | None, evidence: Evidence) -> tuple[datetime | None, int | None, float | None]:
    """Return when the last step ended, its number, and the longest time from end to end (ms)."""
    steps = evidence.frame("job_steps").filter(pl.col("job").eq_missing(pl.lit(job))).sort("step")
    if steps.is_empty():
        return None, None, None
    longest = steps["ts"].drop_nulls().sort().diff().dt.total_milliseconds().max()
    return steps["ts"][-1], int(steps["step"][-1]), _number(longest)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _without_stale_counts(rows: pl.DataFrame, ended: datetime | None) -> pl.DataFrame:
    """Leave out what RAS counted before the last step: the ranks have gone on since."""
    if ended is None:
        return rows
    stale = (pl.col("ras_ts") < ended - _BESIDE) & ~(pl.col("unchanged_s") > 0).fill_null(False)
    gone = stale.fill_null(False)
    counts = ("ras_behind", "ras_leads", "unchanged_s", "after_steps_s")
    return rows.with_columns(
        *(pl.when(gone).then(None).otherwise(pl.col(name)).alias(name) for name in counts),
        pl.when(gone).then(False).otherwise(pl.col("ras_odd")).alias("ras_odd"),
    )


def _stands_by_counts(rows: pl.DataFrame, longest_ms: float | None, model: Model) -> bool:
    """Say whether RAS alone shows that nothing goes on: one snapshot of a sound job differs, too.

    The counts stay for as long as a watchdog waits, or for several times the longest step so far,
    which a rank that writes a checkpoint takes, too; or the steps ended as long before the report.
    """
    behind = rows.filter(pl.col("ras_behind") > 0)
    if behind.is_empty():
        return False
    unchanged = _number(behind["unchanged_s"].max()) or 0.0
    after_steps = _number(behind["after_steps_s"].max()) or 0.0
    still = model.limit("still")
    if max(unchanged, after_steps) >= still:
        return True
    saves = not behind.filter(pl.col("doing") == SAVES).is_empty()
    usual = still if longest_ms is None or saves else model.limit("longest") * longest_ms / 1000
    return unchanged >= max(usual, model.limit("least_still"))


def _behind_by_recorder(rows: pl.DataFrame) -> pl.DataFrame:
    """The rank nobody waits for is where the chain ends: behind, and itself waiting in nothing."""
    return rows.filter((pl.col("behind") > 0) & ~pl.col("open") & ~pl.col("timed_out"))


def _in_another_call(rows: pl.DataFrame) -> pl.DataFrame:
    """The ranks whose call differs from that of most: by the recorders, else by RAS's counts."""
    odd = rows.filter(pl.col("odd_op").is_not_null())
    if len(odd):
        return odd
    both = rows.filter("ras_odd")  # behind in one operation and ahead in another
    kinds = both.group_by("ras_comm", "ras_op").len().sort("len", "ras_op")
    if len(kinds) < 2 or 2 * kinds["len"][0] >= len(both):
        return rows.clear()
    return both.join(kinds.head(1), on=["ras_comm", "ras_op"], how="semi", nulls_equal=True)


def _behind_by_ras(rows: pl.DataFrame) -> pl.DataFrame:
    """Behind in a communicator and ahead in none, where it would wait."""
    last = rows.filter((pl.col("ras_behind") > 0) & (pl.col("ras_leads") == 0))
    calm = last.filter(~pl.col("timed_out"))
    return calm if len(calm) else last


def _not_begun(rows: pl.DataFrame) -> pl.DataFrame:
    """Its GPU has not begun what was launched and its peers' GPUs began, and is in no other."""
    return rows.filter((pl.col("not_begun") > 0) & ~pl.col("in_kernel"))


def _elsewhere_by_stack(rows: pl.DataFrame, most: float) -> pl.DataFrame:
    """The few whose program does not wait, where that of all others waits for them or the GPU."""
    known = rows.filter(pl.col("function").is_not_null())
    free = _silent(known)
    few = len(free) <= most * len(known)
    return free if few and len(known) > len(free) else rows.clear()


def _silent(rows: pl.DataFrame) -> pl.DataFrame:
    is_waiting = (
        pl.col("timed_out") | pl.col("open").fill_null(False) | pl.col("waits").fill_null(False)
    )
    return rows.filter(pl.col("rank").is_not_null() & ~is_waiting)


def _without_logs(rows: pl.DataFrame, size: int) -> pl.DataFrame:
    """Return the ranks that no log shows although those of lower and higher numbers do."""
    known = set(rows["rank"].drop_nulls().to_list())
    absent = [rank for rank in range(max(size, max(known, default=-1) + 1)) if rank not in known]
    numbers = pl.DataFrame({"rank": absent}, schema={"rank": rows.schema["rank"]})
    return pl.concat([rows.clear(), numbers], how="diagonal")


def _waiting(rows: pl.DataFrame, missing: pl.DataFrame) -> pl.DataFrame:
    """Return the ranks that wait without a time-out: in a call, ahead of others, or by stack."""
    waits = (
        pl.col("open").fill_null(False)
        | (pl.col("ras_leads") > 0).fill_null(False)
        | pl.col("waits").fill_null(False)
    )
    return rows.filter(waits).join(missing, on=["rank", "pid"], how="anti", nulls_equal=True)


def _compared(
    named: Mapping[Source, pl.DataFrame], source: Source, missing: pl.DataFrame
) -> tuple[tuple[Source, ...], dict[Source, pl.DataFrame]]:
    """Return the other sources that name a missing rank, and those that name other ranks instead.

    A stack contradicts only where it shows the missing rank to wait as its peers do.
    """
    agree: list[Source] = []
    others: dict[Source, pl.DataFrame] = {}
    for other, ranks in named.items():
        if other == source or other not in _SHOWN or ranks.is_empty():
            continue
        if len(ranks.join(missing, on=["rank", "pid"], how="semi", nulls_equal=True)):
            agree.append(other)
        elif _is_comparable(ranks, missing) and (other != "stack" or _any(missing, "waits")):
            others[other] = ranks
    return tuple(agree), others


def _is_comparable(ranks: pl.DataFrame, missing: pl.DataFrame) -> bool:
    """Say whether both name ranks, or both processes: which rank a process is nothing tells."""
    named = [frame["rank"].null_count() == 0 for frame in (ranks, missing)]
    return named[0] == named[1]


def _any(rows: pl.DataFrame, flag: str) -> bool:
    return bool(rows[flag].fill_null(False).any())
