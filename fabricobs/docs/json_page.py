"""The page of the JSON of a diagnosis, from its schema."""

from collections.abc import Iterator
from typing import Any

from fabricobs.diagnosis.findings import SCHEMA_VERSION
from fabricobs.report.contract import json_schema
from fabricobs.report.markdown import page, table

_HEAD = f"""# JSON of a diagnosis

`fabricobs diagnose --format json` and `fabricobs report --format json` write it; the watch sends
findings in the same form. `fabricobs schema --json` prints its JSON Schema (draft 2020-12).

What you may rely on while `schema_version` is {SCHEMA_VERSION}: no field is removed, renamed or
given another meaning, type or unit; fields and kinds of findings may be added. The same store and
content give the same bytes. Sentences (`title`, `explanation`, `evidence`) may change in any
release: use `kind`, `answer`, `entities` and the numbers instead."""
_DOCUMENT = "Document"


def json_page() -> str:
    """Return the page: a table of fields for each object."""
    schema = json_schema()
    parts = [_section("Diagnosis", schema)]
    parts += [
        _section(name.removesuffix(_DOCUMENT), described)
        for name, described in schema["$defs"].items()
    ]
    return page(_HEAD, *parts)


def _section(name: str, described: dict[str, Any]) -> str:
    required = described.get("required", ())
    rows = [
        (
            f"`{field}`" if field in required else f"`{field}` (optional)",
            ", ".join(_types(of)),
            of.get("description", ""),
        )
        for field, of in described["properties"].items()
    ]
    return page(
        f"## {name}", described.get("description", ""), table(("field", "type", "meaning"), rows)
    )


def _types(of: dict[str, Any]) -> Iterator[str]:
    """Yield the types a field may have, in words."""
    if "anyOf" in of:
        for each in of["anyOf"]:
            yield from _types(each)
    elif "$ref" in of:
        yield of["$ref"].rpartition("/")[2].removesuffix(_DOCUMENT)
    elif "enum" in of or "const" in of:
        yield " / ".join(map(str, of.get("enum", [of.get("const")])))
    elif of["type"] == "array":
        yield f"list of {', '.join(_types(of['items']))}"
    else:
        yield of["type"]
