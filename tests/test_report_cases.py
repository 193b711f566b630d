"""What a reader sees of ten clusters in a browser: axes, legends, tooltips, at every width."""

import gzip
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from report_case import big_store, evil_diagnosis
from test_report_browser import CHROMIUM, DRAWN, wait_until

from fabricobs.api import ingest, open_store, simulate
from fabricobs.report.page import write_page

sync_api = pytest.importorskip("playwright.sync_api")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium; $CHROMIUM names one"),
]

# Of each chart that is shown: its texts, the words of its marks, and the texts that lie outside it.
FIGURES = """() => [...document.querySelectorAll("figure")].map((figure) => {
  const svg = [...figure.querySelectorAll("svg")].find((each) => each.getClientRects().length);
  const all = (name) => [...svg.querySelectorAll(`.${name} text`)].map((text) => text.textContent);
  const frame = svg.getBoundingClientRect();
  const outside = [...svg.querySelectorAll("text")].filter((text) => {
    const box = text.getBoundingClientRect();
    return box.width && (box.left < frame.left - 2 || box.right > frame.right + 2
      || box.top < frame.top - 2 || box.bottom > frame.bottom + 2);
  }).map((text) => text.textContent);
  return {
    key: figure.id, axes: all("role-axis-title"), ticks: all("role-axis-label"),
    legend: [...all("role-legend-title"), ...all("role-legend-label")].filter(Boolean),
    texts: all("role-mark"), outside,
    words: [...svg.querySelectorAll("title")].map((title) => title.textContent),
  };
})"""
# Width and medium: a wide screen, a usual one, a telephone, and the text of A4 within its margins.
SHEETS = ((1920, "screen"), (1200, "screen"), (390, "screen"), (688, "print"))
STEPS = {"axes": ["step", "step time (ms)"], "legend": ["step time", "pace (median of a stretch)"]}
TIME = re.compile(r"time \(UTC\), \d{4}-\d\d-\d\d( to \d{4}-\d\d-\d\d)?")


@dataclass(frozen=True)
class Case:
    """A simulated cluster and its second chart: its texts, words of a mark, axes, legend.

    `toml` is a scenario of its own, of that name; `screen` are words of the first screen.
    """

    scenario: str
    chart: str = ""
    texts: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    axes: tuple[str, ...] = ()
    legend: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    toml: str = ""
    screen: tuple[str, ...] = ()


TWO_JOBS = """
title = "Two jobs at once, the cable of a host of one corrupts data"
teaches = "One fault, one job."
[cluster]
gpus = 32
[[jobs]]
name = "pretrain"
share = 0.5
[[jobs]]
name = "finetune"
compute_seconds = 0.9
parameters = 7_000_000_000
steps = 450
checkpoint_every = 0
[[faults]]
kind = "bad_cable"
slowdown = 1.2
at = 0.3
"""
GPUS_512 = """
title = "512 GPUs in short, and a slow rank"
teaches = "A page of a large cluster."
[cluster]
gpus = 512
[[jobs]]
name = "pretrain"
steps = 80
[[faults]]
kind = "straggling_rank"
slowdown = 1.25
at = 0.4
until = 0.8
"""
RANK_COMPUTE: Mapping[str, tuple[str, ...]] = {
    "texts": ("rank ",),
    "words": ("rank: ", "host: node", "from step: ", "longer than peers: "),
    "axes": ("step", "rank"),
    "legend": ("longer than peers (%)",),
}
CASES = (
    Case("healthy"),
    Case(
        "sample",
        "uplink-shares",
        texts=("start ",),
        axes=("time (UTC)", "share of uplink traffic (%)"),
        legend=("other links", "even share", "links of the finding"),
    ),
    Case(
        "straggling_rank",
        "rank-compute",
        screen=("computes", "nvidia-smi"),
        **RANK_COMPUTE,
    ),
    Case(
        "bad_cable",
        "link-ends",
        texts=("(culprit): ", "peak ", "start "),
        words=("counter: ", "value: ", "from (UTC): 2026-", "until: 2026-"),
        axes=("time (UTC)",),
    ),
    Case(
        "pfc_storm",
        "pause-tree",
        texts=("(root)", "/s", "1 hop"),
        words=("link: ", "pauses ", "frames/s over "),
    ),
    Case(
        "hang",
        "hang-progress",
        texts=("rank ",),
        words=("ranks in a row: ", "launched last: ", "watchdog: "),
        axes=("rank", "number of the collective"),
        legend=("ranks that wait", "missing ranks"),
    ),
    Case("gpudirect_off", "settings-compared", texts=("≠ off",), words=("fact: ", "value: off")),
    Case(
        "ecn_thresholds",
        "queue-signals",
        texts=("pauses sent", "peak "),
        words=("counter: ", "/s"),
        axes=("time (UTC)",),
    ),
    Case("sample", only=("switches", "spines")),
    Case(
        "two_faults",
        "link-ends",
        texts=("(culprit): ", "peak "),
        axes=("time (UTC)",),
        screen=("Also found", "computes", "mlxlink -d mlx5_"),
    ),
    Case(
        "two_jobs",
        "link-ends",
        texts=("(culprit): ", "peak "),
        axes=("time (UTC)",),
        screen=("2 jobs: 1 with a problem", "pretrain"),
        toml=TWO_JOBS,
    ),
    # Its pace gets better near the right edge, where a label has little room.
    Case("gpus_512", "rank-compute", screen=("computed",), toml=GPUS_512, **RANK_COMPUTE),
)
NAMES = [case.scenario + ("-counters-only" if case.only else "") for case in CASES]


@pytest.fixture(scope="module")
def browser() -> "Iterator[sync_api.Browser]":
    with sync_api.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


def opened(browser: "sync_api.Browser", path: Path, **options: Any) -> "sync_api.Page":
    page = browser.new_page(**options)
    page.goto(path.as_uri())
    if options.get("java_script_enabled", True):
        wait_until(page, DRAWN)
    return page


def check_at_every_width(browser: "sync_api.Browser", path: Path) -> list[Mapping[str, Any]]:
    """Check what holds of every chart; return the charts of a wide screen."""
    wide: list[Mapping[str, Any]] = []
    for width, media in SHEETS:
        page = opened(browser, path, viewport={"width": width, "height": 800})
        page.emulate_media(media=media)
        figures = page.evaluate(FIGURES)
        wide = wide or figures
        for figure in figures:
            assert figure["outside"] == [], (width, media, figure["key"])
            assert not re.search(r"\d{11}|\d\.\d{6}|NaN|undefined|null", json.dumps(figure)), figure
            if figure["axes"][:1] in (["step"], ["rank"]):
                assert not any("." in tick for tick in figure["ticks"] if "%" not in tick)
        for table in page.locator(".scroll:has(.readings)").all():
            assert table.evaluate("each => each.scrollWidth <= each.clientWidth"), (width, media)
        wait_until(page, f"document.documentElement.scrollWidth === {width}")
        page.close()
    return wide


def check_in_every_state(browser: "sync_api.Browser", path: Path) -> None:
    """Check that axe finds nothing in light and dark, and that all is there without a script."""
    axe = pytest.importorskip("axe_playwright_python.base")
    for scheme in ("light", "dark"):
        # What looks at the page is no part of it: its script is let in past the policy.
        page = opened(browser, path, bypass_csp=True, color_scheme=scheme)
        page.evaluate(axe.AXE_SCRIPT)
        violations = page.evaluate("axe.run()")["violations"]
        assert [(each["id"], each["nodes"][0]["html"]) for each in violations] == []
        page.close()
    page = opened(browser, path, java_script_enabled=False)
    assert page.locator(".chart svg.wide:visible").count() == page.locator("figure").count()
    page.close()


def first_screen(browser: "sync_api.Browser", path: Path) -> str:
    """Return what the head of the page says."""
    page = opened(browser, path)
    words: str = page.locator("header").inner_text()
    page.close()
    return words


def top(part: "sync_api.Locator") -> float:
    """Return where on the page a part begins."""
    y: float = part.evaluate("each => each.getBoundingClientRect().top + scrollY")
    return y


def check_rows(browser: "sync_api.Browser", path: Path) -> None:
    """Check that the first screen leads to rows that name a culprit, and to their SQL."""
    page = opened(browser, path, viewport={"width": 1200, "height": 900})
    page.get_by_role("link", name="the rows behind it").click()
    rows = page.locator(page.evaluate("`[id='${location.hash.slice(1)}']`"))
    for table in rows.locator("table").all():
        assert table.is_visible()
    assert "name" in rows.locator("caption").last.inner_text()
    page.get_by_role("link", name="lines of the input").click()
    lines_of_input = page.locator(page.evaluate("`[id='${location.hash.slice(1)}']`"))
    article = page.locator("article").first
    assert top(lines_of_input) < top(article.locator("figure").first)
    assert top(lines_of_input) - top(article) < 900
    quoted = lines_of_input.locator("td:has(code.copy)")
    for cell in quoted.all():
        place, *told = cell.locator("code").all_inner_texts()
        path, _, line = place.partition(".gz:")
        with gzip.open(f"{path}.gz", "rt") as file:
            lines = file.read().splitlines()
        assert all(
            " ".join(lines[int(line) - 1].split()).startswith(text.rstrip("…")) for text in told
        )
    rows.locator("summary", has_text="SQL").click()
    sql = rows.locator("pre").inner_text()
    assert sql.startswith("SELECT * FROM (")
    assert "\nWHERE " in sql
    page.close()


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_charts_say_what_they_show(browser: "sync_api.Browser", case: Case, tmp_path: Path) -> None:
    scenario, gpus = case.scenario, 32 if not case.toml else None
    if case.toml:
        scenario = str(tmp_path / f"{case.scenario}.toml")
        Path(scenario).write_text(case.toml, encoding="utf-8")
    (cluster,) = simulate(tmp_path / "cluster", [scenario], gpus=gpus, only=case.only)
    ingest(cluster / "logs", tmp_path / "store")
    store = open_store(tmp_path / "store")
    found = store.diagnose()
    write_page(found, store.path, tmp_path / "page.html")
    figures = {
        figure["key"]: figure for figure in check_at_every_width(browser, tmp_path / "page.html")
    }
    check_in_every_state(browser, tmp_path / "page.html")
    screen = first_screen(browser, tmp_path / "page.html")
    assert [words for words in case.screen if words not in screen] == []
    if case.only:
        assert not any(key.startswith("step") for key in figures)
        return
    if case.chart:
        check_rows(browser, tmp_path / "page.html")
    assert figures["step-time"]["axes"] == STEPS["axes"]
    assert figures["step-time"]["legend"][:2] == STEPS["legend"]
    assert any(words.startswith("link: ") for words in figures["topology"]["words"])
    if not case.chart:
        keys = (
            "slow-rank",
            "sick-link",
            "routing",
            "choice",
            "gpudirect",
            "congested",
            "bandwidth",
        )
        assert set(figures) == {"step-time", "topology"} | {f"answer-{key}" for key in keys}
        told = (tmp_path / "page.html").read_text(encoding="utf-8")
        assert re.search(r"The most: rank \d+ on node\d+, \d\.\d% longer", told)
        assert re.search(r"The farthest from even: \S+ with \d+\.\d%", told)
        return
    figure = figures[f"finding-1-{case.chart}"]
    axes = ["time (UTC)" if TIME.fullmatch(axis) else axis for axis in figure["axes"]]
    assert axes == list(case.axes)
    assert figure["legend"][: len(case.legend)] == list(case.legend)
    for text in case.texts:
        assert any(text in each for each in figure["texts"]), (text, figure["texts"])
    if case.words:
        assert any(all(w in words for w in case.words) for words in figure["words"])


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of 1,024 GPUs and two jobs."""
    folder = tmp_path_factory.mktemp("big")
    write_page(evil_diagnosis(), big_store(folder / "store"), folder / "page.html")
    return folder / "page.html"


def test_a_big_cluster_of_several_jobs_is_drawn_whole(
    browser: "sync_api.Browser", big: Path
) -> None:
    figures = {figure["key"]: figure for figure in check_at_every_width(browser, big)}
    assert any("more hosts" in text or "hosts" in text for text in figures["topology"]["texts"])
    assert "2 jobs, a line each" in big.read_text(encoding="utf-8")


def test_it_is_whole_without_a_script(browser: "sync_api.Browser", big: Path) -> None:
    page = opened(browser, big, java_script_enabled=False)
    assert page.locator(".chart svg.wide:visible").count() == page.locator("figure").count() > 0
    assert page.locator("details.data table").count() > 0
    page.close()


def test_paper_shows_the_wide_drawing_and_no_buttons(
    browser: "sync_api.Browser", big: Path
) -> None:
    page = opened(browser, big, viewport={"width": 390, "height": 800})
    page.emulate_media(media="print")
    assert page.locator(".chart svg.wide:visible").count() == page.locator("figure").count()
    assert page.locator(".act:visible, #range:visible").count() == 0
    page.close()
