"""The YAML reader: what a person writes is read as text, and every mistake is named by its line."""

from pathlib import Path

import pytest

from fabricobs.formats.context import Context
from fabricobs.formats.reading import read_file
from fabricobs.formats.recognition.catalogue import load_catalogue
from fabricobs.formats.rows import Rows, Tally

CATALOGUE = load_catalogue()


def _read(folder: Path, text: str) -> tuple[Tally, int]:
    path = folder / "site.yaml"
    path.write_text(text)
    recognised = CATALOGUE.recognise(text.encode(), str(path))
    assert recognised.syntax == "yaml"
    rows = Rows()
    result = read_file(path, recognised, Context("f"), rows, lambda: None)
    tally = result.tally
    assert tally.lines == tally.parsed + tally.ignored + tally.unparsed == text.count("\n")
    return tally, rows.count


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("hosts:\n  - host: a\n    colour: blue\n", 3, "unknown key 'colour'"),
        ("hosts:\n  - host: a\n    gpu: first\n", 3, "gpu: "),
        ("hosts:\n  - host: a\nracks: 3\n", 3, "unknown key 'racks'; one of links, hosts"),
        ("hosts:\n  - plain\n", 2, "a record must be keys and values"),
        ("links:\n  device: a\n", 1, "links must be a list"),
        ("hosts:\n  - host: {a: b}\n", 2, "host must be one value"),
        ("hosts:\n  - host: 'a\n", 1, "scan"),
        ("hosts:\n  - nics:\n    - ports:\n      - {nic: a}\n", 4, "lists of records inside"),
    ],
)
def test_a_mistake_is_named_by_its_line(tmp_path: Path, text: str, line: int, said: str) -> None:
    tally, _ = _read(tmp_path, text)
    number, reason, _ = tally.samples[0]
    assert number == line
    assert said in reason


def test_a_record_with_a_mistake_keeps_the_rest(tmp_path: Path) -> None:
    tally, rows = _read(tmp_path, "# mine\nhosts:\n  - host: a\n    gpu: x\n    nic: mlx5_0\n")
    assert (tally.parsed, tally.ignored, tally.unparsed, rows) == (2, 2, 1, 1)


def test_deep_nesting_is_no_exception(tmp_path: Path) -> None:
    tally, rows = _read(tmp_path, "hosts:\n  - " + "[" * 5000 + "\n")
    assert (tally.unparsed, rows) == (2, 0)


def test_yaml_elsewhere_is_not_taken(tmp_path: Path) -> None:
    recognised = CATALOGUE.recognise(b"hosts:\n  - a\n", str(tmp_path / "job.log"))
    assert not recognised.formats
