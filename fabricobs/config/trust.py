"""Trust in a configuration file: one the user named, or trusted in its present content.

A `fabricobs.toml` in the current directory may have come with somebody's logs. Until the user
trusts it, the keys that the schema marks with `Reach` are left out: what they name is read,
written, sent to or run as SQL. As direnv does it, what is trusted is the path with the content; a
changed file is trusted no more.
"""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel

from fabricobs.resources import state_folder
from fabricobs.store.location import is_address

_PRIVATE = 0o700


@dataclass(frozen=True, slots=True)
class Reach:
    """Marks a key that lets a file reach further; `below`: not by a path below its own folder."""

    below: bool = False


def is_trusted(file: Path, data: bytes) -> bool:
    """Say whether the user trusts a file as it is now."""
    return _record(file, data).is_file()


def trust(file: Path) -> Path:
    """Remember that the user trusts a file as it is now; return the record, whose removal ends it.

    OSError if the file cannot be read or the record not be written.
    """
    record = _record(file, file.read_bytes())
    record.parent.mkdir(parents=True, exist_ok=True, mode=_PRIVATE)
    record.write_text(f"{file.resolve()}\n", encoding="utf-8", errors="surrogateescape")
    return record


def is_foreign(file: Path) -> bool:
    """Say whether a file belongs to another user; root's is nobody's else."""
    return file.stat().st_uid not in {os.getuid(), 0}


def reaching(document: dict[str, Any], model: type[BaseModel], folder: Path) -> list[str]:
    """Return the dotted keys of a document that reach further than its folder."""
    return [key for key, mark, value in _marked(document, model) if not _stays(mark, value, folder)]


def without(document: dict[str, Any], keys: list[str]) -> dict[str, Any]:
    """Return a document without some dotted keys."""
    kept = {}
    for name, value in document.items():
        inner = [key.partition(".")[2] for key in keys if key.startswith(f"{name}.")]
        if name not in keys:
            kept[name] = without(value, inner) if inner else value
    return kept


def _marked(
    document: dict[str, Any], model: type[BaseModel], above: str = ""
) -> Iterator[tuple[str, Reach, Any]]:
    for name, field in model.model_fields.items():
        if name not in document:
            continue
        key, value = f"{above}{name}", document[name]
        mark = next((mark for mark in field.metadata if isinstance(mark, Reach)), None)
        if mark is not None:
            yield key, mark, value
        elif isinstance(value, dict):
            for part in (field.annotation, *get_args(field.annotation)):
                if isinstance(part, type) and issubclass(part, BaseModel):
                    yield from _marked(value, part, f"{key}.")


def _stays(mark: Reach, value: Any, folder: Path) -> bool:
    if not mark.below or not isinstance(value, str) or is_address(value):
        return False
    return (folder / Path(value).expanduser()).resolve().is_relative_to(folder.resolve())


def _record(file: Path, data: bytes) -> Path:
    told = os.fsencode(file.resolve()) + b"\n" + data
    return state_folder() / "trusted" / hashlib.sha256(told).hexdigest()
