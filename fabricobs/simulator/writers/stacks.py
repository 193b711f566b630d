"""Stacks of Python processes, as py-spy and Python's faulthandler print them.

The frames are those of a small trainer on PyTorch; a worker thread stands beside the main thread.
"""

import json
from typing import Literal

Doing = Literal["collective", "gpu", "data", "checkpoint", "compute"]
# Class or none, function, place below the packages, and line; the innermost call first.
_Frame = tuple[str, str, str, int]

_PROGRAM: dict[Doing, tuple[_Frame, ...]] = {
    "collective": (
        ("", "all_reduce", "torch/distributed/distributed_c10d.py", 2806),
        ("", "wrapper", "torch/distributed/c10d_logger.py", 81),
        ("", "reduce_gradients", "minitrain/gradients.py", 74),
        ("Trainer", "step", "minitrain/loop.py", 131),
    ),
    "gpu": (
        ("", "synchronize", "torch/cuda/__init__.py", 985),
        ("Trainer", "step", "minitrain/loop.py", 139),
    ),
    "data": (
        ("Condition", "wait", "threading.py", 331),
        ("Queue", "get", "queue.py", 180),
        ("_MultiProcessingDataLoaderIter", "_try_get_data", "torch/utils/data/dataloader.py", 1284),
        ("_MultiProcessingDataLoaderIter", "_next_data", "torch/utils/data/dataloader.py", 1445),
        ("_BaseDataLoaderIter", "__next__", "torch/utils/data/dataloader.py", 733),
        ("Trainer", "batches", "minitrain/loop.py", 96),
    ),
    "checkpoint": (
        ("_open_zipfile_writer_file", "__exit__", "torch/serialization.py", 801),
        ("", "save", "torch/serialization.py", 965),
        ("Checkpoints", "write", "minitrain/state.py", 58),
        ("Trainer", "step", "minitrain/loop.py", 152),
    ),
    "compute": (
        ("Mixture", "route", "minitrain/model.py", 233),
        ("Module", "_call_impl", "torch/nn/modules/module.py", 1784),
        ("Trainer", "step", "minitrain/loop.py", 118),
    ),
}
_OUTERMOST: tuple[_Frame, ...] = (
    ("Trainer", "fit", "minitrain/loop.py", 88),
    ("", "<module>", "pretrain.py", 41),
)
_WORKER: tuple[_Frame, ...] = (
    ("Condition", "wait", "threading.py", 331),
    ("Event", "wait", "threading.py", 629),
    ("Thread", "run", "threading.py", 982),
    ("Thread", "_bootstrap", "threading.py", 1002),
)
_LIBRARY = "/opt/venv/lib/python3.11/site-packages/"


def py_spy(pid: int, doing: Doing, *, classes: bool) -> str:
    """Return `py-spy dump`; releases from 0.4 on name `classes` before functions."""
    lines = [
        f"Process {pid}: /opt/venv/bin/python -u pretrain.py --config large",
        "Python v3.11.9 (/opt/venv/bin/python3.11)",
        "",
        f'Thread {pid} ({"active" if doing == "compute" else "idle"}): "MainThread"',
    ]
    shown = [*_stack(doing), None, *_WORKER]
    for frame in shown:
        if frame is None:
            lines.append(f'Thread {pid + 61} (idle): "heartbeat"')
            continue
        owner, function, place, line = frame
        name = f"{owner}.{function}" if classes and owner else function
        lines.append(f"    {name} ({place}:{line})")
    return "\n".join(lines) + "\n"


def py_spy_json(pid: int, doing: Doing) -> str:
    """Return `py-spy dump --json`."""
    threads = [("heartbeat", pid + 61, _WORKER), ("MainThread", pid, _stack(doing))]
    document = [
        {
            "pid": pid,
            "thread_id": 140_000_000_000_000 + number,
            "thread_name": name,
            "os_thread_id": number,
            "active": False,
            "owns_gil": False,
            "frames": [
                {
                    "name": f"{owner}.{function}" if owner else function,
                    "filename": _LIBRARY + place,
                    "module": None,
                    "short_filename": place,
                    "line": line,
                    "locals": None,
                    "is_entry": False,
                }
                for owner, function, place, line in frames
            ],
            "process_info": None,
        }
        for name, number, frames in threads
    ]
    return json.dumps(document, indent=2) + "\n"


def faulthandler(doing: Doing, *, seconds: int) -> str:
    """Return what faulthandler prints after a timeout: the main thread last."""
    lines = [f"Timeout ({seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d})!"]
    for thread, frames in (("0x00007f3a51ffb6c0", _WORKER), ("0x00007f3c0dbd5740", _stack(doing))):
        lines.append(f"Thread {thread} (most recent call first):")
        lines += [
            f'  File "{_LIBRARY}{place}", line {line} in {function}'
            for _, function, place, line in frames
        ]
        lines.append("")
    return "\n".join(lines)


def recorded_frames(doing: Doing) -> list[dict[str, object]]:
    """Return the `frames` of a call in a flight recorder."""
    return [
        {"name": function, "filename": _LIBRARY + place, "line": line}
        for _, function, place, line in _stack(doing)
    ]


def _stack(doing: Doing) -> tuple[_Frame, ...]:
    return (*_PROGRAM[doing], *_OUTERMOST)
