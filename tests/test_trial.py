"""Trying a format on a file, and beginning a new one, through the command line."""

import tomllib
from pathlib import Path

import pytest

from conftest import ROOT, Run

pytestmark = pytest.mark.slow


def test_try_shows_rows_and_what_is_left(fabricobs: Run, tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("h:1:1 [0] NCCL INFO NCCL version 2.20.5+cuda12.4\nh:1:1 [0] NCCL INFO odd\n")
    done = fabricobs("formats", "try", "nccl_debug", log)
    assert done.returncode == 0
    assert "version 2.20.5+cuda12.4" in done.stdout
    assert "2 lines: 1 parsed, 0 ignored, 1 unread" in done.stdout
    assert "line 2: nccl_debug: no rule fits this line" in done.stdout


def test_try_a_format_the_file_is_not(fabricobs: Run) -> None:
    done = fabricobs("formats", "try", "megatron", ROOT / "pyproject.toml")
    assert done.returncode == 3
    assert "0 parsed" in done.stdout


@pytest.mark.parametrize(("name", "file"), [("megatrom", "pyproject.toml"), ("megatron", "none")])
def test_try_names_what_is_not_there(fabricobs: Run, name: str, file: str) -> None:
    done = fabricobs("formats", "try", name, ROOT / file)
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
    assert "no format" in done.stderr or "no such file" in done.stderr


@pytest.mark.parametrize(
    ("text", "reader"),
    [
        ("job 12 took 3.5 s on gpu01\n", "lines"),
        ("step,watts,node\n1,300,a\n", "csv"),
        ('{"step": 1, "watts": 300}\n', "jsonl"),
        ("Port   Watts\n-----  -----\nEth1   3\n", "table"),
    ],
)
def test_new_begins_a_definition_of_the_right_kind(
    fabricobs: Run, tmp_path: Path, text: str, reader: str
) -> None:
    (tmp_path / "x.log").write_text(text)
    assert (
        fabricobs("formats", "new", "mine", tmp_path / "x.log", "--content", tmp_path).returncode
        == 0
    )
    document = tomllib.loads((tmp_path / "ingest" / "mine.toml").read_text())
    assert document["reader"] == reader
    assert document["sample"][0]["text"] == text
    again = fabricobs("formats", "new", "mine", tmp_path / "x.log", "--content", tmp_path)
    assert again.returncode == 3
    assert "is there already" in again.stderr
