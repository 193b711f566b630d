"""The watch: ingest what is new, judge a window, report, and tell what is new, worse or over.

A round may be killed anywhere: rows are committed by the store, incidents by `state.py`, and the
next round goes on. Rounds of one store never overlap. Times are UTC without a zone.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from glob import escape
from pathlib import Path
from time import monotonic
from typing import TypeVar

import duckdb

from fabricobs import stopping
from fabricobs.cluster import cluster
from fabricobs.config.schema import Config, duration_words
from fabricobs.diagnosis.findings import Diagnosis
from fabricobs.diagnosis.incidents import Event, Incident, Moment, Timers, advance
from fabricobs.exceptions import TRACEBACK, UserError, unexpected
from fabricobs.ingestion import ingest
from fabricobs.inputs import IngestReport, Options, path_text
from fabricobs.judging import judge
from fabricobs.operate.alertmanager import TOLD_AFTER_END
from fabricobs.operate.lease import WatchError
from fabricobs.operate.notify import (
    Targets,
    add_pending,
    send_open_incidents,
    send_pending,
    targets_of,
)
from fabricobs.operate.state import Memory, load_memory, only_watch, save_memory
from fabricobs.operate.textfile import Health, write_textfile
from fabricobs.report.figures import Figures, draw_figures
from fabricobs.report.page import Charts, draw, write_page
from fabricobs.report.site import incident_page
from fabricobs.report.writing import write_pages
from fabricobs.resources import cores
from fabricobs.store.location import address_of, shown
from fabricobs.store.parts import Store
from fabricobs.store.reading import reading
from fabricobs.store.session import newest_time
from fabricobs.store.upkeep import compact, prune, small_batches

_MANY_SMALL_BATCHES = 64
# A clock that is further ahead than this is wrong, and its times are no news.
_FASTEST_CLOCK = timedelta(days=1)

Say = Callable[[str], None]
_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True)
class Round:
    """What a round came to; `diagnosis` is None where there was nothing to judge."""

    diagnosis: Diagnosis | None
    events: tuple[Event, ...]
    well: bool


@dataclass(frozen=True, slots=True)
class _Shown:
    """What the pages of a round show, drawn once for all of them."""

    diagnosis: Diagnosis
    figures: Figures
    charts: Charts


class Watch:
    """Rounds over one store, with what they remember; `say` takes notes for a person."""

    def __init__(
        self,
        inputs: Sequence[Path],
        config: Config,
        say: Say,
        executor: str | None = None,
        check_held: Callable[[], None] = lambda: None,
    ) -> None:
        host_map = () if config.host_map is None else (config.host_map,)
        self._inputs = (*inputs, *host_map)
        self._config = config
        self._say = say
        self._executor = executor
        self._check_held = check_held  # raises once another watch has the store
        self._store = Store(config.store)
        address = address_of(config.store)
        if address is not None and config.notify.base_url and config.watch.report is None:
            raise WatchError(
                f"store {address}: with notify.base_url, set watch.report to a file in the "
                "directory that is served: pages are not written to an object store"
            )
        # A report without a place of its own lies in the store.
        self._page_key = "report.html" if address and config.watch.report is None else None
        self._page = config.watch.report or config.store / "report.html"
        self._options = Options(
            config.job, config.tz, config.content, config.host_from, config.follow
        )
        # Pages that a watch of this store was killed over; there is no other watch now.
        for left in self._page.parent.glob(f".{escape(self._page.name)}.*"):
            left.unlink(missing_ok=True)
        watch = config.watch
        self._timers = Timers(
            watch.recovering_after,
            watch.resolved_after,
            watch.unexplained_after,
            watch.stale_after,
        )
        self._targets: Targets = targets_of(config.notify, config.store, watch.every)
        self._memory = load_memory(config.store, say)
        self._told_problems: set[tuple[Path, str | None]] = set()
        self._told_left_out: set[str] = set()
        self._told_failures: set[str] = set()

    def rounds(self) -> Iterator[Round]:
        """Run rounds for ever, one an interval; a round that takes longer leaves some out."""
        every = self._config.watch.every.total_seconds()
        # What stands is told at once: the alerts of a watch that was restarted must not run out.
        send_open_incidents(self._targets, self._memory, _now(), self._say)
        while True:
            began = monotonic()
            yield self.round()
            took = monotonic() - began
            if took > every:
                self._say(
                    f"the round took {took:.1f} s, longer than the interval of "
                    f"{duration_words(self._config.watch.every)}: the next begins at once"
                )
            stopping.pause(max(every - took, 0))

    def round(self) -> Round:
        """Run one round; what fails in it is said, and the rest of it goes on."""
        began = monotonic()
        self._check_held()
        before = self._memory
        read = self._guarded("reading", self._ingest)
        judged = self._guarded("judging", self._judge)
        diagnosis, memory, events = judged if judged is not None else (None, before, ())
        well = read is not None and diagnosis is not None and not diagnosis.failures
        memory = replace(memory, round_seconds=monotonic() - began)
        if self._guarded("keeping the state", lambda: self._save(memory)) is None:
            # Nothing is sent that is not noted first: it would be sent twice. What stood before is
            # told again, so that no alert runs out.
            send_open_incidents(self._targets, before, _now(), self._say)
            self._memory = before
            return Round(diagnosis, (), well=False)
        shown = None
        if diagnosis is not None and (read is None or read.read or self._lacks_pages(events)):
            # An alert links to its page, which is there before it.
            shown = self._guarded("the charts", lambda: self._draw(diagnosis))
            well &= shown is not None
        if shown is not None and self._config.notify.base_url is not None:
            well &= self._guarded("the pages of incidents", partial(self._pages, shown)) is not None
        well &= bool(self._guarded("telling", self._tell))
        if shown is not None:
            well &= self._guarded("the report", partial(self._report, shown)) is not None
        well &= self._guarded("upkeep of the store", self._keep_up) is not None
        seconds = monotonic() - began
        self._guarded("the textfile", lambda: self._write_textfile(seconds, well))
        self._sum_up(read, seconds)
        return Round(diagnosis, events, well)

    def _ingest(self) -> IngestReport:
        with self._workers() as pool:
            report = ingest(self._inputs, self._store, self._options, workers=cores(), cluster=pool)
        problems = {(outcome.path, outcome.problem) for outcome in report.problems}
        for path, problem in sorted(problems - self._told_problems):
            self._say(f"{path_text(path)}: {problem}")
        self._told_problems = problems
        left_out = set(report.left_out.lines())
        for line in sorted(left_out - self._told_left_out):
            self._say(line)
        self._told_left_out = left_out
        return report

    def _workers(self) -> AbstractContextManager[Executor | None]:
        """Lend the workers of the cluster that reads; None where this machine reads."""
        if self._executor is None:
            return nullcontext()
        return cluster(self._executor, [*self._inputs, Path(shown(self._store.path))])

    def _judge(self) -> tuple[Diagnosis, Memory, tuple[Event, ...]]:
        """Judge the window, and return what is remembered of it and what is new."""
        memory, config = self._memory, self._config
        now = _now()
        with reading(self._store.path):
            newest = newest_time(self._store.path, now + _FASTEST_CLOCK)
            diagnosis = judge(config, self._since(newest, memory.incidents))
        self._say_failures(diagnosis)
        if newest is None:
            return diagnosis, memory, ()
        advanced = memory.advanced
        if advanced is None or memory.newest is None or newest > memory.newest:
            advanced = now
        newest = max(filter(None, (newest, memory.newest)))
        standing = [incident for incident in memory.incidents if incident.state != "resolved"]
        incidents, events = advance(
            standing,
            diagnosis.findings,
            Moment(now, newest, advanced),
            self._timers,
            config.notify.least_severity,
            diagnosis.may_miss,
        )
        told_after_end = max(TOLD_AFTER_END, 3 * config.watch.every)
        open_ids = {incident.finding.id for incident in incidents}
        closed = [
            incident
            for incident in memory.incidents
            if incident.closed_at is not None
            and now - incident.closed_at < told_after_end
            and incident.finding.id not in open_ids
        ]
        memory = replace(memory, incidents=(*incidents, *closed), newest=newest, advanced=advanced)
        return diagnosis, add_pending(memory, events, self._targets), events

    def _say_failures(self, diagnosis: Diagnosis) -> None:
        """Say which parts of a diagnosis fail, and which no longer do; not again each round."""
        failures = {str(failure) for failure in diagnosis.failures}
        for line in sorted(failures - self._told_failures):
            self._say(f"{line}; please report it. Incidents that depend on it stay as they are")
        for line in sorted(self._told_failures - failures):
            self._say(f"no longer so: {line}")
        self._told_failures = failures

    def _since(self, newest: datetime | None, incidents: Sequence[Incident]) -> datetime | None:
        """Return where the window begins, None for all there is.

        It reaches a whole window back before the oldest open incident: without the time before it,
        a fault that lasts would look like how things are.
        """
        window = self._config.watch.window
        if window is None or newest is None:
            return None
        begins = [i.finding.start for i in incidents if i.state != "resolved" and i.finding.start]
        return min([newest, *begins]) - window

    def _save(self, memory: Memory) -> bool:
        self._check_held()
        save_memory(memory, self._store.path)
        self._memory = memory
        return True

    def _tell(self) -> bool:
        _, well = send_pending(self._targets, self._memory, _now(), self._save, self._say)
        return well

    def _lacks_pages(self, events: Sequence[Event]) -> bool:
        """Say whether the report, or the page of an open incident, is missing or out of date."""
        if not self._page.exists():
            return True
        if self._config.notify.base_url is None:
            return False
        open_ids = [i.finding.id for i in self._memory.incidents if i.state != "resolved"]
        pages = (self._page.parent / incident_page(id_) for id_ in open_ids)
        return bool(events) or not all(page.exists() for page in pages)

    def _draw(self, diagnosis: Diagnosis) -> _Shown:
        """Draw what all pages of a round share; open incidents have a page though not found now."""
        found = {finding.id for finding in diagnosis.findings}
        standing = [i.finding for i in self._memory.incidents if i.state != "resolved"]
        more = [finding for finding in standing if finding.id not in found]
        diagnosis = replace(diagnosis, findings=(*diagnosis.findings, *more))
        config = self._config
        with reading(self._store.path):
            figures = draw_figures(
                diagnosis,
                self._store.path,
                config.content,
                since=self._since(self._memory.newest, self._memory.incidents),
                site=config.site,
            )
        return _Shown(diagnosis, figures, draw(figures))

    def _pages(self, drawn: _Shown) -> bool:
        with reading(self._store.path):
            write_pages(
                drawn.diagnosis,
                drawn.figures,
                drawn.charts,
                self._store.path,
                self._page.parent,
                self._config.content,
            )
        return True

    def _report(self, drawn: _Shown) -> bool:
        write_page(
            drawn.diagnosis,
            self._store.path,
            self._page,
            self._config.content,
            figures=drawn.figures,
            charts=drawn.charts,
        )
        if self._page_key is not None:
            self._store.storage.replace(self._page_key, self._page.read_bytes())
        return True

    def _keep_up(self) -> bool:
        if self._config.keep is not None:
            pruned = prune(self._store, self._config.keep)
            if pruned.files:
                self._say(f"rows of {pruned.files:,} files older than --keep taken out")
        if small_batches(self._store) >= _MANY_SMALL_BATCHES:
            compact(self._store)
        return True

    def _write_textfile(self, seconds: float, well: bool) -> bool:
        target = self._config.notify.textfile
        if target is not None:
            pending = {name: len(events) for name, events in self._memory.pending.items()}
            health = Health(_now(), seconds, well, self._memory.newest, pending)
            write_textfile(target.path, self._memory.incidents, health)
        return True

    def _guarded(self, what: str, act: Callable[[], _Made]) -> _Made | None:
        """Run a part of the round; if it fails say why and return None."""
        stopping.check()
        try:
            return self._interruptible(act)
        except UserError as error:
            self._say(f"{what}: {error}")
        except OSError as error:
            where = f" ({error.filename})" if error.filename else ""
            self._say(f"{what}: {error.strerror or error}{where}; tried again next round")
        except duckdb.Error as error:
            self._say(f"{what}: the store could not be asked: {error}")
        except Exception as error:
            # A watch outlives its own mistakes: the next round may not meet this one.
            told = f"please report it ({TRACEBACK}=1 shows the whole traceback)"
            self._say(f"{what}: {unexpected(error)}; {told}")
        return None

    def _interruptible(self, act: Callable[[], _Made]) -> _Made:
        """Run it; what fails while a signal asks to stop, fails because of that."""
        try:
            return act()
        except Exception:
            stopping.check()
            raise

    def _sum_up(self, read: IngestReport | None, seconds: float) -> None:
        files = "nothing read" if read is None else f"{len(read.read):,} files read"
        standing = [i for i in self._memory.incidents if i.state != "resolved"]
        firing = sum(incident.state == "firing" for incident in standing)
        newest = self._memory.newest
        to = "no data" if newest is None else f"data to {newest:%Y-%m-%d %H:%M:%S}"
        self._say(
            f"{files}, {to}, {firing} firing, {len(standing) - firing} recovering, {seconds:.1f} s"
        )


def watch_once(
    inputs: Sequence[Path], config: Config, say: Say, executor: str | None = None
) -> Round:
    """Run one round, for a scheduler; WatchError if another watch has the store."""
    Store(config.store).create()
    with only_watch(config.store, say) as check_held:
        return Watch(inputs, config, say, executor, check_held).round()


def watch(
    inputs: Sequence[Path], config: Config, say: Say, executor: str | None = None
) -> Iterator[Round]:
    """Run rounds until stopped; WatchError if another watch has the store."""
    Store(config.store).create()
    with only_watch(config.store, say) as check_held:
        yield from Watch(inputs, config, say, executor, check_held).rounds()


def _now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)
