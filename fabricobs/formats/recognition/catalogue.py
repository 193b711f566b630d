"""All formats, compiled once: recognition of a file, and the settings its rows depend on."""

import hashlib
import json
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from fabricobs.content import ContentError
from fabricobs.formats import ENGINE_VERSION
from fabricobs.formats.archive import is_archive
from fabricobs.formats.combined import combination_of
from fabricobs.formats.definition import Definition, load_definitions
from fabricobs.formats.documents.prometheus import PrometheusFormat
from fabricobs.formats.documents.series import is_table_of, shows_series
from fabricobs.formats.logs.headings import has_blocks
from fabricobs.formats.logs.prefixes import labels_of, without_prefixes, words_before
from fabricobs.formats.logs.wrapping import text_inside, wrapping_of
from fabricobs.formats.readers import READERS
from fabricobs.formats.recognition.detection import Detector, Detectors
from fabricobs.formats.recognition.first_lines import (
    begins_a_document,
    keys_of_first_line,
    keys_of_record,
    paths_of,
)
from fabricobs.formats.recognition.format import (
    ARCHIVE,
    COMBINED,
    CONTAINERS,
    RECORD_READERS,
    SNAPSHOT_READERS,
    Format,
    Recognised,
    format_of,
)
from fabricobs.formats.records.sink import RecordFormat
from fabricobs.formats.records.within import is_log, records_shown
from fabricobs.formats.source import without_colours
from fabricobs.formats.templates import TemplateError

_OWN_SYNTAX = RECORD_READERS | {"json", "yaml"}
_LINED = frozenset({"lines", *SNAPSHOT_READERS})
_PARQUET_MAGIC = b"PAR1"
_LFS_POINTER = b"version https://git-lfs"
_MAGIC_BYTES = 256


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
        self.formats = {name: format_of(d) for name, d in definitions.items()}
        # Read along with every file of counters.
        self.separators = tuple(f for f in self.formats.values() if f.definition.separator)
        self._in_logs = tuple(f for f in self.formats.values() if f.stands_in_logs)
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
            in_a_log = syntax == "jsonl" and formats and formats[0].stands_in_logs and is_log(text)
            if formats and not in_a_log:
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
        records = self._records_within(look.text)
        formats = (*_specific(self._shown(look, _LINED)), *records)
        if not records and not any(f.reader == "lines" and not f.takes_place for f in formats):
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
        shown = self._shown(self._look(f"{text}\n{bare}", "", ""), _LINED)
        return len(shown) + len(self._records_within(f"{text}\n{bare}"))

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

    def _records_within(self, text: str) -> tuple[Format, ...]:
        """Return the format of the first record that stands in a log; none if none does."""
        for record in records_shown(text):
            keys = paths_of(record)
            fitting: list[tuple[int, Format]] = []
            for format_ in self._in_logs:
                compiled = format_.compiled
                assert isinstance(compiled, RecordFormat)
                if compiled.fits(keys):
                    fitting.append((len(compiled.sources_of(keys)), format_))
            if fitting:
                return (max(fitting, key=lambda entry: entry[0])[1],)
        return ()

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
