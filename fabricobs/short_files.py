"""Short files that a person writes, configuration and content: read within bounds, or refused."""

import tomllib
from pathlib import Path
from typing import Any

from fabricobs.exceptions import UserError

_MOST_BYTES = 1 << 20  # the longest definition has 30 kB


def read_short(path: Path, refused: type[UserError]) -> bytes:
    """Return what a file holds; `refused` if it is no regular file, or longer than 1 MiB."""
    if not path.is_file():
        raise refused(f"{path}: no plain file; put a copy in its place")
    if path.stat().st_size > _MOST_BYTES:
        raise refused(f"{path}: longer than {_MOST_BYTES >> 20} MiB")
    return path.read_bytes()


def decoded(path: Path, data: bytes, refused: type[UserError]) -> str:
    """Return the text of a file; `refused` if it is not UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise refused(f"{path}: not UTF-8 (byte {error.start})") from error


def parsed(path: Path, text: str, refused: type[UserError]) -> dict[str, Any]:
    """Return the document of a TOML file; `refused` if it is none, or nested too deeply."""
    try:
        return tomllib.loads(text.replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError as error:
        raise refused(f"{path}: not valid TOML: {error}") from error
    except RecursionError as error:
        raise refused(f"{path}: not valid TOML: nested too deeply") from error
