"""docs/tables.md: every table and column with type, unit and meaning, and the derived views."""

import tempfile
from pathlib import Path

from fabricobs.report.markdown import page, table
from fabricobs.store.parts import Store
from fabricobs.store.session import columns_by_name, open_session
from fabricobs.store.tables import TABLES, Table
from fabricobs.store.views import derived


def tables_page() -> str:
    """Return docs/tables.md."""
    return page(
        "# Tables",
        "Made from `fabricobs/store/tables/` and `queries/views/`. Times are UTC. Counters are "
        "totals unless `counter_info` says `delta`. What a log does not tell is null.",
        *map(_table, TABLES.values()),
        "# Views",
        "Derived from the tables when they are asked; `fabricobs schema --views` prints their SQL.",
        *_views(),
    )


def _table(described: Table) -> str:
    rows = [(c.name, c.type, c.unit, c.meaning) for c in described.columns]
    return page(
        f"## {described.name}",
        f"A row is {described.row}. From: {described.source}.",
        table(("column", "type", "unit", "meaning"), rows),
    )


def _views() -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "store")
        store.create()
        with open_session(store.path, keep=True) as connection:
            columns = columns_by_name(connection)
    return [
        page(
            f"## {name}",
            said,
            "Columns: " + ", ".join(f"`{column}`" for column, _ in columns[name]) + ".",
        )
        for name, said in sorted(derived().items())
    ]
