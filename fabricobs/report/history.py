"""Findings kept in the store, so that the history of a cluster can be asked in SQL."""

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from fabricobs import content
from fabricobs.diagnosis.findings import Diagnosis, Finding
from fabricobs.report.documents import diagnosis_json, finding_of
from fabricobs.store.arrow import table_schema
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session


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


def kept_findings(store: Path, extra: Sequence[Path] = ()) -> list[Finding]:
    """Return every finding kept, each as it was judged last, the latest first."""
    path = content.files("queries", ".sql", extra)["report/kept_findings"]
    sql = path.read_text(encoding="utf-8")
    with open_session(store, sql, extra) as connection:
        rows = connection.execute(sql).fetchall()
    return [finding_of(json.loads(document)) for _, document in rows]


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text).replace(tzinfo=None)
