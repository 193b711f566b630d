"""Where the content lives: beside the package in a checkout, inside it in a wheel.

Content is what a network engineer reads and edits without Python: `ingest/`, `queries/` and
`models/`. A user adds folders of the same three names with `--content DIR`; a file of the same
name there takes the place of the shipped one.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal

from fabricobs.exceptions import UserError
from fabricobs.short_files import decoded, read_short

Kind = Literal["ingest", "queries", "models", "sample_data"]

_PACKAGE = Path(__file__).parent


class ContentError(UserError):
    """A content file that cannot be used; the text names file, key and remedy."""


def shipped(kind: Kind) -> Path:
    """Return the folder of `kind` that came with fabricobs."""
    packaged = _PACKAGE / "_content" / kind
    return packaged if packaged.is_dir() else _PACKAGE.parent / kind


def files(kind: Kind, suffix: str, extra: Sequence[Path] = ()) -> dict[str, Path]:
    """Map each content name (path below its folder, no suffix) to its file, in name order.

    `extra` are the user's content folders, later ones winning; a folder without a sub-folder
    of this kind adds nothing.
    """
    found = dict(_shipped_files(kind, suffix))
    for directory in extra:
        found.update(_named(directory / kind, suffix))
    return dict(sorted(found.items()))


def read_text(path: Path) -> str:
    """Return the text of a content file; ContentError if it is not UTF-8 or no short plain file.

    A symbolic link would show, in the message about it, what another file holds.
    """
    if path.is_symlink():
        raise ContentError(f"{path}: no plain file; put a copy in its place")
    return decoded(path, read_short(path, ContentError), ContentError)


# A diagnosis asks ten times; what was shipped stays as it is.
@cache
def _shipped_files(kind: Kind, suffix: str) -> Mapping[str, Path]:
    return dict(_named(shipped(kind), suffix))


def _named(folder: Path, suffix: str) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.rglob(f"*{suffix}")):
        yield path.relative_to(folder).with_suffix("").as_posix(), path
