"""What collectives and benchmarks should reach, against what they did."""

import json
from pathlib import Path

import pytest

from conftest import Run

HEADER = {"id": "0x5e", "nnodes": 4, "n_ranks": 4}


def _logs(folder: Path, share: float, seed: int) -> None:
    """Logs of four hosts with one 400 Gb/s NIC; each call reaches `share` of its rate."""
    size = 2**30
    for rank in range(4):
        host = f"node{rank}"
        pid = 100 + rank
        before = f"{host}:{pid}:{pid} [0] NCCL INFO "
        log = (
            "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>",
            "NET/IB: [0] mlx5_0:uverbs0:1/IB provider=Mlx5 speed=400000 context=0x7f0 "
            "pciPath=/sys/devices/pci0000:00 ar=1",
            f"comm 0x5e rank {rank} nRanks 4 nNodes 4 localRanks 1 localRank 0 MNNVL 0",
            f"Channel 00/0 : {rank}[0] -> {(rank + 1) % 4}[0] [send] via NET/IB/0/GDRDMA",
        )
        (folder / f"{host}.log").write_text("".join(f"{before}{line}\n" for line in log))
        calls = []
        for number in range(60):
            noise = 1 + 0.02 * ((number * 7 + seed * 13 + rank) % 11) / 11
            took = 1.5 * size / (share * 50e9) * noise
            calls.append(
                {
                    "header": {**HEADER, "rank": rank},
                    "metadata": {
                        "inspector_output_format_version": "v4.0",
                        "dump_timestamp_us": 1772000000000000 + number * 1_000_000,
                        "hostname": host,
                        "pid": pid,
                    },
                    "coll_perf": {
                        "coll": "AllReduce",
                        "coll_sn": number,
                        "coll_msg_size_bytes": size,
                        "coll_exec_time_us": round(took * 1e6),
                        "coll_timing_source": "kernel_gpu",
                        "coll_algobw_gbs": size / took / 1e9,
                        "coll_busbw_gbs": 1.5 * size / took / 1e9,
                    },
                }
            )
        text = "".join(json.dumps(call) + "\n" for call in calls)
        (folder / f"{host}-pid{pid}.log").write_text(text)


@pytest.mark.parametrize(
    ("share", "seed", "found"), [(0.27, 1, True), (0.2, 2, True), (0.78, 3, False)]
)
def test_a_job_slow_from_its_first_call_is_found(
    fabricobs: Run, tmp_path: Path, share: float, seed: int, found: bool
) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    _logs(logs, share, seed)
    fabricobs("ingest", str(logs), "--store", str(tmp_path / "s"))
    said = fabricobs("diagnose", "--store", str(tmp_path / "s"), "--format", "json")
    findings = json.loads(said.stdout)["findings"]
    assert ("slow_collectives" in [each["kind"] for each in findings]) == found
    if found:
        (finding,) = (each for each in findings if each["kind"] == "slow_collectives")
        assert f"{share:.0%}" in finding["title"] or f"{share - 0.01:.0%}" in finding["title"]
