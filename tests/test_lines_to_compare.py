"""The line beside a culprit's: its median peer's at that moment; of a whole job, one of before."""

import json
import random
import statistics
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from conftest import Rows
from fabricobs.diagnosis.findings import Entity, Finding
from fabricobs.report.explanation import explain
from fabricobs.report.source_files import SourceFiles

START = datetime(2026, 3, 2, 9)
RANKS_OF_HOST = 4


def finding(entity: Entity, query: str, first: int) -> Finding:
    begin = START + timedelta(seconds=10 * first)
    return Finding(
        kind="straggler", entities=(entity,), severity="high", confidence=0.8, title="It is slow",
        explanation="", start=begin, start_step=first, detected_at=begin + timedelta(seconds=30),
        query=query,
    )  # fmt: skip


def stepping(folder: Path, draw: random.Random, slow: int, first: int) -> Rows:
    """Steps of all ranks, written as lines of JSON, some of them far longer than is shown."""
    hosts = [f"gpu{n:02}" for n in range(draw.randrange(2, 6))]
    padding = "x" * draw.choice([0, 400])
    rows, files = [], []
    for number, host in enumerate(hosts):
        path = folder / f"{host}.jsonl"
        lines = []
        for step in range(first + 20):
            for rank in range(number * RANKS_OF_HOST, (number + 1) * RANKS_OF_HOST):
                longer = 1.5 if rank == slow and step >= first else 1.0
                compute = round(longer * draw.uniform(990, 1010), 2)
                record = {"note": padding, "step": step, "rank": rank, "compute_ms": compute}
                lines.append(json.dumps(record))
                rows.append(
                    {
                        "file_id": host, "line": len(lines), "format": "step_records",
                        "ts": START + timedelta(seconds=10 * step), "step": step, "rank": rank,
                        "host": host, "compute_ms": compute, "step_time_ms": 2000.0, "job": "run",
                    }
                )  # fmt: skip
        path.write_text("\n".join(lines) + "\n")
        files.append({"file_id": host, "path": str(path), "formats": "step_records"})
    draw.shuffle(rows)
    return {"files": files, "steps": rows}


def read(told: SourceFiles) -> list[tuple[dict[str, float], str]]:
    """The record of each line and the text that is shown of it."""
    records = []
    for _, place, text in told.lines:
        path, _, line = place.rpartition(":")
        records.append((json.loads(Path(path).read_text().splitlines()[int(line) - 1]), text))
    return records


@pytest.mark.parametrize("seed", range(12))
def test_a_slow_rank_stands_beside_its_median_peer(
    make_store: Callable[[Rows], Path], tmp_path: Path, seed: int
) -> None:
    draw = random.Random(seed)
    slow, first = draw.randrange(2 * RANKS_OF_HOST), draw.randrange(10, 40)
    rows = stepping(tmp_path, draw, slow, first)
    host = f"gpu{slow // RANKS_OF_HOST:02}"
    own = finding(Entity("rank", rank=slow, host=host), "slow_rank_steps", first)
    (told,) = explain(own, make_store(rows)).source.files
    (culprit, text), (peer, beside) = read(told)
    assert culprit["rank"] == slow
    assert culprit["step"] == peer["step"]
    others = [
        row["compute_ms"]
        for row in rows["steps"]
        if row["step"] == culprit["step"] and row["rank"] != slow
    ]
    assert peer["compute_ms"] == statistics.median_low(others)
    # What is shown of a long line is the part with the value.
    assert str(culprit["compute_ms"]) in text
    assert str(peer["compute_ms"]) in beside
    assert [words for words, _, _ in told.lines] == [
        f"compute_ms {culprit['compute_ms']:,.0f}", f"its median peer, {round_(peer)}"
    ]  # fmt: skip


def round_(peer: dict[str, float]) -> str:
    value = peer["compute_ms"]
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


@pytest.mark.parametrize("seed", range(4))
def test_what_reads_alike_there_is_left_out(
    make_store: Callable[[Rows], Path], tmp_path: Path, seed: int
) -> None:
    """Of a rank that computes longer the collectives it does not delay tell nothing."""
    draw = random.Random(seed)
    rows = stepping(tmp_path, draw, 2, 20)
    took = [draw.uniform(1000, 1004), draw.uniform(1000, 1004)]
    rows["files"].append({"file_id": "i", "path": "/logs/inspector", "formats": "nccl_inspector"})
    rows["collectives"] = [
        {
            "file_id": "i", "line": rank, "ts": START + timedelta(seconds=230), "job": "run",
            "comm_id": "c", "op": "AllReduce", "seq": 9, "global_rank": rank, "rank": rank,
            "host": "gpu00", "duration_us": took[rank > 2],
        }
        for rank in range(RANKS_OF_HOST)
    ]  # fmt: skip
    own = finding(Entity("rank", rank=2, host="gpu00"), "slow_rank_steps", 20)
    store = make_store(rows)
    assert [each.formats for each in explain(own, store).source.files] == ["step_records"]


@pytest.mark.parametrize("seed", range(6))
def test_a_whole_job_stands_beside_itself_before(
    make_store: Callable[[Rows], Path], tmp_path: Path, seed: int
) -> None:
    draw = random.Random(seed)
    first = draw.randrange(10, 40)
    job = finding(Entity("job", job="run"), "pace_of_steps", first)
    store = make_store(stepping(tmp_path, draw, -1, first))
    (told,) = explain(job, store).source.files
    (during, _), (before, _) = read(told)
    assert during["step"] >= first > before["step"]
    assert during["rank"] == before["rank"]
    assert told.lines[1][0].startswith("before it, ")
    # Of what is so from the first step on there is no before: who takes most stands beside it.
    (told,) = explain(replace(job, from_first_step=True), store).source.files
    (during, _), (most, _) = read(told)
    assert during["step"] == most["step"]
    assert told.lines[1][0].startswith("the most at that moment, ")


@pytest.mark.parametrize("seed", range(6))
def test_a_key_of_a_document_is_shown_with_its_value(
    make_store: Callable[[Rows], Path], tmp_path: Path, seed: int
) -> None:
    draw = random.Random(seed)
    late, furthest = draw.randrange(8), draw.randrange(20, 900)
    files, events = [], []
    for rank in range(8):
        path = tmp_path / f"nccl_trace_rank_{rank}"
        count = furthest - (rank == late)
        entries = [{"record_id": n, "collective_seq_id": n} for n in range(draw.randrange(3, 99))]
        status = {"0": {"last_enqueued_collective": count, "last_completed_collective": count}}
        path.write_text(json.dumps({"entries": entries, "pg_status": status}))
        files.append({"file_id": f"{rank}", "path": str(path), "formats": "flight_recorder"})
        events.append(
            {
                "file_id": f"{rank}", "line": len(entries) + 1, "rank": rank, "job": "run",
                "kind": "group_progress", "process_group": "0", "last_enqueued": count,
            }
        )  # fmt: skip
    missing = replace(finding(Entity("rank", rank=late), "hang_progress", 9), start=None)
    store = make_store({"files": files, "nccl_events": events})
    (told,) = explain(missing, store).source.files
    (words, _, text), (beside, _, other) = told.lines
    assert (words, beside) == (f"last_enqueued {furthest - 1}", f"its median peer, {furthest}")
    assert f'"last_enqueued_collective": {furthest - 1},' in text
    assert f'"last_enqueued_collective": {furthest},' in other
