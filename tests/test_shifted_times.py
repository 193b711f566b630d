"""A log in local time beside others in UTC: the shift is told, and hides nothing."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from conftest import Rows
from fabricobs.diagnosis.run import diagnose
from fabricobs.diagnosis.shifted_times import Source, shift_of

START = datetime(2026, 3, 3, 8, 10)
# Of zones of the tz database, from UTC, and of none.
OFFSETS = [-9.5, -8, -5, -3.5, 1, 2, 3, 5.5, 5.75, 8, 9.5, 12.75]
Make = Callable[[Rows], Path]


def hours(number: float) -> timedelta:
    return timedelta(hours=number)


def drawn(seed: int) -> tuple[np.random.Generator, timedelta, float]:
    draw = np.random.default_rng([seed, 1440])
    return draw, timedelta(minutes=int(draw.integers(12, 600))), float(draw.choice(OFFSETS))


@pytest.mark.parametrize("seed", range(40))
def test_the_shift_is_told_by_the_traffic_that_steps_cause(seed: int) -> None:
    """Counters that reach beyond the job tell exactly, however long the job is."""
    draw, lasts, offset = drawn(seed)
    begins = START + timedelta(seconds=float(draw.uniform(60, 300)))
    steps = Source("steps", begins + hours(offset), begins + hours(offset) + lasts)
    late = timedelta(seconds=float(draw.uniform(0, 60)))
    counters = Source(
        "counters", START, begins + lasts + hours(0.1), (begins - late, begins + lasts + late),
        timedelta(seconds=30),
    )  # fmt: skip
    for shown, moved in ((steps, hours(offset)), (Source("steps", begins, begins + lasts), None)):
        shift = shift_of([shown, counters])
        assert (shift.ahead if shift else None) == moved


@pytest.mark.parametrize("seed", range(40))
def test_times_that_do_not_overlap_tell_the_shift_or_how_far_it_may_be(seed: int) -> None:
    draw, lasts, offset = drawn(seed)
    lasts = min(lasts, hours(abs(offset) * 0.9))
    begins = START + timedelta(seconds=float(draw.uniform(30, 300)))
    steps = Source("steps", begins + hours(offset), begins + hours(offset) + lasts)
    others = [Source("counters", START, begins + lasts + timedelta(seconds=200))]
    if seed % 2:
        others.append(Source("NCCL logs", begins, begins + lasts))
    shift = shift_of([steps, *others])
    assert shift is not None
    assert shift.sources == tuple(each.name for each in others)
    assert shift.between[0] <= hours(offset) <= shift.between[1]
    assert "do not overlap" in shift.words
    assert ("late" if offset > 0 else "early") in shift.words


@pytest.mark.parametrize("seed", range(20))
def test_what_is_of_another_time_looks_no_shift(seed: int) -> None:
    draw, lasts, _ = drawn(seed)
    steps = Source("steps", START, START + lasts)
    away = timedelta(days=int(draw.integers(1, 30)), minutes=int(draw.integers(0, 60)))
    assert shift_of([steps, Source("counters", START + away, START + away + lasts)]) is None
    assert shift_of([steps, Source("counters", START - hours(1), START + lasts + hours(3))]) is None
    assert shift_of([steps]) is None
    # NCCL's log of the begin lies in the steps' time.
    assert shift_of([steps, Source("NCCL logs", START - hours(0.01), START)]) is None


def flapping(offset: float, seed: int, *, quiet: int = 4) -> tuple[Rows, list[int]]:
    """A trainer's log in local time; counters in UTC of a NIC that goes down while steps wait."""
    draw = np.random.default_rng([seed, 12])
    steps, downs = 240, sorted(map(int, draw.choice(np.arange(30, 230), 3, replace=False)))
    length = draw.normal(4.0, 0.02, steps)
    length[downs] += draw.uniform(8, 20, 3)
    ends = START + np.array([timedelta(seconds=float(t)) for t in np.cumsum(length)])
    down_at = [ends[step] - timedelta(seconds=3) for step in downs]
    rows: Rows = {"steps": [], "port_samples": [], "nccl_ranks": []}
    for step, (end, seconds) in enumerate(zip(ends, length, strict=True), 1):
        told = {"file_id": "t", "line": step, "step": step, "step_time_ms": 1000 * float(seconds)}
        rows["steps"].append({**told, "ts": end + hours(offset), "ts_source": "inline"})
    for host in range(4):
        at = START - timedelta(seconds=30 * quiet)
        sent, count = 0, 0
        while at < ends[-1] + timedelta(seconds=30 * quiet):
            busy = START <= at <= ends[-1]
            sent += int(draw.normal(60e9, 1e9)) if busy else int(draw.integers(0, 1000))
            count += 1
            rows["port_samples"].append(
                {
                    "file_id": f"c{host}", "line": count, "format": "counters", "ts": at,
                    "ts_source": "inline", "device": f"node{host:02d}", "port": "mlx5_0/1",
                    "tx_bytes": sent, "rx_bytes": sent,
                    "link_downed": 2 + sum(down <= at for down in down_at) if host == 1 else 2,
                }
            )  # fmt: skip
            at += timedelta(seconds=30)
        rows["nccl_ranks"].append(
            {"file_id": "n", "line": host + 1, "comm_id": "0x1", "host": f"node{host:02d}",
             "pid": 100 + host, "rank": host, "nranks": 4, "cuda_device": 0}
        )  # fmt: skip
    return rows, [step + 1 for step in downs]


@pytest.mark.slow
@pytest.mark.parametrize("offset", [0.0, -8.0, -0.25, 2.0, 5.5])
def test_a_shifted_log_hides_no_flap(make_store: Make, offset: float) -> None:
    rows, downs = flapping(offset, int(abs(offset) * 4))
    diagnosis = diagnose(make_store(rows))
    (flap,) = [f for f in diagnosis.findings if f.kind == "link_flap"]
    facts = dict(diagnosis.coverage.facts)
    if not offset:
        assert "times" not in facts
        # By counters of 30 s, in which steps of 4 s run: clocks are known to a few of these.
        assert flap.start_step is not None and abs(flap.start_step - downs[0]) <= 8
        return
    assert flap.start_step is None
    assert re.search("[23] of the job's long steps", flap.explanation)
    whole, rest = divmod(abs(offset) * 60, 60)
    told = " ".join(filter(None, [f"{whole:.0f} h", f"{rest:.0f} min" if rest else ""]))
    assert f"{told} {'late' if offset > 0 else 'early'}" in facts["times"]
    assert "--tz" in facts["times"]


@pytest.mark.slow
@pytest.mark.parametrize("rhythm", [0, 25, 40])
def test_pauses_without_a_rhythm_are_named(make_store: Make, rhythm: int) -> None:
    rows, downs = flapping(0.0, 3)
    if rhythm:
        for row in rows["steps"]:
            row["step_time_ms"] = 15_000.0 if row["step"] % rhythm == 0 else 4_000.0
    (answer, *_) = diagnose(make_store({"steps": rows["steps"]})).verdict.questions
    assert all(str(step) in answer.evidence for step in downs) == (rhythm == 0)
    assert ("pauses" in answer.evidence) == (rhythm == 0)


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 4])
@pytest.mark.parametrize("counted", [False, True])
def test_port_errors_that_nccl_logs_without_times_are_told_once(
    make_store: Make, times: int, counted: bool
) -> None:
    rows, _ = flapping(0.0, 5)
    rows["nccl_events"] = [
        {"file_id": "n", "line": 100 * pid + at, "host": "node01", "pid": pid, "nic": "mlx5_0",
         "kind": "async_event", "text": f"port {what}"}
        for pid in (101, 201)
        for at, what in enumerate(["error", "active"] * times)
    ]  # fmt: skip
    if not counted:
        del rows["port_samples"]
    flaps = [f for f in diagnose(make_store(rows)).findings if f.kind == "link_flap"]
    (flap,) = flaps
    assert "node01" in flap.title
    assert (flap.start is None) == (not counted)
    if not counted:
        assert f"went down {'once' if times == 1 else f'{times} times'}" in flap.title
