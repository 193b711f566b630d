"""Findings kept in the store, so that the history of a cluster can be asked in SQL."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fabricobs import content
from fabricobs.diagnosis.findings import Diagnosis, Finding
from fabricobs.diagnosis.incidents import Event, Incident, Raised
from fabricobs.report.documents import diagnosis_json, finding_document, finding_of
from fabricobs.store.arrow import table_schema
from fabricobs.store.integrity import parsing
from fabricobs.store.parts import Store
from fabricobs.store.reading import snapshot_of
from fabricobs.store.session import open_session
from fabricobs.store.storage import storage_of


def keep_findings(diagnosis: Diagnosis, store: Path) -> None:
    """Add the findings to table `findings`; the same diagnosis again adds nothing."""
    if not diagnosis.findings:
        return
    documents: list[dict[str, Any]] = json.loads(diagnosis_json(diagnosis))["findings"]
    text = json.dumps(documents, sort_keys=True)
    run = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
    now = datetime.now(UTC).replace(tzinfo=None)
    rows = map(_row, diagnosis.findings, documents)
    _keep(run, [row | {"told": now} for row in rows], store)


def keep_event(event: Event, store: Path) -> None:
    """Add an event of an incident to table `findings`; the same event again adds nothing."""
    incident = event.incident
    row = _row(incident.finding, finding_document(incident.finding)) | {
        "news": event.news,
        "told": event.at,
        "severity": incident.severity,
    }
    _keep(event.key, [row], store)


def _keep(run: str, rows: Sequence[dict[str, Any]], store: Path) -> None:
    if _is_kept(run, store):
        return
    table = pa.Table.from_pylist([{"run": run, **row} for row in rows], table_schema("findings"))
    Store(store).append(f"findings-{run}", {"findings": table})


def kept_findings(store: Path, extra: Sequence[Path] = ()) -> list[Finding]:
    """Return every finding kept, each as it was judged last, the latest first."""
    path = content.files("queries", ".sql", extra)["report/kept_findings"]
    sql = path.read_text(encoding="utf-8")
    with open_session(store, sql, extra) as connection:
        rows = connection.execute(sql).fetchall()
    return [finding_of(json.loads(document)) for _, document in rows]


def open_incidents(store: Path, extra: Sequence[Path] = ()) -> tuple[Incident, ...]:
    """Return the incidents that are not resolved, as their kept events show them."""
    path = content.files("queries", ".sql", extra)["report/told_incidents"]
    with open_session(store, path.read_text(encoding="utf-8"), extra) as connection:
        rows = connection.execute(path.read_text(encoding="utf-8")).fetchall()
    incidents = []
    for _, group in groupby(rows, key=itemgetter(0)):
        events = list(group)
        finding = finding_of(json.loads(events[-1][3]))
        raised = tuple(Raised(severity, told) for _, severity, told, _ in events)
        last_seen = finding.end or finding.start or raised[-1].at
        incidents.append(Incident(finding, "firing", last_seen, raised))
    return tuple(incidents)


def _is_kept(run: str, store: Path) -> bool:
    """Say whether the rows are there, alone or merged with others."""
    parts = snapshot_of(store).parts("findings")
    storage_of(store).fetch(parts)
    return any(run in _runs(store / part) for part in parts)


def _runs(part: Path) -> set[str]:
    with parsing(part):
        return set(pq.read_table(part, columns=["run"])["run"].to_pylist())


def _row(finding: Finding, document: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": finding.id,
        "kind": finding.kind,
        "severity": finding.severity,
        "confidence": finding.confidence,
        "start": finding.start,
        "end": finding.end,
        "loss_share": finding.loss_share,
        "title": finding.title,
        "document": json.dumps(document),
    }
