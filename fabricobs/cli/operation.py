"""The commands of operation: watch, prune, schedule, config."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fabricobs import stopping
from fabricobs.cli.options import (
    UNKNOWN,
    ConfigOption,
    ContentOption,
    ExecutorOption,
    FailOnOption,
    FollowOption,
    JobOption,
    StoreOption,
    WindowOption,
    ZoneOption,
    check_fail_on,
    exit_code,
    given,
    opened,
)
from fabricobs.exceptions import UserError
from fabricobs.printing import escaped, note, show, show_data
from fabricobs.report.working import working

if TYPE_CHECKING:
    from fabricobs.operate.watch import Round
    from fabricobs.store.verification import Batch

EveryOption = Annotated[
    str | None,
    typer.Option("--every", help="Interval of the rounds, e.g. 30s, 5m, 1h (default: 5m)."),
]
LogsArgument = Annotated[list[Path], typer.Argument(help="Files and directories to read.")]


def watch(
    logs: LogsArgument,
    every: EveryOption = None,
    window: WindowOption = None,
    once: Annotated[
        bool,
        typer.Option(
            "--once", help="Run one round and exit with the code of diagnose, for schedulers."
        ),
    ] = False,
    store: StoreOption = None,
    job: JobOption = None,
    tz: ZoneOption = None,
    report: Annotated[
        Path | None, typer.Option(help="The HTML file (default: report.html in the store).")
    ] = None,
    keep: Annotated[
        str | None, typer.Option(help="Remove rows older than this, e.g. 30d (default: never).")
    ] = None,
    follow: FollowOption = None,
    fail_on: FailOnOption = "low",
    content: ContentOption = None,
    executor: ExecutorOption = None,
    config: ConfigOption = None,
) -> None:
    """Ingest, diagnose and send notifications in rounds: new, escalated and resolved incidents."""
    from fabricobs import api

    check_fail_on(fail_on)
    rounds = api.watch(
        logs, store, once=once, every=every, window=window, report=report, keep=keep, job=job,
        tz=tz, follow=follow, content=content or (), executor=executor, config=config, say=note,
    )  # fmt: skip
    if not once:
        stopping.exit_with(0)
    for done in rounds:
        _print_events(done)
        if once and (not done.well or done.diagnosis is None):
            raise typer.Exit(UNKNOWN)
        if once and done.diagnosis is not None:
            raise typer.Exit(exit_code(done.diagnosis, fail_on))


def prune(
    keep: Annotated[
        str | None,
        typer.Option(
            help="Remove rows this much older than the newest, e.g. 30d (default: only compact)."
        ),
    ] = None,
    store: StoreOption = None,
    config: ConfigOption = None,
) -> None:
    """Remove old rows from the store and merge small parts; a watch may run at the same time."""
    from fabricobs.config.schema import duration_words
    from fabricobs.report.wording import counted

    asked = opened(store, None, config)
    with working("pruning and merging"):
        pruned = asked.prune(keep)
        merged = asked.compact()
    if pruned is not None:
        show(
            f"Removed the rows of {counted(pruned.files, 'file')} older than "
            f"{duration_words(pruned.keep)}, {pruned.freed_bytes / 1e6:,.1f} MB."
        )
    show(f"Merged {merged:,} small batches.")


def verify(
    repair: Annotated[
        bool,
        typer.Option(
            "--repair",
            help="Take damaged batches out, so that the next ingest reads their inputs again, and "
            "make a damaged log, or one that an older release did not keep, anew.",
        ),
    ] = False,
    store: StoreOption = None,
    config: ConfigOption = None,
) -> None:
    """Verify that each part of the store is as it was written and that no file is stored twice.

    Exit codes: 0 no fault, 2 faults, 1 faults that --repair removed, 3 the store cannot be read.
    """
    from fabricobs.store import verification
    from fabricobs.store.location import shown
    from fabricobs.store.log import StoreError
    from fabricobs.store.reading import is_store

    path = given(config, store=store).store
    mended = False
    try:
        if not (path.is_dir() and is_store(path)):
            raise UserError(f"{shown(path)}: no store here")
        with working("comparing digests"):
            found = verification.verify(path)
    except StoreError as error:
        show(str(error))
        if not repair:
            note(f"to repair it: fabricobs verify --store {shown(path)} --repair")
            raise typer.Exit(2) from None
        for line in verification.rebuild(path):
            show(f"left out: {line}")
        found, mended = verification.verify(path), True
    faults = [line for batch in found for line in _faults(batch)]
    for line in faults:
        show(line)
    if repair and faults:
        for gone in verification.repair(path, found):
            show(_taken_out(gone))
    parts, size = sum(b.parts for b in found), sum(b.size_bytes for b in found)
    wrong = f"{len(faults)} faults" if faults else "sound"
    state = "repaired" if mended or (repair and faults) else wrong
    show(f"{len(found):,} batches, {parts:,} parts, {size / 1e6:,.1f} MB: {state}")
    if faults and not repair:
        note(f"to repair it: fabricobs verify --store {shown(path)} --repair")
        raise typer.Exit(2)
    if mended or faults:
        raise typer.Exit(1)


def _faults(batch: "Batch") -> list[str]:
    """Return what is wrong with a batch, a line each."""
    doubled = f"{batch.name} has the rows of {len(batch.doubled):,} files that are in another too"
    return [*batch.faults, *([doubled] if batch.doubled else [])]


def _taken_out(batch: "Batch") -> str:
    """Say what the next ingest must read again, and what it cannot."""
    from fabricobs.store.location import is_address

    paths = [Path(path) for path in batch.inputs.values()]
    gone = [path for path in paths if not (is_address(path) or path.exists())]
    lost = f"; {len(gone):,} of them are gone: {', '.join(map(str, gone[:5]))}" if gone else ""
    return f"{batch.name}: taken out; {len(paths):,} inputs to be read again{lost}"


def schedule(
    scheduler: Annotated[
        str, typer.Argument(help="cron, systemd, kubernetes, slurm, prometheus or grafana.")
    ],
    logs: Annotated[
        list[Path] | None, typer.Argument(help="Files and directories that a round reads.")
    ] = None,
    every: EveryOption = None,
    store: StoreOption = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Write the files to this directory instead of printing them."),
    ] = None,
    image: Annotated[
        str | None, typer.Option(help="Container image with fabricobs, for kubernetes.")
    ] = None,
    executor: ExecutorOption = None,
    workers: Annotated[
        int,
        typer.Option(
            help="Start this many workers of a Dask cluster too, for kubernetes and slurm.",
            min=0,
            max=1024,
        ),
    ] = 0,
    config: ConfigOption = None,
) -> None:
    """Print a unit that runs the watch, or rules and a dashboard over its metrics, to be installed.

    cron, systemd, kubernetes and slurm run rounds; prometheus and grafana read `notify.textfile`.
    """
    from fabricobs.config.load import load
    from fabricobs.operate import schedules
    from fabricobs.output_files import check_folder

    check_folder("--out", out)
    loaded = load(config, {"store": store, "watch.every": every})
    if not loaded.trusted:
        raise UserError(
            f"{loaded.file} is not trusted: name it with --config, or `fabricobs config --trust`"
        )
    plan = schedules.Plan.of(logs or [], loaded.config, loaded.file, image, executor, workers)
    made = schedules.units(scheduler, plan)
    for unit in made:
        if out is None:
            show_data(unit.text if len(made) == 1 else f"# {unit.path}\n{unit.text}")
        else:
            out.mkdir(parents=True, exist_ok=True)
            target = out / unit.path.name
            target.write_text(unit.text, encoding="utf-8")
            target.chmod(0o755 if unit.executable else 0o644)
            show(escaped(target))
    note(schedules.how_to_install(scheduler, plan))


def config(
    config: ConfigOption = None,
    trust: Annotated[
        bool,
        typer.Option(
            "--trust", help="Trust the current content of the configuration file, then print."
        ),
    ] = False,
) -> None:
    """Print the effective configuration and the origin of each value.

    A fabricobs.toml in the current directory may not set content, notification targets, retention
    or a store elsewhere until you trust it. After a change it must be trusted again.
    """
    from fabricobs.config.basics import find_file
    from fabricobs.config.load import in_force, load
    from fabricobs.config.trust import trust as remember

    if trust:
        file = find_file(config)
        if file is None:
            raise UserError("no configuration file to trust")
        note(f"{file} is trusted as it is now; to end that, remove {remember(file)}")
    from fabricobs.report.layout import fitted

    loaded = load(config)
    if loaded.warning:
        note(loaded.warning)
    rows = list(in_force(loaded))
    keys = max(len(key) for key, _, _ in rows)
    values = min(max(len(value) for _, value, _ in rows), 40)
    for key, value, source in rows:
        show(fitted(escaped(f"{key:{keys}} = {value:{values}}  # {source}")))


def _print_events(done: "Round") -> None:
    """Print one line an event: data, where notes go to standard error."""
    from fabricobs.report.wording import iso

    for event in done.events:
        incident = event.incident
        told = (iso(event.at), event.news, incident.severity, incident.finding.id)
        show(escaped(" ".join([*map(str, told), incident.finding.title])))
