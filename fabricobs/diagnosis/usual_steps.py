"""What the steps of a cause are compared with: calm steps, a faster run, or what NICs can carry."""

from collections.abc import Sequence, Set
from dataclasses import dataclass

import numpy as np
import polars as pl

from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.findings import Segment
from fabricobs.diagnosis.paces import (
    FEWEST_STEPS,
    numbers,
    of_fastest,
    of_the_same_work,
    stand_out,
    usual_step,
)
from fabricobs.diagnosis.slowdowns import FasterRun
from fabricobs.diagnosis.statistics import Array, is_less

# What NICs receive of their line rate in a transfer: 75 to 85 % on NDR, 70 to 80 % on HDR.
_USUAL_SHARE_OF_LINE_RATE = 0.80
# NICs that receive less while the job transfers do not carry its transfers.
_LEAST_SHARE = 0.05
# Share of the usual rate below which transfers are slower than those of sound sites spread.
_CLEARLY_LESS = 0.9
# Of the usual transfer, what those of sound sites differ by: they reach 0.75 to 0.96 of the line
# rate, 0.80 as a rule (`queries/views/0_expectations.sql`).
_SOUND_SITES_SPREAD = 0.2
# Steps without a cause that vary by less: as far below the usual, a step of the cause is noise.
_NEARLY_ALL = 0.95
# Share of a step that a cause must add to be worth a look: half of the 10 % at which a slowdown
# counts (Greyhound, arXiv 2410.12588). Steps among which it would not show leave the cost open.
WORTH_A_LOOK = 0.05
_SURELY_LESS = 0.05  # largest p at which steps without such a loss are told from those with it


@dataclass(frozen=True, slots=True)
class Acting:
    """The steps in which a cause acts, and the `column` that tells how long each took, in ms.

    `segments` are the paces of their job. What is timed is `hidden` where computation may go on
    meanwhile.
    """

    job: str | None
    steps: pl.DataFrame
    segments: Sequence[Segment]
    column: str
    hidden: bool

    @property
    def times(self) -> Array:
        """Return how long each step took, in ms."""
        return numbers(self.steps, self.column)


@dataclass(frozen=True, slots=True)
class Usual:
    """The `times` of a cause's steps by a `column`, and what is usual without it, in ms.

    `others` are the times that `usual_ms` stands for, which vary by `noise_ms`; `longest_ms` is the
    most that a step may have lost. `felt`, `would_show`, `against`, `reached` and `faster` are as
    in a cost.
    """

    column: str
    times: Array
    usual_ms: float
    others: Array
    against: str
    felt: bool
    would_show: bool
    noise_ms: float = 0.0
    longest_ms: float = np.inf
    reached: float | None = None
    faster: FasterRun | None = None


def of_calm_steps(acting: Acting, calm: pl.DataFrame, *, since: bool) -> Usual:
    """Return what is usual in steps without a cause, such as those before it where `since`."""
    times, others = acting.times, numbers(calm, acting.column)
    if acting.column != "step_time_ms":
        work = (numbers(each, "compute_ms") for each in (acting.steps, calm))
        times, others = of_the_same_work(times, next(work), others, next(work))
    usual = float(np.median(others))
    felt = stand_out(times, others)
    worth = WORTH_A_LOOK * usual_step(calm)
    return Usual(
        acting.column,
        times,
        usual,
        others,
        "steps before it; those after it stay longer" if since else "steps without it",
        felt,
        would_show=felt or is_less(times - worth, others) < _SURELY_LESS,
        noise_ms=float(np.quantile(np.abs(others - usual), _NEARLY_ALL)),
        longest_ms=usual_step(acting.steps) - usual_step(calm) if acting.hidden else np.inf,
    )


def of_faster_run(acting: Acting, faster: FasterRun) -> Usual:
    """Return what is usual in a run of the job whose pace this one never reaches."""
    return Usual(
        "step_time_ms",
        _of_best_pace(acting, "step_time_ms"),
        faster.step_time_ms,
        np.array([faster.step_time_ms]),
        f"the run {faster.label}",
        felt=True,
        would_show=True,
        faster=faster,
    )


def of_expectation(acting: Acting, evidence: Evidence, hosts: Set[str]) -> Usual | None:
    """Return what groups without the `hosts`, or the NICs, let expect; None where neither tells."""
    if acting.column == "step_time_ms" or acting.hidden:
        return None
    # Slower paces are so for another reason: the fastest one has what the whole run lacks.
    best = acting.steps.filter(of_fastest(acting.segments, acting.steps))
    share = _share_of_groups_without(evidence, acting.job, hosts)
    reached, against = None, "collectives without it"
    if share is None:
        share = _share_of_usual(evidence, acting.job, best) or _share_by_counters(evidence, best)
        reached, against = share, "what the line rate of the NICs lets expect"
    if share is None:
        return None
    taken = float(np.median(numbers(best, acting.column)))
    usual = taken * min(share, 1.0)
    felt = share < _CLEARLY_LESS
    hides = _SOUND_SITES_SPREAD * taken / usual_step(best)
    return Usual(
        acting.column,
        _of_best_pace(acting, acting.column),
        usual,
        np.array([usual]),
        against,
        felt,
        would_show=felt or reached is None or hides < WORTH_A_LOOK,
        reached=reached,
    )


def _of_best_pace(acting: Acting, column: str) -> Array:
    """Return the times of steps, at most those of the best pace: slower ones have other causes."""
    times, is_best = numbers(acting.steps, column), of_fastest(acting.segments, acting.steps)
    taken = float(np.median(numbers(acting.steps.filter(is_best), column)))
    return np.where(is_best, times, np.minimum(times, taken))


def _bandwidth(evidence: Evidence, job: str | None) -> pl.DataFrame:
    """Return the calls of a job's main collective with their rates."""
    return evidence.frame("bus_bandwidth").filter(pl.col("job").eq_missing(pl.lit(job)))


def _share_of_usual(evidence: Evidence, job: str | None, steps: pl.DataFrame) -> float | None:
    """Return the share of the usual rate that calls during some steps reach."""
    first, last = steps["ts"][0], steps["ts"][-1]
    within = pl.col("ts").is_between(first, last) | pl.col("ts").is_null()
    rows = _bandwidth(evidence, job).filter(within)
    share = rows["share_of_usual"].drop_nulls().median()
    return None if share is None else float(share)  # type: ignore[arg-type]


def _share_of_groups_without(evidence: Evidence, job: str | None, hosts: Set[str]) -> float | None:
    """Return the rate of groups with some of the hosts over that of groups like them without."""
    rows = _bandwidth(evidence, job).drop_nulls(["hosts", "gbytes_per_second"])
    within = pl.col("hosts").list.set_intersection(sorted(hosts)).list.len() > 0
    rates = [rows.filter(each)["gbytes_per_second"] for each in (within, ~within)]
    if min(map(len, rates)) < FEWEST_STEPS:
        return None
    with_it, without = (float(np.median(each.to_numpy())) for each in rates)
    return with_it / without


def _share_by_counters(evidence: Evidence, steps: pl.DataFrame) -> float | None:
    """Return the share of the usual rate that NICs receive at while the job transfers.

    Transfers that computation hides make it larger, and the loss smaller.
    """
    rates = evidence.frame("nic_rates").drop_nulls(["received_gbps", "speed_gbps"])
    rates = rates.filter(
        pl.col("ts_before") >= steps["ts"].min(), pl.col("ts") <= steps["ts"].max()
    )
    used = rates.select(pl.col("received_gbps") / pl.col("speed_gbps")).to_series().median()
    busy = steps.select(pl.col("transfer_ms").sum() / pl.col("step_time_ms").sum()).item()
    share = float(used) / busy if isinstance(used, float) and busy else 0.0
    return share / _USUAL_SHARE_OF_LINE_RATE if share >= _LEAST_SHARE else None
