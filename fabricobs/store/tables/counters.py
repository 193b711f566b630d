"""The counters of ports, and of their priorities and queues."""

from fabricobs.store.tables.columns import counters

_TRAFFIC_COUNTERS = counters(
    ("rx_bytes", "bytes", "Received"),
    ("tx_bytes", "bytes", "Sent"),
    ("rx_packets", "packets", "Received"),
    ("tx_packets", "packets", "Sent"),
)
_HEALTH_COUNTERS = counters(
    ("rx_errors", "packets", "Received in error: CRC, FCS, port receive errors"),
    ("tx_errors", "packets", "Could not be sent"),
    ("rx_discards", "packets", "Dropped on arrival: buffer full"),
    ("tx_discards", "packets", "Dropped before sending: egress congestion"),
    ("rx_oversize", "packets", "Longer than the MTU: MTU mismatch"),
    ("symbol_errors", "symbols", "Errors on the wire: cable or optic"),
    ("link_error_recovery", "events", "Link retrained without going down"),
    ("link_downed", "events", "Link went down"),
    ("rcv_remote_physical_errors", "packets", "Corrupted further up the path"),
    ("local_link_integrity_errors", "events", "Local errors above the threshold"),
    ("excessive_buffer_overrun", "events", "Flow control broken"),
    ("rcv_switch_relay_errors", "packets", "Not forwarded; mostly harmless multicast"),
    ("vl15_dropped", "packets", "Subnet management packets dropped"),
    ("xmit_wait", "ticks", "Had data to send, was not allowed to: InfiniBand congestion"),
    ("fec_corrected", "bits", "Corrected by FEC; SONiC counts codewords"),
    ("fec_uncorrected", "codewords", "FEC could not correct"),
)
_RDMA_COUNTERS = counters(
    ("out_of_sequence", "packets", "Receiver saw a gap: loss or reordering"),
    ("packet_seq_err", "events", "Requester got a NAK for a gap: loss in the fabric"),
    (
        "local_ack_timeout_err",
        "events",
        "No acknowledgement in time: loss, dead path or long pause",
    ),
    ("rnr_nak_retry_err", "events", "Receiver not ready: slow host"),
    ("implied_nak_seq_err", "events", "Retransmission seen"),
    ("duplicate_request", "events", "Retransmission seen"),
    ("roce_adaptive_retransmissions", "events", "Adaptive retransmissions"),
    ("roce_slow_restart", "events", "Congestion control restarted after idling"),
    ("rx_icrc_errors", "packets", "RoCE packets with a bad invariant CRC"),
    ("rx_out_of_buffer", "packets", "No receive work request posted: slow host"),
    ("np_ecn_marked_packets", "packets", "Arrived with a congestion mark"),
    ("np_cnp_sent", "packets", "Congestion notifications sent to senders"),
    ("rp_cnp_handled", "packets", "Congestion notifications obeyed"),
    ("rp_cnp_ignored", "packets", "Congestion notifications ignored"),
    ("pause_storm_warnings", "events", "NIC paused the fabric longer than the minor watermark"),
    ("pause_storm_errors", "events", "NIC stopped pausing to protect the fabric"),
    ("pause_rx_frames", "frames", "Global pause received"),
    ("pause_tx_frames", "frames", "Global pause sent"),
)
PORT_COUNTERS = _TRAFFIC_COUNTERS + _HEALTH_COUNTERS + _RDMA_COUNTERS

PRIORITY_COUNTERS = counters(
    ("rx_bytes", "bytes", "Received in this priority"),
    ("tx_bytes", "bytes", "Sent in this priority or from this queue"),
    ("rx_packets", "packets", "Received in this priority"),
    ("tx_packets", "packets", "Sent in this priority or from this queue"),
    ("pfc_rx_frames", "frames", "The neighbour asked this device to stop"),
    ("pfc_tx_frames", "frames", "This device asked the neighbour to stop"),
    ("pfc_rx_pause_us", "us", "Time this device was stopped"),
    ("pfc_tx_pause_us", "us", "Time this device stopped the neighbour"),
    ("pfc_rx_transitions", "events", "Times this device was stopped"),
    ("ecn_marked_packets", "packets", "Marked at this egress queue"),
    ("ecn_marked_bytes", "bytes", "Marked at this egress queue"),
    ("drop_packets", "packets", "Dropped in this queue or priority"),
    ("drop_bytes", "bytes", "Dropped in this queue or priority"),
    ("watermark_bytes", "bytes", "Peak occupancy since the last clear"),
    ("headroom_watermark_bytes", "bytes", "Peak occupancy of the headroom since the last clear"),
    ("pfcwd_detected", "events", "Pause storms the watchdog found"),
    ("pfcwd_restored", "events", "Pause storms that ended"),
)
