"""Several jobs in one store: which are judged, what of the fabric each crosses, and all as one.

Each run is judged on a session that shows it alone. What is found in the fabric is told once, with
the jobs that cross it; what no run crosses is told as nobody's.
"""

import difflib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from fabricobs.diagnosis.attribution import in_order
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.findings import (
    UNEXPLAINED,
    Answer,
    Diagnosis,
    Entity,
    Finding,
    JobVerdict,
    Question,
    Verdict,
)
from fabricobs.errors import UserError
from fabricobs.store.jobs import Run
from fabricobs.store.scoping import Scope, crossed
from fabricobs.store.session import Site, open_session

_WORST: tuple[Answer, ...] = ("problem", "unknown", "ok")
_CABLES = "SELECT DISTINCT host_name(device), host_name(remote_device) FROM canonical_links"
_NAMES = "SELECT id, host_name(device) FROM device_names"


class JobError(UserError):
    """A name that no job of the store has."""


def runs_named(name: str, runs: Sequence[Run]) -> tuple[Run, ...]:
    """Return the runs of the job of that name, or the one run; JobError if there are none."""
    found = tuple(run for run in runs if name in {run.name, run.label})
    if not found:
        known = [run.label or run.name for run in runs]
        close = difflib.get_close_matches(name, known, n=1)
        hint = (
            f"did you mean {close[0]}?" if close else "`fabricobs diagnose --list-jobs` lists them"
        )
        raise JobError(f"--job {name}: no such job in the store; {hint}")
    return found


def scopes_of(
    store: Path, extra: Sequence[Path], site: Site, runs: Sequence[Run], chosen: Sequence[Run]
) -> list[Scope]:
    """Return for each chosen run what of the fabric it crosses."""
    everyone = {host for run in runs for host in run.hosts}
    with open_session(store, f"{_CABLES}; {_NAMES}", extra, site=site, runs=runs) as connection:
        told = connection.execute(_CABLES).fetchall()
        names = connection.execute(_NAMES).fetchall()
    cables = [(a, b) for a, b in told if a is not None and b is not None]
    scopes = []
    for run in chosen:
        devices = crossed(run.hosts, everyone, cables)
        devices |= {alias for alias, device in names if device in devices}
        scopes.append(Scope(run, frozenset(everyone - set(run.hosts)), devices))
    return scopes


def own_findings(findings: Sequence[Finding], scope: Scope, evidence: Evidence) -> list[Finding]:
    """Return the findings but for those on parts that are not known to be the run's."""
    ends = evidence.frame("cable_ends").filter(pl.col("far_owner").is_in(list(scope.others)))
    theirs = set(ends.select("owner", "part").iter_rows())

    def is_other(entity: Entity) -> bool:
        place = entity.host or entity.switch
        elsewhere = place is not None and not {place, place.split(".")[0]} & scope.devices
        return elsewhere or (entity.switch, entity.port) in theirs

    return [f for f in findings if not f.entities or not all(map(is_other, f.entities))]


def joined(by_run: Sequence[tuple[Run, Diagnosis]], whole: Diagnosis | None) -> Diagnosis:
    """Return the diagnoses of the runs as one; `whole`, of all rows, tells what is nobody's."""
    if whole is None and len(by_run) == 1:
        return by_run[0][1]
    if not by_run and whole is not None:
        return whole
    found: dict[str, Finding] = {}
    jobs = []
    for run, diagnosis in by_run:
        own = [_of_run(finding, run) for finding in diagnosis.findings]
        jobs.append(JobVerdict(run, diagnosis.verdict, tuple(f.id for f in own)))
        for finding in own:
            found[finding.id] = _merged(found.get(finding.id), finding)
    if whole is not None:
        for finding in whole.findings:
            if _of_fabric(finding) and finding.id not in found:
                found[finding.id] = finding
    findings = in_order(list(found.values()))
    diagnoses = [diagnosis for _, diagnosis in by_run]
    wholes = [] if whole is None else [whole]
    return Diagnosis(
        verdict=_verdict(jobs, findings),
        findings=findings,
        segments=tuple(segment for each in diagnoses for segment in each.segments),
        coverage=(whole or diagnoses[0]).coverage,
        what_if=tuple(
            sorted((w for each in diagnoses for w in each.what_if), key=lambda w: -w.saved_share)
        ),
        failures=tuple(dict.fromkeys(f for d in (*diagnoses, *wholes) for f in d.failures)),
        jobs=tuple(jobs),
    )


def jobs_of(finding: Finding) -> list[str]:
    """Return the jobs a finding is about, or that cross what it is about."""
    named = [entity.job for entity in (*finding.entities, *finding.related) if entity.job]
    return list(dict.fromkeys(named))


def _of_run(finding: Finding, run: Run) -> Finding:
    """The finding with its job: its own, or that it crosses."""
    if any(entity.job for entity in finding.entities):
        return finding
    job = Entity("job", job=run.label)
    if finding.entities:
        return replace(finding, related=(*finding.related, job))
    return replace(finding, entities=(job,))


def _merged(known: Finding | None, finding: Finding) -> Finding:
    """One finding of two runs: the larger loss, and the victims of both."""
    if known is None:
        return finding
    first, second = sorted((known, finding), key=lambda f: -(f.loss_share or 0.0))
    victims = [entity for entity in second.related if entity not in first.related]
    return replace(first, related=(*first.related, *victims))


def _of_fabric(finding: Finding) -> bool:
    return finding.kind != UNEXPLAINED and not any(
        entity.job or entity.type in {"job", "rank"} for entity in finding.entities
    )


def _verdict(jobs: Sequence[JobVerdict], findings: Sequence[Finding]) -> Verdict:
    """Say how many jobs have problems and which is worst; of each question the worst answer."""
    wrong = [j for j in jobs if any(q.answer == "problem" for q in j.verdict.questions)]
    open_ = [j for j in jobs if not j.verdict.judged]
    names = {job.run.name for job in jobs}
    runs = f" in {len(jobs):,} runs" if len(jobs) > len(names) else ""
    jobs_word = "job" if len(names) == 1 else "jobs"
    counts = f"{len(names):,} {jobs_word}{runs}: {len(wrong):,} with a problem"
    if open_:
        counts += f", {len(open_):,} of which too little is known to judge"
    serious = [finding for finding in findings if finding.severity != "info"]
    sentence = f"{counts}."
    if serious:
        worst = next((j for j in jobs if serious[0].id in j.findings), None)
        who = "No job crosses it" if worst is None else f"Worst is {worst.run.label}"
        what = f"{serious[0].title}." if worst is None else worst.verdict.sentence
        sentence = f"{counts}. {who}: {what}"
    questions = tuple(
        _worst_answer(
            [(job.run.label or job.run.name, q) for job, q in zip(jobs, each, strict=True)]
        )
        for each in zip(*(job.verdict.questions for job in jobs), strict=True)
    )
    return Verdict(sentence, questions, any(job.verdict.judged for job in jobs))


def _worst_answer(answers: Sequence[tuple[str, Question]]) -> Question:
    """Return the worst answer, with the job that gives it and how many give it."""
    worst = min((q.answer for _, q in answers), key=_WORST.index)
    giving = [(name, question) for name, question in answers if question.answer == worst]
    name, question = giving[0]
    evidence = f"{name}: {question.evidence}"
    if len(giving) > 1:
        evidence += f" The same answer ({worst}) for {len(giving) - 1:,} more."
    return replace(question, evidence=evidence)
