"""Links that went down as the job ran, for seconds or for good: by counters, logs or status."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import numpy as np
import polars as pl

from fabricobs.diagnosis.cables import (
    CLOCK_SLACK,
    NO_END,
    Cable,
    cables_in,
    entities_of,
    moment,
)
from fabricobs.diagnosis.cost import Span, cost_of, over_all
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.finding_builder import build_finding, driver
from fabricobs.diagnosis.findings import Driver, Finding, MethodResult
from fabricobs.diagnosis.job import WARM_UP_STEPS, StepTimeTrend
from fabricobs.diagnosis.methods.link_downs import (
    Downs,
    Silence,
    counted,
    joined,
    times_of,
    to_its_end,
    together,
)
from fabricobs.diagnosis.model import Model
from fabricobs.diagnosis.name_lists import at_most
from fabricobs.diagnosis.shifted_times import shifted_times
from fabricobs.diagnosis.statistics import at_least, robust_z

_GUESSED = " No log names the cable: both ends went down at the same times."
_CAME_AND_WENT = "It came and went: an optic or connector at its limit, or a port that retrains."
_ONCE = "One event may have been a hand on a cable."
_TOGETHER = "What they lead to, or a card that they share, restarted or was taken out of service."
# More than this share of intervals as long meet a long step: such a one tells nothing of a link.
_MATTER_OF_COURSE = 0.5
_MOST_NAMED = 3
_MOST_PAUSES = 8
_MOST_MOMENTS = 10
_SOURCES = {
    "kernel": "log",
    "NCCL": "log",
    "device log": "log",
    "status": "counters",
    "counter": "counters",
}


def find_link_flaps(evidence: Evidence, model: Model, trends: list[StepTimeTrend]) -> MethodResult:
    """Return a finding for each cable that went down during the job; a unit judged is a port.

    A cable to a host that surely carries no rank is no part of a job. Where that is not sure, one
    that only a switch's log tells, and once, counts if a step waited; without steps it is told as
    information.
    """
    ran = _ran(evidence, trends)
    ports = evidence.frame("counted_ports")
    judged = len(ports.filter("known"))
    if ran is None:
        return MethodResult((), 0, len(ports))
    rows = _downs(evidence).filter(pl.col("ts") >= ran[0], pl.col("ts_before") <= ran[1])
    sure = dict(evidence.frame("hosts_without_ranks").iter_rows())
    timed = not evidence.frame("job_steps").is_empty()
    cables = [
        (cable, [sure[end.owner] for end in cable.ends if end.owner in sure])
        for cable in cables_in(rows)
    ]
    known = joined(
        [replace(counted(cable), placed=not idle) for cable, idle in cables if not any(idle)]
    )
    # All counters are read for it: most jobs have no link that went down.
    ends = evidence.frame("silent_ports").iter_rows() if known else ()
    silent: dict[tuple[str, str], Silence] = {row[:2]: row[2:] for row in ends}
    found = [
        downs if downs.of_unknown_use else to_its_end(downs, silent, ran[1]) for downs in known
    ]
    # A counter may name the port of a NIC where NCCL names the NIC.
    told = {(end.owner, end.part.partition("/")[0]) for cable, _ in cables for end in cable.ends}
    untimed = [
        cable
        for cable in cables_in(evidence.frame("untimed_link_downs"))
        if (cable.near.owner, cable.near.part.partition("/")[0]) not in told
    ]
    # A switch's port whose other end no log names may be the other end of such a NIC's cable.
    if any(_may_lead_to_nic(downs) for downs in found):
        nics = tuple(cable.near.label for cable in untimed if cable.far is None)
        untimed = [cable for cable in untimed if cable.far is not None]
        found = [replace(d, perhaps=nics) if _may_lead_to_nic(d) else d for d in found]
    long, seconds = _long_steps(evidence, model) if found else ([], 0.0)
    share = _share_near(long, seconds)
    hits = [_hit(long, _telling(downs.spans, long, seconds)) for downs in found]
    waited = [bool(hit) for downs, hit in zip(found, hits, strict=True) if downs.of_unknown_use]
    # Steps are long for many reasons: of many events some meet one by chance.
    by_chance = any(waited) and (
        float(at_least(sum(waited), len(waited), share)) > model.limit("p")
    )
    told_of = [
        (downs, hit)
        for downs, hit in zip(found, hits, strict=True)
        if not downs.of_unknown_use
        or (hit and not by_chance)
        or not (timed or downs.cable.far is None)
    ]
    findings = [
        _finding(downs, others, hit, long, evidence, model, trends)
        for downs, others, hit in together(told_of)
    ]
    findings += [_without_times(cable, evidence, model, trends) for cable in untimed]
    return MethodResult(tuple(findings), judged, len(ports) - judged)


def _may_lead_to_nic(downs: Downs) -> bool:
    return downs.cable.far is None and not downs.cable.near.is_nic


def _ran(evidence: Evidence, trends: list[StepTimeTrend]) -> Span | None:
    """Return when the jobs ran; else when counters were taken: a log may go back for weeks."""
    times = [pace.steps["ts"].drop_nulls() for pace in trends]
    known = [time for time in times if len(time)]
    if known:
        first, last = min(t[0] for t in known), max(t[-1] for t in known)
        shift = shifted_times(evidence)
        ahead = timedelta() if shift is None else shift.ahead
        # Where the steps' clock is in doubt, either may be the job's time.
        return min(first, first - ahead) - CLOCK_SLACK, max(last, last - ahead) + CLOCK_SLACK
    row = evidence.frame("coverage").row(0, named=True)
    if row["first_time"] is None or row["last_time"] is None:
        return None
    return row["first_time"], row["last_time"]


def _downs(evidence: Evidence) -> pl.DataFrame:
    """Return a row for each time something told that a port was down."""
    counted = evidence.frame("sick_intervals").filter(pl.col("counter") == "link_downed")
    told = evidence.frame("link_downs").with_columns(pl.lit(1.0).alias("risen"))
    columns = ("device", "owner", "part", "is_nic", "far_owner", "far_part", "far_is_nic")
    names = (*columns, "ts_before", "ts", "risen", "source")
    parts = [counted.with_columns(pl.lit("counter").alias("source")), told]
    return pl.concat([part.select(names) for part in parts], how="vertical_relaxed")


def _moments(spans: Sequence[Span]) -> str:
    more = len(spans) - _MOST_MOMENTS
    shown = ", ".join(f"{begin:%H:%M:%S}" for begin, _ in spans[:_MOST_MOMENTS])
    return f"{shown} and {more:,} more" if more > 0 else shown


def _finding(
    downs: Downs,
    others: Sequence[Downs],
    hit: list[Span],
    long: Sequence[Span],
    evidence: Evidence,
    model: Model,
    trends: list[StepTimeTrend],
) -> Finding:
    cable, spans = downs.cable, downs.spans
    cost = cost_of(evidence, trends, spans if downs.stays else hit or spans)
    families = {_SOURCES[source] for source in downs.told}
    if cost is not None and cost.felt:
        families.add("timing")
        cost = over_all(cost, evidence, spans) if len(spans) > 1 else cost
    words = {
        **_words_of(cable, downs.times),
        "since": moment(spans[0][0]),
        "moments": _moments(spans),
        "in_fewer": f"{downs.times:,} times in {len(spans):,} intervals"
        if 1 < len(spans) < downs.times
        else None,
        "sources": ", ".join(downs.told),
        "read": "" if "kernel" in downs.told else None,
        "stays": "" if downs.stays else None,
        "once_for_good": "" if downs.stays and downs.times == 1 else None,
        **_words_of_many(downs, others),
        "flaps": _TOGETHER
        if others
        else _flaps(downs, model) + (_GUESSED if downs.guessed else ""),
        "nics": " and ".join(downs.perhaps) or None,
        **_shifted(evidence, spans, hit, long),
    }
    return build_finding(
        model,
        evidence,
        words,
        entities=entities_of([end for each in (downs, *others) for end in each.cable.ends]),
        families=families,
        drivers=_drivers(downs, model),
        start=spans[0][0],
        end=spans[-1][1],
        detected_at=spans[0][1],
        cost=cost,
        unmeasured="info" if downs.of_unknown_use else "low" if others else "medium",
        # Each time may last longer than NCCL waits, which ends the job.
        least="medium" if downs.times > 1 and not downs.of_unknown_use else "info",
    )


def _without_times(
    cable: Cable, evidence: Evidence, model: Model, trends: Sequence[StepTimeTrend]
) -> Finding:
    """Tell of a port that NCCL said went down, in a log that has no times."""
    times = times_of(cable.rows["risen"].to_list())
    pauses = [str(step) for trend in trends for step in trend.irregular_pauses]
    words = {
        **_words_of(cable, times),
        "sources": "NCCL",
        "flaps": _CAME_AND_WENT if times > 1 else _ONCE,
        "pauses": ", ".join(pauses[:_MOST_PAUSES]) or None,
    }
    downs = Downs(cable, (), times, ("NCCL",))
    return build_finding(
        model,
        evidence,
        words,
        entities=entities_of(cable.ends),
        families={"log"},
        drivers=_drivers(downs, model),
    )


def _words_of_many(downs: Downs, others: Sequence[Downs]) -> dict[str, str | None]:
    owners = sorted({end.owner for each in (downs, *others) for end in each.cable.ends})
    return {
        "count": f"{1 + len(others):,}" if others else None,
        "where": at_most(owners, _MOST_NAMED) if others else None,
        "many": "" if others else None,
        "many_stay": "" if others and downs.stays else None,
    }


def _words_of(cable: Cable, times: int) -> dict[str, str | None]:
    nic = next((end for end in cable.ends if end.is_nic), None)
    return {
        "near": cable.near.label,
        "far": cable.far.label if cable.far else NO_END,
        "times": "once" if times == 1 else f"{times} times",
        "drain": f"; drain {nic.owner}" if nic else "",
        "port": next((end.label for end in cable.ends if not end.is_nic), cable.near.label),
        "nic_host": nic.owner if nic else None,
        "nic": nic.part if nic else None,
        "ends": " and ".join(end.label for end in cable.ends),
    }


def _long_steps(evidence: Evidence, model: Model) -> tuple[list[Span], float]:
    """Return the steps far longer than the usual one, and for how many seconds jobs ran.

    A span each, from begin to end.
    """
    spans: list[Span] = []
    ran = 0.0
    for steps in evidence.frame("job_steps").partition_by("job"):
        timed = steps.drop_nulls(["ts", "step_time_ms"]).sort("step").slice(WARM_UP_STEPS)
        if timed.is_empty():
            continue
        times = timed["step_time_ms"].to_numpy().astype(np.float64)
        long = timed.select(
            (pl.col("ts") - pl.duration(microseconds=pl.col("step_time_ms") * 1000)).alias("began"),
            "ts",
            pl.Series("z", robust_z(times)),
        ).filter(pl.col("z") > model.limit("z"))
        spans += long.select("began", "ts").sort("began").rows()
        ran += times.sum() / 1000
    return spans, ran


def _share_near(long: Sequence[Span], seconds: float, length: timedelta = timedelta()) -> float:
    """Return the share of a time in which an interval of some length meets a long step.

    The time is widened by what clocks may differ.
    """
    near = sum((end - begin + 2 * CLOCK_SLACK + length).total_seconds() for begin, end in long)
    return min(near / seconds, 1.0) if seconds else 0.0


def _telling(spans: Sequence[Span], long: Sequence[Span], seconds: float) -> list[Span]:
    """Return the spans in which a long step is no matter of course.

    Ten minutes between two readings hold a checkpoint, whatever a link did.
    """
    return [
        (begin, end)
        for begin, end in spans
        if _share_near(long, seconds, end - begin) <= _MATTER_OF_COURSE
    ]


def _hit(long: Sequence[Span], spans: Sequence[Span]) -> list[Span]:
    """Return the long steps that ran while the link was down, each as a span of its end.

    Counters date an event to an interval of many steps, of which one or two waited.
    """
    return [
        (ended, ended)
        for begin, end in spans
        for began, ended in long
        if ended >= begin - CLOCK_SLACK and began <= end + CLOCK_SLACK
    ]


def _shifted(
    evidence: Evidence, spans: Sequence[Span], hit: Sequence[Span], long: Sequence[Span]
) -> dict[str, str | int | None]:
    """Say how the steps' times look shifted, and how many long steps then fall into the spans."""
    shift = None if hit else shifted_times(evidence)
    if shift is None:
        return {"shift": None, "waited": None}
    moved = [(begin + shift.ahead, end + shift.ahead) for begin, end in spans]
    waited = len(set(_hit(long, moved)))
    return {"shift": shift.words[0].upper() + shift.words[1:], "waited": waited or None}


def _flaps(downs: Downs, model: Model) -> str:
    if downs.stays:
        return "Nothing tells that it is up again: its traffic takes other links, or none."
    spans = downs.spans
    within = timedelta(seconds=model.limit("within"))
    often = any(
        later[0] - earlier[1] <= within for earlier, later in zip(spans, spans[1:], strict=False)
    )
    if downs.times > len(spans) or often:
        return _CAME_AND_WENT
    return _ONCE


def _drivers(downs: Downs, model: Model) -> list[Driver]:
    ends = downs.cable.rows.filter(pl.col("source") == "counter").group_by(
        "owner", "part", maintain_order=True
    )
    drivers = [driver(model, "downs", "times the link went down", float(downs.times), peer=0.0)]
    for (owner, part), rows in ends:
        risen = float(rows["risen"].sum())
        drivers.append(driver(model, "downs", f"link_downed of {owner} {part}", risen, peer=0.0))
    return drivers
