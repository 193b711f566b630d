"""Numbers and times that no column holds, in every kind of file."""

import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from hostile.case import hostile

HUGE = "9" * 26
ENDLESS = "9" * 5_000
_BIG = 20_000  # lines: compiled code reads a file of so many


def _write(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _steps_jsonl(lines: int, odd: str) -> str:
    good = '{{"step": {0}, "rank": 0, "step_time_ms": 10.5, "stage": {0}, "ts": 1772442041}}\n'
    head = f'{{"step": 0, "rank": 0, "step_time_ms": 10.5, {odd}}}\n'
    return head + "".join(map(good.format, range(1, lines)))


@hostile("cells", "line 1: stage 99999999999999999999999999 does not fit 64 bits", rows=5)
def json_line_of_a_huge_number(folder: Path) -> None:
    _write(folder, "steps.jsonl", _steps_jsonl(5, f'"stage": {HUGE}'))


@hostile("cells", "stage 9999", rows=5)
def json_line_of_an_endless_number(folder: Path) -> None:
    _write(folder, "steps.jsonl", _steps_jsonl(5, f'"stage": {ENDLESS}'))


@hostile("cells", "line 1: stage 99999999999999999999999999 does not fit 64 bits", rows=_BIG)
def json_line_of_a_huge_number_in_a_big_file(folder: Path) -> None:
    _write(folder, "steps.jsonl", _steps_jsonl(_BIG, f'"stage": {HUGE}'))


@hostile("cells", "line 1: ts 99999999999999999999 is no time", rows=5)
def json_line_of_a_time_in_the_far_future(folder: Path) -> None:
    _write(folder, "steps.jsonl", _steps_jsonl(5, '"ts": 99999999999999999999'))


@hostile("cells", "stage inf is no whole number", rows=5)
def json_line_of_infinity(folder: Path) -> None:
    _write(folder, "steps.jsonl", _steps_jsonl(5, '"stage": Infinity'))


def _steps_csv(lines: int, odd: str) -> str:
    rows = "".join(f"{step},0,10.5,{step}\n" for step in range(1, lines))
    return f"step,rank,step_time_ms,stage\n0,0,10.5,{odd}\n{rows}"


@hostile("cells", "line 2: stage 99999999999999999999999999 does not fit 64 bits", rows=5)
def csv_cell_of_a_huge_number(folder: Path) -> None:
    _write(folder, "steps.csv", _steps_csv(5, HUGE))


@hostile("cells", "line 2: stage 9999", rows=5 * _BIG)
def csv_cell_of_an_endless_number_in_a_big_file(folder: Path) -> None:
    _write(folder, "steps.csv", _steps_csv(5 * _BIG, ENDLESS))


@hostile("cells", "stage inf is no whole number", rows=3)
def parquet_of_infinity_and_times_out_of_the_calendar(folder: Path) -> None:
    far = pa.array([1 << 62, 0, 1_772_442_041_000_000], pa.int64()).cast(pa.timestamp("us"))
    table = {
        "step": [1, 2, 3],
        "rank": [0, 0, 0],
        "step_time_ms": [1.0, 2.0, 3.0],
        "stage": [float("inf"), float("nan"), 7.0],
        "ts": far,
    }
    pq.write_table(pa.table(table), folder / "steps.parquet")


@hostile("cells", "cannot fill this column", rows=2)
def parquet_of_lists_where_numbers_belong(folder: Path) -> None:
    table = {"step": [1, 2], "rank": [0, 0], "step_time_ms": [1.0, 2.0], "stage": [[1], [2]]}
    pq.write_table(pa.table(table), folder / "steps.parquet")


@hostile("cells", "rx_bytes 9999")
def counter_dump_of_an_endless_number(folder: Path) -> None:
    dump = f"# ethtool -S ens3f0np0\nNIC statistics:\n     rx_bytes_phy: {ENDLESS}\n"
    rest = "     rx_prio3_pause: 12\n     rx_discards_phy: 3\n     port.rx_dropped: 9\n"
    _write(folder, "gpu-a07/ethtool_all-1741083302.txt", dump + rest)


@hostile("cells", "rx_bytes 9999", rows=1)
def sysfs_value_of_an_endless_number(folder: Path) -> None:
    _write(folder, "gpu-a07/mlx5_4/ports/1/counters/port_rcv_data", f"{ENDLESS}\n")


@hostile("cells", "does not fit 64 bits", rows=2)
def table_cell_of_an_endless_number(folder: Path) -> None:
    ruler = "---------  -------  --------------------------  --------  ---------  --------\n"
    head = (
        f"{'IFACE':>9}  {'STATE':>7}  {'RX_OK':>26}  {'RX_ERR':>8}  {'TX_OK':>9}  {'TX_ERR':>8}\n"
    )
    rows = [("Ethernet0", HUGE), ("Ethernet4", "1,204,331")]
    lines = [f"{p:>9}  {'U':>7}  {n:>26}  {0:>8}  {7:>9}  {0:>8}\n" for p, n in rows]
    text = head + ruler + "".join(lines)
    _write(folder, "leaf07/20260302_090000_show_interfaces_counters.txt", text)


@hostile("cells", "rx_bytes 9999")
def json_document_of_an_endless_number(folder: Path) -> None:
    port = f'{{"interface": "Ethernet1/1", "state": "up", "eth_inbytes": {ENDLESS}, "eth_crc": 4}}'
    text = f'{{"TABLE_interface": {{"ROW_interface": [\n{port}]}}}}\n'
    _write(
        folder, "leaf12/1741083302_show_interface.json", f"leaf12# show interface | json\n{text}"
    )


@hostile("cells", "step 9999")
def trainer_line_of_an_endless_step(folder: Path) -> None:
    line = (
        " [2026-02-03 04:05:06.789012] iteration       {}/     100 | consumed samples:         3072"
        " | elapsed time per iteration (ms): 1432.7 | throughput per GPU (TFLOP/s/GPU): 401.5 | "
        "learning rate: 1.200000E-05 | global batch size:   256 | lm loss: 9.876543E+00 | loss "
        "scale: 1.0 | grad norm: 1.234 | number of skipped iterations:   0 | number of nan "
        "iterations:   0 |\n"
    )
    _write(folder, "train.log", line.format(ENDLESS) + line.format(13))


def _crc(data: bytes) -> bytes:
    import google_crc32c

    crc = google_crc32c.value(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + _crc(length) + data + _crc(data)


def _event(seconds: float, body: bytes) -> bytes:
    return _record(b"\x09" + struct.pack("<d", seconds) + body)


def _scalar(step: int) -> bytes:
    tag = b"\x0a\x04loss"
    value = tag + b"\x15" + struct.pack("<f", 1.5)
    summary = b"\x0a" + bytes([len(value)]) + value
    return b"\x10" + bytes([step]) + b"\x2a" + bytes([len(summary)]) + summary


def _tensorboard(folder: Path, seconds: float) -> None:
    version = b"\x1a\x0dbrain.Event:2"
    events = _event(1772442041.0, version) + _event(seconds, _scalar(1))
    events += _event(1772442042.0, _scalar(2))
    (folder / "events.out.tfevents.1772442041.gpu-a07").write_bytes(events)


@hostile("cells", "is no time between 1990 and 2100", rows=2)
def tensorboard_time_that_is_too_large(folder: Path) -> None:
    _tensorboard(folder, 1e308)


@hostile("cells", "ts nan", rows=2)
def tensorboard_time_that_is_not_a_number(folder: Path) -> None:
    _tensorboard(folder, float("nan"))


@hostile("read")
def metrics_that_are_not_numbers(folder: Path) -> None:
    name = "node_infiniband_port_data_received_bytes_total"
    values = ["NaN", "+Inf", "1e400", "12"]
    lines = [f'{name}{{device="mlx5_{i}",port="1"}} {v}\n' for i, v in enumerate(values)]
    _write(folder, "prom/gpu-a07/node-1741083302.prom", f"# TYPE {name} counter\n{''.join(lines)}")
