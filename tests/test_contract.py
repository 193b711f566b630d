"""The promise of docs/json.md: what version 1 of the JSON of a diagnosis had, it has."""

import json
from typing import Any

import pytest

from conftest import ROOT
from fabricobs.diagnosis.findings import SCHEMA_VERSION
from fabricobs.report.contract import json_schema

# Every field of every object as it was published, by object. A release adds what is new to it and
# never changes it: who must, raises SCHEMA_VERSION and begins a file of its own.
PUBLISHED = json.loads((ROOT / "tests" / f"schema_{SCHEMA_VERSION}.json").read_text())
WORDS = {"description", "title"}


def plain(described: Any) -> Any:
    """Return a schema without its words."""
    if isinstance(described, dict):
        return {key: plain(value) for key, value in described.items() if key not in WORDS}
    return list(map(plain, described)) if isinstance(described, list) else described


def fields() -> dict[str, dict[str, Any]]:
    """Return the fields of every object as they are now."""
    schema = json_schema()
    objects = {"Diagnosis": schema, **schema["$defs"]}
    return {
        name.removesuffix("Document"): {
            field: plain(told) | {"required": field in described.get("required", ())}
            for field, told in described["properties"].items()
        }
        for name, described in objects.items()
    }


@pytest.mark.parametrize("name", PUBLISHED)
def test_no_published_field_is_gone_or_of_another_type(name: str) -> None:
    now = fields()[name]
    assert {field: now.get(field) for field in PUBLISHED[name]} == PUBLISHED[name]


def test_every_field_says_its_type() -> None:
    for name, described in fields().items():
        for field, told in described.items():
            assert told.keys() & {"type", "$ref", "anyOf", "enum", "const"}, f"{name}.{field}"
