"""Values as JSON can say them."""

import math
from typing import Any


def as_json(value: Any) -> Any:
    """Return a value that JSON can say: NaN and infinity, which it cannot, are null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list | tuple):
        return [as_json(each) for each in value]
    if isinstance(value, dict):
        return {str(key): as_json(each) for key, each in value.items()}
    return value
