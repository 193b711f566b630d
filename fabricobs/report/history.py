"""Findings kept in the store, so that the history of a cluster can be asked in SQL."""

import hashlib
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from fabricobs.diagnosis.findings import Diagnosis
from fabricobs.report.documents import diagnosis_json
from fabricobs.store.arrow import table_schema
from fabricobs.store.parts import Store


def keep_findings(diagnosis: Diagnosis, store: Path) -> None:
    """Add the findings to table `findings`; the same diagnosis again adds nothing."""
    if not diagnosis.findings:
        return
    documents: list[dict[str, Any]] = json.loads(diagnosis_json(diagnosis))["findings"]
    text = json.dumps(documents, sort_keys=True)
    run = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
    rows = [
        {
            "run": run,
            "id": document["id"],
            "kind": document["kind"],
            "severity": document["severity"],
            "confidence": document["confidence"],
            "start": _time(document["start"]),
            "end": _time(document["end"]),
            "loss_share": document["loss_share"],
            "title": document["title"],
            "document": json.dumps(document),
        }
        for document in documents
    ]
    table = pa.Table.from_pylist(rows, schema=table_schema("findings"))
    Store(store).append(f"findings-{run}", {"findings": table})


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text).replace(tzinfo=None)
