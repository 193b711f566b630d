"""Messages of switches, of any vendor behind any header: what they tell, of which port, when."""

import random
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import fabricobs

Drawn = random.Random
Message = tuple[str, str | None, str | None]  # the text, the kind of its event, the port
MESSAGES = Path(__file__).with_name("switch_messages.toml")
VENDORS = tomllib.loads(MESSAGES.read_text(encoding="utf-8"))


def _message(chance: Drawn, vendor: str) -> Message:
    of = VENDORS[vendor]
    drawn = {"a": chance.randrange(4), "b": chance.randint(1, 8), "c": chance.randint(10, 64)}
    drawn["port"] = of["port"].format(**drawn)
    told = chance.choice(of["message"])
    text, part = (told[key].format(**drawn) if key in told else None for key in ("text", "part"))
    return f"{chance.choice(of['tags'])}{text}", told.get("kind"), part


def _header(chance: Drawn, at: datetime, host: str) -> tuple[str, datetime]:
    """Return what stands before a message, and the time that it tells."""
    second, milli = at.replace(microsecond=0), at.replace(microsecond=at.microsecond // 1000 * 1000)
    zone = timedelta(hours=chance.choice([0, 2, -7]))
    zoned = (at + zone).isoformat(timespec="microseconds").removesuffix("+00:00")
    away = f"{'-' if zone < timedelta(0) else '+'}{abs(zone) // timedelta(hours=1):02d}:00"
    old = f"{at:%b} {at.day:2d} {at:%H:%M:%S}"
    day = f"{at:%b} {at.day:2d}"
    millis = f"{at:%H:%M:%S}.{at.microsecond // 1000:03d}"
    return chance.choice(
        [
            (f"{old} {host} ", second),
            (f"<189>{old} {host} ", second),
            (f"{day} {at.year} {at:%H:%M:%S} {host} ", second),
            (f"{day} {millis} {at.year} {host} ", milli),
            (f"{at.year} {day} {at:%H:%M:%S.%f} {host} ", at),
            (f"{at.year} {day} {at:%H:%M:%S} UTC {host} ", second),
            (f"{at:%Y-%m-%d %H:%M:%S.%f} {host} <local2.warning> ", at),
            (f"{zoned}{away} {host} ", at),
            (f"{second.isoformat().replace('+00:00', 'Z')} {host} local4.warning ", second),
            (f"<189>1 {at.isoformat(timespec='microseconds')} {host} app 4086 - - ", at),
            (f'<28>1 {at.isoformat(timespec="microseconds")} {host} app - ID47 [x@1 a="b"] ', at),
            (f"{old} {host} : {at.year} {day} {millis} UTC: ", milli),
            (f"{old} {host} {at.year} {day} {millis} ", second),
            (f"{second.isoformat()} {host} {at.year} {day} {millis} {host} ", second),
        ]
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_what_is_told_of_ports_is_told_behind_any_header(tmp_path: Path, seed: int) -> None:
    """Of all vendors in one file: every event with its switch, port and time, and no other."""
    chance = random.Random(seed)
    at = datetime.now(UTC).replace(microsecond=0) - timedelta(days=200)
    lines, expected = [], []
    for _ in range(150):
        at += timedelta(seconds=chance.randint(1, 90), microseconds=chance.randrange(1_000_000))
        at = at.replace(microsecond=at.microsecond // 7)
        vendor = chance.choice([*VENDORS])
        host = chance.choice(["{}-leaf{:02d}", "r1.{}.sw{}", "{}SW{}"]).format(
            vendor, chance.randint(1, 9)
        )
        head, told = _header(chance, at, host)
        text, kind, port = _message(chance, vendor)
        lines.append(head + text)
        if kind is not None:
            expected.append((host, kind, port, told.replace(tzinfo=None)))
    (tmp_path / "logs" / "syslog").mkdir(parents=True)
    (tmp_path / "logs" / "syslog" / "network.log").write_text("\n".join(lines) + "\n")
    fabricobs.ingest([tmp_path / "logs"], store=tmp_path / "s")
    s = fabricobs.open(tmp_path / "s")
    assert s.sql("SELECT host, kind, part, ts FROM events ORDER BY line").fetchall() == expected
    assert s.sql("SELECT sum(unparsed) FROM files").fetchall() == [(0,)]


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_log_without_names_is_of_the_switch_of_its_folder(tmp_path: Path, vendor: str) -> None:
    chance = random.Random(vendor)
    expected, lines = [], []
    while len(expected) < 10:
        text, kind, port = _message(chance, vendor)
        lines.append(f"Mar {len(lines) % 28 + 1:2d} 09:15:02 {text}")
        expected += [("leaf07", kind, port)] * (kind is not None)
    (tmp_path / "logs" / "leaf07").mkdir(parents=True)
    (tmp_path / "logs" / "leaf07" / "syslog.log").write_text("\n".join(lines) + "\n")
    fabricobs.ingest([tmp_path / "logs"], store=tmp_path / "s")
    told = fabricobs.open(tmp_path / "s").sql("SELECT host, kind, part FROM events ORDER BY line")
    assert told.fetchall() == expected


def _alarms(chance: Drawn, begin: datetime) -> tuple[list[str], set[str], bool]:
    """Draw the alarms of one port; return its lines, those still on, and whether there was any."""
    on: set[str] = set()
    lines, at, anything = [], begin, False
    for _ in range(chance.randint(1, 8)):
        at += timedelta(seconds=chance.choice([0, 1, 30]))
        what = chance.choice(
            ["Low Rx Power Alarm", "Low Rx Power Warning", "High Temperature Alarm"]
        )
        clears = chance.random() < 0.5
        (on.discard if clears else on.add)(what)
        anything |= not clears
        tail = " cleared" if clears else ""
        head = f"{at:%Y %b} {at.day:2d} {at:%H:%M:%S} leaf1 %ETHPORT-3-IF_XCVR_ALARM"
        lines.append(f"{head}: Interface {{}}, {what}{tail}")
    return lines, on, anything


@pytest.mark.parametrize("seed", range(4))
def test_an_alarm_of_optics_lasts_until_it_clears(tmp_path: Path, seed: int) -> None:
    """And no other alarm of the port ends with it; what goes on is told, what cleared is not."""
    chance = random.Random(seed)
    begin = datetime(2026, 3, 2, 9, tzinfo=UTC)
    lines, expected = [], {}
    for number in range(1, 9):
        port = f"Ethernet1/{number}"
        told, on, anything = _alarms(chance, begin)
        lines += [line.format(port) for line in told]
        if anything:
            expected[port] = on
    lines.append(
        "2026 Mar  2 12:00:00 leaf1 %ETHPORT-5-IF_UP: Interface Ethernet1/60 is up in mode routed"
    )
    (tmp_path / "syslog.log").write_text("\n".join(lines) + "\n")
    fabricobs.ingest([tmp_path / "syslog.log"], store=tmp_path / "s")
    findings = fabricobs.open(tmp_path / "s").diagnose().findings
    found = {f.entities[0].port: f for f in findings if f.kind == "optics_alarm"}
    assert found.keys() == expected.keys()
    for port, on in expected.items():
        finding = found[port]
        assert finding.state == ("ongoing" if on else "over")
        assert (" were " in finding.title) == (not on)
        if on:
            assert finding.title.partition("range: ")[2].split("; ") == sorted(on)
