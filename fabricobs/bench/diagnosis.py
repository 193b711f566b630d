"""`fabricobs bench diagnosis`: every scenario, several seeds, from logs to findings, scored.

Tuning seeds and scoring seeds are apart: a threshold may be chosen by looking at the first, and the
figures anybody quotes come from the second.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from fabricobs.bench.scoring import Score, score_case
from fabricobs.diagnosis.run import diagnose
from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.resources import cores, raise_gc_threshold
from fabricobs.simulator.cases import by_job, write_case
from fabricobs.simulator.logs import Kind, usual_kinds
from fabricobs.simulator.scenarios import load_scenario, scenario_names
from fabricobs.simulator.shapes import ScenarioShape
from fabricobs.store.parts import Store

TUNING_SEEDS = range(1_000, 2_000)
SCORING_SEEDS = range(7_000, 8_000)

EVERYTHING = "everything"
ABLATIONS = ("timing", "counters", "logs")

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Case:
    """One scenario with one seed, and which kinds of evidence it is judged from.

    Not `calibrated`, its findings say how far their evidence agrees.
    """

    scenario: str
    seed: int
    gpus: int
    views: tuple[str, ...]
    calibrated: bool = True


@dataclass(frozen=True, slots=True)
class Result:
    """The scores of a case by view, its lines and those unread, and what it took in seconds."""

    case: Case
    scores: dict[str, Score]
    lines: int
    unread: int
    simulated: float
    ingested: float
    diagnosed: float


def scored_scenarios() -> list[str]:
    """All scenarios but the sample, which tests have seen."""
    return [name for name in scenario_names() if name != "sample"]


def plan(
    scenarios: Sequence[str], seeds: Sequence[int], gpus: int, *, ablations: bool, calibrated: bool
) -> list[Case]:
    """All cases; with `ablations` faults of the first seed are judged from single families too."""
    shapes = {name: load_scenario(name).shape for name in scenarios}
    ablated = {
        name
        for name, shape in shapes.items()
        if ablations and isinstance(shape, ScenarioShape) and shape.faults
    }

    def views(scenario: str, seed: int) -> tuple[str, ...]:
        alone = ABLATIONS if scenario in ablated and seed == seeds[0] else ()
        return (EVERYTHING, *alone)

    return [
        Case(scenario, seed, gpus, views(scenario, seed), calibrated)
        for seed in seeds
        for scenario in scenarios
    ]


def run_cases(cases: Sequence[Case]) -> Iterator[Result]:
    """Run the cases, one a core at a time, in order of completion."""
    return in_workers(run_case, cases)


def in_workers(run: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
    """Run tasks in processes of their own, one a core at a time, in order of completion."""
    # Read when a library loads, which is before a worker begins: the parent hands them down.
    os.environ |= dict.fromkeys(("POLARS_MAX_THREADS", "OMP_NUM_THREADS"), "1")
    context = get_context("spawn")
    free: Queue[int] = context.Queue()
    if hasattr(os, "sched_getaffinity"):
        for core in os.sched_getaffinity(0):
            free.put(core)
    with ProcessPoolExecutor(cores(), context, _begin, (free,)) as pool:
        for done in as_completed([pool.submit(run, task) for task in tasks]):
            yield done.result()


def _begin(free: "Queue[int]") -> None:
    """Begin as a command does; libraries get one core, or their threads are in each other's way."""
    raise_gc_threshold()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {free.get()})


def run_case(case: Case) -> Result:
    """Simulate, ingest, diagnose and score one case in a directory that is removed again."""
    folder = Path(tempfile.mkdtemp(prefix="fabricobs-bench-"))
    try:
        return _run_in(folder, case)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run_in(folder: Path, case: Case) -> Result:
    began = time.perf_counter()
    scenario = load_scenario(case.scenario).sized(case.gpus)
    truth = write_case(folder, scenario, seed=case.seed)
    simulated = time.perf_counter()
    stores = _ingest(folder, truth, case.views)
    ingested = time.perf_counter()
    scores = {}
    for view in case.views:
        scores[view] = score_case(
            truth,
            diagnose(stores[view], calibrate=case.calibrated),
            interval_seconds=scenario.switch_interval,
            step_seconds=truth["jobs"][0]["step_seconds"],
        )
    diagnosed = time.perf_counter()
    times = (simulated - began, ingested - simulated, diagnosed - ingested)
    return Result(case, scores, *_lines(stores[EVERYTHING]), *times)


def _lines(store: Path) -> tuple[int, int]:
    files = pl.scan_parquet(f"{store}/*/files.parquet").select("lines", "unparsed").sum()
    lines, unread = files.collect().row(0)
    return int(lines), int(unread)


def _ingest(folder: Path, truth: Mapping[str, Any], views: Sequence[str]) -> dict[str, Path]:
    """Return a store of everything and, if asked, one a family of evidence, by view."""
    kinds = usual_kinds(truth["fabric"])
    stores = {view: folder / f"store-{view}" for view in views}
    for view, store in stores.items():
        if view != EVERYTHING:
            _ingest_kinds(folder, truth, [k for k in kinds if k.family == view], store)
            shutil.copytree(store, stores[EVERYTHING], dirs_exist_ok=True)
    if len(views) == 1:
        _ingest_kinds(folder, truth, kinds, stores[EVERYTHING])
    return stores


def _ingest_kinds(
    folder: Path, truth: Mapping[str, Any], kinds: Sequence[Kind], store: Path
) -> None:
    for job, logs in by_job(folder / "logs", truth, kinds):
        ingest(logs, Store(store), Options(job), workers=1)
