"""Degraded links: ports below the speed of their role, NICs that are gone, PCIe trained down."""

from datetime import datetime, timedelta
from typing import Any

import polars as pl

from fabricobs.diagnosis.cables import End, cables_in, entities_of
from fabricobs.diagnosis.cost import Cost, cost_of
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.finding_builder import build_finding, driver
from fabricobs.diagnosis.findings import Driver, Entity, Finding, MethodResult
from fabricobs.diagnosis.job import StepTimeTrend
from fabricobs.diagnosis.model import Model

_BEYOND = timedelta(days=365)


def find_degraded_links(
    evidence: Evidence, model: Model, trends: list[StepTimeTrend]
) -> MethodResult:
    """Return a finding for each cable, host or PCIe device below its peers; a unit is a port."""
    ports = evidence.frame("port_speeds")
    known = ports.filter(_has_peers(model) | pl.col("could_be").is_not_null())
    slow = known.filter(
        pl.col("could_be").is_not_null()
        | (_has_peers(model) & (pl.col("speed_gbps") < pl.col("usual_gbps")))
    )
    findings = [
        *_slow_cables(slow, evidence, model, trends),
        *_missing_nics(evidence, model, trends),
        *_narrow_pcie(evidence, model, trends),
    ]
    return MethodResult(tuple(findings), len(known), len(ports) - len(known))


def _has_peers(model: Model) -> pl.Expr:
    """Whether a role has a usual speed: enough ports, most of which agree."""
    return (pl.col("peers") >= model.limit("peers")).fill_null(value=False) & (
        pl.col("agreeing") >= model.limit("agreeing") * pl.col("peers")
    ).fill_null(value=False)


def _slow_cables(
    slow: pl.DataFrame, evidence: Evidence, model: Model, trends: list[StepTimeTrend]
) -> list[Finding]:
    findings = []
    for cable in cables_in(slow):
        row = cable.rows.row(0, named=True)
        both = len(cable.rows) > 1
        cost = _cost(row, evidence, trends)
        far = cable.far.label if cable.far else "an end no log names"
        facts = [_speed_words(end) for end in cable.rows.iter_rows(named=True)]
        words = {
            "what": f"The link between {cable.near.label} and {far} runs at {_speed(row)}",
            "facts": f"{'; '.join(facts)}.",
            "part": cable.near.label,
            "host": next((end.owner for end in cable.ends if end.is_nic), cable.near.owner),
        }
        findings.append(
            _told(
                model,
                evidence,
                words,
                entities=entities_of(cable.ends),
                families={"counters", "topology"} if both else {"counters"},
                drivers=[
                    driver(
                        model,
                        "peers",
                        f"speed of {end['owner']} {end['part']}",
                        float(end["speed_gbps"]),
                        peer=end["usual_gbps"],
                        unit="Gb/s",
                    )
                    for end in cable.rows.iter_rows(named=True)
                    if end["speed_gbps"] is not None
                ],
                cost=cost,
                since=row["since"],
                changed=_changed(row),
            )
        )
    return findings


def _speed(row: dict[str, Any]) -> str:
    if row["speed_gbps"] is None or row["usual_gbps"] is None:
        return f"less than it could ({row['could_be']})"
    return f"{row['speed_gbps']:g} instead of {row['usual_gbps']:g} Gb/s"


def _speed_words(row: dict[str, Any]) -> str:
    text = f"{row['owner']} {row['part']}"
    if row["speed_gbps"] is not None:
        text += f" runs at {row['speed_gbps']:g} Gb/s"
    if row["usual_gbps"] is not None:
        text += (
            f", {row['agreeing']} of the {row['peers']} ports of its role "
            f"({row['role']}) at {row['usual_gbps']:g}"
        )
    return text + (f", and the fabric says: {row['could_be']}" if row["could_be"] else "")


def _changed(row: dict[str, Any]) -> bool:
    """Whether the port ran faster when it was first asked."""
    first, now = row["first_gbps"], row["speed_gbps"]
    return first is not None and now is not None and first > now


def _cost(row: dict[str, Any], evidence: Evidence, trends: list[StepTimeTrend]) -> Cost | None:
    if _changed(row):
        return cost_of(evidence, trends, [(row["since"], row["since"] + _BEYOND)])
    return cost_of(evidence, trends, [], whole_run=True)


def _missing_nics(evidence: Evidence, model: Model, trends: list[StepTimeTrend]) -> list[Finding]:
    """A NIC that most hosts have and one has not; a source that most hosts lack tells nothing."""
    missing = evidence.frame("missing_nics").filter(
        pl.col("hosts") > model.limit("peers"),
        pl.col("having") >= model.limit("agreeing") * pl.col("hosts"),
    )
    findings = []
    for (host, nic), rows in missing.group_by("host", "nic", maintain_order=True):
        having, hosts = rows.row(0, named=True)["having"], rows.row(0, named=True)["hosts"]
        words = {
            "what": f"{host} has no working {nic}",
            "facts": f"{having} of {hosts} hosts have it up.",
            "part": f"{host} {nic}",
            "host": host,
        }
        findings.append(
            _told(
                model,
                evidence,
                words,
                entities=entities_of([End(str(host), str(nic), is_nic=True)]),
                families={"counters"},
                drivers=[driver(model, "agreeing", f"hosts with {nic}", float(having))],
                cost=cost_of(evidence, trends, [], whole_run=True),
            )
        )
    return findings


def _narrow_pcie(evidence: Evidence, model: Model, trends: list[StepTimeTrend]) -> list[Finding]:
    """A device that only a few hosts train down; what most hosts do is how they are built."""
    narrow = evidence.frame("pcie_limits").filter(
        pl.col("hosts") > model.limit("peers"),
        pl.col("limited") <= (1 - model.limit("agreeing")) * pl.col("hosts"),
    )
    findings = []
    for host, part, text, limited, hosts in narrow.iter_rows():
        words = {
            "what": f"PCIe device {part} of {host} trained below what it can do",
            "facts": f"{text}. So on {limited} of {hosts} hosts.",
            "part": f"{host} {part}",
            "host": host,
        }
        findings.append(
            _told(
                model,
                evidence,
                words,
                entities=(Entity("host", host=host),),
                families={"log"},
                drivers=[driver(model, "agreeing", "hosts trained down", float(limited))],
                cost=cost_of(evidence, trends, [], whole_run=True),
            )
        )
    return findings


def _told(
    model: Model,
    evidence: Evidence,
    words: dict[str, Any],
    *,
    entities: tuple[Entity, ...],
    families: set[str],
    drivers: list[Driver],
    cost: Cost | None,
    since: datetime | None = None,
    changed: bool = False,
) -> Finding:
    felt = cost is not None and cost.felt
    start = since if changed else cost.start if cost is not None else since
    return build_finding(
        model,
        evidence,
        words,
        entities=entities,
        families=families | ({"timing"} if felt else set()),
        drivers=drivers,
        start=start,
        # A port says at once how fast it runs.
        detected_at=since if since is not None else start,
        cost=cost,
        # Where no job is known, nobody is known to wait for it.
        unmeasured="low" if evidence.frame("step_times").is_empty() else "medium",
    )
