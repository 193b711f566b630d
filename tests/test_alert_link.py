"""From an alert that a real Alertmanager fires to the page of its incident, in a browser."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from loopback import alertmanager, get_json, receiver, tool, wait_for

import fabricobs
from conftest import ROOT
from fabricobs.diagnosis.findings import Diagnosis, Finding
from fabricobs.report.commands import parts_of
from fabricobs.report.wording import cost_words

sync_api = pytest.importorskip("playwright.sync_api")
NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium; $CHROMIUM names one"),
]


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder as a site would, at the address that `base_url` names."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass
class Fired:
    """A round of the watch, the alert as Alertmanager shows it, and as it notified others of it."""

    finding: Finding
    shown: dict[str, Any]
    notified: dict[str, Any]
    base_url: str
    store: Path


@pytest.fixture(scope="module")
def fired(sample_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fired]:
    tool("prometheus-alertmanager")
    folder = tmp_path_factory.mktemp("site")
    store = Path(shutil.copytree(sample_store, folder / "store"))
    pages = folder / "pages"
    pages.mkdir()
    config = folder / "fabricobs.toml"
    with (
        served(pages) as base_url,
        receiver() as kept,
        alertmanager(folder, kept.url) as address,
    ):
        config.write_text(
            f'store = "{store}"\n[watch]\nreport = "{pages}/report.html"\n'
            f'[notify]\nbase_url = "{base_url}"\n[notify.alertmanager]\nurl = "{address}"\n'
        )
        logs = ROOT / "sample_data" / "logs"
        notes: list[str] = []
        (done,) = fabricobs.watch([logs], config=config, once=True, say=notes.append)
        assert done.well, notes
        assert isinstance(done.diagnosis, Diagnosis)
        alerts = f"{address}/api/v2/alerts"
        wait_for(lambda: get_json(alerts), "Alertmanager to show the alert")
        wait_for(lambda: kept.requests, "Alertmanager to notify")
        (shown,) = get_json(alerts)
        (notified,) = kept.requests[0].document["alerts"]
        yield Fired(done.diagnosis.findings[0], shown, notified, base_url, store)


@pytest.fixture
def page(fired: Fired) -> "Iterator[sync_api.Page]":
    """The page that the alert links to, opened; nothing but the site is asked for."""
    asked: list[str] = []
    said: list[str] = []
    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        opened = browser.new_page()
        opened.on("request", lambda request: asked.append(request.url))
        opened.on("pageerror", lambda error: said.append(str(error)))
        answer = opened.goto(fired.notified["generatorURL"])
        assert answer is not None
        assert answer.status == 200
        yield opened
        browser.close()
    assert said == []
    assert [url for url in asked if not url.startswith(fired.base_url)] == []


def test_the_alert_names_its_page_its_runbook_and_its_command(fired: Fired) -> None:
    finding = fired.finding
    address = f"{fired.base_url}/incidents/{finding.id}.html"
    for alert in (fired.shown, fired.notified):
        assert alert["labels"]["incident"] == finding.id
        assert alert["labels"]["switch"] == "leaf01"
        assert alert["generatorURL"] == address
        told = alert["annotations"]
        assert told["report"] == told["runbook_url"] == address
        assert told["command"] == f"fabricobs explain {finding.id} --store {fired.store}"
        assert told["summary"] == finding.title


def test_the_link_leads_to_the_page_of_that_incident(fired: Fired, page: "sync_api.Page") -> None:
    finding = fired.finding
    assert finding.title in page.locator("h1").inner_text()
    text = " ".join(page.locator("body").inner_text().split())
    assert finding.id in text
    assert "leaf01" in text
    assert "step 157" in text
    assert cost_words(finding) in text
    assert all(part.strip() in text for part, _ in parts_of(finding.next_steps[0]))
    assert page.locator("svg:visible").count() > 0


def test_from_there_a_reader_gets_to_the_switch_and_back(
    fired: Fired, page: "sync_api.Page"
) -> None:
    page.locator("main a[href*='switches/leaf01']").first.click()
    page.wait_for_load_state()
    assert "leaf01" in page.locator("h1").inner_text()
    page.locator(f"main a[href*='incidents/{fired.finding.id}']").first.click()
    page.wait_for_load_state()
    assert page.url == fired.notified["generatorURL"]
