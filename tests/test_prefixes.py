"""What launchers and log services put around a line is taken off, and what it tells is kept."""

import json
from pathlib import Path
from typing import Any

import pytest

from fabricobs.formats.context import Context
from fabricobs.formats.logs.prefixes import HostNames, before_message, strip_prefix
from fabricobs.formats.reading import FileResult, read_file
from fabricobs.formats.recognition.catalogue import load_catalogue
from fabricobs.formats.rows import Rows

CATALOGUE = load_catalogue()
INFO = "gn4:91:97 [2] NCCL INFO "
HEADER = "#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong"
ROW = "64 16 float sum -1 11.5 0.01 0.02 0 11.7 0.01 0.02 0"


def read(path: Path, text: str) -> tuple[dict[str, list[dict[str, Any]]], FileResult]:
    path.write_text(text)
    recognised = CATALOGUE.recognise(path.read_bytes(), str(path))
    rows = Rows()
    result = read_file(path, recognised, Context("f"), rows, lambda: None)
    tables: dict[str, list[dict[str, Any]]] = {}
    for table, part in rows.drain():
        tables.setdefault(table, []).extend(part.to_pylist())
    for found in tables.values():
        found.sort(key=lambda row: row["line"])
    return tables, result


@pytest.mark.parametrize(
    ("prefix", "rank"),
    [
        ("", None),
        ("[1,12]<stdout>:", 12),
        ("[12] ", 12),
        (" 7: ", 7),
        ("12: ", 12),
        ("[rank3]:", 3),
        ("[default3]:", None),
        ("(Worker pid=61, ip=10.0.3.6) ", None),
        ("10.3.5.8: ", None),
        ("worker-1: ", None),
        ("2026-01-02T16:13:44.884Z: ", None),
        ("  | 2026-01-02T16:39:55.215-07:00 | ", None),
        ("Fri Jan  2 15:41:05 2026<stdout>:", None),
        ("> ", None),
        ("4: [2026-01-02 06:16:47] ", 4),
        ("4: [1,5]<stderr>:2026-01-02T00:00:00Z ", 5),
    ],
)
def test_every_prefix_is_taken_off(tmp_path: Path, prefix: str, rank: int | None) -> None:
    text = f"{prefix}{INFO}Using network IB\n{prefix}{HEADER}\n{prefix}{ROW}\n"
    tables, result = read(tmp_path / "log", text)
    assert result.tally.unparsed == 0
    (network,) = tables["nccl_ranks"]
    assert (network["host"], network["network"], network["launch_rank"]) == ("gn4", "IB", rank)
    (row,) = tables["benchmarks"]
    assert (row["bytes"], row["time_us"], row["in_place_time_us"]) == (64, 11.5, 11.7)
    if "2026" in prefix:
        assert network["ts"].year == 2026
        assert row["ts_source"] == "inline"


def test_a_format_whose_lines_begin_with_a_time_keeps_it() -> None:
    lines = [rest for rest, _ in strip_prefix("3: [2026-01-02 10:00:00] iteration 5")]
    assert lines == ["[2026-01-02 10:00:00] iteration 5", "iteration 5"]


def test_a_bare_prefix_is_no_unread_line(tmp_path: Path) -> None:
    _, result = read(
        tmp_path / "log", f"[1,2]<stdout>:\n[1,2]<stdout>:{INFO}Using network IB\n> \n"
    )
    assert (result.tally.parsed, result.tally.ignored) == (1, 2)


def test_a_torn_line_lends_its_rank_to_nobody() -> None:
    assert before_message("3: gn1:4:4 [0] NCCL INFO Conn") == ({}, False)
    assert before_message(" 3: ", ("task",)) == ({"rank": "3"}, True)


def test_a_host_with_a_torn_off_piece_is_known_again(tmp_path: Path) -> None:
    text = f"{INFO}Connected all trees\n{INFO}comm 0x5 rank 1 busId 97{INFO}Using network IB\n"
    tables, _ = read(tmp_path / "log", text)
    assert [row["host"] for row in tables["nccl_ranks"]] == ["gn4"]
    hosts = HostNames()
    assert hosts.clean("97gn4", "gn9:1:1 [0] NCCL INFO busId ") == "97gn4"


@pytest.mark.parametrize("key", ["log", "message", "msg", "textPayload"])
def test_json_lines_of_a_log_service(tmp_path: Path, key: str) -> None:
    lines = [f"{INFO}Using network IB\n", HEADER, ROW, "another line\n", "two\nin one"]
    wrapped = [json.dumps({key: line, "time": "2026-03-04T05:06:07.891234567Z"}) for line in lines]
    tables, result = read(tmp_path / "log", "\n".join([*wrapped, '{"log": "cut of']))
    # The last message is of two lines.
    assert result.tally.lines == 7
    assert (result.tally.parsed, result.tally.unparsed) == (3, 4)
    (network,) = tables["nccl_ranks"]
    assert (network["host"], network["network"]) == ("gn4", "IB")
    assert network["ts"].isoformat() == "2026-03-04T05:06:07.891234"
    assert tables["benchmarks"][0]["ts"] == network["ts"]


def test_container_lines_cut_in_pieces(tmp_path: Path) -> None:
    text = (
        f"2026-03-04T05:06:07.1Z stdout P {INFO}Using net\n"
        f"2026-03-04T05:06:07.2Z stderr F {INFO}Connected all rings\n"
        "2026-03-04T05:06:07.3Z stdout F work IBext_v8\n"
    )
    tables, result = read(tmp_path / "log", text)
    assert (result.tally.lines, result.tally.parsed, result.tally.ignored) == (3, 1, 2)
    (row,) = tables["nccl_ranks"]
    assert (row["network"], row["line"]) == ("IBext_v8", 3)


def test_a_line_ray_repeats(tmp_path: Path) -> None:
    line = (
        f"\x1b[36m(Worker pid=7, ip=10.0.0.9)\x1b[0m {INFO}Channel 00/0 : 0[0] -> 1[1] via P2P/IPC"
    )
    tables, _ = read(tmp_path / "log", f"{line} [repeated 15x across cluster] (Ray deduplicates)\n")
    assert tables["nccl_channels"][0]["via"] == "IPC"
