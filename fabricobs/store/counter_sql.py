"""What SQL knows of the counters that `store/tables/counters.py` declares.

A view script that says `-- Each counter of TABLE: a line with {counter}.` has such lines repeated
for every counter of that table, lines with {moving} for those that move, {still} for the others.
The same built from structs took half as much CPU time again, and four times as much where a query
needs one counter of 38.
"""

import re
from collections.abc import Collection
from typing import TYPE_CHECKING

from fabricobs import content
from fabricobs.store.tables import TABLES

if TYPE_CHECKING:
    import duckdb

FAMILIES = "views/0_counter_families"
_EACH = re.compile(r"^-- Each counter of (\w+): a line with \{counter\}.*\n", re.MULTILINE)


def families_script() -> str:
    """Return the macro `counter_family`: what the rise of a counter means, null for other columns.

    It selects columns: `COLUMNS(lambda c: counter_family(c) IN ('wire', 'link'))`.
    """
    counters = {c.name: c.family for t in TABLES.values() for c in t.columns if c.is_counter}
    whens = "\n".join(f"  WHEN '{name}' THEN '{family}'" for name, family in counters.items())
    return f"CREATE OR REPLACE MACRO counter_family(name) AS CASE name\n{whens}\nEND;"


def with_each_counter(text: str, moving: Collection[str] = ()) -> str:
    """Return a script with its lines for each counter repeated; `moving` are those that move."""
    table = _EACH.search(text)
    if table is None:
        return text
    counters = [column.name for column in TABLES[table[1]].columns if column.is_counter]
    repeated = {
        "{counter}": counters,
        "{moving}": [name for name in counters if name in moving],
        "{still}": [name for name in counters if name not in moving],
    }
    lines = []
    for line in _EACH.sub("", text).splitlines():
        mark = next((mark for mark in repeated if mark in line), None)
        lines += [line] if mark is None else [line.replace(mark, name) for name in repeated[mark]]
    return "\n".join(lines)


def make_kept_rates(connection: "duckdb.DuckDBPyConnection", name: str) -> None:
    """Make the view `{name}_rates`, port's or priority's, over tables worked out once."""
    connection.execute(with_each_counter(_kept_script(f"{name}_series")))
    rows = connection.execute(f"SELECT DISTINCT unnest(moving) FROM {name}_series").fetchall()
    moving = {counter for (counter,) in rows}
    connection.execute(with_each_counter(_kept_script(f"{name}_rates"), moving))


def _kept_script(name: str) -> str:
    return content.files("queries", ".sql")[f"kept/{name}"].read_text(encoding="utf-8")
