"""Mixed traffic: hosts receive more in the RDMA class than a job's collectives can have sent.

What a job's NICs receive, other NICs of the job have sent. Bytes beyond that are of somebody else.
"""

from datetime import datetime, timedelta

import polars as pl

from fabricobs.diagnosis.cost import cost_of
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.finding_builder import build_finding, driver
from fabricobs.diagnosis.findings import Entity, Finding, MethodResult
from fabricobs.diagnosis.job import StepTimeTrend
from fabricobs.diagnosis.model import Model
from fabricobs.diagnosis.windows import Stretch, earliest, overlapping, spans, stretches


def find_mixed_traffic(
    evidence: Evidence, model: Model, trends: list[StepTimeTrend]
) -> MethodResult:
    """Return one finding if most hosts receive bytes no peer sent; a unit judged is a host."""
    rows = evidence.frame("host_balance")
    hosts = rows["host"].n_unique()
    loud = rows.filter(
        (pl.col("received") >= model.limit("ratio") * pl.col("sent"))
        & (pl.col("receiving_more") >= model.limit("nics") * pl.col("nics"))
    )
    # Many hosts that agree in one interval are as good as one host in many.
    by_host = {str(host): stretches(part, 1) for (host,), part in loud.group_by("host")}
    least = max(model.limit("fewest_hosts"), model.limit("hosts") * hosts)
    agreed = _agreed(by_host, least)
    if agreed is None:
        return MethodResult(judged=hosts)
    return MethodResult((_finding(loud, by_host, agreed, hosts, evidence, model, trends),), hosts)


def _agreed(by_host: dict[str, list[Stretch]], least: float) -> tuple[datetime, datetime] | None:
    """Return when enough hosts were first sure, and the end of it; None if too few ever were."""
    if len(by_host) < least:
        return None
    sure = sorted(earliest(found)[2] for found in by_host.values())
    ends = sorted(earliest(found)[1] for found in by_host.values())
    enough = sure[max(int(-(-least // 1)) - 1, 0)]
    # Hosts that show it one after another do not share a cause.
    return (
        (enough, ends[-1])
        if sum(e >= enough - timedelta(seconds=1) for e in ends) >= least
        else None
    )


def _finding(
    loud: pl.DataFrame,
    by_host: dict[str, list[Stretch]],
    agreed: tuple[datetime, datetime],
    hosts: int,
    evidence: Evidence,
    model: Model,
    trends: list[StepTimeTrend],
) -> Finding:
    detected_at, end = agreed
    found = [stretch for each in by_host.values() for stretch in each]
    begins = sorted(earliest(each)[0] for each in by_host.values())
    start = begins[len(begins) // 2]
    acting = [s for s in found if s.end >= start]
    cost = cost_of(evidence, trends, spans(acting))
    if cost is None or not cost.felt:
        whole = cost_of(evidence, trends, spans(acting), whole_run=True)
        cost = whole if whole is not None and whole.felt else cost
    ratios = loud.group_by("host").agg(
        (pl.col("received").sum() / pl.col("sent").sum()).alias("ratio"),
        (8e-9 * (pl.col("received") - pl.col("sent")).sum() / pl.col("seconds").sum()).alias(
            "gbps"
        ),
    )
    names = sorted(by_host)
    ratio = float(ratios["ratio"].median() or 0.0)  # type: ignore[arg-type]
    words = {
        "host": names[0],
        "nic": _nic_of(names[0], evidence),
        "hosts": len(names),
        "all_hosts": hosts,
        "extra": float(ratios["gbps"].median() or 0.0),  # type: ignore[arg-type]
        "ratio": ratio,
        "since": f"{start:%H:%M:%S} UTC",
        "marks": _marks(acting, evidence),
    }
    families = {"counters"} | ({"timing"} if cost is not None and cost.felt else set())
    return build_finding(
        model,
        evidence,
        words,
        entities=[Entity("host", host=host) for host in names],
        families=families,
        drivers=[
            driver(model, "ratio", "bytes received over bytes sent", round(ratio, 2), peer=1.0),
            driver(model, "hosts", "share of hosts", round(len(names) / hosts, 2)),
        ],
        start=start,
        end=end,
        detected_at=detected_at,
        cost=cost,
    )


def _nic_of(host: str, evidence: Evidence) -> str:
    nics = evidence.frame("nic_ports").filter(pl.col("host") == host)
    return str(nics["nic"][0]) if len(nics) else "DEVICE"


def _marks(found: list[Stretch], evidence: Evidence) -> str:
    marks = overlapping(evidence.frame("nic_marks"), found)["cnp_per_second"].median()
    if not isinstance(marks, int | float):
        return ""
    return f" The median NIC sends {marks:,.0f} CNPs a second meanwhile."
