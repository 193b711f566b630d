"""Link errors: cables whose receivers count broken symbols or packets while the job runs.

Only what rises counts: totals from before the run are normal. What is counted while the link is
down or trains anew is that event's, not the cable's. Errors are a rate of the bits received: a link
within the error rate of its standard is sound, however long it is watched.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from fabricobs.diagnosis.cables import (
    Cable,
    End,
    cables_in,
    during,
    ends_in,
    entities_of,
    moment,
    spans_of,
)
from fabricobs.diagnosis.cost import Cost, Span, cost_of
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.finding_builder import build_finding, driver
from fabricobs.diagnosis.findings import Driver, Finding, MethodResult
from fabricobs.diagnosis.job import StepTimeTrend
from fabricobs.diagnosis.model import Model
from fabricobs.diagnosis.statistics import events_at_least, false_discovery
from fabricobs.store.tables import counters_of

# What a receiver counts of a bad transceiver, fibre or connector.
WIRE_ERRORS = counters_of("wire")
# Of these, events of the link's own training: no standard allows them by the bit.
_EVENTS = ("link_error_recovery", "local_link_integrity_errors")
RETRANSMISSIONS = counters_of("resend")
_VICTIMS = 8


@dataclass(frozen=True, slots=True)
class _Count:
    """One counter of one end: its rise in all, in how many intervals, and when that sufficed.

    `rate` is by 10^12 bits received over all intervals, None where no source counts bytes.
    """

    end: End
    counter: str
    risen: float
    intervals: int
    sufficed: datetime | None
    rate: float | None

    @property
    def words(self) -> str:
        """What was counted where."""
        rate = f" ({self.rate:,.2g} in 10^12 bits)" if self.rate is not None else ""
        return (
            f"{self.end.label} counted {self.risen:,.0f} {self.counter} "
            f"in {self.intervals} intervals{rate}"
        )


def find_link_errors(evidence: Evidence, model: Model, trends: list[StepTimeTrend]) -> MethodResult:
    """Return a finding for each cable with sustained errors; a unit judged is a port."""
    sick = evidence.frame("sick_intervals")
    wire = _beyond_standard(evidence, model)
    findings = []
    for cable in cables_in(wire):
        steady = _without_downs(cable, sick)
        counts = [c for end in steady.ends for c in _counts(steady.at(end), end, evidence, model)]
        if any(count.sufficed for count in counts):
            findings.append(_finding(steady, counts, sick, evidence, model, trends))
    ports = evidence.frame("counted_ports")
    judged = len(ports.filter("known", pl.col("stopped").is_null()))
    not_checked = len(ports) - judged + _uncounted_ports(evidence, ports)
    return MethodResult(tuple(findings), judged, not_checked)


def _uncounted_ports(evidence: Evidence, ports: pl.DataFrame) -> int:
    """Return the number of ports on cables between devices that count nothing.

    Where NICs tell what they send again, no cable between them loses anything unseen.
    """
    if evidence.frame("loss_counters")["resends"].any():
        return 0
    ends = evidence.frame("cable_ends")
    counted = ports["owner"].unique().to_list()
    seen = pl.col("owner").is_in(counted) | pl.col("far_owner").is_in(counted)
    return len(ends.filter(~seen))


def sick_spans(evidence: Evidence, model: Model) -> list[Span]:
    """Return when any cable had sustained errors: what is lost then may be lost there."""
    wire = _beyond_standard(evidence, model)
    parts = [
        rows
        for _, rows in wire.group_by("owner", "part", "counter")
        if sufficed(rows.sort("ts"), model) is not None
    ]
    return spans_of(pl.concat(parts)) if parts else []


def _beyond_standard(evidence: Evidence, model: Model) -> pl.DataFrame:
    """Return the intervals with broken data of ports that exceed the error rate of their standard.

    By all intervals together, or by a single one: Poisson, with as many trials as there are
    intervals; Benjamini-Hochberg over all ports that were counted. Where the bits are not known,
    and for events that no standard allows by the bit, every port stays.
    """
    wire = evidence.frame("sick_intervals").filter(pl.col("counter").is_in(WIRE_ERRORS))
    keys = ["owner", "part", "counter"]
    exposed = wire.join(evidence.frame("received_bits"), on=["owner", "part"])
    exposed = exposed.filter(~pl.col("counter").is_in(_EVENTS))
    if exposed.is_empty():
        return wire
    allowed = model.limit("rate") / 1e12
    bits = pl.coalesce(8.0 * pl.col("rx_bytes"), pl.col("bits"))
    expected = exposed.select(allowed * bits).to_series()
    exposed = exposed.with_columns(once=pl.Series(events_at_least(exposed["risen"], expected)))
    tested = exposed.group_by(keys, maintain_order=True).agg(
        pl.col("risen").sum(),
        pl.col("bits").first(),
        (pl.col("once").min() * pl.col("intervals").first()).alias("once"),
    )
    in_all = events_at_least(tested["risen"], allowed * tested["bits"])
    p = tested.select(pl.min_horizontal(2 * pl.min_horizontal("once", pl.lit(in_all)), 1.0))
    quiet = max(len(evidence.frame("counted_ports")) - len(tested), 0)
    q = false_discovery([*p.to_series(), *[1.0] * quiet])[: len(tested)]
    within = tested.filter(pl.Series(q) >= model.limit("rate_q"))
    return wire.join(within, on=keys, how="anti", maintain_order="left")


def _without_downs(cable: Cable, sick: pl.DataFrame) -> Cable:
    ends = pl.struct("owner", "part").is_in(
        [{"owner": e.owner, "part": e.part} for e in cable.ends]
    )
    downs = sick.filter(pl.col("counter") == "link_downed", ends)
    return Cable(cable.near, cable.far, cable.rows.filter(~during(spans_of(downs))))


def _counts(rows: pl.DataFrame, end: End, evidence: Evidence, model: Model) -> list[_Count]:
    counts = []
    received = evidence.frame("received_bits").filter(
        pl.col("owner") == end.owner, pl.col("part") == end.part
    )
    bits = float(received["bits"].sum())
    for (counter,), of_counter in rows.group_by("counter", maintain_order=True):
        ordered = of_counter.sort("ts")
        risen = float(ordered["risen"].sum())
        counts.append(
            _Count(
                end=end,
                counter=str(counter),
                risen=risen,
                intervals=len(ordered),
                sufficed=sufficed(ordered, model),
                rate=risen / bits * 1e12 if bits else None,
            )
        )
    return counts


def sufficed(rows: pl.DataFrame, model: Model) -> datetime | None:
    """Return the end of the interval with which the rises of a counter were no accident, or None.

    Rows are the intervals in which it rose, in order of time; the model has the thresholds
    `intervals` and `risen`, of which one must be reached.
    """
    enough = (pl.col("risen").cum_sum() > model.limit("risen")) | (
        pl.int_range(1, pl.len() + 1) >= model.limit("intervals")
    )
    moments = rows.filter(enough)["ts"]
    return None if moments.is_empty() else moments[0]


def _finding(
    cable: Cable,
    counts: Sequence[_Count],
    sick: pl.DataFrame,
    evidence: Evidence,
    model: Model,
    trends: list[StepTimeTrend],
) -> Finding:
    worst = max(counts, key=lambda count: count.risen)
    cable = cable if worst.end == cable.near else cable.turned()
    spans = spans_of(cable.rows)
    resent = _resent(cable, sick, spans)
    cost = cost_of(evidence, trends, spans)
    far = cable.far.label if cable.far else "an end no log names"
    of_far = [count for count in counts if count.end != worst.end]
    words = {
        "near": worst.end.label,
        "far": far,
        "counter": worst.counter,
        "risen": worst.risen,
        "since": moment(spans[0][0]),
        "counted": "; ".join(c.words for c in [worst, *sorted(of_far, key=lambda c: -c.risen)[:1]]),
        "resent": _resent_sentence(resent),
        "switch": next((end.owner for end in cable.ends if not end.is_nic), worst.end.owner),
        "port": next((end.part for end in cable.ends if not end.is_nic), worst.end.part),
    }
    return build_finding(
        model,
        evidence,
        words,
        entities=entities_of(cable.ends),
        related=entities_of([e for e in ends_in(resent, _VICTIMS) if e not in cable.ends]),
        families=_families(of_far, resent, cost),
        drivers=_drivers(counts, resent, model),
        start=spans[0][0],
        end=spans[-1][1],
        detected_at=min(c.sufficed for c in counts if c.sufficed is not None),
        cost=cost,
    )


def _resent(cable: Cable, sick: pl.DataFrame, spans: Sequence[Span]) -> pl.DataFrame:
    """Return what NICs sent again meanwhile: the cable's NIC, or the hosts below its switches."""
    resent = sick.filter(pl.col("counter").is_in(RETRANSMISSIONS), during(spans))
    nics = [end for end in cable.ends if end.is_nic]
    if nics:
        own = resent.filter(pl.col("owner") == nics[0].owner, pl.col("part") == nics[0].part)
        return resent if len(own) else resent.clear()
    return resent.filter(pl.col("far_owner").is_in([end.owner for end in cable.ends]))


def _resent_sentence(resent: pl.DataFrame) -> str:
    if resent.is_empty():
        return "No NIC over it is known to have sent packets again."
    most = resent.group_by("counter").agg(pl.col("risen").sum()).sort("risen", "counter").row(-1)
    hosts = resent["owner"].n_unique()
    return f"Meanwhile NICs of {hosts} hosts counted {most[1]:,.0f} {most[0]}."


def _families(of_far: Sequence[_Count], resent: pl.DataFrame, cost: Cost | None) -> set[str]:
    families = {"counters"}
    if of_far:
        families.add("topology")
    if len(resent):
        families.add("correlation")
    if cost is not None and cost.felt:
        families.add("timing")
    return families


def _drivers(counts: Sequence[_Count], resent: pl.DataFrame, model: Model) -> list[Driver]:
    drivers = [
        driver(model, "risen", f"{c.counter} of {c.end.label}", c.risen, peer=0.0)
        for c in sorted(counts, key=lambda count: -count.risen)
    ]
    worst = max(counts, key=lambda count: count.risen)
    drivers.append(
        driver(model, "intervals", f"intervals with {worst.counter}", float(worst.intervals))
    )
    if worst.rate is not None:
        drivers.append(
            driver(model, "rate", f"{worst.counter} rate", worst.rate, unit="per 10^12 bits")
        )
    for (counter,), rows in resent.group_by("counter", maintain_order=True):
        total = float(rows["risen"].sum())
        drivers.append(driver(model, "risen", f"{counter} of NICs over it", total, peer=0.0))
    return drivers
