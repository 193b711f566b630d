"""Trying formats on files and folders, and beginning a new one, through the command line."""

import json
import re
import shutil
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from conftest import ROOT, Run
from fabricobs.cli import app
from fabricobs.cli.options import UNKNOWN
from fabricobs.exceptions import UserError
from fabricobs.formats.definition import Definition
from fabricobs.formats.proposal import definition_text
from fabricobs.formats.recognition.catalogue import Catalogue
from fabricobs.formats.samples import check_format, read_sample
from fabricobs.formats.values import VALUE_TYPES
from fabricobs.store.tables import TABLES

NCCL = "h:1:1 [0] NCCL INFO "


def formats(*arguments: object) -> tuple[int, str]:
    """Return exit code and output, as `fabricobs` tells of a mistake of the user."""
    result = CliRunner().invoke(app, ["formats", *map(str, arguments)])
    assert "Traceback" not in result.output
    if isinstance(result.exception, UserError):
        return UNKNOWN, f"{result.output}fabricobs: {result.exception}"
    return result.exit_code, result.output


def test_try_shows_rows_and_what_is_left(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text(f"{NCCL}NCCL version 2.20.5+cuda12.4\n{NCCL}odd\n")
    code, output = formats("try", "nccl_debug", log)
    assert code == 0
    assert "version 2.20.5+cuda12.4" in output
    assert "2 lines: 1 parsed, 0 ignored, 1 unread" in output
    assert "line 2: nccl_debug: no rule fits this line" in output


def _below_caret(output: str) -> list[tuple[str, str]]:
    """Return what stands from each caret on in the line above it, and what is expected there."""
    lines = output.splitlines()
    return [
        (above[line.index("^") :], line.partition("expected: ")[2])
        for above, line in zip(lines, lines[1:], strict=False)
        if "^ expected: " in line
    ]


@pytest.mark.parametrize(
    ("line", "rest", "expected"),
    [
        (f"{NCCL}Channel 00/0 : 0[0] -> 1[1] [send] vai NET/IB/0", "ai NET/IB/0", "'ia NET/'"),
        (f"{NCCL}cudaDriverVersion", "", "' '"),
        (f"{NCCL}12 coll channels, x p2p channels", "x p2p channels", "{p2p_channels:int}"),
    ],
)
def test_try_points_at_the_character_where_a_template_stops(
    tmp_path: Path, line: str, rest: str, expected: str
) -> None:
    log = tmp_path / "a.log"
    log.write_text(f"{NCCL}Using network IB\n{line}\n")
    _, output = formats("try", log)
    assert (rest, expected) in _below_caret(output)


def test_try_points_into_long_lines_and_labelled_ones(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    odd = f"[1,3]<stdout>:{NCCL}{'Setting ' * 30}x"
    log.write_text(f"{NCCL}Using network IB\n{odd}\n[rank3]: {NCCL}Using netwark IB\n")
    _, output = formats("try", log)
    assert ("ark IB", "'ork '") in _below_caret(output)
    assert max(map(len, output.splitlines())) < 400


def test_try_of_a_folder_tells_each_kind_of_file_and_groups_unread_lines(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"rank{number}.log").write_text(
            f"{NCCL}Using network IB\njob {number} took {number}.5 s\njob 7 took 1.5 s\n"
        )
    (tmp_path / "lldp.txt").write_text(
        "Port Neighbor Device ID  Neighbor Port ID  TTL\nEt1  spine01  Ethernet2  120\n"
    )
    (tmp_path / "odd.bin").write_text("what is this\n")
    code, output = formats("try", tmp_path)
    assert code == 3  # one of the files shows no format
    assert "nccl_debug: 3 files" in output
    assert "9 lines: 3 parsed, 0 ignored, 6 unread; 3 rows" in output
    assert "eos_lldp_neighbors + capture" in output
    assert re.search(r"6 x .*rank0\.log:2: ", output)
    assert "no known format" in output
    code, output = formats("try", "eos_lldp_neighbors", tmp_path)
    assert code == 0
    assert "nccl_debug" not in output


def test_try_a_format_the_file_is_not() -> None:
    code, output = formats("try", "megatron", ROOT / "pyproject.toml")
    assert code == 3
    assert "0 parsed" in output


@pytest.mark.parametrize("words", [("megatrom", "pyproject.toml"), ("megatron", "none"), ("none",)])
def test_try_names_what_is_not_there(fabricobs: Run, words: Sequence[str]) -> None:
    done = fabricobs("formats", "try", *words[:-1], ROOT / words[-1])
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
        ("rx bytes: 12\ntx bytes: 13\ndrops: 0\n", "keyvalue"),
    ],
)
def test_new_begins_a_definition_of_the_right_kind(tmp_path: Path, text: str, reader: str) -> None:
    (tmp_path / "x.log").write_text(text)
    assert formats("new", "mine", tmp_path / "x.log", "--content", tmp_path)[0] == 0
    document = tomllib.loads((tmp_path / "ingest" / "mine.toml").read_text())
    assert document["reader"] == reader
    assert document["sample"][0]["text"] == text
    code, output = formats("new", "mine", tmp_path / "x.log", "--content", tmp_path)
    assert code == 3
    assert "exists already" in output


def test_a_new_definition_is_sound_and_says_the_types(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text(
        "2026-03-02 09:00:00 job 12 took 3.5 s on gpu01:4321 (0x7f3a, 12/100, 61.2GiB, 35%)\n"
        "2026-03-02 09:00:01 job 13 took 4 s on gpu02:4322 (0x7f3b, 13/100, 61.3GiB, 36.5%)\n"
    )
    assert formats("new", "mine", tmp_path / "x.log", "--content", tmp_path)[0] == 0
    (rule,) = tomllib.loads((tmp_path / "ingest" / "mine.toml").read_text())["line"]
    assert rule["template"] == (
        "{:time} job {:int} took {:timed} on {:host}:{:int} ({:hex}, {:int}/{:int}, {:size}, "
        "{:percent})"
    )
    checked = CliRunner().invoke(app, ["check", "--content", str(tmp_path)])
    assert checked.exit_code == 0, checked.output


def test_new_describes_the_lines_of_a_folder_that_no_format_reads(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    for number in range(2):
        (logs / f"rank{number}.log").write_text(
            f"{NCCL}Using network IB\njob {number} took {number}.5 s\n"
        )
    assert formats("new", "mine", logs, "--content", tmp_path)[0] == 0
    document = tomllib.loads((tmp_path / "ingest" / "mine.toml").read_text())
    assert [rule["template"] for rule in document["line"]] == ["job {:int} took {:timed}"]
    assert formats("try", logs, "--content", tmp_path)[0] == 0
    code, output = formats("new", "other", ROOT / "sample_data" / "missing", "--content", tmp_path)
    assert (code, "no such file" in output) == (3, True)


@pytest.mark.parametrize("name", ["case.zip", "case.tar.gz"])
def test_an_archive_is_tried_and_described_as_its_files(name: str, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    (logs / "gpu-01").mkdir(parents=True)
    (logs / "gpu-01" / "rank0.log").write_text(f"{NCCL}Using network IB\njob 7 took 1.5 s\n")
    (logs / "gpu-01" / "odd.txt").write_text("pump 3 at 12.5 %\n")
    kind = "zip" if name.endswith("zip") else "gztar"
    shutil.make_archive(str(tmp_path / "case"), kind, logs)
    code, output = formats("try", tmp_path / name)
    assert code == 3 and "2 lines: 1 parsed, 0 ignored, 1 unread" in output
    assert f"{name}/gpu-01/odd.txt" in output
    assert formats("new", "mine", tmp_path / name, "--content", tmp_path)[0] == 0
    assert "pump 3 at 12.5 %" in (tmp_path / "ingest" / "mine.toml").read_text()


# ------------------------------------------------------------------ round trip

_INT = st.integers(-(10**9), 10**9).map(lambda n: (str(n), n))
_COUNT = st.integers(1000, 10**12).map(lambda n: (f"{n:,}", n))
_NUMBER = st.integers(0, 10**6).map(lambda n: (f"{n / 100:.2f}", n / 100))
_HEX = st.integers(0, 2**62).map(lambda n: (hex(n), n))
_SECONDS = st.integers(0, 10**5).map(lambda n: (f"{n} s", n * 1000.0))
_PERCENT = st.integers(0, 100).map(lambda n: (f"{n}%", float(n)))
_HOST = st.integers(0, 999).map(lambda n: (f"gpu-{n:02}", f"gpu-{n:02}"))
_PORT = st.integers(1, 64).map(lambda n: (f"Ethernet{n}", f"Ethernet{n}"))
_VALUES = (_INT, _COUNT, _NUMBER, _HEX, _SECONDS, _PERCENT, _HOST, _PORT)
_WORDS = st.sampled_from(["job", "took", "rank=", "loss:", "->", "(", "[INFO]", "of", "{a}", "'"])


@st.composite
def _log(draw: st.DrawFn) -> list[tuple[str, list[Any]]]:
    """Draw the lines of up to three templates, each with its values."""
    lines = []
    for number in range(draw(st.integers(1, 3))):
        kinds = draw(st.lists(st.sampled_from(_VALUES), min_size=1, max_size=3, unique_by=id))
        words = draw(st.lists(_WORDS, min_size=len(kinds), max_size=len(kinds)))
        for _ in range(draw(st.integers(1, 4))):
            drawn = [draw(kind) for kind in kinds]
            rest = " ".join(f"{word} {text}" for word, (text, _) in zip(words, drawn, strict=True))
            lines.append((f"{'abc'[number]}begin {rest} end", [value for _, value in drawn]))
    return lines


def _named(document: dict[str, Any]) -> dict[str, Any]:
    """Fill in what a user does: a column of its type for each value, and a table."""
    table = TABLES["benchmarks"]
    for rule in document["line"]:
        free = [c for c in table.columns if c.name not in {"job", "file_id", "line", "ts_source"}]

        def name(found: re.Match[str], free: list[Any] = free) -> str:
            fills = VALUE_TYPES[found[1]].fills
            column = next(c for kind in fills for c in free if c.type == kind)
            free.remove(column)
            return f"{{{column.name}:{found[1]}}}"

        rule["template"] = re.sub(r"\{:(\w+)\}", name, rule["template"])
        rule["table"] = "benchmarks"
    return document


@settings(max_examples=60)
@given(log=_log())
def test_what_is_proposed_reads_its_lines_once_columns_are_named(
    log: list[tuple[str, list[Any]]],
) -> None:
    text = definition_text("mine", "x.log", [line for line, _ in log])
    proposed = tomllib.loads(text)
    catalogue = Catalogue({"mine": Definition.model_validate({**proposed, "name": "mine"})})
    assert list(check_format(catalogue.formats["mine"], catalogue)) == []
    named = _named(proposed)
    named["sample"][0]["rows"] = {"benchmarks": [{} for _ in log]}
    definition = Definition.model_validate({**named, "name": "mine"})
    catalogue = Catalogue({"mine": definition})
    assert list(check_format(catalogue.formats["mine"], catalogue)) == []
    rows, tally = read_sample(catalogue.formats["mine"], definition.sample[0], catalogue)
    assert (tally.parsed, tally.unparsed) == (len(log), 0)
    for (line, values), row in zip(log, rows["benchmarks"], strict=True):
        assert all(value in row.values() for value in values), (line, row)


_WORD = st.sampled_from(["blade", "flux", "crate", "Widgets", "slot", "mode", "zeta", "when"])
_CELL = st.one_of(
    st.integers(0, 10**6).map(str),
    st.integers(0, 10**6).map(lambda n: f"{n / 100:.2f}"),
    st.sampled_from(["ready", "off", "b-12", "2026-03-02T09:00:00Z"]),
)


def _as_csv(names: list[str], rows: list[list[str]]) -> str:
    return "".join(",".join(cells) + "\n" for cells in (names, *rows))


def _as_json_lines(names: list[str], rows: list[list[str]]) -> str:
    return "".join(json.dumps(dict(zip(names, cells, strict=True))) + "\n" for cells in rows)


def _as_table(names: list[str], rows: list[list[str]]) -> str:
    lines = [names, ["-" * 22 for _ in names], *rows]
    return "".join("  ".join(f"{cell:<22}" for cell in cells).rstrip() + "\n" for cells in lines)


def _as_pairs(names: list[str], rows: list[list[str]]) -> str:
    return "".join(f"{name}: {cell}\n" for name, cell in zip(names, rows[0], strict=True))


@settings(max_examples=60)
@given(
    write=st.sampled_from([_as_csv, _as_json_lines, _as_table, _as_pairs]),
    names=st.lists(_WORD, min_size=3, max_size=6, unique=True),
    data=st.data(),
)
def test_a_draft_claims_and_reads_the_file_it_was_drawn_from(
    write: Callable[[list[str], list[list[str]]], str], names: list[str], data: st.DataObject
) -> None:
    width = len(names)
    row = st.lists(_CELL, min_size=width, max_size=width)
    rows = data.draw(st.lists(row, min_size=1, max_size=4))
    text = write(names, rows)
    draft = tomllib.loads(definition_text("mine", "x.txt", text.splitlines()))
    catalogue = Catalogue({"mine": Definition.model_validate({**draft, "name": "mine"})})
    assert list(check_format(catalogue.formats["mine"], catalogue)) == []
    # What a person does: a table, and a column for a key.
    draft["block"][0] |= {"table": "hosts", "columns": {names[-1]: "value"}}
    expected = [cells[-1] for cells in (rows[:1] if write is _as_pairs else rows)]
    draft["sample"][0]["rows"] = {"hosts": [{"value": value} for value in expected]}
    catalogue = Catalogue({"mine": Definition.model_validate({**draft, "name": "mine"})})
    assert list(check_format(catalogue.formats["mine"], catalogue)) == []
