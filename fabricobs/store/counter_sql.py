"""What SQL knows of the counters that `store/tables/counters.py` declares.

A view script that says `-- Each counter of TABLE: a line with {counter}.` has such lines repeated
for every counter of that table; those of `queries/kept` also with {key}, {moving} and {still}.
The same built from structs took half as much CPU time again, and four times as much where a query
needs one counter of 38.
"""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fabricobs import content
from fabricobs.store.tables import TABLES

if TYPE_CHECKING:
    import duckdb

FAMILIES = "views/0_counter_families"
# The samples that kept rates are worked out from, and what names a series of them.
_KEPT: dict[str, tuple[str, tuple[str, ...]]] = {
    "port": ("named_samples", ("job", "format", "device", "port")),
    "priority": (
        "named_priority_samples",
        ("job", "format", "device", "port", "priority", "queue"),
    ),
}
_EACH = re.compile(r"^-- Each counter of (\w+): a line with \{counter\}.*\n", re.MULTILINE)


def families_script() -> str:
    """Return the macro `counter_family`: what the rise of a counter means, null for other columns.

    It selects columns: `COLUMNS(lambda c: counter_family(c) IN ('wire', 'link'))`.
    """
    counters = {c.name: c.family for t in TABLES.values() for c in t.columns if c.is_counter}
    whens = "\n".join(f"  WHEN '{name}' THEN '{family}'" for name, family in counters.items())
    return f"CREATE OR REPLACE MACRO counter_family(name) AS CASE name\n{whens}\nEND;"


def with_each_counter(text: str) -> str:
    """Return a script with its lines for each counter repeated."""
    table = _EACH.search(text)
    return text if table is None else _repeated(text, {"{counter}": _counters(table[1])})


def make_kept_rates(connection: "duckdb.DuckDBPyConnection", name: str) -> None:
    """Make the view `{name}_rates`, port's or priority's, over tables worked out once."""
    counters = _counters(f"{name}_samples")
    samples, keys = _KEPT[name]
    marks: dict[str, Sequence[str]] = {"{key}": keys, "{counter}": counters}

    def run(script: str) -> None:
        path = content.files("queries", ".sql")[f"kept/{script}"]
        text = path.read_text(encoding="utf-8").replace("{name}", name)
        text = text.replace("{samples}", samples).replace("{keys}", ", ".join(keys))
        connection.execute(_repeated(text, marks))

    run("series")
    rows = connection.execute(f"SELECT DISTINCT unnest(moving) FROM {name}_series").fetchall()
    moving = {counter for (counter,) in rows}
    marks["{moving}"] = [counter for counter in counters if counter in moving]
    marks["{still}"] = [counter for counter in counters if counter not in moving]
    run("rates")


def _counters(table: str) -> list[str]:
    return [column.name for column in TABLES[table].columns if column.is_counter]


def _repeated(text: str, marks: Mapping[str, Sequence[str]]) -> str:
    """Return the text, a line with a mark once for each of its names."""
    lines = []
    for line in _EACH.sub("", text).splitlines():
        mark = next((mark for mark in marks if mark in line), None)
        lines += [line] if mark is None else [line.replace(mark, name) for name in marks[mark]]
    return "\n".join(lines)
