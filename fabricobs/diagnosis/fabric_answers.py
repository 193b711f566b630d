"""Answers to the questions about the fabric: links, routing, congestion, bandwidth.

An ok says what the counters would have shown, and is unknown where that is no fault worth finding.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.findings import Finding, MethodResult, Power, Question
from fabricobs.diagnosis.model import Model
from fabricobs.diagnosis.naming import listed
from fabricobs.diagnosis.shifted_times import shifted_times
from fabricobs.diagnosis.statistics import fewest_beyond

_NOTHING = MethodResult()
# What lasts half of the run must show, and half of it must have been counted.
_HALF = 0.5
_AS_WIDE = 1.05  # NICs over uplinks: above it a leaf is oversubscribed, as its rule has it
_USED = 0.001  # of the busiest port's bits: ports that carry less are not used by the job
_OFTEN = "Counters over the whole run, read more often."
_USUAL_WAITS = "PortXmitWait of the same ports while a job runs at its usual speed."
_OF_HOSTS = "NCCL_DEBUG=INFO logs of every host, or a host map."
_OF_NICS = "Counters of every NIC over the whole run: ethtool -S, or /sys/class/infiniband."


def sick_link(
    question: str, evidence: Evidence, judgements: Mapping[str, MethodResult], model: Model
) -> Question:
    """Say whether links are sound: by their errors and their speeds."""
    errors = judgements.get("link_errors", _NOTHING)
    speeds = judgements.get("degraded_link", _NOTHING)

    def unknown(text: str, settled_by: str, *powers: Power) -> Question:
        return Question(question, "unknown", text, settled_by, powers)

    if not errors.judged:
        return unknown(
            "No error counter was sampled twice.",
            "Interface counters of the switches, ethtool -S or sysfs counters of the hosts.",
        )
    if common := judgements.get("common_errors", _NOTHING).open:
        return unknown(f"{'; '.join(o.reason for o in common)}.", common[0].settled_by)
    rates, unrated = _of_links(evidence, model)
    rated = errors.judged - unrated
    quiet = (
        f"On {rated:,} ports the error rates are within the limits of the link standards "
        f"({model.limit('rate'):g} error per 10^12 bits, {model.limit('rate_fast'):g} above "
        "100 Gb/s)"
    )
    if errors.not_checked:
        return unknown(
            f"{quiet}; {errors.not_checked:,} ports were not checked: no counter at either end, or "
            "one that has stopped at its highest value.",
            "Counters of the switches between the hosts; 64-bit counters (perfquery -x), or "
            "cleared ones (perfquery -R).",
        )
    if partly := _partly_counted(evidence, "traffic"):
        return unknown(f"{quiet}, but {partly}.", _often(evidence))
    if rates is not None and rates.effect > model.limit("most_unseen"):
        return unknown(
            f"Some ports carry too few bits: only {rates.words} would have shown.", _OFTEN, rates
        )
    few = "count few errors or none (no counter tells their traffic, so no error rate is known)"
    if rates is None or rated <= 0:
        quiet = f"{errors.judged:,} ports {few}"
    elif unrated:
        quiet = f"{quiet}; {unrated:,} more ports {few}"
    of_errors = Power(
        model.limit("risen") + 1,
        "errors per run",
        "a port that counts {}",
        _counted_seconds(evidence),
    )
    powers = tuple(filter(None, (rates, of_errors if unrated or rates is None else None)))
    if not speeds.judged:
        what = "the speed of the links"
        wanted = "show interfaces status of the switches, ibstat or sysfs of the hosts."
        if not evidence.frame("coverage")["cables"][0]:
            what = "which links should be alike"
            wanted = f"LLDP neighbours of the switches; {wanted}"
        return unknown(f"{quiet}, but {what} is not known.", wanted, *powers)
    shown = " and ".join(power.words for power in powers)
    text = f"{quiet}, and {speeds.judged:,} ports run at the speed of their peers: {shown} would "
    return Question(question, "ok", f"{text}have shown.", would_show=powers)


def uneven_routing(
    question: str,
    evidence: Evidence,
    findings: Sequence[Finding],
    judgements: Mapping[str, MethodResult],
) -> Question:
    """Say whether switches share their load evenly over parallel links."""
    skew = judgements.get("ecmp_skew", _NOTHING)
    groups = skew.judged + skew.not_checked
    found = [finding for finding in findings if finding.kind == "ecmp_skew"]
    if found:
        return Question(question, "problem", f"{found[0].title}.")
    if not groups:
        return Question(
            question,
            "unknown",
            "No group of uplinks with traffic is known.",
            "LLDP neighbours of the leaves and their port or queue counters over time.",
        )
    even = f"{skew.judged:,} of {groups:,} uplink groups are as even as random hashing makes them"
    if skew.not_checked:
        all_groups = "The uplink group" if groups == 1 else f"The {groups:,} uplink groups"
        known = f"{even}; the others" if skew.judged else all_groups
        return Question(
            question,
            "unknown",
            f"{known} cannot be judged: {'; '.join(o.reason for o in skew.open)}.",
            _sentence_of(dict.fromkeys(p for o in skew.open for p in o.settled_by.split("; "))),
        )
    powers = () if skew.power is None else (skew.power,)
    if partly := _partly_counted(evidence, "traffic"):
        return Question(question, "unknown", f"{even}, but {partly}.", _often(evidence), powers)
    shown = f": {skew.power.words} would have shown" if skew.power else ""
    return Question(question, "ok", f"{even}{shown}.", would_show=powers)


def _sentence_of(parts: Iterable[str]) -> str:
    """Return a list of what to provide as a sentence."""
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def congested(
    question: str, evidence: Evidence, judgements: Mapping[str, MethodResult], model: Model
) -> Question:
    """Say whether queues fill: ports that pause others, and NICs that receive more than peers."""
    excess = judgements.get("congestion", _NOTHING)
    stops = _pauses(judgements) or _credit_waits(evidence, model)
    if stops is None:
        return _no_stops(question, evidence)
    quiet = stops.quiet
    powers = [stops.power]
    if excess.judged:
        counted = _counted_of(evidence, "traffic")
        seconds = model.limit("windows") * (counted.usual_seconds if counted else 0.0)
        share = f"{model.limit('excess_share'):.0%} of its line rate"
        what = f"a NIC that receives {{}} than its peers, by {share} or more,"
        more = Power(model.limit("ratio") - 1, "more", what, seconds)
        powers.append(more)
    shown = " and ".join(power.words for power in powers)
    partly, settled_by = _partly_counted(evidence, stops.counts), _often(evidence)
    if not partly and (stops.not_checked or excess.not_checked or not excess.judged):
        settled_by = _OF_NICS
        partly = (
            f"{stops.what} of {stops.not_checked:,} and bytes of {excess.not_checked:,} NICs "
            "are not counted"
            if excess.judged
            else "what each NIC received is not known"
        )
    if not partly and (untold := _ranks_without_host(evidence)):
        partly = f"the hosts of {untold:,} ranks, and with them their NICs, are not known"
        settled_by = _OF_HOSTS
    if not partly and any(power.seconds > _HALF * _counted_seconds(evidence) for power in powers):
        partly = f"counters are read too rarely: only {shown} would have shown"
    if excess.open:  # whatever else is not known: this is what to look at
        first = excess.open[0]
        others = f", and {len(excess.open) - 1:,} more alike" if len(excess.open) > 1 else ""
        partly = f"{first.reason}{others}, and no counter tells whether queues fill there"
        settled_by = first.settled_by
    if stops.loud:
        partly, settled_by = stops.loud, _USUAL_WAITS
    if partly:
        return Question(question, "unknown", f"{quiet}, but {partly}.", settled_by, tuple(powers))
    alike = "NICs receive alike"
    if not evidence.frame(model.evidence, model.limits).is_empty():
        alike = "no queue fills where a NIC receives more than its peers"
    if excess.findings:  # for information: steps were known, and did not show it
        alike = "no step is longer for the queue of a NIC that receives more than its peers"
    text = f"{quiet}, and {alike}: {shown} would have shown."
    return Question(question, "ok", text, would_show=tuple(powers))


def _ranks_without_host(evidence: Evidence) -> int:
    """Return how many ranks the job has beyond those that a file places."""
    told = evidence.frame("coverage").row(0, named=True)
    return max(int(told["ranks_expected"] or 0) - int(told["ranks"] or 0), 0)


@dataclass(frozen=True, slots=True)
class _Stops:
    """What counters tell of senders that were stopped: by pause frames, or by missing credits.

    `counts` names the times at which they were read; `loud` says what is too much of it.
    """

    quiet: str
    what: str
    not_checked: int
    power: Power
    counts: str
    loud: str = ""


def _pauses(judgements: Mapping[str, MethodResult]) -> _Stops | None:
    """Return what pause frames tell; None where none are counted of ports to NICs."""
    storms = judgements.get("pfc_storm", _NOTHING)
    if not storms.judged or storms.power is None:
        return None
    quiet = f"None of {storms.judged:,} NICs pauses its switch port for long"
    if any(
        "correlation" in skew.families for skew in judgements.get("ecmp_skew", _NOTHING).findings
    ):
        quiet += " (pause frames rose where routing became uneven)"
    return _Stops(quiet, "pauses", storms.not_checked, storms.power, "pauses")


def _credit_waits(evidence: Evidence, model: Model) -> _Stops | None:
    """Return what PortXmitWait of InfiniBand ports tells; None where it was not read often."""
    waits = evidence.frame("credit_waits", model.limits)
    if waits.is_empty():
        return None
    counted = len(waits.select("host", "nic").drop_nulls().unique())
    known = int(evidence.frame("nic_counters")["nics"][0])
    seconds = model.limit("windows") * float(waits["usual_seconds"].max())  # type: ignore[arg-type]
    limit = model.limit("wait_share")
    power = Power(limit, "of the time", "a port that waits for credits for {}", seconds)
    much = waits.filter(pl.col("share") >= limit)
    loud = ""
    if len(much):
        worst = much.row(0, named=True)
        others = f", and {len(much) - 1:,} more ports alike" if len(much) > 1 else ""
        loud = (
            f"{worst['owner']} {worst['part']} waited for credits for {worst['share']:.0%} of the "
            f"time{others}, and no file tells whether that is usual"
        )
    few = (
        f"{len(waits) - len(much):,} of {len(waits):,}" if len(much) else f"None of {len(waits):,}"
    )
    do = "do not wait" if len(much) else "waits"
    quiet = f"{few} InfiniBand ports {do} for credits for long"
    return _Stops(quiet, "credit waits", max(known - counted, 0), power, "traffic", loud)


def _no_stops(question: str, evidence: Evidence) -> Question:
    """Say what is missing: the counters, a second reading of them, or where the NICs are."""
    read = evidence.frame("stop_readings").row(0, named=True)
    if read["paused_twice"]:
        text = "Pause frames are counted, but no log tells which ports lead to NICs of the job."
        settled_by = (
            "LLDP neighbours of the leaves, or a host map with switch and port of each NIC."
        )
    elif read["pauses"] or (read["waits"] and read["infiniband"]):
        name = "Pause counters" if read["pauses"] else "PortXmitWait"
        text, settled_by = f"{name} of each port stand in one snapshot only.", "Later snapshots."
    elif read["infiniband"]:
        text = "No file counts how long InfiniBand ports wait for credits."
        settled_by = "PortXmitWait of switches and NICs, read often: perfquery -x, sysfs, or UFM."
    else:
        text = "No pause counter was sampled twice."
        settled_by = (
            "Counters of pause frames by priority of the switches, or ethtool -S of the hosts."
        )
    return Question(question, "unknown", text, settled_by)


def bandwidth_reached(
    question: str, evidence: Evidence, model: Model, all_along: Sequence[Finding] = ()
) -> Question:
    """Say whether collectives reach the bus bandwidth that sound sites have on such hardware.

    `all_along` are the findings that slow collectives from the first step on. A job computes and
    runs other collectives at the same time: below what benchmarks reach it is unknown, and slow
    only below the share of `model`; uplinks that carry less than the NICs of a leaf leave as much
    less of it.
    """
    rows = evidence.frame("reached_bandwidth").with_columns(
        reached=pl.col("best_gbytes_per_s") / pl.col("low_gbytes_per_s"),
        slow_from=pl.when(measured_by="benchmark").then(1.0).otherwise(model.limit("share"))
        / pl.col("narrow"),
    )
    if rows.is_empty():
        return Question(question, "unknown", *_no_bandwidth(evidence))
    # The evidence has the slowest first.
    slow = rows.filter(pl.col("reached") < pl.col("slow_from"))
    if len(slow):
        others = f" {len(slow) - 1:,} more are below." if len(slow) > 1 else ""
        return Question(question, "problem", f"{_reaches(slow)}{_where_narrow(slow)}.{others}")
    too_fast = rows.filter(pl.col("best_gbytes_per_s") > pl.col("limit_gbytes_per_s"))
    if len(too_fast):
        return Question(
            question,
            "unknown",
            f"{_reaches(too_fast)}: more than the NICs that the logs tell can carry. Some are not "
            "told, NVLink connects the hosts, or switches reduce.",
            "ibstat of every host; nccl-tests on the same hosts while no job runs.",
        )
    more = f" {len(rows) - 1:,} more reach as much of it or more." if len(rows) > 1 else ""
    reached = float(rows["reached"][0])
    if reached < 1:
        narrow = float(rows["narrow"][0])
        rest = "what the job computes and sends at the same time may take the rest"
        if narrow > _AS_WIDE:
            rest = f"uplinks that carry {narrow:.3g} times less than the NICs of a leaf, and {rest}"
        if all_along:
            culprits = listed([part for finding in all_along for part in finding.entities])
            rest = f"what is found on {culprits} takes a part of it, and {rest}"
        return Question(
            question,
            "unknown",
            f"{_reaches(rows)}; {rest}.{more}",
            "nccl-tests on the same hosts while no job runs.",
        )
    power = Power(1 - 1 / reached, "less", "bandwidth that is {}")
    text = f"{_reaches(rows)}: {power.words} would have shown.{more}"
    return Question(question, "ok", text, would_show=(power,))


def _no_bandwidth(evidence: Evidence) -> tuple[str, str]:
    """Return why no bus bandwidth can be judged, and what would settle it."""
    told = evidence.frame("bandwidth_inputs").row(0, named=True)
    if not told["calls"] or not told["sized"]:
        what = "time" if not told["calls"] else "size"
        nics = "" if told["networks"] else ", and ibstat of the hosts for NICs and their link rate"
        return f"No collective is known with its {what}.", f"NCCL Inspector or nccl-tests{nics}."
    if not told["between"]:
        return "No collective is known that runs between hosts.", "nccl-tests over several hosts."
    if not told["nics"]:
        return "Which NICs carry the collectives is not known.", _OF_HOSTS
    if not told["rated"]:
        return (
            "The link rate of the NICs that carry the collectives is not known.",
            "The link rate by ibstat or ethtool of the hosts, or the port status of their leaves.",
        )
    if told["shared"]:
        return (
            "Other jobs run on the same hosts and share their NICs.",
            "nccl-tests on these hosts while no job runs.",
        )
    return (
        "Collectives between hosts are of sizes or kinds for which no bandwidth is expected.",
        "nccl-tests with messages of 1 GB and more.",
    )


def _reaches(rows: pl.DataFrame) -> str:
    """Say what the first of the rows reaches."""
    row = rows.row(0, named=True)
    fastest = "" if row["measured_by"] == "benchmark" else " in its fastest calls"
    hosts = "one host" if row["nodes"] == 1 else f"{row['nodes']:,} hosts"
    where = f" in {row['name']}" if row["name"] else ""
    size = (
        f"{row['bytes'] / 1e9:,.1f} GB" if row["bytes"] >= 1e9 else f"{row['bytes'] / 1e6:,.3g} MB"
    )
    return (
        f"{row['op']} of {size} over {hosts}{where} reaches "
        f"{row['best_gbytes_per_s']:,.1f} GB/s{fastest}, sound sites "
        f"{row['low_gbytes_per_s']:,.0f} to {row['high_gbytes_per_s']:,.0f}"
    )


def _where_narrow(rows: pl.DataFrame) -> str:
    """Say what sound sites reach over uplinks that carry as little; empty where they are wide."""
    row = rows.row(0, named=True)
    narrow = row["narrow"]
    if narrow <= _AS_WIDE:
        return ""
    low, high = row["low_gbytes_per_s"] / narrow, row["high_gbytes_per_s"] / narrow
    return f", {low:,.0f} to {high:,.0f} where leaves carry {narrow:.3g} times less up than down"


def _of_links(evidence: Evidence, model: Model) -> tuple[Power | None, int]:
    """Return the error rate that every port in use would have shown, None without bits.

    With it the number of ports that count errors, and no counter the bits they receive.
    """
    ports = evidence.frame("counted_ports")
    unrated = len(ports.filter(~pl.col("rated")))
    told = ports.join(evidence.frame("received_bits"), on=["owner", "part"])
    bits: list[float] = told["bits"].to_list()
    used = [each for each in bits if each >= _USED * max(bits)]
    if not used:
        return None, unrated
    fewest = min(used)
    p = model.limit("rate_q") / len(used)
    errors = fewest_beyond(model.limit("rate") / 1e12 * fewest, p)
    rate = max(errors, model.limit("risen") + 1) / fewest * 1e12
    seconds = _counted_seconds(evidence)
    return Power(rate, "errors per 10^12 bits", "a port that receives {}", seconds), unrated


@dataclass(frozen=True, slots=True)
class _Counted:
    """From when to when something was counted, and how many seconds lie between two samples."""

    begins: datetime
    ends: datetime
    usual_seconds: float


def _counted_of(evidence: Evidence, counts: str) -> _Counted | None:
    rows = evidence.frame("counted_time").filter(pl.col("counts") == counts).drop("counts")
    return _Counted(*rows.row(0)) if len(rows) else None


def _counted_seconds(evidence: Evidence) -> float:
    counted = _counted_of(evidence, "traffic") or _counted_of(evidence, "pauses")
    return (counted.ends - counted.begins).total_seconds() if counted else 0.0


def _partly_counted(evidence: Evidence, counts: str) -> str | None:
    """Say how little of the job's time its counters cover, None if that is half of it or more."""
    times: list[datetime] = evidence.frame("job_steps")["ts"].drop_nulls().to_list()
    counted = _counted_of(evidence, counts)
    if not times or counted is None:
        return None
    both = min(max(times), counted.ends) - max(min(times), counted.begins)
    share = both.total_seconds() / max((max(times) - min(times)).total_seconds(), 1.0)
    if share >= _HALF:
        return None
    shift = shifted_times(evidence)
    if shift is not None and not shift.overlap:
        return shift.words
    return f"they were counted for {max(share, 0.0):.0%} of the time the job ran only"


def _often(evidence: Evidence) -> str:
    """Say what would show more: counters at the right time, or more of them."""
    shift = shifted_times(evidence)
    return _OFTEN if shift is None or shift.overlap else shift.remedy
