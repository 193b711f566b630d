"""Ranks that end by an error, in the words of Python, torchrun, DeepSpeed and Slurm."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_what_logs_say import diagnosed, of_kind

from conftest import Run

OUT_OF_MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB."
OWN = (
    OUT_OF_MEMORY,
    "RuntimeError: CUDA error: an illegal memory access was encountered",
    "AssertionError",
    "KeyError: 'input_ids'",
    "site.data.ShardMissingError: shard 17 of 4096",
)
OF_PEERS = (
    "torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/"
    "NCCLUtils.cpp:93, remote process exited or there was a network error, NCCL version 2.28.9",
    "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by "
    "peer [10.0.0.1]:11921",
    "ConnectionResetError: [Errno 104] Connection reset by peer",
)
STOPS = (
    "KeyboardInterrupt",
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
    "torch.distributed.elastic.multiprocessing.api.SignalException: Process 827 got signal: 15",
)


def traceback(rank: int, error: str, frames: int, prefix: str = "[rank{rank}]: ") -> list[str]:
    lines = ["Traceback (most recent call last):"]
    for frame in range(frames):
        lines.append(f'  File "/opt/train/part_{frame}.py", line {frame + 7}, in forward')
        lines.append(f"    return self.layers[{frame}](x)")
        if frame % 2:
            lines.append("           ^^^^^^^^^^^^^^^^^^^^^^")
    return [prefix.format(rank=rank) + line for line in (*lines, error)]


def steps(first: int, last: int) -> list[str]:
    return [
        f" iteration {i:8d}/     500 | consumed samples: {256 * i:12d} | elapsed time per "
        "iteration (ms): 250.0 | learning rate: 1.0E-05 | global batch size:   256 | lm loss: 8.0 |"
        for i in range(first, last)
    ]


def failures(fabricobs: Run, folder: Path, lines: list[str]) -> list[dict[str, Any]]:
    (folder / "train.log").write_text("\n".join(lines) + "\n")
    return of_kind(diagnosed(fabricobs, folder), "process_failure")


@pytest.mark.parametrize("seed", range(5))
def test_the_rank_whose_own_error_it_is_is_named(fabricobs: Run, tmp_path: Path, seed: int) -> None:
    chance = np.random.default_rng(seed)
    ranks = int(chance.integers(8, 33))
    bad = int(chance.integers(ranks))
    told = [traceback(bad, OWN[seed], int(chance.integers(1, 9)))]
    others = [int(rank) for rank in chance.choice(ranks, size=ranks // 3) if rank != bad]
    told.extend(traceback(rank, str(chance.choice(OF_PEERS)), 4) for rank in others)
    told.append(traceback(0, str(chance.choice(STOPS)), 3, prefix=""))
    chance.shuffle(told)
    world = [
        f"[rank{r}]: n{r // 8}:7{r}:7{r} [{r % 8}] NCCL INFO ncclCommInitRankConfig comm 0x5c "
        f"rank {r} nranks {ranks} cudaDev {r % 8} nvmlDev {r % 8} busId {r % 8}b000 commId 0x1 - "
        "Init COMPLETE"
        for r in range(ranks)
    ]
    lines = world + steps(1, 20) + [line for block in told for line in block]
    (found,) = failures(fabricobs, tmp_path, lines)
    assert [entity["rank"] for entity in found["entities"]] == [bad]
    assert found["title"].endswith(OWN[seed])
    assert found["severity"] == "high"


def test_what_a_program_survives_and_a_stop_by_hand_are_no_failure(
    fabricobs: Run, tmp_path: Path
) -> None:
    survived = traceback(3, "TimeoutError: the bucket does not answer", 4)
    stop = traceback(0, STOPS[0], 4)
    assert not failures(fabricobs, tmp_path, [*steps(1, 9), *survived, *steps(9, 20), *stop])


def test_an_error_that_was_survived_hides_none_that_was_not(fabricobs: Run, tmp_path: Path) -> None:
    survived = traceback(3, "TimeoutError: the bucket does not answer", 4)
    lines = [*steps(1, 9), *survived, *steps(9, 20), *traceback(5, OF_PEERS[2], 2)]
    (found,) = failures(fabricobs, tmp_path, lines)
    assert [entity["rank"] for entity in found["entities"]] == [5]


def test_what_python_ignores_is_no_failure(fabricobs: Run, tmp_path: Path) -> None:
    ignored = "Exception ignored in: <function Loader.__del__ at 0x7fdd55a00000>"
    lines = [*steps(1, 20), ignored, *traceback(0, "AttributeError: 'NoneType'", 2, prefix="")]
    assert not failures(fabricobs, tmp_path, lines)


def test_errors_of_communication_alone_accuse_nobody(fabricobs: Run, tmp_path: Path) -> None:
    (found,) = failures(fabricobs, tmp_path, [*steps(1, 9), *traceback(1, OF_PEERS[0], 4)])
    assert "What ended first no log here told" in found["explanation"]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (
            "[2026-02-03 04:05:06,412] [ERROR] [launch.py:322:sigkill_handler] "
            "['/usr/bin/python3', '-u', 'train.py'] exits with return code = -9",
            "signal 9 (SIGKILL)",
        ),
        ("srun: error: gpu-b2: task 5: Out Of Memory", "no memory left on its host"),
        ("srun: error: gpu-b1: task 3: Exited with exit code 7", "exit code 7"),
    ],
)
def test_what_launchers_say_of_a_process(
    fabricobs: Run, tmp_path: Path, line: str, what: str
) -> None:
    (found,) = failures(fabricobs, tmp_path, [*steps(1, 9), line])
    assert found["title"].endswith(f"ended by an error: {what}")


def test_ranks_of_a_job_of_unknown_size_are_named(fabricobs: Run, tmp_path: Path) -> None:
    """They were "process None", and 2 of 1 ranks."""
    ended = [f"srun: error: gpu-b1: task {rank}: Exited with exit code 7" for rank in (3, 9)]
    (found,) = failures(fabricobs, tmp_path, [*steps(1, 9), *ended])
    assert [entity["rank"] for entity in found["entities"]] == [3, 9]
    assert found["explanation"].startswith("2 ended so.")
    assert not found["drivers"]


def test_processes_that_end_after_a_time_out_are_no_failure(fabricobs: Run, tmp_path: Path) -> None:
    timed_out = (
        "[rank0]:[E101 10:00:00.000000000 ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught "
        "collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
        "Timeout(ms)=600000) ran for 600010 milliseconds before timing out."
    )
    ended = ["Root Cause (first observed failure):", "[0]:", "  rank      : 0 (local_rank: 0)",
             "  exitcode  : -6 (pid: 517)"]  # fmt: skip
    torchrun = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:"
    lines = [*steps(1, 9), timed_out, *traceback(0, OF_PEERS[0], 2), torchrun, *ended]
    assert not failures(fabricobs, tmp_path, lines)


def test_of_several_jobs_one_that_failed_is_not_without_a_problem(
    fabricobs: Run, tmp_path: Path
) -> None:
    for name, end in (("sound", []), ("failed", traceback(3, OUT_OF_MEMORY, 4))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.log").write_text("\n".join([*steps(1, 60), *end]) + "\n")
    fabricobs("ingest", str(tmp_path), "--store", str(tmp_path / "store"))
    shown = " ".join(fabricobs("diagnose", "--store", str(tmp_path / "store")).stdout.split())
    assert f"Worst is failed/train: rank 3 ended by an error: {OUT_OF_MEMORY}" in shown
    assert "1 job, no problem in what can be judged" in shown
    assert "questions open: sound/train `--job" in shown
