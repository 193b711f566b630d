"""The commands: docs/commands.md, a table of all, and the arguments and examples of each."""

from collections.abc import Iterator
from typing import Any

import typer

from fabricobs.cli import app
from fabricobs.cli.examples import EXAMPLES
from fabricobs.report.markdown import code, page, table


def commands() -> Iterator[tuple[str, Any]]:
    """Yield each command of the program, with its name as it is typed after `fabricobs`."""
    yield from _below(typer.main.get_command(app), "")


def _below(group: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        yield prefix + name, command
        if hasattr(command, "commands"):
            yield from _below(command, f"{prefix}{name} ")


def commands_table() -> str:
    """Return the table of commands, from the command line."""
    rows = ((f"`fabricobs {name}`", _summary(command)) for name, command in commands())
    return table(("command", "does"), rows)


def commands_sections() -> str:
    """Return a section for each command: what it does, its arguments and options, examples."""
    return page(*(_section(name, command) for name, command in commands())).strip()


def _section(name: str, command: Any) -> str:
    context = typer.Context(command, info_name=name)
    usage = " ".join(["fabricobs", name, *command.collect_usage_pieces(context)])
    records = [parameter.get_help_record(context) for parameter in command.get_params(context)]
    rows = [
        (f"`{written}`", meaning)
        for written, meaning in filter(None, records)
        if "--help" not in written
    ]
    example = EXAMPLES.get(name, "")
    return page(
        f"## {name}",
        command.help or "",
        f"`{usage}`",
        table(("argument or option", "meaning"), rows) if rows else "",
        code(example, "sh") if example else "",
    )


def _summary(command: Any) -> str:
    return (command.help or "").strip().partition("\n")[0]
