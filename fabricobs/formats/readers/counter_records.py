"""Counters of ports as records: what warehouses, agents and scripts export.

CSV with a column a counter or a row a counter, JSON lines, and JSON documents in which objects hold
counters. A record is known by the names of its counters; device, port and time are found by the
meaning of its fields, as those of log services are (`logs/meanings.py`), and in JSON also in the
objects it lies in. Fields that a column of `port_status` takes are kept beside counters.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any

from fabricobs.formats.cells import CellBlock, CellRows
from fabricobs.formats.decompression import SourceError
from fabricobs.formats.documents.jsontext import below_banner, documents, loads
from fabricobs.formats.identity.vocabulary import INTERFACE, is_rdma_device, is_surely_a_device
from fabricobs.formats.limits import LIMITS
from fabricobs.formats.logs.meanings import fields_by_meaning, meaning_of
from fabricobs.formats.mapping import Target
from fabricobs.formats.records.csv_records import split_header, split_line
from fabricobs.formats.source import LineBlock, line_blocks
from fabricobs.formats.values import VALUE_TYPES, parse_time
from fabricobs.formats.whole import WholeFile

Field = tuple[str, Any]  # a path of keys and the value at its end

_PORTS = frozenset({"port", "port_num", "portnum", "port_number", "port_name", "portname"})
_NICS = frozenset(
    """
    device dev nic hca ca ibdev ib_dev ifname if_name interface interface_name intf iface netdev
    net_dev net_device ndev rdma_dev rdma_device rdmadev ib_device hca_name nic_name ifdescr
    """.split()
)
_HOSTS = frozenset(
    "switch switch_name instance source server device_name agent_host machine sysname".split()
)
# Names of a time that stand alone; log services have others (`logs/meanings.py`).
_TIMES = frozenset(
    """
    utc time_utc ts_utc t t_unix epoch epoch_s epoch_ms unix unix_time unix_ts unixtime ts_ms when
    """.split()
)
_MOST_PORTS = 100_000
_STATES = frozenset({"up", "down"})
# A row a counter: the columns of its name and of its value.
_NAMES = frozenset({"counter", "counter_name", "metric", "metric_name", "name", "_field"})
_VALUES = frozenset({"value", "_value"})


def read_counter_records(file: WholeFile) -> None:
    """Read one file; a line that is no record is counted as unread."""
    reader = _Reader(file)
    blocks = line_blocks(file.stream)
    first = next(blocks, None)
    if first is None:
        return
    rest = chain([first], blocks)
    head = below_banner(first.data.decode("utf-8", "replace")).lstrip()
    if head[:1] not in {"{", "["}:
        reader.read_csv(rest)
    elif _is_whole(head.partition("\n")[0]):
        reader.read_lines(rest)
    else:
        reader.read_documents(rest)
    reader.cells.flush()


def _is_whole(line: str) -> bool:
    try:
        loads(line)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class _Record:
    """The counters of one port at one time, and the fields that say which, nearest first."""

    counters: Sequence[tuple[str, str]]
    fields: Sequence[Field]


class _Reader:
    """One file being read."""

    def __init__(self, file: WholeFile) -> None:
        block = file.format.blocks[0][0]
        self._file = file
        self._block = CellBlock(block, file.format.name)
        self.cells = CellRows(file.context, file.rows)
        self._told: dict[tuple[str, str], list[tuple[str, str]]] = {}

    def read_csv(self, blocks: Iterable[LineBlock]) -> None:
        """Read rows below a header; a line of other length is counted as unread."""
        names: list[str] = []
        delimiter = ","
        for number, line in self._file.lines(blocks):
            if not names:
                names, delimiter = split_header(line.removeprefix("#"))
                if line.startswith("#") and not any(map(_is_used, names)):
                    names = []  # a remark
                self._file.tally.skip()
                continue
            cells = split_line(line, delimiter)
            if len(cells) != len(names):
                self._file.miss(number, f"{len(names)} columns", line)
                continue
            self._count(number, line, self._add_all(dict(zip(names, cells, strict=True)), number))

    def read_lines(self, blocks: Iterable[LineBlock]) -> None:
        """Read a record a line."""
        for number, line in self._file.lines(blocks):
            try:
                value = loads(line)
            except ValueError as error:
                self._file.miss(number, str(error), line)
                continue
            self._count(number, line, self._add_all(value, number))

    def read_documents(self, blocks: Iterable[LineBlock]) -> None:
        """Read what objects of whole documents hold; SourceError if they are too long."""
        parts: list[bytes] = []
        size = 0
        for block in blocks:
            parts.append(block.data)
            size += len(block.data)
            if size > LIMITS.document_bytes:
                raise SourceError("a JSON document too long to be read")
        text = b"".join(parts).decode("utf-8", "replace")
        count = text.removesuffix("\n").count("\n") + 1
        missed = 0
        for document in documents(text):
            number = text.count("\n", 0, document.start) + 1
            problem = document.problem or self._add_all(document.value, number)
            if problem:
                self._file.miss(number, problem, "")
                missed += 1
        self._file.tally.read(max(count - missed, 0))

    def _count(self, number: int, line: str, problem: str) -> None:
        if problem:
            self._file.miss(number, problem, line)
        else:
            self._file.tally.read()

    def _add_all(self, value: Any, number: int) -> str:
        """Add the rows of the records below a value, and say what is wrong with them."""
        problem = "no counter that is known"
        for record in self._records(value, ()):
            try:
                place = self._place(record.fields)
                facts = [*self._facts(record.fields, place["port"])]
                news = facts if self._is_news(place, facts) else []
                self.cells.add(self._block, [*record.counters, *news], number, place)
            except ValueError as error:
                return str(error)
            kept = {key for key, _ in facts}
            self._file.context.drop_fields(
                key for key, _ in record.fields if key not in kept and not _is_used(key)
            )
            problem = ""
        return problem

    def _records(self, value: Any, above: tuple[Field, ...]) -> Iterator[_Record]:
        """Yield the objects below a value that hold counters themselves."""
        if isinstance(value, list):
            for item in value:
                yield from self._records(item, above)
        if not isinstance(value, dict):
            return
        plain = {str(k): v for k, v in value.items() if not isinstance(v, dict | list)}
        counters = self._counters(plain)
        fields = (*self._labels(value), *above)
        if counters:
            yield _Record(counters, fields)
            return
        for key, below in value.items():
            if isinstance(below, dict | list):
                yield from self._records(below, (*_fields_of_key(str(key)), *fields))

    def _counters(self, fields: dict[str, Any]) -> list[tuple[str, str]]:
        """Return the counters among the fields of an object, or the one that it names."""
        by_name = {key.lower(): value for key, value in fields.items()}
        name = next((str(by_name[key]) for key in _NAMES if self._is_counter(by_name.get(key))), "")
        value = next((by_name[key] for key in _VALUES if key in by_name), None)
        found = [(name, value)] if name and value is not None else fields.items()
        return [
            (key, text)
            for key, value in found
            if self._is_counter(key) and (text := str(value).strip().removesuffix(".0")).isdecimal()
        ]

    def _is_counter(self, name: Any) -> bool:
        target = self._block.mapping.resolve(name) if isinstance(name, str) else False
        return isinstance(target, Target) and target.column.is_counter

    def _is_news(self, place: dict[str, Any], facts: list[tuple[str, str]]) -> bool:
        """Say whether to keep what is told of a port: its state each time, names and rates once."""
        port = str(place.get("device")), str(place["port"])
        before = self._told.get(port)
        if facts and len(self._told) < _MOST_PORTS:
            self._told[port] = facts
        return facts != before or any(text.lower() in _STATES for _, text in facts)

    def _facts(self, fields: Iterable[Field], port: str) -> Iterator[tuple[str, str]]:
        """Yield what fields tell of the port beside its counters: state, rate, its other name."""
        for key, value in fields:
            target = self._block.mapping.resolve(key)
            text = str(value).strip()
            if not isinstance(target, Target) or target.column.is_counter:
                continue
            if target.column.name == "oper" and text.lower() not in _STATES:
                continue
            if target.column.name == "alias" and text in {"", port.partition("/")[0]}:
                continue
            yield key, text

    def _labels(self, value: dict[str, Any]) -> Iterator[Field]:
        """Yield the plain fields of an object, then those of objects in it without counters."""
        nested: list[Field] = []
        for key, below in value.items():
            if not isinstance(below, dict):
                if not isinstance(below, list) and not self._is_counter(key):
                    yield str(key), below
            elif not self._counters(below):
                nested.extend((f"{key}.{name}", text) for name, text in self._labels(below))
        yield from nested

    def _place(self, fields: Sequence[Field]) -> dict[str, Any]:
        """Return device, port and time as the fields tell them; ValueError if none names the port.

        A `device` that is named like a network interface is one, else a host or switch.
        """
        told = fields_by_meaning((k, v) for k, v in fields if k.lower() not in _VALUES)
        host = told.get("node") or told.get("host") or _first(fields, _HOSTS)
        nics = [str(v) for k, v in fields if _end(k) in _NICS and v not in (None, "")]
        interfaces = [name for name in nics if INTERFACE.fullmatch(name)]
        rdma = filter(is_rdma_device, interfaces)
        nic = next(rdma, interfaces[0] if interfaces else None)
        other = next((name for name in nics if name not in interfaces), None)
        port = _first(fields, _PORTS)
        if host is None and other is not None and (nic or port):
            host, other = other, None
        if port is None and nic is not None and len({*interfaces}) > 1 and is_rdma_device(nic):
            port = "1"  # of a RDMA device that one net device stands for
        port = _port(nic or other, port)
        if port is None:
            raise ValueError("no field names the port")
        place: dict[str, Any] = {"port": port}
        if host is not None:
            place["device"] = VALUE_TYPES["instance"].parse(host)
        ts = told.get("ts") or _first(fields, _TIMES)
        if ts is not None:
            place["ts"] = parse_time(ts, self._file.context.zone)
        return place


def _port(nic: str | None, port: str | None) -> str | None:
    """Put a port together: its number stands below the device that has it."""
    if port is None or nic is None:
        return port or nic
    return f"{nic}/{port}" if port.isdecimal() else port


def _fields_of_key(key: str) -> tuple[Field, ...]:
    """Return what a key tells of the object it leads to, where it is a name."""
    if INTERFACE.fullmatch(key):
        return (("interface", key),)
    return (("host", key),) if is_surely_a_device(key) else ()


@lru_cache(maxsize=10_000)
def _is_used(path: str) -> bool:
    """Say whether a field may tell which counter, device, port or time it is."""
    used = _PORTS | _NICS | _HOSTS | _NAMES | _VALUES | _TIMES
    return _end(path) in used or meaning_of(path) is not None


def _end(path: str) -> str:
    return path.rpartition(".")[2].lower()


def _first(fields: Iterable[Field], names: frozenset[str]) -> str | None:
    return next((str(v) for k, v in fields if _end(k) in names and v not in (None, "")), None)
