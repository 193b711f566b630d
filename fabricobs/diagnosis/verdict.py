"""The verdict: the questions an engineer asks, and one sentence over them.

Missing data reads as unknown, never as ok.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from fabricobs.diagnosis.attempts import Attempts
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.fabric_answers import (
    bandwidth_reached,
    congested,
    sick_link,
    uneven_routing,
)
from fabricobs.diagnosis.findings import Answer, Finding, MethodResult, Power, Question, Verdict
from fabricobs.diagnosis.job import StepTimeTrend
from fabricobs.diagnosis.model import Answers, Model, kinds_that_answer
from fabricobs.diagnosis.name_lists import enumerated
from fabricobs.diagnosis.nccl_answers import gpudirect, nccl_choice, size_of
from fabricobs.diagnosis.pace_answer import (
    LARGEST_UNSEEN,
    NOT_THE_NETWORK,
    SLOW_FROM_THE_START,
    everywhere,
)
from fabricobs.diagnosis.standing import end_of, headline

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
# What each question is about.
TOPICS = (
    "the job's pace",
    "ranks",
    "links",
    "routing",
    "NCCL's choices",
    "GPUDirect",
    "congestion",
    "bandwidth of collectives",
)
_MUCH_MORE = 2.0  # times the loss of the finding told first: what costs this stands beside it
_REPORT = "A corrected version of fabricobs, or of the rule that failed."


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
    slow = models["slow_collectives"]
    causes = {model.kind for model in models.values() if slow.kind in model.explains}
    all_along = [f for f in findings if f.kind in causes and f.from_first_step and f.loss_share]
    reached = partial(bandwidth_reached, QUESTIONS[7], evidence, slow, all_along)
    answers: tuple[Callable[[], Question], ...] = (
        lambda: everywhere(QUESTIONS[0], evidence, findings, trends, reached),
        lambda: _slow_rank(
            findings, trends, judgements.get("straggler", _NOTHING), size_of(evidence)
        ),
        lambda: sick_link(QUESTIONS[2], evidence, judgements, models["link_errors"]),
        lambda: uneven_routing(QUESTIONS[3], evidence, findings, judgements),
        lambda: nccl_choice(QUESTIONS[4], evidence),
        lambda: gpudirect(QUESTIONS[5], evidence),
        lambda: congested(QUESTIONS[6], evidence, judgements, models["congestion"]),
        reached,
    )
    kinds_of_each = [kinds_that_answer(each, models) for each in ANSWERED_BY]
    said = [
        attempts.attempt(f"answer to {title!r}", answer, Question(title, "unknown", ""), title)
        for title, answer in zip(QUESTIONS, answers, strict=True)
    ]
    questions = tuple(
        _named(question, kinds, findings)
        or _failed(question, attempts.reason({*kinds, question.question}))
        for question, kinds in zip(said, kinds_of_each, strict=True)
    )
    if evidence.since is not None and not findings and not _is_told_by_time(questions):
        sentence = f"Cannot tell: there is too little data since {evidence.since:%H:%M:%S} UTC."
        return Verdict(sentence, questions, judged=False)
    judged = bool(findings) or any(question.answer != "unknown" for question in questions)
    return Verdict(sentence_of(findings, questions, trends), questions, judged)


def _is_told_by_time(questions: tuple[Question, ...]) -> bool:
    """Say whether steps or counters answer a question: settings are of the whole store."""
    return any(q.answer != "unknown" for q in (*questions[:4], *questions[6:]))


def sentence_of(
    findings: tuple[Finding, ...], questions: tuple[Question, ...], trends: list[StepTimeTrend]
) -> str:
    """Return the sentence over the answers: the worst finding, or what was and was not judged."""
    serious = [finding for finding in findings if finding.severity != "info"]
    if serious:
        top = serious[0]
        costliest = max(serious, key=lambda finding: finding.run_share or 0.0)
        others = len(serious) - 1
        more = ""
        much_more = (costliest.run_share or 0.0) > _MUCH_MORE * (top.run_share or 0.0)
        if much_more and costliest.first_clause not in top.loss_shared_with:
            is_told = top.unfelt or top.loss_share is not None
            most = "Most" if is_told else "What that costs is not known, and most of what is known"
            more = f" {most} is lost otherwise: {costliest.first_clause}."
            others -= 1
        more += f" {others} more below." if others else ""
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
    pace = questions[0].answer == "ok" and questions[7].answer != "ok"
    but = f", but {SLOW_FROM_THE_START}" if pace else ""
    return (
        f"Nothing wrong in {_topics(questions, 'ok')}{but}. "
        f"Not judged: {_topics(questions, 'unknown')}."
    )


def _topics(questions: tuple[Question, ...], answer: Answer) -> str:
    """Return what the questions with this answer are about, as a list in a sentence."""
    return enumerated([t for t, q in zip(TOPICS, questions, strict=True) if q.answer == answer])


def _only_workload(serious: list[Finding], questions: tuple[Question, ...]) -> bool:
    """Say whether the work explains all that was found, and links and routing were judged."""
    judged_ok = all(question.answer == "ok" for question in questions[2:4])
    return judged_ok and all(finding.kind == NOT_THE_NETWORK for finding in serious)


def _named(question: Question, kinds: set[str], findings: Sequence[Finding]) -> Question | None:
    """The answer a named cause gives, None where none does."""
    causes = [f for f in findings if f.kind in kinds and f.severity != "info"]
    if not causes:
        return None
    more = f" {len(causes) - 1} more." if len(causes) > 1 else ""
    # That it lasts, the headline says once.
    ended = end_of(causes[0]) if causes[0].state == "over" else ""
    text = f"{causes[0].title}.{ended}{more}"
    return Question(question.question, "problem", text)


def with_causes(
    questions: tuple[Question, ...], findings: Sequence[Finding], models: Mapping[str, Model]
) -> tuple[Question, ...]:
    """Return the questions with `problem` where a finding is the cause."""
    return tuple(
        question
        if question.answer == "problem"
        else _named(question, kinds_that_answer(each, models), findings) or question
        for question, each in zip(questions, ANSWERED_BY, strict=True)
    )


def _failed(question: Question, reason: str | None) -> Question:
    """Return the question, as unknown if a part of its answer failed."""
    if reason is None or question.answer == "problem":
        return question
    return Question(question.question, "unknown", f"Not looked for: {reason}.", _REPORT)


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
    if power is not None and power.effect > LARGEST_UNSEEN:
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
    computing = [s for pace in trends for s in pace.slowdowns if (s.compute_part or 0.0) >= 0.5]
    if computing:
        first = computing[0]
        longer = f"took longer until step {first.last_step}" if first.from_start else None
        longer = longer or "takes longer than before"
        text = f"No rank stands out from the others, yet computation {longer}."
        return Question(
            question, "unknown", text, "Sequence lengths, clocks and power of the GPUs."
        )
    if power.unit != "longer":
        text = _by_arrival(slow, trends, ranks, power)
        settled = "Step records of every rank with compute_ms."
        return Question(question, "unknown", text, settled, (power,))
    if judgement.not_checked:
        alike = f"{judgement.judged:,} of {ranks:,} ranks compute like their peers"
        text = f"{alike}; the others have none."
        return Question(question, "unknown", text, "Step records of every rank, with its stage.")
    if size is not None and ranks < size:
        text = (
            f"{ranks:,} of {size:,} ranks compute like their peers; no record tells of the others."
        )
        return Question(question, "unknown", text, "Step records of every rank.", (power,))
    if slow:
        text = f"{slow[0].title}, which costs less than 2%; {power.words} would have shown too."
    else:
        text = f"{ranks:,} ranks compute like their peers: {power.words} would have shown."
    return Question(question, "ok", text, would_show=(power,))


def _by_arrival(slow: list[Finding], trends: list[StepTimeTrend], ranks: int, power: Power) -> str:
    """Say how ranks arrive at their collectives: what they compute then hardly delays those."""
    told = slow[0].title if slow else f"{ranks:,} ranks arrive at their collectives alike"
    longer = [s for pace in trends for s in pace.onsets if (s.network_part or 0.0) < 0.5]
    if longer:
        since = f"steps take longer since step {longer[0].first_step}"
        unsure = f"{told}, and {since}: how much of that it costs is not known."
        return unsure if slow else f"{told}, yet {since}."
    return (
        f"{told}: {power.words} would have shown. One that computes longer while collectives run "
        "would not."
    )
