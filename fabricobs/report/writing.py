"""A diagnosis written to a file as a page, a ticket, text or JSON, and its charts as pictures."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from fabricobs.diagnosis.findings import Diagnosis
from fabricobs.exceptions import UserError
from fabricobs.output_files import check_folder, check_target, write_whole
from fabricobs.report.charts.source import Row, Source
from fabricobs.report.documents import diagnosis_json
from fabricobs.report.figures import Figures, draw_figures, save_figures
from fabricobs.report.history import kept_findings
from fabricobs.report.page import Charts, draw, write_page
from fabricobs.report.site import write_site
from fabricobs.report.terminal import diagnosis_text
from fabricobs.report.ticket import ticket_text
from fabricobs.store.session import NO_SITE, Site, open_session, runs_of

if TYPE_CHECKING:
    import duckdb

# What a report can be written as, by the ending of its file.
FORMATS: Mapping[str, str] = {".html": "html", ".md": "markdown", ".txt": "text", ".json": "json"}


@dataclass(frozen=True, slots=True)
class Report:
    """Where a report goes and as what: `form` is one of FORMATS.

    `charts` is a folder for pictures, `site` one for pages; with `site` alone there is no `out`.
    """

    out: Path | None
    form: str
    charts: Path | None = None
    site: Path | None = None

    @property
    def draws(self) -> bool:
        """Say whether charts are drawn."""
        return self.form == "html" or self.charts is not None or self.site is not None


def report_to(
    out: str | Path | None,
    form: str | None = None,
    charts: str | Path | None = None,
    site: str | Path | None = None,
) -> Report:
    """Return where a report goes: its form as given, else as `out` ends, else a page.

    UserError for a form that is unknown or a file that cannot be written.
    """
    alone = site is not None and out is None and form is None
    forms = {name: suffix for suffix, name in FORMATS.items()}
    if form is None:
        form = "html" if out is None else FORMATS.get(Path(out).suffix.lower())
    if form is None:
        endings = f"no ending of {', '.join(FORMATS)}; say --format {', '.join(forms)}"
        raise UserError(f"--out {out}: {endings}")
    if form not in forms:
        raise UserError(f"--format {form}: use one of {', '.join(forms)}")
    folder, root = (None if given is None else Path(given) for given in (charts, site))
    file = None if alone else Path(out or f"fabricobs-report{forms[form]}")
    if file is not None:
        check_target("--out", file)
    check_folder("--charts", folder)
    check_folder("--site", root)
    return Report(file, form, folder, root)


def write_report(
    report: Report,
    diagnosis: Diagnosis,
    store: Path,
    extra: tuple[Path, ...] = (),
    *,
    since: datetime | None = None,
    site: Site = NO_SITE,
    session: "duckdb.DuckDBPyConnection | None" = None,
) -> list[Path]:
    """Write a diagnosis of the store from `since` on, all or nothing; return the files written.

    Figures are drawn from `session`, else from one of their own.
    """
    figures = charts = None
    written: list[Path] = []
    if report.draws:
        figures = draw_figures(diagnosis, store, extra, since=since, site=site, session=session)
    if figures is not None and report.charts is not None:
        written, failures = save_figures(figures, report.charts)
        figures = replace(figures, failures=(*figures.failures, *failures))
    if figures is not None and report.site is not None:
        charts = draw(figures)
        pages = write_pages(diagnosis, figures, charts, store, report.site, extra)
        # Who reads the list opens the overview.
        written = [pages[-1], *written]
    if report.out is None:
        return written
    if figures is not None and report.form != "html":  # the page tells those of its figures
        diagnosis = replace(diagnosis, failures=(*diagnosis.failures, *figures.failures))
    if report.form == "html":
        write_page(diagnosis, store, report.out, extra, figures=figures, charts=charts)
    elif report.form == "json":
        write_whole(diagnosis_json(diagnosis) + "\n", report.out)
    elif report.form == "markdown":
        images = _images(figures, report, written)
        files = _files(store, extra)
        write_whole(ticket_text(diagnosis, files, images, extra), report.out)
    else:
        write_whole(diagnosis_text(diagnosis) + "\n", report.out)
    return [report.out, *written]


def write_pages(
    diagnosis: Diagnosis,
    figures: Figures,
    charts: Charts,
    store: Path,
    root: Path,
    extra: tuple[Path, ...] = (),
) -> list[Path]:
    """Write the site of a store into a folder; return the files, the overview last."""
    told = {finding.id for finding in diagnosis.findings}
    earlier = [finding for finding in kept_findings(store, extra) if finding.id not in told]
    history = [*diagnosis.findings, *earlier]
    return write_site(diagnosis, store, figures, charts, root, runs_of(store), history, extra)


def _images(figures: Figures | None, report: Report, written: Sequence[Path]) -> dict[int, str]:
    """Return the pictures of findings by number, as a link from the report names them."""
    if figures is None or report.charts is None or report.out is None:
        return {}
    folder = Path(os.path.relpath(report.charts, report.out.parent))
    return {
        n: (folder / f"{f.key}.png").as_posix()
        for n, f in figures.of_findings.items()
        if report.charts / f"{f.key}.png" in written
    }


def _files(store: Path, extra: tuple[Path, ...]) -> list[Row]:
    with open_session(store, "files", extra) as connection:
        return Source(connection, extra).rows("report/files_by_format")
