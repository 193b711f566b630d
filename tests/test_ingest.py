"""Ingest as a user meets it: nothing lost, nothing twice, nothing half-written."""

import gzip
import os
import random
import signal
import subprocess
import sys
import tarfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conftest import ROOT, Run
from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session
from fabricobs.store.tables import TABLES

STEP = '{{"step": {0}, "rank": 0, "step_time_ms": 10.0}}\n'


def _name(part: Path) -> str:
    """Return the name of a part without the token that sets two writers of a batch apart."""
    return f"{part.parent.name.rpartition('-')[0]}/{part.name}"


def bytes_of(store: Path) -> dict[str, bytes]:
    return {_name(path): path.read_bytes() for path in sorted(store.rglob("*.parquet"))}


def parts_of(store: Path) -> dict[str, pa.Table]:
    """Return the rows of every part, in order: which reader read them shows in the bytes alone."""
    return {_name(path): pq.ParquetFile(path).read() for path in sorted(store.rglob("*.parquet"))}


def rows_of(store: Path) -> dict[str, list[tuple[object, ...]]]:
    session = open_session(store, " ".join(TABLES))
    return {table: sorted(session.sql(f"FROM {table}").fetchall(), key=repr) for table in TABLES}


def ask(store: Path, statement: str) -> list[tuple[object, ...]]:
    return open_session(store, statement).sql(statement).fetchall()


def read(*inputs: Path, store: Path) -> Path:
    ingest(inputs, Store(store), Options())
    return store


def test_the_same_input_twice_changes_no_byte(tmp_path: Path) -> None:
    logs = ROOT / "sample_data" / "logs" / "switches"
    before = bytes_of(read(logs, store=tmp_path / "s"))
    assert bytes_of(read(logs, store=tmp_path / "s")) == before
    copied = tmp_path / "copy"
    subprocess.run(["cp", "-rp", logs, copied], check=True)
    assert bytes_of(read(copied, store=tmp_path / "s")) == before


def test_several_processes_write_the_store_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = tmp_path / "logs"
    subprocess.run(["cp", "-rp", ROOT / "sample_data" / "logs" / "switches", logs], check=True)
    (logs / "again").mkdir()
    subprocess.run(["cp", "-rp", logs / "leaf01", logs / "again" / "leaf01"], check=True)
    (logs / "gone").symlink_to(tmp_path / "nowhere")
    monkeypatch.setattr("fabricobs.planning._BATCH_FILES", 50)
    one = ingest([logs], Store(tmp_path / "one"), Options(), workers=1)
    monkeypatch.setattr("fabricobs.ingestion._PARALLEL_FILES", 10)
    monkeypatch.setattr("fabricobs.ingestion._PARALLEL_BYTES", 0)
    several = ingest([logs], Store(tmp_path / "several"), Options(), workers=2)
    assert several == one
    assert sum(outcome.unchanged for outcome in one.outcomes) > 1
    assert parts_of(tmp_path / "several") == parts_of(tmp_path / "one")


def test_every_line_of_the_sample_is_accounted_for(sample_store: Path) -> None:
    assert ask(
        sample_store, "SELECT count(*) FROM files WHERE lines <> parsed + ignored + unparsed"
    ) == [(0,)]
    assert ask(sample_store, "SELECT sum(unparsed), count(*) FILTER (formats = '') FROM files") == [
        (0, 0)
    ]


def test_a_grown_file_takes_the_place_of_what_it_was(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "steps.jsonl"
    log.parent.mkdir()
    log.write_text(STEP.format(1) + STEP.format(2))
    other = log.with_name("other.jsonl")
    other.write_text(STEP.format(7))
    store = read(log.parent, store=tmp_path / "s")
    with log.open("a") as file:
        file.write(STEP.format(3))
    read(log.parent, store=store)
    assert ask(store, "SELECT step FROM steps ORDER BY step") == [(1,), (2,), (3,), (7,)]
    assert ask(store, "SELECT count(*) FROM files") == [(2,)]


def test_a_snapshot_overwritten_in_place_is_kept_beside_the_old_one(tmp_path: Path) -> None:
    log = tmp_path / "steps.jsonl"
    log.write_text(STEP.format(1))
    store = read(log, store=tmp_path / "s")
    log.write_text(STEP.format(2))
    read(log, store=store)
    assert ask(store, "SELECT step FROM steps ORDER BY step") == [(1,), (2,)]


def test_files_of_one_name_do_not_collide(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / "logs" / str(number)).mkdir(parents=True)
        (tmp_path / "logs" / str(number) / "rank0.jsonl").write_text(STEP.format(number))
    store = read(tmp_path / "logs", store=tmp_path / "s")
    assert ask(store, "SELECT count(*) FROM steps") == [(2,)]


def test_stopped_by_hand_it_says_how_to_go_on(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from fabricobs.cli import main; main()", "ingest"]
    command += [str(ROOT / "sample_data" / "logs"), "--store", str(tmp_path / "s")]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    while not (tmp_path / "s" / "_log").exists():
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130
    assert "rerun the same command to resume" in said
    assert "Traceback" not in said


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(int(os.environ.get("FABRICOBS_ROUNDS", "3"))))
def test_four_writers_one_killed_bring_every_file_once(tmp_path: Path, seed: int) -> None:
    logs = ROOT / "sample_data" / "logs"
    command = [sys.executable, "-c", "from fabricobs.cli import main; main()", "ingest"]
    inputs = [["steps", "train"], ["train", "inspector"], ["inspector", "steps"], ["train"]]
    store = ["--store", str(tmp_path / "s")]
    running = [
        subprocess.Popen(
            [*command, *(str(logs / name) for name in names), *store], stdout=subprocess.DEVNULL
        )
        for names in inputs
    ]
    chance = random.Random(seed)
    killed = chance.randrange(len(running))
    time.sleep(chance.uniform(0.3, 4.0))
    running[killed].kill()
    codes = [process.wait() for process in running]
    assert all(code == 0 for number, code in enumerate(codes) if number != killed)
    subprocess.run([*command, *(str(logs / n) for n in inputs[killed]), *store], check=True)
    alone = read(logs / "steps", logs / "train", logs / "inspector", store=tmp_path / "alone")
    together = rows_of(tmp_path / "s")
    expected = rows_of(alone)
    expected["counter_info"] = together["counter_info"] = []
    assert together == expected
    Store(tmp_path / "s").clear(datetime.now(UTC).replace(tzinfo=None) + timedelta(days=2))
    assert not list((tmp_path / "s" / ".incoming").glob("*")), "what the killed one left"


class TestBadInput:
    def test_a_problem_stays_as_it_was_when_the_same_is_read_again(
        self, fabricobs: Run, tmp_path: Path
    ) -> None:
        logs, store = tmp_path / "logs", tmp_path / "store"
        logs.mkdir()
        steps = "".join(f'{{"step": {n}, "rank": 0, "step_time_ms": 1.0}}\n' for n in range(9_999))
        (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(steps.encode())[:-99])
        with tarfile.open(logs / "logs.tar", "w") as tar:
            tar.add(tmp_path / "cut.jsonl.gz", "cut.jsonl.gz")
        os.utime(logs / "logs.tar", (1, 1))
        first = fabricobs("ingest", logs, "--store", store)
        assert (first.returncode, first.stderr.count("logs.tar/cut.jsonl.gz: ")) == (1, 1)
        (tmp_path / "cut.jsonl.gz").rename(logs / "cut.jsonl.gz")
        assert fabricobs("ingest", logs, "--store", store).returncode == 1
        for _ in range(2):
            again = fabricobs("ingest", logs, "--store", store)
            assert again.returncode == 1
            assert "2 files still have the problems of an earlier ingest" in again.stderr
        (logs / "cut.jsonl.gz").unlink()
        (logs / "logs.tar").unlink()
        (logs / "good.jsonl").write_text(steps)
        mended = fabricobs("ingest", logs, "--store", store)
        assert (mended.returncode, mended.stderr) == (0, "")

    """Each is named with what to do, the rest is read, and nothing is lost."""

    @pytest.fixture
    def logs(self, tmp_path: Path) -> Path:
        folder = tmp_path / "logs"
        folder.mkdir()
        (folder / "good.jsonl").write_text(STEP.format(1))
        return folder

    def test_an_empty_directory(self, fabricobs: Run, tmp_path: Path) -> None:
        (tmp_path / "logs").mkdir()
        result = fabricobs("ingest", tmp_path / "logs", "--store", tmp_path / "s")
        assert result.returncode == 3
        assert "no file below" in result.stderr

    def test_a_path_that_is_not_there(self, fabricobs: Run, tmp_path: Path) -> None:
        result = fabricobs("ingest", tmp_path / "nowhere", "--store", tmp_path / "s")
        assert result.returncode == 3
        assert "nowhere: no such file" in result.stderr
        assert not (tmp_path / "s").exists()

    def test_an_unknown_file(self, fabricobs: Run, logs: Path, tmp_path: Path) -> None:
        (logs / "poem.txt").write_text("no format is like this\n" * 3)
        result = fabricobs("ingest", logs, "--store", tmp_path / "s")
        assert result.returncode == 0
        assert "poem.txt: not recognised" in " ".join(result.stdout.split())
        assert ask(tmp_path / "s", "SELECT lines, unclaimed FROM files WHERE formats = ''") == [
            (3, 3)
        ]

    def test_only_an_unknown_file(self, fabricobs: Run, tmp_path: Path) -> None:
        (tmp_path / "poem.txt").write_text("no format is like this\n")
        result = fabricobs("ingest", tmp_path / "poem.txt", "--store", tmp_path / "s")
        assert result.returncode == 3

    def test_a_truncated_gzip_gives_what_it_has(
        self, fabricobs: Run, logs: Path, tmp_path: Path
    ) -> None:
        whole = gzip.compress("".join(STEP.format(n) for n in range(50_000)).encode())
        (logs / "cut.jsonl.gz").write_bytes(whole[: len(whole) // 2])
        result = fabricobs("ingest", logs, "--store", tmp_path / "s")
        assert result.returncode == 1
        assert "cut.jsonl.gz: breaks off" in result.stderr
        ((rows,),) = ask(tmp_path / "s", "SELECT count(*) FROM steps")
        assert 10_000 < rows < 50_000

    def test_what_begins_far_into_a_compressed_log_is_read(
        self, fabricobs: Run, logs: Path, tmp_path: Path
    ) -> None:
        """The end of a compressed file cannot be looked at alone: steps far into it were unread."""
        nccl = "node1:100:110 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n" * 9_000
        nemo = "".join(
            f"[rank0]:Training epoch 0, iteration {n}/400 | lr: 3e-05 | global_batch_size: 104 | "
            f"global_step: {n} | reduced_train_loss: 8.9 | train_step_timing in s: 0.5\n"
            for n in range(1, 301)
        )
        (logs / "job.out.gz").write_bytes(gzip.compress((nccl + nemo).encode()))
        assert fabricobs("ingest", logs, "--store", tmp_path / "s").returncode == 0
        asked = "SELECT count(*) FROM steps WHERE step_time_ms = 500"
        assert ask(tmp_path / "s", asked) == [(300,)]

    def test_a_file_of_zeros(self, fabricobs: Run, logs: Path, tmp_path: Path) -> None:
        (logs / "zeros.log").write_bytes(bytes(1 << 20))
        result = fabricobs("ingest", logs, "--store", tmp_path / "s")
        assert result.returncode == 0
        assert "zeros.log: not recognised: binary" in " ".join(result.stdout.split())
        assert ask(tmp_path / "s", "SELECT count(*) FROM steps") == [(1,)]

    def test_a_line_of_50_megabytes(self, fabricobs: Run, logs: Path, tmp_path: Path) -> None:
        with (logs / "long.jsonl").open("w") as file:
            file.write(STEP.format(2) + "x" * (50 << 20) + "\n" + STEP.format(3))
        result = fabricobs("ingest", logs, "--store", tmp_path / "s")
        assert result.returncode == 0
        assert "longer than 1 MiB" in result.stdout
        assert ask(tmp_path / "s", "SELECT step FROM steps ORDER BY step") == [(1,), (2,), (3,)]
        assert ask(tmp_path / "s", "SELECT line FROM unparsed") == [(2,)]

    def test_an_unreadable_file(self, fabricobs: Run, logs: Path, tmp_path: Path) -> None:
        (logs / "gone.log").symlink_to(logs / "nowhere")
        result = fabricobs("ingest", logs, "--store", tmp_path / "s")
        assert result.returncode == 3
        assert "gone.log: cannot be read" in result.stderr
        assert ask(tmp_path / "s", "SELECT count(*) FROM steps") == [(1,)]

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_a_file_without_permission(self, fabricobs: Run, logs: Path, tmp_path: Path) -> None:
        (logs / "secret.log").write_text("x")
        (logs / "secret.log").chmod(0)
        assert fabricobs("ingest", logs, "--store", tmp_path / "s").returncode == 3

    def test_a_store_that_cannot_be_written(self, fabricobs: Run, logs: Path) -> None:
        result = fabricobs("ingest", logs, "--store", logs / "good.jsonl" / "s")
        assert result.returncode == 3
        assert "Traceback" not in result.stderr


def test_duckdb_alone_reads_the_store(sample_store: Path) -> None:
    pattern = f"{sample_store}/*/steps.parquet"
    rows = (
        duckdb.connect()
        .execute(f"SELECT count(*) FROM read_parquet('{pattern}', union_by_name=true)")
        .fetchall()
    )
    assert rows == [(32 * 300 + 300,)]
