"""Metrics logged by name (tags): those of one step make one row of `steps`, timers one each."""

from typing import Any

from fabricobs.formats.mapping import Target
from fabricobs.formats.values import Unfit
from fabricobs.formats.whole import WholeFile


class Scalars:
    """Collects metrics in the order of the file; names find their columns by the definition."""

    def __init__(self, file: WholeFile) -> None:
        self._file = file
        self._mapping = file.format.blocks[0][1]
        self.job: str | None = None  # the run the values belong to, where the source names it
        self._row: dict[str, Any] = {}
        self._line = 0
        self._ts: float | None = None

    def add(self, line: int, name: str, value: float, step: int | Unfit, ts: float | None) -> bool:
        """Take one value; says whether the definition knows its name. NaN is no value."""
        target = self._mapping.resolve(name)
        if not isinstance(target, Target):
            self._file.context.drop_fields([name])
            return False
        scaled = value if target.factor is None else value * target.factor
        # No JSON or Parquet reader downstream likes NaN; a loss of NaN is a row without loss.
        filled = {target.column.name: None if scaled != scaled else scaled, **dict(target.fields)}
        if target.table != "steps":
            self._file.add(target.table, self._start(step) | filled, line, ts)
            return True
        start = self._start(step)
        if not start.items() <= self._row.items() or target.column.name in self._row:
            self.finish()
            self._row, self._line, self._ts = start, line, ts
        self._row |= filled
        return True

    def _start(self, step: int | Unfit) -> dict[str, Any]:
        return {"step": step} if self.job is None else {"step": step, "job": self.job}

    def finish(self) -> None:
        """Write the last step."""
        if self._row:
            self._file.add("steps", self._row, self._line, self._ts)
            self._file.flush()
        self._row = {}
