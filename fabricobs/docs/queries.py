"""The page of the queries: docs/queries.md, a table of all and the columns of each."""

import itertools

import duckdb

from fabricobs import content
from fabricobs.querying import StoredQuery, stored_queries
from fabricobs.report.markdown import code, page, table


def queries_table() -> str:
    """Return the table of queries and the questions they answer, from their headers."""
    rows = ((f"`{q.name}`", q.question) for q in stored_queries().values())
    return table(("`fabricobs query`", "answers"), rows)


def queries_page() -> str:
    """Return docs/queries.md: every query, its columns, how to read the answer."""
    return page(
        "# Queries",
        "Made from the headers of `queries/`, whose README says how to write one. Each is a single "
        "statement of DuckDB's SQL that also runs in the `duckdb` shell. Null means unknown.",
        queries_table(),
        *map(_section, stored_queries().values()),
        _configuration_checks(),
    )


def _configuration_checks() -> str:
    """Return the checks of `configuration_audit`: of whom they are read, and what is missing."""
    script = content.files("queries", ".sql")["views/0_configuration"]
    with duckdb.connect() as connection:
        connection.execute(script.read_text(encoding="utf-8"))
        rows = connection.sql("SELECT * EXCLUDE (recommended, why) FROM configuration_checks")
        cells = [tuple(cell or "-" for cell in row) for row in rows.fetchall()]
    return page(
        "## Configuration checks",
        "What `configuration_audit` reads each check from, vendor by vendor; a dash: nothing.",
        table(
            (
                "check",
                "SONiC",
                "EOS",
                "NX-OS",
                "Cumulus",
                "Junos",
                "SR Linux",
                "InfiniBand",
                "hosts",
                "not covered",
            ),
            cells,
        ),
    )


def _section(query: StoredQuery) -> str:
    return page(
        f"## {query.name}",
        query.question,
        _advice(query.sql),
        table(("column", "meaning"), query.columns),
        code(query.example, "sh"),
    )


def _advice(sql: str) -> str:
    """Return what the header says below the example: how to read the answer."""
    header = itertools.takewhile(lambda line: line.startswith("--"), sql.splitlines())
    below = itertools.dropwhile(lambda line: not line.startswith("-- example:"), header)
    return "\n".join(line.removeprefix("--").strip() for line in below if "example:" not in line)
