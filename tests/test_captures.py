"""Several commands in one capture file: each output is read as what it is."""

from collections import Counter
from datetime import datetime
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricobs.formats.context import Context
from fabricobs.formats.reading import read_file
from fabricobs.formats.recognition.catalogue import load_catalogue
from fabricobs.formats.rows import Rows, Tally

CATALOGUE = load_catalogue()
OUTPUTS = [
    name
    for name, format_ in CATALOGUE.formats.items()
    if format_.definition.reader[0] in {"table", "paragraphs", "walk"}
]


def read(text: str, folder: Path) -> tuple[Counter[tuple[str, str]], Tally]:
    """Return how many rows of each table and format a text gives, and its account."""
    path = folder / "capture.log"
    path.write_text(text)
    rows = Rows()
    recognised = CATALOGUE.recognise(text.encode(), "/logs/capture.log")
    result = read_file(path, recognised, Context("f"), rows, lambda: None)
    counted: Counter[tuple[str, str]] = Counter()
    for table, part in rows.drain():
        formats = (
            part.column("format").to_pylist()
            if "format" in part.column_names
            else [""] * part.num_rows
        )
        counted.update((table, format_) for format_ in formats)
    return counted, result.tally


@pytest.mark.parametrize("first", OUTPUTS)
def test_one_output_right_under_another(first: str, tmp_path: Path) -> None:
    """Without prompt, date or blank line between them neither steals from the other."""
    above = CATALOGUE.formats[first].definition.sample[0].text.strip("\n") + "\n"
    alone, _ = read(above, tmp_path)
    for second in OUTPUTS:
        if second == first:
            continue
        below = CATALOGUE.formats[second].definition.sample[0].text.strip("\n") + "\n"
        other, _ = read(below, tmp_path)
        both, tally = read(above + below, tmp_path)
        assert tally.samples + tally.unclaimed_samples == [], second
        assert both == alone + other, second


def test_a_prompt_names_the_device_of_what_follows(tmp_path: Path) -> None:
    texts = [
        "admin@leaf01:~$ show pfcwd stats\n"
        "      QUEUE       STATUS    STORM DETECTED/RESTORED    TX OK/DROP\n"
        "-----------  -----------  -------------------------  ------------\n"
        "Ethernet0:3  operational                        2/2           0/0\n",
        "leaf02#show priority-flow-control counters\n"
        "Port                RxPfc         TxPfc\n"
        "Et7/1                  12             8\n",
    ]
    for order in permutations(texts):
        path = tmp_path / "capture.log"
        path.write_text("".join(order))
        rows = Rows()
        recognised = CATALOGUE.recognise("".join(order).encode(), "/logs/capture.log")
        read_file(path, recognised, Context("f"), rows, lambda: None)
        got = {
            (row["device"], row["port"])
            for table, part in rows.drain()
            if table == "priority_samples"
            for row in part.to_pylist()
        }
        assert got == {("leaf01", "Ethernet0"), ("leaf02", "Ethernet7/1")}


# Headings that a loop over NICs prints above outputs that name none.
HEADINGS = [
    "== {nic} ==",
    "=== {nic} ({rdma}) ===",
    "--- {nic}",
    "### {rdma} / {nic}",
    "[{nic}]",
    ">>> {nic} <<<",
    "{nic}:",
    "{nic}",
    "{nic} ({rdma})",
    "Interface: {nic}",
    "# interface {nic}",
    "NIC={nic}",
    "=== gpu-a07 {nic} ===",
    "--- gpu-a07: {nic}",
    "# ethtool -S {nic}",
    "# ethtool -S {nic}   # {rdma}",
    "ethtool -S {nic} ({rdma})",
    "$ sudo ethtool -S {nic} 2>/dev/null",
    "+ ethtool --statistics {nic}",
    "root@gpu-a07:~# ethtool -S {nic}",
    "[root@gpu-a07 ~]# ethtool -S {nic}",
    "=== ethtool -S {nic} ===",
    "ethtool -S {nic}:",
]


@pytest.mark.parametrize("heading", HEADINGS)
def test_a_heading_names_the_port_of_a_dump(heading: str, tmp_path: Path) -> None:
    nics = [("ens3f0np0", "mlx5_0"), ("eth1", "bnxt_re1"), ("enp26s0f1np1", "rocep26s0f1")]
    text = "Tue Mar 18 09:23:05 UTC 2025\n"
    for number, (nic, rdma) in enumerate(nics):
        text += heading.format(nic=nic, rdma=rdma) + "\n"
        text += f"NIC statistics:\n     rx_bytes_phy: {number}\n     rx_prio3_pause: {number}\n"
    path = tmp_path / "capture.log"
    path.write_text(text)
    rows = Rows()
    recognised = CATALOGUE.recognise(text.encode(), "/logs/capture.log")
    result = read_file(path, recognised, Context("f"), rows, lambda: None)
    assert result.tally.samples + result.tally.unclaimed_samples == []
    got: dict[str, list[str]] = {}
    for table, part in rows.drain():
        got.setdefault(table, []).extend(part.column("port").to_pylist())
    assert got["port_samples"] == got["priority_samples"] == [nic for nic, _ in nics]


@pytest.mark.parametrize(
    "line", ["=== counters ===", "interface Ethernet1/1", "eth0: up", "eth0 7"]
)
def test_what_is_no_heading_names_no_port(line: str, tmp_path: Path) -> None:
    text = f"{line}\nNIC statistics:\n     rx_bytes_phy: 1\n"
    path = tmp_path / "capture.log"
    path.write_text(text)
    rows = Rows()
    recognised = CATALOGUE.recognise(text.encode(), "/logs/capture.log")
    read_file(path, recognised, Context("f"), rows, lambda: None)
    assert [part.column("port").to_pylist() for _, part in rows.drain()] == [["unknown:"]]


MARKS = ["=", "#", "*", "~", "+", "@", "%", "-", ">", "_"]
# A moment as loops write it, all the same one.
MOMENTS = ["2026-03-19T12:30:20Z", "2026-03-19 12:30:20", "20260319T123020Z", "1773923420"]


@given(
    mark=st.sampled_from(MARKS).flatmap(lambda m: st.integers(2, 9).map(lambda n: m * n)),
    moment=st.sampled_from(MOMENTS),
    device=st.sampled_from([None, "nx-leaf-1", "gpu07", "c01.cluster"]),
    numbered=st.sampled_from([None, "sample 12", "run3", "poll #4"]),
    is_closed=st.booleans(),
)
def test_a_drawn_line_of_a_loop_tells_time_and_device(
    mark: str, moment: str, device: str | None, numbered: str | None, is_closed: bool
) -> None:
    """In any marks; what a loop numbers is no device."""
    said = " ".join(filter(None, [device or numbered, moment]))
    banner = f"{mark} {said} {mark}" if is_closed else f"{mark} {said}"
    text = f"{banner}\n     rx_bytes_phy: 1\n     rx_prio3_pause: 2\n"
    rows = Rows()
    recognised = CATALOGUE.recognise(text.encode(), "/logs/ethtool_eth0.log")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ethtool_eth0.log"
        path.write_text(text)
        result = read_file(path, recognised, Context("f"), rows, lambda: None)
    assert result.tally.samples + result.tally.unclaimed_samples == []
    got = [row for _, part in rows.drain() for row in part.to_pylist()]
    assert len(got) == 2
    for row in got:
        assert row["ts"].replace(tzinfo=None) == datetime(2026, 3, 19, 12, 30, 20)
        assert row["device"] == device
