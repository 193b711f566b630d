"""The commands that simulate clusters: the demo, practice cases, the bench of the diagnosis."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from fabricobs.cli.examples import epilog
from fabricobs.cli.options import Command, CommandGroup
from fabricobs.exceptions import UserError
from fabricobs.printing import escaped, show
from fabricobs.report.working import working
from fabricobs.simulator import SEED

SeedOption = Annotated[
    int, typer.Option(help="Seed; the same seed gives the same bytes.", min=0, max=2**31 - 1)
]

GivenOption = Annotated[
    list[str] | None,
    typer.Option(help="A property of random worlds, NAME=VALUE, that is not drawn; repeatable."),
]

bench_app = typer.Typer(
    cls=CommandGroup,
    help="Measure the accuracy and speed of fabricobs.",
    epilog=epilog("bench"),
    no_args_is_help=True,
)


def demo(
    scenario: Annotated[
        str | None,
        typer.Argument(help="A scenario of `simulate --list` (default: the included sample)."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Directory for store and report.")] = Path(
        "fabricobs-demo"
    ),
    gpus: Annotated[
        int | None, typer.Option(help="Number of GPUs of the simulated cluster.")
    ] = None,
    seed: SeedOption = SEED,
) -> None:
    """Diagnose the included sample cluster, or a simulated one, and write its report."""
    from fabricobs.demo import run_demo, run_scenario
    from fabricobs.output_files import check_folder

    check_folder("--out", out)
    if scenario is None:
        if gpus is not None:
            raise UserError("--gpus needs a scenario; the sample cluster has its size")
        run_demo(out)
    else:
        run_scenario(scenario, out, gpus=gpus, seed=seed)


def simulate(
    directory: Annotated[
        Path | None, typer.Argument(help="Directory for logs and answers.")
    ] = None,
    scenarios: Annotated[
        list[str] | None,
        typer.Argument(help="Names of scenarios, or your TOML files (default: a practice set)."),
    ] = None,
    list_: Annotated[
        bool, typer.Option("--list", help="List the scenarios and the kinds of logs.")
    ] = False,
    cases: Annotated[int, typer.Option(help="Number of cases of the practice set.", min=1)] = 10,
    gpus: Annotated[int | None, typer.Option(help="Number of GPUs, a multiple of 8.")] = None,
    seed: SeedOption = SEED,
    only: Annotated[list[str] | None, typer.Option(help="Kinds of logs to write.")] = None,
    without: Annotated[list[str] | None, typer.Option(help="Kinds of logs to leave out.")] = None,
    world: Annotated[
        Literal["random"] | None,
        typer.Option(help="`random`: the seed draws cluster, job, formats, evidence and faults."),
    ] = None,
    given: GivenOption = None,
) -> None:
    """Write logs of simulated clusters with known faults, and the answers beside them."""
    from fabricobs import api
    from fabricobs.report.layout import fitted
    from fabricobs.simulator.cases import describe

    if list_:
        show(fitted(describe()))
        return
    if directory is None:
        raise UserError("give the directory to write to, or --list")
    with working("simulating"):
        folders = api.simulate(
            directory, scenarios or (), cases=cases, gpus=gpus, seed=seed, only=only or (),
            without=without or (), world=world, given=given or (),
        )  # fmt: skip
    if not scenarios and world is None:
        show(f"{directory}: {cases} cases; the answers are in {directory / 'answers'}")
        return
    for folder in folders:
        show(escaped(folder))


@bench_app.command("diagnosis", cls=Command, epilog=epilog("bench diagnosis"))
def bench_diagnosis(
    seeds: Annotated[int, typer.Option(help="Number of seeds per scenario.", min=1, max=1000)] = 5,
    size: Annotated[
        int, typer.Option(help="Number of GPUs of each cluster, a multiple of 8.")
    ] = 128,
    scenario: Annotated[list[str] | None, typer.Option(help="Run only these scenarios.")] = None,
    ablations: Annotated[
        bool, typer.Option(help="Also diagnose each case from one kind of evidence alone.")
    ] = True,
    tuning: Annotated[
        bool, typer.Option("--tuning", help="Use the seeds on which thresholds may be tuned.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Write every score as JSON lines.")] = None,
    calibrate: Annotated[
        Path | None,
        typer.Option(help="Write the measured precision of findings, for models/confidence.csv."),
    ] = None,
    worlds: Annotated[
        int | None, typer.Option(help="Score this many random worlds instead of scenarios.", min=1)
    ] = None,
    first_seed: Annotated[
        int | None,
        typer.Option(
            help="First seed of the worlds; below 10000 for tuning (default: 10000).", min=1
        ),
    ] = None,
    given: GivenOption = None,
) -> None:
    """Score the diagnosis on simulated clusters with known faults."""
    from fabricobs.bench import random_worlds
    from fabricobs.bench.scoreboard import bench
    from fabricobs.output_files import check_target
    from fabricobs.simulator.scenarios import load_scenario

    check_target("--out", out)
    if worlds is not None:
        with working("scoring"):
            scores = random_worlds.bench(worlds, first_seed, given or (), out)
        show(scores)
        return
    if first_seed is not None or given:
        raise UserError("--first-seed and --given need --worlds")
    check_target("--calibrate", calibrate)
    for name in scenario or ["straggling_rank"]:
        load_scenario(name).sized(size)
    with working("scoring"):
        scores = bench(
            seeds, size, scenario or (), ablations=ablations, tuning=tuning, out=out,
            calibration=calibrate,
        )  # fmt: skip
    show(scores)


@bench_app.command("scale", cls=Command, epilog=epilog("bench scale"))
def bench_scale(
    size: Annotated[
        list[int] | None, typer.Option(help="Number of GPUs; repeatable (default: 256, 512, 1024).")
    ] = None,
) -> None:
    """Measure ingest and diagnosis by cluster size: seconds, memory, seconds per row."""
    from fabricobs.bench import scale
    from fabricobs.simulator.scenarios import load_scenario

    for gpus in size or ():
        load_scenario(scale.SCENARIO).sized(gpus)
    with working("measuring"):
        measured = scale.bench(size or scale.SIZES)
    show(measured)
