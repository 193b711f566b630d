"""Lines of input files that hold a counter's values, read from the files while they are there.

The store knows where a record begins: a dump of a port may be of hundreds of lines, a document of
thousands. Two readings of a counter stand as far behind the begin of theirs and read alike but for
their numbers, so that a pair of values tells the line.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import polars as pl

from fabricobs.formats.decompression import BROKEN, SourceError, open_text

_MOST_BYTES = 64 << 20  # up to the end of a record
_MOST_LINES = 20_000  # of a record
_LINES_OF_PART = 60  # of a document about one part
_LONGEST = 160  # characters of a line that are shown
_TABLES = (".parquet", ".parq", ".pq")
_NUMBER = re.compile(r"\d[\d,]*")
_WORD = re.compile(r"[a-z]+")
_BYTES_OF_WORD = 4  # InfiniBand counts data in these (IBTA 16.1.3.5)


@dataclass(frozen=True, slots=True)
class InputLine:
    """A line of a file: its number, from 1, and its text, cut where it is long."""

    number: int
    text: str


def lines_of_values(
    counter: str, before: tuple[str, int, int], later: tuple[str, int, int]
) -> tuple[InputLine, InputLine] | None:
    """Return the lines that hold two values of a counter, each of a file, first line and value.

    None where the files are not there or two lines fit as well.
    """
    records = [list(_lines(path, first)) for path, first, _ in (before, later)]
    values = before[2], later[2]
    for scale in (1, _BYTES_OF_WORD):
        if any(value % scale for value in values):
            break
        wanted = str(values[0] // scale), str(values[1] // scale)
        fits = {
            place: number
            for place, (old, new) in enumerate(zip(*records, strict=False))
            if _read_alike(old, new)
            and (number := _place_among_numbers(wanted, old, new)) is not None
        }
        if fits and (place := _likeliest(list(fits), records[1], counter)) is not None:
            old, new = (
                InputLine(first + place, _shown(record[place], fits[place]))
                for (_, first, _), record in zip((before, later), records, strict=True)
            )
            return old, new
    return None


def _place_among_numbers(wanted: tuple[str, str], old: str, new: str) -> int | None:
    """Return the place among the numbers of two lines where they hold the values, None without."""
    pairs = zip(_numbers(old), _numbers(new), strict=True)
    return next((place for place, pair in enumerate(pairs) if pair == wanted), None)


def line_at(path: str, number: int, around: Sequence[str] = ()) -> str:
    """Return the text of a line, empty where the file is not there.

    Where it is long it is cut around the first of the words `around` that stands in it.
    """
    told = row_of_table(path, number) if is_table(path) else next(_lines(path, number), "")
    text = " ".join(told.split())
    places = [found.start() for word in around if (found := _whole_word(word).search(text))]
    return _cut(text, places[0] if places else 0)


def is_table(path: str) -> bool:
    """Say whether a file is of Parquet: it has rows, and no lines."""
    return path.lower().endswith(_TABLES)


def row_of_table(path: str, number: int) -> str:
    """Return what a row of a Parquet file says, by column; empty where the file is not there."""
    if not Path(path).is_file():
        return ""
    try:
        rows = pl.scan_parquet(path, glob=False).slice(number - 1, 1).collect()
    except (OSError, pl.exceptions.PolarsError):
        return ""
    known = (
        f"{name} {_value(value)}"
        for row in rows.iter_rows(named=True)
        for name, value in row.items()
        if value is not None
    )
    return ", ".join(known)


def _value(value: object) -> str:
    if isinstance(value, datetime):
        moment = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
        return moment.isoformat(sep=" ", timespec="milliseconds")
    return str(value)


def line_naming(
    path: str, number: int, names: Sequence[str], values: Sequence[float]
) -> InputLine | None:
    """Return the first line from one on that names a part, with the value that follows it.

    A document has a part's name on one line and what it says of it on others. A value stands in
    the unit it is told in or in one smaller by a thousand, a million or a billion. None where no
    line names a part.
    """
    named = re.compile("|".join(_whole_word(name).pattern for name in names))
    lines = enumerate(_lines(path, number), start=number)
    found = next(((at, line) for at, line in lines if named.search(line)), None)
    if found is None:
        return None
    at, line = found
    wanted = {str(round(value * 10**zeros)) for value in values for zeros in (0, 3, 6, 9)}
    told = (each for _, each in islice(lines, _LINES_OF_PART) if wanted & {*_numbers(each)})
    texts = [_shown(line), *(_shown(each) for each in islice(told, 1))]
    return InputLine(at, " … ".join(texts))


def text_of_key(path: str, key: str, numbers: Sequence[str]) -> str:
    """Return the text of a document around the key that begins so and has one of the numbers."""
    told = re.compile(rf'"{re.escape(key)}\w*"\s*:\s*({"|".join(map(re.escape, numbers))})\b')
    text = " ".join("".join(_lines(path, 1)).split())
    found = told.search(text)
    return "" if found is None else _cut(text, found.start())


def _whole_word(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.]){re.escape(word)}(?![\w.])")


def _shown(line: str, number: int = 0) -> str:
    """Return a line as it is shown; of a long one the part around one of its numbers."""
    text = " ".join(line.split())
    starts = [found.start() for found in _NUMBER.finditer(text)]
    return _cut(text, starts[number] if number else 0)


def _cut(text: str, place: int) -> str:
    """Return a text, of a long one the part around a place."""
    if len(text) <= _LONGEST:
        return text
    begin = max(0, place - _LONGEST // 2)
    cut = text[begin : begin + _LONGEST]
    return f"{'…' if begin else ''}{cut}{'…' if begin + _LONGEST < len(text) else ''}"


def _likeliest(fits: list[int], record: list[str], counter: str) -> int | None:
    """Return the line that is called most like the counter; None where two are called the same."""
    words = set(_WORD.findall(counter))
    by_name = {place: len(words & set(_WORD.findall(record[place].lower()))) for place in fits}
    best = max(fits, key=lambda place: (by_name[place], -place))
    alike = [place for place in fits if _shape(record[place]) == _shape(record[best])]
    return best if len(alike) == 1 or best == 0 else None


def _lines(path: str, first: int) -> Iterator[str]:
    file = Path(path)
    if is_table(path) or not file.is_file():
        return
    try:
        with open_text(file) as stream:
            left = _MOST_BYTES
            for line in islice(stream, first - 1 + _MOST_LINES):
                left -= len(line)
                if left < 0:
                    return
                if first > 1:
                    first -= 1
                    continue
                yield line.decode("utf-8", "replace")
    except (*BROKEN, SourceError):
        return


def _read_alike(old: str, new: str) -> bool:
    """Say whether two lines tell the same of one part: a unit may differ, as MB/s and GB/s."""
    if _shape(old) == _shape(new):
        return True
    names = [line.split(maxsplit=1)[:1] for line in (old, new)]
    return names[0] == names[1] != [] and len(_numbers(old)) == len(_numbers(new))


def _shape(line: str) -> str:
    """Return a line without its numbers, and without what aligns them."""
    return " ".join(_NUMBER.sub("#", line).split())


def _numbers(line: str) -> list[str]:
    return [number.replace(",", "") for number in _NUMBER.findall(line)]
