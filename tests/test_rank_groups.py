"""Whom a rank is compared with: the faster ones of two groups, in steps that no pause stretches."""

from dataclasses import replace

import numpy as np
import pytest

from fabricobs.diagnosis.model import load_models
from fabricobs.diagnosis.rank_compute_times import RankTimes, _grouped
from fabricobs.diagnosis.rank_groups import slower_group
from fabricobs.diagnosis.slow_ranks import (
    SlowUnit,
    alike,
    find_slow,
    judged_ranks,
    smallest_excess,
    without_most,
)
from fabricobs.diagnosis.statistics import Array


def times_of(own_ms: Array, step_ms: Array) -> RankTimes:
    steps, ranks = own_ms.shape
    return RankTimes(
        job=None,
        steps=np.arange(steps),
        ends=np.full(steps, np.datetime64("NaT"), dtype="datetime64[us]"),
        step_ms=step_ms,
        ranks=np.arange(ranks),
        hosts=tuple(f"node{rank // 4}" for rank in range(ranks)),
        stages=np.zeros(ranks, dtype=np.int64),
        own_ms=own_ms,
        comm_ms=np.full_like(own_ms, np.nan),
        data_ms=np.full_like(own_ms, np.nan),
        pids=(None,) * ranks,
        measured=False,
    )


@pytest.mark.parametrize("law", ["normal", "gamma", "rank"])
@pytest.mark.parametrize("ranks", [8, 16, 128])
def test_ranks_that_vary_are_no_two_groups(ranks: int, law: str) -> None:
    """Noise of steps, rollouts of any length, and GPUs that differ by a few per cent."""
    chance = np.random.default_rng(ranks)
    for _ in range(40):
        own = {
            "normal": chance.normal(1, 0.1, (160, ranks)),
            "gamma": chance.gamma(8, 1 / 8, (160, ranks)),
            "rank": np.broadcast_to(1 + np.abs(chance.normal(0, 0.02, ranks)), (160, ranks)),
        }[law]
        assert slower_group(700 * own, np.arange(ranks), None) is None


@pytest.mark.parametrize("seed", range(20))
def test_the_slower_of_two_groups(seed: int) -> None:
    chance = np.random.default_rng(seed)
    ranks, begin = int(chance.choice([8, 16, 64])), 20 * int(chance.integers(0, 4))
    size = int(chance.integers(4, ranks // 2 + 1))
    slow = np.sort(chance.choice(ranks, size, replace=False))
    own = chance.normal(1, chance.uniform(0.002, 0.05), (160, ranks))
    own[begin:, slow] *= 1 + chance.uniform(0.12, 0.6)
    group = slower_group(700 * own, np.arange(ranks), None)
    assert group is not None
    assert group.columns.tolist() == slow.tolist()
    assert group.throughout.tolist() == (slow.tolist() if begin == 0 else [])
    assert group.detected == begin + 39


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("measured", [False, True])
def test_most_ranks_are_no_slower_than_their_peers(seed: int, measured: bool) -> None:
    """All but the ranks of one rail, whose cable was sick, waited in what counts as their work:

    "k0301 ... and 8 more hosts computed 6% longer than their peers". One more is slow in some.
    """
    chance = np.random.default_rng(seed)
    hosts, gpus, steps = int(chance.choice([4, 16])), 8, int(chance.choice([80, 200]))
    ranks, begin = hosts * gpus, int(chance.integers(0, steps // 2))
    rails = chance.choice(gpus, int(chance.integers(1, 4)), replace=False)
    waits = ~np.isin(np.arange(ranks) % gpus, rails)
    own = 3650 * chance.normal(1, chance.uniform(0.0005, 0.01), (steps, ranks))
    grows = np.minimum(np.arange(steps - begin) / chance.integers(1, 40), 1)
    own[begin:, waits] += (chance.uniform(0.04, 0.3) * 3650 * grows)[:, None]
    slow = int(chance.choice(np.flatnonzero(waits))) if chance.random() < 0.5 else None
    if slow is not None:
        own[:, slow] += 0.4 * 3650
    longer = np.where(np.arange(steps) < begin, 0.0, 300.0)
    node = tuple(f"node{rank // gpus}" for rank in range(ranks))
    times = replace(times_of(own, 4100 + longer), hosts=node, measured=measured)
    grouped = replace(times, slower=_grouped(times).slower)
    model = load_models()["straggler"]
    units = without_most(grouped, alike(grouped, find_slow(grouped, model)))
    named = [unit.columns.tolist() for unit in units]
    assert named == ([] if slow is None else [[slow]])


@pytest.mark.parametrize("seed", range(10))
def test_units_that_are_most_ranks_together_are_none(seed: int) -> None:
    """Whatever finds them: each may be late in steps of its own, and those few stay."""
    chance = np.random.default_rng(seed)
    hosts, steps = int(chance.integers(3, 9)), 100
    times = times_of(np.ones((steps, hosts * 4)), np.ones(steps))
    crowd = chance.choice(hosts, hosts // 2 + 1, replace=False).tolist()
    together, alone = np.arange(steps) < 60, np.arange(steps) >= 80
    units = [SlowUnit(np.arange(4) + 4 * host, (f"node{host}",), together, 10) for host in crowd]
    late = SlowUnit(np.arange(4) + 4 * crowd[0], (f"node{crowd[0]}",), alone, 85)
    assert without_most(times, [*units, late]) == [late]
    assert without_most(times, units[: hosts // 2]) == units[: hosts // 2]


@pytest.mark.parametrize("seed", range(12))
def test_ranks_of_a_group_that_is_late_in_bursts_are_late_together(seed: int) -> None:
    """A tensor group waits for its slow rank: each of its ranks is the last in few steps alone."""
    chance = np.random.default_rng(seed)
    ranks, size, steps = 256, int(chance.choice([2, 4])), 72
    first = int(chance.integers(ranks // size)) * size
    own = 700 + chance.normal(0, 2, (steps, ranks))
    late = (np.arange(steps) >= 20) & (np.arange(steps) % 16 < 5)
    own[np.ix_(late, range(first, first + size))] += 300 + chance.normal(0, 3, (late.sum(), size))
    hosts = tuple(f"node{rank // 8}" for rank in range(ranks))
    times = replace(times_of(own, np.full(steps, 1300.0)), hosts=hosts)
    model = load_models()["straggler"]
    units = alike(times, find_slow(times, model))
    assert [unit.columns.tolist() for unit in units] == [list(range(first, first + size))]
    # One alone would win nothing back; the group does.
    lost = times.lost_share(units[0].columns, 0, steps)
    assert lost == pytest.approx(300 * late.sum() / (1300 * steps), rel=0.1)


@pytest.mark.parametrize("seed", range(24))
def test_one_slow_rank_makes_no_slow_host(seed: int) -> None:
    """A rank 54% slower in all steps was "its host computes 3% longer in 9 bursts"."""
    chance = np.random.default_rng(seed)
    each, hosts = int(chance.choice([4, 8])), int(chance.choice([4, 16, 32]))
    steps, slow = int(chance.choice([120, 480])), int(chance.integers(each * hosts))
    own = 2200 * chance.normal(1, chance.uniform(0.005, 0.05), (steps, each * hosts))
    whole_host = seed % 3 == 0  # which is slow too, by far less
    own[:, slow] *= 1 + chance.uniform(0.2, 0.6)
    if whole_host:
        own[:, np.arange(each * hosts) // each == slow // each] *= 1.08
    times = replace(
        times_of(own, own.max(axis=1) + 1500),
        hosts=tuple(f"node{rank // each:02}" for rank in range(each * hosts)),
        measured=True,
    )
    units = alike(times, find_slow(times, load_models()["straggler"]))
    assert units[0].columns.tolist() == [slow]
    assert units[0].share > 0.85
    assert [unit.hosts for unit in units[1:]] == [(times.hosts[slow],)] * whole_host


@pytest.mark.parametrize("seed", range(60))
def test_several_slow_ranks_and_hosts_are_each_found_and_no_other(seed: int) -> None:
    """One late in all steps hid who was late in bursts; the other rank of a slow one's host was
    slow with it; GPUs a little slower by nature were "slow in bursts"."""
    chance = np.random.default_rng(seed)
    each, hosts = int(chance.choice([1, 2, 4, 8])), int(chance.choice([8, 16, 32]))
    steps, ranks = int(chance.choice([120, 240, 480])), each * hosts
    noise = chance.uniform(0.005, 0.04)
    own = 2000 * chance.normal(1, noise, (steps, ranks)) * chance.normal(1, 0.005, ranks)
    slow: list[list[int]] = []
    for host in chance.choice(hosts, int(chance.integers(0, 4)), replace=False):
        of_host = list(range(host * each, (host + 1) * each))
        slow.append(of_host if chance.random() < 0.4 else [int(chance.choice(of_host))])
        begin = int(chance.choice([0, steps // 3]))
        late = np.arange(steps) >= begin
        if chance.random() < 0.3:
            late &= np.arange(steps) % 30 < 12  # bursts
        own[np.ix_(late, slow[-1])] *= 1 + chance.uniform(0.25, 0.6)
    top = own.max(axis=1, keepdims=True)
    times = replace(
        times_of(own, top[:, 0] + 800),
        hosts=tuple(f"node{rank // each:02}" for rank in range(ranks)),
        comm_ms=top - own + 800,
        measured=True,
    )
    units = alike(times, find_slow(times, load_models()["straggler"]))
    told = {int(column) for unit in units for column in unit.columns}
    assert told == {rank for ranks in slow for rank in ranks}
    for ranks_of in slow:
        assert any(set(ranks_of) <= set(unit.columns.tolist()) for unit in units)


@pytest.mark.parametrize("seed", range(5))
def test_a_rank_that_pauses_for_longer_than_the_mean_step_of_its_line(seed: int) -> None:
    """Lines of every fifth step tell the mean: the pause of one rank was priced in full."""
    chance = np.random.default_rng(seed)
    own, step = chance.normal(700, 50, (30, 16)), np.full(30, 1000.0)
    paused = chance.choice(30, 3, replace=False)
    own[paused, int(chance.integers(16))] += chance.uniform(1500, 3000, 3)
    step[paused] += 500
    assert np.flatnonzero(~times_of(own, step).steady).tolist() == sorted(paused.tolist())


@pytest.mark.parametrize("seed", range(60))
def test_of_times_that_are_missing_nothing_is_told(seed: int) -> None:
    """Any part may be: of single steps, whole steps, ranks, peers, or of the steps themselves."""
    chance = np.random.default_rng(seed)
    ranks, steps = int(chance.choice([1, 2, 4, 16])), int(chance.choice([1, 5, 24, 160]))
    own = 700 * chance.normal(1, chance.uniform(0.001, 0.02), (steps, ranks))
    own[chance.random(own.shape) < chance.choice([0, 0.5, 1])] = np.nan
    own[chance.random(steps) < chance.choice([0, 0.9])] = np.nan
    own[:, chance.random(ranks) < chance.choice([0, 0.5])] = np.nan
    step_ms = np.where(chance.random(steps) < chance.choice([0, 0.1, 1]), np.nan, 1300)
    times = replace(
        times_of(own, step_ms),
        stages=chance.integers(0, int(chance.choice([1, 8])), ranks),
        measured=bool(chance.random() < 0.5),
    )
    model = load_models()["straggler"]
    units = find_slow(times, model)
    assert alike(times, units) == []
    assert judged_ranks(times, units, model) <= np.isfinite(times.excess).any(axis=0).sum()
    power = smallest_excess(times, model)
    assert power is None or power.effect > 0


@pytest.mark.parametrize("seed", range(12))
def test_bursts_of_a_host_are_told_where_single_ranks_vary(seed: int) -> None:
    """Of twelve bursts of a host in a job of rollouts three were told, with steps between them."""
    chance = np.random.default_rng(seed)
    hosts, steps, length = int(chance.integers(4, 12)), 270, int(chance.integers(5, 12))
    own = 700 * np.exp(chance.normal(0, chance.uniform(0.1, 0.16), (steps, 8 * hosts)))
    late = np.zeros(steps, dtype=bool)
    for begin in range(int(chance.integers(5, 20)), steps - length, int(chance.integers(25, 40))):
        late[begin : begin + length] = True
    slow = int(chance.integers(hosts))
    own[np.ix_(late, range(8 * slow, 8 * slow + 8))] *= 1 + chance.uniform(0.35, 0.6)
    names = tuple(f"node{rank // 8}" for rank in range(8 * hosts))
    times = replace(times_of(own, np.full(steps, 1500.0)), hosts=names, measured=True)
    units = [unit for unit in find_slow(times, load_models()["straggler"]) if unit.hosts]
    assert [unit.hosts for unit in units] == [(f"node{slow}",)]
    # A burst of which a step is missed is bridged, and its edges are noisy.
    assert np.mean(units[0].late != late) < 0.05
    assert abs(len(units[0].bursts) - np.sum(np.diff(late.astype(int)) == 1)) <= 2
