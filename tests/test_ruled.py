"""Tables of many snapshots are cut many rows at once: the rows must be those of one by one."""

from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fabricobs.formats.context import Context
from fabricobs.formats.identity import Identity
from fabricobs.formats.reading import read_file
from fabricobs.formats.recognition.catalogue import load_catalogue
from fabricobs.formats.rows import Rows, Tally

CATALOGUE = load_catalogue()
TABLES = [f for f in CATALOGUE.formats.values() if f.reader == "table"]
SAMPLES = [sample.text for f in TABLES for sample in f.definition.sample]
LINES = [line for text in SAMPLES for line in text.split("\n")]
COUNTERS = next(f for f in TABLES if f.name == "sonic_pfc_counters").definition.sample[0].text
# A batch of this size is worth the compiled cutter.
MANY_BYTES = 1 << 30


def read(path: Path, text: str, expected_bytes: int) -> tuple[dict[str, list[Any]], Tally, int]:
    rows = Rows(expected_bytes)
    recognised = CATALOGUE.recognise(text.encode(), "/logs/leaf07/tables.txt")
    context = Context(
        "f", identity=Identity("leaf07", "path", ts=1772442000000000, ts_source="filename")
    )
    result = read_file(path, recognised, context, rows, lambda: None)
    tables: dict[str, list[Any]] = {}
    for table, part in rows.drain():
        tables.setdefault(table, []).extend(part.to_pylist())
    return {t: sorted(r, key=str) for t, r in tables.items()}, result.tally, result.rows


def assert_same(text: str, folder: Path) -> None:
    path = folder / "tables.txt"
    path.write_text(text, encoding="utf-8", newline="")
    one_by_one = read(path, text, 0)
    assert read(path, text, MANY_BYTES) == one_by_one
    assert one_by_one[2] == sum(map(len, one_by_one[0].values()))


def test_the_samples_alone_and_one_below_the_other(tmp_path: Path) -> None:
    for text in SAMPLES:
        assert_same(text, tmp_path)
    assert_same("\n".join(SAMPLES), tmp_path)


def test_the_same_table_again_without_a_date_is_a_second_sample(tmp_path: Path) -> None:
    assert_same(COUNTERS + COUNTERS, tmp_path)
    dated = COUNTERS.replace("10:15:02", "10:16:02")
    assert_same(COUNTERS + dated + COUNTERS, tmp_path)
    assert_same(COUNTERS + "\x1b[1m" + COUNTERS.replace("\n", "\r\n"), tmp_path)


def test_sent_frames_share_the_rows_of_received_ones(tmp_path: Path) -> None:
    path = tmp_path / "tables.txt"
    path.write_text(COUNTERS)
    tables, tally, _ = read(path, COUNTERS, MANY_BYTES)
    rows = tables["priority_samples"]
    assert [(r["priority"], r["pfc_rx_frames"], r["pfc_tx_frames"]) for r in rows] == [
        (0, 0, 1),
        (3, 1203, 213),
    ]
    assert tally.lines == tally.parsed + tally.ignored


CELLS = st.sampled_from(
    ["0", "7", "1,204", "N/A", "n/a", "-", "--", "", "-3", "12.5", "9" * 19, "1,20", "x", "é", "\t"]
)
PORTS = st.sampled_from(
    ["Ethernet0", "Ethernet8", "Ethernet16", "Eth1/1", "1/1", "none", "leaf01#"]
)


@settings(max_examples=200)
@given(data=st.data())
def test_tables_of_any_cells(data: st.DataObject, tmp_path_factory: Any) -> None:
    """Any cells below any of three headers, in tables that follow each other."""
    text = ""
    for _ in range(data.draw(st.integers(1, 3))):
        names = data.draw(
            st.sampled_from(
                [
                    ["Port Rx", "PFC0", "PFC3"],
                    ["Port Tx", "PFC0", "PFC3"],
                    ["IFACE", "STATE", "RX_OK", "TX_OK", "RX_ERR"],
                ]
            )
        )
        text += "  ".join(f"{name:>10}" for name in names) + "\n"
        text += "  ".join("-" * 10 for _ in names) + "\n"
        for _ in range(data.draw(st.integers(0, 5))):
            cells = [data.draw(PORTS), *(data.draw(CELLS) for _ in names[1:])]
            text += "  ".join(f"{cell:>10}" for cell in cells) + "\n"
        text += data.draw(st.sampled_from(["", "\n", "Tue Mar  4 10:15:02 UTC 2025\n"]))
    assert_same(text, tmp_path_factory.mktemp("tables"))


@settings(max_examples=100)
@given(lines=st.lists(st.sampled_from(LINES), max_size=40), end=st.sampled_from(["\n", ""]))
def test_lines_of_all_samples_in_any_order(
    lines: list[str], end: str, tmp_path_factory: Any
) -> None:
    assert_same("\n".join(lines) + end, tmp_path_factory.mktemp("tables"))


@settings(max_examples=60)
@given(data=st.data())
def test_rows_that_are_padded_wrongly_are_told_by_their_words(
    data: st.DataObject, tmp_path_factory: Any
) -> None:
    """As many words as columns are the cells; with a cell left empty nobody knows which."""
    names = ["LocalPort", "RemoteDevice", "RemotePortID", "Capability", "RemotePortDescr"]
    rules = ["-" * (len(name) + data.draw(st.integers(0, 3))) for name in names]
    text = "Capability codes: (R) Router, (B) Bridge, (O) Other\n"
    text += f"{'  '.join(n.ljust(len(r)) for n, r in zip(names, rules, strict=True))}\n"
    text += "  ".join(rules) + "\n"
    wanted = []
    for row in range(data.draw(st.integers(1, 6))):
        host, nic = f"worker-{row}", f"enp{data.draw(st.integers(2, 168))}s0f0np0"
        cells = [f"Ethernet{8 * row}", host, nic, "O", nic]
        pads = [" " * data.draw(st.integers(2, 9)) for _ in cells]
        text += "".join(c + p for c, p in zip(cells, pads, strict=True)).rstrip() + "\n"
        wanted.append((cells[0], host, nic))
    path = tmp_path_factory.mktemp("padded") / "tables.txt"
    path.write_text(text)
    tables, tally, _ = read(path, text, MANY_BYTES)
    told = {(r["port"], r["remote_device"], r["remote_port"]) for r in tables.get("links", [])}
    assert told <= set(wanted)
    assert len(told) + tally.lines - tally.parsed - tally.ignored == len(wanted)


@settings(max_examples=100)
@given(data=st.data())
def test_rows_beside_their_ruler_are_read_by_their_words(
    data: st.DataObject, tmp_path_factory: Any
) -> None:
    """LLDP tables of 17 switches gave no row: a cell began in the column before its own."""
    names = ["LocalPort", "RemoteDevice", "RemotePortID", "Capability", "RemotePortDescr"]
    numbers = data.draw(st.lists(st.integers(0, 99), min_size=1, max_size=6, unique=True))
    devices, ports = st.sampled_from(["ip-10-3-4-32", "spine1"]), st.sampled_from(["eth1", "swp7"])
    rows = [
        (f"Ethernet{number}", data.draw(devices), data.draw(ports), "O", "x")
        for number in [*numbers, 1000]
    ]
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]

    def table(*, padded: bool) -> str:
        """The first cell of each row, padded or not, and all others."""
        lines = [names, *rows]
        told = [
            "  ".join(
                cell.ljust(width) if place or padded else cell
                for place, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        ]
        ruler = "  ".join("-" * width for width in widths)
        return "\n".join(
            [told[0], ruler, *told[1:], "-" * 50, f"Total entries displayed:  {len(rows)}"]
        )

    folder = tmp_path_factory.mktemp("tables")
    links = []
    for padded in (True, False):
        (folder / "tables.txt").write_text(table(padded=padded))
        links.append(read(folder / "tables.txt", table(padded=padded), 0)[0]["links"])
    assert links[0] == links[1]
    assert len(links[0]) == len(rows)
    assert_same(table(padded=False), folder)
