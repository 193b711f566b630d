"""The job as a whole: when it changed pace, what that cost, and where the time went."""

import math
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
import polars as pl

from fabricobs.diagnosis.findings import Power, Segment
from fabricobs.diagnosis.statistics import change_points, smallest_change

# Steps in which compilation, memory growth and connections make everything slow.
WARM_UP_STEPS = 10
# A pause of the whole job, as for a checkpoint, makes a step this much longer than the median.
PAUSE = 2.5
# Checkpoints and evaluations come every so many steps at least.
_RHYTHM = 5
# A pause that steps left out share makes one of them this much longer than those beside it.
_LONE = 1.5
# Where nearly every rank computes longer, by this share of what the steps grew, the work grew.
_WORK_SHARE = 0.8
MOSTLY = 0.5  # of the added time: what explains the rest
_NEARLY_ALL = 0.8  # of it: nothing else is needed to explain a slowdown
_NEARLY_EVERY = 0.1  # quantile of the ranks that stands for nearly every rank
# Steps by which a change point may miss a restart: the fewest that a pace lasts.
_RESTART_STEPS = 10
# Lines that a pace must last where each stands for several steps: 4 that are all longer than 36
# others have a Mann-Whitney p of 2e-5, and stand anywhere among 40 once in 1,000 runs.
_FEWEST_LINES = 4
# Steps whose work varies by less do the same work: rates are printed with three digits and more.
_SAME_WORK = 0.02
# Share of the job's ranks whose records must be there: the one that is missing may be the slow one.
COVERED = 0.95


@dataclass(frozen=True, slots=True)
class Slowdown:
    """A stretch of steps slower than the best pace before it; `loss_share` of throughput, 0 to 1.

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

    @property
    def is_lead(self) -> bool:
        """Say whether no log tells that a step did the same work: nothing may be lost."""
        return self.more_work or not (self.per_work or self.network_part is not None)

    @property
    def is_by_transfers(self) -> bool:
        """Say whether longer transfers explain it alone."""
        return (self.network_part or 0.0) >= _NEARLY_ALL

    @property
    def is_by_computation(self) -> bool:
        """Say whether the slowest rank's longer computation explains it alone."""
        return (self.compute_part or 0.0) >= _NEARLY_ALL

    @property
    def rise(self) -> float:
        """Return how much longer its steps are than those before, as a share of these."""
        return self.after_ms / self.before_ms - 1

    @property
    def loss_share(self) -> float:
        """Return the share of throughput lost."""
        return 1 - self.before_ms / self.after_ms


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
    speed_up: Segment | None  # the best pace, where it is clearly better than the first
    enough: bool  # steps for a change to show
    shows: float
    least_lines: int
    pace: str = "step time"  # what tells it
    transfer_share: float | None = None
    by_calls: bool = False  # no log tells steps, nor does the rhythm: each call is counted as one

    @property
    def count(self) -> int:
        """Return how many steps there are from the first to the last: lines may leave out some."""
        first, last = self.steps["step"].min(), self.steps["step"].max()
        return int(last) - int(first) + 1  # type: ignore[arg-type]

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
        steady, per_work, is_known = _for_the_same_work(steady)
        if by_collectives:
            steady = _without_lone_pauses(steady)
        lines = fewest_lines(steady["step"], least_steps)
        segments, shows = _segments(job, steady, lines)
        own = rank_steps.filter(_is_job(job))
        if own["rank"].n_unique() < COVERED * (ranks_expected.get(job) or 0):
            own = own.clear()
        work = own.clear() if is_known else own
        slowdowns = tuple(
            replace(
                slowdown,
                per_work=per_work,
                by_collectives=by_collectives,
                by_calls=by_calls,
                restarted=_is_near(slowdown, restarts),
                goes_on=slowdown.last_step >= segments[-1].last_step,
                run_share=(slowdown.last_step - slowdown.first_step + 1)
                / (segments[-1].last_step - segments[0].first_step + 1),
            )
            for slowdown in _slowdowns(job, segments, steady, own, work, smallest_loss)
        )
        enough = len(steady) >= 2 * lines
        best = min(segments, key=lambda segment: segment.step_time_ms)
        faster = best.step_time_ms < segments[0].step_time_ms * (1 - smallest_loss)
        faster = faster and not _is_more_work(work, best, segments[0])
        speed_up = best if faster else None
        pace = StepTimeTrend(
            job,
            steps,
            tuple(segments),
            slowdowns,
            speed_up,
            enough,
            shows,
            lines,
            "rhythm of the collectives" if by_collectives else "step time",
            _transfer_share(own.filter(pl.col("step") >= segments[0].first_step)),
            by_calls,
        )
        trends.append(pace)
    return trends


def fewest_lines(steps: pl.Series, least_steps: int) -> int:
    """Return how many lines a pace of `least_steps` lasts, where lines tell of every n-th step."""
    apart = steps.unique().sort().diff().median() or 1.0
    return min(least_steps, max(_FEWEST_LINES, math.ceil(least_steps / float(apart))))  # type: ignore[arg-type]


def _is_near(slowdown: Slowdown, restarts: pl.DataFrame) -> bool:
    """Say whether the job went back to a checkpoint at a slowdown's first steps."""
    distance = (pl.col("step") - slowdown.first_step).abs()
    return not restarts.filter(_is_job(slowdown.job), distance <= _RESTART_STEPS).is_empty()


def _for_the_same_work(steps: pl.DataFrame) -> tuple[pl.DataFrame, bool, bool]:
    """Return the steps with their times for the same work, whether that is told, and known.

    Tokens and operations tell all the work of a step, samples not how long their sequences are.
    """
    for name in ("tokens", "operations", "samples"):
        work = pl.col(name) / pl.col(name).median()
        known = steps.filter(pl.col(name) > 0)
        if len(known) < COVERED * len(steps):
            continue
        low, high = known.select(
            work.quantile(1 - COVERED).alias("low"), work.quantile(COVERED).alias("high")
        ).row(0)
        is_known = name != "samples"
        if high - low <= _SAME_WORK:
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


def _segments(job: str | None, steady: pl.DataFrame, lines: int) -> tuple[list[Segment], float]:
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


def _slowdowns(
    job: str | None,
    segments: list[Segment],
    steady: pl.DataFrame,
    rank_steps: pl.DataFrame,
    work: pl.DataFrame,
    smallest_loss: float,
) -> list[Slowdown]:
    """Join neighbouring segments that are slower than the best pace before them.

    More work makes a pace of its own, with which what follows is compared; `work` are the records
    of the ranks that may tell of it, none where the work of each step is known.
    """
    found: list[Slowdown] = []
    best = segments[0]
    stretch: list[Segment] = []
    for segment in [*segments[1:], None]:
        slow = segment is not None and segment.step_time_ms >= best.step_time_ms / (
            1 - smallest_loss
        )
        if slow and segment is not None and not _is_more_work(work, best, segment):
            stretch.append(segment)
            continue
        if stretch:
            found.append(_slowdown(job, best, stretch, steady, rank_steps))
            stretch = []
        if slow and segment is not None:
            grown = _slowdown(job, best, [segment], steady, rank_steps)
            found.append(replace(grown, more_work=True))
        if segment is not None and (slow or segment.step_time_ms < best.step_time_ms):
            best = segment
    return _ramps_joined(found)


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


def _transfer_share(rank_steps: pl.DataFrame) -> float | None:
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
