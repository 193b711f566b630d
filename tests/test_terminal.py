"""What a terminal shows, over every command: widths, examples, colours, progress."""

import io
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import duckdb
import pytest
from test_options import _commands

from conftest import ROOT, Run
from fabricobs import content
from fabricobs.cli.examples import EXAMPLES
from fabricobs.querying import run_statement
from fabricobs.report import layout
from fabricobs.report.layout import aligned, fitted, fitted_sql

COMMAND = [sys.executable, "-c", "from fabricobs.cli import main; main()"]
WIDTHS = (60, 72, 80, 100, 133, 200)
NAMES = sorted(name for name, _ in _commands())
# What sets a colour; `\x1b[?25l` and the like are of the progress display.
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# What each command prints about the sample, by command; `{store}` is a store of it.
OUTPUTS = {
    "query --list": "query --list",
    "schema": "schema",
    "formats": "formats",
    "simulate --list": "simulate --list",
    "config": "config",
    "explain": "explain",
    "explain ID": "explain 99db",
    "compare": "compare steps:11..150 steps:160..300",
    "diagnose": "diagnose",
    "diagnose --verbose": "diagnose --verbose",
    "diagnose --list-jobs": "diagnose --list-jobs",
    "verify": "verify",
    "formats try": "formats try {logs}/train/node04.log --most 3",
    "ingest": "ingest {logs} --store {new}",
}
# Commands that show that they work, by what they say.
WORKS = {
    "diagnose": ("diagnose", "diagnosing"),
    "report": ("report --out {new}.md", "diagnosing and drawing"),
    "explain": ("explain 99db", "reading what is kept"),
    "compare": ("compare steps:11..150 steps:160..300", "comparing"),
    "prune": ("prune --keep 3000d", "pruning and merging"),
    "verify": ("verify", "comparing digests"),
    "simulate": ("simulate {new} healthy --gpus 16 --only nccl", "simulating"),
    "check": ("check --content {own}", "checking the content"),
    "formats try": ("formats try {logs}/train/node04.log", "reading"),
    "ingest": ("ingest {logs}/train --store {new}", "/1 files"),
}


@pytest.fixture(scope="module")
def store(sample_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of the sample, whose findings are kept."""
    made = Path(shutil.copytree(sample_store, tmp_path_factory.mktemp("own") / "store"))
    subprocess.run([*COMMAND, "diagnose", "--store", str(made)], capture_output=True, check=False)
    return made


@pytest.fixture
def words(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], list[str]]:
    """Return what makes a command line of a template; nothing is configured here."""
    monkeypatch.setenv("FABRICOBS_STORE", str(store))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    places = {"logs": ROOT / "sample_data" / "logs", "new": tmp_path / "new", "store": store}
    places["own"] = tmp_path
    return lambda template: template.format(**places).split()


def on_terminal(arguments: list[str], **environment: str) -> tuple[str, str]:
    """Run a command on a terminal; return standard output and standard error."""
    out, out_theirs = pty.openpty()
    err, err_theirs = pty.openpty()
    settings = {"TERM": "xterm", "COLUMNS": "100", "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=out_theirs,
        stderr=err_theirs,
        env=os.environ | settings | environment,
    )
    os.close(out_theirs)
    os.close(err_theirs)
    read = {out: b"", err: b""}
    still = {out, err}
    while still:
        for ready in select.select(list(still), [], [])[0]:
            try:
                got = os.read(ready, 1 << 16)
            except OSError:  # Linux says so that the other end is closed
                got = b""
            read[ready] += got
            if not got:
                still.discard(ready)
                os.close(ready)
    process.wait()
    return read[out].decode(), read[err].decode()


@pytest.mark.parametrize("name", NAMES)
def test_every_help_fits_and_has_examples(
    name: str, fabricobs: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for width in (60, 200):
        monkeypatch.setenv("COLUMNS", str(width))
        told = fabricobs(*name.split(), "-h").stdout
        assert told == fabricobs(*name.split(), "--help").stdout
        assert max(map(len, told.splitlines())) <= width
        if name in EXAMPLES:
            assert "Examples:\n" in told
            assert f"fabricobs {name}" in told.partition("Examples:")[2]
    assert name in EXAMPLES or name == ""


def test_every_command_that_works_for_long_shows_it_or_prints_as_it_goes() -> None:
    at_once = {"", "schedule", "config", "schema", "bench", "formats", "formats new"}
    # They print as rounds or stages come, or are the stages above one after the other; `sql` and
    # `query` have a test of their own.
    as_it_goes = {"watch", "demo", "sql", "query", "bench diagnosis", "bench scale"}
    assert WORKS.keys() | at_once | as_it_goes == set(NAMES)


@pytest.mark.slow
@pytest.mark.parametrize("output", OUTPUTS)
def test_every_output_fits_the_terminal(
    output: str, fabricobs: Run, words: Callable[[str], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for width in (60, 200):
        monkeypatch.setenv("COLUMNS", str(width))
        done = fabricobs(*words(OUTPUTS[output]))
        assert done.returncode in {0, 1, 2}, done.stderr
        lines = done.stdout.splitlines()
        assert len(lines) > 0
        wide = [line for line in lines if len(line) > width]
        # A path or an address is one word however long it is.
        assert [line for line in wide if len(line.split()) > 1] == []


@pytest.mark.slow
@pytest.mark.parametrize("width", ["80", "100", "200"])
def test_a_diagnosis_is_one_screen(
    width: str, fabricobs: Run, words: Callable[[str], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    lines = fabricobs(*words("diagnose")).stdout.splitlines()
    assert len(lines) <= 50
    assert "leaf01" in lines[0]


@pytest.mark.slow
@pytest.mark.parametrize("command", WORKS)
def test_a_terminal_sees_that_a_command_works(
    command: str, words: Callable[[str], list[str]]
) -> None:
    line, says = WORKS[command]
    out, err = on_terminal(words(line))
    assert says in err
    assert says not in out, "what it says is no data"
    assert "Traceback" not in err


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("output", ["table", "csv", "json", "parquet"])
def test_who_waits_for_rows_sees_for_how_long_until_they_come(
    output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    err = Screen()
    begun = threading.Event()

    def session(_: str | None) -> duckdb.DuckDBPyConnection:
        assert begun.wait(30)
        return duckdb.connect()

    def write(text: str) -> int:
        begun.set()
        return io.StringIO.write(err, text)

    monkeypatch.setattr("fabricobs.waiting.AFTER", 0.0)
    monkeypatch.setattr(err, "write", write)
    monkeypatch.setattr(sys, "stderr", err)
    out = tmp_path / "rows.parquet" if output == "parquet" else None
    run_statement(session, "SELECT 42 AS answer", output, out)
    assert "asking 0 s" in err.getvalue()
    assert err.getvalue().endswith("\r\x1b[K"), "the line is taken away"
    assert ("42" in capsys.readouterr().out) == (out is None)


@pytest.mark.slow
def test_colour_is_for_terminals_that_want_it(
    fabricobs: Run, words: Callable[[str], list[str]]
) -> None:
    for template in ("diagnose", "explain"):
        assert COLOUR.search(on_terminal(words(template))[0])
        for no in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            assert not COLOUR.search("".join(on_terminal(words(template), **no)))
        piped = fabricobs(*words(template))
        assert "\x1b" not in piped.stdout + piped.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands(shell: str, fabricobs: Run) -> None:
    # Else Typer takes the shell that started the tests, and fails where none did.
    environment = os.environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    script = fabricobs("--show-completion", shell, env=environment).stdout
    assert f"_FABRICOBS_COMPLETE=complete_{shell}" in script


def test_a_program_reads_one_line_an_item(fabricobs: Run) -> None:
    listed = fabricobs("query", "--list").stdout.splitlines()
    assert [line.split()[0] for line in listed] == sorted(
        name for name in content.files("queries", ".sql", ()) if "/" not in name
    )


@pytest.mark.parametrize("width", WIDTHS)
def test_folded_sql_is_the_same_sql(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over every query and view: the same tokens, comments aside, in lines that fit."""
    monkeypatch.setenv("COLUMNS", str(width))
    for path in content.files("queries", ".sql", ()).values():
        text = path.read_text(encoding="utf-8")
        folded = fitted_sql(text, indent=4)
        assert tokens(folded) == tokens(text), path
        assert max(map(len, folded.splitlines())) <= max(width, longest_word(text) + 12), path


def tokens(sql: str) -> list[str]:
    """Return the tokens of SQL but its comments, without the blanks between them."""
    marks = [*duckdb.tokenize(sql), (len(sql.encode()), None)]
    raw = sql.encode()
    pieces = [
        (kind, raw[begin:end].decode().strip()) for (begin, kind), (end, _) in pairwise(marks)
    ]
    return [
        re.sub(r"\s*--.*", "", piece).strip()
        for kind, piece in pieces
        if kind != duckdb.token_type.comment
    ]


def longest_word(text: str) -> int:
    return max(len(word) for word in re.findall(r"(?:'[^']*'|[^\s'])+", text))


@pytest.mark.parametrize("width", WIDTHS)
def test_a_table_fits_and_loses_no_cell(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    rows = [("what it is", *(f"column{n}" for n in range(8)))]
    rows += [
        (f"a long name of row {n}", *(f"{n * 1000 + c:,} ms" for c in range(8))) for n in range(3)
    ]
    for indent in (0, 4):
        shown = aligned(rows, indent)
        assert max(map(len, shown.splitlines())) <= width
        flat = " ".join(shown.split())
        assert all(cell in flat for row in rows[1:] for cell in row[1:])


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "line", ["", "x", " " * 90 + "^ here it stops, and why", "a  b  " + "c " * 99]
)
def test_a_folded_line_keeps_its_words(
    width: int, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    shown = fitted(line)
    assert shown.split() == line.split()
    assert max(map(len, shown.splitlines() or [""])) <= max(width, 114)


def test_the_width_is_from_60_to_200(monkeypatch: pytest.MonkeyPatch) -> None:
    for columns, width in (("20", 60), ("60", 60), ("119", 119), ("200", 200), ("500", 200)):
        monkeypatch.setenv("COLUMNS", columns)
        assert layout.width() == layout.known_width() == width
    monkeypatch.delenv("COLUMNS")
    assert layout.known_width() is None
