"""Clocks: a switch's offset is found where the job's rhythm tells it, and refused where not."""

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from conftest import Rows
from fabricobs.diagnosis.clocks import device_offsets, host_offsets
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.run import diagnose

START = datetime(2026, 3, 2, 9)
Make = Callable[[Rows], Path]


def run_of(
    *, ahead: float, checkpoint_every: int = 60, interval: float = 10.0, steps: int = 200
) -> Rows:
    """Steps of 2 s whose last 0.6 s send a gigabyte, and a leaf that counts it by its own clock."""
    chance = np.random.default_rng(5)
    moments, sent = [-1000.0], [0.0]
    rows: Rows = {"steps": [], "port_samples": []}
    now = 0.0
    for step in range(1, steps + 1):
        length = 2.0 + (0.01 * chance.standard_normal() if checkpoint_every else 0.0)
        moments += [now + length - 0.6, now + length]
        sent += [sent[-1], sent[-1] + 1e9]
        pause = 8.0 if checkpoint_every and step % checkpoint_every == 0 else 0.0
        now += length + pause
        for rank in range(4):
            rows["steps"].append(
                {
                    "file_id": "f",
                    "line": len(rows["steps"]) + 1,
                    "step": step,
                    "rank": rank,
                    "host": f"node{rank // 2}",
                    "ts": START + timedelta(seconds=now + (0.3 if rank // 2 else 0.0)),
                    "step_time_ms": (length + pause) * 1000,
                    "compute_ms": (length - 0.6) * 1000,
                    "comm_ms": 600.0,
                }
            )
    first, last = (-20.0, now + 20.0) if checkpoint_every else (30.0, now - 30.0)
    for number, moment in enumerate(np.arange(first, last, interval)):
        rows["port_samples"].append(
            {
                "file_id": f"p{number}",
                "format": "sonic_interfaces_counters",
                "device": "leaf01",
                "port": "Ethernet0",
                "ts": START + timedelta(seconds=float(moment) + ahead),
                "ts_source": "filename",
                "tx_bytes": int(1e12 + np.interp(moment, moments, sent)),
            }
        )
    return rows


@pytest.mark.parametrize("ahead", [-12.4, 0.0, 3.3])
@pytest.mark.parametrize("interval", [10.0, 30.0])
def test_checkpoints_and_starts_tell_the_offset(
    make_store: Make, ahead: float, interval: float
) -> None:
    store = make_store(run_of(ahead=ahead, interval=interval))
    (offset,) = device_offsets(Evidence(store))
    assert offset.seconds is not None
    # The job's clock is the lower median of its hosts': that of the one that is right.
    assert abs(offset.seconds - ahead) <= offset.error
    assert offset.certain == (abs(ahead) > 1)


@pytest.mark.parametrize("seed", range(4))
def test_late_ranks_are_dated_by_the_clock_of_their_steps(make_store: Make, seed: int) -> None:
    """Records alone number the steps, collectives alone tell who is late, and clocks are apart."""
    chance = np.random.default_rng(seed)
    hosts, steps, gpus = 5, 160, 4
    begin, slow = int(chance.integers(40, 90)), int(chance.integers(hosts))
    clocks = chance.normal(0, 20, hosts)
    late = chance.normal(0, 0.005, (steps, hosts * gpus))
    late[begin:, slow * gpus : (slow + 1) * gpus] += 0.5
    lengths = 2.0 + late.max(axis=1)
    ends = np.cumsum(lengths)
    rows: Rows = {"steps": [], "collectives": []}
    for step, rank in np.ndindex(late.shape):
        moment = START + timedelta(seconds=float(ends[step] + clocks[rank // gpus]))
        place = {"file_id": "f", "rank": rank, "host": f"node{rank // gpus}", "ts": moment}
        record = {"step": step, "line": step + 1, "step_time_ms": 1000 * float(lengths[step])}
        rows["steps"].append(place | record)
        waited = late[step].max() - late[step, rank]
        call = {"comm_id": "0x1", "global_rank": rank, "nranks": hosts * gpus, "nodes": hosts}
        call |= {"op": "AllReduce", "seq": step, "bytes": 1 << 30, "pid": 100 + rank % gpus}
        rows["collectives"].append(place | call | {"duration_us": 1e6 * float(waited + 0.6)})
    found = [f for f in diagnose(make_store(rows)).findings if f.kind == "straggler"]
    assert [e.host for f in found for e in f.entities] == [f"node{slow}"]
    assert found[0].start_step == pytest.approx(begin, abs=2)
    assert (found[0].end_step, found[0].state) == (pytest.approx(steps - 1, abs=2), "ongoing")


def test_a_steady_stretch_tells_nothing(make_store: Make) -> None:
    (offset,) = device_offsets(Evidence(make_store(run_of(ahead=4.0, checkpoint_every=0))))
    assert offset.seconds is None
    assert not offset.certain


def test_hosts_are_compared_by_the_ends_of_their_steps(make_store: Make) -> None:
    offsets = {o.device: o.seconds for o in host_offsets(Evidence(make_store(run_of(ahead=0.0))))}
    apart = (offsets["node1"] or 0.0) - (offsets["node0"] or 0.0)
    assert apart == pytest.approx(0.3, abs=0.01)


def test_too_few_steps_are_no_clock(make_store: Make) -> None:
    store = make_store(run_of(ahead=2.0, steps=15))
    assert device_offsets(Evidence(store)) == ()
    assert [offset.seconds for offset in host_offsets(Evidence(store))] == [None, None]


def test_corrected_times_are_the_jobs(make_store: Make) -> None:
    store = make_store(run_of(ahead=9.0))
    raw, corrected = Evidence(store), Evidence(store)
    corrected.set_clocks({"leaf01": 9.0})
    shift = raw.frame("device_traffic")["ts"] - corrected.frame("device_traffic")["ts"]
    assert shift.unique().to_list() == [timedelta(seconds=9)]
    assert (raw.frame("job_steps")["ts"] == corrected.frame("job_steps")["ts"]).all()
