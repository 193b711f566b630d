"""Whole-file readers: refused pickles, damaged files, and the bytes the binary samples hold."""

import gzip
import os
import pickle
import random
import sqlite3
import struct
from base64 import b64decode
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fabricobs.formats.context import Context
from fabricobs.formats.readers.plain_pickle import PickleError, read_pickle
from fabricobs.formats.reading import FileResult, read_file
from fabricobs.formats.recognition.catalogue import Catalogue, load_catalogue
from fabricobs.formats.rows import Rows
from fabricobs.formats.source import read_ends


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue()


def read(catalogue: Catalogue, path: Path) -> tuple[FileResult, dict[str, list[dict[str, Any]]]]:
    recognised = catalogue.recognise(read_ends(path), str(path))
    assert recognised.syntax == "whole", recognised.reason
    rows = Rows()
    context = Context("f")
    context.from_path.update(recognised.formats[0].fields_of_path(str(path)) or {})
    result = read_file(path, recognised, context, rows, lambda: None)
    tally = result.tally
    assert tally.lines == tally.parsed + tally.ignored + tally.unparsed
    found: dict[str, list[dict[str, Any]]] = {}
    for table, part in rows.drain():
        found.setdefault(table, []).extend(part.to_pylist())
    for table_rows in found.values():
        table_rows.sort(key=lambda row: row["line"] or 0)
    return result, found


class Attack:
    """Runs a command when a trusting loader reads it."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.target}",)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_attack_pickle_is_refused(catalogue: Catalogue, tmp_path: Path, protocol: int) -> None:
    touched = tmp_path / "touched"
    dump = {"version": "2.9", "pg_status": {}, "entries": [Attack(touched)]}
    path = tmp_path / "nccl_trace_rank_0"
    path.write_bytes(pickle.dumps(dump, protocol))
    result, found = read(catalogue, path)
    assert not touched.exists()
    assert not found
    assert result.problem is not None and "refused" in result.problem
    assert result.tally.unparsed == 1


PLAIN: list[Any] = [
    None, True, False, 0, 255, 70_000, -5, 2**40, -(2**70), 1.5, "text", b"bytes", "x" * 300,
    b"y" * 300, [], [1], [1, 2, [3]], (), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), {}, {"a": 1},
    {"a": 1, "b": {"c": [None]}},
]  # fmt: skip


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("value", PLAIN, ids=lambda value: repr(value)[:12])
def test_plain_values_come_back(value: Any, protocol: int) -> None:
    data = pickle.dumps(value, protocol)
    if isinstance(value, bytes) and protocol == 2:
        pytest.skip("protocol 2 writes bytes as a call")
    shared = [value, value]
    assert read_pickle(data) == value
    assert read_pickle(pickle.dumps(shared, protocol)) == shared


def test_a_damaged_pickle_is_an_error() -> None:
    data = pickle.dumps({"entries": [{"a": (1, 2.0, "three")}] * 3, "b": "c"}, 2)
    for end in range(len(data)):
        with pytest.raises(PickleError):
            read_pickle(data[:end])
    for position in range(len(data)):
        for value in (0x28, 0x2E, 0x65, 0x71, 0x75, 0xFF):
            damaged = bytearray(data)
            damaged[position] = value
            try:
                read_pickle(bytes(damaged))
            except PickleError:
                continue


def status(enqueued: int, started: int, completed: int) -> dict[str, int]:
    return {
        "last_enqueued_collective": enqueued,
        "last_started_collective": started,
        "last_completed_collective": completed,
    }


DUMP = {
    "version": "2.9",
    "pg_config": {
        "0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"},
        "6": {"name": "6", "desc": "TENSOR_GROUP", "ranks": "[2, 3]"},
    },
    "pg_status": {
        "0": status(12, -1, 12),
        "2": status(77, 76, 75),
    },
    "entries": [
        {
            "record_id": 5, "pg_id": 0, "process_group": ("0", "default_pg"),
            "collective_seq_id": 12, "p2p_seq_id": 0, "op_id": 12,
            "profiling_name": "nccl:all_reduce",
            "time_created_ns": 1772442041500000000, "input_sizes": [[1024, 4]],
            "input_dtypes": ["BFloat16"], "output_sizes": [[1024, 4]],
            "output_dtypes": ["BFloat16"],
            "state": "completed", "retired": True, "is_p2p": False, "duration_ms": 0.619,
        },
        {
            "record_id": 6, "pg_id": 2, "process_group": ("6", "TENSOR_GROUP"),
            "collective_seq_id": 77, "p2p_seq_id": 0, "op_id": 77,
            "profiling_name": "nccl:_reduce_scatter_base", "time_created_ns": 1772442042000000000,
            "input_sizes": [[200]], "input_dtypes": ["Float"], "output_sizes": [[100]],
            "output_dtypes": ["Float"], "state": "scheduled", "retired": False, "is_p2p": False,
        },
    ],
}  # fmt: skip


def test_flight_recorder_sample_is_this_dump(catalogue: Catalogue) -> None:
    sample = catalogue.formats["flight_recorder"].definition.sample[0]
    assert b64decode(sample.base64) == pickle.dumps(DUMP, 2)


def kernel(number: int, more: str = "") -> str:
    return (
        '{\n    "ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_TREE_LL128('
        f'x)", "pid": 0, "tid": 7,\n    "ts": {1772442000000000 + number}, "dur": {number}.5,\n'
        f'    "args": {{"correlation": {number}{more}}}\n  }}'
    )


def trace(*events: str) -> str:
    return (
        '{\n  "schemaVersion": 1,\n  "deviceProperties": [],\n  "distributedInfo": {"rank": 3},\n'
        '  "traceEvents": [\n  ' + ",\n  ".join(events) + '\n  ],\n  "traceName": "a"\n}'
    )


def durations(found: dict[str, list[dict[str, Any]]]) -> list[float]:
    return [row["duration_us"] for row in found.get("collectives", [])]


WHOLE = trace(kernel(1), kernel(2), kernel(3))


def test_a_cut_trace_keeps_its_whole_events(catalogue: Catalogue, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    for end in range(WHOLE.index("traceEvents") + 20, len(WHOLE)):
        path.write_text(WHOLE[:end])
        result, found = read(catalogue, path)
        complete = WHOLE[:end].count("\n  }")
        assert durations(found) == [1.5, 2.5, 3.5][:complete]
        assert result.tally.parsed == complete
        assert result.tally.unparsed <= 1
        assert all(row["global_rank"] == 3 for row in found.get("collectives", []))


@pytest.mark.parametrize(
    ("broken", "unread"),
    [
        (kernel(9, ', "path": "C:\\temp\\x"'), 0),  # an escape JSON does not know
        (kernel(9, ', "ratio": NaN'), 0),
        (kernel(9, ', "open": "no end'), 1),  # a quote that is not closed
        (kernel(9).replace('"pid": 0', '"pid" 0'), 1),
        (kernel(9) + "}", 0),  # a bracket too many
        ("7", 0),
    ],
)
def test_a_broken_event_costs_itself_alone(
    catalogue: Catalogue, tmp_path: Path, broken: str, unread: int
) -> None:
    path = tmp_path / "trace.json"
    path.write_text(trace(kernel(1), broken, kernel(3)))
    result, found = read(catalogue, path)
    assert {1.5, 3.5} <= set(durations(found))
    assert result.tally.unparsed == unread


def test_an_event_without_end_does_not_swallow_the_rest(
    catalogue: Catalogue, tmp_path: Path
) -> None:
    path = tmp_path / "trace.json"
    filler = ",\n".join(kernel(i) for i in range(10, 8000))
    path.write_text(trace(kernel(1), kernel(9)[:-3], filler, kernel(3)))
    result, found = read(catalogue, path)
    assert len(durations(found)) == 2 + 7990
    assert result.tally.unparsed == 1


def test_pieces_of_any_size_give_the_same_events(
    catalogue: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "trace.json"
    path.write_text(WHOLE)
    for size in (1, 7, 64, 1000):
        monkeypatch.setattr("fabricobs.formats.readers.chrome._PIECE", size)
        assert durations(read(catalogue, path)[1]) == [1.5, 2.5, 3.5]


def test_a_truncated_gzip_gives_what_it_holds(catalogue: Catalogue, tmp_path: Path) -> None:
    path = tmp_path / "trace.json.gz"
    packed = gzip.compress(trace(*(kernel(i) for i in range(1, 2000))).encode())
    path.write_bytes(packed[: len(packed) // 2])
    result, found = read(catalogue, path)
    assert result.problem is not None
    assert len(durations(found)) > 500


def varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def message(number: int, body: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(body)) + body


def scalar(tag: str, value: float) -> bytes:
    return message(1, tag.encode()) + varint(2 << 3 | 5) + struct.pack("<f", value)


def tensor(tag: str, value: float) -> bytes:
    content = message(4, struct.pack("<d", value))
    return message(1, tag.encode()) + message(8, b"\x08\x02" + message(2, b"") + content)


def event(seconds: float, step: int, *values: bytes, version: str = "") -> bytes:
    body = varint(1 << 3 | 1) + struct.pack("<d", seconds)
    body += b"\x10" + varint(step) if step else b""
    body += message(3, version.encode()) if version else b""
    body += message(5, b"".join(message(1, value) for value in values)) if values else b""
    length = struct.pack("<Q", len(body))
    return length + checksum(length) + body + checksum(body)


def checksum(data: bytes) -> bytes:
    """Checksum as TFRecord stores it, bit by bit from the polynomial."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


EVENTS = [
    event(1772442040.0, 0, version="brain.Event:2"),
    event(1772442041.5, 40, scalar("iteration-time", 3.5)),
    event(1772442041.5, 40, scalar("lm loss", 2.25)),
    event(1772442041.5, 40, scalar("forward-backward-time", 1.25)),
    event(1772442041.5, 40, scalar("batch-size", 64.0)),
    event(1772442045.0, 41, tensor("iteration-time", 3.25), scalar("grad-norm", 0.5)),
]


def test_tensorboard_sample_is_these_events(catalogue: Catalogue) -> None:
    sample = catalogue.formats["tensorboard"].definition.sample[0]
    assert b64decode(sample.base64) == b"".join(EVENTS)


def test_tensorboard_record_with_a_wrong_checksum_is_unread(
    catalogue: Catalogue, tmp_path: Path
) -> None:
    path = tmp_path / "events.out.tfevents.1772442040.gpu-a07.812.0"
    broken = bytearray(EVENTS[1])
    broken[-6] ^= 1
    path.write_bytes(EVENTS[0] + bytes(broken) + b"".join(EVENTS[2:]))
    result, found = read(catalogue, path)
    assert result.tally.unparsed == 1
    assert [(row["loss"], row["step_time_ms"]) for row in found["steps"]] == [
        (2.25, None),
        (None, 3250.0),
    ]


def test_a_growing_tensorboard_file_is_read_up_to_its_last_whole_record(
    catalogue: Catalogue, tmp_path: Path
) -> None:
    path = tmp_path / "events.out.tfevents.1772442040.gpu-a07.812.0"
    data = b"".join(EVENTS)
    ends = [sum(map(len, EVENTS[: i + 1])) for i in range(len(EVENTS))]
    for end in range(len(EVENTS[0]), len(data)):
        path.write_bytes(data[:end])
        result, _ = read(catalogue, path)
        whole = sum(1 for e in ends if e <= end)
        assert result.tally.parsed + result.tally.ignored == whole
        assert result.tally.unparsed == (0 if end in ends else 1)
        assert result.problem is None


def test_random_damage_never_raises(catalogue: Catalogue, tmp_path: Path) -> None:
    generator = random.Random(7)
    inputs = {
        "nccl_trace_rank_0": pickle.dumps(DUMP, 2),
        "trace.json": WHOLE.encode(),
        "events.out.tfevents.1.a.2.3": b"".join(EVENTS),
    }
    for name, data in inputs.items():
        path = tmp_path / name
        for _ in range(300):
            damaged = bytearray(data)
            for _ in range(generator.randint(1, 6)):
                damaged[generator.randrange(len(damaged))] = generator.randrange(256)
            path.write_bytes(bytes(damaged))
            recognised = catalogue.recognise(bytes(damaged), str(path))
            if recognised.syntax == "whole":
                read(catalogue, path)


def test_mlflow_store_is_read_whatever_its_journal(catalogue: Catalogue, tmp_path: Path) -> None:
    for mode in ("delete", "wal"):
        path = tmp_path / f"{mode}.db"
        with closing(sqlite3.connect(path)) as store:
            store.execute(f"PRAGMA journal_mode = {mode}")
            store.executescript(
                """CREATE TABLE runs (run_uuid TEXT, name TEXT);
                CREATE TABLE metrics (key TEXT, value REAL, timestamp INTEGER, run_uuid TEXT,
                  step INTEGER, is_nan INTEGER);
                INSERT INTO runs VALUES ('9f2c', 'run-a'), ('77aa', NULL);
                INSERT INTO metrics VALUES ('loss', 2.25, 1772442041500, '9f2c', 40, 0),
                  ('lr', 0.5, 1772442041500, '9f2c', 40, 0),
                  ('loss', 0, 1772442045000, '9f2c', 41, 1),
                  ('loss', 3.5, 1772442041500, '77aa', 40, 0);"""
            )
            before = path.read_bytes()
        _, found = read(catalogue, path)
        rows = [(row["job"], row["step"], row["loss"]) for row in found["steps"]]
        assert rows == [("77aa", 40, 3.5), ("run-a", 40, 2.25), ("run-a", 41, None)]
        assert before[:16] == path.read_bytes()[:16]


def test_a_git_lfs_pointer_is_named(catalogue: Catalogue) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n"
    recognised = catalogue.recognise(pointer, "/logs/events.out.tfevents.1.a.2.3")
    assert not recognised.formats
    assert "Git LFS" in recognised.reason


def test_a_bare_list_of_events_is_a_trace(catalogue: Catalogue, tmp_path: Path) -> None:
    path = tmp_path / "rank-2-trace.json"
    path.write_text(f"[{kernel(1)},\n{kernel(2)}]")
    _, found = read(catalogue, path)
    assert durations(found) == [1.5, 2.5]
    assert {row["global_rank"] for row in found["collectives"]} == {2}


def test_a_step_gets_the_kernels_it_launched(catalogue: Catalogue, tmp_path: Path) -> None:
    """A kernel that runs in the next step counts for the one whose host code launched it."""
    begin = 1772442000000000
    step = '{{"ph":"X","cat":"user_annotation","name":"ProfilerStep#{}","ts":{},"dur":1000}}'
    launch = (
        '{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","ts":{},"dur":1,'
        '"args":{{"correlation":{}}}}}'
    )
    gpu = '{{"ph":"X","cat":"kernel","name":"{}","ts":{},"dur":{},"args":{{"correlation":{}}}}}'
    path = tmp_path / "trace.json"
    path.write_text(
        trace(
            step.format(4, begin),
            step.format(5, begin + 1000),
            launch.format(begin + 900, 1),
            launch.format(begin + 950, 2),
            gpu.format("gemm", begin + 1100, 300, 1),
            gpu.format("ncclDevKernel_AllReduce_Sum_f32_RING_LL()", begin + 1200, 500, 2),
        )
    )
    _, found = read(catalogue, path)
    four, five = found["steps"]
    assert (four["compute_ms"], four["comm_ms"]) == (0.3, 0.3)
    assert (five["compute_ms"], five["comm_ms"]) == (None, None)
    assert found["phases"][0]["duration_ms"] == 0.5
    assert found["collectives"][0]["step"] == 4
