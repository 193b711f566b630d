"""Whatever a launcher or log service puts around the lines, they give the rows of the bare file."""

import csv
import io
import json
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from string import Template
from typing import Any

import duckdb
import pytest
from typer.testing import CliRunner

from fabricobs.cli import app
from fabricobs.formats.logs.meanings import fields_by_meaning

WRAPPINGS = tomllib.loads(Path(__file__).with_name("wrappings.toml").read_text(encoding="utf-8"))
BEGIN = 1_767_607_200  # 2026-01-05 10:00:00 UTC
NAMES = [wrapping["name"] for wrapping in WRAPPINGS["wrapping"]]


def job() -> list[dict[str, Any]]:
    """Return who writes which line when: four ranks, a connection and a step each, three times."""
    lines = []
    for second in range(3):
        for rank in range(4):
            node = rank // 2 + 1
            head = f"train-worker-{node}:{100 + rank}:{200 + rank} [{rank % 2}] NCCL INFO "
            said = [
                f"{head}Using network IB",
                f"iter {second}: loss 2.{rank}{second}, time 812.50ms, mfu 41.20%",
            ]
            lines += [
                {"line": line, "rank": rank, "local_rank": rank % 2, "node_rank": node,
                 "host": f"gpu-0{node}", "pod": f"train-worker-{node}", "ip": f"10.0.0.{node}",
                 "pid": 100 + rank, "s": BEGIN + second}
                for line in said
            ]  # fmt: skip
    return [line | {"n": number} for number, line in enumerate(lines, 1)]


def cell(text: str) -> str:
    written = io.StringIO()
    csv.writer(written, quoting=csv.QUOTE_ALL, lineterminator="").writerow([text])
    return written.getvalue()


def written(wrapping: dict[str, Any], line: dict[str, Any]) -> str:
    text, cut = line["line"], 9 if line["n"] % 4 == 0 else 0
    moment = datetime.fromtimestamp(line["s"], UTC)
    iso = moment.strftime("%Y-%m-%dT%H:%M:%S")
    inner = {"message": text, "rank": line["rank"], "time": f"{iso}Z"}
    return Template(wrapping["each"]).substitute(
        line,
        ts=f"{iso}Z",
        iso=iso,
        local=iso.replace("T", " "),
        comma=iso.replace("T", ", "),
        short=moment.strftime("%b %d %H:%M:%S"),
        ctime=moment.strftime("%a %b %d %H:%M:%S %Y"),
        ms=line["s"] * 10**3,
        us=line["s"] * 10**6,
        ns=line["s"] * 10**9,
        json=json.dumps(text),
        jsonl=json.dumps(f"{text}\n"),
        csv=cell(text),
        bytes=json.dumps(list(f"\x1b[32m{text}\x1b[0m".encode())),
        inner=json.dumps(json.dumps(inner)),
        begin=text[:cut],
        end=text[cut:],
        begin_json=json.dumps(text[:cut]),
        end_json=json.dumps(text[cut:]),
    )


def file_of(wrapping: dict[str, Any]) -> str:
    lines = [written(wrapping, line) for line in job()]
    if wrapping.get("newest_first"):
        lines.reverse()
    body = wrapping.get("join", "\n").join(lines)
    return "\n".join(filter(None, (wrapping.get("head"), body, wrapping.get("foot")))) + "\n"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ingest every wrapping, each below a folder of its own."""
    folder = tmp_path_factory.mktemp("wrappings")
    for number, wrapping in enumerate(WRAPPINGS["wrapping"]):
        path = folder / "logs" / f"w{number}" / wrapping.get("file", "job.log")
        path.parent.mkdir(parents=True)
        path.write_text(file_of(wrapping), encoding="utf-8", newline="")
    found = CliRunner().invoke(
        app, ["ingest", str(folder / "logs"), "--store", str(folder / "store")]
    )
    assert found.exit_code in {0, 1}, found.output
    return folder / "store"


def rows(store: Path, table: str, number: int) -> list[dict[str, Any]]:
    with duckdb.connect() as session:
        found = session.sql(
            f"SELECT t.* FROM read_parquet('{store}/*/{table}.parquet') t "
            f"JOIN read_parquet('{store}/*/files.parquet') f USING (file_id) "
            f"WHERE f.path LIKE '%/w{number}/%' ORDER BY ALL"
        )
        return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]


@pytest.mark.parametrize("number", range(len(NAMES)), ids=NAMES)
def test_a_wrapped_line_gives_its_rows(store: Path, number: int) -> None:
    wrapping, said = WRAPPINGS["wrapping"][number], job()
    steps, ranks = rows(store, "steps", number), rows(store, "nccl_ranks", number)
    assert sorted((r["host"], r["pid"], r["network"]) for r in ranks) == sorted(
        (line["pod"], line["pid"], "IB") for line in said if "NCCL" in line["line"]
    )
    by_loss = {row["loss"]: row for row in steps}
    assert len(steps) == len(by_loss) == 12
    for line in said:
        if "NCCL" in line["line"]:
            continue
        row = by_loss[float(line["line"].split()[3].rstrip(","))]
        assert row["step"] == line["s"] - BEGIN
        node = line["node_rank"]
        names = line | {"": None, "algo": f"algo-{node}", "compose": f"gpu-worker-{node}"}
        assert row["host"] == names[wrapping.get("host", "")]
        assert row["rank"] == (line["rank"] if wrapping.get("rank") else None)
        moment = datetime.fromtimestamp(line["s"], UTC).replace(tzinfo=None)
        ts = row["ts"] and row["ts"].replace(microsecond=0)
        assert ts == (moment if wrapping.get("ts") else None)
    for row in ranks:
        assert (row["launch_rank"] is not None) == bool(wrapping.get("rank"))
        assert (row["ts"] is not None) == bool(wrapping.get("ts"))


@pytest.mark.parametrize("number", range(len(NAMES)), ids=NAMES)
def test_nothing_of_it_is_unread(store: Path, number: int) -> None:
    (account,) = rows(store, "files", number)
    assert (account["unparsed"], account["parsed"]) == (0, 24)
    assert account["lines"] == account["parsed"] + account["ignored"]


@pytest.mark.parametrize("field", ["log", "line"])
def test_a_torn_record_is_unread_and_names_no_host(tmp_path: Path, field: str) -> None:
    head = "train-worker-{n}:10{n}:20{n} [0] NCCL INFO Using network IB"
    records = [
        json.dumps({"pod": f"train-worker-{n}", "time": "2026-01-05T10:00:00Z", field: line})
        for n in range(1, 4)
        for line in [head.format(n=n)]
    ]
    (tmp_path / "x.jsonl").write_text("\n".join([*records, records[0][:-9]]) + "\n")
    store = tmp_path / "store"
    arguments = ["ingest", str(tmp_path / "x.jsonl"), "--store", str(store)]
    assert CliRunner().invoke(app, arguments).exit_code in {0, 1}
    parts = str(store / "**" / "nccl_ranks.parquet")
    hosts = duckdb.sql(f"SELECT DISTINCT host FROM read_parquet('{parts}')").fetchall()
    assert sorted(host for (host,) in hosts) == [f"train-worker-{n}" for n in range(1, 4)]
    files = str(store / "**" / "files.parquet")
    assert duckdb.sql(f"SELECT unparsed + unclaimed FROM read_parquet('{files}')").fetchall() == [
        (1,)
    ]


@pytest.mark.parametrize(
    ("field", "ts"),
    [("@timestamp", "2025-05-08 21:01:15.000Z"), ("time", "2025-05-08 21:01:15.000")],
)
def test_the_zone_of_a_service_is_utc(field: str, ts: str) -> None:
    assert fields_by_meaning([(field, "2025-05-08 21:01:15.000")]) == {"ts": ts}


def test_colours_hide_no_header_of_an_export(tmp_path: Path) -> None:
    rows = "".join(
        f'2026-01-05 10:00:0{n}.000,"iter {n}: loss 2.5, time 812.50ms, mfu 41.20%",job/algo-1-17\n'
        for n in range(5)
    )
    text = f"@timestamp,@message,@logStream\n{rows}".replace("\n", "\x1b[0m\x1b[K\n")
    (tmp_path / "x.csv").write_text(text)
    store = tmp_path / "store"
    CliRunner().invoke(app, ["ingest", str(tmp_path / "x.csv"), "--store", str(store)])
    parts = str(store / "**" / "steps.parquet")
    steps = duckdb.sql(f"SELECT step, host FROM read_parquet('{parts}') ORDER BY ALL").fetchall()
    assert steps == [(n, "algo-1") for n in range(5)]


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_what_only_later_records_show_is_read(ending: str, tmp_path: Path) -> None:
    lines = ["train-worker-1:101:201 [0] NCCL INFO Using network IB"] * 2_000
    lines += [f"iter {n}: loss 2.5, time 812.50ms, mfu 41.20%" for n in range(3)]
    text = "".join(json.dumps({"log": line}) + ending for line in lines)
    (tmp_path / "x.jsonl").write_text(text, newline="")
    store = tmp_path / "store"
    CliRunner().invoke(app, ["ingest", str(tmp_path / "x.jsonl"), "--store", str(store)])
    parts = str(store / "**" / "steps.parquet")
    assert duckdb.sql(f"SELECT count(*) FROM read_parquet('{parts}')").fetchall() == [(3,)]
