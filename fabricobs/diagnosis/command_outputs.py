"""Where the logs already hold what a next step asks a person to run.

`models/command_outputs.csv` names, for each command (a regular expression that matches its
beginning), the formats that read its output. A format that reads the outputs of several commands
is told apart by `settings`: an expression for the name of a setting that the output has.
"""

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import PurePath
from typing import Any

import polars as pl

from fabricobs import content
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.findings import Finding

_COMMAND = re.compile(r"`([^`]+)`")
_MOST = 2  # files that a step names
Files = Mapping[str, Sequence[Mapping[str, Any]]]
Names = Mapping[tuple[str, str], Sequence[str]]  # of each NIC, by host and NIC


def with_outputs(findings: Sequence[Finding], evidence: Evidence) -> tuple[Finding, ...]:
    """Return findings whose next steps name the files that hold the output of their commands.

    A file counts if it is of a device that the step names, else of one of the culprits, tells of a
    time when the fault had begun, and is not called after a NIC that is none of theirs.
    """
    asked = {name for finding in findings for name in _devices(finding)}
    files = evidence.frame("files_of_devices").filter(pl.col("device").is_in(sorted(asked)))
    nics = evidence.frame("names_of_nics").filter(pl.col("host").is_in(sorted(asked)))
    names: dict[tuple[str, str], list[str]] = {}
    for host, nic, name in nics.iter_rows():
        names.setdefault((host, nic), []).append(name)
    by_device = {
        device: rows.rows(named=True)
        for (device,), rows in files.group_by("device", maintain_order=True)
    }
    return tuple(
        replace(
            finding,
            next_steps=tuple(
                _with_output(step, finding, by_device, names) for step in finding.next_steps
            ),
        )
        for finding in findings
    )


@dataclass(frozen=True, slots=True)
class _Output:
    """What reads the output of a command: formats, and which setting is in it where one tells."""

    command: re.Pattern[str]
    formats: frozenset[str]
    setting: re.Pattern[str] | None

    def is_in(self, file: Mapping[str, Any]) -> bool:
        """Say whether a file holds the output."""
        if self.formats.isdisjoint(file["formats"]):
            return False
        return self.setting is None or any(map(self.setting.search, file["settings"]))


def formats_of(step: str) -> set[str]:
    """Return the formats that read the output of the commands of a next step."""
    return {name for outputs in _outputs_of(step) for each in outputs for name in each.formats}


def _outputs_of(step: str) -> list[tuple[_Output, ...]]:
    """Return what reads the output of each command of a next step, of those that are known."""
    commands = [command.strip() for command in _COMMAND.findall(step)]
    outputs = [tuple(o for o in _outputs() if o.command.match(command)) for command in commands]
    return [each for each in outputs if each]


def _with_output(step: str, finding: Finding, files: Files, names: Names) -> str:
    outputs = _outputs_of(step)
    if not outputs:
        return step
    devices = _devices(finding)
    named = [name for name in devices if _names(step, name)]
    newest: dict[tuple[str, int], str] = {}
    for device in named or devices:
        begun = [
            row
            for row in _of_its_nics(files.get(device, ()), device, finding, names)
            if _has_begun(finding, row)
        ]
        for place, of_command in enumerate(outputs):
            for row in begun:
                if any(output.is_in(row) for output in of_command):
                    newest[device, place] = row["path"].replace("`", "'")
    paths = list(dict.fromkeys(newest.values()))
    if not paths:
        return step
    more = f" and {len(paths) - _MOST} more" if len(paths) > _MOST else ""
    return f"{step} Already in the logs: {', '.join(paths[:_MOST])}{more}."


def _of_its_nics(
    rows: Sequence[Mapping[str, Any]], host: str, finding: Finding, names: Names
) -> list[Mapping[str, Any]]:
    """Leave out the files that are called after NICs of a host which the finding does not name."""
    entities = (*finding.entities, *finding.related)
    own = {each.nic for each in entities if each.host == host and each.nic is not None}
    if not own:
        return list(rows)
    of_host = [{nic, *called} for (at, nic), called in names.items() if at == host]
    others = {name for called in of_host if own.isdisjoint(called) for name in called}
    return [row for row in rows if not any(_is_called_after(row["path"], nic) for nic in others)]


def _is_called_after(path: str, nic: str) -> bool:
    name = PurePath(path).name
    return re.search(rf"(?<![a-zA-Z0-9]){re.escape(nic)}(?![a-zA-Z0-9])", name) is not None


def _names(step: str, device: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(device)}(?![\w-])", step) is not None


def _has_begun(finding: Finding, row: Mapping[str, Any]) -> bool:
    """Say whether a file tells of a time of the fault: of any, where none tells when it began."""
    if finding.start is None or finding.from_first_step or finding.from_first_reading:
        return True
    return row["ts_last"] is not None and row["ts_last"] >= finding.start


def _devices(finding: Finding) -> list[str]:
    """Return the hosts and switches of a finding, culprits first, each once."""
    entities = (*finding.entities, *finding.related)
    names = (name for entity in entities for name in (entity.host, entity.switch))
    return list(dict.fromkeys(name for name in names if name))


@cache
def _outputs() -> Sequence[_Output]:
    path = content.files("models", ".csv")["command_outputs"]
    with path.open(encoding="utf-8", newline="") as lines:
        return [
            _Output(
                re.compile(row["command"]),
                frozenset(row["formats"].split()),
                re.compile(row["settings"]) if row["settings"] else None,
            )
            for row in csv.DictReader(lines)
        ]
