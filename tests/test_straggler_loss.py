"""What a straggler cost: its own times, or what the longer steps that began with it lost."""

from dataclasses import replace

import numpy as np
import pytest

from fabricobs.diagnosis.methods.straggler_loss import begun_with, loss_of
from fabricobs.diagnosis.rank_compute_times import RankTimes
from fabricobs.diagnosis.slow_ranks import SlowUnit
from fabricobs.diagnosis.slowdowns import Slowdown
from fabricobs.diagnosis.statistics import Array

STEPS, RANKS, STEP_MS, WORK_MS = 160, 16, 1000.0, 600.0
SLOW = np.array([5])


def times_of(step_ms: Array, own_ms: Array, comm_ms: Array, *, measured: bool) -> RankTimes:
    """Times of a job of two hosts in which no rank loads data."""
    return RankTimes(
        job="a",
        steps=np.arange(STEPS),
        ends=np.arange(STEPS).astype("datetime64[s]").astype("datetime64[us]"),
        step_ms=step_ms,
        ranks=np.arange(RANKS),
        hosts=tuple(f"node{rank // 8}" for rank in range(RANKS)),
        stages=np.zeros(RANKS, dtype=np.int64),
        own_ms=own_ms,
        comm_ms=comm_ms,
        data_ms=np.zeros_like(own_ms),
        pids=(None,) * RANKS,
        measured=measured,
    )


@pytest.mark.parametrize("seed", range(40))
def test_a_slow_rank_cost_what_its_steps_lost_where_it_explains_nearly_all(seed: int) -> None:
    """Evaluations last longer by it, too: "15.4% was lost" stood beside "cost 12.6%"."""
    chance = np.random.default_rng(seed)
    onset, own = int(chance.integers(40, 110)), float(chance.uniform(80, 600))
    explains = float(chance.choice([chance.uniform(0.3, 0.75), chance.uniform(0.85, 0.99)]))
    added = own / explains
    late = np.arange(STEPS) >= onset
    work = WORK_MS + chance.normal(0, 2, (STEPS, RANKS))
    work[late, SLOW[0]] += own
    step_ms = STEP_MS + np.where(late, added, 0.0)
    times = times_of(step_ms, work, np.zeros_like(work), measured=True)
    unit = SlowUnit(SLOW, (), late, onset + 10)
    slower = Slowdown(
        "a", onset, STEPS - 1, None, None, STEP_MS, STEP_MS + added, None, explains, goes_on=True
    )
    longer = begun_with(times, unit, onset, [replace(slower, first_step=5), slower])
    assert longer is slower
    lost = loss_of(times, unit, onset, STEPS - 1, [], longer)
    if explains > 0.8:
        assert lost.share == pytest.approx(slower.loss_share, abs=1e-4)
        assert lost.explained == pytest.approx(explains, abs=0.05) and not lost.hidden
    else:
        assert lost.share == pytest.approx(own / (STEP_MS + added), abs=0.01)
        assert lost.explained is None


@pytest.mark.parametrize("seed", range(20))
def test_waits_that_computation_hides_cost_what_the_longer_steps_lost(seed: int) -> None:
    """Peers wait in collectives while they compute: 28 % of the throughput was told as 70 %."""
    chance = np.random.default_rng(seed)
    onset, added = int(chance.integers(40, 110)), float(chance.uniform(60, 700))
    late = np.arange(STEPS) >= onset
    waited = added * chance.uniform(1.2, 2.8)  # in collectives, part of it under computation
    comm = chance.normal(300, 3, (STEPS, RANKS))
    comm[late] += waited
    comm[late, SLOW[0]] -= waited
    step_ms = STEP_MS + np.where(late, added, 0.0)
    own = np.maximum(step_ms[:, None] - comm, 0.0)
    times = times_of(step_ms, own, comm, measured=False)
    unit = SlowUnit(SLOW, (), late, onset + 10)
    longer = Slowdown(
        "a", onset, STEPS - 1, None, None, STEP_MS, STEP_MS + added, None, None, goes_on=True
    )
    lost = loss_of(times, unit, onset, STEPS - 1, [], longer)
    assert lost.share == pytest.approx(added / (STEP_MS + added), abs=1e-3)
    assert lost.hidden
