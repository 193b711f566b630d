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
from fabricobs.store import compaction, verification
from fabricobs.store.inspection import PartError
from fabricobs.store.manifest import StoreError
from fabricobs.store.parts import Store

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
    return [name for name in store.batches() if not name.startswith("schema")]


def faults(store: Store) -> list[str]:
    return [fault for batch in verification.verify(store.path) for fault in batch.faults]


class TestHostileNotes:
    """What `replaces.json` says decides only on batches beside it."""

    NAMES = (
        "/absolute", "..", ".", "", "../outside", "a/../../outside", ".incoming", ".watch",
        "schema", "a link", "a file", "itself", 7, None, ["nested"], "x\0y", "x" * 300,
    )  # fmt: skip

    @pytest.mark.parametrize("name", NAMES, ids=repr)
    def test_a_name_that_is_no_batch_is_refused(
        self, store: Store, tmp_path: Path, name: object
    ) -> None:
        outside = tmp_path / "outside"
        outside.mkdir()
        (outside / "precious").touch()
        (store.path / ".watch").mkdir()
        first, second, _ = days_of(store)
        (store.path / "link").symlink_to(outside)
        (store.path / "file").write_text("precious")
        given = {"/absolute": str(outside), "a link": "link", "a file": "file", "itself": first}
        name = given.get(name, name) if isinstance(name, str) else name
        (store.path / first / compaction.NOTE).write_text(json.dumps([second, name]))
        for use in (
            lambda: compaction.reading(store.path).__enter__(),
            store.settle,
            lambda: compaction.finish(store.path),
        ):
            with pytest.raises(StoreError, match=r"replaces\.json names .*no other batch"):
                use()
        assert (outside / "precious").exists()
        assert (store.path / "file").exists()
        assert (store.path / ".watch").is_dir()
        assert (store.path / second).is_dir(), "nothing is obeyed of a note that is refused"

    @pytest.mark.parametrize(
        "note", [b"{", b"{}", b"\xff", b"[" * 100_000, b"7", b"[1" + b"0" * 5000 + b"]"]
    )
    def test_what_is_no_note_is_refused(self, store: Store, note: bytes) -> None:
        (store.path / days_of(store)[0] / compaction.NOTE).write_bytes(note)
        with pytest.raises(StoreError, match=r"replaces\.json"), compaction.reading(store.path):
            pass

    def test_a_batch_that_is_a_link_has_no_say(self, store: Store, tmp_path: Path) -> None:
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / compaction.NOTE).write_text(json.dumps(days_of(store)))
        (store.path / "linked").symlink_to(elsewhere)
        with compaction.reading(store.path), pytest.raises(PartError, match="symbolic link"):
            steps(store)
        assert (elsewhere / compaction.NOTE).exists()
        assert len(days_of(store)) == DAYS

    @pytest.mark.parametrize("name", [".lock", ".readers", ".seen.json", ".incoming"])
    def test_no_link_is_followed_to_write(self, store: Store, tmp_path: Path, name: str) -> None:
        precious = tmp_path / "precious"
        if name == ".incoming":
            shutil.rmtree(store.path / name)
            (precious / "folder").mkdir(parents=True)
        else:
            precious.write_text("precious")
            (store.path / name).unlink(missing_ok=True)
        (store.path / name).symlink_to(precious)
        new = tmp_path / "new.jsonl"
        new.write_text(STEP.format(9, 9))
        with pytest.raises(UserError, match="symbolic link"):
            ingest([new], store, Options())
        assert precious.is_dir() or precious.read_text() == "precious"
        assert name != ".incoming" or (precious / "folder").is_dir()


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
        case "no manifest":
            (batch / "manifest.json").write_text("{")
        case "link":
            part.rename(store.path.parent / "moved")
            part.symlink_to(store.path.parent / "moved")
        case "of an older release":
            (batch / "manifest.json").unlink()
            part.unlink()


KINDS = (
    "cut off", "missing", "empty", "flipped", "no account", "account cut off", "no manifest",
    "link", "of an older release",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_named_put_aside_and_read_again(store: Store, logs: Path, kind: str) -> None:
    assert not faults(store)
    batch = days_of(store)[0]
    (path,) = pq.read_table(store.path / batch / "files.parquet")["path"].to_pylist()
    damage(store, kind)
    assert batch in faults(store)[0]
    (moved,) = verification.repair(store.path, verification.verify(store.path))
    assert moved.place == store.path / ".damaged" / batch
    assert moved.place.is_dir()
    known = kind not in {"no account", "account cut off"}
    assert moved.inputs == ((Path(path),) if known else None)
    ingest([logs], store, Options())
    assert steps(store) == [1, 2, 3]
    assert not faults(store)


@pytest.mark.parametrize("kind", sorted({*KINDS} - {"flipped", "of an older release"}))
def test_no_ingest_and_no_reader_trusts_a_damaged_batch(
    store: Store, logs: Path, kind: str
) -> None:
    damage(store, kind)
    told = "symbolic link" if kind == "link" else r"store .*: .*verify --store .* --repair"
    with pytest.raises(UserError, match=told):
        ingest([logs], store, Options())
    with pytest.raises(StoreError, match="verify"), compaction.reading(store.path):
        pass


@pytest.mark.parametrize("manifest", [True, False])
@pytest.mark.parametrize("verb", ["diagnose", "report", "sql"])
def test_a_part_that_fails_within_a_query_is_named(
    store: Store,
    verb: str,
    manifest: bool,
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
    if not manifest:
        (batch / "manifest.json").unlink()
    # As of a table too large to be held: each query of a method reads the part.
    monkeypatch.setattr("fabricobs.store.session._MOST_LOADED_BYTES", 0)
    monkeypatch.setattr("fabricobs.store.session._kept", lambda statement: statement)
    arguments = {"sql": ["FROM steps"], "report": ["--out", str(store.path.parent / "r.html")]}
    monkeypatch.setattr("sys.argv", ["fabricobs", verb, *arguments.get(verb, [])])
    monkeypatch.setenv("FABRICOBS_STORE", str(store.path))
    monkeypatch.setattr(cli.stopping, "listen", lambda: None)
    monkeypatch.setattr(cli, "raise_gc_threshold", lambda: None)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    (line,) = capsys.readouterr().err.splitlines()
    assert ended.value.code == 3, line
    assert f"{batch.name}/steps.parquet" in line
    assert "run `fabricobs verify --store" in line


def test_a_batch_without_a_manifest_is_not_called_sound(fabricobs: Run, store: Store) -> None:
    batch = store.path / days_of(store)[0]
    (batch / "manifest.json").unlink()
    done = fabricobs("verify", "--store", store.path)
    assert done.returncode == 3
    assert f"{batch.name} cannot be checked: it has no manifest.json" in done.stdout
    assert "1 batch cannot be checked" in done.stdout.splitlines()[-1]


def test_any_flipped_bit_is_found(store: Store) -> None:
    """DuckDB reads most of them as other values."""
    chance = random.Random(7)
    parts = sorted(store.path.glob("*/*"))
    for _ in range(20):
        part = chance.choice(parts)
        data = part.read_bytes()
        at = chance.randrange(len(data))
        part.write_bytes(data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :])
        assert part.parent.name in " ".join(faults(store)), (part, at)
        part.write_bytes(data)
    assert not faults(store)


def test_rows_that_are_there_twice_are_found_and_taken_out(store: Store) -> None:
    first = days_of(store)[0]
    shutil.copytree(store.path / first, store.path / "copied")
    found = verification.verify(store.path)
    assert sum(len(batch.doubled) for batch in found) == 1
    assert len(steps(store)) == 4
    assert not verification.repair(store.path, found)
    assert steps(store) == [1, 2, 3]


def test_a_missing_schema_is_made_again(store: Store) -> None:
    (store.path / "schema" / "steps.parquet").write_bytes(b"")
    assert len(verification.repair(store.path, verification.verify(store.path))) == 1
    assert not faults(store)
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
        assert "4 batches" in sound.stdout
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
        with compaction.reading(store.path):
            assert steps(store) == [1, 2, 3]
    finally:
        store.path.chmod(0o755)
