"""GPU errors: what the driver reports of a GPU, and what its rank's slowness then costs."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np

from fabricobs.diagnosis.cost import Cost
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.finding_builder import build_finding, driver
from fabricobs.diagnosis.findings import Driver, Entity, Finding, Judgement
from fabricobs.diagnosis.job import JobPace
from fabricobs.diagnosis.methods.straggler import moment_of
from fabricobs.diagnosis.model import Model
from fabricobs.diagnosis.rank_times import RankTimes, rank_times


def find_gpu_errors(evidence: Evidence, model: Model, paces: Sequence[JobPace]) -> Judgement:
    """Return one finding a GPU whose driver reports an error of the GPU; a unit is a host's log."""
    told, hosts = evidence.frame("kernel_hosts").row(0)
    rows = evidence.frame("gpu_errors").rows(named=True)
    times = rank_times(evidence) if rows else ()
    findings = tuple(_finding(row, times, model, evidence) for row in rows)
    return Judgement(findings, judged=told, unjudged=hosts - told)


def _finding(
    row: dict[str, Any], times: Sequence[RankTimes], model: Model, evidence: Evidence
) -> Finding:
    cost = _cost(row, times, model)
    rank = row["rank"]
    words = {
        "gpu": row["part"] if row["gpu"] is None else row["gpu"],
        "host": row["host"],
        "codes": ", ".join(map(str, row["codes"])),
        "meanings": row["meanings"],
        "events": row["events"],
        "start": "an unknown time" if row["first_seen"] is None else f"{row['first_seen']} UTC",
        "rank": "The rank on it is not known." if rank is None else f"Rank {rank} runs on it.",
    }
    reports = Driver(
        "reports of the driver", row["events"], 0, "", None, None, "NVIDIA's Xid catalogue"
    )
    felt = cost is not None and cost.felt
    lost = (
        (driver(model, "least_loss", "share of throughput lost", cost.loss_share),) if cost else ()
    )
    return build_finding(
        model,
        evidence,
        words,
        entities=[Entity("gpu", host=row["host"], gpu=row["gpu"], job=row["job"])],
        related=[] if rank is None else [Entity("rank", rank=rank, host=row["host"])],
        families={"log", "timing"} if felt else {"log"},
        drivers=(reports, *lost),
        start=row["first_seen"],
        end=None if felt else row["last_seen"],
        detected_at=row["first_seen"],
        cost=cost,
        # A GPU that must be reset will be felt; one that wears need not be.
        unmeasured="medium" if row["fatal"] else "info",
    )


def _cost(row: dict[str, Any], times: Sequence[RankTimes], model: Model) -> Cost | None:
    """What the GPU's rank cost its job from the first report on; None without its times."""
    for job in times:
        if job.job != row["job"] or row["rank"] not in job.ranks:
            continue
        first, last = _step_at(job, row["first_seen"]), len(job.steps) - 1
        begin, end = moment_of(job, first), moment_of(job, last)
        if begin is None or end is None:
            return None
        column = np.flatnonzero(job.ranks == row["rank"])
        loss = job.lost_share(column, int(job.steps[first]), int(job.steps[last]))
        return Cost(
            job=job.job,
            loss_share=round(loss, 4),
            start_step=int(job.steps[first]),
            end_step=int(job.steps[last]),
            start=begin,
            end=end,
            felt=loss >= model.limit("least_loss"),
            against="the rank's peers",
        )
    return None


def _step_at(job: RankTimes, moment: datetime | None) -> int:
    """Index of the step that ran at a moment; the first where the moment is not known."""
    if moment is None or np.isnat(job.ends).all():
        return 0
    return min(int(np.searchsorted(job.ends, np.datetime64(moment))), len(job.steps) - 1)
