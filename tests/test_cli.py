"""The command line: what a user types, and what comes back."""

import csv
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from conftest import ROOT, Run, started
from fabricobs.cli import app
from fabricobs.diagnosis.verdict import QUESTIONS

COMMANDS = sorted(
    command.name or command.callback.__name__  # type: ignore[union-attr]
    for command in app.registered_commands
)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str) -> None:
    result = started(command, "--help")
    assert result.returncode == 0
    assert "Usage" in result.stdout


# The others are started with an answer to give by test_terminal.py and test_printing.py.
@pytest.mark.parametrize("words", ["config", "schema", "schedule cron logs", "formats"])
def test_a_command_that_reads_no_logs_answers_as_a_process(words: str, tmp_path: Path) -> None:
    result = started(*words.split(), cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)})
    assert result.returncode == 0, result.stderr
    assert result.stdout


HEAVY = {
    "altair", "duckdb", "fabricobs.config.schema", "numba", "numpy", "polars", "prompt_toolkit",
    "pyarrow", "scipy", "sklearn",
}  # fmt: skip


def heavy_libraries(*arguments: object) -> set[str]:
    """Return which heavy libraries a command line loads."""
    code = (
        f"import sys; sys.argv = {['fabricobs', *map(str, arguments)]}\n"
        "from fabricobs import unchanged\n"
        "unchanged._SETTLED_NS = 0\n"
        "from fabricobs.cli import main\n"
        "try: main()\n"
        "except SystemExit as left: assert not left.code\n"
        f"print(*({HEAVY} & set(sys.modules)), file=sys.stderr)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return set(result.stderr.split())


class TestLoads:
    """What a command need not load it does not: nothing is configured here."""

    @pytest.fixture(autouse=True)
    def nothing_configured(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in os.environ:
            if name.startswith("FABRICOBS_"):
                monkeypatch.delenv(name)
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
        monkeypatch.setenv("PYTHONPATH", str(ROOT))
        monkeypatch.chdir(tmp_path)

    def test_help(self) -> None:
        assert heavy_libraries("--help") == set()

    def test_a_small_statement(self, sample_store: Path) -> None:
        asked = heavy_libraries("sql", "SELECT count(*) FROM steps", "--store", sample_store)
        assert asked == {"duckdb"}

    def test_an_ingest_of_nothing_new(self, tmp_path: Path) -> None:
        log = tmp_path / "a.log"
        log.write_text('{"step": 1, "rank": 0, "step_time_ms": 10.0}\n')
        assert "pyarrow" in heavy_libraries("ingest", log)
        assert heavy_libraries("ingest", log) == set()


class TestSql:
    def ask(self, run: Run, store: Path, *arguments: object, **options: object) -> str:
        result = run("sql", *arguments, "--store", store, **options)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def test_a_table(self, fabricobs: Run, sample_store: Path) -> None:
        assert "9900" in self.ask(fabricobs, sample_store, "SELECT count(*) AS n FROM steps")

    def test_csv(self, fabricobs: Run, sample_store: Path) -> None:
        statement = "SELECT host, count(*) AS n FROM job_ranks GROUP BY host ORDER BY host"
        got = self.ask(fabricobs, sample_store, statement, "--format", "csv")
        assert got == "host,n\nnode01,8\nnode02,8\nnode03,8\nnode04,8\n"

    def test_json_is_an_object_a_line(self, fabricobs: Run, sample_store: Path) -> None:
        got = self.ask(
            fabricobs,
            sample_store,
            "SELECT step, ts FROM step_times ORDER BY step",
            "--format",
            "json",
        )
        rows = [json.loads(line) for line in got.splitlines()]
        assert len(rows) == 300
        assert rows[0]["step"] == 1

    def test_parquet_to_a_file_and_a_pipe(
        self, fabricobs: Run, sample_store: Path, tmp_path: Path
    ) -> None:
        out = tmp_path / "steps.parquet"
        self.ask(fabricobs, sample_store, "FROM steps", "--format", "parquet", "--out", out)
        assert pq.read_table(out).num_rows == 9900
        piped = fabricobs(
            "sql", "SELECT 1 AS one", "--format", "parquet", "--store", sample_store,
            errors="surrogateescape", encoding="latin-1",
        )  # fmt: skip
        assert pq.read_table(io.BytesIO(piped.stdout.encode("latin-1"))).num_rows == 1

    def test_a_file_holds_every_row_in_the_format_of_its_name(
        self, fabricobs: Run, sample_store: Path, tmp_path: Path
    ) -> None:
        for name in ("steps.csv", "steps.jsonl", "steps.parquet"):
            self.ask(fabricobs, sample_store, "FROM steps ORDER BY ALL", "--out", tmp_path / name)
        rows = pq.read_table(tmp_path / "steps.parquet")
        assert rows.num_rows == 9900
        with (tmp_path / "steps.csv").open(newline="") as file:
            written = list(csv.DictReader(file))
        objects = list(map(json.loads, (tmp_path / "steps.jsonl").read_text().splitlines()))
        assert list(written[0]) == list(objects[0]) == rows.column_names
        steps = rows["step"].to_pylist()
        assert [int(row["step"]) for row in written] == steps
        assert [row["step"] for row in objects] == steps
        assert sorted(path.name for path in tmp_path.iterdir()) == [
            "steps.csv",
            "steps.jsonl",
            "steps.parquet",
        ]

    @pytest.mark.parametrize(
        ("options", "told"),
        [
            (["--out", "steps.xyz"], "say --format csv, json or parquet"),
            (["--out", "steps"], "say --format csv, json or parquet"),
            (["--out", "steps.csv", "--format", "parquet"], "its name says csv"),
            (["--out", "steps.csv", "--format", "table"], "for the screen"),
            (["--out", "no/steps.csv"], "there is no folder no"),
        ],
    )
    def test_a_file_that_would_not_be_what_its_name_says_is_refused(
        self, fabricobs: Run, sample_store: Path, tmp_path: Path, options: list[str], told: str
    ) -> None:
        result = fabricobs("sql", "FROM steps", "--store", sample_store, *options, cwd=tmp_path)
        assert (result.returncode, result.stdout) == (3, "")
        assert told in result.stderr
        assert list(tmp_path.iterdir()) == []

    def test_a_statement_that_fails_leaves_the_file_as_it_was(
        self, fabricobs: Run, sample_store: Path, tmp_path: Path
    ) -> None:
        out = tmp_path / "kept.csv"
        out.write_text("kept")
        failing = "SELECT CASE WHEN step < 250 THEN step ELSE error('late') END FROM steps"
        result = fabricobs("sql", failing, "--store", sample_store, "--out", out)
        assert result.returncode == 3
        assert [path.read_text() for path in tmp_path.iterdir()] == ["kept"]

    def test_from_a_file_and_from_standard_input(
        self, fabricobs: Run, sample_store: Path, tmp_path: Path
    ) -> None:
        script = tmp_path / "mine.sql"
        script.write_text("-- mine\nSELECT 42 AS answer")
        assert "42" in self.ask(fabricobs, sample_store, script)
        assert "42" in self.ask(fabricobs, sample_store, "-", input="SELECT 42")

    @pytest.mark.parametrize(
        "statement",
        ["DROP VIEW steps", "COPY (SELECT 1) TO '/tmp/never.csv'", "CREATE TABLE t AS SELECT 1",
         "SELECT 1; DELETE FROM t", "INSTALL httpfs"],
    )  # fmt: skip
    def test_only_reading_is_allowed(
        self, fabricobs: Run, sample_store: Path, statement: str
    ) -> None:
        result = fabricobs("sql", statement, "--store", sample_store)
        assert result.returncode == 3
        assert "read-only" in result.stderr

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["SELEC 1"], "syntax error"),
            (["SELECT * FROM stepz"], "stepz"),
            (["SELECT 1", "--format", "xml"], "table, csv, json or parquet"),
            (["missing.sql"], "missing.sql: no such file"),
        ],
    )
    def test_a_mistake_is_one_clear_line(
        self, fabricobs: Run, sample_store: Path, arguments: list[str], said: str
    ) -> None:
        result = fabricobs("sql", *arguments, "--store", sample_store)
        assert result.returncode == 3
        assert said in result.stderr
        assert "Traceback" not in result.stderr


def test_questions_are_listed_and_asked(fabricobs: Run, sample_store: Path) -> None:
    listed = fabricobs("query", "--list").stdout
    assert len(listed.splitlines()) >= 12
    for name in ("collectives_and_pauses", "collectives_and_imbalance", "collectives_and_errors"):
        assert name in listed
    result = fabricobs("query", "uplink_balance", "--store", sample_store, "--format", "csv")
    assert "leaf01" in result.stdout


def test_a_question_that_is_not_there_names_the_nearest(fabricobs: Run, sample_store: Path) -> None:
    result = fabricobs("query", "uplink_balanc", "--store", sample_store)
    assert result.returncode == 3
    assert "did you mean uplink_balance?" in result.stderr


def test_a_table_that_is_not_there_names_the_nearest(fabricobs: Run, sample_store: Path) -> None:
    result = fabricobs("sql", "SELECT * FROM uplink_interval", "--store", sample_store)
    assert result.returncode == 3
    assert "did you mean uplink_intervals?" in result.stderr


def test_a_report_for_a_folder_that_is_not_there(
    fabricobs: Run, sample_store: Path, tmp_path: Path
) -> None:
    result = fabricobs("report", "--store", sample_store, "--out", tmp_path / "no" / "page.html")
    assert result.returncode == 3
    assert "there is no folder" in result.stderr


class TestExitCodes:
    @pytest.fixture
    def own_store(self, sample_store: Path, tmp_path: Path) -> Path:
        """A copy: a diagnosis keeps its findings in the store."""
        return Path(shutil.copytree(sample_store, tmp_path / "own"))

    def test_a_high_finding_is_critical(self, fabricobs: Run, own_store: Path) -> None:
        result = fabricobs("diagnose", "--store", own_store)
        assert result.returncode == 2
        assert "leaf01" in result.stdout

    def test_findings_are_kept_once(self, fabricobs: Run, own_store: Path, tmp_path: Path) -> None:
        store = tmp_path / "s"
        shutil.copytree(own_store, store)
        for _ in range(2):
            fabricobs("diagnose", "--store", store)
        kept = fabricobs("sql", "SELECT kind FROM findings", "--format", "csv", "--store", store)
        assert kept.stdout == "kind\necmp_skew\n"

    def test_the_bar_can_be_raised_or_removed(self, fabricobs: Run, own_store: Path) -> None:
        for bar, code in (("critical", 2), ("never", 0)):
            assert fabricobs("diagnose", "--store", own_store, "--fail-on", bar).returncode == code

    def test_json_holds_the_contract(self, fabricobs: Run, own_store: Path) -> None:
        found = json.loads(fabricobs("diagnose", "--format", "json", "--store", own_store).stdout)
        assert found["schema_version"] == 1
        finding = found["findings"][0]
        for key in (
            "id kind severity confidence entities related start end start_step end_step "
            "detected_at loss_share gpu_hours_lost title explanation drivers query sql "
            "refuted_by next_steps"
        ).split():
            assert key in finding
        assert len(found["verdict"]["questions"]) == len(QUESTIONS)

    @pytest.mark.parametrize(
        "arguments",
        [
            ["diagnose", "--store", "nowhere"],
            ["diagnose", "--nonsense"],
            ["report", "--store", "nowhere"],
            ["nonsense"],
            ["ingest"],
            ["ingest", ".", "--tz", "Mars/Olympus"],
        ],
    )
    def test_bad_usage_is_unknown_not_critical(
        self, fabricobs: Run, tmp_path: Path, arguments: list[str]
    ) -> None:
        result = fabricobs(*arguments, cwd=tmp_path)
        assert result.returncode == 3
        assert "Traceback" not in result.stderr

    def test_nothing_to_judge_is_unknown(self, fabricobs: Run, tmp_path: Path) -> None:
        (tmp_path / "a.log").write_text("NCCL version 2.20.5+cuda12.4\n")
        assert fabricobs("ingest", tmp_path / "a.log", "--store", tmp_path / "s").returncode == 0
        assert fabricobs("diagnose", "--store", tmp_path / "s").returncode == 3


def test_a_users_content_is_used_and_checked(
    fabricobs: Run, sample_store: Path, tmp_path: Path
) -> None:
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "mine.sql").write_text(
        "-- question: How many steps?\n-- columns:\n--   n  steps\n"
        "-- example: fabricobs query mine\nSELECT count(*) AS n FROM step_times\n"
    )
    assert fabricobs("check", "--content", tmp_path).returncode == 0
    result = fabricobs("query", "mine", "--content", tmp_path, "--store", sample_store)
    assert "300" in result.stdout
    (tmp_path / "ingest").mkdir()
    (tmp_path / "ingest" / "mine.toml").write_text('title = "T"\nreaders = "lines"\n')
    result = fabricobs("check", "--content", tmp_path)
    assert result.returncode == 3
    assert "did you mean 'reader'?" in result.stderr


def test_the_demo_ends_well(tmp_path: Path) -> None:
    result = started("demo", "--out", tmp_path / "demo")
    assert result.returncode == 0, result.stderr
    assert "leaf01" in result.stdout
    assert (tmp_path / "demo" / "report.html").stat().st_size < 5 << 20
