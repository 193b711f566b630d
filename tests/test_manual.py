"""The manual is true: it is what the code makes, and every command line in it runs."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT
from fabricobs.cli import main
from fabricobs.cli.examples import EXAMPLES
from fabricobs.docs.__main__ import FILLED, PAGES, fill, pages
from fabricobs.docs.commands import commands
from fabricobs.report.markdown import code, table

pytestmark = pytest.mark.slow

MANUAL = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PROSE = [*MANUAL, *(ROOT / name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"))]
LANGUAGES = {"", "text", "sh", "python", "sql", "toml", "yaml"}
# A diagnosis tells by its exit code how bad it is: 1 and 2 are answers.
ANSWERS = {"diagnose": {0, 1, 2}, "watch": {0, 1, 2}}
WRITTEN = (
    "README.md",
    "docs/README.md",
    "docs/decisions.md",
    "docs/identity.md",
    "docs/operation.md",
    "docs/scale.md",
)

BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<reason>.+) -->\n)?^(?P<fence>```+)(?P<language>.*)\n"
    r"(?P<text>(?:.*\n)*?)(?P=fence)$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Block:
    """A block of code of a page; `reason` says why it is not run."""

    page: str
    line: int
    language: str
    text: str
    reason: str | None


def blocks(path: Path) -> Iterator[Block]:
    text = path.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        name = path.relative_to(ROOT).as_posix()
        yield Block(name, line, match["language"], match["text"], match["reason"])


def of_language(language: str) -> list[Any]:
    return [
        pytest.param(block, id=f"{block.page}:{block.line}")
        for path in MANUAL
        for block in blocks(path)
        if block.language == language
    ]


@pytest.fixture
def workplace(sample_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as a reader has it: the sample's logs, their store, `fabricobs` on the path."""
    (tmp_path / "sample_data").symlink_to(ROOT / "sample_data")
    shutil.copytree(sample_store, tmp_path / "fabric-store")
    program = tmp_path / "bin" / "fabricobs"
    program.parent.mkdir()
    program.write_text(
        f"#!/bin/sh\nexec {sys.executable} -c 'from fabricobs.cli import main; main()' \"$@\"\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("FABRICOBS_STORE", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("block", of_language("sh"))
def test_every_command_line_runs(
    block: Block,
    workplace: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    if block.reason:
        pytest.skip(block.reason)
    for line in block.text.replace("\\\n", " ").splitlines():
        command = re.sub(r"\s+# .*", "", line).strip()
        if command:
            name = command.split()[1] if command.startswith("fabricobs ") else ""
            assert run(command, monkeypatch) in ANSWERS.get(name, {0}), capfd.readouterr().err


def run(command: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run a command line and return its exit code: fabricobs alone in this process, for speed."""
    simple = command.startswith("fabricobs ") and not re.search(r"[|<>;&$]", command)
    if not simple:
        return subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], check=False).returncode
    monkeypatch.setattr(sys, "argv", shlex.split(command))
    with pytest.raises(SystemExit) as left:
        main()
    return int(left.value.code or 0)


@pytest.mark.parametrize("block", of_language("python"))
def test_every_line_of_python_runs(block: Block, workplace: Path) -> None:
    exec(compile(block.text, f"{block.page}:{block.line}", "exec"), {})


def test_no_command_hides_from_these_tests() -> None:
    for path in MANUAL:
        for block in blocks(path):
            assert block.language in LANGUAGES, f"{block.page}:{block.line}"
            if block.language != "sh":
                typed = [x for x in block.text.splitlines() if re.match(r"\$ |fabricobs ", x)]
                assert not typed, f"{block.page}:{block.line}: mark it as sh"


def test_commands_in_the_text_exist() -> None:
    known = dict(commands())
    options = {
        name: {option for parameter in command.params for option in parameter.opts}
        for name, command in known.items()
    }
    for path in PROSE:
        text = BLOCK.sub("", path.read_text(encoding="utf-8"))
        for typed in re.findall(r"`fabricobs ([^`]+)`", text):
            words = typed.split()
            if words[0].startswith("-"):
                continue
            name = " ".join(words[:2]) if " ".join(words[:2]) in known else words[0]
            assert name in known, f"{path.name}: fabricobs {typed}"
            named = {word.partition("=")[0] for word in words if word.startswith("--")}
            named -= {"--help"}
            assert named <= options[name] | {"--store", "--content"}, f"{path.name}: {typed}"


def test_every_command_has_an_example() -> None:
    assert EXAMPLES.keys() == dict(commands()).keys()


def test_the_pages_are_what_the_code_makes() -> None:
    stale = [path.name for path, text in pages().items() if path.read_text("utf-8") != text]
    assert stale == [], "run `make docs`"


def test_every_page_is_made_filled_or_written() -> None:
    names = {path.relative_to(ROOT).as_posix() for path in MANUAL}
    assert names == {*PAGES, *FILLED, *WRITTEN}


def test_every_link_leads_somewhere() -> None:
    for path in PROSE:
        text = BLOCK.sub("", path.read_text(encoding="utf-8"))
        for target in re.findall(r"\]\(([^)#\s]+?)(?:#[\w-]+)?\)", text):
            if "://" not in target:
                assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_only_made_blocks_are_renewed() -> None:
    page = "mine\n<!-- begin commands -->\nstale line\n<!-- end commands -->\nmine too\n"
    filled = fill(page)
    assert "stale line" not in filled
    assert filled.startswith("mine\n")
    assert filled.endswith("mine too\n")
    assert fill(filled) == filled


def test_markdown_survives_what_it_holds() -> None:
    assert table(("a", "b"), [("x|y", "z")]) == "| a | b |\n|---|---|\n| x\\|y | z |"
    assert code("```\ninner\n```").startswith("````\n")
