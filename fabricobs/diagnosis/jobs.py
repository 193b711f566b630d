"""Several jobs in one store: which are judged, and their diagnoses as one.

Each run is judged on a session that shows it alone. What is found in the fabric is told once, with
the jobs that cross it; what no run has used is judged apart, and told as of no job.
"""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from fabricobs.diagnosis.attribution import in_order, severity_of_past
from fabricobs.diagnosis.findings import (
    SEVERITIES,
    Answer,
    Coverage,
    Diagnosis,
    Entity,
    Finding,
    JobVerdict,
    Question,
    Verdict,
)
from fabricobs.diagnosis.loss import joined_losses
from fabricobs.diagnosis.model import Model
from fabricobs.diagnosis.onsets import retold
from fabricobs.diagnosis.scopes import BENCHMARKS
from fabricobs.diagnosis.standing import LOSS_PAST, end_of, headline, in_past, with_states
from fabricobs.diagnosis.verdict import with_causes
from fabricobs.exceptions import UserError
from fabricobs.store.jobs import Run

_MOST_NAMES = 3
_WORST: tuple[Answer, ...] = ("problem", "unknown", "ok")


class JobError(UserError):
    """A name that no job of the store has."""


def runs_named(name: str, runs: Sequence[Run]) -> tuple[Run, ...]:
    """Return the runs of the job of that name, or the one run; JobError if there are none.

    NAME is all of them, NAME#1 the first. Benchmarks have a name together, too.
    """
    found = tuple(run for run in runs if name in _names_of(run))
    if not found and name == BENCHMARKS:
        found = tuple(run for run in runs if run.is_benchmark)
    if not found:
        known = [run.label or run.name for run in runs]
        close = difflib.get_close_matches(name, known, n=1)
        hint = (
            f"did you mean {close[0]}?" if close else "`fabricobs diagnose --list-jobs` lists them"
        )
        raise JobError(f"--job {name}: no such job in the store; {hint}")
    return found


def _names_of(run: Run) -> set[str | None]:
    return {run.name, run.label, f"{run.name}#{run.number}"}


def joined(
    by_run: Sequence[tuple[Run, Diagnosis]],
    models: Mapping[str, Model],
    rest: Diagnosis | None = None,
    coverage: Coverage | None = None,
    unattributed: Sequence[str] = (),
    last_time: datetime | None = None,
) -> Diagnosis:
    """Return the diagnoses of the runs as one; `rest` is of what no run has used.

    `coverage` is of all rows, `unattributed` are the devices that no run is known to have used.
    Where no coverage is given, `last_time` is that of all rows.
    """
    if not by_run and rest is not None:
        return replace(rest, coverage=coverage or rest.coverage)
    # A run that ended took its faults along, where others go on.
    seen = coverage or by_run[0][1].coverage
    at_end = replace(seen, last_time=max(filter(None, (seen.last_time, last_time)), default=None))
    if rest is None and len(by_run) == 1:
        return _alone(*by_run[0], at_end, models)
    shown: dict[str, list[tuple[Run, Finding]]] = {}
    jobs = []
    weighted, loss = joined_losses([(each.findings, each.loss) for _, each in by_run])
    for (run, diagnosis), findings_of_run in zip(by_run, weighted, strict=True):
        in_run = (_of_run(finding, run) for finding in findings_of_run)
        own = with_states(in_run, at_end, (), models)
        jobs.append(_told(run, diagnosis, own))
        for finding in own:
            shown.setdefault(finding.id, []).append((run, finding))
    found = {id_: _of_runs(told) for id_, told in shown.items()}
    if rest is not None:
        for finding in with_states(rest.findings, at_end, (), models):
            found.setdefault(finding.id, _outside_jobs(finding))
    findings = in_order([*found.values()])
    worst_first = {id_: place for place, id_ in enumerate(f.id for f in findings)}
    lasting = {run.label for told in shown.values() for run, f in told if f.state == "ongoing"}

    def order(job: JobVerdict) -> tuple[int, bool]:
        worst = min(map(worst_first.__getitem__, job.findings), default=len(found))
        return worst, job.run.label not in lasting

    jobs.sort(key=order)
    diagnoses = [diagnosis for _, diagnosis in by_run]
    rests = [] if rest is None else [rest]
    return Diagnosis(
        verdict=_verdict(jobs, findings, models),
        findings=findings,
        segments=tuple(
            replace(segment, job=run.label) for run, each in by_run for segment in each.segments
        ),
        coverage=_coverage(seen, diagnoses, unattributed),
        what_if=tuple(
            sorted((w for each in diagnoses for w in each.what_if), key=lambda w: -w.saved_share)
        ),
        failures=tuple(dict.fromkeys(f for d in (*diagnoses, *rests) for f in d.failures)),
        jobs=tuple(jobs),
        loss=loss,
    )


def _alone(
    run: Run, diagnosis: Diagnosis, at_end: Coverage, models: Mapping[str, Model]
) -> Diagnosis:
    """Return the diagnosis of the one run asked for, as it stands at the end of all data."""
    own = with_states(diagnosis.findings, at_end, (), models)
    verdict = _told(run, diagnosis, own).verdict
    return replace(diagnosis, verdict=verdict, findings=in_order(own))


def _told(run: Run, alone: Diagnosis, own: Sequence[Finding]) -> JobVerdict:
    """Return the verdict of a run in the past tense where its end took its faults along.

    `own` are its findings, in order, as they stand at the end of all data.
    """
    job = JobVerdict(run, alone.verdict, tuple(f.id for f in own), alone.loss)
    pairs = [
        (before, after)
        for before, after in zip(alone.findings, own, strict=True)
        if after.to_its_end and before.state != "over"
    ]
    if not pairs:
        return job

    told_then = {}
    for before, after in pairs:
        told_then[headline(before)] = headline(after)
        told_then[f"{before.title}."] = f"{after.title}.{end_of(after)}"
    longest_first = sorted(told_then, key=len, reverse=True)

    def past(text: str) -> str:
        known = "|".join(map(re.escape, longest_first))
        return re.sub(known, lambda match: told_then[match[0]], text)

    first, *others = job.verdict.questions
    lost = in_past(past(first.evidence), LOSS_PAST) if first.answer == "problem" else first.evidence
    told = [replace(q, evidence=past(q.evidence)) for q in others]
    verdict = replace(
        job.verdict,
        sentence=past(job.verdict.sentence),
        questions=(replace(first, evidence=lost), *told),
    )
    return replace(job, verdict=verdict)


def _coverage(
    coverage: Coverage, diagnoses: Sequence[Diagnosis], unattributed: Sequence[str]
) -> Coverage:
    """Return the coverage with the clocks the runs told, and what belongs to no run."""
    clocks = tuple(dict.fromkeys(clock for each in diagnoses for clock in each.coverage.clocks))
    missing = coverage.missing
    if unattributed:
        names = ", ".join(unattributed[:_MOST_NAMES])
        if len(unattributed) > _MOST_NAMES:
            names += f" and {len(unattributed) - _MOST_NAMES:,} more"
        missing = (
            *missing,
            f"cables (LLDP tables, ibnetdiscover) to tell which job uses {names}: "
            "what they count cannot be attributed to a job",
        )
    return replace(coverage, clocks=clocks, missing=missing)


def _of_run(finding: Finding, run: Run) -> Finding:
    """The finding with its job: its own, or that it crosses."""
    if any(entity.job for entity in finding.entities):
        return finding
    job = Entity("job", job=run.label)
    if finding.entities:
        return replace(finding, related=(*finding.related, job))
    return replace(finding, entities=(job,))


def _of_runs(told: Sequence[tuple[Run, Finding]]) -> Finding:
    """Return one finding of what runs show of one fault, from its first start to its last end.

    It has the words and the share of the run that lost most, of those in which it stands as it does
    in the last; what all lost, and the victims of all.
    """
    ((run, one), *others) = told
    if not others:
        return one
    findings = [finding for _, finding in told]
    last = max(findings, key=lambda f: (f.state == "ongoing", f.end or datetime.min))
    alike = [finding for finding in findings if finding.state == last.state]
    worst = max(alike, key=lambda f: (f.loss_share or 0.0, SEVERITIES.index(f.severity)))
    of_one = all(other.name == run.name for other, _ in others)
    jobs = [] if of_one else [Entity("job", job=each.label) for each, _ in told]
    begun = min((f.start for f in findings if f.start), default=None)
    run_share = _sum_of_known(finding.run_share for finding in findings)
    is_past = last.state == "over" and not last.to_its_end and run_share is not None
    merged = replace(
        worst,
        severity=severity_of_past(worst, run_share or 0.0) if is_past else worst.severity,
        title=_title_of(worst, told, begun),
        explanation=f"{worst.explanation} {_in_each(told)}{_besides(worst, told)}".rstrip(),
        related=tuple(dict.fromkeys([*(e for f in (worst, *findings) for e in f.related), *jobs])),
        start=begun,
        end=last.end,
        detected_at=min((f.detected_at for f in findings if f.detected_at), default=None),
        run_share=run_share,
        gpu_hours_lost=_sum_of_known(finding.gpu_hours_lost for finding in findings),
        cost=_sum_of_known(finding.cost for finding in findings),
        to_its_end=last.to_its_end,
        until_last_step=last.until_last_step,
        traffic_ended=last.traffic_ended,
        from_first_reading=one.from_first_reading,
        from_first_step=False,
    )
    if not of_one:
        return merged
    # Only steps of one job are of one count.
    return replace(
        merged,
        start_step=min((f.start_step for f in findings if f.start_step is not None), default=None),
        end_step=last.end_step,
        bursts=tuple(burst for finding in findings for burst in finding.bursts),
        slower_from=one.slower_from,
        from_first_step=one.from_first_step,
    )


def _title_of(worst: Finding, told: Sequence[tuple[Run, Finding]], begun: datetime | None) -> str:
    """Return its title, since it has `begun`, and how many runs show what it does not count."""
    others = sum(finding.title != worst.title for _, finding in told)
    if not others:
        return worst.title
    since = retold(worst.title, worst.start, begun) if worst.start and begun else worst.title
    return f"{since}; {others:,} more {'run shows' if others == 1 else 'runs show'} it, too"


def _outside_jobs(finding: Finding) -> Finding:
    """Return what no run is known to have used: what counters show to be over has slowed none.

    A message may be of a part that is broken since.
    """
    if finding.state != "over" or "counters" not in finding.families:
        return finding
    return replace(finding, severity=min(finding.severity, "low", key=SEVERITIES.index))


def _in_each(told: Sequence[tuple[Run, Finding]]) -> str:
    """Say what one fault costs each of some runs, where that is known of each."""
    parts = [
        f"{run.label or run.name} {finding.lost}"
        + ("" if finding.start_step is None else f" from step {finding.start_step:,}")
        for run, finding in told
        if finding.loss_share is not None
    ]
    if len(parts) < len(told):
        return f"{len(told):,} runs show it."
    return f"{len(told):,} runs show it, and lost of their throughput: {'; '.join(parts)}."


def _besides(worst: Finding, told: Sequence[tuple[Run, Finding]]) -> str:
    """Say what other runs show of a fault that is titled as in the worst of them."""
    others = [(run, finding) for run, finding in told if finding.title != worst.title]
    shown = [f" {run.label or run.name}: {finding.title}." for run, finding in others[:_MOST_NAMES]]
    more = len(others) - _MOST_NAMES
    return "".join(shown) + (f" {more:,} more runs show it alike." if more > 0 else "")


def _sum_of_known(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def with_problem(
    jobs: Sequence[JobVerdict], findings: Sequence[Finding]
) -> list[tuple[JobVerdict, list[str]]]:
    """Return the jobs that an answer, or a finding above `info`, says a problem of, with its ids.

    A finding need not answer a question (NCCL that fails, a rank that ends). One about all runs, as
    of benchmarks, is no job's own: its entities name those that show it.
    """
    serious = [finding for finding in findings if finding.severity != "info"]
    own = {each for job in jobs for each in job.findings}
    found = []
    for job in jobs:
        ids = [
            finding.id
            for finding in serious
            if finding.id in job.findings
            or (finding.id not in own and any(e.job in job.run.names for e in finding.entities))
        ]
        if ids or any(question.answer == "problem" for question in job.verdict.questions):
            found.append((job, ids))
    return found


def _verdict(
    jobs: Sequence[JobVerdict], findings: Sequence[Finding], models: Mapping[str, Model]
) -> Verdict:
    """Say how many jobs have problems and which is worst; of each question the worst answer."""
    serious = [finding for finding in findings if finding.severity != "info"]
    wrong = [job for job, _ in with_problem(jobs, findings)]
    open_ = [j for j in jobs if not j.verdict.judged and j not in wrong]
    names = {job.run.name for job in jobs}
    runs = f" in {len(jobs):,} runs" if len(jobs) > len(names) else ""
    jobs_word = "job" if len(names) == 1 else "jobs"
    each = " runs" if runs and len(wrong) > 1 else ""
    counts = f"{len(names):,} {jobs_word}{runs}: {len(wrong):,}{each} with a problem"
    if open_:
        counts += f"; too little is known to judge {len(open_):,}"
    sentence = f"{counts}."
    if serious:
        worst = next((j for j in jobs if serious[0].id in j.findings), None)
        whole = {model.kind for model in models.values() if model.whole}
        outside = "Over all runs" if serious[0].kind in whole else "Outside the jobs"
        lost = [f.loss_share or 0.0 for f in serious if f.state == "over"]
        ranks = (
            "Worst is" if max(lost, default=0.0) <= (serious[0].loss_share or 0.0) else "Ongoing in"
        )
        who = outside if worst is None else f"{ranks} {worst.run.label}"
        what = headline(serious[0])
        # What several runs show is titled as in one of them, and ends with the last.
        several = sum(serious[0].id in j.findings for j in jobs) > 1
        if worst is not None and (several or serious[0].state != "over"):
            what = worst.verdict.sentence
        sentence = f"{counts}. {who}: {what}"
    questions = tuple(
        _worst_answer(list(zip(jobs, each, strict=True)))
        for each in zip(*(job.verdict.questions for job in jobs), strict=True)
    )
    questions = with_causes(questions, serious, models)
    judged = bool(findings) or any(q.answer != "unknown" for q in questions)
    return Verdict(sentence, questions, judged)


def _worst_answer(answers: Sequence[tuple[JobVerdict, Question]]) -> Question:
    """Return the worst answer, with the job that gives it and how many give it.

    What benchmarks cannot tell, as how long steps take, is no answer beside those of a job.
    """
    of_jobs = [(j, q) for j, q in answers if not j.run.is_benchmark or q.answer == "problem"]
    answers = of_jobs or answers
    worst = min((q.answer for _, q in answers), key=_WORST.index)
    giving = [(job.run, question) for job, question in answers if question.answer == worst]
    run, question = giving[0]
    evidence = f"{run.label or run.name}: {question.evidence}"
    if len(giving) > 1:
        evidence += f" The same answer ({worst}) for {len(giving) - 1:,} more."
    return replace(question, evidence=evidence)
