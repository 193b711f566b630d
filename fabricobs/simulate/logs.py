"""Which logs a simulated site has: each kind by name, what it tells of, and who writes it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fabricobs.simulate.fabric import Fabric
from fabricobs.simulate.world import World
from fabricobs.simulate.writers.counters_db import write_switch_db
from fabricobs.simulate.writers.ethtool import write_ethtool
from fabricobs.simulate.writers.perfquery import write_perfquery
from fabricobs.simulate.writers.port_csv import write_spines
from fabricobs.simulate.writers.sonic import write_switches
from fabricobs.simulate.writers.subnet import write_subnet
from fabricobs.simulate.writers.sysfs import write_sysfs

Family = Literal["timing", "counters", "logs"]
Write = Callable[[Path, World, Fabric], None]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of log; `fabrics` are those that have it, `usual` whether it is written unasked."""

    name: str
    family: Family
    fabrics: tuple[str, ...]
    usual: bool
    write: Write


_ROCE, _INFINIBAND = ("roce",), ("infiniband",)
_BOTH = (*_ROCE, *_INFINIBAND)

KINDS: tuple[Kind, ...] = (
    Kind("switches", "counters", _ROCE, True, write_switches),
    Kind("spines", "counters", _ROCE, True, write_spines),
    Kind("switch_db", "counters", _ROCE, False, write_switch_db),
    Kind("ethtool", "counters", _ROCE, True, write_ethtool),
    Kind("sysfs", "counters", _BOTH, True, write_sysfs),
    Kind("perfquery", "counters", _INFINIBAND, True, write_perfquery),
    Kind("subnet", "counters", _INFINIBAND, True, write_subnet),
)


def write_logs(directory: Path, world: World, fabric: Fabric, kinds: Sequence[Kind]) -> None:
    """Write each kind into a folder of its name; nothing that is there is deleted."""
    for kind in kinds:
        kind.write(directory / kind.name, world, fabric)


def usual_kinds(fabric: str) -> tuple[Kind, ...]:
    """The kinds of log a site of this fabric usually has."""
    return tuple(kind for kind in KINDS if kind.usual and fabric in kind.fabrics)
