"""The coverage of a diagnosis: counters that fell, wrapped, stopped or told nonsense; clocks."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from report_case import START, make_store

from fabricobs.diagnosis.findings import CounterBreak
from fabricobs.diagnosis.run import diagnose
from fabricobs.report.wording import break_words

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


@pytest.mark.parametrize(
    ("rises", "counted_by"),
    [
        (7, "wide"),  # the same events, counted on
        (0, None),  # it counts something else, or nothing
        (None, None),  # there is no other source
    ],
)
@pytest.mark.parametrize("counter", ["symbol_errors", "out_of_sequence", "rx_discards"])
def test_what_stopped_costs_nothing_where_another_source_counts_it_on(
    tmp_path: Path, counter: str, rises: int | None, counted_by: str | None
) -> None:
    def samples(source: str, values: list[int]) -> list[dict[str, object]]:
        key = {"device": "leaf1", "port": "Ethernet0", "format": source}
        return [{"ts": at(m), **key, counter: value} for m, value in enumerate(values)]

    stopped = [65_530, 65_533, 65_535, 65_535]
    wide = [] if rises is None else [100_000 + rises * m for m in range(4)]
    info = {"table_name": "port_samples", "counter": counter, "kind": "counter"}
    store = make_store(
        tmp_path / "store",
        port_samples=[*samples("narrow", stopped), *samples("wide", wide)],
        counter_info=[
            {**info, "format": "narrow", "width": 16, "overflow": "saturate"},
            {**info, "format": "wide", "width": 64, "overflow": "wrap"},
        ],
    )
    (told,) = diagnose(store).coverage.breaks
    assert (told.what, told.source, told.port) == ("stopped", "narrow", "Ethernet0")
    assert told.counted_by == counted_by
    words = break_words(told)
    assert words.startswith(f"leaf1 Ethernet0 {counter} (narrow): stopped, 2 times, first ")
    assert ("at least" in words) == (counted_by is None)
    assert ("wide counts it on" in words) == (counted_by is not None)


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
