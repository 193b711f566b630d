"""The json reader: whole documents, whose records lie somewhere in a tree of objects and lists.

A block's `where` is the path to its records: `communicators[].ranks[]` goes into every item of the
lists (or into the one object some tools write instead of a list of one), `counts.{op}` into every
key of an object that the template fits, whose fields fill columns; an empty path is the document
itself, `[]` each item of a document that is a list, and two dots in front (`..interfaces.{port}`)
find the path wherever it lies, such as in an answer of an API. A column's key is a path below the
record, `.` for the record itself, and with a dot in front a path from the top, through the items
the record lies in: `.communicators.hash`; keys with ` + ` between are added up. Tables of counters
take key templates, other tables as targets and `other` as counter dumps do. `join` builds columns
from keys of the record. Nothing but what the
paths name is kept: a document may hold an environment with secrets in it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from fabricobs.formats.cells import CellBlock, CellRows, other_counter
from fabricobs.formats.context import Context, column_names
from fabricobs.formats.decompression import SourceError
from fabricobs.formats.definition import Block, Definition
from fabricobs.formats.documents.jsontext import TOO_DEEP, documents, unfolded
from fabricobs.formats.documents.kept_values import KeptValues
from fabricobs.formats.documents.oids import NameMaps
from fabricobs.formats.joins import Join
from fabricobs.formats.logs.lines import Outcome, TextReader
from fabricobs.formats.mapping import IDENTITY, ColumnMapping, Target, check_column
from fabricobs.formats.records.values import from_json
from fabricobs.formats.rows import Rows, Tally
from fabricobs.formats.templates import Template, TemplateError, compile_template
from fabricobs.formats.values import Unfit, Value

_STEP = re.compile(r"(?P<key>[\w:-]*)(?P<items>\[\])?")
_MOST_PROBLEMS = 20
_MOST_KEYS = 10_000  # whose answer is kept
_ID = "id"  # the field of a path that `names` name


@dataclass(frozen=True, slots=True)
class _Step:
    """One step of a path: a key, perhaps into each item of its list, or every key that fits."""

    key: str
    items: bool = False
    template: Template | None = None

    def fits(self, key: str) -> bool:
        """Say whether a key leads on."""
        return key == self.key if self.template is None else bool(self.template.pattern.match(key))


class _Path:
    """A compiled path to records."""

    def __init__(self, where: str, name: str) -> None:
        self.anywhere = where.startswith("..")
        self.steps = tuple(_step(text, name) for text in where.lstrip(".").split(".") if text)


class JsonBlock:
    """A compiled block: the way to its records, and which of their paths fill columns."""

    def __init__(self, block: Block, name: str) -> None:
        if block.table is None:
            raise TemplateError(f"{name}: a block of a json document needs a table")
        self.table = block.table
        self.set = block.set
        self.needs = block.needs
        self.mapping = ColumnMapping(block)
        self.paths = tuple(_Path(where, name) for where in (block.where or "", *block.also))
        tables = {self.table, *(target.table for target in self.mapping.targets())}
        for step in (step for path in self.paths for step in path.steps):
            for field, type_name in step.template.fields if step.template is not None else ():
                if not any(field in column_names(table) for table in tables) and field != _ID:
                    check_column(self.table, field, type_name)
        self.names = NameMaps(block.names)
        self.join = Join(block.join)
        self.from_above = tuple(
            key for key in self.mapping.sources() if key.startswith(".") and key != "."
        )
        self.sums = tuple((key, key.split(" + ")) for key in self.mapping.sources() if "+" in key)
        # The tables of counters are filled cell by cell.
        self.cells = CellBlock(block, name) if "format" in column_names(self.table) else None
        self._other = tuple(compile_template(source) for source in block.other)
        self._kept: dict[str, bool] = {}
        self._parts = frozenset(part for _, parts in self.sums for part in parts)
        # Most blocks read objects, and no plain values.
        self.reads_values = "." in self.mapping.sources() or bool(self.from_above)

    def takes(self, record: Any) -> bool:
        """Say whether a record may give a row."""
        return self.reads_values or isinstance(record, dict)

    def fills(self, key: str) -> bool:
        """Say whether a value of a record goes anywhere."""
        target = self.mapping.resolve(key)
        if key in self.join.parts:
            return True
        if target is False and self.cells is not None:
            return key in self._parts or self.keeps(key)
        return isinstance(target, Target)

    def keeps(self, key: str) -> bool:
        """Say whether a counter without a column goes to `other`."""
        kept = self._kept.get(key)
        if kept is None:
            if len(self._kept) >= _MOST_KEYS:
                self._kept.clear()
            kept = self._kept[key] = any(t.pattern.match(key) for t in self._other)
        return kept


class JsonFormat:
    """A compiled `json` definition."""

    def __init__(self, definition: Definition) -> None:
        self.name = definition.name
        self.blocks = tuple(JsonBlock(block, definition.name) for block in definition.block)


def _step(text: str, name: str) -> _Step:
    if "{" in text:
        return _Step("", template=compile_template(text, default_type="text"))
    found = _STEP.fullmatch(text)
    if found is None:
        raise TemplateError(f"{name}: {text!r} is no step of a path: key, key[] or {{column}}")
    return _Step(found["key"], items=found["items"] is not None)


def read_json(
    data: bytes,
    formats: Sequence[JsonFormat],
    context: Context,
    rows: Rows,
    tally: Tally,
    between: Sequence[TextReader] = (),
) -> None:
    """Read the documents of a file, one after another; one that breaks off gives what it holds.

    Every line of a document counts as read, but one for each thing in it that could not be; no
    text of it is kept. The lines between documents are offered to `between`. SourceError for a
    document nested too deeply, or with too many values; what came before it is kept.
    """
    reader = _TreeReader(formats, context, rows, tally, between)
    text = data.decode("utf-8", "replace")
    lines = text.removesuffix("\n").split("\n") if text else []
    position, done, at = 0, 0, 1  # `done`: the last line accounted for; `at`: the position's line
    for document in documents(text):
        at += text.count("\n", position, document.start)
        reader.pass_over(lines[done : at - 1], done + 1)
        first = max(at, done + 1)
        at += text.count("\n", document.start, document.end)
        position = document.end
        if document.problem == TOO_DEEP:
            raise SourceError(f"a JSON document is {TOO_DEEP}")
        try:
            reader.read(document.value, first)
        except RecursionError as error:
            raise SourceError(f"a JSON document is {TOO_DEEP}") from error
        done = min(at, len(lines))
        reader.account(max(done - first + 1, 0), first, document.problem)
    reader.pass_over(lines[done:], done + 1)


class _TreeReader:
    """The formats of one file, and what they could not read of a document."""

    def __init__(
        self,
        formats: Sequence[JsonFormat],
        context: Context,
        rows: Rows,
        tally: Tally,
        between: Sequence[TextReader],
    ) -> None:
        self._formats = formats
        self._context = context
        self._rows = rows
        self._tally = tally
        self._between = between
        self._problems: dict[str, None] = {}
        self._records = 0

    def pass_over(self, lines: Sequence[str], first: int) -> None:
        """Account for the lines between two documents: prompts, commands, dates."""
        for number, line in enumerate(lines, first):
            self._offer(line.rstrip("\r"), number)

    def read(self, document: Any, line: int) -> None:
        """Read a document by every format; what one refers to may fill several tables."""
        self._problems, self._records = {}, 0
        document = unfolded(document)
        kept = KeptValues()
        for tree_format in self._formats:
            cells = CellRows(self._context, self._rows)
            for block in tree_format.blocks:
                names = block.names.of(document)
                for held in block.names.objects(document):
                    kept.add_record(held, bool)  # any path
                kept.from_top.update(_without_places(key) for key in block.from_above)
                for record, above, fields in _found(document, block, kept):
                    if not block.takes(record):
                        continue
                    given = _named(fields, names)
                    if block.join and isinstance(record, dict):
                        given |= block.join.columns(record | given)
                    self._records += 1
                    if isinstance(record, dict):
                        kept.add_record(record, block.fills)
                    top = {**above, "": document}
                    if block.cells is None:
                        row = self._context.base(block.table, tree_format.name, snapshot=True)
                        _add(block, record, top, given, row, self._rows)
                    else:
                        self._measure(block, block.cells, record, top, given, cells, line)
            cells.flush()
        self._context.drop_fields(kept.others(document))

    def account(self, count: int, first: int, problem: str) -> None:
        """Account for the lines of the document read last."""
        name = self._formats[0].name
        if problem:
            self._problems[problem] = None
        elif not self._records:
            self._problems["holds none of the records its format names"] = None
        missed = list(self._problems)[: min(count, _MOST_PROBLEMS)]
        for problem in missed:
            self._tally.miss(first, f"{name}: {problem}", "")
        self._tally.read(count - len(missed))

    def _offer(self, line: str, number: int) -> None:
        if not line.strip():
            self._tally.skip()
            return
        for reader in self._between:
            outcome = reader.offer(line, number)
            if outcome is Outcome.PARSED:
                self._tally.read()
                return
            if outcome is Outcome.IGNORED:
                self._tally.skip()
                return
        # Only what stands between the outputs of commands is kept as text.
        self._tally.leave(number, line if self._between else "")

    def _measure(
        self,
        block: JsonBlock,
        cell_block: CellBlock,
        record: Any,
        above: dict[str, Any],
        given: dict[str, Any],
        cells: CellRows,
        line: int,
    ) -> None:
        """Add a record to the rows of counters; a value that cannot be meant is a problem."""
        told = dict(given)
        measured: list[tuple[Target, Value]] = []
        others: dict[str, Value] = {}
        filled: set[str] = set()
        leaves = dict(_leaves(record))
        for key, value in [*leaves.items(), *_sums(block, leaves), *_from_above(block, above)]:
            text = _as_text(value)
            if text is None:
                continue
            target = block.mapping.resolve(key)
            if target is False and block.keeps(key):
                others |= other_counter(key, text)
            if not isinstance(target, Target):
                continue
            try:
                converted = target.convert(text)
            except (ValueError, OverflowError) as error:
                self._problems[f"{key}: {error}"] = None
                continue
            # What a key tells, such as the name of a neighbour, holds for the whole record.
            told.update(field for field in target.fields if field[0] not in IDENTITY)
            if target.column.name in IDENTITY and converted is not None:
                told.setdefault(target.column.name, converted)
            elif converted is not None:
                measured.append((target, converted))
                filled.add(target.column.name)
        if filled.issuperset(block.needs):
            cells.add_values(cell_block, measured, others, line, told)


def _as_text(value: Any) -> str | None:
    """Return a value as a counter dump prints it; None for a list, or no value."""
    if value is None or isinstance(value, dict | list):
        return None
    if isinstance(value, float) and value.is_integer() and abs(value) < 1 << 63:
        return str(int(value))
    return str(value).strip()


def _named(fields: dict[str, Any], names: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Put what the names tell in the place of an id; one without a name names the port itself."""
    if _ID not in fields:
        return fields
    number = fields[_ID]
    return {k: v for k, v in fields.items() if k != _ID} | names.get(number, {"port": number})


def _sums(block: JsonBlock, leaves: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the sums a definition asks for, where all their parts are told."""
    for key, parts in block.sums:
        texts = [str(leaves[part]).replace(",", "") for part in parts if part in leaves]
        if len(texts) == len(parts) and all(text.isdecimal() for text in texts):
            yield key, str(sum(map(int, texts)))


def _from_above(block: JsonBlock, above: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for key in block.from_above:
        yield key, _at(above, key)


def _without_places(key: str) -> str:
    """Return a path from the top without the places in lists."""
    return ".".join(part for part in key.split(".") if not part.isdigit())


def _found(
    document: Any, block: JsonBlock, kept: KeptValues
) -> Iterator[tuple[Any, dict[str, Any], dict[str, Any]]]:
    for path in block.paths:
        if not path.anywhere:
            yield from _records(document, path.steps, block.reads_values, kept)
            continue
        first = path.steps[0]
        pending = [document]
        while pending:
            node = pending.pop()
            if isinstance(node, dict):
                if first.template is not None or first.key in node:
                    yield from _records(node, path.steps, block.reads_values, kept)
                pending.extend(node.values())
            elif isinstance(node, list):
                pending.extend(node)


def _records(
    node: Any, steps: tuple[_Step, ...], values: bool, kept: KeptValues, path: str = ""
) -> Iterator[tuple[Any, dict[str, Any], dict[str, Any]]]:
    """Yield each record with the items it lies in, by path, and the fields that keys tell.

    Plain values below a key that fits a template are passed over unless `values`.
    """
    if not steps:
        yield node, {}, {}
        return
    step, rest = steps[0], steps[1:]
    if step.items and not step.key:
        for item in node if isinstance(node, list) else [node]:
            for record, above, given in _records(item, rest, values, kept, path):
                yield record, {path: item, **above}, given
        return
    if not isinstance(node, dict):
        return
    if step.template is not None:
        kept.add_data_keys(node, step.fits)
    if values and not rest:
        kept.add_values(node, step.fits)
    if step.template is not None:
        for key, value in node.items():
            if not values and not isinstance(value, dict | list):
                continue
            fields = _fields(step.template, str(key))
            if fields is None:
                continue
            for record, above, given in _records(value, rest, values, kept, path):
                yield record, above, {**fields, **given}
        return
    below = f"{path}.{step.key}"
    value = node.get(step.key)
    items = value if step.items and isinstance(value, list) else [value]
    for item in items:
        if item is not None:
            for record, above, given in _records(item, rest, values, kept, below):
                yield record, {below: item, **above}, given


def _fields(template: Template, key: str) -> dict[str, Any] | None:
    """Return what a key tells by its template; None if it does not fit."""
    found = template.pattern.match(key)
    if found is None:
        return None
    try:
        return template.read(found)
    except ValueError:
        return None


def _add(
    block: JsonBlock,
    record: Any,
    above: dict[str, Any],
    given: dict[str, Any],
    row: dict[str, Any],
    rows: Rows,
) -> None:
    place: dict[str, Any] = {name: row[name] for name in ("ts", "ts_source") if name in row}
    row.update((key, value) for key, value in block.set.items() if key in column_names(block.table))
    row.update(dict.fromkeys((t.column.name for t in block.mapping.sources().values()), None))
    row.update(given)
    filled = False
    for key, value in _leaves(record):
        target = block.mapping.resolve(key)
        filled |= isinstance(target, Target) and _fill(row, target, value)
    for key in block.from_above:
        _fill(row, block.mapping.sources()[key], _at(above, key))
    if place:
        told = _is_told(row["ts"]) and row["ts"] != place["ts"]
        row.update({"ts_source": block.set.get("ts_source", "inline")} if told else place)
    if filled and all(_is_told(row.get(name)) for name in block.needs):
        rows.add(block.table, row)
        return
    for name, value in row.items():
        if isinstance(value, Unfit):
            rows.unfit.add(row["file_id"], row["line"], name, value)


def _leaves(record: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of a record by their path; `.` is a record that is a value itself."""
    if not isinstance(record, dict):
        yield path or ".", record
        return
    for key, value in record.items():
        yield from _leaves(value, f"{path}.{key}" if path else str(key))


def _at(above: dict[str, Any], key: str) -> Any:
    """Return the value at a path from the top, through the nearest item the record lies in."""
    nearest = max((path for path in above if f"{key}.".startswith(f"{path}.")), key=len, default="")
    node = above[nearest]
    for part in key[len(nearest) :].strip(".").split("."):
        if isinstance(node, list) and part.isdigit() and int(part) < len(node):
            node = node[int(part)]
        elif isinstance(node, dict):
            node = node.get(part)
        else:
            return None
    return node


def _fill(row: dict[str, Any], target: Target, value: Any) -> bool:
    """Fill a column where the value can be meant; the first key of a column that does counts."""
    known = row.get(target.column.name)
    if value is None or isinstance(value, dict | list) or _is_told(known):
        return False
    converted = from_json(value, target, UTC)
    if isinstance(converted, Unfit):
        row[target.column.name] = converted
    elif converted is not None and converted == converted:  # NaN is no value
        row[target.column.name] = converted
        row.update(target.fields)
        return True
    return False


def _is_told(value: Any) -> bool:
    return value is not None and not isinstance(value, Unfit)
