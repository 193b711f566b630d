"""The tables of the store and their columns: the one place where they are listed.

Names and meanings are fixed; `fabricobs schema` and the manual are made from this module. Times
are UTC microseconds, null where the source has none. Counters are cumulative unless the format
says `delta` in `counter_info`; a 64-bit value of 2^63 and above is kept as the negative number it
is (a switch printed -40 as 18446744073709551576).
"""

from dataclasses import dataclass
from typing import Literal

Type = Literal["VARCHAR", "BIGINT", "DOUBLE", "BOOLEAN", "TIMESTAMP", "MAP(VARCHAR, BIGINT)"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column: name, DuckDB type, unit ('' where it has none) and a sentence."""

    name: str
    type: Type
    unit: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Table:
    """One table: what a row is, where rows come from, its columns and the order of its rows.

    `dated` tables hold what happened at a time, which a window leaves out when it is over; the
    others hold what is so until something else is said.
    """

    name: str
    row: str
    source: str
    columns: tuple[Column, ...]
    sort: tuple[str, ...]
    dated: bool = False

    def column(self, name: str) -> Column | None:
        """Return the column of that name, or None."""
        return next((column for column in self.columns if column.name == name), None)


def _text(name: str, meaning: str) -> Column:
    return Column(name, "VARCHAR", "", meaning)


def _whole(name: str, meaning: str, unit: str = "") -> Column:
    return Column(name, "BIGINT", unit, meaning)


def _number(name: str, meaning: str, unit: str = "") -> Column:
    return Column(name, "DOUBLE", unit, meaning)


def _flag(name: str, meaning: str) -> Column:
    return Column(name, "BOOLEAN", "", meaning)


def _counters(*rows: tuple[str, str, str]) -> tuple[Column, ...]:
    return tuple(_whole(name, meaning, unit) for name, unit, meaning in rows)


JOB = _text("job", "Name given with --job, else null")
FILE_ID = _text("file_id", "The input file: key of `files`")
LINE = _whole("line", "Line of the input file, from 1; null where a row has no line")
TIME = Column(
    "ts", "TIMESTAMP", "UTC", "When it happened or was sampled; null if the source is silent"
)
TIME_SOURCE = _text("ts_source", "inline, header, filename, mtime, derived or none")
FORMAT = _text("format", "Format definition the row was read with: key of `counter_info`")

_ORIGIN = (JOB, FILE_ID, LINE)
_TIMED = (TIME, TIME_SOURCE)
_PROCESS = (
    _text("host", "Host name as the log prints it (cut at the first dot)"),
    _whole("pid", "Process id on that host"),
    _whole("tid", "Thread id"),
    _whole("cuda_device", "Visible CUDA device of the calling thread; not a rank"),
    _whole("launch_rank", "Rank the launcher wrote before the line: Slurm task, mpirun, torchrun"),
)
_PORT = (
    _text("device", "Switch, or host for a NIC"),
    _text("port", "Port name as printed; RDMA devices as mlx5_0/1"),
    FORMAT,
)

_NODE = (
    _text("node", "InfiniBand node description as printed: MF0;leaf01:MQM9700/U1, gpu01 mlx5_0"),
    _text("guid", "InfiniBand GUID of the port"),
    _whole("lid", "InfiniBand LID of the port"),
)

_TRAFFIC_COUNTERS = _counters(
    ("rx_bytes", "bytes", "Received"),
    ("tx_bytes", "bytes", "Sent"),
    ("rx_packets", "packets", "Received"),
    ("tx_packets", "packets", "Sent"),
)
_HEALTH_COUNTERS = _counters(
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
_RDMA_COUNTERS = _counters(
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

PRIORITY_COUNTERS = _counters(
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

_TABLES = (
    Table(
        "files",
        "one input file and its accounting: lines = parsed + ignored + unparsed",
        "ingest",
        (
            FILE_ID,
            JOB,
            _text("path", "Absolute path when it was read"),
            _whole("size_bytes", "Size on disk", "bytes"),
            Column("modified", "TIMESTAMP", "UTC", "Modification time on disk"),
            _text("content", "Digest of the bytes on disk"),
            _text("settings", "Digest of the definitions and options it was read with"),
            _text("formats", "Formats it showed, comma-separated; empty if unrecognised"),
            _text("device", "Host or switch its place in the tree names"),
            _whole("lines", "Lines (rows for binary formats)"),
            _whole("parsed", "Lines that gave at least one row or context for one"),
            _whole("ignored", "Lines a format knows and does not need"),
            _whole("unparsed", "Lines nobody read"),
            _whole("unclaimed", "Of the unparsed, those that bear no format's mark"),
            _whole("rows", "Rows written to the tables"),
            Column("ts_first", "TIMESTAMP", "UTC", "Earliest time of its rows"),
            Column("ts_last", "TIMESTAMP", "UTC", "Latest time of its rows"),
            _text("problem", "Why the file could not be read to its end, else null"),
            _text("replaces", "file_id of the shorter file this one has grown from"),
            Column("pruned", "TIMESTAMP", "UTC", "When its rows were taken out to save room"),
        ),
        ("path", "file_id"),
    ),
    Table(
        "unparsed",
        "a sampled line nobody read",
        "ingest",
        (
            FILE_ID,
            LINE,
            _text("reason", "What was expected"),
            _text("text", "The line, cut at 500 characters"),
        ),
        ("file_id", "line"),
    ),
    Table(
        "nccl_ranks",
        "a statement of the log about one rank of a communicator; view `ranks` merges them",
        "NCCL_DEBUG",
        (
            *_ORIGIN,
            *_TIMED,
            *_PROCESS,
            _text("comm", "Communicator pointer, meaningful inside one process"),
            _text("comm_id", "Communicator hash, equal on all its ranks"),
            _text("parent_comm", "Pointer of the communicator this one was split from"),
            _whole("rank", "Rank in the communicator"),
            _whole("nranks", "Ranks of the communicator"),
            _whole("nvml_device", "Physical GPU index"),
            _text("bus_id", "PCI id in NCCL's hexadecimal form"),
            _text("version", "NCCL version"),
            _whole("nodes", "Hosts of the communicator"),
            _whole("local_rank", "Rank among those of its host"),
            _whole("local_ranks", "Ranks on its host"),
            _text("init_state", "start, complete, destroyed, revoked or aborted"),
            _number("init_seconds", "Time to create the communicator", "s"),
            _number(
                "bootstrap_seconds", "Of it, meeting the other ranks: long if one is late", "s"
            ),
            _text("network", "Network in use: IB, Socket, a plugin's name"),
            _flag("ring_gdr", "Ring uses GPUDirect RDMA"),
            _flag("ring_pxn", "Ring sends through another GPU's NIC"),
            _whole("coll_channels", "Channels for collectives"),
            _whole("p2p_channels", "Channels for send and receive"),
            _whole("nvls_channels", "Channels for reductions in the NVSwitch (NVLS)"),
            _whole("collnet_channels", "Channels for reductions in the network (SHARP)"),
            _flag("mnnvl", "NVLink between hosts is used"),
            _whole("clique_size", "Ranks of its NVLink domain"),
            _whole("graph_pattern", "Search result: 1-3 trees, 4 ring, 5 NVLS, 6 CollNet"),
            _whole("graph_channels", "Channels of that pattern"),
            _number("graph_intra_gbps", "Bandwidth a channel inside the host", "GB/s"),
            _number("graph_inter_gbps", "Bandwidth a channel between hosts", "GB/s"),
            _text("graph_intra_path", "Kind of its farthest path inside the host: NVL, PIX, ..."),
            _text("graph_inter_path", "Kind of its farthest path to a NIC: PIX, PXB, PHB, SYS"),
        ),
        ("host", "pid", "line"),
    ),
    Table(
        "nccl_nics",
        "a network device NCCL may use, or a statement about it",
        "NCCL_DEBUG",
        (
            *_ORIGIN,
            *_TIMED,
            *_PROCESS,
            _whole("nic_index", "Index in NCCL's list: the device number on NET channels"),
            _text("nic", "Device, as mlx5_0"),
            _whole("nic_port", "Port of the device"),
            _text("link_layer", "IB, RoCE or Ethernet"),
            _whole("speed_mbps", "Link rate", "Mb/s"),
            _flag("adaptive_routing", "Adaptive routing is on"),
            _flag("gdr", "GPUDirect RDMA is enabled for the device"),
            _text("gpu", "GPU the statement on GPUDirect is about: bus id, index or rank"),
            _whole("mtu", "Path MTU of a connection", "bytes"),
            _whole(
                "distance", "Its PCI distance class; GPUDirect is off beyond NCCL_NET_GDR_LEVEL"
            ),
            _text("plugin", "Network that lists it: IB, Socket, ..."),
        ),
        ("host", "pid", "line"),
    ),
    Table(
        "nccl_channels",
        "a connection of a channel, a place in a ring, or a node of a tree",
        "NCCL_DEBUG",
        (
            *_ORIGIN,
            *_TIMED,
            *_PROCESS,
            _text("kind", "connection, ring, ring_order or tree"),
            _whole("channel", "Channel number"),
            _whole("connection", "0 collectives, 1 send and receive; null before 2.12"),
            _whole("from_rank", "Sender; the rank itself in a ring or tree"),
            _whole("to_rank", "Receiver; next in a ring, parent in a tree (-1: none)"),
            _text("side", "send or receive: which end printed it; null if not printed"),
            _text("transport", "P2P, SHM, NET or COLLNET"),
            _text("via", "What follows `via`, as printed"),
            _text("network", "Network of a NET connection"),
            _whole("nic_index", "Device number of a NET connection"),
            _flag("gdr", "GPUDirect RDMA in use; null where it does not apply"),
            _whole("proxy_rank", "Rank whose NIC is used (PXN)"),
            _text("ranks", "Ring: ranks in order, perhaps cut; tree: children"),
        ),
        ("host", "pid", "line"),
    ),
    Table(
        "nccl_paths",
        "a path between two devices of a host as NCCL's topology search sees it",
        "NCCL_DEBUG_SUBSYS=GRAPH",
        (
            *_ORIGIN,
            *_TIMED,
            *_PROCESS,
            _text("from_device", "GPU by bus id or NIC by index, as printed: GPU/18000, NET/0-3"),
            _text("to_device", "Other end: GPU, NET or CPU"),
            _whole("hops", "Links on the way"),
            _number("bandwidth_gbps", "Narrowest link", "GB/s"),
            _text("path_type", "LOC NVL NVB C2C PIX PXB P2C PXN PHB SYS NET DIS, near to far"),
        ),
        ("host", "pid", "line"),
    ),
    Table(
        "nccl_env",
        "a variable in force",
        "NCCL_DEBUG",
        (
            *_ORIGIN,
            *_TIMED,
            *_PROCESS,
            _text("name", "NCCL_..."),
            _text("value", "Its value, without NCCL's trailing dot"),
        ),
        ("host", "pid", "line"),
    ),
    Table(
        "nccl_calls",
        "a collective enqueued by one rank, or what NCCL chose for it: no duration",
        "NCCL_DEBUG",
        (
            *_ORIGIN,
            *_TIMED,
            *_PROCESS,
            _text("op", "AllReduce, AllGather, ..."),
            _whole("op_count", "Launch number on the communicator"),
            _whole("count", "Elements"),
            _whole("datatype", "ncclDataType_t: 7 float32, 6 float16, 9 bfloat16"),
            _whole("red_op", "ncclRedOp_t: 0 sum"),
            _whole("root", "Root; the peer for Send and Recv"),
            _text("comm", "Communicator pointer"),
            _whole("nranks", "Ranks of the communicator"),
            _whole("bytes", "Message size of a choice; null for a call", "bytes"),
            _text("algorithm", "Chosen: Ring, Tree, NVLS, ...; null for a call"),
            _text("protocol", "Chosen: LL, LL128 or Simple"),
            _text("kernel", "Chosen kernel, where NCCL names one"),
            _whole("channels", "Chosen number of channels"),
            _number("predicted_us", "What NCCL's cost model expects; not measured", "us"),
        ),
        ("host", "pid", "line"),
        dated=True,
    ),
    Table(
        "nccl_events",
        "a warning, error or watchdog event",
        "NCCL_DEBUG, PyTorch",
        (
            *_ORIGIN,
            *_TIMED,
            *_PROCESS,
            _whole("rank", "Rank, where the line names one"),
            _text("level", "WARN, INFO or ERROR"),
            _text("source", "Source file and line that printed it"),
            _text("kind", "Family: completion_error, async_event, socket, cuda, ..."),
            _whole("status", "ibv_wc_status of a completion error: 12 peer did not answer"),
            _whole("vendor_error", "The NIC's own code of a completion error: 129 no answer"),
            _text("nic", "Device named"),
            _text("peer", "Peer named"),
            _text("local_gid", "Address of the device, of a completion error"),
            _text("remote_gid", "Address of the peer's device"),
            _text("comm_id", "Communicator hash"),
            _text("process_group", "PyTorch's process group"),
            _text("op", "Collective named"),
            _whole("seq", "Number of the collective it is about"),
            _whole("last_enqueued", "Last collective the rank has launched"),
            _whole("last_started", "Last collective that began on the GPU"),
            _whole("last_completed", "Last collective that ended"),
            _number("duration_ms", "How long it ran, or how long the wait was", "ms"),
            _text("text", "The message"),
        ),
        ("host", "pid", "line"),
        dated=True,
    ),
    Table(
        "collectives",
        "one call on one rank; its duration, where measured, includes waiting for the last rank",
        "NCCL Inspector, Kineto, flight recorder, NCCL profiler plugin",
        (
            *_ORIGIN,
            *_TIMED,
            _text(
                "comm_id",
                "Communicator hash, or name and ranks of the process group: equal on all its ranks",
            ),
            _text("comm_name", "Name the framework gave it"),
            _whole("rank", "Rank in the communicator"),
            _whole("global_rank", "Rank in the job, where the source tells it"),
            _whole("nranks", "Ranks of the communicator"),
            _whole("nodes", "Hosts of the communicator"),
            _text("host", "Host"),
            _whole("step", "Training step it was launched in"),
            _whole("pid", "Process id"),
            _text("op", "AllReduce, AllGather, Send, ..."),
            _whole("seq", "Number of the call, per communicator and op"),
            _whole("peer", "Peer of a Send or Recv"),
            _whole(
                "bytes", "Message size; the per-rank part for AllGather and ReduceScatter", "bytes"
            ),
            _text("datatype", "Type of the elements, as printed"),
            _text("state", "scheduled, started or completed, where the source tells it"),
            _number("duration_us", "Measured duration on this rank", "us"),
            _text(
                "timing_source", "kernel_gpu, kernel_cpu, cuda_event or collective_cpu: never mix"
            ),
            _number("algbw_gbps", "Algorithm bandwidth as printed", "GB/s"),
            _number("busbw_gbps", "Bus bandwidth as printed", "GB/s"),
            _text("algorithm", "Ring, Tree, ..."),
            _text("protocol", "LL, LL128 or Simple"),
        ),
        ("comm_id", "op", "seq", "rank"),
        dated=True,
    ),
    Table(
        "steps",
        "a logged training step: of one rank, or of the job (rank null)",
        "trainers, per-rank records",
        (
            *_ORIGIN,
            *_TIMED,
            FORMAT,
            _whole("step", "Step number as printed"),
            _whole("total_steps", "Planned number of steps"),
            _whole("rank", "Global rank; null for a statement about the job"),
            _text("host", "Host"),
            _whole("stage", "Pipeline stage"),
            Column("started", "TIMESTAMP", "UTC", "When it began, where the log says so"),
            _number("step_time_ms", "Duration of the step", "ms"),
            _number(
                "elapsed_ms", "Training time since the start, for sources without a step time", "ms"
            ),
            _number("compute_ms", "Forward, backward, optimizer", "ms"),
            _number("comm_ms", "Exposed communication, waiting included", "ms"),
            _number("data_ms", "Waiting for input data", "ms"),
            _number(
                "tokens_per_second", "Tokens a second, per device where the trainer says so", "1/s"
            ),
            _number("samples_per_second", "Samples a second", "1/s"),
            _number("tflops_per_gpu", "Achieved TFLOP/s a GPU", "TFLOP/s"),
            _number("loss", "Training loss"),
            _number("grad_norm", "Norm of the gradient"),
            _number("learning_rate", "Learning rate"),
        ),
        ("step", "rank", "line"),
        dated=True,
    ),
    Table(
        "phases",
        "a timed part of a step; of a whole trace where the step is null",
        "timers of the trainers, traces",
        (
            *_ORIGIN,
            *_TIMED,
            FORMAT,
            _whole("step", "Step it belongs to"),
            _whole("rank", "Global rank; null where the log does not say"),
            _whole("stage", "Pipeline stage"),
            _whole("micro_batch", "Micro-batch; null or -1 for an operation of the whole step"),
            _text("phase", "Timer name as printed"),
            _number("start_ms", "Begin, from the begin of the step", "ms"),
            _number("duration_ms", "Duration on the rank that printed it", "ms"),
            _number("min_ms", "Shortest over the ranks", "ms"),
            _number("max_ms", "Longest over the ranks", "ms"),
        ),
        ("step", "phase", "line"),
        dated=True,
    ),
    Table(
        "benchmarks",
        "a row of nccl-tests, or of a trainer's summary of its collectives",
        "nccl-tests, DeepSpeed",
        (
            *_ORIGIN,
            *_TIMED,
            _text("test", "all_reduce_perf, ...; all_reduce, ... in a trainer's summary"),
            _whole("bytes", "Message size", "bytes"),
            _whole("count", "Elements"),
            _text("datatype", "float, half, ..."),
            _text("red_op", "sum, none, ..."),
            _whole("root", "Root; -1 none"),
            _number("time_us", "Mean time of the operation, out of place", "us"),
            _number("algbw_gbps", "Algorithm bandwidth, out of place", "GB/s"),
            _number("busbw_gbps", "Bus bandwidth, out of place", "GB/s"),
            _number("wrong", "Wrong elements, or the error in old versions"),
            _number("in_place_time_us", "Mean time of the operation, in place", "us"),
            _number("in_place_algbw_gbps", "Algorithm bandwidth, in place", "GB/s"),
            _number("in_place_busbw_gbps", "Bus bandwidth, in place", "GB/s"),
            _number("in_place_wrong", "Wrong elements, in place"),
            _number("min_us", "Shortest iteration, out of place", "us"),
            _number("max_us", "Longest iteration, out of place", "us"),
            _number("p99_us", "99th percentile of the iterations, out of place", "us"),
            _number("spread_percent", "Standard deviation over mean, out of place", "%"),
            _number("in_place_min_us", "Shortest iteration, in place", "us"),
            _number("in_place_max_us", "Longest iteration, in place", "us"),
            _number("in_place_p99_us", "99th percentile of the iterations, in place", "us"),
            _number("in_place_spread_percent", "Standard deviation over mean, in place", "%"),
            _text("time_kind", "operation, or launch where only that was measured (-C 1)"),
        ),
        ("test", "bytes", "line"),
        dated=True,
    ),
    Table(
        "port_samples",
        "one port of a switch or NIC at one time",
        "every counter source",
        (
            *_ORIGIN,
            *_TIMED,
            *_PORT,
            *PORT_COUNTERS,
            Column("other", "MAP(VARCHAR, BIGINT)", "", "Counters without a column, as printed"),
        ),
        ("device", "port", "ts", "line"),
        dated=True,
    ),
    Table(
        "priority_samples",
        "one priority or queue of a port at one time",
        "every counter source",
        (
            *_ORIGIN,
            *_TIMED,
            *_PORT,
            _whole("priority", "802.1p priority; null for a queue that serves none alone"),
            _text("queue", "UC3, MC10, PG3; null for a priority"),
            *PRIORITY_COUNTERS,
            Column("other", "MAP(VARCHAR, BIGINT)", "", "Counters without a column, as printed"),
        ),
        ("device", "port", "priority", "queue", "ts", "line"),
        dated=True,
    ),
    Table(
        "counter_info",
        "how one counter of one format counts",
        "format definitions",
        (
            FORMAT,
            _text("table_name", "port_samples or priority_samples"),
            _text("counter", "Column of that table"),
            _whole("width", "Bits", "bit"),
            _text("overflow", "wrap (modulo 2^width) or saturate (stops at the maximum)"),
            _text("kind", "counter (a total), delta (since the previous row) or gauge"),
            _text("unit", "Unit of the column"),
        ),
        ("format", "table_name", "counter"),
    ),
    Table(
        "port_status",
        "state of a port at one time",
        "status commands",
        (
            *_ORIGIN,
            *_TIMED,
            *_PORT,
            _text("alias", "Second name of the same port: vendor alias or net device"),
            _number("speed_gbps", "Configured or negotiated rate", "Gb/s"),
            _whole("lanes", "Lanes in use; InfiniBand tools print them instead of the rate"),
            _number("lane_gbps", "Data rate of a lane", "Gb/s"),
            _text("could_be", "What the tool says the link could run at: a degraded link"),
            _text("oper", "up or down"),
            _text("admin", "up or down"),
            _text("fec", "FEC mode"),
            _whole("mtu", "MTU", "bytes"),
            _text("link_layer", "InfiniBand or Ethernet"),
            *_NODE,
        ),
        ("device", "port", "ts"),
    ),
    Table(
        "settings",
        "what a switch is set to do",
        "commands that print a configuration",
        (
            *_ORIGIN,
            *_TIMED,
            *_PORT,
            _text("profile", "Profile the setting belongs to; null for a setting of a port"),
            _text("name", "lossless_priorities of a port; else as the command prints it"),
            _text("value", "Its value, as printed"),
        ),
        ("device", "port", "profile", "name"),
    ),
    Table(
        "links",
        "two ends of a cable as one end tells it",
        "LLDP and fabric discovery",
        (
            *_ORIGIN,
            *_TIMED,
            *_PORT,
            _text("remote_device", "Device at the other end"),
            _text("remote_port", "Port id at the other end"),
            _text("remote_port_description", "What the other end calls its port"),
            _number("speed_gbps", "Negotiated rate", "Gb/s"),
            _whole("lanes", "Lanes in use; InfiniBand tools print them instead of the rate"),
            _number("lane_gbps", "Data rate of a lane", "Gb/s"),
            _text("could_be", "What the tool says the link could run at: a degraded link"),
            _text("oper", "up or down"),
            *_NODE,
            _text("remote_node", "InfiniBand node description of the other end"),
            _text("remote_guid", "GUID of the port at the other end"),
            _whole("remote_lid", "LID of the other end"),
        ),
        ("device", "port"),
    ),
    Table(
        "hosts",
        "a fact about a host",
        "topology matrix, modules, MTU, PCIe",
        (
            *_ORIGIN,
            *_TIMED,
            _text("host", "Host"),
            _text("part", "GPU, NIC or port the fact is about; null: the host"),
            _text("fact", "Name"),
            _text("value", "Value"),
        ),
        ("host", "part", "fact"),
    ),
    Table(
        "host_map",
        "what the user's host map says: a host, or one of its NICs",
        "host map",
        (
            *_ORIGIN,
            _text("host", "Name as NCCL and the trainer print it"),
            _text("alias", "Another name or address of it"),
            _whole("first_rank", "First rank that runs on it"),
            _whole("last_rank", "Last rank that runs on it"),
            _whole("gpu", "Physical GPU index that uses the NIC"),
            _text("nic", "RDMA or network device"),
            _text("switch", "Switch the NIC is cabled to"),
            _text("switch_port", "Its port"),
        ),
        ("host", "nic"),
    ),
    Table(
        "events",
        "something that happened: restart, checkpoint, Xid",
        "trainers, kernel logs",
        (
            *_ORIGIN,
            *_TIMED,
            _text("host", "Host"),
            _whole("rank", "Rank"),
            _whole("step", "Step"),
            _text("kind", "What happened"),
            _text("part", "GPU, NIC, port or PCI address it happened to"),
            _whole("code", "Its number, as of an Xid"),
            _text("text", "The line"),
        ),
        ("ts", "line"),
        dated=True,
    ),
    Table(
        "findings",
        "a finding of one diagnosis, kept as history",
        "diagnose",
        (
            _text("run", "Digest of what was found, or name of the event of an incident"),
            _text("news", "Of an incident: new, worse or resolved; null: found by `diagnose`"),
            Column(
                "told", "TIMESTAMP", "UTC", "Of an incident: when the watch noticed, by our clock"
            ),
            _text("id", "Stable over reruns"),
            _text("kind", "Diagnosis"),
            _text("severity", "info, low, medium, high or critical"),
            _number("confidence", "0 to 1"),
            Column("start", "TIMESTAMP", "UTC", "Begin"),
            Column("end", "TIMESTAMP", "UTC", "End"),
            _number("loss_share", "Share of throughput lost, 0 to 1"),
            _text("title", "One sentence"),
            _text("document", "The whole finding as JSON, schema_version 1"),
        ),
        ("run", "id"),
    ),
)

TABLES: dict[str, Table] = {table.name: table for table in _TABLES}
