"""Tables of switches and NICs: counters, states and settings of their ports."""

from fabricobs.store.tables.columns import FORMAT, ORIGIN, TIMED, Column, Table, number, text, whole
from fabricobs.store.tables.counters import PORT_COUNTERS, PRIORITY_COUNTERS

_PORT = (
    text("device", "Switch, or host for a NIC"),
    text("port", "Port name as printed; RDMA devices as mlx5_0/1"),
    FORMAT,
)

_NODE = (
    text("node", "InfiniBand node description as printed: MF0;leaf01:MQM9700/U1, gpu01 mlx5_0"),
    text("guid", "InfiniBand GUID of the port"),
    whole("lid", "InfiniBand LID of the port"),
)

PORTS = (
    Table(
        "port_samples",
        "one port of a switch or NIC at one time",
        "every counter source",
        (
            *ORIGIN,
            *TIMED,
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
            *ORIGIN,
            *TIMED,
            *_PORT,
            whole("priority", "802.1p priority; null for a queue that serves none alone"),
            text("queue", "UC3, MC10, PG3; null for a priority"),
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
            text("table_name", "port_samples or priority_samples"),
            text("counter", "Column of that table"),
            whole("width", "Bits", "bit"),
            text("overflow", "wrap (modulo 2^width) or saturate (stops at the maximum)"),
            text("kind", "counter (a total), delta (since the previous row) or gauge"),
            text("unit", "Unit of the column"),
        ),
        ("format", "table_name", "counter"),
    ),
    Table(
        "port_status",
        "state of a port at one time",
        "status commands",
        (
            *ORIGIN,
            *TIMED,
            *_PORT,
            text("alias", "Second name of the same port: vendor alias or net device"),
            number("speed_gbps", "Configured or negotiated rate", "Gb/s"),
            whole("lanes", "Lanes in use; InfiniBand tools print them instead of the rate"),
            number("lane_gbps", "Data rate of a lane", "Gb/s"),
            text("could_be", "What the tool says the link could run at: a degraded link"),
            text("oper", "up or down"),
            text("admin", "up or down"),
            text("fec", "FEC mode"),
            whole("mtu", "MTU", "bytes"),
            text("link_layer", "InfiniBand or Ethernet"),
            *_NODE,
        ),
        ("device", "port", "ts"),
    ),
    Table(
        "optics",
        "a transceiver or cable at one time, or one of its lanes",
        "commands that print a module's EEPROM and monitors",
        (
            *ORIGIN,
            *TIMED,
            *_PORT,
            whole("lane", "Lane of the module, as printed; null: the whole module"),
            text("kind", "Form factor or medium as printed: OSFP, 850 nm VCSEL, QSFP-100G-SR4"),
            text("vendor", "Vendor of the module"),
            text("part_number", "Vendor's part number"),
            text("serial", "Vendor's serial number"),
            text("firmware", "Firmware of the module"),
            number("temperature_c", "Temperature of the module", "degrees C"),
            number("voltage_v", "Supply voltage", "V"),
            number("bias_ma", "Laser bias current; of a whole module the lowest", "mA"),
            number("tx_power_dbm", "Sent power; of a whole module that of its weakest lane", "dBm"),
            number(
                "rx_power_dbm", "Received power; of a whole module that of its weakest lane", "dBm"
            ),
            text("alarm", "An alarm or warning that is on, one row each"),
        ),
        ("device", "port", "ts", "lane"),
    ),
    Table(
        "settings",
        "what a switch is set to do",
        "commands that print a configuration",
        (
            *ORIGIN,
            *TIMED,
            *_PORT,
            text("profile", "Profile the setting belongs to; null for a setting of a port"),
            text("name", "lossless_priorities of a port; else as the command prints it"),
            text("value", "Its value, as printed"),
        ),
        ("device", "port", "profile", "name"),
    ),
    Table(
        "links",
        "two ends of a cable as one end tells it",
        "LLDP and fabric discovery",
        (
            *ORIGIN,
            *TIMED,
            *_PORT,
            text("remote_device", "Device at the other end"),
            text("remote_chassis", "Chassis id of the other end, often a MAC address"),
            text("remote_port", "Port id at the other end"),
            text("remote_port_description", "What the other end calls its port"),
            number("speed_gbps", "Negotiated rate", "Gb/s"),
            whole("lanes", "Lanes in use; InfiniBand tools print them instead of the rate"),
            number("lane_gbps", "Data rate of a lane", "Gb/s"),
            text("could_be", "What the tool says the link could run at: a degraded link"),
            text("oper", "up or down"),
            *_NODE,
            text("remote_node", "InfiniBand node description of the other end"),
            text("remote_guid", "GUID of the port at the other end"),
            whole("remote_lid", "LID of the other end"),
        ),
        ("device", "port"),
    ),
)
