"""An input that has not changed is known at once; one that may have is looked at again."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fabricobs import content, planning, unchanged
from fabricobs.ingestion import ingest
from fabricobs.inputs import IngestReport, Options, discover
from fabricobs.store.parts import Store

LINE = "h:1:1 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 busId 1000 - Init START\n"


@pytest.fixture(autouse=True)
def settled_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unchanged, "_SETTLED_NS", 0)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    (folder / "below").mkdir(parents=True)
    (folder / "a.log").write_text(LINE)
    (folder / "below" / "b.log").write_text(LINE.replace("rank 0", "rank 1"))
    ingest([folder], Store(tmp_path / "store"), Options())
    return folder


def known_report(logs: Path, options: Options | None = None) -> IngestReport | None:
    store = logs.parent / "store"
    options = options or Options()
    return unchanged.report_of(discover([logs], store), unchanged.load(store, options))


def test_the_report_is_that_of_looking_again(logs: Path) -> None:
    report = known_report(logs)
    assert report is not None
    (logs.parent / "store" / ".seen.json").unlink()
    assert report == ingest([logs], Store(logs.parent / "store"), Options())
    assert [outcome.unchanged for outcome in report.outcomes] == [True, True]


def test_other_bytes_with_the_old_size_and_time_are_seen(logs: Path) -> None:
    path = logs / "a.log"
    stat = path.stat()
    path.write_text(LINE.replace("rank 0", "rank 7"))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert path.stat().st_size == stat.st_size
    assert known_report(logs) is None


def test_a_renamed_log_is_digested_once(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(logs.parent / "store")
    (logs / "a.log").rename(logs / "a.log.1")
    digested: list[str] = []
    digest = planning.digest

    def noting(path: Path, length: int | None = None) -> str:
        digested.append(path.name)
        return digest(path, length)

    monkeypatch.setattr(planning, "digest", noting)
    for number in range(3):
        (logs / "a.log").write_text(
            "".join(LINE.replace("0x1", f"0x{n}2") for n in range(number + 1))
        )
        ingest([logs], store, Options())
    assert digested.count("a.log.1") == 1
    assert digested.count("a.log") >= 3


def test_a_file_that_is_new_or_gone(logs: Path) -> None:
    (logs / "c.log").write_text(LINE)
    assert known_report(logs) is None
    (logs / "c.log").unlink()
    assert known_report(logs) is not None
    (logs / "a.log").unlink()
    assert known_report(logs) is not None, "what is gone from the input stays in the store"


def test_other_options_definitions_or_batches(logs: Path, tmp_path: Path) -> None:
    assert known_report(logs, Options(job="other")) is None
    own = tmp_path / "content" / "ingest"
    own.mkdir(parents=True)
    shutil.copy(content.shipped("ingest") / "nccl_debug.toml", own)
    elsewhere = Options(content=(tmp_path / "content",))
    assert known_report(logs, elsewhere) is not None, "the same definition in another place"
    with (own / "nccl_debug.toml").open("a") as definition:
        definition.write("# mine\n")
    assert known_report(logs, elsewhere) is None
    batch = next(path for path in (tmp_path / "store").iterdir() if path.name[0] not in "._")
    shutil.rmtree(batch)
    assert known_report(logs) is None


def test_notes_that_cannot_be_read_count_for_nothing(logs: Path) -> None:
    (logs.parent / "store" / ".seen.json").write_text("{")
    assert known_report(logs) is None


def test_a_file_changed_a_moment_ago_is_not_noted(
    logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unchanged, "_SETTLED_NS", 3600 * 10**9)
    assert known_report(logs) is None


def test_a_second_ingest_keeps_what_the_first_noted(logs: Path, tmp_path: Path) -> None:
    other = tmp_path / "c.log"
    other.write_text(LINE.replace("rank 0", "rank 2"))
    ingest([other], Store(tmp_path / "store"), Options())
    noted = unchanged.load(tmp_path / "store", Options())
    assert sorted(noted) == sorted(map(str, [logs / "a.log", logs / "below" / "b.log", other]))


def test_nothing_heavy_is_imported_to_find_nothing_to_do() -> None:
    heavy = "{'numpy', 'pyarrow', 'polars', 'numba', 'duckdb', 'rich'}"
    code = (
        "import sys, fabricobs.unchanged, fabricobs.inputs, fabricobs.report.account\n"
        f"assert not {heavy} & set(sys.modules), sorted({heavy} & set(sys.modules))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
