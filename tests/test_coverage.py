"""The coverage of a diagnosis: counters that fell, wrapped, stopped or told nonsense; clocks."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from report_case import START, make_store

from fabricobs.diagnosis.findings import CounterBreak
from fabricobs.diagnosis.run import diagnose

MOST_32 = 2**32


def at(minute: int) -> datetime:
    return START + timedelta(minutes=minute)


def breaks(
    path: Path, values: list[int], *, width: int = 64, overflow: str = "wrap", kind: str = "counter"
) -> tuple[CounterBreak, ...]:
    """What a diagnosis says of one counter with these values, a minute apart."""
    info = {"format": "f", "table_name": "port_samples", "counter": "rx_errors"}
    store = make_store(
        path / "store",
        port_samples=[
            {"ts": at(m), "device": "leaf1", "port": "Ethernet0", "format": "f", "rx_errors": value}
            for m, value in enumerate(values)
        ],
        counter_info=[{**info, "width": width, "overflow": overflow, "kind": kind}],
    )
    return diagnose(store).coverage.breaks


@pytest.mark.parametrize(
    ("values", "width", "overflow", "what", "minute"),
    [
        ([10, 20, 5, 9], 64, "wrap", "reset", 2),
        ([0, 7, 0, 0], 64, "wrap", "reset", 2),
        ([MOST_32 - 50, MOST_32 - 5, 40], 32, "wrap", "wrapped", 2),
        ([65_000, 65_535], 16, "saturate", "stopped", 1),
        ([1, -40, 3], 64, "wrap", "nonsense", 1),
    ],
)
def test_a_counter_that_cannot_be_relied_on_is_told(
    tmp_path: Path, values: list[int], width: int, overflow: str, what: str, minute: int
) -> None:
    (told,) = breaks(tmp_path, values, width=width, overflow=overflow)
    assert (told.device, told.counter, told.what) == ("leaf1", "rx_errors", what)
    assert (told.ports, told.times, told.first) == (1, 1, at(minute))


@pytest.mark.parametrize(
    ("values", "kind"), [([0, 0, 0], "counter"), ([1, 5, 9], "counter"), ([9, 5, 1], "delta")]
)
def test_nothing_is_told_of_one_that_counts_well(
    tmp_path: Path, values: list[int], kind: str
) -> None:
    assert breaks(tmp_path, values, kind=kind) == ()


def test_one_beyond_the_width_told_has_not_stopped(tmp_path: Path) -> None:
    assert breaks(tmp_path, [70_000, 70_010], width=16, overflow="saturate") == ()


def test_clocks_are_told_with_their_errors(sample_store: Path) -> None:
    clocks = {(clock.of, clock.name): clock for clock in diagnose(sample_store).coverage.clocks}
    leaf = clocks["device", "leaf01"]
    assert leaf.seconds is not None
    assert abs(leaf.seconds) < 1
    assert leaf.error > 0
    assert not leaf.corrected
    assert clocks["device", "node01"].seconds is None
    assert clocks["host", "node01"].seconds == pytest.approx(0, abs=0.01)
