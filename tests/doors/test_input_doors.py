"""An ingest reads what is below the directories given: no link or pipe leads it elsewhere."""

import os
import socket
from pathlib import Path

import pytest

from fabricobs.formats.private_files import is_private
from fabricobs.ingestion import ingest
from fabricobs.inputs import IngestReport, LeftOut, Options, discover
from fabricobs.store.parts import Store
from tests.conftest import Run


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n", encoding="utf-8")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "b.txt").write_text("two\n", encoding="utf-8")
    return folder


def walked(logs: Path, *, follow: bool = False) -> tuple[list[str], list[str]]:
    """Return the files found below a directory, and what is said of the others."""
    left_out = LeftOut()
    found = discover([logs], logs / "store", follow=follow, left_out=left_out)
    return [file.below for file in found], list(left_out.lines())


def test_links_that_lead_outside_are_followed_only_if_asked(logs: Path) -> None:
    (logs / "file.txt").symlink_to(logs.parent / "outside" / "b.txt")
    (logs / "folder").symlink_to(logs.parent / "outside")
    (logs / "beside").symlink_to(logs.parent / "logs-of-others")
    (logs.parent / "logs-of-others").mkdir()
    told = ["Not read: 3 symbolic links out of the input; --follow follows them."]
    assert walked(logs) == (["a.txt"], told)
    assert walked(logs, follow=True) == (["a.txt", "file.txt", "folder/b.txt"], [])


def test_links_inside_are_followed_and_loops_end(logs: Path) -> None:
    (logs / "latest.txt").symlink_to("a.txt")
    (logs / "loop").symlink_to(".")
    (logs / "sub").mkdir()
    (logs / "sub" / "up").symlink_to("..")
    assert walked(logs) == (["a.txt", "latest.txt"], [])
    (logs.parent / "outside" / "back").symlink_to(logs)
    (logs / "out").symlink_to(logs.parent / "outside")
    found, _ = walked(logs, follow=True)
    assert "out/b.txt" in found
    assert len(found) < 20


def test_special_files_are_never_opened(logs: Path, fabricobs: Run) -> None:
    os.mkfifo(logs / "pipe.log")
    (logs / "link.log").symlink_to("pipe.log")
    (logs / "kmsg").write_text("x", encoding="utf-8")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(logs / "s"))
        assert walked(logs) == (["a.txt"], ["Not read: 4 pipes, sockets or devices."])
    told = fabricobs("ingest", logs / "pipe.log", "--store", logs.parent / "s", timeout=60)
    assert told.returncode == 3
    assert "a pipe, socket or device" in told.stderr
    report = ingest([logs / "pipe.log"], Store(logs.parent / "s"), Options())
    assert (report.outcomes, report.left_out.special) == ([], 1)


def test_private_files_are_left_alone(logs: Path) -> None:
    (logs / "proc" / "12").mkdir(parents=True)
    for name in ("proc/12/environ", "proc/12/cmdline", "id_rsa", "server.pem", "Site.KEY", ".env"):
        (logs / name).write_text("SECRET=1\n", encoding="utf-8")
    (logs / "proc" / "cmdline").write_text("root=/dev/sda\n", encoding="utf-8")
    (logs / "innocent.log").symlink_to("id_rsa")
    assert walked(logs) == (
        ["a.txt", "proc/cmdline"],
        ["Not read: 6 private files by their names (keys, environments)."],
    )


@pytest.mark.parametrize("name", ["keys.log", "environment.txt", "env", "cmdline", "keyframes.csv"])
def test_other_names_are_read(name: str) -> None:
    assert not is_private(Path("/logs") / name)


def test_the_account_tells_what_was_left_out(logs: Path, fabricobs: Run) -> None:
    (logs / "log").symlink_to(logs.parent / "outside" / "b.txt")
    told = fabricobs("ingest", logs, "--store", logs.parent / "s")
    assert "Not read: 1 symbolic links out of the input" in told.stdout
    assert IngestReport().left_out == LeftOut()
