"""What the rings of NCCL's logs tell of NICs and networks, of whole logs and of cut ones."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from conftest import Rows
from fabricobs.diagnosis.run import diagnose

pytestmark = pytest.mark.slow
Make = Callable[[Rows], Path]


def ring(
    seed: int,
    *,
    whole: bool,
    crossed: bool = False,
    by_sockets: bool = False,
    fewest: int = 3,
    most: int = 8,
) -> tuple[Rows, str]:
    """Return the logs of a job whose ring visits all hosts, and the name of one drawn host.

    Where `crossed` that host's GPUs use the NICs of its other half, where `by_sockets` it has no
    RDMA. Only `whole` logs have the lines in which processes name their rank, network and NICs.
    """
    chance = np.random.default_rng(seed)
    hosts, gpus = int(chance.integers(fewest, most + 1)), int(chance.choice([4, 8]))
    nics = gpus // int(chance.integers(1, 3))
    odd = int(chance.integers(hosts))
    names = [f"node{host:02d}" for host in range(hosts)]

    def network(*ends: int) -> str:
        return "Socket" if by_sockets and odd in ends else "IB"

    def process(host: int, gpu: int) -> dict[str, object]:
        return {"host": names[host], "pid": 100 + gpu, "cuda_device": gpu, "file_id": "n"}

    def connection(host: int, gpu: int, side: str, other: int, channel: int) -> dict[str, object]:
        net = network(host, other)
        nic = (channel + nics // 2 * (crossed and host == odd)) % nics
        told = {"kind": "connection", "transport": "NET", "network": net, "side": side}
        index = 0 if net == "Socket" else nic
        return process(host, gpu) | told | {"nic_index": index, "gdr": net == "IB"}

    channels = []
    for channel in range(nics):
        entry = channel * gpus // nics
        leave = entry + 1 if nics < gpus else entry ^ 1
        for host in range(hosts):
            before, after = (host - 1) % hosts, (host + 1) % hosts
            channels.append(connection(host, entry, "receive", before, channel))
            channels.append(connection(host, leave, "send", after, channel))
    rows: Rows = {"nccl_channels": [{**row, "line": n + 50} for n, row in enumerate(channels)]}
    if whole:
        size = {"comm": "0x1", "comm_id": "0x1", "nranks": hosts * gpus}
        places = [(host, gpu) for host in range(hosts) for gpu in range(gpus)]
        rows["nccl_ranks"] = [
            process(host, gpu)
            | size
            | {"rank": host * gpus + gpu, "nvml_device": gpu, "network": network(host), "line": 1}
            for host, gpu in places
        ]
        rows["nccl_nics"] = [
            process(host, gpu) | {"nic_index": nic, "nic": f"mlx5_{nic}", "plugin": "IB", "line": 2}
            for host, gpu in places
            if network(host) == "IB"
            for nic in range(nics)
        ]
    return rows, names[odd]


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_a_host_whose_gpus_send_through_other_nics(
    make_store: Make, seed: int, whole: bool
) -> None:
    rows, host = ring(seed, whole=whole, crossed=True)
    (finding,) = diagnose(make_store(rows)).findings
    assert (finding.kind, [e.host for e in finding.entities]) == ("nic_affinity", [host])


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_of_two_hosts_the_one_is_odd_that_uses_its_nics_out_of_order(
    make_store: Make, seed: int, whole: bool
) -> None:
    """All NICs of one host of two were those of the other socket: "All 16 ranks use IB", ok."""
    rows, host = ring(seed, whole=whole, crossed=True, fewest=2, most=2)
    (finding,) = diagnose(make_store(rows)).findings
    assert (finding.kind, [e.host for e in finding.entities]) == ("nic_affinity", [host])


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_of_two_hosts_alike_none_is_odd(make_store: Make, seed: int, whole: bool) -> None:
    rows, _ = ring(seed, whole=whole, fewest=2, most=2)
    assert diagnose(make_store(rows)).findings == ()


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_a_host_by_sockets_is_alone_and_its_neighbours_are_not_accused(
    make_store: Make, seed: int, whole: bool
) -> None:
    rows, host = ring(seed, whole=whole, by_sockets=True)
    found = diagnose(make_store(rows))
    assert [f.kind for f in found.findings] == ["socket_fallback"]
    assert [e.host for e in found.findings[0].entities] == [host]
    assert found.verdict.questions[4].evidence == f"NCCL uses sockets instead of RDMA on {host}."


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_a_ring_through_equal_nics_accuses_nobody(make_store: Make, seed: int, whole: bool) -> None:
    rows, _ = ring(seed, whole=whole)
    assert diagnose(make_store(rows)).findings == ()


def test_processes_that_all_call_their_gpu_0_are_not_compared(make_store: Make) -> None:
    rows, _ = ring(1, whole=False, crossed=True)
    for row in rows["nccl_channels"]:
        row["cuda_device"] = 0
    assert diagnose(make_store(rows)).findings == ()
