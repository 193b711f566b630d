"""A steady pace says what single longer steps take of the time, and whether one rank makes them."""

import random
from datetime import datetime, timedelta

import polars as pl
import pytest

from fabricobs.diagnosis.job import step_time_trends
from fabricobs.diagnosis.long_steps import LongSteps, long_steps

START = datetime(2026, 3, 2, 9)


def drawn(seed: int, cause: str) -> tuple[LongSteps | None, set[int]]:
    """What is told of a job, and which of its steps are longer, by its `cause`."""
    draw = random.Random(seed)
    steps, ranks = draw.randrange(300, 700), draw.choice([8, 32])
    pace, noise = draw.uniform(500, 9000), draw.uniform(0.002, 0.02)
    longer = set[int]()
    if cause in {"one rank", "same rank", "all ranks"}:
        longer = set(draw.sample(range(20, steps), steps // 12))
    job, rows, now = [], [], START
    for step in range(steps):
        own = [0.6 * pace * (1 + abs(draw.gauss(0, noise))) for _ in range(ranks)]
        late = pace * draw.uniform(0.4, 1.2) if step in longer else 0.0
        who = 3 if cause == "same rank" else draw.randrange(ranks)
        own = [
            ms + (late if rank == who or cause == "all ranks" else 0) for rank, ms in enumerate(own)
        ]
        saved = 4 * pace if cause == "checkpoints" and step % 50 == 49 else 0.0
        time = max(own) + 0.4 * pace + saved
        now += timedelta(milliseconds=time)
        job.append({"step": step, "ts": now, "step_time_ms": time})
        rows += [{"step": step, "rank": rank, "own_ms": ms} for rank, ms in enumerate(own)]
    of_job = {name: pl.lit(None, pl.Float64) for name in ("tokens", "operations", "samples")}
    times = pl.DataFrame(job).with_columns(
        job=pl.lit("run"), source=pl.lit("trainer"), transfer_ms=pl.lit(None, pl.Float64), **of_job
    )
    by_rank = pl.DataFrame(rows).with_columns(
        job=pl.lit("run"),
        compute_ms=pl.col("own_ms"),
        comm_ms=pl.lit(None, pl.Float64),
        step_time_ms=pl.lit(None, pl.Float64),
    )
    restarts = pl.DataFrame(schema={"job": pl.String, "step": pl.Int64})
    (trend,) = step_time_trends(times, by_rank, restarts, 0.02, 10, {"run": ranks})
    return long_steps(trend, by_rank), longer


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("cause", ["one rank", "same rank", "all ranks", "checkpoints", "nothing"])
def test_single_long_steps_are_told_with_who_makes_them(seed: int, cause: str) -> None:
    told, longer = drawn(seed, cause)
    assert (told is None) == (not longer)
    if told is None:
        return
    assert told.number == len(longer)
    # Steps 40 % to 120 % longer, one in twelve: 3 % to 9 % of the time.
    assert 0.03 < told.share < 0.1
    assert told.of_one_rank == (0 if cause == "all ranks" else len(longer))
    alone, turns = "one rank alone computed longer", "not always the same one"
    assert (alone in told.words) == (cause != "all ranks")
    assert (turns in told.words) == (cause == "one rank")
