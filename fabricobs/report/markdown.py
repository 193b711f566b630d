"""Pieces of Markdown."""

from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; bars inside a cell are escaped."""
    first, *rest = (f"| {' | '.join(map(_cell, line))} |" for line in (header, *rows))
    return "\n".join([first, "|---" * len(header) + "|", *rest])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def code(text: str, language: str = "") -> str:
    """Return a block of code, fenced by more backticks than the text has in a row."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def bullets(items: Iterable[str]) -> str:
    """Return a list."""
    return "\n".join(f"- {item}" for item in items)


def page(*parts: str) -> str:
    """Return a page of its parts, a blank line between them, those that are empty left out."""
    return "\n\n".join(part.strip("\n") for part in parts if part.strip()) + "\n"
