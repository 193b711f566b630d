"""The rise of a counter between two samples, against the rule written out in Python."""

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricobs.store.views import view_scripts

MACRO = view_scripts()["views/1_rise"]
SESSION = duckdb.connect()
SESSION.execute(MACRO)


def rise(
    before: int | None,
    after: int | None,
    *,
    width: int = 64,
    overflow: str = "wrap",
    kind: str = "counter",
    seconds: float = 10,
) -> int | None:
    row = SESSION.execute(
        "SELECT rise(?::BIGINT, ?::BIGINT, "
        "{'most': 2 ^ ?, 'width': ?, 'overflow': ?, 'kind': ?}, ?)",
        [before, after, width, width, overflow, kind, seconds],
    ).fetchone()
    assert row is not None
    return row[0]


COUNT = st.integers(0, 2**63 - 1)


@given(COUNT, COUNT)
def test_a_64_bit_counter_rises_or_was_reset(before: int, after: int) -> None:
    assert rise(before, after) == (after - before if after >= before else None)


@given(st.integers(0, 2**32 - 1), st.integers(0, 10**8))
def test_a_32_bit_counter_wraps_once(before: int, risen: int) -> None:
    after = (before + risen) % 2**32
    expected: int | None = risen
    if after < before and before <= 0.9 * 2**32:
        expected = None
    assert rise(before, after, width=32) == expected


def test_more_than_a_link_can_carry_is_a_reset_and_no_wrap() -> None:
    before, after = int(0.95 * 2**32), int(0.5 * 2**32)
    assert rise(before, after, width=32, seconds=10) is None


@given(st.integers(0, 65535), st.integers(0, 65535))
def test_a_saturating_counter_never_wraps(before: int, after: int) -> None:
    got = rise(before, after, width=16, overflow="saturate")
    if before == 65535 or after < before:
        assert got is None
    else:
        assert got == after - before


@given(st.sampled_from([4, 8, 16, 32]), st.integers(0, 10**9), st.integers(0, 10**6))
def test_a_value_beyond_the_width_told_shows_that_the_counter_is_wider(
    width: int, beyond: int, risen: int
) -> None:
    before = 2**width + beyond
    assert rise(before, before + risen, width=width, overflow="saturate") == risen


@pytest.mark.parametrize(("before", "after"), [(None, 5), (5, None), (-40, 5), (5, -40)])
def test_what_is_missing_or_garbage_gives_nothing(before: int | None, after: int | None) -> None:
    assert rise(before, after) is None


def test_increments_are_taken_as_they_are() -> None:
    assert rise(700, 20, kind="delta") == 20
    assert rise(1, 2, kind="gauge") is None
