"""What SQL knows of the counters that `store/tables/counters.py` declares.

A view script that says `-- Each counter of TABLE: a line with {counter}.` has such lines repeated
for every counter of that table. The same built from structs took half as much CPU time again, and
four times as much where a query needs one counter of 38.
"""

import re

from fabricobs.store.tables import TABLES

FAMILIES = "views/0_counter_families"
_EACH = re.compile(r"^-- Each counter of (\w+): a line with \{counter\}\.\n", re.MULTILINE)
_COUNTER = "{counter}"


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
    if table is None:
        return text
    counters = [column.name for column in TABLES[table[1]].columns if column.is_counter]
    lines = _EACH.sub("", text).splitlines()
    return "\n".join(
        line.replace(_COUNTER, name)
        for line in lines
        for name in (counters if _COUNTER in line else [""])
    )
