"""A diagnosis from a store: evidence, methods, attribution, verdict."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path

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
from fabricobs.diagnosis.congestion import find_congestion
from fabricobs.diagnosis.degraded_link import find_degraded_links
from fabricobs.diagnosis.ecmp_skew import find_ecmp_skew
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.findings import Diagnosis, Finding, Judgement
from fabricobs.diagnosis.gpu_error import find_gpu_errors
from fabricobs.diagnosis.hang import find_hangs
from fabricobs.diagnosis.job import JobPace, job_paces
from fabricobs.diagnosis.link_errors import find_link_errors
from fabricobs.diagnosis.link_flap import find_link_flaps
from fabricobs.diagnosis.mixed_traffic import find_mixed_traffic
from fabricobs.diagnosis.model import Model, load_models
from fabricobs.diagnosis.odd_one_out import find_odd_ones
from fabricobs.diagnosis.one_way_uplink import find_one_way_uplinks
from fabricobs.diagnosis.oversubscription import find_oversubscription
from fabricobs.diagnosis.packet_loss import find_packet_loss
from fabricobs.diagnosis.pfc_storm import find_pfc_storms
from fabricobs.diagnosis.rank_times import rank_times
from fabricobs.diagnosis.silent_ecn import find_silent_ecn
from fabricobs.diagnosis.standout import find_standouts
from fabricobs.diagnosis.straggler import find_stragglers
from fabricobs.diagnosis.verdict import describe_coverage, give_verdict
from fabricobs.diagnosis.what_if import what_if
from fabricobs.diagnosis.workload import find_workload_imbalance
from fabricobs.store.session import NO_SITE, Site

Method = Callable[[Evidence, Model, list[JobPace]], Judgement]

METHODS: dict[str, Method] = {
    "congestion": find_congestion,
    "degraded_link": find_degraded_links,
    "ecmp_skew": find_ecmp_skew,
    "gpu_error": find_gpu_errors,
    "hang": find_hangs,
    "link_errors": find_link_errors,
    "link_flap": find_link_flaps,
    "mixed_traffic": find_mixed_traffic,
    "one_way_uplink": find_one_way_uplinks,
    "odd_one_out": find_odd_ones,
    "odd_setting": partial(find_odd_ones, costs=False),
    "oversubscription": find_oversubscription,
    "packet_loss": find_packet_loss,
    "pfc_storm": find_pfc_storms,
    "silent_ecn": find_silent_ecn,
    "standout": lambda evidence, model, paces: find_standouts(evidence, model),
    "straggler": lambda evidence, model, paces: find_stragglers(evidence, model),
    "workload_imbalance": find_workload_imbalance,
}
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
