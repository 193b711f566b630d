"""The walk reader: SNMP as snmpwalk prints it, one object a line.

`IF-MIB::ifHCInOctets.12 = Counter64: 908950` and its relatives: numbers for names, other marks
between index and value, no type. Rows name ports by number; the names stand in other lines of the
same walk, so the rows wait for its end.
"""

import re
from typing import Any

from fabricobs.formats.cells import CellBlock
from fabricobs.formats.context import Context
from fabricobs.formats.definition import Definition
from fabricobs.formats.logs.lines import Outcome
from fabricobs.formats.mapping import IDENTITY, Target
from fabricobs.formats.rows import Rows
from fabricobs.formats.values import NO_VALUE, parse_date_and_time, parse_switch_port

_OBJECT = re.compile(
    r"(?:[\w-]+::)?(?P<name>[A-Za-z]\w*)(?P<index>(?:\.\d+|\[\d+\])+|(?<=Instance))"
    r"(?: = (?:(?P<type>[A-Z][\w-]*): ?)?| )(?P<value>.*)$"
)
_FULL = re.compile(r"\.?iso\.org\.dod\.[\w.-]*?\.(?=[A-Za-z]\w*(?:\.\d+)+(?: |$))")
_NUMERIC = re.compile(
    r"(?:iso|\.?1)(?P<oid>(?:\.\d+)+)(?: = (?:(?P<type>[A-Z][\w-]*): ?)?| |\|(?P<tag>\w+)\|)"
    r"(?P<value>.*)$"
)
# What tells a walk's line of an object nobody knows from other text.
_SURE = re.compile(r"::| = |^\.?(?:1|iso)\.")
_BEGINS = re.compile(r"[\w-]+::\w+(?:[.\[]\d|Instance )|\.?(?:1|iso)\.(?:3\.6\.1|0\.8802)\.")
_ABSENT = re.compile(r"No (?:Such|more) ")
_MAC = re.compile(r"[0-9a-fA-F]{1,2}(?::[0-9a-fA-F]{1,2}){5}")


class WalkFormat:
    """A compiled `walk` definition: object names by number, and the columns objects fill."""

    def __init__(self, definition: Definition) -> None:
        self.name = definition.name
        self.block = CellBlock(definition.block[0], definition.name)
        self._oids = definition.oids
        keys = (*definition.block[0].columns, *definition.block[0].ignore)
        self._known = frozenset(key.partition(".")[0] for key in keys)

    def resolve(self, key: str) -> Target | bool:
        """Return what an object fills; True for one that holds for the walk, False if unknown."""
        return key.partition(".")[0] in self._known and self.block.mapping.resolve(key)

    def named(self, oid: str) -> str:
        """Return `ifHCInOctets.12` for its number; an unknown number stays as it is."""
        parts = oid.split(".")
        for length in range(len(parts) - 1, 5, -1):
            name = self._oids.get(".".join(parts[:length]))
            if name is not None:
                return ".".join((name, *parts[length:]))
        return oid


class WalkReader:
    """One `walk` format reading one file."""

    def __init__(self, walk_format: WalkFormat, context: Context, rows: Rows) -> None:
        self._format = walk_format
        self._context = context
        self._rows = rows
        self._names: dict[str, dict[str, str]] = {}  # ports by number, for each way to name them
        self._values: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._wraps = False

    def offer(self, line: str, number: int) -> Outcome | str:
        """Take the lines of a walk; a text may run on below its first line."""
        text = line.strip()
        if not text:
            return Outcome.NOT_MINE
        read = self._split(text)
        if read is None:
            return Outcome.IGNORED if self._wraps else Outcome.NOT_MINE
        key, kind, value = read
        target = self._format.resolve(key)
        if target is False and not _SURE.search(text):
            return Outcome.NOT_MINE
        self._wraps = kind == "Hex-STRING" or "Desc" in key or value.count('"') == 1
        if _ABSENT.match(value):
            return Outcome.IGNORED
        if target is False:
            name = key.partition(".")[0]
            self._context.drop("OIDs without a name" if name.isdecimal() else f"field {name}")
            return Outcome.IGNORED
        value = value.strip().strip('"').strip()
        return self._note(key, value) if target is True else self._take(target, value, number)

    def opens(self, line: str) -> bool:
        """Say whether the line is beyond doubt one of a walk."""
        return _BEGINS.match(line) is not None

    def boundary(self, line: str, number: int) -> None:
        """End the walk: a date, prompt or command stands here."""
        self._hand_over()
        self._wraps = False

    def finish(self) -> None:
        """Hand over what is still open."""
        self._hand_over()

    def _split(self, text: str) -> tuple[str, str | None, str] | None:
        numeric = _NUMERIC.match(text)
        if numeric is not None:
            return self._format.named("1" + numeric["oid"]), numeric["type"], numeric["value"]
        found = _OBJECT.match(_FULL.sub("", text))
        if found is None:
            return None
        index = found["index"].replace("[", ".").replace("]", "")
        return found["name"] + index, found["type"], found["value"]

    def _take(self, target: Target | bool, value: str, number: int) -> Outcome | str:
        assert isinstance(target, Target)
        identity = (target.table, *target.fields)
        row = self._values.get(identity)
        if row is not None and target.column.name in row:
            # The same object again: the next walk of a file without dates.
            self._hand_over()
            row = None
        if row is None:
            row = self._values[identity] = {"line": number, **self._context.time_of_line()}
        try:
            row[target.column.name] = target.convert(value)
        except ValueError as error:
            return f"{self._format.name}: {error}"
        return Outcome.PARSED

    def _note(self, key: str, value: str) -> Outcome | str:
        """Keep what holds for the whole walk: the names of ports, of the device, the time."""
        name, _, index = key.partition(".")
        if value.lower() in NO_VALUE:
            return Outcome.IGNORED
        if name in {"sysName", "lldpLocSysName"}:
            self._context.keep({"device": value})
        elif name == "hrSystemDate":
            try:
                self._context.keep({"ts": parse_date_and_time(value)})
            except ValueError as error:
                return f"{self._format.name}: {error}"
        else:
            self._names.setdefault(name, {})[index] = value
        return Outcome.PARSED

    def _hand_over(self) -> None:
        for (table, *fields), measured in self._values.items():
            identity = dict(fields)
            row = self._context.base(table, self._format.name, snapshot=True)
            row.update((name, value) for name, value in identity.items() if name in IDENTITY)
            row.update(measured)
            self._name_port(table, row, str(identity.get("port")))
            self._rows.add(table, row)
        self._values.clear()

    def _name_port(self, table: str, row: dict[str, Any], index: str) -> None:
        """Put the port's name for its number; a second name goes to the status of the port."""
        own = ("lldpLocPortId", "lldpLocPortDesc") if table == "links" else ()
        named = [self._names.get(source, {}).get(index) for source in (*own, "ifName", "ifDescr")]
        # A MAC address or a description with blanks names no port.
        fit = (name for name in named if name and " " not in name and not _MAC.fullmatch(name))
        names = [parse_switch_port(name) for name in fit]
        row["port"] = names[0] if names else f"ifIndex.{index}"
        if table == "port_status":
            row["alias"] = next((name for name in names if name != row["port"]), None)
