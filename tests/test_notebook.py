"""The notebook of the manual runs as a reader runs it, and shows tables and charts."""

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from conftest import ROOT

pytestmark = pytest.mark.slow

NOTEBOOK = ROOT / "docs" / "notebook.ipynb"
# What a cell holds, and what the table that it shows says.
TABLES = {
    "fabricobs.ingest(": "parsed",
    "store.jobs()": "of ranks",
    "store.diagnose()": "answer",
    "diagnosis.coverage": "counter interval",
    "store.explain(": "next step",
    "store.compare(": "change",
    ".pl()": "step_ms",
    "store.query(": "caused_wait_ms",
}


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A kernel of this Python, where Jupyter looks for one; all of its files in a folder."""
    folder = tmp_path_factory.mktemp("jupyter")
    spec = folder / "kernels" / "fabricobs"
    spec.mkdir(parents=True)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    environment = {"PYTHONPATH": str(ROOT), "IPYTHONDIR": str(folder)}
    described = {"argv": command, "display_name": "fabricobs", "env": environment}
    (spec / "kernel.json").write_text(json.dumps(described))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PATH", str(folder))
        patch.setenv("JUPYTER_RUNTIME_DIR", str(folder / "runtime"))
        for name in ("FABRICOBS_STORE", "FABRICOBS_CONFIG"):
            patch.delenv(name, raising=False)
        yield folder


def run(notebook: nbformat.NotebookNode, folder: Path) -> list[tuple[str, dict[str, Any]]]:
    """Run every cell in a folder; return the code of each and what it shows last, by type."""
    client = NotebookClient(
        notebook,
        timeout=600,
        kernel_name="fabricobs",
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    printed = [out.text for cell in code for out in cell.outputs if out.output_type == "stream"]
    assert printed == [], "notes, warnings and bars are no answers"
    shown = [[out.data for out in cell.outputs if "data" in out] for cell in code]
    return [(cell.source, data[-1] if data else {}) for cell, data in zip(code, shown, strict=True)]


@pytest.fixture(scope="module")
def answers(kernel: Path, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, Any]]:
    folder = tmp_path_factory.mktemp("reader")
    (folder / "sample_data").symlink_to(ROOT / "sample_data")
    (folder / "docs").mkdir()
    shutil.copy(NOTEBOOK, folder / "docs")
    notebook = nbformat.read(folder / "docs" / NOTEBOOK.name, as_version=4)
    shown = run(notebook, folder / "docs")
    assert (folder / "docs" / "report.html").is_file()
    return shown


def test_it_is_valid_and_holds_no_outputs() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") for cell in notebook.cells)


@pytest.mark.parametrize(("call", "column"), TABLES.items())
def test_what_it_asks_is_shown_as_a_table(
    answers: list[tuple[str, Any]], call: str, column: str
) -> None:
    (shown,) = [data for code, data in answers if call in code]
    assert "<table" in shown["text/html"]
    assert column in shown["text/html"]


def test_its_chart_is_drawn_without_a_network(answers: list[tuple[str, Any]]) -> None:
    (drawn,) = [shown for code, shown in answers if "store.chart" in code]
    assert "leaf01" in drawn["image/svg+xml"]
    assert "text/html" not in drawn


def test_a_misspelled_table_gets_the_hint_of_the_command(kernel: Path, sample_store: Path) -> None:
    asked = f"import fabricobs\nfabricobs.open({str(sample_store)!r}).sql('SELECT * FROM setps')"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(asked)])
    with pytest.raises(CellExecutionError, match="did you mean steps"):
        run(notebook, kernel)
