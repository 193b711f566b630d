"""Whether the content is sound: definitions read their samples, queries and models fit together."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from fabricobs.ask import questions
from fabricobs.content import ContentError
from fabricobs.diagnosis.methods import METHODS
from fabricobs.diagnosis.model import load_models
from fabricobs.diagnosis.run import REST
from fabricobs.formats.recognition.catalogue import load_catalogue
from fabricobs.formats.samples import check_format
from fabricobs.report.charts.catalogue import CHARTS


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
    for question in known.values():
        for part in ("question", "columns", "example"):
            if not getattr(question, part):
                yield f"queries/{question.name}.sql: no `-- {part}:` in its header"
    for model in models.values():
        if model.query not in known:
            yield f"models/{model.name}.toml: query: no question {model.query!r} in queries/"
        if model.method not in {*METHODS, REST}:
            yield f"models/{model.name}.toml: method: no method {model.method!r}"
        for chart in model.charts:
            if chart not in CHARTS:
                known_charts = ", ".join(CHARTS)
                yield f"models/{model.name}.toml: charts: no {chart!r}; one of {known_charts}"
