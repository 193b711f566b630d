"""What a sound fabric does beside the job: other hosts serve storage, and queues mark packets."""

import numpy as np

from fabricobs.simulator.effects import Floats
from fabricobs.simulator.random_worlds.physics import State, calm, others_traffic
from fabricobs.simulator.random_worlds.topology import Topology
from fabricobs.simulator.random_worlds.workload import Launch

_FEW_MARKS = (1e-5, 1e-4)  # of the packets that a port sends, usually
_OWN_CLASS = (0.05, 0.3)  # of the servers' rate, read all the time in a class of its own


def servers_of(topology: Topology, launches: tuple[Launch, ...]) -> tuple[int, ...]:
    """Hosts that no launch of the job uses: these serve."""
    used = {host for launch in launches for host in launch.hosts}
    return tuple(host for host in range(topology.hosts) if host not in used)


def served(topology: Topology, servers: tuple[int, ...], share: float) -> Floats:
    """Bytes a second [D] on each link while servers send at a share of what their NICs carry.

    Each host that the job may use reads from one server, NIC by NIC of the same rail.
    """
    readers = [host for host in range(topology.hosts) if host not in servers]
    if not servers:
        return np.zeros(topology.links)
    pairs = [
        pair
        for place, host in enumerate(readers)
        for pair in zip(
            topology.nics_of(servers[place % len(servers)]), topology.nics_of(host), strict=True
        )
    ]
    most = -(-len(readers) // len(servers))  # hosts that one server serves
    rate = share * float(topology.capacity[0]) / most
    return others_traffic(topology, np.array(pairs), rate, calm(topology).weight, "storage")


def usual_state(topology: Topology, launches: tuple[Launch, ...]) -> State:
    """The state in which nothing is wrong: calm, but for storage in its own class and few marks."""
    state = calm(topology)
    spec = topology.spec
    if spec.few_marks:
        random = spec.stream("few marks")
        usual = np.exp(random.uniform(*np.log(_FEW_MARKS)))
        state = state.changed(eager=usual * random.lognormal(0, 0.4, topology.links))
    if not spec.own_class_storage:
        return state
    share = float(spec.stream("own class").uniform(*_OWN_CLASS))
    return state.changed(aside=served(topology, servers_of(topology, launches), share))
