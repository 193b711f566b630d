"""Settings that hurt or are unlike those of peers, drawn, beside settings that are only unusual."""

import json
import random
from contextlib import closing
from pathlib import Path

import pytest

from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.findings import Finding
from fabricobs.diagnosis.methods.rule import find_by_rule
from fabricobs.diagnosis.model import load_models
from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.store.parts import Store

pytestmark = pytest.mark.slow

MODEL = load_models()["risky_setting"]
STAMP = 1741083302
HOSTS = 5


def _found(folder: Path) -> tuple[Finding, ...]:
    store = Store(folder.parent / f"{folder.name}-store")
    ingest([folder], store, Options())
    with closing(Evidence(store.path)) as evidence:
        return find_by_rule(evidence, MODEL, []).findings


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _write_job(folder: Path, *, gdr: str, nodes: int, dma_buf: str) -> None:
    """Write the log of a job of one rank a host."""
    for number in range(HOSTS):
        before = f"node{number}:{100 + number}:{100 + number} [0] NCCL INFO "
        lines = (
            "Using network IB",
            "DMA-BUF is available on GPU device 0" if dma_buf else "",
            "DMA_BUF Support Failed" if not dma_buf else "",
            f"Connected all rings, use ring PXN 0 GDR {gdr}" if gdr else "",
            f"comm 0x5e0 rank {number} nRanks {HOSTS} nNodes {nodes} localRanks 1 localRank 0",
            f"ncclCommInitRank comm 0x5e0 rank {number} nranks {HOSTS} cudaDev 0 nvmlDev 0 "
            "busId 1b000 commId 0x7e57 - Init COMPLETE",
        )
        text = "".join(f"{before}{line}\n" for line in lines if line)
        _write(folder / "slurm-7" / f"node{number}.log", text)


def _lspci(acs: str, width: str) -> str:
    return (
        "60:00.0 PCI bridge: Broadcom / LSI PEX890xx PCIe Gen 5 Switch (rev b0)\n"
        "\tControl: I/O+ Mem+ BusMaster+\n"
        f"\t\tACSCtl:\tSrcValid{acs} TransBlk- ReqRedir{acs} CmpltRedir{acs} UpstreamFwd{acs}\n\n"
        "1b:00.0 Infiniband controller: Mellanox Technologies MT2910 Family [ConnectX-7]\n"
        "\tControl: I/O+ Mem+ BusMaster+\n"
        f"\t\tLnkSta:\tSpeed 32GT/s, Width {width}\n"
    )


# What each host tells, and what the odd one tells instead.
_ODD = {
    "PCIe width": ("lspci", _lspci("-", "x16"), _lspci("-", "x8 (downgraded)"), "low"),
    "trust of hosts": (
        "mlnx_qos_ens1",
        "DCBX mode: OS controlled\nPriority trust state: dscp\n",
        "DCBX mode: OS controlled\nPriority trust state: pcp\n",
        "info",
    ),
    "drivers": (
        "dmesg",
        "[Tue Mar  4 08:00:09 2025] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  "
        "570.133.20  Release Build\n",
        "[Tue Mar  4 08:00:09 2025] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  "
        "550.90.07  Release Build\n",
        "info",
    ),
    "kernel": (
        "dmesg",
        "[Tue Mar  4 08:00:09 2025] Linux version 6.8.0-85-generic (buildd@x) (gcc)\n",
        "[Tue Mar  4 08:00:09 2025] Linux version 5.15.0-1 (buildd@x) (gcc)\n",
        "info",
    ),
    "IOMMU": (
        "proc/cmdline",
        "BOOT_IMAGE=/vmlinuz-6.8 root=/dev/sda1 ro iommu=pt intel_iommu=on\n",
        "BOOT_IMAGE=/vmlinuz-6.8 root=/dev/sda1 ro\n",
        "info",
    ),
}


@pytest.mark.parametrize("check", _ODD)
@pytest.mark.parametrize("odd", [1, 2, HOSTS])
def test_an_odd_host_is_named_and_two_kinds_of_hosts_are_not(
    tmp_path: Path, check: str, odd: int
) -> None:
    """One of five is odd, two of five are another kind, and what all have is made so."""
    draw = random.Random(f"{check} {odd}")
    name, usual, other, severity = _ODD[check]
    chosen = {f"node{n}" for n in draw.sample(range(HOSTS), odd)}
    for kind in ("odd", "alike"):
        _write_job(tmp_path / kind, gdr="1", nodes=HOSTS, dma_buf="yes")
        for host in (f"node{n}" for n in range(HOSTS)):
            file = name if "/" in name else f"{name}-{STAMP}.txt"
            text = other if kind == "odd" and host in chosen else usual
            _write(tmp_path / kind / host / file, text)
    assert not _found(tmp_path / "alike")
    found = _found(tmp_path / "odd")
    if odd > 1:
        assert not found
        return
    (finding,) = found
    assert {entity.host for entity in finding.entities} == chosen
    assert finding.title.lower().startswith(check.lower())
    assert finding.severity == severity


@pytest.mark.parametrize(
    ("acs", "gdr", "nodes", "severity"),
    [("+", "1", HOSTS, "low"), ("+", "", HOSTS, "info"), ("+", "1", 1, ""), ("-", "1", HOSTS, "")],
)
def test_acs_hurts_where_gpus_and_nics_exchange_data(
    tmp_path: Path, acs: str, gdr: str, nodes: int, severity: str
) -> None:
    _write_job(tmp_path / "logs", gdr=gdr, nodes=nodes, dma_buf="yes")
    for number in range(HOSTS):
        _write(tmp_path / "logs" / f"node{number}" / f"lspci-{STAMP}.txt", _lspci(acs, "x16"))
    found = _found(tmp_path / "logs")
    assert [f.severity for f in found] == ([severity] if severity else [])
    assert all(len(f.entities) == HOSTS for f in found), "one finding a setting, not a host"


@pytest.mark.parametrize("module", ["", "nvidia_peermem"])
@pytest.mark.parametrize("dma_buf", ["", "yes"])
@pytest.mark.parametrize("gdr", ["", "1"])
def test_gpudirect_needs_a_module_or_dma_buf(
    tmp_path: Path, module: str, dma_buf: str, gdr: str
) -> None:
    """What NCCL itself says of GPUDirect is another finding."""
    _write_job(tmp_path / "logs", gdr=gdr, nodes=HOSTS, dma_buf=dma_buf)
    lines = ["Module                  Size  Used by", "mlx5_ib  401408  0"]
    lines += [f"{module}  16384  0"] if module else []
    for number in range(HOSTS):
        path = tmp_path / "logs" / f"node{number}" / f"lsmod-{STAMP}.txt"
        _write(path, "\n".join(lines) + "\n")
    found = _found(tmp_path / "logs")
    assert len(found) == (not module and not dma_buf and not gdr)


@pytest.mark.parametrize("watched", ["no switch", "one switch", "not told", "nothing lossless"])
def test_no_watchdog_at_all_is_told_where_configurations_were_read_whole(
    tmp_path: Path, watched: str
) -> None:
    draw = random.Random(watched)
    ports = [f"Ethernet{4 * n}" for n in range(draw.randrange(2, 6))]
    for number in range(3):
        lossless = "" if watched == "nothing lossless" else "3"
        document = {
            "PORT_QOS_MAP": {
                port: {"dscp_to_tc_map": "AZURE", "pfc_enable": lossless} for port in ports
            },
            "DSCP_TO_TC_MAP": {"AZURE": {"26": "3"}},
            "DEVICE_METADATA": {"localhost": {"hostname": f"leaf{number}"}},
        }
        if watched == "one switch" and number == 1:
            times = {"action": "drop", "detection_time": "200", "restoration_time": "400"}
            document["PFC_WD"] = dict.fromkeys(ports, times)
        path = tmp_path / "logs" / f"leaf{number}"
        if watched == "not told":
            rows = "".join(f"{port:<11}  {3:>21}\n" for port in ports)
            head = "Interface      Lossless priorities\n-----------  ---------------------\n"
            _write(path / f"show_pfc_priority-{STAMP}.txt", head + rows)
        else:
            _write(path / "config_db.json", json.dumps(document, indent=4))
    found = _found(tmp_path / "logs")
    named = [sorted(entity.switch or "" for entity in f.entities) for f in found]
    assert named == ([["leaf0", "leaf1", "leaf2"]] if watched == "no switch" else [])
