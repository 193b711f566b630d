"""NCCL Inspector's records: the time of each collective on each rank, one file a process."""

from fabricobs.simulator.effects import Floats
from fabricobs.simulator.random_worlds.nccl import comm_hash
from fabricobs.simulator.random_worlds.run import Course
from fabricobs.simulator.random_worlds.site import Site
from fabricobs.simulator.random_worlds.workload import Phase

_RECORD = (
    '{{"header":{{"id":"0x{comm:x}","rank":{rank},"n_ranks":{ranks},"nnodes":{hosts}}},"metadata":'
    '{{"inspector_output_format_version":"v4.0","git_rev":"","rec_mechanism":"nccl_profiler_interface"'
    ',"dump_timestamp_us":%d,"hostname":"{host}","pid":{pid}}},"coll_perf":{{"coll":"{coll}",'
    '"coll_sn":%d,"coll_msg_size_bytes":{size},"coll_exec_time_us":%d,'
    '"coll_timing_source":"kernel_gpu","coll_algobw_gbs":%.6f,"coll_busbw_gbs":%.6f}}}}\n'
)


def write_inspector(site: Site) -> None:
    """Write a file for each rank and launch."""
    if not site.spec.inspector:
        return
    for course in site.world.courses:
        took = course.exec_seconds
        for rank in range(course.launch.ranks):
            _write_rank(site, course, rank, took[:, :, rank])


def _write_rank(site: Site, course: Course, rank: int, took: Floats) -> None:
    launch = course.launch
    host = site.world.topology.devices[int(launch.host[rank])]
    clock, pid = site.clock(host), int(launch.pids[rank])
    # Of these releases: collectives alone, no sends.
    phases = [(n, p) for n, p in enumerate(launch.phases) if p.name != "SendRecv"]
    records = {n: _record(site, course, p, rank, host.name, pid) for n, p in phases}
    lines = []
    for step in range(course.steps):
        for number, phase in phases:
            seconds = float(took[step, number])
            algorithm = phase.algorithm_bytes / seconds / 1e9
            dumped = int(clock.epoch(float(course.done[step, number, rank])) * 1e6)
            figures = (round(seconds * 1e6), algorithm, algorithm * phase.bus_factor)
            lines.append(records[number] % (dumped, step + 1, *figures))
    site.write_job(f"inspector/{host.name}-pid{pid}.log", "".join(lines))


def _record(site: Site, course: Course, phase: Phase, rank: int, host: str, pid: int) -> str:
    """A rank's record of a collective, but for when it was and how long it took."""
    launch, group = course.launch, int(phase.group[rank])
    members = phase.group == group
    return _RECORD.format(
        comm=comm_hash(site, launch, phase, group),
        rank=int(members[:rank].sum()),
        ranks=int(members.sum()),
        hosts=len(set(launch.host[members].tolist())),
        host=host,
        pid=pid,
        coll="All2All" if phase.name == "AllToAll" else phase.name,
        size=phase.message_bytes,
    )
