"""Hangs: ranks wait in a collective that never ends, for one that never called it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import polars as pl

from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.finding_builder import driver, refutations_of, steps_of
from fabricobs.diagnosis.findings import (
    Driver,
    Entity,
    Finding,
    MethodResult,
    confidence_of,
    severity_of_loss,
)
from fabricobs.diagnosis.job import StepTimeTrend
from fabricobs.diagnosis.model import Model
from fabricobs.diagnosis.name_lists import enumerated

_SHOWN = 3
_TOGETHER = timedelta(minutes=1)  # of one collective: watchdogs look every second


@dataclass(frozen=True, slots=True)
class _Stall:
    """A job that stands still: who waits, who is missing, since when and how long (s) it waited."""

    job: str | None
    waiting: pl.DataFrame
    missing: pl.DataFrame
    by_progress: bool  # the recorders show that the missing ranks are behind
    stuck: bool  # the missing ranks launched what their peers have ended; no watchdog says more
    start: datetime | None
    last_step: int | None
    waited: float
    taken_down: int  # ranks whose watchdog ended their process


def find_hangs(evidence: Evidence, model: Model, trends: Sequence[StepTimeTrend]) -> MethodResult:
    """Return one finding a job that stands still; a unit is a job.

    A job that merely ended leaves no rank waiting: without a watchdog that gave up, a process that
    NCCL calls dead, or ranks that end less than their peers, nothing is found, and nothing is
    called well either.
    """
    findings: list[Finding] = []
    stalls = evidence.frame("stalls")
    jobs = stalls.partition_by("job", maintain_order=True)
    judged = 0
    for rows in jobs:
        told = rows.filter(pl.col("timed_out") | pl.col("dead") | pl.col("behind").is_not_null())
        judged += not told.is_empty()
        stall = _stall(rows, model, evidence)
        if stall is not None:
            findings.append(_finding(stall, len(rows), model, evidence))
    return MethodResult(tuple(findings), judged, len(jobs) - judged)


def _stall(rows: pl.DataFrame, model: Model, evidence: Evidence) -> _Stall | None:
    waiting, dead = rows.filter("timed_out"), rows.filter("dead")
    stuck = rows.filter(pl.col("unfinished") >= model.limit("unfinished"))
    told_by_recorders = waiting.is_empty() and dead.is_empty()
    if told_by_recorders:
        if stuck.is_empty():
            return None
        waiting = rows.filter("open").join(stuck, on="rank", how="anti")
    # The rank nobody waits for is where the chain ends: behind, and itself waiting in nothing.
    behind = rows.filter((pl.col("behind") > 0) & ~pl.col("open") & ~pl.col("timed_out"))
    silent = rows.filter(~pl.col("timed_out") & ~pl.col("open").fill_null(False))
    job = rows["job"][0]
    told = (behind, dead, silent, _without_logs(rows, _size_of(job, evidence)))
    missing = next((part for part in told if len(part)), silent)
    if told_by_recorders:
        missing = stuck
    start, last_step = _last_step(job, evidence)
    called = waiting["called_at"].min()
    waited = waiting["waited_ms"].median()
    return _Stall(
        job=job,
        waiting=waiting,
        missing=missing,
        by_progress=bool(len(behind) or len(dead)),
        stuck=told_by_recorders,
        start=start or (called if isinstance(called, datetime) else None),
        last_step=last_step,
        waited=float(waited) / 1000 if isinstance(waited, float) else 0.0,
        taken_down=int(rows["taken_down"].sum()),
    )


def _without_logs(rows: pl.DataFrame, size: int) -> pl.DataFrame:
    """Return the ranks that no log shows although those of lower and higher numbers do."""
    known = set(rows["rank"].to_list())
    absent = [rank for rank in range(max(size, max(known) + 1)) if rank not in known]
    numbers = pl.DataFrame({"rank": absent}, schema={"rank": rows.schema["rank"]})
    return pl.concat([rows.clear(), numbers], how="diagonal")


def _size_of(job: str | None, evidence: Evidence) -> int:
    """Return the number of ranks that a log tells, 0 if none does."""
    sizes = evidence.frame("job_sizes").filter(pl.col("job").eq_missing(pl.lit(job)))
    size = sizes["ranks_expected"].drop_nulls().max()
    return size if isinstance(size, int) else 0


def _last_step(job: str | None, evidence: Evidence) -> tuple[datetime | None, int | None]:
    steps = evidence.frame("job_steps").filter(pl.col("job").eq_missing(pl.lit(job)))
    steps = steps.sort("step")
    return (None, None) if steps.is_empty() else (steps["ts"][-1], int(steps["step"][-1]))


def _culprits(stall: _Stall, ranks: int, model: Model) -> tuple[Entity, ...]:
    """The missing ranks, their host if they are all of one, or the job where they are too many."""
    missing = stall.missing
    if missing.is_empty() or len(missing) > model.limit("most_missing") * ranks:
        return (Entity("job", job=stall.job),)
    hosts = missing["host"].unique().drop_nulls()
    if len(missing) > 1 and len(hosts) == 1 and missing["host"].null_count() == 0:
        return (Entity("host", host=hosts[0], job=stall.job),)
    return tuple(
        Entity("rank", rank=rank, host=host, job=stall.job)
        for rank, host in missing.select("rank", "host").iter_rows()
    )


def _pid(stall: _Stall) -> str:
    """Return the process of the first missing rank, PID where no log tells it."""
    pid = stall.missing["pid"][0] if len(stall.missing) else None
    return "PID" if pid is None else str(pid)


def _finding(stall: _Stall, ranks: int, model: Model, evidence: Evidence) -> Finding:
    culprits = _culprits(stall, ranks, model)
    named = culprits[0].type != "job"
    end = _end_of(stall)
    who = enumerated([culprit.label for culprit in culprits[:3]]) if named else "The job"
    words = {
        "who": who,
        "host": culprits[0].host or "the hosts",
        "process": culprits[0].label if named else "each rank",
        "pid": _pid(stall) if named and not stall.taken_down else "PID",
        "stands": _stands(stall, named=named),
        "since": "" if stall.last_step is None else f" after step {stall.last_step}",
        "log": _log_of(stall) if named else "",
        "when": "" if stall.start is None else f" (from {stall.start:%H:%M:%S} UTC on)",
        "waiting": len(stall.waiting),
        "ranks": _ranks_of(stall.job, ranks, evidence),
        "call": _calls(stall.waiting),
        "gave_up": _gave_up(stall),
        "proof": _proof(stall, who, named=named),
        "no_progress": None if stall.by_progress or stall.stuck else "",
        "ended": _ended(stall),
    }
    families = {"log"} | (
        {"timing"} if stall.by_progress and stall.last_step is not None else set()
    )
    waits = driver(
        model, "most_missing", "share of the ranks missing", round(len(stall.missing) / ranks, 3)
    )
    return Finding(
        kind=model.kind,
        entities=culprits,
        severity=severity_of_loss(1.0),
        confidence=confidence_of(families) if named and not stall.stuck else 0.5,
        families=tuple(sorted(families)),
        title=model.wording.title.format(**words),
        explanation=model.wording.explanation.format(**words),
        start=stall.start,
        end=end,
        start_step=None if stall.last_step is None else stall.last_step + 1,
        end_step=None if stall.last_step is None else stall.last_step + 1,
        detected_at=end,
        loss_share=1.0,
        drivers=(waits, *_progress_driver(stall)),
        query=model.query,
        refuted_by=refutations_of(model, words),
        next_steps=steps_of(model, words),
        to_its_end=stall.taken_down > 0,
        after_step=stall.last_step,
    )


def _end_of(stall: _Stall) -> datetime | None:
    """Return when the last watchdog gave up, else when that was due; None without a time.

    What a clock far from the others tells is left out.
    """
    due = None if stall.start is None else stall.start + timedelta(seconds=stall.waited)
    told: list[datetime] = sorted(stall.waiting["gave_up_at"].drop_nulls())
    if not told:
        return due
    usual = told[len(told) // 2]
    return max(time for time in told if time <= usual + _TOGETHER)


def _ranks_of(job: str | None, seen: int, evidence: Evidence) -> str:
    """Return the number of ranks: of the job if a log tells it, else of those that tell."""
    size = _size_of(job, evidence)
    if size:
        return _counted(max(size, seen))
    return f"{_counted(seen)} that tell{'s' if seen == 1 else ''}"


def _calls(waiting: pl.DataFrame) -> str:
    """Return the collectives the ranks wait in, with their ranks where there are several."""
    named = waiting.drop_nulls(["op", "seq"])
    calls = named.group_by("op", "seq").len().sort(["len", "seq"], descending=[True, False])
    if calls.is_empty():
        return "a collective"
    told = [f"{op} {seq}" for op, seq, _ in calls.iter_rows()]
    if len(told) > 1 or len(named) < len(waiting):
        told = [f"{call} ({_counted(n)})" for call, n in zip(told, calls["len"], strict=True)]
    more = f" and {len(told) - _SHOWN} more" if len(told) > _SHOWN else ""
    return f"{', '.join(told[:_SHOWN])}{more}"


def _counted(ranks: int) -> str:
    return "1 rank" if ranks == 1 else f"{ranks:,} ranks"


def _log_of(stall: _Stall) -> str:
    """Return the file in which the first missing rank logs; empty where none tells."""
    log = stall.missing["log"][0] if len(stall.missing) else None
    return "" if log is None else f" in {log}"


def _stands(stall: _Stall, *, named: bool) -> str:
    if not named:
        return "stands still"
    if stall.stuck:
        return "is stuck" if len(stall.missing) == 1 else "are stuck"
    if stall.by_progress:
        return "is missing" if len(stall.missing) == 1 else "are missing"
    return "stopped reporting"


def _gave_up(stall: _Stall) -> str:
    if stall.stuck:
        return "No watchdog reports a time-out."
    who, call = _counted(len(stall.waiting)), _calls(stall.waiting)
    return f"{who} timed out (watchdog) after {stall.waited:.0f} s in {call}."


def _ended(stall: _Stall) -> str:
    if not stall.taken_down:
        return ""
    ended = _counted(stall.taken_down)
    return f" The watchdog ended the processes of {ended}: the job is over."


def _proof(stall: _Stall, who: str, *, named: bool) -> str:
    one = len(stall.missing) == 1
    if stall.stuck:
        told = ", ".join(
            f"rank {rank} {count:,.0f}"
            for rank, count in stall.missing.select("rank", "unfinished").iter_rows()
        )
        return (
            "By the flight recorders collectives that peers have ended are launched and not ended: "
            f"{told}. A GPU that does not finish them blocks its groups."
        )
    if not named:
        return "Which rank is missing these logs do not tell: look at network and GPUs."
    if stall.by_progress:
        return (
            f"By sequence numbers {who} {'was' if one else 'were'} behind the group, "
            "and waited for no collective."
        )
    own = "its own watchdog" if one else "their own watchdogs"
    return f"{who} alone reported nothing: {own} did not time out."


def _progress_driver(stall: _Stall) -> tuple[Driver, ...]:
    behind = stall.missing["behind"].max()
    if not isinstance(behind, int):
        return ()
    source = "The chain of waiting ends at the rank that waits in nothing (arXiv 2509.03018)"
    return (Driver("collectives behind its group", behind, 0, "", None, None, source),)
