"""PyTorch profiler (Kineto) traces: NCCL kernels, and what each profiled step spent its time on.

A kernel belongs to the step in which the host launched it, which is the same on every rank; its
start on the GPU may lie in the next one. Kernel times and launches are kept as numbers until the
end, 48 bytes a kernel; of other events nothing is kept.
"""

import math
import re
from array import array
from dataclasses import dataclass, field
from typing import Any

from fabricobs.formats.decompression import SourceError
from fabricobs.formats.readers.chrome import OTHERS, ChromeTrace
from fabricobs.formats.readers.gpu_time import StepTimes, steps_of_launches
from fabricobs.formats.readers.names import element_bytes, group_id, operation, rank_list
from fabricobs.formats.whole import WholeFile, number, text, whole, whole_cell

_WANTED = (
    re.compile(rb'"cat"\s*:\s*"[Kk]ernel"'),
    re.compile(rb'"name"\s*:\s*"(?:ProfilerStep#|enumerate\(DataLoader|(?:cu|hip)\w*Launch)'),
)
_KERNEL = re.compile(
    r"(?:nccl|rccl)(?:Symk?)?(?:Dev)?Kernel_?([A-Za-z]+)(?:_([^(]*))?", re.IGNORECASE
)
_WIRE = re.compile(r"(RING|TREE|COLLNET\w*?|NVLS\w*?|PAT)_(LL128|LL|SIMPLE)")
_ALGORITHMS = {"RING": "Ring", "TREE": "Tree"}
# Without PyTorch's own number, calls are counted within their step: the count of a whole trace
# differs between ranks that began to record at different calls.
_CALLS_A_STEP = 1_000_000


@dataclass(slots=True)
class _Call:
    """An NCCL kernel."""

    line: int
    kernel: int  # index into the kernel times
    name: str
    stream: Any
    args: dict[str, Any]


@dataclass(slots=True)
class _Recording:
    """What is kept of a trace until its end."""

    steps: list[tuple[int, int, float, float]] = field(default_factory=list)  # line, step, ts, dur
    calls: list[_Call] = field(default_factory=list)
    starts: "array[float]" = field(default_factory=lambda: array("d"))
    durations: "array[float]" = field(default_factory=lambda: array("d"))
    correlations: "array[int]" = field(default_factory=lambda: array("q"))
    is_nccl: "array[int]" = field(default_factory=lambda: array("b"))
    launch_ids: "array[int]" = field(default_factory=lambda: array("q"))
    launch_times: "array[float]" = field(default_factory=lambda: array("d"))
    waits: list[tuple[float, float]] = field(default_factory=list)  # for input data: ts, dur


def read_kineto(file: WholeFile) -> None:
    """Read one trace; what a broken file gave until it broke off is kept."""
    trace = ChromeTrace(file, _WANTED)
    recording = _Recording()
    problem: SourceError | None = None
    try:
        for line, event in trace.events():
            if _note(recording, line, event):
                file.tally.read()
            else:
                file.tally.skip(about=OTHERS)
    except SourceError as error:
        problem = error
    _write(file, recording, trace.document())
    if problem is not None:
        raise problem


def _note(recording: _Recording, line: int, event: dict[str, Any]) -> bool:
    name, category, args = event.get("name"), event.get("cat"), event.get("args")
    start, duration = number(event.get("ts")), number(event.get("dur"))
    if event.get("ph") != "X" or not isinstance(name, str) or start is None or duration is None:
        return False
    if not math.isfinite(start) or not math.isfinite(duration):
        return False
    args = args if isinstance(args, dict) else {}
    if category in {"kernel", "Kernel"}:
        if "nccl" in name.lower() or "rccl" in name.lower():
            stream = args.get("stream", event.get("tid"))
            kept = {key: value for key, value in args.items() if key in _ARGUMENTS}
            recording.calls.append(_Call(line, len(recording.starts), name, stream, kept))
            recording.is_nccl.append(1)
        else:
            recording.is_nccl.append(0)
        recording.starts.append(start)
        recording.durations.append(duration)
        recording.correlations.append(whole(args.get("correlation")) or 0)
        return True
    if name.startswith("ProfilerStep#"):
        step = whole(name.partition("#")[2])
        if step is None or category == "gpu_user_annotation":
            return False
        recording.steps.append((line, step, start, duration))
        return True
    if name.startswith("enumerate(DataLoader"):
        recording.waits.append((start, duration))
        return True
    launched = whole(args.get("correlation"))
    if launched is None:
        return False
    recording.launch_ids.append(launched)
    recording.launch_times.append(start)
    return True


def _write(file: WholeFile, recording: _Recording, document: dict[str, Any]) -> None:
    base = whole(document.get("baseTimeNanoseconds")) or 0
    job = _Job(document.get("distributedInfo"), file.context.from_path.get("rank"))
    file.add_versions(
        job.rank,
        job.nccl_version,
        document.get("cuda_runtime_version"),
        document.get("cuda_driver_version"),
    )
    recording.steps.sort(key=lambda step: step[2])
    step_of = steps_of_launches(
        [(start, start + duration) for _, _, start, duration in recording.steps],
        recording.starts,
        recording.correlations,
        recording.launch_ids,
        recording.launch_times,
    )
    _write_calls(file, recording, job, step_of, base)
    times = StepTimes(recording.starts, recording.durations, recording.is_nccl, step_of)
    for position, (line, step, start, duration) in enumerate(recording.steps):
        compute, exposed, communication = times.of(position)
        waits = [d for at, d in recording.waits if start <= at < start + duration]
        row = {
            "step": step,
            "step_time_ms": duration / 1000,
            "compute_ms": compute,
            "comm_ms": exposed,
            "data_ms": sum(waits) / 1000 if waits else None,
        }
        place = {} if job.rank is None else {"rank": job.rank}
        ts = round(base / 1000 + start)
        file.add("steps", row | place, line, ts)
        if communication is not None:
            timed = {"step": step, "phase": "nccl kernels", "duration_ms": communication}
            file.add("phases", timed | place, line, ts)


def _write_calls(
    file: WholeFile, recording: _Recording, job: "_Job", step_of: list[int], base: int
) -> None:
    counts: dict[tuple[Any, ...], int] = {}
    for call in sorted(recording.calls, key=lambda call: recording.starts[call.kernel]):
        row = job.group(call) | _what(call)
        position = step_of[call.kernel]
        step = recording.steps[position][1] if position >= 0 else None
        seq = whole_cell(call.args.get("Seq"))
        if seq is None and step is not None:
            key = (step, row["comm_id"], row["op"])
            counts[key] = counts.get(key, -1) + 1
            seq = whole_cell(step * _CALLS_A_STEP + counts[key])
        row |= {
            "step": step,
            "seq": seq,
            "duration_us": recording.durations[call.kernel],
            "timing_source": "kernel_gpu",
        }
        ts = round(base / 1000 + recording.starts[call.kernel])
        file.add("collectives", row, call.line, ts)
        file.flush()


_ARGUMENTS = frozenset(
    {
        "Collective name", "In msg nelems", "Out msg nelems", "Group size", "dtype", "Seq",
        "Process Group Name", "Process Group Description", "Process Group Ranks", "Src Rank",
        "Dst Rank", "Rank",
    }
)  # fmt: skip


class _Job:
    """What the trace tells of the job: this rank, and the process groups."""

    def __init__(self, info: Any, rank_of_path: Any) -> None:
        info = info if isinstance(info, dict) else {}
        rank = whole(info.get("rank"))
        self.rank: int | None = whole(rank_of_path) if rank is None else rank
        self.world = whole(info.get("world_size"))
        self.nccl_version = info.get("nccl_version")
        groups = info.get("pg_config")
        only = groups[0] if isinstance(groups, list) and len(groups) == 1 else None
        self._only = only if isinstance(only, dict) else {}

    def group(self, call: _Call) -> dict[str, Any]:
        """Name the process group of a call; the only one of the job where the call names none."""
        args, only = call.args, self._only
        name = text(args.get("Process Group Name"))
        if name is not None:
            title, size = args.get("Process Group Description"), args.get("Group size")
            listed = args.get("Process Group Ranks")
        else:
            name, title, size = text(only.get("pg_name")), only.get("pg_desc"), only.get("pg_size")
            listed = only.get("ranks")
        ranks = rank_list(listed) or None
        count = len(ranks) if ranks else whole(size)
        rank = None
        if ranks and self.rank in ranks:
            rank = ranks.index(self.rank)
        elif count is not None and count == self.world:
            rank = self.rank
        return {
            # A stream stands for the group where nothing names it.
            "comm_id": group_id(name, ranks) or f"stream {call.stream}",
            "comm_name": text(title),
            "rank": rank if name is not None else self.rank,
            "global_rank": self.rank,
            "nranks": count,
        }


def _what(call: _Call) -> dict[str, Any]:
    """Tell operation, size and way of a call from its arguments, else from the kernel's name."""
    args = call.args
    named = _KERNEL.search(call.name)
    op = text(args.get("Collective name"))
    if op is not None:
        op = operation(op)
    elif named is not None and not named[1].lower().startswith("generic"):
        op = operation(named[1])
    wire = _WIRE.search(named[2] or "") if named is not None else None
    elements = whole(args.get(f"{'Out' if op in {'ReduceScatter', 'Recv'} else 'In'} msg nelems"))
    width = element_bytes(args.get("dtype"))
    peer = args.get("Dst Rank") if op == "Send" else args.get("Src Rank") if op == "Recv" else None
    return {
        "op": op,
        "peer": whole_cell(peer),
        "bytes": None if elements is None or width is None else whole_cell(elements * width),
        "datatype": text(args.get("dtype")),
        "algorithm": None if wire is None else _ALGORITHMS.get(wire[1], wire[1]),
        "protocol": None if wire is None else wire[2].replace("SIMPLE", "Simple"),
    }
