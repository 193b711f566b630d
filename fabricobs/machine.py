"""What this process may use of the machine, and how often it looks for cycles of objects."""

import gc
import os


def cores() -> int:
    """Return the cores a scheduler lets this process have, not all that the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def collect_seldom() -> None:
    """Collect every hundred thousand objects: rows and definitions are many and no cycles."""
    gc.set_threshold(100_000)
