"""A run of a job that is slower than another of its runs, from its first step to its last.

It has no faster steps of its own to be compared with. Another run of the job has, where it is of as
many ranks and hosts, and its steps do as much work.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from fabricobs.diagnosis.cables import CLOCK_SLACK
from fabricobs.diagnosis.job import (
    COVERED,
    SAME_WORK,
    WARM_UP_STEPS,
    WORK,
    StepTimeTrend,
    fewest_lines,
    for_the_same_work,
    segments_of,
)
from fabricobs.diagnosis.slowdowns import FasterRun, Slowdown
from fabricobs.store.jobs import RESTARTED_WITHIN, Run


@dataclass(frozen=True, slots=True)
class _Pace:
    run: Run
    step_time_ms: float
    source: str
    work: Mapping[str, float]  # of a usual step, by what tells it


def ran_again(runs: Sequence[Run]) -> list[Run]:
    """Return the runs of jobs that ran more than once; benchmarks are many runs as they are."""
    jobs = [run for run in runs if not run.is_benchmark and run.label is not None]
    return [run for run in jobs if any(_is_one_job(run, other) for other in jobs if other != run)]


def _is_one_job(run: Run, other: Run) -> bool:
    """Say whether two runs are of one training: by its name, or by the steps where one goes on.

    A person, or Kubernetes, may give it another name each time.
    """
    return run.name == other.name or _goes_on(run, other) or _goes_on(other, run)


def _goes_on(run: Run, later: Run) -> bool:
    """Say whether a run soon goes on where another ended, or at a checkpoint of it."""
    steps = run.first_step, run.last_step, later.first_step
    if run.end is None or later.begin is None or None in steps:
        return False
    first, last, begins = (step or 0 for step in steps)
    soon = -CLOCK_SLACK <= later.begin - run.end <= RESTARTED_WITHIN
    return soon and first < begins <= last + WARM_UP_STEPS


def faster_runs(
    step_times: pl.DataFrame, again: Sequence[Run], smallest_loss: float, least_steps: int
) -> dict[str | None, FasterRun]:
    """Return by label the runs that never reach the pace of another of their job, with that one.

    `again` are the runs of jobs that ran more than once, `step_times` those of all runs;
    `smallest_loss` and `least_steps` are as for a slowdown.
    """
    known = [_pace_of(run, step_times, least_steps) for run in again]
    paces = [pace for pace in known if pace is not None]
    found: dict[str | None, FasterRun] = {}
    for pace in paces:
        alike = [other for other in paces if _are_alike(pace, other)]
        best = min(alike, key=lambda other: other.step_time_ms)
        if pace.step_time_ms > best.step_time_ms / (1 - smallest_loss):
            found[pace.run.label] = FasterRun(
                best.run.label or best.run.name,
                best.step_time_ms,
                is_same_work=bool(pace.work.keys() & best.work.keys()),
                has_same_hosts=bool(pace.run.hosts) and set(pace.run.hosts) == set(best.run.hosts),
            )
    return found


def _pace_of(run: Run, step_times: pl.DataFrame, least_steps: int) -> _Pace | None:
    """Return the best pace of a run; None of one with too few steps, or of which none are told."""
    timed = step_times.filter(pl.col("job") == run.label, pl.col("step_time_ms") > 0).sort("step")
    steady = timed.filter(pl.col("step") >= pl.col("step").min() + WARM_UP_STEPS)
    lines = fewest_lines(steady["step"], least_steps) if len(steady) else least_steps
    if len(steady) < 2 * lines or steady["source"][0].startswith("collective"):
        return None
    told = [name for name in WORK if len(steady.filter(pl.col(name) > 0)) >= COVERED * len(steady)]
    same, _, _ = for_the_same_work(steady)
    segments, _ = segments_of(run.label, same, lines)
    return _Pace(
        run,
        min(segment.step_time_ms for segment in segments),
        steady["source"][0],
        {name: float(steady[name].median()) for name in told},  # type: ignore[arg-type]
    )


def _are_alike(pace: _Pace, other: _Pace) -> bool:
    """Say whether two runs of a job are of one size, and no log tells that their work differs."""
    a, b = pace.run, other.run
    # Not every host of a run need be named by its logs.
    are_one_size = a.nranks == b.nranks and (a.nranks is not None or len(a.hosts) == len(b.hosts))
    told = pace.work.keys() & other.work.keys()
    same_work = all(abs(pace.work[name] / other.work[name] - 1) <= SAME_WORK for name in told)
    return _is_one_job(a, b) and are_one_size and pace.source == other.source and same_work


def with_faster_run(
    trends: Sequence[StepTimeTrend], faster: FasterRun | None
) -> list[StepTimeTrend]:
    """Return the trends of a run, slower than another one from the first step on."""
    return [trend if faster is None else _than_in(faster, trend) for trend in trends]


def _than_in(faster: FasterRun, trend: StepTimeTrend) -> StepTimeTrend:
    first, last = trend.segments[0], trend.segments[-1]
    best = min(segment.step_time_ms for segment in trend.segments)
    slower = Slowdown(
        job=trend.job,
        first_step=first.first_step,
        last_step=last.last_step,
        start=first.start,
        end=trend.last_time,
        before_ms=faster.step_time_ms,
        after_ms=best,
        network_part=None,
        compute_part=None,
        per_work=faster.is_same_work,
        goes_on=True,
        from_start=True,
        faster=faster,
    )
    return replace(trend, slowdowns=(slower, *trend.slowdowns), faster=faster)
