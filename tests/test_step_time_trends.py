"""A change of pace is found in logs of each step and in those that tell of every n-th."""

from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import numpy as np
import polars as pl
import pytest

from fabricobs.diagnosis.job import StepTimeTrend, step_time_trends
from fabricobs.diagnosis.longer_transfers import with_transfers

if TYPE_CHECKING:
    from fabricobs.diagnosis.evidence import Evidence

START = datetime(2026, 3, 2, 9)
SMALLEST_LOSS = 0.05
LEAST_STEPS = 10
RANKS = pl.DataFrame(
    schema={"job": pl.String, "rank": pl.Int64, "step": pl.Int64}
    | dict.fromkeys(("step_time_ms", "own_ms", "compute_ms", "comm_ms", "data_ms"), pl.Float64)
)
NO_CALLS = pl.DataFrame(
    schema={"job": pl.String}
    | dict.fromkeys(("before_ms", "after_ms", "calls_before", "calls"), pl.Float64)
)
RESTARTS = pl.DataFrame(schema={"job": pl.String, "step": pl.Int64})


def judged(
    times: np.ndarray,
    every: int,
    *,
    mean: bool,
    ranks: pl.DataFrame = RANKS,
    tokens: np.ndarray | None = None,
) -> StepTimeTrend:
    """Judge a log that tells every n-th step: its own time, or the mean since the line before.

    `tokens` are those of each step, where the log tells them.
    """
    steps = np.arange(0, len(times), every)[1:] if every > 1 else np.arange(len(times))
    told = [times[step - every + 1 : step + 1].mean() if mean else times[step] for step in steps]
    rows = pl.DataFrame(
        {
            "job": pl.Series([None] * len(steps), dtype=pl.String),
            "step": steps,
            "ts": [START + timedelta(seconds=float(step)) for step in steps],
            "step_time_ms": told,
            "source": ["trainer"] * len(steps),
        }
    ).with_columns(
        pl.lit(None, pl.Float64).alias(name)
        for name in ("tokens", "operations", "samples", "transfer_ms", "slowest_compute_ms")
    )
    if tokens is not None:
        rows = rows.with_columns(tokens=pl.Series(tokens[steps], dtype=pl.Float64))
    (trend,) = step_time_trends(rows, ranks, RESTARTS, SMALLEST_LOSS, LEAST_STEPS, {})
    return trend


@pytest.mark.parametrize("every", [1, 2, 5, 10, 20])
@pytest.mark.parametrize("seed", range(6))
def test_a_longer_step_is_found_and_dated_to_a_line(seed: int, every: int) -> None:
    chance = np.random.default_rng(seed)
    # Four lines before it tell the pace, and seven after it; the first steps are warm-up.
    begin = int(chance.integers(20 + 5 * every, 60 + 10 * every))
    times = 1000 * (1 + chance.normal(0, 0.015, begin + max(60, 9 * every)))
    times[begin:] *= 1.2
    trend = judged(times, every, mean=bool(chance.integers(2)))
    (slowdown,) = trend.slowdowns
    assert trend.enough
    # The line in which it begins may be a mean of both.
    assert -2 <= slowdown.first_step - begin <= 2 * every
    assert slowdown.loss_share == pytest.approx(1 / 6, abs=0.03)


@pytest.mark.parametrize("every", [1, 2, 5, 10, 20])
@pytest.mark.parametrize("seed", range(20))
def test_steady_steps_are_steady(seed: int, every: int) -> None:
    chance = np.random.default_rng(seed)
    times = 1000 * (1 + 0.03 * chance.standard_t(4, 60 + 40 * every))
    assert judged(times, every, mean=bool(chance.integers(2))).slowdowns == ()


@pytest.mark.parametrize("grown", ["comm_ms", "compute_ms of one", "compute_ms of all", "untold"])
@pytest.mark.parametrize("seed", range(5))
def test_a_slow_start_is_a_loss_where_no_more_work_was_done(seed: int, grown: str) -> None:
    """A link at half its speed until step 116: all answers were "unknown", and 26% was lost."""
    chance = np.random.default_rng(seed)
    ends, rise = int(chance.integers(40, 120)), float(chance.uniform(0.1, 0.5))
    slow = np.arange(200) < ends
    times = 1000 * (1 + chance.normal(0, 0.005, 200) + rise * slow)
    longer = times - 1000

    def grows(part: str, rank: int) -> bool:
        of_one = grown.endswith("one") and (rank == 3) == (part == "compute_ms")
        return of_one or grown in {part, f"{part} of all"}

    records = [
        {
            "job": None,
            "rank": rank,
            "step": step,
            "step_time_ms": times[step],
            "compute_ms": 600 + longer[step] * grows("compute_ms", rank),
            "comm_ms": 400 + longer[step] * grows("comm_ms", rank),
            "data_ms": 0.0,
        }
        for step in range(200)
        for rank in range(8)
    ]
    ranks = pl.DataFrame(records, schema_overrides=RANKS.schema, strict=False)
    ranks = ranks.with_columns(own_ms=pl.col("compute_ms"))
    told = judged(times, 1, mean=False, ranks=RANKS if grown == "untold" else ranks)
    (pace,) = with_transfers(cast("Evidence", SimpleNamespace(frame=lambda *_: NO_CALLS)), [told])
    if grown in {"untold", "compute_ms of all"}:
        assert pace.slowdowns == ()
        assert (pace.slow_start is None) == (grown == "compute_ms of all")
        return
    (slowdown,) = pace.slowdowns
    assert pace.slow_start is None and not pace.onsets and not slowdown.is_lead
    assert abs(slowdown.last_step + 1 - ends) <= 2
    assert slowdown.loss_share == pytest.approx(rise / (1 + rise), abs=0.02)


@pytest.mark.parametrize("seed", range(10))
def test_steps_that_become_shorter_all_along_are_no_slow_start(seed: int) -> None:
    """The last ten of 60 steps were the best pace, and the others "7% longer until step 50"."""
    chance = np.random.default_rng(800 + seed)
    steps = int(chance.integers(60, 300))
    times = 1000 * (1 + np.linspace(chance.uniform(0.08, 0.3), 0, steps))
    trend = judged(times * (1 + chance.normal(0, 0.012, steps)), 1, mean=False)
    assert trend.slow_start is None


@pytest.mark.parametrize("faulty", [False, True])
@pytest.mark.parametrize("grows", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_a_smaller_batch_costs_more_a_token_and_is_no_loss(
    seed: int, grows: bool, faulty: bool
) -> None:
    """A batch that doubles: its first steps were "55% longer for the same work", no cause known."""
    chance = np.random.default_rng(700 + seed)
    change, fixed = int(chance.integers(40, 120)), float(chance.uniform(0, 0.95))
    small = np.arange(200) < change if grows else np.arange(200) >= change
    tokens = np.where(small, 1 / float(chance.choice([2, 4, 8])), 1.0)
    times = 1000 * (fixed + (1 - fixed) * tokens) * (1 + chance.normal(0, 0.005, 200))
    if faulty:  # what makes even the smaller steps longer as a whole
        times = np.where(small, 1000 * (1 + chance.uniform(0.1, 0.5)), times)
    trend = judged(times, 1, mean=False, tokens=tokens)
    found = [*trend.slowdowns, *filter(None, [trend.slow_start])]
    assert len(found) == faulty
    assert all(each.per_work and each.loss_share > 0.1 for each in found)


@pytest.mark.parametrize("grows", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_few_steps_of_another_batch_make_no_loss_of_it(seed: int, grows: bool) -> None:
    """A restart 17 steps before the batch grew: "28% longer for the same work", critical."""
    chance = np.random.default_rng(800 + seed)
    few, fixed = int(chance.integers(14, 40)), float(chance.uniform(0.02, 0.3))
    number = int(chance.integers(24, 40)) * few
    other = np.arange(number) < few if grows else np.arange(number) >= number - few
    tokens = np.where(other, 1 / float(chance.choice([1.2, 4 / 3, 2])), 1.0)
    if not grows:
        tokens = 1 / tokens
    times = 1000 * (fixed + (1 - fixed) * tokens) * (1 + chance.normal(0, 0.005, number))
    trend = judged(times, 1, mean=False, tokens=tokens)
    assert trend.slowdowns == () and trend.slow_start is None


def test_too_few_lines_tell_nothing() -> None:
    assert not judged(np.full(100, 1000.0), 20, mean=True).enough
