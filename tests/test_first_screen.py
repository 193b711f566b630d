"""What is read first: a loss is one number, an end one sentence, a diagnosis one screen."""

import random
import re
from dataclasses import replace
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from test_loss import finding, told, trend

from fabricobs.diagnosis import pace_answer
from fabricobs.diagnosis.attribution import in_order
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.finding_builder import refutations_of, steps_of, with_phrases
from fabricobs.diagnosis.findings import (
    Answer,
    Coverage,
    Diagnosis,
    Entity,
    Finding,
    Loss,
    Power,
    Question,
    Segment,
    Verdict,
    WhatIf,
)
from fabricobs.diagnosis.jobs import joined
from fabricobs.diagnosis.loss import one_loss
from fabricobs.diagnosis.model import load_models
from fabricobs.diagnosis.naming import during
from fabricobs.diagnosis.pace_answer import everywhere
from fabricobs.diagnosis.slowdowns import Slowdown
from fabricobs.diagnosis.standing import headline, with_states
from fabricobs.diagnosis.verdict import QUESTIONS, TOPICS, sentence_of
from fabricobs.report import wording
from fabricobs.report.charts.ports import link_ends, queue_signals
from fabricobs.report.charts.source import Source
from fabricobs.report.documents import diagnosis_json, finding_document, finding_of
from fabricobs.report.screen import summary_text
from fabricobs.report.terminal import diagnosis_text
from fabricobs.store.jobs import Run

START = datetime(2026, 3, 2, 9)
SEEDS = range(25)
PER_CENT = re.compile(r"(\d+(?:\.\d+)?)% of the throughput")
UNASKED = Question(QUESTIONS[7], "unknown", "")
ANSWERS: tuple[Answer, ...] = ("ok", "problem", "unknown")


def drawn_finding(draw: random.Random, number: int = 0) -> Finding:
    first = draw.randrange(10, 200)
    last = first + draw.randrange(20, 90)
    kind, part = draw.choice(
        [
            ("link_errors", Entity("nic", host=f"node{number:02}", nic="mlx5_4")),
            ("straggler", Entity("rank", rank=number, host="node07")),
            ("ecmp_skew", Entity("switch", switch=f"leaf{number:02}")),
        ]
    )
    words = draw.choice(["corrupts data", "computes 31% longer than its peers", "sends unevenly"])
    where = " and the far end of it" * draw.randrange(3)
    return Finding(
        kind=kind,
        entities=(part,),
        severity=draw.choice(["low", "medium", "high", "critical"]),
        confidence=0.75,
        title=f"{part.label}{where} {words} since step {first}",
        explanation="Because.",
        start=START + timedelta(seconds=4 * first),
        end=START + timedelta(seconds=4 * last),
        start_step=first,
        end_step=last,
        loss_share=draw.choice([None, draw.uniform(0.02, 0.6)]),
        run_share=draw.uniform(0.0, 0.3),
        gpu_hours_lost=draw.uniform(0.0, 30.0),
        next_steps=("On the host: `ethtool -S eth0`, twice, 10 s apart. " * draw.randrange(1, 4),),
    )


def drawn_diagnosis(seed: int) -> Diagnosis:
    draw = random.Random(seed)
    findings = [drawn_finding(draw, n) for n in range(draw.randrange(13))]
    seen = Coverage((("steps", "300"), ("ports", "512 on 28 devices")), ())
    found = tuple(with_states(findings, seen, [Segment(0, 280, START, 1000.0)], load_models()))
    power = Power(0.03, "longer", "a rank that computes {}", steps=40)
    questions = []
    for asked in QUESTIONS:
        answer = draw.choice(ANSWERS)
        evidence = f"{draw.randrange(1, 2048):,} ports (of 28 devices) are alike: {power.words}."
        if answer == "problem" and found:
            evidence = f"{draw.choice(found).title}. It ended at step 7."
        settled = "Step records of every rank." if answer == "unknown" else ""
        questions.append(Question(asked, answer, evidence, settled, (power,)))
    verdict = Verdict(sentence_of(found, tuple(questions), []), tuple(questions), judged=True)
    return Diagnosis(verdict, found, coverage=seen, loss=Loss(0.2, 5.0, 0.01, 1.0, 25.0))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_drawn_diagnosis_fits_a_screen(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    found = drawn_diagnosis(seed)
    lines = summary_text(found).splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100
    text = " ".join(" ".join(lines).split())
    assert all(asked in text for asked in QUESTIONS)
    serious = [each for each in found.findings if each.severity != "info"]
    assert all(each.id in text for each in serious[:5])
    # Every answer is whole in the full text, so that what the screen leaves out is not lost.
    full = " ".join(diagnosis_text(found).split())
    assert all(question.evidence in full for question in found.verdict.questions)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_loss_is_one_number_wherever_it_stands(seed: int) -> None:
    one = replace(drawn_finding(random.Random(seed)), loss_share=random.Random(seed).uniform(0, 1))
    share = f"{one.loss_share:.1%}"
    what_if = WhatIf(one.entities[0], one.loss_share or 0.0, "", "")
    assert PER_CENT.findall(headline(one)) == [share.rstrip("%")]
    assert PER_CENT.findall(wording.cost_words(one))[0] == share.rstrip("%")
    assert f"{100 * what_if.saved_share:.1f}%" == share
    again = finding_of(finding_document(one))
    assert wording.percent(again.loss_share) == share


@pytest.mark.parametrize("seed", SEEDS)
def test_two_faults_are_told_together_and_each_with_the_numbers_of_their_findings(
    seed: int,
) -> None:
    draw = random.Random(seed)
    early, late = draw.uniform(0.03, 0.2), draw.uniform(0.03, 0.2)
    noise = draw.uniform(-0.015, 0.015)
    paces = [1000.0, 1000 / (1 - early - noise / 2), 1000 / (1 - early - late - noise)]
    segments = tuple(Segment(100 * n, 100 * n + 99, None, pace) for n, pace in enumerate(paces))
    slow = Slowdown(
        *(None, 100, 299, None, None, paces[0], sum(paces[1:]) / 2, None, None),
        per_work=True, goes_on=True,
    )  # fmt: skip
    run = trend([pace for pace in paces for _ in range(100)])
    run = replace(run, slowdowns=(slow,), segments=segments)
    faults = [finding(100, 299, early, 1), finding(200, 299, late, 2)]
    found, loss = told(faults, run)
    assert loss.at_end == pytest.approx(early + late, abs=0.001)
    assert dict(loss.at_end_of) == {each.id: each.loss_share for each in faults}
    words = wording.loss_words(Diagnosis(Verdict("", (), judged=True), tuple(found), loss=loss))
    for part in (f"{loss.at_end:.1%} is lost", f"{early:.1%} by node1", f"{late:.1%} by node2"):
        assert part in words
    asked = cast("Evidence", SimpleNamespace(frame=lambda _: run.steps))
    answer = everywhere(QUESTIONS[0], asked, tuple(faults), [run], lambda: UNASKED)
    assert answer.evidence.startswith(f"{early:.1%} of the throughput was lost in the steps 100")
    assert f"{loss.at_end:.1%} is lost since step 200" in answer.evidence


@pytest.mark.parametrize("ends", [98, 104, 60, 160])
def test_what_ends_as_the_steps_become_shorter_is_the_cause_of_the_longer_ones(
    ends: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ "The cause of the slower steps before is not known" stood above the cause and its cost."""
    segments = (Segment(0, 99, None, 1200.0), Segment(100, 299, None, 1000.0))
    run = replace(trend([1200.0] * 100 + [1000.0] * 200), slowdowns=(), segments=segments)
    slow = Slowdown(None, 0, 99, None, None, 1000.0, 1200.0, None, None, from_start=True)
    run = replace(run, slow_start=slow)
    link = finding(10, ends, 0.16, 1)
    monkeypatch.setattr(pace_answer, "shifted_times", lambda _: None)
    asked = cast("Evidence", SimpleNamespace(frame=lambda _: run.steps))
    answer = everywhere(QUESTIONS[0], asked, (link,), [run], lambda: UNASKED)
    if abs(ends - 99) <= 10:
        assert answer.answer == "problem"
        assert answer.evidence == (
            f"16.0% of the throughput was lost until step {ends}: {link.title}."
        )
    else:
        assert answer.answer == "unknown" and "is not known" in answer.evidence


@pytest.mark.parametrize("seed", SEEDS)
def test_causes_that_hide_each_other_cost_no_more_than_was_seen(seed: int) -> None:
    draw = random.Random(seed)
    causes = [draw.uniform(0.02, 0.3) for _ in range(draw.randrange(4))]
    seen = draw.uniform(0.0, 0.5)
    lost = one_loss(seen, causes)
    assert lost == pytest.approx(sum(causes)) or lost == max([seen, *causes])
    assert abs(lost - seen) < 0.02 or lost >= seen


@pytest.mark.parametrize("ended", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_the_end_is_the_same_in_verdict_and_finding(seed: int, *, ended: bool) -> None:
    draw = random.Random(seed)
    one = drawn_finding(draw)
    last = (one.end_step or 0) + (200 if ended else draw.randrange(3))
    (known,) = with_states(
        [one], Coverage((), ()), [Segment(0, last, START, 1000.0)], load_models()
    )
    texts = (headline(known), wording.standing_words(known), wording.state_words(known))
    assert all(("until the end of the logs" in text) != ended for text in texts)
    assert not any("ongoing" in text for text in texts)
    assert (f"at step {known.end_step}" in headline(known)) == ended
    assert (f"until step {known.end_step}" in wording.standing_words(known)) == ended


@pytest.mark.parametrize("seed", range(8))
def test_what_counters_tell_until_the_last_whole_interval_of_a_job_ends_with_it(seed: int) -> None:
    draw = random.Random(seed)
    interval, job_end = draw.choice([10.0, 60.0, 300.0]), START + timedelta(hours=1)
    seen = Coverage(
        (), (), first_time=START, last_time=job_end + timedelta(hours=draw.uniform(0.2, 5)),
        values={"interval_seconds": interval},
    )  # fmt: skip
    storm = replace(drawn_finding(draw), start_step=None, end_step=None, state="")
    for short, with_it in ((draw.uniform(0, 1), True), (draw.uniform(1.5, 3), False)):
        end = job_end - timedelta(seconds=short * interval)
        (known,) = with_states([replace(storm, end=end)], seen, [], load_models(), job_end)
        assert (known.state, known.to_its_end) == ("over", with_it)
        assert ("when its job ended" in wording.standing_words(known)) == with_it
        assert known.end == (job_end if with_it else end)


@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_what_lasts_to_the_last_step_is_not_said_to_last_longer(
    seed: int, *, finished: bool
) -> None:
    """Counters go on for a minute: "until the end of the logs" was said of a job that had ended."""
    draw = random.Random(seed)
    job_end, longer = START + timedelta(hours=1), timedelta(seconds=draw.uniform(10, 120))
    seen = Coverage(
        (), (), first_time=START, last_time=job_end + longer,
        values={"interval_seconds": 30.0},
    )  # fmt: skip
    paces = [Segment(0, 300, START, 1000.0)]
    by_steps = replace(drawn_finding(draw), end_step=300, end=job_end, state="")
    counted = replace(by_steps, start_step=None, end_step=None, families=("counters",))
    by_counters = replace(counted, end=job_end + timedelta(seconds=draw.uniform(-9, 9)))
    for one in (by_steps, by_counters):
        (known,) = with_states([one], seen, paces, load_models(), job_end, finished=finished)
        texts = headline(known), wording.standing_words(known), wording.until_words(known)
        assert not any("end of the logs" in text for text in texts)
        assert (known.state, known.to_its_end) == (("over" if finished else "ongoing"), finished)
        assert known.until_last_step is not finished and known.end == job_end
    # A port that is slow when the job is gone is slow still.
    if longer > timedelta(seconds=40):
        outlives = replace(counted, end=seen.last_time)
        (known,) = with_states([outlives], seen, paces, load_models(), job_end, finished=finished)
        assert "until the end of the logs" in headline(known)


@pytest.mark.parametrize("seed", range(8))
def test_what_is_lost_stands_beside_who_costs_it(seed: int) -> None:
    draw = random.Random(seed)
    found = tuple(
        replace(drawn_finding(draw, n), loss_share=draw.uniform(0.02, 0.2)) for n in range(3)
    )
    lost = Question(QUESTIONS[0], "problem", "12.3% of the throughput is lost since step 7. So.")
    rest = tuple(Question(asked, "ok", "It is well.") for asked in QUESTIONS[1:])
    verdict = Verdict("Something.", (lost, *rest), judged=True)
    text = " ".join(summary_text(Diagnosis(verdict, found)).split())
    told = ", ".join(f"{wording.part_words(f)} ({f.id})" for f in found)
    assert f"12.3% of the throughput is lost since step 7: {told}." in text
    unknown = replace(found[0], entities=(Entity("job", job="a"),), kind="throughput_drop")
    text = " ".join(summary_text(Diagnosis(verdict, (unknown,))).split())
    assert "12.3% of the throughput is lost since step 7." in text


def test_of_a_cable_the_end_at_a_nic_is_named() -> None:
    nic, port = Entity("nic", host="node1", nic="mlx5_0"), Entity("port", switch="l1", port="Eth2")
    one = replace(drawn_finding(random.Random(1)), entities=(port, nic))
    assert wording.part_words(one) == nic.label
    assert wording.part_words(replace(one, entities=(nic, nic, port))).endswith("and 2 more")


@pytest.mark.parametrize("seed", range(6))
def test_of_a_fault_of_two_runs_the_headline_is_that_of_the_worst_run(seed: int) -> None:
    """It said "Worst is a: ... It ended at step 119" of a run that ended at step 75."""
    draw = random.Random(seed)
    one, seen = drawn_finding(draw), Coverage((), (), last_time=START + timedelta(hours=9))
    diagnoses = []
    for number, (first, last) in enumerate(((10, 75), (60, 119)), 1):
        finding = replace(
            one, title=f"It went down {number} times since step {first}", start_step=first,
            end_step=last, start=START, end=START + timedelta(hours=number), severity="high",
            loss_share=0.3 / number, state="over", to_its_end=True,
        )  # fmt: skip
        questions = tuple(Question(asked, "ok", "It is well.") for asked in QUESTIONS)
        verdict = Verdict(sentence_of((finding,), questions, []), questions, judged=True)
        run = Run(
            label="train" if number == 1 else "train#2", name="train", number=number,
            named_by="", parts=(), paths=(), hosts=(), ranks=8, nranks=8, processes=8,
            versions=(), first_step=first, last_step=last, planned_steps=None, replayed_steps=0,
            begin=START, end=START + timedelta(hours=number), modified=None, times={},
            goes_on=False, candidates=1,
        )  # fmt: skip
        diagnoses.append((run, Diagnosis(verdict, (finding,), coverage=seen)))
    both = joined(diagnoses, load_models())
    assert "Worst is train: It went down 1 times" in both.verdict.sentence
    assert "ended at step 75" in both.verdict.sentence
    assert "119" not in both.verdict.sentence


@pytest.mark.parametrize("answer", ["unknown", "problem"])
def test_what_benchmarks_cannot_tell_is_no_answer_beside_those_of_a_job(answer: Answer) -> None:
    """Each output of nccl-tests had no step times: "unknown" was said above a job that was well."""

    def judged(name: str, said: Answer, *, benchmark: bool) -> tuple[Run, Diagnosis]:
        run = Run(
            label=name, name=name, number=1, named_by="", parts=(), paths=(), hosts=(), ranks=8,
            nranks=8, processes=8, versions=(), first_step=None, last_step=None,
            planned_steps=None, replayed_steps=0, begin=None, end=None, modified=None, times={},
            goes_on=True, candidates=1, is_benchmark=benchmark,
        )  # fmt: skip
        asked = tuple(Question(each, said, f"So says {name}.") for each in QUESTIONS)
        return run, Diagnosis(Verdict("", asked, judged=True), ())

    both = [judged("train", "ok", benchmark=False), judged("sweep", answer, benchmark=True)]
    for runs in (both, both[::-1]):
        (first, *_) = joined(runs, load_models()).verdict.questions
        expected = ("problem", "sweep") if answer == "problem" else ("ok", "train")
        assert (first.answer, first.evidence) == (
            expected[0],
            f"{expected[1]}: So says {expected[1]}.",
        )


def test_what_is_low_is_told_after_what_is_over() -> None:
    draw = random.Random(1)
    low, over, costs = (drawn_finding(draw) for _ in range(3))
    low = replace(low, severity="low", loss_share=None, state="ongoing")
    over = replace(over, severity="medium", loss_share=None, state="over")
    costs = replace(costs, severity="low", loss_share=0.1, state="ongoing")
    assert in_order([low, over, costs]) == (over, costs, low)


def test_of_what_is_over_the_run_tells_what_cost_most() -> None:
    """A storm of three minutes led, before the cable that cost the job more until its end."""
    draw = random.Random(2)
    short, long = (replace(drawn_finding(draw), severity="medium", state="over") for _ in range(2))
    short = replace(short, loss_share=0.14, run_share=0.03, confidence=0.8)
    long = replace(long, loss_share=0.12, run_share=0.05, confidence=0.8)
    assert in_order([short, long]) == (long, short)
    short, long = (replace(each, state="ongoing") for each in (short, long))
    assert in_order([long, short]) == (short, long)


@pytest.mark.parametrize("seed", range(8))
def test_a_hang_is_told_after_its_last_step(seed: int) -> None:
    draw = random.Random(seed)
    last, waited = draw.randrange(5, 9000), draw.randrange(60, 1800)
    hang = Finding(
        kind="hang", entities=(Entity("rank", rank=3, host="node01"),), severity="critical",
        confidence=0.9, title=f"rank 3 stopped reporting after step {last}", explanation="",
        start=START, end=START + timedelta(seconds=waited), start_step=last + 1, end_step=last + 1,
        loss_share=1.0, after_step=last, to_its_end=True, state="over",
    )  # fmt: skip
    texts = (
        headline(hang), wording.since_words(hang), wording.standing_words(hang),
        wording.until_words(hang), wording.end_moment_words(hang),
    )  # fmt: skip
    assert not any(f"{last + 1:,}" in text or f" {last + 1}" in text for text in texts)
    assert texts[1] == f"after step {last:,}, 2026-03-02 09:00:00 UTC"
    end = f"{hang.end:%Y-%m-%d %H:%M:%S} UTC"
    assert all(end in text for text in (texts[0], *texts[2:]))
    assert finding_of(finding_document(hang)).after_step == last


@pytest.mark.parametrize("seed", range(8))
def test_without_steps_the_first_screen_says_what_would_tell_the_cost(seed: int) -> None:
    draw = random.Random(seed)
    findings = tuple(
        replace(drawn_finding(draw, n), loss_share=None, run_share=None, gpu_hours_lost=None)
        for n in range(draw.randrange(1, 4))
    )
    found = Diagnosis(Verdict("Something.", (), judged=True), findings)
    screen = " ".join(summary_text(found).split())
    assert "not known; the logs hold no step times" in screen
    assert "provide: The trainer's log, or per-rank step records." in screen
    assert diagnosis_json(found)


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_wrong_names_what_was_judged_and_what_was_not(seed: int) -> None:
    draw = random.Random(seed)
    answers = [draw.choice(("ok", "unknown")) for _ in QUESTIONS]
    answers[draw.randrange(8)], answers[draw.randrange(8)] = "ok", "unknown"
    questions = tuple(
        Question(asked, answer, "") for asked, answer in zip(QUESTIONS, answers, strict=True)
    )
    sentence = sentence_of((), questions, [])
    if len(set(answers)) == 1:
        assert sentence.startswith("Nothing wrong" if answers[0] == "ok" else "Cannot tell")
        return
    judged, not_judged = sentence.split("Not judged: ")
    for topic, answer in zip(TOPICS, answers, strict=True):
        assert (topic in judged) == (answer == "ok")
        assert (topic in not_judged) == (answer == "unknown")


@pytest.mark.parametrize("chart", [link_ends, queue_signals])
@pytest.mark.parametrize("seed", range(6))
def test_the_ports_that_are_drawn_are_those_that_counted_most_meanwhile(
    chart: Any, seed: int
) -> None:
    draw = random.Random(seed)
    ports = [f"Ethernet{8 * n}" for n in range(20)]
    during = dict(zip(ports, draw.sample(range(1, 500), len(ports)), strict=True))
    before = dict(zip(ports, draw.sample(range(1, 5000), len(ports)), strict=True))
    accused = Finding(
        kind="k", entities=(Entity("port", switch="leaf01", port=ports[3]),), severity="high",
        confidence=0.5, title="", explanation="", start=START, end=START + timedelta(minutes=9),
    )  # fmt: skip
    times = [
        START - timedelta(minutes=5),
        START + timedelta(minutes=1),
        START + timedelta(minutes=5),
    ]
    moments = [wording.iso(moment) for moment in times]
    rows = [
        {
            "part": f"leaf01 {port}",
            "signal": "rx_errors" if chart is link_ends else "pfc_rx_frames",
            "peak": max(before[port], during[port]),
            "begins": moments[:2],
            "ends": [moments[0], moments[2]],
            "rates": [float(before[port]), float(during[port])],
        }
        for port in ports
    ]
    source = cast("Source", SimpleNamespace(rows=lambda _, **__: list(rows)))
    spec = str(chart(source, accused).to_dict())
    most = sorted(set(ports) - {ports[3]}, key=during.__getitem__, reverse=True)
    shown = {port for port in ports if re.search(rf"{port}\b", spec)}
    assert shown == {ports[3], *most[:3]}


@pytest.mark.parametrize("seed", range(8))
def test_a_cause_whose_steps_are_short_again_is_over_however_near_the_end(seed: int) -> None:
    """The last 5 % of the steps were as fast as before: "it lasts until the end of the logs"."""
    draw = random.Random(seed)
    last = draw.randint(2_000, 9_000)
    end = last - draw.randint(25, last // 21)
    begin = draw.randint(100, end - 200)
    seen = Coverage((), (), first_time=START, last_time=START + timedelta(seconds=last))
    one = replace(
        drawn_finding(draw), start_step=begin, end_step=end, families=("timing",), state="",
        bursts=(),
    )  # fmt: skip
    slow = Segment(begin, end, START + timedelta(seconds=begin), 1300.0)
    after = Segment(end + draw.randint(1, 15), last, START + timedelta(seconds=end), 1000.0)
    paces = [Segment(0, begin - 1, START, 1000.0), slow, after]
    (over,) = with_states([one], seen, paces, load_models())
    assert over.state == "over"
    (ongoing,) = with_states([replace(one, end_step=last)], seen, paces[:2], load_models())
    assert ongoing.state == "ongoing"


@pytest.mark.parametrize("seed", range(4))
def test_a_cost_is_a_sentence_of_its_own(seed: int) -> None:
    """ "63 ranks waited in ALLREDUCE 361, which cost 100.0%": the call did not."""
    one = replace(drawn_finding(random.Random(seed)), loss_share=0.25, state="over")
    assert headline(one).startswith(f"{one.title}. This cost 25.0% of the throughput. It ")


@pytest.mark.parametrize(
    ("part", "whole", "told"),
    [
        (3.9, 34.34, "3.90 of 34.34"), (0.5, 512.0, "0.50 of 512.00"),
        (12.0, 20480.4, "12 of 20,480"), (0.001, 3.0, "0.001 of 3"),
    ],
)  # fmt: skip
def test_a_part_and_its_whole_have_as_many_decimals(part: float, whole: float, told: str) -> None:
    lost = Loss(share=0.1, gpu_hours=part, run_gpu_hours=whole)
    assert wording.amount_words(lost).endswith(f"{told} GPU hours")


def test_what_is_not_priced_is_told_in_plain_order() -> None:
    draw = random.Random(1)
    priced = replace(drawn_finding(draw), severity="high", loss_share=0.2, run_share=0.1)
    open_ = replace(drawn_finding(draw), severity="high", loss_share=None, run_share=None)
    found = Diagnosis(Verdict("Something.", (), judged=True), (priced, open_), loss=Loss(share=0.1))
    assert wording.loss_words(found).endswith("The cost of 1 other finding is not known.")


@pytest.mark.parametrize(
    ("rate", "told"), [(3395.2, "3,395"), (123456.0, "123,456"), (0.25, "0.25")]
)
def test_a_rate_of_errors_is_written_out(rate: float, told: str) -> None:
    model = load_models()["link_errors"]
    many = rate if rate >= 100 else None
    words = {"rate": rate, "many": many, "near": "a", "risen": 9, "counter": "c"}
    text = with_phrases(model, words | {"counted_intervals": 3})["counted"]
    assert text.endswith(f"({told} in 10^12 bits)")


@pytest.mark.parametrize("seed", range(4))
def test_a_reading_of_a_counter_is_not_told_as_the_time_of_a_step(seed: int) -> None:
    """ "Since step 121, 09:05:30": step 121 began at 09:05:44."""
    one = replace(drawn_finding(random.Random(seed)), families=("counters", "timing"))
    moment = f"{one.start:%Y-%m-%d %H:%M:%S} UTC"
    assert wording.since_words(one) == f"step {one.start_step}, after the reading at {moment}"
    by_steps = wording.since_words(replace(one, families=("timing",)))
    assert by_steps == f"step {one.start_step}, {moment}"


def test_a_slow_rank_is_looked_for_by_its_gpu_and_its_time() -> None:
    end = START + timedelta(minutes=2)
    words = {
        "metered": "GPU 5 (rank 405) of node51",
        "when": during(START, end),
        "sibling": "GPU 4 (rank 404) of the host",
        "unclocked": "",
    }
    model = load_models()["straggler"]
    (step,) = (step for step in steps_of(model, words) if "DCGM" in step)
    assert "GPU 5 (rank 405) of node51, from 2026-03-02 09:00:00 to 09:02:00 UTC" in step
    assert during(START, None) == "at that time"
    assert (
        during(START, START + timedelta(days=1))
        == "from 2026-03-02 09:00:00 to 2026-03-03 09:00:00 UTC"
    )


@pytest.mark.parametrize("stopped", [True, False])
def test_what_was_seen_is_no_open_refutation_of_a_storm(*, stopped: bool) -> None:
    words = {"told": "" if stopped else None, "untold": None if stopped else ""}
    reasons = refutations_of(load_models()["pfc_storm"], words)
    assert any("stop with the traffic" in reason for reason in reasons) != stopped
    assert any("while no job sends" in reason for reason in reasons) == stopped
