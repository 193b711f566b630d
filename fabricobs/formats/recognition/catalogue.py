"""All formats, compiled once: recognition of a file, and the settings its rows depend on."""

import hashlib
import json
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal

from fabricobs.content import ContentError
from fabricobs.formats import ENGINE_VERSION
from fabricobs.formats.archive import is_archive
from fabricobs.formats.combined import Combination, combination_of
from fabricobs.formats.context import HOST_TABLES
from fabricobs.formats.definition import Definition, load_definitions
from fabricobs.formats.documents.json_documents import JsonFormat
from fabricobs.formats.documents.prometheus import PrometheusFormat
from fabricobs.formats.documents.series import is_table_of, shows_series
from fabricobs.formats.documents.yaml_documents import YamlFormat
from fabricobs.formats.logs.headings import has_blocks
from fabricobs.formats.logs.lines import LineFormat
from fabricobs.formats.logs.prefixes import labels_of, without_prefixes, words_before
from fabricobs.formats.logs.wrapping import NOT_WRAPPED, Wrapping, text_inside, wrapping_of
from fabricobs.formats.outputs.keyvalue import KeyValueFormat
from fabricobs.formats.outputs.matrix import MatrixFormat
from fabricobs.formats.outputs.paragraphs import ParagraphFormat
from fabricobs.formats.outputs.ruled import TableFormat
from fabricobs.formats.outputs.sections import SectionsFormat
from fabricobs.formats.outputs.walk import WalkFormat
from fabricobs.formats.readers import READERS
from fabricobs.formats.recognition.detection import Detector, Detectors
from fabricobs.formats.recognition.first_lines import (
    begins_a_document,
    keys_of_first_line,
    keys_of_record,
)
from fabricobs.formats.records.sink import RecordFormat
from fabricobs.formats.source import without_colours
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
_OWN_SYNTAX = RECORD_READERS | {"json", "yaml"}
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
_LINED = frozenset({"lines", *SNAPSHOT_READERS})
_DEVICE_TABLES = frozenset({"port_samples", "priority_samples", *HOST_TABLES})
_PARQUET_MAGIC = b"PAR1"
_LFS_POINTER = b"version https://git-lfs"
_MAGIC_BYTES = 256


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


class Format:
    """One definition and its compiled form, which is made when a file first needs it."""

    def __init__(self, definition: Definition) -> None:
        self.name = definition.name
        self.definition = definition
        self.reader = definition.reader[0]

    def __reduce__(self) -> tuple[Callable[[Definition], "Format"], tuple[Definition]]:
        return _format_of, (self.definition,)

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
        return self.is_captured or self.definition.identity_from_path is not None

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

    def fields_of_path(self, path: str) -> dict[str, Any] | None:
        """Return what the path templates capture; None if the format has some and none fits."""
        for template in self.paths:
            found = template.pattern.search(path)
            if found is not None:
                told = template.read(found)
                return {k: None if isinstance(v, Unfit) else v for k, v in told.items()}
        return None if self.paths else {}


_FORMATS: dict[tuple[str, str], Format] = {}


def _format_of(definition: Definition) -> Format:
    """Return the one format of a definition in this process, which is compiled only once."""
    key = (definition.name, definition.version)
    kept = _FORMATS.get(key)
    # A version leaves out what decides no rows: the samples, say.
    if kept is None or kept.definition != definition:
        kept = _FORMATS[key] = Format(definition)
    return kept


@dataclass(frozen=True, slots=True)
class _Look:
    """What tells a file's formats: text of its ends, path, first bytes; and which may be there."""

    text: str
    path: str
    magic: str
    candidates: tuple[Format, ...]


class Catalogue:
    """The formats fabricobs knows."""

    def __init__(self, definitions: dict[str, Definition]) -> None:
        self.formats = {name: _format_of(d) for name, d in definitions.items()}
        # Read along with every file of counters.
        self.separators = tuple(f for f in self.formats.values() if f.definition.separator)
        self._detect_text = _text_detectors(
            tuple((name, d.detect.text) for name, d in definitions.items() if d.detect.text)
        )
        self._detect_path = _detectors(definitions, "path")
        self._detect_magic = _detectors(definitions, "magic")
        self._settings: dict[tuple[Any, ...], str] = {}
        self._records_beside: dict[tuple[str, tuple[str, ...]], Recognised] = {}
        self._order = {name: place for place, name in enumerate(self.formats)}
        self._by_other_signs = frozenset(
            name for name, d in definitions.items() if not d.detect.text and not d.separator
        )

    def syntax_of(self, format_: Format) -> str:
        """Return the syntax a file of the format is read in, where its content does not decide."""
        if format_.reader in READERS:
            return "whole"
        return format_.reader if format_.reader in _OWN_SYNTAX else "text"

    def named(self, names: Sequence[str]) -> tuple[Format, ...] | None:
        """Return the formats of these names, all for a container; None if one is not known."""
        if len(names) == 1 and names[0] in CONTAINERS:
            return tuple(self.formats.values())
        known = tuple(self.formats[name] for name in names if name in self.formats)
        return known if len(known) == len(names) else None

    def settings(self, formats: Sequence[Format], options: dict[str, str | None]) -> str:
        """Digest what, besides the bytes, decides the rows of a file."""
        key = (*sorted(f.name for f in formats), *options.items())
        if key not in self._settings:
            deciding = {
                "engine": ENGINE_VERSION,
                "formats": sorted((f.name, f.definition.version) for f in formats),
                **options,
            }
            text = json.dumps(deciding, sort_keys=True)
            self._settings[key] = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
        return self._settings[key]

    def recognise(self, ends: bytes, path: str) -> Recognised:
        """Say what a file is, from its first and last bytes and its path.

        Files side by side that begin with records of the same keys hold the same: one is looked
        at for all.
        """
        keys = keys_of_record(ends)
        beside = (path.rpartition("/")[0], keys)
        if keys and beside in self._records_beside:
            return self._records_beside[beside]
        recognised = self._recognise(ends, path)
        if keys and recognised.syntax == "jsonl":
            self._records_beside[beside] = recognised
        return recognised

    def _recognise(self, ends: bytes, path: str) -> Recognised:
        if not ends:
            return Recognised("text", (), "empty")
        if is_archive(ends, path):
            return Recognised(ARCHIVE, ())
        if is_parquet(ends):
            return self._recognise_parquet(path)
        if ends.startswith(_LFS_POINTER):
            return Recognised("text", (), "a Git LFS pointer: the file itself was not fetched")
        text = without_colours(_text_of(ends))
        look = self._look(text, path, ends[:_MAGIC_BYTES].decode("latin-1"))
        whole = self._shown(look, READERS)
        if whole:
            return Recognised("whole", whole[:1])
        # Zeros after the last line are the unwritten blocks of a machine that went down.
        filled = ends[:4096].rstrip(b"\x00")
        if not filled or 2 * filled.count(b"\x00") > len(filled):
            return Recognised("text", (), "binary: mostly NUL bytes")
        exported = self._exported(text, look)
        if begins_a_document(text):
            documents = self._together(self._shown(look, {"json"})) or exported
            if documents:
                return Recognised("json", documents)
        if exported:
            return Recognised("json", exported)
        for syntax in ("jsonl", "csv"):
            formats = self._records(look, syntax)
            if formats:
                return Recognised(syntax, formats[:1])
        written = self._shown(look, {"yaml"})
        if written:
            return Recognised("yaml", written[:1])
        return self._recognise_lines(look)

    def _exported(self, text: str, look: _Look) -> tuple[Format, ...]:
        """Return the formats of metrics whose series a file holds that a tool exported."""
        shown = self._shown(look, {"prometheus"})
        metrics = [f.compiled for f in shown if isinstance(f.compiled, PrometheusFormat)]
        if not metrics:
            return ()

        def keeps(name: str) -> bool:
            return any(each.keeps(name) for each in metrics)

        return shown if shows_series(text) or is_table_of(text, keeps) else ()

    def _recognise_lines(self, look: _Look) -> Recognised:
        """Say what logs and outputs of commands a text holds, below what was put around them."""
        written = look.text
        wrapping = wrapping_of(written, self._formats_in)
        # Records write colours as escapes, which are none until they are read.
        inside = text_inside(look.text, wrapping) if wrapping.by_record else look.text
        text = without_colours(inside)
        labels = labels_of(text)
        bare = without_prefixes(text, labels, always=wrapping.by_record)
        if wrapping.by_record or bare:
            look = self._look(f"{text}\n{bare}", look.path, look.magic)
        formats = _specific(self._shown(look, _LINED))
        if not any(f.reader == "lines" and not f.takes_place for f in formats):
            whole = written if wrapping.by_record else text
            before = labels or words_before(whole)
            combination = combination_of(whole, before, self._holds_outputs)
            if combination is not None:
                return Recognised(COMBINED, (), combination=combination)
        # A date that a script prints into a log is not that of the lines below it.
        is_log = any(f.is_log for f in formats)
        if not is_log and any(f.has_companions for f in formats):
            formats = (*formats, *(c for c in self.separators if c not in formats))
        reason = "" if formats else "shows no format that fabricobs knows"
        return Recognised(
            "text", formats, reason, replace(wrapping, labels=labels, blocks=has_blocks(text))
        )

    def _formats_in(self, text: str) -> int:
        """Return how many formats of logs and outputs a text shows, prefixes taken off."""
        text = without_colours(text)
        bare = without_prefixes(text, (), always=True)
        return len(self._shown(self._look(f"{text}\n{bare}", "", ""), _LINED))

    def _holds_outputs(self, text: str) -> bool:
        """Say whether a text shows outputs of commands and no log."""
        shown = self._shown(self._look(text, "", ""), _LINED)
        return bool(shown) and all(f.has_companions for f in shown)

    def _together(self, trees: tuple[Format, ...]) -> tuple[Format, ...]:
        """Return which formats of documents read a file: outputs of several commands, with what
        stands between them, or one log."""
        if trees and all(f.has_companions for f in trees):
            return (*trees, *self.separators)
        return trees[:1]

    def _look(self, text: str, path: str, magic: str) -> _Look:
        names = self._by_other_signs | self._detect_text.candidates(text)
        ordered = sorted(names, key=self._order.__getitem__)
        return _Look(text, path, magic, tuple(self.formats[name] for name in ordered))

    def _shown(self, look: _Look, readers: Container[str]) -> tuple[Format, ...]:
        """Return the formats of these readers that a file shows, in the definitions' order."""
        return tuple(f for f in look.candidates if f.reader in readers and self._shows(f, look))

    def _shows(self, format_: Format, look: _Look) -> bool:
        name, detect = format_.name, format_.definition.detect
        if format_.definition.separator:
            return False
        if detect.magic is not None and not self._detect_magic[name].pattern.match(look.magic):
            return False
        if detect.path is not None and not self._detect_path[name].found_in(look.path):
            return False
        if detect.text:
            return self._detect_text.found_in(name, look.text)
        return bool(detect.columns) or detect.path is not None or detect.magic is not None

    def _records(self, look: _Look, syntax: str) -> tuple[Format, ...]:
        """Return the record formats whose columns the first line fills, best fit first."""
        able = [f for f in look.candidates if syntax in f.definition.reader]
        keys = keys_of_first_line(look.text, syntax) if able else None
        if keys is None:
            return ()
        fitting: list[tuple[int, Format]] = []
        for format_ in able:
            compiled = format_.compiled
            assert isinstance(compiled, RecordFormat)
            by_text = bool(format_.definition.detect.text) and not compiled.required
            # The columns tell in less time than the expression.
            if (by_text or compiled.fits(keys)) and self._shows(format_, look):
                fitting.append((len(compiled.sources_of(keys)), format_))
        return tuple(f for _, f in sorted(fitting, key=lambda entry: -entry[0]))

    def _recognise_parquet(self, path: str) -> Recognised:
        from fabricobs.formats.records.parquet_records import open_parquet

        keys = open_parquet(Path(path)).schema_arrow.names
        fitting = [
            (len(f.compiled.sources_of(keys)), f)
            for f in self.formats.values()
            if "parquet" in f.definition.reader
            and isinstance(f.compiled, RecordFormat)
            and f.compiled.fits(keys)
            and self._shows(f, _Look(",".join(keys), path, "", ()))
        ]
        best = sorted(fitting, key=lambda entry: -entry[0])[:1]
        reason = "" if best else f"Parquet without a known set of columns: {', '.join(keys[:12])}"
        return Recognised("parquet", tuple(f for _, f in best), reason)


def _text_of(ends: bytes) -> str:
    """Return a file's ends as text; a carriage return ends a line, alone or before a newline."""
    return ends.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")


def is_parquet(head: bytes) -> bool:
    """Say whether the first bytes are those of Parquet."""
    return head.startswith(_PARQUET_MAGIC)


def _specific(showing: Sequence[Format]) -> tuple[Format, ...]:
    """Drop formats that give way to another one shown; those of them that stay come last."""
    firm = tuple(f for f in showing if not f.definition.detect.fallback_for)
    filled = frozenset[str]().union(*(f.definition.tables for f in firm))
    yielding = (f for f in showing if f.definition.detect.fallback_for)
    return (*firm, *(f for f in yielding if not filled & set(f.definition.detect.fallback_for)))


def _detectors(
    definitions: dict[str, Definition], key: Literal["path", "magic"]
) -> dict[str, Detector]:
    return {
        name: _detector(name, key, expression)
        for name, definition in definitions.items()
        if (expression := getattr(definition.detect, key)) is not None
    }


# An ingest asks for them with each archive and each text of several hosts, nearly always the same.
@lru_cache(maxsize=4)
def _text_detectors(texts: tuple[tuple[str, tuple[str, ...]], ...]) -> Detectors:
    """Return the detectors of each name's expressions."""
    return Detectors(
        {name: tuple(_detector(name, "text", each) for each in some) for name, some in texts}
    )


@lru_cache(maxsize=1024)
def _detector(name: str, key: str, expression: str) -> Detector:
    try:
        return Detector(expression)
    except TemplateError as error:
        raise ContentError(f"ingest/{name}.toml: detect.{key}: {error}") from error


def load_catalogue(extra: Sequence[Path] = ()) -> Catalogue:
    """Load every definition; ContentError if one is not valid."""
    return Catalogue(load_definitions(extra))


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
