"""States of the NICs' cables in status commands: their speed, and when they are down."""

from dataclasses import dataclass

import numpy as np

from fabricobs.simulator.facts import LinkFlap, SlowPort
from fabricobs.simulator.run import Run
from fabricobs.simulator.world import World

_INTO_TRANSFER = 0.05  # seconds after the transfer began


@dataclass(frozen=True, slots=True)
class Links:
    """Speeds by NIC in Gb/s, and the spans in seconds for which NICs' cables are down."""

    gbps: tuple[int, ...]
    down: dict[int, tuple[tuple[float, float], ...]]

    def is_up(self, nic: int, moment: float) -> bool:
        """Whether a NIC's cable is up at a moment."""
        return not any(begin <= moment < end for begin, end in self.down.get(nic, ()))


def links_of(world: World) -> Links:
    """Speed and spans without light of every NIC's cable."""
    gbps: list[int] = [world.cluster.shape.nic_gbps] * len(world.cluster.nics)
    down = {}
    for fact in world.facts:
        if isinstance(fact, SlowPort):
            gbps[fact.nic] = fact.gbps
        if isinstance(fact, LinkFlap):
            begins = flap_moments(world.courses[0].run, fact)
            down[fact.nic] = tuple((begin, begin + fact.seconds) for begin in begins)
    return Links(tuple(gbps), down)


def flap_moments(run: Run, fact: LinkFlap) -> list[float]:
    """When the cable goes down: while its NIC transfers gradients."""
    rank = fact.nic - run.job.first_gpu
    gradients = [collective.scope for collective in run.job.collectives].index("data")
    steps = np.array([step for step in fact.steps if step < run.steps], dtype=np.int64)
    moments: list[float] = (run.start[steps, gradients, rank] + _INTO_TRANSFER).tolist()
    return moments
