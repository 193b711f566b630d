"""The watch over logs and a store in an object store, from whatever machine its rounds run."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from loopback import receiver, wait_for
from remote_logs import put, upload
from small_store import STEP, steps, write_days

from conftest import ROOT, Run
from fabricobs.config.schema import Config
from fabricobs.exceptions import UserError
from fabricobs.operate import lease, watch
from fabricobs.operate.state import only_watch
from fabricobs.store.location import place_of
from fabricobs.store.parts import Store
from fabricobs.store.storage import storage_of

pytestmark = pytest.mark.slow
LOGS = ROOT / "sample_data" / "logs"
QUICK = (
    "from fabricobs.operate import lease\n"
    "lease._RENEWED_EVERY_S, lease._EXPIRES_AFTER_S, lease._LOOKED_EVERY_S = 0.5, 4, 0.2\n"
    "from fabricobs.cli import main; main()"
)


@pytest.fixture(autouse=True)
def _known_anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(lease, "_RENEWED_EVERY_S", 0.2)
    monkeypatch.setattr(lease, "_EXPIRES_AFTER_S", 2.0)
    monkeypatch.setattr(lease, "_LOOKED_EVERY_S", 0.1)
    yield
    storage_of.cache_clear()


@pytest.fixture
def logs(s3: str) -> str:
    """An address beside that of the store."""
    return f"{s3.removesuffix('/store')}/logs"


def another_machine(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    """Go on as a machine that has no copy of anything."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    storage_of.cache_clear()


def test_rounds_go_on_where_the_last_one_ended(
    s3: str, logs: str, fabricobs: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload(shutil.copytree(LOGS, tmp_path / "logs"), logs)
    first = fabricobs("watch", logs, "--once", "--store", s3)
    assert first.returncode == 2, first.stderr
    assert first.stdout.count("\n") == 1 and " new critical " in first.stdout
    page = Store(place_of(Path(s3))).storage.read("report.html")
    assert b"leaf01" in page and len(page) > 10_000, "the report lies in the store"

    another_machine(monkeypatch, tmp_path / "another")
    again = fabricobs("watch", logs, "--once", "--store", s3)
    assert (again.returncode, again.stdout) == (2, ""), "the incident is known, and not told again"
    assert "0 files read" in again.stderr, "objects are known by their ETag"
    asked = fabricobs("query", "incidents", "--store", s3, "--format", "csv")
    assert asked.stdout.count("ecmp_skew") == 1


def test_a_grown_object_is_read_in_the_next_round(s3: str, logs: str, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    write_days(folder, 2)
    upload(folder, logs)
    config = Config(store=place_of(Path(s3)))
    watch.watch_once([Path(logs)], config, print)
    with (folder / "day02.jsonl").open("a") as log:
        log.write(STEP.format(3, 3))
    put(folder, logs, "day02.jsonl")
    watch.watch_once([Path(logs)], config, print)
    assert steps(Store(config.store)) == [1, 2, 3]


class TestOneWatch:
    """Two watches of a store would tell everything twice: the second one is refused."""

    def test_beside_another_it_is_refused_and_after_it_not(
        self, s3: str, logs: str, fabricobs: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_days(tmp_path / "logs", 1)
        upload(tmp_path / "logs", logs)
        Store(place_of(Path(s3))).create()
        with only_watch(place_of(Path(s3))) as check_held:
            another_machine(monkeypatch, tmp_path / "another")
            refused = fabricobs("watch", logs, "--once", "--store", s3)
            assert refused.returncode == 3
            assert re.search(rf"store {s3}: process \d+ on \S+ is watching it", refused.stderr)
            check_held()
        notes: list[str] = []
        with only_watch(place_of(Path(s3)), notes.append):
            assert notes == [], "it was released: nothing to wait for"

    def test_one_that_stood_still_ends_when_another_has_taken_over(
        self, s3: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        place = place_of(Path(s3))
        Store(place).create()
        monkeypatch.setattr(lease, "_RENEWED_EVERY_S", 60)
        notes: list[str] = []
        with only_watch(place) as first_held, only_watch(place, notes.append) as second_held:
            assert "did not end; waiting up to" in notes[0]
            second_held()
            time.sleep(lease._EXPIRES_AFTER_S)
            with pytest.raises(UserError, match="is watching it; rounds do not overlap"):
                first_held()
            second_held()

    def test_of_two_that_come_at_once_one_is_refused(self, s3: str) -> None:
        place = place_of(Path(s3))
        Store(place).create()
        storage = storage_of(place)
        first, second = lease.Lease(storage), lease.Lease(storage)
        found = second._newest()
        first.acquire(print)
        second._newest = lambda: found  # type: ignore[method-assign]  # it looked before
        with pytest.raises(UserError, match="is watching it"):
            second.acquire(print)
        first.release()


def test_killed_and_started_elsewhere_it_tells_each_event_once(
    s3: str, logs: str, tmp_path: Path
) -> None:
    upload(shutil.copytree(LOGS, tmp_path / "logs"), logs)
    with receiver() as kept:
        config = tmp_path / "site.toml"
        config.write_text(f'[notify.webhook]\nurl = "{kept.url}/hook"\n')
        command = [sys.executable, "-c", QUICK, "watch", logs, "--store", s3, "--every", "1s"]
        told = tmp_path / "told"
        for life in range(2):
            environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / f"machine{life}")}
            with told.open("w") as file:
                running = subprocess.Popen(
                    [*command, "--config", str(config)], stdout=file, stderr=file, env=environment
                )
            try:
                wait_for(lambda: told.read_text().count(" firing, ") >= 2, "two rounds", 240)
            finally:
                running.kill()
                running.wait()
        assert "did not end; waiting" in told.read_text()
        assert [request.document["event"] for request in kept.requests] == ["new"]


def test_pages_need_a_directory_that_is_served(
    s3: str, logs: str, fabricobs: Run, tmp_path: Path
) -> None:
    config = tmp_path / "site.toml"
    config.write_text('[notify]\nbase_url = "https://fabric.example"\n')
    done = fabricobs("watch", logs, "--once", "--store", s3, "--config", config)
    assert done.returncode == 3
    assert "set watch.report to a file in the directory that is served" in done.stderr
