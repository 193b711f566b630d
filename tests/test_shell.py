"""The shell of `fabricobs sql`: on a terminal as a user types, and what it completes."""

import os
import pty
import select
import stat
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from fabricobs.resources import state_folder
from fabricobs.shell.commands import Shell
from fabricobs.shell.completion import Names, SqlCompleter
from fabricobs.shell.loop import names_of
from fabricobs.shell.text import in_quotes, is_whole, sources
from fabricobs.store.inspection import one_line
from fabricobs.store.sandbox import QueryError
from fabricobs.store.session import open_session

NAMES = Names(
    columns={"steps": [("step", "BIGINT"), ("host", "VARCHAR")], "links": [("device", "VARCHAR")]},
    keywords=("select", "from", "settle"),
    arguments={".tables": (), ".query": ("uplink_balance",), ".columns": ("steps", "links")},
)


def offered(before: str, after: str = "") -> list[str]:
    document = Document(before + after, len(before))
    found = SqlCompleter(NAMES).get_completions(document, CompleteEvent())
    return [completion.text for completion in found]


class TestCompletion:
    @pytest.mark.parametrize(
        ("before", "after", "expected"),
        [
            (".t", "", [".tables"]),
            (".query up", "", ["uplink_balance"]),
            (".columns ", "", ["steps", "links"]),
            ("SELECT * FROM st", "", ["steps"]),
            ("SELECT * FROM ", "", ["steps", "links"]),
            ("SELECT ho", " FROM steps", ["host"]),
            ("SELECT s.", " FROM steps s JOIN links l", ["step", "host"]),
            ("SELECT l.de", " FROM steps AS s, links AS l", ["device"]),
            ("SE", "", ["SELECT", "SETTLE"]),
            ("se", "", ["select", "settle"]),
            ("SELECT 'st", "", []),
            ("SELECT 1 -- st", "", []),
            ("SELECT 'it''s' AS a FROM l", "", ["links"]),
        ],
    )
    def test_offers(self, before: str, after: str, expected: list[str]) -> None:
        assert offered(before, after) == expected

    def test_knows_the_store(self, sample_store: Path) -> None:
        names = names_of(Shell(open_session(sample_store)))
        assert ("pure_us", "DOUBLE") in names.columns["collective_calls"]
        assert "uplink_balance" in names.arguments[".query"]
        assert "select" in names.keywords


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("", True),
        (".tables", True),
        ("SELECT 1;", True),
        ("SELECT 1; -- done", True),
        ("SELECT 1", False),
        ("SELECT ';", False),
        ("SELECT 1 -- ;", False),
        ("SELECT 1 /* ; ", False),
        ("SELECT ';';", True),
    ],
)
def test_enter_ends_what_is_whole(text: str, whole: bool) -> None:
    assert is_whole(text) == whole


def test_quotes_are_told_from_code() -> None:
    assert in_quotes("SELECT 'a")
    assert in_quotes("/* a\n b")
    assert not in_quotes("SELECT 'a' /* b */ -- c\n")


def test_aliases_of_a_literal_are_none() -> None:
    known = frozenset({"steps", "links"})
    assert sources("SELECT 'FROM links l' FROM Steps AS s", known) == {
        "steps": "steps",
        "s": "steps",
    }


class TestCommands:
    @pytest.fixture
    def shell(self, sample_store: Path) -> Shell:
        return Shell(open_session(sample_store))

    def said(self, shell: Shell, text: str, capfd: pytest.CaptureFixture[str]) -> str:
        shell.run(text)
        return capfd.readouterr().out

    def test_tables(self, shell: Shell, capfd: pytest.CaptureFixture[str]) -> None:
        lines = self.said(shell, ".tables", capfd).splitlines()
        assert any(line.startswith("steps ") and " table " in line for line in lines)
        assert any(line.startswith("collective_calls ") and " view " in line for line in lines)

    def test_columns_with_units(self, shell: Shell, capfd: pytest.CaptureFixture[str]) -> None:
        assert "[ms]" in self.said(shell, ".columns steps", capfd)
        assert "pure_us" in self.said(shell, ".columns collective_calls", capfd)

    def test_questions(self, shell: Shell, capfd: pytest.CaptureFixture[str]) -> None:
        assert "uplink_balance" in self.said(shell, ".queries", capfd)
        assert "leaf01" in self.said(shell, ".query uplink_balance", capfd)

    def test_format_holds(self, shell: Shell, capfd: pytest.CaptureFixture[str]) -> None:
        self.said(shell, ".format csv", capfd)
        got = self.said(shell, "SELECT 1 AS one; SELECT 'a;b' AS two;", capfd)
        assert got == "one\n1\ntwo\na;b\n"

    def test_every_command_is_in_the_help(
        self, shell: Shell, capfd: pytest.CaptureFixture[str]
    ) -> None:
        text = self.said(shell, ".help", capfd)
        assert all(name in text for name in names_of(shell).arguments)

    @pytest.mark.parametrize(
        ("typed", "said"),
        [
            (".tabels", "did you mean .tables?"),
            (".columns stepz", "did you mean steps?"),
            (".columns", "which one?"),
            (".query nothing_like_it", "no query"),
            (".format parquet", "binary"),
            (".format xml", "table, csv, json or parquet"),
            ("DROP VIEW steps;", "read-only"),
            ("SELEC 1;", "syntax error"),
            ("SELECT * FROM stepz;", "stepz"),
        ],
    )
    def test_a_mistake_is_one_line(self, shell: Shell, typed: str, said: str) -> None:
        with pytest.raises(QueryError) as error:
            shell.run(typed)
        told = one_line(error.value)
        assert said in told
        assert "\n" not in told


class Terminal:
    """A shell on a pseudo-terminal, typed at and read from."""

    def __init__(self, store: Path, state: Path) -> None:
        self._master, end = pty.openpty()
        termios.tcsetwinsize(end, (40, 100))
        command = [sys.executable, "-c", "from fabricobs.cli import main; main()"]
        self.process = subprocess.Popen(
            [*command, "sql", "--store", store],
            stdin=end,
            stdout=end,
            stderr=end,
            env={**os.environ, "XDG_STATE_HOME": str(state), "TERM": "xterm"},
        )
        os.close(end)
        self._unread = ""

    def until(self, text: str) -> None:
        """Read until the text comes on the screen; what stands behind it is left to be read."""
        begun = time.monotonic()
        while text not in self._unread:
            assert time.monotonic() - begun < 60, f"{text!r} never came: {self._unread}"
            if select.select([self._master], [], [], 1)[0]:
                part = os.read(self._master, 65536).decode(errors="replace")
                self._unread += part
                # The shell asks where the cursor is; a terminal answers.
                for _ in range(part.count("\x1b[6n")):
                    os.write(self._master, b"\x1b[1;1R")
        self._unread = self._unread.partition(text)[2]

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._master)


def test_a_session_on_a_terminal(sample_store: Path, tmp_path: Path) -> None:
    terminal = Terminal(sample_store, tmp_path)
    try:
        terminal.until("fabricobs>")
        terminal.type("SELECT count(*)\r")
        terminal.until("........")
        terminal.type("FROM steps;\r")
        terminal.until("9900")
        terminal.until("fabricobs>")
        terminal.type("SELECT nonsense\x03")
        terminal.until("fabricobs>")
        terminal.type("SELECT * FROM stepz;\r")
        terminal.until("did you mean steps")
        terminal.until("fabricobs>")
        terminal.type("\x04")
        assert terminal.process.wait(timeout=30) == 0
    finally:
        terminal.close()
    history = tmp_path / "fabricobs" / "sql_history"
    assert "+FROM steps;" in history.read_text()
    assert "nonsense" not in history.read_text()
    assert stat.S_IMODE(history.stat().st_mode) == 0o600


def test_a_long_statement_can_be_stopped() -> None:
    code = (
        "import duckdb, os, signal, threading\n"
        "from fabricobs.querying import write_rows\n"
        "endless = 'SELECT count(*) FROM range(10000000) a, range(100000) b '\n"
        "endless += 'WHERE a.range * b.range % 7 = 3'\n"
        # A job in the background of a shell is started with the signal ignored.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "stop = lambda: os.kill(os.getpid(), signal.SIGINT)\n"
        "threading.Timer(2, stop).start()\n"
        "try: write_rows(duckdb.connect(), endless, 'csv')\n"
        "except KeyboardInterrupt: print('stopped')\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert told.stdout == "stopped\n"


def test_the_history_is_where_the_specification_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for relative in ("", "not/absolute"):
        monkeypatch.setenv("XDG_STATE_HOME", relative)
        assert state_folder() == tmp_path / ".local/state/fabricobs"
    monkeypatch.setenv("XDG_STATE_HOME", "/elsewhere")
    assert state_folder() == Path("/elsewhere/fabricobs")
