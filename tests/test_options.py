"""Wrong arguments and options of every command are told in one line before any work."""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from conftest import Run
from fabricobs import cli, output_files

# Wrong values by what an option takes; FLAG and ANY have none.
FLAG: tuple[str, ...] = ()
ANY: tuple[str, ...] = ()
# Only what the store holds tells whether it is right.
BY_STORE: tuple[str, ...] = ()
CONFIG = ("missing.toml", "folder", "broken.toml", "unknown.toml", "zone.toml", "")
CONTENT = ("missing", "file", "")
NO_STORE = ("missing", "file", "folder", "")
NEW_FOLDER = ("file", "file/below", "")
TARGET = ("missing/x", "folder", "file/below", "")
DURATION = ("often", "0m", "-5m", "5", "99999999999999w", "999999w", "")
SEED = ("-1", "4294967296", "x")
GPUS = ("12", "8", "0", "-16", "1000000000", "many")
ZONE = ("Mars/Base", "Europe", "../UTC", "")
TEXT = ("csv", "TEXT", "")
ROWS = ("xml", "")
FAIL_ON = ("bad", "")
PATTERN = ("{nonsense}/**", "plain", "")

EXECUTOR = ("scheduler:8786", "dask://scheduler", "dask://host:port", "two", "")
ASKING = {"--store": NO_STORE, "--content": CONTENT, "--config": CONFIG}
# By command: arguments that are right, then what is wrong, by the name of the argument or option.
COMMANDS: dict[str, tuple[tuple[str, ...], dict[str, tuple[str, ...]]]] = {
    "": ((), {"--version": FLAG, "--install-completion": FLAG, "--show-completion": FLAG}),
    "ingest": (
        ("logs",),
        {
            "logs": ("missing", "", "store", "store/_log"),
            "--store": (*NEW_FOLDER, "logs"),
            "--job": ("",),
            "--tz": ZONE,
            "--content": CONTENT,
            "--host-from": PATTERN,
            "--follow": FLAG,
            "--workers": ("-3", "1025", "two"),
            "--executor": EXECUTOR,
            "--config": CONFIG,
        },
    ),
    "sql": (
        ("SELECT 1",),
        {
            **ASKING,
            "statement": ("missing.sql",),
            "--format": ROWS,
            "--out": TARGET,
            "--allow-files": ("missing", "file"),
        },
    ),
    "query": (
        ("uplink_balance",),
        {
            **ASKING,
            "name": ("nonsense",),
            "--list": FLAG,
            "--format": ROWS,
            "--out": TARGET,
            "--allow-files": ("missing", "file"),
        },
    ),
    "diagnose": (
        (),
        {
            **ASKING,
            "--format": TEXT,
            "--fail-on": FAIL_ON,
            "--window": DURATION,
            "--job": BY_STORE,
            "--list-jobs": FLAG,
            "--verbose": FLAG,
        },
    ),
    "explain": ((), {**ASKING, "finding": BY_STORE, "--anew": FLAG, "--sql": FLAG}),
    "compare": (
        ("a", "b"),
        {**ASKING, "a": BY_STORE, "b": BY_STORE, "--job": BY_STORE, "--format": TEXT},
    ),
    "report": (
        (),
        {
            **ASKING,
            "--out": (*(f"{target}.html" for target in TARGET if target != "folder"), "folder.md"),
            "--format": ("pdf", ""),
            "--charts": NEW_FOLDER,
            "--site": NEW_FOLDER,
            "--window": DURATION,
            "--job": BY_STORE,
        },
    ),
    "watch": (
        ("logs", "--once"),
        {
            "logs": ("missing", "", "store"),
            "--every": DURATION,
            "--window": DURATION,
            "--once": FLAG,
            "--store": (*NEW_FOLDER, "logs"),
            "--job": ("",),
            "--tz": ZONE,
            "--report": TARGET,
            "--keep": DURATION,
            "--follow": FLAG,
            "--fail-on": FAIL_ON,
            "--content": CONTENT,
            "--executor": EXECUTOR,
            "--config": CONFIG,
        },
    ),
    "prune": ((), {"--keep": DURATION, "--store": NO_STORE, "--config": CONFIG}),
    "verify": ((), {"--repair": FLAG, "--store": NO_STORE, "--config": CONFIG}),
    "schedule": (
        ("cron", "logs"),
        {
            "scheduler": ("at",),
            "logs": ANY,  # a unit may be made for logs of another machine
            "--every": DURATION,
            "--store": ANY,
            "--out": NEW_FOLDER,
            "--image": ANY,
            "--executor": EXECUTOR,
            "--workers": ("-3", "two"),
            "--config": CONFIG,
        },
    ),
    "config": ((), {"--config": CONFIG, "--trust": FLAG}),
    "demo": (
        ("straggling_rank",),
        {
            "scenario": ("nonsense", "missing.toml"),
            "--out": NEW_FOLDER,
            "--gpus": GPUS,
            "--seed": SEED,
        },
    ),
    "simulate": (
        ("cases", "straggling_rank"),
        {
            "directory": NEW_FOLDER,
            "scenarios": ("nonsense", "missing.toml", "broken.toml"),
            "--list": FLAG,
            "--cases": ("0", "-1", "x"),
            "--gpus": GPUS,
            "--seed": SEED,
            "--only": ("nonsense",),
            "--without": ("nonsense",),
            "--world": ("mars", ""),
            "--given": ("nonsense", "fault_count=0"),  # it needs --world
        },
    ),
    "check": ((), {"--content": CONTENT, "--config": CONFIG}),
    "schema": (("--views",), {**ASKING, "table": ("nonsense",), "--views": FLAG, "--json": FLAG}),
    "bench": ((), {}),
    "bench diagnosis": (
        (),
        {
            "--seeds": ("0", "1001", "x"),
            "--size": GPUS,
            "--scenario": ("nonsense",),
            "--ablations": FLAG,
            "--tuning": FLAG,
            "--out": TARGET,
            "--calibrate": TARGET,
            "--worlds": ("0", "-1", "x"),
            "--first-seed": ("0", "x", "7"),  # it needs --worlds
            "--given": ("nonsense", "fault_count=0"),
        },
    ),
    "bench scale": ((), {"--size": GPUS}),
    "formats": ((), {"--content": CONTENT, "--config": CONFIG}),
    "formats try": (
        ("logs/steps.jsonl",),
        {
            "words": ("missing", "nonsense"),
            "--content": CONTENT,
            "--config": CONFIG,
            "--most": ("-1", "x"),
        },
    ),
    "formats new": (
        ("mine", "logs/steps.jsonl"),
        {
            "name": ("no-name", "../x", ""),
            "path": ("missing", "folder"),
            "--content": NEW_FOLDER,
        },
    ),
}
WRONG = [
    (command, name, value)
    for command, (_, parameters) in COMMANDS.items()
    for name, values in parameters.items()
    for value in values
]

_opened: list[str] | None = None


def _note_opened(event: str, arguments: tuple[Any, ...]) -> None:
    if (
        _opened is not None
        and event == "open"
        and isinstance(arguments[0], str | bytes | os.PathLike)
    ):
        _opened.append(os.fsdecode(arguments[0]))


sys.addaudithook(_note_opened)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: logs, files in the way, and a store that none can read."""
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "steps.jsonl").write_text('{"step": 1, "rank": 0, "step_time_ms": 1.0}\n')
    (tmp_path / "store" / "_log").mkdir(parents=True)
    (tmp_path / "store" / "_log" / "000000000000.json").write_text('{"layout": 2}')
    (tmp_path / "store" / "_log" / "000000000001.json").write_text("no entry")
    for folder in ("folder", "folder.md"):
        (tmp_path / folder).mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "file.html").touch()
    (tmp_path / "broken.toml").write_text("[watch\n")
    (tmp_path / "unknown.toml").write_text("[watch]\nevry = '5m'\n")
    (tmp_path / "zone.toml").write_text("tz = 'Mars/Base'\n")
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("FABRICOBS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("FABRICOBS_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(cli.stopping, "listen", lambda: None)
    monkeypatch.setattr(cli, "raise_gc_threshold", lambda: None)
    return tmp_path


def arguments_of(command: str, name: str, value: str) -> list[str]:
    """Return the command line of a command with one wrong value in it."""
    right, _ = COMMANDS[command]
    if name.startswith("--"):
        return [*command.split(), *right, name, value]
    if command == "schema":
        return ["schema", value]
    positional = [n for n in _parameters(command) if not n.startswith("--")]
    given = list(right)
    given[positional.index(name)] = value
    return [*command.split(), *given]


def _commands() -> Iterator[tuple[str, Any]]:
    """Yield every command of the program with its path."""
    pending = [("", typer.main.get_command(cli.app))]
    while pending:
        path, command = pending.pop()
        yield path, command
        inner = getattr(command, "commands", {})
        pending += [(f"{path} {name}".strip(), each) for name, each in inner.items()]


def _parameters(command: str) -> list[str]:
    params = dict(_commands())[command].params
    return [p.opts[0] if p.opts[0].startswith("--") else p.name for p in params]


def run(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.setattr(sys, "argv", ["fabricobs", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code


def _looks(place: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in place.rglob("*")
        if path.parent.name != "state"
    }


def test_the_table_has_every_command_argument_and_option() -> None:
    found = {command: set(_parameters(command)) for command, _ in _commands()}
    assert found == {command: set(parameters) for command, (_, parameters) in COMMANDS.items()}


@pytest.mark.parametrize(("command", "name", "value"), WRONG)
def test_a_wrong_value_is_told_before_any_work(
    command: str,
    name: str,
    value: str,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    global _opened
    before = _looks(place)
    _opened = []
    try:
        code = run(arguments_of(command, name, value), monkeypatch)
    finally:
        opened, _opened = _opened, None
    said = capsys.readouterr()
    assert code == 3, said
    assert said.out == ""
    (line,) = said.err.splitlines()
    if name.startswith("--"):
        assert name in line, "the option is named"
    else:
        assert value in line, line
        assert re.search(r"\b[A-Z]+\b", line), "the argument is named as the help does"
    # What to do: another command, or the help of this one.
    assert re.search(r"`fabricobs [^`]+`", line), line
    if "`fabricobs ingest" not in line and "--list" not in line:
        assert f"`fabricobs {command} --help`" in line
    assert "files.parquet" not in line
    assert not [path for path in opened if f"{place}/logs/" in path or path.startswith("logs/")]
    assert _looks(place) == before


@pytest.mark.parametrize(
    "arguments",
    [["report", "--out", "x.html"], ["sql", "SELECT 1", "--out", "x.csv"]],
)
def test_a_folder_that_may_not_be_written_is_told_before_any_work(
    arguments: list[str],
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(output_files.os, "access", lambda *_: False)
    assert run(arguments, monkeypatch) == 3
    assert "cannot be written" in capsys.readouterr().err


def test_end_to_end(fabricobs: Run, place: Path) -> None:
    for arguments in (
        ("ingest", "logs", "--workers", "-3"),
        ("report", "--charts", "file"),
        ("report", "--site", "file"),
        ("simulate", "cases", "--seed", "-1"),
        ("nonsense",),
        ("ingest", "logs", "--nonsense"),
    ):
        done = fabricobs(*arguments)
        assert (done.returncode, done.stdout) == (3, "")
        assert len(done.stderr.splitlines()) == 1
