"""Congestion at the last hop: more bytes for one NIC than for its peers, and queues that show it.

In a ring every NIC receives as much as its peers. Snapshots hold NICs read at one moment, so their
bytes compare whatever the clocks say and however few steps lie between two of them.
"""

from dataclasses import dataclass

import polars as pl

from fabricobs.diagnosis.cost import Cost, cost_of
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.finding_builder import build_finding, driver
from fabricobs.diagnosis.findings import Driver, Entity, Finding, MethodResult
from fabricobs.diagnosis.job import StepTimeTrend
from fabricobs.diagnosis.model import Model
from fabricobs.diagnosis.windows import (
    Stretch,
    earliest,
    outside,
    overlapping,
    spans,
    stretches,
)


@dataclass(frozen=True, slots=True)
class _Sign:
    """One counter that shows the queue is full: in words, and as a driver."""

    words: str
    driver: Driver


def find_congestion(evidence: Evidence, model: Model, trends: list[StepTimeTrend]) -> MethodResult:
    """Return a finding for each NIC that receives beyond its peers; a unit judged is a NIC."""
    rows = evidence.frame("nic_excess").filter(
        (pl.col("ratio") >= model.limit("ratio"))
        & (pl.col("exceeding") <= model.limit("most") * pl.col("peers"))
        & (
            pl.col("speed_gbps").is_null()
            | (pl.col("excess_gbps") >= model.limit("excess_share") * pl.col("speed_gbps"))
        )
    )
    findings = []
    for _, own in rows.group_by("host", "nic", maintain_order=True):
        least = int(model.limit("windows"))
        found = [s for _, part in own.group_by("format") for s in stretches(part, least)]
        if found and (finding := _finding(own, found, evidence, model, trends)):
            findings.append(finding)
    nics, counted = evidence.frame("nic_counters").row(0)
    return MethodResult(tuple(findings), counted, nics - counted)


def _finding(
    own: pl.DataFrame,
    found: list[Stretch],
    evidence: Evidence,
    model: Model,
    trends: list[StepTimeTrend],
) -> Finding | None:
    first = own.row(0, named=True)
    cost = cost_of(evidence, trends, spans(found))
    signs = _signs(first["host"], first["nic"], found, evidence, model)
    # Bytes alone accuse nobody: another kind of rank receives more by design.
    if not signs and not (cost is not None and cost.felt):
        return None
    start, end, detected_at = earliest(found)
    during = overlapping(own, found)
    ratio, excess, received = (
        float(during[name].median() or 0.0)  # type: ignore[arg-type]
        for name in ("ratio", "excess_gbps", "received_gbps")
    )
    place = f"{first['switch']} {first['port']}" if first["port"] else first["host"]
    words = {
        "host": first["host"],
        "nic": first["nic"],
        "switch": first["switch"] or "its switch",
        "port": first["port"] or "its port",
        "place": place,
        "ratio": ratio,
        "received": received,
        "usual": received - excess,
        "excess": excess,
        "peers": first["peers"] - 1,
        "since": f"{start:%H:%M:%S} UTC",
        "busy": f" The port's rate is {first['speed_gbps']:,.0f} Gb/s."
        if first["speed_gbps"]
        else "",
        "signs": " ".join(sign.words for sign in signs) or "No queue counter tells of it.",
    }
    nic = Entity("nic", host=first["host"], nic=first["nic"])
    port = Entity("port", switch=first["switch"], port=first["port"])
    return build_finding(
        model,
        evidence,
        words,
        entities=[port] if first["port"] else [nic],
        related=[nic] if first["port"] else [],
        families=_families(cost, bool(first["port"])),
        drivers=[
            driver(model, "ratio", "bytes received over the peers'", round(ratio, 2), peer=1.0),
            *(sign.driver for sign in signs),
        ],
        start=start,
        end=end,
        detected_at=detected_at,
        cost=cost,
    )


def _families(cost: Cost | None, cabled: bool) -> set[str]:
    families = {"counters"} | ({"topology"} if cabled else set())
    return families | ({"timing"} if cost is not None and cost.felt else set())


def _signs(
    host: str, nic: str, found: list[Stretch], evidence: Evidence, model: Model
) -> list[_Sign]:
    """Return what shows a full queue: marks at this NIC, pauses of the senders."""
    signs = []
    marks = overlapping(evidence.frame("nic_marks"), found)
    is_own = (pl.col("host") == host) & (pl.col("nic") == nic)
    own = _mean(marks.filter(is_own), "cnp_per_second")
    others = marks.filter(~is_own)["cnp_per_second"].median()
    usual = float(others) if isinstance(others, int | float) else None
    if (
        own is not None
        and usual is not None
        and own >= max(model.limit("mark_ratio") * usual, model.limit("mark_rate"))
    ):
        words = f"It sends {own:,.0f} CNPs a second, the median NIC {usual:,.1f}."
        signs.append(
            _Sign(words, driver(model, "mark_ratio", "CNPs sent", own, peer=usual, unit="1/s"))
        )
    pauses = evidence.frame("switch_pauses")
    during = _worst_leaf(overlapping(pauses, found))
    before = _worst_leaf(outside(pauses, found))
    if (
        during is not None
        and before is not None
        and during >= max(model.limit("pause_ratio") * before, model.limit("pause_rate"))
    ):
        words = f"Pauses of the senders rose from {before:,.0f} to {during:,.0f} frames a second."
        signs.append(
            _Sign(
                words,
                driver(model, "pause_ratio", "pauses", during, peer=before, unit="frames/s"),
            )
        )
    return signs


def _mean(rows: pl.DataFrame, column: str) -> float | None:
    value = rows[column].mean()
    return float(value) if isinstance(value, int | float) else None


def _worst_leaf(pauses: pl.DataFrame) -> float | None:
    by_leaf = pauses.group_by("leaf").agg(pl.col("frames_per_second").median())
    value = by_leaf["frames_per_second"].max()
    return float(value) if isinstance(value, int | float) else None
