"""Dumps are read run by run where their lines are known: the rows must be those of line by line."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabricobs.formats.context import Context
from fabricobs.formats.identity import Identity
from fabricobs.formats.outputs.keyvalue import KeyValueReader
from fabricobs.formats.reading import read_file
from fabricobs.formats.recognition.catalogue import load_catalogue
from fabricobs.formats.rows import Rows, Tally

CATALOGUE = load_catalogue()
DUMPS = [f for f in CATALOGUE.formats.values() if f.reader == "keyvalue"]
SAMPLES = {f"{f.name}-{n}": s.text for f in DUMPS for n, s in enumerate(f.definition.sample)}
LINES = sorted({line for text in SAMPLES.values() for line in text.split("\n")})
DATES = ["===== 2026-03-02T09:00:30.000Z =====", "Mon Mar  2 09:01:00 UTC 2026"]
PATH = "/logs/leaf07/counters.txt"


def read(path: Path, text: str) -> tuple[dict[str, list[Any]], Tally]:
    rows = Rows()
    recognised = CATALOGUE.recognise(text.encode(), PATH)
    context = Context(
        "f", identity=Identity("leaf07", "path", ts=1772442000000000, ts_source="filename")
    )
    result = read_file(path, recognised, context, rows, lambda: None)
    tables: dict[str, list[Any]] = {}
    for table, part in rows.drain():
        tables.setdefault(table, []).extend(part.to_pylist())
    return {t: sorted(r, key=str) for t, r in tables.items()}, result.tally


def assert_same(text: str, folder: Path) -> int:
    """Compare both ways; return how many lines were read in runs."""
    path = folder / "counters.txt"
    path.write_text(text, encoding="utf-8", newline="")
    in_runs = 0

    def none_taken(self: KeyValueReader, data: bytes, at: int, number: int) -> tuple[int, int]:
        return 0, at

    def counted(self: KeyValueReader, data: bytes, at: int, number: int) -> tuple[int, int]:
        nonlocal in_runs
        lines, end = taken(self, data, at, number)
        assert data.count(b"\n", at, end) == lines
        in_runs += lines
        return lines, end

    taken = KeyValueReader.take_rows
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KeyValueReader, "take_rows", none_taken)
        line_by_line = read(path, text)
        patch.setattr(KeyValueReader, "take_rows", counted)
        assert read(path, text) == line_by_line
    return in_runs


def counted_up(text: str) -> str:
    """Let the number at the end of every line grow."""
    return re.sub(r"(?m)\d{1,9}$", lambda found: str(int(found[0]) + 7), text)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_dump_again_and_again(name: str, tmp_path: Path) -> None:
    text = SAMPLES[name]
    dated = "".join(f"{date}\n{counted_up(text)}\n" for date in DATES)
    assert_same(text + "\n" + counted_up(text) + "\n" + dated + dated, tmp_path)
    assert_same(text.replace("\n", "\r\n") + "\x1b[0m" + text, tmp_path)


def test_lines_that_repeat_are_read_in_runs(tmp_path: Path) -> None:
    text = SAMPLES["ethtool_statistics-0"]
    dumps = "".join(f"===== 2026-03-02T09:0{n}:00Z =====\n{text}\n" for n in range(9))
    assert assert_same(dumps, tmp_path) > 4 * text.count("\n")


def test_numbers_of_more_than_64_bits_and_none_at_all(tmp_path: Path) -> None:
    text = SAMPLES["ethtool_statistics-0"]
    huge = re.sub(r"(?m)\d+$", "9" * 25, text)
    none = re.sub(r"(?m) \d+$", " ", text)
    assert_same("\n".join([text, counted_up(text), huge, none, text]), tmp_path)


TEXTS = st.sampled_from([*LINES, *DATES, "", "x", "rx_packets: -5", "rx_packets: 1.5"])


@settings(max_examples=150)
@given(st.sampled_from(sorted(SAMPLES)), st.lists(TEXTS, max_size=12), st.integers(1, 4))
def test_whatever_stands_between_them(
    tmp_path_factory: pytest.TempPathFactory, name: str, between: list[str], times: int
) -> None:
    text = SAMPLES[name]
    pieces = [text, *between, counted_up(text), *between] * times
    assert_same("\n".join(pieces), tmp_path_factory.mktemp("dump"))
