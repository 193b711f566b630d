"""The page in a browser: it draws, sorts, follows the reader, and runs no text of a log."""

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from loopback import receiver
from report_case import EVIL, big_store, evil_diagnosis, evil_store

from conftest import ROOT, Run
from fabricobs.report.figures import draw_figures
from fabricobs.report.page import draw, write_page
from fabricobs.report.writing import write_pages

sync_api = pytest.importorskip("playwright.sync_api")
NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium; $CHROMIUM names one"),
]
DRAWN = "document.documentElement.dataset.script === 'done'"
MOST_ASKS = 600


def wait_until(page: "sync_api.Page", condition: str) -> None:
    """Ask the page until a condition holds.

    The page's policy lets no string run but at once: what waits inside the page itself fails.
    """
    for _ in range(MOST_ASKS):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    pytest.fail(f"never: {condition}")


@pytest.fixture(scope="module")
def browser() -> "Iterator[sync_api.Browser]":
    with sync_api.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser")
    write_page(evil_diagnosis(), evil_store(folder / "store"), folder / "report.html")
    return folder / "report.html"


@pytest.fixture
def page(browser: "sync_api.Browser", report: Path) -> "Iterator[sync_api.Page]":
    """The page, all its charts drawn; a message in its console or a dialog fails the test."""
    opened = browser.new_page()
    said: list[str] = []
    opened.on("console", lambda message: said.append(message.text))
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    opened.goto(report.as_uri())
    wait_until(opened, DRAWN)
    yield opened
    opened.close()
    assert said == []


def test_every_chart_is_drawn(page: "sync_api.Page") -> None:
    charts = page.locator(".chart")
    assert charts.count() == 5
    for number in range(5):
        marks = charts.nth(number).locator("svg.wide .mark-group path, svg.wide .mark-group text")
        assert marks.count() > 5
    assert page.locator("svg:visible").count() == 5


def test_the_browser_asks_for_nothing_else(browser: "sync_api.Browser", report: Path) -> None:
    opened = browser.new_page()
    asked: list[str] = []
    opened.on("request", lambda request: asked.append(request.url))
    opened.goto(report.as_uri())
    wait_until(opened, DRAWN)
    assert asked == [report.as_uri()]
    opened.close()


def test_markup_of_a_log_shows_as_text(page: "sync_api.Page") -> None:
    assert EVIL in page.locator("h1").inner_text()
    assert page.locator("main script").count() == 0
    chart = page.locator("#finding-1-rank-compute")
    assert EVIL in (chart.text_content() or "")


def test_a_table_is_sorted_by_the_keyboard(page: "sync_api.Page") -> None:
    head = page.locator("#findings ~ .scroll th", has_text="Finding")
    rows = page.locator("#findings ~ .scroll tbody th")
    kinds = [text.split()[0] for text in rows.all_inner_texts()]
    assert kinds == ["straggler", "ecmp_skew", "throughput_drop"]
    head.get_by_role("button").focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    assert [text.split()[0] for text in rows.all_inner_texts()] == sorted(kinds)
    page.keyboard.press("Space")
    assert head.get_attribute("aria-sort") == "descending"
    assert [text.split()[0] for text in rows.all_inner_texts()] == sorted(kinds, reverse=True)
    assert page.locator("th[aria-sort]").count() == 1


def test_numbers_sort_by_size_and_what_is_unknown_comes_last(page: "sync_api.Page") -> None:
    table = page.locator("#finding-1 > .scroll table")
    head = table.locator("th", has_text="Expected")
    cells = table.locator("tbody tr td:nth-child(3)")
    for order in ("ascending", "descending"):
        head.get_by_role("button").click()
        assert head.get_attribute("aria-sort") == order
        assert cells.all_inner_texts() == ["608 ms", "-"]


def test_charts_answer_the_pointer(page: "sync_api.Page") -> None:
    page.locator("#topology svg.wide .mark-symbol path").first.hover()
    tip = page.locator("#tip")
    tip.wait_for()
    assert "mark" in tip.inner_text()


def test_a_line_tells_the_row_under_the_pointer_in_time(page: "sync_api.Page") -> None:
    frame = page.locator("#finding-2-uplink-shares svg.wide")
    frame.scroll_into_view_if_needed()
    box = frame.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 0.45 * box["height"])
    words = page.locator("#tip").inner_text()
    assert re.search(r"until \(UTC\): 2026-03-02 09:\d\d:00", words), words


@pytest.fixture(scope="module")
def sample_page(
    sample_store: Path, tmp_path_factory: pytest.TempPathFactory, fabricobs: Run
) -> Path:
    out = tmp_path_factory.mktemp("sample") / "report.html"
    told = fabricobs("report", "--store", sample_store, "--out", out)
    assert told.returncode == 0, told.stderr
    return out


def words_at(page: "sync_api.Page", chart: str, x: float, y: float) -> list[str]:
    """Lines of the tooltip at a place of a chart's frame, 0 to 1 from the left and the top."""
    frame = page.locator(f"{chart} svg.wide")
    frame.scroll_into_view_if_needed()
    box = frame.bounding_box()
    assert box is not None
    left, top, width, height = map(float, (frame.get_attribute("data-frame") or "").split())
    whole = list(map(float, (frame.get_attribute("viewBox") or "").split()))
    scale = box["width"] / whole[2]
    page.mouse.move(box["x"] + scale * (left + x * width), box["y"] + scale * (top + y * height))
    return page.locator("#tip").inner_text().splitlines()


def test_of_many_lines_all_are_told_the_accused_first(
    browser: "sync_api.Browser", sample_page: Path
) -> None:
    page = browser.new_page()
    page.goto(sample_page.as_uri())
    wait_until(page, DRAWN)
    chart = "#finding-1-uplink-shares"
    until, heads, *lines = words_at(page, chart, 0.83, 0.02)
    assert until.startswith("until (UTC): 2026-03-02 09:1")
    assert heads == "port: share"
    assert len({line.partition(":")[0] for line in lines}) == 8
    hot = page.locator(f"{chart} .data tr[data-marked] td:first-child").all_text_contents()
    few = len(set(hot))
    assert 0 < few < 8
    assert {line.partition(":")[0] for line in lines[:few]} == set(hot)
    shares = [float(line.partition(": ")[2].strip(" %")) for line in lines]
    assert shares[:few] == sorted(shares[:few], reverse=True)
    assert shares[few:] == sorted(shares[few:], reverse=True)
    page.evaluate(
        f"""() => {{ for (const row of document.querySelectorAll("{chart} .data tr[data-x]")) {{
          const other = row.cloneNode(true);
          other.cells[0].textContent += "'";
          row.after(other);
        }} }}"""
    )
    lines = words_at(page, chart, 0.83, 0.03)[2:]
    assert len(lines) == 9
    assert lines[-1] == "and 8 more"
    page.close()


def test_a_bar_is_told_by_its_row(browser: "sync_api.Browser", sample_page: Path) -> None:
    page = browser.new_page()
    page.goto(sample_page.as_uri())
    wait_until(page, DRAWN)
    names = page.locator("#answer-sick-link .data td:first-child").all_text_contents()
    for place, name in enumerate(names):
        told = words_at(page, "#answer-sick-link", 0.95, (place + 0.5) / len(names))
        assert told[0] == f"name: {name}"
    page.close()


def test_one_range_of_time_shows_in_every_chart(page: "sync_api.Page") -> None:
    frame = page.locator("#step-time svg.wide")
    frame.scroll_into_view_if_needed()
    box = frame.bounding_box()
    assert box is not None
    for share, act in ((0.3, page.mouse.down), (0.6, page.mouse.up)):
        page.mouse.move(box["x"] + share * box["width"], box["y"] + 0.6 * box["height"])
        act()
    marked = page.locator("svg.wide:has(> .range)")
    assert marked.count() == 4  # all but the topology
    rows = "[...document.querySelector('#step-time .data table').tBodies[0].rows]"
    shown = f"{rows}.filter(row => !row.hidden).map(row => Number(row.dataset.x))"
    steps = page.evaluate(shown)
    assert 20 < min(steps) < max(steps) < 80
    begin = page.get_by_label("From (UTC)")
    assert begin.input_value().startswith("2026-03-02T09:0")
    page.get_by_role("button", name="Clear").click()
    assert page.locator(".range").count() == 0
    assert begin.input_value() == ""


def test_the_range_is_set_by_the_keyboard(page: "sync_api.Page") -> None:
    page.get_by_label("From (UTC)").fill("2026-03-02T09:02:00")
    page.get_by_label("To (UTC)").fill("2026-03-02T09:04:00")
    page.get_by_role("button", name="Mark").press("Enter")
    assert page.locator("svg.wide > .range").count() == 4


def test_a_table_is_filtered_and_saved_as_shown(page: "sync_api.Page") -> None:
    page.locator("#step-time details.data summary").click()
    page.locator("#step-time").get_by_role("searchbox").first.fill("119")
    rows = page.locator("#step-time .data").locator("tbody").first.locator("tr:visible")
    assert rows.count() == 1
    with page.expect_download() as download:
        page.locator("#step-time").get_by_role("button", name="Save as CSV").first.click()
    lines = Path(download.value.path()).read_text(encoding="utf-8").splitlines()
    assert lines[0] == "job,step,step time (ms),ended (UTC)"
    assert lines[1:] == [f'job{EVIL},119,"1,500",2026-03-02 09:09:55']


def test_a_command_is_copied(page: "sync_api.Page") -> None:
    page.locator("#finding-1 code.copy + .act").first.click()
    wait_until(page, "[...document.querySelectorAll('.act')].some(b => b.textContent == 'Copied')")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    diagnosis, store = evil_diagnosis(), evil_store(folder / "store")
    figures = draw_figures(diagnosis, store)
    write_pages(diagnosis, figures, draw(figures), store, folder / "pages")
    return folder / "pages"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_any_state(
    browser: "sync_api.Browser", report: Path, site: Path, scheme: str
) -> None:
    kinds = ("index", "history", "jobs/*", "hosts/*", "switches/*", "incidents/*")
    of_site = [next(site.glob(f"{kind}.html")) for kind in kinds]
    for page in (report, *of_site):
        check_with_axe(browser, page, scheme)


def check_with_axe(browser: "sync_api.Browser", report: Path, scheme: str) -> None:
    """Check a page as it opens, with all of its details open, and on a telephone."""
    axe = pytest.importorskip("axe_playwright_python.base")
    # What looks at the page is no part of it: its script is let in past the policy.
    opened = browser.new_page(bypass_csp=True, color_scheme=scheme)
    opened.goto(report.as_uri())
    wait_until(opened, DRAWN)
    opened.evaluate(axe.AXE_SCRIPT)
    everything = "() => document.querySelectorAll('details').forEach(each => { each.open = true; })"
    for state, width in ((None, 1200), (everything, 1200), (None, 390)):
        opened.set_viewport_size({"width": width, "height": 800})
        if state:
            opened.evaluate(state)
        violations = opened.evaluate("axe.run()")["violations"]
        assert [(each["id"], each["nodes"][0]["html"]) for each in violations] == [], report
    opened.close()


def test_a_site_opens_from_files_and_under_the_policy_of_jenkins(
    browser: "sync_api.Browser", site: Path
) -> None:
    opened = browser.new_page()
    said: list[str] = []
    opened.on("console", lambda message: said.append(message.text))
    opened.goto((site / "index.html").as_uri())
    wait_until(opened, DRAWN)
    opened.locator("#findings ~ .scroll tbody a").first.click()
    assert "/incidents/" in opened.url
    opened.locator("dl.facts a").first.click()
    assert "/hosts/" in opened.url
    assert said == []
    opened.close()
    policy = "sandbox; default-src 'none'; img-src 'self'; style-src 'self';"
    with served(site, {"Content-Security-Policy": policy}) as address:
        opened = browser.new_page()
        opened.goto(f"{address}/index.html")
        assert opened.locator(".chart svg:visible").count() == opened.locator("figure").count() > 0
        assert opened.evaluate("getComputedStyle(document.body).marginTop") == "0px"
        opened.close()


def colours(page: "sync_api.Page") -> list[str]:
    """Colour of the paper, of the words of a chart, and of a line in it."""
    found: list[str] = page.evaluate(
        """() => [
          getComputedStyle(document.body).backgroundColor,
          getComputedStyle(document.querySelector(".chart text")).fill,
          getComputedStyle(document.querySelector("#step-time svg.wide .mark-line path")).stroke,
        ]"""
    )
    return found


def test_colours_follow_the_reader_and_paper_is_white(page: "sync_api.Page") -> None:
    page.emulate_media(color_scheme="light")
    light = colours(page)
    page.emulate_media(color_scheme="dark")
    dark = colours(page)
    assert light[0] == "rgb(255, 255, 255)"
    assert all(a != b for a, b in zip(light, dark, strict=True))
    page.emulate_media(color_scheme="dark", media="print")
    paper = colours(page)
    assert paper[0] == "rgb(255, 255, 255)"
    assert paper[2] == light[2]


def test_a_screen_reader_is_told_what_is_there(page: "sync_api.Page") -> None:
    charts = page.locator(".chart").all()
    for chart in charts:
        assert chart.get_attribute("aria-label")
        described = chart.get_attribute("aria-describedby")
        assert page.locator(f"[id='{described}']").inner_text()
    assert page.get_by_role("main").count() == 1
    assert page.get_by_role("heading", level=1).count() == 1
    text = page.locator("#topology-of ~ details").inner_text()
    assert "culprit of finding 2" in text


def test_nothing_is_wider_than_a_telephone(page: "sync_api.Page") -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    # The page lays itself out anew after the call has returned.
    wait_until(page, "document.documentElement.scrollWidth === 390")


def test_the_page_of_a_big_cluster_opens_without_a_word(
    browser: "sync_api.Browser", tmp_path: Path
) -> None:
    write_page(evil_diagnosis(), big_store(tmp_path / "store"), tmp_path / "big.html")
    opened = browser.new_page()
    said: list[str] = []
    opened.on("console", lambda message: said.append(message.text))
    opened.goto((tmp_path / "big.html").as_uri())
    wait_until(opened, DRAWN)
    assert said == []
    assert opened.locator("#topology svg:visible").count() == 1
    opened.close()


def test_an_alert_leads_to_the_page_of_its_incident(
    browser: "sync_api.Browser", sample_store: Path, tmp_path: Path, fabricobs: Run
) -> None:
    store = Path(shutil.copytree(sample_store, tmp_path / "store"))
    config = tmp_path / "fabricobs.toml"
    with receiver() as kept, served(store) as site:
        config.write_text(
            f'[notify]\nbase_url = "{site}"\n[notify.alertmanager]\nurl = "{kept.url}"\n'
        )
        logs = ROOT / "sample_data" / "logs"
        told = fabricobs("watch", logs, "--once", "--store", store, "--config", config)
        assert told.returncode == 2, told.stderr
        (alert,) = kept.requests[-1].document
        opened = browser.new_page()
        opened.goto(alert["generatorURL"])
        assert opened.locator("h1").inner_text() == f"{alert['annotations']['summary']}."
        assert opened.locator("article.finding").count() == 1
        opened.close()


@contextmanager
def served(folder: Path, headers: Mapping[str, str] | None = None) -> Iterator[str]:
    """Serve a folder as a site's web server would, with headers of its own."""

    class Handler(SimpleHTTPRequestHandler):
        def end_headers(self) -> None:
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            super().end_headers()

    handler = partial(Handler, directory=folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
