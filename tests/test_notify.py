"""Notifications: what a target gets, what happens while it is down, that secrets stay secret."""

import json
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import pytest
from loopback import alertmanager, get_json, prometheus, receiver, tool, wait_for

from fabricobs.config.schema import Config
from fabricobs.diagnosis.findings import Entity, Finding
from fabricobs.diagnosis.incidents import Event, Incident, Raised
from fabricobs.operate.lease import WatchError
from fabricobs.operate.notify import add_pending, send_open_incidents, send_pending, targets_of
from fabricobs.operate.post import DeliveryError, post_json
from fabricobs.operate.state import Memory, load_memory, only_watch, save_memory
from fabricobs.operate.textfile import Health, write_textfile
from fabricobs.report.history import keep_event
from fabricobs.store.parts import Store

pytestmark = pytest.mark.slow

NOW = datetime.now(UTC).replace(tzinfo=None)
FINDING = Finding(
    kind="ecmp_skew",
    entities=(Entity("switch", switch="leaf01"),),
    severity="high",
    confidence=0.86,
    title='leaf01 sends 95% through 4 of 8 links <"\n>',
    explanation="Hashing does not explain it.",
    start=NOW - timedelta(minutes=20),
    start_step=157,
    loss_share=0.199,
    gpu_hours_lost=0.99,
    next_steps=("Compare the hash with a sibling.",),
)
INCIDENT = Incident(FINDING, "firing", NOW, (Raised("high", NOW - timedelta(minutes=10)),))
OVER = replace(INCIDENT, state="resolved", closed_at=NOW, ending="recovered")
NEW, RESOLVED = Event("new", INCIDENT, NOW), Event("resolved", OVER, NOW)


class Site:
    """A store with the targets of a configuration; notes and what was saved are kept."""

    def __init__(self, path: Path, **notify: object) -> None:
        self.path = path / "store"
        Store(self.path).create()
        config = Config.model_validate({"store": self.path, "notify": notify})
        self.targets = targets_of(config.notify, self.path, timedelta(minutes=5))
        self.notes: list[str] = []
        self.memory = Memory()

    def send(self, *events: Event) -> bool:
        self.memory = add_pending(self.memory, events, self.targets)
        _, well = send_pending(self.targets, self.memory, NOW, self._save, self.notes.append)
        return well

    def send_open_incidents(self, *incidents: Incident, now: datetime = NOW) -> bool:
        return send_open_incidents(self.targets, Memory(incidents), now, self.notes.append)

    def _save(self, memory: Memory) -> None:
        self.memory = memory


def test_a_webhook_gets_the_whole_finding_and_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "hunter2")
    with receiver() as kept:
        site = Site(tmp_path, webhook={"url": f"{kept.url}/hook", "token": {"env": "TOKEN"}})
        assert site.send(NEW, RESOLVED)
    first, last = kept.requests
    assert first.fields["Authorization"] == "Bearer hunter2"
    assert first.fields["Idempotency-Key"] == first.document["key"] != last.document["key"]
    assert (first.document["event"], last.document["event"]) == ("new", "resolved")
    assert first.document["finding"]["title"] == FINDING.title
    assert last.document["ending"] == "recovered"


def test_a_target_that_is_down_is_tried_again_and_the_order_kept(tmp_path: Path) -> None:
    with receiver() as kept:
        kept.status = 503
        site = Site(tmp_path, webhook={"url": kept.url})
        assert not site.send(NEW)
        assert site.notes == ["webhook: it answered 503; tried again next round"]
        assert not site.memory.pending["history"], "others are told all the same"
        assert not site.send(RESOLVED)
        kept.requests.clear()
        kept.status = 200
        assert site.send()
    assert [request.document["event"] for request in kept.requests] == ["new", "resolved"]
    assert site.send()
    assert len(kept.requests) == 2


@pytest.mark.parametrize("status", [301, 404, 500])
def test_only_a_success_is_one(status: int) -> None:
    with receiver() as kept:
        kept.status = status
        with pytest.raises(DeliveryError, match=f"it answered {status}"):
            post_json(kept.url, {})
    assert len(kept.requests) == 1


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:1/hunter2", "http://[hunter2", "http://hunter2.invalid/", "ftp:hunter2"],
)
def test_what_went_wrong_is_said_without_the_address(url: str) -> None:
    with pytest.raises(DeliveryError) as caught:
        post_json(url, {}, token="hunter2")
    assert "hunter2" not in str(caught.value)


def test_chats_are_told_through_apprise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("apprise")
    with receiver() as kept:
        monkeypatch.setenv("CHAT", kept.url.replace("http://", "json://") + "/chat")
        site = Site(tmp_path, base_url="http://logs", apprise={"urls": [{"env": "CHAT"}]})
        assert site.send(NEW, RESOLVED)
        kept.status = 500
        assert not site.send(NEW)
    first, last, *_ = (request.document for request in kept.requests)
    assert first["title"].startswith("New [high] leaf01 sends 95%")
    assert "Next: Compare the hash" in first["message"]
    assert "Culprit: leaf01" in first["message"]
    assert f"http://logs/incidents/{FINDING.id}.html" in first["message"].splitlines()
    assert "://" not in first["title"]
    assert (first["type"], last["type"]) == ("failure", "success")
    assert site.notes == ["apprise: not all of its targets took it; tried again next round"]


def test_history_in_the_store_knows_an_event_it_has(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.send(NEW, RESOLVED)
    site.send(NEW)
    from fabricobs.store.session import open_session

    rows = open_session(site.path, "findings").sql(
        "SELECT news, severity FROM findings ORDER BY run"
    )
    assert rows.fetchall() == [("new", "high"), ("resolved", "high")]


def test_alertmanager_keeps_one_alert_an_incident(tmp_path: Path) -> None:
    with receiver() as kept, alertmanager(tmp_path, kept.url) as address:
        site = Site(tmp_path, alertmanager={"url": address, "labels": {"cluster": "c1"}})
        # NOW may be longer ago than an alert lasts: Alertmanager drops what has ended.
        now = datetime.now(UTC).replace(tzinfo=None)
        over = replace(OVER, closed_at=now)
        worse = replace(INCIDENT, finding=replace(FINDING, loss_share=0.3, title="worse numbers"))
        assert site.send_open_incidents(INCIDENT, now=now)
        wait_for(lambda: kept.requests, "the first notification")
        assert site.send_open_incidents(worse, now=now)
        (alert,) = get_json(f"{address}/api/v2/alerts")
        assert alert["labels"] == {
            "alertname": "fabricobs_ecmp_skew", "incident": FINDING.id, "cluster": "c1",
            "switch": "leaf01", "severity": "high",
        }  # fmt: skip
        assert alert["annotations"]["loss_share"] == "30.0%"
        ends = datetime.fromisoformat(alert["endsAt"]).replace(tzinfo=None)
        assert ends - now == pytest.approx(timedelta(minutes=10), abs=timedelta(seconds=1))
        assert site.send_open_incidents(over, now=now)
        wait_for(lambda: len(kept.requests) > 1, "the notification that it is over")
        assert site.send_open_incidents(over, now=now)
    assert [r.document["status"] for r in kept.requests] == ["firing", "resolved"]


def test_a_severity_that_rises_is_a_new_alert_and_ends_the_old(tmp_path: Path) -> None:
    risen = (Raised("medium", NOW - timedelta(minutes=5)), Raised("high", NOW))
    with receiver() as kept:
        site = Site(tmp_path, alertmanager={"url": kept.url})
        site.send_open_incidents(replace(INCIDENT, raised=risen))
    old, new = kept.requests[0].document
    assert (old["labels"]["severity"], new["labels"]["severity"]) == ("medium", "high")
    assert old["endsAt"] == new["startsAt"] < new["endsAt"]


def test_an_alert_names_both_ends_of_a_cable_the_page_and_the_command(tmp_path: Path) -> None:
    ends = (
        Entity("nic", host="node01", nic="mlx5_0"),
        Entity("port", switch="leaf01", port="Ethernet8"),
    )
    cable = replace(INCIDENT, finding=replace(FINDING, entities=ends))
    with receiver() as kept:
        site = Site(tmp_path, base_url="https://logs/fabric/", alertmanager={"url": kept.url})
        site.send_open_incidents(cable)
    (alert,) = kept.requests[0].document
    named = {key: alert["labels"][key] for key in ("host", "nic", "peer_switch", "peer_port")}
    assert list(named.values()) == ["node01", "mlx5_0", "leaf01", "Ethernet8"]
    page = f"https://logs/fabric/incidents/{cable.finding.id}.html"
    assert alert["generatorURL"] == page == alert["annotations"]["report"]
    command = f"fabricobs explain {cable.finding.id} --store {site.path}"
    assert alert["annotations"]["command"] == command


def test_no_page_is_named_where_nobody_serves_it(tmp_path: Path) -> None:
    with receiver() as kept:
        site = Site(tmp_path, alertmanager={"url": kept.url}, webhook={"url": kept.url})
        site.send_open_incidents(INCIDENT)
        site.send(NEW)
    alert, event = kept.requests[0].document[0], kept.requests[1].document
    assert "generatorURL" not in alert
    assert event["page"] is None
    assert event["command"].startswith("fabricobs explain ")


def test_prometheus_reads_the_textfile(tmp_path: Path) -> None:
    path = tmp_path / "fabricobs.prom"
    write_textfile(path, (INCIDENT, OVER), Health(NOW, 3.5, True, NOW, {"webhook": 2}))
    assert [p.name for p in tmp_path.iterdir()] == ["fabricobs.prom"], "no half-written file left"
    lint = subprocess.run(
        [tool("promtool"), "check", "metrics"], input=path.read_bytes(), capture_output=True
    )
    assert (lint.returncode, lint.stdout, lint.stderr) == (0, b"", b"")
    with receiver() as kept, prometheus(tmp_path, kept.url.removeprefix("http://")) as address:
        kept.served = path.read_bytes
        query = f"{address}/api/v1/query?query=" + quote("fabricobs_incident_loss_ratio")
        wait_for(lambda: get_json(query)["data"]["result"], "Prometheus to have scraped")
        (found,) = get_json(query)["data"]["result"]
    assert float(found["value"][1]) == 0.199
    assert found["metric"]["culprit"] == "leaf01"


class TestMemory:
    @pytest.fixture
    def store(self, tmp_path: Path) -> Path:
        (tmp_path / ".watch").mkdir()
        return tmp_path

    def test_it_comes_back_as_it_was(self, store: Path) -> None:
        memory = Memory((INCIDENT, OVER), {"webhook": (NEW, RESOLVED)}, NOW, NOW, 1.5)
        save_memory(memory, store)
        assert load_memory(store, print) == memory

    def test_one_of_another_release_is_said_to_be(self, store: Path) -> None:
        (store / ".watch" / "state.json").write_text('{"version": 99}')
        with pytest.raises(WatchError, match="move it away"):
            load_memory(store, print)

    @pytest.mark.parametrize("damage", [b"", b'{"incidents": 3}', b'{"incid', b"\xff\x00"])
    def test_a_damaged_one_is_put_aside_and_made_again(self, store: Path, damage: bytes) -> None:
        """Of two incidents, one is over; the other has risen since it was told of first."""
        Store(store).create()
        medium, high = (Raised("medium", NOW - timedelta(minutes=9)), Raised("high", NOW))
        began = replace(INCIDENT, finding=replace(FINDING, severity="medium"), raised=(medium,))
        rose = replace(INCIDENT, raised=(medium, high))
        elsewhere = replace(FINDING, entities=(Entity("switch", switch="leaf02"),))
        for event in (
            Event("new", began, medium.at),
            Event("worse", rose, high.at),
            Event("new", replace(INCIDENT, finding=elsewhere), medium.at),
            Event("resolved", replace(OVER, finding=elsewhere), NOW),
        ):
            keep_event(event, store)
        (store / ".watch" / "state.json").write_bytes(damage)
        notes: list[str] = []
        memory = load_memory(store, notes.append)
        (incident,) = memory.incidents
        assert (incident.finding.id, incident.raised) == (FINDING.id, rose.raised)
        (aside,) = (store / ".watch").glob("state.json.damaged-*")
        assert aside.read_bytes() == damage
        assert aside.name in notes[0]
        assert "1 open incidents" in notes[0]
        assert load_memory(store, print) == memory, "it is kept, and no more to be said of it"

    def test_a_second_watch_is_told_of_the_first(self, store: Path) -> None:
        second = only_watch(store)
        with only_watch(store), pytest.raises(WatchError, match=r"process \d+ is watching it"):
            second.__enter__()
        with only_watch(store):
            pass


def test_no_secret_reaches_log_report_or_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole round with secrets of every kind, and targets that fail in every way."""
    (tmp_path / "token").write_text("hunter2\n")
    config = tmp_path / "fabricobs.toml"
    config.write_text(
        f'store = "store"\n[notify.textfile]\npath = "{tmp_path}/a.prom"\n'
        '[notify.webhook]\nurl = { env = "HOOK" }\ntoken = { file = "token" }\n'
        '[notify.alertmanager]\nurl = { env = "HOOK" }\ntoken = { file = "token" }\n'
        '[notify.apprise]\nurls = [{ env = "CHAT" }]\n'
    )
    monkeypatch.setenv("HOOK", "http://user:hunter2@127.0.0.1:1/hunter2")
    monkeypatch.setenv("CHAT", "jsons://user:hunter2@127.0.0.1:1/hunter2")
    logs = Path(__file__).parents[1] / "sample_data" / "logs"
    command = [sys.executable, "-c", "from fabricobs.cli import main; main()"]
    result = subprocess.run(
        [*command, "watch", logs, "--once", "--config", config], capture_output=True, text=True
    )
    assert "new critical" in result.stdout
    assert result.stderr.count("tried again next round") == 3, result.stderr
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    kept = [text for text in written if text.strip() != b"hunter2"]
    assert not any(b"hunter2" in text for text in kept)
    assert "hunter2" not in result.stdout + result.stderr
    assert json.loads((tmp_path / "store" / ".watch" / "state.json").read_text())["pending"]
