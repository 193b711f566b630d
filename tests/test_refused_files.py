"""What is no configuration, content or note: refused in one line, never a traceback."""

import os
import subprocess
from pathlib import Path

import pytest

from conftest import ROOT, Run
from fabricobs.content_check import checks_all

LOGS = ROOT / "sample_data" / "logs" / "train"


def assert_refused(result: subprocess.CompletedProcess[str], told: str) -> None:
    assert result.returncode == 3, result.stderr
    assert told in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda path: path.write_text("a=" + "[" * 100_000), "nested too deeply"),
        (lambda path: os.truncate(path, 3 << 30), "longer than 1 MiB"),
        (lambda path: path.write_bytes(b"\xff\xfe"), "not UTF-8"),
    ],
)
def test_a_configuration_that_is_none(
    fabricobs: Run, tmp_path: Path, sample_store: Path, make: object, told: str
) -> None:
    path = tmp_path / "fabricobs.toml"
    path.touch()
    assert callable(make)
    make(path)
    result = fabricobs("sql", "SELECT 1", "--store", sample_store, cwd=tmp_path)
    assert_refused(result, told)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda path: path.write_bytes(b"\xff\xfe\n"), "not UTF-8"),
        (lambda path: path.write_text("a=" + "[" * 100_000), "nested too deeply"),
        (lambda path: os.mkfifo(path), "no plain file"),
        (lambda path: path.symlink_to("/etc/passwd"), "no plain file"),
        (lambda path: (path.touch(), os.truncate(path, 3 << 30)), "longer than 1 MiB"),
    ],
)
def test_content_that_is_none(fabricobs: Run, tmp_path: Path, make: object, told: str) -> None:
    path = tmp_path / "own" / "ingest" / "odd.toml"
    path.parent.mkdir(parents=True)
    assert callable(make)
    make(path)
    result = fabricobs("check", "--content", tmp_path / "own")
    assert_refused(result, told)


def test_a_question_that_is_a_link_shows_nothing_of_its_target(
    fabricobs: Run, tmp_path: Path, sample_store: Path
) -> None:
    (tmp_path / "own" / "queries").mkdir(parents=True)
    (tmp_path / "own" / "queries" / "odd.sql").symlink_to("/etc/passwd")
    result = fabricobs("query", "odd", "--store", sample_store, "--content", tmp_path / "own")
    assert_refused(result, "no plain file")
    assert "root:x:" not in result.stderr


def test_notes_nested_too_deeply_are_no_notes(fabricobs: Run, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "steps.csv").write_text("step,rank,step_time_ms\n1,0,10.0\n")
    assert fabricobs("ingest", logs, "--store", tmp_path / "store").returncode == 0
    (tmp_path / "store" / ".seen.json").write_text("[" * 200_000)
    assert fabricobs("ingest", logs, "--store", tmp_path / "store").returncode == 0


def test_json_has_no_nan(fabricobs: Run, sample_store: Path) -> None:
    sql = "SELECT 'nan'::DOUBLE AS a, ['inf'::DOUBLE, 1.5] AS b"
    result = fabricobs("sql", sql, "--store", sample_store, "--format", "json")
    assert result.stdout == '{"a": null, "b": [null, 1.5]}\n'


def test_a_clock_with_an_impossible_zone_is_no_error_of_ours(
    fabricobs: Run, tmp_path: Path
) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "walk.txt").write_text(
        "SNMPv2-MIB::sysName.0 = STRING: leaf14\n"
        "HOST-RESOURCES-MIB::hrSystemDate.0 = STRING: 2026-3-2,10:0:0.0,+18446744073709551616:0\n"
        "IF-MIB::ifName.501 = STRING: Ethernet64\n"
        "IF-MIB::ifHCInOctets.501 = Counter64: 80012345678901\n"
        "IF-MIB::ifHCOutOctets.501 = Counter64: 80012345678902\n"
    )
    result = fabricobs("ingest", logs, "--store", tmp_path / "store")
    assert result.returncode in {0, 1}, result.stderr
    rows = fabricobs("sql", "SELECT rx_bytes FROM port_samples", "--store", tmp_path / "store")
    assert "80012345678901" in rows.stdout


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("SELECT stp AS step FROM step_times", "stp"),
        ("SELECT step AS other FROM step_times", "`-- columns:` lists step; it gives other"),
    ],
)
def test_check_names_a_query_that_does_not_run(
    sql: str, told: str, fabricobs: Run, tmp_path: Path
) -> None:
    (tmp_path / "queries").mkdir()
    header = "-- question: Which?\n-- columns:\n--   step  number\n-- example: mine\n"
    (tmp_path / "queries" / "mine.sql").write_text(header + sql)
    result = fabricobs("check", "--content", tmp_path)
    assert result.returncode == 3
    assert f"{tmp_path}/queries/mine.sql: " in result.stderr
    assert told in result.stderr


@pytest.mark.parametrize(
    ("own", "whole"),
    [
        ("queries/mine.sql", False),
        ("queries/evidence/mine.sql", False),
        ("models/straggler.toml", False),
        ("ingest/mine.toml", False),
        ("queries/evidence/step_times.sql", True),
        ("queries/views/9_mine.sql", True),
        ("ingest/step_records.toml", True),
    ],
)
def test_the_shipped_content_is_checked_where_own_content_may_change_it(
    own: str, whole: bool, tmp_path: Path
) -> None:
    (tmp_path / own).parent.mkdir(parents=True)
    (tmp_path / own).touch()
    assert checks_all((tmp_path,)) is whole
    assert checks_all(()) and checks_all((ROOT,))
