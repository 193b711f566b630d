"""Which logs a simulated site has: each kind by name, what it tells of, and who writes it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fabricobs.simulate.fabric import Fabric
from fabricobs.simulate.world import World

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


KINDS: tuple[Kind, ...] = ()


def write_logs(directory: Path, world: World, fabric: Fabric, kinds: Sequence[Kind]) -> None:
    """Write each kind into a folder of its name; nothing that is there is deleted."""
    for kind in kinds:
        kind.write(directory / kind.name, world, fabric)


def usual_kinds(fabric: str) -> tuple[Kind, ...]:
    """The kinds of log a site of this fabric usually has."""
    return tuple(kind for kind in KINDS if kind.usual and fabric in kind.fabrics)
