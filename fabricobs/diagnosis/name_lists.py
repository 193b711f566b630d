"""Lists of names within a sentence. It loads no data package: an ingest of nothing new uses it."""

from collections.abc import Sequence


def at_most(names: Sequence[str], most: int) -> str:
    """Names within a sentence, and how many more there are than `most`."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return enumerated(names)


def enumerated(names: Sequence[str]) -> str:
    """Names within a sentence: a; a and b; a, b and c."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]])) if names else ""
