"""The watch, round by round: windows, codes, a second watch, a full disk, a slow round."""

import gzip
import itertools
import json
import os
import shutil
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest
from loopback import receiver

from conftest import ROOT, Run
from fabricobs.config.schema import Config
from fabricobs.diagnosis.methods import METHODS
from fabricobs.diagnosis.run import diagnose
from fabricobs.operate import watch as operation
from fabricobs.operate.state import only_watch
from fabricobs.store.session import LinkRate, Site, newest_time, open_session
from fabricobs.store.tables import TABLES

pytestmark = pytest.mark.slow

LOGS = ROOT / "sample_data" / "logs"
STEP = '{{"step": {0}, "rank": 0, "step_time_ms": 10.0}}\n'


@pytest.fixture
def own_store(sample_store: Path, tmp_path: Path) -> Path:
    """The sample's store, ready to be watched: nothing needs to be read again."""
    return Path(shutil.copytree(sample_store, tmp_path / "store"))


def steps(store: Path) -> list[int]:
    rows = open_session(store, "steps").sql("SELECT step FROM steps ORDER BY step").fetchall()
    return [step for (step,) in rows]


class TestOnce:
    def test_codes_events_and_report(self, fabricobs: Run, own_store: Path) -> None:
        first = fabricobs("watch", LOGS, "--once", "--store", own_store)
        assert first.returncode == 2
        assert first.stdout.count("\n") == 1
        assert " new critical " in first.stdout
        assert "1 firing" in first.stderr
        assert (own_store / "report.html").stat().st_size > 10_000
        again = fabricobs("watch", LOGS, "--once", "--store", own_store, "--fail-on", "never")
        assert (again.returncode, again.stdout) == (0, "")
        asked = fabricobs("query", "incidents", "--store", own_store, "--format", "json")
        (incident,) = map(json.loads, asked.stdout.splitlines())
        assert (incident["kind"], incident["resolved"]) == ("ecmp_skew", None)

    def test_beside_another_watch_it_leaves_the_round_out(
        self, fabricobs: Run, own_store: Path
    ) -> None:
        with only_watch(own_store):
            result = fabricobs("watch", LOGS, "--once", "--store", own_store)
        assert result.returncode == 3
        assert f"process {os.getpid()} is watching it" in result.stderr

    @pytest.mark.parametrize(
        "arguments",
        [
            ["nowhere"],
            [LOGS, "--every", "often"],
            [LOGS, "--fail-on", "bad"],
            [LOGS, "--config", "no"],
        ],
    )
    def test_bad_usage(self, fabricobs: Run, tmp_path: Path, arguments: list[object]) -> None:
        result = fabricobs("watch", "--once", "--store", tmp_path / "s", *arguments)
        assert result.returncode == 3
        assert "Traceback" not in result.stderr
        assert not (tmp_path / "s").exists()


class TestWindow:
    BEGIN = datetime(2026, 3, 2, 9, 10)

    def test_what_happened_before_is_out_of_sight(self, sample_store: Path) -> None:
        session = open_session(sample_store, " ".join(TABLES), since=self.BEGIN)
        for table in ("steps", "collectives", "port_samples", "priority_samples"):
            dated = "ts_source <> 'mtime'"
            first = session.sql(f"SELECT min(ts) FROM {table} WHERE {dated}").fetchall()[0][0]
            assert first >= self.BEGIN

    def test_what_is_so_stays(self, sample_store: Path) -> None:
        tables = " ".join(TABLES)
        whole = open_session(sample_store, tables)
        window = open_session(sample_store, tables, since=self.BEGIN)
        for table in ("links", "nccl_ranks", "nccl_channels", "port_status", "files"):
            count = f"SELECT count(*) FROM {table}"
            assert whole.sql(count).fetchall() == window.sql(count).fetchall()

    def test_a_fault_that_lasts_is_seen_beside_the_time_before_it(self, own_store: Path) -> None:
        config = Config.model_validate({"store": own_store, "watch": {"window": "4m"}})
        # Without the time before it, what the hardware allows is all there is to compare with.
        alone = diagnose(own_store, since=datetime(2026, 3, 2, 9, 14)).findings[0].loss_share
        assert alone == pytest.approx(0.25, abs=0.02)
        (own_store / ".watch").mkdir()
        watch = operation.Watch([LOGS], Config(store=own_store), lambda text: None)
        watch.round()
        windowed = operation.Watch([LOGS], config, lambda text: None)
        found = windowed.round().diagnosis
        assert found is not None
        assert found.findings[0].loss_share == pytest.approx(0.2, abs=0.02)

    def test_the_newest_time_is_that_of_the_data(self, sample_store: Path) -> None:
        assert newest_time(sample_store, datetime.max) == datetime(2026, 3, 2, 9, 19, 59, 78000)
        early = datetime(2026, 3, 2, 9, 5)
        assert newest_time(sample_store, early) <= early  # type: ignore[operator]

    def test_diagnose_takes_a_window(self, fabricobs: Run, own_store: Path) -> None:
        result = fabricobs("diagnose", "--window", "3m", "--format", "json", "--store", own_store)
        facts = json.loads(result.stdout)["coverage"]["facts"]
        assert facts["from"] >= "2026-03-02 09:15"


def test_a_page_left_by_a_kill_goes(tmp_path: Path) -> None:
    (tmp_path / "report.html").touch()
    (tmp_path / ".report.html.1234").touch()
    operation.Watch([LOGS], Config(store=tmp_path), print)
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_a_sites_rates_stand_where_no_log_tells(sample_store: Path) -> None:
    site = Site((LinkRate("spine*", "Four*", 123.0), LinkRate("leaf01", "*", 1.0)))
    rates = "SELECT DISTINCT speed_gbps FROM named_status WHERE device = ? AND speed_gbps > 0"
    session = open_session(sample_store, rates, site=site)
    assert session.execute(rates, ["spine01"]).fetchall() == [(123.0,)]
    assert (1.0,) not in session.execute(rates, ["leaf01"]).fetchall()


def test_pauses_of_other_priorities_are_not_the_jobs(sample_store: Path) -> None:
    session = open_session(sample_store, "priority_rates", site=Site(priorities=(3,)))
    priorities = session.sql("SELECT DISTINCT priority FROM priority_rates ORDER BY 1").fetchall()
    assert priorities == [(3,), (None,)]


def test_a_round_that_is_slow_says_so_and_none_overlaps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "log.jsonl").write_text(STEP.format(1))
    notes: list[str] = []
    clock = itertools.count(step=45.0)
    monkeypatch.setattr(operation, "monotonic", lambda: next(clock))
    slept: list[float] = []
    monkeypatch.setattr(operation.stopping, "pause", slept.append)
    config = Config.model_validate({"store": tmp_path / "s", "watch": {"every": "1m"}})
    rounds = operation.watch([tmp_path], config, notes.append)
    next(rounds)
    next(rounds)
    rounds.close()
    assert slept == [0]
    assert any("longer than the interval of 1m: the next begins at once" in note for note in notes)


def test_half_a_line_is_read_whole_in_the_next_round(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    log = logs / "steps.jsonl"
    log.write_text(STEP.format(1) + STEP.format(2)[:20])
    config = Config(store=tmp_path / "store")
    operation.watch_once([logs], config, lambda text: None)
    assert steps(config.store) == [1]
    log.write_text(STEP.format(1) + STEP.format(2) + STEP.format(3)[:5])
    operation.watch_once([logs], config, lambda text: None)
    assert steps(config.store) == [1, 2]


def test_a_mistake_of_ours_ends_no_watch(own_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes: list[str] = []
    with monkeypatch.context() as broken:
        broken.setattr(operation, "judge", lambda *a, **k: 1 / 0)
        assert not operation.watch_once([LOGS], Config(store=own_store), notes.append).well
    assert any("please report it" in note and "ZeroDivisionError" in note for note in notes)
    assert operation.watch_once([LOGS], Config(store=own_store), notes.append).well


def test_an_incident_whose_method_fails_is_not_resolved(
    own_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = tmp_path / "later"
    later.mkdir()
    notes: list[str] = []
    with only_watch(own_store):
        watch = operation.Watch([LOGS, later], Config(store=own_store), notes.append)
        (opened,) = watch.round().events
        assert opened.incident.finding.kind == "ecmp_skew"
        with monkeypatch.context() as broken:
            broken.setitem(METHODS, "ecmp_skew", lambda *_: 1 / 0)
            for minute in ("10:00", "10:30"):
                step = {"step": 9, "rank": 0, "step_time_ms": 9.0, "ts": f"2026-03-02T{minute}:00Z"}
                (later / f"{minute[3:]}.jsonl").write_text(json.dumps(step) + "\n")
                done = watch.round()
                kinds = [event.incident.finding.kind for event in done.events]
                assert ("ecmp_skew" in kinds, done.well) == (False, False)
            told = [note for note in notes if "ZeroDivisionError" in note]
            assert len(told) == 1
            assert told[0].startswith("diagnosis ecmp_skew: ")
        done = watch.round()
    ended = [e.incident for e in done.events if e.news == "resolved"]
    assert [incident.finding.kind for incident in ended] == ["ecmp_skew"]
    assert done.well
    assert any(note.startswith("no longer so: diagnosis ecmp_skew: ") for note in notes)


def test_a_bad_file_is_named_once_and_blinds_no_later_round(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "bad.parquet").write_bytes(b"PAR1" + bytes(99) + b"PAR1")
    (logs / "bad.jsonl.gz").write_bytes(gzip.compress(STEP.format(7).encode() * 99)[:-9])
    notes: list[str] = []
    config = Config(store=tmp_path / "store")
    watch = operation.Watch([logs], config, notes.append)
    (config.store / ".watch").mkdir(parents=True)
    for step in (11, 12):
        (logs / f"good{step}.jsonl").write_text(STEP.format(step))
        assert watch.round().well
        assert step in steps(config.store)
    for name in ("bad.parquet: ", "bad.jsonl.gz: "):
        assert sum(name in note for note in notes) == 1, notes


class TestFullDisk:
    """A disk of a few megabytes, in a mount namespace of our own."""

    SCRIPT = (
        "import sys, os\nfrom pathlib import Path\n"
        "from fabricobs.config.schema import Config\n"
        "from fabricobs.operate.watch import Watch\n"
        "from fabricobs.operate.state import only_watch\n"
        "from fabricobs.store.parts import Store\n"
        "disk, logs, hook = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]\n"
        "config = Config.model_validate({'store': disk / 'store', "
        "'notify': {'webhook': {'url': hook}}})\n"
        "Store(config.store).create()\n"
        "with only_watch(config.store):\n"
        "    w = Watch([logs / 'train', logs / 'nccl'], config, print)\n"
        "    w.round()\n    kept = sorted(p for p in config.store.rglob('*.parquet'))\n"
        "    w = Watch([logs], config, print)\n"
        "    room = os.statvfs(disk)\n"
        "    (disk / 'filler').write_bytes(bytes(room.f_bavail * room.f_frsize - (32 << 10)))\n"
        "    done = w.round()\n    assert not done.well and not done.events\n"
        "    assert sorted(p for p in config.store.rglob('*.parquet')) == kept\n"
        "    print('STILL', len(list((config.store / '.incoming').iterdir())))\n"
        "    (disk / 'filler').unlink()\n    done = w.round()\n"
        "    assert done.well, done\n    print('EVENTS', [e.news for e in done.events])\n"
    )

    def test_it_says_so_keeps_the_store_and_goes_on(self, tmp_path: Path) -> None:
        disk = tmp_path / "disk"
        disk.mkdir()
        mount = f"mount -t tmpfs -o size=6m none {disk}"
        unshare = ["unshare", "--mount", "--map-root-user", "sh", "-c"]
        if subprocess.run([*unshare, mount], capture_output=True).returncode:
            pytest.skip("no mount namespace of our own can be had here")
        with receiver() as kept:
            words = [sys.executable, "-c", self.SCRIPT, str(disk), str(LOGS), kept.url]
            result = subprocess.run(
                [*unshare, f'{mount} && exec "$@"', "sh", *words],
                capture_output=True, text=True, cwd=ROOT,
            )  # fmt: skip
        assert result.returncode == 0, result.stdout + result.stderr
        assert "No space left on device" in result.stdout
        assert "tried again next round" in result.stdout
        assert "STILL 0" in result.stdout
        assert "EVENTS ['new']" in result.stdout
        assert [request.document["event"] for request in kept.requests] == ["new"]


def test_stopped_by_its_scheduler_it_ends_well(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from fabricobs.cli import main; main()", "watch"]
    (tmp_path / "log.jsonl").write_text(STEP.format(1))
    process = subprocess.Popen(
        [*command, tmp_path, "--store", tmp_path / "s", "--every", "1h"],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    for line in process.stderr:
        if " firing, " in line:
            process.terminate()
            break
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait() == 0
    assert "stopped by SIGTERM; the store is valid" in said
