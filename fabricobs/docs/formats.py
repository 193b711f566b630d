"""The formats of `ingest/`: docs/formats.md, a table of all and a sample of each."""

import re

from fabricobs import content
from fabricobs.formats.definition import Definition, Sample, load_definitions
from fabricobs.report.markdown import code, page, table
from fabricobs.store.tables import TABLES

_MOST_LINES = 6
_MOST_CHARACTERS = 160


def inputs_table() -> str:
    """Return the table of formats, from the definitions."""
    rows = sorted((d.title, f"`{d.name}`", ", ".join(fills(d))) for d in _listed())
    return table(("input", "format", "writes to"), rows)


def fills(definition: Definition) -> list[str]:
    """Return the tables a format fills."""
    text = str(definition)
    return [
        name
        for name in TABLES
        if name in definition.fills or re.search(rf"table='{name}'|'{name}\.", text)
    ]


def formats_page() -> str:
    """Return docs/formats.md: every format, what it is, what it fills, how it looks."""
    sections = [_section(definition) for definition in sorted(_listed(), key=lambda d: d.title)]
    return page(
        "# Formats",
        "Made from the definitions in `ingest/`; its README says how to write one. A file is "
        "recognised by what it holds, its name is a hint at most. The samples are shortened: a "
        f"definition shows all of its own, here stand the first {_MOST_LINES} lines of one.",
        inputs_table(),
        *sections,
    )


def _section(definition: Definition) -> str:
    filled = ", ".join(f"[{name}](tables.md#{name})" for name in fills(definition))
    facts = [f"Format `{definition.name}`", f"fills {filled}" if filled else "known, not kept"]
    sample = next((sample for sample in definition.sample if sample.text), None)
    return page(
        f"## {definition.title}",
        f"{'; '.join(facts)}.",
        _described(definition.name),
        code(_beginning(sample), "text") if sample else "",
    )


def _listed() -> list[Definition]:
    return [d for d in load_definitions().values() if not d.separator]


def _described(name: str) -> str:
    """Return the comment a definition begins with."""
    text = content.files("ingest", ".toml")[name].read_text(encoding="utf-8")
    comment = re.match(r"(?:#.*\n)*", text)
    lines = comment[0].splitlines() if comment else []
    return "\n".join(line.removeprefix("#").strip() for line in lines)


def _beginning(sample: Sample) -> str:
    lines = sample.text.strip("\n").splitlines()
    cut = [_shortened(line) for line in lines]
    more = ["..."] if len(cut) > _MOST_LINES else []
    return "\n".join([*cut[:_MOST_LINES], *more])


def _shortened(line: str) -> str:
    return line if len(line) <= _MOST_CHARACTERS else f"{line[:_MOST_CHARACTERS]}..."
