"""Commands for next steps, in the words of the system that a switch runs, or of a NIC's driver.

`models/switch_commands.csv` and `models/nic_commands.csv` have a row an action and a column a
system or driver; `any` stands where no file tells it, or where the kernel's own tools ask. A model
names an action as `{command_ACTION}` and `{nic_ACTION}`.
"""

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from fabricobs import content
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.findings import Entity

_ANY = "any"
# The kernel's drivers of RDMA devices, and rdma-core's names by place.
_RDMA = re.compile(r"(mlx[45]|bnxt_re|irdma|efa|qedr|hfi1|ionic|roce[pos]|ib[pos])_?\d")
_MAC = re.compile(r"(?i)(?:[\da-f]{2}[:-]){5}[\da-f]{2}|(?:[\da-f]{4}\.){2}[\da-f]{4}")
# Adapters of InfiniBand are of this driver, whatever they are called.
_MLX = re.compile(r"mlx|ib")


def switch_commands_of(
    evidence: Evidence, entities: Iterable[Entity], port: str | None = None
) -> dict[str, str]:
    """Return the commands for the first switch among the entities, by the word that names each.

    Where none of them is a switch, the commands are those of the one system that all switches run.
    `port` is the port to ask of; without it the first that the entities name.
    """
    named = [entity for entity in entities if entity.switch is not None]
    systems = {row["device"]: row for row in evidence.frame("switch_systems").rows(named=True)}
    told = {row["system"] for row in systems.values()}
    own = systems.get(named[0].switch, {}) if named else {}
    lid = own.get("lid")
    system = own.get("system") if named else told.pop() if len(told) == 1 else None
    asked = port or next((entity.port for entity in named if entity.port is not None), "PORT")
    return {
        f"command_{action}": (texts.get(system or _ANY) or texts[_ANY]).format(
            port=asked.replace("`", "'"),
            lid=lid or "LID",
            lid_from="" if lid else ", LID from `ibswitches`",
        )
        for action, texts in _commands("switch_commands").items()
    }


def optics_of_ends(
    evidence: Evidence, entities: Sequence[Entity], commands: Mapping[str, str]
) -> str:
    """Return how to read the optics at the ends of a cable: of a switch and a host, or of each.

    `commands` are those of the switch and the NIC; both ends are switches where the entities name
    ports of two.
    """
    ports = {entity.switch: entity for entity in entities if entity.switch and entity.port}
    if len(ports) > 1 and not any(entity.nic for entity in entities):
        each = (
            f"{switch}: {switch_commands_of(evidence, [entity])['command_optics']}"
            for switch, entity in ports.items()
        )
        return "; ".join(each)
    return f"switch: {commands['command_optics']}; host: {commands['nic_optics']}"


def netdev_of(device: str) -> str:
    """Return what ethtool calls a NIC: logs may know its RDMA device, or its MAC address alone."""
    if _MAC.fullmatch(device):
        digits = re.sub(r"[^0-9a-f]", "", device.lower())
        address = ":".join(digits[at : at + 2] for at in range(0, len(digits), 2))
        return f"$(ip -br link | grep {address} | cut -d' ' -f1)"
    return f"$(ls /sys/class/infiniband/{device}/device/net)" if _RDMA.match(device) else device


def nic_commands_of(device: str) -> dict[str, str]:
    """Return the commands for a NIC, by the word that names each."""
    named = device.replace("`", "'")
    driver = "mlx" if _MLX.match(named) else _ANY
    return {
        f"nic_{action}": texts[driver].format(device=named, netdev=netdev_of(named))
        for action, texts in _commands("nic_commands").items()
    }


@cache
def _commands(name: str) -> Mapping[str, Mapping[str, str]]:
    path: Path = content.files("models", ".csv")[name]
    with path.open(encoding="utf-8", newline="") as lines:
        return {row["action"]: row for row in csv.DictReader(lines)}
