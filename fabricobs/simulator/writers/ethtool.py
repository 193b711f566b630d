"""NIC counters as `ethtool -S` prints them on every host of a RoCE cluster."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from fabricobs.simulator.cluster import Integers
from fabricobs.simulator.collection import Reader, read_host
from fabricobs.simulator.counters import DATA_PRIORITY, PRIORITIES, PortGroup, packets
from fabricobs.simulator.fabric import Fabric
from fabricobs.simulator.output import write_snapshots
from fabricobs.simulator.world import World

_RINGS = 2
_CONTROL_PRIORITIES = (0, 7)


def write_ethtool(directory: Path, world: World, fabric: Fabric) -> None:
    """Write a file a host; each round is appended under the host's time."""
    for host in range(world.cluster.shape.hosts):
        reader = read_host(world, fabric, host)
        nics = world.cluster.nics_of_host(host)
        storms = fabric.storms.of(np.array([nic.index for nic in nics]))
        counters = dict(_counters(reader, reader.device.shown(storms.at)))
        lines = "".join(f"     {name}: %d\n" for name in counters)
        template = "".join(f"# ethtool -S {n.netdev}\nNIC statistics:\n{lines}" for n in nics)
        values = np.stack(list(counters.values()), axis=-1).reshape(len(reader.device.moments), -1)
        outputs = [template % tuple(row) for row in values.tolist()]
        path = directory / reader.device.name / "ethtool.txt.gz"
        write_snapshots(path, reader.device.clock(), outputs)


def _counters(reader: Reader, storms: Integers) -> Iterator[tuple[str, Integers]]:
    """Values [M, 8] of each counter of a host's NICs, in the order mlx5 prints them."""
    received, sent = reader.shown(PortGroup.rx_bytes), reader.shown(PortGroup.tx_bytes)
    amounts = {"rx": received, "tx": sent}
    counts = {"rx": packets(received), "tx": packets(sent)}
    none = np.zeros_like(storms)

    # The kernel sees only what is not RDMA, spread over its rings.
    for side in ("rx", "tx"):
        yield f"{side}_packets", counts[side][:, _CONTROL_PRIORITIES].sum(axis=1)
        yield f"{side}_bytes", amounts[side][:, _CONTROL_PRIORITIES].sum(axis=1)
    yield "rx_out_of_buffer", none
    yield "tx_pause_storm_warning_events", storms
    yield "tx_pause_storm_error_events", none
    for side in ("tx", "rx"):
        yield f"{side}_packets_phy", counts[side].sum(axis=1)
        yield f"{side}_bytes_phy", amounts[side].sum(axis=1)
    yield "rx_crc_errors_phy", reader.errors("crc")
    yield "tx_discards_phy", none
    yield "tx_errors_phy", none
    yield "rx_discards_phy", reader.errors("dropped")
    yield "rx_symbol_err_phy", reader.errors("symbol")
    yield "rx_pcs_symbol_err_phy", reader.errors("symbol")
    yield "link_down_events_phy", reader.errors("downs")

    frames = {
        "rx": reader.shown(PortGroup.rx_pause_frames),
        "tx": reader.shown(PortGroup.tx_pause_frames),
    }
    paused = {
        "rx": reader.shown(PortGroup.rx_pause_microseconds),
        "tx": reader.shown(PortGroup.tx_pause_microseconds),
    }
    for priority in range(PRIORITIES):
        pauses = priority == DATA_PRIORITY
        for side in ("rx", "tx"):
            yield f"{side}_prio{priority}_bytes", amounts[side][:, priority]
            yield f"{side}_prio{priority}_packets", counts[side][:, priority]
            yield f"{side}_prio{priority}_pause", frames[side] if pauses else none
            yield f"{side}_prio{priority}_pause_duration", paused[side] if pauses else none
    for ring in range(_RINGS):
        for side in ("rx", "tx"):
            yield f"{side}{ring}_packets", counts[side][:, 0] // _RINGS
