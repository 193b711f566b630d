"""Values that all rows of a file share, and values of earlier lines that apply to later ones."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from functools import cache
from typing import Any

from fabricobs.formats.conversion import UnfitByFile
from fabricobs.formats.identity import NO_IDENTITY, UNKNOWN, Identity
from fabricobs.formats.logs.prefixes import NOTHING, Labels, Told, prefix_columns
from fabricobs.formats.shapes import shape_of
from fabricobs.formats.templates import Template
from fabricobs.formats.values import Unfit, parse_clock_alone, time_of
from fabricobs.store.tables import TABLES

# Samples of a host's own parts: whoever collects them by host names the folder or file after it.
HOST_TABLES = frozenset({"gpu_samples"})
# Their rows belong to a port of a device, whatever reads them.
_PORT_TABLES = frozenset({"port_samples", "priority_samples", "optics"})
# Tables in which `rank` is the rank in the job.
_RANKED_TABLES = frozenset({"steps", "phases", "stack_frames"})
_LONGEST_KIND = 40
_KIND_END = re.compile(r"\s*(?:[:,(]|\.\.)")
_MINUTE_US = 60_000_000
_DAY_US = 1440 * _MINUTE_US
_MOST_DROPPED = 1_000  # kinds of one file, whose names may be data


@cache
def column_names(table: str) -> frozenset[str]:
    """Return the column names of a table."""
    return frozenset(column.name for column in TABLES[table].columns)


class LineTold:
    """What launchers and log services told around the line that is being read."""

    def __init__(self) -> None:
        self.told: Told = NOTHING
        self._read: tuple[Told, dict[str, Any]] = NOTHING, {}

    def columns(self, table: str, context: "Context") -> dict[str, Any]:
        """Return the columns of a table it fills: a launcher's rank is the rank of a step."""
        if self._read[0] is not self.told:
            self._read = self.told, prefix_columns(self.told, context.zone, context.modified_us)
        names = column_names(table)
        columns: dict[str, Any] = {}
        for name, value in self._read[1].items():
            other = {"launch_rank": "rank", "host": "device"}.get(name, name)
            if name in names or other in names:
                columns[name if name in names else other] = value
        if "ts" in columns:
            columns["ts_source"] = "inline"
        return columns


@dataclass(slots=True)
class Context:
    """One file being read: whose it is, and the fields kept from its lines."""

    file_id: str
    job: str | None = None
    identity: Identity = NO_IDENTITY
    zone: tzinfo = UTC
    kept: dict[str, Any] = field(default_factory=dict)
    from_path: dict[str, Any] = field(default_factory=dict)
    generation: int = 0  # grows when what is kept changes
    modified_us: int | None = None  # when the file was last written
    labels: Labels = ()  # that launchers wrote before the lines
    blocks: bool = False  # a host between two rules stands above its lines
    of_line: LineTold = field(default_factory=LineTold)
    placed: dict[str, str] = field(default_factory=dict)  # by format: what the path tells
    file_name: str = ""  # what a port goes by that nothing names
    outer: "Context | None" = None
    unfit: UnfitByFile = field(default_factory=UnfitByFile)
    not_kept: Counter[str] = field(default_factory=Counter)  # that of the file's account
    _base: dict[tuple[str, str, bool], dict[str, Any]] = field(default_factory=dict)
    _inner: list["Context"] = field(default_factory=list)

    def keep(self, fields: Mapping[str, Any]) -> None:
        """Let `fields` hold for the lines that follow; one that no column holds is not known."""
        for name, value in fields.items():
            if isinstance(value, Unfit):
                self.unfit.add(self.file_id, None, name, value)
                fields = {**fields, name: None}
        if any(name not in self.kept or self.kept[name] != v for name, v in fields.items()):
            self.kept.update(fields)
            for context in (self, *self._inner):
                context._base.clear()
                context.generation += 1

    def drop(self, what: str, count: int = 1) -> None:
        """Count what is known and not kept: `section NAME`."""
        if what not in self.not_kept and len(self.not_kept) >= _MOST_DROPPED:
            what = "others"
        self.not_kept[what] += count

    def drop_fields(self, names: Iterable[str], count: int = 1) -> None:
        """Count values of fields that no column keeps, `count` of each."""
        for name in names:
            self.drop(f"field {name}", count)

    def drop_line(self, template: Template, line: str) -> None:
        """Count a line of which its format keeps nothing, unless it says nothing: a rule, N/A."""
        text = line.strip()
        says = template.open_ended or "{" in template.source
        if says and not text.endswith((":", "N/A")) and text.strip("-=_+| "):
            self.drop(f"line {_KIND_END.split(shape_of(text), maxsplit=1)[0][:_LONGEST_KIND]}")

    def within(self) -> "Context":
        """Return the context of one command in a capture: it sees what is kept here, and what it
        keeps, such as a port, does not hold for the output of the next command."""
        inner = replace(self, kept={}, outer=self, _base={}, _inner=[])
        self._inner.append(inner)
        return inner

    def moment(self, text: str) -> dict[str, Any]:
        """Return the columns of a time; the date of a clock alone (10:15:02) is that of the file.

        It is the day nearest to what is told around the line, the day that the path tells, the day
        nearest to the moment that it tells, or the last one before the file was written. Without
        any of these nothing is told.
        """
        if " " in text:
            return {"ts": time_of(text, self.zone), "ts_source": "inline"}
        identity = self.identity
        around = self.time_of_line().get("ts")
        if around is not None:
            earliest_us: int | None = around - _DAY_US // 2
        elif identity.ts is not None and identity.ts_source == "day":
            earliest_us = identity.ts
        elif identity.ts is not None and identity.ts_source != "mtime":
            earliest_us = identity.ts - _DAY_US // 2
        else:
            earliest_us = self.modified_us and self.modified_us - _DAY_US + _MINUTE_US
        if earliest_us is None:
            return {}
        return {"ts": parse_clock_alone(text, self.zone, earliest_us), "ts_source": "derived"}

    def time_of_line(self) -> dict[str, Any]:
        """Return the time told around the line that is being read, unless a date above tells it."""
        if not self.of_line.told or self._kept_here().get("ts") is not None:
            return {}
        columns = self.of_line.columns("port_samples", self)
        return {name: columns[name] for name in ("ts", "ts_source") if name in columns}

    def around(self, table: str, *, snapshot: bool) -> dict[str, Any]:
        """Return the columns that the line being read adds to those of its file.

        A snapshot is read on a device, not by the host that keeps the log: it takes the time alone.
        """
        if not self.of_line.told:
            return {}
        if snapshot:
            return self.time_of_line() if "ts" in column_names(table) else {}
        return self.of_line.columns(table, self)

    def base(self, table: str, format_name: str, *, snapshot: bool) -> dict[str, Any]:
        """Return the columns a row of `table` starts with; a fresh copy."""
        start = self.start(table, format_name, snapshot=snapshot)
        start.update(self.around(table, snapshot=snapshot))
        return start

    def start(self, table: str, format_name: str, *, snapshot: bool) -> dict[str, Any]:
        """Return what a file tells of each row of `table`; a fresh copy.

        A snapshot, or a row of counters, takes the device, port and time of its file's identity
        where its lines give none; a log line takes no time: the name of a log says when it began,
        not when the line was written. A definition's `place` says otherwise.
        """
        key = (table, format_name, snapshot)
        base = self._base.get(key)
        if base is None:
            base = self._base[key] = self._new_base(table, format_name, snapshot)
        return dict(base)

    def _kept_here(self) -> dict[str, Any]:
        """Return what holds for the line that is being read, kept here and above."""
        return {**self.outer.kept, **self.kept} if self.outer is not None else self.kept

    def _new_base(self, table: str, format_name: str, snapshot: bool) -> dict[str, Any]:
        names = column_names(table)
        base: dict[str, Any] = {"job": self.job, "file_id": self.file_id, "line": None}
        if "ts" in names:
            base["ts"], base["ts_source"] = None, "none"
        if "format" in names:
            base["format"] = format_name
        counts = table in _PORT_TABLES
        placed = "snapshot" if snapshot or counts else self.placed.get(format_name)
        if placed is None and table in HOST_TABLES:
            placed = "device"
        identity = self.identity
        # The tables of hosts call `host` what the others call `device`.
        named = "device" if "device" in names else "host"
        if placed is not None:
            base[named] = identity.device
        elif named in names and named == "host":
            base[named] = identity.of_log.device
        if placed in {"snapshot", "time"} and identity.ts is not None and "ts" in names:
            base["ts"], base["ts_source"] = identity.ts, identity.ts_source
        if counts:
            base["port"] = identity.port or f"{UNKNOWN}{self.file_name}"
        if table in _RANKED_TABLES and identity.rank is not None:
            base["rank"] = identity.rank
        kept = self._kept_here()
        for fields in (self.from_path, kept):
            base.update((name, value) for name, value in fields.items() if name in names)
        # A host that the format itself keeps is another: that of the neighbour it reads of.
        own = "device" in names or "host" in self.kept
        if placed is not None and not own and kept.get("device"):
            base["host"] = kept["device"]
        if kept.get("ts") is not None and "ts" in names:
            base["ts_source"] = "header"
        return base
