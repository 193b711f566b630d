"""Whatever stands in file names and logs, nothing that acts reaches a terminal, journal or chat."""

import os
import pty
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from fabricobs.cli import app
from fabricobs.printing import chat_text, escaped, escaped_lines

pytestmark = pytest.mark.slow

# Sets the title, clears the screen (C1), reverses what follows, forges a line.
EVIL = "\x1b]0;owned\x07\x9b2J\u202egnp\x7f\nfabricobs: all is well"
COMMAND = [sys.executable, "-c", "from fabricobs.cli import main; main()"]
# What a progress bar of ours does; the evil text has no such sequence.
BAR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@given(st.text())
def test_escaped_text_is_one_line_that_only_shows(text: str) -> None:
    assert escaped(text).isprintable()
    assert escaped_lines(text).count("\n") == text.count("\n")
    assert escaped(escaped(text)) == escaped(text)


@given(st.text("<>@!:/[]()w.#hereverychannel|\n"))
def test_a_chat_finds_no_mention_and_no_link(text: str) -> None:
    told = chat_text(f"{text}<!channel> @everyone [a](http://b) <http://c|d> <@U1> www.x.y")
    assert not re.search(r"[<>@\n]|://|\]\(|www\.", told)


def test_what_is_plain_stays_as_it_is() -> None:
    assert escaped("mlx5_0/1 → leaf01: 5 % é") == "mlx5_0/1 → leaf01: 5 % é"
    assert escaped(os.fsdecode(b"caf\xe9.log")) == "caf\\xe9.log"
    assert escaped("a\tb\u2066\U000e0041") == "a\\tb\\u2066\\U000e0041"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of logs whose names, hosts and messages are evil, and its store."""
    folder = tmp_path_factory.mktemp("site")
    logs = folder / "logs"
    (logs / f"host{EVIL}").mkdir(parents=True)
    raw = EVIL.encode()
    for number, path in enumerate((logs / f"steps{EVIL}.jsonl", logs / f"host{EVIL}" / "s.jsonl")):
        text = EVIL.replace("\x1b", "\\u001b").replace("\x07", "\\u0007").replace("\n", "\\n")
        path.write_text(
            "".join(
                f'{{"step": {step}, "rank": {number}, "host": "h{number}{text}", '
                f'"job": "j{text}", "step_time_ms": {10.0 + 90 * (step > 60) * number}}}\n'
                for step in range(1, 120)
            )
        )
    (logs / f"poem{EVIL}.txt").write_bytes(b"no format " + raw + b"\n")
    (logs / f"cut{EVIL}.gz").write_bytes(b"\x1f\x8b\x08\x00" + b"\x00" * 20)
    nccl = b"h:1:1 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 busId 1000 - Init START\n"
    (logs / os.fsdecode(b"caf\xe9.log")).write_bytes(
        nccl + b"h:1:1 [0] NCCL INFO unknown " + raw + b"\nh:1:1 [0] NCCL WARN " + raw + b"\n"
    )
    subprocess.run(
        [*COMMAND, "ingest", logs, "--store", folder / "store"], capture_output=True, check=False
    )
    return folder


def on_terminal(*arguments: object) -> str:
    """Run a command on a terminal of its own; return all it prints, without the bar's sequences."""
    ours, theirs = pty.openpty()
    printed = bytearray()

    def listen() -> None:
        try:
            while piece := os.read(ours, 1 << 16):
                printed.extend(piece)
        except OSError:  # the last one that had it has closed it
            pass

    listening = threading.Thread(target=listen)
    listening.start()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "120"}
    command = [*COMMAND, *map(str, arguments)]
    subprocess.run(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, check=False
    )
    os.close(theirs)
    listening.join()
    os.close(ours)
    return BAR.sub("", printed.decode()).replace("\r\n", "\n").replace("\r", "")


COMMANDS = (
    ("ingest", "LOGS", "--store", "NEW"),
    ("ingest", "LOGS", "--store", "STORE"),
    ("sql", "SELECT * FROM steps, files LIMIT 5"),
    ("sql", "SELECT path, host, job FROM steps JOIN files USING (file_id)", "--format", "csv"),
    ("sql", "SELECT path FROM files", "--format", "json"),
    ("sql", "SELECT text, reason FROM unparsed"),
    ("sql", "SELECT host::INTEGER FROM steps"),
    ("sql", "SELECT message FROM nccl_events", "--format", "csv"),
    ("query", "unread_lines"),
    ("diagnose",),
    ("diagnose", "--format", "json"),
    ("explain",),
    ("report", "--out", "OUT"),
    ("compare", "steps:1..50", "steps:61..110"),
    ("compare", f"steps:{EVIL}", "steps:61..110"),
    ("watch", "LOGS", "--once"),
    ("formats", "try", "step_records", "FILE"),
    ("ingest", f"nowhere{EVIL}"),
    ("query", f"no{EVIL}"),
    (f"no{EVIL}",),
    ("ingest", "LOGS", f"--no{EVIL}"),
    ("sql", f"SELECT '{EVIL}' FROM nowhere"),
    ("config",),
    ("schedule", "cron", "LOGS"),
    ("verify",),
    ("prune",),
    ("check", "--content", "OWN"),
    ("schema",),
    ("formats",),
    ("formats", "new", "mine", "FILE", "--content", "NEW"),
    ("simulate", "--list"),
)
OF_A_STORE = {
    "sql", "query", "diagnose", "explain", "report", "compare", "watch", "verify", "prune",
}  # fmt: skip
# They read nothing of the user's but a scenario.
UNTRIED = {"bench", "demo"}


def test_every_command_is_tried() -> None:
    tried = {command[0] for command in COMMANDS}
    assert set(typer.main.get_command(app).commands) - tried == UNTRIED  # type: ignore[attr-defined]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: escaped(" ".join(command))[:40])
def test_no_command_lets_anything_through(
    site: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    places = {
        "LOGS": site / "logs", "STORE": site / "store", "NEW": tmp_path / "store",
        "OUT": tmp_path / f"page{EVIL}.html", "FILE": site / "logs" / f"steps{EVIL}.jsonl",
        "OWN": tmp_path,
    }  # fmt: skip
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / f"odd{EVIL}.sql").write_text(f"SELECT '{EVIL}' FROM nowhere")
    arguments = [places.get(word, word) for word in command]
    if command[0] in OF_A_STORE:
        arguments += ["--store", site / "store"]
    printed = on_terminal(*arguments)
    acting = sorted({c for c in printed if not c.isprintable() and c != "\n"})
    assert not acting, (acting, printed)
    assert "\nfabricobs: all is well" not in printed
    assert "Traceback" not in printed


def test_data_for_a_program_are_exact(site: Path) -> None:
    command = [*COMMAND, "sql", "SELECT path FROM files", "--format", "csv"]
    got = subprocess.run([*command, "--store", site / "store"], capture_output=True, check=True)
    assert f"steps{EVIL}.jsonl".encode() in got.stdout
