"""The rows behind a finding: those of its query that name its culprits, in its time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import polars as pl

from fabricobs.diagnosis.findings import Entity, Finding
from fabricobs.report import wording
from fabricobs.store.sandbox import literal

if TYPE_CHECKING:
    pass

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
_RATES = ("_per_second", "_pause_share")  # zero where nothing happened


@dataclass(frozen=True, slots=True)
class EvidenceRows:
    """The rows of the query `query` that are about a finding: those for which `condition` holds.

    Where no row names a culprit, `about` holds every row and the condition is empty. The first
    `before` rows are of the last whole window before the finding, the last `after` of the first one
    behind its end, both to compare with.
    """

    query: str
    about: pl.DataFrame
    condition: str
    of_all_time: bool = False  # the finding has a time, and no column does
    before: int = 0
    after: int = 0

    @property
    def sql(self) -> str:
        """Return the statement that gives these rows again."""
        whole = self.query.strip()
        if not self.condition:
            return whole
        return f"SELECT * FROM (\n{whole.rstrip(';')}\n)\nWHERE {self.condition};"

    def shown(self, most: int) -> pl.DataFrame:
        """Return the rows that tell most where not all fit; no column in which all are null.

        Rows before and since are shown alike, and those of the first and the last window since.
        """
        if len(self.about) <= most:
            return _without_empty(self.about)
        during = self.about.slice(self.before, len(self.about) - self.before - self.after)
        during = _rows_with_activity(during)
        later = _alike(self.about.tail(self.after), during).head(max(1, most // 8))
        fit = most - len(later)
        earlier = _alike(self.about.head(self.before), during)
        earlier = earlier.head(max(fit // 2, fit - len(during)))
        return _without_empty(pl.concat([earlier, _ends(during, fit - len(earlier)), later]))


def _without_empty(rows: pl.DataFrame) -> pl.DataFrame:
    return rows[[column.name for column in rows if column.null_count() < len(column)]]


def _rows_with_activity(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows in which something rose or was measured; all where none is so."""
    rates = [name for name in rows.columns if name == "risen" or name.endswith(_RATES)]
    if not rates:
        return rows
    some = rows.filter(pl.any_horizontal((pl.col(name) != 0).fill_null(False) for name in rates))
    return rows if some.is_empty() else some


def _alike(rows: pl.DataFrame, during: pl.DataFrame) -> pl.DataFrame:
    """Return those of the rows whose names are among the others', to compare; all where none is."""
    names = [column.name for column in rows if column.dtype == pl.String]
    if not names:
        return rows
    key = pl.concat_str([pl.col(name).fill_null("") for name in names], separator="\0")
    told = set(during.select(key.alias("key"))["key"])
    alike = rows.filter(key.is_in(list(told)))
    return rows if alike.is_empty() else alike


def _ends(rows: pl.DataFrame, most: int) -> pl.DataFrame:
    """Return as many rows in their order: of the first window, of the last, then those between."""
    if len(rows) <= most or "window_start" not in rows.columns:
        return rows.head(most)
    windows = rows["window_start"]
    part = max(1, most // 3)
    first = (windows == windows.min()).fill_null(False).arg_true().to_list()[:part]
    last = (windows == windows.max()).fill_null(False).arg_true().to_list()[:part]
    ends = dict.fromkeys([*first, *last])
    between = [place for place in range(len(rows)) if place not in ends]
    return rows[sorted([*ends, *between][:most])]


def names_nic(finding: Finding) -> bool:
    """Say whether a NIC is among the culprits: its rows are found by all its names."""
    return any(entity.nic for entity in finding.entities)


def nic_aliases(answer: pl.DataFrame) -> Aliases:
    """Return what counters call each NIC; `answer` is that to `NIC_NAMES`."""
    return {(host, nic): names for host, nic, names in answer.iter_rows()}


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
        around = [_window_before(finding, answer), _window_after(finding, answer)]
        earlier, later = (
            answer.filter(pl.sql_expr(f"({named}) AND {window}")) if window else answer.clear()
            for window in around
        )
        times = [
            during,
            *(w for w, rows in zip(around, (earlier, later), strict=True) if len(rows)),
        ]
        when = during if len(times) == 1 else f"({' OR '.join(times)})"
        rows = pl.concat([earlier, about, later])
        condition = f"({named})\n  AND {when}"
        return EvidenceRows(sql, rows, condition, before=len(earlier), after=len(later))
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
    return _is_window(whole.max())


def _window_after(finding: Finding, answer: pl.DataFrame) -> str:
    """Return the condition of the first window behind the end of a finding, empty without one."""
    if "window_start" not in answer.columns:
        return ""
    if finding.end_step is not None and {"first_step", "last_step"} <= set(answer.columns):
        later = answer.filter(pl.col("first_step") > finding.end_step)["window_start"]
    elif finding.end is not None:
        later = answer.filter(pl.col("window_start") > finding.end)["window_start"]
    else:
        return ""
    return _is_window(later.min())


def _is_window(begin: object) -> str:
    return f"window_start = {timestamp_literal(begin)}" if isinstance(begin, datetime) else ""


def _onset_window(start: datetime, answer: pl.DataFrame) -> datetime:
    """Return the begin of the window in which a finding begins, its start where none does."""
    begins = answer["window_start"].drop_nulls().unique().sort()
    lasts = begins.diff().min()
    earlier = begins.filter(begins <= start).max()
    if not (isinstance(lasts, timedelta) and isinstance(earlier, datetime)):
        return start
    return earlier if start - earlier < lasts else start


def cell_text(value: object) -> str:
    """Return a value as a person reads it: four digits of a number, times to the second."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return wording.number(value)
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
    if not named and finding.entities:
        return
    named = named or "true"  # of the whole job
    if finding.start_step is not None and {"first_step", "last_step"} <= set(answer.columns):
        during = f"last_step >= {finding.start_step}"
        if finding.end_step is not None:
            during += f" AND first_step <= {finding.end_step}"
        yield named, during
    column = next((name for name in _TIMES if name in answer.columns), None)
    if column is not None and finding.start is not None:
        start = finding.start
        if column == "window_start":
            start = _onset_window(start, answer)
        during = f"{column} >= {timestamp_literal(start)}"
        if finding.end is not None:
            during += f" AND {column} <= {timestamp_literal(finding.end)}"
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


def timestamp_literal(moment: datetime) -> str:
    """Return a time, UTC, as SQL writes it."""
    return f"TIMESTAMP '{moment:%Y-%m-%d %H:%M:%S.%f}'"
