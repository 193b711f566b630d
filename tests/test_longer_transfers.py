"""Longer steps without a word of their work: collectives of the same messages tell the network."""

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import Rows
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.model import load_models
from fabricobs.diagnosis.run import REST, trends_of

START = datetime(2026, 3, 2, 9)
Make = Callable[[Rows], Path]


def run(
    seed: int, *, transfers: float, bytes_: float = 1.0, seen: float = 1.0, calls: int = 1
) -> Rows:
    """Steps of rank 0 that take 15 % longer from the middle on, with the collectives of all ranks.

    From then on transfers are `transfers` times as long, messages `bytes_` times as large, and
    `calls` as many; a share `seen` of the ranks writes records, of every n-th call.
    """
    chance = np.random.default_rng(seed)
    ranks, steps, every = int(chance.choice([4, 8, 16])), 120, int(chance.choice([1, 2, 5]))
    groups = int(chance.choice([1, 2]))
    usual_ms, share = float(chance.uniform(500, 4000)), float(chance.uniform(0.25, 0.6))
    rows: Rows = {"steps": [], "collectives": []}
    now, seq = START, 0
    for step in range(1, steps + 1):
        late = step > steps // 2
        long_ms = usual_ms * (1.15 if late else 1.0) * float(chance.normal(1, 0.005))
        pure_us = 1000 * usual_ms * share * (transfers if late else 1.0)
        now += timedelta(milliseconds=long_ms)
        rows["steps"].append(
            {"file_id": "s", "line": step, "step": step, "rank": 0, "ts": now,
             "ts_source": "inline", "step_time_ms": long_ms}
        )  # fmt: skip
        for _ in range(calls if late else 1):
            seq += 1
            if seq % every:
                continue
            for group in range(groups):
                waits = np.abs(chance.normal(0, 0.02 * pure_us, ranks))
                waits -= waits.min()
                rows["collectives"] += [
                    {"file_id": f"i{group}-{rank}", "line": seq, "ts": now,
                     "ts_source": "derived", "comm_id": f"0x{group + 1:016x}", "rank": rank,
                     "nranks": ranks, "nodes": ranks, "op": "AllReduce", "seq": seq,
                     "host": f"n{rank}", "pid": group, "timing_source": "kernel_gpu",
                     "bytes": round(10**9 * (bytes_ if late else 1.0)),
                     "duration_us": pure_us + float(waits[rank])}
                    for rank in range(round(ranks * seen))
                ]  # fmt: skip
    return rows


def network_part(store: Path) -> float | None:
    (trend,) = trends_of(Evidence(store), load_models()[REST])
    (slowdown,) = trend.slowdowns
    return slowdown.network_part


@pytest.mark.parametrize("seed", range(6))
def test_transfers_that_take_the_added_time_are_the_network(make_store: Make, seed: int) -> None:
    share = network_part(make_store(run(seed, transfers=1.6)))
    assert share is not None and share > 0.8


@pytest.mark.parametrize(
    "but",
    [
        {"transfers": 1.0},  # computation, or more work
        {"transfers": 1.6, "bytes_": 1.5},  # larger messages: more work
        {"transfers": 1.6, "calls": 2},  # more of them: more work
        {"transfers": 1.6, "seen": 0.5},  # who is missing may have come late
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_what_may_be_more_work_stays_open(make_store: Make, seed: int, but: dict[str, Any]) -> None:
    assert network_part(make_store(run(seed, **but))) is None
