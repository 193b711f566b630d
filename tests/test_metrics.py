"""Metrics of Prometheus and lines of Influx: labels, numbers, times, scrape after scrape."""

from datetime import datetime
from pathlib import Path
from typing import Any

from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session

NODE = "node_infiniband_"


def ask(tmp_path: Path, name: str, text: str, sql: str) -> list[tuple[Any, ...]]:
    folder = tmp_path / "in"
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    ingest([folder], Store(tmp_path / "store"), Options())
    with open_session(tmp_path / "store", sql) as session:
        return session.sql(sql).fetchall()


def test_scrapes_behind_date_lines_are_rows_of_their_time(tmp_path: Path) -> None:
    sample = f'{NODE}link_downed_total{{device="mlx5_0",port="1"}}'
    text = (
        f"Tue Mar  4 10:15:02 UTC 2025\n{sample} 3\nnode_load1 0.5\n"
        f"Tue Mar  4 10:15:12 UTC 2025\n{sample} 4\n"
    )
    rows = ask(
        tmp_path, "gpu-a07.log", text, "SELECT device, ts, link_downed FROM port_samples ORDER BY 2"
    )
    assert rows == [
        ("gpu-a07", datetime(2025, 3, 4, 10, 15, 2), 3),
        ("gpu-a07", datetime(2025, 3, 4, 10, 15, 12), 4),
    ]


def test_a_number_is_read_as_it_is_meant_and_garbage_is_told(tmp_path: Path) -> None:
    lines = [
        f'{NODE}port_data_received_bytes_total{{device="a\\"b",port="1"}} 1.5e+03 1741083302000',
        f'{NODE}port_transmit_wait_total{{device="a\\"b",port="1"}} +Inf 1741083302000',
        f'{NODE}link_downed_total{{device="c",port="1"}} 9223372036854775794',
        f'{NODE}symbol_error_total{{device="c"}} 7',
        f'{NODE}vl15_dropped_total{{device="c",port="1"}} 1.2.3',
        "# EOF",
    ]
    sql = "SELECT port, rx_bytes, xmit_wait, link_downed FROM port_samples ORDER BY port"
    assert ask(tmp_path, "x.prom", "\n".join(lines), sql) == [('a"b/1', 1500, None, None)]
    with open_session(tmp_path / "store", "unparsed") as session:
        said = session.sql("SELECT line, reason FROM unparsed ORDER BY line").fetchall()
    assert said == [
        (4, "node_exporter_infiniband: no label names the port"),
        (5, "node_exporter_infiniband: 1.2.3 is no number"),
    ]


def test_a_rate_without_a_name_is_not_taken_for_a_counter(tmp_path: Path) -> None:
    text = (
        '{"status":"success","data":{"resultType":"vector","result":['
        '{"metric":{"__name__":"node_infiniband_symbol_error_total","device":"m","port":"1"},'
        '"value":[1741083302,"5"]},'
        '{"metric":{"device":"m","port":"1"},"value":[1741083302,"0.5"]},'
        '{"metric":{},"value":"x"}, 7]}}\n'
    )
    sql = "SELECT unparsed, (SELECT count(*) FROM port_samples) FROM files"
    assert ask(tmp_path, "q.json", text, sql) == [(1, 1)]


def test_a_line_of_influx_has_escapes_and_texts(tmp_path: Path) -> None:
    text = (
        "infiniband,device=mlx5_0,host=a\\ b,port=1 "
        "link_downed=3i,port_xmit_data=1u 1741083302000000000\n"
        'infiniband,device=mlx5_0,host=c,port=1 note="a, b=c",link_downed=2i\n'
        "cpu,host=c usage_idle=99.5 1741083302000000000\n"
    )
    sql = "SELECT device, link_downed, tx_bytes FROM port_samples ORDER BY device"
    assert ask(tmp_path, "telegraf.out", text, sql) == [("a b", 3, 4), ("c", 2, None)]
