"""The line of the input that a culprit's is to be compared with: its peer's, or one of before."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from fabricobs.diagnosis.findings import Finding
from fabricobs.report.evidence_rows import Aliases, timestamp_literal
from fabricobs.report.input_lines import line_at, text_of_key
from fabricobs.report.rows_of_part import condition_of, is_of_records, place
from fabricobs.report.wording import number
from fabricobs.store.tables import TABLES

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# Rows that are alike in these tell of one moment; rows that differ in those, of several parts.
_MOMENT = ("job", "step", "process_group", "comm_id", "op", "seq")
_PARTS = ("rank", "global_rank", "host", "gpu")
_ALIKE = 0.01  # of a measured value; numbers of collectives are exact
_NEAR = timedelta(minutes=10)  # most sites read their GPUs more often


@dataclass(frozen=True, slots=True)
class LineToCompare:
    """A row that shows how it should be: its value in `unit`, that of the culprit's row, its line.

    `text` is that line, while the file is there.
    """

    what: str
    column: str
    unit: str
    value: float
    told: float
    path: str
    line: int
    formats: str
    text: str

    @property
    def place(self) -> str:
        """Return where it stands."""
        return place(self.path, self.line, self.formats)

    @property
    def differs(self) -> bool:
        """Say whether the two rows differ by more than two measurements of a kind do."""
        least = _ALIKE * max(abs(self.value), abs(self.told)) if self.unit else 0.0
        return abs(self.value - self.told) > least

    @property
    def words(self) -> tuple[str, str]:
        """Return what the row of the culprit says, and this one."""
        return f"{self.column} {number(self.told)}", f"{self.what}, {number(self.value)}"


def line_to_compare(
    connection: "DuckDBPyConnection",
    finding: Finding,
    measures: Mapping[str, str],
    aliases: Aliases,
    told: tuple[str, int, str],
) -> LineToCompare | None:
    """Return the line beside `told`, a path, a line and its formats; None where there is none.

    `measures` are tables with the column by which their rows are compared. Of parts it is the row
    of the median peer at that moment; of a whole job the last row before the finding, or that with
    most of its moment where the finding is as old as the job.
    """
    path, line, formats = told
    for table, measure in measures.items():
        columns = {column.name for column in TABLES[table].columns}
        column = TABLES[table].column(measure)
        culprits = condition_of(finding, columns, aliases)
        if column is None or not culprits:
            continue
        for what, sql in _selects(finding, table, measure, columns, culprits).items():
            found = connection.execute(sql, [path, line, formats]).fetchone()
            if found is not None:
                where, row, value, own = found
                text = line_with(where, row, measure, value, formats)
                return LineToCompare(
                    what, measure, column.unit, value, own, where, row, formats, text
                )
    return None


def _selects(
    finding: Finding, table: str, measure: str, columns: set[str], culprits: str
) -> dict[str, str]:
    """Return the statements that may give the row, by what it is."""
    if any(entity.type != "job" for entity in finding.entities):
        return {
            "its median peer": _of_moment(
                table, measure, columns, culprits, f"NOT coalesce({culprits}, false)"
            )
        }
    most = {"the most at that moment": _of_moment(table, measure, columns, culprits, culprits, 1.0)}
    if finding.from_first_step:
        return most
    return {"before it": _of_before(table, measure, columns, finding)} | most


def line_with(path: str, line: int, measure: str, value: float, formats: str) -> str:
    """Return the text of a row that holds a value, as `input_lines` shows it."""
    numbers = (
        (f"{value:.0f}", f"{value:g}", f"{value!r}") if value.is_integer() else (f"{value!r}",)
    )
    if is_of_records(formats):
        return text_of_key(path, measure, numbers)
    return line_at(path, line, (*numbers, measure))


def _told(table: str) -> str:
    return f"""
        told AS (
          SELECT r.* FROM {table} r JOIN files f USING (file_id)
          WHERE f.path = $1 AND r.line = $2
        ),
        others AS (
          SELECT r.*, f.path FROM {table} r JOIN files f USING (file_id) WHERE f.formats = $3
        )"""


def _of_moment(
    table: str, measure: str, columns: set[str], own: str, others: str, share: float = 0.5
) -> str:
    """Return the statement for the row of a moment below which a share of the others' are."""
    moment = [name for name in _MOMENT if name in columns]
    same = " AND ".join(f"o.{name} IS NOT DISTINCT FROM t.{name}" for name in moment)
    parts = ", ".join(f"o.{name}" for name in _PARTS if name in columns)
    return f"""
        WITH {_told(table)},
        peers AS (
          SELECT o.path, o.line, o.{measure}::DOUBLE AS measure, t.{measure}::DOUBLE AS told
          FROM (FROM others WHERE ({others}) AND {measure} IS NOT NULL) o
          JOIN (FROM told WHERE ({own}) AND {measure} IS NOT NULL LIMIT 1) t ON {same}
          WHERE coalesce(abs(epoch(o.ts) - epoch(t.ts)) <= {_NEAR.total_seconds()}, true)
          QUALIFY row_number() OVER (
            PARTITION BY {parts} ORDER BY abs(epoch(o.ts) - epoch(t.ts)), o.path, o.line) = 1
        )
        SELECT path, line, measure, told FROM peers
        QUALIFY row_number() OVER (ORDER BY measure, path, line) >= {share} * count(*) OVER ()
        ORDER BY measure, path, line LIMIT 1
    """


def _of_before(table: str, measure: str, columns: set[str], finding: Finding) -> str:
    parts = [name for name in ("job", *_PARTS) if name in columns]
    same = " AND ".join(f"o.{name} IS NOT DISTINCT FROM t.{name}" for name in parts)
    begin = "NULL" if finding.start is None else timestamp_literal(finding.start)
    first = finding.start_step if "step" in columns else None
    before = f"o.step < {first}" if first is not None else f"o.ts < {begin}"
    return f"""
        WITH {_told(table)}
        SELECT o.path, o.line, o.{measure}::DOUBLE, t.{measure}::DOUBLE
        FROM (FROM others WHERE {measure} IS NOT NULL) o
        JOIN (FROM told WHERE {measure} IS NOT NULL LIMIT 1) t ON {same}
        WHERE {before}
        ORDER BY o.ts DESC, o.line DESC LIMIT 1
    """
