"""What counters of a finding's culprits read before it and once it shows, and where that stands."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

import polars as pl

from fabricobs.diagnosis.findings import Finding
from fabricobs.report.evidence_rows import Aliases, EvidenceRows, timestamp_literal
from fabricobs.report.input_lines import lines_of_values
from fabricobs.report.rows_of_part import condition_of, place, time_condition
from fabricobs.report.wording import number
from fabricobs.store.sandbox import literal
from fabricobs.store.tables import TABLES

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# Rows of counters bear the names of the part that is meant, whatever the file calls it.
NAMED = {"port_samples": "named_samples", "priority_samples": "named_priority_samples"}
_MOST = 4
_OF_ONE_COUNTER = 2
_FEW = 0.01  # of the greatest rise of their unit
_MOST_ROWS = 12  # of its query's rows, those which name the ports to read
_TRAFFIC = "'rx_bytes', 'tx_bytes', 'rx_packets', 'tx_packets'"
_AT_ONCE = 2  # seconds by which clocks of a site differ
_NO_SIGN = 1 << 64  # the store keeps a 64-bit value of 2^63 and above as a negative number


@dataclass(frozen=True, slots=True)
class Reading:
    """The value of a counter at a time, UTC, and where it stands: the line, `text` if it is found.

    Without it `line` is the first of the record that holds the value.
    """

    value: int
    ts: datetime
    path: str
    line: int | None
    text: str = ""

    @property
    def place(self) -> str:
        """Return where it stands, as compilers write it."""
        return place(self.path, self.line)


@dataclass(frozen=True, slots=True)
class CounterReadings:
    """A counter of a part as a format tells it, before a finding and once it shows.

    `unit` is that of the values; `least` marks that of the ports on which it rose least.
    """

    part: str
    counter: str
    unit: str
    format: str
    before: Reading
    later: Reading
    least: bool = False

    @property
    def risen(self) -> int:
        """Return by how much it rose, in `unit`."""
        return self.later.value - self.before.value

    @property
    def words(self) -> str:
        """Return by how much which counter of which part rose in which time, and as what rate."""
        unit = self.unit.removesuffix("s") if self.risen == 1 else self.unit
        seconds = (self.later.ts - self.before.ts).total_seconds()
        rose = f"rose by {self.risen:,} {unit}".rstrip() if self.risen > 0 else "did not rise"
        if seconds > 0:
            rose += f" in {seconds:,.0f} s"
            if self.unit == "bytes" and self.risen > 0:
                rose += f" ({number(8e-9 * self.risen / seconds)} Gb/s)"
        return f"{self.part}: {self.counter} {rose}{', least of all' if self.least else ''}"


def counter_readings(
    connection: "DuckDBPyConnection",
    finding: Finding,
    counters: Sequence[str],
    rows: EvidenceRows | None,
    aliases: Aliases,
) -> tuple[CounterReadings, ...]:
    """Return readings that tell of a finding, those of the first of the `counters` first.

    Of a device with many ports those that the finding's rows name. Where one rose on several ports,
    the port on which it rose least follows, to compare.
    """
    shown = None if rows is None or not rows.condition else rows.shown(_MOST_ROWS)
    of_devices = not all(entity.port or entity.nic for entity in finding.entities)
    ports: list[str] = []
    if shown is not None:
        if "counter" in shown.columns:
            most = shown.group_by("counter").agg(pl.col("risen").max()).sort("risen", "counter")
            counters = most["counter"].drop_nulls().to_list()[::-1]
        if of_devices and rows is not None and "port" in shown.columns:
            ports = list(dict.fromkeys(rows.about["port"].drop_nulls()))
    selects = [
        select for table in NAMED for select in _selects(finding, table, counters, ports, aliases)
    ]
    if not selects:
        return ()
    found = [_readings(*row) for row in connection.execute(_sql(finding, selects)).fetchall()]
    return tuple(map(_with_lines, _told(found, counters, compares=of_devices)))


def _with_lines(told: CounterReadings) -> CounterReadings:
    """Return readings with the lines that hold their values, while the files are there."""
    before, later = told.before, told.later
    if before.line is None or later.line is None:
        return told
    lines = lines_of_values(
        told.counter,
        (before.path, before.line, before.value),
        (later.path, later.line, later.value),
    )
    if lines is None:
        return told
    old, new = (
        replace(reading, line=line.number, text=line.text)
        for reading, line in zip((before, later), lines, strict=True)
    )
    return replace(told, before=old, later=new)


def _told(
    found: Sequence[CounterReadings], counters: Sequence[str], *, compares: bool
) -> list[CounterReadings]:
    """Return those that rose most, two of a counter; with `compares` of the first what rose least.

    `found` are in the order of their rise, greatest first. So are counters of one unit: pauses that
    were received come before the few that were sent, and few beside many are left out.
    """
    by_counter = {
        name: of_name
        for name in counters
        if (of_name := [each for each in found if each.counter == name])
    }
    # Packets tell nothing that bytes do not.
    for name in [name for name in by_counter if name.endswith("_packets")]:
        if name.replace("_packets", "_bytes") in by_counter:
            del by_counter[name]
    if not by_counter:
        return []
    most = {name: of_name[0] for name, of_name in by_counter.items()}
    units = list(dict.fromkeys(each.unit for each in most.values()))
    greatest = {unit: max(m.risen for m in most.values() if m.unit == unit) for unit in units}
    order = sorted(most, key=lambda name: (units.index(most[name].unit), -most[name].risen))
    told = [
        each
        for name in order
        for each in by_counter[name][:_OF_ONE_COUNTER]
        if each.risen > 0 and each.risen >= _FEW * greatest[each.unit]
    ]
    if not told:
        return [most[order[0]]]
    least = by_counter[told[0].counter][-1]
    if not compares or least.risen >= told[0].risen:
        return told[:_MOST]
    return [*told[: _MOST - 1], replace(least, least=True)]


def _readings(
    owner: str,
    name: str,
    priority: int | None,
    queue: str | None,
    counter: str,
    unit: str,
    format_: str,
    before: dict[str, object],
    later: dict[str, object],
) -> CounterReadings:
    queued = "" if queue is None else f" queue {queue}"
    part = f"{owner} {name}" + (f" priority {priority}" if priority is not None else queued)
    return CounterReadings(part, counter, unit, format_, _reading(before), _reading(later))


def _reading(told: dict[str, object]) -> Reading:
    value, ts, path, line = told["value"], told["ts"], told["path"], told["line"]
    assert isinstance(value, int)
    assert isinstance(ts, datetime)
    assert isinstance(path, str)
    assert line is None or isinstance(line, int)
    return Reading(value + _NO_SIGN if value < 0 else value, ts, path, line)


def _selects(
    finding: Finding,
    table: str,
    counters: Sequence[str],
    ports: Sequence[str],
    aliases: Aliases,
) -> Iterator[str]:
    known = [column.name for column in TABLES[table].columns]
    asked = [name for name in counters if name in known]
    condition = condition_of(finding, set(known), aliases)
    if not asked or not condition:
        return
    if ports:
        condition = f"({condition}) AND port IN ({', '.join(map(literal, ports))})"
    of_priority = "priority, queue" if "priority" in known else "NULL AS priority, NULL AS queue"
    values = ", ".join(f"{{'counter': '{name}', 'value': {name}::HUGEINT}}" for name in asked)
    yield (
        f"SELECT file_id, line, ts, format, device, port, {of_priority}, '{table}' AS table_name, "
        f"unnest([{values}], recursive := true) FROM {NAMED[table]} "
        f"WHERE ({condition}){time_condition(finding, counts=True)}"
    )


def _sql(finding: Finding, selects: Sequence[str]) -> str:
    begin = "NULL::TIMESTAMP" if finding.start is None else timestamp_literal(finding.start)
    reading = "{'value': value, 'ts': ts, 'path': path, 'line': line}"
    return f"""
        WITH told AS (
          SELECT r.*, f.path, p.owner, p.part, coalesce(i.unit, '') AS unit
          FROM ({" UNION ALL BY NAME ".join(selects)}) r
          JOIN port_parts p USING (device, port)
          JOIN files f USING (file_id)
          JOIN counter_info i USING (format, table_name, counter)
          WHERE r.value IS NOT NULL AND r.ts IS NOT NULL AND i.kind = 'counter'
        ),
        numbered AS (
          SELECT *, CASE WHEN ts >= {begin} THEN dense_rank() OVER (w ORDER BY ts) END AS place
          FROM told
          WINDOW w AS (
            PARTITION BY format, device, port, priority, queue, counter, ts >= {begin})
        ),
        begun AS (
          -- Traffic of the interval in which it begins is of before it, too; that interval is the
          -- next one where another source of the same times tells when it begins.
          SELECT *, coalesce(
            CASE WHEN counter NOT IN ({_TRAFFIC}) THEN max(ts) FILTER (ts <= {begin}) OVER w
              WHEN max(place) OVER w > 2
                AND min(ts) FILTER (place = 1) OVER w <= {begin} + INTERVAL {_AT_ONCE} SECOND
                THEN min(ts) FILTER (place = 2) OVER w
              ELSE min(ts) FILTER (place = 1) OVER w END,
            min(ts) OVER w) AS begins
          FROM numbered
          WINDOW w AS (PARTITION BY format, device, port, priority, queue, counter)
        ),
        compared AS (
          SELECT *, max(value) FILTER (ts = begins) OVER w AS old
          FROM begun
          WINDOW w AS (PARTITION BY format, device, port, priority, queue, counter)
        ),
        shown AS (
          SELECT *, min(ts) FILTER (ts > begins AND value > old) OVER w AS rises,
            coalesce(rises, max(ts) FILTER (ts > begins) OVER w) AS shows
          FROM compared
          WINDOW w AS (PARTITION BY format, device, port, priority, queue, counter)
        ),
        pairs AS (
          -- Both stand next to each other: by the clock of another part it may rise later.
          SELECT owner, part, priority, queue, counter, unit, format,
            arg_max({reading}, (ts, -line))
              FILTER (ts = begins OR (ts > begins AND ts < rises)) AS before,
            arg_min({reading}, line) FILTER (ts = shows) AS later
          FROM shown
          GROUP BY ALL
        )
        SELECT * FROM pairs
        WHERE later IS NOT NULL
        -- Of several formats, priorities and queues that of a counter of a port which saw most: of
        -- traffic ever, for where it ends it is missing.
        QUALIFY row_number() OVER (
          PARTITION BY owner, part, counter
          ORDER BY CASE WHEN counter IN ({_TRAFFIC}) THEN later.value
            ELSE later.value - before.value END DESC, before.line = 1, format) = 1
        ORDER BY later.value - before.value DESC, owner, part, priority, queue
    """
