"""JSON documents: records by their paths, what is above them, and nothing that no path names."""

import json
from pathlib import Path
from typing import Any

import pytest

from fabricobs.formats.catalogue import load_catalogue
from fabricobs.ingest import ingest
from fabricobs.planning import Options
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session
from fabricobs.store.tables import TABLES

SECRET = "hunter2-do-not-tell"
DEFINITION = load_catalogue().formats["nccl_tests_json"].definition


def document(*, indent: int | None = 1) -> str:
    """Write what nccl-tests -J write, a secret in its environment."""
    half = {"time": 10.5, "alg_bw": 1.0, "bus_bw": 2.0, "nwrong": 0}
    result = {"count": 4, "type": "float", "redop": "sum", "root": "    -1"}
    return json.dumps(
        {
            "version": "2.17.9",
            "start_time": "2026-04-05 06:07:08",
            "args": ["./all_reduce_perf", "-J", "x"],
            "env": [
                "PATH=/bin",
                f"DB_URL=postgres://u:{SECRET}@h/db",
                f"SITE_TOKEN={SECRET}",
                "A=b",
            ],
            "nccl_version": 22704,
            "config": {"aggregated_iterations": 1, "devices": [{"rank": 0, "pid": 5}]},
            "results": [
                {"size": 16 << n, **result, "out_of_place": half, "in_place": half}
                for n in range(4)
            ],
        },
        indent=indent,
    )


def told(path: Path, store: Path) -> dict[str, list[tuple[Any, ...]]]:
    ingest([path], Store(store), Options())
    with open_session(store) as session:
        return {name: session.sql(f"SELECT * FROM {name}").fetchall() for name in TABLES}


@pytest.mark.parametrize("indent", [None, 1])
def test_a_secret_of_the_environment_never_reaches_the_store(tmp_path: Path, indent: int) -> None:
    (tmp_path / "out.json").write_text(document(indent=indent))
    rows = told(tmp_path / "out.json", tmp_path / "store")
    assert len(rows["benchmarks"]) == 4
    assert SECRET not in repr(rows)


def test_nor_does_one_of_a_file_that_breaks_off(tmp_path: Path) -> None:
    text = document()
    kept = set()
    for number, cut in enumerate(range(text.index('"env"'), len(text) - 1, 97)):
        path = tmp_path / f"{number}.json"
        path.write_text(text[:cut])
        rows = told(path, tmp_path / f"store{number}")
        assert SECRET not in repr(rows), text[:cut][-80:]
        kept.add(len(rows["benchmarks"]))
    assert len(kept) > 2


def test_a_file_that_breaks_off_is_accounted_for(tmp_path: Path) -> None:
    (tmp_path / "out.json").write_text(document()[:-60])
    ingest([tmp_path / "out.json"], Store(tmp_path / "store"), Options())
    with open_session(tmp_path / "store") as session:
        ((lines, parsed, ignored, unparsed),) = session.sql(
            "SELECT lines, parsed, ignored, unparsed FROM files"
        ).fetchall()
        ((reason, text),) = session.sql("SELECT reason, text FROM unparsed").fetchall()
    assert (lines, ignored, unparsed) == (parsed + 1, 0, 1)
    assert "breaks off" in reason
    assert text == ""


def test_the_environment_is_named_nowhere() -> None:
    named = [key for block in DEFINITION.block for key in block.columns]
    assert not [key for key in named if "env" in key]
