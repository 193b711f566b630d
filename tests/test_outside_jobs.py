"""What no job used: a link that was down for a moment, on a host beside the jobs."""

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from conftest import Rows
from fabricobs.diagnosis.run import diagnose

START = datetime(2026, 3, 2, 9)
Make = Callable[[Rows], Path]


def rows(sick_host: str, downs: dict[int, int]) -> Rows:
    """Steps of two jobs on two hosts each, and counters of NICs; `downs` are by minute."""
    hosts = {"alpha": ("node0", "node1"), "beta": ("node2", "node3")}
    names = [*(host for own in hosts.values() for host in own), "spare"]
    counted: dict[str, int] = dict.fromkeys(names, 3)
    samples = []
    for minute in range(61):
        counted[sick_host] += downs.get(minute, 0)
        samples += [
            {
                "file_id": f"c{name}", "line": minute, "format": "sysfs", "device": name,
                "port": "mlx5_0", "ts": START + timedelta(minutes=minute), "ts_source": "inline",
                "link_downed": counted[name], "rx_bytes": minute * 10**11,
            }
            for name in names
        ]  # fmt: skip
    steps = [
        {
            "file_id": f"t{job}{rank}", "line": step, "job": job, "step": step, "rank": rank,
            "host": host, "ts": START + timedelta(seconds=3 * step), "ts_source": "inline",
            "step_time_ms": 3000.0 + (step * 7 + rank) % 11,
        }
        for job, own in hosts.items()
        for rank, host in enumerate(own)
        for step in range(1, 1200)
    ]  # fmt: skip
    return {"port_samples": samples, "steps": steps}


@pytest.mark.parametrize(
    ("host", "downs", "severity"),
    [
        ("spare", {20: 1}, "low"),
        ("spare", {20: 1, 40: 1}, "low"),
        ("node1", {20: 1, 40: 1}, "medium"),
    ],
)
def test_a_link_beside_the_jobs_that_is_up_again_slowed_nobody(
    make_store: Make, host: str, downs: dict[int, int], severity: str
) -> None:
    found = diagnose(make_store(rows(host, downs)))
    told = [(f.kind, f.severity) for f in found.findings if f.severity != "info"]
    assert told == [("link_flap", severity)]
