"""Inputs of the reading bench, written once into a directory and used again."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from fabricobs.bench import drawn

_FILES = 8
_CHUNK = 20_000
_SIDES = ("rx", "tx")
_ETHTOOL = (
    *(f"{side}_{name}" for name in ("packets", "bytes", "errors") for side in _SIDES),
    *(f"{side}{n}_{name}" for n in range(16) for name in ("packets", "bytes") for side in _SIDES),
    *(f"{side}_{name}_phy" for name in ("packets", "bytes", "discards") for side in _SIDES),
    *(
        f"{side}_prio{priority}_{name}"
        for side in _SIDES
        for priority in range(8)
        for name in ("bytes", "packets", "pause", "pause_duration")
    ),
    *(f"rx_prio{priority}_discards" for priority in range(8)),
    "rx_crc_errors_phy", "rx_symbol_err_phy", "link_down_events_phy", "rx_out_of_buffer",
)  # fmt: skip
_SYSFS = (
    *(f"counters/port_{side}_{name}" for side in ("rcv", "xmit") for name in ("data", "packets")),
    "counters/port_rcv_errors", "counters/port_xmit_discards", "counters/port_xmit_wait",
    "counters/symbol_error", "counters/link_downed", "counters/VL15_dropped",
    "hw_counters/out_of_sequence", "hw_counters/packet_seq_err", "hw_counters/duplicate_request",
    "hw_counters/np_cnp_sent", "hw_counters/rp_cnp_handled", "hw_counters/lifespan",
)  # fmt: skip
_OPS = ("AllReduce", "AllGather", "ReduceScatter", "Broadcast")


def coll_lines(folder: Path, size: int) -> None:
    """Write `size` bytes of COLL lines, as NCCL_DEBUG_SUBSYS=COLL gives them, one file a rank."""

    def lines(rank: int) -> Iterator[str]:
        number = 0
        while True:
            op, count = _OPS[number % 4], 1 << (number % 24)
            buffer = 0x7F0000000000 + (number * 2654435761 + rank) % (1 << 36)
            yield (
                f"node{rank:02d}:{4000 + rank}:{5000 + rank} [{rank}] NCCL INFO {op}: opCount "
                f"{number:x} sendbuff 0x{buffer:x} recvbuff 0x{buffer + 4096:x} count {count} "
                f"datatype {7 if number % 3 else 9} op 0 root 0 comm 0x55d{rank}f0 [nranks=64] "
                f"stream 0x55e{rank}00"
            )
            number += 1

    _write(folder, size, lambda file: f"rank{file}.log", lines)


def inspector_lines(folder: Path, size: int) -> None:
    """Write `size` bytes of NCCL Inspector JSON lines, one file a rank."""

    def lines(rank: int) -> Iterator[str]:
        number = 0
        while True:
            number += 1
            size_bytes = 1 << (10 + number % 20)
            micros = 50 + number % 977
            gigabytes = size_bytes / micros / 1e3
            yield (
                f'{{"header":{{"id":"0x5a1f3c77d2{rank:02x}","rank":{rank},"n_ranks":64,'
                f'"nnodes":8}},"metadata":{{"inspector_output_format_version":"v4.0",'
                f'"git_rev":"","rec_mechanism":"profiler_plugin","dump_timestamp_us":'
                f'{1772442000000000 + number * 1000},"hostname":"node{rank:02d}",'
                f'"pid":{4000 + rank}}},'
                f'"coll_perf":{{"coll":"{_OPS[number % 4]}","coll_sn":{number},'
                f'"coll_msg_size_bytes":{size_bytes},"coll_exec_time_us":{micros},'
                f'"coll_timing_source":"kernel_gpu","coll_algobw_gbs":{gigabytes:.6f},'
                f'"coll_busbw_gbs":{gigabytes * 1.96875:.6f}}}}}'
            )

    _write(folder, size, lambda file: f"node{file:02d}-pid{4000 + file}.log", lines)


def port_rows(folder: Path, size: int) -> None:
    """Write `size` bytes of per-port CSV with increments, one file a port."""

    def lines(port: int) -> Iterator[str]:
        yield (
            "SaveTime,SaveTimeUTC,DeviceName,PortName,InPkts,InOctets,OutPkts,OutOctets,"
            "InRatio,OutRatio"
        )
        number = 0
        while True:
            number += 1
            packets = 8_000_000 + number * 7919 % 500_000
            millis = 1772442000000 + number * 5000
            seconds = number * 5
            yield (
                f"2026/03/02 Mon {seconds // 3600 % 24:02d}:{seconds // 60 % 60:02d}:"
                f"{seconds % 60:02d}.{number % 1000:03d},{millis},leaf01,"
                f"FourHundredGigE1/0/{port + 1},{packets},{packets * 4096},{packets + 17},"
                f"{(packets + 17) * 4096},{number % 97 / 10:.2f},{number % 89 / 10:.2f}"
            )

    _write(folder, size, lambda file: f"FourHundredGigE1_0_{file + 1}.csv", lines)


def info_logs(folder: Path, size: int, seed: int) -> None:
    """Write `size` bytes of NCCL_DEBUG=INFO logs that a seed draws, of every kind of line."""
    if _is_there(folder):
        return
    folder.mkdir(parents=True)
    rng = Random(seed)
    kinds = drawn.kinds()
    for file in range(_FILES):
        drawn.write(folder / f"job{file}.log", drawn.nccl_log(rng, kinds), size // _FILES)
    _mark(folder)


def trainer_logs(folder: Path, size: int) -> None:
    """Write `size` bytes of what Megatron, DeepSpeed and nanoGPT print, a file each."""
    if _is_there(folder):
        return
    folder.mkdir(parents=True)
    for name, lines in (("megatron", _megatron), ("deepspeed", _deepspeed), ("nanogpt", _nanogpt)):
        drawn.write(folder / f"{name}.log", lines(Random(1)), size // 3)
    _mark(folder)


def _clock(step: int) -> str:
    minutes, seconds = divmod(step, 60)
    hours, minutes = divmod(minutes, 60)
    return f"2026-03-{2 + hours // 24:02d} {hours % 24:02d}:{minutes:02d}:{seconds:02d}"


def _megatron(rng: Random) -> Iterator[str]:
    for step in range(1, 1 << 40):
        yield (
            f" [{_clock(step)}] iteration {step:8d}/ 1000000 | consumed samples: {step * 512:12d} "
            f"| elapsed time per iteration (ms): {900 + 200 * rng.random():.1f} | learning rate: "
            f"{3e-4 * rng.random():.6E} | global batch size:   512 | lm loss: "
            f"{2 + rng.random():.6E} | loss scale: 1.0 | grad norm: {rng.random():.3f} | "
            "number of skipped iterations:   0 | number of nan iterations:   0 |"
        )


def _deepspeed(rng: Random) -> Iterator[str]:
    for step in range(1, 1 << 40):
        stamp = f"[{_clock(step)},{rng.randrange(1000):03d}] [INFO]"
        yield (
            f"{stamp} [logging.py:96:log_dist] [Rank 0] step={step}, skipped=0, "
            f"lr=[{3e-4 * rng.random():.6f}, 0.0003], mom=[(0.9, 0.95), (0.9, 0.95)]"
        )
        yield (
            f"{stamp} [timer.py:260:stop] epoch=0/micro_step={step * 2}/global_step={step}, "
            f"RunningAvgSamplesPerSec={rng.random() * 300:.6f}, "
            f"CurrSamplesPerSec={rng.random() * 300:.6f}, MemAllocated=11.54GB, "
            "MaxMemAllocated=55.97GB"
        )
        yield (
            f"{stamp} [logging.py:96:log_dist] [Rank 0] time (ms) | fwd_microstep: "
            f"{rng.random() * 300:.2f} | bwd_microstep: {rng.random() * 500:.2f} | "
            f"step_microstep: {rng.random() * 90:.2f}"
        )


def _nanogpt(rng: Random) -> Iterator[str]:
    for step in range(0, 1 << 40, 10):
        yield (
            f"iter {step}: loss {2 + rng.random():.4f}, time {150 + 9 * rng.random():.2f}ms, "
            f"mfu {40 + rng.random():.2f}%"
        )
        if step % 1000 == 0:
            loss = 3 + rng.random()
            yield f"step {step}: train loss {loss:.4f}, val loss {loss + 0.1:.4f}"
            yield "saving checkpoint to out"


def sonic(folder: Path, size: int) -> None:
    """Write SONiC snapshots of about 10 kB: interface and PFC counters in turn."""

    def snapshot(number: int) -> tuple[str, str]:
        leaf, moment = number % 20, number // 20
        name, text = ("pfc", _pfc) if moment % 2 == 0 else ("interfaces", _interfaces)
        return f"leaf{leaf:02d}/{_stamp(moment)}_show_{name}_counters.txt", text(number)

    _write_snapshots(folder, size, snapshot)


def ethtool(folder: Path, size: int) -> None:
    """Write what `ethtool -S` prints, four NICs of each of 64 hosts in turn."""

    def snapshot(number: int) -> tuple[str, str]:
        moment, place = divmod(number, 256)
        lines = [f"     {name}: {number * 7919 + len(name)}" for name in _ETHTOOL]
        name = f"gpu{place // 4:02d}/ethtool_S_ens{place % 4}np0_{_stamp(moment)}.txt"
        return name, "\n".join(("NIC statistics:", *lines, ""))

    _write_snapshots(folder, size, snapshot)


def sysfs(folder: Path, size: int) -> None:
    """Write what `grep -r . /sys/class/infiniband` prints on 64 hosts of eight NICs in turn."""

    def snapshot(number: int) -> tuple[str, str]:
        moment, host = divmod(number, 64)
        lines = [
            f"/sys/class/infiniband/mlx5_{nic}/ports/1/{name}:{number * 7919 + nic}"
            for nic in range(8)
            for name in _SYSFS
        ]
        return f"gpu{host:02d}/sysfs_{_stamp(moment)}.txt", "\n".join((*lines, ""))

    _write_snapshots(folder, size, snapshot)


def _stamp(moment: int) -> str:
    return f"20260302_{moment // 3600 % 24:02d}{moment // 60 % 60:02d}{moment % 60:02d}"


def _write_snapshots(folder: Path, size: int, snapshot: Callable[[int], tuple[str, str]]) -> None:
    """Write files until they have `size` bytes; `snapshot` gives name and text by number."""
    if _is_there(folder):
        return
    number, left = 0, size
    while left > 0:
        name, text = snapshot(number)
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
        number, left = number + 1, left - len(text)
    _mark(folder)


def _interfaces(number: int) -> str:
    head = (
        "      IFACE    STATE           RX_OK        RX_BPS    RX_UTIL    RX_ERR    RX_DRP"
        "    RX_OVR           TX_OK        TX_BPS    TX_UTIL    TX_ERR    TX_DRP    TX_OVR\n"
        "-----------  -------  --------------  ------------  ---------  --------  --------"
        "  --------  --------------  ------------  ---------  --------  --------  --------\n"
    )
    rows = [
        f"{f'Ethernet{port * 8}':>11}        U  {number * 1_000_003 + port:>14,}"
        f"  {'12.50 MB/s':>12}      0.03%         0  {port:>8,}         0"
        f"  {number * 999_983 + port:>14,}  {'13.25 MB/s':>12}      0.03%"
        "         0         0         0\n"
        for port in range(62)
    ]
    return head + "".join(rows)


def _pfc(number: int) -> str:
    text = ""
    for side in ("Rx", "Tx"):
        text += f"  Port {side}" + "".join(f"    PFC{priority}" + " " * 6 for priority in range(8))
        text = text.rstrip() + "\n-----------" + "  -----------" * 8 + "\n"
        for port in range(42):
            cells = (f"  {number * 97 + port * p if p == 3 else 0:>11,}" for p in range(8))
            text += f"{f'Ethernet{port * 8}':>11}" + "".join(cells) + "\n"
        text += "\n"
    return text


def _write(
    folder: Path, size: int, name: Callable[[int], str], lines: Callable[[int], Iterator[str]]
) -> None:
    if _is_there(folder):
        return
    folder.mkdir(parents=True)
    for file in range(_FILES):
        source = lines(file)
        left = size // _FILES
        with (folder / name(file)).open("w") as target:
            while left > 0:
                text = "\n".join(next(source) for _ in range(_CHUNK)) + "\n"
                target.write(text)
                left -= len(text)
    _mark(folder)


def _is_there(folder: Path) -> bool:
    """Say whether the input was written to its end; what was not is removed."""
    if (folder / ".complete").exists():
        return True
    shutil.rmtree(folder, ignore_errors=True)
    return False


def _mark(folder: Path) -> None:
    (folder / ".complete").touch()
