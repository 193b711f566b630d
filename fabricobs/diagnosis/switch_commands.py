"""Commands for next steps, in the words of the operating system that a switch runs.

`models/switch_commands.csv` has a row an action and a column a system; `any` stands where no file
tells the system. A model names an action as `{command_ACTION}`.
"""

import csv
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from fabricobs import content
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.findings import Entity

_NAME = "switch_commands"
_ANY = "any"
_PREFIX = "command_"


def commands_of(
    evidence: Evidence, entities: Iterable[Entity], port: str | None = None
) -> dict[str, str]:
    """Return the commands for the first switch among the entities, by the word that names each.

    Where none of them is a switch, the commands are those of the one system that all switches run.
    `port` is the port to ask of; without it the first that the entities name.
    """
    named = [entity for entity in entities if entity.switch is not None]
    systems = dict(evidence.frame("switch_systems").select("device", "system").iter_rows())
    told = set(systems.values())
    system = systems.get(named[0].switch) if named else told.pop() if len(told) == 1 else None
    asked = port or next((entity.port for entity in named if entity.port is not None), "PORT")
    return {
        f"{_PREFIX}{action}": (texts.get(system or _ANY) or texts[_ANY]).format(
            port=asked.replace("`", "'")
        )
        for action, texts in _commands().items()
    }


@cache
def _commands() -> Mapping[str, Mapping[str, str]]:
    path: Path = content.files("models", ".csv")[_NAME]
    with path.open(encoding="utf-8", newline="") as lines:
        return {row["action"]: row for row in csv.DictReader(lines)}
