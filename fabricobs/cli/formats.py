"""The commands for authors of formats: list formats, try one, create a draft, check all content."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from fabricobs.cli.examples import epilog
from fabricobs.cli.options import (
    UNKNOWN,
    Command,
    CommandGroup,
    ConfigOption,
    ContentOption,
    given,
)
from fabricobs.exceptions import UserError
from fabricobs.printing import escaped, show
from fabricobs.report.working import working

formats_app = typer.Typer(
    cls=CommandGroup,
    help="Try a format or draft one; without a command: list all.",
    epilog=epilog("formats"),
)


@formats_app.callback(invoke_without_command=True)
def formats(
    context: typer.Context, content: ContentOption = None, config: ConfigOption = None
) -> None:
    """List the formats fabricobs reads."""
    from fabricobs.formats.definition import load_definitions
    from fabricobs.report.layout import fitted

    if context.invoked_subcommand is None:
        site = given(config, content=content)
        for name, definition in load_definitions(site.content).items():
            show(fitted(escaped(f"{name:28}  {definition.title}")))


@formats_app.command("try", cls=Command, epilog=epilog("formats try"))
def formats_try(
    words: Annotated[
        list[str],
        typer.Argument(
            help="A file, folder or archive; before it the format to read with.",
            metavar="[FORMAT] FILE|FOLDER",
        ),
    ],
    content: ContentOption = None,
    config: ConfigOption = None,
    most: Annotated[
        int | None,
        typer.Option(help="Rows shown of each table (default: 20, or 3).", min=0),
    ] = None,
) -> None:
    """Show the rows of files, and at which character of unread lines a template stops.

    The caret stands under the character at which a template stops. A folder or an archive gives a
    summary for each kind of file.
    """
    from fabricobs.formats.recognition.catalogue import load_catalogue
    from fabricobs.formats.trial import try_formats
    from fabricobs.report.trial import trials_text

    if len(words) > 2:
        raise UserError(f"{' '.join(words)}: give a file or folder, and before it a format or none")
    name = words[0] if len(words) == 2 else None
    site = given(config, content=content)
    with working("reading"):
        trials = try_formats(Path(words[-1]), load_catalogue(site.content), name)
    if most is None:
        most = 3 if Path(words[-1]).is_dir() else 20
    show(trials_text(trials, most))
    if not any(trial.row_count for trial in trials) or any(trial.problems for trial in trials):
        raise typer.Exit(UNKNOWN)


@formats_app.command("new", cls=Command, epilog=epilog("formats new"))
def formats_new(
    name: Annotated[str, typer.Argument(help="Name of the new format.")],
    path: Annotated[
        Path,
        typer.Argument(
            help="A file, folder or archive: lines that no format reads become the sample.",
            metavar="FILE|FOLDER",
        ),
    ],
    content: Annotated[
        Path, typer.Option("--content", help="Folder of yours; the file goes to its ingest/.")
    ] = Path(),
) -> None:
    """Write a draft definition: typed templates, and the lines they were made of."""
    from fabricobs.formats.proposal import definition_text
    from fabricobs.formats.recognition.catalogue import load_catalogue
    from fabricobs.formats.trial import lines_to_describe
    from fabricobs.output_files import check_folder

    if not path.exists():
        raise UserError(f"{path}: no such file or folder")
    if not name.isidentifier():
        raise UserError(f"{name}: a format's name is letters, digits and underscores")
    check_folder("--content", content)
    target = content / "ingest" / f"{name}.toml"
    if target.exists():
        raise UserError(f"{target}: exists already")
    text = definition_text(name, path.name, lines_to_describe(path, load_catalogue([content])))
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    told = f"{target}: fill in columns and rows, then `fabricobs check --content {content}`"
    show(escaped(told))


def check(content: ContentOption = None, config: ConfigOption = None) -> None:
    """Check that every definition, query and model of the content is sound.

    Of own content, and of the shipped content what it can change.
    """
    from fabricobs.content_check import check_content, checks_all

    site = given(config, content=content)
    with working("checking the content"):
        mistakes = list(check_content(site.content))
    for mistake in mistakes:
        show(escaped(mistake), file=sys.stderr)
    if mistakes:
        raise typer.Exit(UNKNOWN)
    rest = "; shipped content that it cannot change was not checked again"
    show("content is sound" + ("" if checks_all(site.content) else rest))
