"""Places on an axis as numbers."""

from datetime import datetime
from typing import Any


def position(value: Any) -> float | None:
    """Return a place on an axis: of a time in ISO 8601 the milliseconds since 1970."""
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value).timestamp() * 1000
        except ValueError:
            return None
    return float(value) if isinstance(value, int | float) else None
