"""Texts and names that are no UTF-8, and nesting without end."""

import os
import pickle
import sqlite3
from pathlib import Path

from hostile.case import hostile

_STEP = '{{"step": {}, "rank": 0, "step_time_ms": 10.5, "host": "{}"}}\n'
_DEEP = 200_000


@hostile("read", rows=3)
def file_name_that_is_not_utf8(folder: Path) -> None:
    name = os.fsencode(folder) + b"/leaf\xff\xfe01.jsonl"
    with open(name, "w", encoding="utf-8") as file:  # noqa: PTH123
        file.writelines(_STEP.format(step, "gpu-a07") for step in range(3))


@hostile("read", rows=2)
def half_of_a_surrogate_pair_in_json_lines(folder: Path) -> None:
    text = _STEP.format(1, "gpu\\ud800") + _STEP.format(2, "gpu-a07")
    (folder / "steps.jsonl").write_text(text)


@hostile("read")
def half_of_a_surrogate_pair_in_a_document(folder: Path) -> None:
    port = '{"interface": "Ethernet1/1\\ud800", "state": "up", "eth_inbytes": "12", "eth_crc": "4"}'
    text = (
        f'leaf12# show interface | json\n{{"TABLE_interface": {{"ROW_interface": [\n{port}]}}}}\n'
    )
    (folder / "leaf12").mkdir()
    (folder / "leaf12" / "1741083302_show_interface.json").write_text(text)


@hostile("read")
def json_nested_without_end(folder: Path) -> None:
    (folder / "deep.json").write_text("[" * _DEEP + "]" * _DEEP)


@hostile("read", rows=2)
def json_line_nested_without_end(folder: Path) -> None:
    deep = '{"a":' * _DEEP + "1" + "}" * _DEEP + "\n"
    text = _STEP.format(1, "gpu-a07") + deep + _STEP.format(2, "gpu-a07")
    (folder / "steps.jsonl").write_text(text)


@hostile("refused", "levels deep")
def pickle_nested_without_end(folder: Path) -> None:
    deep = b"]" * _DEEP + b"a" * (_DEEP - 1)
    entries = b"X\x07\x00\x00\x00entries](" + deep + b"e"
    version = b"X\x07\x00\x00\x00versionX\x03\x00\x00\x002.4"
    status = b"X\x09\x00\x00\x00pg_status}"
    dump = b"\x80\x02}(" + entries + version + status + b"u."
    (folder / "nccl_trace_rank_0").write_bytes(dump)


@hostile("refused", "flight recorder dump")
def pickle_that_runs_a_program(folder: Path) -> None:
    class Program:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.system, ("true",)

    dump = {"entries": [], "version": "2.4", "pg_config": Program(), "pg_status": {}}
    (folder / "nccl_trace_rank_0").write_bytes(pickle.dumps(dump, 2))


@hostile("read")
def mlflow_store_of_odd_values(folder: Path) -> None:
    with sqlite3.connect(folder / "mlflow.db") as database:
        database.executescript(
            "CREATE TABLE runs (run_uuid TEXT, name TEXT);"
            "CREATE TABLE metrics (key TEXT, value, timestamp, run_uuid TEXT, step, is_nan);"
            "INSERT INTO metrics VALUES ('loss', 1.5, 1772442041000, 'a', 1, 0);"
            "INSERT INTO metrics VALUES ('loss', 'text', x'00ff', 'a', 2, 0);"
            "INSERT INTO metrics VALUES (x'00ff', 9e999, 9e999, 'a', 3, 0);"
        )


@hostile("cells", "last_rank 9999", rows=2)
def yaml_of_an_endless_number(folder: Path) -> None:
    text = (
        "links:\n  - {device: leaf07, port: Ethernet256, remote_device: spine2, remote_port: 1/2}\n"
        f"hosts:\n  - host: gpu-a07\n    first_rank: 0\n    last_rank: {'9' * 5000}\n"
    )
    (folder / "site.yaml").write_text(text)
