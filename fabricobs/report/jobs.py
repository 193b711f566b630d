"""The jobs of a store as text and JSON: what is known of each, and its verdict."""

import json
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from fabricobs.diagnosis.findings import Finding, JobVerdict
from fabricobs.diagnosis.jobs import with_problem
from fabricobs.report.documents import job_document
from fabricobs.report.layout import few, wrapped
from fabricobs.report.wording import amount_words, counted, number, utc
from fabricobs.store.jobs import Run


def jobs_text(jobs: Sequence[JobVerdict], findings: Sequence[Finding]) -> str:
    """Return the verdict of every job for a terminal; those nothing is known of in one line.

    A job that no question is answered of may have a finding: that names it.
    """
    judged = [each for each in jobs if each.verdict.judged]
    lines = ["Jobs", *(_job_text(each) for each in judged)]
    told = {name_of(each.run): ids for each, ids in with_problem(jobs, findings)}
    rest = [name_of(each.run) for each in jobs if not each.verdict.judged]
    lines += [
        wrapped(f"{name}: see {', '.join(told[name])}.", "  ", hang=4)
        for name in rest
        if name in told
    ]
    lines += [wrapped(each, "  ", hang=4) for each in restarts([each.run for each in jobs])]
    rest = [name for name in rest if name not in told]
    if rest:
        text = f"Too little is known to judge {counted(len(rest), 'job')}: {few(rest)}."
        lines.append(wrapped(text, "  ", hang=4))
    return "\n".join(lines)


def _job_text(each: JobVerdict) -> str:
    lines = [
        wrapped(f"{name_of(each.run)}: {facts_of(each.run)}", "  ", hang=4),
        wrapped(each.verdict.sentence, "    "),
    ]
    if each.loss.share:
        lines.append(wrapped(f"Lost over its run: {amount_words(each.loss)}.", "    "))
    for question in each.verdict.questions:
        if question.answer != "unknown":
            label = f"    {question.answer:<9}"
            lines.append(wrapped(f"{question.question} {question.evidence}", label))
    still = sum(question.answer == "unknown" for question in each.verdict.questions)
    if still:
        of = f"{still} of {len(each.verdict.questions)} questions"
        lines.append(f"    unknown  {of}; `--job` shows what would answer them")
    return "\n".join(lines)


def restarts(runs: Sequence[Run]) -> list[str]:
    """Say of each run that follows another of its job when it began, and on which hosts."""
    in_order = sorted(runs, key=lambda run: (run.name, run.number))
    return [_restart(a, b) for a, b in pairwise(in_order) if a.name == b.name]


def _restart(before: Run, after: Run) -> str:
    told = [f"follows {name_of(before)}"]
    between = seconds_between(before, after)
    if between is not None and between >= 0:
        minutes, seconds = divmod(round(between), 60)
        told = [f"began {minutes:,} min {seconds} s after {name_of(before)} ended"]
    if after.replayed_steps:
        told.append(f"repeats {counted(after.replayed_steps, 'step')}")
    gone, new = (sorted(set(a.hosts) - set(b.hosts)) for a, b in ((before, after), (after, before)))
    if gone and new:
        told.append(f"has {few(new)} instead of {few(gone)}")
    elif gone or new:
        told.append(f"has {few(new)} more" if new else f"is without {few(gone)}")
    lost = None if between is None else _gpu_hours_without_new_steps(after, between)
    cost = f"; {number(lost)} GPU hours passed without a new step" if lost else ""
    return f"{name_of(after)} {', '.join(told)}{cost}."


def _gpu_hours_without_new_steps(after: Run, between: float) -> float | None:
    """Return what a restart cost: the seconds before a run, and those of the steps done again.

    No finding has it. Start-up between the first line of a run and its first step is left out.
    """
    if after.begin is None or after.end is None or after.last_step is None:
        return None
    steps = after.last_step - (after.first_step or 0) + 1
    again = after.replayed_steps / steps * (after.end - after.begin).total_seconds()
    return (after.nranks or after.ranks) * (max(between, 0.0) + again) / 3600


def seconds_between(before: Run, after: Run) -> float | None:
    """Return the seconds between two runs, by the clocks of the hosts that are in both."""
    by_host = [
        (after.times[host][0] - before.times[host][1]).total_seconds()
        for host in before.times.keys() & after.times.keys()
    ]
    if by_host:
        return median(by_host)
    if before.end is None or after.begin is None:
        return None
    return (after.begin - before.end).total_seconds()


def listing_text(runs: Sequence[Run]) -> str:
    """Return the jobs of a store, a paragraph each."""
    if not runs:
        return "No jobs: the store holds no NCCL logs, steps, collectives or benchmarks."
    return "\n".join(
        wrapped(f"{name_of(run)}: {facts_of(run)}; {named_words(run)}", hang=2) for run in runs
    )


def listing_json(runs: Sequence[Run]) -> str:
    """Return the jobs of a store as JSON."""
    return json.dumps({"schema_version": 1, "jobs": [job_document(run) for run in runs]}, indent=2)


def name_of(run: Run) -> str:
    """Return what a run is called."""
    return run.label or run.name


def named_words(run: Run) -> str:
    """Return where its name is from, and what about it cannot be told."""
    words = f"named by {run.named_by}, {counted(len(run.paths), 'file')}"
    if run.candidates:
        others = counted(run.candidates, "other job")
        words += f"; may be part of {others}: no process, host, folder or time tells"
    return words


def facts_of(run: Run) -> str:
    """Return what is known of a run, in the order a reader asks: size, steps, version, time."""
    parts = [counted(len(run.hosts), "host") if run.hosts else "no log tells its hosts"]
    if run.ranks:
        world = f" of {run.nranks:,} ranks" if run.nranks else ""
        parts.append(f"{run.ranks:,}{world}" if world else counted(run.ranks, "rank"))
    elif run.processes:
        world = f" of {run.nranks:,} ranks" if run.nranks else ""
        parts.append(counted(run.processes, "process") + world)
    if run.of:
        parts.insert(0, counted(len(run.of), "run"))
    if run.number > 1:
        parts.insert(0, f"run {run.number} of {run.name}")
    if run.first_step is not None:
        of = f" of {run.planned_steps:,}" if run.planned_steps else ""
        steps = f"steps {run.first_step:,} to {run.last_step:,}{of}"
        if run.replayed_steps:
            steps += f" ({run.replayed_steps:,} of them a repetition of the run before)"
        parts.append(steps)
    if run.versions:
        parts.append(f"NCCL {' and '.join(run.versions)}")
    if run.begin is not None:
        parts.append(f"{utc(run.begin)} to {utc(run.end)}")
    return ", ".join(parts)
