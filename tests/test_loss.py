"""What a run lost adds up: findings, and what none of them explains, wherever it is shown."""

import json
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricobs.diagnosis.attribution import in_order, without_named
from fabricobs.diagnosis.findings import Coverage, Driver, Entity, Finding, Price, Segment
from fabricobs.diagnosis.job import StepTimeTrend
from fabricobs.diagnosis.loss import account, joined_losses
from fabricobs.diagnosis.model import Model, load_models
from fabricobs.diagnosis.run import diagnose
from fabricobs.diagnosis.slowdowns import Slowdown
from fabricobs.diagnosis.standing import headline, with_states
from fabricobs.diagnosis.verdict import sentence_of
from fabricobs.report.documents import diagnosis_json
from fabricobs.report.screen import summary_text
from fabricobs.report.wording import (
    cost_words,
    loss_words,
    since_words,
    standing_words,
    threshold_words,
    until_words,
)

START = datetime(2026, 3, 2, 9)
RANKS = 3600


def finding(first: int | None, last: int | None, loss: float, number: int = 0) -> Finding:
    return Finding(
        kind="link_errors",
        entities=(Entity("host", host=f"node{number}"),),
        severity="high",
        confidence=1.0,
        title="The cable of node1 corrupts data since 09:00",
        explanation="",
        start_step=first,
        end_step=last,
        loss_share=loss,
    )


def trend(times: list[float], *slow: tuple[int, int, float]) -> StepTimeTrend:
    """One job whose steps take `times` ms; `slow` are stretches with their share of loss."""
    steps = pl.DataFrame({"step": list(range(len(times))), "step_time_ms": times})
    slowdowns = tuple(
        Slowdown(None, first, last, None, None, 1 - loss, 1.0, None, None, per_work=True)
        for first, last, loss in slow
    )
    return StepTimeTrend(None, steps, (), slowdowns, None, enough=True, shows=0.0, least_lines=10)


def told(findings: list[Finding], *trends: StepTimeTrend):  # type: ignore[no-untyped-def]
    return account(findings, trends, lambda _: RANKS, Price(2.0, "EUR"))


@given(every=st.sampled_from([2, 5, 10]), first=st.integers(20, 70))
def test_a_log_of_every_nth_step_loses_what_a_log_of_each_does(every: int, first: int) -> None:
    run = trend([1000.0] * 101, (first, 100, 0.2))
    thinned = replace(run, steps=run.steps.filter(pl.col("step") % every == 0))
    (whole,), each = told([finding(first, 100, 0.2)], run)
    (part,), some = told([finding(first, 100, 0.2)], thinned)
    assert some.run_gpu_hours == pytest.approx(each.run_gpu_hours, rel=0.1)
    assert part.gpu_hours_lost == pytest.approx(whole.gpu_hours_lost, rel=0.35)


def test_what_overlaps_is_counted_once_with_the_costliest() -> None:
    run = trend([1000.0] * 100, (50, 99, 0.2))
    (small, large), loss = told([finding(50, 99, 0.1, 1), finding(50, 99, 0.2, 2)], run)
    assert (large.run_share, small.run_share) == (0.1, 0.0)
    assert (loss.share, loss.unexplained_share, loss.gpu_hours) == (0.1, 0.0, 10.0)
    assert (large.cost, large.currency, loss.cost) == (20.0, "EUR", 20.0)


def test_information_on_the_same_part_loses_nothing_of_its_own() -> None:
    """Four bursts of one host, told together and each: 17.7 % were lost, and the one cost 4.4."""
    run = trend([1000.0] * 100, (50, 99, 0.2))
    whole = finding(50, 99, 0.2, 1)
    burst = replace(whole, severity="info", loss_share=0.0, start_step=60, end_step=70)
    assert burst.id == whole.id
    found, loss = told([whole, burst], run)
    assert [f.run_share for f in found] == [0.1, None] and loss.share == 0.1
    assert without_named([whole, burst]) == [whole]


@pytest.mark.parametrize(("early", "late"), [(0.1, 0.15), (0.05, 0.2), (0.2, 0.05)])
def test_a_second_fault_takes_nothing_from_the_first(early: float, late: float) -> None:
    """The slowdown of both is one stretch of two paces, and its mean is that of neither."""
    paces = [1000.0, 1000 / (1 - early), 1000 / (1 - early - late)]
    times = [pace for pace in paces for _ in range(100)]
    mean = (paces[1] + paces[2]) / 2
    slow = Slowdown(None, 100, 299, None, None, paces[0], mean, None, None, per_work=True)
    segments = tuple(Segment(100 * n, 100 * n + 99, None, pace) for n, pace in enumerate(paces))
    run = replace(trend(times), slowdowns=(slow,), segments=segments)
    found, loss = told([finding(100, 299, early, 1), finding(200, 299, late, 2)], run)
    first, second = sorted(found, key=lambda each: each.start_step or 0)
    seconds = [sum(times[100:300]) * early / 1000, sum(times[200:300]) * late / 1000]
    assert (first.gpu_hours_lost, second.gpu_hours_lost) == pytest.approx(seconds, abs=0.02)
    assert loss.unexplained_share == pytest.approx(0.0, abs=0.002)


@pytest.mark.parametrize("seed", range(20))
def test_a_cause_that_comes_and_goes_costs_its_bursts(seed: int) -> None:
    """Of eight bursts one was a slowdown: what it lost above the mean was "in no finding", too."""
    chance = random.Random(seed)
    times, bursts = [1000.0] * 300, []
    for begin in sorted(chance.sample(range(100, 280, 20), chance.randint(2, 6))):
        length = chance.randint(5, 12)
        bursts.append((begin, begin + length - 1))
        times[begin : begin + length] = [1000.0 * chance.uniform(1.2, 1.5)] * length
    first, last = bursts[0][0], bursts[-1][1]
    span = times[first : last + 1]
    share = (sum(span) - 1000.0 * len(span)) / sum(span)
    slow = tuple((a, b, 1 - 1000.0 / times[a]) for a, b in chance.sample(bursts, 1))
    cause = replace(finding(first, last, share), bursts=tuple(bursts))
    (told_of,), loss = told([cause], trend(times, *slow))
    assert told_of.run_share == pytest.approx(share * sum(span) / sum(times), abs=0.002)
    assert loss.unexplained_share == pytest.approx(0.0, abs=0.01)


def test_what_no_finding_claims_is_unexplained() -> None:
    (found,), loss = told([finding(50, 74, 0.2)], trend([1000.0] * 100, (50, 99, 0.2)))
    assert (found.run_share, loss.unexplained_share, loss.share) == (0.05, 0.05, 0.1)


@pytest.mark.parametrize("goes_on", [True, False])
def test_longer_steps_of_unknown_work_make_the_loss_unknown(goes_on: bool) -> None:
    """It was "0.0% of the throughput" beside "whether throughput was lost is not known"."""
    pace = trend([100.0] * 50 + [107.0] * 50, (50, 99, 0.07))
    lead = replace(pace.slowdowns[0], per_work=False, goes_on=goes_on)
    _, loss = told([], replace(pace, slowdowns=(lead,)))
    assert (loss.share, loss.unexplained_share) == (None, 0.0)
    assert "longer" in loss.untold
    # A finding that has the price of these steps tells what was lost.
    _, loss = told([finding(45, 99, 0.07)], replace(pace, slowdowns=(lead,)))
    assert loss.share == pytest.approx(0.04, abs=0.002)
    assert not loss.untold


def test_a_fault_of_the_whole_run_is_lost_though_no_pace_changed() -> None:
    (found,), loss = told([finding(None, None, 0.3)], trend([1000.0] * 100))
    assert (found.run_share, loss.share, loss.unexplained_share) == (0.3, 0.3, 0.0)


def test_a_checkpoint_is_time_of_the_run_but_no_loss() -> None:
    times = [1000.0] * 100
    times[60] = 100_000.0
    (found,), loss = told([finding(50, 99, 0.2)], trend(times, (50, 99, 0.2)))
    assert loss.run_gpu_hours == pytest.approx(199.0)
    # A cost is a share of all time but what a step is longer than ten.
    assert found.gpu_hours_lost == pytest.approx(0.2 * 59)


@pytest.mark.parametrize("seed", range(20))
def test_share_times_duration_is_what_was_lost(seed: int) -> None:
    """A storm "cost 4.8%" of 4,225 s, which was 0.81 GPU hours, and 0.35 "in no finding"."""
    chance = random.Random(seed)
    begin, pace = chance.randint(20, 150), chance.uniform(1.05, 1.4)
    times = [1000.0] * begin + [1000.0 * pace] * (300 - begin)
    for step in range(chance.randint(5, 20), 300, chance.randint(15, 40)):
        times[step] *= chance.uniform(2, 8)  # checkpoints
    total = sum(times[begin:])
    share = 1000.0 * (pace - 1) * (300 - begin) / total
    (cost,), loss = told([finding(begin, 299, share)], trend(times, (begin, 299, 1 - 1 / pace)))
    assert cost.gpu_hours_lost == pytest.approx(share * total / 1000.0, rel=0.01)
    assert loss.unexplained_share == 0.0


def test_a_job_that_waits_after_its_last_step_lost_all_of_that() -> None:
    hang = replace(finding(100, 100, 1.0), start=START, end=START + timedelta(seconds=100))
    (found,), loss = told([hang], trend([1000.0] * 100))
    assert (found.run_share, loss.share, loss.run_gpu_hours) == (0.5, 0.5, 200.0)
    _, both = told([hang, finding(10, 99, 0.3)], trend([1000.0] * 100))
    assert (both.at_end, both.at_end_of) == (1.0, ((hang.id, 1.0),))
    (alone,), unknown = told([hang])
    assert (alone.gpu_hours_lost, alone.run_share, unknown.share) == (100.0, None, None)


shares = st.floats(0.01, 0.9)
spans = st.tuples(st.integers(0, 80), st.integers(0, 40), shares)


@given(
    st.lists(st.floats(100, 5000), min_size=60, max_size=100),
    st.lists(spans, max_size=3),
    st.lists(spans, max_size=4),
)
def test_the_parts_are_the_whole(
    times: list[float], slow: list[tuple[int, int, float]], claims: list[tuple[int, int, float]]
) -> None:
    run = trend(times, *((first, first + more, loss) for first, more, loss in slow))
    findings = [finding(f, f + more, loss, n) for n, (f, more, loss) in enumerate(claims)]
    found, loss = told(findings, run)
    assert loss.share is not None and loss.unexplained_share is not None
    assert 0 <= loss.share <= 1
    parts = sum(each.run_share or 0.0 for each in found) + loss.unexplained_share
    assert loss.share == pytest.approx(parts, abs=1e-9)
    hours = sum(each.gpu_hours_lost or 0.0 for each in found) + (loss.unexplained_gpu_hours or 0.0)
    assert loss.gpu_hours == pytest.approx(hours, abs=1e-6)
    (both,), joint = joined_losses([(found, loss)])
    assert joint.share == pytest.approx(
        sum(each.run_share or 0.0 for each in both) + (joint.unexplained_share or 0.0), abs=1e-9
    )


def test_one_number_stands_everywhere(sample_store: Path) -> None:
    diagnosis = diagnose(sample_store, gpu_hour_price=3.0, currency="EUR")
    document = json.loads(diagnosis_json(diagnosis))
    loss, (skew,) = document["loss"], document["findings"]
    assert loss["share"] == skew["run_share"] and loss["unexplained_share"] == 0
    assert loss["gpu_hours"] == skew["gpu_hours_lost"]
    assert (loss["cost"], loss["currency"]) == (skew["cost"], "EUR")
    assert document["what_if"][0]["saved_share"] == skew["loss_share"]
    assert skew["loss_share"] * 144 * 3.866 * 32 / 3600 == pytest.approx(
        loss["gpu_hours"], rel=0.02
    )
    first_screen = " ".join(summary_text(diagnosis).split())
    assert loss_words(diagnosis) in first_screen
    assert f"{loss['share']:.1%} of the throughput" in loss_words(diagnosis)
    assert f"worth {loss['cost']:.2f} EUR" in loss_words(diagnosis)


def test_what_is_over_is_told_in_the_past_and_after_what_goes_on() -> None:
    segments = (Segment(0, 999, None, 1000.0),)
    models = load_models()
    past, lasting = finding(100, 200, 0.5, 1), finding(900, 999, 0.1, 2)
    states = with_states([past, lasting], Coverage((), ()), segments, models)
    first, second = in_order(states)
    assert (first.state, second.state) == ("ongoing", "over")
    assert first.title == "The cable of node1 corrupts data since 09:00"
    assert second.title == "The cable of node1 corrupted data from 09:00"
    days = Coverage((), (), first_time=START - timedelta(days=3), last_time=second.end)
    assert [each.state for each in with_states([second], days, (), models)] == ["over"]
    again = with_states([second], Coverage((), ()), segments, models)
    assert again[0].title == second.title


@pytest.mark.parametrize("days", [0, 3, 400])
def test_what_ended_is_over_however_far_kernel_logs_reach_back(days: int) -> None:
    ended = replace(finding(None, None, 0.1), end=START + timedelta(minutes=11))
    seen = Coverage(
        (),
        (),
        first_time=START - timedelta(days=days),
        last_time=START + timedelta(minutes=16),
        measured_from=START,
    )
    (told,) = with_states([ended], seen, (), load_models())
    assert told.state == "over"


def test_the_words_of_the_past_stand_in_the_titles_they_change() -> None:
    for model in load_models().values():
        title, phrases = model.wording.title, model.wording.phrase
        own = [text for name, own in phrases.items() if f"{{{name}}}" in title for text in own]
        texts = [title, *phrases.get("title", ()), *(re.sub(r"^{\w+}", "", text) for text in own)]
        filled = {"straggler", "workload_imbalance", "hang", "packet_loss", "one_way_uplink"}
        for word in model.wording.past:  # methods fill in words of their own
            known = any(re.search(rf"(?<!\S){word}(?!\w)", text) for text in texts)
            assert known or model.name in filled, (model.name, word)


PRESENT = re.compile(
    r"\b(is|are|has|(?<!would )(?<!to )have|does|sends?|receives|carr(y|ies)|computes?|reach(es)?"
    r"|lacks?|stays?|begins?|stands?|takes?|loses?|explains?|isolates|gets?)\b"
)
# What holds of all fabrics, whatever was measured, and what a reader knows now.
LAWS = (
    "Hashing {flows:.0f} flows evenly gives",
    "Gb/s a host reach {low_gbytes_per_s",
    "Error correction works up to that rate",
    "hashing {flows} leaves a link so empty",
    "The logs tell what would explain it",
    "where a ring brings each as much as it takes",
)
KNOWN = re.compile(r"\b(is|are) (not )?known\b")


def parts_of_explanation(model: Model) -> Iterator[str]:
    """The clauses of an explanation that state what was measured: those with a fact in them."""
    texts, open_ = [], [model.wording.explanation]
    while open_:
        texts.append(open_.pop())
        names = re.findall(r"\{(\w+)", texts[-1])
        open_ += [text for name in names for text in model.wording.phrase.get(name, ())]
    for text in texts:
        for clause in re.split(r"(?<=[^\d])[.;] |(?<=\}) (?=[A-Z]\w* )|, (?=where)", text):
            if "{" in clause and not any(law in clause for law in LAWS):
                yield KNOWN.sub("", re.sub(r"\{[^}]*\}", "", clause))


@pytest.mark.parametrize("model", load_models().values(), ids=lambda model: model.name)
def test_an_explanation_tells_in_the_past_what_was_measured(model: Model) -> None:
    for clause in parts_of_explanation(model):
        assert not PRESENT.search(clause), clause


def test_laws_stand_in_explanations() -> None:
    texts = "\n".join(m.wording.explanation + str(m.wording.phrase) for m in load_models().values())
    assert [law for law in LAWS if law not in texts] == []


@pytest.mark.parametrize("longer_at", [0, 1, 15, 30, 32, 33, 600])
@pytest.mark.parametrize("family", ["counters", "timing"])
def test_counters_and_steps_that_tell_two_onsets_tell_the_time_between(
    longer_at: int, family: str
) -> None:
    begun, known = START, START + timedelta(seconds=30)
    slower = Segment(121, 299, START + timedelta(seconds=longer_at), 1200.0)
    segments = (Segment(0, 120, START - timedelta(minutes=9), 1000.0), slower)
    one = replace(finding(116, 299, 0.1), start=begun, detected_at=known, families=(family,))
    (told,) = with_states([one], Coverage((), ()), segments, load_models())
    # Clocks differ by up to two seconds.
    between = family == "counters" and 0 < longer_at <= 32
    assert told.slower_from == ((121, slower.start) if between else None)
    assert ("between step 116, " in since_words(told)) == between
    assert ("and step 121, " in standing_words(told)) == between
    (again,) = with_states([told], Coverage((), ()), (), load_models())
    assert again.slower_from == told.slower_from


def test_what_lasted_until_its_job_ended_is_not_said_to_have_ended() -> None:
    one = replace(finding(100, 299, 0.1), state="ongoing", end=START + timedelta(minutes=10))
    seen = Coverage((), (), first_time=START, last_time=START + timedelta(minutes=20))
    (told,) = with_states([one], seen, (), load_models())
    assert (told.state, told.to_its_end) == ("over", True)
    assert headline(told).endswith("It lasted until its job ended at step 299.")
    assert "whether it lasts is not known" in until_words(told)
    (ended,) = with_states([replace(one, state="over")], seen, (), load_models())
    assert headline(ended).endswith("It ended at step 299.")


@pytest.mark.parametrize("interval", [5.0, 60.0, 300.0])
def test_what_counters_still_tell_at_the_end_is_not_over(interval: float) -> None:
    """Steps that were longer in its first half only do not end it."""
    last = START + timedelta(hours=1)
    seen = Coverage((), (), first_time=START, last_time=last, values={"interval_seconds": interval})
    segments = (Segment(0, 299, START, 1000.0),)
    for left, state in ((0.5, "ongoing"), (3 + 600 / interval, "over")):
        end = last - timedelta(seconds=left * interval)
        one = replace(finding(100, 150, 0.1), end=end, families=("counters", "timing"))
        assert with_states([one], seen, segments, load_models())[0].state == state
    by_steps = replace(finding(100, 150, 0.1), end=last, families=("timing",))
    assert with_states([by_steps], seen, segments, load_models())[0].state == "over"


def test_what_counters_tell_from_their_first_reading_may_be_older() -> None:
    seen = Coverage((), (), first_time=START, last_time=START + timedelta(hours=1))
    for later, older in ((0, True), (1, True), (60, False)):
        start = START + timedelta(seconds=later)
        one = replace(finding(0, 9, 0.1), start=start, start_step=None, end_step=None)
        (told,) = with_states([one], seen, (), load_models())
        assert since_words(told).endswith(", or before (the first reading)") == older


def test_what_ended_with_its_traffic_is_not_said_to_be_over() -> None:
    one = replace(finding(0, 9, 0.1), start_step=None, end_step=None, traffic_ended=True)
    one = replace(one, end=START + timedelta(minutes=9))
    seen = Coverage((), (), first_time=START, last_time=START + timedelta(minutes=30))
    (told,) = with_states([one], seen, (), load_models())
    assert headline(told).endswith("It lasted until its traffic ended at 2026-03-02 09:09:00 UTC.")
    # With the last step of its job it is not over.
    steps = (Segment(0, 299, START, 1000.0),)
    (lasting,) = with_states([replace(one, end_step=298)], seen, steps, load_models())
    assert (lasting.state, lasting.traffic_ended) == ("ongoing", False)
    assert until_words(told).endswith("its traffic ended then; whether it lasts is not known")


def test_a_cost_that_was_measured_and_is_none_is_not_unknown() -> None:
    one = replace(finding(0, 9, 0.1), loss_share=None, run_share=None, gpu_hours_lost=None)
    assert cost_words(one) == "not measured"
    assert cost_words(replace(one, unfelt=True)) == "nothing that was measured"


def test_a_threshold_says_on_which_side_the_number_is() -> None:
    number = Driver("evenness", 0.5, None, "", None, 0.8, "")
    assert threshold_words(number) == "< 0.8"
    assert threshold_words(replace(number, value=0.9)) == "> 0.8"
    assert threshold_words(replace(number, value=0.8)) == "= 0.8"
    assert threshold_words(replace(number, threshold=None)) == "-"


def test_what_costs_most_is_said_where_another_is_told_first() -> None:
    sick = replace(finding(100, 299, 0.02, 1), severity="medium", run_share=0.012)
    work = Entity("job", job="run")
    varied = replace(
        finding(0, 299, 0.22, 2), severity="low", entities=(work,), run_share=0.2,
        title="Ranks vary from step to step: another one is last each time",
    )  # fmt: skip
    told = sentence_of((sick, varied), (), [])
    assert told.endswith(" Most is lost otherwise: Ranks vary from step to step.")
    alone = sentence_of((sick, replace(varied, run_share=0.02)), (), [])
    assert alone.endswith(" 1 more below.")


def test_what_counters_tell_before_the_first_step_has_no_step_of_that_time() -> None:
    one = replace(finding(10, 299, 0.1), from_first_step=True, families=("counters", "timing"))
    one = replace(one, start=START)
    assert since_words(one) == "2026-03-02 09:00:00 UTC, or before (step 10 is the first judged)"
    by_steps = replace(one, families=("timing",))
    assert since_words(by_steps).startswith("step 10, 2026-03-02 09:00:00 UTC, or before")
