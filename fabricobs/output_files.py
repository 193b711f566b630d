"""Files written whole: their name shows the old content or all of the new, never a part."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4


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
