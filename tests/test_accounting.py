"""No line disappears: lines = parsed + ignored + unparsed, whatever is in a file."""

import json
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import Run, mutate
from fabricobs.formats.context import Context
from fabricobs.formats.reading import read_file
from fabricobs.formats.recognition.catalogue import load_catalogue
from fabricobs.formats.rows import Rows
from fabricobs.formats.shapes import sampled

CATALOGUE = load_catalogue()


@pytest.mark.parametrize("name", CATALOGUE.formats)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_a_damaged_file_is_read_and_accounted_for(name: str, seed: int, tmp_path: Path) -> None:
    samples = CATALOGUE.formats[name].definition.sample
    sample = samples[seed % len(samples)]
    path = tmp_path / "damaged"
    path.write_bytes(mutate(sample.data, seed))
    recognised = CATALOGUE.recognise(path.read_bytes(), f"/logs/{sample.path}")
    if not recognised.formats:
        return
    rows = Rows()
    result = read_file(path, recognised, Context("f"), rows, lambda: None)
    tally = result.tally
    assert tally.lines == tally.parsed + tally.ignored + tally.unparsed
    assert tally.unclaimed <= tally.unparsed
    assert result.rows == sum(part.num_rows for _, part in rows.drain())
    # A whole file's lines are its records; behind a mark of UTF-16 two bytes are a character.
    if recognised.syntax != "whole" and not path.read_bytes().startswith(b"\xff\xfe"):
        assert tally.lines >= path.read_bytes().count(b"\n")


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        (
            "export WANDB_API_KEY=0af31c; python train.py",
            "export WANDB_API_KEY=***; python train.py",
        ),
        ('"AWS_SECRET_ACCESS_KEY": "x/Y+z",', '"AWS_SECRET_ACCESS_KEY": "***",'),
        ("HF_TOKEN: hf_abc", "HF_TOKEN: ***"),
        ("tokens: 12 | key: loss", "tokens: 12 | key: loss"),
    ],
)
def test_a_kept_line_gives_no_secret_away(line: str, kept: str) -> None:
    assert sampled(line) == kept


def ingested(fabricobs: Run, tmp_path: Path, name: str, data: bytes) -> CompletedProcess[str]:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / name).write_bytes(data)
    return fabricobs("ingest", tmp_path / "logs", "--store", tmp_path / "store")


@pytest.mark.parametrize("length", [4_095, 4_096, 400_000])
def test_a_long_last_line_without_a_newline_is_unread(
    fabricobs: Run, tmp_path: Path, length: int
) -> None:
    ingested(fabricobs, tmp_path, "deep.json", b"[" * length)
    told = fabricobs(
        "sql", "SELECT lines, ignored, unparsed FROM files", "--store", tmp_path / "store",
        "--format", "csv",
    )  # fmt: skip
    assert told.stdout.splitlines()[1] == "1,0,1"


def test_records_whose_lines_end_with_a_carriage_return_alone_are_refused(
    fabricobs: Run, tmp_path: Path
) -> None:
    data = b"step,rank,step_time_ms\r1,0,10.5\r2,0,10.5\r"
    done = ingested(fabricobs, tmp_path, "steps.csv", data)
    assert done.returncode == 3
    assert "end with a carriage return alone" in done.stderr


def test_a_flight_recorder_of_wrong_types_is_told(fabricobs: Run, tmp_path: Path) -> None:
    dump = {"version": "2.4", "pg_config": [], "pg_status": 7, "entries": "none"}
    done = ingested(fabricobs, tmp_path, "nccl_trace_rank_0", json.dumps(dump).encode())
    assert "3 lines unread" in done.stdout
    assert "entries is no list" in done.stdout


def test_a_cell_of_a_flight_recorder_of_a_wrong_type_is_told(
    fabricobs: Run, tmp_path: Path
) -> None:
    entry = {"profiling_name": "nccl:all_reduce", "duration_ms": "fast", "collective_seq_id": 1.5}
    dump = {"version": "2.4", "pg_config": {}, "pg_status": {}, "entries": [entry]}
    done = ingested(fabricobs, tmp_path, "nccl_trace_rank_0", json.dumps(dump).encode())
    assert done.returncode == 1
    assert "seq 1.5 is no whole number" in done.stderr
    assert "duration_us fast is no number" in done.stderr
