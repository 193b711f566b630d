"""The watch as it runs at a site: logs grow, a fault comes and goes, the watch is killed."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from live_cluster import Replay, write_cluster
from loopback import Receiver, alertmanager, receiver, wait_for

from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session

pytestmark = pytest.mark.slow

COMMAND = [sys.executable, "-c", "from fabricobs.cli import main; main()"]
# The day in stretches, so that a round falls into each part of the fault. The watch is killed at
# the end of each, and in the middle of as many more.
STRETCHES = 10
KILLS = int(os.environ.get("FABRICOBS_ROUNDS", "13"))


def measured(store: Path) -> dict[str, list[tuple[object, ...]]]:
    """The rows of the log, free of what tells which state of a file they are from."""
    session = open_session(store, "steps priority_samples port_samples nccl_channels")
    columns = {
        "steps": "step, rank, host, ts, step_time_ms, compute_ms, comm_ms, data_ms",
        "priority_samples": "device, port, priority, queue, ts, tx_bytes, pfc_rx_frames",
        "port_samples": "device, port, ts, rx_packets, tx_packets",
        "nccl_channels": "host, pid, channel, from_rank, to_rank, transport, nic_index",
    }
    return {
        table: sorted(session.sql(f"SELECT {names} FROM {table}").fetchall(), key=repr)
        for table, names in columns.items()
    }


def told(kept: Receiver, path: str) -> list[dict[str, object]]:
    return [request.document for request in list(kept.requests) if request.path == path]


class Life:
    """A watch from its start to its kill, when the block ends; its words go to a file."""

    def __init__(self, command: list[str], log: Path) -> None:
        self._log = log
        self._rounds_before = self._rounds()
        with log.open("a") as file:
            self.process = subprocess.Popen(command, stdout=file, stderr=file)

    def has_done_a_round(self) -> bool:
        assert self.process.poll() is None, self._log.read_text()
        return self._rounds() > self._rounds_before

    def __enter__(self) -> "Life":
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.wait()

    def _rounds(self) -> int:
        return self._log.read_text().count(" firing, ") if self._log.exists() else 0


def test_killed_and_restarted_it_tells_each_event_once(tmp_path: Path) -> None:
    """The day of a cluster, as fast as the machine can.

    The logs go on while the watch runs: it is killed anywhere, started again, and killed about when
    it has done a round, which is when it tells and notes what it told.
    """
    logs = tmp_path / "logs"
    logs.mkdir()
    replay = Replay(write_cluster(tmp_path / "source"), logs)
    chance = random.Random(KILLS)
    config = tmp_path / "fabricobs.toml"
    watch = [*COMMAND, "watch", str(logs), "--config", str(config)]
    log = tmp_path / "watch.log"
    with receiver() as kept, alertmanager(tmp_path, kept.url) as address:
        config.write_text(
            'store = "store"\n'
            # An alert ends two intervals after it was last told: longer than a restart takes.
            '[watch]\nevery = "2m"\nrecovering_after = "2m"\nresolved_after = "3m"\n'
            f'[notify.alertmanager]\nurl = "{address}"\n'
            f'[notify.webhook]\nurl = "{kept.url}/events"\n'
        )
        round_seconds = 8.0
        for stretch in range(STRETCHES):
            begin = replay.begin + (replay.end - replay.begin) * stretch / STRETCHES
            end = replay.begin + (replay.end - replay.begin) * (stretch + 1) / STRETCHES
            lives = max(KILLS - STRETCHES + stretch, 0) // STRETCHES
            # Where no watch looks on, nobody sees how fast the logs grow.
            with replay.playing(begin, end, round_seconds if lives else 0.0):
                for _ in range(lives):
                    with Life(watch, log):
                        time.sleep(chance.uniform(0, 1.2 * round_seconds))
            began = time.monotonic()
            with Life(watch, log) as life:
                wait_for(life.has_done_a_round, "a round", seconds=180)
                round_seconds = time.monotonic() - began
                time.sleep(chance.uniform(0, 0.5))
        wait_for(lambda: len(told(kept, "/alerts")) > 1, "Alertmanager to say that it is over")
        time.sleep(3)
    assert [document["status"] for document in told(kept, "/alerts")] == ["firing", "resolved"]
    (alert,) = told(kept, "/alerts")[0]["alerts"]  # type: ignore[misc]
    assert alert["labels"]["alertname"] == "fabricobs_ecmp_skew"
    assert alert["labels"]["switch"] == "leaf01"
    events = {str(document["key"]): document["event"] for document in told(kept, "/events")}
    assert list(events.values()) == ["new", "resolved"]
    alone = tmp_path / "alone"
    ingest([logs], Store(alone), Options())
    assert measured(tmp_path / "store") == measured(alone)
    history = open_session(tmp_path / "store", "findings").sql(
        "SELECT news FROM findings ORDER BY told"
    )
    assert history.fetchall() == [("new",), ("resolved",)]
