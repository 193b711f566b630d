"""Where a store lies: a directory, or an address `s3://bucket/prefix` and its directory here.

A store in an object store has a directory in the user's cache on each machine that uses it. The
name of that directory is the address, so that everything below the options handles one kind of
path. It holds copies of parts, and may be deleted at any time that nobody uses it.
"""

import os
import re
from pathlib import Path, PurePath
from urllib.parse import quote, unquote

from fabricobs.exceptions import UserError

# pathlib makes one slash of two.
_ADDRESS = re.compile(r"s3:/+([^/]+(?:/.*)?)")
_QUOTED = quote("s3://", safe="")
_LONGEST_NAME = 255


def is_address(location: str | PurePath) -> bool:
    """Say whether a text, or the path that was made of it, is an address of an object store."""
    return as_address(location) is not None


def as_address(location: str | PurePath) -> str | None:
    """Return the address that a text or path is, with both slashes; None for a file's path."""
    found = _ADDRESS.fullmatch(str(location))
    return None if found is None else f"s3://{found[1].strip('/')}"


def place_of(location: Path) -> Path:
    """Return the directory in which this machine works on a store; UserError for a long address."""
    address = as_address(location)
    if address is None:
        return location
    name = quote(address, safe="")
    if len(name) > _LONGEST_NAME:
        raise UserError(f"{address}: too long; use a shorter prefix")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache.absolute() / "fabricobs" / "stores" / name


def address_of(place: Path) -> str | None:
    """Return the address of the store that a directory is for; None if it is the store itself."""
    return unquote(place.name) if place.name.startswith(_QUOTED) else None


def shown(place: Path) -> str:
    """Return a store as the user names it."""
    return address_of(place) or str(place)
