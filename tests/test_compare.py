"""`fabricobs compare`: what changed, what did not, and what nobody can tell."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import Rows, Run
from fabricobs.diagnosis.change import FEWEST, Change, Occurrence, Pair, judge
from fabricobs.diagnosis.comparison import ERRORS, HOSTS, RANKS, STEPS, Comparison, compare
from fabricobs.diagnosis.sides import SideError
from fabricobs.diagnosis.statistics import (
    cliffs_delta,
    differs,
    false_discovery,
    median_interval,
    share_differs,
)
from fabricobs.report.comparison import comparison_json, comparison_text

START = datetime(2026, 3, 2, 9)
Make = Callable[[Rows], Path]
FLOATS = st.lists(st.floats(0, 1e6), min_size=1, max_size=40)


class TestStatistics:
    @given(FLOATS, FLOATS)
    def test_delta_turns_with_its_sides(self, before: list[float], after: list[float]) -> None:
        a, b = np.array(before), np.array(after)
        assert cliffs_delta(a, b) == pytest.approx(-cliffs_delta(b, a))
        pairs = [(x > y) - (x < y) for x in after for y in before]
        assert cliffs_delta(a, b) == pytest.approx(np.mean(pairs))

    @pytest.mark.parametrize("count", [6, 9, 30, 201])
    def test_the_interval_holds_the_median_as_often_as_it_says(self, count: int) -> None:
        chance = np.random.default_rng(count)
        intervals = [median_interval(chance.normal(size=count)) for _ in range(2000)]
        assert np.mean([low <= 0 <= high for low, high in intervals]) >= 0.94

    def test_five_values_bound_no_median(self) -> None:
        assert median_interval(np.arange(5.0)) == (-np.inf, np.inf)

    def test_no_comparison_has_no_discovery(self) -> None:
        assert false_discovery([]) == []

    @given(st.lists(st.floats(0, 1), min_size=1, max_size=50))
    def test_a_correction_never_helps(self, p_values: list[float]) -> None:
        corrected = zip(p_values, false_discovery(p_values), strict=True)
        assert all(q >= p - 1e-12 for p, q in corrected)

    def test_known_values(self) -> None:
        assert differs(np.arange(6.0), np.arange(6.0) + 10) == pytest.approx(2 / 924)
        assert share_differs((0, 10), (10, 10)) == pytest.approx(2 / 184756)


def only(a: list[float], b: list[float]) -> Change:
    (change,) = judge([Pair("g", "n", "ms", np.array(a), np.array(b))])
    return change


class TestAnswers:
    def test_a_clear_change_has_a_direction(self) -> None:
        steady, longer = [100.0 + i % 3 for i in range(20)], [120.0 + i % 3 for i in range(20)]
        assert only(steady, longer).answer == "higher"
        back = only(longer, steady)
        assert (back.answer, back.effect) == ("lower", -1)

    def test_a_clear_but_small_change_is_none_worth_telling(self) -> None:
        steady = [100.0 + i % 3 / 10 for i in range(20)]
        change = only(steady, [value + 1 for value in steady])
        assert (change.answer, change.effect) == ("no change", 1)

    def test_too_few_are_told_so(self) -> None:
        change = only([100.0] * (FEWEST - 1), [200.0] * 50)
        assert (change.answer, change.p) == ("cannot tell", None)
        assert "too few" in change.reason

    def test_noise_is_no_proof_of_sameness(self) -> None:
        chance = np.random.default_rng(3)
        change = only(list(chance.normal(100, 60, 10)), list(chance.normal(100, 60, 10)))
        assert (change.answer, change.reason) == ("cannot tell", "too noisy")

    def test_nothing_on_both_sides_is_no_change(self) -> None:
        assert only([0.0] * 10, [0.0] * 10).answer == "no change"

    def test_a_rise_from_nothing_has_no_share(self) -> None:
        change = only([0.0] * 20, [5.0] * 20)
        assert (change.answer, change.shift) == ("higher", None)

    @pytest.mark.parametrize("seed", range(20))
    def test_many_healthy_numbers_give_no_change(self, seed: int) -> None:
        chance = np.random.default_rng(seed)
        pairs = [
            Pair("g", str(i), "ms", chance.normal(100, 4, 30), chance.normal(100, 4, 30))
            for i in range(200)
        ]
        assert {change.answer for change in judge(pairs)} <= {"no change", "cannot tell"}

    def test_errors_are_told_by_how_often_they_come(self) -> None:
        seen = Occurrence(ERRORS, "leaf01 Ethernet0 symbol_errors", 0, 30, 0, 12, 30, 900)
        rare = replace(seen, b_hits=1, b_total=1)
        often, once = judge([], [seen, rare])
        assert (often.answer, often.shift) == ("higher", None)
        assert "900" in often.reason
        assert once.answer == "cannot tell"


def job_rows(
    job: str | None,
    *,
    steps: int = 120,
    slow: dict[int, float] | None = None,
    transfer: float = 200,
) -> Rows:
    """A data-parallel job of 16 ranks on two hosts; `slow` ranks compute longer by a factor."""
    chance = np.random.default_rng(5 if job is None else len(job))
    rows = []
    now = START
    for step in range(1, steps + 1):
        compute = chance.normal(700, 3, 16)
        for rank, factor in (slow or {}).items():
            compute[rank] *= factor
        sent = chance.normal(transfer, 2)
        now += timedelta(milliseconds=float(compute.max() + sent))
        rows += [
            {
                "job": job, "file_id": "f", "step": step, "rank": rank, "ts": now,
                "host": f"node{rank // 8:02d}", "step_time_ms": float(compute.max() + sent),
                "compute_ms": float(compute[rank]),
                "comm_ms": float(compute.max() - compute[rank] + sent),
            }
            for rank in range(16)
        ]  # fmt: skip
    for line, row in enumerate(rows):
        row["line"] = line
    return {"steps": rows}


def environment(job: str, **values: str) -> list[dict[str, object]]:
    return [
        {"job": job, "file_id": "f", "host": "node00", "pid": 1, "name": name, "value": value}
        for name, value in values.items()
    ]


def told(compared: Comparison, group: str) -> dict[str, str]:
    return {change.name: change.answer for change in compared.of_group(group)}


class TestJobs:
    @pytest.fixture
    def compared(self, make_store: Make) -> Comparison:
        rows = job_rows("before")
        rows["steps"] += job_rows("after", slow={3: 1.3})["steps"]
        rows["nccl_env"] = environment("before", NCCL_ALGO="Ring", NCCL_IB_HCA="mlx5")
        rows["nccl_env"] += environment("after", NCCL_ALGO="Tree", NCCL_IB_HCA="mlx5")
        return compare("before", "after", make_store(rows))

    def test_the_slow_rank_is_the_one_that_changed(self, compared: Comparison) -> None:
        ranks = told(compared, RANKS)
        assert [name for name, answer in ranks.items() if answer == "higher"] == ["rank 3"]
        assert set(told(compared, HOSTS).values()) == {"no change"}

    def test_its_computation_and_the_wait_for_it_are_told_apart(self, compared: Comparison) -> None:
        steps = told(compared, STEPS)
        assert steps["step time"] == "higher"
        assert steps["computation, slowest rank"] == "higher"
        assert steps["computation, median rank"] == "no change"
        assert steps["exposed communication, transfer alone"] == "no change"
        assert steps["exposed communication, median rank"] == "higher"

    def test_only_settings_that_differ_are_named(self, compared: Comparison) -> None:
        (setting,) = [s for s in compared.settings if s.name.startswith("NCCL_")]
        assert (setting.name, setting.only_a, setting.only_b) == ("NCCL_ALGO", ("Ring",), ("Tree",))

    def test_jobs_of_which_only_nccl_tells_are_compared(self, make_store: Make) -> None:
        said = environment("before", NCCL_ALGO="Ring") + environment("after", NCCL_ALGO="Tree")
        text = comparison_text(compare("before", "after", make_store({"nccl_env": said})))
        assert text.startswith("No number was measured on both sides; settings that differ: 1.")
        assert "only A: Ring; only B: Tree" in text

    def test_what_was_not_measured_is_named(self, compared: Comparison) -> None:
        assert "balance of uplinks" in compared.missing
        assert "error counters" in compared.missing

    def test_the_first_steps_of_a_job_are_left_out(self, compared: Comparison) -> None:
        assert (compared.a.first_step, compared.a.steps) == (11, 110)

    def test_text_and_json_say_the_same(self, compared: Comparison) -> None:
        text = comparison_text(compared)
        assert text.startswith("A step takes 22.8% longer in B")
        assert "rank 3" in text
        assert "NCCL_ALGO" in text
        document = json.loads(comparison_json(compared))
        assert document["schema_version"] == 1
        assert document["sentence"].split() == text.partition("\n\n")[0].split()
        assert len(document["changes"]) == len(compared.changes)


class TestSides:
    @pytest.mark.parametrize(
        ("a", "b", "said"),
        [
            ("beforr", "after", "did you mean before?"),
            ("steps:1..5", "after", "give --job, one of"),
            ("before", "before", "overlap"),
        ],
    )
    def test_of_several_jobs(self, make_store: Make, a: str, b: str, said: str) -> None:
        rows = job_rows("before", steps=30)
        rows["steps"] += job_rows("after", steps=30)["steps"]
        with pytest.raises(SideError, match=said):
            compare(a, b, make_store(rows))

    @pytest.mark.parametrize(
        ("a", "b", "said"),
        [
            ("steps:1..60", "steps:60..90", "overlap"),
            ("steps:1..60", "2026-03-02T09:00..2026-03-02T09:01", "overlap"),
            ("steps:5-9", "steps:60..90", "steps:FIRST..LAST"),
            ("steps:500..", "steps:60..90", "none of these steps"),
            ("9 o'clock..", "steps:60..90", "no time"),
            ("2026-03-02T10..2026-03-02T09", "steps:60..90", "ends before it begins"),
            ("nonsense", "steps:60..90", "no such job"),
            ("steps:60..1", "steps:60..90", "ends before it begins"),
            ("2026-03-02T09:09", "steps:60..90", "a window has two dots"),
        ],
    )
    def test_of_one(self, make_store: Make, a: str, b: str, said: str) -> None:
        with pytest.raises(SideError, match=said):
            compare(a, b, make_store(job_rows(None)))

    def test_a_window_is_its_steps(self, make_store: Make) -> None:
        store = make_store(job_rows(None))
        early, late = "2026-03-02T10:00:00+01:00..2026-03-02T09:00:45", "2026-03-02T09:00:50.."
        compared = compare(early, late, store)
        assert compared.a.begin == START
        assert compared.a.first_step == 1
        assert compared.b.last_step == 120
        assert compared.a.last_step < compared.b.first_step  # type: ignore[operator]
        assert told(compared, STEPS)["step time"] == "no change"

    def test_an_empty_window_cannot_be_told(self, make_store: Make) -> None:
        compared = compare(
            "2026-03-02T09:00..2026-03-02T09:01",
            "2027-01-01..2027-01-02",
            make_store(job_rows(None)),
        )
        assert {change.answer for change in compared.changes} == {"cannot tell"}

    def test_an_empty_store_says_so(self, make_store: Make) -> None:
        compared = compare("2026-01-01..2026-01-02", "2027-01-01..2027-01-02", make_store({}))
        assert comparison_text(compared).startswith("Cannot tell")


class TestSample:
    def test_the_fault_of_the_sample_is_what_changed(self, sample_store: Path) -> None:
        compared = compare("steps:11..150", "steps:160..300", sample_store)
        changed = {c.name for c in compared.changes if c.answer in {"higher", "lower"}}
        assert "leaf01 uplinks, busier half" in changed
        assert "leaf02 uplinks, busier half" not in changed
        assert "exposed communication, transfer alone" in changed
        assert not any(name.startswith(("rank", "node", "computation")) for name in changed)

    def test_its_healthy_half_has_not_changed(self, sample_store: Path) -> None:
        compared = compare("steps:11..80", "steps:81..150", sample_store)
        assert not [c.name for c in compared.changes if c.answer in {"higher", "lower"}]

    def test_the_command(self, fabricobs: Run, sample_store: Path) -> None:
        sides = ("2026-03-02T09:00:35..2026-03-02T09:07", "2026-03-02T09:09..")
        text = fabricobs("compare", *sides, "--store", sample_store)
        assert text.returncode == 0, text.stderr
        assert "A step takes 26" in text.stdout
        again = fabricobs("compare", *sides, "--store", sample_store, "--format", "json")
        assert json.loads(again.stdout)["b"]["last_step"] == 300
        wrong = fabricobs("compare", "nobody", "steps:1..", "--store", sample_store)
        assert (wrong.returncode, "Traceback" in wrong.stderr) == (3, False)
