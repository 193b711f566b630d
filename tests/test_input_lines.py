"""The lines of inputs that hold the values of a counter, as vendors print them."""

import gzip
import json
import random
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest

from fabricobs.report.input_lines import line_at, lines_of_values
from fabricobs.report.lines_to_compare import line_with
from fabricobs.report.rows_of_part import place


def ethtool(draw: random.Random, values: dict[str, int]) -> list[str]:
    return ["NIC statistics:", *(f"     {name}: {value}" for name, value in values.items())]


def table(draw: random.Random, values: dict[str, int]) -> list[str]:
    cells = "  ".join(f"{value:>{draw.randrange(12, 18)},}" for value in values.values())
    rate = f"{draw.uniform(100, 900):.2f} {draw.choice(['B/s', 'MB/s', 'GB/s'])}"
    return ["   IFACE    RX_BPS   " + "  ".join(values), f"Ethernet8    {rate}   {cells}"]


def document(draw: random.Random, values: dict[str, int]) -> list[str]:
    spelled = {name.upper(): str(value) for name, value in values.items()}
    return json.dumps({"COUNTERS:oid:0x1": spelled}, indent=2).splitlines()


def sysfs(draw: random.Random, values: dict[str, int]) -> list[str]:
    return [f"/sys/class/infiniband/mlx5_0/counters/{n}:{value}" for n, value in values.items()]


NAMES = ["rx_packets_phy", "rx_symbol_err_phy", "link_down_events_phy", "tx_prio3_pause"]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("printed", [ethtool, table, document, sysfs])
def test_the_lines_are_those_that_hold_both_values(
    tmp_path: Path, printed: object, seed: int
) -> None:
    """Files of several readings, packed or not, in which other numbers rise as well."""
    draw = random.Random(seed)
    names = draw.sample(NAMES, 4)
    asked = draw.choice(names)
    old = {name: draw.choice([0, draw.randrange(10**6)]) for name in names}
    new = {name: value + draw.randrange(10**6, 10**9) for name, value in old.items()}
    packed = draw.random() < 0.5
    places, texts = [], []
    for number, values in enumerate((old, new)):
        before = [f"{draw.randrange(10**6)} before it" for _ in range(draw.randrange(50))]
        record = printed(draw, values)  # type: ignore[operator]
        path = tmp_path / f"{number}.txt"
        text = "\n".join([*before, *record, "behind it", ""])
        path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
        held = next(
            line
            for line in record
            if str(values[asked]) in line.replace(",", "")
            and (printed is table or asked in line.lower())
        )
        row = len(before) + 1 + (printed is table)
        places.append((str(path), row, values[asked]))
        texts.append((len(before) + 1 + record.index(held), " ".join(held.split())))
    found = lines_of_values(asked, *places)
    assert found is not None
    assert [(line.number, line.text) for line in found] == texts


def test_where_it_is_not_sure_nothing_is_shown(tmp_path: Path) -> None:
    old, new = tmp_path / "old.txt", tmp_path / "new.txt"
    old.write_text("port 1\n errors: 0\nport 2\n errors: 0\n")
    new.write_text("port 1\n errors: 3\nport 2\n errors: 3\n")
    assert lines_of_values("rx_errors", (str(old), 1, 0), (str(new), 1, 3)) is None
    # The file is gone, was written anew or is none.
    for path in (str(tmp_path / "gone"), str(tmp_path), "s3://bucket/a.txt"):
        assert lines_of_values("rx_errors", (path, 1, 0), (str(new), 1, 3)) is None
        assert line_at(path, 1) == ""
    assert lines_of_values("rx_errors", (str(old), 1, 7), (str(new), 1, 9)) is None


def test_a_count_of_words_is_found_by_its_bytes(tmp_path: Path) -> None:
    for name, words in (("old", 1000), ("new", 2500)):
        (tmp_path / name).write_text(f"PortXmitData:...........{words}\n")
    told = [(str(tmp_path / name), 1, 4 * words) for name, words in (("old", 1000), ("new", 2500))]
    found = lines_of_values("tx_bytes", *told)
    assert found is not None
    assert found[1].text == "PortXmitData:...........2500"


def test_of_a_long_line_the_part_around_the_value_is_shown(tmp_path: Path) -> None:
    """A document of one line: a switch may print all its counters so."""
    told = []
    for name, value in (("old", 0), ("new", 41575)):
        counters = {f"COUNTER_{n}": str(10**9 + n) for n in range(300)}
        counters |= {"SYMBOL_ERRORS": str(value)} | {f"LATER_{n}": "1" for n in range(300)}
        (tmp_path / name).write_text(json.dumps({"COUNTERS:oid:0x1": counters}) + "\n")
        told.append((str(tmp_path / name), 1, value))
    found = lines_of_values("symbol_errors", *told)
    assert found is not None
    assert all(
        f'"SYMBOL_ERRORS": "{value}"' in line.text
        for line, value in zip(found, (0, 41575), strict=True)
    )
    assert all(line.number == 1 and len(line.text) < 200 for line in found)


def test_broken_files_and_long_lines_cost_nothing(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gz"
    drawn = random.Random(1)
    text = "".join(f"x: {drawn.random()}\n" for _ in range(5000))
    broken.write_bytes(gzip.compress(text.encode())[:2000])
    assert line_at(str(broken), 4900) == ""
    long = tmp_path / "long.txt"
    long.write_text("a" * 10_000 + "\n")
    assert len(line_at(str(long), 1)) < 200


def test_a_row_of_a_table_is_told_by_its_columns(tmp_path: Path) -> None:
    path = str(tmp_path / "node04.parquet")
    moment = datetime(2026, 3, 2, 9, 6, 9, 415000)
    rows = [
        {
            "step": step,
            "rank": 26,
            "timestamp": moment,
            "compute_ms": 2000.5 + step,
            "data_ms": None,
        }
        for step in range(9)
    ]
    pl.DataFrame(rows, schema_overrides={"data_ms": pl.Float64}).write_parquet(path)
    assert place(path, 7, "step_records") == f"{path} row 7"
    told = line_with(path, 7, "compute_ms", 2006.5, "step_records")
    assert told == "step 6, rank 26, timestamp 2026-03-02 09:06:09.415, compute_ms 2006.5"
    assert line_at(path, 10) == ""
    assert line_at(str(tmp_path / "none.parquet"), 1) == ""
    (tmp_path / "broken.parquet").write_bytes(b"PAR1" + b"x" * 90)
    assert line_at(str(tmp_path / "broken.parquet"), 1) == ""
