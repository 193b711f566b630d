"""Reads what a training cluster leaves behind and says why the run is slow.

In Python: `import fabricobs; s = fabricobs.open("fabric-store")`, then `s.sql(...).pl()`,
`s.findings()`, `s.chart("uplink_balance")`. What answers is imported when it is asked.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fabricobs.exceptions import UserError

if TYPE_CHECKING:
    from fabricobs.api import OpenStore

__all__ = ["UserError", "__version__", "open"]
__version__ = "0.1.0"


def open(
    store: str | Path | None = None,
    content: Sequence[str | Path] = (),
    config: str | Path | None = None,
    allow_files: Sequence[str | Path] = (),
) -> "OpenStore":
    """Return a store to ask, judge and draw; UserError if none is there.

    `content` are folders with your own `ingest/`, `queries/` and `models/`; later ones win. What is
    not given is as the configuration says, which is found as for `fabricobs` itself. SQL reads the
    store and the directories `allow_files`, no other file.
    """
    from fabricobs.api import open_store

    return open_store(store, content, config, allow_files)
