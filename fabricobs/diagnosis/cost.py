"""What a cause in the network cost a job: its steps while it acted against those without it."""

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl

from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.findings import Entity, Segment
from fabricobs.diagnosis.job import WARM_UP_STEPS, StepTimeTrend, fewest_lines
from fabricobs.diagnosis.paces import (
    FEWEST_STEPS,
    grown_with,
    most_by_pace,
    most_by_work,
    numbers,
    paces_beside,
    stand_out,
    steps_like,
    usual_step,
)
from fabricobs.diagnosis.slowdowns import PAUSE, FasterRun
from fabricobs.diagnosis.statistics import Array
from fabricobs.diagnosis.usual_steps import (
    Acting,
    Usual,
    of_calm_steps,
    of_expectation,
    of_faster_run,
)

Span = tuple[datetime, datetime]

# Of a step, the part in which it is taken to run: the one before it may end a little late.
_MOST_OF_STEP = 0.9
# Of a step: what is transferred in less, by what is timed, cannot have cost what counts as a loss.
_LEAST_TRANSFER = 0.02
# Times the usual step: as much of a pause is in the time that a cost is a share of.
LONGEST_STEP = 10
_KNOWN_AT_ONCE = timedelta(0)
# Times as many pauses as the steps without a cause have are theirs, too: they come at intervals.
_AS_MANY_PAUSES = 2


@dataclass(frozen=True, slots=True)
class Cost:
    """Throughput a job lost between two steps: `loss_share` 0 to 1 of it.

    `felt` says whether the steps differ significantly from those without the cause; `against`
    says what they were compared with. `bursts` are the first and last step of each stretch of a
    cause that comes and goes. `would_show` is false where a loss that is worth a look would not.
    `reached` is the share of the expected rate that transfers reach, where the loss is the rest.
    `grown_at` are the first steps of later paces that the cause grew with. `faster` is the run of
    the job that it was compared with.
    """

    job: str | None
    loss_share: float
    start_step: int
    end_step: int
    start: datetime
    end: datetime
    felt: bool
    against: str
    bursts: tuple[tuple[int, int], ...] = ()
    would_show: bool = True
    reached: float | None = None
    grown_at: tuple[int, ...] = ()
    faster: FasterRun | None = None


def unless_in_both(cost: Cost | None, kind: str, entities: Sequence[Entity]) -> Cost | None:
    """Return what a cause costs; None where the run compared with has it, too."""
    in_both = cost is not None and cost.faster is not None and cost.faster.has(kind, entities)
    return None if in_both else cost


def cost_of(
    evidence: Evidence,
    trends: Sequence[StepTimeTrend],
    spans: Sequence[Span],
    *,
    whole_run: bool = False,
    hosts: Set[str] = frozenset(),
    column: str = "transfer_ms",
    by_expectation: bool = True,
    since: bool = False,
    read_every: timedelta = _KNOWN_AT_ONCE,
    dose: pl.DataFrame | None = None,
) -> Cost | None:
    """Return what a cause that acted in `spans` cost the job that lost most, None if untold.

    What is added to `column` of the job's steps (`transfer_ms`, or `step_time_ms` where that is not
    known) in the spans, over the usual outside them, is the loss; of collectives, whose transfer
    computation may hide, no more than is added to the steps. A cause of the `whole_run`, or with
    too few steps outside, is compared with the collectives of groups without its `hosts`, where
    there are any; else with what the NICs' line rate lets expect. Not so without `by_expectation`.
    With `since` only the steps before it are usual: those after it are longer for another reason.
    A cause that is read `read_every` so often began and ended within that of its spans' ends. The
    `dose` says how strongly it acted, by intervals: another pace is its own where it did more so.
    """
    how = column, by_expectation, since, read_every, dose
    told = (_cost(evidence, pace, spans, whole_run, hosts, *how) for pace in trends)
    costs = [cost for cost in told if cost is not None]
    return max(costs, key=lambda cost: cost.loss_share, default=None)


def _cost(
    evidence: Evidence,
    pace: StepTimeTrend,
    spans: Sequence[Span],
    whole_run: bool,
    hosts: Set[str],
    column: str,
    by_expectation: bool,
    since: bool,
    read_every: timedelta,
    dose: pl.DataFrame | None,
) -> Cost | None:
    steps = _timed_steps(evidence, pace.job)
    steps = steps.filter(pl.col("step") >= pl.col("step").min() + WARM_UP_STEPS)
    inside = pl.any_horizontal(*(_touches(begin, end) for begin, end in spans), pl.lit(whole_run))
    if column != "step_time_ms" and not _is_timed(steps, inside, column):
        column = "step_time_ms"
    steps = steps.drop_nulls(column)
    acting, calm = steps.filter(inside), steps.filter(~inside)
    acting = _without_edges(acting, spans, read_every, pace.segments)
    if acting.is_empty():
        return None
    if since:
        calm = calm.filter(pl.col("step") < acting["step"][0])
    all_calm, fewest = calm, fewest_lines(steps["step"], FEWEST_STEPS)
    calm = steps_like(calm, acting, pace.segments, column, fewest)
    hidden = column != "step_time_ms" and bool(steps["by_collectives"].any())
    own = Acting(pace.job, acting, pace.segments, column, hidden=hidden)
    faster = None if since else pace.faster
    is_calm = len(calm) >= fewest
    if is_calm and faster is not None and len(acting) > len(all_calm):
        # A run that is slower all along may be so by what acts most of the time.
        is_calm = stand_out(own.times, numbers(calm, column))
    if is_calm:
        usual: Usual | None = of_calm_steps(own, calm, since=since)
    elif faster is not None:
        usual = of_faster_run(own, faster)
    else:
        usual = of_expectation(own, evidence, hosts) if by_expectation else None
    if usual is None:
        return None
    # Of a pause that stands out among its own steps, as much is lost as is in their time.
    longest = min(usual.longest_ms, _cap(acting))
    # Shorter steps offset as long ones, but for those that are shorter for another reason.
    added = np.clip(usual.times - usual.usual_ms, -usual.noise_ms, longest)
    surely = (_touches(begin + read_every, end - read_every) for begin, end in spans)
    sure = acting.filter(pl.any_horizontal(*surely, pl.lit(whole_run)))
    beside = paces_beside(pace.segments, acting, sure, all_calm, fewest)
    grown: list[Segment] = []
    if usual.column != "step_time_ms":
        added = most_by_work(added, numbers(acting, "compute_ms"), beside)
    else:
        grown = grown_with(dose, pace.segments, acting, added, beside)
        added = most_by_pace(added, acting, beside, grown)
        added[_pauses(usual.times, usual.others)] = np.median(added)
    cost = _told(pace.job, acting, added, usual, steps)
    return replace(cost, grown_at=tuple(each.first_step for each in grown))


def _without_edges(
    acting: pl.DataFrame, spans: Sequence[Span], read_every: timedelta, segments: Sequence[Segment]
) -> pl.DataFrame:
    """Return the steps of a cause without those of a shorter pace in its first and last readings.

    It began, or ended, within a reading: with the pace that did so, too.
    """
    edge = pl.lit(False)
    for before, after in pairwise(segments):
        turn = after.start
        if turn is None:
            continue
        longer = before.step_time_ms < after.step_time_ms
        for begin, end in spans:
            if longer and begin < turn < begin + read_every:
                edge |= pl.col("ts").is_between(begin, turn) & (pl.col("step") < after.first_step)
            elif not longer and end - read_every < turn < end:
                edge |= pl.col("ts").is_between(turn, end) & (pl.col("step") >= after.first_step)
    inner = acting.filter(~edge)
    return acting if inner.is_empty() else inner


def _timed_steps(evidence: Evidence, job: str | None) -> pl.DataFrame:
    """Return the steps of a job of which time and length are told, in order."""
    steps = evidence.frame("job_steps").filter(pl.col("job").eq_missing(pl.lit(job)))
    return steps.drop_nulls(["ts", "step_time_ms"]).sort("step")


def over_all(cost: Cost, evidence: Evidence, spans: Sequence[Span]) -> Cost:
    """Return what was lost over all the time from the first to the last of `spans`.

    The cost is of some of them: in the others nobody felt the cause.
    """
    steps = _timed_steps(evidence, cost.job)
    own = pl.col("step").is_between(cost.start_step, cost.end_step)
    part, whole = steps.filter(own), steps.filter(own | _touches(spans[0][0], spans[-1][1]))
    if len(part) == len(whole):
        return cost
    part_ms, whole_ms = (
        float(np.sum(np.minimum(numbers(each, "step_time_ms"), _cap(whole))))
        for each in (part, whole)
    )
    return replace(
        cost,
        loss_share=cost.loss_share * part_ms / whole_ms,
        start_step=int(whole["step"][0]),
        end_step=int(whole["step"][-1]),
        start=whole["ts"][0],
        end=whole["ts"][-1],
        bursts=cost.bursts or ((cost.start_step, cost.end_step),),
    )


def _pauses(times: Array, others: Array) -> npt.NDArray[np.bool_]:
    """Say which steps of a cause are checkpoints, or pauses as steps without it have them.

    A cause may stop a job as long: what comes oftener, or is longer than those, is its own.
    """
    often = float(np.mean(others > PAUSE * np.median(others)))
    ordinary = round(_AS_MANY_PAUSES * often * len(times))
    paused = np.flatnonzero(times > PAUSE * np.median(times))
    shortest = paused[np.argsort(times[paused])][:ordinary]
    return np.isin(np.arange(len(times)), shortest)


def _is_timed(steps: pl.DataFrame, inside: pl.Expr, column: str) -> bool:
    """Say whether a column tells most steps, and those of the cause spend time in it.

    The collectives that are timed need not be those a job waits for: a pipeline's are not.
    """
    if steps[column].null_count() > len(steps) // 2:
        return False
    acting = steps.filter(inside).drop_nulls(column)
    if acting.is_empty():
        return True
    share = np.median(numbers(acting, column) / numbers(acting, "step_time_ms"))
    return bool(share >= _LEAST_TRANSFER)


def _told(
    job: str | None,
    acting: pl.DataFrame,
    added: Array,
    usual: Usual,
    steps: pl.DataFrame,
) -> Cost:
    first, last = int(acting["step"][0]), int(acting["step"][-1])
    span = steps.filter(pl.col("step").is_between(first, last))
    # Global pauses, such as a checkpoint, are long in every sense: they are no loss to a link.
    total = float(np.sum(np.minimum(numbers(span, "step_time_ms"), _cap(span))))
    lost = max(float(np.sum(added)), 0.0)
    return Cost(
        job=job,
        loss_share=min(max(lost / total, 0.0), 1.0) if total else 0.0,
        start_step=first,
        end_step=last,
        start=acting["ts"][0],
        end=acting["ts"][-1],
        felt=usual.felt and lost > 0,
        against=usual.against,
        bursts=_bursts(acting, span),
        would_show=usual.would_show,
        reached=usual.reached,
        faster=usual.faster,
    )


def _bursts(acting: pl.DataFrame, span: pl.DataFrame) -> tuple[tuple[int, int], ...]:
    """Return the stretches of steps, one after another in the job, in which a cause acts."""
    steps = span.select("step", pl.col("step").is_in(acting["step"].to_list()).alias("acts"))
    stretches = (
        steps.with_columns(pl.col("acts").rle_id().alias("stretch"))
        .filter("acts")
        .group_by("stretch", maintain_order=True)
        .agg(pl.col("step").first().alias("first"), pl.col("step").last().alias("last"))
    )
    return tuple(stretches.select("first", "last").iter_rows()) if len(stretches) > 1 else ()


def _cap(steps: pl.DataFrame) -> float:
    return LONGEST_STEP * usual_step(steps)


def _touches(begin: datetime, end: datetime) -> pl.Expr:
    """Say whether a step, of which `ts` is the end, ran at these times: some last a moment."""
    lasts = pl.duration(microseconds=1000 * _MOST_OF_STEP * pl.col("step_time_ms"))
    return (pl.col("ts") >= begin) & (pl.col("ts") - lasts < end)
