"""The demo: a cluster whose fault is known, from its logs to the report."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fabricobs import content
from fabricobs.diagnosis.run import diagnose
from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.printing import show
from fabricobs.report.account import ingest_table
from fabricobs.report.page import write_page
from fabricobs.report.terminal import diagnosis_text, in_colour
from fabricobs.report.working import working
from fabricobs.simulator.cases import by_job, write_case
from fabricobs.simulator.logs import KINDS
from fabricobs.simulator.scenarios import load_scenario
from fabricobs.store.parts import Store


def run_demo(out: Path) -> None:
    """Ingest sample_data into `out/store`, print what is found, write `out/report.html`."""
    _show([(None, [content.shipped("sample_data") / "logs"])], out)


def run_scenario(name: str, out: Path, *, gpus: int | None, seed: int) -> None:
    """Simulate a scenario into `out/NAME`, judge it as `run_demo` does, and tell the answer."""
    scenario = load_scenario(name).sized(gpus)
    case = out / scenario.name
    shutil.rmtree(case, ignore_errors=True)
    with working("simulating"):
        truth = write_case(case, scenario, seed=seed)
    show(f"{scenario.shape.title}. {scenario.shape.teaches}\n")
    _show(by_job(case / "logs", truth, KINDS), case)
    show("\nThe answer")
    for line in _answer(truth):
        show(f"  {line}")


def _answer(truth: dict[str, Any]) -> list[str]:
    if not truth["faults"]:
        return ["Nothing is wrong.", *truth["benign"]]
    lines = []
    for fault in truth["faults"]:
        names = [
            " ".join(str(value) for key, value in culprit.items() if key != "type")
            for culprit in fault["culprits"][:3]
        ]
        lines.append(
            f"{fault['kind']}: {', '.join(names)}, since step {fault['start_step']}, "
            f"costs {fault['loss_share']:.1%} of the throughput"
        )
    return lines


def _show(logs: Sequence[tuple[str | None, list[Path]]], out: Path) -> None:
    store = out / "store"
    shutil.rmtree(store, ignore_errors=True)
    for job, folders in logs:
        with working("reading the logs"):
            report = ingest(folders, Store(store), Options(job))
        show(ingest_table(report))
    show()
    with working("diagnosing"):
        found = diagnose(store)
    show(diagnosis_text(found), colour=in_colour)
    page = out / "report.html"
    with working("drawing"):
        write_page(found, store, page)
    show(f"\nReport: {page.absolute()}")
    show(f"Next: fabricobs query --list; fabricobs query uplink_balance --store {store}")
