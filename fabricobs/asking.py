"""The verbs that ask what is behind a finding, and what changed."""

from typing import Annotated

import typer

from fabricobs.verbs import DEFAULT_STORE, ContentOption, StoreOption, fail, require_store


def explain(
    finding: Annotated[
        str | None,
        typer.Argument(metavar="ID", help="Id of a finding, or how it begins; none lists them."),
    ] = None,
    store: StoreOption = DEFAULT_STORE,
    anew: Annotated[bool, typer.Option("--anew", help="Judge anew, do not look at those kept.")] = (
        False
    ),
    content: ContentOption = None,
) -> None:
    """Print one finding in full, with the rows and the SQL behind it."""
    from fabricobs.report.explanation import explanation_text, find_finding, known_findings

    require_store(store)
    extra = tuple(content or ())
    if finding is None:
        for known in known_findings(store, extra, anew):
            print(f"{known.id}  {known.severity:8}  {known.title}")
        return
    print(explanation_text(find_finding(finding, store, extra, anew), store, extra))


def compare(
    a: Annotated[
        str, typer.Argument(help="A job, a window FROM..TO of times in UTC, or steps:FIRST..LAST.")
    ],
    b: Annotated[str, typer.Argument(help="The other side, in any of these forms.")],
    store: StoreOption = DEFAULT_STORE,
    job: Annotated[str | None, typer.Option(help="Whose windows and steps, if several.")] = None,
    format: Annotated[str, typer.Option(help="text or json.")] = "text",
    content: ContentOption = None,
) -> None:
    """Print what changed between two jobs, windows of time or ranges of steps."""
    from fabricobs.diagnosis.comparison import compare as run
    from fabricobs.report.comparison import comparison_json, comparison_text

    if format not in {"text", "json"}:
        fail(f"--format {format}: use text or json")
    require_store(store)
    compared = run(a, b, store, job, tuple(content or ()))
    print(comparison_json(compared) if format == "json" else comparison_text(compared))
