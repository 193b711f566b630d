"""A diagnosis from a store: evidence, methods, attribution, verdict."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fabricobs import stopping
from fabricobs.content import ContentError
from fabricobs.diagnosis.attempts import Attempts
from fabricobs.diagnosis.attribution import (
    fold_downstream,
    fold_symptoms,
    in_order,
    join_ends,
    weigh_what_is_over,
    without_named,
)
from fabricobs.diagnosis.calibration import Point, calibrated, load_calibration
from fabricobs.diagnosis.clocks import Offset, device_offsets, host_offsets, with_clocks
from fabricobs.diagnosis.command_outputs import with_outputs
from fabricobs.diagnosis.coverage import describe_coverage
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.faster_runs import faster_runs, ran_again, with_faster_run
from fabricobs.diagnosis.finding_builder import with_one_cost
from fabricobs.diagnosis.findings import (
    Coverage,
    Diagnosis,
    Finding,
    Loss,
    MethodResult,
    Price,
    WhatIf,
)
from fabricobs.diagnosis.job import StepTimeTrend, step_time_trends
from fabricobs.diagnosis.jobs import joined, runs_named
from fabricobs.diagnosis.longer_transfers import with_transfers
from fabricobs.diagnosis.loss import account
from fabricobs.diagnosis.methods import METHODS
from fabricobs.diagnosis.model import Model, load_models
from fabricobs.diagnosis.onsets import at_their_onsets
from fabricobs.diagnosis.rank_compute_times import rank_compute_times
from fabricobs.diagnosis.scopes import own_findings, scopes_of
from fabricobs.diagnosis.shared_losses import with_shared_losses
from fabricobs.diagnosis.slowdowns import FasterRun
from fabricobs.diagnosis.standing import with_states
from fabricobs.diagnosis.unexplained import unexplained
from fabricobs.diagnosis.verdict import QUESTIONS, give_verdict
from fabricobs.diagnosis.what_if import what_if
from fabricobs.store.jobs import Run
from fabricobs.store.scoping import Scope
from fabricobs.store.session import NO_SITE, Site, newest_time, runs_of

if TYPE_CHECKING:
    import duckdb

REST = "throughput_drop"
_CLOCKS_APART = timedelta(minutes=2)  # windows of several devices end by the clock of the last
_NO_TIME = (
    "When it began is not known: its only times are those of the last change of files, and they "
    "lie outside the times that the logs state."
)
_NO_OFFSETS: tuple[Offset, ...] = ()
_NO_PACES: list[StepTimeTrend] = []
_NO_FINDINGS: list[Finding] = []
_NO_ESTIMATES: tuple[WhatIf, ...] = ()


def diagnose(
    store: Path,
    extra: Sequence[Path] = (),
    *,
    since: datetime | None = None,
    site: Site = NO_SITE,
    thresholds: Mapping[str, Mapping[str, float]] | None = None,
    gpu_hour_price: float | None = None,
    currency: str = "",
    calibrate: bool = True,
    job: str | None = None,
    memory_mb: int | None = None,
    session: "duckdb.DuckDBPyConnection | None" = None,
) -> Diagnosis:
    """Judge a store, from `since` (UTC) on; ContentError if a model names no known method.

    A method that fails is told in `failures`: what it would have found is unknown.

    Where it holds several jobs, or runs of one, each is judged as if it were alone, but benchmarks
    together; with `job` only
    those of that name (JobError if there are none).

    `thresholds` by model take the place of those of the content. Without `calibrate` a finding's
    confidence is how far its evidence agrees, whatever that was worth so far.

    `memory_mb` bounds what DuckDB takes before it uses the directory for temporary files (unless
    given, the size of the store decides);
    MemoryLimitError where a store needs more all the same.

    `session` shows the whole store from `since` on and stays open; else one is opened.
    """
    models = load_models(extra, thresholds)
    calibration = load_calibration(extra) if calibrate else None
    runs = runs_of(store)
    chosen = runs_named(job, runs) if job is not None else runs
    chosen = tuple(run for run in chosen if run.reaches(since))

    def open_evidence(scope: Scope | None) -> Evidence:
        whole = session if scope is None else None
        return Evidence(store, extra, since, site, runs, scope, whole, memory_mb)

    def judge(
        scope: Scope | None, beside: Sequence[Finding] = (), faster: FasterRun | None = None
    ) -> Diagnosis:
        with closing(open_evidence(scope)) as evidence:
            run = next(iter(runs), None) if scope is None else scope.run
            price = Price(gpu_hour_price, currency)
            return _judged(evidence, models, calibration, price, scope, run, beside, faster)

    if len(runs) <= 1:
        return replace(judge(None), runs=runs)
    coverage, found = None, _NO_FINDINGS
    faster: dict[str | None, FasterRun] = {}
    again = ran_again(runs)
    if job is None or any(run.is_benchmark or run in again for run in chosen):
        with closing(open_evidence(None)) as evidence:
            coverage = describe_coverage(evidence) if job is None else None
            found = _about(chosen, runs, _over_runs(evidence, models))
            if again:
                faster = _faster_runs(evidence, again, models[REST])
    compared = {faster[run.label].label for run in chosen if run.label in faster}
    to_judge = [run for run in runs if run in chosen or run.label in compared]
    scopes = scopes_of(store, extra, site, runs, to_judge)

    def judge_run(scope: Scope, other: FasterRun | None) -> Diagnosis:
        is_benchmark = scope.run is not None and scope.run.is_benchmark
        return judge(scope, found if is_benchmark else (), other)

    diagnosed = _faster_first(scopes.of_runs, faster, judge_run)
    by_run = [(run, diagnosed[run.label]) for run, _ in scopes.of_runs if _is_of(run, chosen)]
    if job is not None and by_run:
        last_time = newest_time(store, datetime.max)
        return replace(joined(by_run, models, last_time=last_time), runs=chosen)
    told = any(run.is_benchmark for run, _ in by_run)
    rest = judge(scopes.rest, () if told else found)
    found_in_all = joined(by_run, models, rest, coverage, scopes.unattributed)
    return replace(found_in_all, runs=chosen)


def _faster_runs(
    evidence: Evidence, again: Sequence[Run], rest: Model
) -> dict[str | None, FasterRun]:
    steps = evidence.frame("step_times")
    return faster_runs(steps, again, rest.limit("change"), int(rest.limit("least_steps")))


def _faster_first(
    scopes: Sequence[tuple[Run, Scope]],
    faster: Mapping[str | None, FasterRun],
    judge: Callable[[Scope, FasterRun | None], Diagnosis],
) -> dict[str | None, Diagnosis]:
    """Judge runs, each after the faster one that it is compared with: by label.

    What is found in both made neither of them slower.
    """
    diagnosed: dict[str | None, Diagnosis] = {}
    for run, scope in sorted(scopes, key=lambda each: each[0].label in faster):
        other = faster.get(run.label)
        if other is not None:
            ids = frozenset(finding.id for finding in diagnosed[other.label].findings)
            other = replace(other, found=ids)
        diagnosed[run.label] = judge(scope, other)
    return diagnosed


def _is_of(run: Run, chosen: Sequence[Run]) -> bool:
    """Say whether a run that is judged is one that is asked for, or stands for such."""
    return any(each in chosen for each in (run.of or (run,)))


def _over_runs(evidence: Evidence, models: Mapping[str, Model]) -> list[Finding]:
    """Return what is found over all runs of a store at once."""
    whole = [model for model in models.values() if model.whole]
    return [f for m in whole for f in METHODS[m.method](evidence, m, []).findings]


def _about(
    chosen: Sequence[Run], runs: Sequence[Run], findings: Sequence[Finding]
) -> list[Finding]:
    """Return the findings over all runs that name one of the chosen, or all if no other has any."""
    if all(run in chosen for run in runs if run.is_benchmark):
        return list(findings)
    names = {name for run in chosen for name in (run.label, run.name)}
    return [f for f in findings if any(e.job in names for e in (*f.entities, *f.related))]


def _judged(
    evidence: Evidence,
    models: Mapping[str, Model],
    calibration: Sequence[Point] | None,
    price: Price,
    scope: Scope | None,
    run: Run | None,
    beside: Sequence[Finding],
    faster: FasterRun | None,
) -> Diagnosis:
    """Judge what one session shows: the whole store, or with `scope` a part of it; of one `run`.

    `beside` is what was found over all runs, and is told with it; `faster` is the run of the same
    job whose pace this one never reaches.
    """
    attempts = Attempts()
    attempt = attempts.attempt
    offsets = attempt(
        "clocks of devices", lambda: device_offsets(evidence), _NO_OFFSETS, shared=True
    )
    # What a device counts tells the clock that stamps its counters, steps that of the host itself.
    hosts = attempt("clocks of hosts", lambda: host_offsets(evidence), _NO_OFFSETS, shared=True)
    evidence.set_clocks(
        {o.device: o.seconds for o in (*hosts, *offsets) if o.seconds is not None and o.certain}
    )
    rest = models[REST]
    trends = attempt(
        "step times",
        lambda: with_faster_run(trends_of(evidence, rest), faster),
        _NO_PACES,
        QUESTIONS[0],
        shared=True,
    )
    judgements: dict[str, MethodResult] = {}
    for model in models.values():
        if model.method == REST or (model.whole and scope is not None):
            continue
        stopping.check()
        if model.method not in METHODS:
            known = ", ".join(METHODS)
            raise ContentError(
                f"models/{model.name}.toml: no method {model.method!r}; one of {known}"
            )
        method = partial(METHODS[model.method], evidence, model, trends)
        found_by = attempt(f"diagnosis {model.name}", method, MethodResult(), model.kind)
        judgements[model.kind] = judgements.get(model.kind, MethodResult()).joined(found_by)
    found: list[Finding] = [f for j in judgements.values() for f in j.findings]
    if scope is not None and scope.run is not None:
        found = own_findings(found, scope, evidence)
    found += beside
    findings = attempt(
        "causes of symptoms", lambda: _folded(found, models, evidence), found, shared=True
    )
    shared = partial(with_shared_losses, findings, models, evidence)
    findings = attempt("losses that causes share", shared, findings)
    findings = attempt("onsets", lambda: at_their_onsets(findings, trends, evidence), findings)
    findings = attempt(
        "weight of what is over", lambda: weigh_what_is_over(findings, trends), findings
    )
    rests = partial(unexplained, findings, trends, rest, evidence)
    findings = [
        *findings,
        *attempt("losses without a cause", rests, _NO_FINDINGS, QUESTIONS[0], rest.kind),
    ]
    findings = attempt("stated times", lambda: _at_stated_times(findings, evidence), findings)
    if calibration is not None:
        findings = calibrated(findings, calibration)
    priced = partial(account, findings, trends, evidence.ranks_of, price)
    findings, loss = attempt("account of the loss", priced, (findings, Loss(price=price)))
    described = partial(describe_coverage, evidence, offsets, hosts)
    coverage = attempt("what the store holds", described, Coverage((), ()))
    segments = tuple(segment for pace in trends for segment in pace.segments)
    findings = [with_one_cost(each) for each in with_clocks(findings, coverage.clocks)]
    job_end = trends[0].last_time if len(trends) == 1 else None
    finished = len(trends) == 1 and run is not None and run.finished
    ordered = in_order(
        with_states(findings, coverage, segments, models, job_end, finished=finished)
    )
    ordered = attempt(
        "outputs of commands", lambda: with_outputs(ordered, evidence), ordered, shared=True
    )
    estimates = attempt(
        "what if", lambda: what_if(rank_compute_times(evidence), ordered), _NO_ESTIMATES
    )
    return Diagnosis(
        verdict=give_verdict(evidence, ordered, trends, judgements, attempts, models),
        findings=ordered,
        segments=segments,
        coverage=coverage,
        what_if=estimates,
        failures=tuple(attempts.failures),
        loss=loss,
    )


def trends_of(evidence: Evidence, rest: Model) -> list[StepTimeTrend]:
    """Return the step time trend of each job; `rest` is the model of losses without a cause."""
    trends = step_time_trends(
        evidence.frame("step_times"),
        evidence.frame("rank_steps"),
        evidence.frame("restarts"),
        rest.limit("change"),
        int(rest.limit("least_steps")),
        dict(evidence.frame("job_sizes").select("job", "ranks_expected").iter_rows()),
    )
    return with_transfers(evidence, trends)


def _folded(
    findings: list[Finding], models: Mapping[str, Model], evidence: Evidence
) -> list[Finding]:
    cables = join_ends(fold_downstream(findings, evidence), evidence)
    return without_named(fold_symptoms(cables, models, evidence))


def _at_stated_times(findings: list[Finding], evidence: Evidence) -> list[Finding]:
    """Take the times from findings that lie beyond all that logs state.

    They are those of the last change of files, which a copy may bear of its copying.
    """
    ((first, last),) = evidence.frame("stated_times").iter_rows()

    def stated(time: datetime | None) -> datetime | None:
        if time is None or first is None or first - _CLOCKS_APART <= time <= last + _CLOCKS_APART:
            return time
        return None

    timed = []
    for finding in findings:
        start = stated(finding.start)
        # Logs state how long ranks waited: that may end after the last line with a time.
        waits = start is not None and "log" in finding.families
        unstated = finding.start is not None and start is None
        timed.append(
            replace(
                finding,
                start=start,
                end=finding.end if waits else stated(finding.end),
                detected_at=finding.detected_at if waits else stated(finding.detected_at),
                explanation=f"{finding.explanation} {_NO_TIME}"
                if unstated
                else finding.explanation,
            )
        )
    return timed
