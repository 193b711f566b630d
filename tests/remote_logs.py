"""Logs in the object store of a test, and their rows as if they lay in a directory."""

import os
import re
from pathlib import Path

from small_store import rows_of

from fabricobs.store.location import place_of
from fabricobs.store.objects import Objects
from fabricobs.store.storage import storage_of


def bucket_of(address: str) -> tuple[Objects, str]:
    bucket, _, key = address.removeprefix("s3://").partition("/")
    found = storage_of(place_of(Path(f"s3://{bucket}")))
    assert isinstance(found, Objects)
    return found, key


def put(folder: Path, address: str, pattern: str = "*") -> None:
    """Put the files of a folder below an address."""
    import obstore

    bucket, prefix = bucket_of(address)
    for path in folder.rglob(pattern):
        if path.is_file():
            obstore.put(bucket._objects, f"{prefix}/{path.relative_to(folder)}", path)


def upload(folder: Path, address: str) -> None:
    """Put the files of a folder below an address, and give them the times of their objects."""
    put(folder, address)
    bucket, prefix = bucket_of(address)
    for each in bucket.listed(prefix):
        changed = int(each["last_modified"].timestamp())
        os.utime(folder / each["path"].removeprefix(f"{prefix}/"), (changed, changed))


def rows_below(store: Path, root: str) -> dict[str, list[str]]:
    """Return the rows of a store as if the input were called `logs`."""
    found = {t: [row.replace(root, "logs") for row in rows] for t, rows in rows_of(store).items()}
    # An archive of no known device is one of its own: its id has the whole path.
    unknown = re.compile(r"^\('\w+'(?=.*'unknown:)")
    return found | {"files": sorted(unknown.sub("('id'", row) for row in found["files"])}
