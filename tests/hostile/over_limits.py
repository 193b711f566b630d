"""Inputs of a few bytes or of no end, which would take minutes or gigabytes without limits."""

import gzip
import json
import sqlite3
import struct
import tarfile
from io import BytesIO
from lzma import FILTER_LZMA2, FORMAT_XZ
from lzma import compress as xz_compress
from pathlib import Path

import google_crc32c
import pyarrow as pa
import pyarrow.parquet as pq

from hostile.case import hostile

_STEP = '{{"step": {}, "rank": 0, "step_time_ms": 10.5}}\n'
_INFO = "gpu1:17:17 [2] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>\n"
_METRICS = """
CREATE TABLE runs (run_uuid TEXT, name TEXT);
CREATE TABLE metrics (key TEXT, value REAL, timestamp INT, run_uuid TEXT, step INT, is_nan INT);
INSERT INTO runs VALUES ('a', 'b');
INSERT INTO metrics VALUES ('loss', 1.5, 1767225600000, 'a', 1, 0);
"""


def _database(folder: Path, script: str) -> None:
    database = sqlite3.connect(folder / "mlflow.db")
    database.executescript(_METRICS + script)
    database.commit()
    database.close()


def _dump(folder: Path, entries: bytes) -> None:
    """Write a flight recorder dump whose entries are some opcodes of pickle."""
    keys = [b"X" + struct.pack("<I", len(key)) + key for key in (b"pg_status", b"entries")]
    data = b"\x80\x02}(" + keys[0] + b"}" + keys[1] + entries + b"u."
    (folder / "nccl_trace_rank_0").write_bytes(data)


@hostile("refused", "values")
def pickle_of_shared_lists(folder: Path) -> None:
    """A list of two of a list of two of ...: 8 bytes a level, twice the values."""
    levels = (b"]q" + bytes([n + 1]) + (b"h" + bytes([n]) + b"a") * 2 for n in range(60))
    _dump(folder, b"(]q\x00" + b"".join(levels) + b"l")


@hostile("refused", "levels deep")
def pickle_nested_deeply(folder: Path) -> None:
    _dump(folder, b"]" * 100_000 + b"a" * 99_999)


@hostile("refused", "values")
def pickle_of_empty_lists(folder: Path) -> None:
    _dump(folder, b"(" + b"]" * 20_000_000 + b"l")


@hostile("refused", "text or number")
def pickle_with_a_key_of_tuples(folder: Path) -> None:
    """To look up a tuple of two of a tuple of two of ... means to hash all of them."""
    shared = b"".join(b"q" + bytes([n]) + b"h" + bytes([n]) + b"\x86" for n in range(60))
    _dump(folder, b"}" + b")" + shared + b"K\x01s")


@hostile("refused", "no plain table")
def database_of_a_view(folder: Path) -> None:
    _database(
        folder,
        """
        ALTER TABLE metrics RENAME TO given;
        CREATE VIEW metrics AS
        /* CREATE TABLE metrics ( */
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
        SELECT printf('%.400000c', 'x') AS key, 1.0 AS value, i AS timestamp, 'a' AS run_uuid,
               i AS step, 0 AS is_nan FROM n;
        """,
    )


@hostile("read")
def database_of_generated_texts(folder: Path) -> None:
    _database(
        folder,
        """
        DROP TABLE metrics;
        CREATE TABLE metrics (value REAL, timestamp INT, run_uuid TEXT, step INT, is_nan INT,
                              key TEXT AS (printf('%.40000000c', 'x')));
        INSERT INTO metrics VALUES (1.5, 1767225600000, 'a', 1, 0);
        """,
    )


@hostile("read")
def line_of_digits_before_an_anchor(folder: Path) -> None:
    lines = "1" * 120_000 + " NCCL INFO x\n" + ":1:1 " * 20_000 + "NCCL INFO\n"
    (folder / "nccl.log").write_text(_INFO + lines)


@hostile("refused", "longer than")
def json_of_sixty_megabytes(folder: Path) -> None:
    port = '"Ethernet{}": {{"RX_OK": "1", "TX_OK": "2", "RX_ERR": "0", "RX_DRP": "0"}}'
    ports = ",".join(port.format(number) for number in range(900_000))
    (folder / "portstat.json").write_text("{" + ports + "}")


@hostile("read")
def json_of_many_ports(folder: Path) -> None:
    port = '"Ethernet{}": {{"RX_OK": "1", "TX_OK": "2", "RX_ERR": "0", "RX_DRP": "0"}}'
    ports = ",".join(port.format(number) for number in range(100_000))
    (folder / "portstat.json").write_text("{" + ports + "}")


@hostile("refused", "values")
def json_of_empty_lists(folder: Path) -> None:
    (folder / "portstat.json").write_text(
        '{"Ethernet0": {"RX_OK": "1"}, "x": [' + "[]," * 9_000_000
    )


@hostile("refused", "nested too deeply")
def json_nested_deeply(folder: Path) -> None:
    port = '"Ethernet0": {"RX_OK": "1", "TX_OK": "2", "RX_ERR": "0"}, "x": '
    (folder / "portstat.json").write_text("{" + port + "[" * 200_000 + "]" * 200_000 + "}")


@hostile("refused", "sparse")
def sparse_file_of_fifty_gigabytes(folder: Path) -> None:
    with (folder / "core").open("wb") as file:
        file.write(b"no format knows this\n")
        file.truncate(50 << 30)


@hostile("read")
def newlines_packed(folder: Path) -> None:
    (folder / "blank.log.gz").write_bytes(gzip.compress(_INFO.encode() + b"\n" * (70 << 20)))


@hostile("refused", "bomb")
def gzip_of_zeros(folder: Path) -> None:
    packed = gzip.compress(b"\0" * (1 << 20)) * 600
    (folder / "zeros.log.gz").write_bytes(packed)


@hostile("cut", "bomb")
def xz_of_newlines(folder: Path) -> None:
    packed = xz_compress(_INFO.encode() * 10) + xz_compress(b"\n" * (16 << 20)) * 400
    (folder / "nccl.log.xz").write_bytes(packed)


@hostile("refused", "columns")
def csv_of_many_columns(folder: Path) -> None:
    names = ["step", "rank", "step_time_ms", *(f"c{number}" for number in range(100_000))]
    row = ",".join("1" for _ in names)
    (folder / "steps.csv").write_text(",".join(names) + f"\n{row}\n")


@hostile("refused", "columns")
def parquet_of_many_columns(folder: Path) -> None:
    names = ["step", "rank", "step_time_ms", *(f"c{number}" for number in range(10_001))]
    schema = pa.schema([(name, pa.int64()) for name in names])
    pq.write_table(schema.empty_table(), folder / "steps.parquet")


@hostile("refused", "row group")
def parquet_of_one_huge_text(folder: Path) -> None:
    table = pa.table({"step": [1], "rank": [0], "step_time_ms": [1.0], "host": ["x" * (140 << 20)]})
    pq.write_table(table, folder / "steps.parquet", use_dictionary=False, write_statistics=False)


@hostile("refused", "Parquet")
def parquet_with_a_lie_about_its_footer(folder: Path) -> None:
    (folder / "steps.parquet").write_bytes(
        b"PAR1" + b"\0" * 100 + struct.pack("<I", 2**31) + b"PAR1"
    )


@hostile("read")
def yaml_of_brackets(folder: Path) -> None:
    (folder / "fabricobs-map.yaml").write_text("hosts:\n  - host: a\nlinks: " + "[" * 100_000)


@hostile("read")
def yaml_of_aliases(folder: Path) -> None:
    doubled = "\n".join(f"  - &a{level + 1} [*a{level}, *a{level}]" for level in range(30))
    (folder / "fabricobs-map.yaml").write_text(f"hosts:\n  - &a0 {{host: a}}\n{doubled}\n")


@hostile("refused", "Memory")
def xz_with_a_huge_dictionary(folder: Path) -> None:
    filters = [{"id": FILTER_LZMA2, "dict_size": 1 << 30, "preset": 0}]
    packed = xz_compress(_INFO.encode(), FORMAT_XZ, filters=filters)
    (folder / "nccl.log.xz").write_bytes(packed)


@hostile("refused", "names longer")
def tar_with_a_long_attribute(folder: Path) -> None:
    with tarfile.open(folder / "logs.tar", "w", format=tarfile.PAX_FORMAT) as tar:
        _add(tar, "b.log", b"", {"comment": "x" * (8 << 20)})


@hostile("read")
def tar_of_many_small_files(folder: Path) -> None:
    with tarfile.open(folder / "logs.tar", "w") as tar:
        for number in range(2_000):
            _add(tar, f"{number}.log", b"", {})
        _add(tar, "steps.jsonl", _STEP.format(1).encode(), {})


@hostile("read", rows=1_000)
def tar_of_records_of_one_line(folder: Path) -> None:
    with tarfile.open(folder / "logs.tar", "w") as tar:
        for number in range(1_000):
            _add(tar, f"{number}.jsonl", _STEP.format(number).encode(), {})


def _add(tar: tarfile.TarFile, name: str, data: bytes, attributes: dict[str, str]) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.pax_headers = len(data), attributes
    tar.addfile(entry, BytesIO(data))


@hostile("refused", "record longer")
def tensorboard_record_of_a_terabyte(folder: Path) -> None:
    def masked(data: bytes) -> bytes:
        crc = google_crc32c.value(data)
        return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)

    version = b"\x09" + struct.pack("<d", 1767225600.0) + b"\x1a\x0dbrain.Event:2"
    header = struct.pack("<Q", len(version))
    sound = header + masked(header) + version + masked(version)
    lie = struct.pack("<Q", 1 << 40)
    (folder / "events.out.tfevents.1767225600.host").write_bytes(sound + lie + masked(lie) + b"x")


@hostile("read")
def metrics_of_many_labels(folder: Path) -> None:
    labels = ",".join(f'l{number}="x"' for number in range(5_000))
    line = (
        f'node_infiniband_port_data_received_bytes_total{{device="mlx5_0",port="1",{labels}}} 1\n'
    )
    (folder / "node.prom").write_text(line * 3)


@hostile("read")
def kineto_event_without_end(folder: Path) -> None:
    event = {
        "ph": "X",
        "cat": "kernel",
        "name": "ncclKernel",
        "pid": 0,
        "tid": 7,
        "ts": 1,
        "dur": 2,
    }
    head = '{"schemaVersion": 1, "distributedInfo": {"rank": 0}, "traceEvents": ['
    text = head + json.dumps(event) + ',{"ph": "X", "name": "' + "x" * (30 << 20)
    (folder / "trace.json").write_text(text)
