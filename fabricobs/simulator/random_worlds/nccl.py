"""NCCL's log of a random world in the words of the drawn release, and the watchdog's of a hang."""

from collections.abc import Iterator

import numpy as np

from fabricobs.simulator.random_worlds.failure_logs import nccl_warnings
from fabricobs.simulator.random_worlds.faults import Fault
from fabricobs.simulator.random_worlds.libfabric import libfabric_lines, network_name
from fabricobs.simulator.random_worlds.ports import acts_at
from fabricobs.simulator.random_worlds.site import Site, host_address
from fabricobs.simulator.random_worlds.topology import GPU_BUSES, Topology
from fabricobs.simulator.random_worlds.trainer import (
    Line,
    printing_ranks,
    step_lines,
    trainers,
)
from fabricobs.simulator.random_worlds.workload import Launch, Phase
from fabricobs.simulator.random_worlds.world import HANG_SECONDS

_SINGLE = 7  # NCCL's number of float32
# Variables with two values of which a host may have the one that the others do not have.
_OTHER_VARIABLES = (
    ("NCCL_IB_TC", "160", "96"),
    ("NCCL_IB_QPS_PER_CONNECTION", "4", "1"),
    ("NCCL_IB_TIMEOUT", "18", "14"),
    ("NCCL_BUFFSIZE", "8388608", "2097152"),
)
# Variables that contradict each other.
_CONFLICTS: tuple[dict[str, str], ...] = (
    {"NCCL_MIN_NCHANNELS": "32", "NCCL_MAX_NCHANNELS": "8"},
    {"NCCL_SOCKET_NTHREADS": "16", "NCCL_NSOCKS_PERTHREAD": "8"},
    {"NCCL_NVLS_ENABLE": "0", "NCCL_ALGO": "NVLSTree,Ring"},
    {"NCCL_PROTO": "LL"},
    {"NCCL_IB_RETRY_CNT": "15"},
)
# Variables that keep every NIC idle for much of a transfer, on whatever host.
_THROTTLING: tuple[dict[str, str], ...] = (
    {"NCCL_BUFFSIZE": "32768"},
    {"NCCL_NTHREADS": "64"},
    {"NCCL_BUFFSIZE": "65536", "NCCL_NTHREADS": "64"},
)
_BY_VARIABLE = 0.5  # share of the jobs without GPUDirect that a variable keeps from it
_INIT_SECONDS = 12.0
_WITHOUT_GDR = {"gdr_off", "gdr_off_everywhere"}
_HEAD_LINES = 25  # of each rank, that a log cut short still has


def comm_hash(site: Site, launch: Launch, phase: Phase, group: int) -> int:
    """Hash of a communicator, equal on all its ranks."""
    random = site.spec.stream("comm", launch.number, phase.scope, group)
    return int(random.randint(2**20, 2**31)) << 32 | int(random.randint(2**31))


def write_nccl(site: Site) -> None:
    """Write NCCL's lines by rank, by host or, with the first rank's steps, in one file."""
    lines = [line for course in site.world.courses for line in _launch_lines(site, course.launch)]
    # Tables and records go into files of their own, never to standard output.
    printed = site.spec.steps_from != "none" and not trainers()[site.spec.trainer].phases
    if site.spec.nccl_files == "job" and printed:
        for course in site.world.courses:
            lines += step_lines(site, course, printing_ranks(site, course)[0])
    lines.sort(key=lambda line: line.moment)
    files: dict[str, list[str]] = {}
    for line in lines:
        launch = site.world.courses[line.launch].launch
        host = site.world.topology.devices[int(launch.host[line.rank])].name
        name = {
            "rank": f"nccl.{host}.{launch.pids[line.rank]}.log",
            "host": f"nccl-{host}.log",
            "job": "slurm-481516.out",
        }[site.spec.nccl_files]
        files.setdefault(name, []).append(_prefix(site, line) + line.text)
    for name, texts in files.items():
        site.write_job(f"nccl/{name}", "\n".join(texts) + "\n")


def _prefix(site: Site, line: Line) -> str:
    launch = site.world.courses[line.launch].launch
    host = site.world.topology.devices[int(launch.host[line.rank])]
    seconds = site.clock(host).epoch(line.moment)
    stamp = np.datetime64(int(seconds * 1e6), "us")
    width = len(str(launch.ranks - 1))
    return {
        "": "",
        "slurm": f"{line.rank:>{width}}: ",
        "torchrun": f"[rank{line.rank}]:",
        "mpi": f"[1,{line.rank}]<stdout>:",
        "cri": f"{stamp}000Z stdout F ",
        "iso": f"{str(stamp)[:-3]}Z: ",
    }[site.spec.nccl_prefix]


def _release(site: Site) -> tuple[int, int]:
    major, minor, _ = (int(part) for part in site.spec.nccl_release.split("."))
    return major, minor


def _launch_lines(site: Site, launch: Launch) -> Iterator[Line]:
    spec = site.spec
    level = spec.nccl_level
    course = site.world.courses[launch.number]
    begun = float(course.begin[0]) - _INIT_SECONDS
    for rank in range(launch.ranks):
        said = list(_init(site, launch, rank)) if level not in {"warn", "none"} else []
        if level == "warn" and rank == 0:
            yield Line(begun, launch.number, rank, f"NCCL version {spec.nccl_release}+cuda12.4")
        if level == "truncated":
            said = said[:_HEAD_LINES]
        for place, text in enumerate(said):
            moment = begun + _INIT_SECONDS * 0.9 * place / len(said)
            yield Line(moment, launch.number, rank, _said(site, launch, rank, moment, text))
    if level == "coll":
        yield from _calls(site, launch)
    if level != "none":
        yield from _warnings(site, launch)


def _said(
    site: Site,
    launch: Launch,
    rank: int,
    moment: float,
    text: str,
    level: str = "INFO",
    source: str = "transport/net_ib.cc:246",
) -> str:
    device = site.world.topology.devices[int(launch.host[rank])]
    host = device.name.split(".")[0]
    stamped = site.spec.nccl_timestamps if level == "INFO" else True
    stamp = ""
    if stamped and _release(site) >= (2, 26):
        stamp = f"[{site.clock(device).local(moment):%Y-%m-%d %H:%M:%S}] "
    pid, local = int(launch.pids[rank]), int(launch.local[rank])
    source = f"{source} " if level == "WARN" else ""
    blank, thread = ("\n", pid + 40) if level == "WARN" else ("", pid)
    return f"{blank}{stamp}{host}:{pid}:{thread} [{local}] {source}NCCL {level} {text}"


def _init(site: Site, launch: Launch, rank: int) -> Iterator[str]:
    """What one rank says while it starts."""
    spec, topology = site.spec, site.world.topology
    release, host = _release(site), int(launch.host[rank])
    moment = float(site.world.courses[launch.number].begin[0])
    world = site.world
    struck = {f.name for f in world.faults if _is_on(f, host) and acts_at(world, f.acts, moment)}
    socket = "socket_transport" in struck
    local = int(launch.local[rank])
    address = host_address(host)
    colon = ":" if release >= (2, 24) else " :"
    yield f"Bootstrap{colon} Using eth0:{address}<0>"
    yield "cudaDriverVersion 12040"
    if release >= (2, 22):
        yield f"NCCL version {spec.nccl_release}+cuda12.4"
    if not spec.libfabric:
        yield "NCCL_IB_HCA set by environment to " + topology.ends[0][0].name.rstrip("0123456789")
    for variable in _variables(site, struck):
        name, _, value = variable.partition("=")
        yield f"{name} set by environment to {value}."
    devices = [topology.ends[nic][0].name for nic in topology.nics_of(host)]
    kind = "IB" if spec.infiniband else "RoCE"
    if spec.unused_networks and not socket:
        yield f"NET/Socket : Using [0]eth0:{address}<0>"
        if not spec.libfabric:
            yield f"NET/IB : GPU Direct RDMA Disabled for HCA {len(devices)} 'mlx5_bond_0'"
    if socket:
        yield "NET/IB : No device found."
        yield f"NET/Socket : Using [0]eth0:{address}<0>"
    elif spec.libfabric:
        yield from libfabric_lines(spec, release, len(devices))
    else:
        items = " ".join(f"[{place}]{name}:1/{kind}" for place, name in enumerate(devices))
        yield f"NET/IB : Using {items} [RO]; OOB eth0:{address}<0>"
    yield "Using network " + ("Socket" if socket else network_name(site.spec))
    yield f"DMA-BUF is available on GPU device {local}"
    nodes = len(launch.hosts)
    for number, phase in enumerate(launch.phases):
        group = int(phase.group[rank])
        members = np.flatnonzero(phase.group == group)
        own = int(np.flatnonzero(members == rank)[0])
        key = f"0x{comm_hash(site, launch, phase, group):x}"
        pointer = f"0x{0x5560_0000_0000 + 0x10_0000 * rank + 0x1000 * number:x}"
        busy = f"{GPU_BUSES[local]:x}000"
        what = "ncclCommInitRank comm" if release >= (2, 21) else "comm"
        common = (
            f"{what} {pointer} rank {own} nranks {len(members)} cudaDev {local} nvmlDev {local} "
            f"busId {busy} commId {key}"
        )
        start = f"[Rank {own}] " if release >= (2, 29) else ""
        yield f"{start}{common} - Init START"
        if release >= (2, 20):
            spanned = len(set(launch.host[members].tolist()))
            here = int((launch.host[members] == host).sum())
            mine = int((launch.host[members[:own]] == host).sum())
            yield (
                f"comm {pointer} rank {own} nRanks {len(members)} nNodes {min(spanned, nodes)} "
                f"localRanks {here} localRank {mine} MNNVL 0"
            )
        yield from _channels(site, launch, phase, members, own, struck)
        if release >= (2, 20):
            yield (
                "16 coll channels, 16 collnet channels, 0 nvls channels, 16 p2p channels, "
                "2 p2p channels per peer"
            )
        yield f"{common} - Init COMPLETE"
        if release >= (2, 23):
            yield (
                f"Init timings - ncclCommInitRank: rank {own} nranks {len(members)} total 1.92 "
                "(kernels 0.21, alloc 0.10, bootstrap 0.55, allgathers 0.02, topo 0.41, "
                "graphs 0.02, connections 0.55, rest 0.06)"
            )


def _is_on(fault: Fault, host: int) -> bool:
    """Whether a fault is one of a host's settings: of that host, or of the whole job."""
    return fault.kind.strikes == "job" or (fault.kind.strikes == "host" and host in fault.parts)


def _variables(site: Site, struck: set[str]) -> list[str]:
    """Variables that a host has, as NAME=VALUE: those of the job, one of another value or more."""
    texts = f"{site.spec.nccl_unusual} {site.spec.nccl_variables}".split()
    own = dict(text.split("=") for text in texts)
    if "NCCL_IB_TC" in own:
        own["NCCL_IB_TC"] = str(_class_of(site.spec.priority))
    if "other_variable" in struck:
        random = site.spec.stream("variable")
        name, *values = _OTHER_VARIABLES[int(random.randint(len(_OTHER_VARIABLES)))]
        own[name] = next(value for value in values if value != own.get(name))
    if "conflicting_variables" in struck:
        random = site.spec.stream("conflict")
        own |= _CONFLICTS[int(random.randint(len(_CONFLICTS)))]
    if "throttling_variable" in struck:
        random = site.spec.stream("throttling")
        own |= _THROTTLING[int(random.randint(len(_THROTTLING)))]
    # Where nothing else keeps it from GPUs, NCCL was told to.
    if "gdr_off_everywhere" in struck and site.spec.stream("level").random_sample() < _BY_VARIABLE:
        own["NCCL_NET_GDR_LEVEL"] = "LOC"
    return [f"{name}={value}" for name, value in own.items()]


def _class_of(priority: int) -> int:
    """Traffic class of a DSCP of a priority, with the bit that asks for ECN."""
    return 4 * (8 * priority + 2) + 2


def _channels(
    site: Site, launch: Launch, phase: Phase, members: np.ndarray, own: int, struck: set[str]
) -> Iterator[str]:
    """A rank's connections on each channel: a ring whose host leaves over the channel's NIC."""
    topology, hosts = site.world.topology, launch.host[members]
    count = topology.nics_per_host
    for channel in range(count):
        order = _ring_order(topology, launch, members, channel)
        place = order.index(own)
        for step, way in ((1, "send"), (-1, "receive")):
            other = order[(place + step) % len(order)]
            if other == own:
                continue
            first, last = (own, other) if way == "send" else (other, own)
            ends = (
                f"{first}[{launch.local[members[first]]}] -> {last}[{launch.local[members[last]]}]"
            )
            if hosts[own] == hosts[other]:
                yield f"Channel {channel:02d}/0 : {ends} via P2P/CUMEM/read"
            else:
                via = _network_path(site, launch, int(members[own]), channel, way, struck)
                yield f"Channel {channel:02d}/0 : {ends} [{way}] via {via}"
    release = _release(site)
    gdr = int(not {*_WITHOUT_GDR, "socket_transport"} & struck)
    said = f", use ring PXN {int(site.spec.pxn)} GDR {gdr}" if release >= (2, 24) else ""
    yield f"Connected all rings{said}"
    yield "Connected all trees"


def _ring_order(topology: Topology, launch: Launch, members: np.ndarray, channel: int) -> list[int]:
    """Members in order of the ring: host by host, the rank beside the channel's NIC leaves last."""
    order: list[int] = []
    hosts = launch.host[members]
    for host in dict.fromkeys(hosts.tolist()):
        here = np.flatnonzero(hosts == host).tolist()
        beside = [
            m for m in here
            if topology.nic_of_gpu(0, int(launch.local[members[m]])) == channel
        ]  # fmt: skip
        last = beside[0] if beside else here[channel % len(here)]
        order += [m for m in here if m != last] + [last]
    return order


def _network_path(
    site: Site, launch: Launch, rank: int, channel: int, way: str, struck: set[str]
) -> str:
    topology = site.world.topology
    if "socket_transport" in struck:
        return "NET/Socket/0"
    nic, local = channel, int(launch.local[rank])
    if "foreign_nics" in struck:
        nic = (channel + topology.nics_per_host // 2) % topology.nics_per_host
    gdr = "" if _WITHOUT_GDR & struck else "/GDRDMA"
    beside = topology.nic_of_gpu(0, local)
    if site.spec.pxn and way == "send" and beside != channel:
        proxy = rank - local + channel * site.spec.gpus_per_host // topology.nics_per_host
        return f"NET/{network_name(site.spec)}/{nic}({proxy}){gdr}"
    return f"NET/{network_name(site.spec)}/{nic}{gdr}"


def _calls(site: Site, launch: Launch) -> Iterator[Line]:
    """A line for each call of a collective."""
    course = site.world.courses[launch.number]
    names = {"SendRecv": "Send", "AllToAll": "Send"}
    for number, phase in enumerate(launch.phases):
        for rank in range(launch.ranks):
            pointer = f"0x{0x5560_0000_0000 + 0x10_0000 * rank + 0x1000 * number:x}"
            members = int((phase.group == phase.group[rank]).sum())
            for step in range(course.steps):
                moment = float(course.arrival[step, number, rank])
                text = (
                    f"{names.get(phase.name, phase.name)}: opCount {step:x} "
                    "sendbuff 0x7f3a40000000 recvbuff 0x7f3a40000000 "
                    f"count {phase.message_bytes // 4} datatype {_SINGLE} "
                    f"op 0 root 0 comm {pointer} [nranks={members}] stream 0x55d0a1f0c2e0"
                )
                yield Line(moment, launch.number, rank, _said(site, launch, rank, moment, text))


def _warnings(site: Site, launch: Launch) -> Iterator[Line]:
    """What NCCL warns of: a failure, what harms nothing, and a NIC's link that is down."""
    world, course = site.world, site.world.courses[launch.number]
    before = world.made_before(launch.number)
    for warned in nccl_warnings(site, course, _release(site)):
        said = _said(site, launch, warned.rank, warned.moment, warned.text, "WARN", warned.source)
        yield from (
            Line(warned.moment, launch.number, warned.rank, part) for part in said.split("\n")
        )
    for fault in world.faults:
        if fault.name != "nic_flap" or _release(site) < (2, 20):
            continue
        for nic in fault.parts:
            ranks = np.flatnonzero(launch.nic == nic)
            name = world.topology.ends[nic][0].name
            for step in np.flatnonzero(fault.acts[before : before + course.steps]):
                for rank in ranks.tolist():
                    moment = float(course.start[step, 0, rank])
                    event = "async fatal event" if _release(site) >= (2, 23) else "Got async event"
                    text = f"NET/IB : {name}:1 {event}: port error"
                    if _release(site) < (2, 23):
                        text = f"NET/IB : {name}:1 {event} : port error"
                    line = _said(site, launch, rank, moment, text, "WARN")
                    yield from (
                        Line(moment, launch.number, rank, part) for part in line.split("\n")
                    )


def write_watchdog(site: Site) -> None:
    """Write PyTorch's watchdog's lines of a job that hangs: all ranks but the one that stopped."""
    world = site.world
    if world.hang is None:
        return
    course = world.courses[-1]
    launch = course.launch
    stopped = [int(rank) for rank in np.flatnonzero(np.isin(launch.gpu, world.hang.parts))]
    done = course.steps * len(launch.phases)
    phase = launch.phases[0]
    moment = float(course.end[-1]) + HANG_SECONDS
    names = {"AllReduce": "ALLREDUCE", "AllGather": "_ALLGATHER_BASE", "AllToAll": "ALLTOALL_BASE"}
    kind = names.get(phase.name, "COALESCED")
    for rank in range(launch.ranks):
        if rank in stopped:
            continue
        host = world.topology.devices[int(launch.host[rank])]
        at = site.clock(host).local(moment)
        glog = f"[rank{rank}]:[E{at.month}{at.day:02d} {at:%H:%M:%S}.123456789 ProcessGroupNCCL.cpp"
        count = phase.message_bytes // 4
        lines = [
            f"{glog}:632] [Rank {rank}] Watchdog caught collective operation timeout: "
            f"WorkNCCL(SeqNum={done + 1}, OpType={kind}, NumelIn={count}, NumelOut={count}, "
            f"Timeout(ms)={HANG_SECONDS * 1e3:.0f}) ran for {HANG_SECONDS * 1e3 + 37:.0f} "
            "milliseconds before timing out.",
            f"{glog}:2268] [PG ID 0 PG GUID 0(default_pg) Rank {rank}]  failure detected by "
            f"watchdog at work sequence id: {done + 1} PG status: last enqueued work: {done + 1}, "
            f"last completed work: {done}",
        ]
        site.write_job(f"stderr/rank{rank}.err", "\n".join(lines) + "\n")
