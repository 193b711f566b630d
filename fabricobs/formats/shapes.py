"""A line as it is kept in an account: cut, without secrets, and its shape without numbers."""

import re

_MOST_TEXT = 500
_SHAPE_LENGTH = 100
_NUMBERS = re.compile(r"(?:0x)?[0-9a-f]*\d[0-9a-f]*(?:[.,:]\d+)*", re.IGNORECASE)
# An unread line may be part of a dump of the environment.
_SECRET = re.compile(
    r"""((?:api_?key|[_-]key|token|secret|passw(?:or)?d|passphrase|credentials?)(?:_\w+)?["']?\s*[=:]\s*["']?)[^\s"',;]+""",
    re.IGNORECASE,
)


def sampled(text: str) -> str:
    """Return a line as it is kept: cut, and the values of what is named like a secret left out."""
    return _SECRET.sub(r"\1***", text)[:_MOST_TEXT]


def shape_of(text: str) -> str:
    """Return a line with numbers as #, so that lines of one kind are one shape."""
    return _NUMBERS.sub("#", " ".join(sampled(text).split()))[:_SHAPE_LENGTH]
