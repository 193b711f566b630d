"""ECMP skew: an uplink group less even than hashing the job's flows explains, and harmful."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import numpy as np
import polars as pl

from fabricobs.diagnosis.device_commands import switch_commands_of
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.finding_builder import refutations_of, steps_of, with_phrases
from fabricobs.diagnosis.findings import (
    Driver,
    Entity,
    Finding,
    MethodResult,
    NotJudged,
    Power,
    Severity,
    confidence_of,
    severity_of_loss,
)
from fabricobs.diagnosis.job import StepTimeTrend
from fabricobs.diagnosis.model import Model
from fabricobs.diagnosis.name_lists import at_most
from fabricobs.diagnosis.skew_harm import burst_utilisation, collective_rise, pause_rise
from fabricobs.diagnosis.skew_tests import (
    FEWEST_HALVED,
    Skew,
    links_before,
    skews_of,
    slowdown_of,
)
from fabricobs.diagnosis.slowdowns import Slowdown
from fabricobs.diagnosis.statistics import jain, jain_of_hashing, odds, top_half_share
from fabricobs.diagnosis.uplink_stretches import (
    SharedStretch,
    by_group,
    ends_with_its_traffic,
    estimated_flows,
    flows_of_even,
    shared_stretches,
)

# Times NCCL's connections: beyond them evenness tells of other flows, several queue pairs each or
# adaptive routing. A judgement: an estimate of seven degrees of freedom errs by half.
_CONTRADICTED = 4
_MOST_NAMED = 3  # devices of one reason
_MOST_COLD = 8  # links that are named
# A majority of three quarters of three and more groups tells what is usual.
_FEWEST_SIBLINGS = 3
_NEARLY_ALL = 0.75
# Why a group cannot be judged, and what would settle it.
_BUSY = "counters while jobs use these links"
_FLOWS = (
    "the flows are not known",
    "NCCL_DEBUG=INFO logs of all ranks of every job whose traffic crosses these switches",
)
_MORE_FLOWS = "counters while a job with more flows runs (NCCL_IB_QPS_PER_CONNECTION=4)"
_OTHERS = (
    "none of the job's flows crosses it, so its traffic is of others",
    "NCCL_DEBUG=INFO logs of every job whose traffic crosses these switches",
)
_TRAFFIC = "there is too little traffic", _BUSY
_MORE_READINGS = "counters read more often, or over more time"
_READINGS = "too few readings of their counters lie within the job's time", _MORE_READINGS
_MOSTLY = 0.5  # of what steps took longer: then the network slowed them


def find_ecmp_skew(evidence: Evidence, model: Model, trends: list[StepTimeTrend]) -> MethodResult:
    """Return one finding a switch whose uplinks are polarised; a unit is an uplink group.

    Ports that only look like parallel links may lead to hosts, and those send as the job does: they
    are not judged, unless half of them become empty and all receive as before. Nor is a group
    judged whose data would not show a skew that matters.
    """
    intervals = evidence.frame("uplink_intervals")
    inferred = {*intervals.filter("inferred")["uplink_group"]}
    device_of = dict(intervals.select("uplink_group", "device").unique().iter_rows())
    flows = dict(evidence.frame("crossing_flows").select("device", "flows").iter_rows())
    groups = dict(by_group(intervals))
    stretches = {group: shared_stretches(rows, model) for group, rows in groups.items()}
    estimated = dict[str, float | None]()
    for kind in (stretches.keys() - inferred, inferred):
        estimated |= estimated_flows({g: parts for g, parts in stretches.items() if g in kind})
    findings: list[Finding] = []
    powers: list[Power] = []
    opened: dict[tuple[str, str], list[str]] = {}  # devices by reason and what settles it
    judged = idle = untold = 0
    for group, parts in stretches.items():
        device = device_of[group]
        if group in inferred and not any(_receives_alike(part, model) for part in parts[1:]):
            untold += 1
            continue
        counted = flows.get(device)
        if counted == 0:
            if _is_idle(map(_rate, parts), model):
                idle += 1
            else:
                opened.setdefault(_OTHERS, []).append(device)
            continue
        if counted and (estimated[group] or 0) > _CONTRADICTED * counted:
            counted = None  # links so even carry more flows than NCCL's connections
        even = flows_of_even(parts, model)
        known = counted or estimated[group] or even
        if not parts:
            read = groups[group].select("tx_gbps", "capacity_gbps").iter_rows()
            opened.setdefault(_TRAFFIC if _is_idle(read, model) else _READINGS, []).append(device)
            continue
        # Many groups are judged at once: one run in a thousand may err, not one group.
        largest_p = model.limit("p") / len(stretches)
        skews = skews_of(device, parts, known, largest_p, model, trends)
        if group in inferred:
            skews = [s for s in skews if _leaves_links_empty(s.stretch, parts, model)]
            if not skews:
                untold += 1
                continue
        if known is None and not skews:
            opened.setdefault(_FLOWS, []).append(device)
            continue
        finding = None
        if skews:
            sibling = _sibling(group, stretches, device_of)
            finding = replace(
                _finding(
                    skews, sibling, evidence, model, trends, lasts=skews[-1].stretch is parts[-1]
                ),
                traffic_ended=ends_with_its_traffic(groups[group], skews[-1].stretch, model),
            )
        # An estimated flow number alone accuses nobody: the job must have felt it, or nearly all
        # switches of as many links and as much traffic must be even.
        unsure = finding is not None and counted is None and finding.severity == "low"
        if unsure and not _stands_out(group, stretches, model):
            opened.setdefault(_FLOWS, []).append(device)
            continue
        power = _power(parts, max(known or skews[0].flows, even or 0.0), model)
        reason = _too_weak(parts, power, model)
        if finding is None and reason:
            opened.setdefault(reason, []).append(device)
            continue
        judged += 1
        powers.append(power)
        if finding is not None:
            findings.append(finding)
    return MethodResult(
        tuple(findings),
        judged,
        len(stretches) - judged - idle,
        max(powers, key=lambda power: power.effect, default=None),
        tuple(_not_judged(opened, untold)),
    )


def _leaves_links_empty(
    stretch: SharedStretch, parts: Sequence[SharedStretch], model: Model
) -> bool:
    """Say whether half of the links that carried traffic before carry none, and receive as before.

    More for one port alone is what a host receives.
    """
    earlier = (part for part in parts if part.end <= stretch.begin)
    return links_before(stretch, earlier, model) is not None and _receives_alike(stretch, model)


def _receives_alike(part: SharedStretch, model: Model) -> bool:
    """Say whether all links of a group received alike: hosts that send nothing do not."""
    return part.receipts is not None and jain(part.receipts) >= model.limit("even")


def _stands_out(group: str, stretches: Mapping[str, Sequence[SharedStretch]], model: Model) -> bool:
    """Say whether groups of as many links are even, and carry no more than twice as much."""
    own = stretches[group]
    alike = [
        parts
        for other, parts in stretches.items()
        if parts and other != group and len(parts[0].loads) == len(own[0].loads)
    ]
    even = sum(min(jain(part.loads) for part in parts) >= model.limit("even") for parts in alike)
    usual = float(np.median([parts[-1].tx_gbps for parts in alike] or [np.inf]))
    enough = len(alike) >= _FEWEST_SIBLINGS and even >= _NEARLY_ALL * len(alike)
    return enough and 2 * own[-1].tx_gbps >= usual


def _not_judged(
    opened: Mapping[tuple[str, str], Sequence[str]], untold: int
) -> Iterator[NotJudged]:
    """Yield each reason with the devices it holds for, and what would settle it."""
    if untold:
        reason = f"no log tells whether {untold:,} more are parallel links"
        yield NotJudged(reason, "LLDP neighbours of the switches")
    for (reason, settled_by), devices in opened.items():
        named = sorted(set(devices))
        more = f" and {len(named) - _MOST_NAMED:,} more" if len(named) > _MOST_NAMED else ""
        yield NotJudged(f"{', '.join(named[:_MOST_NAMED])}{more}: {reason}", settled_by)


def _sibling(
    group: str, stretches: Mapping[str, Sequence[SharedStretch]], device_of: Mapping[str, str]
) -> str:
    """Name the switch to compare with: of the same kind of name and links the most even."""

    def kind(name: str) -> str:
        return re.sub(r"\d+", "", name)

    device, links = device_of[group], len(stretches[group][0].loads)
    own = kind(device)
    alike = {
        device_of[other]: min(jain(part.loads) for part in parts)
        for other, parts in stretches.items()
        if parts
        and len(parts[0].loads) == links
        and device_of[other] != device
        and kind(device_of[other]) == own
    }
    if not alike:
        return "a sibling"
    return f"{max(alike, key=lambda name: alike[name])}, the most even of its kind"


def _power(parts: Sequence[SharedStretch], flows: float, model: Model) -> Power:
    """Return the smallest skew that would show: by how much one half of the links exceeds the mean.

    Loads of 1 + x and 1 - x give Jain's index 1 / (1 + x^2), and a busier half of (1 + x) / 2.
    """
    links = len(parts[0].loads)
    expected = jain_of_hashing(links, int(flows), model.limit("jain_quantile"))
    effect = float(np.sqrt(max(1 / (model.limit("effect") * expected) - 1, 0.0)))
    if links >= FEWEST_HALVED:
        halved = max(1 / expected - 1, (2 * model.limit("top_half_share") - 1) ** 2)
        effect = min(effect, float(np.sqrt(halved)))
    seconds = max(part.sure_after.total_seconds() for part in parts)
    return Power(
        effect, "over the mean link", "a switch that sends {} through half of its uplinks", seconds
    )


def _too_weak(parts: Sequence[SharedStretch], power: Power, model: Model) -> tuple[str, str] | None:
    """Say why a group's data would show no skew that matters, and what would; None if they do."""
    lasted = sum((part.end - part.begin).total_seconds() for part in parts)
    if _is_idle(map(_rate, parts), model):
        return f"uplinks carry less than {model.limit('least_use'):.1%} of their rate", _BUSY
    if power.effect >= 1:
        return "links are uneven, and as few flows as theirs may explain it", _MORE_FLOWS
    if power.seconds > model.limit("most_unseen") * lasted:
        # In whole minutes, so that groups that are read alike are told as one.
        minutes = f"{int(np.ceil(power.seconds / 60)):,} min"
        return f"counters are read too rarely to show a skew of less than {minutes}", _MORE_READINGS
    return None


def _rate(part: SharedStretch) -> tuple[float | None, float | None]:
    return part.tx_gbps, part.capacity_gbps


def _is_idle(rates: Iterable[tuple[float | None, float | None]], model: Model) -> bool:
    """Say whether a group carries too little of its capacity, both in Gb/s, to slow anyone."""
    uses = [gbps / capacity for gbps, capacity in rates if gbps is not None and capacity]
    return bool(uses) and max(uses) < model.limit("least_use")


def _finding(
    skews: list[Skew],
    sibling: str,
    evidence: Evidence,
    model: Model,
    trends: list[StepTimeTrend],
    *,
    lasts: bool,
) -> Finding:
    """Tell of the stretches of one switch; `lasts` says that the last of all is one of them."""
    skew = skews[0]
    stretch = skew.stretch
    slowdown, pace = _slowdown_at(skew, trends)
    rise = collective_rise(evidence, stretch, slowdown)
    burst = burst_utilisation(stretch, evidence)
    pauses = pause_rise(evidence, stretch)
    families = {"counters", "topology"}
    harms: list[str] = []
    if rise is not None and rise >= model.limit("collective_rise"):
        families.add("timing")
        harms.append(f"Pure collective time rose by {rise:.0%} when it began.")
    elif slowdown is not None and (slowdown.network_part or 0.0) >= _MOSTLY:
        families.add("timing")
        harms.append("Most of what steps took longer since it began was transfers.")
    elif slowdown is not None and slowdown.network_part is None:
        families.add("timing")
        harms.append("Steps take longer since it began; no record tells which part of them.")
    if burst is not None and burst >= model.limit("burst_utilisation"):
        harms.append(f"While collectives ran, its busiest link was {burst:.0%} busy.")
    if pauses is not None:
        before, after = pauses
        if after >= model.limit("pause_rate") and after >= model.limit("pause_rise") * before:
            families.add("correlation")
            harms.append(
                f"PFC pause frames per device rose from {before:,.0f} to {after:,.0f} a second."
            )
    loss = _network_loss(slowdown) if slowdown and harms else None
    severity = _severity(loss, harmful=bool(harms))
    step = slowdown.first_step if slowdown else (pace.step_at(stretch.begin) if pace else None)
    share = stretch.loads / np.sum(stretch.loads)
    mean = 1 / len(share)
    hot = [port for port, part in zip(stretch.ports, share, strict=True) if part > mean]
    cold = [port for port in stretch.ports if port not in stretch.used]
    half, top = (len(share) + 1) // 2, top_half_share(stretch.loads)
    if len(stretch.used) < half:
        half, top = len(stretch.used), float(np.sum(np.sort(share)[-len(stretch.used) :]))
    words = {
        "switch": skew.device,
        "used": len(stretch.used),
        "guessed": None if stretch.receipts is None else "",
        "before": skew.used_before,
        "cold": at_most(cold, _MOST_COLD) if cold else None,
        "top_half": top,
        "hot": half,
        "links": len(share),
        "since": f"{stretch.begin:%H:%M:%S} UTC" if step is None else f"step {step}",
        "flows": skew.flows,
        "expected": skew.expected_jain,
        "jain": jain(stretch.loads),
        "p": odds(skew.p),
        "imbalance": float(np.max(share)) / mean - 1,
        "harm": " ".join(harms) or "No harm to the job was measured.",
    }
    filled = with_phrases(model, words)
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
        explanation=model.wording.explanation.format(**filled),
        start=slowdown.start if slowdown else stretch.begin,
        end=skews[-1].stretch.end,
        start_step=step,
        end_step=_last_step(slowdown, pace, None if lasts else skews[-1].stretch.end),
        detected_at=stretch.begin + stretch.sure_after,
        loss_share=loss,
        drivers=_drivers(skew, model, rise, burst),
        query=model.query,
        refuted_by=refutations_of(model, words),
        next_steps=steps_of(
            model,
            words | {"sibling": sibling},
            switch_commands_of(evidence, (Entity("switch", switch=skew.device),)),
        ),
    )


def _last_step(
    slowdown: Slowdown | None, pace: StepTimeTrend | None, end: datetime | None
) -> int | None:
    """Return the last step of a slowdown, no later than the skew that made it ended, if it did."""
    if slowdown is None or pace is None:
        return None
    ended = None if end is None else pace.step_at(end)
    return slowdown.last_step if ended is None else min(slowdown.last_step, ended)


def _network_loss(slowdown: Slowdown) -> float:
    """Return the loss that longer transfers explain; all of it where no records split it."""
    part = 1.0 if slowdown.network_part is None else slowdown.network_part
    return slowdown.loss_share * part


def _severity(loss: float | None, *, harmful: bool) -> Severity:
    """Rate by loss; a skew without measured loss is at most medium, without harm low."""
    if loss is not None:
        return severity_of_loss(loss)
    return "medium" if harmful else "low"


def _slowdown_at(
    skew: Skew, trends: list[StepTimeTrend]
) -> tuple[Slowdown | None, StepTimeTrend | None]:
    """Return the slowdown that began with the skew: within an interval of its first window."""
    found = None if skew.from_start else slowdown_of(skew.stretch, trends)
    return found or (None, trends[0] if trends else None)


def _victims(evidence: Evidence, device: str) -> tuple[Entity, ...]:
    """Return the hosts whose ranks send through the switch."""
    flows = evidence.frame("leaf_hosts").filter(pl.col("leaf") == device)
    return tuple(Entity("host", host=str(host)) for host in flows["host"])


def _unevenness(skew: Skew, model: Model) -> Driver:
    """Return how uneven the links are, or how few carry traffic where that tells the skew."""
    if skew.used_before is not None:
        most, before = model.threshold["links_used"], skew.used_before
        what, used = "links that carry traffic, expected as before", len(skew.stretch.used)
        return Driver(what, used, before, "", None, most.value * before, most.source)
    return Driver(
        "Jain's index of the uplinks (1: even)",
        round(jain(skew.stretch.loads), 3),
        round(skew.expected_jain, 3),
        "",
        None,
        round(skew.largest_jain, 3),
        model.threshold["jain_quantile"].source,
    )


def _drivers(
    skew: Skew, model: Model, rise: float | None, burst: float | None
) -> tuple[Driver, ...]:
    loads = skew.stretch.loads
    limit, thresholds = model.limit, model.threshold
    drivers = [
        _unevenness(skew, model),
        Driver(
            "share of the busier half",
            round(top_half_share(loads), 3),
            0.5,
            "",
            None,
            limit("top_half_share"),
            thresholds["top_half_share"].source,
        ),
        Driver(
            "probability under random hashing",
            skew.p,
            None,
            "",
            None,
            limit("p"),
            thresholds["p"].source,
        ),
    ]
    # What does not reach its threshold is no evidence.
    limit_rise, limit_burst = limit("collective_rise"), limit("burst_utilisation")
    if rise is not None and rise >= limit_rise:
        source = thresholds["collective_rise"].source
        drivers.append(
            Driver("rise of collective time", round(rise, 3), 0.0, "", None, limit_rise, source)
        )
    if burst is not None and burst >= limit_burst:
        source = thresholds["burst_utilisation"].source
        drivers.append(
            Driver("burst utilisation", round(burst, 3), None, "", None, limit_burst, source)
        )
    return tuple(drivers)
