"""Whether the content is sound: definitions read their samples, queries and models fit together."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

from fabricobs.ask import Question, questions
from fabricobs.content import ContentError
from fabricobs.diagnosis.methods import METHODS
from fabricobs.diagnosis.model import load_models
from fabricobs.diagnosis.rule_cases import check_cases
from fabricobs.diagnosis.run import REST
from fabricobs.formats.recognition.catalogue import load_catalogue
from fabricobs.formats.samples import check_format
from fabricobs.report.charts.catalogue import CHARTS
from fabricobs.store.inspection import one_line
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session


def check_content(extra: Sequence[Path] = ()) -> Iterator[str]:
    """Yield every mistake in `ingest/`, `queries/` and `models/`, with file and remedy."""
    try:
        catalogue = load_catalogue(extra)
        models = load_models(extra)
    except ContentError as error:
        yield from str(error).splitlines()
        return
    for format_ in catalogue.formats.values():
        try:
            yield from check_format(format_, catalogue)
        except ContentError as error:
            yield from str(error).splitlines()
    known = questions(extra)
    yield from _check_queries(known, extra)
    yield from check_cases(models, extra)
    for model in models.values():
        if model.query not in known:
            yield f"models/{model.name}.toml: query: no query {model.query!r} in queries/"
        if model.method not in {*METHODS, REST}:
            yield f"models/{model.name}.toml: method: no method {model.method!r}"
        for chart in model.charts:
            if chart not in CHARTS:
                known_charts = ", ".join(CHARTS)
                yield f"models/{model.name}.toml: charts: no {chart!r}; one of {known_charts}"


def _check_queries(known: Mapping[str, Question], extra: Sequence[Path]) -> Iterator[str]:
    """Yield what is wrong with headers, and with statements when bound to an empty store."""
    with TemporaryDirectory() as folder:
        store = Store(Path(folder) / "store")
        store.create()
        with open_session(store.path, extra=extra) as connection:
            for question in known.values():
                for part in ("question", "columns", "example"):
                    if not getattr(question, part):
                        yield f"{question.path}: no `-- {part}:` in its header"
                try:
                    columns = connection.sql(question.sql).columns
                except duckdb.Error as error:
                    yield f"{question.path}: {one_line(error)}"
                    continue
                named = [name for name, _ in question.columns]
                if named and named != columns:
                    lists = f"`-- columns:` lists {', '.join(named)}"
                    yield f"{question.path}: {lists}; it gives {', '.join(columns)}"
