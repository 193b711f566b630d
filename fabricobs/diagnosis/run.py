"""A diagnosis from a store: evidence, methods, attribution, verdict."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from fabricobs.content import ContentError
from fabricobs.diagnosis.attribution import fold_downstream, in_order, unexplained, without_named
from fabricobs.diagnosis.ecmp_skew import find_ecmp_skew
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.findings import Diagnosis, Finding, Judgement
from fabricobs.diagnosis.job import JobPace, job_paces
from fabricobs.diagnosis.model import Model, load_models
from fabricobs.diagnosis.standout import find_standouts
from fabricobs.diagnosis.straggler import find_stragglers
from fabricobs.diagnosis.verdict import describe_coverage, give_verdict
from fabricobs.store.session import NO_SITE, Site

Method = Callable[[Evidence, Model, list[JobPace]], Judgement]

METHODS: dict[str, Method] = {
    "ecmp_skew": find_ecmp_skew,
    "straggler": lambda evidence, model, paces: find_stragglers(evidence, model),
    "standout": lambda evidence, model, paces: find_standouts(evidence, model),
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
) -> Diagnosis:
    """Judge a store, from `since` (UTC) on; ContentError if a model names no known method.

    `thresholds` by model take the place of those of the content.
    """
    models = load_models(extra)
    for name, limits in (thresholds or {}).items():
        models[name] = models[name].with_limits(limits, "the site's configuration")
    evidence = Evidence(store, extra, since, site)
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
        judgements[model.kind] = METHODS[model.method](evidence, model, paces)
    findings: list[Finding] = [f for j in judgements.values() for f in j.findings]
    findings = without_named(fold_downstream(findings, evidence))
    findings.extend(unexplained(findings, paces, rest, evidence))
    ordered = in_order([_priced(finding, gpu_hour_price) for finding in findings])
    return Diagnosis(
        verdict=give_verdict(evidence, ordered, paces, judgements),
        findings=ordered,
        segments=tuple(segment for pace in paces for segment in pace.segments),
        coverage=describe_coverage(evidence),
    )


def _priced(finding: Finding, gpu_hour_price: float | None) -> Finding:
    if gpu_hour_price is None or finding.gpu_hours_lost is None:
        return finding
    return replace(finding, cost=round(gpu_hour_price * finding.gpu_hours_lost, 2))
