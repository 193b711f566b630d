"""Robust statistics: what they find, and what they leave alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabricobs.diagnosis.statistics import (
    change_points,
    flows_that_explain,
    hashing_p,
    jain,
    jain_of_hashing,
    robust_z,
    rolling_median,
    top_half_share,
)
from fabricobs.diagnosis.uplink_stretches import flows_of


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("count", [400, 2000])
def test_a_shift_of_a_fifth_is_found_at_its_step(count: int, seed: int) -> None:
    chance = np.random.default_rng(seed)
    values = chance.normal(1000, 15, count)
    values[count // 2 :] *= 1.2
    values[chance.choice(count, count // 100, replace=False)] *= 3
    (found,) = change_points(values)
    assert abs(found - count // 2) <= 2


@pytest.mark.parametrize("seed", range(30))
def test_noise_and_outliers_are_no_change(seed: int) -> None:
    chance = np.random.default_rng(100 + seed)
    values = chance.normal(1000, 20, 300)
    values[chance.choice(300, 5, replace=False)] *= 4
    assert change_points(values) == []


def test_a_series_too_short_has_no_change() -> None:
    assert change_points(np.array([1.0] * 5 + [9.0] * 5)) == []


@pytest.mark.parametrize("length", [1, 2, 7, 10, 40])
def test_rolling_median_is_the_median_of_each_window(length: int) -> None:
    chance = np.random.default_rng(length)
    values = chance.normal(size=(40, 5))
    values[chance.random(values.shape) < 0.03] = np.nan
    windows = np.stack([values[at : at + length] for at in range(40 - length + 1)])
    assert np.allclose(rolling_median(values, length), np.median(windows, 1), equal_nan=True)
    assert np.isfinite(rolling_median(values, length)).any() or length == 40


@given(st.lists(st.floats(1, 1e6), min_size=2, max_size=64))
def test_jain_lies_between_one_link_and_all(loads: list[float]) -> None:
    array = np.array(loads)
    assert 1 / len(loads) - 1e-9 <= jain(array) <= 1 + 1e-9
    assert 0.5 - 1e-9 <= top_half_share(array) <= 1


@settings(max_examples=20)
@given(st.integers(0, 10_000))
def test_a_fair_hash_is_seldom_called_unfair(seed: int) -> None:
    counts = np.random.default_rng(seed).multinomial(128, [1 / 8] * 8).astype(float)
    # Effect size beside the test: no fair hash comes near half of the links used.
    assert jain(counts) > 0.8 * jain_of_hashing(8, 128, 0.01)


def test_half_of_the_links_is_not_what_hashing_does() -> None:
    loads = np.array([25.0, 0.1] * 4)
    assert hashing_p(loads, 128) < 1e-6
    assert jain(loads) < 0.8 * jain_of_hashing(8, 128, 0.01)
    assert 2 < flows_that_explain(loads) < 10


def test_flows_are_estimated_by_how_even_links_are_and_by_what_the_group_carries() -> None:
    chance = np.random.default_rng(2)
    groups = [chance.multinomial(400, [1 / 8] * 8).astype(float) for _ in range(20)]
    assert flows_of(groups, 400.0) == pytest.approx(400, rel=0.3)
    assert flows_of(groups, 100.0) == pytest.approx(100, rel=0.3)
    assert flows_of(groups[:1], 400.0) is not None
    assert flows_of([groups[0][:7]], 400.0) is None


def test_one_slow_rank_stands_out_and_equal_ranks_do_not() -> None:
    times = np.full(16, 100.0)
    assert np.all(np.abs(robust_z(times)) < 1)
    times[3] = 115
    assert np.argmax(robust_z(times)) == 3
    assert robust_z(times)[3] > 6
