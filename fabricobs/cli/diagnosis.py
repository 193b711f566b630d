"""The commands that judge the store: the verdict, one finding in full, the report."""

from pathlib import Path
from typing import Annotated

import typer

from fabricobs.cli.options import (
    ConfigOption,
    ContentOption,
    FailOnOption,
    OneJobOption,
    StoreOption,
    TextOption,
    WindowOption,
    check_fail_on,
    check_text_format,
    exit_code,
    opened,
)
from fabricobs.printing import escaped, note, show
from fabricobs.report.working import working


def diagnose(
    store: StoreOption = None,
    format: TextOption = "text",
    fail_on: FailOnOption = "low",
    window: WindowOption = None,
    job: OneJobOption = None,
    list_jobs: Annotated[
        bool, typer.Option("--list-jobs", help="List the jobs in the store, without a diagnosis.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Print all answers and findings in full.")
    ] = False,
    content: ContentOption = None,
    config: ConfigOption = None,
) -> None:
    """Diagnose each job in the store: verdict, answers, findings."""
    check_text_format(format)
    check_fail_on(fail_on)
    asked = opened(store, content, config)
    if list_jobs:
        from fabricobs.report.jobs import listing_json, listing_text

        runs = asked.jobs()
        show(listing_json(runs) if format == "json" else listing_text(runs))
        return
    from fabricobs.report.documents import diagnosis_json
    from fabricobs.report.history import keep_findings
    from fabricobs.report.screen import summary_text
    from fabricobs.report.terminal import diagnosis_text, in_colour

    with working("diagnosing"):
        found = asked.diagnose(job, window)
    if format == "json":
        show(diagnosis_json(found))
    else:
        show(diagnosis_text(found) if verbose else summary_text(found), colour=in_colour)
    try:
        keep_findings(found, asked.path)
    except OSError as error:
        note(f"findings not kept in {asked.path}: {error.strerror}")
    raise typer.Exit(exit_code(found, fail_on))


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
    sql: Annotated[bool, typer.Option("--sql", help="Show the SQL of its rows, too.")] = False,
    content: ContentOption = None,
    config: ConfigOption = None,
) -> None:
    """Print one finding in full: what it rests on, what to do, its rows, lines of the input."""
    from fabricobs.report.layout import fitted
    from fabricobs.report.terminal import in_colour

    asked = opened(store, content, config)
    if finding is not None:
        with working("reading what is kept, or diagnosing"):
            explained = asked.explain(finding, anew=anew)
        show(explained.with_sql if sql else str(explained))
        return
    with working("reading what is kept, or diagnosing"):
        findings = asked.findings() if anew else asked.known_findings()
    for known in findings:
        show(fitted(escaped(f"{known.id}  {known.severity:8}  {known.title}")), colour=in_colour)


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
    site: Annotated[
        Path | None,
        typer.Option(
            help="Directory for pages: overview, incidents, hosts, switches, jobs, history. "
            "Styles and scripts are files of their own, as Jenkins wants."
        ),
    ] = None,
    window: WindowOption = None,
    job: OneJobOption = None,
    content: ContentOption = None,
    config: ConfigOption = None,
) -> None:
    """Write the diagnosis as one HTML file, as a site of pages, as Markdown, text or JSON."""
    asked = opened(store, content, config)
    with working("diagnosing and drawing"):
        written = asked.report(out, format, charts, job, window, site)
    for path in written:
        show(escaped(path))
