"""The counters of ports, and of their priorities and queues, by family."""

from fabricobs.store.tables.columns import counters

PORT_COUNTERS = (
    *counters(
        "traffic",
        ("rx_bytes", "bytes", "Received"),
        ("tx_bytes", "bytes", "Sent"),
        ("rx_packets", "packets", "Received"),
        ("tx_packets", "packets", "Sent"),
    ),
    *counters(
        "wire",
        ("rx_errors", "packets", "Received in error: CRC, FCS, port receive errors"),
        ("symbol_errors", "symbols", "Errors on the wire: cable or optic"),
        ("fec_uncorrected", "codewords", "FEC could not correct"),
        ("link_error_recovery", "events", "Link retrained without going down"),
        ("local_link_integrity_errors", "events", "Local errors above the threshold"),
        ("rx_icrc_errors", "packets", "RoCE packets with a bad invariant CRC"),
    ),
    *counters("link", ("link_downed", "events", "Link went down")),
    *counters(
        "drop",
        ("rx_discards", "packets", "Dropped on arrival: buffer full"),
        ("tx_discards", "packets", "Dropped before sending: egress congestion"),
    ),
    *counters(
        "resend",
        ("out_of_sequence", "packets", "Receiver saw a gap: loss or reordering"),
        ("packet_seq_err", "events", "Requester got a NAK for a gap: loss in the fabric"),
        (
            "local_ack_timeout_err",
            "events",
            "No acknowledgement in time: loss, dead path or long pause",
        ),
        ("implied_nak_seq_err", "events", "Retransmission seen"),
        ("duplicate_request", "events", "Retransmission seen"),
        ("roce_adaptive_retransmissions", "events", "Adaptive retransmissions"),
        (
            "path_timeouts",
            "events",
            "No answer over one path in time, sent again over another: usual over many paths",
        ),
    ),
    *counters(
        "error",
        ("tx_errors", "packets", "Could not be sent"),
        ("rx_oversize", "packets", "Longer than the MTU: MTU mismatch"),
        ("rcv_remote_physical_errors", "packets", "Corrupted further up the path"),
        ("excessive_buffer_overrun", "events", "Flow control broken"),
        ("vl15_dropped", "packets", "Subnet management packets dropped"),
        ("retries_exceeded", "events", "Gave up after the last retry: the connection is broken"),
        ("unresponsive_remote_events", "events", "The other end of a connection did not answer"),
        ("impaired_connections", "events", "A connection was slowed down for its losses"),
    ),
    *counters(
        "host",
        ("rnr_nak_retry_err", "events", "Receiver not ready: slow host"),
        ("rx_out_of_buffer", "packets", "No receive work request posted: slow host"),
    ),
    *counters(
        "storm",
        ("pause_storm_warnings", "events", "NIC paused the fabric longer than the minor watermark"),
        ("pause_storm_errors", "events", "NIC stopped pausing to protect the fabric"),
    ),
    *counters(
        "congestion",
        ("xmit_wait", "ticks", "Had data to send, was not allowed to: InfiniBand congestion"),
        ("np_ecn_marked_packets", "packets", "Arrived with a congestion mark"),
        ("np_cnp_sent", "packets", "Congestion notifications sent to senders"),
        ("rp_cnp_handled", "packets", "Congestion notifications obeyed"),
        ("rp_cnp_ignored", "packets", "Congestion notifications ignored"),
    ),
    *counters(
        "pause",
        ("pause_rx_frames", "frames", "Global pause received"),
        ("pause_tx_frames", "frames", "Global pause sent"),
    ),
    *counters(
        "background",
        (
            "fec_corrected",
            "bits",
            "Corrected by FEC; `counter_info` names the formats that count codewords",
        ),
        ("rcv_switch_relay_errors", "packets", "Not forwarded; mostly harmless multicast"),
        ("retransmitted_packets", "packets", "Sent again; usual of a protocol over many paths"),
        ("roce_slow_restart", "events", "Congestion control restarted after idling"),
    ),
)

PRIORITY_COUNTERS = (
    *counters(
        "traffic",
        ("rx_bytes", "bytes", "Received in this priority"),
        ("tx_bytes", "bytes", "Sent in this priority or from this queue"),
        ("rx_packets", "packets", "Received in this priority"),
        ("tx_packets", "packets", "Sent in this priority or from this queue"),
    ),
    *counters(
        "pause",
        ("pfc_rx_frames", "frames", "The neighbour asked this device to stop"),
        ("pfc_tx_frames", "frames", "This device asked the neighbour to stop"),
        ("pfc_rx_pause_us", "us", "Time this device was stopped"),
        ("pfc_tx_pause_us", "us", "Time this device stopped the neighbour"),
        ("pfc_rx_transitions", "events", "Times this device was stopped"),
    ),
    *counters(
        "congestion",
        ("ecn_marked_packets", "packets", "Marked at this egress queue, or at all of the port"),
        ("ecn_marked_bytes", "bytes", "Marked at this egress queue"),
    ),
    *counters(
        "drop",
        ("drop_packets", "packets", "Dropped in this queue or priority"),
        ("drop_bytes", "bytes", "Dropped in this queue or priority"),
    ),
    *counters(
        "occupancy",
        ("watermark_bytes", "bytes", "Peak occupancy since the last clear"),
        (
            "headroom_watermark_bytes",
            "bytes",
            "Peak occupancy of the headroom since the last clear",
        ),
    ),
    *counters(
        "storm",
        ("pfcwd_detected", "events", "Pause storms the watchdog found"),
        ("pfcwd_restored", "events", "Pause storms that ended"),
    ),
)
