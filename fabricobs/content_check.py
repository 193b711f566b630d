"""Check the content: definitions read their samples, queries and models fit together.

Of the shipped content, own content is checked with what it can change: all of it where an own file
takes the place of a shipped format, query or view, and all samples where it brings a format.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

from fabricobs import content
from fabricobs.content import ContentError
from fabricobs.diagnosis.methods import METHODS
from fabricobs.diagnosis.model import load_models
from fabricobs.diagnosis.rule_cases import check_cases
from fabricobs.diagnosis.run import REST
from fabricobs.formats.recognition.catalogue import load_catalogue
from fabricobs.formats.samples import check_format
from fabricobs.querying import StoredQuery, stored_queries
from fabricobs.report.charts.catalogue import CHARTS
from fabricobs.store.inspection import one_line
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session
from fabricobs.store.tables import PORT_COUNTERS, PRIORITY_COUNTERS, TABLES
from fabricobs.validation import nearest

_COUNTERS = {column.name for column in (*PORT_COUNTERS, *PRIORITY_COUNTERS)}
_SUFFIXES: dict[content.Kind, str] = {"ingest": ".toml", "queries": ".sql", "models": ".toml"}


def check_content(extra: Sequence[Path] = ()) -> Iterator[str]:
    """Yield every mistake in `ingest/`, `queries/` and `models/`, with file and remedy."""
    try:
        catalogue = load_catalogue(extra)
        models = load_models(extra)
    except ContentError as error:
        yield from str(error).splitlines()
        return
    whole = checks_all(extra)
    if whole or _own("ingest", extra):
        for format_ in catalogue.formats.values():
            try:
                yield from check_format(format_, catalogue)
            except ContentError as error:
                yield from str(error).splitlines()
    known = stored_queries(extra)
    own_queries, own_models = _own("queries", extra), _own("models", extra)
    asked = {name: query for name, query in known.items() if whole or name in own_queries}
    yield from _check_queries(asked, extra)
    tried = {name: model for name, model in models.items() if whole or name in own_models}
    yield from check_cases({**tried, REST: models[REST]}, extra)
    for model in models.values():
        if model.query not in known:
            yield f"models/{model.name}.toml: query: no query {model.query!r} in queries/"
        if model.method not in {*METHODS, REST}:
            yield f"models/{model.name}.toml: method: no method {model.method!r}"
        for table in model.lines:
            if table not in TABLES:
                yield f"models/{model.name}.toml: lines: no table {table!r}{nearest(table, TABLES)}"
        for chart in model.charts:
            if chart not in CHARTS:
                known_charts = ", ".join(CHARTS)
                yield f"models/{model.name}.toml: charts: no {chart!r}; one of {known_charts}"


def checks_all(extra: Sequence[Path]) -> bool:
    """Say whether the shipped content is checked too.

    It is without own content, and where that may change the rows that shipped queries read.
    """
    if not extra:
        return True
    formats, queries = _own("ingest", extra), _own("queries", extra)
    if formats & _shipped("ingest") or queries & _shipped("queries"):
        return True
    return any(name.startswith("views/") for name in queries)


def _shipped(kind: content.Kind) -> set[str]:
    return set(content.files(kind, _SUFFIXES[kind]))


def _own(kind: content.Kind, extra: Sequence[Path]) -> set[str]:
    """Return the names of own files of a kind."""
    found = content.files(kind, _SUFFIXES[kind], extra)
    return {name for name, path in found.items() if any(map(path.is_relative_to, extra))}


def _check_queries(known: Mapping[str, StoredQuery], extra: Sequence[Path]) -> Iterator[str]:
    """Yield what is wrong with headers, and with statements when bound to an empty store."""
    with TemporaryDirectory() as folder:
        store = Store(Path(folder) / "store")
        store.create()
        with open_session(store.path, extra=extra, keep=True) as connection:
            for query in known.values():
                for part in ("question", "columns", "example"):
                    if not getattr(query, part):
                        yield f"{query.path}: no `-- {part}:` in its header"
                for counter in query.counters:
                    if counter not in _COUNTERS:
                        tables = "port_samples or priority_samples"
                        yield f"{query.path}: `-- counters:` no {counter!r} in {tables}"
                for table, column in query.peers:
                    if table not in TABLES or TABLES[table].column(column) is None:
                        yield f"{query.path}: `-- peers:` no column {column!r} of {table!r}"
                try:
                    columns = connection.sql(query.sql).columns
                except duckdb.Error as error:
                    yield f"{query.path}: {one_line(error)}"
                    continue
                named = [name for name, _ in query.columns]
                if named and named != columns:
                    lists = f"`-- columns:` lists {', '.join(named)}"
                    yield f"{query.path}: {lists}; it gives {', '.join(columns)}"
