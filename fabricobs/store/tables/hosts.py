"""Tables of hosts: facts, the host map, events, samples of GPUs."""

from fabricobs.store.tables.columns import ORIGIN, TIMED, Table, number, text, whole

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
            whole("last_rank", "Last rank that runs on it; null: the first alone"),
            whole("gpu", "Physical GPU index that uses the NIC"),
            text("nic", "RDMA or network device"),
            text("net_device", "Network device of an RDMA device"),
            text("switch", "Switch the NIC is cabled to"),
            text("switch_port", "Its port"),
        ),
        ("host", "nic"),
    ),
    Table(
        "events",
        "something that happened: restart, checkpoint, Xid",
        "trainers, kernel logs, switch logs",
        (
            *ORIGIN,
            *TIMED,
            text("host", "Host or switch"),
            whole("rank", "Rank"),
            whole("step", "Step"),
            text("kind", "What happened"),
            text("part", "GPU, NIC, port or PCI address it happened to; the type of an exception"),
            whole("code", "Its number, as of an Xid, or the queue of a storm"),
            text("text", "The line"),
        ),
        ("ts", "line"),
        dated=True,
    ),
    Table(
        "gpu_samples",
        "one GPU of one host at one time: its clocks, power, temperature, PCIe link and errors",
        "nvidia-smi, DCGM",
        (
            *ORIGIN,
            *TIMED,
            text("host", "Host"),
            whole("gpu", "Index of the GPU on its host"),
            text("uuid", "UUID of the GPU"),
            text("bus_id", "PCI address of the GPU"),
            text("model", "What the GPU is"),
            number("sm_clock_mhz", "Clock of the streaming multiprocessors", "MHz"),
            number("sm_clock_max_mhz", "Highest clock it may have", "MHz"),
            number("memory_clock_mhz", "Clock of the memory", "MHz"),
            number("power_watts", "Power it draws", "W"),
            number("power_limit_watts", "Power it may draw", "W"),
            number("temperature_celsius", "Temperature of the GPU", "degrees Celsius"),
            number("utilization_percent", "Share of the time in which a kernel ran", "%"),
            whole("throttle_reasons", "Bits of NVML's clocks event reasons; 0: none, 1: idle"),
            whole(
                "ecc_uncorrected", "Uncorrected errors of its memory since the driver was loaded"
            ),
            whole(
                "faults",
                "1: a value that cannot be read (ERR!), 2: memory that waits for a reset to be "
                "remapped, 4: memory that could not be remapped, 8: its driver asks for a reset",
            ),
            whole("pcie_gen", "Generation of its PCIe link; lower while the GPU is idle"),
            whole("pcie_gen_max", "Highest generation that GPU and host can have"),
            whole("pcie_width", "Lanes of its PCIe link"),
            whole("pcie_width_max", "Most lanes that GPU and host can have"),
            whole("pcie_replays", "Packets sent again over PCIe since the driver was loaded"),
        ),
        ("host", "gpu", "ts"),
        dated=True,
    ),
)
