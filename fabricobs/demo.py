"""The demo: the sample cluster that comes along, from its logs to the report."""

import shutil
from pathlib import Path

from fabricobs import content
from fabricobs.diagnosis.run import diagnose
from fabricobs.ingest import ingest
from fabricobs.inputs import Options
from fabricobs.report.account import ingest_table
from fabricobs.report.page import write_page
from fabricobs.report.terminal import diagnosis_text
from fabricobs.store.parts import Store


def run_demo(out: Path) -> None:
    """Ingest sample_data into `out/store`, print what is found, write `out/report.html`."""
    store = out / "store"
    shutil.rmtree(store, ignore_errors=True)
    print(ingest_table(ingest([content.shipped("sample_data") / "logs"], Store(store), Options())))
    print()
    found = diagnose(store)
    print(diagnosis_text(found))
    page = out / "report.html"
    write_page(found, store, page)
    print(f"\nReport: {page.absolute()}")
    print(f"Ask it: fabricobs query --list; fabricobs query uplink_balance --store {store}")
