"""What captured text means."""

import re
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricobs.formats.values import (
    TIME_PATTERN,
    VALUE_TYPES,
    parse_cli_speed,
    parse_date_and_time,
    parse_hex,
    parse_link_state,
    parse_number,
    parse_show_clock,
    parse_speed,
    parse_stamp,
    parse_switch_port,
    parse_time,
    parse_traffic,
    parse_whole,
)
from fabricobs.formats.values.kinds import Unfit

MOMENTS = st.datetimes(datetime(2015, 1, 1), datetime(2035, 1, 1), timezones=st.just(UTC))


@given(MOMENTS)
def test_iso_times_keep_their_microseconds(moment: datetime) -> None:
    micros = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    assert parse_time(moment.isoformat()) == micros
    assert parse_time(f"[{moment:%Y-%m-%d %H:%M:%S.%f}]") == micros


@given(MOMENTS)
def test_epochs_are_told_apart_by_size(moment: datetime) -> None:
    seconds = int(moment.timestamp())
    for digits in (0, 3, 6, 9):
        assert parse_time(str(seconds * 10**digits)) == seconds * 1_000_000


def test_a_bare_time_is_of_the_zone_given() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    assert parse_time("2026-03-02 11:00:00+02", berlin) == parse_time("2026-03-02T09:00:00Z")
    assert parse_time("2026-03-02 10:00:00", berlin) == parse_time("2026-03-02T09:00:00Z")
    assert parse_time("2026-03-02T10:00:00+01:00") == parse_time("2026-03-02T09:00:00Z")
    assert parse_time("Mon 02 Mar 2026 01:00:00 PM UTC") == parse_time("2026-03-02T13:00:00")
    assert parse_time("Tue Mar  4 10:15:02 UTC 2025") == parse_time("2025-03-04T10:15:02")


@given(MOMENTS, st.integers(-12 * 4, 14 * 4))
def test_a_zone_behind_the_word_utc_is_the_time_s_own(moment: datetime, quarters: int) -> None:
    """ibdiagnet prints `22:05:08 UTC +0000`: with --tz of the site it was read 8 hours late."""
    there = moment.astimezone(timezone(quarters * timedelta(minutes=15)))
    text = f"{there:%Y-%m-%d %H:%M:%S UTC %z}"
    assert parse_time(text, ZoneInfo("America/Vancouver")) == parse_time(f"{moment:%FT%TZ}")
    assert re.fullmatch(TIME_PATTERN, text)


ZONES = ("America/New_York", "America/Los_Angeles", "Europe/Berlin", "Asia/Tokyo", "UTC")
WRITTEN = (
    "%a %b %d %H:%M:%S {} %Y",
    "%a %d %b %Y %I:%M:%S %p {}",
    "%a, %d %b %Y %H:%M:%S {}",
    "%Y-%m-%d %H:%M:%S {}",
)


@given(MOMENTS, st.sampled_from(ZONES), st.sampled_from(ZONES))
def test_a_zone_that_a_time_names_is_its_own(moment: datetime, own: str, asked: str) -> None:
    """`show clock` said `07:40:01.831 EDT`, and was read as of UTC."""
    there = moment.astimezone(ZoneInfo(own))
    name = there.tzname() or ""
    for layout in WRITTEN:
        text = there.strftime(layout).format(name)
        assert parse_time(text, ZoneInfo(asked)) == parse_time(f"{moment:%FT%TZ}"), text
        assert re.fullmatch(TIME_PATTERN, text)
    text = there.strftime("%H:%M:%S.5 {} %a %b %d %Y").format(name)
    assert parse_show_clock(text, ZoneInfo(asked)) == parse_time(f"{moment:%FT%TZ}") + 500_000


def test_a_zone_of_several_places_is_the_one_asked_for() -> None:
    text, israel = "10:15:02 IST Tue Mar 04 2025", ZoneInfo("Asia/Jerusalem")
    assert parse_show_clock(text, israel) == parse_time("2025-03-04T10:15:02", israel)
    assert parse_time("Tue Mar  4 10:15:02 CST 2025", ZoneInfo("Asia/Shanghai")) == parse_time(
        "2025-03-04T10:15:02+08:00"
    )


@given(st.integers(-(2**63), 2**64 - 1))
def test_64_bits_fit_and_the_upper_half_is_negative_for_a_counter(number: int) -> None:
    parsed = parse_whole(f"{number:,}")
    kept = parsed.as_counter if isinstance(parsed, Unfit) else parsed
    assert kept == (number if number < 2**63 else number - 2**64)
    assert isinstance(parsed, Unfit) == (number >= 2**63)


@pytest.mark.parametrize("text", [str(2**64), str(-(2**63) - 1), "9" * 5000])
def test_more_than_64_bits_is_told_as_such(text: str) -> None:
    assert "does not fit 64 bits" in str(parse_whole(text))


@pytest.mark.parametrize("text", ["N/A", "-", "", "N/A (no PMA)", "--"])
def test_no_value_is_never_zero(text: str) -> None:
    assert parse_whole(text) is None


@pytest.mark.parametrize(
    ("text", "gbps"),
    [("400G", 400.0), ("100M", 0.1), ("400 Gb/sec (4X NDR)", 400.0), ("200000Mb/s", 200.0)],
)
def test_link_rates_come_in_gigabits(text: str, gbps: float) -> None:
    assert parse_speed(text) == pytest.approx(gbps)


def test_a_decimal_comma_is_no_thousands_comma() -> None:
    for text in ("7118,5", "1,23", "1,2345"):
        with pytest.raises(ValueError, match="could not convert"):
            parse_number(text)


def test_hexadecimal_needs_no_prefix() -> None:
    assert parse_hex("1f") == parse_hex("0x1f") == 31


@pytest.mark.parametrize(
    ("type_name", "text", "value"),
    [
        ("seconds", "1.25", 1250.0),
        ("rate", "0.5", 2000.0),
        ("rate", "0", None),
        ("clock", "55:50", 3_350_000.0),
        ("clock", "25:30:10", 91_810_000.0),
        ("span", "12.5", 12.5),
        ("span", "250us", 0.25),
        ("timed", "0.75 sec", 750.0),
        ("size", "0B", 0),
        ("size", "20.0 B", 20),
        ("size", "1.5 KB", 1536),
        ("size", "2 GiB", 2 << 30),
        ("gbits", "800.0", 100.0),
        ("amount", "1,250.5", 1250.5),
        ("amount", "-1e3", -1000.0),
    ],
)
def test_units_that_are_not_the_columns(type_name: str, text: str, value: float | None) -> None:
    kind = VALUE_TYPES[type_name]
    assert re.fullmatch(kind.pattern, text)
    assert kind.parse(text) == value


def test_a_time_without_a_year_is_the_latest_that_is_past() -> None:
    now = datetime.now(tz=UTC).replace(microsecond=0)
    for moment in (now - timedelta(days=2), now - timedelta(days=300)):
        micros = int(moment.timestamp()) * 1_000_000
        assert parse_time(f"{moment:%b %e %H:%M:%S}") == micros


@pytest.mark.parametrize(
    ("printed", "kept"),
    [
        ("Et1/1", "Ethernet1/1"),
        ("Eth1/1/4", "Ethernet1/1/4"),
        ("Ethernet1/1", "Ethernet1/1"),
        ("Po12", "Port-Channel12"),
        ("port-channel12", "Port-Channel12"),
        ("mgmt0", "mgmt0"),
        ("Ethernet128", "Ethernet128"),
        ("eth0", "eth0"),
        ("swp1s0", "swp1s0"),
        ("2a00.5e00.2207", "2a00.5e00.2207"),
    ],
)
def test_a_switch_port_goes_by_its_full_name(printed: str, kept: str) -> None:
    assert parse_switch_port(printed) == kept


@pytest.mark.parametrize(
    ("printed", "gbps"),
    [("a-40G", 40.0), ("1000", 1.0), ("25G", 25.0), ("1.6T", 1600.0), ("auto", None), ("--", None)],
)
def test_a_bare_speed_of_a_status_table_is_megabits(printed: str, gbps: float | None) -> None:
    assert parse_cli_speed(printed) == gbps


def test_only_connected_and_up_are_up() -> None:
    assert [parse_link_state(w) for w in ("connected", "up(1)", "1")] == ["up"] * 3
    assert [parse_link_state(w) for w in ("notconnect", "xcvrAbsen", "2")] == ["down"] * 3


def test_amounts_for_people_are_decimal() -> None:
    assert parse_traffic("9.98 KB") == 9980
    assert parse_traffic("300 Bytes") == 300
    assert parse_traffic("n/a") is None
    with pytest.raises(ValueError, match="no amount"):
        parse_traffic("lots")


def test_clocks_of_switches() -> None:
    moment = parse_time("2025-03-04T10:15:02")
    assert parse_stamp("20250304-101502") == moment
    assert parse_show_clock("10:15:02.500 UTC Tue Mar 04 2025") == moment + 500_000
    assert parse_date_and_time("2025-3-4,11:15:2.5,+1:0") == moment + 500_000
    assert parse_date_and_time("2025-3-4,10:15:2.0") == moment
    with pytest.raises(ValueError, match="no DateAndTime"):
        parse_date_and_time("07 E9 03 04")


@pytest.mark.parametrize(
    "text",
    [
        "Sat Mar 29 10:55:09 +08 2025",
        "Sat 29 Mar 2025 10:55:09 AM +08",
        "Sat, 29 Mar 2025 08:25:09 +0530",
        "Fri, 28 Mar 2025 19:55:09 -0700",
    ],
)
def test_what_date_prints_with_a_numeric_zone(text: str) -> None:
    assert VALUE_TYPES["time"].parse(text) == 1_743_216_909_000_000
