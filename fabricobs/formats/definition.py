"""Format definitions: what a file of `ingest/` may say, and loading one with errors that help."""

import hashlib
import json
from base64 import b64decode
from collections.abc import Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationError

from fabricobs import content
from fabricobs.content import ContentError
from fabricobs.formats.values import Value
from fabricobs.short_files import parsed
from fabricobs.validation import explain

Reader = Literal[
    "lines", "configuration", "table", "keyvalue", "paragraphs", "walk", "sections",
    "matrix", "prometheus",
    "csv", "jsonl", "parquet", "json", "yaml",
    # Whole files, one function each: `formats/readers/`.
    "flight_recorder", "kineto", "mlflow", "mlflow_db", "nccl_trace", "ndtimeline", "py_spy",
    "tensorboard", "wandb_csv", "counter_records", "rank_hosts", "allocations",
]  # fmt: skip


def _as_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


Strings = Annotated[tuple[str, ...], BeforeValidator(_as_tuple)]


def _with_nulls(constants: dict[str, Value]) -> dict[str, Value]:
    """Turn "" into null, which TOML lacks: a kept value that no longer holds."""
    return {name: None if value == "" else value for name, value in constants.items()}


Constants = Annotated[dict[str, str | int | float | bool | None], AfterValidator(_with_nulls)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Detect(_Part):
    """How a file shows this format: every key given must hold."""

    text: Strings = ()  # expressions, one of which is in the first and last lines
    path: str | None = None  # expression searched in the path; never alone for text formats
    columns: tuple[str, ...] = ()  # columns the header must fill (csv, jsonl, parquet)
    magic: str | None = None  # expression the first bytes match, each byte taken as one character
    fallback_for: tuple[str, ...] = ()  # not where another format shown fills one of these tables


class LineRule(_Part):
    """One shape of line. Rules are tried in order; without `table` and `context` it is ignored."""

    template: Strings
    find: tuple[str, ...] = ()  # searched in the whole line, each may be absent
    when: dict[str, str] = {}  # values the anchor's groups or kept fields must have
    each: str | None = None  # one row per hit inside the field `rest`, or the line
    table: str | None = None
    set: Constants = {}
    context: tuple[str, ...] = ()  # fields that hold for the lines below
    about: str = ""  # of a rule that drops its lines: what they are about
    shared: bool = False  # the rules below may read the line too
    increment: tuple[str, ...] = ()  # kept whole numbers that go up by one after the line


class Block(_Part):
    """Cells of a table, keys of a dump or fields of a record, and the columns they fill."""

    table: str | None = None  # table, keyvalue, records: without one known and ignored
    columns: dict[str, str] = {}  # "key or key template" = "[table.]column[:type][ * factor]"
    ignore: tuple[str, ...] = ()  # keys known and not needed
    set: Constants = {}
    header: Strings = ()  # table: templates of the header line; keyvalue: of the opening line
    title: Strings = ()  # table: templates of a line that must stand above the header
    split: Literal["ruler", "whitespace"] = "ruler"  # table: what parts the cells of a row
    line: Strings = ()  # paragraphs: templates of the lines below the header
    # paragraphs: fields that go to the map column under their name; prometheus, json, keyvalue:
    # templates of the keys that do, also where `ignore` fits them
    other: tuple[str, ...] = ()
    # keyvalue: templates with {key} and {value}, tried in order; the key may stand in the path
    pair: Strings = ()
    # jsonl: the key, or path of keys, a record of this kind has; json: the path to its records;
    where: str | None = None
    needs: tuple[str, ...] = ()  # json: columns without which a record gives no row
    kinds: Strings = ()  # prometheus: labels whose value is part of the metric: name.value
    also: Strings = ()  # json: further paths its records may lie at
    # json: templates of names, and the objects {name: id} that say whose the {id} of a path is
    names: dict[str, Strings] = {}
    sticky: tuple[str, ...] = ()  # jsonl, sections: what holds until given again
    opens: Strings = ()  # keyvalue: templates of keys that open a dump without a header
    skip: Strings = ()  # keyvalue: templates of lines inside a dump that are no pairs
    # table, keyvalue, prometheus: columns put together from what cells, headers or labels tell
    join: dict[str, Strings] = {}


class CounterKind(_Part):
    """How a counter counts."""

    width: int = 64
    overflow: Literal["wrap", "saturate"] = "wrap"
    kind: Literal["counter", "delta", "gauge"] = "counter"
    unit: str = ""  # where it is not that of the column


class Counters(CounterKind):
    """How the counters of a format count, and the ones that differ."""

    columns: dict[str, CounterKind] = {}


class Sample(_Part):
    """Text in, rows expected: each row given names the columns that must hold."""

    text: str = ""
    base64: str = ""  # instead of text: the bytes of a binary file
    path: str = "sample"
    rows: dict[str, tuple[dict[str, Value], ...]] = {}
    unparsed: int = 0

    @property
    def data(self) -> bytes:
        """Return the bytes of the sample."""
        return b64decode(self.base64) if self.base64 else self.text.encode()


class Definition(_Part):
    """One format: how to recognise it, how to read it, and the samples that prove it."""

    name: str
    title: str
    reader: Annotated[tuple[Reader, ...], BeforeValidator(_as_tuple)]
    detect: Detect = Detect()
    separator: bool = False  # read along with every file of counters
    anchor: str | None = None  # lines: what stands before a message; groups fill columns
    find: tuple[str, ...] = ()  # lines: what rules of tables search that name nothing themselves
    isolated: bool = False  # lines: the context of other formats does not apply here
    contains: str = ""  # lines: text every line of the format holds, once for each message
    path: Strings = ()  # templates of the end of the path; fields fill columns
    fills: Strings = ()  # tables a reader of whole files fills by itself
    identity_from_path: Literal["device", "snapshot", "time"] | None = (
        None  # lines: what the path tells of its rows
    )
    line: tuple[LineRule, ...] = ()
    block: tuple[Block, ...] = ()
    oids: dict[str, str] = {}  # walk: object names by their numbers
    counters: Counters | None = None
    sample: tuple[Sample, ...] = ()

    @cached_property
    def tables(self) -> frozenset[str]:
        """Name the tables its rules and blocks fill."""
        return frozenset(
            table
            for table in (
                *self.fills,
                *(r.table for r in self.line),
                *(b.table for b in self.block),
            )
            if table
        )

    @cached_property
    def version(self) -> str:
        """Digest of what decides the rows: everything but title and samples."""
        # Without defaults: a key that is new here makes no file of a store need a new look.
        deciding = self.model_dump(
            mode="json", exclude={"title", "sample", "fills"}, exclude_defaults=True
        )
        return hashlib.blake2b(
            json.dumps(deciding, sort_keys=True).encode(), digest_size=8
        ).hexdigest()


def load_definition(path: Path) -> Definition:
    """Load one definition; ContentError names file, key and the nearest valid one."""
    return _read_definition(path, content.read_text(path))


# A watch loads them anew every round, nearly always the same.
@lru_cache(maxsize=1024)
def _read_definition(path: Path, text: str) -> Definition:
    document = parsed(path, text, ContentError)
    document.setdefault("name", path.stem)
    try:
        definition = Definition.model_validate(document)
    except ValidationError as error:
        raise ContentError(explain(error, Definition, lambda _: str(path))) from error
    if not definition.sample:
        raise ContentError(f"{path}: no [[sample]]: a definition must show what it reads")
    return definition


def load_definitions(extra: Sequence[Path] = ()) -> dict[str, Definition]:
    """Load every definition, the user's folders last, by name."""
    found = content.files("ingest", ".toml", extra)
    return {name: load_definition(path) for name, path in found.items()}
