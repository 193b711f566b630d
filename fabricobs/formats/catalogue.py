"""All formats, compiled once: recognition of a file, and the settings its rows depend on."""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fabricobs.content import ContentError
from fabricobs.formats.definition import Definition, load_definitions
from fabricobs.formats.keyvalue import KeyValueFormat
from fabricobs.formats.lines import LineFormat
from fabricobs.formats.paragraphs import ParagraphFormat
from fabricobs.formats.records import RecordFormat, split_header
from fabricobs.formats.ruled import TableFormat
from fabricobs.formats.templates import Template, TemplateError, compile_regex, compile_template
from fabricobs.formats.values import VALUE_TYPES
from fabricobs.formats.walk import WalkFormat

Compiled = LineFormat | TableFormat | KeyValueFormat | ParagraphFormat | WalkFormat | RecordFormat

# Raise it when the engine reads the same definition differently than before.
ENGINE_VERSION = 1
_PARQUET_MAGIC = b"PAR1"


@dataclass(frozen=True, slots=True)
class Recognised:
    """What a file showed: the syntax it is in and its formats; none means unrecognised."""

    syntax: str  # text, csv, jsonl or parquet
    formats: tuple["Format", ...]
    reason: str = ""  # why nothing was recognised


@dataclass(frozen=True, slots=True)
class Format:
    """One definition and its compiled form."""

    definition: Definition
    compiled: Compiled
    paths: tuple[Template, ...]

    @property
    def name(self) -> str:
        """Return the definition's name."""
        return self.definition.name

    def fields_of_path(self, path: str) -> dict[str, Any] | None:
        """Return what the path templates capture; None if the format has some and none fits."""
        for template in self.paths:
            found = template.pattern.search(path)
            if found is not None:
                return {
                    name: VALUE_TYPES[type_name].parse(text)
                    for (name, type_name), text in zip(template.fields, found.groups(), strict=True)
                }
        return None if self.paths else {}


class Catalogue:
    """The formats fabricobs knows."""

    def __init__(self, definitions: dict[str, Definition]) -> None:
        self.formats = {name: compile_format(d) for name, d in definitions.items()}
        self._detect_text = _detectors(definitions, "text")
        self._detect_path = _detectors(definitions, "path")

    def companions(self) -> tuple[Format, ...]:
        """Return the formats read along with every file of counters."""
        return tuple(f for f in self.formats.values() if f.definition.companion)

    def settings(self, formats: Sequence[Format], options: dict[str, str | None]) -> str:
        """Digest what, besides the bytes, decides the rows of a file."""
        deciding = {
            "engine": ENGINE_VERSION,
            "formats": sorted((f.name, f.definition.version) for f in formats),
            **options,
        }
        text = json.dumps(deciding, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    def recognise(self, ends: bytes, path: str) -> Recognised:
        """Say what a file is, from its first and last bytes and its path."""
        if not ends:
            return Recognised("text", (), "empty")
        if ends.startswith(_PARQUET_MAGIC):
            return self._recognise_parquet(path)
        if ends.count(b"\x00", 0, 4096) > min(len(ends), 4096) // 2:
            return Recognised("text", (), "binary: mostly NUL bytes")
        text = ends.decode("utf-8", "replace").replace("\r", "\n")
        showing = tuple(f for f in self.formats.values() if self._shows(f, text, path))
        for syntax in ("jsonl", "csv"):
            formats = self._records(showing, syntax, text)
            if formats:
                return Recognised(syntax, formats[:1])
        formats = tuple(f for f in showing if not isinstance(f.compiled, RecordFormat))
        if any(_has_companions(f.compiled) for f in formats):
            formats = (*formats, *(c for c in self.companions() if c not in formats))
        reason = "" if formats else "shows no format that fabricobs knows"
        return Recognised("text", formats, reason)

    def _shows(self, format_: Format, text: str, path: str) -> bool:
        detect = format_.definition.detect
        if format_.definition.companion:
            return False
        if detect.path is not None and not self._detect_path[format_.name].search(path):
            return False
        if detect.text is not None:
            return self._detect_text[format_.name].search(text) is not None
        return bool(detect.columns) or detect.path is not None

    def _records(self, showing: Sequence[Format], syntax: str, text: str) -> tuple[Format, ...]:
        """Return the record formats whose columns the first line fills, best fit first."""
        keys = _keys_of_first_line(text, syntax)
        fitting: list[tuple[int, Format]] = []
        for format_ in showing:
            compiled = format_.compiled
            if not isinstance(compiled, RecordFormat) or syntax not in format_.definition.reader:
                continue
            by_text = format_.definition.detect.text is not None and not compiled.required
            if keys is not None and (by_text or compiled.fits(keys)):
                fitting.append((len(compiled.sources_of(keys)), format_))
        return tuple(f for _, f in sorted(fitting, key=lambda entry: -entry[0]))

    def _recognise_parquet(self, path: str) -> Recognised:
        import pyarrow as pa
        import pyarrow.parquet as pa_parquet

        try:
            keys = pa_parquet.read_schema(path).names
        except (pa.ArrowInvalid, OSError) as error:
            return Recognised("parquet", (), f"broken Parquet: {error}")
        fitting = [
            (len(f.compiled.sources_of(keys)), f)
            for f in self.formats.values()
            if isinstance(f.compiled, RecordFormat)
            and "parquet" in f.definition.reader
            and f.compiled.fits(keys)
        ]
        best = sorted(fitting, key=lambda entry: -entry[0])[:1]
        reason = "" if best else f"Parquet without a known set of columns: {', '.join(keys[:12])}"
        return Recognised("parquet", tuple(f for _, f in best), reason)


def _has_companions(compiled: Compiled) -> bool:
    """Say whether dates and prompts may stand between what the format reads."""
    if isinstance(compiled, KeyValueFormat):
        return not compiled.one_value
    return isinstance(compiled, TableFormat | ParagraphFormat | WalkFormat)


def _detectors(
    definitions: dict[str, Definition], key: Literal["text", "path"]
) -> dict[str, re.Pattern[str]]:
    found: dict[str, re.Pattern[str]] = {}
    for name, definition in definitions.items():
        expression = definition.detect.text if key == "text" else definition.detect.path
        if expression is not None:
            try:
                found[name] = compile_regex(expression)
            except TemplateError as error:
                raise ContentError(f"ingest/{name}.toml: detect.{key}: {error}") from error
    return found


def load_catalogue(extra: Sequence[Path] = ()) -> Catalogue:
    """Load and compile every definition; ContentError if one cannot be used."""
    return Catalogue(load_definitions(extra))


def compile_format(definition: Definition) -> Format:
    """Compile one definition; ContentError names what is wrong in it."""
    try:
        compiled = _compile(definition)
        paths = tuple(_compile_path(source) for source in definition.path)
    except TemplateError as error:
        raise ContentError(f"ingest/{definition.name}.toml: {error}") from error
    return Format(definition, compiled, paths)


def _compile(definition: Definition) -> Compiled:
    reader = definition.reader[0]
    if reader == "lines":
        return LineFormat(definition)
    if not definition.block:
        raise TemplateError(f"reader {reader!r} needs a [[block]]")
    if reader == "table":
        return TableFormat(definition)
    if reader in {"keyvalue", "value"}:
        return KeyValueFormat(definition)
    if reader == "paragraphs":
        return ParagraphFormat(definition)
    if reader == "walk":
        return WalkFormat(definition)
    return RecordFormat(definition)


def _compile_path(source: str) -> Template:
    template = compile_template(source, whole=False, default_type="name")
    pattern = compile_regex(f"(?:^|/){template.pattern.pattern}$")
    return Template(source, pattern, template.fields, None, "")


def _keys_of_first_line(text: str, syntax: str) -> list[str] | None:
    line = next((line for line in text.split("\n") if line.strip()), "").strip().lstrip("\ufeff")
    if syntax == "csv":
        return split_header(line)[0]
    if not line.startswith("{"):
        return None
    for candidate in text.split("\n")[:50]:
        try:
            record = json.loads(candidate)
        except ValueError:
            continue
        return _paths_of(record) if isinstance(record, dict) else None
    return []


def _paths_of(record: dict[str, Any], prefix: str = "") -> list[str]:
    paths: list[str] = []
    for key, value in record.items():
        if isinstance(value, dict):
            paths.extend(_paths_of(value, f"{prefix}{key}."))
        else:
            paths.append(f"{prefix}{key}")
    return paths
