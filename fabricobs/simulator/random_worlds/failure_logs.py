"""How a job of a random world ends: what NCCL, Python, torchrun and the kernel say of a failure.

A sound job ends as well, and NCCL warns of what harms nothing: sites keep that, too.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fabricobs.simulator.random_worlds.faults import Fault
from fabricobs.simulator.random_worlds.run import Course
from fabricobs.simulator.random_worlds.site import Clock, Site, host_address
from fabricobs.simulator.random_worlds.world import World

_RETRY_SECONDS = 21.0  # seven retries of a NIC until it gives up
_NOTICED = 0.8  # seconds until the others notice that a process is gone
_HARMLESS = 3  # warnings of a job
_AGENT_PID = 3900
_GIB = 79.11
_BACKEND = "/pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:93"


@dataclass(frozen=True, slots=True)
class Warned:
    """A warning of NCCL: when, by which rank, where in its source, and what."""

    moment: float
    rank: int
    source: str
    text: str


def failed_ranks(world: World) -> list[int]:
    """Ranks of the last launch on the part whose failure ended the job."""
    fault = world.failure
    if fault is None:
        return []
    launch = world.courses[-1].launch
    parts = launch.nic if fault.kind.strikes == "nic" else launch.gpu
    return [int(rank) for rank in np.flatnonzero(np.isin(parts, fault.parts))]


def nccl_warnings(site: Site, course: Course, release: tuple[int, int]) -> Iterator[Warned]:
    """What NCCL warns of in one launch: harmless events of ports, and how its last one ended."""
    if site.spec.harmless_warnings and not site.spec.libfabric:
        yield from _harmless(site, course, release)
    world = site.world
    if world.failure is None or course is not world.courses[-1]:
        return
    failed, launch, end = failed_ranks(world), course.launch, float(course.end[-1])
    if not failed:
        return
    if world.failure.name == "failed_nic":
        name = world.topology.ends[world.failure.parts[0]][0].name
        for rank in failed:
            yield Warned(end, rank, "transport/net_ib.cc:246", _event(release, name, "port error"))
        broken = int(launch.host[failed[0]])
        for rank in _neighbours(course, failed):
            gids = (
                ""
                if site.spec.infiniband
                else (f" localGid {_gid(int(launch.host[rank]))} remoteGids{_gid(broken)}")
            )
            said = _completion(release, host_address(broken), 40_000 + 4 * rank, name, gids)
            yield Warned(end + _RETRY_SECONDS, rank, "transport/net_ib.cc:1909", said)
        return
    peer = world.topology.devices[int(launch.host[failed[0]])].name
    for rank in _neighbours(course, failed):
        text = f"socketProgress: Connection closed by remote peer {peer}<{40_000 + 4 * rank}>"
        yield Warned(end + _NOTICED, rank, "misc/socket.cc:49", text)


def write_failure(site: Site) -> None:
    """Write what the ranks and their launcher print to standard error as the job ends."""
    world, form = site.world, site.spec.launcher_log
    if form == "none" or world.hang is not None:
        return
    course = world.courses[-1]
    launch, fault, end = course.launch, world.failure, float(course.end[-1])
    failed = failed_ranks(world)
    late = _RETRY_SECONDS if fault is not None and fault.name == "failed_nic" else _NOTICED
    for host in launch.hosts:
        device = world.topology.devices[host]
        clock = site.clock(device)
        ranks = np.flatnonzero(launch.host == host).tolist()
        lines = [
            f"{_glog(clock, float(course.begin[0]) - 15, 'W')}/run.py:792] {text}"
            for text in _BEGUN
        ]
        if fault is None:
            lines.append(
                f"{_glog(clock, end + 2, 'I')}/elastic/agent/server/api.py:879] {_FINISHED}"
            )
        else:
            for rank in ranks:
                if rank not in failed or fault.name == "failed_nic":
                    lines += _traceback(rank, _lost_peer(site.spec.nccl_release))
                elif fault.name == "full_gpu":
                    lines += _traceback(rank, _out_of_memory(int(launch.local[rank])))
            own = [rank for rank in ranks if rank in failed] or ranks
            code = -9 if fault.name == "killed_process" and own[0] in failed else 1
            lines += _root_cause(clock, end + late, course, own[0], code, device.name)
        name = device.name if form == "torchrun" else f"{device.name}_stderr"
        site.write_job(f"launcher/{name}.log", "\n".join(lines) + "\n")


def kernel_events(site: Site, fault: Fault, host: int) -> list[tuple[float, str]]:
    """What the kernel of a host says of a process that it killed."""
    course = site.world.courses[-1]
    if fault is not site.world.failure or fault.name != "killed_process":
        return []
    moment = float(course.end[-1])
    found = []
    for rank in failed_ranks(site.world):
        if int(course.launch.host[rank]) == host:
            pid = int(course.launch.pids[rank])
            found += [
                (moment, "python3 invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE|"
                 "__GFP_COMP), order=0, oom_score_adj=0"),
                (moment + 0.01, f"Out of memory: Killed process {pid} (python3) "
                 "total-vm:1892340512kB, anon-rss:1017640424kB, file-rss:74112kB, "
                 "shmem-rss:1048632kB, UID:1000 pgtables:2290712kB oom_score_adj:0"),
            ]  # fmt: skip
    return found


def _harmless(site: Site, course: Course, release: tuple[int, int]) -> Iterator[Warned]:
    random = site.spec.stream("harmless", course.launch.number)
    for _ in range(_HARMLESS):
        rank = int(random.randint(course.launch.ranks))
        moment = float(random.uniform(course.begin[0], course.end[-1]))
        name = site.world.topology.ends[int(course.launch.nic[rank])][0].name
        said = str(random.choice(["port active", "GID table change", "client reregistration"]))
        text = _event(release, name, said, fatal=False)
        yield Warned(moment, rank, "transport/net_ib.cc:246", text)


def _event(release: tuple[int, int], name: str, event: str, *, fatal: bool = True) -> str:
    if release < (2, 20):
        return f"NET/IB : Got async event : {event}"
    if release < (2, 23):
        return f"NET/IB : {name}:1 Got async event : {event}"
    if not fatal and release >= (2, 28):
        return f"NET/IB : {name}:1 Got non-fatal async event: {event}(18)"
    return f"NET/IB : {name}:1 {'async fatal event' if fatal else 'Got async event'}: {event}"


def _completion(release: tuple[int, int], address: str, port: int, name: str, gids: str) -> str:
    """A work request that ran out of retries, by release."""
    if release >= (2, 29):
        return (
            f"NET/IB: Got completion from peer {address}<{port}> with "
            f"status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_RDMA_WRITE(1) vendor_err=129 {gids} "
            f"hca {name}"
        )
    if release >= (2, 22):
        return (
            f"NET/IB: Got completion from peer {address}<{port}> with status=12 opcode=0 len=0 "
            f"vendor err 129 (Send){gids} hca {name}"
        )
    return (
        f"NET/IB : Got completion from peer {address}<{port}> with status=12 opcode=0 len=0 "
        f"vendor err 129 (Send){gids}"
    )


def _gid(host: int) -> str:
    """The GID of RoCE v2 of a host's address in the network of its NICs."""
    return f"::ffff:10.207.{host // 200}.{host % 200 + 10}"


def _neighbours(course: Course, failed: list[int]) -> list[int]:
    """Ranks of other hosts that send to the part that failed, by its NIC: all of one more host."""
    launch = course.launch
    other = [host for host in launch.hosts if host != int(launch.host[failed[0]])]
    near = {other[0], other[-1]}
    local = {int(launch.local[rank]) for rank in failed}
    return [
        rank
        for rank in range(launch.ranks)
        if int(launch.host[rank]) in near and int(launch.local[rank]) in local
    ]


_BEGUN = (
    "",
    "*****************************************",
    "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to avoid "
    "your system being overloaded, please further tune the variable for optimal performance in "
    "your application as needed. ",
    "*****************************************",
)
_FINISHED = (
    "[default] worker group successfully finished. Waiting 300 seconds for other agents to finish."
)


def _glog(clock: Clock, moment: float, level: str) -> str:
    at = clock.local(moment)
    stamp = f"{at:%m%d %H:%M:%S}.{at.microsecond // 1000:03d}000"
    return f"{level}{stamp} {_AGENT_PID} torch/distributed"


def _lost_peer(release: str) -> str:
    return (
        f"torch.distributed.DistBackendError: NCCL error in: {_BACKEND}, remote process exited or "
        f"there was a network error, NCCL version {release}"
    )


def _out_of_memory(gpu: int) -> str:
    return (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.25 GiB. GPU {gpu} has a "
        f"total capacity of {_GIB} GiB of which 1.05 GiB is free."
    )


def _traceback(rank: int, error: str) -> list[str]:
    stack = (
        "Traceback (most recent call last):",
        '  File "/workspace/train.py", line 412, in <module>',
        "    main()",
        '  File "/workspace/train.py", line 377, in main',
        "    loss.backward()",
        error,
    )
    return [f"[rank{rank}]: {line}" for line in stack]


def _root_cause(
    clock: Clock, moment: float, course: Course, rank: int, code: int, host: str
) -> list[str]:
    """What torchrun prints of the worker that failed first on its host."""
    launch, at = course.launch, clock.local(moment)
    local, pid = int(launch.local[rank]), int(launch.pids[rank])
    others = [r for r in range(launch.ranks) if launch.host[r] == launch.host[rank] and r != rank]
    signal = f"traceback : Signal 9 (SIGKILL) received by PID {pid}" if code < 0 else (
        "traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
    )  # fmt: skip
    return [
        *(
            f"{_glog(clock, moment, 'W')}/elastic/multiprocessing/api.py:897] Sending process "
            f"{int(launch.pids[other])} closing signal SIGTERM"
            for other in others
        ),
        f"{_glog(clock, moment, 'E')}/elastic/multiprocessing/api.py:869] failed "
        f"(exitcode: {code}) local_rank: {local} (pid: {pid}) of binary: /usr/bin/python3",
        "Traceback (most recent call last):",
        '  File "/usr/local/bin/torchrun", line 33, in <module>',
        "    sys.exit(load_entry_point('torch==2.6.0', 'console_scripts', 'torchrun')())",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        "============================================================",
        "/workspace/train.py FAILED",
        "------------------------------------------------------------",
        "Failures:",
        "  <NO_OTHER_FAILURES>",
        "------------------------------------------------------------",
        "Root Cause (first observed failure):",
        "[0]:",
        f"  time      : {at:%Y-%m-%d_%H:%M:%S}",
        f"  host      : {host}",
        f"  rank      : {rank} (local_rank: {local})",
        f"  exitcode  : {code} (pid: {pid})",
        "  error_file: <N/A>",
        f"  {signal}",
        "============================================================",
    ]
