"""What a run lost: one account in which the findings and what none explains add up.

The time of a run is that of its steps, and of a job that waits in vain after the last. The loss of
a step is what its pace lost against the best before, or the most that one finding claims of it,
whichever is more; findings take their part in order of length, then of loss, so that causes at
work at once are counted once, and one that acts a while is not lost in one that always acts.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from fabricobs.diagnosis.cost import LONGEST_STEP
from fabricobs.diagnosis.findings import (
    LOSS_CLASSES,
    SEVERITIES,
    UNEXPLAINED,
    Finding,
    Loss,
    Price,
    Segment,
)
from fabricobs.diagnosis.job import StepTimeTrend
from fabricobs.diagnosis.slowdowns import PAUSE, Slowdown
from fabricobs.diagnosis.statistics import Array

# A step longer than PAUSE times nearly all others of its stretch waits for a checkpoint.
_NEARLY_ALL = 0.9
_SHARE_DIGITS, _HOUR_DIGITS = 3, 2  # as they are shown: what is shown adds up
_MS_OF_HOUR = 3.6e6
# Causes that explain what a pace lost but for less than the least loss that is told are its loss.
_SAME = LOSS_CLASSES[-1][0]
_LAST_STEPS = 0.05  # of the run: what acts in them acts at its end

Ranks = Callable[[str | None], int | None]


def account(
    findings: Sequence[Finding], trends: Sequence[StepTimeTrend], ranks_of: Ranks, price: Price
) -> tuple[list[Finding], Loss]:
    """Return the findings with their part of the run's loss, and the loss of the run.

    `ranks_of` gives the ranks of a job, None where its size is not known.
    """
    shares: dict[str, float] = {}
    hours: dict[str, float | None] = {}
    run_ms = unexplained_ms = 0.0
    rests, runs = [], []
    untold = ""
    at_end: Loss | None = None
    by_job = list(_by_job(findings, trends))
    for job, trend, own in by_job:
        ranks = ranks_of(job)
        parts, rest_ms, total = _of_run(own, trend)
        shares |= parts
        hours |= {id_: _gpu_hours(ms, ranks) for id_, ms in parts.items()}
        if trend is not None:
            untold = untold or _untold(trend, own)
            run_ms, unexplained_ms = run_ms + total, unexplained_ms + rest_ms
            at_end = _at_the_end(own, trend) if len(by_job) == 1 else None
            rests.append(_gpu_hours(rest_ms, ranks))
            runs.append(_gpu_hours(total, ranks))

    def share_of(ms: float) -> float | None:
        return round(ms / run_ms, _SHARE_DIGITS) if run_ms else None

    told = []
    for finding in findings:
        if finding.loss_share and finding.id in shares:
            lost = hours[finding.id]
            finding = replace(finding, run_share=share_of(shares[finding.id]), gpu_hours_lost=lost)
            finding = replace(finding, **price.of(lost))
        told.append(finding)
    rest = replace(
        at_end or Loss(),
        unexplained_share=share_of(unexplained_ms),
        unexplained_gpu_hours=_sum(rests),
        run_gpu_hours=_sum(runs),
        price=price,
        untold=untold,
    )
    return told, with_findings(rest, told)


def _untold(trend: StepTimeTrend, findings: Sequence[Finding]) -> str:
    """Say which longer steps may have lost throughput, where no finding has their price."""

    def is_priced(first: int, last: int) -> bool:
        return any(
            (f.start_step is None or f.start_step <= last)
            and (f.end_step is None or f.end_step >= first)
            for f in findings
        )

    for slow in trend.slowdowns:
        if slow.is_lead and not is_priced(slow.first_step, slow.last_step):
            when = f"take {slow.rise:.0%} longer since step {slow.first_step:,}"
            if not slow.goes_on:
                when = f"{slow.first_step:,} to {slow.last_step:,} took {slow.rise:.0%} longer"
            return f"steps {when}, and no log tells whether each did more work"
    start = trend.slow_start
    if start is not None and not is_priced(start.first_step, start.last_step):
        faster = start.last_step + 1
        return f"the steps before step {faster:,} were slower, for a reason that no log tells"
    return ""


def _gpu_hours(ms: float, ranks: int | None) -> float | None:
    return None if ranks is None else round(ms * ranks / _MS_OF_HOUR, _HOUR_DIGITS)


def _sum(values: Sequence[float | None]) -> float | None:
    """Return the sum, None where there is nothing or one is not known."""
    known = [value for value in values if value is not None]
    return round(sum(known), _HOUR_DIGITS) if known and len(known) == len(values) else None


def with_findings(unexplained: Loss, findings: Iterable[Finding]) -> Loss:
    """Return the loss with that of findings added to what none of them explains.

    It is not known where nothing is lost but what a finding without a cost may cost, or longer
    steps of which no log tells the work.
    """
    found = list(findings)
    share, hours = unexplained.unexplained_share, unexplained.unexplained_gpu_hours
    shares = [f.run_share for f in found if f.run_share is not None]
    costs = [f.cost for f in found if f.cost is not None]
    rest_cost = unexplained.price.of(hours)["cost"]
    lost = [f.gpu_hours_lost for f in found if f.gpu_hours_lost is not None]
    unpriced = any(f.loss_share is None and f.severity != "info" for f in found)
    if not (share or any(shares)) and (unpriced or unexplained.untold):
        return replace(unexplained, unexplained_cost=rest_cost)
    return replace(
        unexplained,
        share=None if share is None else round(share + sum(shares), _SHARE_DIGITS),
        gpu_hours=round(sum(lost) + (hours or 0.0), _HOUR_DIGITS)
        if lost or hours is not None
        else None,
        cost=round(sum(costs) + (rest_cost or 0.0), 2) if costs or rest_cost is not None else None,
        unexplained_cost=rest_cost,
        at_most=any(f.run_share and f.loss_shared_with for f in found),
    )


def joined_losses(
    by_run: Sequence[tuple[Sequence[Finding], Loss]],
) -> tuple[list[list[Finding]], Loss]:
    """Return the findings of several runs with their part of all of them, and the loss of all.

    A share of all runs is one of their GPU hours: not known where one run's are not.
    """
    losses = [loss for _, loss in by_run]
    total = _sum([loss.run_gpu_hours for loss in losses])

    def of_all(share: float | None, hours: float | None) -> float | None:
        if not total or share is None or hours is None:
            return None
        return round(share * hours / total, _SHARE_DIGITS)

    weighted = [
        [
            replace(f, run_share=of_all(f.run_share, loss.run_gpu_hours), of_runs=len(by_run))
            for f in findings
        ]
        for findings, loss in by_run
    ]
    rests = [of_all(loss.unexplained_share, loss.run_gpu_hours) for loss in losses]
    rest = Loss(
        unexplained_share=sum(share or 0.0 for share in rests) if total else None,
        unexplained_gpu_hours=_sum([loss.unexplained_gpu_hours for loss in losses]),
        run_gpu_hours=total,
        price=losses[0].price if losses else Price(),
        untold=next((loss.untold for loss in losses if loss.untold), ""),
    )
    return weighted, with_findings(rest, (finding for own in weighted for finding in own))


def _by_job(
    findings: Iterable[Finding], trends: Sequence[StepTimeTrend]
) -> Iterator[tuple[str | None, StepTimeTrend | None, list[Finding]]]:
    """Yield each job, its steps if any are known, and the findings that cost it something."""
    of_job: dict[str | None, list[Finding]] = {trend.job: [] for trend in trends}
    for finding in findings:
        if finding.loss_share:
            named = [e.job for e in finding.entities if e.job is not None]
            job = named[0] if named else next(iter(of_job), None)
            of_job.setdefault(job if job in of_job or not trends else trends[0].job, []).append(
                finding
            )
    steps = {trend.job: trend for trend in trends}
    for job, own in of_job.items():
        yield job, steps.get(job), own


def _of_run(
    findings: Sequence[Finding], trend: StepTimeTrend | None
) -> tuple[dict[str, float], float, float]:
    """Return what findings cost by id, what none explains, and the time of the run, all in ms.

    Where a log tells every n-th step, its time stands for all of them, but for pauses.
    """
    if trend is None:
        return {f.id: ms for f in findings if (ms := _wait(f)) is not None}, 0.0, 0.0
    timed = trend.steps.drop_nulls("step_time_ms").sort("step")
    steps = timed["step"].to_numpy().astype(np.float64)
    times = timed["step_time_ms"].to_numpy().astype(np.float64)
    waits = {f.id: wait for f in findings if (wait := _wait_after(f, steps)) is not None}
    acting = [f for f in findings if f.id not in waits]
    during = {f.id: _between(steps, f.start_step, f.end_step) for f in acting}
    seen = [
        (_between(steps, first, last), 0.0 if slowdown.is_lead else share)
        for slowdown in trend.slowdowns
        for first, last, share in paces_of(slowdown, trend.segments)
    ]
    usual = _without_pauses(times, [*during.values(), *(inside for inside, _ in seen)])
    pauses_ms = float(np.sum(times - usual))
    claims = {f.id: _claim(f, steps, during[f.id], times, usual) for f in acting}
    usual *= max(float(np.median(np.diff(steps))), 1.0) if len(steps) > 1 else 1.0
    slower = [share * inside for inside, share in seen]
    left = np.max([np.zeros(len(steps)), *slower, *claims.values()], axis=0)
    most, parts = left, dict(waits)
    for finding in sorted(
        acting,
        key=lambda f: (
            f.kind == UNEXPLAINED,
            int(during[f.id].sum()),
            -(f.loss_share or 0.0),
            -SEVERITIES.index(f.severity),
        ),
    ):
        taken = np.minimum(left, claims[finding.id])
        left = left - taken
        parts[finding.id] = float(taken @ usual)
    # A pace is the mean of its steps: what causes take of it they may take in some of them.
    rests = [
        (float((share - (most - left)[s]) @ usual[s]), float(usual[s].sum())) for s, share in seen
    ]
    rest_ms = sum(rest for rest, whole in rests if rest >= _SAME * whole)
    run_ms = float(np.sum(usual)) + pauses_ms + sum(waits.values())
    return parts, rest_ms, run_ms


def _claim(
    finding: Finding, steps: Array, during: npt.NDArray[np.bool_], times: Array, usual: Array
) -> Array:
    """Return the share of each usual step that a finding may have cost; `during` are its steps.

    Its loss is one over all their time, pauses in it: of one that comes and goes all of it is in
    its bursts. What no cause explains is a pace's loss, without its pauses.
    """
    bursts = [_between(steps, first, last) & during for first, last in finding.bursts]
    acts = np.any(bursts, axis=0) if bursts else during
    if not acts.any():
        return np.zeros(len(steps))
    of = usual[during]
    if finding.kind != UNEXPLAINED:
        of = np.minimum(times[during], LONGEST_STEP * np.median(times[during]))
    lost_ms = (finding.loss_share or 0.0) * float(of.sum())
    return np.where(acts, min(lost_ms / float(usual[acts].sum()), 1.0), 0.0)


def _at_the_end(findings: Sequence[Finding], trend: StepTimeTrend) -> Loss:
    """Return what is lost at the last steps of a run, by all causes together and by each."""
    steps = trend.steps.drop_nulls("step_time_ms")["step"].to_numpy().astype(np.float64)
    undated = any(f.loss_share and f.start_step is None for f in findings)
    if undated or not len(steps):
        return Loss()
    stops = {f.id: f.loss_share or 0.0 for f in findings if _wait_after(f, steps) is not None}
    if stops:  # what stands still loses all, whatever slowed it before
        return Loss(at_end=max(stops.values()), at_end_of=tuple(stops.items()))
    first, last = float(steps.min()), float(steps.max())
    near = last - _LAST_STEPS * (last - first)
    acting = {
        f.id: f.loss_share or 0.0
        for f in findings
        if (f.start_step is not None and f.start_step <= last)
        and (f.end_step is None or f.end_step >= near)
    }
    seen = [
        share
        for slowdown in trend.slowdowns
        if not slowdown.is_lead
        for _, end, share in paces_of(slowdown, trend.segments)
        if end >= near
    ]
    lost = one_loss(max(seen, default=0.0), list(acting.values()))
    return Loss(at_end=round(lost, _SHARE_DIGITS), at_end_of=tuple(acting.items()))


def one_loss(seen: float, causes: Sequence[float]) -> float:
    """Return what a pace lost: the sum of its causes where that is the same within what is told.

    Causes that act at once may hide each other: together they cost no more than was seen, and no
    less than the worst of them.
    """
    together = sum(causes)
    return together if abs(together - seen) < _SAME else max([seen, *causes])


def paces_of(slowdown: Slowdown, segments: Sequence[Segment]) -> Iterator[tuple[int, int, float]]:
    """Yield first and last step of each pace of a slowdown, and the share of throughput it lost.

    A second fault makes a second pace: the mean of both would hide what the second one costs.
    """
    inner = [
        each
        for each in segments
        if each.first_step >= slowdown.first_step and each.last_step <= slowdown.last_step
    ]
    if len(inner) < 2:
        yield slowdown.first_step, slowdown.last_step, slowdown.loss_share
        return
    for each in inner:
        lost = 1 - slowdown.before_ms / each.step_time_ms
        yield each.first_step, each.last_step, max(lost, 0.0)


def _without_pauses(ms: Array, stretches: Iterable[npt.NDArray[np.bool_]]) -> Array:
    """Return the step times, but of a pause for all what a long step of its stretch takes."""
    longest = np.zeros(len(ms))
    for inside in (np.full(len(ms), fill_value=True), *stretches):
        if inside.any():
            limit = PAUSE * float(np.quantile(ms[inside], _NEARLY_ALL))
            longest[inside] = np.maximum(longest[inside], limit)
    return np.minimum(ms, longest)


def _between(steps: Array, first: int | None, last: int | None) -> npt.NDArray[np.bool_]:
    return (steps >= (-np.inf if first is None else first)) & (
        steps <= (np.inf if last is None else last)
    )


def _wait_after(finding: Finding, steps: Array) -> float | None:
    """Return how long a job waits that has stopped, in ms; None of what acts in its steps."""
    stopped = finding.start_step is not None and not (steps >= finding.start_step).any()
    return _wait(finding) if stopped else None


def _wait(finding: Finding) -> float | None:
    if finding.start is None or finding.end is None:
        return None
    return (finding.end - finding.start).total_seconds() * 1e3 * (finding.loss_share or 0.0)
