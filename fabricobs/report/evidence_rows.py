"""The rows behind a finding: those of its query that name its culprits, in its time."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import polars as pl

from fabricobs.diagnosis.findings import Entity, Finding
from fabricobs.report import wording
from fabricobs.store.sandbox import literal

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
    "gpu": ("gpu",),
    "job": ("job",),
}
_TIMES = ("window_start", "ts", "last_seen")
_ENDS = 2  # windows at the begin of a finding, and as many at its end
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
    cut_short: bool = False  # the larger part of the last window in its time is behind its end

    @property
    def sql(self) -> str:
        """Return the statement that gives these rows again."""
        whole = self.query.strip()
        if not self.condition:
            return whole
        return f"SELECT * FROM (\n{whole.rstrip(';')}\n)\nWHERE {self.condition};"

    def shown(self, most: int) -> pl.DataFrame:
        """Return the rows that tell most where not all fit; no column in which all are null.

        Of windows in the time of the finding the first two and the last two come before others.
        Rows before and since are shown alike.
        """
        if len(self.about) <= most:
            return _told_first(self.about)
        during = self.about.slice(self.before, len(self.about) - self.before - self.after)
        during = _rows_with_activity(_without_last(during) if self.cut_short else during)
        around = [rows for rows in (self.before, self.after) if rows]
        windows = min(2 * _ENDS, during["window_start"].n_unique()) if around else 1
        share = max(1, most // (len(around) + windows))
        picked = _of_windows(during, most - sum(min(share, rows) for rows in around))
        later = _alike(self.about.tail(self.after), picked).head(share)
        earlier = _alike(self.about.head(self.before), picked)
        return _told_first(
            pl.concat([earlier.head(most - len(picked) - len(later)), picked, later])
        )


def _told_first(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows without columns that are null, the numbers that are all alike last."""
    known = [column for column in rows if column.null_count() < len(column)]
    same = [c.name for c in known if c.dtype.is_numeric() and len(c) > 1 and c.n_unique() == 1]
    return rows[[*(c.name for c in known if c.name not in same), *same]]


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


def _of_windows(rows: pl.DataFrame, most: int) -> pl.DataFrame:
    """Return as many rows in their order: as many of each of the first and the last windows."""
    if len(rows) <= most or "window_start" not in rows.columns:
        return rows.head(most)
    begins = rows["window_start"].unique().sort().to_list()
    ends = {*begins[:_ENDS], *begins[-_ENDS:]}
    places: list[tuple[bool, int, int]] = []
    seen: Counter[datetime] = Counter()
    for place, begin in enumerate(rows["window_start"]):
        places.append((begin not in ends, seen[begin], place))
        seen[begin] += 1
    return rows[sorted(place for _, _, place in sorted(places)[:most])]


def _without_last(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of all windows but the last; all where that is the only one."""
    others = rows.filter(pl.col("window_start") != rows["window_start"].max())
    return rows if others.is_empty() else others


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

    `sql` gave the answer. In windows of time, those of the last window before it stand first. Rows
    of the first culprit, whom the title names, come before those of the others.
    """
    first = _names(finding.entities[0], answer, aliases or {}) if finding.entities else ""
    if first:
        named_first = pl.sql_expr(f"CASE WHEN {first} THEN 0 ELSE 1 END")
        answer = answer.sort(named_first, maintain_order=True)
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
        return EvidenceRows(
            sql,
            rows,
            condition,
            before=len(earlier),
            after=len(later),
            cut_short=_is_cut_short(finding, about),
        )
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


def _is_cut_short(finding: Finding, about: pl.DataFrame) -> bool:
    """Say whether the finding ends before half of the last of these windows."""
    if finding.end is None or "window_start" not in about.columns:
        return False
    begins = about["window_start"].drop_nulls().unique().sort()
    last, lasts = begins.max(), begins.diff().min()
    if not (isinstance(last, datetime) and isinstance(lasts, timedelta)):
        return False
    return finding.end - last < lasts / 2


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
            tests.append(f"{column} = {value if field in ('rank', 'gpu') else literal(value)}")
        elif field == "nic" and "port" in answer.columns:  # mlx5_0, or its port as mlx5_0/1
            own = literal(entity.nic or "")
            known = aliases.get((entity.host or "", entity.nic or ""), ())
            other = [name for name in known if name.split("/")[0] != entity.nic]
            names = [f"port = {own}", f"starts_with(port, {own} || '/')"]
            tests.append(f"({' OR '.join([*names, *(f'port = {literal(n)}' for n in other)])})")
        elif field == "switch" and "uplink_group" in answer.columns:
            tests.append(f"starts_with(uplink_group, {literal(f'{value} ')})")
        elif not _is_told_by_others(field, entity, answer.columns):
            return ""
    return " AND ".join(tests)


def _is_told_by_others(field: str, entity: Entity, columns: Sequence[str]) -> bool:
    """Say whether an entity is known without a column for this: a rank's host, a GPU's rank."""
    if entity.type == "gpu" and entity.gpu is not None and "gpu" in columns:
        return field in {"job", "rank"}
    return field in {"job", "gpu"} or (field == "host" and entity.rank is not None)


def timestamp_literal(moment: datetime) -> str:
    """Return a time, UTC, as SQL writes it."""
    return f"TIMESTAMP '{moment:%Y-%m-%d %H:%M:%S.%f}'"
