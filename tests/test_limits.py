"""Limits: what ends a reading that takes too long, and what keeps expressions from taking long."""

import lzma
import re
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from fabricobs.formats import budget
from fabricobs.formats.budget import cpu_limit
from fabricobs.formats.decompression import SourceError, open_plain
from fabricobs.formats.limits import LIMITS, described
from fabricobs.formats.logs.prefixes import labels_of, strip_prefix
from fabricobs.formats.recognition.catalogue import load_catalogue
from fabricobs.formats.recognition.detection import Detector
from fabricobs.formats.source import read_ends

_ANCHORED = [
    format_
    for format_ in load_catalogue().formats.values()
    if format_.definition.anchor is not None
]
# What an anchor may begin with, or holds, again and again.
_PUMPS = [
    "1", " ", "a", ":", "[", "a:1:1 ", "1:1:1 [1] ", "gpu1:17:17 [2] x:1 (", "[INFO] [", "I0101 ",
    "[I1 1 1 ", "-:1:1 a", "NCCL ",
]  # fmt: skip
_LONG = 30_000


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(budget, "LIMITS", replace(LIMITS, cpu_s=0.2, cpu_s_per_mib=0.0))
    path = tmp_path / "file"
    path.write_bytes(b"")
    return path


# The timer ends what a reader does; a test is none, and takes the name of one.
_AS_A_READER = {"__name__": "fabricobs.formats.readers.of_a_test"}


def test_one_search_without_end_is_ended(short: Path) -> None:
    search = "import re\nre.compile('(?:a+)+b').search('a' * 60)"
    with pytest.raises(SourceError, match=r"more than 0\.2 s of CPU time"), cpu_limit(short):
        exec(search, dict(_AS_A_READER))


def test_what_is_no_reader_is_not_interrupted(short: Path) -> None:
    began = time.thread_time()
    with cpu_limit(short):
        while time.thread_time() - began < 0.4:
            pass  # such as a part being written


def test_a_thread_looks_for_itself(short: Path) -> None:
    raised: list[SourceError] = []

    def read() -> None:
        try:
            with cpu_limit(short):
                while True:
                    budget.check()
        except SourceError as error:
            raised.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    assert len(raised) == 1


def test_what_is_done_once_for_all_files_does_not_count(short: Path) -> None:
    with cpu_limit(short):
        began = time.thread_time()
        with budget.uncounted():
            while time.thread_time() - began < 0.3:
                pass
        budget.check()


@pytest.mark.parametrize("format_", _ANCHORED, ids=lambda format_: format_.name)
def test_an_anchor_is_found_or_not_in_one_pass(format_: object) -> None:
    anchor = re.compile(format_.definition.anchor)  # type: ignore[attr-defined]
    for pump in _PUMPS:
        line = (pump * _LONG)[:_LONG]
        began = time.thread_time()
        assert not list(anchor.finditer(line))
        # As many steps a letter as there are letters would take 10 s; a few hundred take 0.1 s.
        assert time.thread_time() - began < 1.0, pump


def test_prefixes_are_looked_for_in_the_beginning() -> None:
    for pump in ("a", "1", "a-", "[1", " ", "rank", "a.1"):
        line = (pump * _LONG)[:_LONG]
        began = time.thread_time()
        assert not list(strip_prefix(line))
        assert labels_of(f"{line}\n" * 3) == ()
        assert time.thread_time() - began < 1.0, pump


def test_parts_far_apart_are_looked_for_one_after_the_other() -> None:
    detector = Detector(r'"interfaces"\s*:[\s\S]*"inOctets"\s*:')
    assert detector.found_in('{"interfaces": {"Et1": {"inOctets": 1}}}')
    assert not detector.found_in('{"inOctets": 1, "interfaces": {}}')
    began = time.thread_time()
    assert not detector.found_in('{"interfaces": {}, "inOctets"' * 20_000)
    assert time.thread_time() - began < 1.0


def test_xz_streams_one_after_another_are_one_text(tmp_path: Path) -> None:
    path = tmp_path / "log.xz"
    path.write_bytes(lzma.compress(b"one\n") + bytes(8) + lzma.compress(b"two\n"))
    with open_plain(path) as stream:
        assert stream.read() == b"one\ntwo\n"


def test_a_file_with_a_small_hole_is_read(tmp_path: Path) -> None:
    path = tmp_path / "crashed.log"
    with path.open("wb") as file:
        file.write(b"a line\n")
        file.seek(1 << 20)
        file.write(b"another\n")
    assert read_ends(path).startswith(b"a line\n")


def test_every_limit_is_described() -> None:
    for name, value, meaning, measured in described():
        assert all((name, value, meaning, measured))
