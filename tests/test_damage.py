"""A store that is damaged or hostile: no wrong answer, nothing outside it is touched."""

import json
import os
import random
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from small_store import STEP, steps, write_days

from conftest import Run
from fabricobs import cli
from fabricobs.exceptions import UserError
from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.store import verification
from fabricobs.store.inspection import PartError
from fabricobs.store.log import StoreError
from fabricobs.store.parts import Store
from fabricobs.store.reading import reading

pytestmark = pytest.mark.slow

DAYS = 3


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("template")
    write_days(folder / "logs", DAYS, folder / "store")
    return folder


@pytest.fixture
def store(template: Path, tmp_path: Path) -> Store:
    """A store of three batches; its logs are beside it."""
    shutil.copytree(template, tmp_path, dirs_exist_ok=True)
    # The template's logs: a store knows its inputs by their paths.
    return Store(tmp_path / "store")


@pytest.fixture
def logs(template: Path) -> Path:
    return template / "logs"


def days_of(store: Store) -> list[str]:
    return sorted(store.snapshot().batches)


def faults(store: Store) -> list[str]:
    return [fault for batch in verification.verify(store.path) for fault in batch.faults]


def last_entry(store: Store) -> Path:
    return max((store.path / "_log").glob("*.json"))


class TestHostileLog:
    """What a log says is data: it names batches beside it and nothing else."""

    NAMES = (
        "/absolute", "..", ".", "", "../outside", "a/../../outside", ".incoming", ".watch",
        7, None, ["nested"], "x\0y", "x" * 300,
    )  # fmt: skip

    @pytest.mark.parametrize("place", ["adds", "removes", "parts"])
    @pytest.mark.parametrize("name", NAMES, ids=repr)
    def test_a_name_that_is_no_batch_is_refused(
        self, store: Store, name: object, place: str
    ) -> None:
        entry = last_entry(store)
        document = json.loads(entry.read_bytes())
        if place == "adds":
            document["adds"][0]["name"] = name
        elif place == "removes":
            document["removes"] = [name]
        else:
            parts = {name: [1, "x"]} if isinstance(name, str) else name
            document["adds"][0]["parts"] = parts
        entry.write_text(json.dumps(document))
        for use in (lambda: reading(store.path).__enter__(), Store(store.path).settle):
            with pytest.raises(StoreError, match=r"_log/\d+\.json is damaged"):
                use()

    @pytest.mark.parametrize(
        "text", [b"{", b"{}", b"\xff", b"[" * 100_000, b"7", b"[1" + b"0" * 5000 + b"]", b""]
    )
    def test_what_is_no_entry_is_named_and_made_anew(
        self, fabricobs: Run, store: Store, text: bytes
    ) -> None:
        last_entry(store).write_bytes(text)
        told = fabricobs("sql", "SELECT 1", "--store", store.path)
        assert told.returncode == 3
        assert told.stderr.count("\n") == 1
        assert "verify --repair" in told.stderr
        assert fabricobs("verify", "--store", store.path).returncode == 2
        mended = fabricobs("verify", "--repair", "--store", store.path)
        assert mended.returncode == 1, mended.stderr
        assert steps(store) == [1, 2, 3]
        assert not faults(store)

    def test_a_log_of_a_later_release_is_left_alone(self, fabricobs: Run, store: Store) -> None:
        (store.path / "_log" / "000000000000.json").write_text('{"layout": 3}')
        told = fabricobs("diagnose", "--store", store.path)
        assert told.returncode == 3
        assert "written by a later release" in told.stderr

    def test_a_batch_that_is_a_link_is_refused(self, store: Store, tmp_path: Path) -> None:
        (store.path / "linked").symlink_to(tmp_path)
        with reading(store.path), pytest.raises(PartError, match="symbolic link"):
            steps(store)

    @pytest.mark.parametrize("name", ["_log", ".seen.json", ".incoming"])
    def test_no_link_is_followed_to_write(self, store: Store, tmp_path: Path, name: str) -> None:
        precious = tmp_path / "precious"
        moved = store.path / name
        if moved.is_dir():
            shutil.move(moved, precious)
        else:
            precious.write_text("precious")
            moved.unlink(missing_ok=True)
        moved.symlink_to(precious)
        before = sorted(precious.iterdir()) if precious.is_dir() else precious.read_text()
        new = tmp_path / "new.jsonl"
        new.write_text(STEP.format(9, 9))
        with pytest.raises(UserError, match="symbolic link"):
            ingest([new], Store(store.path), Options())
        assert before == (sorted(precious.iterdir()) if precious.is_dir() else precious.read_text())


def test_a_store_of_an_older_release_is_made_one_of_this(
    fabricobs: Run, store: Store, logs: Path
) -> None:
    """It had no log: every folder was a batch; a note named those a compaction had replaced."""
    shutil.rmtree(store.path / "_log")
    first, *_ = [p.name for p in sorted(store.path.iterdir()) if p.name[0] not in "._"]
    shutil.copytree(store.path / first, store.path / "merged")
    (store.path / "merged" / "replaces.json").write_text(json.dumps([first]))
    (store.path / "schema").mkdir()
    for command in (["ingest", logs], ["diagnose"], ["verify"]):
        told = fabricobs(*command, "--store", store.path)
        assert told.returncode in {2, 3}
        assert "--repair" in told.stdout + told.stderr, command
    assert fabricobs("verify", "--repair", "--store", store.path).returncode == 1
    assert steps(store) == [1, 2, 3]
    assert "unchanged" in fabricobs("ingest", logs, "--store", store.path).stdout


def damage(store: Store, kind: str) -> None:
    """Damage the first of the days' batches."""
    batch = store.path / days_of(store)[0]
    part = batch / "steps.parquet"
    data = part.read_bytes()
    match kind:
        case "cut off":
            part.write_bytes(data[: len(data) // 2])
        case "missing":
            part.unlink()
        case "empty":
            part.write_bytes(b"")
        case "flipped":
            part.write_bytes(data[:50] + bytes([data[50] ^ 16]) + data[51:])
        case "no account":
            (batch / "files.parquet").unlink()
        case "account cut off":
            (batch / "files.parquet").write_bytes(b"PAR1")
        case "link":
            part.rename(store.path.parent / "moved")
            part.symlink_to(store.path.parent / "moved")
        case "no batch":
            shutil.rmtree(batch)


KINDS = (
    "cut off", "missing", "empty", "flipped", "no account", "account cut off", "link", "no batch",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_named_taken_out_and_read_again(store: Store, logs: Path, kind: str) -> None:
    assert not faults(store)
    batch = days_of(store)[0]
    (path,) = pq.read_table(store.path / batch / "files.parquet")["path"].to_pylist()
    damage(store, kind)
    assert batch in faults(store)[0]
    (gone,) = verification.repair(store.path, verification.verify(store.path))
    assert (gone.name, list(gone.inputs.values())) == (batch, [path])
    if kind == "link":
        (store.path / batch / "steps.parquet").unlink()
    ingest([logs], store, Options())
    assert steps(store) == [1, 2, 3]
    assert not faults(store)


@pytest.mark.parametrize("kind", sorted({*KINDS} - {"flipped"}))
def test_no_ingest_and_no_reader_trusts_a_damaged_batch(
    store: Store, logs: Path, kind: str
) -> None:
    damage(store, kind)
    told = "symbolic link" if kind == "link" else r"store .*: .*verify --store .* --repair"
    with pytest.raises(UserError, match=told):
        ingest([logs], store, Options())
    with pytest.raises(StoreError, match="verify"), reading(store.path):
        pass


@pytest.mark.parametrize("command", ["diagnose", "report", "sql"])
def test_a_part_that_fails_within_a_query_is_named(
    store: Store,
    command: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    batch = store.path / days_of(store)[0]
    part = batch / "steps.parquet"
    data = bytearray(part.read_bytes())
    with pq.ParquetFile(part) as file:
        group = file.metadata.row_group(0)
        columns = [group.column(number) for number in range(group.num_columns)]
    for column in columns:
        if column.path_in_schema in {"step", "step_time_ms"}:
            begin = column.dictionary_page_offset or column.data_page_offset
            data[begin : begin + column.total_compressed_size] = bytes(column.total_compressed_size)
    part.write_bytes(data)
    # As of a table too large to be held: each query of a method reads the part.
    monkeypatch.setattr("fabricobs.store.session._MOST_LOADED_BYTES", 0)
    monkeypatch.setattr("fabricobs.store.session.kept", lambda statement: statement)
    arguments = {"sql": ["FROM steps"], "report": ["--out", str(store.path.parent / "r.html")]}
    monkeypatch.setattr("sys.argv", ["fabricobs", command, *arguments.get(command, [])])
    monkeypatch.setenv("FABRICOBS_STORE", str(store.path))
    monkeypatch.setattr(cli.stopping, "listen", lambda: None)
    monkeypatch.setattr(cli, "raise_gc_threshold", lambda: None)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    (line,) = capsys.readouterr().err.splitlines()
    assert ended.value.code == 3, line
    assert f"{batch.name}/steps.parquet" in line
    assert "run `fabricobs verify --store" in line


def test_any_flipped_bit_is_found(store: Store) -> None:
    """DuckDB reads most of them as other values."""
    chance = random.Random(7)
    parts = sorted(store.path.glob("*/*.parquet"))
    for _ in range(20):
        part = chance.choice(parts)
        data = part.read_bytes()
        at = chance.randrange(len(data))
        part.write_bytes(data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :])
        assert part.parent.name in " ".join(faults(store)), (part, at)
        part.write_bytes(data)
    assert not faults(store)


def test_rows_that_are_there_twice_are_found_and_taken_out(store: Store) -> None:
    """A log made anew takes in what others had replaced."""
    shutil.copytree(store.path / days_of(store)[0], store.path / "copied")
    verification.rebuild(store.path)
    found = verification.verify(store.path)
    assert sum(len(batch.doubled) for batch in found) == 1
    assert len(steps(store)) == 4
    assert not verification.repair(store.path, found)
    assert steps(store) == [1, 2, 3]


def test_verify_beside_writers_finds_nothing(store: Store, tmp_path: Path) -> None:
    log = tmp_path / "grows.jsonl"
    for step in range(10, 14):
        with log.open("a") as file:
            file.write(STEP.format(step, 9))
        ingest([log], store, Options())
        assert not faults(store)


class TestCommandLine:
    def test_sound_damaged_and_repaired(self, fabricobs: Run, store: Store, logs: Path) -> None:
        sound = fabricobs("verify", "--store", store.path)
        assert (sound.returncode, sound.stderr) == (0, "")
        assert "3 batches" in sound.stdout
        damage(store, "cut off")
        found = fabricobs("verify", "--store", store.path)
        assert found.returncode == 2
        assert "steps.parquet has " in found.stdout
        assert "--repair" in found.stderr
        for arguments in (["sql", "SELECT count(*) FROM steps"], ["ingest", logs], ["diagnose"]):
            refused = fabricobs(*arguments, "--store", store.path)
            assert refused.returncode == 3
            assert refused.stderr.count("\n") == 1
            assert "steps.parquet" in refused.stderr
            assert "fabricobs verify" in refused.stderr
        repaired = fabricobs("verify", "--repair", "--store", store.path)
        assert repaired.returncode == 1
        assert "1 inputs to be read again" in repaired.stdout
        assert fabricobs("ingest", logs, "--store", store.path).returncode == 0
        assert steps(store) == [1, 2, 3]

    def test_no_store(self, fabricobs: Run, tmp_path: Path) -> None:
        result = fabricobs("verify", "--store", tmp_path)
        assert result.returncode == 3
        assert "no store" in result.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_who_may_not_write_reads(store: Store) -> None:
    store.path.chmod(0o555)
    try:
        with reading(store.path):
            assert steps(store) == [1, 2, 3]
    finally:
        store.path.chmod(0o755)
