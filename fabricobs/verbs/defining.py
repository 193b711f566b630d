"""The verbs for who writes content: list formats, try one, begin one, check it all."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from fabricobs.printing import escaped, show
from fabricobs.verbs.shared import (
    UNKNOWN,
    ConfigOption,
    ContentOption,
    Verb,
    check_folder,
    configured,
    fail,
)

formats_app = typer.Typer(help="List the formats, try one, or begin a new one.")


@formats_app.callback(invoke_without_command=True)
def formats(
    context: typer.Context, content: ContentOption = None, config: ConfigOption = None
) -> None:
    """List the formats fabricobs reads."""
    from fabricobs.formats.definition import load_definitions

    if context.invoked_subcommand is None:
        site = configured(config, {"content": content})
        for name, definition in load_definitions(site.content).items():
            show(escaped(f"{name:28} {definition.title}"))


@formats_app.command("try", cls=Verb)
def formats_try(
    name: Annotated[str, typer.Argument(help="The format.", metavar="FORMAT")],
    file: Annotated[Path, typer.Argument(help="A file to read with it.")],
    content: ContentOption = None,
    config: ConfigOption = None,
    most: Annotated[int, typer.Option(help="Rows shown of each table.", min=0)] = 20,
) -> None:
    """Show the rows a format makes of a file, and the lines it leaves."""
    from fabricobs.formats.recognition.catalogue import load_catalogue
    from fabricobs.formats.trial import try_format
    from fabricobs.report.terminal import trial_text

    if not file.is_file():
        fail(f"{file}: no such file")
    site = configured(config, {"content": content})
    trial = try_format(name, file, load_catalogue(site.content))
    show(trial_text(trial, most))
    if not trial.rows or trial.problem:
        raise typer.Exit(UNKNOWN)


@formats_app.command("new", cls=Verb)
def formats_new(
    name: Annotated[str, typer.Argument(help="Name of the new format.")],
    file: Annotated[Path, typer.Argument(help="A file of it: its head becomes the sample.")],
    content: Annotated[
        Path, typer.Option("--content", help="Folder of yours; the file goes to its ingest/.")
    ] = Path(),
) -> None:
    """Write the beginning of a definition, with the head of a file as its sample."""
    from fabricobs.formats.trial import skeleton

    if not file.is_file():
        fail(f"{file}: no such file")
    if not name.isidentifier():
        fail(f"{name}: a format's name is letters, digits and underscores")
    check_folder("--content", content)
    target = content / "ingest" / f"{name}.toml"
    if target.exists():
        fail(f"{target}: is there already")
    text = skeleton(name, file)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    told = f"{target}: fill in columns and rows, then `fabricobs check --content {content}`"
    show(escaped(told))


def check(content: ContentOption = None, config: ConfigOption = None) -> None:
    """Check that every definition, query and model of the content is sound."""
    from fabricobs.soundness import check_content

    mistakes = list(check_content(configured(config, {"content": content}).content))
    for mistake in mistakes:
        show(escaped(mistake), file=sys.stderr)
    if mistakes:
        raise typer.Exit(UNKNOWN)
    show("content is sound")
