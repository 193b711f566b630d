"""NIC counters as the hosts print them: `ethtool -S` and the sysfs tree of each RDMA device."""

from collections.abc import Iterator
from pathlib import Path

from fabricobs.simulate.cluster import HOSTS, Cluster, Nic, host_name
from fabricobs.simulate.counters import DATA_PRIORITY, PRIORITIES, packets
from fabricobs.simulate.fabric import Fabric
from fabricobs.simulate.output import epoch_microseconds, write_lines
from fabricobs.simulate.run import stream

ROUND_SECONDS = 120

# Errors of the past: they stand on the counters and never grow. One cable was bad before its
# replacement, which a reader must not take for news.
_OLD_LINK_DOWNS = {3: 1, 13: 4, 22: 2}
_OLD_SYMBOL_ERRORS = {13: 48213}
_OLD_OUT_OF_SEQUENCE = {6: 112, 13: 2048, 27: 19}
_OLD_ACK_TIMEOUTS = {13: 7}

_RINGS = 2
_CONTROL_PRIORITIES = (0, 7)


def write_hosts(
    directory: Path, cluster: Cluster, fabric: Fabric, *, end: float, seed: int
) -> None:
    """Write one ethtool and one sysfs file a host and round, until after the job's `end`."""
    for host in range(HOSTS):
        nics = cluster.nics_of_host(host)
        folder = directory / host_name(host)
        jitter = stream(seed, 300 + host)
        for number in range(int(end // ROUND_SECONDS) + 2):
            moment = number * ROUND_SECONDS + jitter.uniform(0, 2)
            second = epoch_microseconds(moment) // 1_000_000
            ethtool = [line for nic in nics for line in _ethtool(nic, fabric, moment)]
            sysfs = [line for nic in nics for line in _sysfs(nic, fabric, moment)]
            write_lines(folder / f"ethtool-{second}.txt.gz", ethtool)
            write_lines(folder / f"sysfs-{second}.txt.gz", sysfs)


def _ethtool(nic: Nic, fabric: Fabric, moment: float) -> Iterator[str]:
    yield f"# ethtool -S {nic.netdev}"
    yield "NIC statistics:"
    for name, value in _ethtool_counters(nic, fabric, moment):
        yield f"     {name}: {value}"


def _ethtool_counters(nic: Nic, fabric: Fabric, moment: float) -> Iterator[tuple[str, int]]:
    rank, ports = nic.rank, fabric.nics
    received, sent = ports.rx_bytes(moment), ports.tx_bytes(moment)
    received_packets, sent_packets = packets(received)[:, rank], packets(sent)[:, rank]
    received, sent = received[:, rank], sent[:, rank]

    # The kernel sees only what is not RDMA, spread over its rings.
    for side, count, amount in (("rx", received_packets, received), ("tx", sent_packets, sent)):
        yield f"{side}_packets", sum(int(count[p]) for p in _CONTROL_PRIORITIES)
        yield f"{side}_bytes", sum(int(amount[p]) for p in _CONTROL_PRIORITIES)
    yield "rx_out_of_buffer", 0
    yield "tx_pause_storm_warning_events", 0
    yield "tx_pause_storm_error_events", 0
    for side, count, amount in (("tx", sent_packets, sent), ("rx", received_packets, received)):
        yield f"{side}_packets_phy", int(count.sum())
        yield f"{side}_bytes_phy", int(amount.sum())
        yield f"{side}_discards_phy", 0
    yield "rx_crc_errors_phy", 0
    yield "rx_symbol_err_phy", _OLD_SYMBOL_ERRORS.get(rank, 0)
    yield "rx_pcs_symbol_err_phy", _OLD_SYMBOL_ERRORS.get(rank, 0)
    yield "link_down_events_phy", _OLD_LINK_DOWNS.get(rank, 0)

    pauses = {
        "rx": (ports.rx_pause_frames(moment)[rank], ports.rx_pause_microseconds(moment)[rank]),
        "tx": (ports.tx_pause_frames(moment)[rank], ports.tx_pause_microseconds(moment)[rank]),
    }
    for priority in range(PRIORITIES):
        for side, count, amount in (("rx", received_packets, received), ("tx", sent_packets, sent)):
            yield f"{side}_prio{priority}_bytes", int(amount[priority])
            yield f"{side}_prio{priority}_packets", int(count[priority])
            frames, microseconds = pauses[side] if priority == DATA_PRIORITY else (0, 0)
            yield f"{side}_prio{priority}_pause", int(frames)
            yield f"{side}_prio{priority}_pause_duration", int(microseconds)
    for ring in range(_RINGS):
        for side, count in (("rx", received_packets), ("tx", sent_packets)):
            yield f"{side}{ring}_packets", int(count[0]) // _RINGS


def _sysfs(nic: Nic, fabric: Fabric, moment: float) -> Iterator[str]:
    port = f"/sys/class/infiniband/{nic.device}/ports/1"
    for name, value in _port_counters(nic, fabric, moment).items():
        yield f"{port}/counters/{name}:{value}"
    for name, value in _transport_counters(nic, fabric, moment).items():
        yield f"{port}/hw_counters/{name}:{value}"
    yield f"{port}/rate:200 Gb/sec (4X HDR)"
    yield f"{port}/state:4: ACTIVE"
    yield f"{port}/phys_state:5: LinkUp"
    yield f"{port}/link_layer:Ethernet"
    yield f"{port}/gid_attrs/ndevs/0:{nic.netdev}"


def _port_counters(nic: Nic, fabric: Fabric, moment: float) -> dict[str, int]:
    """Counters of the RDMA port; its data counters are in words of four bytes."""
    received = fabric.nics.rx_bytes(moment)
    sent = fabric.nics.tx_bytes(moment)
    received_packets = int(packets(received)[DATA_PRIORITY, nic.rank])
    sent_packets = int(packets(sent)[DATA_PRIORITY, nic.rank])
    return {
        "port_rcv_data": int(received[DATA_PRIORITY, nic.rank]) // 4,
        "port_xmit_data": int(sent[DATA_PRIORITY, nic.rank]) // 4,
        "port_rcv_packets": received_packets,
        "port_xmit_packets": sent_packets,
        "unicast_rcv_packets": received_packets,
        "unicast_xmit_packets": sent_packets,
        "multicast_rcv_packets": 0,
        "multicast_xmit_packets": 0,
        "port_xmit_wait": 0,
        "port_xmit_discards": 0,
        "port_rcv_errors": 0,
        "port_rcv_remote_physical_errors": 0,
        "symbol_error": _OLD_SYMBOL_ERRORS.get(nic.rank, 0),
        "link_error_recovery": 0,
        "link_downed": _OLD_LINK_DOWNS.get(nic.rank, 0),
        "local_link_integrity_errors": 0,
        "excessive_buffer_overrun_errors": 0,
        "VL15_dropped": 0,
    }


def _transport_counters(nic: Nic, fabric: Fabric, moment: float) -> dict[str, int]:
    before = 10_000 + 977 * nic.rank
    cnp_sent = before + int(fabric.cnp_sent.at(moment)[nic.rank])
    marked = 6 * before + int(fabric.ecn_marked.at(moment)[nic.rank])
    handled = before + int(fabric.cnp_handled.at(moment)[nic.rank])
    return {
        "out_of_sequence": _OLD_OUT_OF_SEQUENCE.get(nic.rank, 0),
        "packet_seq_err": _OLD_OUT_OF_SEQUENCE.get(nic.rank, 0) // 2,
        "local_ack_timeout_err": _OLD_ACK_TIMEOUTS.get(nic.rank, 0),
        "implied_nak_seq_err": 0,
        "duplicate_request": 0,
        "rnr_nak_retry_err": 0,
        "out_of_buffer": 0,
        "np_cnp_sent": cnp_sent,
        "np_ecn_marked_roce_packets": marked,
        "rp_cnp_handled": handled,
        "rp_cnp_ignored": 0,
        "roce_adp_retrans": 0,
        "roce_adp_retrans_to": 0,
        "roce_slow_restart": 0,
        "roce_slow_restart_cnps": 0,
        "roce_slow_restart_trans": 0,
        "rx_icrc_encapsulated": 0,
        "req_cqe_error": 0,
        "resp_cqe_error": 0,
        "lifespan": 10,
    }
