"""The manifest of a batch: which parts it has, their sizes and digests.

`STORE/<batch>/manifest.json` is written with the parts, before the batch is visible. A part that is
missing, cut off or changed is known by it; sizes are compared before a store is used, digests by
`fabricobs verify`. A bit flipped in a part is a wrong value to DuckDB more often than an error.
"""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import xxhash

from fabricobs.exceptions import UserError
from fabricobs.store.durable import open_own, read_own

MANIFEST = "manifest.json"
PART = ".parquet"
# Directories of pages that a watch keeps beside its report, which may lie in the store.
PAGES = ("assets", "hosts", "incidents", "jobs", "switches")
_MOST_BYTES = 1 << 20
_BLOCK_BYTES = 1 << 20


class StoreError(UserError):
    """A store that cannot be used; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part as it was written: its size in bytes and the XXH3 digest of its bytes."""

    size_bytes: int
    digest: str


def write_manifest(directory: Path) -> None:
    """Note the parts of a batch that is complete but not visible yet."""
    parts = {
        path.name: [path.stat().st_size, digest_of(path)]
        for path in sorted(directory.glob(f"*{PART}"))
    }
    text = json.dumps({"parts": parts}, indent=1)
    (directory / MANIFEST).write_text(text + "\n", encoding="utf-8")


def read_manifest(batch: Path) -> dict[str, Part] | None:
    """Return the parts by file name; None where an older release wrote no manifest.

    ValueError if it is no manifest.
    """
    try:
        document = json.loads(read_own(batch / MANIFEST, _MOST_BYTES))
        return {
            name: Part(int(size), str(digest)) for name, (size, digest) in document["parts"].items()
        }
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"{MANIFEST} is no manifest of a batch") from error


def digest_of(path: Path) -> str:
    """Return the digest of a file's bytes."""
    digest = xxhash.xxh3_128()
    with os.fdopen(open_own(path, os.O_RDONLY), "rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def batch_folders(store: Path) -> Iterator[Path]:
    """Yield the directories that may be batches, in order; symbolic links and PAGES are none."""
    for entry in sorted(os.scandir(store), key=lambda entry: entry.name):
        if entry.name in PAGES or entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield store / entry.name


def wrong_sizes(batch: Path) -> list[str]:
    """Return what is wrong with the parts of a batch, as their names and sizes show it."""
    try:
        parts = [entry for entry in os.scandir(batch) if entry.name.endswith(PART)]
        links = [f"{batch.name}/{e.name} is a symbolic link" for e in parts if e.is_symlink()]
        noted = read_manifest(batch)
        if noted is None or links:
            return links
        found = {entry.name: entry.stat().st_size for entry in parts}
    except FileNotFoundError:
        return []  # a writer has replaced the batch meanwhile
    except ValueError as error:
        return [f"{batch.name}: {error}"]
    wrong = [f"{batch.name}/{name} is missing" for name in noted if name not in found]
    for name, size in found.items():
        if name not in noted:
            wrong.append(f"{batch.name}/{name} is not in the manifest of its batch")
        elif size != noted[name].size_bytes:
            expected = noted[name].size_bytes
            wrong.append(f"{batch.name}/{name} has {size:,} bytes, {expected:,} were written")
    return wrong if batch.is_dir() else []


def wrong_digests(batch: Path) -> list[str]:
    """Return which parts of a batch hold other bytes than were written; reads all of them."""
    try:
        noted = read_manifest(batch) or {}
    except ValueError:
        return []  # told with the sizes, as is a part that is missing
    wrong = []
    for name, part in noted.items():
        with suppress(FileNotFoundError):
            if digest_of(batch / name) != part.digest:
                wrong.append(f"{batch.name}/{name} holds other bytes than were written")
    return wrong


def refuse_damaged(store: Path) -> None:
    """Raise StoreError if a part of the store is missing or has another size than was written."""
    for batch in batch_folders(store):
        for fault in wrong_sizes(batch):
            refuse(store, fault)


def refuse(store: Path, fault: str) -> NoReturn:
    """Raise the StoreError that names a damaged part and what mends it."""
    raise StoreError(f"store {store}: {fault}; run `fabricobs verify --store {store} --repair`")
