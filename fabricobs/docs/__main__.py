"""Writes the manual, or says whether it is true.

`python -m fabricobs.docs` writes what is made, `--check` only says which pages are stale. Some
pages are made whole; in the others what is made stands between `<!-- begin NAME -->`
and `<!-- end NAME -->`.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path

from fabricobs.docs.commands import commands_sections, commands_table
from fabricobs.docs.diagnoses import diagnoses_page
from fabricobs.docs.formats import formats_page
from fabricobs.docs.json_page import json_page
from fabricobs.docs.limits import limits_page
from fabricobs.docs.python import python_reference
from fabricobs.docs.queries import queries_page
from fabricobs.docs.rules import rules_page
from fabricobs.docs.security import doors_table
from fabricobs.docs.tables import tables_page

ROOT = Path(__file__).parents[2]

BLOCKS: dict[str, Callable[[], str]] = {
    "commands": commands_table,
    "sections of commands": commands_sections,
    "python": python_reference,
    "doors": doors_table,
}
PAGES: dict[str, Callable[[], str]] = {
    "docs/formats.md": formats_page,
    "docs/tables.md": tables_page,
    "docs/queries.md": queries_page,
    "docs/diagnoses.md": diagnoses_page,
    "docs/rules.md": rules_page,
    "docs/limits.md": limits_page,
    "docs/json.md": json_page,
}
FILLED = ("docs/commands.md", "docs/python.md", "docs/security.md")


def fill(text: str) -> str:
    """Return a page with its made blocks renewed."""
    for name, make in BLOCKS.items():
        block = re.compile(rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
        if block.search(text):
            made = make()
            text = block.sub(lambda match, made=made: f"{match[1]}{made}\n{match[2]}", text)  # type: ignore[misc]
    return text


def pages() -> dict[Path, str]:
    """Return what each page should say."""
    made = {ROOT / name: make() for name, make in PAGES.items()}
    filled = {path: fill(path.read_text(encoding="utf-8")) for path in map(ROOT.joinpath, FILLED)}
    return made | filled


def main() -> None:
    """Write the pages, or with --check say which are stale."""
    stale = [
        (path, text)
        for path, text in pages().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    if "--check" in sys.argv[1:]:
        for path, _ in stale:
            print(f"{path.relative_to(ROOT)} is stale: run `make docs`", file=sys.stderr)
        sys.exit(bool(stale))
    for path, text in stale:
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
