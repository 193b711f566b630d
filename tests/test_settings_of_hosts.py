"""What `configuration_audit` compares of hosts: where it is read from, and among which ports."""

import random
from pathlib import Path

import pytest

from fabricobs.formats.definition import load_definitions
from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.querying import stored_queries
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session

AUDIT = stored_queries()["configuration_audit"].sql.rstrip().rstrip(";")
STAMP = "1741083302"

# The definition that reads each output that the manual names for hosts.
READ_BY = {
    "mlnx_qos -i": "mlnx_qos",
    "dcb pfc show": "dcb_pfc",
    "traffic_class and default_roce_tos of sysfs and configfs": "roce_tos",
    "ip link": "ip_link",
    "sysfs net/PORT/mtu": "sysfs_net",
    "node_exporter": "node_exporter_network",
    "NCCL_DEBUG=INFO": "nccl_debug",
    "lspci -vvv as root": "lspci",
    "kernel log": "kernel_log",
    "uname -r": "kernel_release",
    "/proc/cmdline": "kernel_command_line",
    "lsmod": "lsmod",
    "nvidia-smi": "nvidia_smi",
    "nvidia-smi -q": "nvidia_smi_q",
    "sysfs fw_ver": "sysfs_device",
    "ethtool -i": "ethtool_driver",
    "ethtool -m": "ethtool_module",
    "ethtool --show-fec": "ethtool_fec",
}
# Lines that no sample of it has.
MORE = {
    "nccl_debug": "n1:7:7 [0] NCCL INFO NCCL_IB_ADAPTIVE_ROUTING set by environment to 1.\n"
    "n1:7:7 [0] NCCL INFO NCCL_IB_PCI_RELAXED_ORDERING set by environment to 2.\n"
    "n1:7:7 [0] NCCL INFO Kernel version: 6.8.0-85-generic\n"
}
# Settings of the ports that a host's metrics and modules tell beside those of its NICs.
ALSO = {("node_exporter_network", "FEC"), ("mlnx_qos", "buffer profiles")}


def _audit(folder: Path, store: Path) -> list[tuple[str, str, str | None, str | None]]:
    """Return check, verdict, usual value and odd ones of what is seen."""
    made = Store(store)
    ingest([folder], made, Options())
    with open_session(store, AUDIT) as session:
        sql = f"SELECT \"check\", verdict, usual, odd FROM ({AUDIT}) WHERE verdict <> 'not seen'"
        return session.sql(sql).fetchall()


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the manual says is read of hosts, by check."""
    store = Store(tmp_path_factory.mktemp("empty") / "s")
    store.create()
    with open_session(store.path, "SELECT name, hosts FROM configuration_checks") as session:
        rows = session.sql("SELECT name, hosts FROM configuration_checks WHERE hosts IS NOT NULL")
        return dict(rows.fetchall())


@pytest.mark.parametrize("output", READ_BY)
def test_the_manual_names_what_is_read_of_hosts(
    output: str, cells: dict[str, str], tmp_path: Path
) -> None:
    """The samples of a definition tell the checks whose cells name its output, and no others."""
    for number, sample in enumerate(load_definitions()[READ_BY[output]].sample):
        path = tmp_path / "site" / str(number) / (sample.path or f"gpu-a07/{READ_BY[output]}.txt")
        path.parent.mkdir(parents=True)
        path.write_text(sample.text)
    if READ_BY[output] in MORE:
        (tmp_path / "site" / "more.log").write_text(MORE[READ_BY[output]])
    told = _audit(tmp_path / "site", tmp_path / "s")
    seen = {check.partition(":")[0] for check, *_ in told}
    named = {check for check, cell in cells.items() if output in cell}
    assert named and seen - {c for d, c in ALSO if d == READ_BY[output]} == named


def test_every_output_that_the_manual_names_for_hosts_is_tested(cells: dict[str, str]) -> None:
    for check, cell in cells.items():
        rest = cell
        for output in sorted(READ_BY, key=len, reverse=True):
            rest = rest.replace(output, "")
        assert not any(word in rest for word in ("-", "/", "_")) or "NCCL_" in rest, (check, rest)


# How a site names the ports of a host: those of RDMA devices, and the one by which it is managed.
NAMES = [
    ([f"ens{n}f0np0" for n in range(3, 7)], "eno1"),
    ([f"eth{n}" for n in range(1, 5)], "eth0"),
    ([f"enp{n}s0f0np0" for n in (26, 60, 77, 94)], "enp1s0f0np0"),
    (["ens1f0", "ens1f1", "ens2f0", "ens2f1"], "ens9f0"),
]


def _write_host(folder: Path, ports: dict[str, int], rdma: list[str], known_by: str) -> None:
    """Write `ip link` of a host, and what tells its RDMA devices: rdma, ibdev2netdev or speeds."""
    folder.mkdir(parents=True)
    lines = ["1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN mode DEFAULT"]
    lines += [
        f"{n}: {port}: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu {mtu} qdisc mq state UP mode DEFAULT"
        for n, (port, mtu) in enumerate(ports.items(), 2)
    ]
    lines.append("99: ens99f1: <BROADCAST,MULTICAST> mtu 1500 qdisc noop state DOWN mode DEFAULT")
    (folder / f"ip_link-{STAMP}.txt").write_text("\n".join(lines) + "\n")
    if known_by == "speed":
        for port in ports:
            at = folder / "sys" / "class" / "net" / port / "speed"
            at.parent.mkdir(parents=True)
            at.write_text("400000\n" if port in rdma else "10000\n")
    elif known_by in FORMS:
        text = "".join(FORMS[known_by].format(n, port) for n, port in enumerate(rdma))
        (folder / f"{known_by}-{STAMP}.txt").write_text(text)


FORMS = {
    "rdma_link": "link mlx5_{}/1 state ACTIVE physical_state LINK_UP netdev {} netdev_index 7\n",
    "ibdev2netdev": "mlx5_{} port 1 ==> {} (Up)\n",
}


@pytest.mark.parametrize("known_by", ["rdma_link", "ibdev2netdev", "speed", "names"])
@pytest.mark.parametrize("seed", range(2))
def test_the_mtu_of_ports_for_rdma_is_not_compared_with_that_of_others(
    tmp_path: Path, known_by: str, seed: int
) -> None:
    """Sound hosts are alike; a port for RDMA with another MTU is told by its name."""
    chance = random.Random(f"{seed} {known_by}")
    # Without devices or speeds a managing port that is called as the others cannot be told apart.
    rdma, managing = chance.choice(NAMES[: 2 if known_by == "names" else None])
    large, hosts = chance.choice([4200, 9000, 9216]), chance.randint(3, 6)
    odd = (chance.randrange(hosts), chance.choice(rdma)) if seed else None
    for host in range(hosts):
        mtus = {managing: 1500} | {port: 1500 if odd == (host, port) else large for port in rdma}
        _write_host(tmp_path / "site" / f"gpu-a{host:02d}", mtus, rdma, known_by)
    told = [row for row in _audit(tmp_path / "site", tmp_path / "s") if row[0].startswith("MTU")]
    assert len(told) == 2, told
    wrong = [(usual, odd) for _, verdict, usual, odd in told if verdict != "alike"]
    if odd is None:
        assert wrong == []
    else:
        assert wrong == [(str(large), f"gpu-a{odd[0]:02d} {odd[1]}: 1500")]
