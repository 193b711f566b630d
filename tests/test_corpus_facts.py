"""Facts taken by hand from real logs, one file of facts an input; skipped where it is absent."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session

pytestmark = pytest.mark.slow

FACTS = sorted((Path(__file__).parent / "corpus").rglob("*.toml"))


@pytest.mark.parametrize("facts", FACTS, ids=lambda path: path.stem)
def test_facts(facts: Path, corpus: Path, tmp_path: Path) -> None:
    document = tomllib.loads(facts.read_text(encoding="utf-8"))
    inputs = sorted(corpus.glob(document["path"]))
    assert inputs, f"{facts.name}: nothing matches {document['path']}"
    ingest(inputs, Store(tmp_path / "store"), Options())
    # As `fabricobs sql` asks: to make every view takes seconds.
    asked = ";\n".join(fact["sql"] for fact in document["fact"])
    with open_session(tmp_path / "store", asked) as session:
        for fact in document["fact"]:
            rows = [list(row) for row in session.sql(fact["sql"]).fetchall()]
            assert rows == _rows(fact["is"]), fact["sql"]


def _rows(expected: list[list[Any]]) -> list[list[Any]]:
    """TOML has no null: NULL stands for it; decimals agree to nine digits."""
    return [[_value(value) for value in row] for row in expected]


def _value(value: Any) -> Any:
    if value == "NULL":
        return None
    return pytest.approx(value, rel=1e-9) if isinstance(value, float) else value
