"""Links that went down as the job ran, for seconds or for good: by counters, logs or status."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

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
from fabricobs.diagnosis.model import Model
from fabricobs.diagnosis.shifted_times import shifted_times
from fabricobs.diagnosis.statistics import at_least, robust_z

# Messages of one event come from several processes and logs, within this time.
_ONE_EVENT = timedelta(seconds=15)
# A log prints an event once, or in a few lines; ranks tell of it when each asks.
_ONE_LINE = timedelta(seconds=2)
_GUESSED = " No log names the cable: both ends went down at the same times."
_CAME_AND_WENT = "It came and went: an optic or connector at its limit, or a port that retrains."
_ONCE = "One event may have been a hand on a cable."
_MOST_PAUSES = 8
_MOST_MOMENTS = 10
_SOURCES = {
    "kernel": "log",
    "NCCL": "log",
    "device log": "log",
    "status": "counters",
    "counter": "counters",
}
# Two ends of which no log names the cable are one if they go down so often at the same times: as
# many times each, where they were read less often.
_FEWEST_SHARED = 3
_Silence = tuple[datetime, datetime]  # alive from, known until
_NOT_SILENT: _Silence = (datetime.max, datetime.min)
# Those that tell the second.
_EXACT = ("kernel", "NCCL", "device log")


@dataclass(frozen=True, slots=True)
class _Downs:
    """How often a cable went down: `spans`, one an event, are when; `told` by which sources.

    `guessed` says that no log names the cable: its ends went down at the same times. `placed` is
    false where one end is a host of which no log tells a rank, nor that it has none. `stays` says
    that nothing tells the link up again: its last span lasts as long as its state is known.
    """

    cable: Cable
    spans: tuple[Span, ...]
    times: int
    told: tuple[str, ...]
    guessed: bool = False
    placed: bool = True
    stays: bool = False
    perhaps: tuple[str, ...] = ()  # NICs that may be the other end, as NCCL says without times

    @property
    def of_unknown_use(self) -> bool:
        """Whether it may be a host of no job that started again, for all that its switch tells."""
        unplaced = not self.placed or self.cable.far is None
        return unplaced and self.told == ("device log",) and self.times == 1


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
    joined = _joined(
        [replace(_counted(cable), placed=not idle) for cable, idle in cables if not any(idle)]
    )
    # All counters are read for it: most jobs have no link that went down.
    ends = evidence.frame("silent_ports").iter_rows() if joined else ()
    silent: dict[tuple[str, str], _Silence] = {row[:2]: row[2:] for row in ends}
    found = [
        downs if downs.of_unknown_use else _to_its_end(downs, silent, ran[1]) for downs in joined
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
    long, share = _long_steps(evidence, model) if found else ([], 0.0)
    hits = [_hit(long, downs.spans) for downs in found]
    waited = [bool(hit) for downs, hit in zip(found, hits, strict=True) if downs.of_unknown_use]
    # Steps are long for many reasons: of many events some meet one by chance.
    by_chance = any(waited) and (
        float(at_least(sum(waited), len(waited), share)) > model.limit("p")
    )
    findings = [
        _finding(downs, hit, long, evidence, model, trends)
        for downs, hit in zip(found, hits, strict=True)
        if not downs.of_unknown_use
        or (hit and not by_chance)
        or not (timed or downs.cable.far is None)
    ]
    findings += [_without_times(cable, evidence, model, trends) for cable in untimed]
    return MethodResult(tuple(findings), judged, len(ports) - judged)


def _may_lead_to_nic(downs: _Downs) -> bool:
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


def _counted(cable: Cable) -> _Downs:
    """Join what several sources tell of one event; what counters count beyond that is more.

    What tells the time best comes first: a status is asked minutes later.
    """
    exact = cable.rows.filter(pl.col("source").is_in(_EXACT))
    logs = [
        _apart(
            [(time, time) for time in rows["ts"].sort()],
            _ONE_LINE if source != "NCCL" else _ONE_EVENT,
        )
        for (_, source), rows in exact.group_by("device", "source", maintain_order=True)
    ]
    spans: list[Span] = []
    for log in sorted(logs, key=len, reverse=True):
        earlier = list(spans)
        spans += [span for span in log if not _meets(span, earlier, _ONE_EVENT)]
    rest = cable.rows.filter(pl.col("source").is_in(_EXACT).not_())
    rest = rest.sort(pl.col("ts") - pl.col("ts_before"), "ts")
    spans_of_rest: Iterable[Span] = rest.select("ts_before", "ts").iter_rows()
    for span in spans_of_rest:
        if not _meets(span, spans, _ONE_EVENT):
            spans.append(span)
    counters = cable.rows.filter(pl.col("source") == "counter")
    by_end = counters.group_by("owner", "part").agg(pl.col("risen").sum())["risen"]
    times = max(len(spans), _times(by_end.to_list()))
    told = tuple(sorted(cable.rows["source"].unique().to_list()))
    return _Downs(cable, tuple(sorted(spans)), times, told)


def _apart(spans: Iterable[Span], least: timedelta) -> list[Span]:
    """Return the spans, in order; of those that begin nearer to each other than that the first."""
    found: list[Span] = []
    for span in spans:
        if not found or span[0] - found[-1][0] > least:
            found.append(span)
    return found


def _to_its_end(
    downs: _Downs, silent: Mapping[tuple[str, str], _Silence], ended: datetime
) -> _Downs:
    """Return the downs, the last of them as long as it lasts, where the link stays down.

    What an end carried in the interval in which it went down does not tell that it is up again.
    Where no log tells the second, it went down in the last interval in which it carried something.
    """
    *before, (begin, end) = downs.spans
    for known in downs.cable.ends:
        alive_from, known_until = silent.get((known.owner, known.part), _NOT_SILENT)
        until = min(known_until, ended)
        if alive_from <= end and until > end:
            began = begin if begin == end else max(begin, alive_from)
            return replace(downs, spans=(*before, (began, until)), stays=True)
    return downs


def _moments(spans: Sequence[Span]) -> str:
    more = len(spans) - _MOST_MOMENTS
    shown = ", ".join(f"{begin:%H:%M:%S}" for begin, _ in spans[:_MOST_MOMENTS])
    return f"{shown} and {more:,} more" if more > 0 else shown


def _times(by_end: Sequence[float]) -> int:
    """Return how often ends counted a link down: twice as many count the ups too."""
    fewest, most = int(min(by_end, default=0)), int(max(by_end, default=0))
    return fewest if 2 * fewest - 1 <= most <= 2 * fewest else most


def _joined(found: list[_Downs]) -> list[_Downs]:
    """Make one of two ends without a known cable that went down at the same times, no third."""
    alone = [downs for downs in found if downs.cable.far is None]
    often = [place for place, downs in enumerate(alone) if downs.times >= _FEWEST_SHARED]
    twins = {one: [other for other in often if _at_once(alone[one], alone[other])] for one in often}
    pairs = [
        (one, other)
        for one, own in twins.items()
        for other in own
        if one < other and own == [other] and twins[other] == [one]
    ]
    gone = {place for pair in pairs for place in pair}
    return [
        *(downs for downs in found if downs.cable.far is not None),
        *(downs for place, downs in enumerate(alone) if place not in gone),
        *(_as_one(alone[one], alone[other]) for one, other in pairs),
    ]


def _as_one(one: _Downs, other: _Downs) -> _Downs:
    near, far = sorted((one.cable, other.cable), key=lambda cable: not cable.near.is_nic)
    cable = Cable(near.near, far.near, pl.concat([near.rows, far.rows]))
    fuller = max(one, other, key=lambda downs: len(downs.spans))
    return replace(fuller, cable=cable, told=tuple(sorted({*one.told, *other.told})), guessed=True)


def _at_once(one: _Downs, other: _Downs) -> bool:
    """Say whether two ends, on two devices, went down together each time.

    Several downs of one may meet one of the other: NCCL's ranks do not tell close ones apart.
    """
    within = _ONE_EVENT + _ONE_LINE
    read_apart = min(len(_apart(downs.spans, _ONE_EVENT)) for downs in (one, other))
    return (
        one.cable.near.owner != other.cable.near.owner
        and (read_apart >= _FEWEST_SHARED or one.times == other.times)
        and all(_meets(span, other.spans, within) for span in one.spans)
        and all(_meets(span, one.spans, within) for span in other.spans)
    )


def _meets(span: Span, others: Iterable[Span], within: timedelta) -> bool:
    begin, end = span
    return any(begin <= until + within and since <= end + within for since, until in others)


def _finding(
    downs: _Downs,
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
        "flaps": _flaps(downs, model) + (_GUESSED if downs.guessed else ""),
        "nics": " and ".join(downs.perhaps) or None,
        **_shifted(evidence, spans, hit, long),
    }
    return build_finding(
        model,
        evidence,
        words,
        entities=entities_of(cable.ends),
        families=families,
        drivers=_drivers(downs, model),
        start=spans[0][0],
        end=spans[-1][1],
        detected_at=spans[0][1],
        cost=cost,
        unmeasured="info" if downs.of_unknown_use else "medium",
        # Each time may last longer than NCCL waits, which ends the job.
        least="medium" if downs.times > 1 and not downs.of_unknown_use else "info",
    )


def _without_times(
    cable: Cable, evidence: Evidence, model: Model, trends: Sequence[StepTimeTrend]
) -> Finding:
    """Tell of a port that NCCL said went down, in a log that has no times."""
    times = _times(cable.rows["risen"].to_list())
    pauses = [str(step) for trend in trends for step in trend.irregular_pauses]
    words = {
        **_words_of(cable, times),
        "sources": "NCCL",
        "flaps": _CAME_AND_WENT if times > 1 else _ONCE,
        "pauses": ", ".join(pauses[:_MOST_PAUSES]) or None,
    }
    downs = _Downs(cable, (), times, ("NCCL",))
    return build_finding(
        model,
        evidence,
        words,
        entities=entities_of(cable.ends),
        families={"log"},
        drivers=_drivers(downs, model),
    )


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
    """Return the steps far longer than the usual one, and the share of the time that they fill.

    A span each, from begin to end; the time is widened by what clocks may differ.
    """
    spans: list[Span] = []
    ran = covered = 0.0
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
        own: list[Span] = long.select("began", "ts").sort("began").rows()
        spans += own
        ran += times.sum() / 1000
        covered += sum((end - begin + 2 * CLOCK_SLACK).total_seconds() for begin, end in own)
    return spans, min(covered / ran, 1.0) if ran else 0.0


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


def _flaps(downs: _Downs, model: Model) -> str:
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


def _drivers(downs: _Downs, model: Model) -> list[Driver]:
    ends = downs.cable.rows.filter(pl.col("source") == "counter").group_by(
        "owner", "part", maintain_order=True
    )
    drivers = [driver(model, "downs", "times the link went down", float(downs.times), peer=0.0)]
    for (owner, part), rows in ends:
        risen = float(rows["risen"].sum())
        drivers.append(driver(model, "downs", f"link_downed of {owner} {part}", risen, peer=0.0))
    return drivers
