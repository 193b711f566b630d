"""A port has one name in every table, and a leaf is one whoever of its hosts left logs."""

import json
import random
from pathlib import Path

import pytest

from fabricobs.diagnosis.device_commands import nic_commands_of, switch_commands_of
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.findings import Entity
from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session

_TIMES = ("2026-03-03T08-11-27", "2026-03-03T08-12-27", "2026-03-03T08-13-27")
_HEAD = """Last table change time   : 41 days, 3:20:11 ago
Port          Neighbor Device ID       Neighbor Port ID    TTL
---------- ------------------------ ---------------------- ---
"""


def _stored(logs: Path, folder: Path) -> Path:
    store = folder / "store"
    ingest([logs], Store(store), Options())
    return store


def _ids(kind: int, ports: list[str], first: int) -> dict[str, str]:
    return {port: f"oid:0x{(kind << 48) + first + at:x}" for at, port in enumerate(ports)}


@pytest.mark.parametrize("seed", range(6))
def test_object_ids_are_the_ports_of_their_maps(seed: int, tmp_path: Path) -> None:
    """Maps lie beside the counters, and a restart may give other ids, or each other's."""
    draw = random.Random(seed)
    ports = [f"Ethernet{8 * at}" for at in range(draw.randint(2, 6))]
    queues = [f"{port}:{queue}" for port in ports for queue in range(draw.randint(1, 4))]
    restart = draw.choice([1, 2, None])
    wrapped = draw.random() < 0.5  # as redis-dump writes hashes, each file one key
    for at, time in enumerate(_TIMES):
        shift = 0 if restart is None or at < restart else draw.randint(1, 3)
        folder = tmp_path / "logs" / time / "leaf1"
        folder.mkdir(parents=True)
        maps = {
            "COUNTERS_PORT_NAME_MAP": _ids(0x1, ports, 2 + shift),
            "COUNTERS_QUEUE_NAME_MAP": _ids(0x15, queues, 256 + shift),
            "COUNTERS_PG_NAME_MAP": _ids(0x1A, queues, 256 + shift),
            "COUNTERS_LAG_NAME_MAP": _ids(0x2, ["PortChannel1"], 2 + shift),
        }
        stats = {
            "COUNTERS_PORT_NAME_MAP": ("SAI_PORT_STAT_IF_IN_OCTETS", "SAI_PORT_STAT_PFC_3_RX_PKTS"),
            "COUNTERS_QUEUE_NAME_MAP": ("SAI_QUEUE_STAT_PACKETS",),
            "COUNTERS_PG_NAME_MAP": ("SAI_INGRESS_PRIORITY_GROUP_STAT_DROPPED_PACKETS",),
            "COUNTERS_LAG_NAME_MAP": ("SAI_PORT_STAT_IF_IN_OCTETS",),
        }
        counters = {
            f"COUNTERS:{number}": dict.fromkeys(stats[name], str(at))
            for name, ids in maps.items()
            for number in ids.values()
        }
        (folder / "COUNTERS_DB.json").write_text(json.dumps(counters))
        for name, ids in maps.items():
            told = {name: {"type": "hash", "value": ids}} if wrapped else ids
            (folder / f"{name}.json").write_text(json.dumps(told))
    with open_session(_stored(tmp_path / "logs", tmp_path)) as session:
        told = session.sql("SELECT port, count(*) FROM named_samples GROUP BY port").fetchall()
        assert sorted(told) == sorted((port, 3) for port in [*ports, "PortChannel1"])
        rows = "SELECT port, priority, queue, count(*) FROM named_priority_samples GROUP BY ALL"
        by_queue = [(*name.split(":"), 3) for name in queues]
        assert set(session.sql(rows).fetchall()) == {
            *((port, 3, None, 3) for port in ports),
            *((port, None, queue, 3) for port, queue, _ in by_queue),
            *((port, None, f"PG{queue}", 3) for port, queue, _ in by_queue),
        }
        status = session.sql("SELECT DISTINCT port FROM named_status").fetchall()
        assert {port for (port,) in status} == {*ports, "PortChannel1"}


def _eos_leaf(leaf: str, hosts: list[str], spines: list[str], folder: Path) -> None:
    """Write LLDP neighbours and two readings of counters of a leaf whose hosts have two NICs."""
    ends = [(host, f"enp{27 + nic}s0np0") for host in hosts for nic in (0, 1)]
    ends += [(spine, f"Ethernet{link}/1") for spine in spines for link in (1, 2)]
    folder.mkdir(parents=True)
    (folder / "show_lldp_neighbors.txt").write_text(
        _HEAD
        + "".join(
            f"Et{at + 1}/1     {device:24} {port:22} 120\n"
            for at, (device, port) in enumerate(ends)
        )
    )
    for at, minute in enumerate(range(11, 14)):
        frames = {
            f"Ethernet{port + 1}/1": {"rxFrames": 10 * at, "txFrames": 5 * at}
            for port in range(len(ends))
        }
        name = f"20260303_10{minute}00_show_priority-flow-control_counters.json"
        (folder / name).write_text(json.dumps({"interfaceCounters": frames}))


@pytest.mark.parametrize("seed", range(4))
def test_leaves_are_alike_whichever_hosts_left_logs(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    spines = [f"sp{number}" for number in range(1, draw.randint(2, 4) + 1)]
    below = {
        f"lf{leaf}": [f"gpu-a{8 * leaf + host}" for host in range(draw.randint(2, 4))]
        for leaf in range(1, draw.randint(2, 3) + 1)
    }
    for leaf, hosts in below.items():
        _eos_leaf(leaf, hosts, spines, tmp_path / "logs" / "switches" / leaf)
    logged = draw.choice(below["lf1"])
    steps = tmp_path / "logs" / "steps_rank0.jsonl"
    steps.write_text(
        "".join(
            json.dumps(
                {
                    "step": step,
                    "rank": 0,
                    "host": logged,
                    "step_time_ms": 10.0,
                    "timestamp": f"2026-03-03T10:11:{step:02d}Z",
                }
            )
            + "\n"
            for step in range(1, 20)
        )
    )
    store = _stored(tmp_path / "logs", tmp_path)
    with open_session(store, "uplink_groups") as session:
        groups = session.sql("SELECT uplink_group, count(*) FROM uplink_groups GROUP BY ALL")
        leaves = {group: links for group, links in groups.fetchall() if group.startswith("lf")}
        assert leaves == {f"{leaf} uplinks": 2 * len(spines) for leaf in below}
    evidence = Evidence(store)
    try:
        # Cables name net devices, and no log joins them to RDMA devices: they are the NICs.
        assert len(evidence.frame("pause_counters")) == 2
        assert evidence.frame("stop_readings")["paused_twice"][0]
        told = switch_commands_of(evidence, [Entity("port", switch="lf1", port="Ethernet1/1")])
        assert told["command_optics"] == "`show interfaces Ethernet1/1 transceiver detail`"
        unknown = switch_commands_of(evidence, [Entity("switch", switch="another")])
        assert "`" not in unknown["command_optics"]
    finally:
        evidence.close()


@pytest.mark.parametrize(
    ("device", "asked"),
    [
        ("mlx5_3", "`mlxlink -d mlx5_3 -m -c`"),
        ("ibp24s0", "`mlxlink -d ibp24s0 -m -c`"),
        ("eth4", "`ethtool -m eth4`, `ethtool -S eth4`"),
        ("ionic_3", "`ethtool -m $(ls /sys/class/infiniband/ionic_3/device/net)`"),
        ("bnxt_re0", "`ethtool -m $(ls /sys/class/infiniband/bnxt_re0/device/net)`"),
        ("a`b", "`ethtool -m a'b`"),
        (
            "b8e9.240e.0020",
            "`ethtool -m $(ip -br link | grep b8:e9:24:0e:00:20 | cut -d' ' -f1)`",
        ),
        (
            "B8-E9-24-0E-00-20",
            "`ethtool -m $(ip -br link | grep b8:e9:24:0e:00:20 | cut -d' ' -f1)`",
        ),
    ],
)
def test_a_nic_is_asked_by_the_tools_of_its_driver(device: str, asked: str) -> None:
    assert nic_commands_of(device)["nic_optics"].startswith(asked)
