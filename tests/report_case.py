"""A small cluster whose logs hold markup, and a big one: what the tests of the report draw."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from fabricobs.diagnosis.findings import (
    Clock,
    CounterBreak,
    Coverage,
    Diagnosis,
    Driver,
    Entity,
    Finding,
    Question,
    Segment,
    Verdict,
    WhatIf,
)
from fabricobs.store.arrow import table_schema
from fabricobs.store.parts import Store

EVIL = "<script>alert(1)</script>"
LEAF, SPINE, JOB = f"leaf{EVIL}", "spine01", f"job{EVIL}"
START = datetime(2026, 3, 2, 9, 0)
STEPS, RANKS, LINKS, MINUTES = 120, 16, 4, 12
FAULT_STEP = 60

Row = dict[str, Any]


def host(rank: int) -> str:
    return f"node{rank // 8}{EVIL}"


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def step_rows() -> list[Row]:
    return [
        {
            "job": JOB,
            "ts": at(5 * step),
            "step": step,
            "rank": rank,
            "host": host(rank),
            "step_time_ms": 1500.0 if step >= FAULT_STEP else 1000.0,
            "compute_ms": 900.0 if rank == 3 and step >= FAULT_STEP else 600.0 + rank,
        }
        for step in range(STEPS)
        for rank in range(RANKS)
    ]


def collective_rows() -> list[Row]:
    return [
        {
            "job": JOB,
            "ts": at(5 * seq),
            "comm_id": "c0",
            "rank": rank,
            "nranks": RANKS,
            "nodes": 2,
            "host": host(rank),
            "op": "AllReduce",
            "seq": seq,
            "bytes": 1 << 30,
            "duration_us": 40_000.0 + 100 * rank,
            "timing_source": "kernel_gpu",
        }
        for seq in range(STEPS)
        for rank in range(RANKS)
    ]


def port(link: int) -> str:
    return f"Ethernet{link}{EVIL}"


def sample_rows() -> list[Row]:
    share = [1, 1, 1, 1]
    sent = [0] * LINKS
    rows: list[Row] = []
    for minute in range(MINUTES):
        share = [2, 2, 0, 0] if minute > MINUTES // 2 else share
        for link in range(LINKS):
            sent[link] += share[link] * 10**10
            rows.append(
                {
                    "ts": at(60 * minute),
                    "device": LEAF,
                    "port": port(link),
                    "format": "f",
                    "tx_bytes": sent[link],
                }
            )
    return rows


def make_store(path: Path, **tables: list[Row]) -> Path:
    store = Store(path)
    store.create()
    parts = {
        name: pa.Table.from_pylist(rows, schema=table_schema(name)) for name, rows in tables.items()
    }
    store.append("x", parts)
    return path


def evil_store(path: Path) -> Path:
    """A store whose every name holds markup: a slow rank, and a leaf that polarises."""
    cables = [(port(link), SPINE) for link in range(LINKS)] + [("Ethernet99", host(0))]
    return make_store(
        path,
        steps=step_rows(),
        collectives=collective_rows(),
        port_samples=sample_rows(),
        links=[{"device": LEAF, "port": p, "remote_device": far} for p, far in cables],
        counter_info=[
            {
                "format": "f",
                "table_name": "port_samples",
                "counter": "tx_bytes",
                "width": 64,
                "overflow": "wrap",
                "kind": "counter",
            }
        ],
        files=[
            {"file_id": "1", "formats": "megatron,capture", "lines": 9, "parsed": 9, "unparsed": 0},
            {"file_id": "2", "formats": "", "lines": 1234, "parsed": 0, "unparsed": 1234},
        ],
    )


def finding(kind: str, *entities: Entity, **rest: Any) -> Finding:
    return Finding(
        kind=kind,
        entities=entities,
        severity="high",
        confidence=0.75,
        title=f"{kind} of {EVIL}",
        explanation=f"An explanation with {EVIL} & more.",
        families=("timing", "counters"),
        start=at(5 * FAULT_STEP),
        end=at(5 * STEPS),
        start_step=FAULT_STEP,
        end_step=STEPS - 1,
        detected_at=at(400),
        loss_share=0.333,
        gpu_hours_lost=1.25,
        drivers=(
            Driver("computation per step", 900.0, 608.0, "ms", 12.5, 638.4, f"Source {EVIL}"),
            Driver("p of hashing", 1.3e-22, None, "", None, 0.001, "Monte Carlo"),
        ),
        query="SELECT 1 AS raw",
        refuted_by=(f"It moves {EVIL}.",),
        next_steps=(f"Look at {EVIL}: `show it -x`, `top`.",),
        **rest,
    )


def evil_diagnosis() -> Diagnosis:
    """A diagnosis of it with three findings."""
    victims = tuple(Entity("host", host=f"node{number}") for number in range(9))
    ports = tuple(Entity("port", switch=LEAF, port=port(link)) for link in range(2))
    questions = (
        Question("Is a rank slow?", "problem", f"Rank 3 on {EVIL}."),
        Question("Is a link sick?", "ok", "No error counter rises."),
        Question("Did NCCL choose well?", "unknown", "No logs.", "NCCL_DEBUG=INFO logs."),
    )
    return Diagnosis(
        verdict=Verdict(f"Rank 3 on {EVIL} is slow.", questions, True),
        findings=(
            finding("straggler", Entity("rank", rank=3, host=host(3), job=JOB), related=victims),
            finding("ecmp_skew", Entity("switch", switch=LEAF), related=ports),
            finding("throughput_drop"),
        ),
        segments=(
            Segment(0, FAULT_STEP - 1, at(0), 1000.0),
            Segment(FAULT_STEP, STEPS - 1, at(5 * FAULT_STEP), 1500.0),
        ),
        coverage=Coverage(
            (("files", "2"), ("hosts", EVIL)),
            (f"cables: {EVIL}",),
            (
                Clock("device", LEAF, 2.5, 0.2, corrected=True),
                Clock("host", host(0), None, 30.0, corrected=False),
            ),
            (CounterBreak(LEAF, "rx_errors", "reset", 2, 3, at(60)),),
        ),
        what_if=(WhatIf(Entity("host", host=f"slow{EVIL}"), 0.2, "all steps", "its stage"),),
    )


def big_store(path: Path) -> Path:
    """A cluster of 1,024 GPUs: 128 hosts on 16 leaves, a rail each, below 32 spines."""
    steps = [
        {
            **{
                "job": JOB,
                "ts": at(5 * step),
                "step": step,
                "rank": rank,
                "host": f"node{rank // 8}",
            },
            "step_time_ms": 1e3,
            "compute_ms": 6e2 + (rank * 7919 + step * 104_729) % 97,
        }
        for step in range(60)
        for rank in range(1024)
    ]
    long = [{"job": "long", "step": step, "step_time_ms": 1e3 + step % 7} for step in range(20_000)]
    cables = [
        {
            **{"device": f"leaf{node // 64 * 8 + nic}", "port": f"Ethernet{node % 64}"},
            **{"remote_device": f"node{node}", "remote_port": f"mlx5_{nic}"},
        }
        for node in range(128)
        for nic in range(8)
    ] + [
        {
            **{"device": f"leaf{leaf}", "port": f"Ethernet{64 + spine}"},
            **{"remote_device": f"spine{spine}", "remote_port": f"Ethernet{leaf}"},
        }
        for leaf in range(16)
        for spine in range(32)
    ]
    return make_store(path, steps=steps + long, links=cables)
