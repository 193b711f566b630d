"""The trainer's own log: `trainers.toml` says what each prints after a step."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from fabricobs.simulator.random_worlds.run import Course
from fabricobs.simulator.random_worlds.site import Site
from fabricobs.simulator.random_worlds.workload import batches_done

_TOKENS = 8192  # of one sequence


class Trainer(BaseModel):
    """One trainer of `trainers.toml`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    file: str
    line: str
    by: str = "first"
    head: str = ""
    table: str = ""
    saved: str = ""
    evaluated: str = ""
    timers: bool = False
    phases: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the job's output: when it is printed, by which rank of which launch."""

    moment: float
    launch: int
    rank: int
    text: str


@cache
def trainers() -> dict[str, Trainer]:
    """All trainers by name."""
    text = Path(__file__).with_name("trainers.toml").read_text(encoding="utf-8")
    return {name: Trainer.model_validate(entry) for name, entry in tomllib.loads(text).items()}


def prints_phases(site: Site) -> bool:
    """Whether the trainer's log tells compute, data and communication of what it tells apart."""
    trainer = trainers()[site.spec.trainer]
    return trainer.phases or (trainer.timers and site.spec.steps_from == "ranks")


def prints_work(site: Site) -> bool:
    """Whether the trainer's log tells how much work a step was."""
    line = trainers()[site.spec.trainer].line
    return any(f"{{{name}" in line for name in ("tokens", "tps", "rate", "tflops", "mfu"))


def prints_times(site: Site) -> bool:
    """Whether the trainer's log tells when a step was."""
    line = trainers()[site.spec.trainer].line
    return any(f"{{{name}" in line for name in ("at", "begun", "epoch"))


def printing_ranks(site: Site, course: Course) -> range:
    """The ranks that print steps."""
    trainer = trainers()[site.spec.trainer]
    ranks = course.launch.ranks
    if site.spec.steps_from == "ranks" and not trainer.timers:
        return range(ranks)
    return range(ranks - 1, ranks) if trainer.by == "last" else range(1)


def write_steps(site: Site) -> None:
    """Write a file for each rank that prints, all launches one after another."""
    if site.spec.steps_from == "none":
        return
    trainer = trainers()[site.spec.trainer]
    files: dict[str, list[str]] = {}
    for course in site.world.courses:
        for rank in printing_ranks(site, course):
            host = site.world.topology.devices[int(course.launch.host[rank])].name
            name = trainer.file.format(rank=rank, host=host, local=int(course.launch.local[rank]))
            begun = [trainer.table] if trainer.table and name not in files else []
            texts = [line.text for line in step_lines(site, course, rank)]
            files.setdefault(name, []).extend([*begun, *texts])
    for name, lines in files.items():
        site.write_job(name, "\n".join(lines) + "\n")


def step_lines(site: Site, course: Course, rank: int) -> Iterator[Line]:
    """What one rank prints in one launch."""
    trainer, launch = trainers()[site.spec.trainer], course.launch
    for step in range(course.steps):
        fields = step_fields(site, course, rank, step)
        moment = float(course.end[step])
        if step == 0 and trainer.head:
            yield Line(moment, launch.number, rank, trainer.head.format_map(fields))
        for text in trainer.line.strip("\n").format_map(fields).split("\n"):
            yield Line(moment, launch.number, rank, text)
        if trainer.timers and site.spec.steps_from == "ranks":
            for text in _timers(course, step):
                yield Line(moment, launch.number, rank, text)
        for happens, template in (
            (course.noise.evaluation, trainer.evaluated),
            (course.noise.saving, trainer.saved),
        ):
            if template and happens[step]:
                yield Line(moment, launch.number, rank, template.format_map(fields))


def _timers(course: Course, step: int) -> Iterator[str]:
    """Megatron's timers of each rank."""
    yield "times across ranks (ms):"
    for name, values in (
        ("forward-backward", course.compute[step] + course.rollout[step]),
        ("batch-generator", course.data[step]),
        ("all-grads-sync", course.exec_seconds[step].sum(axis=0)),
    ):
        yield f"  {name}:"
        yield from (f"     rank {rank:2d}: {v * 1e3:.2f}" for rank, v in enumerate(values.tolist()))


def step_fields(site: Site, course: Course, rank: int, step: int) -> dict[str, Any]:
    """Return what a rank may print of a step, by the names in `trainers.toml`."""
    launch, spec = course.launch, site.spec
    host = site.world.topology.devices[int(launch.host[rank])]
    clock = site.clock(host)
    number = launch.first + step
    seconds = float(course.seconds[step])
    batch = max(1, round(launch.ranks * spec.accumulation * float(course.noise.batch[step])))
    tokens = round(batch * _TOKENS * float(course.noise.sequence[step]))
    loss = 1.8 + 9.0 * float(np.exp(-number / 80)) + 0.02 * float(np.sin(7.0 * number))
    at = clock.local(float(course.end[step])).replace(tzinfo=None)
    compute, data = float(course.compute[step, rank]), float(course.data[step, rank])
    comm = max(seconds - compute - data - float(course.rollout[step, rank]), 0.0)
    compute += float(course.rollout[step, rank])
    speed = tokens / seconds
    share = float(course.noise.batch[step] * course.noise.sequence[step])  # of the final work
    return {
        "at": at,
        "begun": clock.local(float(course.begin[step])).replace(tzinfo=None),
        "milli": at.microsecond // 1000,
        "epoch": clock.epoch(float(course.end[step])),
        "wall": float(course.end[step]),
        "minutes": float(course.end[step]) / 60,
        "step": number + 1,
        "step0": number,
        "total": spec.steps,
        "last": spec.steps - 1,
        "percent": 100 * number / spec.steps,
        "rank": rank,
        "host": host.name,
        "pid": 4000 + int(launch.local[rank]),
        "event": f"{number * 2654435761 % 2**32:08x}",
        "seconds": seconds,
        "ms": seconds * 1e3,
        "ups": 1 / seconds,
        "compute": compute,
        "data": data,
        "comm": comm,
        "compute_ms": compute * 1e3,
        "data_ms": data * 1e3,
        "comm_ms": comm * 1e3,
        "batch": batch,
        "accumulation": spec.accumulation,
        "samples": round(batches_done(spec, number + 1) * launch.ranks * spec.accumulation),
        "tokens": tokens,
        "rate": round(speed),
        "tps": round(speed / launch.ranks),
        "tflops": 380 * share * spec.step_seconds / seconds,
        "mfu": 38 * share * spec.step_seconds / seconds,
        "loss": loss,
        "norm": 0.4 + 3 * float(np.exp(-number / 60)),
        "lr": 3e-4 * min(1.0, (number + 1) / 200),
    }
