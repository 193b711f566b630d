"""A text in another encoding, or with a byte order mark, is read as the same text in UTF-8."""

import gzip
from pathlib import Path

import pytest

from fabricobs.formats.decompression import open_text
from fabricobs.formats.source import read_ends
from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session

TEXT = "# ethtool -S eth0\r\nNIC statistics:\r\n     rx_bytes_phy: 900719925474\r\n"
ENCODINGS = ("utf-8-sig", "utf-16", "utf-32")


def written(text: str, encoding: str) -> bytes:
    mark = b"\xfe\xff" if encoding == "utf-16-be" else b""
    return mark + text.encode(encoding)


@pytest.mark.parametrize("encoding", [*ENCODINGS, "utf-16-be"])
@pytest.mark.parametrize("packed", [False, True])
def test_the_rows_are_those_of_utf_8(tmp_path: Path, encoding: str, packed: bool) -> None:
    data = written(TEXT, encoding)
    (tmp_path / "gpu-a07").mkdir()
    (tmp_path / "gpu-a07" / "nic.txt").write_bytes(gzip.compress(data) if packed else data)
    report = ingest([tmp_path / "gpu-a07"], Store(tmp_path / "s"), Options())
    assert not report.problems
    with open_session(tmp_path / "s", "port_samples") as session:
        rows = session.sql("SELECT device, port, rx_bytes FROM port_samples").fetchall()
    assert rows == [("gpu-a07", "eth0", 900719925474)]


def test_a_piece_of_a_rotated_text_has_no_byte_order_mark(tmp_path: Path) -> None:
    data = TEXT.encode("utf-16-le")
    cut = data.index(b"\n") + 1  # where bytes look like the end of a line
    (tmp_path / "first").write_bytes(data)
    (tmp_path / "rest").write_bytes(data[cut:-1])
    assert read_ends(tmp_path / "first").decode() == TEXT
    assert read_ends(tmp_path / "rest").decode() == TEXT[TEXT.index("\n") + 1 :]


@pytest.mark.parametrize("encoding", [*ENCODINGS, "utf-16-be"])
def test_long_texts_keep_every_character(tmp_path: Path, encoding: str) -> None:
    text = "".join(f"{n} ü €  𝄞\n" for n in range(20_000))
    path = tmp_path / "x"
    path.write_bytes(written(text, encoding))
    with open_text(path) as stream:
        assert stream.read() == text.encode()


def test_what_breaks_off_in_a_character_keeps_what_came_before(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes("step 1\nstep 2".encode("utf-16")[:-1])
    assert read_ends(path).decode() == "step 1\nstep �"


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_rotated_copy_counts_once(tmp_path: Path, encoding: str) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    lines = "".join(f"iter {n}: loss 2.5, time 10.5ms, mfu 41.2%\n" for n in range(9))
    (logs / "job.log").write_bytes(lines.encode(encoding))
    ingest([logs], Store(tmp_path / "s"), Options())
    (logs / "job.log").rename(logs / "job.log.1")
    ingest([logs], Store(tmp_path / "s"), Options())
    with open_session(tmp_path / "s", "steps") as session:
        assert session.sql("SELECT count(*) FROM steps").fetchall() == [(9,)]


def test_zeros_after_the_last_line_hide_nothing(tmp_path: Path) -> None:
    (tmp_path / "gpu-a07").mkdir()
    (tmp_path / "gpu-a07" / "nic.txt").write_bytes(TEXT.encode() + b"\0" * 4096)
    (tmp_path / "gpu-a07" / "zeros").write_bytes(b"\0" * 512)
    report = ingest([tmp_path / "gpu-a07"], Store(tmp_path / "s"), Options())
    assert [outcome.rows for outcome in report.outcomes] == [1, 0]
    assert report.outcomes[1].unrecognised == "binary: mostly NUL bytes"
