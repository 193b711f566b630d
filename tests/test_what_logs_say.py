"""What NCCL's warnings, checks of benchmarks and flight recorders say by themselves."""

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import Run

pytestmark = pytest.mark.slow

BOTH = "time   algbw   busbw #wrong"
HEADS = (
    "# nThread 1 nGpus 1 minBytes 1073741824 maxBytes 1073741824 step: 2(factor) iters: 20",
    "# Using devices",
)
COLUMNS = (
    "#",
    f"#       size         count      type   redop    root     {BOTH}     {BOTH}",
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)",
)


def diagnosed(fabricobs: Run, folder: Path) -> dict[str, Any]:
    fabricobs("ingest", str(folder), "--store", str(folder / "store"))
    said = fabricobs("diagnose", "--store", str(folder / "store"), "--format", "json")
    told: dict[str, Any] = json.loads(said.stdout)
    return told


def of_kind(told: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [finding for finding in told["findings"] if finding["kind"] == kind]


def bootstrap(hosts: list[str]) -> list[str]:
    return [
        f"{host}:{70 + i}:75 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.{i + 1}<0>"
        for i, host in enumerate(hosts)
    ]


def not_answered(host: int, peer: int, hosts: list[str]) -> str:
    return (
        f"{hosts[host]}:{70 + host}:75 [0] transport/net_ib.cc:1312 NCCL WARN NET/IB: Got "
        f"completion from peer 10.0.0.{peer + 1}<41000> with status=12 opcode=32 len=0 vendor err "
        "129 (Send)"
    )


@pytest.mark.parametrize("seed", range(4))
def test_the_host_that_no_other_reaches_is_named(fabricobs: Run, tmp_path: Path, seed: int) -> None:
    chance = np.random.default_rng(seed)
    hosts = [
        f"n{number:03d}"
        for number in chance.choice(900, size=int(chance.integers(4, 9)), replace=False)
    ]
    bad = int(chance.integers(len(hosts)))
    others = [i for i in range(len(hosts)) if i != bad]
    tell = chance.choice(others, size=int(chance.integers(2, len(others) + 1)), replace=False)
    lines = bootstrap(hosts) + [not_answered(int(i), bad, hosts) for i in tell]
    (tmp_path / "nccl.log").write_text("\n".join(lines) + "\n")
    (found,) = of_kind(diagnosed(fabricobs, tmp_path), "nccl_failure")
    assert [entity["host"] for entity in found["entities"]] == [hosts[bad]]
    assert found["severity"] == "high"


def test_of_two_that_do_not_reach_each_other_neither_is_accused(
    fabricobs: Run, tmp_path: Path
) -> None:
    hosts = ["n1", "n2", "n3"]
    lines = [*bootstrap(hosts), not_answered(0, 1, hosts)]
    (tmp_path / "nccl.log").write_text("\n".join(lines) + "\n")
    (found,) = of_kind(diagnosed(fabricobs, tmp_path), "nccl_failure")
    assert "its peer n2 does not answer" in found["title"]
    assert [entity["host"] for entity in found["related"]] == ["n2"]


def test_processes_that_end_after_a_time_out_are_no_failure(fabricobs: Run, tmp_path: Path) -> None:
    closed = (
        "n1:70:75 [0] misc/socket.cc:49 NCCL WARN socketProgress: Connection closed by remote peer "
        "n2<51159>"
    )
    (tmp_path / "nccl.log").write_text(f"{closed}\n")
    assert of_kind(diagnosed(fabricobs, tmp_path), "nccl_failure")
    timed_out = (
        "[rank0]:[E101 10:00:00.000000000 ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught "
        "collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
        "Timeout(ms)=600000) ran for 600010 milliseconds before timing out."
    )
    again = tmp_path / "again"
    again.mkdir()
    (again / "nccl.log").write_text(f"{closed}\n{timed_out}\n")
    assert not of_kind(diagnosed(fabricobs, again), "nccl_failure")


def benchmark(hosts: list[str], wrong: int = 0, bus: float = 180.0) -> str:
    """The output of all_reduce_perf with one message of 1 GiB."""
    ranks = [
        f"#  Rank {rank:2d} Group  0 Pid {900 + rank:6d} on {host:>10s} device  0 [0x00] NVIDIA GB9"
        for rank, host in enumerate(hosts)
    ]
    time = 2 * (len(hosts) - 1) / len(hosts) * 2**30 / bus / 1e3
    took = f"{time:7.1f}  {2**30 / time / 1e3:6.2f}  {bus:6.2f}"
    row = f"  1073741824     268435456     float     sum      -1  {took}  {wrong:5d}  {took}      0"
    return "\n".join([*HEADS, *ranks, *COLUMNS, row, f"# Avg bus bandwidth    : {bus:.2f}", ""])


@pytest.mark.parametrize("wrong", [0, 1, 4448])
def test_wrong_results_of_a_benchmark_are_critical(
    fabricobs: Run, tmp_path: Path, wrong: int
) -> None:
    (tmp_path / "a.txt").write_text(benchmark(["n1", "n2", "n3", "n4"], wrong))
    (tmp_path / "b.txt").write_text(benchmark(["n5", "n6", "n7", "n8"]))
    found = of_kind(diagnosed(fabricobs, tmp_path), "wrong_results")
    assert [finding["severity"] for finding in found] == (["critical"] if wrong else [])
    if wrong:
        assert "in 1 of 2 runs" in found[0]["title"]


@pytest.mark.parametrize(("share", "severity"), [(0.5, "medium"), (0.93, "low"), (0.98, None)])
def test_a_run_slower_than_alike_runs_is_found(
    fabricobs: Run, tmp_path: Path, share: float, severity: str | None
) -> None:
    for number, bus in enumerate((180.0, 179.0, 180.0 * share)):
        hosts = [f"n{number}{i}" for i in range(4)]
        (tmp_path / f"run{number}.txt").write_text(benchmark(hosts, bus=bus))
    found = of_kind(diagnosed(fabricobs, tmp_path), "slow_benchmark")
    assert [finding["severity"] for finding in found] == ([severity] if severity else [])
    if severity:
        assert f"{1 - share:.0%} less than the best alike run" in found[0]["title"]
        assert "n20" in found[0]["title"]


def dump(rank: int, ranks: int, last: int, open_: int) -> bytes:
    """A flight recorder's dump: `open_` of the collectives of one group have not ended."""
    started = 1_772_000_000_000_000_000
    entries = [
        {
            "record_id": seq,
            "pg_id": 0,
            "process_group": ("0", "DATA_PARALLEL_GROUP"),
            "collective_seq_id": seq,
            "p2p_seq_id": 0,
            "op_id": seq,
            "profiling_name": "nccl:all_reduce",
            "time_created_ns": started + seq * 1_000_000 + rank,
            "input_sizes": [[1024]],
            "input_dtypes": ["Float"],
            "output_sizes": [[1024]],
            "output_dtypes": ["Float"],
            "state": "completed" if seq <= last - open_ else "scheduled",
            "time_discovered_started_ns": None,
            "time_discovered_completed_ns": None,
            "retired": seq <= last - open_,
            "timeout_ms": 600000,
            "is_p2p": False,
            "frames": [],
        }
        for seq in range(last - 19, last + 1)
    ]
    status = {
        "0": {
            "last_enqueued_collective": last,
            "last_started_collective": -1,
            "last_completed_collective": last - open_,
        }
    }
    config = {
        "0": {"name": "0", "desc": "DATA_PARALLEL_GROUP", "ranks": json.dumps([*range(ranks)])}
    }
    return pickle.dumps(
        {"version": "2.9", "entries": entries, "pg_config": config, "pg_status": status}
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("unfinished", [0, 12])
def test_a_rank_that_does_not_end_what_its_peers_end_is_stuck(
    fabricobs: Run, tmp_path: Path, seed: int, unfinished: int
) -> None:
    chance = np.random.default_rng(seed)
    ranks = int(chance.integers(4, 12))
    bad, last = int(chance.integers(ranks)), int(chance.integers(100, 9000))
    for rank in range(ranks):
        open_ = int(chance.integers(0, 3)) + (unfinished if rank == bad else 0)
        (tmp_path / f"_dump_{rank}").write_bytes(dump(rank, ranks, last, open_))
    found = of_kind(diagnosed(fabricobs, tmp_path), "hang")
    if not unfinished:
        assert found == []
        return
    assert [entity["rank"] for entity in found[0]["entities"]] == [bad]
    assert "stuck" in found[0]["title"]


def test_published_dumps_name_the_ranks_whose_gpus_were_made_to_fail(
    fabricobs: Run, corpus: Path, tmp_path: Path
) -> None:
    logs = corpus / "steps" / "flight_recorder_gpu_error_1st"
    fabricobs("ingest", str(logs), "--store", str(tmp_path / "store"))
    said = fabricobs("diagnose", "--store", str(tmp_path / "store"), "--format", "json")
    (found,) = of_kind(json.loads(said.stdout), "hang")
    assert [entity["rank"] for entity in found["entities"]] == [12, 14]
