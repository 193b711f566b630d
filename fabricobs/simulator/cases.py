"""Writing cases: the logs of a scenario with its answer beside them, or a practice set."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fabricobs.simulator.fabric import observe
from fabricobs.simulator.logs import KINDS, Kind, usual_kinds, write_logs
from fabricobs.simulator.random_worlds import case as random_worlds
from fabricobs.simulator.random_worlds.scenario import WorldShape
from fabricobs.simulator.randomness import stream
from fabricobs.simulator.scenarios import Scenario, ScenarioError, load_scenario, scenario_names
from fabricobs.simulator.shapes import ScenarioShape
from fabricobs.simulator.truth import ground_truth
from fabricobs.simulator.world import come_true

ANSWER = "truth.json"


def write_case(
    directory: Path,
    scenario: Scenario,
    *,
    seed: int,
    kinds: Sequence[Kind] | None = None,
    answer: Path | None = None,
) -> dict[str, Any]:
    """Write `logs/` into a directory, and the answer to `answer` or to `truth.json` beside it.

    Same scenario, seed and kinds, same bytes. Files of the same names are replaced; nothing is
    deleted. Returns the answer; ScenarioError if the scenario cannot come true at its size, or if
    kinds are chosen of a drawn world, whose evidence is a property of it.
    """
    if isinstance(scenario.shape, WorldShape):
        if kinds is not None:
            raise ScenarioError(f"{scenario.name}: a drawn world; leave out the kinds of logs")
        told = random_worlds.write_logs(directory, scenario.shape.spec(seed))
        named = {"scenario": scenario.name, "title": scenario.shape.title}
        return _answered(told | named, answer or directory / ANSWER)
    try:
        world = come_true(scenario.name, scenario.shape, seed)
    except ValueError as error:
        raise ScenarioError(f"{scenario.name}: {error}") from error
    wanted = usual_kinds(world.cluster.shape.fabric) if kinds is None else kinds
    fitting = [kind for kind in wanted if world.cluster.shape.fabric in kind.fabrics]
    write_logs(directory / "logs", world, observe(world), fitting)
    return _answered(ground_truth(world), answer or directory / ANSWER)


def _answered(truth: dict[str, Any], target: Path) -> dict[str, Any]:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(truth, indent=2) + "\n", encoding="utf-8")
    return truth


def write_practice(
    directory: Path, *, cases: int, seed: int, gpus: int | None, kinds: Sequence[Kind] | None
) -> list[Path]:
    """Write cases whose names tell nothing, and their answers into a folder of its own."""
    scenarios = [load_scenario(name) for name in scenario_names() if name != "sample"]
    names = [s.name for s in scenarios if kinds is None or isinstance(s.shape, ScenarioShape)]
    random = stream(seed, 30)
    chosen = [str(name) for name in random.permutation(names)]
    folders = []
    for number in range(cases):
        scenario = load_scenario(chosen[number % len(chosen)]).sized(gpus)
        folder = directory / f"case{number + 1:02d}"
        answer = directory / "answers" / f"case{number + 1:02d}.json"
        write_case(folder, scenario, seed=seed + number, kinds=kinds, answer=answer)
        folders.append(folder)
    return folders


def by_job(
    logs: Path, truth: Mapping[str, Any], kinds: Sequence[Kind]
) -> list[tuple[str | None, list[Path]]]:
    """Folders of some kinds of a case's logs by the job to ingest them as, None for the rest.

    A drawn world has no kinds: all its logs are one folder.
    """
    if "spec" in truth:
        return [(None, [logs])]
    labels = [str(job["job"]) for job in truth["jobs"]]
    parts: list[tuple[str | None, Path]] = [(None, logs)]
    if len(labels) > 1:
        parts += [(label, logs / label) for label in labels]
    found = [
        (job, [folder / kind.name for kind in kinds if (folder / kind.name).is_dir()])
        for job, folder in parts
    ]
    return [(job, folders) for job, folders in found if folders]


def choose_kinds(only: Sequence[str], without: Sequence[str]) -> tuple[Kind, ...] | None:
    """The kinds of log named, or the usual ones but some; None for the usual ones."""
    known = {kind.name: kind for kind in KINDS}
    for name in (*only, *without):
        if name not in known:
            raise ScenarioError(f"no kind of log {name!r}; one of {', '.join(known)}")
    if only:
        return tuple(known[name] for name in only if name not in without)
    if without:
        return tuple(kind for kind in KINDS if kind.usual and kind.name not in without)
    return None


def describe() -> str:
    """The scenarios and the kinds of log, a line each."""
    scenarios = [f"  {name:28} {load_scenario(name).shape.title}" for name in scenario_names()]
    kinds = [
        f"  {kind.name:14} {'*' if kind.usual else ' '} {kind.family:9} {', '.join(kind.fabrics)}"
        for kind in KINDS
    ]
    heading = "Kinds of log (* written unless left out)"
    return "\n".join(["Scenarios", *scenarios, heading, *kinds])
