"""The report as a site: every page is there, every link leads somewhere, nothing is inline."""

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
from report_case import EVIL, LEAF, evil_diagnosis, evil_store, finding

from conftest import Run
from fabricobs.diagnosis.findings import JobVerdict
from fabricobs.report.figures import draw_figures
from fabricobs.report.history import keep_findings
from fabricobs.report.page import draw
from fabricobs.report.site import write_site
from fabricobs.report.wording import state_words, until_words
from fabricobs.report.writing import write_pages
from fabricobs.store.session import runs_of


class Page(HTMLParser):
    """Links, ids and elements of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = path.read_text(encoding="utf-8")
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.elements.append((tag, named))
        self.ids |= {value for name, value in attrs if name == "id" and value}
        self.links += [value for name, value in attrs if name in {"href", "src"} and value]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    diagnosis, store = evil_diagnosis(), evil_store(folder / "store")
    figures = draw_figures(diagnosis, store)
    assert not figures.failures
    charts = draw(figures)
    assert not charts.failures
    write_pages(diagnosis, figures, charts, store, folder / "pages")
    return folder / "pages"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in site.rglob("*.html")}


def test_each_finding_host_switch_and_job_has_a_page(pages: dict[Path, Page], site: Path) -> None:
    counts = {kind: len(list((site / kind).iterdir())) for kind in ("incidents", "jobs", "hosts")}
    assert counts == {"incidents": 3, "jobs": 1, "hosts": 2}
    for one in evil_diagnosis().findings:
        assert (site / "incidents" / f"{one.id}.html").is_file()
    assert {"index.html", "history.html"} <= {path.name for path in pages}
    switches = [page for path, page in pages.items() if path.parent.name == "switches"]
    assert any("culprit of" in page.text and "Ethernet0" in page.text for page in switches)


def test_the_page_of_the_only_job_lists_every_finding(pages: dict[Path, Page], site: Path) -> None:
    (job,) = (page for path, page in pages.items() if path.parent.name == "jobs")
    for one in evil_diagnosis().findings:
        assert f"../incidents/{one.id}.html" in job.links
    figures = [named["id"] for tag, named in job.elements if tag == "figure"]
    assert any(str(each).startswith("finding-2-") for each in figures)


def test_the_page_of_one_job_of_several_lists_its_own_findings(tmp_path: Path) -> None:
    store, found = evil_store(tmp_path / "store"), evil_diagnosis()
    (run,) = runs_of(store)
    other = replace(run, label="other", name="other")
    ids = [each.id for each in found.findings]
    verdicts = [JobVerdict(run, found.verdict, (ids[0],)), JobVerdict(other, found.verdict, ())]
    found = replace(found, jobs=tuple(verdicts))
    figures = draw_figures(found, store)
    root = tmp_path / "pages"
    write_site(found, store, figures, draw(figures), root, (run, other), found.findings)
    listed = {path.name: Page(path) for path in (root / "jobs").iterdir()}
    assert "No finding is about it." in listed.pop("other.html").text
    ((_, page),) = listed.items()
    assert [id_ in page.text for id_ in ids] == [True, False, False]


def test_ports_of_which_nothing_is_known_are_counted_only(tmp_path: Path) -> None:
    store, found = evil_store(tmp_path / "store"), evil_diagnosis()
    figures = draw_figures(found, store)
    of_leaf = next(row for row in figures.ports if row["owner"] == LEAF)
    told = dict.fromkeys(("far_owner", "far_part", "speed_gbps", "errors", "pauses"))
    ghosts = [
        {**of_leaf, **told, "part": f"b8:3f:d2:00:00:0{n}", "busiest_gbps": value}
        for n, value in enumerate((None, None, 0.5))
    ]
    # The store names one such port itself.
    figures = replace(figures, ports=(*ghosts, *figures.ports))
    root = tmp_path / "pages"
    write_pages(found, figures, draw(figures), store, root)
    (page,) = (page for page in map(Page, root.glob("*/*.html")) if "3 ports more" in page.text)
    ids = {id_ for id_ in page.ids if id_.startswith("port-b8")}
    assert ids == {"port-b8:3f:d2:00:00:02"}


def test_every_link_leads_to_a_page_of_the_site(pages: dict[Path, Page]) -> None:
    followed = 0
    for path, page in pages.items():
        for link in page.links:
            file, fragment = urldefrag(link)
            target = (path.parent / unquote(file)).resolve() if file else path
            assert target.is_file(), (path, link)
            if fragment and target in pages:
                assert unquote(fragment) in pages[target].ids, (path, link)
            followed += 1
    assert followed > 50


def test_nothing_is_inline_and_names_are_text(pages: dict[Path, Page]) -> None:
    for page in pages.values():
        assert EVIL not in page.text
        assert not any("style" in named for _, named in page.elements)
        assert "style" not in {tag for tag, _ in page.elements}
        scripts = [named for tag, named in page.elements if tag == "script"]
        assert [bool(named.get("src")) for named in scripts] == [True]
        policies = [named["content"] for _, named in page.elements if "http-equiv" in named]
        assert "script-src 'self'; style-src 'self'" in (policies[0] or "")


def test_parts_of_a_drawing_link_to_their_pages(pages: dict[Path, Page], site: Path) -> None:
    index = pages[site / "index.html"]
    drawn = [named for tag, named in index.elements if tag == "a" and named.get("aria-label")]
    assert LEAF in {named["aria-label"] for named in drawn if named.get("href")}


def test_the_history_keeps_the_pages_of_earlier_runs(tmp_path: Path) -> None:
    store, before = evil_store(tmp_path / "store"), evil_diagnosis()
    lasting = finding("hang", state="ongoing")
    for diagnosis in (before, type(before)(before.verdict, (lasting,))):
        keep_findings(diagnosis, store)
        figures = draw_figures(diagnosis, store)
        write_pages(diagnosis, figures, draw(figures), store, tmp_path / "pages")
    history = Page(tmp_path / "pages" / "history.html")
    for one in (*before.findings, lasting):
        assert f"<td>{state_words(one) or '-'}</td>" in history.text
        assert f"<td>{until_words(one)}</td>" in history.text
    assert state_words(lasting) == f"until {until_words(lasting)}" == "until the end of the logs"
    linked = {link for link in history.links if link.startswith("incidents/")}
    assert len(linked) == 4


def test_the_command_writes_a_site(sample_store: Path, tmp_path: Path, fabricobs: Run) -> None:
    told = fabricobs("report", "--store", sample_store, "--site", tmp_path / "site")
    assert told.returncode == 0, told.stderr
    assert told.stdout.strip() == str(tmp_path / "site" / "index.html")
    assert sorted(path.name for path in (tmp_path / "site").iterdir()) == [
        *("assets", "history.html", "hosts", "incidents", "index.html", "jobs", "switches")
    ]
    index = Page(tmp_path / "site" / "index.html")
    chart_bytes = sum(
        len(part.partition("</figure>")[0]) for part in index.text.split("<figure")[1:]
    )
    assert len(index.text) - chart_bytes < 200_000
