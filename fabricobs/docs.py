"""The parts of the docs that are made from the code and the content, and whether they are true.

`python -m fabricobs.docs` writes them, `--check` only says which are stale. In README.md they
stand between `<!-- begin NAME -->` and `<!-- end NAME -->`; `docs/tables.md` is made whole.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fabricobs.ask import questions
from fabricobs.formats.definition import Definition, load_definitions
from fabricobs.store.tables import TABLES

ROOT = Path(__file__).parents[1]


def inputs_table() -> str:
    """Return the table of formats, from the definitions."""
    definitions = load_definitions().values()
    rows = sorted((d.title, d.name, ", ".join(_tables(d))) for d in definitions if not d.companion)
    lines = ["| input | format | fills |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| {t} | `{n}` | {tables} |" for t, n, tables in rows)])


def _tables(definition: Definition) -> list[str]:
    text = str(definition)
    return [
        name
        for name in TABLES
        if name in definition.fills or re.search(rf"table='{name}'|'{name}\.", text)
    ]


def questions_table() -> str:
    """Return the table of questions, from the headers of the queries."""
    lines = ["| `fabricobs query` | answers |", "|---|---|"]
    return "\n".join([*lines, *(f"| `{q.name}` | {q.question} |" for q in questions().values())])


def commands_table() -> str:
    """Return the table of verbs, from the command line."""
    from fabricobs.cli import app

    lines = ["| verb | does |", "|---|---|"]
    for command in app.registered_commands:
        assert command.callback is not None
        lines.append(_command(command.callback.__name__, command.callback))
    for group in app.registered_groups:
        inner = group.typer_instance
        assert inner is not None
        assert inner.registered_callback is not None
        lines.append(_command(str(group.name), inner.registered_callback.callback))
        lines.extend(
            _command(f"{group.name} {command.name}", command.callback)
            for command in inner.registered_commands
        )
    return "\n".join(lines)


def _command(name: str, callback: Callable[..., Any] | None) -> str:
    summary = ((callback and callback.__doc__) or "").strip().splitlines()[0]
    return f"| `fabricobs {name}` | {summary} |"


def tables_page() -> str:
    """Return docs/tables.md: every table and column with type, unit and meaning."""
    parts = [
        "# Tables\n",
        "Made from `fabricobs/store/tables.py`; the derived views are in `queries/views/`.",
        "Times are UTC. Counters are totals unless `counter_info` says `delta`.\n",
    ]
    for table in TABLES.values():
        parts += [f"## {table.name}\n", f"A row is {table.row}. From: {table.source}.\n"]
        parts += ["| column | type | unit | meaning |", "|---|---|---|---|"]
        parts += [f"| {c.name} | {c.type} | {c.unit} | {c.meaning} |" for c in table.columns]
        parts.append("")
    return "\n".join(parts)


BLOCKS = {"inputs": inputs_table, "questions": questions_table, "commands": commands_table}


def fill(text: str) -> str:
    """Return a page with its made blocks renewed."""
    for name, make in BLOCKS.items():
        block = re.compile(rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
        made = make()
        text = block.sub(lambda match, made=made: match[1] + made + "\n" + match[2], text)  # type: ignore[misc]
    return text


def pages() -> dict[Path, str]:
    """Return what each page should say."""
    readme = ROOT / "README.md"
    return {
        readme: fill(readme.read_text(encoding="utf-8")),
        ROOT / "docs" / "tables.md": tables_page(),
    }


def main() -> None:
    """Write the pages, or with --check say which are stale."""
    stale = [
        (path, text)
        for path, text in pages().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    if "--check" in sys.argv[1:]:
        for path, _ in stale:
            print(f"{path.relative_to(ROOT)} is stale: run `make fix`", file=sys.stderr)
        sys.exit(bool(stale))
    for path, text in stale:
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
