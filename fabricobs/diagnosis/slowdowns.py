"""Stretches of steps slower than the job's best pace: what they lost, and where the time went."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import takewhile

import numpy as np
import polars as pl

from fabricobs.diagnosis.findings import Entity, Segment, finding_id

# A pause of the whole job, as for a checkpoint, makes a step this much longer than the median.
PAUSE = 2.5
# Where nearly every rank computes longer, by this share of what the steps grew, the work grew.
_WORK_SHARE = 0.8
MOSTLY = 0.5  # of the added time: what explains the rest
NEARLY_ALL = 0.8  # of it: nothing else is needed to explain a slowdown
_NEARLY_EVERY = 0.1  # quantile of the ranks that stands for nearly every rank


@dataclass(frozen=True, slots=True)
class FasterRun:
    """The run of a job with the shortest steps; `step_time_ms` is the usual one of its best pace.

    `is_same_work` says whether logs tell that both do the same work a step: else none tells of
    both. `found` are the ids of its findings: what is found in both made neither slower.
    """

    label: str
    step_time_ms: float
    is_same_work: bool
    has_same_hosts: bool
    found: frozenset[str] = frozenset()

    def has(self, kind: str, entities: Sequence[Entity]) -> bool:
        """Say whether the same is found in it, too."""
        return finding_id(kind, entities) in self.found


@dataclass(frozen=True, slots=True)
class Slowdown:
    """A stretch of steps slower than the best pace before it; `loss_share` of throughput, 0 to 1.

    The first steps have none before them: `from_start` are those slower than the best pace after,
    which then is told as `before_ms`. So is that of a `faster` run, whose pace no step reaches.

    `network_part` and `compute_part` split the added time per step into longer transfers and a
    longer slowest computation, each 0 to 1; None where no per-rank records tell. Where `per_work`,
    times are for the same number of tokens, operations or samples a step. With `more_work` nearly
    every rank computes longer alike, as with a larger batch or longer sequences, and no log tells
    the work: whether throughput was lost is then not known.
    """

    job: str | None
    first_step: int
    last_step: int
    start: datetime | None
    end: datetime | None
    before_ms: float
    after_ms: float
    network_part: float | None
    compute_part: float | None
    more_work: bool = False
    per_work: bool = False
    restarted: bool = False  # at its first steps
    goes_on: bool = False  # to the last step
    run_share: float = 1.0  # of the run's steps that are its own
    by_collectives: bool = False  # no log tells steps: they are the rhythm of the collectives
    by_calls: bool = False  # nor does that rhythm: each call is counted as a step
    from_start: bool = False
    faster: FasterRun | None = None

    @property
    def is_lead(self) -> bool:
        """Say whether no log tells that a step did the same work: nothing may be lost."""
        return self.more_work or not (self.per_work or self.network_part is not None)

    @property
    def is_split(self) -> bool:
        """Say whether most of the added time is known to be transfers or a slow rank's work."""
        return (self.network_part or 0.0) + (self.compute_part or 0.0) >= MOSTLY

    @property
    def is_by_transfers(self) -> bool:
        """Say whether longer transfers explain it alone."""
        return (self.network_part or 0.0) >= NEARLY_ALL

    @property
    def is_by_computation(self) -> bool:
        """Say whether the slowest rank's longer computation explains it alone."""
        return (self.compute_part or 0.0) >= NEARLY_ALL

    @property
    def rise(self) -> float:
        """Return how much longer its steps are than those before, as a share of these."""
        return self.after_ms / self.before_ms - 1

    @property
    def loss_share(self) -> float:
        """Return the share of throughput lost."""
        return 1 - self.before_ms / self.after_ms


def slowdowns_of(
    job: str | None,
    segments: list[Segment],
    steady: pl.DataFrame,
    rank_steps: pl.DataFrame,
    work: pl.DataFrame,
    smallest_loss: float,
) -> list[Slowdown]:
    """Join neighbouring segments that are slower than the best pace before them.

    More work makes a pace of its own, with which what follows is compared; `work` are the records
    of the ranks that may tell of it, none where the work of each step is known. So does less work.
    """
    found: list[Slowdown] = []
    best = segments[0]
    stretch: list[Segment] = []

    def end_stretch() -> None:
        if stretch:
            found.append(_slowdown(job, best, stretch, steady, rank_steps))
            stretch.clear()

    for segment in segments[1:]:
        if segment.step_time_ms < best.step_time_ms / (1 - smallest_loss):
            end_stretch()
            best = min(best, segment, key=lambda each: each.step_time_ms)
        elif _is_less_work(steady, best, segment):
            end_stretch()
            best = segment
        elif _is_more_work(work, best, segment):
            end_stretch()
            grown = _slowdown(job, best, [segment], steady, rank_steps)
            found.append(replace(grown, more_work=True))
            best = segment
        else:
            stretch.append(segment)
    end_stretch()
    return _ramps_joined(found)


def slow_start_of(
    job: str | None,
    segments: list[Segment],
    steady: pl.DataFrame,
    rank_steps: pl.DataFrame,
    work: pl.DataFrame,
    smallest_loss: float,
) -> Slowdown | None:
    """Return the first segments, if they are slower than the best pace and do no more work."""
    best = min(segments, key=lambda segment: segment.step_time_ms)
    least = best.step_time_ms / (1 - smallest_loss)
    slow = list(takewhile(lambda segment: segment.step_time_ms > least, segments))
    if not slow or _is_less_work(steady, best, slow[0]) or _is_more_work(work, best, slow[0]):
        return None
    start = replace(_slowdown(job, best, slow, steady, rank_steps), from_start=True)
    return None if _is_drift(steady, start, best) else start


def _is_drift(steady: pl.DataFrame, start: Slowdown, best: Segment) -> bool:
    """Say whether a line tells the steps until the best pace as well as one change does.

    Steps that become shorter all along lost nothing that ended.
    """
    steps = steady.filter(pl.col("step").is_between(start.first_step, best.last_step))
    x, times = steps["step"].to_numpy(), steps["step_time_ms"].to_numpy()
    parts = (times[x <= start.last_step], times[x > start.last_step])
    step = sum(float(np.square(part - part.mean()).sum()) for part in parts)
    line = times - np.polyval(np.polyfit(x, times, 1), x)
    return float(np.square(line).sum()) <= step


def _ramps_joined(slowdowns: list[Slowdown]) -> list[Slowdown]:
    """Join growths of the work that follow each other: a ramp is one."""
    joined: list[Slowdown] = []
    for each in slowdowns:
        last = joined[-1] if joined else None
        if last is not None and last.more_work and each.more_work:
            joined[-1] = replace(
                last, last_step=each.last_step, end=each.end, after_ms=each.after_ms
            )
        else:
            joined.append(each)
    return joined


def _is_less_work(steady: pl.DataFrame, before: Segment, after: Segment) -> bool:
    """Say whether steps that are longer for the same work took no longer as a whole.

    They do less work: what each step takes however little it does is more for each token.
    """
    usual = [
        _median_of(steady.filter(pl.col("step").is_between(s.first_step, s.last_step)), "whole_ms")
        for s in (before, after)
    ]
    return usual[1] <= usual[0]


def _is_more_work(rank_steps: pl.DataFrame, before: Segment, after: Segment) -> bool:
    """Say whether nearly every rank computes longer, and by as much as the steps are longer.

    No single part does that: not a rank, not a host, not the network.
    """
    rise = after.step_time_ms / before.step_time_ms - 1
    usual = [
        rank_steps.filter(pl.col("step").is_between(segment.first_step, segment.last_step))
        .group_by("rank")
        .agg(pl.col("compute_ms").median())
        .drop_nulls()
        for segment in (before, after)
    ]
    both = usual[0].join(usual[1], on="rank", suffix="_after")
    rises = both.select(pl.col("compute_ms_after") / pl.col("compute_ms") - 1).to_series()
    least = rises.quantile(_NEARLY_EVERY)
    return least is not None and rise > 0 and least >= _WORK_SHARE * rise


def _slowdown(
    job: str | None,
    best: Segment,
    stretch: list[Segment],
    steady: pl.DataFrame,
    rank_steps: pl.DataFrame,
) -> Slowdown:
    first, last = stretch[0].first_step, stretch[-1].last_step
    during = steady.filter(pl.col("step").is_between(first, last))
    healthy = steady.filter(pl.col("step").is_between(best.first_step, best.last_step))
    before_ms, after_ms = _usual_mean(healthy), _usual_mean(during)
    network, compute = _split(rank_steps, best, first, last)
    if network is None and rank_steps.is_empty():
        network = _by_collectives(healthy, during, after_ms - before_ms)
    times: list[datetime] = during["ts"].drop_nulls().to_list()
    return Slowdown(
        job=job,
        first_step=first,
        last_step=last,
        start=times[0] if times else None,
        end=times[-1] if times else None,
        before_ms=before_ms,
        after_ms=after_ms,
        network_part=network,
        compute_part=compute,
    )


def _usual_mean(steps: pl.DataFrame) -> float:
    """Return the mean step time, in ms, but for pauses of the whole job such as checkpoints.

    The median would overstate a pace that comes and goes.
    """
    times = steps["step_time_ms"].to_numpy()
    return float(np.mean(times[times <= PAUSE * np.median(times)]))


def _parts_of_steps(rank_steps: pl.DataFrame) -> pl.DataFrame:
    """Return of each step its transfer, its slowest computation and its length, in ms.

    The transfer is the exposed communication of the rank that waits least; what the others wait
    longer is the slowest rank's computation, and counted there.
    """
    return (
        rank_steps.drop_nulls(["own_ms", "comm_ms"])
        .group_by("step")
        .agg(pl.col("comm_ms").min(), pl.col("compute_ms").max(), pl.col("step_time_ms").median())
    )


def transfer_share(rank_steps: pl.DataFrame) -> float | None:
    """Return the share of a usual step in which every rank waits for transfers; None if untold."""
    share = _parts_of_steps(rank_steps).select(pl.col("comm_ms") / pl.col("step_time_ms"))
    usual = share.to_series().median()
    return usual if isinstance(usual, float) else None


def _split(
    rank_steps: pl.DataFrame, best: Segment, first: int, last: int
) -> tuple[float | None, float | None]:
    """Split the added time of a step into transfer and slowest computation.

    Where records tell communication only, the rest may be more work: then only transfers that are
    most of what is added are told.
    """
    per_step = _parts_of_steps(rank_steps)
    healthy = per_step.filter(pl.col("step").is_between(best.first_step, best.last_step))
    slow = per_step.filter(pl.col("step").is_between(first, last))
    added_ms = _median_of(slow, "step_time_ms") - _median_of(healthy, "step_time_ms")
    if healthy.is_empty() or slow.is_empty() or added_ms <= 0:
        return None, None

    def part(column: str) -> float:
        rise = _median_of(slow, column) - _median_of(healthy, column)
        return min(max(rise / added_ms, 0.0), 1.0)

    network = part("comm_ms")
    if slow["compute_ms"].has_nulls() or healthy["compute_ms"].has_nulls():
        return network if network >= MOSTLY else None, None
    return network, part("compute_ms")


def _by_collectives(healthy: pl.DataFrame, slow: pl.DataFrame, added_ms: float) -> float | None:
    """Return the part that longer collectives explain, None where it is not most of what is added.

    Collectives alone do not tell whether the steps do more work.
    """
    before, after = (steps["transfer_ms"].drop_nulls().median() for steps in (healthy, slow))
    if not isinstance(before, float) or not isinstance(after, float) or added_ms <= 0:
        return None
    part = min((after - before) / added_ms, 1.0)
    return part if part >= MOSTLY else None


def _median_of(steps: pl.DataFrame, column: str) -> float:
    return float(np.median(steps[column].to_numpy())) if len(steps) else 0.0
