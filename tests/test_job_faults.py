"""One job's fault is never another job's verdict: three jobs of one store, each with its own.

Two run at once below one leaf; the third follows three minutes later on the hosts of the first.
"""

import random
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from test_jobs import Job, made, together

from conftest import Rows
from fabricobs.diagnosis.findings import Diagnosis
from fabricobs.diagnosis.run import diagnose

pytestmark = pytest.mark.slow

START = datetime(2026, 3, 2, 9)
INTERVAL = timedelta(seconds=10)
FIRST = Job("first", ("n0", "n1"), START, steps=120)
BESIDE = Job("beside", ("n2", "n3"), START + timedelta(seconds=7), steps=120)
LATER = Job("later", ("n0", "n1"), START + timedelta(minutes=5), steps=120)
JOBS = (FIRST, BESIDE, LATER)
HOSTS = ("n0", "n1", "n2", "n3")
KINDS = ("straggler", "gpu_error", "link_errors")


def leaf(faulty: Job, host: str, *, cables: bool) -> Rows:
    """Counters of a leaf over the time of all jobs: one port errs in the time of one job."""
    rows: Rows = {"port_samples": [], "links": [], "port_status": []}
    begin = START - 3 * INTERVAL
    for number, name in enumerate(HOSTS):
        port = f"Ethernet{8 * number}"
        errors = 700
        for sample in range(48):
            now = begin + sample * INTERVAL
            inside = faulty.begin + 2 * INTERVAL <= now <= faulty.end - INTERVAL
            errors += 400 if name == host and inside else 0
            rows["port_samples"].append(
                {
                    "file_id": "leaf",
                    "line": len(rows["port_samples"]) + 1,
                    "format": "counters",
                    "device": "leaf00",
                    "port": port,
                    "ts": now,
                    "ts_source": "inline",
                    "rx_bytes": sample * 10**11,
                    "rx_errors": errors,
                }
            )
        told = {"file_id": "lldp", "line": number + 1, "device": "leaf00", "port": port}
        rows["port_status"].append({**told, "ts": START, "oper": "up", "speed_gbps": 400.0})
        if cables:
            far = {"remote_device": name, "remote_port": "ens1np0"}
            rows["links"].append({**told, "format": "lldp", "ts": START, **far})
    return rows


def site(faults: dict[str, Job], chance: random.Random, *, cables: bool) -> Rows:
    """The rows of all three jobs, each with the fault that is its own."""
    parts = []
    for job in JOBS:
        slow = chance.randrange(job.ranks) if faults["straggler"] is job else None
        own = Job(job.name, job.hosts, job.begin, steps=job.steps, slow=slow)
        parts.append(own.rows())
    failing = faults["gpu_error"]
    event = {
        "file_id": "kernel",
        "line": 1,
        "host": chance.choice(failing.hosts),
        "kind": "xid",
        "code": 79,
        "part": "0000:13:00.0",
        "ts": failing.begin + timedelta(seconds=chance.randint(20, 90)),
        "ts_source": "inline",
    }
    sick = faults["link_errors"]
    fabric = leaf(sick, chance.choice(sick.hosts), cables=cables)
    return together(*parts, fabric, {"events": [event]})


def kinds_of(found: Diagnosis) -> dict[str, set[str]]:
    """The kinds of findings each job is told."""
    by_id = {finding.id: finding for finding in found.findings}
    return {
        each.run.name: {by_id[id_].kind for id_ in each.findings if by_id[id_].severity != "info"}
        for each in found.jobs
    }


@pytest.mark.parametrize("seed", [1, 2])
def test_each_job_is_told_its_own_fault(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    victims = list(JOBS)
    chance.shuffle(victims)
    faults = dict(zip(KINDS, victims, strict=True))
    found = diagnose(made(tmp_path / "s", site(faults, chance, cables=True)))
    assert kinds_of(found) == {faults[kind].name: {kind} for kind in KINDS}
    for each in found.jobs:
        assert any(question.answer == "problem" for question in each.verdict.questions)


def test_counters_without_cables_are_nobodys(tmp_path: Path) -> None:
    faults = dict(zip(KINDS, (FIRST, LATER, BESIDE), strict=True))
    found = diagnose(made(tmp_path / "s", site(faults, random.Random(4), cables=False)))
    assert kinds_of(found) == {"first": {"straggler"}, "beside": set(), "later": {"gpu_error"}}
    (sick,) = (finding for finding in found.findings if finding.kind == "link_errors")
    assert sick.id not in {id_ for each in found.jobs for id_ in each.findings}
    assert any("leaf00" in text for text in found.coverage.missing)


def test_without_cables_the_only_job_of_the_time_has_the_counters(tmp_path: Path) -> None:
    parts = [Job(job.name, job.hosts, job.begin, steps=job.steps).rows() for job in (FIRST, LATER)]
    rows = together(*parts, leaf(LATER, "n0", cables=False))
    found = diagnose(made(tmp_path / "s", rows))
    assert kinds_of(found) == {"first": set(), "later": {"link_errors"}}
    assert not any("leaf00" in text for text in found.coverage.missing)
