"""Big files of records are read by Arrow: the rows must be those of reading by Python."""

import json
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import mutate
from fabricobs.formats import source
from fabricobs.formats.context import Context
from fabricobs.formats.reading import read_file
from fabricobs.formats.recognition.catalogue import load_catalogue
from fabricobs.formats.recognition.format import Recognised
from fabricobs.formats.records import blocks
from fabricobs.formats.rows import Rows, Tally

CATALOGUE = load_catalogue()
CSV_HEADER = "iteration,global_rank,timestamp,iter_time_s,loss,host"
CELLS = [
    "7", "-7", "+7", " 8 ", "007", "1,234", "1_000", "9223372036854775807", "9223372036854775808",
    "18446744073709551615", "36893488147419103232", "123456789012345678", "1.5", "-0.25", "1e3",
    "0.1234567890123456789", "nan", "inf", "n/a", "-", "", "x", "é", "a b", "a,b", 'a"b', '"', "\t",
    "1772442041", "1772442041.5", "1772442041500", "1772442041500000", "1772442041500000000",
    "2026-03-02T09:00:41.250Z", "2026-03-02 09:00:41", "2026/03/02_09:00:41", "2026-02-30T09:00:41",
    "2026-03-02T09:00:41+02:00", "2026-03-02 09:00:41.5+02", "0001-01-01 00:00:00",
    "1772442041.1234567", "1772442041500.1234567", "Mon Mar  2 09:00:41 2026",
]  # fmt: skip


def read(path: Path, shown: Recognised) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    rows = Rows()
    result = read_file(path, shown, Context("f"), rows, lambda: None)
    tables: dict[str, list[Any]] = {}
    for table, part in rows.drain():
        tables.setdefault(table, []).extend(part.to_pylist())
    return {t: sorted(r, key=str) for t, r in tables.items()}, account(result.tally)


def account(tally: Tally) -> dict[str, Any]:
    assert tally.lines == tally.parsed + tally.ignored + tally.unparsed
    counts = (tally.lines, tally.parsed, tally.ignored, tally.unparsed)
    # Which of the misses are kept may differ where there are more than are kept.
    kept = sorted(tally.samples) if tally.unparsed < 20 else []
    return {"counts": counts, "samples": kept}


def assert_same(
    data: bytes, folder: Path, name: str, syntax: str
) -> tuple[dict[str, list[Any]], Any]:
    shown = Recognised(syntax, (CATALOGUE.formats[name],))
    path = folder / "records"
    path.write_bytes(data)
    expected = read(path, shown)
    assert len(data) < blocks.PART_BYTES
    # All lines at once; if Arrow refuses them one by one, or a few at a time.
    for part_bytes in (1, 300):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(blocks, "PART_BYTES", part_bytes)
            # NaN is not equal to itself.
            assert repr(read(path, shown)) == repr(expected)
    return expected


SAMPLES = [
    (format_.name, CATALOGUE.recognise(sample.data, f"/logs/{sample.path}").syntax, sample.data)
    for format_ in CATALOGUE.formats.values()
    if {"csv", "jsonl"} & {*format_.definition.reader}
    for sample in format_.definition.sample
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "syntax", "data"), SAMPLES)
def test_the_samples_and_what_happens_to_files(
    name: str, syntax: str, data: bytes, tmp_path: Path
) -> None:
    tables, _ = assert_same(data, tmp_path, name, syntax)
    assert any(tables.values())
    assert_same(data * 3, tmp_path, name, syntax)
    assert_same(data.replace(b"\n", b"\r\n"), tmp_path, name, syntax)
    assert_same(data.rstrip(b"\n"), tmp_path, name, syntax)
    assert_same(b"\xef\xbb\xbf" + data, tmp_path, name, syntax)
    for seed in range(40):
        assert_same(mutate(data * 3, seed), tmp_path, name, syntax)


@settings(max_examples=80)
@given(data=st.data())
def test_csv_cells_of_every_kind(data: st.DataObject, tmp_path_factory: Any) -> None:
    cell = st.sampled_from(CELLS) | st.text(max_size=4)
    lines = [CSV_HEADER]
    for _ in range(data.draw(st.integers(1, 8))):
        cells = data.draw(st.lists(cell, min_size=5, max_size=7))
        quoted = data.draw(st.booleans())
        lines.append(",".join(f'"{cell}"' if quoted else cell for cell in cells))
    text = "\n".join(lines)
    assert_same(
        text.encode("utf-8", "replace"), tmp_path_factory.mktemp("csv"), "step_records", "csv"
    )


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(CELLS) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


@settings(max_examples=80)
@given(data=st.data())
def test_json_values_of_every_kind(data: st.DataObject, tmp_path_factory: Any) -> None:
    base = {"iteration": 7, "global_rank": 1, "timestamp": 1772442041.5, "iter_time_s": 1.5}
    lines = [json.dumps(base | {"loss": 2.5, "host": "a"})]
    for _ in range(data.draw(st.integers(1, 8))):
        record = dict(base) | {"loss": 2.5, "host": "a", "extra": [1, {"a": "]}"}]}
        for key in data.draw(st.lists(st.sampled_from([*record, "new"]), max_size=2)):
            record[key] = data.draw(VALUES)
        line = json.dumps(record, ensure_ascii=data.draw(st.booleans()))
        damage = data.draw(st.sampled_from(["", "", "", "tear", "put"]))
        place = data.draw(st.integers(0, len(line)))
        if damage:
            odd = data.draw(st.sampled_from(['"', ",", "{", "0", "\\", " ", "\x00", "\x1f", "é"]))
            line = line[:place] + ("" if damage == "tear" else odd + line[place:])
        lines += [line, line]
    text = "\n".join(lines)
    assert_same(
        text.encode("utf-8", "replace"), tmp_path_factory.mktemp("json"), "step_records", "jsonl"
    )


def test_what_an_inspector_header_says_holds_for_the_lines_below(tmp_path: Path) -> None:
    def header(rank: int) -> str:
        return json.dumps(
            {"header": {"id": "0x9", "rank": rank}, "metadata": {"hostname": f"n{rank}"}}
            | {"dump_stats": {"coll_records": 2}}
        )

    def call(number: int) -> str:
        perf = {"coll": "AllReduce", "coll_sn": number, "coll_msg_size_bytes": 8}
        return json.dumps({"coll_perf": perf | {"coll_exec_time_us": 5.5}})

    lines = [call(1), header(3), call(2), call(3), '{"torn', call(4), header(4), "{}", call(5)]
    tables, told = assert_same("\n".join(lines).encode(), tmp_path, "nccl_inspector", "jsonl")
    ranks = {row["seq"]: (row["rank"], row["host"]) for row in tables["collectives"]}
    n3 = (3, "n3")
    assert ranks == {1: (None, None), 2: n3, 3: n3, 4: n3, 5: (4, "n4")}
    assert told["counts"] == (9, 5, 2, 2)


def test_a_cell_that_is_no_number_costs_its_cell_alone(tmp_path: Path) -> None:
    text = f"{CSV_HEADER}\n7,x,2026-03-02T09:00:41Z,1.5,2.5,a\n8,1,2026-03-02T09:00:42Z,1.5,?,a\n"
    tables, told = assert_same(text.encode(), tmp_path, "step_records", "csv")
    assert [(row["step"], row["loss"]) for row in tables["steps"]] == [(8, None)]
    assert told["samples"][0][0] == 2


def test_a_saturated_counter_is_kept_as_the_negative_number_it_is(tmp_path: Path) -> None:
    text = (
        "SaveTime,SaveTimeUTC,DeviceName,PortName,InPkts,InOctets,OutPkts,OutOctets,A,B\n"
        "x,1772442000500,spine01,P1,-3,18446744073709551615,80,327680,0,0\n"
    )
    tables, _ = assert_same(text.encode(), tmp_path, "port_csv", "csv")
    row = tables["port_samples"][0]
    assert (row["rx_packets"], row["rx_bytes"], row["tx_bytes"]) == (-3, -1, 327680)


def test_parquet_columns_of_every_type(tmp_path: Path) -> None:
    moment = datetime(2026, 3, 2, 9, 0, 41, 250_000)
    micros = 1_772_442_041_250_000
    times = {
        "timestamp[s, tz]": pa.array([moment.replace(microsecond=0)], pa.timestamp("s", "UTC")),
        "timestamp[ns]": pa.array([moment], pa.timestamp("ns")),
        "micros": pa.array([micros]),
        "nanos": pa.array([micros * 1000 + 1]),
        "seconds": pa.array([micros / 1e6]),
        "text": pa.array([moment.isoformat()]),
        "codes": pa.array([moment.isoformat()]).dictionary_encode(),
    }
    for name, ts in times.items():
        table = pa.table(
            {
                "step": pa.array([7], pa.uint64()),
                "rank": pa.array([Decimal("3")]),
                "timestamp": ts,
                "step_time_s": pa.array([1.5], pa.float32()),
                "loss": pa.array(["2.5"]),
                "host": pa.array(["a "]).dictionary_encode(),
            }
        )
        path = tmp_path / "steps.parquet"
        pq.write_table(pa.concat_tables([table, table.slice(0, 0), empty_row(table)]), path)
        tables, told = read(path, Recognised("parquet", (CATALOGUE.formats["step_records"],)))
        (row,) = tables["steps"]
        assert row["ts"].replace(microsecond=0) == moment.replace(microsecond=0), name
        assert (row["step"], row["rank"], row["step_time_ms"]) == (7, 3, 1500.0)
        assert (row["loss"], row["host"], row["ts_source"]) == (2.5, "a", "inline")
        assert told["counts"] == (2, 1, 0, 1)


def empty_row(table: pa.Table) -> pa.Table:
    return pa.table([pa.nulls(1, field.type) for field in table.schema], schema=table.schema)


# Names that sites give the columns of their own timers, and the column that each fills.
STEP_NAMES = {
    "step": ["step", "iteration", "iter", "global_step", "train_step"],
    "rank": ["rank", "global_rank", "rank_id", "worker"],
    "ts": ["ts", "timestamp", "time", "t", "t_unix", "unix_time", "wall_time", "utc", "epoch_s"],
}
TIMES = {
    "step_time_ms": ["step", "step_time", "iter", "iteration_time", "batch_time", "elapsed", "dt"],
    "forward_ms": ["fwd", "forward", "forward_time"],
    "backward_ms": ["bwd", "backward", "bwd_time"],
    "optimizer_ms": ["opt", "optim", "optimizer", "optimizer_step"],
    "data_ms": ["data", "dataload", "dataloader", "data_wait", "data_loading_time"],
    "comm_ms": ["comm", "comm_time", "nccl", "allreduce", "all_gather", "dp_sync", "moe_a2a"],
    "forward_backward_ms": ["fwd_bwd", "forward_backward", "forward_backward_time"],
}
UNITS = {"_us": 0.001, "_ms": 1.0, "_s": 1000.0, "_sec": 1000.0}


@settings(max_examples=60)
@given(data=st.data())
def test_timers_of_a_site_by_any_of_their_names(data: st.DataObject, tmp_path_factory: Any) -> None:
    names = {column: data.draw(st.sampled_from(some)) for column, some in STEP_NAMES.items()}
    values: dict[str, Any] = {names["step"]: 7, names["rank"]: 3, names["ts"]: 1772442041.5}
    expected: dict[str, Any] = {"step": 7, "rank": 3, "ts": datetime(2026, 3, 2, 9, 0, 41, 500000)}
    for column, some in TIMES.items():
        unit = data.draw(st.sampled_from(sorted(UNITS)))
        value = data.draw(st.integers(1, 10_000))
        values[data.draw(st.sampled_from(some)) + unit] = value
        expected[column] = pytest.approx(value * UNITS[unit])
    folder = tmp_path_factory.mktemp("timers")
    line = json.dumps(values)
    header, cells = (",".join(map(str, part)) for part in (values.keys(), values.values()))
    for text in (f"{line}\n", f"{header}\n{cells}\n"):
        path = folder / "timers"
        path.write_text(text)
        shown = CATALOGUE.recognise(text.encode(), "/logs/timers")
        assert shown.names == ("step_records",)
        (row,) = read(path, shown)[0]["steps"]
        assert {column: row[column] for column in expected} == expected


def test_a_key_that_comes_late_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What only later records have is no less wanted; its name may be escaped."""
    early = b'{"step": 1, "rank": 0, "step_ms": 5, "note": "\\"fwd_ms\\\\"}\n' * 300
    late = b'{"step": 2, "rank": 0, "step_ms": 5, "fwd\\u005fms": 3, "loss": 1.5}\n' * 300
    monkeypatch.setattr(source, "BLOCK", 4096)
    tables, _ = assert_same(early + late, tmp_path, "step_records", "jsonl")
    assert [row.get("forward_ms") for row in tables["steps"]].count(3.0) == 300


def test_parts_are_summed_where_no_total_is_told(tmp_path: Path) -> None:
    lines = [
        "step,rank,step_ms,comm_ms,allreduce_ms,allgather_ms",
        "1,0,9,,2,3", "2,0,9,4,2,3", "3,0,9,,,3", "4,0,9,,,",
    ]  # fmt: skip
    tables, _ = assert_same("\n".join(lines).encode(), tmp_path, "step_records", "csv")
    told = {row["step"]: row.get("comm_ms") for row in tables["steps"]}
    assert told == {1: 5.0, 2: 4.0, 3: 3.0, 4: None}
