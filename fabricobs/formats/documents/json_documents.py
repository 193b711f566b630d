"""The json reader: whole documents, whose records lie somewhere in a tree of objects and lists.

A block's `where` is the path to its records (`record_paths.py`). A column's key is a path below the
record, `.` for the record itself, and with a dot in front a path from the top, through the items
the record lies in: `.communicators.hash`; keys with ` + ` between are added up. A block without
columns keeps what the keys of its path tell. Tables of counters
take key templates, other tables as targets and `other` as counter dumps do. `join` builds columns
from keys of the record. Nothing but what the paths name is kept: a document may hold an
environment with secrets in it.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC
from typing import Any

from fabricobs.formats.cells import CellBlock, CellRows, other_counter
from fabricobs.formats.context import Context, column_names
from fabricobs.formats.decompression import SourceError
from fabricobs.formats.definition import Block, Definition
from fabricobs.formats.documents.jsontext import TOO_DEEP, documents, unfolded
from fabricobs.formats.documents.kept_values import KeptValues
from fabricobs.formats.documents.oids import NameMaps
from fabricobs.formats.documents.record_paths import (
    RecordPath,
    leaf_values,
    located_records,
    value_above,
    without_places,
)
from fabricobs.formats.joins import Join
from fabricobs.formats.logs.lines import Outcome, TextReader
from fabricobs.formats.mapping import IDENTITY, ColumnMapping, Target, check_column
from fabricobs.formats.records.values import from_json
from fabricobs.formats.rows import Rows, Tally
from fabricobs.formats.templates import TemplateError, compile_template
from fabricobs.formats.values import Unfit, Value

_MOST_PROBLEMS = 20
_MOST_KEYS = 10_000  # whose answer is kept
_ID = "id"  # the field of a path that `names` name


class JsonBlock:
    """A compiled block: the way to its records, and which of their paths fill columns."""

    def __init__(self, block: Block, name: str) -> None:
        if block.table is None:
            raise TemplateError(f"{name}: a block of a json document needs a table")
        self.table = block.table
        self.set = block.set
        self.needs = block.needs
        self.mapping = ColumnMapping(block)
        # {"3": {}}: the path tells all there is.
        self.is_bare = not (block.columns or block.other)
        self.paths = tuple(RecordPath(where, name) for where in (block.where or "", *block.also))
        tables = {self.table, *(target.table for target in self.mapping.targets())}
        for field, type_name in (field for path in self.paths for field in path.fields):
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
                kept.from_top.update(without_places(key) for key in block.from_above)
                for record, above, fields in located_records(
                    document, block.paths, block.reads_values, kept
                ):
                    if not block.takes(record):
                        continue
                    given = _named(fields, names)
                    if block.join and isinstance(record, dict):
                        given |= block.join.columns(record | given)
                    self._records += 1
                    if isinstance(record, dict):
                        kept.add_record(record, block.fills)
                    top = {"": document, **above}
                    if block.cells is None or block.is_bare:
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
        leaves = dict(leaf_values(record))
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
        yield key, value_above(above, key)


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
    filled = block.is_bare
    for key, value in leaf_values(record):
        target = block.mapping.resolve(key)
        filled |= isinstance(target, Target) and _fill(row, target, value)
    for key in block.from_above:
        _fill(row, block.mapping.sources()[key], value_above(above, key))
    if place:
        told = _is_known(row["ts"]) and row["ts"] != place["ts"]
        row.update({"ts_source": block.set.get("ts_source", "inline")} if told else place)
    if filled and all(_is_known(row.get(name)) for name in block.needs):
        rows.add(block.table, row)
        return
    for name, value in row.items():
        if isinstance(value, Unfit):
            rows.unfit.add(row["file_id"], row["line"], name, value)


def _fill(row: dict[str, Any], target: Target, value: Any) -> bool:
    """Fill a column where the value can be meant; the first key of a column that does counts."""
    known = row.get(target.column.name)
    if value is None or isinstance(value, dict | list) or _is_known(known):
        return False
    converted = from_json(value, target, UTC)
    if isinstance(converted, Unfit):
        row[target.column.name] = converted
    elif converted is not None and converted == converted:  # NaN is no value
        row[target.column.name] = converted
        row.update(target.fields)
        return True
    return False


def _is_known(value: Any) -> bool:
    return value is not None and not isinstance(value, Unfit)
