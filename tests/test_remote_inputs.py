"""Logs in an object store give what they give in a directory, and are fetched only when needed."""

import re
import shlex
import shutil
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from object_server import ObjectServer, through_proxy
from remote_logs import bucket_of, put, rows_below, upload
from small_store import STEP, rows_of, write_days

import fabricobs
from conftest import ROOT, Run
from fabricobs import remote
from fabricobs.exceptions import UserError
from fabricobs.inputs import FileOutcome, IngestReport
from fabricobs.store.location import place_of
from fabricobs.store.objects import Objects
from fabricobs.store.storage import StorageError, storage_of

LINE = "h:1:1 [0] NCCL INFO comm 0x1 rank {0} nranks 2 cudaDev 0 busId 1000 - Init START\n"


@pytest.fixture(autouse=True)
def _known_anew() -> Iterator[None]:
    yield
    storage_of.cache_clear()


@pytest.fixture
def logs(s3: str) -> str:
    """An address beside that of the store."""
    return f"{s3.removesuffix('/store')}/logs"


def mixed(folder: Path) -> Path:
    """Write a tree with archives, rotated and packed logs, a host map, and what is not read."""
    shutil.copytree(ROOT / "sample_data" / "logs" / "sysfs", folder / "sysfs")
    shutil.copytree(ROOT / "sample_data" / "logs" / "inspector", folder / "inspector")
    (folder / "nccl").mkdir()
    (folder / "nccl" / "gpu-a01.log").write_text(LINE.format(0) * 3)
    (folder / "nccl" / "gpu-a01.log.1").write_text(LINE.format(0) * 2)
    (folder / "nccl" / "gpu-a02 (copy) ü%41.log").write_text(LINE.format(1))
    (folder / "unknown.txt").write_text("nothing that anybody knows\n")
    (folder / "hosts.csv").write_text("alias,host\n10.0.0.1,gpu-a01\n")
    (folder / ".hidden").write_text(LINE.format(1))
    (folder / "id_rsa").write_text(LINE.format(1))
    write_days(folder / "steps", 3)
    with tarfile.open(folder / "bundle.tar.gz", "w:gz") as archive:
        archive.add(ROOT / "sample_data" / "logs" / "ethtool", "gpu-a03/ethtool")
    return folder


def below(report: IngestReport, root: str) -> list[FileOutcome]:
    """Return the outcomes of a report as if its input were called `logs`."""
    return [replace(o, path=Path(o.name.replace(root, "logs", 1))) for o in report.outcomes]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("kept", ["s3", "directory"])
def test_rows_and_account_are_those_of_a_directory(
    s3: str, logs: str, tmp_path: Path, workers: int, kept: str
) -> None:
    # Jobs have names of folders: they are the same here.
    folder = mixed(tmp_path / logs.removeprefix("s3://"))
    upload(folder, logs)
    store = s3 if kept == "s3" else str(tmp_path / "store")
    there = fabricobs.ingest(logs, store, workers=workers)
    here = fabricobs.ingest(folder, tmp_path / "local", workers=1)
    assert below(there, logs) == below(here, str(folder))
    assert there.left_out == here.left_out
    found = rows_below(place_of(Path(store)), logs)
    assert found == rows_below(tmp_path / "local", str(folder))
    assert any("'logs/bundle.tar.gz/gpu-a03/ethtool" in row for row in found["files"])


def test_one_object_is_an_input_too(s3: str, logs: str, tmp_path: Path) -> None:
    write_days(tmp_path / "logs", 2)
    upload(tmp_path / "logs", logs)
    report = fabricobs.ingest(f"{logs}/day02.jsonl", tmp_path / "store")
    assert [(o.name, o.rows) for o in report.outcomes] == [(f"{logs}/day02.jsonl", 1)]


def test_what_is_unchanged_is_listed_once_and_not_fetched(
    s3: str, s3_server: ObjectServer, logs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "logs"
    write_days(folder, 5)
    (folder / "hosts.csv").write_text("alias,host\n10.0.0.1,gpu-a01\n")
    (folder / "node-7.jsonl").write_text(STEP.format(100, 9))  # named as a host map is
    upload(folder, logs)
    prefix = bucket_of(logs)[1]
    with through_proxy(s3_server) as faults:
        asked: list[str] = []
        faults.refuse = lambda method, path: bool(asked.append(f"{method} {path}"))

        def ingest() -> tuple[IngestReport, int, list[str]]:
            asked.clear()
            report = fabricobs.ingest(logs, s3)
            of_logs = [each for each in asked if prefix in each.replace("%2F", "/")]
            lists = [each for each in of_logs if "list-type=2" in each]
            fetched = {each.rpartition("/")[2] for each in of_logs if each not in lists}
            return report, len(lists), sorted(fetched)

        assert ingest()[1:] == (1, sorted(path.name for path in folder.iterdir()))
        report, lists, fetched = ingest()
        assert (lists, fetched) == (1, [])
        assert all(outcome.unchanged for outcome in report.outcomes)
        with (folder / "day03.jsonl").open("a") as log:
            log.write(STEP.format(30, 3))
        put(folder, logs, "day03.jsonl")
        report, lists, fetched = ingest()
        assert (lists, fetched) == (1, ["day03.jsonl", "hosts.csv"])
        assert [o.path.name for o in report.outcomes if not o.unchanged] == ["day03.jsonl"]
        # Another machine has no copies, and its definitions another time.
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another"))
        report, lists, fetched = ingest()
        assert (lists, fetched) == (1, [])
        assert all(outcome.unchanged for outcome in report.outcomes)
    steps = rows_of(place_of(Path(s3)))["steps"]
    assert len(steps) == 7, "the grown object takes the place of what it was"


@contextmanager
def counted_fetches(server: ObjectServer, logs: str) -> Iterator[Counter[str]]:
    """Count how often the body of each object of the logs is asked for."""
    prefix = bucket_of(logs)[1]
    fetched: Counter[str] = Counter()
    with through_proxy(server) as faults:

        def count(method: str, path: str) -> bool:
            if method == "GET" and prefix in path and "list-type=2" not in path:
                fetched[path.rpartition("/")[2]] += 1
            return False

        faults.refuse = count
        yield fetched


@pytest.mark.parametrize("planned_apart", [False, True])
@pytest.mark.parametrize("workers", [1, 2])
def test_each_new_object_is_fetched_once(
    s3: str, s3_server: ObjectServer, logs: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, workers: int, planned_apart: bool,
) -> None:  # fmt: skip
    folder = tmp_path / "logs"
    write_days(folder, 20)
    (folder / "app.log").write_text(LINE.format(0) * 2)
    (folder / "app.log.1").write_text(LINE.format(0) * 2)  # a copy: its beginning is compared
    upload(folder, logs)
    if planned_apart:
        monkeypatch.setattr("fabricobs.ingestion._PARALLEL_FILES", 1)
    with counted_fetches(s3_server, logs) as fetched:
        report = fabricobs.ingest(logs, tmp_path / "store", workers=workers)
        days = {name: times for name, times in fetched.items() if name.startswith("day")}
        assert days == {f"day{day:02d}.jsonl": 1 for day in range(1, 21)}
        assert sum(outcome.rows for outcome in report.outcomes) == 20
        # A log that grows is compared with what it was, by the same copy.
        fetched.clear()
        with (folder / "day03.jsonl").open("a") as log:
            log.write(STEP.format(30, 3))
        put(folder, logs, "day03.jsonl")
        fabricobs.ingest(logs, tmp_path / "store", workers=workers)
        assert fetched == {"day03.jsonl": 1}
    assert not list(bucket_of(logs)[0].path.glob(".incoming/*"))


def test_copies_that_find_no_room_are_fetched_again(
    s3: str, s3_server: ObjectServer, logs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "logs"
    write_days(folder, 20)
    upload(folder, logs)
    one = (folder / "day01.jsonl").stat().st_size
    monkeypatch.setattr(remote, "_MOST_KEPT_BYTES", 5 * one)
    most: list[int] = []
    keep = remote.Keeper.keep

    def measured(self: remote.Keeper, copy: Path, size: int) -> Path | None:
        kept = keep(self, copy, size)
        most.append(sum(path.stat().st_size for path in self._folder.iterdir()))
        return kept

    monkeypatch.setattr(remote.Keeper, "keep", measured)
    with counted_fetches(s3_server, logs) as fetched:
        report = fabricobs.ingest(logs, tmp_path / "store", workers=1)
    assert [outcome.rows for outcome in report.outcomes] == [1] * 20
    assert max(most) <= 5 * one
    assert Counter(fetched.values()) == {1: 5, 2: 15}


def test_few_copies_lie_here_and_none_stays(
    s3: str, logs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_days(tmp_path / "logs", 30)
    upload(tmp_path / "logs", logs)
    bucket = bucket_of(logs)[0]
    most: list[int] = []
    copy = Objects.copy

    def counted(self: Objects, key: str, target: Path) -> None:
        copy(self, key, target)
        most.append(len(list(bucket.path.glob(".incoming/*/*/*.jsonl"))))

    monkeypatch.setattr(Objects, "copy", counted)
    for limit, expected in ((1 << 20, remote._AT_ONCE), (200, 3), (1, 1)):
        monkeypatch.setattr(remote, "_BYTES_AT_ONCE", limit)
        most.clear()
        fabricobs.ingest(logs, tmp_path / f"store{limit}", workers=1)
        assert 1 <= max(most) <= expected
        assert not list(bucket.path.glob(".incoming/*"))


def test_refusals_and_cut_answers_change_nothing(
    s3: str, s3_server: ObjectServer, logs: str, tmp_path: Path
) -> None:
    folder = tmp_path / logs.removeprefix("s3://")
    write_days(folder, 16)
    upload(folder, logs)
    with through_proxy(s3_server) as faults:
        requests, bodies = iter(range(10_000)), iter(range(10_000))
        faults.refuse = lambda _method, _path: next(requests) % 7 == 3
        faults.cut = lambda method, path: (
            method == "GET" and path.endswith(".jsonl") and next(bodies) % 5 == 0
        )
        fabricobs.ingest(logs, tmp_path / "store", workers=1)
        assert faults.refused > 2 and faults.cuts > 1
    fabricobs.ingest(folder, tmp_path / "local")
    assert rows_below(tmp_path / "store", logs) == rows_below(tmp_path / "local", str(folder))


class TestErrors:
    """One line that names the object or address and says what to do."""

    def test_an_object_that_goes_is_the_problem_of_one_file(
        self, s3: str, logs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_days(tmp_path / "logs", 3)
        upload(tmp_path / "logs", logs)
        listed = Objects.listed

        def then_gone(self: Objects, folder: str) -> object:
            found = listed(self, folder)
            self.delete([each["path"] for each in found if each["path"].endswith("day02.jsonl")])
            return found

        monkeypatch.setattr(Objects, "listed", then_gone)
        report = fabricobs.ingest(logs, tmp_path / "store")
        (problem,) = report.problems
        assert problem.name == f"{logs}/day02.jsonl"
        assert "gone since it was listed" in str(problem.problem)
        assert [o.rows for o in report.outcomes] == [1, 0, 1]

    @pytest.mark.parametrize(
        ("address", "words"),
        [
            (lambda logs: f"{logs}/nothing", "expected logs"),
            (lambda logs: "s3://no-such-bucket/logs", "no such bucket"),
        ],
    )
    def test_of_an_address_without_logs(
        self, s3: str, logs: str, fabricobs: Run, address: Callable[[str], str], words: str
    ) -> None:
        done = fabricobs("ingest", address(logs), "--store", s3)
        assert done.returncode == 3
        assert words in done.stderr and len(done.stderr.splitlines()) == 1
        assert address(logs).rpartition("/")[0] in done.stderr

    def test_of_a_server_that_does_not_answer(
        self, s3: str, logs: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("AWS_ENDPOINT", "http://127.0.0.1:1")
        monkeypatch.setattr("fabricobs.store.objects._RETRIES", 1)
        with pytest.raises(StorageError, match="AWS_ENDPOINT"):
            fabricobs.ingest(logs, s3)

    def test_an_input_that_is_the_store(self, s3: str) -> None:
        with pytest.raises(UserError, match=f"{s3}/below: is the store {s3}"):
            fabricobs.ingest(f"{s3}/below", s3)

    def test_a_store_in_the_input_is_left_out(self, s3: str, tmp_path: Path) -> None:
        write_days(tmp_path / "logs", 2)
        above = s3.removesuffix("/store")
        upload(tmp_path / "logs", above)
        for _ in range(2):
            report = fabricobs.ingest(above, s3)
            assert [o.path.name for o in report.outcomes] == ["day01.jsonl", "day02.jsonl"]
        assert report.left_out.stores == 1


def test_the_commands_of_the_readme(
    s3: str, sample_store: Path, tmp_path: Path, fabricobs: Run
) -> None:
    (block,) = re.findall(r"```sh\n([^`]*s3://[^`]*)```", (ROOT / "README.md").read_text())
    install, *commands = block.splitlines()
    assert install == "pip install 'fabricobs[s3]'" and len(commands) == 2
    put(ROOT / "sample_data" / "logs", "s3://bucket/logs")
    told = []
    for command in commands:
        program, *arguments = shlex.split(command, comments=True)
        assert program == "fabricobs"
        told.append(fabricobs(*arguments))
    assert (told[0].returncode, told[0].stderr) == (0, "")
    local = fabricobs("diagnose", "--store", shutil.copytree(sample_store, tmp_path / "local"))
    assert told[1].returncode == local.returncode == 2
    # Hosts are told apart by the folder above their logs.
    text, local_text = (" ".join(done.stdout.split()) for done in (told[1], local))
    assert text == local_text.replace("hosts in sample_data", "hosts in bucket")
