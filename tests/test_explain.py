"""`fabricobs explain`: which finding is meant, and that nothing of it is left out."""

import json
import shutil
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

from conftest import Run
from fabricobs.diagnosis.findings import Diagnosis, Driver, Entity, Finding, Verdict
from fabricobs.diagnosis.run import diagnose
from fabricobs.report.documents import diagnosis_json, finding_of
from fabricobs.report.evidence_rows import evidence_rows
from fabricobs.report.explanation import (
    UnknownFindingError,
    explain,
    find_finding,
)
from fabricobs.report.history import keep_findings, kept_findings
from fabricobs.store.parts import Store

START = datetime(2026, 3, 2, 9)
FINDING = Finding(
    kind="straggler",
    entities=(Entity("rank", rank=3, host="node01"),),
    related=(Entity("host", host="node02"),),
    severity="high",
    confidence=0.85,
    families=("timing", "log"),
    title="rank 3 computes longer",
    explanation="It arrives last.",
    start=START,
    end=START + timedelta(hours=1),
    start_step=100,
    end_step=200,
    detected_at=START + timedelta(minutes=5),
    bursts=((100, 104), (150, 150), (180, 200)),
    loss_share=0.12,
    loss_shared_with=("GPUDirect RDMA is off on n1",),
    gpu_hours_lost=3.5,
    slower_from=(103, START + timedelta(seconds=9)),
    to_its_end=True,
    cost=7.0,
    drivers=(Driver("computation", 812.0, 700.0, "ms", 9.5, 735.0, "Greyhound"),),
    query="slowest_ranks",
    refuted_by=("Longer sequences.",),
    next_steps=("Swap the host.",),
)
OTHER = replace(FINDING, entities=(Entity("rank", rank=5, host="node01"),), title="rank 5")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    store = Store(tmp_path / "store")
    store.create()
    return store.path


def keep(store: Path, *findings: Finding) -> None:
    keep_findings(Diagnosis(Verdict("", (), True), findings), store)


def find(wanted: str, store: Path) -> Finding:
    return find_finding(wanted, kept_findings(store), lambda: diagnose(store))


def test_a_finding_survives_its_json() -> None:
    text = diagnosis_json(Diagnosis(Verdict("", (), True), (FINDING,)))
    assert finding_of(json.loads(text)["findings"][0]) == FINDING


@pytest.mark.parametrize("seed", range(4))
def test_of_judgements_on_the_same_data_the_last_is_meant(store: Path, seed: int) -> None:
    """A later version, or other settings, word or weigh it anew."""
    titles = [f"rank 3 computes longer, judgement {seed} {number}" for number in range(3)]
    for title in titles:
        keep(store, replace(FINDING, title=title))
    assert [found.title for found in kept_findings(store)] == [titles[-1]]


def test_the_last_judgement_is_meant_whatever_data_it_saw(store: Path) -> None:
    """Of all jobs, say, after one of a job whose findings last until its end."""
    keep(store, replace(FINDING, end=START + timedelta(hours=2), title="of longer data"))
    keep(store, FINDING)
    assert kept_findings(store) == [FINDING]
    assert find(FINDING.id, store) == FINDING


def test_the_beginning_of_an_id_suffices_where_it_is_one(store: Path) -> None:
    keep(store, FINDING, OTHER)
    length = next(n for n in range(1, 13) if FINDING.id[:n] != OTHER.id[:n])
    assert find(FINDING.id[:length].upper(), store) == FINDING
    with pytest.raises(UnknownFindingError, match="several findings begin so") as error:
        find("", store)
    assert OTHER.id in str(error.value)


def test_an_unknown_id_names_the_nearest(store: Path) -> None:
    keep(store, FINDING)
    with pytest.raises(UnknownFindingError, match=f"(?s)no finding of that id.*{FINDING.id}"):
        find("nothing", store)


def test_a_store_without_findings_says_so(store: Path) -> None:
    with pytest.raises(UnknownFindingError, match="nothing is found in this store"):
        find("abc", store)


def test_everything_it_says_is_told(store: Path) -> None:
    text = str(explain(FINDING, store))
    told = (
        FINDING.id, "straggler", "high", "0.85 (timing, log messages)", "step 100", "step 200",
        "2026-03-02 09:05:00 UTC", "up to 12.0% of the throughput, shared with 1 other cause",
        "3.5 GPU hours", "rank 3 on node01", "steps 100 to 104, 150 and 180 to 200",
        "1 host: node02", "It arrives last.", "812 ms", "700 ms", "9.5", "735 ms",
        "computation: Greyhound", "Longer sequences.", "Swap the host.", "No rows: its query gives",
        f"fabricobs explain {FINDING.id} --sql", "> 735 ms",
    )  # fmt: skip
    assert [words for words in told if words not in text] == []
    assert "-- question:" not in text
    with_sql = explain(FINDING, store).with_sql
    assert with_sql.startswith(text)
    assert "SQL (slowest_ranks)\n    -- question: Which ranks arrive last" in with_sql


ALIASES = {("n1", "mlx5_0"): ("enp9s0", "mlx5_0", "mlx5_0/1")}


def about(finding: Finding, answer: pl.DataFrame) -> list[tuple[Any, ...]]:
    """The rows about a finding; its SQL must give the same over the same answer."""
    found = evidence_rows(finding, "SELECT * FROM answer", answer, ALIASES)
    with duckdb.connect() as connection:
        connection.register("answer", answer.to_arrow())
        again = connection.sql(found.sql).fetchall()
    assert again == found.about.rows()
    return found.about.rows() if found.condition else []


class TestRowsAboutIt:
    def test_all_its_names_must_fit(self) -> None:
        answer = pl.DataFrame({"rank": [3, 3, 4], "host": ["node01", "node02", "node01"]})
        assert about(FINDING, answer) == [(3, "node01")]

    def test_a_name_may_hold_what_sql_quotes(self) -> None:
        odd = replace(FINDING, entities=(Entity("host", host="o'node"),), start=None)
        answer = pl.DataFrame({"host": ["o'node", "node"]})
        assert about(odd, answer) == [("o'node",)]

    def test_a_group_of_uplinks_bears_the_name_of_its_switch(self) -> None:
        skew = replace(FINDING, entities=(Entity("switch", switch="leaf1"),), start=None)
        answer = pl.DataFrame({"uplink_group": ["leaf1 uplinks", "leaf10 uplinks"]})
        assert about(skew, answer) == [("leaf1 uplinks",)]

    def test_windows_of_its_steps_come_alone_if_there_are(self) -> None:
        parts = {"rank": [3] * 4, "host": ["node01"] * 4, "ts": [START - timedelta(hours=1)] * 4}
        answer = pl.DataFrame(
            {**parts, "first_step": [80, 91, 191, 201], "last_step": [90, 100, 200, 210]}
        )
        assert [row[3] for row in about(FINDING, answer)] == [91, 191]
        assert len(about(replace(FINDING, start_step=300, end_step=400, start=None), answer)) == 4

    def test_those_of_its_time_come_alone_if_there_are(self) -> None:
        times = [START - timedelta(hours=1), START + timedelta(minutes=1)]
        answer = pl.DataFrame({"rank": [3, 3], "host": ["node01"] * 2, "ts": times})
        assert [row[2] for row in about(FINDING, answer)] == times[1:]
        before = answer.head(1)
        assert about(FINDING, before) == before.rows()

    def test_a_cable_is_both_of_its_ends_by_any_name(self) -> None:
        ends = (Entity("nic", host="n1", nic="mlx5_0"), Entity("port", switch="leaf1", port="E1"))
        cable = replace(FINDING, entities=ends, start=None)
        rows = [
            ("n1", "mlx5_0/1", "leaf1 E1"), ("n1", "enp1s0", "leaf1 E1"),
            ("leaf1", "E1", "n1 enp1s0"), ("n1", "mlx5_01", None), ("leaf1", "E11", "n2 enp1s0"),
        ]  # fmt: skip
        answer = pl.DataFrame(rows, schema=["device", "port", "other_end"], orient="row")
        assert about(cable, answer) == rows[:3]

    def test_a_nic_is_known_by_its_net_device(self) -> None:
        storm = replace(FINDING, entities=(Entity("nic", host="n1", nic="mlx5_0"),), start=None)
        rows = [("n1", "enp9s0"), ("n1", "enp8s0"), ("n2", "enp9s0"), ("n1", "mlx5_0/1")]
        answer = pl.DataFrame(rows, schema=["device", "port"], orient="row")
        assert about(storm, answer) == [rows[0], rows[3]]

    @pytest.mark.parametrize(("begins", "whole"), [(0, []), (1, []), (2, [0]), (3, [1])])
    def test_the_last_whole_window_before_it_stands_first(
        self, begins: float, whole: list[int]
    ) -> None:
        # Windows of a minute; the finding begins within the one before it is seen.
        windows = [START + timedelta(minutes=minute) for minute in range(5)]
        rows = [(3, "node01", w) for w in windows] + [(4, "node01", w) for w in windows]
        answer = pl.DataFrame(rows, schema=["rank", "host", "window_start"], orient="row")
        late = replace(FINDING, start=START + timedelta(minutes=begins - 0.5))
        found = evidence_rows(late, "", answer)
        assert found.before == len(whole)
        expected = [*whole, *(m for m in range(5) if m >= begins - 1)]  # with that of its start
        assert [row[2] for row in about(late, answer)] == [windows[m] for m in expected]
        assert {row[0] for row in found.about.rows()} == {3}

    def test_rows_before_and_since_are_shown_alike(self) -> None:
        windows = [START + timedelta(minutes=2 * m) for m in range(3) for _ in range(9)]
        answer = pl.DataFrame({"rank": [3] * 27, "host": ["node01"] * 27, "window_start": windows})
        late = replace(FINDING, start=windows[9], start_step=None)
        shown = evidence_rows(late, "", answer).shown(12)
        assert (shown["window_start"] < windows[9]).sum() == 4

    @pytest.mark.parametrize("most", [12, 16])
    @pytest.mark.parametrize("ends", [None, 14])
    @pytest.mark.parametrize("risen", ["risen", "rx_frames_per_second", "rx_pause_share"])
    def test_of_many_rows_those_before_of_its_start_and_end_and_after_are_shown(
        self, most: int, ends: int | None, risen: str
    ) -> None:
        # Four counters in 20 windows of a minute; one rises, from the middle of window 5 on.
        last = 19 if ends is None else ends
        rows = [
            (START + timedelta(minutes=m), "node01", 3, f"c{n}", 5.0 * (n == 2 and 5 <= m <= last))
            for m in range(20)
            for n in range(4)
        ]
        columns = ["window_start", "host", "rank", "counter", risen]
        answer = pl.DataFrame(rows, schema=columns, orient="row")
        start = START + timedelta(minutes=5, seconds=30)
        end = None if ends is None else START + timedelta(minutes=ends, seconds=30)
        late = replace(FINDING, start=start, end=end, start_step=None, end_step=None)
        shown = evidence_rows(late, "", answer).shown(most)
        assert len(shown) <= most
        minutes = [(w - START) // timedelta(minutes=1) for w in shown["window_start"]]
        seen = dict(zip(minutes, shown[risen], strict=True))
        wanted = {4: 0.0, 5: 5.0, last: 5.0} | ({} if ends is None else {ends + 1: 0.0})
        assert wanted.items() <= seen.items()
        assert set(shown["counter"]) == {"c2"}

    @pytest.mark.parametrize(("seconds", "last"), [(10, 8), (50, 9)])
    def test_the_first_two_and_last_two_windows_in_its_time_are_shown(
        self, seconds: int, last: int
    ) -> None:
        # Eight links in 12 windows of a minute; it lasts from window 4 until a part of window 9.
        rows = [
            (START + timedelta(minutes=m), "node01", 3, f"e{n}", 0.1 * n + m, 0.125)
            for m in range(12)
            for n in range(8)
        ]
        columns = ["window_start", "host", "rank", "link", "share", "even"]
        answer = pl.DataFrame(rows, schema=columns, orient="row")
        end = START + timedelta(minutes=9, seconds=seconds)
        start = START + timedelta(minutes=4)
        late = replace(FINDING, start=start, end=end, start_step=None, end_step=None)
        shown = evidence_rows(late, "", answer.select("even", *columns[:-1])).shown(16)
        minutes = [(w - START) // timedelta(minutes=1) for w in shown["window_start"]]
        assert sorted(set(minutes)) == [3, 4, 5, last - 1, last, 10]
        assert max(map(minutes.count, minutes)) <= 3
        assert set(shown.filter(pl.col("window_start") < start)["link"]) <= {"e0", "e1", "e2"}
        assert shown.columns[0] == "window_start"
        assert shown.columns[-2:] == ["even", "rank"]

    def test_rows_of_zero_are_not_shown_for_others(self) -> None:
        windows = [START + timedelta(minutes=m) for m in range(60)]
        answer = pl.DataFrame(
            {"rank": [3] * 60, "host": ["node01"] * 60, "window_start": windows,
             "risen": [0] * 40 + [7] * 20}
        )  # fmt: skip
        timeless = replace(FINDING, start=None, end=None, start_step=None, end_step=None)
        assert set(evidence_rows(timeless, "", answer).shown(16)["risen"]) == {7}

    def test_a_rank_of_a_dump_without_hosts_is_named_by_its_number(self) -> None:
        assert about(FINDING, pl.DataFrame({"rank": [2, 3]})) == [(3,)]

    def test_no_row_is_about_what_no_column_names(self) -> None:
        answer = pl.DataFrame({"device": ["leaf01"]})
        assert about(FINDING, answer) == []


def test_the_command(fabricobs: Run, sample_store: Path, tmp_path: Path) -> None:
    store = Path(shutil.copytree(sample_store, tmp_path / "own"))
    told = fabricobs("diagnose", "--verbose", "--store", store).stdout
    listed = fabricobs("explain", "--store", store).stdout.splitlines()
    assert sum(not line.startswith(" ") for line in listed) == 1
    id_ = listed[0].split()[0]
    assert f"fabricobs explain {id_}" in told
    kept = fabricobs("explain", id_[:5], "--store", store)
    assert kept.returncode == 0, kept.stderr
    assert "leaf01 uplinks" in kept.stdout
    assert fabricobs("explain", id_, "--anew", "--store", store).stdout == kept.stdout
    wrong = fabricobs("explain", "zzz", "--store", store)
    assert (wrong.returncode, id_ in wrong.stderr) == (3, True)
