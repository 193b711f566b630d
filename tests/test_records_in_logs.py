"""Step records that a trainer prints as JSON into its log, among lines of other kinds."""

import json
import random
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import fabricobs
from conftest import Rows
from fabricobs.inputs import IngestReport

START = datetime(2026, 3, 2, 9)
NAMES = {
    "step": ("step", "iteration", "global_step"),
    "step_time_ms": ("step_time_ms", "iter_time_ms"),
    "loss": ("loss", "train_loss"),
}
# What stands before a record, in a log that a trainer, a launcher or a log service writes.
BEFORE = {
    "nothing": "",
    "a launcher": "[rank0]: ",
    "a logger": "{clock} INFO train.py:88 ",
    "a word": "step metrics: ",
    "containerd": "{iso}Z stdout F ",
    "containerd and a logger": "{iso}Z stdout F [trainer] INFO - ",
}
OTHERS = (
    "loading the model",
    "n1:100:101 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 busId 1000 - Init START",
    '{"level": "info", "msg": "checkpoint saved"}',
    "tensor(0.5) {not json}",
)


def log(seed: int, before: str, *, ranked: bool, timed: bool, steps: int = 40) -> tuple[str, Rows]:
    """Return a log, and the rows of its steps."""
    chance = random.Random(seed)
    names = {column: chance.choice(some) for column, some in NAMES.items()}
    deep = chance.random() < 0.3  # what nothing keeps may be an object
    lines, rows = [], []
    for step in range(1, steps + 1):
        now = START + timedelta(seconds=2 * step)
        put = before.format(clock=f"{now:%Y-%m-%d %H:%M:%S},123", iso=now.isoformat())
        while chance.random() < 0.4:
            lines.append(put + chance.choice(OTHERS))
        told = {"step": step, "step_time_ms": chance.randint(900, 1100) / 1, "loss": 3 - step / 100}
        told |= {"rank": 0} if ranked else {}
        record = {names.get(name, name): value for name, value in told.items()}
        record |= {"timestamp": f"{now.isoformat()}Z"} if timed else {}
        record |= {"memory": {"gib": 61.2}} if deep else {"event": "step"}
        lines.append(put + json.dumps(record))
        rows.append(told)
    return "\n".join(lines) + "\n", {"steps": rows}


def ingested(folder: Path, text: str) -> tuple[IngestReport, list[dict[str, object]]]:
    (folder / "logs").mkdir()
    (folder / "logs" / "train.log").write_text(text, encoding="utf-8")
    report = fabricobs.ingest(folder / "logs", folder / "store", workers=1)
    parts = sorted((folder / "store").glob("*/steps.parquet"))
    rows = [row for part in parts for row in pq.read_table(part).to_pylist()]  # type: ignore[no-untyped-call]
    return report, rows


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("ranked", [True, False])
@pytest.mark.parametrize("seed", range(2))
def test_records_are_read_wherever_they_stand(
    tmp_path: Path, before: str, ranked: bool, seed: int
) -> None:
    text, wanted = log(seed, BEFORE[before], ranked=ranked, timed=bool(seed))
    report, rows = ingested(tmp_path, text)
    shown = [{name: row[name] for name in wanted["steps"][0]} for row in rows]
    assert shown == wanted["steps"]
    dated = bool(seed) or "{" in BEFORE[before]
    assert all((row["ts"] is not None) == dated for row in rows)
    told = [row["ts"].replace(tzinfo=None, microsecond=0) for row in rows if dated]  # type: ignore[attr-defined]
    assert told == [START + timedelta(seconds=2 * step) for step in range(1, len(told) + 1)]
    (outcome,) = report.outcomes
    assert outcome.lines == text.count("\n")
    assert outcome.lines == outcome.parsed + outcome.ignored + outcome.unparsed
    others = sum("saved" in line or "tensor" in line for line in text.splitlines())
    assert outcome.unparsed >= others


def test_a_big_log_is_read_as_a_small_one(tmp_path: Path) -> None:
    """Lines of NCCL are taken many at a time, records are not."""
    text, wanted = log(5, "", ranked=True, timed=True, steps=9000)
    assert len(text) > 1 << 20
    _, rows = ingested(tmp_path, text)
    rows.sort(key=lambda row: row["line"])  # type: ignore[arg-type, return-value]
    assert [row["step_time_ms"] for row in rows] == [r["step_time_ms"] for r in wanted["steps"]]


@pytest.mark.parametrize(
    "record",
    [
        '{"level": "info", "step": 5}',  # no time of a step
        '{"step": 5, "step_time": 1.5}',  # of which the unit is not known
        '{"step": 5, "step_time_ms": 900',  # torn
        '[{"step": 5, "step_time_ms": 900}]',
    ],
)
def test_what_is_no_step_record_stays_unread(tmp_path: Path, record: str) -> None:
    text = f"starting\n{record}\nsaved\n"
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "train.log").write_text(text)
    (outcome,) = fabricobs.ingest(tmp_path / "logs", tmp_path / "store").outcomes
    assert outcome.rows == 0 and outcome.unparsed == 3


def test_a_value_that_does_not_fit_is_told(tmp_path: Path) -> None:
    text, _ = log(1, "", ranked=True, timed=True)
    torn = json.dumps({"step": 41, "rank": 0, "step_time_ms": "slow", "loss": 1.0})
    short = json.dumps({"step": 42, "rank": 0, "step_time_ms": 900.0, "loss": {"mean": 1}})
    report, rows = ingested(tmp_path, f"{text}{torn}\n{short}\n")
    assert [row["step"] for row in rows] == [*range(1, 41), 42]
    assert rows[-1]["loss"] is None
    assert report.outcomes[0].first_unread is not None
    assert "step_time_ms" in report.outcomes[0].first_unread[1]
