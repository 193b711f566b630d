"""Reads what a training cluster leaves behind and says why the run is slow.

In Python: `fabricobs.ingest("logs", "fabric-store")`, then `s = fabricobs.open("fabric-store")`
and `s.diagnose()`, `s.sql(...).pl()`, `s.chart("uplink_balance")`. A name is imported when it is
used first.
"""

from typing import TYPE_CHECKING, Any

from fabricobs.exceptions import UserError

if TYPE_CHECKING:
    from fabricobs.api import ingest, simulate, watch
    from fabricobs.api import open_store as open

__all__ = ["UserError", "__version__", "ingest", "open", "simulate", "watch"]
__version__ = "0.1.0"

_IN_API = {"ingest": "ingest", "open": "open_store", "simulate": "simulate", "watch": "watch"}


def __dir__() -> list[str]:
    # What is imported later stands in `help(fabricobs)`, too.
    return [*globals(), *_IN_API]


def __getattr__(name: str) -> Any:
    if name not in _IN_API:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from fabricobs import api

    return getattr(api, _IN_API[name])
