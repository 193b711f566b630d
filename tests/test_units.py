"""A name says its unit: each unit has one suffix, in all tables and queries."""

import re

from fabricobs.querying import stored_queries
from fabricobs.store.tables import TABLES

# `_gbps` is Gb/s as switches print it; GB/s has a suffix that nobody takes for it.
SUFFIXES = {
    "GB/s": "_gbytes_per_s",
    "Gb/s": "_gbps",
    "Mb/s": "_mbps",
    "ms": "_ms",
    "us": "_us",
    "s": "_seconds",
    "%": "_percent",
    "1/s": "_per_second",
    "dBm": "_dbm",
    "mA": "_ma",
    "V": "_v",
    "degrees C": "_c",
}
UNITS = {suffix: unit for unit, suffix in SUFFIXES.items()}
SUFFIX = re.compile(rf"({'|'.join(UNITS)})$")


def unit_in(name: str) -> str | None:
    """Return the unit that the suffix of a name stands for."""
    suffix = SUFFIX.search(name)
    return UNITS[suffix[1]] if suffix else None


def test_columns_of_tables_say_their_unit() -> None:
    columns = {(t.name, c.name): c.unit for t in TABLES.values() for c in t.columns}
    given = {key: unit if unit in SUFFIXES else None for key, unit in columns.items()}
    assert given == {key: unit_in(key[1]) for key in columns}


def test_columns_of_queries_say_their_unit() -> None:
    columns = {(q.name, name): text for q in stored_queries().values() for name, text in q.columns}
    given = {
        key: [unit for unit in SUFFIXES if re.search(rf", {re.escape(unit)}(?:$|[;,])", text)]
        for key, text in columns.items()
    }
    assert given == {key: list(filter(None, [unit_in(key[1])])) for key in columns}
