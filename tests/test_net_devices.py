"""Counters of a host's network devices: /proc/net/dev and the tree of sysfs tell the same."""

import io
import tarfile
from pathlib import Path

import numpy as np
import pytest

import fabricobs
from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.store.parts import Store

KEPT = {
    "rx_bytes": "rx_bytes",
    "rx_packets": "rx_packets",
    "rx_errors": "rx_errors",
    "rx_dropped": "rx_discards",
    "tx_bytes": "tx_bytes",
    "tx_packets": "tx_packets",
    "tx_errors": "tx_errors",
    "tx_dropped": "tx_discards",
}
Drawn = dict[str, dict[str, int]]


def drawn(seed: int) -> Drawn:
    draw = np.random.default_rng([seed, 24])
    names = draw.permutation(["eth0", "ens3f0np0", "enp26s0f1np1", "bond0", "ib3"])
    devices = [str(name) for name in names[: int(draw.integers(1, 6))]]
    return {
        name: {key: int(draw.integers(0, int(draw.choice([9, 10**6, 1 << 62])))) for key in KEPT}
        for name in ["lo", *devices]
    }


def proc(devices: Drawn, *, tight: bool) -> str:
    lines = [
        "Inter-|   Receive                                                |  Transmit",
        " face |bytes    packets errs drop fifo frame compressed multicast"
        "|bytes    packets errs drop fifo colls carrier compressed",
    ]
    for name, counts in devices.items():
        told = list(counts.values())
        cells = [*told[:4], 0, 0, 0, 7, *told[4:], 0, 0, 0, 0]
        blank = "" if tight else " "
        lines.append(f"{name:>6}:{blank}{' '.join(f'{cell:>7}' for cell in cells).lstrip()}")
    return "\n".join(lines) + "\n"


def tree(devices: Drawn, path: Path) -> None:
    with tarfile.open(path, "w") as archive:
        for name, counts in devices.items():
            for key, count in {**counts, "rx_crc_errors": 0, "collisions": 0}.items():
                data = f"{count}\n".encode()
                entry = tarfile.TarInfo(f"sys/class/net/{name}/statistics/{key}")
                entry.size, entry.mtime = len(data), 1772442000
                archive.addfile(entry, io.BytesIO(data))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("source", ["proc", "tree"])
def test_devices_of_the_kernel_are_ports_of_the_host(
    tmp_path: Path, seed: int, source: str
) -> None:
    devices = drawn(seed)
    folder = tmp_path / "logs" / "gpu-a07"
    folder.mkdir(parents=True)
    if source == "proc":
        (folder / "proc-net-dev").write_text(proc(devices, tight=bool(seed % 2)))
    else:
        tree(devices, folder / "sys.tar")
    report = ingest([tmp_path / "logs"], Store(tmp_path / "store"), Options())
    unread = [problem for problem in report.problems if "/net/lo/" not in str(problem)]
    assert not unread
    columns = ", ".join(f"max({column}) AS {column}" for column in KEPT.values())
    rows = fabricobs.open(tmp_path / "store").sql(
        f"SELECT device, port, {columns} FROM port_samples GROUP BY device, port ORDER BY port"
    )
    assert rows.fetchall() == [
        ("gpu-a07", name, *devices[name].values()) for name in sorted(devices) if name != "lo"
    ]
