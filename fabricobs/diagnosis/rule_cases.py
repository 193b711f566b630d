"""The cases of rules: rows or log files in, findings out, as `fabricobs check` runs them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from fabricobs.diagnosis.device_commands import nic_commands_of, switch_commands_of
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.finding_builder import WORDS_OF_FINDINGS, names_in
from fabricobs.diagnosis.findings import Finding
from fabricobs.diagnosis.methods.rule import WORDS_OF_RULES, find_by_rule
from fabricobs.diagnosis.model import Case, Model
from fabricobs.diagnosis.run import REST, trends_of
from fabricobs.exceptions import UserError
from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.store.inspection import one_line
from fabricobs.store.parts import Store

_COLUMNS = "  "  # columns of a table of a case are apart by two blanks
_DAY = "2026-01-01 "
_NULL = "-"


def check_cases(models: Mapping[str, Model], extra: Sequence[Path] = ()) -> Iterator[str]:
    """Yield each case of a rule that is missing, or gives another answer."""
    rules = [model for model in models.values() if model.rule is not None]
    for model in rules:
        yield from _missing(model)
    with TemporaryDirectory() as folder:
        empty = Store(Path(folder) / "store")
        empty.create()
        with closing(Evidence(empty.path, extra)) as evidence:
            for model in rules:
                misnamed = [*_misnamed(model, evidence)]
                yield from misnamed
                for case in () if misnamed else model.case:
                    yield from _failed(model, models[REST], case, evidence, extra)


def _missing(model: Model) -> Iterator[str]:
    for fires in (True, False):
        if not any(bool(case.finds) == fires for case in model.case):
            what = "fires (finds names the entities)" if fires else "stays silent (finds = [])"
            yield (
                f"models/{model.name}.toml: a rule needs a [[case]] that {what}: "
                f"says, finds, and [case.rows] of {model.evidence} or [case.logs]"
            )


def _misnamed(model: Model, evidence: Evidence) -> Iterator[str]:
    """Yield each name that a text of a rule has in braces and nothing fills."""
    assert model.rule is not None
    wording = model.wording
    commands = {*nic_commands_of(""), *switch_commands_of(evidence, ())}
    columns = evidence.frame(model.evidence, model.limits).columns
    given = {*WORDS_OF_RULES, *WORDS_OF_FINDINGS, *commands, *columns, *model.rule.facts}
    texts = [wording.title, wording.explanation, *model.refuted_by, *model.next_steps]
    texts += [text for phrase in wording.phrase.values() for text in phrase]
    texts += [told.feature for told in model.rule.driver]
    for text in texts:
        for name in names_in(text):
            if name not in given and name not in wording.phrase:
                yield (
                    f"models/{model.name}.toml: {{{name}}} in {text!r} is no fact of the rule, no "
                    f"phrase, no command and no column of {model.evidence}"
                )


def _failed(
    model: Model, rest: Model, case: Case, evidence: Evidence, extra: Sequence[Path]
) -> Iterator[str]:
    import duckdb

    name = f"models/{model.name}.toml: case {case.says!r}"
    try:
        found = _found(model, rest, case, evidence, extra)
    except (UserError, duckdb.Error) as error:
        yield f"{name}: {one_line(error)}"
        return
    labels = tuple(", ".join(entity.label for entity in each.entities) for each in found)
    if sorted(labels) != sorted(case.finds):
        yield f"{name}: expected {_listed(case.finds)}, found {_listed(labels)}"
    for finding in found:
        for what in ("title", "severity"):
            expected, given = getattr(case, what), getattr(finding, what)
            if expected and expected != given:
                yield f"{name}: expected {what} {expected!r}, found {given!r}"


def _listed(labels: Sequence[str]) -> str:
    return "; ".join(labels) or "nothing"


def _found(
    model: Model, rest: Model, case: Case, evidence: Evidence, extra: Sequence[Path]
) -> tuple[Finding, ...]:
    """Return what the rule finds in the rows of a case, and in its logs."""
    if not case.logs:
        return _by_rule(evidence, model, rest, case)
    with TemporaryDirectory() as folder:
        for name, text in case.logs.items():
            path = Path(folder) / "logs" / name
            if Path(name).is_absolute() or ".." in Path(name).parts:
                raise UserError(f"log {name!r}: expected a path below the folder of the logs")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        store = Store(Path(folder) / "store")
        ingest([Path(folder) / "logs"], store, Options(content=tuple(extra)))
        with closing(Evidence(store.path, extra)) as of_logs:
            return _by_rule(of_logs, model, rest, case)


def _by_rule(evidence: Evidence, model: Model, rest: Model, case: Case) -> tuple[Finding, ...]:
    tables = {name: rows_of(text) for name, text in case.rows.items()}
    given = evidence.with_rows(tables, model.limits)
    return find_by_rule(given, model, trends_of(given, rest)).findings


def rows_of(text: str) -> pl.DataFrame:
    """Return a table of text: a line of names, then rows; columns are apart by two blanks.

    A dash is null, and a time of day one of the first day of 2026.
    """
    lines = [
        [cell.strip() for cell in line.split(_COLUMNS) if cell.strip()]
        for line in text.splitlines()
        if line.strip()
    ]
    head, *rows = lines or [[]]
    for row in rows:
        if len(row) != len(head):
            line = _COLUMNS.join(row)
            raise UserError(f"expected {len(head)} columns, two blanks apart, found {line!r}")
    cells = [[_cell(cell) for cell in row] for row in rows]
    return pl.DataFrame(cells, schema=dict.fromkeys(head, pl.String), orient="row")


def _cell(text: str) -> str | None:
    if text == _NULL:
        return None
    is_time = len(text) == len("09:10:00") and text[2] == text[5] == ":"
    return _DAY + text if is_time else text
