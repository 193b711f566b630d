"""One-way uplinks: a member of an equal-cost group that is up, but sends nothing.

It receives like the others, or it sent like them before.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np
import polars as pl

from fabricobs.diagnosis.cost import Span, cost_of
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.finding_builder import build_finding, driver
from fabricobs.diagnosis.findings import Entity, Finding, MethodResult, NotJudged
from fabricobs.diagnosis.job import StepTimeTrend
from fabricobs.diagnosis.model import Model
from fabricobs.diagnosis.short_windows import hashing_holds, short_windows
from fabricobs.diagnosis.statistics import at_most, odds
from fabricobs.diagnosis.uplink_stretches import WITH_FLOWS, flows_of
from fabricobs.diagnosis.windows import Stretch, earliest, interval_of, outside, spans, stretches

_INFERRED = "ports that look like parallel links (no log tells their cables)"
_FEW = "a hash of few flows may leave an uplink so"
_SETTLED_BY = "LLDP neighbours of the switches; NCCL_DEBUG=INFO logs of all ranks"
# NICs of a ring carry the same, and their counters are read within an interval's few percent.
_ALIKE = 0.03
# Of so few links a hash leaves one empty often: eight flows on four links do in 38 of 100 cases.
_FEW_LINKS = 4
_ENDS = 2  # of a cable
# Times as many flows as the links look like: of a ring's, which carry alike, an estimate of two
# dozen links is off by less.
_UNLIKE = 2.0
_EMPTY = 0.05  # of the mean: what the evidence calls silent


@dataclass(frozen=True, slots=True)
class _Shown:
    """Why a silent link is no chance: the p of its flows, or that it stopped; if it is sure."""

    flows: str
    p: float | None
    stopped: bool
    is_sure: bool


def find_one_way_uplinks(
    evidence: Evidence, model: Model, trends: list[StepTimeTrend]
) -> MethodResult:
    """Return a finding for each uplink that sends nothing; groups are counted by ecmp_skew."""
    silent = evidence.frame("one_way_uplinks", model.limits).filter(
        pl.any_horizontal(
            pl.col("received_ratio", "carried_ratio").fill_null(0.0) >= model.limit("received")
        )
        & (pl.col("oper").is_null() | (pl.col("oper") == "up"))
    )
    crossing = evidence.frame("crossing_flows").filter(pl.col("flows") > 0)
    flows = dict(crossing.select("device", "flows").iter_rows())
    hashed = [
        group
        for (group,), rows in silent.filter(~pl.col("moved")).group_by("uplink_group")
        if _is_hash(rows, flows.get(str(rows["device"][0])), evidence, model)
    ]
    windows = evidence.frame("uplink_windows")
    told_alike = {kind: windows.filter(pl.col("inferred") == kind) for kind in (False, True)}
    shares: dict[tuple[bool, datetime, datetime], dict[str, dict[str, float]]] = {}
    silent = _with_rehashed(silent, evidence.frame("restarts"))
    moved = dict(
        silent.filter("moved").group_by("uplink_group").agg(pl.col("port").n_unique()).iter_rows()
    )
    findings = []
    opened: list[NotJudged] = []
    for (device, port), rows in silent.filter(
        pl.col("moved") | ~pl.col("uplink_group").is_in(hashed)
    ).group_by("device", "port", maintain_order=True):
        counted = flows.get(str(device))
        inferred = bool(rows["inferred"][0])
        group = str(rows["uplink_group"][0])
        begin, end = rows.select(pl.col("ts_before").min(), pl.col("ts").max()).row(0)
        # Ports of one device mostly fall silent at once.
        if (inferred, begin, end) not in shares:
            shares[inferred, begin, end] = _shares_during(told_alike[inferred], (begin, end))
        estimated = _estimated_flows(shares[inferred, begin, end], group, str(port))
        if estimated is not None and counted is not None and not _fit(estimated, counted):
            counted = None
        number = counted or estimated
        links = int(rows["links"][0])
        # Where flows are estimated, all groups were looked at, not the one of the known flows.
        tried = 1 if counted else told_alike[inferred]["uplink_group"].n_unique()
        p = None if number is None else min(tried * _p_empty(int(number), links), 1.0)
        unlikely = p is not None and p < model.limit("p")
        stopped = bool(rows["moved"][0]) and not unlikely
        if p is not None and not unlikely and not stopped:
            continue
        found = _lasting(rows, counted, evidence, model)
        # Few flows leave one of few links empty; the others alone do not tell how many there are.
        keeps = _carried(rows, model) and not rows["rehashed"][0]
        is_open = number is None and (inferred or links <= _FEW_LINKS) and not keeps
        if found and is_open:
            opened.append(NotJudged(f"{device} {port}: it sends nothing, and {_FEW}", _SETTLED_BY))
        elif found:
            # Of several that stop at once the new hash may have left some empty.
            is_sure = moved[group] == 1 if stopped else unlikely
            told = _flows_text(counted, number)
            shown = _Shown(told, p if unlikely else None, stopped, is_sure)
            findings.append(
                _finding(str(device), str(port), rows, found, shown, evidence, model, trends)
            )
    return MethodResult(tuple(findings), open=tuple(opened))


def _with_rehashed(silent: pl.DataFrame, restarts: pl.DataFrame) -> pl.DataFrame:
    """Return the silent links; those that new flows left out are `rehashed`, not `moved`.

    A link that loses its routes stops at its two ends at most: where links of more groups do within
    an interval, or one does while a job starts again, the job has opened new flows, and the hash
    leaves some links empty.
    """
    since, seconds = pl.col("ts_before").min(), (pl.col("ts") - pl.col("ts_before")).max()
    stops = silent.filter("moved").group_by("uplink_group").agg(since=since, lasts=seconds)
    at_once = stops.join(stops, how="cross").filter(
        (pl.col("since") - pl.col("since_right")).abs() <= pl.col("lasts")
    )
    many = at_once.group_by("uplink_group").len().filter(pl.col("len") > _ENDS)
    port = ("uplink_group", "port")
    rehashed = pl.col("uplink_group").is_in(many["uplink_group"].implode())
    for begins, ends in restarts.select("ts_before", "ts").drop_nulls().iter_rows():
        rehashed |= since.over(port).is_between(begins - seconds.over(port), ends)
    return silent.with_columns(moved=pl.col("moved") & ~rehashed, rehashed=rehashed)


def _carried(rows: pl.DataFrame, model: Model) -> bool:
    """Say whether the port sent its share before: a hash keeps to its links while a job runs."""
    carried = rows["carried_ratio"][0]
    return carried is not None and float(carried) >= model.limit("received")


def _is_hash(silent: pl.DataFrame, flows: int | None, evidence: Evidence, model: Model) -> bool:
    """Say whether several silent links are a hash that does not use them, none of them at fault.

    A hash that lost a bit leaves half of them empty, or some empty and others nearly so.
    """
    ports = silent["port"].n_unique()
    if ports == 1:
        return False
    if flows is None or ports > model.limit("most_links") * int(silent["links"][0]):
        return True
    windows = short_windows(evidence, str(silent["uplink_group"][0]))
    during = windows.filter(pl.col("ts").is_in(silent["ts"].unique().implode()))
    return not hashing_holds(during, flows, left_out=ports)


def _shares_during(windows: pl.DataFrame, times: Span) -> dict[str, dict[str, float]]:
    """Return what links of groups told alike sent at the times at which a port was silent.

    A job that starts again hashes its flows anew: over both times its links look more even.
    """
    begin, end = times
    # Readings of other devices come up to an interval apart.
    apart = pl.col("ts") - pl.col("ts_before")
    at_times = windows.filter(pl.col("ts_before") >= begin - apart, pl.col("ts") <= end + apart)
    shares = _shares(at_times)
    return _without_hosts(shares) if at_times["inferred"].any() else shares


def _shares(rows: pl.DataFrame) -> dict[str, dict[str, float]]:
    """Return what each link of each uplink group sent in the windows."""
    rows = rows.select("uplink_group", "ports", "loads")
    totals = (
        rows.explode("ports", "loads").group_by("uplink_group", "ports").agg(pl.col("loads").sum())
    )
    shares: dict[str, dict[str, float]] = {}
    for group, port, load in totals.iter_rows():
        shares.setdefault(group, {})[port] = float(load)
    return shares


def _without_hosts(shares: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    """Leave out the ports that may lead to hosts: a ring loads them alike, of however few flows.

    They are those near the median. Evenness of the others tells of a hash.
    """
    others: dict[str, dict[str, float]] = {}
    for group, loads in shares.items():
        usual = float(np.median([*loads.values()]))
        others[group] = {
            port: load for port, load in loads.items() if abs(load - usual) > _ALIKE * usual
        }
    return others


def _estimated_flows(
    shares: Mapping[str, Mapping[str, float]], group: str, port: str
) -> float | None:
    """Estimate how many flows are hashed, by how uneven the other links of the fabric are.

    The group's links but for this one, and the groups with as many links that carry flows, too.
    """
    own = shares.get(group, {})
    sent = sum(own.values())
    parts = [[load for name, load in own.items() if name != port]]
    parts += [
        [*other.values()]
        for name, other in shares.items()
        if name != group and len(other) == len(own) and sum(other.values()) >= WITH_FLOWS * sent
    ]
    used = [np.asarray(part) for part in parts if len(part) > 1 and sum(part) > 0]
    return flows_of(used, sent)


def _fit(estimated: float, counted: int) -> bool:
    """Say whether links are as uneven as so many flows make them, alike or not quite.

    More even ones are those of a switch that moves flowlets. Less even ones are of flows that
    differ: a few carry most, and these decide.
    """
    return estimated <= counted <= _UNLIKE * estimated


def _p_empty(flows: int, links: int) -> float:
    """Return the p that any of the links gets at most a twentieth of the mean of the flows."""
    return min(at_most(_EMPTY * flows / links, flows, 1 / links) * links, 1)


def _flows_text(counted: int | None, estimated: float | None) -> str:
    if counted is not None:
        return f"{counted:,} flows"
    if estimated is not None:
        return f"about {estimated:,.0f} flows, estimated from the other links,"
    return "flows"


def _lasting(
    rows: pl.DataFrame, flows: int | None, evidence: Evidence, model: Model
) -> list[Stretch]:
    """Return what lasts: two intervals where hashing explains the others, else a minute."""
    found = stretches(rows, int(model.limit("windows")))
    lasting = [s for s in found if s.end - s.begin >= timedelta(seconds=model.limit("seconds"))]
    others = outside(short_windows(evidence, str(rows["uplink_group"][0])), found)
    if flows is not None and hashing_holds(others, flows):
        return found
    enough = timedelta(seconds=model.limit("seconds"))
    return [replace(each, detected_at=min(each.begin + enough, each.end)) for each in lasting]


def _finding(
    device: str,
    port: str,
    rows: pl.DataFrame,
    found: list[Stretch],
    shown: _Shown,
    evidence: Evidence,
    model: Model,
    trends: list[StepTimeTrend],
) -> Finding:
    start, end, detected_at = earliest(found)
    cost = cost_of(evidence, trends, spans(found), read_every=interval_of(found))
    links = int(rows["links"][0])
    sent = float(rows["sent_ratio"].mean() or 0.0)  # type: ignore[arg-type]
    received, carried = (
        None if (value := rows[name][0]) is None else float(value)
        for name in ("received_ratio", "carried_ratio")
    )
    receives = received is not None and received >= model.limit("received")
    words = {
        "switch": device,
        "port": port,
        "links": links,
        "group": _INFERRED if rows["inferred"][0] else "uplinks",
        "others": links - 1,
        "since": f"{start:%H:%M:%S} UTC",
        "sent": sent,
        "instead": "and receives" if receives else "and sent its share before",
        "sign": f"received {received:.0%} of what the median of them did"
        if receives
        else f"sent {carried:.0%} of it before",
        "flows": shown.flows,
        "p": None if shown.p is None else odds(shown.p),
        "stopped": "" if shown.stopped else None,
    }
    families = {"counters", "topology"}
    if cost is not None and cost.felt:
        families.add("timing")
    below = evidence.frame("leaf_hosts").filter(pl.col("leaf") == device)["host"].unique().sort()
    drivers = [
        driver(model, "received", feature, round(value, 2), peer=1.0)
        for feature, value in (
            ("received over the median uplink", received),
            ("sent before over the mean uplink", carried),
        )
        if value is not None
    ]
    if shown.p is not None:
        drivers.append(driver(model, "p", "probability under random hashing", shown.p))
    return build_finding(
        model,
        evidence,
        words,
        entities=[Entity("port", switch=device, port=port)],
        related=[Entity("switch", switch=device), *(Entity("host", host=h) for h in below)],
        families=families,
        drivers=drivers,
        start=start,
        end=end,
        detected_at=detected_at,
        cost=cost,
        # A link that takes nothing in either may have been drained on purpose.
        unmeasured="medium" if receives and shown.is_sure else "low",
    )
