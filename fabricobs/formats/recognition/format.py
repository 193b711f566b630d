"""One format in its compiled form, and what a file showed: its syntax and its formats."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from fabricobs.content import ContentError
from fabricobs.formats.combined import Combination
from fabricobs.formats.context import HOST_TABLES
from fabricobs.formats.definition import Definition
from fabricobs.formats.documents.json_documents import JsonFormat
from fabricobs.formats.documents.prometheus import PrometheusFormat
from fabricobs.formats.documents.yaml_documents import YamlFormat
from fabricobs.formats.identity import Identity
from fabricobs.formats.logs.lines import LineFormat
from fabricobs.formats.logs.wrapping import NOT_WRAPPED, Wrapping
from fabricobs.formats.outputs.keyvalue import KeyValueFormat
from fabricobs.formats.outputs.matrix import MatrixFormat
from fabricobs.formats.outputs.paragraphs import ParagraphFormat
from fabricobs.formats.outputs.ruled import TableFormat
from fabricobs.formats.outputs.sections import SectionsFormat
from fabricobs.formats.outputs.walk import WalkFormat
from fabricobs.formats.readers import READERS
from fabricobs.formats.records.sink import RecordFormat
from fabricobs.formats.templates import Template, TemplateError, compile_template
from fabricobs.formats.values import Unfit
from fabricobs.formats.whole import WholeFormat

Snapshot = (
    TableFormat
    | KeyValueFormat
    | ParagraphFormat
    | WalkFormat
    | SectionsFormat
    | MatrixFormat
    | PrometheusFormat
)
Compiled = LineFormat | Snapshot | RecordFormat | JsonFormat | YamlFormat | WholeFormat

ARCHIVE = "tar"
COMBINED = "combined"  # outputs of several hosts or files in one text
# What gives files of its own, each read as one.
CONTAINERS = frozenset({ARCHIVE, COMBINED})
RECORD_READERS = frozenset({"csv", "jsonl", "parquet"})
SNAPSHOT_READERS = frozenset(
    "configuration table keyvalue paragraphs walk sections matrix prometheus".split()
)
_COMPILED: dict[str, Callable[[Definition], Compiled]] = {
    "lines": LineFormat,
    "configuration": LineFormat,
    "table": TableFormat,
    "keyvalue": KeyValueFormat,
    "paragraphs": ParagraphFormat,
    "walk": WalkFormat,
    "sections": SectionsFormat,
    "matrix": MatrixFormat,
    "prometheus": PrometheusFormat,
    "json": JsonFormat,
    "yaml": YamlFormat,
    **dict.fromkeys(RECORD_READERS, RecordFormat),
}
_DEVICE_TABLES = frozenset({"port_samples", "priority_samples", *HOST_TABLES})


@dataclass(frozen=True, slots=True)
class Recognised:
    """What a file showed: the syntax it is in and its formats; none means unrecognised."""

    syntax: str  # text, csv, jsonl, json, yaml, parquet, whole, tar or combined
    formats: tuple["Format", ...]
    reason: str = ""  # why nothing was recognised
    wrapping: Wrapping = NOT_WRAPPED  # what a container or log service put around every line
    combination: Combination | None = None  # of a combined text

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the formats; that of a container is its own."""
        return (self.syntax,) if self.syntax in CONTAINERS else tuple(f.name for f in self.formats)

    @property
    def takes_identity(self) -> bool:
        """Say whether the path tells whose rows they are.

        That of a log does not, whose lines do, if outputs of commands stand in it, too.
        """
        formats = [f for f in self.formats if not f.definition.separator]
        is_log = any(f.is_log and not f.takes_identity for f in formats)
        return not is_log and any(f.takes_identity for f in formats)

    def identity(self, told: Identity) -> Identity:
        """Return what a path tells of the rows: all of it, or what counts for a log.

        A report that prints no time takes that of its path, too, if it tells more than the day.
        """
        if self.takes_identity:
            return told
        timed = any(f.definition.identity_from_path == "time" for f in self.formats)
        if not timed or told.ts_source == "day":
            return told.of_log
        return replace(told.of_log, ts=told.ts, ts_source=told.ts_source)


class Format:
    """One definition and its compiled form, which is made when a file first needs it."""

    def __init__(self, definition: Definition) -> None:
        self.name = definition.name
        self.definition = definition
        self.reader = definition.reader[0]

    def __reduce__(self) -> tuple[Callable[[Definition], "Format"], tuple[Definition]]:
        return format_of, (self.definition,)

    @cached_property
    def compiled(self) -> Compiled:
        """Return what reads the format; ContentError names what is wrong in the definition."""
        try:
            return _compile(self.definition)
        except TemplateError as error:
            raise ContentError(f"ingest/{self.name}.toml: {error}") from error

    @cached_property
    def paths(self) -> tuple[Template, ...]:
        """Return the templates of the end of its paths."""
        try:
            return tuple(_compile_path(source) for source in self.definition.path)
        except TemplateError as error:
            raise ContentError(f"ingest/{self.name}.toml: {error}") from error

    @property
    def is_captured(self) -> bool:
        """Say whether a separator, a prompt say, ends what it reads, unlike lines of a log."""
        return self.reader in SNAPSHOT_READERS

    @property
    def takes_place(self) -> bool:
        """Say whether the path tells whose rows they are: a snapshot's, not a log's."""
        return self.is_captured or self.definition.identity_from_path in {"device", "snapshot"}

    @property
    def is_log(self) -> bool:
        """Say whether its lines tell of events at their own times; a header tells of none."""
        return self.reader == "lines" and not self.takes_place and bool(self.definition.tables)

    @property
    def takes_identity(self) -> bool:
        """Say whether its rows are a device's that the path may name: samples, or a snapshot."""
        return self.takes_place or bool(_DEVICE_TABLES & self.definition.tables)

    @property
    def is_one_value(self) -> bool:
        """Say whether a file is one value, which its path names."""
        return any(name == "key" for template in self.paths for name, _ in template.fields)

    @property
    def has_companions(self) -> bool:
        """Say whether dates and prompts may stand between what the format reads."""
        return self.takes_place and not self.is_one_value

    @property
    def stands_in_logs(self) -> bool:
        """Say whether a line of a log that is a record of it alone is told from any other."""
        blocks = self.definition.block
        demands = len(self.definition.detect.columns) > 1 and not self.definition.detect.text
        is_plain = len(blocks) == 1 and blocks[0].where is None
        return "jsonl" in self.definition.reader and demands and is_plain

    def fields_of_path(self, path: str) -> dict[str, Any] | None:
        """Return what the path templates capture; None if the format has some and none fits."""
        for template in self.paths:
            found = template.pattern.search(path)
            if found is not None:
                told = template.read(found)
                return {k: None if isinstance(v, Unfit) else v for k, v in told.items()}
        return None if self.paths else {}


_FORMATS: dict[tuple[str, str], Format] = {}


def format_of(definition: Definition) -> Format:
    """Return the one format of a definition in this process, which is compiled only once."""
    key = (definition.name, definition.version)
    kept = _FORMATS.get(key)
    # A version leaves out what decides no rows: the samples, say.
    if kept is None or kept.definition != definition:
        kept = _FORMATS[key] = Format(definition)
    return kept


def _compile(definition: Definition) -> Compiled:
    reader = definition.reader[0]
    if reader in READERS:
        return WholeFormat(definition)
    if _COMPILED[reader] is not LineFormat and not definition.block:
        raise TemplateError(f"reader {reader!r} needs a [[block]]")
    return _COMPILED[reader](definition)


def _compile_path(source: str) -> Template:
    template = compile_template(source, whole=False, default_type="name")
    return Template(source, f"(?:^|/){template.expression}$", template.fields, None, "")
