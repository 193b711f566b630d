"""The rows behind a finding: those of its query that name its culprits, in its time."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from fabricobs.diagnosis.findings import Entity, Finding
from fabricobs.report import documents
from fabricobs.store.sandbox import literal

# Columns of a query that name a part of the cluster, by the field of an entity.
_COLUMNS = {
    "rank": ("rank", "last_rank"),
    "host": ("host", "device"),
    "switch": ("switch", "device", "leaf"),
    "port": ("port", "leaf_port"),
    "nic": ("nic",),
    "job": ("job",),
}
_TIMES = ("window_start", "ts", "last_seen")


@dataclass(frozen=True, slots=True)
class EvidenceRows:
    """The rows of the query `query` that are about a finding: those for which `condition` holds.

    Where no row names a culprit, `about` holds every row and the condition is empty.
    """

    query: str
    about: pl.DataFrame
    condition: str
    of_all_time: bool = False  # the finding has a time, and no column does

    @property
    def sql(self) -> str:
        """Return the statement that gives these rows again."""
        whole = self.query.strip()
        if not self.condition:
            return whole
        return f"SELECT * FROM (\n{whole.rstrip(';')}\n)\nWHERE {self.condition};"

    def shown(self, most: int) -> pl.DataFrame:
        """Return the first rows, without the columns in which they are all null."""
        first = self.about.head(most)
        return first[[column.name for column in first if column.null_count() < len(column)]]


def evidence_rows(finding: Finding, sql: str, answer: pl.DataFrame) -> EvidenceRows:
    """Return the rows of an answer that are about a finding; only those of its time if there are.

    `sql` gave the answer.
    """
    timed = any(dtype.is_temporal() for dtype in answer.dtypes)
    for condition in _conditions(finding, answer):
        about = answer.filter(pl.sql_expr(condition))
        if not about.is_empty():
            return EvidenceRows(sql, about, condition, finding.start is not None and not timed)
    return EvidenceRows(sql, answer, "")


def cell_text(value: object) -> str:
    """Return a value as a person reads it: four digits of a number, times to the second."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return documents.number(value)
    return f"{value:%Y-%m-%d %H:%M:%S}" if isinstance(value, datetime) else str(value)


def _conditions(finding: Finding, answer: pl.DataFrame) -> Iterator[str]:
    """Yield conditions of SQL: that a row names a culprit in the steps or time, and at any."""
    tests = [_names(entity, answer) for entity in finding.entities]
    if "other_end" in answer.columns:  # a NIC has another name in each source, its cable one end
        ends = [f"{e.switch} {e.port}" for e in finding.entities if e.switch and e.port]
        tests += [f"other_end = {literal(end)}" for end in ends]
    named = " OR ".join(dict.fromkeys(f"({test})" for test in tests if test))
    if not named:
        return
    if finding.start_step is not None and {"first_step", "last_step"} <= set(answer.columns):
        during = f"last_step >= {finding.start_step}"
        if finding.end_step is not None:
            during += f" AND first_step <= {finding.end_step}"
        yield f"({named})\n  AND {during}"
    column = next((name for name in _TIMES if name in answer.columns), None)
    if column is not None and finding.start is not None:
        during = f"{column} >= {_moment(finding.start)}"
        if finding.end is not None:
            during += f" AND {column} <= {_moment(finding.end)}"
        yield f"({named})\n  AND {during}"
    yield named


def _names(entity: Entity, answer: pl.DataFrame) -> str:
    """Return the condition that a row names the entity, empty where no column could."""
    tests: list[str] = []
    for field, columns in _COLUMNS.items():
        value = getattr(entity, field)
        column = next((name for name in columns if name in answer.columns), None)
        if value is None:
            continue
        if column is not None:
            tests.append(f"{column} = {value if field == 'rank' else literal(value)}")
        elif field == "nic" and "port" in answer.columns:  # mlx5_0, or its port as mlx5_0/1
            own = literal(entity.nic or "")
            tests.append(f"(port = {own} OR starts_with(port, {own} || '/'))")
        elif field == "switch" and "uplink_group" in answer.columns:
            tests.append(f"starts_with(uplink_group, {literal(f'{value} ')})")
        elif field != "job" and not (field == "host" and entity.rank is not None):
            return ""
    return " AND ".join(tests)


def _moment(moment: datetime) -> str:
    return f"TIMESTAMP '{moment:%Y-%m-%d %H:%M:%S.%f}'"
