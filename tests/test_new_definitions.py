"""A definition that is new reaches the files that are in the store already, and no others."""

from pathlib import Path

import pytest

from fabricobs.formats.recognition.catalogue import Catalogue
from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session

OURS = "ourtrainer: step 7 took 250 ms\n"
NCCL = "h:1:1 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 busId 1000 - Init START\n"
DEFINITION = """
title = "Lines of our own trainer"
reader = "lines"
[detect]
text = '{mark}: step \\d+ took'
[[line]]
template = '{mark}: step {{step:int}} took {{step_time_ms:number}} ms'
table = "steps"
[[sample]]
text = "{mark}: step 7 took 250 ms"
[sample.rows]
steps = [{{ step = 7, step_time_ms = 250.0 }}]
"""


def define(folder: Path, mark: str) -> Path:
    (folder / "ingest").mkdir(parents=True, exist_ok=True)
    (folder / "ingest" / f"{mark}.toml").write_text(DEFINITION.format(mark=mark))
    return folder


def stored(store: Path) -> list[tuple[object, ...]]:
    with open_session(store, "files") as session:
        files = session.sql("SELECT parse_filename(path), formats, rows FROM files ORDER BY 1, 2")
        return files.fetchall()


@pytest.mark.parametrize("text", [OURS, NCCL + OURS], ids=["known to none", "of another format"])
def test_a_file_that_a_new_definition_claims_is_read_again(text: str, tmp_path: Path) -> None:
    logs, store = tmp_path / "logs", tmp_path / "store"
    logs.mkdir()
    (logs / "ours.log").write_text(text)
    (logs / "nccl.log").write_text(NCCL)
    ingest([logs], Store(store), Options())
    before = stored(store)
    content = define(tmp_path / "content", "ourtrainer")
    report = ingest([logs], Store(store), Options(content=(content,)))
    assert [outcome.unchanged for outcome in report.outcomes] == [True, False]
    nccl, ours = stored(store)
    assert nccl == before[0]
    assert "ourtrainer" in str(ours[1])
    with open_session(store, "steps") as session:
        assert session.sql("SELECT step, step_time_ms FROM steps").fetchall() == [(7, 250.0)]
    again = ingest([logs], Store(store), Options(content=(content,)))
    assert all(outcome.unchanged for outcome in again.outcomes)


def test_a_definition_that_claims_nothing_reads_nothing_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs, store = tmp_path / "logs", tmp_path / "store"
    logs.mkdir()
    for number in range(50):
        (logs / f"node{number}.log").write_text(NCCL.replace("rank 0", f"rank {number}"))
    ingest([logs], Store(store), Options())
    batches = sorted(path.name for path in store.glob("*/files.parquet"))
    options = Options(content=(define(tmp_path / "content", "another"),))
    report = ingest([logs], Store(store), options)
    assert all(outcome.unchanged for outcome in report.outcomes)
    assert sorted(path.name for path in store.glob("*/files.parquet")) == batches

    # Noted with these definitions, no file is looked at again because another one is new.
    looked: list[str] = []
    recognise = Catalogue.recognise

    def counted(self: Catalogue, ends: bytes, path: str) -> object:
        looked.append(path)
        return recognise(self, ends, path)

    monkeypatch.setattr(Catalogue, "recognise", counted)
    monkeypatch.setattr("fabricobs.unchanged._SETTLED_NS", 0)
    ingest([logs], Store(store), options)
    looked.clear()
    (logs / "new.log").write_text(OURS)
    ingest([logs], Store(store), options)
    assert {Path(path).name for path in looked} == {"new.log"}


def test_what_is_taken_back_and_given_again_loses_no_file(tmp_path: Path) -> None:
    """A file read as it was before last has its id of then; of the two readings the newer stays."""
    logs, store = tmp_path / "logs", tmp_path / "store"
    logs.mkdir()
    for name, text in (("ours.log", NCCL + OURS), ("more.log", OURS), ("nccl.log", NCCL)):
        (logs / name).write_text(text)
    content = define(tmp_path / "content", "ourtrainer")
    without, given, elsewhere = (
        Options(),
        Options(content=(content,)),
        Options(content=(content,), zone="Asia/Tokyo"),
    )
    seen: dict[str, list[tuple[object, ...]]] = {}
    for options in (without, given, without, given, elsewhere, given, without, elsewhere):
        report = ingest([logs], Store(store), options)
        files = stored(store)
        assert [str(name) for name, *_ in files] == ["more.log", "nccl.log", "ours.log"]
        assert seen.setdefault(str(options), files) == files
        again = ingest([logs], Store(store), options)
        assert all(outcome.unchanged for outcome in again.outcomes), report
        assert stored(store) == files
