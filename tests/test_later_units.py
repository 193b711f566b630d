"""Which host or rank became later as the steps became longer, among ranks that vary."""

import numpy as np
import pytest

from fabricobs.diagnosis.later_units import later_units
from fabricobs.diagnosis.rank_compute_times import RankTimes
from fabricobs.diagnosis.slowdowns import Slowdown

GPUS, STEP_MS = 8, 1000.0


def drawn(seed: int, *, culprits: str) -> tuple[RankTimes, Slowdown, set[str], set[int]]:
    """A job whose ranks vary by a tenth to a half; steps become longer for a culprit or for all."""
    chance = np.random.default_rng(seed)
    hosts, steps = int(chance.integers(2, 13)), int(chance.integers(80, 300))
    ranks, onset = hosts * GPUS, int(chance.integers(30, steps - 30))
    sigma = float(chance.uniform(0.1, 0.5))
    noise = chance.lognormal(0, sigma, (steps, ranks))
    # What a rank has more to do in one step it often has in the next.
    noise[1:] = 0.8 * noise[1:] + 0.2 * noise[:-1]
    spread = 1 + float(chance.uniform(0, 0.05)) * chance.normal(0, 1, ranks)
    own = 600.0 * spread * noise
    after = np.arange(steps) >= onset
    added = float(chance.uniform(0.15, 0.6)) * STEP_MS
    late_hosts: set[str] = set()
    late: set[int] = set()
    if culprits == "hosts":
        number = 1 if hosts < 6 else int(chance.integers(1, 3))
        places = chance.choice(hosts, number, replace=False).tolist()
        late = {place * GPUS + gpu for place in places for gpu in range(GPUS)}
        late_hosts = {f"n{place}" for place in places}
    elif culprits == "rank":
        late = {int(chance.integers(ranks))}
    columns = sorted(late)
    own[np.ix_(after, columns)] += added
    if culprits == "more work":
        own[after] *= 1 + added / STEP_MS
    step_ms = np.full(steps, STEP_MS) + after * added
    times = RankTimes(
        job="a",
        steps=np.arange(10, 10 + steps),
        ends=np.arange(steps).astype("datetime64[s]").astype("datetime64[us]"),
        step_ms=step_ms,
        ranks=np.arange(ranks),
        hosts=tuple(f"n{rank // GPUS}" for rank in range(ranks)),
        stages=np.zeros(ranks, dtype=np.int64),
        own_ms=own,
        comm_ms=np.zeros_like(own),
        data_ms=np.zeros_like(own),
        pids=(None,) * ranks,
        measured=bool(chance.integers(2)),
    )
    slower = Slowdown(
        "a", 10 + onset, 9 + steps, None, None, STEP_MS, STEP_MS + added, None, None, goes_on=True
    )
    return times, slower, late_hosts, late


@pytest.mark.parametrize("culprits", ["hosts", "rank"])
def test_who_became_later_with_the_steps_is_named(culprits: str) -> None:
    """Data came late to a host of two whose ranks vary by a third: "ranks vary too much".

    Of 300 drawn jobs 297 hosts and 285 ranks were named, and nobody else.
    """
    named = 0
    for seed in range(40):
        times, slower, hosts, ranks = drawn(seed, culprits=culprits)
        for unit in later_units(times, [slower], []):
            assert {*unit.hosts} == hosts
            assert {*unit.columns.tolist()} == ranks
            assert times.steps[unit.first] == slower.first_step
            named += 1
    assert named >= 35


@pytest.mark.parametrize("culprits", ["nobody", "more work"])
@pytest.mark.parametrize("seed", range(25))
def test_nobody_is_named_where_all_became_slower(seed: int, culprits: str) -> None:
    times, slower, _, _ = drawn(seed, culprits=culprits)
    assert later_units(times, [slower], []) == []
