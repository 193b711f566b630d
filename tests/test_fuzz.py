"""Damaged inputs of all formats: read in bounded time, accounted for, without an error of ours.

`FABRICOBS_FUZZ=FIRST:COUNT` says which seeds; `make fuzz` reads 10,000.
"""

import os
import re
from pathlib import Path

import pytest
from fuzzing import catalogue, complaints, complaints_about

pytestmark = pytest.mark.slow

_FIRST, _COUNT = map(int, os.environ.get("FABRICOBS_FUZZ", "0:1000").split(":"))
_A_TEST = 50


@pytest.mark.parametrize(
    "seeds",
    [
        range(first, min(first + _A_TEST, _FIRST + _COUNT))
        for first in range(_FIRST, _FIRST + _COUNT, _A_TEST)
    ],
    ids=lambda seeds: f"seeds_from_{seeds.start}",
)
def test_a_damaged_input_is_read_in_bounds(seeds: range, tmp_path: Path) -> None:
    found = [complaint for seed in seeds for complaint in complaints(seed, tmp_path)]
    again = "to see one again: FABRICOBS_FUZZ=SEED:1 pytest tests/test_fuzz.py"
    assert not found, "\n".join([*found, again])


def test_a_step_beyond_64_bits_does_not_count_on(tmp_path: Path) -> None:
    for sample in catalogue().formats["deepspeed"].definition.sample:
        data = re.sub(rb"step=\d+", b"step=" + b"9" * 40, sample.data)
        assert complaints_about(sample.path, data, tmp_path) == []
