"""Packet loss: packets of the class that must lose none are dropped, and sent again.

Drops while the port is paused, or by a watchdog, are a storm's, and so is what only NICs tell of
while any port is paused. Drops and retransmissions while a cable corrupts data or a link is down
are that cable's. What no NIC sends again was not RDMA's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from fabricobs.diagnosis.cables import End, during, ends_in, entities_of, moment, spans_of
from fabricobs.diagnosis.cost import Cost, cost_of
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.finding_builder import build_finding, driver
from fabricobs.diagnosis.findings import Driver, Entity, Finding, MethodResult
from fabricobs.diagnosis.job import StepTimeTrend
from fabricobs.diagnosis.model import Model
from fabricobs.store.tables import counters_of

_DROPS = ("drop_packets", "tx_discards", "rx_discards")
# Packets that arrive in another order are no loss: these two say that something was sent again.
_PROOFS = ("packet_seq_err", "local_ack_timeout_err")
_RETRANSMISSIONS = counters_of("resend")
_MOST_PORTS = 8


@dataclass(frozen=True, slots=True)
class _Loss:
    """Where packets were lost: `place` in words, `rows` that count them, `resent` by whom."""

    entities: tuple[Entity, ...]
    place: str
    rows: pl.DataFrame
    resent: pl.DataFrame
    detected_at: datetime


def find_packet_loss(evidence: Evidence, model: Model, trends: list[StepTimeTrend]) -> MethodResult:
    """Return a finding for each switch or port that loses packets; a unit judged is a port."""
    sick = evidence.frame("sick_intervals")
    counters = evidence.frame("loss_counters")
    resent = _unexplained(sick, evidence, model)
    losses = _where_dropped(sick, resent, counters, evidence, model)
    if not losses and _paused(evidence, model).is_empty():
        losses = _where_resent(resent, counters, model)
    findings = tuple(_finding(loss, evidence, model, trends) for loss in losses)
    judged = len(counters.filter(pl.col("resends") | pl.col("drops")))
    return MethodResult(findings, judged, len(counters) - judged)


def _unexplained(sick: pl.DataFrame, evidence: Evidence, model: Model) -> pl.DataFrame:
    """Return what NICs sent again while no cable corrupted data and no link was down."""
    resent = sick.filter(pl.col("counter").is_in(_RETRANSMISSIONS))
    downs = sick.filter(pl.col("counter") == "link_downed")
    broken = evidence.frame("broken_intervals", model.limits).filter(
        pl.col("lasts") & ~pl.col("alike")
    )
    elsewhere = [*spans_of(broken), *spans_of(downs)]
    return resent.filter(~during(elsewhere))


def _where_dropped(
    sick: pl.DataFrame,
    resent: pl.DataFrame,
    counters: pl.DataFrame,
    evidence: Evidence,
    model: Model,
) -> list[_Loss]:
    drops = _own_drops(sick, evidence, model)
    told = bool(counters["resends"].any())
    losses: list[_Loss] = []
    for (switch,), rows in drops.group_by("owner", maintain_order=True):
        again = resent.filter(during(spans_of(rows)))
        # Where NICs tell what they send again and sent nothing, no RDMA packet was lost.
        if told and again.is_empty():
            continue
        dates = _dates(rows, model)
        if dates:
            losses.append(_at_switch(str(switch), rows, again, counters, min(dates)))
    return losses


def _own_drops(sick: pl.DataFrame, evidence: Evidence, model: Model) -> pl.DataFrame:
    """Return drops of ports that are neither paused nor watched nor down, one counter a port."""
    parts = ["owner", "part"]
    paused = _paused(evidence, model)
    watched = sick.filter(pl.col("counter") == "pfcwd_detected")
    downs = sick.filter(pl.col("counter") == "link_downed")
    drops = sick.filter(pl.col("counter").is_in(_DROPS))
    for others in (paused, watched, downs):
        drops = drops.join(others, on=parts, how="anti")
    most = drops.group_by(*parts, "counter").agg(pl.col("risen").sum().alias("total"))
    first = most.sort("total", "counter", descending=[True, False]).unique(parts, keep="first")
    return drops.join(first, on=[*parts, "counter"], how="semi")


def _paused(evidence: Evidence, model: Model) -> pl.DataFrame:
    """Return the ports that somebody paused for more of the time than is usual."""
    return evidence.frame("paused_ports").filter(pl.col("pause_share") > model.limit("paused"))


def _dates(rows: pl.DataFrame, model: Model) -> list[datetime]:
    """Return when each port's loss was no accident any more."""
    dates = [
        _sufficed(of_port.sort("ts"), model)
        for _, of_port in rows.group_by("owner", "part", "counter", maintain_order=True)
    ]
    return [date for date in dates if date is not None]


def _sufficed(rows: pl.DataFrame, model: Model) -> datetime | None:
    """Return the end of the interval with which the rises of a counter were no accident, or None.

    Rows are the intervals in which it rose, in order of time.
    """
    enough = (pl.col("risen").cum_sum() > model.limit("risen")) | (
        pl.int_range(1, pl.len() + 1) >= model.limit("intervals")
    )
    moments = rows.filter(enough)["ts"]
    return None if moments.is_empty() else moments[0]


def _at_switch(
    switch: str,
    rows: pl.DataFrame,
    resent: pl.DataFrame,
    counters: pl.DataFrame,
    detected_at: datetime,
) -> _Loss:
    """The switch if many of its ports to NICs drop; else the ports, each with its NIC."""
    below = counters.filter(pl.col("owner") == switch, pl.col("far_is_nic"))
    dropping = rows.select("owner", "part").n_unique()
    if dropping > 1 and dropping * 2 >= len(below):
        place = f"{switch} drops packets on {dropping} of its ports"
        return _Loss((Entity("switch", switch=switch),), place, rows, resent, detected_at)
    ends: list[End] = []
    for end in ends_in(rows, _MOST_PORTS):
        far = rows.filter(pl.col("part") == end.part).row(0, named=True)
        ends.append(end)
        if far["far_is_nic"]:
            ends.append(End(far["far_owner"], far["far_part"], is_nic=True))
    place = f"{ends[0].label} drops packets"
    return _Loss(entities_of(ends), place, rows, resent, detected_at)


def _where_resent(resent: pl.DataFrame, counters: pl.DataFrame, model: Model) -> list[_Loss]:
    """Place a loss that only the NICs tell of: one NIC, the leaf most of them share, or nowhere.

    The receiver finds the gap, so those whose packets are missing lie behind the loss.
    """
    proofs = resent.filter(pl.col("counter").is_in(_PROOFS))
    dates = _dates(proofs, model)
    if not dates:
        return []
    gaps = resent.filter(pl.col("counter") == "out_of_sequence")
    missing = gaps if len(gaps) else proofs
    nics = missing.group_by("owner", "part", "is_nic", "far_owner").agg(pl.col("risen").sum())
    by_leaf = (
        nics.drop_nulls("far_owner")
        .group_by("far_owner")
        .agg(pl.col("risen").sum(), pl.len().alias("nics"))
    )
    share = model.limit("one_place")
    total = float(nics["risen"].sum())
    entities: tuple[Entity, ...] = ()
    place = "Packets are lost somewhere in the fabric"
    top = nics.sort("risen").row(-1, named=True)
    leaf = by_leaf.sort("risen").row(-1, named=True) if len(by_leaf) else None
    if top["risen"] >= share * total:
        nic = End(top["owner"], top["part"], top["is_nic"])
        entities, place = (nic.entity,), f"Packets to {nic.label} are lost"
    elif leaf is not None and leaf["risen"] >= share * total:
        below = counters.filter(pl.col("far_owner") == leaf["far_owner"], pl.col("is_nic"))
        if leaf["nics"] * 2 >= len(below):
            entities = (Entity("switch", switch=leaf["far_owner"]),)
            place = f"Packets to {leaf['nics']} NICs below {leaf['far_owner']} are lost"
    rows = resent if not entities else missing
    return [_Loss(entities or (Entity("job"),), place, rows, resent, min(dates))]


def _finding(loss: _Loss, evidence: Evidence, model: Model, trends: list[StepTimeTrend]) -> Finding:
    spans = spans_of(loss.rows)
    cost = cost_of(evidence, trends, spans)
    lossy = _lossy_class(loss, evidence)
    switch = next((e.switch for e in loss.entities if e.switch), None)
    words = {
        "place": loss.place,
        "since": moment(spans[0][0]),
        "counted": _counted(loss.rows),
        "resent": _counted(loss.resent) or "Whether it was sent again is not known",
        "lossy": lossy or "Whether the class was protected there is not known.",
        "switch": switch or "the leaves",
    }
    return build_finding(
        model,
        evidence,
        words,
        entities=loss.entities,
        related=entities_of(ends_in(loss.resent.filter("is_nic"), len(loss.resent))),
        families=_families(loss, lossy, cost),
        drivers=_drivers(loss, model),
        start=spans[0][0],
        end=spans[-1][1],
        detected_at=loss.detected_at,
        cost=cost,
        unmeasured="medium" if lossy else "low",
    )


def _lossy_class(loss: _Loss, evidence: Evidence) -> str | None:
    """Say that the switch protects no class; None if it does, or if nothing tells."""
    switches = {entity.switch for entity in loss.entities}
    settings = evidence.frame("lossless_ports")
    own = settings.filter(pl.col("switch").is_in(list(switches)), pl.col("lossy") > 0)
    if own.is_empty():
        return None
    row = own.row(0, named=True)
    others = settings.filter(pl.col("lossy") == 0)
    number = "1 other switch" if len(others) == 1 else f"{len(others)} other switches"
    beside = f", and for some on those of {number}" if len(others) else ""
    return (
        f"PFC was enabled for no class on {row['lossy']} of {row['ports']} ports of "
        f"{row['switch']} to NICs{beside}: what did not fit was dropped there."
    )


def _counted(rows: pl.DataFrame) -> str:
    totals = rows.group_by("counter").agg(
        pl.col("risen").sum(), pl.struct("owner", "part").n_unique().alias("ports")
    )
    ordered = totals.sort("risen", "counter", descending=[True, False])
    return ", ".join(f"{n:,.0f} {name} on {ports} ports" for name, n, ports in ordered.iter_rows())


def _families(loss: _Loss, lossy: str | None, cost: Cost | None) -> set[str]:
    families = {"counters"}
    if len(loss.resent) and loss.rows["counter"].is_in(_DROPS).any():
        families.add("topology")
    if lossy:
        families.add("log")
    if cost is not None and cost.felt:
        families.add("timing")
    return families


def _drivers(loss: _Loss, model: Model) -> list[Driver]:
    both: Sequence[pl.DataFrame] = (loss.rows, loss.resent)
    totals: dict[str, float] = {}
    for rows in both:
        for (counter,), of_counter in rows.group_by("counter", maintain_order=True):
            totals[str(counter)] = float(of_counter["risen"].sum())
    return [
        driver(model, "risen", name, value, peer=0.0, unit="packets")
        for name, value in sorted(totals.items(), key=lambda item: -item[1])
    ]
