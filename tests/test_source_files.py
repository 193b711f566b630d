"""Where the input tells of a finding: files and lines of its culprits, in its time."""

import gzip
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from conftest import Rows, Run
from fabricobs.diagnosis.findings import Entity, Finding
from fabricobs.diagnosis.run import diagnose
from fabricobs.report.explanation import explain

START = datetime(2026, 3, 2, 9)
MINUTES = 60


def finding(entity: Entity, query: str, first: int, last: int) -> Finding:
    return Finding(
        kind="straggler",
        entities=(entity,),
        severity="high",
        confidence=0.8,
        title="It is slow",
        explanation="",
        start=START + timedelta(minutes=first),
        end=START + timedelta(minutes=last),
        detected_at=START + timedelta(minutes=first, seconds=90),
        query=query,
    )


def test_every_place_of_the_sample_tells_of_a_culprit(sample_store: Path) -> None:
    told = [f for f in diagnose(sample_store).findings if f.severity != "info"]
    assert told
    for each in told:
        owners = {entity.host or entity.switch for entity in each.entities} - {None}
        files = explain(each, sample_store).files
        assert files
        for place in files:
            opened = gzip.open if place.path.endswith(".gz") else open
            with opened(place.path, "rt") as file:
                lines = file.read().splitlines()
            assert place.line is not None
            assert 1 <= place.line <= len(lines)
            assert any(
                owner in place.path or owner in "\n".join(lines) for owner in owners if owner
            )


@pytest.mark.parametrize("seed", range(20))
def test_the_files_are_those_of_the_part_in_its_time(
    make_store: Callable[[Rows], Path], seed: int
) -> None:
    """Ranks of another job, ports of another switch and other times have their own files."""
    draw = random.Random(seed)
    rank, port = draw.randrange(8), f"Ethernet{draw.randrange(9)}"
    hosts = draw.sample([f"node{n:02}" for n in range(9)], 2)
    switches = draw.sample([f"leaf{n:02}" for n in range(9)], 2)
    first = draw.randrange(10, 30)
    last = first + draw.randrange(5, 20)
    files, steps, samples = [], [], []
    for number, (host, switch) in enumerate(zip(hosts, switches, strict=True)):
        for kind, name in (("step_records", host), ("sonic_counters", switch)):
            files.append({"file_id": name, "path": f"/logs/{number}/{name}", "formats": kind})
        for minute in range(MINUTES):
            ts = START + timedelta(minutes=minute)
            row = {"line": minute + 1, "ts": ts, "ts_source": "inline"}
            # Steps tell the host on some sites and the rank alone on others.
            where = {"host": f"{host}.example" if draw.random() < 0.5 else host}
            steps += [row | where | {"file_id": host, "rank": r, "step": minute} for r in range(8)]
            for other in (port, "Ethernet99"):
                counted = {"file_id": switch, "device": switch, "port": other, "rx_bytes": minute}
                samples.append(row | counted | {"format": "sonic_counters"})
    store = make_store({"files": files, "steps": steps, "port_samples": samples})
    of_rank = finding(Entity("rank", rank=rank, host=hosts[0]), "slow_rank_steps", first, last)
    (told,) = explain(of_rank, store).files
    around = range(first - 1, last + 2)  # a minute before and after
    assert (told.place, told.later) == (f"/logs/0/{hosts[0]}:{first + 1}", None)
    assert (told.files, told.rows) == (1, len(around))
    cable = Entity("cable", switch=switches[1], port=port)
    (told,) = explain(finding(cable, "errors_over_time", first, last), store).files
    # Counters are compared: as they stood when it began, and once it showed.
    assert told.place == f"/logs/1/{switches[1]}:{first + 1}"
    assert told.later == f"/logs/1/{switches[1]}:{first + 3}"
    # What names no part is of the whole job: of its steps, not of the fabric.
    of_job = replace(of_rank, entities=(), query="pace_of_steps")
    (told,) = explain(of_job, store).files
    assert (told.formats, told.files) == ("step_records", 2)


@pytest.mark.parametrize("seed", range(6))
def test_a_query_says_which_rows_tell(make_store: Callable[[Rows], Path], seed: int) -> None:
    """Of a host without GPUDirect its connections do, not the first line of its log."""
    draw = random.Random(seed)
    hosts, bad, first = [f"node{n}" for n in range(4)], draw.randrange(4), draw.randrange(50, 90)
    files = [{"file_id": h, "path": f"/logs/{h}", "formats": "nccl_debug"} for h in hosts]
    env = [
        {"file_id": h, "host": h, "line": 1, "name": "NCCL_DEBUG", "value": "INFO"} for h in hosts
    ]
    channels = [
        {
            "file_id": host, "host": host, "line": first + n, "transport": "NET",
            "gdr": number != bad, "kind": "connection", "network": "IB",
        }
        for number, host in enumerate(hosts)
        for n in range(8)
    ]  # fmt: skip
    draw.shuffle(channels)
    store = make_store({"files": files, "nccl_env": env, "nccl_channels": channels})
    off = replace(
        finding(Entity("host", host=hosts[bad]), "ranks_without_gpudirect", 0, 9), start=None
    )
    (told,) = explain(off, store).files
    assert (told.place, told.rows) == (f"/logs/{hosts[bad]}:{first}", 8)
    # Where none is of the part, those of the job are shown.
    (told,) = explain(replace(off, entities=(Entity("host", host="x"),)), store).files
    assert (told.place, told.rows) == (f"/logs/{hosts[bad]}:{first}", 8)


def test_explain_and_the_report_name_them(
    fabricobs: Run, sample_store: Path, tmp_path: Path
) -> None:
    store = str(sample_store)
    worst = diagnose(sample_store).findings[0]
    said = fabricobs("explain", worst.id, "--store", store).stdout
    places = [each.place for each in explain(worst, sample_store).files]
    assert all(place in said for place in places)
    page = tmp_path / "report.html"
    fabricobs("report", "--store", store, "--out", str(page))
    assert "Input that tells of it" in page.read_text()
