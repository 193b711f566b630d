"""How the InfiniBand tools print what they know."""

import pytest

from fabricobs.formats.values import infiniband, parse_rdma_port
from fabricobs.formats.values.kinds import Unfit


@pytest.mark.parametrize("text", ["0x2c903006e29b0", "0x0002c903006e29b0", "0002c903006e29b0"])
def test_a_guid_has_sixteen_digits_however_it_is_printed(text: str) -> None:
    assert infiniband.parse_guid(text) == "0x0002c903006e29b0"


@pytest.mark.parametrize("text", ["mlx5_0/ports/1", "'mlx5_0' port 1", "mlx5_0 port 1", "mlx5_0/1"])
def test_an_rdma_port_has_one_name(text: str) -> None:
    assert parse_rdma_port(text) == "mlx5_0/1"


@pytest.mark.parametrize(
    ("name", "number", "gbps"),
    [("EDR", "25.78125", 25.0), ("HDR", "53.125", 50.0), ("NDR", "106.25", 100.0)],
)
def test_signalling_rate_and_name_mean_the_same_data_rate(
    name: str, number: str, gbps: float
) -> None:
    assert infiniband.parse_lane(name) == infiniband.parse_lane(number) == gbps


def test_no_answer_is_no_rate() -> None:
    assert infiniband.parse_lane("???") is None


@pytest.mark.parametrize(
    ("code", "gbps"),
    [("1", 2.5), ("4", 10.0), ("2052", 100.0), ("2048", 100.0), ("65540", 10.0), ("0", None)],
)
def test_the_extended_speed_goes_before_the_plain_one(code: str, gbps: float | None) -> None:
    assert infiniband.parse_lane_code(code) == gbps


@pytest.mark.parametrize(
    ("text", "state"),
    [("4: ACTIVE", "up"), ("ACT", "up"), ("4", "up"), ("Init", "down"), ("1: DOWN", "down")],
)
def test_a_port_that_carries_no_data_is_down(text: str, state: str) -> None:
    assert infiniband.parse_state(text) == state


def test_sentinels_are_no_value_and_garbage_stays_negative() -> None:
    assert infiniband.parse_pma("-1") is None
    assert infiniband.parse_words("0xfffffffffffffffe") is None
    garbage = infiniband.parse_pma("18446744073709551576")
    assert isinstance(garbage, Unfit) and garbage.as_counter == -40
    assert infiniband.parse_words("250") == 1000
    assert "64 bits" in str(infiniband.parse_words(str(2**62)))
