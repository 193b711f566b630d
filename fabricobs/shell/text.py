"""What was typed so far: whether it is whole, where the cursor stands, which tables it names."""

import re

# Literals, quoted names and comments, closed or not yet.
_QUOTED = re.compile(r"'(?:[^']|'')*(?:'|$)|\"[^\"]*(?:\"|$)|--[^\n]*|/\*.*?(?:\*/|$)", re.DOTALL)
_SOURCE = re.compile(
    r"\b(?:from|join|describe|summarize)\s+(\w+)(?:\s+(?:as\s+)?(\w+))?", re.IGNORECASE
)
_MORE_SOURCES = re.compile(r",\s*(\w+)(?:\s+(?:as\s+)?(\w+))?", re.IGNORECASE)
_TAKES_TABLE = re.compile(r"\b(?:from|join|describe|summarize)\s+$", re.IGNORECASE)
_WORD_AT_END = re.compile(r"\w*$")


def is_command(text: str) -> bool:
    """Say whether the text is a command of the shell, not SQL."""
    return text.lstrip().startswith(".")


def is_whole(text: str) -> bool:
    """Say whether Enter ends the input: nothing, a command, or SQL that ends with a semicolon."""
    bare = _QUOTED.sub(_blank, text).strip()
    return not text.strip() or is_command(text) or bare.endswith(";")


def _blank(match: re.Match[str]) -> str:
    return " " if match[0].startswith(("--", "/*")) else "''"


def in_quotes(before: str) -> bool:
    """Say whether the cursor stands in a literal or a comment, given the text before it."""
    quoted = list(_QUOTED.finditer(before))
    return bool(quoted) and quoted[-1].end() == len(before) and not _is_closed(quoted[-1][0])


def _is_closed(quoted: str) -> bool:
    if quoted.startswith("/*"):
        return quoted.endswith("*/") and len(quoted) >= len("/**/")
    return not quoted.startswith("--") and quoted.count(quoted[0]) % 2 == 0


def word_before(before: str) -> str:
    """Return the beginning of the word the cursor stands behind, maybe empty."""
    match = _WORD_AT_END.search(before)
    return match[0] if match else ""


def takes_table(before: str) -> bool:
    """Say whether a table must follow, given the text before the word."""
    return _TAKES_TABLE.search(before) is not None


def qualifier(before: str) -> str | None:
    """Return the name before the dot that the word follows, None if there is none."""
    match = re.search(r"(\w+)\.$", before)
    return match[1] if match else None


def sources(text: str, tables: frozenset[str]) -> dict[str, str]:
    """Return the tables a statement reads, by the names it gives them."""
    bare = _QUOTED.sub(_blank, text)
    found: dict[str, str] = {}
    for table, alias in [*_SOURCE.findall(bare), *_MORE_SOURCES.findall(bare)]:
        if table.lower() in tables:
            found[table.lower()] = table.lower()
            if alias:
                found[alias.lower()] = table.lower()
    return found
