"""A Prometheus textfile for node_exporter: standing incidents, and whether the watch is well."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from prometheus_client import CollectorRegistry, Gauge, write_to_textfile

from fabricobs.diagnosis.findings import SEVERITIES
from fabricobs.diagnosis.incidents import Incident
from fabricobs.printing import escaped

_LABELS = ("id", "kind", "severity", "state", "culprit")


@dataclass(frozen=True, slots=True)
class Health:
    """How a round went: `ended` is UTC without a zone, `newest` the newest time of the data."""

    ended: datetime
    seconds: float
    well: bool
    newest: datetime | None
    pending: Mapping[str, int]  # events not delivered yet, by target


def write_textfile(path: Path, incidents: Sequence[Incident], health: Health) -> None:
    """Write the metrics to `path` by one rename; OSError if they cannot be."""
    registry = CollectorRegistry()
    severity = Gauge(
        "fabricobs_incident_severity",
        "A standing incident: 1 low, 2 medium, 3 high, 4 critical",
        _LABELS,
        registry=registry,
    )
    loss = Gauge(
        "fabricobs_incident_loss_ratio",
        "Share of throughput a standing incident costs, 0 to 1",
        _LABELS,
        registry=registry,
    )
    for incident in incidents:
        if incident.state == "resolved":
            continue
        labels = _labels(incident)
        severity.labels(*labels).set(SEVERITIES.index(incident.severity))
        if incident.finding.loss_share is not None:
            loss.labels(*labels).set(incident.finding.loss_share)
    pending = Gauge(
        "fabricobs_events_pending",
        "Events a target has not taken yet",
        ("target",),
        registry=registry,
    )
    for target, count in health.pending.items():
        pending.labels(target).set(count)
    for name, text, value in (
        ("round_timestamp_seconds", "When the last round ended", _epoch(health.ended)),
        ("round_duration_seconds", "How long the last round took", health.seconds),
        ("round_success", "Whether the last round read and judged all there was", health.well),
        ("data_timestamp_seconds", "Newest time of the data", _epoch(health.newest)),
    ):
        if value is not None:
            Gauge(f"fabricobs_{name}", text, registry=registry).set(value)
    write_to_textfile(str(path), registry)


def _labels(incident: Incident) -> tuple[str, ...]:
    finding = incident.finding
    culprits = finding.entities
    culprit = culprits[0].label if len(culprits) == 1 else ""
    return (finding.id, finding.kind, incident.severity, incident.state, escaped(culprit))


def _epoch(moment: datetime | None) -> float | None:
    return None if moment is None else moment.replace(tzinfo=UTC).timestamp()
