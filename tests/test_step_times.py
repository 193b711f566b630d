"""The view `step_times`: the best source a job has for the time of a step."""

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from conftest import Rows
from fabricobs.store.session import open_session

BEGIN = datetime(2026, 3, 2, 9)
MakeStore = Callable[[Rows], Path]


def step_times(store: Path) -> list[tuple[int, float, str]]:
    with open_session(store, "step_times") as session:
        return session.sql(
            "SELECT step, step_time_ms, source FROM step_times ORDER BY step"
        ).fetchall()


def test_begin_and_end_of_a_step_leave_out_what_is_between(make_store: MakeStore) -> None:
    rows = [
        {
            "step": step,
            "started": BEGIN + timedelta(seconds=60 * step),
            "ts": BEGIN + timedelta(seconds=60 * step + 20),
        }
        for step in range(3)
    ]
    times = step_times(make_store({"steps": rows}))
    assert times == [(step, 20_000.0, "begin and end") for step in range(3)]


def test_a_clock_of_ms_is_subtracted_step_by_step(make_store: MakeStore) -> None:
    rows = [
        {"step": step, "elapsed_ms": 97.0 * step + (5 if step > 3 else 0), "line": step}
        for step in range(1, 6)
    ]
    times = [time for _, time, _ in step_times(make_store({"steps": rows}))]
    assert times == [97.0, 97.0, 102.0, 97.0]


def test_a_clock_of_seconds_is_read_over_some_twenty_seconds(make_store: MakeStore) -> None:
    train = [
        {"step": s, "total_steps": 200, "elapsed_ms": 1000.0 * (s * 7 // 10), "line": s}
        for s in range(1, 201)
    ]
    # The bar of an evaluation in the same file has its own, smaller number of steps.
    evaluation = [
        {"step": s, "total_steps": 30, "elapsed_ms": 1000.0 * s, "line": 300} for s in range(1, 31)
    ]
    times = step_times(make_store({"steps": train + evaluation}))
    assert len(times) > 150
    assert all(time == pytest.approx(700, rel=0.06) for _, time, _ in times)


def test_no_interval_crosses_the_epochs_of_a_bar(make_store: MakeStore) -> None:
    # The second epoch is twice as fast and ends in the middle; two ranks write in turn.
    rows = [
        {
            "step": step,
            "total_steps": 100,
            "elapsed_ms": 1000.0 * step * pace,
            "line": 1000 * epoch + 2 * step + rank,
            "rank": rank,
        }
        for epoch, last, pace in ((0, 100, 2), (1, 50, 1))
        for step in range(1, last + 1)
        for rank in (0, 1)
    ]
    times = {step: time for step, time, _ in step_times(make_store({"steps": rows}))}
    assert len(times) >= 60
    assert {time for step, time in times.items() if step <= 50} == {1000.0}
    assert {time for step, time in times.items() if step > 50} == {2000.0}


def test_a_printed_time_is_better_than_the_clock(make_store: MakeStore) -> None:
    rows = [{"step": s, "step_time_ms": 500.0, "elapsed_ms": 600.0 * s} for s in range(1, 5)]
    assert {source for _, _, source in step_times(make_store({"steps": rows}))} == {"trainer"}
