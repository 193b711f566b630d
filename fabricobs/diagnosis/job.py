"""The job as a whole: when it changed pace, what that cost, and where the time went."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

import numpy as np
import polars as pl

from fabricobs.diagnosis.findings import Entity, Power, Segment
from fabricobs.diagnosis.slowdowns import (
    PAUSE,
    FasterRun,
    Slowdown,
    slow_start_of,
    slowdowns_of,
    transfer_share,
)
from fabricobs.diagnosis.statistics import change_points, smallest_change

# Steps in which compilation, memory growth and connections make everything slow.
WARM_UP_STEPS = 10
# Checkpoints and evaluations come every so many steps at least.
_RHYTHM = 5
# A pause that steps left out share makes one of them this much longer than those beside it.
_LONE = 1.5
# Steps by which a change point may miss a restart: the fewest that a pace lasts.
_RESTART_STEPS = 10
# Lines that a pace must last where each stands for several steps: 4 that are all longer than 36
# others have a Mann-Whitney p of 2e-5, and stand anywhere among 40 once in 1,000 runs.
_FEWEST_LINES = 4
# Steps whose work is nearer to the usual do the same: rates are printed with three digits and more.
SAME_WORK = 0.01
# What tells the work of a step, the surest first.
WORK = ("tokens", "operations", "samples")
# Share of the job's ranks whose records must be there: the one that is missing may be the slow one.
COVERED = 0.95


@dataclass(frozen=True, slots=True)
class StepTimeTrend:
    """One job: its steps, its segments of one pace, its slowdowns.

    `shows` is the smallest rise of the step time that would show, as a share, if it lasted
    `least_lines`: so many lines, each of which may stand for several steps. `transfer_share` is the
    share of a usual step in which every rank waits for transfers, None where no per-rank records
    tell.
    """

    job: str | None
    steps: pl.DataFrame
    segments: tuple[Segment, ...]
    slowdowns: tuple[Slowdown, ...]
    slow_start: Slowdown | None  # the first steps, where nothing tells why later ones are faster
    enough: bool  # steps for a change to show
    shows: float
    least_lines: int
    pace: str = "step time"  # what tells it
    transfer_share: float | None = None
    by_calls: bool = False  # no log tells steps, nor does the rhythm: each call is counted as one
    faster: FasterRun | None = None  # of the same job, where this one never reaches its pace

    @property
    def count(self) -> int:
        """Return how many steps there are from the first to the last: lines may leave out some."""
        first, last = self.steps["step"].min(), self.steps["step"].max()
        return int(last) - int(first) + 1  # type: ignore[arg-type]

    @property
    def onsets(self) -> list[Slowdown]:
        """Return the slowdowns with a pace before them: the first steps began with the job."""
        return [slowdown for slowdown in self.slowdowns if not slowdown.from_start]

    @property
    def last_time(self) -> datetime | None:
        """Return when the last step ended, UTC; None where no log tells times."""
        last = self.steps["ts"].max()
        return last if isinstance(last, datetime) else None

    @property
    def power(self) -> Power:
        """Return the smallest slowdown that would have shown."""
        if self.by_calls:
            seconds = self.least_lines * float(self.steps["step_time_ms"].median()) / 1000  # type: ignore[arg-type]
            return Power(self.shows, "longer", "calls that take {}", seconds=seconds)
        lines = self.steps["step"].n_unique()
        steps = round(self.least_lines * self.count / lines)
        return Power(self.shows, "longer", "steps that take {}", steps=steps)

    @property
    def irregular_pauses(self) -> list[int]:
        """Return the steps far longer than the usual, if they keep no rhythm as checkpoints do."""
        numbers = self.steps["step"].to_numpy()
        times = self.steps["step_time_ms"].to_numpy().astype(np.float64)
        far = (times > PAUSE * np.nanmedian(times)) & (numbers >= numbers.min() + WARM_UP_STEPS)
        pauses: list[int] = numbers[far].tolist()
        begun = [pause for pause in pauses if pause - 1 not in pauses]
        rhythm = math.gcd(*(later - begun[0] for later in begun[1:])) if begun else 0
        return pauses if 0 < rhythm < _RHYTHM else []

    def beside(self, kind: str, entities: Sequence[Entity]) -> "StepTimeTrend":
        """Return it as a cause is priced by it: apart from a faster run that has the cause, too."""
        in_both = self.faster is not None and self.faster.has(kind, entities)
        return replace(self, faster=None) if in_both else self

    def step_at(self, moment: datetime) -> int | None:
        """Return the first step that ended after `moment`."""
        after = self.steps.filter(pl.col("ts") >= moment)
        return None if after.is_empty() else int(after["step"].min())  # type: ignore[arg-type]


def step_time_trends(
    step_times: pl.DataFrame,
    rank_steps: pl.DataFrame,
    restarts: pl.DataFrame,
    smallest_loss: float,
    least_steps: int,
    ranks_expected: dict[str | None, int | None],
) -> list[StepTimeTrend]:
    """Judge the pace of every job.

    `smallest_loss` is the share of throughput below which a change is no slowdown, `least_steps`
    the number of steps a pace must last; a slowdown is split only where the records cover nearly
    all of a job's `ranks_expected`.
    """
    trends: list[StepTimeTrend] = []
    for job, steps in _by_job(step_times):
        timed = steps.filter(pl.col("step_time_ms") > 0).sort("step")
        steady = timed.filter(pl.col("step") >= pl.col("step").min() + WARM_UP_STEPS)
        if steady.is_empty():
            continue
        by_collectives = bool(steady["source"].str.starts_with("collective").all())
        by_calls = bool((steady["source"] == "collective calls").all())
        steady, per_work, is_known = for_the_same_work(steady)
        if by_collectives:
            steady = _without_lone_pauses(steady)
        lines = fewest_lines(steady["step"], least_steps)
        segments, shows = segments_of(job, steady, lines)
        own = rank_steps.filter(_is_job(job))
        if own["rank"].n_unique() < COVERED * (ranks_expected.get(job) or 0):
            own = own.clear()
        work = own.clear() if is_known else own
        told = partial(
            _told,
            segments=segments,
            restarts=restarts,
            per_work=per_work,
            by_collectives=by_collectives,
            by_calls=by_calls,
        )
        slowdowns = slowdowns_of(job, segments, steady, own, work, smallest_loss)
        slow_start = slow_start_of(job, segments, steady, own, work, smallest_loss)
        enough = len(steady) >= 2 * lines
        pace = StepTimeTrend(
            job,
            steps,
            tuple(segments),
            tuple(told(slowdown) for slowdown in slowdowns),
            None if slow_start is None else told(slow_start),
            enough,
            shows,
            lines,
            "rhythm of the collectives" if by_collectives else "step time",
            transfer_share(own.filter(pl.col("step") >= segments[0].first_step)),
            by_calls,
        )
        trends.append(pace)
    return trends


def _told(
    slowdown: Slowdown,
    *,
    segments: Sequence[Segment],
    restarts: pl.DataFrame,
    per_work: bool,
    by_collectives: bool,
    by_calls: bool,
) -> Slowdown:
    """Return a slowdown with what its job tells of it."""
    return replace(
        slowdown,
        per_work=per_work,
        by_collectives=by_collectives,
        by_calls=by_calls,
        restarted=not slowdown.from_start and _is_near(slowdown, restarts),
        goes_on=slowdown.last_step >= segments[-1].last_step,
        run_share=(slowdown.last_step - slowdown.first_step + 1)
        / (segments[-1].last_step - segments[0].first_step + 1),
    )


def fewest_lines(steps: pl.Series, least_steps: int) -> int:
    """Return how many lines a pace of `least_steps` lasts, where lines tell of every n-th step."""
    apart = steps.unique().sort().diff().median() or 1.0
    return min(least_steps, max(_FEWEST_LINES, math.ceil(least_steps / float(apart))))  # type: ignore[arg-type]


def _is_near(slowdown: Slowdown, restarts: pl.DataFrame) -> bool:
    """Say whether the job went back to a checkpoint at a slowdown's first steps."""
    distance = (pl.col("step") - slowdown.first_step).abs()
    return not restarts.filter(_is_job(slowdown.job), distance <= _RESTART_STEPS).is_empty()


def for_the_same_work(steps: pl.DataFrame) -> tuple[pl.DataFrame, bool, bool]:
    """Return the steps with their times for the same work, whether that is told, and known.

    What they took in all stays as `whole_ms`. Tokens and operations tell all the work of a step,
    samples not how long their sequences are.
    """
    steps = steps.with_columns(whole_ms="step_time_ms")
    for name in WORK:
        work = pl.col(name) / pl.col(name).median()
        known = steps.filter(pl.col(name) > 0)
        if len(known) < COVERED * len(steps):
            continue
        others = known.filter((work - 1).abs() > SAME_WORK)
        is_known = name != "samples"
        # A restart may come shortly before the batch grows: few steps are of the work of before.
        if len(others) < _FEWEST_LINES:
            return steps, is_known, is_known
        same = known.with_columns(step_time_ms=pl.col("step_time_ms") / work)
        return same, True, is_known
    return steps, False, False


def _without_lone_pauses(steps: pl.DataFrame) -> pl.DataFrame:
    """Take a step that is longer than both its neighbours by half for one with a pause in it.

    No log tells what was between two steps of the rhythm: it has checkpoints and evaluations in it.
    """
    time = pl.col("step_time_ms")
    beside = time.rolling_median(3, center=True, min_samples=1)
    return steps.with_columns(pl.when(time > _LONE * beside).then(beside).otherwise(time))


def _by_job(frame: pl.DataFrame) -> list[tuple[str | None, pl.DataFrame]]:
    jobs = frame["job"].unique(maintain_order=True).to_list()
    return [(job, frame.filter(_is_job(job))) for job in jobs]


def _is_job(job: str | None) -> pl.Expr:
    return pl.col("job").is_null() if job is None else pl.col("job") == job


def segments_of(job: str | None, steady: pl.DataFrame, lines: int) -> tuple[list[Segment], float]:
    """Return the stretches of one pace, and the smallest change that would have shown."""
    times = steady["step_time_ms"].to_numpy().astype(np.float64)
    bounds = [0, *change_points(times, smallest=lines), len(times)]
    spans = list(zip(bounds, bounds[1:], strict=False))
    segments = [
        Segment(
            first_step=int(steady["step"][begin]),
            last_step=int(steady["step"][end - 1]),
            start=steady["ts"][begin],
            step_time_ms=float(np.median(times[begin:end])),
            job=job,
        )
        for begin, end in spans
    ]
    return segments, smallest_change(times, spans, lines)
