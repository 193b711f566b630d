"""Losses without a cause: what no named cause explains is told, with what changed at that time."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from fabricobs.diagnosis.change import Drift
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.finding_builder import refutations_of, steps_of, with_phrases
from fabricobs.diagnosis.findings import Finding, Severity, severity_of_loss
from fabricobs.diagnosis.grouping import in_groups
from fabricobs.diagnosis.job import StepTimeTrend
from fabricobs.diagnosis.model import Model
from fabricobs.diagnosis.slowdowns import Slowdown
from fabricobs.notebook import share_words

# Stragglers are dated by windows of 20 steps: two of them.
_SLACK_STEPS = 40
# Stretches that begin from the same pace and whose steps grow by as much, to this share of it.
_ALIKE = 1 / 3

Rest = tuple[Slowdown, float]


def unexplained(
    findings: list[Finding], trends: list[StepTimeTrend], model: Model, evidence: Evidence
) -> list[Finding]:
    """Return a finding for each slowdown that the named causes do not explain.

    One that comes and goes is one.
    """
    found: list[Finding] = []
    for pace in trends:
        left: list[Rest] = []
        for slowdown in pace.slowdowns:
            explained = sum(
                _explained_loss(finding, slowdown, pace.slowdowns)
                for finding in findings
                if finding.kind != model.kind
            )
            rest = slowdown.loss_share - explained
            # A smaller loss is one too where the work is known: the answer about the pace says so.
            is_small = slowdown.loss_share < model.limit("loss")
            if is_small and (slowdown.is_lead or rest < model.limit("change")):
                continue
            if any(_is_burst(f, slowdown, model.limit("explained")) for f in findings):
                continue
            if explained < model.limit("explained") * slowdown.loss_share:
                left.append((slowdown, rest))
        found += [_drop(group, model, evidence) for group in in_groups(left, _is_same)]
    return found


def _is_same(rest: Rest, later: Rest) -> bool:
    """Say whether a slowdown is the same again."""
    one, other = rest[0], later[0]
    added = [each.after_ms - each.before_ms for each in (one, other)]
    alike = max(added) - min(added) <= _ALIKE * max(added)
    from_one_pace = abs(one.before_ms - other.before_ms) <= _ALIKE * max(added)
    of_one_kind = not (one.more_work or other.more_work) and one.faster == other.faster
    return alike and from_one_pace and of_one_kind


def _joined(group: Sequence[Rest]) -> tuple[Slowdown, float]:
    """Return the slowdown from the first step of a group to its last, and the loss over them."""
    (first, rest), last = group[0], group[-1][0]
    if len(group) == 1:
        return first, rest
    steps = [each.last_step - each.first_step + 1 for each, _ in group]
    slow = [number * each.after_ms for number, (each, _) in zip(steps, group, strict=True)]
    lost = sum(ms * rest for ms, (_, rest) in zip(slow, group, strict=True))
    span = last.last_step - first.first_step + 1
    joined = replace(
        first,
        last_step=last.last_step,
        end=last.end,
        after_ms=sum(slow) / sum(steps),
        goes_on=last.goes_on,
        run_share=first.run_share * span / steps[0],
    )
    return joined, lost / (sum(slow) + (span - sum(steps)) * first.before_ms)


def _explained_loss(finding: Finding, slowdown: Slowdown, slowdowns: Sequence[Slowdown]) -> float:
    """Return how much of a slowdown's loss a finding accounts for.

    All of its own, where they begin together. One that begins with a slowdown and outlasts it has
    its loss spread over all that follow while it lasts: the pace comes and goes with it.
    """
    loss = finding.loss_share or 0.0
    own = loss if _overlaps(finding, slowdown) else 0.0
    if finding.start_step is None or finding.end_step is None:
        return own
    earliest = finding.start_step - _SLACK_STEPS
    during = [s for s in slowdowns if earliest <= s.first_step <= finding.end_step]
    if slowdown not in during or not _overlaps(finding, during[0]):
        return own
    lost_steps = loss * (finding.end_step - finding.start_step + 1)
    slow_steps = sum(s.loss_share * (s.last_step - s.first_step + 1) for s in during)
    return max(own, slowdown.loss_share * min(lost_steps / slow_steps, 1.0))


def _overlaps(finding: Finding, slowdown: Slowdown) -> bool:
    """Say whether a finding may explain a slowdown: same job, begun with it or during it.

    A cause that comes and goes begins again and again; one that grows, too.
    """
    jobs = _jobs(finding, "rank", "host")
    if finding.start_step is None or (jobs and slowdown.job not in jobs):
        return False
    earliest = slowdown.first_step - _SLACK_STEPS
    begins = [finding.start_step, *(first for first, _ in finding.bursts), *finding.grown_at]
    # What began later made none of the first steps longer.
    latest = earliest + 2 * _SLACK_STEPS if slowdown.faster else slowdown.last_step
    return any(earliest <= first <= latest for first in begins)


def _jobs(finding: Finding, *types: str) -> set[str]:
    """Return the jobs that a finding's entities of these types tell; counters tell none."""
    return {e.job for e in finding.entities if e.type in types and e.job is not None}


def _is_burst(finding: Finding, slowdown: Slowdown, explained: float) -> bool:
    """Say whether a slowdown is made of bursts of a cause that comes and goes.

    They are more than half of its steps, whose median made it a slowdown, and what they lost,
    spread evenly over them, is the share `explained` of its loss.
    """
    jobs = _jobs(finding, "rank", "host", "job")
    begin, end, loss = finding.start_step, finding.end_step, finding.loss_share
    if begin is None or end is None or not loss or (jobs and slowdown.job not in jobs):
        return False
    first, last = slowdown.first_step, slowdown.last_step
    covered = sum(max(0, min(last, stop) - max(first, start) + 1) for start, stop in finding.bursts)
    steps = last - first + 1
    if 2 * covered <= steps:
        return False
    in_bursts = sum(stop - start + 1 for start, stop in finding.bursts)
    lost = loss * (end - begin + 1) * covered / in_bursts
    return lost >= explained * slowdown.loss_share * steps


def _drop(group: Sequence[Rest], model: Model, evidence: Evidence) -> Finding:
    slowdown, rest = _joined(group)
    longest = max((each for each, _ in group), key=lambda each: each.last_step - each.first_step)
    changes = _changes(longest, model, evidence)
    moved, most = _moved(longest, evidence), int(model.limit("leads"))
    bursts = tuple((each.first_step, each.last_step) for each, _ in group)
    words = with_phrases(
        model,
        {
            "rise": slowdown.rise,
            "step": slowdown.first_step,
            "changed": None if slowdown.faster else _changed_at(slowdown),
            "faster": slowdown.last_step + 1 if slowdown.from_start else None,
            "job": slowdown.job,
            "other_run": slowdown.faster and slowdown.faster.label,
            "before": slowdown.before_ms,
            "after": slowdown.after_ms,
            "network_part": slowdown.network_part,
            "compute_part": slowdown.compute_part,
            "changes": changes,
            "strongest": changes.split("; ")[0] if changes else None,
            "moved": "; ".join(moved[:most]) or None,
            "more_moved": len(moved) - most if len(moved) > most else None,
            "first_moved": moved[0] if moved else None,
            "last": slowdown.last_step,
            "times": len(bursts) if len(bursts) > 1 else None,
            "total": slowdown.loss_share,
            "in_part": "" if not slowdown.is_lead and _is_part(rest, slowdown) else None,
            **_conditions(slowdown, evidence),
        },
    )
    loss = None if slowdown.is_lead else rest
    return Finding(
        kind=model.kind,
        entities=(),
        severity=_severity(slowdown, rest, model.limit("loss")),
        confidence=0.5,
        families=("timing",),
        title=model.wording.title.format(**words),
        explanation=model.wording.explanation.format(**words),
        start=slowdown.start,
        end=slowdown.end,
        start_step=slowdown.first_step,
        end_step=slowdown.last_step,
        detected_at=slowdown.end if slowdown.from_start and not slowdown.faster else slowdown.start,
        loss_share=loss,
        query=model.query,
        refuted_by=refutations_of(model, words),
        next_steps=steps_of(model, words),
        bursts=bursts if len(bursts) > 1 else (),
    )


def _changed_at(slowdown: Slowdown) -> str:
    """Return when something changed: as it began, or as it ended where it began with the job."""
    moment, step = slowdown.start, slowdown.first_step
    if slowdown.from_start:
        moment, step = slowdown.end, slowdown.last_step
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC" if moment else f"step {step}"


def _is_part(rest: float, slowdown: Slowdown) -> bool:
    """Say whether other findings explain so much of a loss that it is not told as one."""
    return share_words(rest) != share_words(slowdown.loss_share)


def _conditions(slowdown: Slowdown, evidence: Evidence) -> dict[str, str | None]:
    """Return what only decides between phrases: empty where it holds, else None."""
    holds = {
        "per_work": slowdown.per_work,
        "restarted": slowdown.restarted,
        "more_work": slowdown.more_work,
        "is_lead": slowdown.is_lead,
        "not_split": slowdown.network_part is None or slowdown.compute_part is None,
        "by_collectives": slowdown.by_collectives,
        "by_calls": slowdown.by_calls,
        "untimed": slowdown.start is None,
        "looked": slowdown.start is not None
        and not slowdown.faster
        and not evidence.frame("counted_ports").is_empty(),
    }
    return {name: "" if value else None for name, value in holds.items()}


def _changes(slowdown: Slowdown, model: Model, evidence: Evidence) -> str | None:
    """Return what changed with a slowdown, strongest first; None if nothing did or is known.

    Where ranks compute longer, what makes them do so comes first: no network does.
    """
    if slowdown.start is None or slowdown.end is None or slowdown.faster:
        return None
    times = {"begin": slowdown.start, "end": slowdown.end}
    told = evidence.frame("leads", {**model.limits, **times})
    if slowdown.more_work or slowdown.is_by_computation:
        told = told.sort("computes", descending=True, maintain_order=True)
    leads = told["lead"]
    return "; ".join(leads.head(int(model.limit("leads")))) or None


def _moved(slowdown: Slowdown, evidence: Evidence) -> list[str]:
    """Return what of the fabric and the hosts is told otherwise since it began, or ended."""
    if slowdown.start is None or slowdown.end is None or slowdown.faster:
        return []
    begin = slowdown.end if slowdown.from_start else slowdown.start
    end = datetime.max if slowdown.goes_on or slowdown.from_start else slowdown.end
    changed = evidence.frame("changes", {"begin": begin, "end": end})
    return [f"{each.kind} {each.words}" for each in (Drift(*row) for row in changed.iter_rows())]


def _severity(slowdown: Slowdown, loss: float, harmful: float) -> Severity:
    """Return the severity of a loss: of the run's throughput once it is over, of its own before.

    A restart connects anew, over other paths where switches hash: longer transfers are ordinary,
    and so is another pace on other hosts. So are changes of less than `harmful`.
    """
    moved = slowdown.faster is not None and not slowdown.faster.has_same_hosts
    is_ordinary = (slowdown.restarted and slowdown.is_by_transfers) or moved
    if slowdown.is_lead or is_ordinary or slowdown.loss_share < harmful:
        return "low"
    return severity_of_loss(loss if slowdown.goes_on else loss * slowdown.run_share)
