"""The answer to the first question: what the pace of the job tells, and what it cannot tell."""

from collections.abc import Callable, Sequence

import polars as pl

from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.findings import STEPS_WANTED, UNEXPLAINED, Finding, Question
from fabricobs.diagnosis.job import StepTimeTrend
from fabricobs.diagnosis.long_steps import long_steps
from fabricobs.diagnosis.loss import one_loss, paces_of
from fabricobs.diagnosis.naming import listed
from fabricobs.diagnosis.shifted_times import shifted_times
from fabricobs.diagnosis.slowdowns import Slowdown
from fabricobs.diagnosis.standing import LOSS_PAST, in_past
from fabricobs.notebook import share_words

# Greyhound (arXiv 2410.12588): a change of 10 % is one to act on. What hides one is no "ok".
LARGEST_UNSEEN = 0.10
# A change has a before; what is so from the first step on shows only against an expectation.
SLOW_FROM_THE_START = "what is slow from the first step on would not show"
NOT_THE_NETWORK = "workload_imbalance"
_SLOW_COMPUTATION = "computation that is slow on every rank from the first step on would not show"
# A judgement: of a job that mostly transfers, a slow network may take most of the throughput.
_MOSTLY_TRANSFERS = 0.5  # of a step
_LOUD = ("medium", "high", "critical")
_LEAST_LOSS = 0.02  # of the throughput; a smaller loss is information
_MOST_PAUSES = 8
_MOST_PACES = 3  # that a sentence names
_ENDS_BY_STEPS = (
    10  # A cause is over, and the steps are shorter: by two clocks, and windows of steps
)
_BESIDE_IT = "Steps from before it, or after its repair."
_STANDS_STILL = {"ongoing": "The job stands still", "over": "The job stood still"}  # or the title


def everywhere(
    question: str,
    evidence: Evidence,
    findings: tuple[Finding, ...],
    trends: list[StepTimeTrend],
    reached: Callable[[], Question],
) -> Question:
    """Say what the job lost, since when, and whether all ranks wait or some part is slow.

    `reached` answers whether collectives reach what the hardware allows: what is slow from the
    first step on has no before.
    """
    hangs = [finding for finding in findings if finding.kind == "hang"]
    if hangs:
        told = _STANDS_STILL[hangs[0].state or "ongoing"]
        stands = "" if hangs[0].title.startswith(told) else f"{told}: "
        return Question(question, "problem", f"{stands}{hangs[0].title}.")
    steps = len(evidence.frame("step_times"))
    if not trends and steps:
        return _too_few(question, steps)
    if not trends:
        return Question(question, "unknown", "No step times.", STEPS_WANTED)
    # What a named cause costs is lost, whatever work the steps did.
    costs = any(f.loss_share for f in findings if f.severity != "info")
    # What no cause explains of them is a finding of its own, without a loss.
    unpriced = {f.start_step for f in findings if f.kind == UNEXPLAINED and f.loss_share is None}
    slowdowns = [
        s
        for pace in trends
        for s in pace.slowdowns
        if not (s.more_work or (s.is_lead and (not costs or s.first_step in unpriced)))
    ]
    if not slowdowns:
        culprits = [f for f in findings if f.kind == "straggler" and f.severity != "info"]
        if culprits:
            late = list(dict.fromkeys(e for finding in culprits for e in finding.entities))
            return Question(question, "problem", f"Some: {listed(late)}.")
        shift = shifted_times(evidence)
        aside = _BESIDE_IT if shift is None else shift.remedy
        return _work_grew(question, findings, trends) or _pace_holds(
            question, findings, trends, reached(), aside, evidence.frame("rank_steps")
        )
    worst = max(slowdowns, key=lambda slowdown: slowdown.loss_share)
    by_pace = _by_pace(worst, trends, findings)
    restart = ", when the job was restarted" if worst.restarted else ""
    cause = _cause_of(worst, findings)
    lost = worst.loss_share if cause is None else cause.loss_share
    when = f"since step {worst.first_step}"
    against = f", against the run {worst.faster.label}" if worst.faster else ""
    for drop in findings:
        if drop.loss_share and _comes_and_goes_with(drop, worst):
            lost, when = drop.loss_share, f"in the steps {drop.start_step} to {drop.end_step}"
            by_pace = ""
            break
    if not (worst.goes_on or when.startswith("in ")):
        when = f"in the steps {worst.first_step} to {worst.last_step}"
    is_lost = "is lost" if when.startswith("since ") and worst.goes_on else "was lost"
    told = by_pace or f"{share_words(lost or 0.0)} of the throughput {is_lost} {when}"
    text = f"{told}{restart}{against}."
    if cause is not None and cause.kind == NOT_THE_NETWORK:
        text += f" {cause.title}."
    elif worst.by_collectives:
        text += " Of the added time most is longer collectives; no log tells steps."
    elif worst.is_by_transfers:
        named = [each.label for each in cause.entities if each.type != "job"] if cause else []
        where = f"all wait for {' and '.join(named[:2])}" if named else "it is everywhere"
        text += f" Every rank's transfers take longer; computation is as before: {where}."
    elif worst.is_by_computation:
        text += " The slowest rank's computation takes longer; transfers are as before."
    if worst.from_start:
        text = text.replace(" as before", " as after it")
    return Question(question, "problem", text if worst.goes_on else in_past(text, LOSS_PAST))


def _comes_and_goes_with(finding: Finding, slowdown: Slowdown) -> bool:
    """Say whether a finding acts in bursts, one of which is a slowdown: its loss is that of all."""
    if finding.kind == UNEXPLAINED:
        return bool(finding.bursts)
    meet = (a <= slowdown.last_step and b >= slowdown.first_step for a, b in finding.bursts)
    return finding.severity != "info" and any(meet)


def _by_pace(
    slowdown: Slowdown, trends: Sequence[StepTimeTrend], findings: Sequence[Finding]
) -> str:
    """Say what each pace of a slowdown loses, where a second fault began in it or a first ended."""
    segments = next(trend.segments for trend in trends if slowdown in trend.slowdowns)
    paces = list(paces_of(slowdown, segments))
    if not 1 < len(paces) <= _MOST_PACES:
        return ""
    shares = [
        share_words(one_loss(lost, _costs_in(first, last, findings))) for first, last, lost in paces
    ]
    told = [
        f"{share} of the throughput was lost in the steps {first} to {last}"
        for share, (first, last, _) in zip(shares, paces, strict=True)
    ]
    if slowdown.goes_on:
        told[-1] = f"{shares[-1]} is lost since step {paces[-1][0]}"
    return ", ".join(told)


def _costs_in(first: int, last: int, findings: Sequence[Finding]) -> list[float]:
    """Return what the named causes cost that act in most of some steps."""
    costs = []
    for finding in findings:
        begin, end = finding.start_step, finding.end_step
        if finding.kind == UNEXPLAINED or finding.severity == "info" or begin is None:
            continue
        shared = min(last, last if end is None else end) - max(first, begin) + 1
        if 2 * shared > last - first + 1:
            costs.append(finding.loss_share or 0.0)
    return costs


def _cause_of(slowdown: Slowdown, findings: Sequence[Finding]) -> Finding | None:
    """Return the named cause that begins with a slowdown and costs what it does: one fact."""
    for finding in findings:
        begins = finding.slower_from[0] if finding.slower_from else finding.start_step
        costs = finding.loss_share if finding.severity != "info" else None
        if finding.kind == UNEXPLAINED or costs is None or begins != slowdown.first_step:
            continue
        if abs(costs - slowdown.loss_share) < _LEAST_LOSS:
            return finding
    return None


def _work_grew(
    question: str, findings: Sequence[Finding], trends: Sequence[StepTimeTrend]
) -> Question | None:
    """Answer where steps take longer of which no log tells the work; None where none do."""
    grown = [slowdown for pace in trends for slowdown in pace.slowdowns]
    if not grown:
        return None
    first = grown[0]
    alike = "nearly every rank computes longer alike"
    longer = (
        f"Steps take {first.rise:.0%} longer since step {first.first_step}, and "
        f"{alike if first.more_work else 'no log tells whether each does more work'}"
    )
    costly = _costly(findings)
    if costly:
        worst = max(costly, key=lambda finding: finding.loss_share or 0.0)
        return Question(question, "problem", f"{worst.title}. {longer}.")
    text = f"{longer}: whether throughput was lost is not known."
    return Question(question, "unknown", text, "Samples or tokens a second over the steps.")


def _pace_holds(
    question: str,
    findings: tuple[Finding, ...],
    trends: list[StepTimeTrend],
    reached: Question,
    aside: str,
    rank_steps: pl.DataFrame,
) -> Question:
    """Answer for a pace without a slowdown; `reached` judges its level, from the first step on.

    `aside` would tell the cost of what is found beside it.
    """
    starts = [pace.slow_start for pace in trends if pace.slow_start is not None]
    if starts:
        faster = starts[0].last_step + 1
        ended = [
            f
            for f in _costly(findings)
            if f.end_step is not None and abs(f.end_step + 1 - faster) <= _ENDS_BY_STEPS
        ]
        if ended:
            text = f"{ended[0].lost} of the throughput was lost until step {ended[0].end_step}: "
            return Question(question, "problem", f"{text}{ended[0].title}.")
        text = (
            f"The job became faster at step {faster} ({starts[0].before_ms:,.0f} ms a step); the "
            "cause of the slower steps before is not known."
        )
        return Question(question, "unknown", text, "What was changed or restarted at that time.")
    steps = sum(pace.count for pace in trends)
    unit = "calls" if all(pace.by_calls for pace in trends) else "steps"
    if not all(pace.enough for pace in trends):
        return _too_few(question, sum(len(pace.steps) for pace in trends))
    costly = _costly(findings)
    if costly:
        over = "was" if costly[0].state == "over" else "is"
        several = ", to several causes at once" if costly[0].loss_shared_with else ""
        lost = f"{costly[0].lost} of the throughput {over} lost{several}"
        text = f"The {trends[0].pace} is steady over {steps:,} {unit}, yet {lost}: "
        text += f"{costly[0].title}."
        return Question(question, "problem", text)
    unpriced = [f for f in findings if f.severity in _LOUD and f.loss_share is None]
    if unpriced:
        text = f"The {trends[0].pace} is steady over {steps:,} {unit}, but its cost is not known: "
        text += f"{unpriced[0].title}."
        return Question(question, "unknown", text, aside)
    weakest = max(trends, key=lambda pace: pace.shows)
    power = weakest.power
    if weakest.shows > LARGEST_UNSEEN:
        text = (
            f"The {weakest.pace} varies too much: of {steps:,} {unit} only {power.words} would "
            "show."
        )
        return Question(question, "unknown", text, "The trainer's log of more steps.", (power,))
    pauses = [pause for pace in trends for pause in pace.irregular_pauses]
    longer = next(filter(None, (long_steps(pace, rank_steps) for pace in trends)), None)
    but = f", but {longer.words}" if longer else _but_for(pauses)
    steady = f"The {weakest.pace} is steady over {steps:,} {unit}{but}"
    transfers = max((pace.transfer_share or 0.0 for pace in trends), default=0.0)
    if reached.answer != "ok" and transfers > _MOSTLY_TRANSFERS:
        text = (
            f"{steady}, but transfers take {transfers:.0%} of a step: whether they are slow from "
            "the first step on is not known."
        )
        return Question(question, "unknown", text, reached.settled_by, (power,))
    unseen = _SLOW_COMPUTATION if reached.answer == "ok" else SLOW_FROM_THE_START
    text = f"{steady}: {power.words} would have shown. {unseen[0].upper()}{unseen[1:]}."
    return Question(question, "ok", text, would_show=(power,))


def _but_for(pauses: Sequence[int]) -> str:
    """Name the steps that were far longer than the usual one, of which no cause is known."""
    if not pauses:
        return ""
    more = f" and {len(pauses) - _MOST_PAUSES:,} more" if len(pauses) > _MOST_PAUSES else ""
    named = ", ".join(map(str, pauses[:_MOST_PAUSES]))
    return f", but for pauses in {len(pauses):,} of them whose cause is not known ({named}{more})"


def _costly(findings: Sequence[Finding]) -> list[Finding]:
    return [f for f in findings if (f.loss_share or 0.0) >= _LEAST_LOSS and _is_fault(f)]


def _is_fault(finding: Finding) -> bool:
    """Say whether a finding tells of a fault: a little uneven work is how a job is built."""
    built_so = {"info", "low"} if finding.kind == NOT_THE_NETWORK else {"info"}
    return finding.severity not in built_so


def _too_few(question: str, steps: int) -> Question:
    counted = "1 step is" if steps == 1 else f"{steps:,} steps are"
    text = f"{counted} too few to show a change of the step time."
    return Question(question, "unknown", text, "The trainer's log of more steps.")
