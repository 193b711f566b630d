"""The sysfs tree of every host's RDMA devices, as `grep -r` prints it."""

from pathlib import Path

import numpy as np

from fabricobs.simulator.cluster import Integers, Nic
from fabricobs.simulator.collection import Reader, read_host, saturated, thirty_two_bits
from fabricobs.simulator.counters import DATA_PRIORITY, PortGroup, Sum, packets
from fabricobs.simulator.fabric import Fabric
from fabricobs.simulator.links import Links, links_of
from fabricobs.simulator.output import write_snapshots
from fabricobs.simulator.world import World
from fabricobs.simulator.writers.infiniband import rate_name, wait_ticks

_CNPS_BEFORE = 10_000
_MARKS_PER_CNP_BEFORE = 6
_ZEROS = (
    "implied_nak_seq_err",
    "duplicate_request",
    "rnr_nak_retry_err",
    "out_of_buffer",
    "roce_adp_retrans",
    "roce_adp_retrans_to",
    "roce_slow_restart",
    "roce_slow_restart_cnps",
    "roce_slow_restart_trans",
    "rx_icrc_encapsulated",
    "req_cqe_error",
    "resp_cqe_error",
)
_CACHE_MILLISECONDS = 10  # `lifespan`: a second look within it shows the same


def write_sysfs(directory: Path, world: World, fabric: Fabric) -> None:
    """Write a file a host; each round is appended under the host's time."""
    links = links_of(world)
    for host in range(world.cluster.shape.hosts):
        reader = read_host(world, fabric, host)
        nics = world.cluster.nics_of_host(host)
        counters = _port_counters(world, reader) | _transport_counters(world, fabric, reader, nics)
        moments = reader.device.moments
        values = np.stack(list(counters.values()), axis=-1).reshape(len(moments), -1)
        changes = [nic for nic in nics if nic.index in links.down]
        template = _template(world, nics, links, list(counters))
        outputs = []
        for moment, row in zip(moments.tolist(), values.tolist(), strict=True):
            text = template
            if any(not links.is_up(nic.index, moment) for nic in changes):
                text = _template(world, nics, links, list(counters), moment)
            outputs.append(text % tuple(row))
        path = directory / reader.device.name / "sysfs.txt.gz"
        write_snapshots(path, reader.device.clock(), outputs)


def _template(
    world: World,
    nics: tuple[Nic, ...],
    links: Links,
    counters: list[str],
    moment: float | None = None,
) -> str:
    """Lines of all NICs with a `%d` a counter; cables are up unless `moment` says otherwise."""
    lines = []
    for nic in nics:
        port = f"/sys/class/infiniband/{nic.device}/ports/1"
        up = moment is None or links.is_up(nic.index, moment)
        name = rate_name(links.gbps[nic.index], world.cluster.shape.nic_gbps)
        lines += [f"{port}/{counter}:%d" for counter in counters]
        lines.append(f"{port}/rate:{links.gbps[nic.index]} Gb/sec ({name})")
        lines.append(f"{port}/state:{'4: ACTIVE' if up else '1: DOWN'}")
        lines.append(f"{port}/phys_state:{'5: LinkUp' if up else '2: Polling'}")
        if world.cluster.infiniband:
            lines.append(f"{port}/link_layer:InfiniBand")
            lines.append(f"{port}/lid:{nic.lid:#x}")
        else:
            lines.append(f"{port}/link_layer:Ethernet")
            lines.append(f"{port}/gid_attrs/ndevs/0:{nic.netdev}")
    return "".join(f"{line}\n" for line in lines)


def _port_counters(world: World, reader: Reader) -> dict[str, Integers]:
    """Counters [M, 8] of the RDMA ports; the data counters are in words of four bytes.

    Over Ethernet they count RDMA alone. The error counters are InfiniBand's old, narrow ones.
    """
    classes = slice(None) if world.cluster.infiniband else slice(DATA_PRIORITY, DATA_PRIORITY + 1)
    sides = reader.shown(PortGroup.rx_bytes), reader.shown(PortGroup.tx_bytes)
    received, sent = (b[:, classes].sum(axis=1) for b in sides)
    counts = [packets(b)[:, classes].sum(axis=1) for b in sides]
    none = np.zeros_like(counts[0])
    waited = wait_ticks(reader.shown(PortGroup.rx_pause_microseconds))
    return {
        f"counters/{name}": value
        for name, value in {
            "port_rcv_data": received // 4,
            "port_xmit_data": sent // 4,
            "port_rcv_packets": counts[0],
            "port_xmit_packets": counts[1],
            "unicast_rcv_packets": counts[0],
            "unicast_xmit_packets": counts[1],
            "multicast_rcv_packets": none,
            "multicast_xmit_packets": none,
            "port_xmit_wait": saturated(waited, 32) if world.cluster.infiniband else none,
            "port_xmit_discards": none,
            "port_rcv_errors": saturated(reader.errors("crc"), 16),
            "port_rcv_remote_physical_errors": none,
            "symbol_error": saturated(reader.errors("symbol"), 16),
            "link_error_recovery": none,
            "link_downed": saturated(reader.errors("downs"), 8),
            "local_link_integrity_errors": none,
            "excessive_buffer_overrun_errors": none,
            "VL15_dropped": none,
        }.items()
    }


def _transport_counters(
    world: World, fabric: Fabric, reader: Reader, nics: tuple[Nic, ...]
) -> dict[str, Integers]:
    """Counters [M, 8] of the queue pairs, 32 bits wide, and of congestion control, 64."""
    index = np.array([nic.index for nic in nics])

    def counted(total: Sum) -> Integers:
        return reader.device.shown(total.of(index).at)

    # A cable that was bad lost packets then.
    (ports,) = reader.groups
    old = ports.errors_before["crc"]
    errors = {
        "out_of_sequence": old + counted(fabric.out_of_sequence),
        "packet_seq_err": old // 2 + counted(fabric.sequence_errors),
        "local_ack_timeout_err": old // 50 + counted(fabric.timeouts),
    }
    none = np.zeros_like(errors["out_of_sequence"])
    counters = {name: thirty_two_bits(world, value) for name, value in errors.items()}
    counters |= dict.fromkeys(_ZEROS, none)
    if not world.cluster.infiniband:
        before = _CNPS_BEFORE + 977 * index
        counters |= {
            "np_cnp_sent": before + counted(fabric.cnp_sent),
            "np_ecn_marked_roce_packets": _MARKS_PER_CNP_BEFORE * before
            + counted(fabric.ecn_marked),
            "rp_cnp_handled": before + counted(fabric.cnp_handled),
            "rp_cnp_ignored": none,
        }
    counters["lifespan"] = none + _CACHE_MILLISECONDS
    return {f"hw_counters/{name}": value for name, value in counters.items()}
