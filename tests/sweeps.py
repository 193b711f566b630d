"""Drawn sweeps of nccl-tests: a log a run, one rail a run, hosts below leaves; one may be slow."""

import random
from pathlib import Path

LEAVES, RAILS, GPUS = 4, 8, 8


def write_sweep(
    folder: Path,
    seed: int,
    bad: str = "",
    effect: float = 0.05,
    runs: int = 64,
    hosts: int = 32,
    by_chance: float = 0.05,
) -> str:
    """Write logs of runs on pairs or groups of hosts; return the name of the slow part.

    `bad` is the type of the slow part: host, nic, switch, unit or none. A run with it reaches
    `effect` less. Noise is 1 %, and `by_chance` of the runs are up to a fifth slower for no reason.
    The hosts of a unit have a leaf for each rail, which is no other unit's.
    """
    chance = random.Random(seed)
    names = [f"node{number:02d}" for number in range(hosts)]
    parts = {"host": names, "nic": [f"mlx5_{r}" for r in range(RAILS)]}
    parts["switch"] = parts["unit"] = [f"leaf{number}" for number in range(LEAVES)]
    slow = chance.choice(parts[bad]) if bad else ""
    members = chance.choice((2, 4))
    lines = ["host,switch"] + [f"{h},leaf{n * LEAVES // hosts}" for n, h in enumerate(names)]
    if bad == "unit":
        rails = [f"mlx5_{r},leaf{{}}-{r}" for r in range(RAILS)]
        lines = ["host,nic,switch"]
        lines += [
            f"{h},{r.format(n * LEAVES // hosts)}" for n, h in enumerate(names) for r in rails
        ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "hosts.csv").write_text("\n".join(lines) + "\n")
    order: list[str] = []
    for number in range(runs):
        if len(order) < members:
            order = chance.sample(names, hosts)
        own, order = sorted(order[:members]), order[members:]
        rail = f"mlx5_{chance.randrange(RAILS)}"
        leaves = {f"leaf{names.index(host) * LEAVES // hosts}" for host in own}
        busbw = 46.0 * chance.lognormvariate(0, 0.01)
        busbw *= 1 - effect * (slow in {*own, *leaves, rail})
        if chance.random() < by_chance:
            busbw *= chance.uniform(0.8, 1)
        (folder / f"run{number:02d}.out").write_text(_output(own, rail, busbw))
    return slow


def _output(hosts: list[str], rail: str, busbw: float) -> str:
    ranks = [(rank, hosts[rank // GPUS]) for rank in range(GPUS * len(hosts))]
    factor = 2 * (len(ranks) - 1) / len(ranks)
    rows = []
    for size in (2**30, 2**32):
        took = factor * size / busbw / 1e3
        half = f"{took:.1f} {busbw / factor:.2f} {busbw:.2f} 0"
        rows.append(f"{size:12} {size // 4:12} float sum -1 {half} {half}")
    return "\n".join(
        [
            f"{hosts[0]}:100:100 [0] NCCL INFO NCCL_IB_HCA set by environment to {rail}.",
            "# nccl-tests version 2.17.6 (0f1e2d3) nccl-headers=22807 nccl-library=22808",
            "# Collective test starting: all_reduce_perf",
            "# nThread 1 nGpus 1 minBytes 1073741824 maxBytes 4294967296 step: 4(factor)",
            *(
                f"#  Rank {rank:2} Group  0 Pid {1000 + rank} on {host} device {rank % GPUS:2} "
                f"[0x{rank % GPUS:02x}] NVIDIA H100 80GB HBM3"
                for rank, host in ranks
            ),
            "#       size         count      type   redop    root     time   algbw   busbw #wrong"
            "     time   algbw   busbw #wrong",
            *rows,
            "# Out of bounds values : 0 OK",
            "",
        ]
    )
