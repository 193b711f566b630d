"""The tables of the store as Arrow schemas."""

from functools import cache

import pyarrow as pa

from fabricobs.store.tables import TABLES, Type

_ARROW: dict[Type, pa.DataType] = {
    "VARCHAR": pa.string(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "TIMESTAMP": pa.timestamp("us"),
    "MAP(VARCHAR, BIGINT)": pa.map_(pa.string(), pa.int64()),
}


@cache
def coded_schema(table: str) -> pa.Schema:
    """Return the schema of rows on their way to Parquet: texts as codes of a dictionary."""
    coded = pa.dictionary(pa.int32(), pa.string())
    return pa.schema(
        [
            field.with_type(coded) if field.type == pa.string() else field
            for field in table_schema(table)
        ]
    )


@cache
def table_schema(table: str) -> pa.Schema:
    """Return the Arrow schema of a table, all columns nullable."""
    return pa.schema([(column.name, _ARROW[column.type]) for column in TABLES[table].columns])


@cache
def empty_table(table: str) -> pa.Table:
    """Return a table without rows."""
    schema = table_schema(table)
    return pa.Table.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)
