"""The report as a site of pages: overview, one page an incident, a host, a switch, a job, history.

The address of an incident is its finding's id, which a rerun gives again: pages of earlier runs
stay. All pages share one style and one script; figures are drawn once for all of them.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fabricobs import stopping
from fabricobs.diagnosis.findings import Diagnosis, Entity, Finding, Loss, Verdict
from fabricobs.diagnosis.scopes import judged_runs
from fabricobs.output_files import write_whole
from fabricobs.report.charts.source import Row
from fabricobs.report.figures import Figures
from fabricobs.report.html import SCRIPT, STYLE, Addresses, page, script, style
from fabricobs.report.jobs import name_of
from fabricobs.report.page import Charts, context_of, sections
from fabricobs.store.jobs import Run

ASSETS, HOSTS, INCIDENTS, JOBS, SWITCHES = "assets", "hosts", "incidents", "jobs", "switches"
_ODD = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME = 80
_KNOWN_OF_PORTS = ("far_owner", "speed_gbps", "busiest_gbps", "errors", "pauses")
_SUFFERS = "victim or path"

Numbered = tuple[int, Finding]
Named = tuple[int, Finding, str]  # and what a part is to the finding, empty of a job it slowed


def incident_page(id_: str) -> str:
    """Return the address of the page of an incident, from the root of its site."""
    return f"{INCIDENTS}/{id_}.html"


@dataclass(frozen=True, slots=True)
class Part:
    """A host, switch or job with a page: its address from the root, its ports, its ranks.

    Of `unknown` ports more only the name is known.
    """

    name: str
    kind: str
    address: str
    ports: tuple[Row, ...] = ()
    ranks: tuple[Row, ...] = ()
    unknown: int = 0

    @property
    def errors(self) -> int | None:
        """Return how much the error counters of its ports rose, None where none is known."""
        return _sum(self.ports, "errors")

    @property
    def pauses(self) -> int | None:
        """Return the pause frames of its ports, None where none is counted."""
        return _sum(self.ports, "pauses")

    @property
    def busiest(self) -> float | None:
        """Return the most that one of its ports carried, Gb/s."""
        return max((r["busiest_gbps"] for r in self.ports if r["busiest_gbps"]), default=None)


def write_site(
    diagnosis: Diagnosis,
    store: Path,
    figures: Figures,
    charts: Charts,
    root: Path,
    runs: Sequence[Run],
    kept: Sequence[Finding],
    extra: tuple[Path, ...] = (),
) -> list[Path]:
    """Write all pages into a folder, each all or nothing; return the files written.

    `runs` are the jobs of the store, `kept` the findings of earlier runs for the history.
    Benchmarks have one page, as they are judged together.
    """
    judged = tuple(judged_runs(runs))
    return _Site(diagnosis, store, figures, charts, root, extra, judged).write(kept)


@dataclass(frozen=True, slots=True)
class _Site:
    diagnosis: Diagnosis
    store: Path
    figures: Figures
    charts: Charts
    root: Path
    extra: tuple[Path, ...]
    runs: tuple[Run, ...]

    def write(self, kept: Sequence[Finding]) -> list[Path]:
        """Write every page: the pages that others link to first."""
        files = [
            self._file(f"{ASSETS}/{STYLE}", style()),
            self._file(f"{ASSETS}/{SCRIPT}", script()),
        ]
        parts = {part.name: part for part in self._parts()}
        numbered = list(enumerate(self.diagnosis.findings, start=1))
        incidents = {finding.id: incident_page(finding.id) for finding in kept}
        incidents = {id_: to for id_, to in incidents.items() if (self.root / to).exists()}
        incidents |= {finding.id: incident_page(finding.id) for _, finding in numbered}
        common = context_of(self.diagnosis, self.store, self.figures, self.charts) | {
            "parts": parts,
            "runs": self.runs,
        }

        def write(address: str, template: str, **context: Any) -> None:
            stopping.check()
            way = "../" * address.count("/")
            addresses = Addresses(
                lambda id_: way + incidents[id_] if id_ in incidents else None,
                lambda name: way + parts[name].address if name in parts else None,
                way,
            )
            files.append(self._file(address, page(template, addresses, **(common | context))))

        for number, finding in numbered:
            alone = replace(
                self.diagnosis,
                findings=(finding,),
                loss=Loss(),
                verdict=replace(self.diagnosis.verdict, sentence=f"{finding.title}."),
            )
            (section,) = sections([(number, finding)], self.figures, self.extra)
            context = {"diagnosis": alone, "section": section, "costliest": finding, "others": ()}
            write(incidents[finding.id], "incident.html.j2", **context)
        for part in parts.values():
            named = list(
                self._of_job(part, numbered) if part.kind == "job" else _named(part, numbered)
            )
            context = {"part": part, "named": named, "verdict": self._verdict(part)}
            write(part.address, "job.html.j2" if part.kind == "job" else "part.html.j2", **context)
        write("history.html", "history.html.j2", kept=kept)
        write("index.html", "overview.html.j2", sections=())
        return files

    def _file(self, address: str, text: str) -> Path:
        out = self.root / address
        out.parent.mkdir(parents=True, exist_ok=True)
        write_whole(text, out)
        return out

    def _parts(self) -> Iterator[Part]:
        """Yield jobs, then hosts and switches; of two that share a name the last has the page."""
        ranks = self.figures.ranks
        for run in self.runs:
            trains = tuple(row for row in ranks if row["job"] in run.labels)
            yield Part(name_of(run), "job", _address(JOBS, name_of(run)), ranks=trains)
        by_owner: dict[str, list[Row]] = defaultdict(list)
        for row in self.figures.ports:
            by_owner[row["owner"]].append(row)
        cabled = {(row["far_owner"], row["far_part"]) for row in self.figures.ports}
        by_host: dict[str, list[Row]] = defaultdict(list)
        for row in ranks:
            by_host[row["host"]].append(row)
        for name in sorted((by_owner.keys() | by_host.keys()) - {None}):
            own = by_owner[name]
            kind = "host" if name in by_host or any(row["is_host"] for row in own) else "switch"
            address = _address(HOSTS if kind == "host" else SWITCHES, name)
            ports = tuple(r for r in own if _is_known(r) or (name, r["part"]) in cabled)
            its_ranks = tuple(by_host.get(name, ()))
            yield Part(name, kind, address, ports, its_ranks, len(own) - len(ports))

    def _verdict(self, part: Part) -> Verdict:
        """Return the verdict of a job: its own where the store has several."""
        own = (each.verdict for each in self.diagnosis.jobs if name_of(each.run) == part.name)
        return next(own, self.diagnosis.verdict)

    def _of_job(self, part: Part, numbered: Sequence[Numbered]) -> Iterator[Named]:
        """Yield the findings of a job: where no other was judged, all that there are."""
        judged = self.diagnosis.jobs
        ids = {id_ for each in judged if name_of(each.run) == part.name for id_ in each.findings}
        alone = not judged and part.name in map(name_of, self.diagnosis.runs or self.runs)
        for number, finding in numbered:
            if alone or finding.id in ids:
                yield number, finding, ""


def _named(part: Part, numbered: Sequence[Numbered]) -> Iterator[Named]:
    """Yield the findings that name a part, and what it is to them."""
    for number, finding in numbered:
        if any(part.name in _names(entity) for entity in finding.entities):
            yield number, finding, finding.role
        elif any(part.name in _names(entity) for entity in finding.related):
            yield number, finding, _SUFFERS


def _is_known(port: Row) -> bool:
    """Say whether anything but its name is known of a port."""
    return any(port[column] is not None for column in _KNOWN_OF_PORTS)


def _names(entity: Entity) -> set[str | None]:
    return {entity.host, entity.switch}


def _address(folder: str, name: str) -> str:
    """Return the address of a part's page; a name that is no file name has a digest in it."""
    plain = _ODD.sub("-", name)[:_LONGEST_NAME].lstrip(".")
    if plain != name:
        plain += f"-{hashlib.blake2b(name.encode(), digest_size=4).hexdigest()}"
    return f"{folder}/{plain}.html"


def _sum(rows: Sequence[Mapping[str, Any]], column: str) -> int | None:
    known = [row[column] for row in rows if row[column] is not None]
    return sum(known) if known else None
