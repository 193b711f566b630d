"""Incidents over time: what opens one, makes it worse and ends it."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricobs.diagnosis.findings import SEVERITIES, UNEXPLAINED, Entity, Finding
from fabricobs.diagnosis.incidents import Event, Incident, Moment, Timers, advance

BEGIN = datetime(2026, 3, 2, 9)
MINUTE = timedelta(minutes=1)
TIMERS = Timers(5 * MINUTE, 15 * MINUTE, 10 * MINUTE, 60 * MINUTE)
SKEW = Finding(
    kind="ecmp_skew",
    entities=(Entity("switch", switch="leaf01"),),
    severity="high",
    confidence=0.9,
    title="leaf01 is skewed",
    explanation="",
    start=BEGIN,
)
DROP = replace(SKEW, kind=UNEXPLAINED, entities=(), title="slower", loss_share=0.2)


def at(minute: float) -> Moment:
    """A round on time: our clock an hour ahead of the data, which have just moved on."""
    moment = BEGIN + minute * MINUTE
    return Moment(moment + 60 * MINUTE, moment, moment + 60 * MINUTE)


def seen(minute: float, finding: Finding = SKEW, **changes: object) -> Finding:
    return replace(finding, end=BEGIN + minute * MINUTE, **changes)  # type: ignore[arg-type]


def play(rounds: list[tuple[Moment, list[Finding]]]) -> tuple[tuple[Incident, ...], list[Event]]:
    incidents: tuple[Incident, ...] = ()
    events: list[Event] = []
    for moment, findings in rounds:
        standing = [incident for incident in incidents if incident.state != "resolved"]
        incidents, news = advance(standing, findings, moment, TIMERS)
        events.extend(news)
    return incidents, events


def news(rounds: list[tuple[Moment, list[Finding]]]) -> list[tuple[str, str]]:
    return [(event.news, event.incident.severity) for event in play(rounds)[1]]


def test_one_that_comes_and_goes_is_told_twice() -> None:
    rounds = [(at(5), [seen(5)]), (at(10), [seen(10)])]
    rounds += [(at(minute), [seen(12)]) for minute in range(15, 60, 5)]
    assert news(rounds) == [("new", "high"), ("resolved", "high")]


@pytest.mark.parametrize(("minute", "state"), [(4, "firing"), (6, "recovering"), (16, "resolved")])
def test_states_follow_the_time_of_the_data(minute: float, state: str) -> None:
    incidents, _ = play([(at(0), [seen(0)]), (at(minute), [])])
    assert incidents[0].state == state


def test_it_fires_again_where_the_fault_returns_before_it_is_resolved() -> None:
    rounds = [(at(0), [seen(0)]), (at(10), []), (at(12), [seen(12)])]
    assert play(rounds)[0][0].state == "firing"
    assert news(rounds) == [("new", "high")]


def test_worse_is_told_milder_is_not() -> None:
    rounds = [
        (at(0), [seen(0, severity="low")]),
        (at(1), [seen(1, severity="high")]),
        (at(2), [seen(2, severity="medium")]),
    ]
    assert news(rounds) == [("new", "low"), ("worse", "high")]
    assert play(rounds)[0][0].severity == "high"


def test_a_fault_that_comes_back_is_another_incident_of_the_same_id() -> None:
    _, events = play(
        [(at(0), [seen(0)]), (at(20), []), (at(30), [seen(30)]), (at(50), []), (at(51), [])]
    )
    assert [event.news for event in events] == ["new", "resolved", "new", "resolved"]
    assert len({event.incident.finding.id for event in events}) == 1
    assert len({event.key for event in events}) == 4


def test_what_was_over_before_anyone_looked_opens_nothing() -> None:
    assert news([(at(30), [seen(2)])]) == []


@pytest.mark.parametrize("severity", SEVERITIES)
def test_only_from_the_severity_asked_for(severity: str) -> None:
    _, events = advance((), [seen(0, severity=severity)], at(0), TIMERS, "medium")
    assert bool(events) == (severity in {"medium", "high", "critical"})


def test_without_data_it_stands_until_they_have_been_missing_for_long() -> None:
    incidents, _ = play([(at(0), [seen(0)])])
    stopped = at(0)
    for minutes, state in ((59, "firing"), (60, "resolved")):
        later = replace(stopped, now=stopped.now + minutes * MINUTE)
        (incident,), _ = advance(incidents, [seen(0)], later, TIMERS)
        assert incident.state == state
    assert incident.ending == "no_data"


def test_one_whose_kind_could_not_be_looked_for_stays_as_it_is() -> None:
    incidents, _ = play([(at(0), [seen(0)])])
    held, events = advance(incidents, [], at(60), TIMERS, may_miss=lambda kind: kind == SKEW.kind)
    assert (held, events) == (incidents, ())
    held, _ = advance(incidents, [seen(60)], at(60), TIMERS, may_miss=lambda kind: True)
    assert held[0].last_seen == at(60).newest
    (other,), _ = advance(incidents, [], at(60), TIMERS, may_miss=lambda kind: kind == "hang")
    assert other.state == "resolved"


class TestALossWithoutACause:
    def test_is_told_when_it_has_lasted(self) -> None:
        assert news([(at(9), [seen(9, DROP)])]) == []
        assert news([(at(9), [seen(9, DROP)]), (at(11), [seen(11, DROP)])]) == [("new", "high")]

    def test_is_not_told_where_a_cause_is_named_meanwhile(self) -> None:
        rounds = [(at(9), [seen(9, DROP)]), (at(11), [seen(11, loss_share=0.2)])]
        assert [event.incident.finding.kind for event in play(rounds)[1]] == ["ecmp_skew"]

    def test_ends_when_a_cause_is_named_later(self) -> None:
        rounds = [(at(11), [seen(11, DROP)]), (at(12), [seen(12, loss_share=0.2)])]
        events = play(rounds)[1]
        assert [(e.news, e.incident.finding.kind) for e in events] == [
            ("new", UNEXPLAINED), ("resolved", UNEXPLAINED), ("new", "ecmp_skew"),
        ]  # fmt: skip
        assert events[1].incident.ending == "explained"


class TestAMildFindingBesideIt:
    """It may be a part of the cause, which is told under another name: a skew after collisions."""

    MILD = replace(SKEW, kind="hash_collisions", severity="medium")

    def test_waits_as_long(self) -> None:
        both = [seen(9, DROP), seen(9, self.MILD)]
        assert news([(at(9), both)]) == []
        assert news([(at(9), both), (at(11), [seen(11, loss_share=0.2)])]) == [("new", "high")]
        assert len(news([(at(11), both)])) == 2

    @pytest.mark.parametrize("changes", [{"severity": "high"}, {"loss_share": 0.1}])
    def test_does_not_wait_where_it_is_serious(self, changes: dict[str, object]) -> None:
        assert len(news([(at(9), [seen(9, DROP), seen(9, self.MILD, **changes)])])) == 1

    def test_ends_when_a_finding_tells_of_it(self) -> None:
        cause = seen(2, loss_share=0.2, symptoms=(self.MILD.id,))
        events = play([(at(1), [seen(1, self.MILD)]), (at(2), [cause])])[1]
        assert [(e.news, e.incident.finding.kind, e.incident.ending) for e in events] == [
            ("new", "hash_collisions", None),
            ("resolved", "hash_collisions", "explained"),
            ("new", "ecmp_skew", None),
        ]


@given(
    st.lists(st.tuples(st.integers(1, 9), st.booleans(), st.sampled_from(SEVERITIES)), max_size=30)
)
def test_events_always_come_in_order(steps: list[tuple[int, bool, str]]) -> None:
    """Whatever is found when: new first, then only worse ones, resolved once at the end."""
    rounds = []
    minute = 0
    for pause, present, severity in steps:
        minute += pause
        found = [seen(minute, severity=severity)] if present else []
        rounds.append((at(minute), found))
    open_severity = None
    for event in play(rounds)[1]:
        rank = SEVERITIES.index(event.incident.severity)
        if event.news == "new":
            assert open_severity is None
        elif event.news == "worse":
            assert open_severity is not None
            assert rank > open_severity
        else:
            assert open_severity is not None
        open_severity = None if event.news == "resolved" else rank
