"""NCCL Inspector v4.0 files, one a rank: the measured duration of every collective."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from fabricobs.simulate import workload
from fabricobs.simulate.cluster import HOSTS, RANKS, Nic
from fabricobs.simulate.output import epoch_microseconds, write_lines
from fabricobs.simulate.processes import communicator_hash, process_ids
from fabricobs.simulate.run import Run, stream

_DUMP_SECONDS = 1.0


def write_inspector(directory: Path, nics: tuple[Nic, ...], run: Run, *, seed: int) -> None:
    """Write one file a rank, in order of completion."""
    pids = process_ids(seed)
    for nic in nics:
        pid = int(pids[nic.rank])
        path = directory / f"{nic.host_name}-pid{pid}.log.gz"
        write_lines(path, _records(nic, pid, run, seed))


def bandwidths(collective: workload.Collective, microseconds: int) -> tuple[float, float]:
    """Algorithm and bus bandwidth in GB/s of one call."""
    algorithm = collective.algorithm_bytes / microseconds / 1000
    return algorithm, algorithm * collective.bus_factor


def _records(nic: Nic, pid: int, run: Run, seed: int) -> Iterator[str]:
    header = {
        "id": communicator_hash(seed),
        "comm_name": "dp",
        "rank": nic.rank,
        "n_ranks": RANKS,
        "nnodes": HOSTS,
    }
    random = stream(seed, 500 + nic.rank)
    phase = random.random_sample() * _DUMP_SECONDS
    durations = np.round(run.collective_seconds[:, :, nic.rank] * 1e6).astype(np.int64)
    for step in range(workload.STEPS):
        for index, collective in enumerate(workload.COLLECTIVES):
            # A thread wakes once a second and writes what has ended since.
            end = run.transfer_end[step, index]
            dump = np.ceil((end - phase) / _DUMP_SECONDS) * _DUMP_SECONDS + phase
            metadata = {
                "inspector_output_format_version": "v4.0",
                "git_rev": "",
                "rec_mechanism": "nccl_profiler_interface",
                "dump_timestamp_us": epoch_microseconds(dump) + int(random.randint(40, 140)),
                "hostname": nic.host_name,
                "pid": pid,
            }
            record = {
                "header": header,
                "metadata": metadata,
                "coll_perf": _performance(collective, step, int(durations[step, index])),
            }
            yield json.dumps(record, separators=(",", ":"))


def _performance(
    collective: workload.Collective, sequence: int, microseconds: int
) -> dict[str, object]:
    algorithm, bus = bandwidths(collective, microseconds)
    return {
        "coll": collective.name,
        "coll_sn": sequence,
        "coll_msg_size_bytes": collective.message_bytes,
        "coll_exec_time_us": microseconds,
        "coll_timing_source": "kernel_gpu",
        "coll_algobw_gbs": round(algorithm, 3),
        "coll_busbw_gbs": round(bus, 3),
    }
