"""The verbs that judge the store: the verdict, one finding in full, the report."""

from pathlib import Path
from typing import Annotated

import typer

from fabricobs.printing import escaped, note, show
from fabricobs.verbs.shared import (
    ConfigOption,
    ContentOption,
    FailOnOption,
    OneJobOption,
    StoreOption,
    TextOption,
    WindowOption,
    check_fail_on,
    check_folder,
    check_target,
    check_text_format,
    configured,
    exit_code,
    fail,
    require_store,
)


def diagnose(
    store: StoreOption = None,
    format: TextOption = "text",
    fail_on: FailOnOption = "low",
    window: WindowOption = None,
    job: OneJobOption = None,
    list_jobs: Annotated[
        bool, typer.Option("--list-jobs", help="List the jobs in the store, without a diagnosis.")
    ] = False,
    content: ContentOption = None,
    config: ConfigOption = None,
) -> None:
    """Diagnose each job in the store: verdict, six answers, findings."""
    check_text_format(format)
    check_fail_on(fail_on)
    site = configured(config, {"store": store, "content": content, "watch.window": window})
    require_store(site.store)
    if list_jobs:
        _list_jobs(site.store, format)
        return
    from fabricobs.judging import judge, window_start
    from fabricobs.report.documents import diagnosis_json
    from fabricobs.report.history import keep_findings
    from fabricobs.report.terminal import diagnosis_text
    from fabricobs.store.compaction import reading

    with reading(site.store):
        found = judge(site, None if window is None else window_start(site), job)
    show(diagnosis_json(found) if format == "json" else diagnosis_text(found))
    try:
        keep_findings(found, site.store)
    except OSError as error:
        note(f"findings not kept in {site.store}: {error.strerror}")
    raise typer.Exit(exit_code(found, fail_on))


def _list_jobs(store: Path, format: str) -> None:
    from fabricobs.report.jobs import listing_json, listing_text
    from fabricobs.store.compaction import reading
    from fabricobs.store.session import runs_of

    with reading(store):
        runs = runs_of(store)
    show(listing_json(runs) if format == "json" else listing_text(runs))


def explain(
    finding: Annotated[
        str | None,
        typer.Argument(
            metavar="ID", help="Id of a finding or its beginning; without it: list all findings."
        ),
    ] = None,
    store: StoreOption = None,
    anew: Annotated[
        bool, typer.Option("--anew", help="Diagnose again instead of reading kept findings.")
    ] = (False),
    content: ContentOption = None,
    config: ConfigOption = None,
) -> None:
    """Print one finding in full, with its rows and its SQL."""
    site = configured(config, {"store": store, "content": content})
    require_store(site.store)
    from fabricobs.judging import judge
    from fabricobs.report.explanation import explanation_text, find_finding, known_findings
    from fabricobs.report.history import kept_findings
    from fabricobs.store.compaction import reading

    with reading(site.store):
        kept = [] if anew else kept_findings(site.store, site.content)
        if finding is None:
            for known in known_findings(kept, lambda: judge(site)):
                show(escaped(f"{known.id}  {known.severity:8}  {known.title}"))
            return
        found = find_finding(finding, kept, lambda: judge(site))
        show(explanation_text(found, site.store, site.content, site=site.site))


def report(
    store: StoreOption = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Output file (default: fabricobs-report.html, .md, .txt or .json)."),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(help="html, markdown, text or json (default: by the suffix of the file)."),
    ] = None,
    charts: Annotated[
        Path | None, typer.Option(help="Directory for the charts as PNG and SVG.")
    ] = None,
    window: WindowOption = None,
    job: OneJobOption = None,
    content: ContentOption = None,
    config: ConfigOption = None,
) -> None:
    """Write the diagnosis as one HTML file without external requests, as Markdown, text or JSON."""
    site = configured(config, {"store": store, "content": content, "watch.window": window})
    require_store(site.store)
    from fabricobs.judging import judge, window_start
    from fabricobs.report.writing import FORMATS, Report, form_of, write_report
    from fabricobs.store.compaction import reading

    forms = {form: suffix for suffix, form in FORMATS.items()}
    form = format
    if form is None:
        form = form_of(out) if out is not None else "html"
    if form is None:
        fail(f"--out {out}: no ending of {', '.join(FORMATS)}; say --format {', '.join(forms)}")
    if form not in forms:
        fail(f"--format {form}: use one of {', '.join(forms)}")
    wanted = Report(out or Path(f"fabricobs-report{forms[form]}"), form, charts)
    check_target("--out", wanted.out)
    check_folder("--charts", charts)
    with reading(site.store):
        since = None if window is None else window_start(site)
        found = judge(site, since, job)
        written = write_report(wanted, found, site.store, site.content, since=since, site=site.site)
    for path in written:
        show(escaped(path))
