"""What this process may use of the machine, and where it keeps what it remembers of a user."""

import gc
import os
from pathlib import Path


def cores() -> int:
    """Return the cores a scheduler lets this process have, not all that the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def raise_gc_threshold() -> None:
    """Collect every hundred thousand objects: rows and definitions are many and no cycles."""
    gc.set_threshold(100_000)


def state_folder() -> Path:
    """Return where the user's state is kept, as the XDG base directory specification 0.8 says."""
    given = os.environ.get("XDG_STATE_HOME", "")
    state = Path(given) if Path(given).is_absolute() else Path.home() / ".local" / "state"
    return state / "fabricobs"
