"""Trainers' lines of many ranks in one file, behind what launchers and log services put there.

Values, ranks, hosts and times must come out, whoever wrote the prefixes and in whatever order.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from test_trainers_wrapped import TRAINERS, Trainer

from fabricobs.formats.context import Context
from fabricobs.formats.reading import read_file
from fabricobs.formats.recognition.catalogue import load_catalogue
from fabricobs.formats.rows import Rows

CATALOGUE = load_catalogue()
START = datetime(2026, 3, 2, 9, 0, 0)
NODES, GPUS = 2, 4


@dataclass(frozen=True)
class Line:
    """Of which process a line is, and when it was written."""

    rank: int
    ts: datetime
    digits: int

    @property
    def node(self) -> int:
        return self.rank // GPUS

    @property
    def host(self) -> str:
        return f"node{self.node + 7:02d}"

    @property
    def pod(self) -> str:
        return f"train-worker-{self.node}"

    @property
    def padded(self) -> str:
        """The rank as `srun -l` writes it: right-aligned by the number of tasks."""
        return f"{self.rank:>{self.digits}}"

    @property
    def utc(self) -> str:
        return self.ts.isoformat(timespec="milliseconds") + "Z"

    @property
    def cest(self) -> str:
        return (self.ts + timedelta(hours=2)).isoformat(timespec="milliseconds") + "+02:00"

    @property
    def short(self) -> str:
        return f"{self.ts:%b} {self.ts.day:>2} {self.ts:%H:%M:%S}"


# What a prefix writes, and which columns it tells: rank, host, pod (as the host), ts, or whole
# seconds of it.
Prefix = tuple[Callable[[Line], str], str]
# Those that name the process or the place stand outside, a time or PyTorch's rank within.
OUTER: dict[str, Prefix] = {
    "srun -l": (lambda of: f"{of.padded}: ", "rank"),
    "mpiexec -prepend-rank": (lambda of: f"[{of.rank}] ", "rank"),
    "Open MPI --tag-output, stdout": (lambda of: f"[1,{of.rank}]<stdout>:", "rank"),
    "Open MPI --tag-output, stderr": (lambda of: f"[1,{of.rank}]<stderr>:", "rank"),
    "Open MPI 5": (lambda of: f"[prterun-login-71@1,{of.rank}]<stdout>: ", "rank"),
    "Open MPI 5, detailed": (
        lambda of: f"[prterun-login-71@1,{of.rank}][{of.host}:{900 + of.rank}]<stdout>: ",
        "rank host",
    ),
    "Horovod": (lambda of: f"[{of.rank}]<stdout>:", "rank"),
    "kubectl --prefix": (lambda of: f"[pod/{of.pod}/pytorch] ", "pod"),
    "stern": (lambda of: f"{of.pod} pytorch ", "pod"),
    "stern, new": (lambda of: f"{of.pod} › pytorch › ", "pod"),
    "docker compose": (lambda of: f"{of.host}  | ", "host"),
    "pdsh": (lambda of: f"{of.host}: ", "host"),
    "parallel --tag": (lambda of: f"{of.host}\t", "host"),
    "journalctl": (lambda of: f"{of.short} {of.host} train[{900 + of.rank}]: ", "host seconds"),
    "syslog without a process": (lambda of: f"{of.short} {of.host} train: ", "host seconds"),
    "a container's id in syslog": (
        lambda of: f"{of.short} {of.host} 3fa2b1c0d4e5[{900 + of.rank}]: ",
        "host seconds",
    ),
    "journalctl -o short-iso": (
        lambda of: f"{of.ts:%Y-%m-%dT%H:%M:%S}+0000 {of.host} train[{900 + of.rank}]: ",
        "host seconds",
    ),
    "rsyslog": (lambda of: f"{of.cest} {of.host} train[{900 + of.rank}]: ", "host ts"),
    "rsyslog without a process": (lambda of: f"{of.cest} {of.host} train: ", "host ts"),
    "RFC 5424": (lambda of: f"<14>1 {of.utc} {of.host} train {900 + of.rank} - - ", "host ts"),
    "RFC 3164": (
        lambda of: f"<14>{of.short} {of.host} train[{900 + of.rank}]: ",
        "host seconds",
    ),
    "nothing": (lambda of: "", ""),
}
INNER: dict[str, Prefix] = {
    "nothing": (lambda of: "", ""),
    "torchrun": (lambda of: f"[default{of.rank % GPUS}]:", "local"),
    "PyTorch": (lambda of: f"[rank{of.rank}]: ", "rank"),
    "srun -l": (lambda of: f"{of.padded}: ", "rank"),
    "Open MPI": (lambda of: f"[1,{of.rank}]<stdout>:", "rank"),
    "UTC": (lambda of: f"{of.utc} ", "ts"),
    "a zone": (lambda of: f"{of.cest} ", "ts"),
    "no zone": (lambda of: f"{of.utc[:-1]} ", "ts"),
    "no zone, comma": (lambda of: f"{of.utc[:-1].replace('T', ' ').replace('.', ',')} ", "ts"),
    "brackets": (lambda of: f"[{of.ts:%Y-%m-%d %H:%M:%S}] ", "seconds"),
    "brackets with a zone": (lambda of: f"[{of.cest}] ", "ts"),
}
ALL_TRAINERS = TRAINERS | {
    "Megatron-LM": Trainer(
        lambda step, s: (
            f" iteration {step:8d}/   99999 | consumed samples: {1024 * step:12d} | elapsed time "
            f"per iteration (ms): {1000 * s}.0 | learning rate: 1.500E-04 | global batch size:  "
            "1024 | lm loss: 2.500000E+00 | loss scale: 1.0 | grad norm: 0.912 |"
        ),
        "step_time_ms",
    )
}
# It has a time of its own in each line; the last one tells no step.
NAMES = sorted(ALL_TRAINERS.keys() - {"OpenRLHF", "a loop with only other times"})


def read(path: Path, text: str) -> tuple[list[dict[str, Any]], int]:
    """Return the steps of a log, and how many of its lines were not read."""
    path.write_text(text)
    recognised = CATALOGUE.recognise(path.read_bytes(), str(path))
    rows = Rows()
    written = int(datetime(2026, 3, 3, tzinfo=UTC).timestamp() * 1e6)
    context = Context("f", modified_us=written)
    result = read_file(path, recognised, context, rows, lambda: None)
    steps = [row for table, part in rows.drain() if table == "steps" for row in part.to_pylist()]
    return steps, result.tally.unparsed


def expected(line: Line, step: int, ms: float, told: set[str]) -> tuple[object, ...]:
    host = line.host if "host" in told else line.pod if "pod" in told else None
    ts = line.ts if "ts" in told else line.ts.replace(microsecond=0) if "seconds" in told else None
    # Below torchrun a launcher starts one process a node: its rank is the node's.
    rank = line.rank if "rank" in told and "local" not in told else None
    return step, ms, rank, host, ts


@pytest.mark.parametrize("outer", OUTER)
@pytest.mark.parametrize("seed", range(3))
def test_what_stands_before_trainers_lines_is_told(tmp_path: Path, outer: str, seed: int) -> None:
    draw = random.Random(f"{outer} {seed}")
    before, told_before = OUTER[outer]
    # Which of two ranks or times wins is not asked.
    asked = {"rank", "local"} if "rank" in told_before else set()
    asked |= {"ts", "seconds"} if {"ts", "seconds"} & {*told_before.split()} else set()
    within = [
        name
        for name, (_, tells) in INNER.items()
        if tells not in asked or (name, tells) == ("torchrun", "local")
    ]
    inner = draw.choice(within)
    after, told_after = INNER[inner]
    told = {*told_before.split(), *told_after.split()}
    name = draw.choice(NAMES)
    trainer, digits = ALL_TRAINERS[name], draw.choice((1, 2, 3))
    lines, wanted, ts = [], set(), START
    for step in range(7, 13):
        for rank in draw.sample(range(NODES * GPUS), NODES * GPUS):
            ts += timedelta(milliseconds=draw.randint(1000, 3000))
            line, seconds = Line(rank, ts, digits), 10 * draw.randint(1, 99) + rank
            texts = trainer.write(step, seconds).split("\n")
            lines += [before(line) + after(line) + text for text in texts]
            wanted.add(expected(line, step, 1000.0 * seconds, told))
    steps, unread = read(tmp_path / "train.log", "\n".join(lines) + "\n")
    found = {
        (
            row["step"],
            row[trainer.column],
            row["rank"],
            row["host"],
            row["ts"].replace(tzinfo=None) if row["ts_source"] == "inline" else None,
        )
        for row in steps
    }
    assert found == wanted, f"{outer} / {inner} / {name}: {lines[0]}"
    assert unread == 0


@pytest.mark.parametrize(
    "outer", ["docker compose", "pdsh", "parallel --tag", "rsyslog without a process"]
)
def test_a_number_that_each_host_counts_is_no_rank(tmp_path: Path, outer: str) -> None:
    """As `mpirun` in each container numbers its own processes, or a trainer its lines."""
    before, _ = OUTER[outer]
    lines, wanted = [], set()
    for step in range(1, 15):
        for rank in range(NODES * GPUS):
            line, seconds = (
                Line(rank, START + timedelta(seconds=8 * step + rank), 1),
                8 * step + rank,
            )
            text = ALL_TRAINERS["Megatron-LM"].write(step, seconds)
            lines.append(f"{before(line)}{rank % GPUS}: {text}")
            wanted.add((step, 1000.0 * seconds, None, line.host))
    steps, _ = read(tmp_path / "train.log", "\n".join(lines) + "\n")
    found = {(row["step"], row["step_time_ms"], row["rank"], row["host"]) for row in steps}
    assert found == wanted


@pytest.mark.parametrize("word", ["worker0", "node", "Epoch"])
def test_words_of_a_trainer_after_a_time_are_no_host(tmp_path: Path, word: str) -> None:
    """Only syslog's own times stand before a host and a program."""
    line = Line(0, START, 1)
    lines = [
        f"{line.utc[:-1].replace('T', ' ')} {word} step: {step} loss: 0.25 time: 4.0s"
        for step in range(1, 20)
    ]
    steps, _ = read(tmp_path / "train.log", "\n".join(lines) + "\n")
    assert {row["host"] for row in steps} <= {None}
