"""Files written whole: their name shows the old content or all of the new, never a part."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from fabricobs.exceptions import UserError


def check_folder(option: str, path: Path | None) -> None:
    """Raise UserError unless files can be written into the folder, which need not exist yet."""
    if path is None:
        return
    place = path.absolute()
    while not place.exists():
        place = place.parent
    if not place.is_dir():
        raise UserError(f"{option} {path}: {place} is no folder")
    if not os.access(place, os.W_OK):
        raise UserError(f"{option} {path}: cannot be written there")


def check_target(option: str, path: Path | None) -> None:
    """Raise UserError unless a file can be written there, in a folder that exists."""
    if path is None:
        return
    folder = path.absolute().parent
    if not folder.is_dir():
        raise UserError(f"{option} {path}: there is no folder {path.parent}; make it first")
    if path.is_dir():
        raise UserError(f"{option} {path}: is a folder; name a file")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise UserError(f"{option} {path}: cannot be written there")


@contextmanager
def replacing(out: Path) -> Iterator[Path]:
    """Give a file beside `out` to write, which takes its place once the block ends well."""
    unfinished = out.with_name(f".{out.name}.{uuid4().hex}")
    try:
        yield unfinished
        unfinished.replace(out)
    finally:
        unfinished.unlink(missing_ok=True)


def write_whole(text: str, out: Path) -> None:
    """Write a text to `out`, all or nothing."""
    with replacing(out) as unfinished:
        unfinished.write_text(text, encoding="utf-8", errors="replace")
