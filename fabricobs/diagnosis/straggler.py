"""Stragglers: a rank that computes longer than its peers and arrives last, or its whole host.

The rank that arrives last has the SHORTEST collective time; the long ones are its victims.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import polars as pl

from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.findings import (
    Driver,
    Entity,
    Finding,
    Judgement,
    confidence_of,
    severity_of_loss,
)
from fabricobs.diagnosis.job import WARM_UP_STEPS
from fabricobs.diagnosis.model import Model
from fabricobs.diagnosis.statistics import change_points, robust_z

_FEWEST_PEERS = 4


@dataclass(frozen=True, slots=True)
class _Slow:
    """One rank's slow windows; times in ms."""

    job: str | None
    rank: int
    host: str | None
    windows: pl.DataFrame  # the flagged ones
    share: float  # of all windows


def find_stragglers(evidence: Evidence, model: Model) -> Judgement:
    """Return one finding a straggling rank, or one a host whose ranks straggle together.

    A unit is a rank: judged are those with peers over enough windows, none where the ranks of a
    stage fall into groups too far apart for a median to speak for all.
    """
    steps = evidence.frame("rank_steps").drop_nulls("compute_ms")
    ranks = _ranks(steps)
    steps = steps.filter(pl.col("step") > pl.col("step").min().over("job") + WARM_UP_STEPS - 1)
    if steps.is_empty():
        return Judgement(unjudged=ranks)
    scored = _score(_windows(steps, int(model.limit("window_steps"))))
    slow = _persistent(scored, model)
    findings = [
        _finding(members, steps, model, evidence) for members in _by_host(slow, steps, model)
    ]
    named = {(one.job, one.rank) for one in slow}
    judged = _judged(scored, named, model)
    return Judgement(tuple(findings), judged, ranks - judged)


def _ranks(rows: pl.DataFrame) -> int:
    return rows.select(pl.struct("job", "rank").n_unique()).item() if len(rows) else 0


def _judged(scored: pl.DataFrame, named: set[tuple[str | None, int]], model: Model) -> int:
    """Count the ranks with enough scored windows, in stages whose other ranks are alike."""
    judged = 0
    for stage in scored.partition_by("job", "stage"):
        rows = stage.group_by("job", "rank").agg(
            pl.len().alias("windows"), pl.col("excess").median()
        )
        rows = rows.filter(pl.col("windows") >= int(model.limit("least_windows")))
        others = [
            excess
            for job, rank, excess in rows.select("job", "rank", "excess").iter_rows()
            if (job, rank) not in named
        ]
        low, high = np.quantile(others, [0.1, 0.9]) if others else (0.0, 0.0)
        if high - low <= model.limit("excess"):
            judged += len(rows)
    return judged


def _windows(steps: pl.DataFrame, length: int) -> pl.DataFrame:
    """Take the median of each rank over windows of `length` recorded steps, the last half full."""
    position = pl.col("step").rank("dense").over("job") - 1
    return (
        steps.with_columns((position // length).alias("window"))
        .group_by("job", "stage", "window", "rank")
        .agg(
            pl.col("compute_ms").median(),
            pl.col("comm_ms").median(),
            pl.col("host").first(),
            pl.len().alias("steps"),
            pl.col("step").min().alias("first_step"),
            pl.col("step").max().alias("last_step"),
            pl.col("ts").min().alias("start"),
            pl.col("ts").max().alias("end"),
        )
        .filter(pl.col("steps") >= length / 2)
        .sort("job", "stage", "window", "rank")
    )


def _score(windows: pl.DataFrame) -> pl.DataFrame:
    """Add each rank's distance from the ranks of its stage in the same window."""
    peers = ["job", "stage", "window"]
    scored = []
    for group in windows.partition_by(peers, maintain_order=True):
        if len(group) < _FEWEST_PEERS:
            continue
        compute = group["compute_ms"].to_numpy().astype(np.float64)
        scored.append(
            group.with_columns(
                pl.Series("z", robust_z(compute)),
                (pl.col("compute_ms") / pl.col("compute_ms").median() - 1).alias("excess"),
                pl.col("compute_ms").median().alias("peer_ms"),
                pl.col("comm_ms").median().alias("peer_comm_ms"),
            )
        )
    return pl.concat(scored) if scored else windows.clear()


def _persistent(scored: pl.DataFrame, model: Model) -> list[_Slow]:
    """Keep ranks that stand out in enough consecutive windows."""
    if scored.is_empty():
        return []
    stands_out = (
        (pl.col("excess") > model.limit("excess"))
        & (pl.col("z") > model.limit("z"))
        & (pl.col("comm_ms").is_null() | (pl.col("comm_ms") < pl.col("peer_comm_ms")))
    )
    slow: list[_Slow] = []
    for rows in scored.with_columns(stands_out.alias("slow")).partition_by("job", "stage", "rank"):
        rows = rows.sort("window")
        if _longest_run(rows["slow"].to_list()) >= int(model.limit("least_windows")):
            flagged = rows.filter(pl.col("slow"))
            slow.append(
                _Slow(
                    job=rows["job"][0],
                    rank=int(rows["rank"][0]),
                    host=rows["host"][0],
                    windows=flagged,
                    share=len(flagged) / len(rows),
                )
            )
    return slow


def _longest_run(flags: list[bool]) -> int:
    longest = run = 0
    for flag in flags:
        run = run + 1 if flag else 0
        longest = max(longest, run)
    return longest


def _by_host(slow: list[_Slow], steps: pl.DataFrame, model: Model) -> list[list[_Slow]]:
    """Put the ranks of one host together if most of that host's ranks are slow."""
    ranks_of = {
        (job, host): ranks
        for job, host, ranks in steps.group_by("job", "host")
        .agg(pl.col("rank").n_unique())
        .iter_rows()
    }
    together: dict[Any, list[_Slow]] = {}
    for one in slow:
        same = sum(other.host == one.host and other.job == one.job for other in slow)
        whole = (
            one.host is not None
            and same > 1
            and same / ranks_of[one.job, one.host] >= model.limit("host_share")
        )
        key = (one.job, one.host) if whole else (one.job, one.host, one.rank)
        together.setdefault(key, []).append(one)
    return list(together.values())


def _finding(
    members: list[_Slow], steps: pl.DataFrame, model: Model, evidence: Evidence
) -> Finding:
    windows = pl.concat([member.windows for member in members])
    worst = max(members, key=lambda member: float(member.windows["excess"].median() or 0))  # type: ignore[arg-type]
    first, last = int(windows["first_step"].min()), int(windows["last_step"].max())  # type: ignore[arg-type]
    first = _onset(members, steps, first, int(model.limit("window_steps")))
    loss = _loss(members, steps, first, last)
    host = worst.host or "the host"
    whole_host = len(members) > 1
    who = host if whole_host else Entity("rank", rank=worst.rank, host=worst.host).label
    numbers = {
        name: float(worst.windows[name].median() or 0.0)  # type: ignore[arg-type]
        for name in ("excess", "compute_ms", "peer_ms", "z", "comm_ms", "peer_comm_ms")
    }
    begins_late = first > int(steps["step"].min()) + int(model.limit("window_steps"))  # type: ignore[arg-type]
    words = {
        "who": who,
        "host": host,
        "excess": numbers["excess"],
        "since": f" since step {first}" if begins_late else "",
        "value": numbers["compute_ms"],
        "peer": numbers["peer_ms"],
        "z": numbers["z"],
        "share": worst.share,
        "comm": numbers["comm_ms"],
        "comm_peer": numbers["peer_comm_ms"],
        "loss": loss,
    }
    families = {"timing"} | ({"correlation"} if whole_host else set())
    return Finding(
        kind=model.kind,
        entities=(_culprit(members, worst),),
        related=tuple(
            Entity("rank", rank=member.rank, host=member.host) for member in members if whole_host
        ),
        severity=severity_of_loss(loss),
        confidence=confidence_of(families),
        families=tuple(sorted(families)),
        title=model.wording.title.format(**words),
        explanation=model.wording.explanation.format(**words),
        start=windows["start"].min(),  # type: ignore[arg-type]
        end=windows["end"].max(),  # type: ignore[arg-type]
        start_step=first,
        end_step=last,
        detected_at=_second_window_end(worst),
        loss_share=round(loss, 4),
        gpu_hours_lost=evidence.gpu_hours(worst.job, _hours(windows), loss),
        drivers=_drivers(numbers, model),
        query=model.query,
        refuted_by=model.refuted_by,
        next_steps=tuple(text.format(host=host) for text in model.next_steps),
    )


def _culprit(members: list[_Slow], worst: _Slow) -> Entity:
    if len(members) > 1:
        return Entity("host", host=worst.host, job=worst.job)
    return Entity("rank", rank=worst.rank, host=worst.host, job=worst.job)


def _onset(members: list[_Slow], steps: pl.DataFrame, first: int, window: int) -> int:
    """Return the step at which the culprits fell behind, near the window that shows it first."""
    is_culprit = pl.col("rank").is_in([member.rank for member in members])
    pace = (
        steps.filter(pl.col("job").eq_missing(pl.lit(members[0].job)))
        .group_by("step")
        .agg(
            (
                pl.col("compute_ms").filter(is_culprit).median() / pl.col("compute_ms").median()
            ).alias("ratio")
        )
        .filter(pl.col("ratio").is_finite())
        .sort("step")
    )
    ratios = pace["ratio"].to_numpy().astype(np.float64)
    cuts = [int(pace["step"][cut]) for cut in change_points(ratios, smallest=5)]
    near = [step for step in cuts if abs(step - first) < window]
    return min(near, key=lambda step: abs(step - first), default=first)


def _loss(members: list[_Slow], steps: pl.DataFrame, first: int, last: int) -> float:
    """Return the throughput that peers' times would win back, as a share.

    Each step ends when the slowest rank has computed: replace the culprits by their peers'
    median and see what the step would take (what-if of arXiv 2505.05713).
    """
    culprits = [member.rank for member in members]
    during = steps.filter(
        pl.col("step").is_between(first, last) & pl.col("job").eq_missing(members[0].job)
    )
    is_culprit = pl.col("rank").is_in(culprits)
    per_step = during.group_by("step").agg(
        pl.col("compute_ms").max().alias("slowest"),
        pl.max_horizontal(
            pl.col("compute_ms").filter(~is_culprit).max(), pl.col("compute_ms").median()
        ).alias("without"),
        pl.col("step_time_ms").median().alias("step_ms"),
    )
    lost = float((per_step["slowest"] - per_step["without"]).sum())
    total = float(per_step["step_ms"].sum())
    return max(lost / total, 0.0) if total else 0.0


def _second_window_end(slow: _Slow) -> datetime | None:
    ends = slow.windows["end"].to_list()
    return ends[min(1, len(ends) - 1)] if ends else None


def _hours(windows: pl.DataFrame) -> float:
    start, end = windows["start"].min(), windows["end"].max()
    if not isinstance(start, datetime) or not isinstance(end, datetime):
        return 0.0
    return (end - start).total_seconds() / 3600


def _drivers(numbers: dict[str, float], model: Model) -> tuple[Driver, ...]:
    return (
        Driver(
            feature="computation per step",
            value=round(numbers["compute_ms"], 1),
            peer=round(numbers["peer_ms"], 1),
            unit="ms",
            robust_z=round(numbers["z"], 1),
            threshold=round(numbers["peer_ms"] * (1 + model.limit("excess")), 1),
            source=model.threshold["excess"].source,
        ),
        Driver(
            feature="exposed communication per step",
            value=round(numbers["comm_ms"], 1),
            peer=round(numbers["peer_comm_ms"], 1),
            unit="ms",
            robust_z=None,
            threshold=None,
            source="The rank that arrives last communicates least",
        ),
    )
