"""What charts are drawn from: the rows of stored queries, and the model behind a finding."""

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabricobs import content
from fabricobs.diagnosis.findings import Finding
from fabricobs.diagnosis.model import Model, lines_of, load_models
from fabricobs.json_values import as_json
from fabricobs.report.wording import iso
from fabricobs.store.session import tables_reached

if TYPE_CHECKING:
    import polars as pl
    from duckdb import DuckDBPyConnection

Row = dict[str, Any]


@dataclass(slots=True)
class Source:
    """A session on a store, and the content that says what to ask of it."""

    connection: "DuckDBPyConnection"
    extra: tuple[Path, ...] = ()
    _queries: dict[str, Path] = field(init=False)
    _models: tuple[Model, ...] = field(init=False)
    _answers: "dict[str, pl.DataFrame]" = field(init=False, default_factory=dict)
    _tables: dict[str, list[str]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._queries = content.files("queries", ".sql", self.extra)
        self._models = tuple(load_models(self.extra).values())

    def rows(self, name: str, **parameters: Any) -> list[Row]:
        """Return the rows of `queries/NAME.sql`, fit for JSON: times as ISO 8601, no NaN."""
        answer = self.connection.execute(
            self._queries[name].read_text(encoding="utf-8"), parameters or None
        )
        columns = [column[0] for column in answer.description or ()]
        return [
            {column: _plain(value) for column, value in zip(columns, row, strict=True)}
            for row in answer.fetchall()
        ]

    def answer(self, sql: str) -> "pl.DataFrame":
        """Return all rows of a query as a frame; several findings may ask for the same."""
        if sql not in self._answers:
            self._answers[sql] = self.connection.sql(sql).pl()
        return self._answers[sql]

    def tables_of(self, sql: str) -> list[str]:
        """Return the tables of the store that a query reads; several findings may ask for it."""
        if sql not in self._tables:
            self._tables[sql] = tables_reached(self.connection, sql, self.extra)
        return self._tables[sql]

    def model_of(self, finding: Finding) -> Model | None:
        """Return the model that gave a finding: of its kind, and of its query where one is."""
        own = [model for model in self._models if model.kind == finding.kind]
        same = [model for model in own if model.query == finding.query]
        return next(iter((*same, *own)), None)

    def lines_of(self, finding: Finding) -> dict[str, str]:
        """Return the tables, and the condition of their rows, that prove a finding."""
        return lines_of(finding.kind, self._models)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return iso(value)
    return as_json(value)
