"""Packets that NICs send again: those that were lost, and what EFA and Slingshot do at all times.

Neither AWS nor HPE says how many are usual; their counters are never quite still.
"""

from dataclasses import dataclass

import numpy as np

from fabricobs.simulator.cluster import Integers
from fabricobs.simulator.effects import Floats
from fabricobs.simulator.random_worlds.world import World

_SHARES = {"few": (1e-8, 1e-6), "many": (1e-4, 1e-3), "bursts": (1e-8, 1e-6)}  # of what NICs send
_SPREAD = 0.3  # of a NIC's share: one sends half as much again as another
_BURSTS = 2
_PACKETS_OF_A_BURST = (2_000, 20_000)  # a peer that restarts
_TIMED_OUT = 0.05  # share of the packets sent again for which no answer came in time
_PER_SLOWED = 2_000  # packets lost until EFA slows a connection down


@dataclass(frozen=True, slots=True)
class SentAgain:
    """What a host's NICs counted [M, N]: packets sent again, and what came of it."""

    packets: Floats
    timeouts: Floats
    slowed: Floats


def usual_share(world: World) -> float:
    """Share of its packets that a NIC usually sends again."""
    bounds = _SHARES[world.spec.sent_again]
    return float(np.exp(world.spec.stream("sent again").uniform(*np.log(bounds))))


def sent_again(
    world: World, nics: Integers, sent: Floats, lost: Floats, moments: Floats
) -> SentAgain:
    """What NICs have sent again up to moments [M], of packets [M, N] sent and lost."""
    usual = np.zeros(lost.shape)
    spec, share = world.spec, usual_share(world)
    for place, nic in enumerate(nics.tolist()):
        random = spec.stream("sent again", nic)
        usual[:, place] = share * float(np.exp(_SPREAD * random.standard_normal())) * sent[:, place]
    random = spec.stream("bursts")
    if spec.sent_again == "bursts":
        struck = int(random.choice(world.courses[0].launch.nic))
        for _ in range(_BURSTS):
            moment = float(random.uniform(0, world.duration))
            packets = float(np.exp(random.uniform(*np.log(_PACKETS_OF_A_BURST))))
            usual += packets * (nics == struck) * (moments >= moment)[:, None]
    again: Floats = usual + lost
    return SentAgain(again, _TIMED_OUT * again, lost / _PER_SLOWED)
