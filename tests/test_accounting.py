"""No line disappears: lines = parsed + ignored + unparsed, whatever is in a file."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import mutate
from fabricobs.formats.context import Context
from fabricobs.formats.reading import read_file
from fabricobs.formats.recognition.catalogue import load_catalogue
from fabricobs.formats.rows import Rows, sampled

CATALOGUE = load_catalogue()


@pytest.mark.parametrize("name", CATALOGUE.formats)
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
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
    # A whole file's lines are its records.
    if recognised.syntax != "whole":
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
