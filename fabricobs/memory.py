"""How often Python looks for cycles of objects."""

import gc


def collect_seldom() -> None:
    """Collect every hundred thousand objects: rows and definitions are many and no cycles."""
    gc.set_threshold(100_000)
