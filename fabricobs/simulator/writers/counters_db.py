"""Dumps of a SONiC leaf's COUNTERS_DB: the counters by their SAI names, raw, one file a round."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fabricobs.simulator.cluster import Cluster, Integers
from fabricobs.simulator.collection import Reader, read_leaf
from fabricobs.simulator.counters import (
    DATA_PACKET_BYTES,
    DATA_PRIORITY,
    PRIORITIES,
    PortGroup,
    packets,
)
from fabricobs.simulator.fabric import Fabric
from fabricobs.simulator.output import epoch_microseconds, write_text
from fabricobs.simulator.world import World

_CONTROL_PRIORITY = 7  # what is sent to all: LLDP, ARP


def write_switch_db(directory: Path, world: World, fabric: Fabric) -> None:
    """Write a folder of numbered dumps a leaf, named by the leaf's time."""
    for leaf in range(world.cluster.leaves):
        reader = read_leaf(world, fabric, leaf)
        ports, queues = _port_counters(reader), _queue_counters(reader)
        template = _template(_names(world.cluster, leaf), list(ports), list(queues))
        # Every port's own counters, then those of its queues.
        own = np.stack(list(ports.values()), axis=-1)
        of_queues = np.stack(list(queues.values()), axis=-1).swapaxes(1, 2)
        of_queues = of_queues.reshape(*own.shape[:2], -1)
        values = np.concatenate([own, of_queues], axis=-1).reshape(len(own), -1).tolist()
        folder = directory / reader.device.name / "dump"
        for number, (moment, row) in enumerate(zip(reader.device.clock(), values, strict=True)):
            milliseconds = epoch_microseconds(float(moment)) // 1000
            path = folder / f"{number:04d}_COUNTERS_DB-{milliseconds}.json.gz"
            write_text(path, template % tuple(row))


def _names(cluster: Cluster, leaf: int) -> list[str]:
    names = [cluster.nic_port(nic) for nic in cluster.nics_of_leaf(leaf)]
    return names + [cluster.uplink_port(uplink) for uplink in cluster.uplinks_of_leaf(leaf)]


def _template(names: Sequence[str], ports: Sequence[str], queues: Sequence[str]) -> str:
    """The dump as JSON with a `%d` for each value, as redis gives them: texts."""
    port_ids, queue_ids, counters = {}, {}, {}
    for index, name in enumerate(names):
        port_ids[name] = f"oid:0x{0x1000000000000 + index + 1:x}"
        counters[f"COUNTERS:{port_ids[name]}"] = dict.fromkeys(ports, "%d")
        for priority in range(PRIORITIES):
            queue = f"oid:0x{0x15000000000000 + index * PRIORITIES + priority + 1:x}"
            queue_ids[f"{name}:{priority}"] = queue
            counters[f"COUNTERS:{queue}"] = dict.fromkeys(queues, "%d")
    maps = {"COUNTERS_PORT_NAME_MAP": port_ids, "COUNTERS_QUEUE_NAME_MAP": queue_ids}
    return json.dumps(maps | counters, indent=1) + "\n"


def _port_counters(reader: Reader) -> dict[str, Integers]:
    """Counters [M, P] of the ports."""
    counters: dict[str, Integers] = {}
    for side, read in (("IN", PortGroup.rx_bytes), ("OUT", PortGroup.tx_bytes)):
        amounts = reader.shown(read)
        counts = packets(amounts)
        to_all = counts[:, _CONTROL_PRIORITY]
        counters[f"SAI_PORT_STAT_IF_{side}_OCTETS"] = amounts.sum(axis=1)
        counters[f"SAI_PORT_STAT_IF_{side}_UCAST_PKTS"] = counts.sum(axis=1) - to_all
        counters[f"SAI_PORT_STAT_IF_{side}_NON_UCAST_PKTS"] = to_all
    none = np.zeros_like(to_all)
    counters |= {
        "SAI_PORT_STAT_IF_IN_DISCARDS": none,
        "SAI_PORT_STAT_IF_IN_ERRORS": reader.errors("crc"),
        "SAI_PORT_STAT_IF_OUT_DISCARDS": reader.errors("dropped"),
        "SAI_PORT_STAT_IF_OUT_ERRORS": none,
        "SAI_PORT_STAT_IF_IN_FEC_NOT_CORRECTABLE_FRAMES": reader.errors("symbol"),
    }
    frames = reader.shown(PortGroup.rx_pause_frames), reader.shown(PortGroup.tx_pause_frames)
    for priority in range(PRIORITIES):
        for side, count in zip(("RX", "TX"), frames, strict=True):
            shown = count if priority == DATA_PRIORITY else none
            counters[f"SAI_PORT_STAT_PFC_{priority}_{side}_PKTS"] = shown
    prefix = f"SAI_PORT_STAT_PFC_{DATA_PRIORITY}"
    counters[f"{prefix}_RX_PAUSE_DURATION_US"] = reader.shown(PortGroup.rx_pause_microseconds)
    counters[f"{prefix}_TX_PAUSE_DURATION_US"] = reader.shown(PortGroup.tx_pause_microseconds)
    return counters


def _queue_counters(reader: Reader) -> dict[str, Integers]:
    """Counters [M, 8, P] of the queues."""
    sent = reader.shown(PortGroup.tx_bytes)
    dropped = np.zeros_like(sent)
    dropped[:, DATA_PRIORITY] = reader.errors("dropped")
    return {
        "SAI_QUEUE_STAT_PACKETS": packets(sent),
        "SAI_QUEUE_STAT_BYTES": sent,
        "SAI_QUEUE_STAT_DROPPED_PACKETS": dropped,
        "SAI_QUEUE_STAT_DROPPED_BYTES": dropped * DATA_PACKET_BYTES,
    }
