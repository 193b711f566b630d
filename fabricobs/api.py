"""Every command in Python; the command line prints what these functions return.

`open` gives a store to ask, judge, draw and report; `ingest`, `watch` and `simulate` write. A
mistake of the caller raises `fabricobs.UserError`, whose text says what to do. What is not given is
as the configuration says. Heavy libraries are imported by the call that uses them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fabricobs.config.basics import Basics, Given
from fabricobs.exceptions import UserError
from fabricobs.notebook import Listing
from fabricobs.simulator import SEED
from fabricobs.store.inspection import refuse_links
from fabricobs.store.location import shown
from fabricobs.store.reading import is_store, reading
from fabricobs.store.session import columns_by_name, open_session, runs_of

if TYPE_CHECKING:
    from datetime import timedelta

    import altair as alt
    import duckdb

    from fabricobs.config.schema import Config
    from fabricobs.diagnosis.comparison import Comparison
    from fabricobs.diagnosis.findings import Diagnosis, Finding
    from fabricobs.ingestion import Progress
    from fabricobs.inputs import IngestReport
    from fabricobs.operate.watch import Round
    from fabricobs.report.explanation import Explanation
    from fabricobs.store.jobs import Run
    from fabricobs.store.upkeep import Pruned
    from fabricobs.store.verification import Batch


@dataclass(frozen=True, slots=True)
class OpenStore:
    """A store to ask, as its configuration says: own content, thresholds, link rates.

    Answers of `sql` and `query` are relations of DuckDB: `.pl()` gives a polars frame, `.df()`
    pandas, `.to_arrow_table()` Arrow, `.fetchall()` tuples, `.show()` prints.
    """

    basics: Basics
    given: Given
    files: tuple[Path, ...] = ()

    @property
    def path(self) -> Path:
        """Return the directory of the store."""
        return self.basics.store

    @property
    def content(self) -> tuple[Path, ...]:
        """Return the folders of the user's own content."""
        return self.basics.content

    @property
    def config(self) -> "Config":
        """Return the configuration in force."""
        return self.given.config()

    def sql(
        self, statement: str, parameters: Mapping[str, Any] | Sequence[Any] | None = None
    ) -> "duckdb.DuckDBPyRelation":
        """Return the rows of a `statement` of DuckDB's SQL over every table and view.

        `parameters` fill `$name` or `?`. UserError for a statement that writes or does not bind.
        It reads the store and `allow_files`, no other file; a relation cannot write one either:
        `.pl().write_parquet(FILE)` does.
        """
        from fabricobs.querying import rows_of

        return rows_of(self.session(statement), statement, parameters)

    def query(self, name: str) -> "duckdb.DuckDBPyRelation":
        """Return the rows of the query `name` of `queries/`; UserError names the nearest."""
        from fabricobs.querying import find_query, rows_of

        statement = find_query(name, self.content).sql
        return rows_of(self.session(statement, keep=True), statement)

    def queries(self) -> dict[str, str]:
        """Return the questions by name."""
        from fabricobs.querying import stored_queries

        return {name: found.question for name, found in stored_queries(self.content).items()}

    def tables(self) -> dict[str, list[str]]:
        """Return the columns of every table and view by its name."""
        with reading(self.path), self.session() as connection:
            found = columns_by_name(connection)
        return {name: [column for column, _ in columns] for name, columns in found.items()}

    def jobs(self) -> "Listing[Run]":
        """Return the jobs the store holds, run by run: hosts, ranks, times, steps, files."""
        with reading(self.path):
            return Listing(runs_of(self.path))

    def diagnose(self, job: str | None = None, window: str | None = None) -> "Diagnosis":
        """Judge the store: verdict, answers, findings, segments of one pace, coverage.

        Of several jobs `.jobs` has the verdict of each; with `job` that one is judged alone, with
        `window` (`6h`) only the newest data.
        """
        from fabricobs.judging import judge, window_start

        config, length = self.config, self._window(window)
        with reading(self.path):
            return judge(config, window_start(self.path, length), job)

    def findings(self) -> "Listing[Finding]":
        """Judge the store and return its findings, the largest loss first."""
        return Listing(self.diagnose().findings)

    def known_findings(self) -> "Listing[Finding]":
        """Return the findings that diagnoses have kept in the store; judge it if there are none."""
        from fabricobs.report.explanation import known_findings
        from fabricobs.report.history import kept_findings

        with reading(self.path):
            kept = kept_findings(self.path, self.content)
            return Listing(known_findings(kept, self._judge))

    def explain(self, finding: "str | Finding", *, anew: bool = False) -> "Explanation":
        """Return a finding with its SQL and rows; `finding` is one, an id, or how an id begins.

        An id is looked for among kept findings first; with `anew`, or where there are none, the
        store is judged again.
        UserError names the nearest ids.
        """
        from fabricobs.report.explanation import explain, find_finding
        from fabricobs.report.history import kept_findings

        with reading(self.path):
            if isinstance(finding, str):
                kept = [] if anew else kept_findings(self.path, self.content)
                finding = find_finding(finding, kept, self._judge)
            return explain(finding, self.path, self.content, site=self.basics.site)

    def compare(self, a: str, b: str, job: str | None = None) -> "Comparison":
        """Return what changed from side `a` to side `b`: jobs, days, windows or step ranges.

        Sides are written as for `fabricobs compare` (`steps:11..150`, times in UTC); `job` is whose
        steps and times are meant. UserError says what is wrong with a side.
        """
        from fabricobs.diagnosis.comparison import compare

        with reading(self.path):
            return compare(a, b, self.path, job, self.content, site=self.basics.site)

    def report(
        self,
        out: str | Path | None = None,
        format: str | None = None,
        charts: str | Path | None = None,
        job: str | None = None,
        window: str | None = None,
        site: str | Path | None = None,
    ) -> list[Path]:
        """Judge the store, write a report and return the files written.

        `format` is html, markdown, text or json, else as `out` ends, else html; `charts` is a
        directory for the charts as PNG and SVG, `site` one for pages: overview, an incident, a
        host, a switch, a job each, history. With `site` alone no other file is written. `job` and
        `window` are those of `diagnose`.
        """
        from fabricobs.judging import judge, window_start
        from fabricobs.report.writing import report_to, write_report

        wanted = report_to(out, format, charts, site)
        config, length = self.config, self._window(window)
        with reading(self.path), ExitStack() as stack:
            since = window_start(self.path, length)
            session, rates = None, self.basics.site
            if wanted.draws:
                opened = open_session(
                    self.path,
                    extra=self.content,
                    keep=True,
                    since=since,
                    site=rates,
                    memory_mb=config.memory_mb,
                )
                session = stack.enter_context(opened)
            found = judge(config, since, job, session)
            return write_report(
                wanted, found, self.path, self.content, since=since, site=rates, session=session
            )

    def chart(
        self,
        name: str,
        finding: "Finding | None" = None,
        *,
        switch: str | None = None,
        job: str | None = None,
    ) -> "alt.LayerChart":
        """Draw the answer to the question `name` of `charts()`; a notebook shows it.

        A `finding` is marked, and says which switch or job is drawn; else `switch` and `job` do, or
        the switch with the least even uplinks and the job without a name are taken. ChartError
        where no such chart is, or the store has no data for it.
        """
        from fabricobs.report.charts.by_question import draw

        with reading(self.path), self.session(keep=True) as connection:
            return draw(name, connection, self.content, finding, switch, job)

    def charts(self) -> list[str]:
        """Return the questions that can be drawn."""
        from fabricobs.report.charts.by_question import CHARTS

        return list(CHARTS)

    def prune(self, keep: str | None = None) -> "Pruned | None":
        """Remove rows that are older than the newest by more than `keep`, a duration (`30d`).

        Without it the limit is that of the configuration; None where neither sets one.
        """
        from fabricobs.store.parts import Store
        from fabricobs.store.upkeep import prune

        limit = self._given(keep=keep).config().keep
        return None if limit is None else prune(Store(self.path), limit)

    def compact(self) -> int:
        """Merge small batches of the store; return how many went into others."""
        from fabricobs.store.parts import Store
        from fabricobs.store.upkeep import compact

        return compact(Store(self.path))

    def verify(self) -> "Listing[Batch]":
        """Return each batch with what is wrong with it; an empty list where there is no store."""
        from fabricobs.store.verification import verify

        return Listing(verify(self.path))

    def session(
        self, statement: str | None = None, *, keep: bool = False
    ) -> "duckdb.DuckDBPyConnection":
        """Return a connection of DuckDB with all tables and views, or those a `statement` needs.

        With `keep` views are worked out once and held in memory: for views upon views, or several
        questions.
        """
        return open_session(
            self.path, statement, self.content, keep=keep, site=self.basics.site, files=self.files
        )

    def _given(self, **options: Any) -> Given:
        return Given(self.given.file, {**self.given.options, **options})

    def _window(self, text: str | None) -> "timedelta | None":
        """Return the length of a window; UserError for what is no duration."""
        if text is None:
            return None
        return self._given(**{"watch.window": text}).config().watch.window

    def _judge(self) -> "Diagnosis":
        """Judge all there is; the caller holds the store."""
        from fabricobs.judging import judge

        return judge(self.config)


def open_store(
    store: str | Path | None = None,
    content: Sequence[str | Path] = (),
    config: str | Path | None = None,
    allow_files: Sequence[str | Path] = (),
) -> OpenStore:
    """Return the configured store, or `store`, a directory; UserError if none is there.

    `config` is a configuration file instead of the one that is found. `content` are folders with
    your own `ingest/`, `queries/` and `models/`; later ones win. SQL reads the store
    and the directories `allow_files`, no other file.
    """
    given = _given(config, store=store, content=content)
    basics = given.basics()
    files = tuple(map(Path, allow_files))
    for folder in files:
        if not folder.is_dir():
            raise UserError(f"--allow-files {folder}: no such directory")
    if not is_store(basics.store):
        raise UserError(
            f"{shown(basics.store)}: no store here; "
            f"make one with `fabricobs ingest LOGS --store {shown(basics.store)}`"
        )
    refuse_links(basics.store)
    return OpenStore(basics, given, files)


def ingest(
    logs: str | Path | Sequence[str | Path],
    store: str | Path | None = None,
    *,
    job: str | None = None,
    tz: str | None = None,
    content: Sequence[str | Path] = (),
    host_from: Sequence[str] = (),
    follow: bool | None = None,
    workers: int = 0,
    executor: str | None = None,
    config: str | Path | None = None,
    progress: "Progress | None" = None,
) -> "IngestReport":
    """Read `logs`, files and directories, into a `store` and return what became of each file.

    `logs` may lie in an object store (`s3://bucket/prefix`). Reading the same logs again changes
    nothing. `config` is a configuration file, `content` are
    folders with your own formats, `follow` follows symbolic links out of `logs`, and `progress` is
    told of each file as it is read. `job` names the job that wrote them, `tz` the zone
    of times without one, `host_from` are patterns of paths that name hosts, `workers` is the number
    of reading processes, 0 for one per core; `executor`, such as `dask://HOST:PORT`, has a cluster
    read instead, whose workers see logs and store under the same paths.
    """
    from fabricobs import unchanged
    from fabricobs.formats.identity.pattern import compile_pattern
    from fabricobs.inputs import Options, check_apart, check_inputs, find
    from fabricobs.output_files import check_folder
    from fabricobs.resources import cores

    site = _given(
        config, store=store, job=job, tz=tz, content=content, host_from=host_from, follow=follow
    ).basics()
    given = [Path(logs)] if isinstance(logs, str | Path) else list(map(Path, logs))
    inputs = given if site.host_map is None else [*given, site.host_map]
    if executor is not None:
        from fabricobs.cluster import check_address

        check_address(executor)
        if workers:
            raise UserError("--executor: its cluster has the workers; leave --workers out")
    check_inputs(inputs)
    check_folder("--store", site.store)
    check_apart(inputs, site.store)
    for pattern in site.host_from:
        compile_pattern(pattern)
    options = Options(site.job, site.tz, site.content, site.host_from, site.follow)
    found = find(inputs, site.store, follow=site.follow)
    report = unchanged.report_of(found.files, unchanged.load(site.store, options))
    if report is not None:
        report.left_out = found.left_out
        return report
    _keep_pandas_out()
    from fabricobs.ingestion import ingest as read
    from fabricobs.store.parts import Store

    target = Store(site.store)
    if executor is None:
        workers = workers or cores()
        return read(inputs, target, options, workers=workers, progress=progress, found=found)
    from fabricobs.cluster import cluster

    target.create()
    with cluster(executor, [*inputs, Path(shown(site.store))]) as pool:
        return read(inputs, target, options, cluster=pool, progress=progress, found=found)


def watch(
    logs: Sequence[str | Path],
    store: str | Path | None = None,
    *,
    once: bool = False,
    every: str | None = None,
    window: str | None = None,
    report: str | Path | None = None,
    keep: str | None = None,
    job: str | None = None,
    tz: str | None = None,
    follow: bool | None = None,
    content: Sequence[str | Path] = (),
    executor: str | None = None,
    config: str | Path | None = None,
    say: Callable[[str], None] | None = None,
) -> "Iterator[Round]":
    """Ingest `logs`, diagnose and notify in rounds; yield what each came to, with `once` one.

    `store`, `job`, `tz`, `follow`, `content`, `executor` and `config` are those of `ingest`.
    `every` and `window` are durations (`5m`, `6h`), `report` is the HTML file of the newest round,
    rows older than `keep` are removed, and `say` takes notes for a person.
    """
    from fabricobs.inputs import check_apart, check_inputs
    from fabricobs.operate import watch as operation
    from fabricobs.output_files import check_folder, check_target
    from fabricobs.printing import note

    if executor is not None:
        from fabricobs.cluster import check_address

        check_address(executor)
    inputs = list(map(Path, logs))
    check_inputs(inputs)
    check_target("--report", None if report is None else Path(report))
    options = {"watch.every": every, "watch.window": window, "watch.report": report}
    site = _given(
        config, store=store, content=content, job=job, tz=tz, follow=follow, keep=keep, **options
    ).config()
    check_folder("--store", site.store)
    check_apart(inputs, site.store)
    if once:
        return iter((operation.watch_once(inputs, site, say or note, executor),))
    return operation.watch(inputs, site, say or note, executor)


def simulate(
    directory: str | Path,
    scenarios: Sequence[str] = (),
    *,
    cases: int = 10,
    gpus: int | None = None,
    seed: int = SEED,
    only: Sequence[str] = (),
    without: Sequence[str] = (),
    world: Literal["random"] | None = None,
    given: Sequence[str] = (),
) -> list[Path]:
    """Write logs of simulated clusters with known faults and return the folders of the cases.

    `scenarios` are names, or TOML files of yours; without them a practice set of `cases` is written
    whose answers are in `directory/answers`. A cluster has `gpus` GPUs, a multiple of 8; the same
    `seed` gives the same bytes. `only` and `without` choose kinds of logs. With
    `world="random"` the seed draws the cluster, job, formats and faults instead, but for what is
    `given` as `name=value` of `simulator/random_worlds/draws.toml`.
    """
    from fabricobs.output_files import check_folder
    from fabricobs.simulator.cases import choose_kinds, write_case, write_practice
    from fabricobs.simulator.scenarios import load_scenario

    target = Path(directory)
    check_folder("DIRECTORY", target)
    if world == "random":
        from fabricobs.simulator.random_worlds.case import write_world
        from fabricobs.simulator.random_worlds.given import given_of
        from fabricobs.simulator.random_worlds.spec import draw_spec

        if scenarios or only or without or gpus is not None:
            raise UserError("world: a random world takes a seed alone; leave out all else")
        write_world(target, draw_spec(seed, **given_of(given)))
        return [target]
    if given:
        raise UserError("--given is for random worlds only: add --world random")
    kinds = choose_kinds(only, without)
    chosen = [load_scenario(name).sized(gpus) for name in scenarios]
    if not chosen:
        return write_practice(target, cases=cases, seed=seed, gpus=gpus, kinds=kinds)
    for scenario in chosen:
        write_case(target / scenario.name, scenario, seed=seed, kinds=kinds)
    return [target / scenario.name for scenario in chosen]


def _given(config: str | Path | None, **options: Any) -> Given:
    """Return options as a configuration has them: paths as paths, what is empty not at all."""
    for name in ("store", "watch.report"):
        if options.get(name) is not None:
            options[name] = Path(options[name])
    options["content"] = tuple(map(Path, options.get("content", ()))) or None
    options["host_from"] = tuple(options.get("host_from", ())) or None
    return Given(None if config is None else Path(config), options)


def _keep_pandas_out() -> None:
    """Keep pyarrow from importing pandas, where installed, just to see that no list is a Series."""
    import sys

    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    class Absent:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "pandas":
                raise ModuleNotFoundError(name)

    absent = Absent()
    sys.meta_path.insert(0, absent)
    try:
        pa.array([])  # it looks once
    finally:
        sys.meta_path.remove(absent)
