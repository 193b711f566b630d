"""Hosts, who sits on them, and what their kernels say."""

from fabricobs.store.tables.columns import ORIGIN, TIMED, Table, text, whole

HOSTS = (
    Table(
        "hosts",
        "a fact about a host or switch",
        "topology matrix, modules, MTU, PCIe",
        (
            *ORIGIN,
            *TIMED,
            text("host", "Host"),
            text("part", "GPU, NIC, port, power supply or fan the fact is about; null: the host"),
            text("fact", "Name"),
            text("value", "Value"),
        ),
        ("host", "part", "fact"),
    ),
    Table(
        "host_map",
        "what the user's host map says: a host, or one of its NICs",
        "host map",
        (
            *ORIGIN,
            text("host", "Name as NCCL and the trainer print it"),
            text("alias", "Another name or address of it"),
            whole("first_rank", "First rank that runs on it"),
            whole("last_rank", "Last rank that runs on it"),
            whole("gpu", "Physical GPU index that uses the NIC"),
            text("nic", "RDMA or network device"),
            text("switch", "Switch the NIC is cabled to"),
            text("switch_port", "Its port"),
        ),
        ("host", "nic"),
    ),
    Table(
        "events",
        "something that happened: restart, checkpoint, Xid",
        "trainers, kernel logs",
        (
            *ORIGIN,
            *TIMED,
            text("host", "Host"),
            whole("rank", "Rank"),
            whole("step", "Step"),
            text("kind", "What happened"),
            text("part", "GPU, NIC, port or PCI address it happened to"),
            whole("code", "Its number, as of an Xid"),
            text("text", "The line"),
        ),
        ("ts", "line"),
        dated=True,
    ),
)
