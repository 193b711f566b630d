"""A diagnosis as JSON (`schema_version` 1), and the findings back from it."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from fabricobs import __version__
from fabricobs.diagnosis.findings import (
    SCHEMA_VERSION,
    Coverage,
    Diagnosis,
    Driver,
    Entity,
    Finding,
    JobVerdict,
    Loss,
    Power,
    Question,
    Segment,
    Verdict,
    WhatIf,
)
from fabricobs.json_values import as_json
from fabricobs.report.wording import iso, iso_time

if TYPE_CHECKING:
    from fabricobs.querying import StoredQuery
    from fabricobs.report.contract import (
        CoverageDocument,
        CoverageValues,
        DiagnosisDocument,
        DriverDocument,
        EntityDocument,
        FindingDocument,
        JobDocument,
        LongerStepsDocument,
        LossDocument,
        PowerDocument,
        QuestionDocument,
        RunDocument,
        SegmentDocument,
        VerdictDocument,
        WhatIfDocument,
    )
    from fabricobs.store.jobs import Run

# What a finding and its JSON say in the same words.
_PLAIN = (
    "kind severity confidence title explanation start_step end_step loss_share gpu_hours_lost query"
).split()

_BOOLEAN = (
    "to_its_end from_first_step from_first_reading until_last_step traffic_ended unfelt"
).split()


def diagnosis_json(diagnosis: Diagnosis) -> str:
    """Return the diagnosis as JSON: the same diagnosis gives the same bytes."""
    known = _stored_queries()
    document: DiagnosisDocument = {
        "schema_version": SCHEMA_VERSION,
        "tool": "fabricobs",
        "tool_version": __version__,
        "cluster": diagnosis.cluster,
        "runs": [run.label or run.name for run in diagnosis.runs],
        "verdict": _verdict(diagnosis.verdict),
        "findings": [_finding(finding, known) for finding in diagnosis.findings],
        "segments": [_segment(segment) for segment in diagnosis.segments],
        "loss": _loss(diagnosis.loss),
        "what_if": [_what_if(each) for each in diagnosis.what_if],
        "coverage": _coverage(diagnosis.coverage),
        "failures": [{"part": f.part, "reason": f.reason} for f in diagnosis.failures],
    }
    if diagnosis.jobs:
        document["jobs"] = list(map(_job_verdict, diagnosis.jobs))
    return json.dumps(document, indent=2, allow_nan=False)


def finding_document(finding: Finding) -> "FindingDocument":
    """Return one finding as it stands in the JSON of a diagnosis."""
    return _finding(finding, _stored_queries())


def query_of(query: str, extra: Sequence[Path] = ()) -> "StoredQuery | None":
    """Return the stored query of that name, None if this installation has none."""
    return _stored_queries(extra).get(query)


def query_sql(query: str, extra: Sequence[Path] = ()) -> str:
    """Return the SQL of the stored query of that name, or the text itself if there is none."""
    return _sql_of(query, _stored_queries(extra))


def finding_of(document: Mapping[str, Any]) -> Finding:
    """Return the finding a JSON document tells of; what an older version left out is empty."""
    made: dict[str, Any] = {name: document[name] for name in _PLAIN}
    made |= {name: _moment(document[name]) for name in ("start", "end", "detected_at")}
    made |= {name: document.get(name) for name in ("cost", "run_share")}
    made |= {name: document.get(name, False) for name in _BOOLEAN}
    made["after_step"] = document.get("after_step")
    made["bursts"] = tuple(
        (each["first_step"], each["last_step"]) for each in document.get("bursts", ())
    )
    made["of_runs"] = document.get("of_runs", 1)
    made["begun_by"] = _moment(document.get("begun_by"))
    if longer := document.get("slower_from"):
        made["slower_from"] = longer["step"], _moment(longer["time"])
    made |= {name: document.get(name, "") for name in ("currency", "state")}
    made |= {
        name: tuple(document.get(name, ()))
        for name in ("families", "refuted_by", "next_steps", "loss_shared_with")
    }
    made |= {
        name: tuple(Entity(**entity) for entity in document[name])
        for name in ("entities", "related")
    }
    return Finding(**made, drivers=tuple(Driver(**driver) for driver in document["drivers"]))


def job_document(run: "Run") -> "RunDocument":
    """Return what is known of a run as JSON."""
    return {
        "job": run.label,
        "name": run.name,
        "run": run.number,
        "named_by": run.named_by,
        "hosts": list(run.hosts),
        "ranks": run.ranks,
        "nranks": run.nranks,
        "processes": run.processes,
        "first_step": run.first_step,
        "last_step": run.last_step,
        "planned_steps": run.planned_steps,
        "replayed_steps": run.replayed_steps,
        "nccl_versions": list(run.versions),
        "start": iso(run.begin),
        "end": iso(run.end),
        "files": list(run.paths),
        "candidates": run.candidates,
    }


def _verdict(verdict: Verdict) -> "VerdictDocument":
    return {
        "sentence": verdict.sentence,
        "judged": verdict.judged,
        "questions": list(map(_question, verdict.questions)),
    }


def _question(question: Question) -> "QuestionDocument":
    """Return one of the answers as it stands in the JSON of a diagnosis."""
    return {
        "question": question.question,
        "answer": question.answer,
        "evidence": question.evidence,
        "settled_by": question.settled_by,
        "would_show": list(map(_power, question.would_show)),
    }


def _power(power: Power) -> "PowerDocument":
    return {
        "effect": power.effect,
        "unit": power.unit,
        "what": power.what,
        "seconds": power.seconds,
        "steps": power.steps,
        "words": power.words,
    }


def _entity(entity: Entity) -> "EntityDocument":
    return cast("EntityDocument", entity.as_dict())


def _job_verdict(each: JobVerdict) -> "JobDocument":
    """Return the verdict of one job as it stands in the JSON of a diagnosis."""
    return {
        **job_document(each.run),
        "verdict": _verdict(each.verdict),
        "findings": list(each.findings),
        "loss": _loss(each.loss),
    }


def _finding(finding: Finding, known: Mapping[str, "StoredQuery"]) -> "FindingDocument":
    return {
        "id": finding.id,
        "kind": finding.kind,
        "severity": finding.severity,
        "confidence": as_json(finding.confidence),
        "families": list(finding.families),
        "entities": [_entity(entity) for entity in finding.entities],
        "related": [_entity(entity) for entity in finding.related],
        "start": iso(finding.start),
        "end": iso(finding.end),
        "start_step": finding.start_step,
        "end_step": finding.end_step,
        "bursts": [{"first_step": a, "last_step": b} for a, b in finding.bursts],
        "detected_at": iso(finding.detected_at),
        "loss_share": as_json(finding.loss_share),
        "loss_shared_with": list(finding.loss_shared_with),
        "run_share": as_json(finding.run_share),
        "of_runs": finding.of_runs,
        "gpu_hours_lost": as_json(finding.gpu_hours_lost),
        "cost": as_json(finding.cost),
        "currency": finding.currency,
        "state": finding.state,
        "slower_from": _longer_steps(finding),
        "begun_by": iso(finding.begun_by),
        "to_its_end": finding.to_its_end,
        "from_first_step": finding.from_first_step,
        "from_first_reading": finding.from_first_reading,
        "until_last_step": finding.until_last_step,
        "traffic_ended": finding.traffic_ended,
        "unfelt": finding.unfelt,
        "after_step": finding.after_step,
        "title": finding.title,
        "explanation": finding.explanation,
        "drivers": [_driver(driver) for driver in finding.drivers],
        "query": finding.query,
        "sql": _sql_of(finding.query, known),
        "refuted_by": list(finding.refuted_by),
        "next_steps": list(finding.next_steps),
    }


def _longer_steps(finding: Finding) -> "LongerStepsDocument | None":
    if finding.slower_from is None:
        return None
    step, moment = finding.slower_from
    return {"step": step, "time": iso_time(moment)}


def _driver(driver: Driver) -> "DriverDocument":
    return {
        "feature": driver.feature,
        "value": as_json(driver.value),
        "peer": as_json(driver.peer),
        "unit": driver.unit,
        "robust_z": as_json(driver.robust_z),
        "threshold": as_json(driver.threshold),
        "source": driver.source,
    }


def _segment(segment: Segment) -> "SegmentDocument":
    return {
        "first_step": segment.first_step,
        "last_step": segment.last_step,
        "start": iso(segment.start),
        "step_time_ms": as_json(segment.step_time_ms),
        "job": segment.job,
    }


def _loss(loss: Loss) -> "LossDocument":
    return {
        "share": as_json(loss.share),
        "gpu_hours": as_json(loss.gpu_hours),
        "cost": as_json(loss.cost),
        "currency": loss.price.currency if loss.cost is not None else "",
        "unexplained_share": as_json(loss.unexplained_share),
        "unexplained_gpu_hours": as_json(loss.unexplained_gpu_hours),
        "unexplained_cost": as_json(loss.unexplained_cost),
        "run_gpu_hours": as_json(loss.run_gpu_hours),
        "at_most": loss.at_most,
        "at_end_share": as_json(loss.at_end),
        "at_end_findings": [{"id": id_, "loss_share": share} for id_, share in loss.at_end_of],
    }


def _what_if(each: WhatIf) -> "WhatIfDocument":
    return {
        "entity": _entity(each.entity),
        "saved_share": as_json(each.saved_share),
        "speedup": as_json(each.speedup),
        "over": each.over,
        "against": each.against,
    }


def _coverage(coverage: Coverage) -> "CoverageDocument":
    return {
        "facts": dict(coverage.facts),
        "values": cast(
            "CoverageValues", {name: as_json(value) for name, value in coverage.values.items()}
        ),
        "first_time": iso(coverage.first_time),
        "last_time": iso(coverage.last_time),
        "missing": list(coverage.missing),
        "clocks": [
            {
                "of": clock.of,
                "name": clock.name,
                "seconds": as_json(clock.seconds),
                "error": as_json(clock.error),
                "corrected": clock.corrected,
            }
            for clock in coverage.clocks
        ],
        "counter_breaks": [
            {
                "device": broken.device,
                "counter": broken.counter,
                "what": broken.what,
                "ports": broken.ports,
                "times": broken.times,
                "first": iso_time(broken.first),
                "source": broken.source,
                "port": broken.port,
                "counted_by": broken.counted_by,
            }
            for broken in coverage.breaks
        ],
    }


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text).replace(tzinfo=None)


def _stored_queries(extra: Sequence[Path] = ()) -> "dict[str, StoredQuery]":
    # Brings DuckDB, which `fabricobs ingest` need not load.
    from fabricobs.querying import stored_queries

    return stored_queries(extra)


def _sql_of(query: str, known: Mapping[str, "StoredQuery"]) -> str:
    return known[query].sql if query in known else query
