"""Examples of the commands, for `--help` and the manual."""

# Run by tests/test_manual.py in a folder with the sample's logs and their store.
_EXAMPLES = {
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
fabricobs explain 99db --sql
""",
    "compare": """
fabricobs compare steps:11..150 steps:160..300
fabricobs compare 2026-03-02T09:00..2026-03-02T09:07 2026-03-02T09:10.. --format json
""",
    "report": """
fabricobs report --out report.html
fabricobs report --site site                       # pages: incidents, hosts, switches, jobs
fabricobs report --out ticket.md --charts charts   # Markdown, its charts as PNG and SVG
""",
    "watch": "fabricobs watch sample_data/logs --once --window 6h --keep 30d",
    "prune": "fabricobs prune --keep 30d",
    "verify": "fabricobs verify",
    "schedule": """
fabricobs schedule cron sample_data/logs --every 10m
fabricobs schedule systemd sample_data/logs --out units
fabricobs schedule prometheus        # alerting rules over notify.textfile
fabricobs schedule grafana --out units
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
fabricobs schema --json > diagnosis.schema.json
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

EXAMPLES = {command: text.strip() for command, text in _EXAMPLES.items()}


def epilog(command: str) -> str:
    """Return what stands below the help of a command; its lines stay as they are (`\\b`)."""
    return "\n  ".join(["\b\nExamples:", *EXAMPLES[command].splitlines()])
