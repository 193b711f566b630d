"""Kept machine code and scripts are loaded only from where nobody else can have written them."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import xxhash

from fabricobs import cache_files

CODE = b"machine code"
SOURCES = Path(__file__).parent


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    def places(_: Path) -> Iterator[Path]:
        yield tmp_path / "cache" / "fabricobs"

    monkeypatch.setattr(cache_files, "_places", places)
    monkeypatch.setattr(cache_files, "_warn_once", cache_files._warn_once.__wrapped__)
    cache_files.keep("kernel.o", CODE, SOURCES)
    return tmp_path / "cache" / "fabricobs"


def test_it_is_kept_for_this_user_alone(place: Path) -> None:
    assert cache_files.kept("kernel.o", SOURCES) == CODE
    assert place.stat().st_mode & 0o777 == 0o700
    assert (place / "kernel.o").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("part", ["kernel.o", ".", ".."])
def test_what_others_can_write_is_not_loaded(
    place: Path, part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for mode in (0o777, 0o775):
        (place / part).chmod(mode)
        assert cache_files.kept("kernel.o", SOURCES) is None
        assert "is not loaded: another user" in capsys.readouterr().err


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("part", ["kernel.o", ".", ".."])
def test_what_another_user_owns_is_not_loaded(place: Path, part: str) -> None:
    os.chown(place / part, 12345, 12345)
    assert cache_files.kept("kernel.o", SOURCES) is None


def test_nothing_is_kept_where_others_can_write(place: Path) -> None:
    (place / "kernel.o").unlink()
    place.chmod(0o777)
    cache_files.keep("kernel.o", CODE, SOURCES)
    assert list(place.iterdir()) == []


def test_a_link_counts_as_what_it_leads_to(place: Path, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs").chmod(0o777)
    data = xxhash.xxh3_128_hexdigest(CODE).encode() + b"\n" + CODE
    (tmp_path / "theirs" / "kernel.o").write_bytes(data)
    (place / "kernel.o").unlink()
    (place / "kernel.o").symlink_to(tmp_path / "theirs" / "kernel.o")
    assert cache_files.kept("kernel.o", SOURCES) is None


def test_a_cut_file_is_made_anew(place: Path) -> None:
    (place / "kernel.o").write_bytes(b"")
    assert cache_files.kept("kernel.o", SOURCES) is None
