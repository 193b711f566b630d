"""Hangs: ranks wait in a collective that never ends, for one that never called it."""

from collections.abc import Sequence
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
from fabricobs.diagnosis.methods.stall import Stall, is_told, stall_of
from fabricobs.diagnosis.methods.stall_words import words_of
from fabricobs.diagnosis.model import Model

_TOGETHER = timedelta(minutes=1)  # of one collective: watchdogs look every second
_DOUBTFUL = 0.5  # where a rank is named by what may have another reason, or sources disagree


def find_hangs(evidence: Evidence, model: Model, trends: Sequence[StepTimeTrend]) -> MethodResult:
    """Return one finding a job that stands still; a unit is a job.

    A job that merely ended leaves no rank waiting: without a watchdog that gave up, a process that
    NCCL calls dead, counts of RAS that stay, or ranks that end less than their peers, nothing is
    found, and nothing is called well either.
    """
    findings: list[Finding] = []
    jobs = evidence.frame("stalls").partition_by("job", maintain_order=True)
    judged = 0
    for rows in jobs:
        judged += is_told(rows)
        size = _size_of(rows["job"][0], evidence)
        stall = stall_of(rows, size, model, evidence)
        if stall is not None:
            findings.append(_finding(stall, _ranks_in(rows), size, model))
    return MethodResult(tuple(findings), judged, len(jobs) - judged)


def _ranks_in(rows: pl.DataFrame) -> int:
    """Return the number of ranks that tell something, or that RAS counts; else of processes."""
    counted = rows["ras_members"].max()
    known = rows["rank"].drop_nulls().len() or len(rows)
    return max(known, counted) if isinstance(counted, int) else known


def _size_of(job: str | None, evidence: Evidence) -> int:
    """Return the number of ranks that a log tells, 0 if none does."""
    sizes = evidence.frame("job_sizes").filter(pl.col("job").eq_missing(pl.lit(job)))
    size = sizes["ranks_expected"].drop_nulls().max()
    return size if isinstance(size, int) else 0


def _culprits(stall: Stall, ranks: int, model: Model) -> tuple[Entity, ...]:
    """The missing ranks, their host if they are all of one, or the job where they are too many."""
    missing = stall.missing
    if missing.is_empty() or len(missing) > model.limit("most_missing") * ranks:
        return (Entity("job", job=stall.job),)
    hosts = missing["host"].unique().drop_nulls()
    if len(missing) > 1 and len(hosts) == 1 and missing["host"].null_count() == 0:
        return (Entity("host", host=hosts[0], job=stall.job),)
    return tuple(
        Entity("rank", rank=rank, host=host, pid=pid if rank is None else None, job=stall.job)
        for rank, host, pid in missing.select("rank", "host", "pid").iter_rows()
    )


def _finding(stall: Stall, ranks: int, size: int, model: Model) -> Finding:
    culprits = _culprits(stall, ranks, model)
    named = culprits[0].type != "job"
    end = _end_of(stall)
    words = words_of(stall, culprits, ranks, size)
    families = {"log"} | (
        {"timing"} if stall.by_progress and stall.last_step is not None else set()
    )
    sure = named and not stall.stuck and not stall.others and stall.source != "stack"
    waits = driver(
        model, "most_missing", "share of the ranks missing", round(len(stall.missing) / ranks, 3)
    )
    return Finding(
        kind=model.kind,
        entities=culprits,
        severity=severity_of_loss(1.0),
        confidence=confidence_of(families) if sure else _DOUBTFUL,
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


def _end_of(stall: Stall) -> datetime | None:
    """Return when the last watchdog gave up, else when that was due; None without a time.

    Without a watchdog it is the last report of RAS. What a clock far from the others tells is left
    out.
    """
    due = None if stall.start is None else stall.start + timedelta(seconds=stall.waited)
    if not stall.waited and stall.seen_at is not None:
        due = stall.seen_at if due is None else max(due, stall.seen_at)
    told: list[datetime] = sorted(stall.waiting["gave_up_at"].drop_nulls())
    if not told:
        return due
    usual = told[len(told) // 2]
    return max(time for time in told if time <= usual + _TOGETHER)


def _progress_driver(stall: Stall) -> tuple[Driver, ...]:
    behind = stall.missing["behind"].max()
    if not isinstance(behind, int):
        behind = stall.missing["ras_behind"].max()
    if not isinstance(behind, int):
        return ()
    source = "The chain of waiting ends at the rank that waits in nothing (arXiv 2509.03018)"
    return (Driver("collectives behind its group", behind, 0, "", None, None, source),)
