"""Oversubscription: the uplinks of nearly all leaves are even and full while collectives run."""

from dataclasses import dataclass
from datetime import datetime

import numpy as np
import polars as pl

from fabricobs.diagnosis.cost import cost_of
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.finding_builder import build_finding, driver
from fabricobs.diagnosis.findings import Entity, Finding, MethodResult
from fabricobs.diagnosis.job import StepTimeTrend
from fabricobs.diagnosis.model import Model
from fabricobs.diagnosis.statistics import Array

_QUIET = 0.25  # of the busy median: intervals before and after the job


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A leaf whose uplinks are even and full, and when that was first sure."""

    name: str
    burst: float
    imbalance: float
    ratio: float | None
    nic_gbps: float | None
    uplink_gbps: float | None
    begin: datetime
    end: datetime
    sure: datetime


def find_oversubscription(
    evidence: Evidence, model: Model, trends: list[StepTimeTrend]
) -> MethodResult:
    """Return one finding if nearly all leaves are too narrow; a unit judged is a leaf."""
    capacity = evidence.frame("leaf_capacity")
    leaves = len(capacity)
    busy = _transfer_share(evidence)
    windows = evidence.frame("uplink_windows").drop_nulls(["tx_gbps", "capacity_gbps"])
    judged, full = 0, []
    for row in capacity.iter_rows(named=True):
        own = windows.filter(pl.col("uplink_group") == row["uplink_group"]).sort("ts")
        own = own.filter(pl.col("sent") >= _QUIET * pl.col("sent").median())
        own = own.slice(1)  # the first is in part before the job
        if busy is None or len(own) < model.limit("windows"):
            continue
        judged += 1
        leaf = _full(row, own, busy, model)
        if leaf is not None:
            full.append(leaf)
    if not full or len(full) < model.limit("leaves") * leaves:
        return MethodResult(judged=judged, not_checked=leaves - judged)
    finding = _finding(full, leaves, evidence, model, trends)
    return MethodResult((finding,), judged, leaves - judged)


def _transfer_share(evidence: Evidence) -> float | None:
    """Return the share of the step in which the busiest job transfers, None if nobody tells."""
    steps = evidence.frame("job_steps").drop_nulls(["transfer_ms", "step_time_ms"])
    shares = steps.group_by("job").agg(
        (pl.col("transfer_ms") / pl.col("step_time_ms")).median().alias("share")
    )
    share = shares["share"].max()
    return float(share) if isinstance(share, int | float) and share > 0 else None


def _full(row: dict[str, object], own: pl.DataFrame, busy: float, model: Model) -> _Leaf | None:
    """Return the leaf if its uplinks, over the whole run, are even and full."""
    loads = np.cumsum(np.asarray(own["loads"].to_list(), dtype=np.float64), axis=0)
    seconds = np.cumsum(own["seconds"].to_numpy())
    gigabits = np.cumsum((own["tx_gbps"] * own["seconds"]).to_numpy())
    capacity = float(own["capacity_gbps"].max())  # type: ignore[arg-type]
    bursts: Array = gigabits / seconds / capacity / busy
    imbalances: Array = loads.max(axis=1) / loads.mean(axis=1) - 1
    ratio = row["ratio"] if isinstance(row["ratio"], float) else None
    narrow = ratio is not None and ratio >= model.limit("ratio")
    enough = model.limit("narrow_utilisation" if narrow else "burst_utilisation")
    holds = (bursts >= enough) & (imbalances < model.limit("imbalance"))
    least = int(model.limit("windows")) - 1
    # Leaves as wide up as down are full for other jobs: what they send is not measured here.
    if not holds[-1] or (ratio is not None and not narrow):
        return None
    first = least + int(np.argmax(holds[least:]))
    return _Leaf(
        name=str(row["device"]),
        burst=float(bursts[-1]),
        imbalance=float(imbalances[-1]),
        ratio=ratio,
        nic_gbps=row["nic_gbps"] if isinstance(row["nic_gbps"], float) else None,
        uplink_gbps=row["uplink_gbps"] if isinstance(row["uplink_gbps"], float) else None,
        begin=own["ts_before"][0],
        end=own["ts"][-1],
        sure=own["ts"][first],
    )


def _finding(
    full: list[_Leaf], leaves: int, evidence: Evidence, model: Model, trends: list[StepTimeTrend]
) -> Finding:
    worst = max(full, key=lambda leaf: leaf.ratio or 0.0)
    burst = float(np.median([leaf.burst for leaf in full]))
    imbalance = float(np.median([leaf.imbalance for leaf in full]))
    start, end = min(leaf.begin for leaf in full), max(leaf.end for leaf in full)
    cost = cost_of(evidence, trends, [(start, end)], whole_run=True)
    design = f"{worst.ratio:.3g}:1 by design" if worst.ratio else "more crosses than fits"
    words = {
        "leaves": len(full),
        "all_leaves": leaves,
        "switch": worst.name,
        "design": design,
        "burst": burst,
        "imbalance": imbalance,
        "nic_gbps": _gbps(worst.nic_gbps),
        "uplink_gbps": _gbps(worst.uplink_gbps),
        "capacity": f"{worst.name} has {_gbps(worst.uplink_gbps)} Gb/s up for "
        f"{_gbps(worst.nic_gbps)} Gb/s of NICs.",
    }
    names = {leaf.name for leaf in full}
    below = evidence.frame("leaf_hosts").filter(pl.col("leaf").is_in(list(names)))
    narrow = worst.ratio is not None and worst.ratio >= model.limit("ratio")
    drivers = [
        driver(
            model,
            "narrow_utilisation" if narrow else "burst_utilisation",
            "burst utilisation of the uplinks",
            round(burst, 3),
        ),
        driver(model, "imbalance", "busiest uplink over the mean", round(imbalance, 3)),
    ]
    if worst.ratio is not None:
        drivers.append(driver(model, "ratio", "NICs over uplinks", round(worst.ratio, 2)))
    families = {"counters", "topology"}
    if cost is not None and cost.felt:
        families.add("timing")
    return build_finding(
        model,
        evidence,
        words,
        entities=[Entity("switch", switch=leaf.name) for leaf in full],
        related=[Entity("host", host=host) for host in below["host"].unique().sort()],
        families=families,
        drivers=drivers,
        start=start,
        end=end,
        detected_at=sorted(leaf.sure for leaf in full)[_needed(leaves, model, len(full)) - 1],
        cost=cost,
    )


def _needed(leaves: int, model: Model, full: int) -> int:
    """Return how many leaves settle it."""
    return min(max(int(np.ceil(model.limit("leaves") * leaves)), 1), full)


def _gbps(value: float | None) -> str:
    return "an unknown rate of" if value is None else f"{value:,.0f}"
