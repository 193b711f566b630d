"""The rows behind a finding: those of its query that name its culprits, in its time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import polars as pl

from fabricobs.diagnosis.findings import Entity, Finding
from fabricobs.report import documents
from fabricobs.store.sandbox import literal

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# What counters call a NIC, by host and RDMA device: its ports and its net device.
Aliases = Mapping[tuple[str, str], Sequence[str]]
NIC_NAMES = "SELECT host, nic, list(DISTINCT name ORDER BY name) FROM nic_names GROUP BY host, nic"

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

    Where no row names a culprit, `about` holds every row and the condition is empty. The first
    `before` rows are of the last whole window before the finding, to compare with.
    """

    query: str
    about: pl.DataFrame
    condition: str
    of_all_time: bool = False  # the finding has a time, and no column does
    before: int = 0

    @property
    def sql(self) -> str:
        """Return the statement that gives these rows again."""
        whole = self.query.strip()
        if not self.condition:
            return whole
        return f"SELECT * FROM (\n{whole.rstrip(';')}\n)\nWHERE {self.condition};"

    def shown(self, most: int) -> pl.DataFrame:
        """Return the first rows, those before and since alike; no column in which all are null."""
        least = min(self.before, max(most // 2, most - (len(self.about) - self.before)))
        first = pl.concat([self.about.head(least), self.about.slice(self.before, most - least)])
        return first[[column.name for column in first if column.null_count() < len(column)]]


def nic_aliases(connection: "DuckDBPyConnection") -> Aliases:
    """Return what the counters of a session call each NIC."""
    return {(host, nic): names for host, nic, names in connection.execute(NIC_NAMES).fetchall()}


def evidence_rows(
    finding: Finding, sql: str, answer: pl.DataFrame, aliases: Aliases | None = None
) -> EvidenceRows:
    """Return the rows of an answer that are about a finding; only those of its time if there are.

    `sql` gave the answer. In windows of time, those of the last window before it stand first.
    """
    timed = any(dtype.is_temporal() for dtype in answer.dtypes)
    for named, during in _conditions(finding, answer, aliases or {}):
        about = answer.filter(pl.sql_expr(f"({named}) AND {during}" if during else named))
        if about.is_empty():
            continue
        if not during:
            return EvidenceRows(sql, about, named, finding.start is not None and not timed)
        last = _window_before(finding, answer)
        earlier = answer.filter(pl.sql_expr(f"({named}) AND {last}")) if last else answer.clear()
        when = during if earlier.is_empty() else f"({last} OR {during})"
        both = pl.concat([earlier, about])
        return EvidenceRows(sql, both, f"({named})\n  AND {when}", before=len(earlier))
    return EvidenceRows(sql, answer, "")


def _window_before(finding: Finding, answer: pl.DataFrame) -> str:
    """Return the condition of the last window that ends before a finding, empty if there is none.

    A window lasts until the next begins, and ends with its last step where it tells one.
    """
    if "window_start" not in answer.columns:
        return ""
    if finding.start_step is not None and "last_step" in answer.columns:
        whole = answer.filter(pl.col("last_step") < finding.start_step)["window_start"]
    else:
        begins = answer["window_start"].unique().sort()
        whole = begins.filter((begins.shift(-1) <= finding.start).fill_null(value=False))
    last = whole.drop_nulls().max()
    return f"window_start = {_moment(last)}" if isinstance(last, datetime) else ""


def cell_text(value: object) -> str:
    """Return a value as a person reads it: four digits of a number, times to the second."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return documents.number(value)
    return f"{value:%Y-%m-%d %H:%M:%S}" if isinstance(value, datetime) else str(value)


def _conditions(
    finding: Finding, answer: pl.DataFrame, aliases: Aliases
) -> Iterator[tuple[str, str]]:
    """Yield conditions of SQL: that a row names a culprit, and that it is of its steps or time."""
    tests = [_names(entity, answer, aliases) for entity in finding.entities]
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
        yield named, during
    column = next((name for name in _TIMES if name in answer.columns), None)
    if column is not None and finding.start is not None:
        during = f"{column} >= {_moment(finding.start)}"
        if finding.end is not None:
            during += f" AND {column} <= {_moment(finding.end)}"
        yield named, during
    yield named, ""


def _names(entity: Entity, answer: pl.DataFrame, aliases: Aliases) -> str:
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
            known = aliases.get((entity.host or "", entity.nic or ""), ())
            other = [name for name in known if name.split("/")[0] != entity.nic]
            names = [f"port = {own}", f"starts_with(port, {own} || '/')"]
            tests.append(f"({' OR '.join([*names, *(f'port = {literal(n)}' for n in other)])})")
        elif field == "switch" and "uplink_group" in answer.columns:
            tests.append(f"starts_with(uplink_group, {literal(f'{value} ')})")
        elif field != "job" and not (field == "host" and entity.rank is not None):
            return ""
    return " AND ".join(tests)


def _moment(moment: datetime) -> str:
    return f"TIMESTAMP '{moment:%Y-%m-%d %H:%M:%S.%f}'"
