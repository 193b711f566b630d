"""The odd one out: a host or rank whose facts differ from its peers', or are wrong by themselves.

One method for all models that name a query of facts: who differs, how many agree on the usual
value, and what it costs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from fabricobs.diagnosis.cost import Cost, cost_of
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.finding_builder import build_finding, driver
from fabricobs.diagnosis.findings import Driver, Entity, Finding, MethodResult, Severity
from fabricobs.diagnosis.job import StepTimeTrend
from fabricobs.diagnosis.model import Model

_FEWEST_HOSTS = 3
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class _Odd:
    """A fact in which hosts differ: rows of those that do; hosts that agree, of all asked."""

    fact: str
    part: str | None
    usual: str
    agreeing: int
    hosts: int
    rows: pl.DataFrame
    decides: bool

    @property
    def name(self) -> str:
        """The fact with the part it is about."""
        return f"{self.fact} {self.part}" if self.part is not None else self.fact


def find_peer_differences(
    evidence: Evidence, model: Model, trends: Sequence[StepTimeTrend], *, costs: bool = True
) -> MethodResult:
    """Return one finding a job in which hosts or ranks stand apart; a unit is a host.

    Where `costs`, the cause lasts as long as the job and its cost is judged by the line rate of
    the NICs; else no cost is claimed, and a difference is never above `low`.
    """
    facts = evidence.frame(model.evidence)
    findings: list[Finding] = []
    judged = 0
    for rows in facts.partition_by("job", maintain_order=True):
        odd = [
            one
            for group in rows.partition_by("fact", "part", maintain_order=True)
            if (one := _odd(group, model)) is not None
        ]
        judged += rows.filter("decides")["host"].n_unique()
        if any(one.decides for one in odd):
            findings.append(_finding(rows, odd, evidence, model, trends, costs=costs))
    hosts = sum(evidence.frame("hosts_of_jobs")["hosts"].to_list())
    return MethodResult(tuple(findings), judged, max(hosts - judged, 0))


def _odd(rows: pl.DataFrame, model: Model) -> _Odd | None:
    """Compare one fact over the hosts; None if all agree, or no value has a majority."""
    by_value = rows.group_by("value").agg(pl.col("host").n_unique().alias("hosts"))
    by_value = by_value.sort(["hosts", "value"], descending=[True, False])
    hosts = rows["host"].n_unique()
    wrong = rows.filter("bad")
    if len(wrong):
        well = by_value.join(wrong.select("value").unique(), on="value", how="anti")
        usual = str(well["value"][0]) if len(well) else "none of them"
        agreeing, odd = hosts - wrong["host"].n_unique(), wrong
    elif len(by_value) < 2 or rows["bad"].is_not_null().any():
        return None
    else:
        usual, agreeing = str(by_value["value"][0]), int(by_value["hosts"][0])
        odd = rows.filter(pl.col("value") != usual)
        if hosts < _FEWEST_HOSTS or agreeing < model.limit("agreement") * hosts:
            return None
    return _Odd(
        fact=str(rows["fact"][0]),
        part=rows["part"][0],
        usual=usual,
        agreeing=agreeing,
        hosts=hosts,
        rows=odd,
        decides=bool(rows["decides"][0]),
    )


def _finding(
    facts: pl.DataFrame,
    odd: Sequence[_Odd],
    evidence: Evidence,
    model: Model,
    trends: Sequence[StepTimeTrend],
    *,
    costs: bool,
) -> Finding:
    job = facts["job"][0]
    deciding = [one for one in odd if one.decides]
    culprits = _culprits(job, facts, deciding, model)
    accused = {culprit.host for culprit in culprits}
    support = [
        one
        for one in odd
        if not one.decides and (accused & set(one.rows["host"]) or culprits[0].type == "job")
    ]
    own = [pace for pace in trends if pace.job == job]
    cost = cost_of(evidence, own, [], whole_run=True) if costs else None
    worst = max(deciding, key=lambda one: one.rows["host"].n_unique())
    words: dict[str, Any] = {
        "who": _who(culprits, worst, _hosts_of(job, evidence)),
        "host": culprits[0].host or "every host",
        "fact": worst.name,
        "value": worst.rows["value"][0],
        "usual": worst.usual,
        "agreeing": worst.agreeing,
        "hosts": worst.hosts,
        "facts": "; ".join(_sentence(one) for one in deciding[:_SHOWN])
        + (f"; and {len(deciding) - _SHOWN} more" if len(deciding) > _SHOWN else ""),
        "support": "".join(f" {_sentence(one)}." for one in support[:_SHOWN]),
    }
    felt = cost is not None and cost.felt
    families = {"log"} | ({"timing"} if felt else set()) | ({"topology"} if support else set())
    begun = [pace.steps["ts"].min() for pace in own if len(pace.steps)]
    return build_finding(
        model,
        evidence,
        words,
        entities=culprits,
        families=families,
        drivers=(*_drivers(deciding, model), *_cost_driver(cost)),
        detected_at=begun[0] if begun else None,  # type: ignore[arg-type]
        cost=cost,
        unmeasured=_unmeasured(costs),
    )


def _unmeasured(costs: bool) -> Severity:
    return "medium" if costs else "low"


def _culprits(
    job: str | None, facts: pl.DataFrame, odd: Sequence[_Odd], model: Model
) -> list[Entity]:
    """The hosts that differ in most of their ranks, the ranks of others, or the job if most do."""
    asked = facts.filter("decides").group_by("host").agg(pl.col("rank").drop_nulls().n_unique())
    ranks_of = dict(asked.iter_rows())
    rows = pl.concat([one.rows for one in odd])
    by_host = rows.group_by("host", maintain_order=True).agg(
        pl.col("rank").drop_nulls().unique().sort().alias("ranks"), pl.len().alias("facts")
    )
    if len(by_host) > model.limit("most_hosts") * len(ranks_of):
        return [Entity("job", job=job)]
    culprits: list[Entity] = []
    ordered = by_host.sort(["facts", "host"], descending=[True, False])
    for host, ranks, _ in ordered.iter_rows():
        if not ranks or 2 * len(ranks) >= ranks_of[host]:
            culprits.append(Entity("host", host=host, job=job))
        else:
            culprits += [Entity("rank", rank=rank, host=host, job=job) for rank in ranks]
    return culprits


def _hosts_of(job: str | None, evidence: Evidence) -> int:
    known = evidence.frame("hosts_of_jobs").filter(pl.col("job").eq_missing(pl.lit(job)))
    return int(known["hosts"].sum())


def _who(culprits: Sequence[Entity], worst: _Odd, hosts: int) -> str:
    if culprits[0].type == "job":
        if worst.hosts == 1:
            return "the only host that tells"
        tell = " that tell" if worst.hosts < hosts else ""
        return f"{worst.hosts - worst.agreeing} of {worst.hosts} hosts{tell}"
    names = [
        culprit.host or "" if culprit.type == "host" else culprit.label for culprit in culprits
    ]
    if len(names) > _SHOWN:
        return f"{', '.join(names[:_SHOWN])} and {len(names) - _SHOWN} more"
    return " and ".join(names)


def _sentence(odd: _Odd) -> str:
    values = ", ".join(odd.rows["value"].unique().sort().to_list()[:_SHOWN])
    if not odd.agreeing:
        tell = "the only host that tells" if odd.hosts == 1 else f"all {odd.hosts} hosts that tell"
        return f"{odd.name}: {values} on {tell}"
    return f"{odd.name}: {values}, but {odd.usual} on {odd.agreeing} of {odd.hosts} hosts"


def _drivers(odd: Sequence[_Odd], model: Model) -> tuple[Driver, ...]:
    return tuple(
        driver(
            model,
            "agreement",
            f"hosts that agree on {one.name} {one.usual}, share of all"
            if one.agreeing
            else f"hosts that tell anything else of {one.name}, share of all",
            round(one.agreeing / one.hosts, 3),
        )
        for one in odd[:_SHOWN]
    )


def _cost_driver(cost: Cost | None) -> tuple[Driver, ...]:
    if cost is None:
        return ()
    return (Driver("throughput lost", round(cost.loss_share, 4), 0, "", None, None, cost.against),)
