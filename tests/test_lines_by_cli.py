"""What a user relies on where lines are not as clean as in a manual, through the command line."""

import json
import random
import tempfile
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from conftest import ROOT
from fabricobs.cli import app

NCCL = "gpu-01:91:97 [2] NCCL "
WATCHDOG = (
    "[rank3]:[E1103 07:14:42.115298746 ProcessGroupNCCL.cpp:612] [Rank 3] Watchdog caught "
    "collective operation timeout: WorkNCCL(SeqNum=4411, OpType=ALLREDUCE, Timeout(ms)=900000) "
    "ran for 900047 milliseconds before timing out."
)
BAR = " 35%|###5      | 210/600 [10:02<18:11, 2.80s/it]"


class Ingested:
    """A folder of logs, ingested by the command line; asked by SQL."""

    def __init__(self, folder: Path, files: dict[str, str], *options: str) -> None:
        for name, text in files.items():
            path = folder / "logs" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        self.store = folder / "store"
        arguments = ["ingest", str(folder / "logs"), "--store", str(self.store), *options]
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code in {0, 1}, result.output
        self.output = result.output

    def rows(self, table: str, columns: str) -> list[tuple[Any, ...]]:
        with duckdb.connect() as session:
            found = session.sql(
                f"SELECT {columns} FROM read_parquet('{self.store}/*/{table}.parquet') ORDER BY ALL"
            )
            return found.fetchall()

    def question(self, name: str, columns: str) -> list[str]:
        """Return some columns of what a question answers, as lines of CSV without the header."""
        text = (ROOT / "queries" / f"{name}.sql").read_text().strip().rstrip(";")
        query = f"SELECT {columns} FROM ({text})"
        arguments = ["sql", query, "--store", str(self.store), "--format", "csv"]
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output
        return result.output.splitlines()[1:]

    @property
    def account(self) -> list[tuple[int, int, int]]:
        return self.rows("files", "parsed, ignored, unparsed")


@pytest.mark.parametrize(
    "unknown",
    [
        "Port          InPkts   OutPkts\nEth1/1           900       901\n",
        "Interface     Colour   Shape\nEth1/1           900       901\n",
    ],
)
def test_an_unknown_header_ends_a_table(tmp_path: Path, unknown: str) -> None:
    known = "Port    OutMcastPkts  OutBcastPkts\nEth1/1             5             6\n"
    found = Ingested(tmp_path, {"leaf12/20260302_090000_counters.txt": known + unknown})
    ((other,),) = found.rows("port_samples", "other")
    assert other == {"OutMcastPkts": 5, "OutBcastPkts": 6}
    assert found.account == [(1, 1, 2)]


def test_a_ruled_table_of_other_columns_is_not_read_by_the_names_above(tmp_path: Path) -> None:
    header = "    IFACE    STATE    RX_OK    RX_ERR    TX_OK    TX_ERR\n"
    rule = "---------  -------  -------  --------  -------  --------\n"
    known = f"{header}{rule}Ethernet0        U      100         0      200         0\n"
    unknown = "    IFACE    COLOUR\n---------  --------\nEthernet0       777\n"
    found = Ingested(tmp_path, {"leaf12/20260302_090000_counters.txt": known + unknown})
    assert found.rows("port_samples", "rx_packets, tx_packets, other") == [(100, 200, None)]
    assert found.account[0][2] == 3


def test_a_bar_before_a_timeout_loses_neither(tmp_path: Path) -> None:
    found = Ingested(tmp_path, {"train.log": f"{BAR}{WATCHDOG}\n{BAR}\n"})
    assert found.rows("nccl_events", "kind, rank, launch_rank, seq") == [
        ("watchdog_timeout", 3, 3, 4411)
    ]
    assert found.rows("steps", "step, line") == [(210, 1), (210, 2)]
    assert found.account == [(2, 0, 0)]


def test_a_bar_before_a_warning_keeps_its_step_and_its_label(tmp_path: Path) -> None:
    warning = (
        f"{NCCL}WARN NET/IB : Got completion with error 12, opcode 1, len 32551, vendor err 129"
    )
    label = "[1,2]<stdout>:"
    found = Ingested(tmp_path, {"train.log": f"{label}{BAR}{warning}\n{label}{BAR}\n"})
    assert found.rows("nccl_events", "host, launch_rank, status") == [("gpu-01", 2, 12)]
    assert found.rows("steps", "step, rank") == [(210, 2), (210, 2)]


def test_messages_that_run_together_are_all_read(tmp_path: Path) -> None:
    first = f"{NCCL}INFO Using network IB"
    torn = f"{NCCL}INFO Channel 00/0 : 0[0] -> "
    text = f"{first}\n{first}{first}\n{torn}{first}\n"
    found = Ingested(tmp_path, {"nccl.log": text})
    assert found.rows("nccl_ranks", "host, network") == [("gpu-01", "IB")] * 4
    # The line of the torn message is not read: one of its two messages is lost.
    assert found.account == [(2, 0, 1)]
    ((line, text_kept),) = found.rows("unparsed", "line, text")
    assert (line, text_kept) == (3, torn + first)


def test_the_peer_of_an_error_is_a_host(tmp_path: Path) -> None:
    other = "gpu-02:7:9 [0] NCCL "
    text = (
        f"{other}INFO Bootstrap : Using eth0:10.0.0.2<0>\n"
        f"{NCCL}WARN NET/IB : Got completion from peer 10.0.0.2<50100> with status=12 opcode=0\n"
    )
    found = Ingested(tmp_path, {"nccl.log": text})
    asked = CliRunner().invoke(
        app, ["query", "failed_connections", "--store", str(found.store), "--format", "csv"]
    )
    assert "gpu-01,gpu-02,10.0.0.2<50100>" in asked.output


def test_what_is_known_and_not_kept_is_said(tmp_path: Path) -> None:
    text = f"{NCCL}INFO Using network IB\n{NCCL}INFO NET/Plugin : No plugin found\n"
    found = Ingested(tmp_path, {"nccl.log": text})
    assert found.rows("files", "not_kept") == [("NCCL's settings and progress 1",)]
    assert "Known, not kept: NCCL's settings and progress 1;" in found.output


def test_the_root_cause_of_a_failed_launch_names_host_and_rank(tmp_path: Path) -> None:
    text = (
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n"
        "Root Cause (first observed failure):\n[0]:\n  time      : 2026-02-03_04:05:06\n"
        "  host      : gpu-02\n  rank      : 3 (local_rank: 1)\n  exitcode  : 1 (pid: 517)\n"
    )
    found = Ingested(tmp_path, {"train.log": text})
    assert found.rows("events", "kind, host, rank, code") == [("root_cause", "gpu-02", 3, 1)]


def test_colours_inside_records_hide_no_format(tmp_path: Path) -> None:
    step = "[titan] 2026-02-03 04:05:06,000 - root - INFO - \x1b[31mstep:  1  \x1b[32mloss:  2.0401"
    lines = [f"{NCCL}INFO Using network IB", f"{step}  \x1b[33mmemory: 61.20GiB(77.30%)\x1b[39m"]
    found = Ingested(tmp_path, {"logs.json": json.dumps([{"message": line} for line in lines])})
    assert found.rows("steps", "step, loss") == [(1, 2.0401)]
    assert found.account == [(2, 0, 0)]


def test_copied_trees_of_four_hosts_are_four_devices(tmp_path: Path) -> None:
    tree = "gpu-{:02}/20261121T095945Z/sys/class/infiniband/mlx5_0/ports/1/counters/{}"
    errors = {n: 22220 if n == 2 else 0 for n in range(4)}
    files = {tree.format(n, "symbol_error"): f"{count}\n" for n, count in errors.items()}
    files |= {tree.format(n, "link_downed"): "0\n" for n in range(4)}
    read = Ingested(tmp_path, files)
    found = read.rows("port_samples", "device, port, max(symbol_errors) OVER (PARTITION BY device)")
    assert set(found) == {(f"gpu-{n:02}", "mlx5_0/1", count) for n, count in errors.items()}
    assert len(read.account) == len(files)


def test_the_peer_of_a_completion_error_is_the_host_that_its_bootstrap_names(
    tmp_path: Path,
) -> None:
    lines = (
        "gpu-01:11:12 [0] NCCL INFO Bootstrap : Using bond0:10.9.0.1<0>\n"
        "gpu-02:21:22 [0] NCCL INFO Bootstrap : Using bond0:10.9.0.2<0>\n"
        "gpu-01:11:13 [0] NCCL WARN NET/IB : Got completion from peer 10.9.0.2<43210> with error "
        "12, opcode 129, len 0, vendor err 129\n"
    )
    read = Ingested(tmp_path, {"nccl.log": lines})
    assert read.question("failed_connections", "host, peer_host") == ["gpu-01,gpu-02"]


def test_a_pattern_that_fits_no_path_is_told(tmp_path: Path) -> None:
    files = {"gpu-01/a.log": f"{NCCL}INFO Using network IB\n"}
    wrong, right = ("--host-from", "racks/{host}/**"), ("--host-from", "{host}/*.log")
    found = Ingested(tmp_path, files, *wrong, *right)
    told = [line for line in found.output.splitlines() if "--host-from" in line]
    assert told == ["--host-from racks/{host}/** fits no path below LOGS, such as gpu-01/a.log"]


def test_unchanged_files_are_told_without_a_table(tmp_path: Path) -> None:
    files = {"a.log": f"{NCCL}INFO Using network IB\n"}
    Ingested(tmp_path, files)
    assert Ingested(tmp_path, files).output.splitlines()[0] == (
        "1 file already in the store, unchanged."
    )


def test_files_with_the_content_of_another_are_told(tmp_path: Path) -> None:
    line = f"{NCCL}INFO Using network IB\n"
    told = Ingested(tmp_path, {"a/x.log": line, "a/y.log": line, "a/z.log": line}).output
    assert "2 files with the content of another, read once." in told
    assert "already in the store" not in told


@pytest.mark.parametrize(
    ("names", "job"),
    [
        (("llama-70b/a.log", "llama-70b/b.log"), "llama-70b"),
        (("slurm-4711/a.log", "slurm-4711/b.log"), "slurm-4711"),
        (("a.log",), "NULL"),
    ],
)
def test_rows_of_an_only_job_say_the_name_of_its_folder(
    tmp_path: Path, names: tuple[str, ...], job: str
) -> None:
    files = {
        name: f"gx-01:{rank}:{rank} [0] NCCL INFO ncclCommInitRank comm 0x1 rank {rank} nranks 2 "
        "cudaDev 0 nvmlDev 0 busId 1b000 commId 0x7a1 - Init COMPLETE\n"
        for rank, name in enumerate(names)
    }
    found = Ingested(tmp_path, files)
    query = "SELECT DISTINCT coalesce(job, 'NULL') FROM nccl_ranks"
    result = CliRunner().invoke(app, ["sql", query, "--store", str(found.store), "--format", "csv"])
    assert result.output.splitlines()[1:] == [job]


@given(seed=st.integers(0, 10_000), shared=st.booleans())
@settings(max_examples=4, deadline=None)
def test_what_a_process_says_before_its_rank_is_that_ranks(seed: int, *, shared: bool) -> None:
    """Two ranks, each in a process of its own or in one; statements of both in any order."""
    draw = random.Random(seed)
    pids = (900, 900) if shared else (900, 901)
    channels = draw.sample(range(2, 33), 2)
    queues = []
    for gpu, pid in enumerate(pids):
        mark = f"gx-01:{pid}:{pid + 10 + gpu} [{gpu}] NCCL INFO "
        init = f"ncclCommInitRank comm 0x1{gpu} rank {gpu} nranks 2 cudaDev {gpu} nvmlDev {gpu} "
        queues.append(
            [
                f"gx-01:{pid}:{pid} [{gpu}] NCCL INFO NCCL version 2.20.5+cuda12",
                f"{mark}Connected all rings, use ring PXN 0 GDR {gpu}",
                f"{mark}{channels[gpu]} coll channels, 0 collnet channels, 0 nvls channels, "
                f"{channels[gpu]} p2p channels, 2 p2p channels per peer",
                f"{mark}{init}busId 1b000 commId 0x7a1 - Init COMPLETE",
            ]
        )
    lines: list[str] = []
    while any(queues):
        lines.append(draw.choice([queue for queue in queues if queue]).pop(0))
    with tempfile.TemporaryDirectory() as folder:
        found = Ingested(Path(folder), {"a.log": "\n".join(lines) + "\n"})
        query = "SELECT rank, version, ring_gdr, coll_channels FROM ranks ORDER BY rank"
        arguments = ["sql", query, "--store", str(found.store), "--format", "csv"]
        told = CliRunner().invoke(app, arguments).output.splitlines()[1:]
    assert [line.lower() for line in told] == [
        f"{gpu},2.20.5+cuda12,{bool(gpu)},{channels[gpu]}".lower() for gpu in (0, 1)
    ]


def test_a_bar_cut_by_the_container_runtime_keeps_its_step(tmp_path: Path) -> None:
    at = "2026-03-02T09:14:{:02}.000000000Z stdout"
    bars = ["\r 50%|##5  | 3/6 [00:03<00:03, 1.0s/it]", "\r 66%|###  | 4/6 [00:04<00:02, 1.0s/it]"]
    text = (
        f"{at.format(1)} F {bars[0]}{{'loss': 2.5, 'learning_rate': 1e-05, 'epoch': 0.03}}\n"
        f"{at.format(2)} P {bars[1]}\r 83%|#### |\n"
        f"{at.format(2)} F  5/6 [00:05<00:01, 1.0s/it]"
        "{'loss': 2.25, 'learning_rate': 1e-05, 'epoch': 0.05}\n"
    )
    found = Ingested(tmp_path, {"worker-0/0.log": text})
    assert found.rows("steps", "step, loss") == [(3, 2.5), (5, 2.25)]
    assert found.account[0][2] == 0


def _init(host: str, pid: int, gpu: int, rank: int, nranks: int) -> str:
    return (
        f"{host}:{pid}:{pid} [{gpu}] NCCL INFO ncclCommInitRank comm 0xa{rank} rank {rank} "
        f"nranks {nranks} cudaDev {gpu} nvmlDev {gpu} busId {gpu + 1}000 commId 0xfeed12345678 - "
        "Init COMPLETE"
    )


def _by_rank(found: Ingested, view: str) -> list[str]:
    query = (
        f"SELECT host, pid, cuda_device, job_rank, rank_source FROM {view} "
        "ORDER BY host, pid, cuda_device, line"
    )
    arguments = ["sql", query, "--store", str(found.store), "--format", "csv"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return result.output.splitlines()[1:]


@settings(max_examples=8, deadline=None)
@given(st.permutations(range(6)), st.lists(st.integers(1, 3), min_size=1, max_size=4))
def test_rows_of_a_process_have_its_rank(order: list[int], gpus_of: list[int]) -> None:
    """Processes of one to three GPUs: the device tells the ranks of a process apart, or nothing."""
    ranks = iter(order)
    placed = [
        (f"n{process}", 100 + process, gpu, rank, gpus)
        for process, gpus in enumerate(gpus_of)
        for gpu, rank in zip(range(gpus), ranks, strict=False)
    ]
    lines = [_init(host, pid, gpu, rank, len(order)) for host, pid, gpu, rank, _ in placed]
    lines += [
        f"{host}:{pid}:{pid} [{gpu}] NCCL INFO Channel 00/0 : {rank}[0] -> 9[0] [send] via NET/IB/0"
        for host, pid, gpu, rank, _ in placed
        for _ in range(gpu + 1)
    ]
    lines += [f"{h}:{p}:{p} [5] NCCL INFO NCCL_IB_HCA set to mlx5" for h, p, *_ in placed]
    with tempfile.TemporaryDirectory() as folder:
        found = Ingested(Path(folder), {"nccl.log": "\n".join(lines) + "\n"})
        assert _by_rank(found, "channels_by_rank") == [
            f"{host},{pid},{gpu},{rank},communicator"
            for host, pid, gpu, rank, _ in placed
            for _ in range(gpu + 1)
        ]
        several = {pid for _, pid, gpu, *_ in placed if gpu}
        assert _by_rank(found, "env_by_rank") == [
            f"{host},{pid},5," + ("," if pid in several else f"{rank},communicator")
            for host, pid, _, rank, _ in placed
        ]
        counts = found.question(
            "ranks_without_gpudirect", "rank, net_connections, connections_without_gdr"
        )
        assert sorted(counts) == sorted(
            f"{rank},{gpu + 1},{gpu + 1}" for _, _, gpu, rank, _ in placed
        )


def test_a_rank_in_a_file_name_is_that_of_its_one_process(tmp_path: Path) -> None:
    """It is none of a local rank, of several processes, or of one whose rank a line states."""

    def text(pid: int) -> str:
        return f"gx1:{pid}:{pid} [0] NCCL INFO NCCL_IB_HCA set to mlx5\n"

    files = {
        "nccl_rank2.log": text(12),
        "fsdp_rank3.log": text(13),
        "worker-3-rank-12.txt": text(14),
        "local_rank4.log": text(21),
        "tp_rank_05.log": text(22),
        "node_rank6.log": text(23),
        "srun_rank0.log": text(31) + text(32),
        "rank8.log": f"[rank9]: {text(41)}",
        "rank7.log": f"{_init('gx1', 51, 0, 1, 2)}\n{text(51)}",
    }
    found = Ingested(tmp_path, files, "--job", "one")
    told = [line.split(",", 3) for line in _by_rank(found, "env_by_rank")]
    assert {int(pid): rank for _, pid, _, rank in told} == {
        **{12: "2,path", 13: "3,path", 14: "12,path"},
        **dict.fromkeys((21, 22, 23, 31, 32), ","),
        **{41: "9,launcher", 51: "1,communicator"},
    }
    names = found.rows("files", "parse_filename(path), rank")
    assert [name for name, rank in names if rank is None] == [
        *("local_rank4.log", "node_rank6.log", "tp_rank_05.log")
    ]
