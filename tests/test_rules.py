"""Rules as data: a user's own rule, and what `fabricobs check` says of rules."""

import json
import shutil
from contextlib import closing
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest
from scipy.stats import poisson

from conftest import Run
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.model import load_models
from fabricobs.diagnosis.rule_cases import check_cases, rows_of
from fabricobs.diagnosis.run import REST
from fabricobs.exceptions import UserError
from fabricobs.store.parts import Store

RULE = """
kind = "hot_switch"
question = "Is a switch hot?"
method = "rule"
query = "host_events"
evidence = "hot_switches"
refuted_by = ["The sensor is broken."]
next_steps = ["Look at the fans of {switch}."]

[rule]
when = "celsius > $celsius"
for = "seconds"
entity = "switch"
price = ["none"]
corroboration = { counters = "true" }
severity = "CASE WHEN max(celsius) > 90 THEN 'medium' ELSE 'low' END"
driver = [{ threshold = "celsius", feature = "temperature", value = "hottest", peer = "usual" }]

[rule.facts]
hottest = "max(celsius)"

[wording]
title = "{switch} is at {hottest:.0f} degrees Celsius since {since}{others}"
explanation = "Its neighbours are cooler."

[wording.phrase]
others = [", others at {usual:.0f}", ", with none to compare"]

[threshold.celsius]
value = 70
meaning = "Hot"
source = "Test"

[threshold.seconds]
value = 20
unit = "s"
meaning = "For so long"
source = "Test"
"""
FIRES = '''
[[case]]
says = "hot for half a minute"
finds = ["leaf1"]
title = "leaf1 is at 81 degrees Celsius since 09:00:00 UTC, with none to compare"
severity = "low"
[case.rows]
hot_switches = """
switch  ts_before  ts        celsius
leaf1   09:00:00   09:00:15  80
leaf1   09:00:15   09:00:30  81
leaf2   09:00:00   09:00:15  81
"""
'''
SILENT = '''
[[case]]
says = "cool"
finds = []
[case.rows]
hot_switches = """
switch  ts_before  ts        celsius
leaf1   09:00:00   09:00:30  60
"""
'''
SQL = """-- question: How hot is each switch?
SELECT DISTINCT device AS switch, 88.0 AS celsius, NULL::DOUBLE AS usual,
  TIMESTAMP '2026-03-02 09:05:00' AS ts_before, TIMESTAMP '2026-03-02 09:06:00' AS ts
FROM links WHERE device = 'leaf01' OR device = 'leaf1'
"""


def _content(folder: Path, rule: str, sql: str = SQL) -> Path:
    for name, text in (("models/hot.toml", rule), ("queries/evidence/hot_switches.sql", sql)):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def _said(folder: Path) -> list[str]:
    models = {name: m for name, m in load_models([folder]).items() if name == "hot"}
    return list(check_cases({**models, REST: load_models()[REST]}, [folder]))


def test_a_rule_of_ones_own_with_both_cases_is_sound(tmp_path: Path) -> None:
    assert _said(_content(tmp_path, RULE + FIRES + SILENT)) == []


def test_a_rule_of_ones_own_finds_what_its_sql_shows(
    tmp_path: Path, fabricobs: Run, sample_store: Path
) -> None:
    content = _content(tmp_path, RULE + FIRES + SILENT)
    assert fabricobs("check", "--content", content).returncode == 0
    store = shutil.copytree(sample_store, tmp_path / "own")
    options = ("--content", content, "--store", store, "--format", "json")
    found = json.loads(fabricobs("diagnose", *options).stdout)["findings"]
    (own,) = [finding for finding in found if finding["kind"] == "hot_switch"]
    assert own["severity"] == "low"
    assert "is at 88 degrees Celsius from 09:05:00 UTC" in own["title"]  # it is over
    assert own["drivers"][0]["threshold"] == 70
    assert own["next_steps"] == [f"Look at the fans of {own['entities'][0]['switch']}."]


def test_a_rule_without_both_cases_is_refused_with_file_and_what_to_add(tmp_path: Path) -> None:
    fires, silent = _said(_content(tmp_path, RULE))
    assert "models/hot.toml: a rule needs a [[case]] that fires" in fires
    assert "models/hot.toml: a rule needs a [[case]] that stays silent" in silent
    assert "[case.rows] of hot_switches" in silent
    assert ["stays silent" in text for text in _said(_content(tmp_path, RULE + FIRES))] == [True]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"leaf1"', '"leaf3"', "expected leaf3, found leaf1"),
        ('"low"', '"high"', "expected severity 'high', found 'low'"),
        ("celsius\nleaf1", "kelvin\nleaf1", "evidence hot_switches has no column kelvin"),
        ("max(celsius)", "max(kelvin)", "kelvin"),
        ("> $celsius", "> $warm", "warm"),
        ("09:00:15  80", "09:00:15", "expected 4 columns, two blanks apart"),
    ],
)
def test_a_case_that_answers_otherwise_is_told(
    tmp_path: Path, old: str, new: str, says: str
) -> None:
    text = RULE + FIRES + SILENT
    assert old in text
    said = _said(_content(tmp_path, text.replace(old, new)))
    assert said
    assert all(text.startswith("models/hot.toml: case '") for text in said)
    assert says in said[0]


def test_a_name_in_a_text_that_nothing_fills_is_told(tmp_path: Path) -> None:
    text = RULE + FIRES + SILENT
    for line in ("title = ", "next_steps = ["):
        start = text.index(line)
        misspelled = text[:start] + text[start:].replace("{switch}", "{swich}", 1)
        (said,) = _said(_content(tmp_path, misspelled))
        assert said.startswith("models/hot.toml: {swich} in ")
        assert "no column of hot_switches" in said


def test_rules_only_read(tmp_path: Path) -> None:
    leaves = RULE.replace(
        "celsius > $celsius", "celsius IN (SELECT 1 FROM read_csv('/etc/passwd'))"
    )
    said = _said(_content(tmp_path, leaves + FIRES + SILENT))
    assert "Cannot access file" in said[0]


def test_logs_of_a_case_stay_in_its_folder(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    for name in (str(outside), "../../outside"):
        logs = SILENT.replace("[case.rows]", f'[case.logs]\n"{name}" = "x"\n[case.rows]')
        said = _said(_content(tmp_path, RULE + FIRES + logs))
        assert ["expected a path below" in text for text in said] == [True]
    assert not outside.exists()


def test_the_shipped_rules_have_cases_that_hold() -> None:
    assert list(check_cases(load_models())) == []


def test_a_table_of_text_has_nulls_and_times() -> None:
    rows = rows_of("a  when\n\n x y   09:00:00\n-  later\n")
    assert rows.rows() == [("x y", "2026-01-01 09:00:00"), (None, "later")]
    with pytest.raises(UserError, match="two blanks apart"):
        rows_of("a  b\n1 2\n")


def test_leads_are_what_changed_with_a_slowdown_strongest_first(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    store.create()
    steps = "step  ts  step_time_ms\n" + "".join(
        f"{minute}  09:{minute:02d}:00  1000\n" for minute in range(60)
    )
    minutes = [
        (f"09:{minute:02d}:00", f"09:{minute + 1:02d}:00", 40 <= minute < 50)
        for minute in range(59)
    ]
    sick = "owner  part  counter  ts_before  ts  risen\n" + "".join(
        f"leaf1  Eth1  tx_discards  {begin}  {end}  {600 if slow else 6}\n"
        f"leaf1  Eth2  rx_errors  {begin}  {end}  1\n"
        for begin, end, slow in minutes
    )
    uplinks = "device  uplink_group  ts_before  ts  loads\n" + "".join(
        f"leaf2  leaf2 up  {begin}  {end}  {[8, 1, 1, 1] if slow else [2, 2, 2, 2]}\n"
        for begin, end, slow in minutes
    )
    # One switch pauses less than before, another begins to.
    senders = "switch  device  ts_before  ts  frames_per_second\n" + "".join(
        f"{switch}  {switch}  {begin}  {end}  {rate}\n"
        for begin, end, slow in minutes
        for switch, rate in (("leaf3", 90 if slow else 100), ("leaf4", 40 if slow else 0))
    )
    excess = "host  nic  ts_before  ts  seconds  excess_gbps  exceeding\n" + "".join(
        f"node1  mlx5_0  {begin}  {end}  60  {30 if slow else 2}  1\n"
        for begin, end, slow in minutes
    )
    tables = {
        "job_steps": steps,
        "sick_intervals": sick,
        "uplink_windows": uplinks,
        "pause_senders": senders,
        "nic_excess": excess,
    }
    limits = {"rise": 2.0, "part_rise": 10.0, "shift": 0.05}
    with closing(Evidence(store.path)) as empty:
        evidence = empty.with_rows({name: rows_of(text) for name, text in tables.items()}, limits)
        times = {"begin": datetime(2026, 1, 1, 9, 40), "end": datetime(2026, 1, 1, 9, 50)}
        leads = evidence.frame("leads", {**limits, **times})["lead"].to_list()
    assert leads == [
        "pause frames of switches 40 a second, 0 in the rest of the run, on 1 part"
        " (as often as before on the others, or less), most at leaf4",
        "tx_discards 10 a second, 0.1 in the rest of the run, on 1 part, most at leaf1 Eth1",
        "the busiest uplink of leaf2 191 % above the mean, 0 % in the rest of the run",
        "node1 mlx5_0 received 30 Gb/s more than its peers, 2 in the rest of the run",
    ]


def test_the_chance_of_errors_is_bounded_from_above(tmp_path: Path) -> None:
    """Exact by Poisson within a few percent where it is small, and never below it."""
    store = Store(tmp_path / "store")
    store.create()
    pairs = [
        (events, expected)
        for expected in (0.0, 1e-9, 0.01, 1.0, 30.0, 5_000.0)
        for events in (1, 2, 11, 100, 6_000, 10**6)
    ]
    rows = pl.DataFrame(pairs, schema=["events", "expected"], orient="row")
    with closing(Evidence(store.path)) as evidence:
        sql = "SELECT events_at_least(events, expected) AS p FROM evidence.rows"
        bounds = evidence.ask_of(rows, sql)["p"].to_list()
    for (events, expected), bound in zip(pairs, bounds, strict=True):
        exact = float(poisson.sf(events - 1, expected))
        assert bound == pytest.approx(1.0) or bound >= exact * (1 - 1e-9)
        if events >= 2 * expected:
            assert bound <= 2.0 * exact + 1e-300
