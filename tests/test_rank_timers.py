"""Timers that Megatron prints of each rank: they tell a slow rank where no step record does."""

from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from conftest import Rows
from fabricobs.diagnosis.findings import Finding
from fabricobs.diagnosis.run import diagnose
from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session

pytestmark = pytest.mark.slow

START = datetime(2026, 3, 2, 20)


def write_log(folder: Path, draw: np.random.Generator, slow: int | None, since: int) -> int:
    """Write the log of a job, and what Slurm kept of it; return the number of its steps."""
    ranks, steps = int(draw.integers(8, 40)), int(draw.integers(80, 160))
    longer = draw.uniform(1.3, 2.0)
    usual, noise = draw.uniform(100, 4_000), draw.uniform(0.005, 0.03)
    lines, now = ["training ..."], START
    for step in range(1, steps + 1):
        compute = usual * draw.normal(1, noise, ranks)
        if slow is not None and step >= since:
            compute[slow] *= longer
        sync = compute.max() - compute + 0.2 * usual
        total = float(compute.max() + 0.2 * usual)
        now += timedelta(milliseconds=total)
        lines.append(
            f" [{now:%Y-%m-%d %H:%M:%S.%f}] iteration {step:8d}/{steps:8d} | consumed samples: "
            f"{step * ranks:12d} | elapsed time per iteration (ms): {total:.1f} | "
            f"global batch size: {ranks:5d} | lm loss: 2.0E+00 |"
        )
        lines.append("times across ranks (ms):")
        for name, values in (("forward-backward", compute), ("all-grads-sync", sync)):
            lines.append(f"  {name}:")
            lines += [f"     rank {rank:2d}: {value:.2f}" for rank, value in enumerate(values)]
    folder.mkdir()
    (folder / "train.log").write_text("\n".join(lines) + "\n")
    if draw.random() < 0.5:
        kept = "".join(f"{ranks - 1}: {line}\n" for line in lines)
        (folder / "slurm-481516.out").write_text(kept)
    return steps


def stragglers(folder: Path, tmp_path: Path) -> list[Finding]:
    ingest([folder], Store(tmp_path / "store"), Options(job="pretrain"))
    found = diagnose(tmp_path / "store")
    return [finding for finding in found.findings if finding.kind == "straggler"]


@pytest.mark.parametrize("seed", range(4))
def test_the_rank_whose_forward_and_backward_takes_longer_is_named(
    tmp_path: Path, seed: int
) -> None:
    """The timers were stored and not judged: "no computation time by rank"."""
    draw = np.random.default_rng(seed)
    slow, since = int(draw.integers(8)), int(draw.choice([1, 40, 60]))
    write_log(tmp_path / "logs", draw, slow, since)
    (finding,) = stragglers(tmp_path / "logs", tmp_path)
    assert [entity.rank for entity in finding.entities] == [slow]
    assert finding.start_step is not None and finding.start is not None
    assert abs(finding.start_step - since) <= 10


@pytest.mark.parametrize("seed", range(3))
def test_ranks_that_are_alike_are_not_accused(tmp_path: Path, seed: int) -> None:
    write_log(tmp_path / "logs", np.random.default_rng(100 + seed), None, 0)
    assert stragglers(tmp_path / "logs", tmp_path) == []


def test_what_a_record_tells_beside_the_timers_is_kept(
    make_store: Callable[[Rows], Path],
) -> None:
    told = {"file_id": "log", "line": 1, "job": "pretrain", "step": 1, "rank": 0}
    timed = told | {"phase": "forward-backward", "duration_ms": 250.0}
    step = told | {"step_time_ms": 400.0, "comm_ms": 60.0, "data_ms": 7.0}
    with closing(open_session(make_store({"phases": [timed], "steps": [step]}))) as session:
        rows = session.sql("SELECT own_ms, comm_ms, data_ms FROM rank_work").fetchall()
    assert rows == [(250.0, 60.0, 7.0)]
