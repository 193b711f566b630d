"""Variables of NCCL that contradict each other, or what hosts have, beside settings that agree."""

import random
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.findings import Finding
from fabricobs.diagnosis.methods.rule import find_by_rule
from fabricobs.diagnosis.model import load_models
from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session

pytestmark = pytest.mark.slow

MODEL = load_models()["nccl_variables"]
STAMP = 1741083302

_IBSTAT = """CA '{nic}'
	CA type: MT4129
	Number of ports: 1
	Port 1:
		State: Active
		Physical state: LinkUp
		Rate: 400
		Base lid: 0
		Link layer: Ethernet
"""
_QOS = """DCBX mode: OS controlled
Priority trust state: {trust}
dscp2prio mapping:
	prio:0 dscp:07,06,05,04,03,02,01,00,
	prio:3 dscp:31,30,29,28,27,26,25,24,
	prio:5 dscp:47,46,45,44,43,42,41,40,
PFC configuration:
	priority    0   1   2   3   4   5   6   7
	enabled     0   0   0   1   0   0   0   0
"""
_TOPO = """	GPU0	GPU1	CPU Affinity	NUMA Affinity	GPU NUMA ID
GPU0	 X 	{link}	0-55	0		N/A
GPU1	{link}	 X 	0-55	0		N/A
"""
_LINKS = """1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN mode DEFAULT
2: eno1: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP mode DEFAULT
3: ens3f0np0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP mode DEFAULT
"""
_SONIC = """{
    "DEVICE_METADATA": {"localhost": {"hostname": "leaf1"}},
    "DSCP_TO_TC_MAP": {"AZURE": {"0": "0", "26": "3", "40": "5"}},
    "PORT_QOS_MAP": {"Ethernet0": {"dscp_to_tc_map": "AZURE", "pfc_enable": "3"}}
}
"""
_GIDS = "DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4  \t\tVER\tDEV\n" + "".join(
    f"{nic}\t1\t{index}\tfe80:0000:0000:0000:0a00:00ff:fe00:010{index}\t\t\t{version}\tens3\n"
    for nic in ("mlx5_0", "mlx5_1")
    for index, version in enumerate(("v1", "v2", "v1", "v2"))
)
_ROCE = "NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eno1:10.0.0.1<0>"
_USUAL = {"NCCL_DEBUG": "INFO", "NCCL_CROSS_NIC": "2", "NCCL_BUFFSIZE": "8388608"}
_TRAINING = _USUAL | {"NCCL_IB_GID_INDEX": "3", "NCCL_IB_TIMEOUT": "22", "NCCL_NVLS_ENABLE": "1"}


@dataclass(frozen=True)
class Conflict:
    """Variables that conflict, those of a sound counterpart, and what else a host tells."""

    wrong: Mapping[str, str]
    sound: Mapping[str, str]
    lines: Sequence[str] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    network: str = "IB"
    nvls: int = 16
    version: str = "2.21.5"


def _set(**values: str) -> dict[str, str]:
    return {f"NCCL_{name}": value for name, value in values.items()}


_QOS_FILE = {"mlnx_qos_ens3f0np0": _QOS.format(trust="dscp")}
_GPUS = {
    "nvidia-smi_gpus": "timestamp, index, name, utilization.gpu [%]\n"
    "2026/03/02 09:00:00.000, 0, NVIDIA H100 80GB HBM3, 97 %\n"
}
_NVLINKS = {"nvidia-smi_topo": _TOPO.format(link="NV18")}

CONFLICTS: dict[str, list[Conflict]] = {
    "RDMA off and devices named": [
        Conflict(_set(IB_DISABLE="1", IB_HCA="mlx5"), _set(IB_HCA="mlx5"), network="Socket"),
        Conflict(_set(IB_DISABLE="1", NET="IB"), _set(IB_DISABLE="1"), network="Socket"),
    ],
    "sockets and RDMA settings": [
        Conflict(_set(NET="Socket", NET_GDR_LEVEL="PHB"), _set(NET="Socket"), network="Socket"),
        Conflict(_set(NET="Socket", IB_TC="106"), _set(NET="IB", IB_TC="106")),
    ],
    "no device by that name": [
        Conflict(
            _set(IB_HCA="=mlx5_7,mlx5_8"),
            _set(IB_HCA="^mlx5_7"),
            files={"ibstat": _IBSTAT.format(nic="mlx5_0") + _IBSTAT.format(nic="mlx5_1")},
            network="Socket",
        )
    ],
    "some devices are not there": [
        Conflict(_set(IB_HCA="=mlx5_0:1,mlx5_4:1"), _set(IB_HCA="=mlx5_0:1,mlx5_1:1"), [_ROCE]),
        Conflict(_set(IB_HCA="mlx5_0,mlx5_12"), _set(IB_HCA="mlx5_"), [_ROCE]),
    ],
    "no interface by that name": [
        Conflict(
            _set(SOCKET_IFNAME="=eno"), _set(SOCKET_IFNAME="eno,ib"), files={"ip_link": _LINKS}
        ),
        Conflict(
            _set(SOCKET_IFNAME="bond0"), _set(SOCKET_IFNAME="^bond0"), files={"ip_link": _LINKS}
        ),
    ],
    "split over one queue pair": [
        Conflict(
            _set(IB_SPLIT_DATA_ON_QPS="1"),
            _set(IB_SPLIT_DATA_ON_QPS="1", IB_QPS_PER_CONNECTION="4"),
        ),
        Conflict(
            _set(IB_SPLIT_DATA_ON_QPS="1", IB_QPS_PER_CONNECTION="1"),
            _set(IB_SPLIT_DATA_ON_QPS="0", IB_QPS_PER_CONNECTION="1"),
        ),
    ],
    "adaptive routing and its threshold": [
        Conflict(
            _set(IB_ADAPTIVE_ROUTING="1", IB_AR_THRESHOLD="8388608"),
            _set(IB_ADAPTIVE_ROUTING="1", IB_AR_THRESHOLD="8388608", BUFFSIZE="16777216"),
        )
    ],
    "NVLS off and asked for": [
        Conflict(
            _set(NVLS_ENABLE="0", ALGO="NVLSTree,Ring"),
            _set(NVLS_ENABLE="0", ALGO="^NVLSTree,NVLS"),
        ),
        Conflict(
            _set(NVLS_ENABLE="0", ALGO="ring;allreduce:nvls"),
            _set(NVLS_ENABLE="1", ALGO="ring;allreduce:nvls"),
        ),
    ],
    "NVLS named and not there": [
        Conflict(_set(ALGO="NVLSTree,Ring"), _set(ALGO="Tree,Ring"), nvls=0),
    ],
    "CollNet named and not enabled": [
        Conflict(
            _set(ALGO="CollNetDirect,Ring"), _set(ALGO="CollnetDirect,Ring", COLLNET_ENABLE="1")
        ),
        Conflict(_set(ALGO="CollnetChain,Ring"), _set(ALGO="^CollnetChain")),
    ],
    "CollNet without a plugin": [
        Conflict(
            _set(COLLNET_ENABLE="1", NET_PLUGIN="none"),
            _set(COLLNET_ENABLE="0", NET_PLUGIN="none"),
        )
    ],
    "no algorithm for some calls": [
        Conflict(_set(ALGO="Tree"), _set(ALGO="Tree,Ring"), version="2.27.3"),
        Conflict(_set(ALGO="Tree"), _set(ALGO="allreduce:Tree"), version="2.26.2"),
    ],
    "NVLink off": [
        Conflict(_set(P2P_DISABLE="1"), _set(P2P_DISABLE="0"), files=_NVLINKS),
        Conflict(_set(P2P_LEVEL="LOC"), _set(P2P_LEVEL="NVL"), files=_NVLINKS),
    ],
    "only the network is left": [
        Conflict(_set(P2P_DISABLE="1", SHM_DISABLE="1"), _set(SHM_DISABLE="1"), files=_NVLINKS)
    ],
    "fewer channels allowed than wanted": [
        Conflict(
            _set(MIN_NCHANNELS="16", MAX_NCHANNELS="8"),
            _set(MIN_NCHANNELS="8", MAX_NCHANNELS="8"),
        ),
        Conflict(_set(MIN_CTAS="32", MAX_NCHANNELS="16"), _set(MIN_CTAS="32")),
    ],
    "fewer channels than NICs": [
        Conflict(_set(MAX_NCHANNELS="1"), _set(MAX_NCHANNELS="2"), [_ROCE]),
        Conflict(_set(MAX_CTAS="1"), _set(MAX_CTAS="16"), [_ROCE]),
    ],
    "NVLS off": [
        Conflict(_set(NVLS_ENABLE="0"), _set(NVLS_ENABLE="1"), files=_GPUS, nvls=0),
        Conflict(
            _set(NVLS_ENABLE="0"),
            _set(NVLS_ENABLE="2"),
            ["NVLS multicast support is available on dev 0"],
        ),
    ],
    "PXN off and asked for": [
        Conflict(_set(PXN_DISABLE="1", P2P_PXN_LEVEL="2"), _set(PXN_DISABLE="1", P2P_PXN_LEVEL="0"))
    ],
    "too many sockets": [
        Conflict(
            _set(SOCKET_NTHREADS="16", NSOCKS_PERTHREAD="8"),
            _set(SOCKET_NTHREADS="8", NSOCKS_PERTHREAD="8"),
            network="Socket",
        )
    ],
    "GPUDirect without a way": [
        Conflict(
            _set(DMABUF_ENABLE="0"),
            _set(DMABUF_ENABLE="1"),
            files={"lsmod": "Module                  Size  Used by\nmlx5_ib  401408  0\n"},
        )
    ],
    "unprotected class": [
        Conflict(_set(IB_TC="160"), _set(IB_TC="106"), [_ROCE], _QOS_FILE),
        Conflict(_set(IB_TC="160"), _set(IB_TC="104"), [_ROCE], {"../leaf1/config_db": _SONIC}),
    ],
    "address of RoCE v1": [
        Conflict(_set(IB_GID_INDEX="2"), _set(IB_GID_INDEX="3"), [_ROCE], {"show_gids": _GIDS}),
        Conflict(_set(IB_GID_INDEX="0"), _set(IB_GID_INDEX="5"), [_ROCE], {"show_gids": _GIDS}),
    ],
    "service level without a reader": [
        Conflict(_set(IB_SL="3"), _set(IB_SL="3", IB_TC="106"), [_ROCE], _QOS_FILE),
    ],
    "pointers checked": [
        Conflict(_set(CHECK_POINTERS="1"), _set(CHECK_POINTERS="0")),
        Conflict(_set(CHECK_MODE="DEBUG_LOCAL"), _set(CHECK_MODE="DEFAULT")),
    ],
    "launch mode of debugging": [Conflict(_set(LAUNCH_MODE="GROUP"), _set(LAUNCH_MODE="PARALLEL"))],
    "LL alone": [Conflict(_set(PROTO="LL"), _set(PROTO="^LL")), Conflict(_set(PROTO="ll"), {})],
    "value not accepted": [
        Conflict(_set(IB_RETRY_CNT="15"), _set(IB_RETRY_CNT="7")),
        Conflict(_set(NTHREADS="1024"), _set(NTHREADS="512")),
        Conflict(_set(PROTO="Simpel"), _set(PROTO="allreduce:LL,Simple;^LL128")),
    ],
}


def _write_host(
    folder: Path, number: int, hosts: int, conflict: Conflict, own: dict[str, str]
) -> None:
    """Write the log of a host of two ranks, and what else it tells."""
    host = f"node{number}"
    for name, text in conflict.files.items():
        path = folder / host / f"{name}{'.json' if 'config_db' in name else f'-{STAMP}.txt'}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    lines: list[str] = []
    for local in range(2):
        before = f"{host}:{100 + local}:{100 + local} [{local}] NCCL INFO "
        rank = 2 * number + local
        common = f"comm 0x5e{local} rank {rank}"
        lines += [
            before + text
            for text in (
                f"NCCL version {conflict.version}+cuda12.4",
                *(f"{name} set by environment to {value}." for name, value in own.items()),
                *conflict.lines,
                f"Using network {conflict.network}",
                f"{common} nRanks {2 * hosts} nNodes {hosts} localRanks 2 localRank {local} "
                "MNNVL 0",
                f"16 coll channels, 16 collnet channels, {conflict.nvls} nvls channels, "
                "16 p2p channels, 2 p2p channels per peer",
                f"ncclCommInitRank {common} nranks {2 * hosts} cudaDev {local} nvmlDev {local} "
                f"busId {local + 1}b000 commId 0x7e57 - Init COMPLETE",
            )
        ]
    (folder / "slurm-7").mkdir(parents=True, exist_ok=True)
    (folder / "slurm-7" / f"{host}.log").write_text("\n".join(lines) + "\n")


def _found(folder: Path) -> list[tuple[str, Finding]]:
    """Return the checks that are found wrong, with the findings."""
    store = Store(folder.parent / f"{folder.name}-store")
    ingest([folder], store, Options())
    with closing(Evidence(store.path)) as evidence:
        names = evidence.frame("nccl_variable_conflicts", MODEL.limits)
        findings = find_by_rule(evidence, MODEL, []).findings
    said = dict(names.select("said", "name").rows())
    return [(name, f) for f in findings for text, name in said.items() if f.title.startswith(text)]


@pytest.mark.parametrize(
    ("name", "conflict"), [(name, each) for name, several in CONFLICTS.items() for each in several]
)
def test_a_conflict_is_named_and_its_sound_counterpart_is_not(
    tmp_path: Path, name: str, conflict: Conflict
) -> None:
    """On all hosts of a job the job is named, on one of several that host."""
    draw = random.Random(f"{name} {conflict.wrong}")
    hosts = draw.randrange(3, 6)
    odd = draw.choice([None, draw.randrange(hosts)])
    usual = _TRAINING if conflict.network == "IB" else _USUAL
    others = {k: v for k, v in usual.items() if draw.random() < 0.6}
    for number in range(hosts):
        is_wrong = odd in {None, number}
        for kind, own in (
            ("wrong", conflict.wrong if is_wrong else conflict.sound),
            ("sound", conflict.sound),
        ):
            _write_host(tmp_path / kind, number, hosts, conflict, others | own)
    (found,) = _found(tmp_path / "wrong")
    assert found[0] == name
    named = [entity.host for entity in found[1].entities]
    assert named == ([None] if odd is None else [f"node{odd}"])
    assert found[1].severity in {"low", "info"}
    assert not _found(tmp_path / "sound")


def test_each_check_of_variables_has_a_conflict_and_a_condition(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    store.create()
    with open_session(store.path, "SELECT name FROM nccl_variable_checks") as session:
        names = session.sql("SELECT name FROM nccl_variable_checks").fetchall()
    assert sorted(name for (name,) in names) == sorted(CONFLICTS)
