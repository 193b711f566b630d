"""A diagnosis from a store: evidence, methods, attribution, verdict."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from fabricobs import stopping
from fabricobs.content import ContentError
from fabricobs.diagnosis.attribution import (
    fold_downstream,
    fold_symptoms,
    in_order,
    unexplained,
    without_named,
)
from fabricobs.diagnosis.calibration import calibrated, load_calibration
from fabricobs.diagnosis.clocks import device_offsets, host_offsets
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.findings import Diagnosis, Finding, Judgement
from fabricobs.diagnosis.job import job_paces
from fabricobs.diagnosis.methods import METHODS
from fabricobs.diagnosis.model import load_models
from fabricobs.diagnosis.rank_times import rank_times
from fabricobs.diagnosis.verdict import describe_coverage, give_verdict
from fabricobs.diagnosis.what_if import what_if
from fabricobs.store.session import NO_SITE, Site

REST = "throughput_drop"


def diagnose(
    store: Path,
    extra: Sequence[Path] = (),
    *,
    since: datetime | None = None,
    site: Site = NO_SITE,
    thresholds: Mapping[str, Mapping[str, float]] | None = None,
    gpu_hour_price: float | None = None,
    calibrate: bool = True,
) -> Diagnosis:
    """Judge a store, from `since` (UTC) on; ContentError if a model names no known method.

    `thresholds` by model take the place of those of the content. Without `calibrate` a finding's
    confidence is how far its evidence agrees, whatever that was worth so far.
    """
    models = load_models(extra)
    for name, limits in (thresholds or {}).items():
        models[name] = models[name].with_limits(limits, "the site's configuration")
    evidence = Evidence(store, extra, since, site)
    offsets = device_offsets(evidence)
    evidence.set_clocks(
        {o.device: o.seconds for o in offsets if o.seconds is not None and o.certain}
    )
    rest = models[REST]
    paces = job_paces(
        evidence.frame("step_times"),
        evidence.frame("rank_steps"),
        rest.limit("change"),
        int(rest.limit("least_steps")),
        dict(evidence.frame("job_sizes").select("job", "ranks_expected").iter_rows()),
    )
    judgements: dict[str, Judgement] = {}
    for model in models.values():
        if model.method == REST:
            continue
        stopping.check()
        if model.method not in METHODS:
            known = ", ".join(METHODS)
            raise ContentError(
                f"models/{model.name}.toml: no method {model.method!r}; one of {known}"
            )
        judged = METHODS[model.method](evidence, model, paces)
        judgements[model.kind] = judgements.get(model.kind, Judgement()).joined(judged)
    findings: list[Finding] = [f for j in judgements.values() for f in j.findings]
    findings = fold_symptoms(fold_downstream(findings, evidence), models, evidence)
    findings = without_named(findings)
    findings.extend(unexplained(findings, paces, rest, evidence))
    if calibrate:
        findings = calibrated(findings, load_calibration(extra))
    ordered = in_order([_priced(finding, gpu_hour_price) for finding in findings])
    return Diagnosis(
        verdict=give_verdict(evidence, ordered, paces, judgements),
        findings=ordered,
        segments=tuple(segment for pace in paces for segment in pace.segments),
        coverage=describe_coverage(evidence, offsets, host_offsets(evidence)),
        what_if=what_if(rank_times(evidence), ordered),
    )


def _priced(finding: Finding, gpu_hour_price: float | None) -> Finding:
    if gpu_hour_price is None or finding.gpu_hours_lost is None:
        return finding
    return replace(finding, cost=round(gpu_hour_price * finding.gpu_hours_lost, 2))
