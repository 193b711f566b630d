"""The optics of a random world: what each lane of a port receives and sends, and its heat.

Ports differ, and some lanes are close to their bounds; a fault leaves a lane too little light.
"""

import numpy as np

from fabricobs.simulator.random_worlds.ports import Fields, acts_at
from fabricobs.simulator.random_worlds.topology import Device
from fabricobs.simulator.random_worlds.world import World

# dBm and degrees Celsius, as a module for 500 m of single-mode fibre has them.
LOW_ALARM, LOW_WARNING = -9.9, -5.9
_USUAL, _SPREAD, _LEAST = 0.8, 1.1, -5.2  # received, and the least that a sound lane receives
_WORN = 0.05  # share of the lanes that are close to the least
_DIM = (-13.0, -10.5)
_LANES = 4
_ENDS = {"dim_nic_optic": 0, "dim_leaf_optic": 1}  # the end of the cable that receives too little


def optics_fields(world: World, device: Device, moment: float) -> list[Fields]:
    """What the module of each port of a device tells at a moment, in port order."""
    found = []
    for cable, side, _ in world.topology.ports_of(device.index):
        random = world.spec.stream("light", cable, side)
        received = np.maximum(_USUAL + _SPREAD * random.standard_normal(_LANES), _LEAST)
        worn = random.random_sample(_LANES) < _WORN
        received = np.where(worn, _LEAST + 0.6 * random.random_sample(_LANES), received)
        heat = 44 + 5 * random.standard_normal() + 0.4 * np.sin(moment / 900)
        bias = 46 + 3 * random.standard_normal(_LANES)
        sent = 1.2 + 0.5 * random.standard_normal(_LANES)
        serial = f"MT{int(random.randint(10**7, 10**8))}"
        lane, dim = int(random.randint(_LANES)), float(random.uniform(*_DIM))
        for fault in world.faults:
            struck = cable in fault.parts and _ENDS.get(fault.name) == side
            if struck and acts_at(world, fault.acts, moment):
                received[lane] = dim
        fields: Fields = {"celsius": heat, "fahrenheit": heat * 1.8 + 32, "serial": serial}
        for number in range(_LANES):
            power = float(received[number])
            fields |= {
                f"rx{number + 1}": power,
                f"rx{number + 1}_mw": 10 ** (power / 10),
                f"tx{number + 1}": float(sent[number]),
                f"tx{number + 1}_mw": 10 ** (float(sent[number]) / 10),
                f"bias{number + 1}": float(bias[number]),
                f"alarm{number + 1}": "On" if power < LOW_ALARM else "Off",
                f"warning{number + 1}": "On" if power < LOW_WARNING else "Off",
                f"mark{number + 1}": "--" if power < LOW_ALARM else "-" * (power < LOW_WARNING),
            }
        found.append(fields)
    return found
