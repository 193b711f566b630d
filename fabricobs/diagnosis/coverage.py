"""What the store holds to diagnose, and what is missing from it."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

from fabricobs.diagnosis.clocks import Offset, describe_offsets
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.findings import Clock, CounterBreak, Coverage
from fabricobs.diagnosis.shifted_times import shifted_times

# What the counts of the coverage are in JSON, and what each of them says.
VALUES = {
    "files": "inputs that were read",
    "unrecognised_files": "of no known format",
    "rowless_files": "of known formats, of which no line could be read",
    "broken_files": "with a part that could not be read",
    "lines": "of all inputs",
    "unread_lines": "of known formats, that could not be read",
    "unclaimed_lines": "that match no format",
    "ranks": "seen in the data",
    "ranks_expected": "that the jobs have as their logs say",
    "hosts": "of these ranks",
    "steps": "that a log tells",
    "steps_timed_by_collectives": "of these, where no log tells the times of steps",
    "collectives": "measured calls of a rank",
    "ports": "with counters",
    "devices": "with these ports",
    "interval_seconds": "between counters, median",
    "gaps": "in the counters",
    "cables": "whose ends are known",
    "connections": "of NCCL that its logs name",
    "priority_samples": "counters by priority or queue",
}


def _moment(time: datetime | None) -> str:
    return "unknown" if time is None else f"{time:%Y-%m-%d %H:%M:%S} UTC"


def _window(since: datetime) -> str:
    return f"from {_moment(since)} on; files, lines, ranks and settings are of the whole store"


def _extent(ranks: int | None, expected: int | None, hosts: int | None) -> str:
    """Say how many ranks of how many are told, on how many hosts; not all jobs tell their size."""
    told = f"{ranks:,}" if ranks else "not known"
    of = f" of {expected:,}" if expected and expected >= (ranks or 0) else ""
    where = "1 host" if hosts == 1 else f"{hosts or 0:,} hosts"
    if hosts:
        return f"{told}{of} on {where}"
    # Hosts may be known all the same, by cables and counters.
    return f"{told}{of}, no log of a job tells {'their hosts' if ranks else 'them'}"


def describe_coverage(
    evidence: Evidence, devices: Sequence[Offset] | None = None, hosts: Sequence[Offset] = ()
) -> Coverage:
    """Say what the store holds, and what would answer more questions.

    Nothing is said of clocks where `devices` is None: a clock is known from the steps of one job.
    """
    row = evidence.frame("coverage").row(0, named=True)
    interval = row["interval_seconds"]
    told_clocks: tuple[tuple[str, str], ...] = ()
    if devices is not None:
        told_clocks = (
            ("clock offsets of switches and NICs", describe_offsets(devices, "corrected")),
            (
                "clock offsets of hosts",
                describe_offsets(
                    hosts, "off by more than 1 s (steps are timed by the median host)"
                ),
            ),
        )
    shift = shifted_times(evidence)
    times = () if shift is None else (("times", f"{shift.difference}. {shift.remedy}"),)
    window = () if evidence.since is None else (("window", _window(evidence.since)),)
    facts = (
        *window,
        (
            "files",
            f"{row['files']:,} ({row['unrecognised_files']:,} not recognised"
            f"{_rowless(row['rowless_files'], row['rowless_formats'])})",
        ),
        (
            "lines",
            f"{row['lines']:,} (unread: {row['unread_lines']:,} in known formats, "
            f"{row['unclaimed_lines']:,} that match no format)",
        ),
        (
            "ranks",
            _extent(row["ranks"], row["ranks_expected"], row["hosts"]),
        ),
        ("steps", f"{row['steps']:,}{_timed(row['steps_timed_by_collectives'])}{_again(evidence)}"),
        ("collective measurements", f"{row['collectives']:,}"),
        ("ports", f"{row['ports']:,} on {row['devices']:,} devices"),
        ("counter interval", f"{interval:.0f} s" if interval else "none"),
        ("gaps in the counters", f"{row['gaps']:,}"),
        ("from", _begin(row["measured_from"], row["first_time"])),
        ("to", _moment(row["last_time"])),
        *told_clocks,
        *times,
    )
    wanted = {
        "steps": "step times: the trainer's log or per-rank step records",
        "collectives": "collective times: NCCL Inspector",
        "connections": "NCCL's choices: NCCL_DEBUG=INFO logs",
        "ports": "port counters: switches and NICs",
        "priority_samples": "pause and queue counters by priority",
        "cables": "cables: LLDP tables of the switches",
    }
    clocks = [Clock("device", o.device, o.seconds, o.error, o.certain) for o in devices or ()]
    clocks += [Clock("host", o.device, o.seconds, o.error, False) for o in hosts]
    return Coverage(
        facts,
        tuple(text for name, text in wanted.items() if not row[name]),
        tuple(clocks),
        tuple(CounterBreak(*values) for values in evidence.frame("counter_breaks").iter_rows()),
        row["first_time"],
        row["last_time"],
        {name: int(row[name]) if isinstance(row[name], Decimal) else row[name] for name in VALUES},
        row["measured_from"],
    )


def _rowless(files: int, formats: str | None) -> str:
    """Say which files are known by their formats and gave nothing: they are not missing."""
    return f"; of {files:,} no line could be read: {formats}" if files else ""


def _timed(by_collectives: int) -> str:
    if not by_collectives:
        return ""
    return ", whose times are those of the collectives whose lengths change with theirs"


def _again(evidence: Evidence) -> str:
    """Say when steps were done again, from which on: a restart goes back to a checkpoint."""
    restarts = evidence.frame("restarts")
    if restarts.is_empty():
        return ""
    last = restarts.row(-1, named=True)
    at = f" at {last['ts']:%H:%M:%S} UTC" if last["ts"] is not None else ""
    to = f"to step {last['step']:,}{at}"
    times = f"{len(restarts):,} times, last " if len(restarts) > 1 else ""
    return f" (went back {times}{to})"


def _begin(measured: datetime | None, first: datetime | None) -> str:
    """Say when the data begin, and other logs where they reach further back."""
    if measured is None or first is None or first >= measured:
        return _moment(measured or first)
    return f"{_moment(measured)} (other logs from {_moment(first)})"
