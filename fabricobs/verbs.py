"""What the verbs share: options, and how a mistake of the user ends one."""

import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

UNKNOWN = 3

StoreOption = Annotated[
    Path, typer.Option("--store", envvar="FABRICOBS_STORE", help="Directory of the store.")
]
ContentOption = Annotated[
    list[Path] | None,
    typer.Option("--content", help="Folder with your own ingest/, queries/ and models/."),
]
DEFAULT_STORE = Path("fabric-store")


def require_store(store: Path) -> None:
    """Fail unless there is a store."""
    from fabricobs.store.session import is_store

    if not is_store(store):
        fail(f"{store}: no store here; make one with `fabricobs ingest LOGS --store {store}`")


def fail(text: str) -> NoReturn:
    """Print what is wrong and end as unknown."""
    print(f"fabricobs: {text}", file=sys.stderr)
    raise typer.Exit(UNKNOWN)
