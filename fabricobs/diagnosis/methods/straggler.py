"""Stragglers: a rank that works longer than its peers and arrives last, or its whole host.

The rank that arrives last has the SHORTEST collective time; the long ones are its victims.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np

from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.finding_builder import driver, refutations_of, steps_of, with_phrases
from fabricobs.diagnosis.findings import (
    SEVERITIES,
    Driver,
    Entity,
    Finding,
    MethodResult,
    Power,
    Severity,
    confidence_of,
    severity_of_loss,
)
from fabricobs.diagnosis.job import StepTimeTrend
from fabricobs.diagnosis.later_units import later_units
from fabricobs.diagnosis.methods.slow_gpus import clocks_of, gpus_of, kernel_is_silent
from fabricobs.diagnosis.methods.straggler_loss import (
    AT_START_STEPS,
    SAME_ONSET_STEPS,
    begun_with,
    loss_of,
    onset_of,
)
from fabricobs.diagnosis.model import Model
from fabricobs.diagnosis.naming import during, listed, place_of
from fabricobs.diagnosis.rank_compute_times import RankTimes, rank_compute_times
from fabricobs.diagnosis.slow_ranks import (
    THROUGHOUT,
    SlowUnit,
    alike,
    find_slow,
    judged_ranks,
    smallest_excess,
    usual_excess,
    without_most,
)
from fabricobs.diagnosis.slowdowns import Slowdown
from fabricobs.diagnosis.statistics import nan_median

# Bursts shorter than that may be pauses of any rank, one more often than others by chance.
_LEAST_BURST_STEPS = 5
_MOST_NAMES = 8
# Pipelines of published trainings have up to 16 stages (Llama 3, arXiv 2407.21783).
_MOST_STAGES = 16
_GROUPS = (
    " {many} of the ranks were slower from the start: these are two groups, which may be built so "
    "(pipeline stages, GPU models, firmware)."
)


def find_stragglers(
    evidence: Evidence, model: Model, trends: Sequence[StepTimeTrend]
) -> MethodResult:
    """Return one finding a straggling rank, or one a host whose ranks straggle together.

    A unit is a rank: judged are those with peers over enough steps, none where the ranks of a
    stage fall into groups too far apart for a median to speak for all.
    """
    findings: list[Finding] = []
    judged = ranks = 0
    powers: list[Power] = []
    for times in rank_compute_times(evidence):
        units = find_slow(times, model)
        priced: list[int] = []
        longer = [s for trend in trends if trend.job == times.job for s in trend.slowdowns]
        units = without_most(times, units + later_units(times, longer, units))
        for unit in alike(times, units):
            onset = onset_of(times, unit)
            begun = begun_with(times, unit, onset, longer)
            findings.append(_finding(times, unit, onset, priced, begun, model, evidence))
            priced += unit.columns.tolist()
            longer = [each for each in longer if each is not begun]
        judged += judged_ranks(times, units, model)
        ranks += len(times.ranks)
        powers += filter(None, [smallest_excess(times, model)])
    power = max(powers, key=lambda power: power.effect, default=None)
    return MethodResult(tuple(findings), judged, ranks - judged, power)


def moment_of(times: RankTimes, index: int) -> datetime | None:
    """Return when a step ended."""
    moment = times.ends[index]
    return None if np.isnat(moment) else moment.astype("datetime64[us]").item()


def _finding(
    times: RankTimes,
    unit: SlowUnit,
    onset: int,
    priced: Sequence[int],
    longer: Slowdown | None,
    model: Model,
    evidence: Evidence,
) -> Finding:
    """Tell of a unit; those already priced hide nobody. What costs little is information."""
    throughout = unit.share >= THROUGHOUT
    after = None if longer is None else int(times.steps[unit.first]) - longer.first_step
    with_them = after is not None and 0 <= after < times.spacing
    first = unit.first if with_them else onset
    begin, end = int(times.steps[first]), int(times.steps[unit.last])
    lost = loss_of(times, unit, begin, end, priced, longer)
    loss = lost.share
    numbers = _numbers(times, unit)
    culprits = _culprits(times, unit)
    all_along = throughout and not _since(unit, begin) and _reaches_end(times, unit)
    groups = _groups(times, unit) if all_along else ""
    loads = numbers["loading_ms"] is not None
    stage = all_along and not loads and len(unit.hosts) == 1 and _may_be_stage(times, unit)
    started, ended = moment_of(times, first), moment_of(times, unit.last)
    ranks = times.ranks[list(unit.columns)].tolist()
    clocks = {} if loads else clocks_of(times.job, ranks, started, ended, model, evidence)
    hosts = [Entity("host", host=host) for host in dict.fromkeys(e.host for e in culprits)]
    silent = kernel_is_silent({e.host for e in hosts}, started, ended, evidence) and not loads
    gpus = gpus_of(culprits, evidence)
    host = culprits[0].host or "the host"
    metered = f"{gpus['own_gpu']} of {host}" if gpus["of_gpu"] else host
    words = {
        "who": _who(culprits, evidence),
        "host": host,
        **gpus,
        "metered": metered,
        "when": during(started, ended),
        "work": _work(times, several=len(culprits) > 1),
        "wait": "wait" if len(culprits) > 1 else "waits",
        "loading": numbers["loading_ms"],
        "loading_peer": numbers["peer_loading_ms"],
        "computing": None if loads else "",
        "waiting": "" if loads else None,
        "silent": listed(hosts, _MOST_NAMES) if silent else None,
        "asked": None if silent or loads else "",
        "clocked": "" if clocks else None,
        "unclocked": None if loads or clocks else "",
        "clock": clocks.get("clock"),
        "peer_clock": clocks.get("peer_clock"),
        "their": "their" if len(culprits) > 1 else "its",
        "longer": _longer(times),
        "excess": numbers["excess"],
        "since": _since(unit, begin) if throughout else _in_bursts(times, unit, begin),
        "value": numbers["own_ms"],
        "peer": numbers["peer_ms"],
        "z": numbers["z"],
        "share": unit.share,
        "comm": numbers["comm_ms"],
        "comm_peer": numbers["peer_comm_ms"],
        "loss": loss,
        "hidden": "" if lost.hidden else None,
        "explained": lost.explained,
        "groups": groups,
        "last_ranks": len(unit.columns) if stage else None,
        "late_stages": _late_stages(times, unit),
        "by_rest": "" if times.by_rest else None,
    }
    words = with_phrases(model, words)
    families = {"timing"} | ({"correlation"} if unit.hosts else set())
    return Finding(
        kind=model.kind,
        entities=culprits,
        related=_ranks_of(times, unit) if unit.hosts else (),
        severity=_severity(unit, loss, throughout=throughout, groups=bool(groups)),
        confidence=confidence_of(families),
        families=tuple(sorted(families)),
        title=model.wording.title.format(**words),
        explanation=model.wording.explanation.format(**words),
        start=started,
        end=ended,
        start_step=begin,
        end_step=end,
        detected_at=moment_of(times, unit.detected),
        loss_share=loss,
        computes=times.measured and not times.by_rest and not loads,
        drivers=_drivers(numbers, model),
        query=model.query,
        refuted_by=refutations_of(model, words),
        next_steps=steps_of(model, words),
        bursts=()
        if throughout
        else tuple((int(times.steps[a]), int(times.steps[b])) for a, b in unit.bursts),
    )


def _severity(unit: SlowUnit, loss: float, *, throughout: bool, groups: bool) -> Severity:
    """Return the severity of the loss; at most `low` of short bursts, `medium` of two `groups`."""
    longest = max(last - first + 1 for first, last in unit.bursts)
    passing = not throughout and longest < _LEAST_BURST_STEPS
    most: Severity = "low" if passing else "medium" if groups else "critical"
    return min(severity_of_loss(loss), most, key=SEVERITIES.index)


def _late_stages(times: RankTimes, unit: SlowUnit) -> int | None:
    """Count the stages of a unit that is late at collectives, None if it is of one."""
    stages = len(np.unique(times.stages[unit.columns]))
    return stages if stages > 1 and not times.measured else None


def _reaches_end(times: RankTimes, unit: SlowUnit) -> bool:
    """Say whether a unit is late until the job ends: what ended was not built so."""
    return unit.last >= len(times.steps) - SAME_ONSET_STEPS


def _groups(times: RankTimes, unit: SlowUnit) -> str:
    """Say that a unit slow from the start may be built so: empty if it is neither many nor last."""
    count, size = len(times.ranks), len(unit.columns)
    if 3 * size > count:
        return _GROUPS.format(many="More than a third")
    if len(unit.hosts) > 1 and _may_be_stage(times, unit):
        return _GROUPS.format(many=f"The last {size}")
    return ""


def _may_be_stage(times: RankTimes, unit: SlowUnit) -> bool:
    """Say whether a unit is the last of few equal parts of a job whose stages no log tells."""
    few = len(times.ranks) <= _MOST_STAGES * len(unit.columns)
    return few and len(np.unique(times.stages)) == 1 and times.are_last_part(unit.columns)


def _culprits(times: RankTimes, unit: SlowUnit) -> tuple[Entity, ...]:
    """Return the hosts whose ranks are all slow, and the other ranks."""
    hosts = [Entity("host", host=host, job=times.job) for host in unit.hosts]
    ranks = [e for e in _ranks_of(times, unit, times.job) if e.host not in unit.hosts]
    return (*hosts, *ranks)


def _ranks_of(times: RankTimes, unit: SlowUnit, job: str | None = None) -> tuple[Entity, ...]:
    return tuple(replace(times.entity(column), job=job) for column in unit.columns)


def _who(culprits: Sequence[Entity], evidence: Evidence) -> str:
    """Name the culprits, and the part of the cluster that holds their hosts."""
    places = place_of((e.host if e.type == "host" else None for e in culprits), evidence)
    names = [replace(e, job=None) for e in culprits]
    return listed(names, _MOST_NAMES) + places


def _since(unit: SlowUnit, begin: int) -> str:
    return f" since step {begin}" if unit.first > AT_START_STEPS else ""


def _in_bursts(times: RankTimes, unit: SlowUnit, begin: int) -> str:
    end = int(times.steps[unit.last])
    bursts = "1 burst" if len(unit.bursts) == 1 else f"{len(unit.bursts)} bursts"
    return f" in {bursts}, {unit.share:.0%} of the steps {begin} to {end}"


def _longer(times: RankTimes) -> str:
    """Say of what a rank needs more than its peers."""
    if not times.measured:
        return "of a step later"
    return "more time" if times.by_rest else "longer"


def _work(times: RankTimes, *, several: bool) -> str:
    """Say what takes the unit longer, where it is not waiting for its data."""
    if not times.measured:
        return "arrive at their collectives" if several else "arrives at its collectives"
    if times.by_rest:
        return "need" if several else "needs"
    return "compute" if several else "computes"


def _loading(times: RankTimes, unit: SlowUnit) -> tuple[float, float] | None:
    """Return how long the unit and its peers wait for data, ms; None if it does other work longer.

    It waits for its data where that is most of what it takes longer than its peers.
    """
    stage = times.stages == times.stages[unit.columns[0]]
    late = times.data_ms[unit.late]
    if not np.isfinite(late[:, unit.columns]).any():
        return None
    own = float(np.nanmedian(late[:, unit.columns]))
    peer = float(np.nanmedian(late[:, stage]))
    longer = np.nanmedian((times.own_ms - times.peer_ms)[unit.late][:, unit.columns])
    return (own, peer) if own - peer > longer / 2 else None


def _numbers(times: RankTimes, unit: SlowUnit) -> dict[str, Any]:
    """Medians over the late steps, of the unit and its peers; loading only where it is longer."""
    own, peer = times.own_ms[unit.late], times.peer_ms[unit.late]
    stage = times.stages == times.stages[unit.columns[0]]
    # Where half of the ranks are slow, the spread of all is that between the halves.
    others = np.setdiff1d(np.flatnonzero(stage), unit.columns)
    peers = others if len(others) > 1 else np.flatnonzero(stage)
    usual = np.nanmedian(times.excess[unit.late][:, peers], axis=0)
    excess = usual_excess(times, unit)
    spread = max(1.4826 * float(np.nanmedian(np.abs(usual - np.nanmedian(usual)))), 0.005)
    comm = times.comm_ms[unit.late][:, stage]
    has_comm = bool(np.isfinite(comm).any())
    own_ms = float(np.nanmedian(own[:, unit.columns]))
    best = float(np.nanmin(np.nanmedian(own[:, stage], axis=0)))
    history = nan_median(times.own_ms[:, unit.columns], axis=1)
    loading, peer_loading = _loading(times, unit) or (None, None)
    return {
        "loading_ms": loading,
        "peer_loading_ms": peer_loading,
        "excess": excess,
        "own_ms": own_ms,
        "peer_ms": float(np.nanmedian(peer[:, unit.columns])),
        "z": excess / spread,
        "comm_ms": float(np.nanmedian(times.comm_ms[unit.late][:, unit.columns]))
        if has_comm
        else 0.0,
        "peer_comm_ms": float(np.nanmedian(comm)) if has_comm else 0.0,
        "relative": best / own_ms,
        "individual": float(np.nanquantile(history, 0.05)) / own_ms,
    }


def _drivers(numbers: dict[str, Any], model: Model) -> tuple[Driver, ...]:
    def given(threshold: str, feature: str, name: str, **more: Any) -> Driver:
        return driver(model, threshold, feature, round(numbers[name], 3), **more)

    def beside_peers(feature: str, name: str, source: str) -> Driver:
        value, peer = round(numbers[name], 1), round(numbers[f"peer_{name}"], 1)
        return Driver(feature, value, peer, "ms", None, None, source)

    def scored(feature: str, name: str) -> tuple[Driver, ...]:
        """A score of NVIDIA's detection, where it calls the rank a straggler, too."""
        below = numbers[name] <= model.limit("score")
        return (given("score", feature, name),) if below else ()

    loading: tuple[Driver, ...] = ()
    if numbers["loading_ms"] is not None:
        source = "More than half of what the rank takes longer than its peers"
        loading = (beside_peers("wait for data per step", "loading_ms", source),)
    return (
        given("excess", "own time over the peers' median, less 1", "excess", robust_z=numbers["z"]),
        Driver(
            feature="own time per step",
            value=round(numbers["own_ms"], 1),
            peer=round(numbers["peer_ms"], 1),
            unit="ms",
            robust_z=round(numbers["z"], 1),
            threshold=round(numbers["peer_ms"] * (1 + model.limit("excess")), 1),
            source=model.threshold["excess"].source,
        ),
        *loading,
        beside_peers(
            "exposed communication per step",
            "comm_ms",
            "The rank that arrives last communicates least",
        ),
        *scored(
            "for comparison, relative score: the fastest peer's time over its (1: as fast)",
            "relative",
        ),
        *scored(
            "for comparison, individual score: its best time over its own (1: as fast)",
            "individual",
        ),
    )
