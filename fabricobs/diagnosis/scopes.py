"""What each run of a store is judged by: its hosts, the devices they are cabled to, and its time.

A row of a device belongs to the run that used the device at its time. Where several might have,
it belongs to none: `unattributed` names these devices.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl

from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.findings import Entity, Finding
from fabricobs.diagnosis.rank_groups import LEAST_EXCESS, WINDOW_STEPS
from fabricobs.store.jobs import Run, together
from fabricobs.store.scoping import Scope, Window
from fabricobs.store.session import Site, open_session

BENCHMARKS = "benchmarks"  # that are judged together
# Counters before and after a run that still tell of it: ten intervals of a minute.
_SLACK = timedelta(minutes=10)
_CABLES = "SELECT DISTINCT host_name(device), host_name(remote_device) FROM canonical_links"
_NAMES = "SELECT id, host_name(device) FROM device_names"
_DEVICES = """SELECT host_name(device), coalesce(bool_or(is_rdma_device(port)), false) FROM (
  SELECT device, port FROM counting_ports UNION SELECT device, port FROM named_status)
  WHERE device IS NOT NULL GROUP BY host_name(device)"""
# Ranks that compute longer than the others of a step, by run and host, as slower groups do.
_SLOW_RANKS = f"""WITH work AS (
    SELECT w.job, w.rank, coalesce(host_name(w.host), r.host) AS host,
      w.own_ms / median(w.own_ms) OVER (PARTITION BY w.job, w.step) AS ratio
    FROM rank_work w LEFT JOIN job_ranks r ON r.job IS NOT DISTINCT FROM w.job AND r.rank = w.rank
    WHERE w.own_ms > 0
  )
  SELECT job, rank, host FROM work WHERE host IS NOT NULL
  GROUP BY job, rank, host
  HAVING count(*) >= {WINDOW_STEPS} AND median(ratio) >= 1 + {LEAST_EXCESS}"""


@dataclass(frozen=True, slots=True)
class Scopes:
    """The scopes of runs with `rest`, what is of none, and devices that cannot be attributed."""

    of_runs: tuple[tuple[Run, Scope], ...]
    rest: Scope
    unattributed: tuple[str, ...]


def scopes_of(
    store: Path, extra: Sequence[Path], site: Site, runs: Sequence[Run], chosen: Sequence[Run]
) -> Scopes:
    """Return for each chosen run which devices it used, and when."""
    everyone = {host for run in runs for host in run.hosts}
    again = _on_other_hosts(runs)
    asked = f"{_CABLES}; {_NAMES}; {_DEVICES}; {_SLOW_RANKS if again else ''}"
    with open_session(store, asked, extra, site=site, runs=runs) as connection:
        told = connection.execute(_CABLES).fetchall()
        names = connection.execute(_NAMES).fetchall()
        is_host = dict(connection.execute(_DEVICES).fetchall())
        slow = connection.execute(_SLOW_RANKS).fetchall() if again else []
    cables = [(a, b) for a, b in told if a is not None and b is not None]
    cabled = {device for cable in cables for device in cable}
    devices = set(is_host)
    free = devices - cabled - everyone
    free_switches = {device for device in free if not is_host[device]}
    scopes = []
    used: set[str] = set()
    doubtful: set[str] = set()
    for run in judged_runs(chosen):
        members = run.of or (run,)
        outside = [r for r in runs if r not in members]
        own = set(crossed(run.hosts, everyone, cables))
        leaves = own - set(run.hosts)
        # Where hosts alone tell their neighbours, no cable leads to the spines.
        are_joined = any({a, b} <= leaves for a, b in cables)
        unreached = set() if are_joined else free_switches if leaves else free
        alone = all(_is_alone(member, outside) for member in members)
        (own if alone else doubtful).update(unreached)
        used |= own
        own |= {alias for alias, device in names if device in own} | {*run.pods}
        others = frozenset(everyone - set(run.hosts))
        beside = [(m, r) for m in members for r in outside if not _apart(m, r)]
        shared = frozenset(host for m, r in beside for host in set(m.hosts) & set(r.hosts))
        windows = merged(w for m in members if (w := window_of(m, outside)) is not None)
        moved = _moved(run, slow, again)
        until = _until(members, outside)
        scopes.append((run, Scope(run, others, frozenset(own), windows, shared, moved, until)))
    rest = Scope(None, frozenset(everyone))
    return Scopes(tuple(scopes), rest, tuple(sorted(doubtful | (devices - used - everyone))))


def _on_other_hosts(runs: Sequence[Run]) -> dict[str | None, str]:
    """Return the jobs, by label, of the runs of those that ran again, and not on the same hosts."""
    hosts: dict[str, set[tuple[str, ...]]] = {}
    jobs = [run for run in runs if not run.is_benchmark]
    for run in jobs:
        hosts.setdefault(run.name, set()).add(tuple(sorted(run.hosts)))
    return {run.label: run.name for run in jobs if len(hosts[run.name]) > 1}


def _moved(
    run: Run, slow: Sequence[tuple[str | None, int, str]], jobs: Mapping[str | None, str]
) -> frozenset[int]:
    """Return the slow ranks of a run that are so in another one of its job, on another host."""
    own = {rank: host for label, rank, host in slow if label == run.label}
    return frozenset(
        rank
        for label, rank, host in slow
        if jobs.get(label) == run.name and own.get(rank, host) != host
    )


def judged_runs(chosen: Sequence[Run]) -> list[Run]:
    """Return the runs that are judged by themselves: benchmarks are, together.

    A sweep is hundreds of runs, and each tells little.
    """
    benchmarks = [run for run in chosen if run.is_benchmark]
    if len(benchmarks) < 2:
        return list(chosen)
    taken = any(run.name == BENCHMARKS for run in chosen)
    name = f"all {BENCHMARKS}" if taken else BENCHMARKS
    return [*(run for run in chosen if not run.is_benchmark), together(benchmarks, name)]


def window_of(run: Run, runs: Sequence[Run]) -> Window | None:
    """Return when rows of its devices are a run's; None if that cannot be told.

    That is its own time and ten minutes around it, but for the time of other runs on its hosts.
    """
    beside = [r for r in runs if r is not run and set(r.hosts) & set(run.hosts)]
    if run.begin is None or run.end is None:
        return None if beside else Window()
    begin = run.begin - _SLACK
    end = None if run.goes_on else run.end + _SLACK
    for other in beside:
        if other.begin is None or other.end is None:
            continue
        if other.begin < run.begin:
            over = run.begin if other.goes_on else other.end + _SLACK
            begin = max(begin, min(run.begin, over))
        elif run.goes_on or other.begin > run.end:
            end = other.begin if end is None else min(end, other.begin)
    return Window(begin, end, undated=not beside)


def _until(members: Sequence[Run], others: Sequence[Run]) -> datetime | None:
    """Return when the first of the others began on the members' hosts after they ended."""
    ends = [run.end for run in members if run.end is not None]
    if len(ends) < len(members):
        return None
    hosts = {host for run in members for host in run.hosts}
    begins = (run.begin for run in others if run.begin is not None and hosts & set(run.hosts))
    return min((begin for begin in begins if begin > max(ends)), default=None)


def merged(windows: Iterable[Window]) -> tuple[Window, ...]:
    """Return as few windows of the same times: runs of a sweep follow each other."""
    found: list[Window] = []
    for window in sorted(windows, key=lambda w: w.begin or datetime.min):
        last = found[-1] if found else None
        if last is not None and (not last.end or not window.begin or window.begin <= last.end):
            end = max(last.end, window.end) if last.end and window.end else None
            found[-1] = Window(last.begin, end, last.undated or window.undated)
        else:
            found.append(window)
    return tuple(found)


def _is_alone(run: Run, others: Sequence[Run]) -> bool:
    """Say whether no other run can have been in its time."""
    return all(
        run.begin is not None and other.begin is not None and _apart(run, other) for other in others
    )


def _apart(a: Run, b: Run) -> bool:
    first, second = sorted((a, b), key=lambda run: run.begin or datetime.min)
    if first.end is None or second.begin is None:
        return False
    return first.end < second.begin and not (first.goes_on and first.name != second.name)


def crossed(
    hosts: Iterable[str], all_hosts: Iterable[str], cables: Sequence[tuple[str, str]]
) -> frozenset[str]:
    """Return a job's hosts and the devices between them, as `cables`, pairs of devices, tell.

    These are the leaves of its hosts, and all beyond them that is not only others' leaf.
    """
    own, known = set(hosts), set(all_hosts)
    beside: dict[str, set[str]] = {}
    for a, b in cables:
        beside.setdefault(a, set()).add(b)
        beside.setdefault(b, set()).add(a)
    found = {leaf for host in own for leaf in beside.get(host, ())} - known
    reached = set(found)
    while reached:
        above = {device for switch in reached for device in beside[switch]} - known - found
        reached = {device for device in above if not beside[device] & known}
        found |= reached
    return frozenset(own | found)


def own_findings(findings: Sequence[Finding], scope: Scope, evidence: Evidence) -> list[Finding]:
    """Return the findings but for those on parts that are not known to be the run's.

    What names a job is told by the run's own logs, be it of a host known by its address alone.
    """
    ends = evidence.frame("cable_ends").filter(pl.col("far_owner").is_in(list(scope.others)))
    devices = scope.devices or frozenset()
    theirs = set(ends.select("owner", "part").iter_rows())

    def is_other(entity: Entity) -> bool:
        place = entity.host or entity.switch
        is_unknown = place is not None and not {place, place.split(".")[0]} & devices
        elsewhere = is_unknown and entity.job is None
        return elsewhere or (entity.switch, entity.port) in theirs

    return [f for f in findings if not f.entities or not all(map(is_other, f.entities))]
