"""The verdict: the questions an engineer asks, and one sentence over them.

Missing data reads as unknown, never as ok.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import polars as pl

from fabricobs.diagnosis.attempts import Attempts
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.fabric_answers import (
    bandwidth_reached,
    congested,
    sick_link,
    uneven_routing,
)
from fabricobs.diagnosis.findings import (
    UNEXPLAINED,
    Finding,
    MethodResult,
    Power,
    Question,
    Verdict,
)
from fabricobs.diagnosis.job import Slowdown, StepTimeTrend
from fabricobs.diagnosis.loss import paces_of
from fabricobs.diagnosis.model import Answers, Model
from fabricobs.diagnosis.shifted_times import shifted_times
from fabricobs.diagnosis.standing import LOSS_PAST, end_of, headline, in_past

_NOTHING = MethodResult()

# What a model `answers`, in the order of the questions.
ANSWERED_BY: tuple[Answers | None, ...] = (
    None,
    "slow_rank",
    "sick_link",
    "routing",
    "choice",
    "gpudirect",
    "congested",
    "bandwidth",
)
QUESTIONS = (
    "Is it everywhere, or some nodes?",
    "Is a rank slow?",
    "Is a link sick?",
    "Is routing uneven?",
    "Did NCCL choose well?",
    "Is GPUDirect on everywhere?",
    "Is the fabric congested?",
    "Do collectives reach what the hardware allows?",
)
_LOUD = ("medium", "high", "critical")
# Greyhound (arXiv 2410.12588): a change of 10 % is one to act on. What hides one is no "ok".
_LARGEST_UNSEEN = 0.10
_LEAST_LOSS = 0.02  # of the throughput; a smaller loss is information
# A change has a before; what is so from the first step on shows only against an expectation.
_SLOW_FROM_THE_START = "what is slow from the first step on would not show"
_SLOW_COMPUTATION = "computation that is slow on every rank from the first step on would not show"
# A judgement: of a job that mostly transfers, a slow network may take most of the throughput.
_MOSTLY_TRANSFERS = 0.5  # of a step
_REPORT = "A corrected version of fabricobs, or of the rule that failed."
_MOST_PAUSES = 8
_BESIDE_IT = "Steps from before it, or after its repair."
_MOST_PACES = 3  # that a sentence names
_STANDS_STILL = {"ongoing": "The job stands still", "over": "The job stood still"}  # or the title
_NOT_THE_NETWORK = "workload_imbalance"


def give_verdict(
    evidence: Evidence,
    findings: tuple[Finding, ...],
    trends: list[StepTimeTrend],
    judgements: Mapping[str, MethodResult],
    attempts: Attempts,
    models: Mapping[str, Model],
) -> Verdict:
    """Answer the questions and sum them up; `judgements` by kind of finding.

    A question whose answer fails, or one of whose causes could not be looked for, is unknown.
    """
    answers: tuple[Callable[[], Question], ...] = (
        lambda: _everywhere(evidence, findings, trends, models["slow_collectives"]),
        lambda: _slow_rank(
            findings, trends, judgements.get("straggler", _NOTHING), _size_of(evidence)
        ),
        lambda: sick_link(QUESTIONS[2], evidence, judgements, models["link_errors"]),
        lambda: uneven_routing(QUESTIONS[3], evidence, findings, judgements),
        lambda: _choice(evidence),
        lambda: _gpudirect(evidence),
        lambda: congested(QUESTIONS[6], evidence, judgements, models["congestion"]),
        lambda: bandwidth_reached(QUESTIONS[7], evidence, models["slow_collectives"]),
    )
    said = [
        attempts.attempt(f"answer to {title!r}", answer, Question(title, "unknown", ""), title)
        for title, answer in zip(QUESTIONS, answers, strict=True)
    ]
    questions = tuple(
        _named(question, kinds, findings)
        or _failed(question, attempts.reason({*kinds, question.question}))
        for question, kinds in zip(said, map(partial(_kinds, models), ANSWERED_BY), strict=True)
    )
    if evidence.since is not None and not findings and not _is_told_by_time(questions):
        sentence = f"Cannot tell: there is too little data since {evidence.since:%H:%M:%S} UTC."
        return Verdict(sentence, questions, judged=False)
    judged = bool(findings) or any(question.answer != "unknown" for question in questions)
    return Verdict(_sentence(findings, questions, trends), questions, judged)


def _is_told_by_time(questions: tuple[Question, ...]) -> bool:
    """Say whether steps or counters answer a question: settings are of the whole store."""
    return any(q.answer != "unknown" for q in (*questions[:4], *questions[6:]))


def _sentence(
    findings: tuple[Finding, ...], questions: tuple[Question, ...], trends: list[StepTimeTrend]
) -> str:
    serious = [finding for finding in findings if finding.severity != "info"]
    if serious:
        top = serious[0]
        more = f" {len(serious) - 1} more below." if len(serious) > 1 else ""
        blame = " It is not the network." if _only_workload(serious, questions) else ""
        return f"{headline(top)}{blame}{more}"
    trouble = [question for question in questions if question.answer == "problem"]
    if trouble:
        return trouble[0].evidence
    unknown = sum(question.answer == "unknown" for question in questions)
    if unknown == len(questions):
        return f"Cannot tell: the data in the store answer none of the {len(questions)} questions."
    if not unknown:
        return (
            "Nothing wrong: the job's pace is steady, no part differs from its peers, and "
            "collectives reach what the hardware allows."
        )
    pace = ": the job's pace is steady" if questions[0].answer == "ok" else ""
    if pace and questions[7].answer != "ok":
        pace += f", but {_SLOW_FROM_THE_START}"
    return (
        f"Nothing wrong in what can be judged{pace}; "
        f"{unknown} of {len(questions)} questions cannot be answered."
    )


def _only_workload(serious: list[Finding], questions: tuple[Question, ...]) -> bool:
    """Say whether the work explains all that was found, and links and routing were judged."""
    judged_ok = all(question.answer == "ok" for question in questions[2:4])
    return judged_ok and all(finding.kind == _NOT_THE_NETWORK for finding in serious)


def _kinds(models: Mapping[str, Model], answers: Answers | None) -> set[str]:
    """Return the kinds of finding that answer a question."""
    return {m.kind for m in models.values() if answers is not None and m.answers == answers}


def _named(question: Question, kinds: set[str], findings: Sequence[Finding]) -> Question | None:
    """The answer a named cause gives, None where none does."""
    causes = [f for f in findings if f.kind in kinds and f.severity != "info"]
    if not causes:
        return None
    more = f" {len(causes) - 1} more." if len(causes) > 1 else ""
    text = f"{causes[0].title}.{end_of(causes[0])}{more}"
    return Question(question.question, "problem", text)


def with_causes(
    questions: tuple[Question, ...], findings: Sequence[Finding], models: Mapping[str, Model]
) -> tuple[Question, ...]:
    """Return the questions with `problem` where a finding is the cause."""
    kinds = map(partial(_kinds, models), ANSWERED_BY)
    return tuple(
        question if question.answer == "problem" else _named(question, own, findings) or question
        for question, own in zip(questions, kinds, strict=True)
    )


def _failed(question: Question, reason: str | None) -> Question:
    """Return the question, as unknown if a part of its answer failed."""
    if reason is None or question.answer == "problem":
        return question
    return Question(question.question, "unknown", f"Not looked for: {reason}.", _REPORT)


def _everywhere(
    evidence: Evidence,
    findings: tuple[Finding, ...],
    trends: list[StepTimeTrend],
    collectives: Model,
) -> Question:
    question = QUESTIONS[0]
    hangs = [finding for finding in findings if finding.kind == "hang"]
    if hangs:
        told = _STANDS_STILL[hangs[0].state or "ongoing"]
        stands = "" if hangs[0].title.startswith(told) else f"{told}: "
        return Question(question, "problem", f"{stands}{hangs[0].title}.")
    steps = len(evidence.frame("step_times"))
    if not trends and steps:
        return _too_few(question, sum(len(pace.steps) for pace in trends))
    if not trends:
        return Question(
            question, "unknown", "No step times.", "The trainer's log, or per-rank step records."
        )
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
            first = replace(culprits[0].entities[0], job=None)
            return Question(question, "problem", f"Some: {first.label}.")
        reached = bandwidth_reached(QUESTIONS[7], evidence, collectives)
        shift = shifted_times(evidence)
        aside = _BESIDE_IT if shift is None else shift.remedy
        return _work_grew(question, trends) or _pace_holds(
            question, findings, trends, reached, aside
        )
    worst = max(slowdowns, key=lambda slowdown: slowdown.loss_share)
    by_pace = _by_pace(worst, trends)
    restart = ", when the job was restarted" if worst.restarted else ""
    cause = _cause_of(worst, findings)
    lost = worst.loss_share if cause is None else cause.loss_share
    when = f"since step {worst.first_step}"
    for drop in findings:
        if drop.bursts and drop.kind == UNEXPLAINED and drop.loss_share:
            lost, when = drop.loss_share, f"in the steps {drop.start_step} to {drop.end_step}"
            by_pace = ""
            break
    if not (worst.goes_on or when.startswith("in ")):
        when = f"in the steps {worst.first_step} to {worst.last_step}"
    is_lost = "is lost" if worst.goes_on else "was lost"
    text = f"{lost:.0%} of the throughput {is_lost} {when}{restart}{by_pace}."
    if worst.by_collectives:
        text += " Of the added time most is longer collectives; no log tells steps."
    elif worst.network_part is not None and worst.network_part >= 0.8:
        named = [each.label for each in cause.entities if each.type != "job"] if cause else []
        where = f"all wait for {' and '.join(named[:2])}" if named else "it is everywhere"
        text += f" Every rank's transfers take longer; computation is as before: {where}."
    elif worst.compute_part is not None and worst.compute_part >= 0.8:
        text += " The slowest rank's computation takes longer; transfers are as before."
    return Question(question, "problem", text if worst.goes_on else in_past(text, LOSS_PAST))


def _by_pace(slowdown: Slowdown, trends: Sequence[StepTimeTrend]) -> str:
    """Say what each pace of a slowdown loses, where a second fault began in it or a first ended."""
    segments = next(trend.segments for trend in trends if slowdown in trend.slowdowns)
    paces = list(paces_of(slowdown, segments))
    if not 1 < len(paces) <= _MOST_PACES:
        return ""
    told = [f"{lost:.0%} in the steps {first} to {last}" for first, last, lost in paces]
    if slowdown.goes_on:
        first, _, lost = paces[-1]
        told[-1] = f"{lost:.0%} since step {first}"
    return f": {', '.join(told)}"


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


def _work_grew(question: str, trends: list[StepTimeTrend]) -> Question | None:
    grown = [slowdown for pace in trends for slowdown in pace.slowdowns]
    if not grown:
        return None
    first = grown[0]
    alike = "nearly every rank computes longer alike"
    text = (
        f"Steps take {first.after_ms / first.before_ms - 1:.0%} longer since step "
        f"{first.first_step}, and "
        f"{alike if first.more_work else 'no log tells whether each does more work'}: whether "
        "throughput was lost is not known."
    )
    return Question(question, "unknown", text, "Samples or tokens a second over the steps.")


def _pace_holds(
    question: str,
    findings: tuple[Finding, ...],
    trends: list[StepTimeTrend],
    reached: Question,
    aside: str,
) -> Question:
    """Answer for a pace without a slowdown; `reached` judges its level, from the first step on.

    `aside` would tell the cost of what is found beside it.
    """
    faster = [pace.speed_up for pace in trends if pace.speed_up is not None]
    if faster:
        best = faster[0]
        text = (
            f"The job became faster at step {best.first_step} ({best.step_time_ms:,.0f} ms a "
            "step); the cause of the slower steps before is not known."
        )
        return Question(question, "unknown", text, "What was changed or restarted at that time.")
    steps = sum(pace.count for pace in trends)
    unit = "calls" if all(pace.by_calls for pace in trends) else "steps"
    if not all(pace.enough for pace in trends):
        return _too_few(question, sum(len(pace.steps) for pace in trends))
    costly = [f for f in findings if (f.loss_share or 0.0) >= _LEAST_LOSS and _is_fault(f)]
    if costly:
        over = "was" if costly[0].state == "over" else "is"
        lost = f"{costly[0].loss_share:.0%} of the throughput {over} lost"
        text = (
            f"The {trends[0].pace} is steady over {steps:,} {unit}, yet {lost}: {costly[0].title}."
        )
        return Question(question, "problem", text)
    unpriced = [f for f in findings if f.severity in _LOUD and f.loss_share is None]
    if unpriced:
        text = f"The {trends[0].pace} is steady over {steps:,} {unit}, but its cost is not known: "
        text += f"{unpriced[0].title}."
        return Question(question, "unknown", text, aside)
    weakest = max(trends, key=lambda pace: pace.shows)
    power = weakest.power
    if weakest.shows > _LARGEST_UNSEEN:
        text = (
            f"The {weakest.pace} varies too much: of {steps:,} {unit} only {power.words} would "
            "show."
        )
        return Question(question, "unknown", text, "The trainer's log of more steps.", (power,))
    pauses = [pause for pace in trends for pause in pace.irregular_pauses]
    steady = f"The {weakest.pace} is steady over {steps:,} {unit}{_but_for(pauses)}"
    transfers = max((pace.transfer_share or 0.0 for pace in trends), default=0.0)
    if reached.answer != "ok" and transfers > _MOSTLY_TRANSFERS:
        text = (
            f"{steady}, but transfers take {transfers:.0%} of a step: whether they are slow from "
            "the first step on is not known."
        )
        return Question(question, "unknown", text, reached.settled_by, (power,))
    unseen = _SLOW_COMPUTATION if reached.answer == "ok" else _SLOW_FROM_THE_START
    text = f"{steady}: {power.words} would have shown. {unseen[0].upper()}{unseen[1:]}."
    return Question(question, "ok", text, would_show=(power,))


def _but_for(pauses: Sequence[int]) -> str:
    """Name the steps that were far longer than the usual one, of which no cause is known."""
    if not pauses:
        return ""
    more = f" and {len(pauses) - _MOST_PAUSES:,} more" if len(pauses) > _MOST_PAUSES else ""
    named = ", ".join(map(str, pauses[:_MOST_PAUSES]))
    return f", but for pauses in {len(pauses):,} of them whose cause is not known ({named}{more})"


def _is_fault(finding: Finding) -> bool:
    """Say whether a finding tells of a fault: uneven work is how a job is built."""
    return finding.severity != "info" and finding.kind != _NOT_THE_NETWORK


def _too_few(question: str, steps: int) -> Question:
    counted = "1 step is" if steps == 1 else f"{steps:,} steps are"
    text = f"{counted} too few to show a change of the step time."
    return Question(question, "unknown", text, "The trainer's log of more steps.")


def _slow_rank(
    findings: tuple[Finding, ...],
    trends: list[StepTimeTrend],
    judgement: MethodResult,
    size: int | None,
) -> Question:
    question = QUESTIONS[1]
    slow = [finding for finding in findings if finding.kind == "straggler"]
    if any(finding.severity != "info" for finding in slow):
        return Question(question, "problem", slow[0].title + ".")
    ranks, power = judgement.judged + judgement.not_checked, judgement.power
    if power is not None and power.effect > _LARGEST_UNSEEN:
        text = f"Ranks vary too much: only {power.words} would show."
        return Question(question, "unknown", text, "Step records of more steps.", (power,))
    if not judgement.judged or power is None:
        text = (
            f"No rank of {ranks:,} could be compared: too few peers or steps, peers on its own "
            "host only, or ranks in groups that compute differently."
            if ranks
            else "No computation time by rank."
        )
        settled = "Step records with compute_ms of 4 ranks and more, with their pipeline stage."
        return Question(question, "unknown", text, settled)
    if any((s.compute_part or 0.0) >= 0.5 for pace in trends for s in pace.slowdowns):
        text = "No rank stands out from the others, yet computation takes longer than before."
        return Question(
            question, "unknown", text, "Sequence lengths, clocks and power of the GPUs."
        )
    if power.unit != "longer":
        text = _by_arrival(slow, trends, ranks, power)
        settled = "Step records of every rank with compute_ms."
        return Question(question, "unknown", text, settled, (power,))
    if judgement.not_checked:
        text = f"{judgement.judged:,} of {ranks:,} ranks compute alike; the others have no peers."
        return Question(question, "unknown", text, "Step records of every rank, with its stage.")
    if size is not None and ranks < size:
        text = f"{ranks:,} of {size:,} ranks compute alike; no record tells of the others."
        return Question(question, "unknown", text, "Step records of every rank.", (power,))
    if slow:
        text = f"{slow[0].title}, which costs less than 2%; {power.words} would have shown too."
    else:
        text = f"{ranks:,} ranks compute alike: {power.words} would have shown."
    return Question(question, "ok", text, would_show=(power,))


def _by_arrival(slow: list[Finding], trends: list[StepTimeTrend], ranks: int, power: Power) -> str:
    """Say how ranks arrive at their collectives: what they compute then hardly delays those."""
    told = slow[0].title if slow else f"{ranks:,} ranks arrive at their collectives alike"
    longer = [s for pace in trends for s in pace.slowdowns if (s.network_part or 0.0) < 0.5]
    if longer:
        since = f"steps take longer since step {longer[0].first_step}"
        unsure = f"{told}, and {since}: how much of that it costs is not known."
        return unsure if slow else f"{told}, yet {since}."
    return (
        f"{told}: {power.words} would have shown. One that computes longer while collectives run "
        "would not."
    )


def _choice(evidence: Evidence) -> Question:
    question = QUESTIONS[4]
    processes = evidence.frame("nccl_choice")
    # Hosts whose logs do not say which network is used are hosts of the job too.
    several = pl.coalesce("nodes", pl.col("host").n_unique().over("job")) > 1
    chosen = processes.with_columns(several=several).drop_nulls("network")
    if chosen.is_empty():
        return Question(
            question, "unknown", "No NCCL log says which network is used.", "NCCL_DEBUG=INFO logs."
        )
    fell_back = chosen.filter((pl.col("network") == "Socket") & pl.col("several"))
    if not fell_back.is_empty():
        hosts = fell_back["host"].drop_nulls().unique().sort().to_list()
        where = f" on {', '.join(hosts)}" if hosts else ""
        return Question(question, "problem", f"Sockets instead of RDMA{where}.")
    versions = sorted({version for row in chosen["versions"].drop_nulls() for version in row})
    networks = chosen["network"].unique().sort().to_list()
    for values, what in ((networks, "networks"), (versions, "NCCL versions")):
        if len(values) > 1:
            return Question(
                question, "problem", f"Ranks use different {what}: {', '.join(values)}."
            )
    uses = f"{networks[0]}, NCCL {versions[0]}" if versions else networks[0]
    told, size = int(chosen["ranks"].sum()), _size_of(evidence)
    if size is None or told < size:
        some = _ranks(told) if size is None else f"{told:,} of {size:,} ranks"
        rest = "how many ranks the job has" if size is None else "what the others use"
        text = f"{some} use{'s' if told == 1 else ''} {uses}; {rest} is not known."
        return Question(question, "unknown", text, "NCCL_DEBUG=INFO logs of all ranks.")
    if _hosts_of(processes) == 1:
        text = f"All {told:,} ranks are on one host; between hosts NCCL would use {uses}."
        return Question(question, "ok", text)
    return Question(question, "ok", f"All {told:,} ranks use {uses}.")


def _size_of(evidence: Evidence) -> int | None:
    """Return the number of ranks of the jobs seen, None if a communicator does not tell it."""
    sizes = evidence.frame("job_sizes")["ranks_expected"]
    return None if sizes.is_empty() or sizes.null_count() else int(sizes.sum())


def _hosts_of(processes: pl.DataFrame) -> int:
    """Return on how many hosts the processes are, as NCCL or their own number tells."""
    nodes = processes["nodes"].max()
    return max(nodes if isinstance(nodes, int) else 0, processes["host"].n_unique())


def _gpudirect(evidence: Evidence) -> Question:
    question = QUESTIONS[5]
    processes = evidence.frame("nccl_choice")
    known = processes.drop_nulls("gdr")
    if known.is_empty():
        return Question(
            question,
            "unknown",
            "No NCCL log shows a network connection that can use it.",
            "NCCL_DEBUG=INFO with NCCL_DEBUG_SUBSYS=INIT,NET.",
        )
    off = known.filter(~pl.col("gdr"))
    if not off.is_empty():
        hosts = off["host"].drop_nulls().unique().sort().to_list()
        where = f" on {', '.join(hosts)}" if hosts else ""
        return Question(question, "problem", f"Off for {_ranks(int(off['ranks'].sum()))}{where}.")
    told, size = int(processes["ranks"].sum()), _size_of(evidence)
    if size is None or told < size:
        of = "of a job of unknown size" if size is None else f"of {size:,}"
        text = f"On for {_ranks(int(known['ranks'].sum()))} {of}; the others are not known."
        return Question(question, "unknown", text, "NCCL_DEBUG=INFO logs of all ranks.")
    return Question(question, "ok", f"On for {_ranks(int(known['ranks'].sum()))}.")


def _ranks(count: int) -> str:
    return "1 rank" if count == 1 else f"{count:,} ranks"
