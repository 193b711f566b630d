"""NCCL_DEBUG=INFO output of every host, its ranks interleaved as on a shared pipe."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fabricobs.simulator.cluster import Integers
from fabricobs.simulator.fabric import Fabric
from fabricobs.simulator.facts import Hang, LinkFlap
from fabricobs.simulator.links import flap_moments
from fabricobs.simulator.output import clock, write_lines
from fabricobs.simulator.randomness import Random, stream
from fabricobs.simulator.run import Run
from fabricobs.simulator.shapes import GPUS_PER_HOST
from fabricobs.simulator.world import World
from fabricobs.simulator.writers.nccl_hosts import NcclHost, nccl_host
from fabricobs.simulator.writers.processes import (
    Communicator,
    communicators,
    host_offset,
    job_folder,
    memberships,
    pointer,
    process_ids,
)
from fabricobs.simulator.writers.rings import build_rings, build_trees

VERSION = "2.30.3+cuda13.0"
LOGGED_STEPS = 5  # a site turns the COLL subsystem on for a short look only
LOGGED_RANKS = 128  # and not where so many ranks would print

_RING_LINE_LENGTH = 127  # NCCL prints a ring into a buffer of 128 bytes and ends it with dots
_INIT_THREAD, _CONNECT_THREAD, _ASYNC_THREAD = 320, 400, 480  # above the main thread's id


@dataclass(frozen=True, slots=True)
class _Joined:
    """One process's part in a communicator; `pointer` is its address there."""

    group: Communicator
    rank: int
    pointer: int

    def identity(self, host: NcclHost, local: int) -> str:
        nic = host.nics[local]
        return (
            f"comm 0x{self.pointer:x} rank {self.rank} nranks {self.group.size} cudaDev {local} "
            f"nvmlDev {local} busId {nic.gpu_bus_id} commId {self.group.comm_id}"
        )


@dataclass(frozen=True, slots=True)
class _Wiring:
    """Rings [C, N] of a communicator, the place of each member on them, and its trees."""

    rings: Integers
    places: Integers
    parents: Integers
    children: Integers
    local: Integers
    hosts: Integers
    sites: tuple[NcclHost, ...]

    @property
    def channels(self) -> int:
        return len(self.rings)

    def ring_line(self, channel: int) -> str:
        order = self.rings[channel]
        start = int(self.places[channel, 0])
        width = len(str(len(order) - 1))
        ranks = "".join(f" {rank:{width}d}" for rank in np.roll(order, -start))
        line = f"Channel {channel:02d}/{self.channels:02d} :{ranks}"
        if len(line) <= _RING_LINE_LENGTH:
            return line
        return line[: _RING_LINE_LENGTH - 3] + "..."

    def tree_line(self, rank: int) -> str:
        trees = []
        for channel in range(self.channels):
            children = "/".join(str(child) for child in self.children[channel, rank])
            trees.append(f"[{channel}] {children}->{rank}->{self.parents[channel, rank]}")
        return "Trees " + " ".join(trees)

    def connections(self, rank: int) -> Iterator[str]:
        """The ring's connections; a hop between hosts uses the NIC of the GPU at either end."""
        route = self.sites[rank].route(int(self.local[rank]))
        hops = []
        for channel in range(self.channels):
            order, place = self.rings[channel], int(self.places[channel, rank])
            before, after = int(order[place - 1]), int(order[(place + 1) % len(order)])
            if self.hosts[before] != self.hosts[rank]:
                hop = f"Channel {channel:02d}/0 : {self._hop(before, rank)}"
                yield f"{hop} [receive] via {route}"
            hop = f"Channel {channel:02d}/0 : {self._hop(rank, after)}"
            near = self.hosts[after] == self.hosts[rank]
            hops.append(f"{hop} via P2P/CUMEM/read" if near else f"{hop} [send] via {route}")
        yield from hops

    def _hop(self, source: int, target: int) -> str:
        return f"{source}[{self.local[source]}] -> {target}[{self.local[target]}]"


@dataclass(frozen=True, slots=True)
class _Process:
    """What all lines of one rank share."""

    host: NcclHost
    local: int
    pid: int
    joined: tuple[_Joined, ...]

    def line(self, text: str, thread: int = 0) -> str:
        """A full line; thread 0 is the process's main thread."""
        prefix = f"{self.host.name}:{self.pid}:{self.pid + thread} [{self.local}]"
        return f"{prefix} NCCL INFO {text}"


def write_nccl(directory: Path, world: World, fabric: Fabric) -> None:
    """Write one file a host: its ranks' start-up, first calls, and what happened on their way."""
    for course in world.courses:
        run = course.run
        job, folder = run.job, job_folder(directory, world, run.job)
        groups = communicators(job, world.seed)
        sites = {host: nccl_host(world, host) for host in job.hosts}
        wirings = {group.number: _wiring(group, sites) for group in groups}
        memberships_of = memberships(groups)
        pids = process_ids(job, world.seed)
        for place, (host, site) in enumerate(sites.items()):
            random = stream(world.seed, 400, host)
            ranks = range(place * GPUS_PER_HOST, (place + 1) * GPUS_PER_HOST)
            processes = [
                _process(site, local, int(pids[rank]), memberships_of[rank], random)
                for local, rank in enumerate(ranks)
            ]
            logs = [list(_start(world, process, wirings, random)) for process in processes]
            lines = [*_interleave(logs, random), *_link_events(world, run, host, processes)]
            if any(isinstance(fact, Hang) for fact in world.facts) and job.index == 0:
                lines += _closed(processes)
            write_lines(folder / f"{site.name}.log", lines)


def _wiring(group: Communicator, sites: dict[int, NcclHost]) -> _Wiring:
    rings = build_rings(group.hosts)
    places = np.argsort(rings, axis=1)
    parents, children = build_trees(group.hosts, len(rings))
    return _Wiring(
        rings=rings,
        places=places,
        parents=parents,
        children=children,
        local=group.job.gpus[group.members] % GPUS_PER_HOST,
        hosts=group.hosts,
        sites=tuple(sites[int(host)] for host in group.hosts),
    )


def _process(
    host: NcclHost,
    local: int,
    pid: int,
    membership: list[tuple[Communicator, int]],
    random: Random,
) -> _Process:
    joined = tuple(
        _Joined(group, rank, pointer(random, 0x55D000000000)) for group, rank in membership
    )
    return _Process(host, local, pid, joined)


def _start(
    world: World, process: _Process, wirings: dict[int, _Wiring], random: Random
) -> Iterator[str]:
    """From the first line to the first calls, in NCCL's order."""
    host, main = process.host, process.line
    contexts = tuple(pointer(random, 0x55F000000000) for _ in range(GPUS_PER_HOST))
    yield main("NCCL_SOCKET_IFNAME set by environment to bond0")
    yield main(f"Bootstrap: Using {host.address}")
    yield main("cudaDriverVersion 13000")
    yield main(f"NCCL version {VERSION}")
    for name, value in _environment(world).items():
        yield main(f"{name} set by environment to {value}", _INIT_THREAD)
    for line in host.network_lines(contexts):
        yield main(line, _INIT_THREAD)
    if host.gpu_direct:
        yield main(f"DMA-BUF is available on GPU device {process.local}", _INIT_THREAD)
    for joined in process.joined:
        wiring = wirings[joined.group.number]
        for line in _initialised(process, joined, wiring, random):
            yield main(line, _INIT_THREAD)
        # NCCL connects a communicator at its first call; the job's own is for barriers alone.
        if joined.group.scope != "world":
            for line in wiring.connections(joined.rank):
                yield main(line, _CONNECT_THREAD)
            direct = int(host.gpu_direct)
            yield main(f"Connected all rings, use ring PXN 0 GDR {direct}", _CONNECT_THREAD)
            yield main("Connected all trees", _CONNECT_THREAD)
    yield from _calls(process, random)


def _environment(world: World) -> dict[str, str]:
    """Settings as NCCL prints them: numbers with a full stop, texts without."""
    shape = world.cluster.shape
    converged = {} if world.cluster.infiniband else {"GID_INDEX": "3.", "TC": "106."}
    settings = {
        "HCA": ",".join(f"mlx5_{index}" for index in range(GPUS_PER_HOST)),
        **converged,
        "QPS_PER_CONNECTION": f"{shape.queue_pairs}.",
        "SPLIT_DATA_ON_QPS": "1.",
    }
    return {f"NCCL_IB_{name}": value for name, value in settings.items()} | {
        "NCCL_NET_GDR_LEVEL": "SYS"
    }


def _initialised(
    process: _Process, joined: _Joined, wiring: _Wiring, random: Random
) -> Iterator[str]:
    identity = joined.identity(process.host, process.local)
    bootstrap = float(random.uniform(0.08, 0.16))
    group, rank, call = joined.group, joined.rank, "ncclCommInitRankConfig"
    yield f"[Rank {rank}] {call} {identity} - Init START"
    yield (
        f"Bootstrap timings total {bootstrap:.6f} (create {bootstrap * 0.1:.6f}, "
        f"send 0.000310, recv 0.000402, ring {bootstrap * 0.4:.6f}, delay 0.000000)"
    )
    if joined is process.joined[0]:
        yield from process.host.gpu_direct_lines()
    mates = np.flatnonzero(wiring.hosts == wiring.hosts[rank])
    yield (
        f"comm 0x{joined.pointer:x} rank {rank} nRanks {group.size} "
        f"nNodes {len(np.unique(wiring.hosts))} localRanks {len(mates)} "
        f"localRank {int(np.searchsorted(mates, rank))} MNNVL 0"
    )
    if rank == 0:
        for channel in range(wiring.channels):
            yield wiring.ring_line(channel)
    yield wiring.tree_line(rank)
    yield "P2P Chunksize set to 131072"
    yield (
        f"{wiring.channels} coll channels, 0 collnet channels, 0 nvls channels, "
        f"{wiring.channels} p2p channels, 2 p2p channels per peer"
    )
    yield f"{call} {identity} - Init COMPLETE"
    yield (
        f"Init timings - {call}: rank {rank} nranks {group.size} total {1.9 + bootstrap:.2f} "
        f"(kernels 0.31, alloc 0.92, bootstrap {bootstrap:.2f}, allgathers 0.02, "
        "topo 0.41, graphs 0.03, connections 0.15, rest 0.06)"
    )


def _calls(process: _Process, random: Random) -> Iterator[str]:
    """Calls of the first steps, in jobs small enough and without the many of a tensor group."""
    job = process.joined[0].group.job
    data = [joined for joined in process.joined if joined.group.scope == "data"]
    if job.ranks > LOGGED_RANKS or job.shape.tensor > 1 or not data:
        return
    buffers = [pointer(random, 0x7F2000000000) for _ in job.collectives]
    cuda_stream = pointer(random, 0x55E000000000)
    joined, count = data[0], 0
    for _ in range(LOGGED_STEPS):
        for collective, buffer in zip(job.collectives, buffers, strict=True):
            own_part = collective.message_bytes * joined.rank
            send = buffer + (own_part if collective.name == "AllGather" else 0)
            yield process.line(
                f"{collective.name}: opCount {count:x} sendbuff 0x{send:x} recvbuff 0x{buffer:x} "
                f"count {collective.count} datatype {collective.datatype} op 0 root 0 "
                f"comm 0x{joined.pointer:x} [nranks={joined.group.size}] stream 0x{cuda_stream:x}"
            )
            count += 1


def _link_events(world: World, run: Run, host: int, processes: Sequence[_Process]) -> Iterator[str]:
    """Every process of a host hears when a port goes down and comes back; warnings bear a time."""
    offset = host_offset(world, host)
    for fact in world.facts:
        if not isinstance(fact, LinkFlap) or world.cluster.nics[fact.nic].host != host:
            continue
        nic = world.cluster.nics[fact.nic]
        for moment in flap_moments(run, fact):
            ends = ((moment, "port error(10)"), (moment + fact.seconds, "port active(9)"))
            for when, event in ends:
                for process in processes:
                    yield ""
                    yield (
                        f"[{clock(when + offset):%Y-%m-%d %H:%M:%S}] {process.host.name}:"
                        f"{process.pid}:{process.pid + _ASYNC_THREAD + nic.local} [0] "
                        f"transport/net_ib/common.cc:122 NCCL WARN NET/IB : {nic.device}:1 "
                        f"Got non-fatal async event: {event}"
                    )


def _closed(processes: Sequence[_Process]) -> Iterator[str]:
    """The watchdog ends one process after another; those that are left notice."""
    for number in range(len(processes) - 1):
        for left in processes[number + 1 :]:
            text = f"[Service thread] Connection closed by localRank {number}"
            yield left.line(text, _INIT_THREAD)


def _interleave(logs: list[list[str]], random: Random) -> list[str]:
    """Merge the ranks' lines: each keeps its order, and all finish at about the same time."""
    moments = np.concatenate([np.sort(random.random_sample(len(log))) for log in logs])
    lines = [line for log in logs for line in log]
    return [lines[index] for index in np.argsort(moments, kind="stable")]
