"""Trying formats on files: what they make of them, and where lines leave their templates."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fabricobs.exceptions import UserError
from fabricobs.formats.archive import is_archive, members
from fabricobs.formats.context import Context
from fabricobs.formats.decompression import SourceError
from fabricobs.formats.identity.naming import identity_of
from fabricobs.formats.near_misses import NearMiss, near_misses
from fabricobs.formats.reading import count_lines, read_file
from fabricobs.formats.recognition.catalogue import Catalogue
from fabricobs.formats.recognition.format import Format, Recognised
from fabricobs.formats.rows import Rows, Tally
from fabricobs.formats.shapes import sampled, shape_of
from fabricobs.formats.source import read_ends

Row = dict[str, Any]
_EXAMPLES = 3
_HEAD_LINES = 8
_MOST_SHAPES = 20


@dataclass(frozen=True, slots=True)
class UnreadShape:
    """Lines of one shape that no format reads: how many, the first of them, and the first few."""

    count: int
    path: Path
    line: int
    reason: str
    text: str
    misses: tuple[NearMiss, ...]
    examples: tuple[str, ...]


@dataclass(slots=True)
class Trial:
    """What the formats of one kind of file made of its files.

    `rows` are those of the first file, without their null columns; `row_count` and `tally` are of
    all files, but the samples of unread lines in `tally` are of the first one.
    """

    formats: tuple[str, ...]
    paths: list[Path] = field(default_factory=list)
    rows: dict[str, list[Row]] = field(default_factory=dict)
    row_count: int = 0
    tally: Tally = field(default_factory=Tally)
    problems: list[str] = field(default_factory=list)
    unread: list[UnreadShape] = field(default_factory=list)
    first_lines: list[str] = field(default_factory=list)  # of its first file, if it shows no format


def try_formats(
    path: Path, catalogue: Catalogue, name: str | None = None, most_shapes: int = 20
) -> list[Trial]:
    """Read a file, or those of a folder or archive, with the formats they show; one trial a kind.

    With `name` a file is read with that format alone, whatever it shows, and of a folder only the
    files that show it. UserError if there is no such format, or nothing to read.
    """
    wanted = None if name is None else _format(name, catalogue)
    trials: dict[tuple[str, ...], Trial] = {}
    shapes: dict[tuple[tuple[str, ...], str], list[tuple[Path, int, str, str]]] = {}
    for each, place in _sources(path):
        recognised = catalogue.recognise(_ends(place), str(each.absolute()))
        of_several = path.is_dir() or place != each
        if wanted is not None and of_several and wanted not in recognised.formats:
            continue
        if wanted is not None:
            recognised = _as(wanted, recognised, catalogue)
        names = tuple(format_.name for format_ in recognised.formats)
        trial = trials.setdefault(names, Trial(names))
        for number, reason, text in _try(each, place, recognised, trial):
            shapes.setdefault((names, shape_of(text)), []).append((each, number, reason, text))
    if not trials:
        shown = f" shows {name}" if name else ""
        raise UserError(f"{path}: no file{shown}")
    commonest = sorted(shapes.items(), key=lambda item: -len(item[1]))[:most_shapes]
    for (names, _), lines in commonest:
        trials[names].unread.append(_unread(lines, names, catalogue))
    return [trials[names] for names in sorted(trials)]


def _sources(path: Path) -> Iterator[tuple[Path, Path]]:
    """Yield each file as it is called and where it lies, which for a member is for a moment."""
    for each in _files(path):
        if not is_archive(_ends(each), each.name.lower()):
            yield each, each
            continue
        try:
            with TemporaryDirectory() as folder:
                for member in members(each, Path(folder)):
                    if member.problem is None:
                        yield each / member.name.lstrip("/"), member.path
        except SourceError as error:
            raise UserError(f"{each}: {error}") from error


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(below for below in path.rglob("*") if below.is_file())
    if not path.is_file():
        raise UserError(f"{path}: no such file or folder")
    return [path]


def _format(name: str, catalogue: Catalogue) -> Format:
    format_ = catalogue.formats.get(name)
    if format_ is None:
        raise UserError(f"no format {name!r}; `fabricobs formats` lists them")
    return format_


def _as(format_: Format, recognised: Recognised, catalogue: Catalogue) -> Recognised:
    """Return a file as if it showed one format alone."""
    syntax = recognised.syntax if format_ in recognised.formats else catalogue.syntax_of(format_)
    separators = catalogue.separators if format_.has_companions else ()
    return Recognised(syntax, (format_, *separators), wrapping=recognised.wrapping)


def _try(
    path: Path, place: Path, recognised: Recognised, trial: Trial
) -> Iterator[tuple[int, str, str]]:
    """Add a file to a trial, and yield the first lines that were not read, each with a reason."""
    trial.paths.append(path)
    rows = Rows()
    if recognised.formats:
        result = read_file(place, recognised, _context(path, recognised), rows, lambda: None)
        result = result.with_note(rows.unfit.of_file("trial"))
    else:
        result = count_lines(place)
        if len(trial.paths) == 1:
            trial.first_lines = _first_lines(place)
        trial.problems.append(f"{path}: {recognised.reason or 'shows no known format'}")
    if result.problem:
        trial.problems.append(f"{path}: {result.problem}")
    for table, part in rows.drain():
        trial.row_count += part.num_rows
        if len(trial.paths) == 1:
            trial.rows.setdefault(table, []).extend(
                {k: v for k, v in row.items() if v is not None and k != "file_id"}
                for row in part.to_pylist()
            )
    _add(trial.tally, result.tally)
    yield from (*result.tally.samples, *result.tally.unclaimed_samples)


def _context(path: Path, recognised: Recognised) -> Context:
    told = identity_of(f"{path.absolute().parent.name}/{path.name}", UTC)
    context = Context("trial", identity=recognised.identity(told), file_name=str(path))
    for format_ in recognised.formats:
        context.from_path.update(format_.fields_of_path(str(path.resolve())) or {})
    return context


def _add(tally: Tally, more: Tally) -> None:
    tally.lines += more.lines
    tally.parsed += more.parsed
    tally.ignored += more.ignored
    tally.unparsed += more.unparsed
    tally.unclaimed += more.unclaimed
    tally.not_kept.update(more.not_kept)


def _unread(
    lines: Sequence[tuple[Path, int, str, str]], names: Sequence[str], catalogue: Catalogue
) -> UnreadShape:
    path, number, reason, text = lines[0]
    misses = [
        miss for name in names for miss in near_misses(catalogue.formats[name].definition, text)
    ]
    best = sorted(misses, key=lambda miss: -miss.known)[:3]
    examples = tuple(dict.fromkeys(text for *_, text in lines))[:_EXAMPLES]
    return UnreadShape(len(lines), path, number, reason, text, tuple(best), examples)


def lines_to_describe(path: Path, catalogue: Catalogue) -> list[str]:
    """Return lines for a new definition: of a file that shows no format its first ones, else the
    first of each shape that no format reads; of a folder those of the kind with most of them.

    UserError if there is nothing to describe.
    """
    trial = max(try_formats(path, catalogue), key=lambda trial: trial.tally.unparsed)
    if not trial.formats:
        lines = trial.first_lines
    else:
        lines = [text for shape in trial.unread for text in shape.examples]
    if not lines:
        said = f"every line is read by {', '.join(trial.formats)}" if trial.formats else "empty"
        raise UserError(f"{path}: {said}: a definition needs a sample")
    return lines


def _first_lines(path: Path) -> list[str]:
    """Return the head of a file, and of its other lines the first of each shape."""
    text = _ends(path).decode("utf-8", "replace").replace("\r", "")
    lines = [sampled(line) for line in text.split("\n") if line.strip()]
    shapes = {shape_of(line): line for line in reversed(lines)}
    chosen = {*lines[:_HEAD_LINES], *list(reversed(shapes.values()))[:_MOST_SHAPES]}
    return [line for line in dict.fromkeys(lines) if line in chosen]


def _ends(path: Path) -> bytes:
    try:
        return read_ends(path)
    except (SourceError, OSError) as error:
        raise UserError(f"{path}: {error}") from error
