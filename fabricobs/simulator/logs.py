"""Which logs a simulated site has: each kind by name, what it tells of, and who writes it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fabricobs.simulator.fabric import Fabric
from fabricobs.simulator.world import World
from fabricobs.simulator.writers.counters_db import write_switch_db
from fabricobs.simulator.writers.ethtool import write_ethtool
from fabricobs.simulator.writers.host_facts import write_host_facts
from fabricobs.simulator.writers.inspector import write_inspector
from fabricobs.simulator.writers.kernel_log import write_kernel_logs
from fabricobs.simulator.writers.megatron import write_megatron
from fabricobs.simulator.writers.nccl import write_nccl
from fabricobs.simulator.writers.perfquery import write_perfquery
from fabricobs.simulator.writers.port_csv import write_spines
from fabricobs.simulator.writers.sonic import write_switches
from fabricobs.simulator.writers.step_records import write_step_records
from fabricobs.simulator.writers.subnet import write_subnet
from fabricobs.simulator.writers.sysfs import write_sysfs
from fabricobs.simulator.writers.watchdog import write_watchdog

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
    Kind("nccl", "logs", _BOTH, usual=True, write=write_nccl),
    Kind("inspector", "timing", _BOTH, usual=True, write=write_inspector),
    Kind("steps", "timing", _BOTH, usual=True, write=write_step_records),
    Kind("train", "timing", _BOTH, usual=True, write=write_megatron),
    Kind("watchdog", "logs", _BOTH, usual=True, write=write_watchdog),
    Kind("kernel", "logs", _BOTH, usual=True, write=write_kernel_logs),
    Kind("host_facts", "logs", _BOTH, usual=True, write=write_host_facts),
    Kind("switches", "counters", _ROCE, usual=True, write=write_switches),
    Kind("spines", "counters", _ROCE, usual=True, write=write_spines),
    Kind("switch_db", "counters", _ROCE, usual=False, write=write_switch_db),
    Kind("ethtool", "counters", _ROCE, usual=True, write=write_ethtool),
    Kind("sysfs", "counters", _BOTH, usual=True, write=write_sysfs),
    Kind("perfquery", "counters", _INFINIBAND, usual=True, write=write_perfquery),
    Kind("subnet", "counters", _INFINIBAND, usual=True, write=write_subnet),
)


def write_logs(directory: Path, world: World, fabric: Fabric, kinds: Sequence[Kind]) -> None:
    """Write each kind into a folder of its name; nothing that is there is deleted."""
    for kind in kinds:
        kind.write(directory / kind.name, world, fabric)


def usual_kinds(fabric: str) -> tuple[Kind, ...]:
    """The kinds of log a site of this fabric usually has."""
    return tuple(kind for kind in KINDS if kind.usual and fabric in kind.fabrics)
