"""What if a rank or a host were like its peers: what that would save, and who is named for it."""

import numpy as np
import pytest

from fabricobs.diagnosis.findings import Entity, Finding
from fabricobs.diagnosis.rank_compute_times import RankTimes
from fabricobs.diagnosis.what_if import what_if

STEPS, RANKS, GPUS_A_HOST = 200, 32, 8
STEP_MS, WORK_MS = 1000.0, 800.0


def job(slow: dict[int, float], *, measured: bool = True) -> RankTimes:
    """A job whose ranks work 800 ms of 1,000, the slow ones longer by so many ms."""
    own = np.full((STEPS, RANKS), WORK_MS) + np.random.default_rng(7).normal(0, 2, (STEPS, RANKS))
    for rank, more in slow.items():
        own[:, rank] += more
    longest = max(slow.values(), default=0.0)
    return RankTimes(
        job="a",
        steps=np.arange(STEPS),
        ends=np.arange(STEPS).astype("datetime64[s]").astype("datetime64[us]"),
        step_ms=np.full(STEPS, STEP_MS + longest),
        ranks=np.arange(RANKS),
        hosts=tuple(f"node{rank // GPUS_A_HOST}" for rank in range(RANKS)),
        stages=np.zeros(RANKS, dtype=np.int64),
        own_ms=own,
        comm_ms=np.zeros_like(own),
        data_ms=np.zeros_like(own),
        pids=(None,) * RANKS,
        measured=measured,
    )


@pytest.mark.parametrize("measured", [True, False])
def test_a_slow_rank_is_worth_its_time(measured: bool) -> None:
    (best,) = what_if([job({13: 250.0}, measured=measured)], [])
    assert (best.entity.rank, best.entity.host) == (13, "node1")
    assert best.saved_share == pytest.approx(250 / 1250, abs=0.01)
    assert best.speedup == pytest.approx(1.25, abs=0.02)


def test_ranks_alike_promise_nothing() -> None:
    assert what_if([job({})], []) == ()


def test_where_all_ranks_of_a_host_are_slow_the_host_is_named() -> None:
    (best,) = what_if([job(dict.fromkeys(range(8, 16), 100.0))], [])
    assert best.entity == Entity("host", job="a", host="node1")
    assert best.saved_share == pytest.approx(100 / 1100, abs=0.01)


def test_two_slow_hosts_hide_each_other_but_for_the_difference() -> None:
    (best,) = what_if([job({3: 200.0, 30: 300.0})], [])
    assert best.entity.rank == 30
    assert best.saved_share == pytest.approx(100 / 1300, abs=0.01)


def test_what_a_finding_names_stands_there_once_in_order_of_what_it_costs() -> None:
    straggler = Finding(
        kind="straggler",
        entities=(Entity("rank", job="a", rank=13, host="node1"),),
        severity="high",
        confidence=0.9,
        title="",
        explanation="",
        loss_share=0.19,
        start_step=100,
        end_step=199,
    )
    skew = Finding(
        kind="ecmp_skew",
        entities=(Entity("switch", switch="leaf1"),),
        severity="critical",
        confidence=0.9,
        title="",
        explanation="",
        loss_share=0.3,
    )
    told = what_if([job({13: 250.0})], [straggler, skew])
    assert [each.entity.label for each in told] == ["leaf1", "rank 13 on node1"]
    assert told[1].over == "steps 100 to 199"
