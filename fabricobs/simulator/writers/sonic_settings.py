"""What a SONiC leaf tells of its cables and settings, once: LLDP, lossless classes, ECN."""

from collections.abc import Sequence

from fabricobs.simulator.cluster import Cluster
from fabricobs.simulator.counters import DATA_PRIORITY
from fabricobs.simulator.facts import EcnOff, LossyClass
from fabricobs.simulator.world import World
from fabricobs.simulator.writers.ruled import ruled_table

_ECN_BYTES = (1_048_576, 2_097_152)  # marking begins and is certain
_ECN_OFF_BYTES = (536_870_912, 1_073_741_824)  # more than the switch's buffer: nothing is marked
_MARKING_PERCENT = 5


def lldp_table(cluster: Cluster, leaf: int) -> str:
    """`show lldp table`: who is at the other end of each cable."""
    nics, uplinks = cluster.nics_of_leaf(leaf), cluster.uplinks_of_leaf(leaf)
    spine_ports = [cluster.spine_port(uplink) for uplink in uplinks]
    columns = {
        "LocalPort": [
            *(cluster.nic_port(nic) for nic in nics),
            *(cluster.uplink_port(uplink) for uplink in uplinks),
        ],
        "RemoteDevice": [
            *(nic.host_name for nic in nics),
            *(cluster.spine_name(uplink.spine) for uplink in uplinks),
        ],
        "RemotePortID": [*(nic.mac for nic in nics), *spine_ports],
        "Capability": ["O"] * len(nics) + ["BR"] * len(uplinks),
        "RemotePortDescr": [
            *(nic.netdev for nic in nics),
            *(f"{port} Interface" for port in spine_ports),
        ],
    }
    return (
        "Capability codes: (R) Router, (B) Bridge, (O) Other\n"
        + ruled_table(list(columns), list(columns.values()), "<")
        + f"{'-' * 50}\nTotal entries displayed:  {len(nics) + len(uplinks)}\n"
    )


def pfc_priority(world: World, leaf: int, ports: Sequence[str]) -> str:
    """`show pfc priority`: the classes each port never drops."""
    lossy = any(isinstance(fact, LossyClass) and fact.leaf == leaf for fact in world.facts)
    classes = ["N/A" if lossy else str(DATA_PRIORITY)] * len(ports)
    # A column of numbers is right-aligned.
    align = "<<" if lossy else "<>"
    table = ruled_table(["Interface", "Lossless priorities"], [ports, classes], align)
    return f"\n{table}\n"


def ecn(world: World, leaf: int) -> str:
    """`show ecn`: from how many bytes in a queue packets are marked."""
    off = any(isinstance(fact, EcnOff) and leaf in fact.leaves for fact in world.facts)
    begins, certain = _ECN_OFF_BYTES if off else _ECN_BYTES
    settings = {"red_max_threshold": certain, "wred_green_enable": "true", "ecn": "ecn_all"}
    for colour in ("green", "yellow", "red"):
        settings[f"{colour}_min_threshold"] = begins
        settings[f"{colour}_max_threshold"] = certain
        settings[f"{colour}_drop_probability"] = _MARKING_PERCENT
        settings[f"wred_{colour}_enable"] = "true"
    values = [str(value) for value in settings.values()]
    name_rule, value_rule = "-" * max(map(len, settings)), "-" * max(map(len, values))
    width = len(name_rule)
    rows = [f"{name:{width}}  {value}" for name, value in zip(settings, values, strict=True)]
    rule = f"{name_rule}  {value_rule}"
    return "\n".join(["Profile: AZURE_LOSSLESS", rule, *rows, rule, "", ""])
