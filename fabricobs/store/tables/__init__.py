"""The tables of the store and their columns: the one place where they are listed.

Names and meanings are fixed; `fabricobs schema` and the manual are made from these modules. Times
are UTC microseconds, null where the source has none. Counters are cumulative unless the format
says `delta` in `counter_info`; a 64-bit value of 2^63 and above is kept as the negative number it
is (a switch printed -40 as 18446744073709551576).
"""

from fabricobs.store.tables.columns import Column, Family, Table, Type
from fabricobs.store.tables.communication import COMMUNICATION
from fabricobs.store.tables.counters import PORT_COUNTERS, PRIORITY_COUNTERS
from fabricobs.store.tables.hosts import HOSTS
from fabricobs.store.tables.judgement import JUDGEMENT
from fabricobs.store.tables.ports import PORTS
from fabricobs.store.tables.reading import READING
from fabricobs.store.tables.training import TRAINING

__all__ = ["PORT_COUNTERS", "PRIORITY_COUNTERS", "TABLES", "Column", "Table", "Type", "counters_of"]

_GROUPS = (READING, COMMUNICATION, TRAINING, PORTS, HOSTS, JUDGEMENT)

TABLES: dict[str, Table] = {table.name: table for group in _GROUPS for table in group}


def counters_of(family: Family) -> tuple[str, ...]:
    """Return the names of the counters of ports whose rise means this."""
    return tuple(column.name for column in PORT_COUNTERS if column.family == family)
