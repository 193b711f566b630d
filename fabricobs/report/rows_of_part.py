"""Conditions of the rows of a table that are of a finding's culprits, and where a row stands."""

from collections.abc import Container
from datetime import timedelta

from fabricobs.diagnosis.findings import Entity, Finding
from fabricobs.report.evidence_rows import Aliases, timestamp_literal
from fabricobs.report.input_lines import is_table
from fabricobs.store.sandbox import literal

# Counters are read before and after what they tell, by clocks that are apart.
_AROUND = timedelta(minutes=1)
_READ_WITHIN = timedelta(minutes=10)  # most sites do
# Formats of one document with many records: the store counts those, not its lines.
_OF_RECORDS = frozenset(
    {"flight_recorder", "kineto", "mlflow_db", "nccl_trace", "ndtimeline", "py_spy", "tensorboard"}
)


def place(path: str, line: int | None, formats: str = "") -> str:
    """Return where a row stands: a line as compilers write it, a row, or a record of a document."""
    if line is None:
        return path
    if is_table(path):
        return f"{path} row {line}"
    return f"{path} record {line}" if is_of_records(formats) else f"{path}:{line}"


def is_of_records(formats: str) -> bool:
    """Say whether the store counts the records of files of these formats, not their lines."""
    return formats in _OF_RECORDS


def condition_of(finding: Finding, columns: Container[str], aliases: Aliases) -> str:
    """Return the condition that a row is of a culprit, of any part without one; empty if none is.

    `columns` are those of the table.
    """
    named = [_is(entity, columns, aliases) for entity in finding.entities] or ["true"]
    return " OR ".join(dict.fromkeys(f"({test})" for test in named if test))


def time_condition(finding: Finding, *, counts: bool) -> str:
    """Return ` AND ...` that a row is of a finding's time; rows that count may be of before it."""
    if finding.start is None:
        return ""
    since = finding.start - (_READ_WITHIN if counts else _AROUND)
    during = f" AND coalesce(ts >= {timestamp_literal(since)}, true)"
    if finding.end is not None:
        during += f" AND coalesce(ts <= {timestamp_literal(finding.end + _AROUND)}, true)"
    return during


def step_condition(finding: Finding, columns: Container[str]) -> str:
    """Return ` AND ...` that a row without a time, as of a timer, is of a finding's steps."""
    if finding.start_step is None or "ts" not in columns or "step" not in columns:
        return ""
    last = "" if finding.end_step is None else f" AND step <= {finding.end_step}"
    return f" AND (ts IS NOT NULL OR coalesce(step >= {finding.start_step}{last}, true))"


def _is(entity: Entity, columns: Container[str], aliases: Aliases) -> str:
    """Return the condition that a row of a table is of the entity, empty where no column tells."""
    of_gpu = entity.type == "gpu" and entity.gpu is not None and "gpu" in columns
    if entity.rank is not None and "rank" in columns and not of_gpu:
        # Another job may have a rank of this number on another host.
        is_here = entity.host and "host" in columns
        here = f"coalesce(host_name(host) = {literal(entity.host or '')}, true)"
        return f"rank = {entity.rank}{f' AND {here}' if is_here else ''}"
    if entity.type == "job" and entity.job is not None:
        return f"job = {literal(entity.job)}" if "job" in columns else ""
    if "remote_device" in columns:
        ends = (
            ("device", "port"),
            ("remote_device", "remote_port"),
            ("remote_device", "remote_port_description"),
        )
        return " OR ".join(filter(None, (_is_at(entity, *end, aliases) for end in ends)))
    owner, parts = entity.host or entity.switch, "part" in columns
    column = next((name for name in ("device", "host") if name in columns), None)
    # Of tables of hosts those of events have switches, too.
    if owner is None or column is None or (column == "host" and entity.switch and not parts):
        return ""
    if of_gpu:
        return f"{_is_owner(entity, column)} AND gpu = {entity.gpu}"
    part = next((name for name in ("port", "nic", "part") if name in columns), None)
    return _is_at(entity, column, part, aliases)


def _is_owner(entity: Entity, column: str) -> str:
    named = f"host_name({column})" if entity.host else column
    return f"{named} = {literal(entity.host or entity.switch or '')}"


def _is_at(entity: Entity, owner: str, part: str | None, aliases: Aliases) -> str:
    """Return the condition that two columns name the entity, empty where they cannot."""
    names = [entity.port] if entity.port else []
    if entity.nic:
        names = [entity.nic, *aliases.get((entity.host or "", entity.nic), ())]
    if not names:
        return _is_owner(entity, owner)
    if part is None:
        return ""
    # A NIC is meant by its port, too: mlx5_0 by mlx5_0/1.
    called = [part, f"split_part({part}, '/', 1)"] if entity.nic else [part]
    listed = ", ".join(dict.fromkeys(literal(name) for name in names))
    is_part = " OR ".join(f"{name} IN ({listed})" for name in called)
    return f"{_is_owner(entity, owner)} AND ({is_part})"
