"""ECMP skew: an uplink group less even than hashing the job's flows explains, and harmful."""

from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import polars as pl

from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.findings import (
    Driver,
    Entity,
    Finding,
    Judgement,
    Severity,
    confidence_of,
    severity_of_loss,
)
from fabricobs.diagnosis.job import JobPace, Slowdown
from fabricobs.diagnosis.model import Model
from fabricobs.diagnosis.statistics import (
    Array,
    change_points,
    differs,
    flows_that_explain,
    hashing_p,
    jain,
    jain_of_hashing,
    relative_shift,
    top_half_share,
)

_FEWEST_FLOWS = 4.0
_LEAST_FREEDOM = 7
_SPLIT_WINDOWS = 3


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Intervals of one group that share alike: pooled load by port."""

    begin: datetime
    end: datetime
    first_window_end: datetime
    second_window_end: datetime
    windows: int
    ports: tuple[str, ...]
    loads: Array
    tx_gbps: float
    capacity_gbps: float | None


@dataclass(frozen=True, slots=True)
class _Skew:
    """A stretch that hashing does not explain."""

    device: str
    stretch: _Stretch
    flows: float
    p: float
    expected_jain: float
    from_start: bool


def find_ecmp_skew(evidence: Evidence, model: Model, paces: list[JobPace]) -> Judgement:
    """Return one finding a switch whose uplinks are polarised; a unit is an uplink group."""
    intervals = evidence.frame("uplink_intervals")
    flows = dict(evidence.frame("crossing_flows").select("device", "flows").iter_rows())
    stretches = {group: _stretches(rows, model) for group, rows in _by_group(intervals)}
    findings: list[Finding] = []
    judged = 0
    for group, parts in stretches.items():
        device = str(intervals.filter(pl.col("uplink_group") == group)["device"][0])
        counted = flows.get(device)
        known = counted or _estimated_flows(group, stretches)
        if known is None or not parts:
            continue
        # Many groups are judged at once: one run in a thousand may err, not one group.
        largest_p = model.limit("p") / len(stretches)
        skews = [
            skew
            for position, part in enumerate(parts)
            if (skew := _judge(device, part, float(known), largest_p, model, position == 0))
        ]
        finding = _finding(skews, evidence, model, paces) if skews else None
        # An estimated flow number alone accuses nobody: the job must have felt it.
        if finding is not None and counted is None and finding.severity == "low":
            continue
        judged += 1
        if finding is not None:
            findings.append(finding)
    return Judgement(tuple(findings), judged, len(stretches) - judged)


def _by_group(intervals: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    groups = intervals["uplink_group"].unique(maintain_order=True).to_list()
    return [(str(g), intervals.filter(pl.col("uplink_group") == g).sort("ts")) for g in groups]


def _stretches(rows: pl.DataFrame, model: Model) -> list[_Stretch]:
    """Cut a group's busy intervals where their evenness changes, and pool each part."""
    busy_sent = float(rows["sent"].median() or 0.0)  # type: ignore[arg-type]
    busy = rows.filter(pl.col("sent") >= model.limit("quiet_share") * busy_sent)
    least = int(model.limit("least_windows"))
    if len(busy) < least:
        return []
    uneven = 1 - busy["jain"].to_numpy().astype(np.float64)
    cuts = change_points(1 + uneven, smallest=_SPLIT_WINDOWS, significance=0.01)
    bounds = [0, *cuts, len(busy)]
    return [
        _pool(busy.slice(begin, end - begin))
        for begin, end in zip(bounds, bounds[1:], strict=False)
        if end - begin >= least
    ]


def _pool(rows: pl.DataFrame) -> _Stretch:
    loads = np.sum(np.asarray(rows["loads"].to_list(), dtype=np.float64), axis=0)
    ends = rows["ts"].to_list()
    capacity = rows["capacity_gbps"].mean()
    return _Stretch(
        begin=rows["ts_before"][0],
        end=ends[-1],
        first_window_end=ends[0],
        second_window_end=ends[min(1, len(ends) - 1)],
        windows=len(rows),
        ports=tuple(rows["ports"][0]),
        loads=loads,
        tx_gbps=float(rows["tx_gbps"].mean() or 0.0),  # type: ignore[arg-type]
        capacity_gbps=None if capacity is None else float(capacity),  # type: ignore[arg-type]
    )


def _estimated_flows(group: str, stretches: dict[str, list[_Stretch]]) -> float | None:
    """Estimate the flow number from groups of as many links, or from other times of this one.

    CV^2 = (n - 1) / m for m equal flows on n links; None below seven degrees of freedom, where
    the estimate would be worth nothing.
    """
    links = {len(part.loads) for part in stretches[group]}
    siblings = [
        part
        for other, parts in stretches.items()
        for part in parts
        if other != group and len(part.loads) in links
    ]
    for parts in (siblings, stretches[group][:-1]):
        freedom = sum(len(part.loads) - 1 for part in parts)
        if freedom >= _LEAST_FREEDOM:
            spread = sum((len(part.loads) - 1) / flows_that_explain(part.loads) for part in parts)
            return max(freedom / max(spread, 1e-9), _FEWEST_FLOWS)
    return None


def _judge(
    device: str,
    stretch: _Stretch,
    flows: float,
    largest_p: float,
    model: Model,
    from_start: bool,
) -> _Skew | None:
    """Return the stretch as skew if hashing `flows` does not explain it."""
    links = len(stretch.loads)
    p = hashing_p(stretch.loads, flows)
    expected = jain_of_hashing(links, int(flows), model.limit("jain_quantile"))
    evenness = jain(stretch.loads)
    unlikely = p < largest_p and evenness < expected
    polarised = links >= 8 and top_half_share(stretch.loads) > model.limit("top_half_share")
    if not unlikely or not (polarised or evenness < model.limit("effect") * expected):
        return None
    return _Skew(device, stretch, flows, p, expected, from_start)


def _finding(skews: list[_Skew], evidence: Evidence, model: Model, paces: list[JobPace]) -> Finding:
    skew = skews[0]
    stretch = skew.stretch
    slowdown, pace = _slowdown_at(skew, paces)
    rise = _collective_rise(evidence, stretch.begin, slowdown)
    burst = _burst_utilisation(skew, evidence)
    pauses = _pause_rise(evidence, stretch.begin)
    families = {"counters", "topology"}
    harms: list[str] = []
    if rise is not None and rise >= model.limit("collective_rise"):
        families.add("timing")
        harms.append(f"Pure collective time rose by {rise:.0%} when it began.")
    if burst is not None and burst >= model.limit("burst_utilisation"):
        harms.append(f"While collectives run, its busiest link is {burst:.0%} busy.")
    if pauses is not None:
        before, after = pauses
        if after >= model.limit("pause_rate") and after >= model.limit("pause_rise") * before:
            families.add("correlation")
            harms.append(f"PFC pauses rose from {before:,.0f} to {after:,.0f} a second with it.")
    loss = _network_loss(slowdown) if slowdown and harms else None
    severity = _severity(loss, harmful=bool(harms))
    step = slowdown.first_step if slowdown else (pace.step_at(stretch.begin) if pace else None)
    share = stretch.loads / np.sum(stretch.loads)
    mean = 1 / len(share)
    hot = [port for port, part in zip(stretch.ports, share, strict=True) if part > mean]
    words = {
        "switch": skew.device,
        "top_half": top_half_share(stretch.loads),
        "hot": (len(share) + 1) // 2,
        "links": len(share),
        "step": step if step is not None else "?",
        "flows": skew.flows,
        "expected": skew.expected_jain,
        "jain": jain(stretch.loads),
        "p": skew.p,
        "imbalance": float(np.max(share)) / mean - 1,
        "harm": " ".join(harms) or "No harm to the job is measured.",
    }
    return Finding(
        kind=model.kind,
        entities=(Entity("switch", switch=skew.device),),
        related=(
            *(Entity("port", switch=skew.device, port=port) for port in hot),
            *_victims(evidence, skew.device),
        ),
        severity=severity,
        confidence=confidence_of(families),
        families=tuple(sorted(families)),
        title=model.wording.title.format(**words),
        explanation=model.wording.explanation.format(**words),
        start=slowdown.start if slowdown else stretch.begin,
        end=skews[-1].stretch.end,
        start_step=step,
        end_step=slowdown.last_step if slowdown else None,
        detected_at=stretch.second_window_end,
        loss_share=loss,
        gpu_hours_lost=evidence.gpu_hours(slowdown.job, slowdown.hours, loss) if slowdown else None,
        drivers=_drivers(skew, model, rise, burst),
        query=model.query,
        refuted_by=model.refuted_by,
        next_steps=tuple(text.format(switch=skew.device) for text in model.next_steps),
    )


def _network_loss(slowdown: Slowdown) -> float:
    """Return the loss that longer transfers explain; all of it where no records split it."""
    part = 1.0 if slowdown.network_part is None else slowdown.network_part
    return slowdown.loss_share * part


def _severity(loss: float | None, *, harmful: bool) -> Severity:
    """Rate by loss; a skew without measured loss is at most medium, without harm low."""
    if loss is not None:
        return severity_of_loss(loss)
    return "medium" if harmful else "low"


def _slowdown_at(skew: _Skew, paces: list[JobPace]) -> tuple[Slowdown | None, JobPace | None]:
    """Return the slowdown that began with the skew: within an interval of its first window."""
    window = skew.stretch.first_window_end - skew.stretch.begin
    slack = max(window, timedelta(seconds=10))
    for pace in paces:
        for slowdown in pace.slowdowns:
            if slowdown.start is None or skew.from_start:
                continue
            if abs(slowdown.start - skew.stretch.begin) <= 1.5 * slack:
                return slowdown, pace
    return None, (paces[0] if paces else None)


def _collective_rise(
    evidence: Evidence, onset: datetime, slowdown: Slowdown | None
) -> float | None:
    """Return by how much pure collective time rose at the onset, None if it cannot be told."""
    calls = evidence.frame("collective_times").drop_nulls("ts")
    moment = slowdown.start if slowdown and slowdown.start else onset
    before = calls.filter(pl.col("ts") < moment)["pure_us"].to_numpy().astype(np.float64)
    after = calls.filter(pl.col("ts") >= moment)["pure_us"].to_numpy().astype(np.float64)
    if len(before) < 10 or len(after) < 10 or differs(before, after) >= 0.001:
        return None
    return relative_shift(before, after)


def _burst_utilisation(skew: _Skew, evidence: Evidence) -> float | None:
    """Return the busiest link's utilisation while collectives run: mean / share of the step."""
    steps = evidence.frame("rank_steps").drop_nulls(["comm_ms", "step_time_ms"])
    stretch = skew.stretch
    during = steps.filter(pl.col("ts").is_between(stretch.begin, stretch.end))
    if during.is_empty() or not stretch.capacity_gbps:
        return None
    transfers = during.group_by("step").agg(
        (pl.col("comm_ms").min() / pl.col("step_time_ms").median()).alias("busy")
    )
    busy = float(transfers["busy"].median() or 0.0)  # type: ignore[arg-type]
    share = stretch.loads / np.sum(stretch.loads)
    link_gbps = stretch.capacity_gbps / len(share)
    return float(np.max(share)) * stretch.tx_gbps / link_gbps / max(busy, 0.01)


def _pause_rise(evidence: Evidence, onset: datetime) -> tuple[float, float] | None:
    """Return the mean pause frames a second of a device before and after the onset."""
    pauses = evidence.frame("pauses")
    total = pl.col("rx_frames_per_second").fill_null(0) + pl.col("tx_frames_per_second").fill_null(
        0
    )
    before = pauses.filter(pl.col("ts") <= onset).select(total.mean()).item()
    after = pauses.filter(pl.col("ts_before") >= onset).select(total.mean()).item()
    return None if before is None or after is None else (float(before), float(after))


def _victims(evidence: Evidence, device: str) -> tuple[Entity, ...]:
    """Return the hosts whose ranks send through the switch."""
    flows = evidence.frame("leaf_hosts").filter(pl.col("leaf") == device)
    return tuple(Entity("host", host=str(host)) for host in flows["host"])


def _drivers(
    skew: _Skew, model: Model, rise: float | None, burst: float | None
) -> tuple[Driver, ...]:
    loads = skew.stretch.loads
    limit, thresholds = model.limit, model.threshold
    drivers = [
        Driver(
            "Jain's index of the uplinks",
            round(jain(loads), 3),
            round(skew.expected_jain, 3),
            "",
            None,
            round(skew.expected_jain, 3),
            thresholds["jain_quantile"].source,
        ),
        Driver(
            "share of the busier half",
            round(top_half_share(loads), 3),
            0.5,
            "",
            None,
            limit("top_half_share"),
            thresholds["top_half_share"].source,
        ),
        Driver("p of hashing", skew.p, None, "", None, limit("p"), thresholds["p"].source),
    ]
    if rise is not None:
        source = thresholds["collective_rise"].source
        limit_rise = limit("collective_rise")
        drivers.append(
            Driver("rise of collective time", round(rise, 3), 0.0, "", None, limit_rise, source)
        )
    if burst is not None:
        source = thresholds["burst_utilisation"].source
        limit_burst = limit("burst_utilisation")
        drivers.append(
            Driver("burst utilisation", round(burst, 3), None, "", None, limit_burst, source)
        )
    return tuple(drivers)
