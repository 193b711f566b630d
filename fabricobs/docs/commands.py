"""The verbs: docs/commands.md, a table of all, and the arguments and examples of each."""

from collections.abc import Iterator
from typing import Any

import typer

from fabricobs.cli import app
from fabricobs.report.markdown import code, page, table

# Run by tests/test_manual.py in a folder with the sample's logs and their store.
EXAMPLES: dict[str, str] = {
    "ingest": "fabricobs ingest sample_data/logs --store night-run --job pretrain",
    "sql": """
fabricobs sql "SELECT host, max(step_time_ms) FROM steps GROUP BY host"
fabricobs sql "FROM step_times" --format parquet --out step_times.parquet
echo "SELECT count(*) FROM collectives" | fabricobs sql --format csv
""",
    "query": """
fabricobs query --list
fabricobs query slowest_ranks --format csv --out slowest_ranks.csv
""",
    "diagnose": "fabricobs diagnose --fail-on high --format json",
    "explain": """
fabricobs explain          # ids and titles
fabricobs explain 99db     # the beginning of an id suffices
""",
    "compare": """
fabricobs compare steps:11..150 steps:160..300
fabricobs compare 2026-03-02T09:00..2026-03-02T09:07 2026-03-02T09:10.. --format json
""",
    "report": """
fabricobs report --out report.html
fabricobs report --out ticket.md --charts charts   # Markdown, its charts as PNG and SVG
""",
    "watch": "fabricobs watch sample_data/logs --once --window 6h --keep 30d",
    "prune": "fabricobs prune --keep 30d",
    "verify": "fabricobs verify",
    "schedule": """
fabricobs schedule cron sample_data/logs --every 10m
fabricobs schedule systemd sample_data/logs --out units
""",
    "config": "fabricobs config",
    "demo": "fabricobs demo --out demo",
    "simulate": """
fabricobs simulate --list
fabricobs simulate cluster healthy --gpus 16 --seed 7
fabricobs simulate world-12 --world random --seed 12
""",
    "check": "fabricobs check",
    "schema": """
fabricobs schema steps
fabricobs schema --views > views.sql      # then: duckdb -init views.sql
""",
    "bench": "fabricobs bench --help",
    "bench diagnosis": (
        "fabricobs bench diagnosis --tuning --scenario healthy --seeds 1 --size 16 --no-ablations"
    ),
    "bench scale": "fabricobs bench scale --size 16",
    "formats": "fabricobs formats",
    "formats try": "fabricobs formats try megatron sample_data/logs/train/node04.log --most 3",
    "formats new": ("fabricobs formats new my_notes sample_data/README.md --content mine"),
}


def verbs() -> Iterator[tuple[str, Any]]:
    """Yield each verb as it is typed after `fabricobs`, and its command."""
    yield from _below(typer.main.get_command(app), "")


def _below(group: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        yield prefix + name, command
        if hasattr(command, "commands"):
            yield from _below(command, f"{prefix}{name} ")


def commands_table() -> str:
    """Return the table of verbs, from the command line."""
    rows = ((f"`fabricobs {name}`", _summary(command)) for name, command in verbs())
    return table(("verb", "does"), rows)


def commands_sections() -> str:
    """Return a section for each verb: what it does, its arguments and options, examples."""
    return page(*(_section(name, command) for name, command in verbs())).strip()


def _section(name: str, command: Any) -> str:
    context = typer.Context(command, info_name=name)
    usage = " ".join(["fabricobs", name, *command.collect_usage_pieces(context)])
    records = [parameter.get_help_record(context) for parameter in command.get_params(context)]
    rows = [
        (f"`{written}`", meaning)
        for written, meaning in filter(None, records)
        if not written.startswith("--help")
    ]
    example = EXAMPLES.get(name, "").strip()
    return page(
        f"## {name}",
        command.help or "",
        f"`{usage}`",
        table(("argument or option", "meaning"), rows) if rows else "",
        code(example, "sh") if example else "",
    )


def _summary(command: Any) -> str:
    return (command.help or "").strip().partition("\n")[0]
