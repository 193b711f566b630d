"""Why a file could not be read: what is in the file, or an error of fabricobs."""

from dataclasses import dataclass

from fabricobs.exceptions import unexpected
from fabricobs.formats.decompression import SourceError

# Stands in the problem of every file that an error of fabricobs is to blame for.
OWN_ERROR = "an error of fabricobs, please report it"


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason for a person; `unexpected` if fabricobs is to blame."""

    reason: str
    unexpected: bool = False


def failure_of(error: Exception) -> Failure:
    """Return why a file could not be read, given what its reader raised."""
    if isinstance(error, SourceError):
        return Failure(str(error))
    if isinstance(error, OSError):
        return Failure(f"cannot be read: {error.strerror or error}")
    if isinstance(error, RecursionError):
        return Failure("cannot be read: it is nested too deeply")
    if isinstance(error, MemoryError):
        return Failure("cannot be read: it needs more memory than there is")
    return Failure(f"{unexpected(error)} ({OWN_ERROR})", True)
