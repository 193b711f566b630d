"""NCCL_DEBUG=INFO output of every host, its ranks interleaved as on a shared pipe."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fabricobs.simulate import workload
from fabricobs.simulate.cluster import (
    GPUS_PER_HOST,
    HOSTS,
    NIC_GBPS,
    RANKS,
    Cluster,
    Nic,
    host_name,
)
from fabricobs.simulate.output import write_lines
from fabricobs.simulate.processes import communicator_hash, pointer, process_ids
from fabricobs.simulate.rings import CHANNELS, host_order, neighbours, ring
from fabricobs.simulate.routes import QUEUE_PAIRS
from fabricobs.simulate.run import stream

LOGGED_STEPS = 20  # a site turns the COLL subsystem on for a short look only
VERSION = "2.30.3+cuda13.0"

_RANK_LIST_LENGTH = 127  # NCCL prints a ring into a buffer of 128 bytes and cuts the rest
_TREE_PARENTS = (None, 2, 0, 2)  # host above each host in the tree between hosts

# Numeric variables are printed with a full stop, texts without.
_ENVIRONMENT = {
    "NCCL_IB_HCA": ",".join(f"mlx5_{index}" for index in range(GPUS_PER_HOST)),
    "NCCL_IB_GID_INDEX": "3.",
    "NCCL_IB_TC": "106.",
    "NCCL_IB_QPS_PER_CONNECTION": f"{QUEUE_PAIRS}.",
    "NCCL_IB_SPLIT_DATA_ON_QPS": "1.",
}


@dataclass(frozen=True, slots=True)
class _Process:
    """What all lines of one rank share; pointers are addresses inside the process."""

    nics: tuple[Nic, ...]
    local: int
    pid: int
    commit: str
    communicator: int
    buffers: tuple[int, ...]
    stream: int
    contexts: tuple[int, ...]
    bootstrap_seconds: float

    @property
    def nic(self) -> Nic:
        return self.nics[self.local]

    @property
    def out_of_band(self) -> str:
        return f"bond0:10.20.0.{11 + self.nic.host}<0>"

    def line(self, text: str, thread: int = 0) -> str:
        """A full line; thread 0 is the process's main thread."""
        prefix = f"{self.nic.host_name}:{self.pid}:{self.pid + thread} [{self.local}]"
        return f"{prefix} NCCL INFO {text}"


def write_nccl(directory: Path, cluster: Cluster, *, seed: int) -> None:
    """Write one file a host: the start-up of its 8 ranks and the calls of the first steps."""
    for host in range(HOSTS):
        random = stream(seed, 400 + host)
        processes = [_process(cluster, host, local, random, seed) for local in range(GPUS_PER_HOST)]
        logs = [[*_start_up(p), *_connections(p), *_calls(p)] for p in processes]
        write_lines(directory / f"{host_name(host)}.log", _interleave(logs, random))


def _process(
    cluster: Cluster, host: int, local: int, random: np.random.RandomState, seed: int
) -> _Process:
    return _Process(
        nics=cluster.nics_of_host(host),
        local=local,
        pid=int(process_ids(seed)[host * GPUS_PER_HOST + local]),
        commit=communicator_hash(seed),
        communicator=pointer(random, 0x55D000000000),
        buffers=tuple(pointer(random, 0x7F2000000000) for _ in workload.COLLECTIVES),
        stream=pointer(random, 0x55E000000000),
        contexts=tuple(pointer(random, 0x55F000000000) for _ in range(GPUS_PER_HOST)),
        bootstrap_seconds=float(random.uniform(0.08, 0.16)),
    )


def _start_up(process: _Process) -> Iterator[str]:
    """From the first line to the rings and trees, in NCCL's order."""
    nic, main, init = process.nic, process.line, 40 * GPUS_PER_HOST
    yield main("NCCL_SOCKET_IFNAME set by environment to bond0")
    yield main(f"Bootstrap: Using {process.out_of_band}")
    yield main("cudaDriverVersion 13000")
    yield main(f"NCCL version {VERSION}")
    for name, value in _ENVIRONMENT.items():
        yield main(f"{name} set by environment to {value}", init)
    devices = " ".join(f"[{n.local}]{n.device}:1/RoCE" for n in process.nics)
    yield main(f"NET/IB : Using {devices} [RO]; OOB {process.out_of_band}", init)
    for device in process.nics:
        yield main(_device(device, process.contexts[device.local]), init)
    yield main("Initialized NET plugin IB", init)
    yield main("Assigned NET plugin IB to comm", init)
    yield main("Using network IB", init)
    yield main(f"DMA-BUF is available on GPU device {nic.local}", init)
    identity = _identity(process)
    yield main(f"[Rank {nic.rank}] ncclCommInitRank {identity} - Init START", init)
    create, ring_seconds = process.bootstrap_seconds * 0.1, process.bootstrap_seconds * 0.4
    yield main(
        f"Bootstrap timings total {process.bootstrap_seconds:.6f} (create {create:.6f}, "
        f"send 0.000310, recv 0.000402, ring {ring_seconds:.6f}, delay 0.000000)",
        init,
    )
    for device in process.nics:
        yield main(
            f"NET/IB : GPU Direct RDMA Enabled for HCA {device.local} '{device.device}'", init
        )
    yield main(
        f"comm 0x{process.communicator:x} rank {nic.rank} nRanks {RANKS} nNodes {HOSTS} "
        f"localRanks {GPUS_PER_HOST} localRank {nic.local} MNNVL 0",
        init,
    )
    if nic.rank == 0:
        for channel in range(CHANNELS):
            yield main(_ring(channel), init)
    yield main(_trees(nic.rank), init)
    yield main("P2P Chunksize set to 131072", init)
    yield main(
        f"{CHANNELS} coll channels, 0 collnet channels, 0 nvls channels, {CHANNELS} p2p channels, "
        "2 p2p channels per peer",
        init,
    )
    yield main(f"ncclCommInitRank {identity} - Init COMPLETE", init)
    total = 1.9 + process.bootstrap_seconds
    yield main(
        f"Init timings - ncclCommInitRank: rank {nic.rank} nranks {RANKS} total {total:.2f} "
        f"(kernels 0.31, alloc 0.92, bootstrap {process.bootstrap_seconds:.2f}, allgathers 0.02, "
        "topo 0.41, graphs 0.03, connections 0.15, rest 0.06)",
        init,
    )


def _identity(process: _Process) -> str:
    nic = process.nic
    return (
        f"comm 0x{process.communicator:x} rank {nic.rank} nranks {RANKS} cudaDev {nic.local} "
        f"nvmlDev {nic.local} busId {nic.gpu_bus_id} commId {process.commit}"
    )


def _device(nic: Nic, context: int) -> str:
    path = f"/sys/devices/pci{nic.pci_address[:7]}/{nic.pci_address}"
    return (
        f"NET/IB: [{nic.local}] {nic.device}:uverbs{nic.local}:1/RoCE provider=Mlx5 "
        f"speed={NIC_GBPS * 1000} context=0x{context:x} pciPath={path} ar=0"
    )


def _ring(channel: int) -> str:
    order = ring(channel)
    start = order.index(0)
    ranks = "".join(f" {rank:3d}" for rank in order[start:] + order[:start])
    return f"Channel {channel:02d}/{CHANNELS:02d} :{ranks}"[:_RANK_LIST_LENGTH]


def _trees(rank: int) -> str:
    return "Trees " + " ".join(f"[{c}] {_tree(c, rank)}" for c in range(CHANNELS))


def _tree(channel: int, rank: int) -> str:
    """Children, rank and parent: a chain inside each host, a tree over the chains' heads."""
    host, local = divmod(rank, GPUS_PER_HOST)
    order = host_order(channel, 0)
    position = order.index(local)
    children = [-1, -1, -1]
    if position + 1 < GPUS_PER_HOST:
        children[0] = host * GPUS_PER_HOST + order[position + 1]
    if position > 0:
        parent = host * GPUS_PER_HOST + order[position - 1]
    else:
        above = _TREE_PARENTS[host]
        parent = -1 if above is None else above * GPUS_PER_HOST + local
        below = [other for other, up in enumerate(_TREE_PARENTS) if up == host]
        for slot, other in enumerate(below, start=1):
            children[slot] = other * GPUS_PER_HOST + local
    return "/".join(str(child) for child in children) + f"->{rank}->{parent}"


def _connections(process: _Process) -> Iterator[str]:
    """Ring connections, made at the first call; a hop between hosts uses the sender's own NIC."""
    rank, connecting = process.nic.rank, 50 * GPUS_PER_HOST
    for channel in range(CHANNELS):
        before, _ = neighbours(channel, rank)
        if before // GPUS_PER_HOST != rank // GPUS_PER_HOST:
            hop = f"Channel {channel:02d}/0 : {_hop(before, rank)} [receive]"
            yield process.line(f"{hop} via NET/IB/{process.local}/GDRDMA", connecting)
    for channel in range(CHANNELS):
        _, after = neighbours(channel, rank)
        hop = f"Channel {channel:02d}/0 : {_hop(rank, after)}"
        if after // GPUS_PER_HOST == rank // GPUS_PER_HOST:
            yield process.line(f"{hop} via P2P/CUMEM/read", connecting)
        else:
            yield process.line(f"{hop} [send] via NET/IB/{process.local}/GDRDMA", connecting)
    yield process.line("Connected all rings, use ring PXN 0 GDR 1", connecting)
    yield process.line("Connected all trees", connecting)


def _hop(source: int, target: int) -> str:
    return f"{source}[{source % GPUS_PER_HOST}] -> {target}[{target % GPUS_PER_HOST}]"


def _calls(process: _Process) -> Iterator[str]:
    operation_count = 0
    for _ in range(LOGGED_STEPS):
        for collective, buffer in zip(workload.COLLECTIVES, process.buffers, strict=True):
            own_part = collective.message_bytes * process.nic.rank
            send = buffer + (own_part if collective.name == "AllGather" else 0)
            yield process.line(
                f"{collective.name}: opCount {operation_count:x} sendbuff 0x{send:x} "
                f"recvbuff 0x{buffer:x} count {collective.count} datatype {collective.datatype} "
                f"op {collective.operation} root 0 comm 0x{process.communicator:x} "
                f"[nranks={RANKS}] stream 0x{process.stream:x}"
            )
            operation_count += 1


def _interleave(logs: list[list[str]], random: np.random.RandomState) -> Iterator[str]:
    """Merge the ranks' lines: each keeps its order, and all finish at about the same time."""
    moments = [np.sort(random.random_sample(len(log))) for log in logs]
    lines = [
        (moment, line)
        for log, times in zip(logs, moments, strict=True)
        for moment, line in zip(times, log, strict=True)
    ]
    return (line for _, line in sorted(lines, key=lambda pair: float(pair[0])))
