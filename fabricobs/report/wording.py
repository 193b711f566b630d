"""How every rendering of a diagnosis writes its numbers, times and facts in words."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime

from fabricobs.diagnosis.findings import (
    STEPS_WANTED,
    UNEXPLAINED,
    CounterBreak,
    Diagnosis,
    Driver,
    Entity,
    Finding,
    Loss,
    WhatIf,
)
from fabricobs.diagnosis.name_lists import at_most, enumerated
from fabricobs.notebook import share_words

SEEN = "Also seen, at no cost that was measured"
_EVIDENCE_NAMES = {"log": "log messages"}
_MOST_WITH_DECIMALS = 1000  # GPU hours
_MOST_SUMMED = 3  # in one sentence
_MOST_BURSTS = 20  # that a person reads through
_KIND_WORDS = {"nic": "NIC", "gpu": "GPU"}


def number(value: float | None, unit: str = "") -> str:
    """Return a number a person reads at a glance, four digits of it, with its unit."""
    if value is None or not math.isfinite(value):
        return "-"
    if abs(value) >= 1000:
        text = f"{value:,.0f}"
    else:
        text = f"{value:.4g}" if value == 0 or abs(value) >= 0.001 else f"{value:.1e}"
    return f"{text} {unit}".rstrip()


def threshold_words(driver: Driver) -> str:
    """Return the threshold of a number, and on which side of it the number is."""
    if driver.threshold is None:
        return "-"
    side = "=" if driver.value == driver.threshold else "<>"[driver.value > driver.threshold]
    return f"{side} {number(driver.threshold, driver.unit)}"


def driver_words(driver: Driver) -> tuple[str, str, str]:
    """Return a number behind a finding, what is expected, and the threshold, in words."""
    value, peer = (number(each, driver.unit) for each in (driver.value, driver.peer))
    return value, peer, threshold_words(driver)


def percent(share: float | None) -> str:
    """Return a share of 0 to 1 in percent."""
    return "-" if share is None or not math.isfinite(share) else share_words(share)


def utc(moment: datetime | None) -> str:
    """Return a time as a person reads it, to the second."""
    return "-" if moment is None else f"{_naive(moment):%Y-%m-%d %H:%M:%S} UTC"


def iso(moment: datetime | None) -> str | None:
    """Return a time in ISO 8601 with Z, to the millisecond; times without a zone are UTC."""
    return None if moment is None else iso_time(moment)


def iso_time(moment: datetime) -> str:
    """Return a known time as `iso` does."""
    return _naive(moment).isoformat(timespec="milliseconds") + "Z"


def counted(count: int, kind: str) -> str:
    """Return a count with what is counted: `1 port`, `2 switches`."""
    word = _KIND_WORDS.get(kind, kind)
    if count == 1:
        return f"1 {word}"
    return f"{count:,} {word}{'es' if word.endswith(('ch', 'ss')) else 's'}"


def money(cost: float | None, currency: str) -> str:
    """Return an amount in its currency; empty where no price is known."""
    return "" if cost is None else f"{cost:,.2f} {currency}".rstrip()


def moment_words(moment: datetime | None, step: int | None) -> str:
    """Return when something was, by step and time, whichever are known."""
    parts = [] if step is None else [f"step {step:,}"]
    parts += [] if moment is None else [utc(moment)]
    return ", ".join(parts) or "not known"


def since_words(finding: Finding) -> str:
    """Return when a finding began: between two times where counters and step times tell it."""
    if finding.after_step is not None:
        return f"after {moment_words(finding.start, finding.after_step)}"
    step, moment = finding.slower_from or (None, finding.begun_by)
    if moment is None:
        return _begin_words(finding)
    first = moment_words(finding.start, None if step is None else finding.start_step)
    same_day = finding.start is not None and finding.start.date() == moment.date()
    numbered = "" if step is None else f"step {step:,}, "
    last = f"{numbered}{moment:%H:%M:%S} UTC" if same_day else moment_words(moment, step)
    return f"between {first} and {last}"


def _begin_words(finding: Finding) -> str:
    """Say when a finding began, and whether it may be older than what is known of it."""
    start, step = finding.start, finding.start_step
    if finding.from_first_step and "counters" in finding.families and None not in (start, step):
        # Counters tell it from before the first step that is judged.
        return f"{utc(start)}, or before (step {step:,} is the first judged)"
    first = moment_words(start, step)
    is_reading = "counters" in finding.families and "log" not in finding.families
    if is_reading and None not in (start, step):
        # It is the last reading without the fault: the step began some seconds later.
        first = f"step {step:,}, after the reading at {utc(start)}"
    if finding.from_first_step:
        return f"{first}, or before (the first step judged)"
    return f"{first}, or before (the first reading)" if finding.from_first_reading else first


def end_moment_words(finding: Finding) -> str:
    """Return when a finding ended, by step and time; a job that stood still did no step then."""
    return moment_words(finding.end, None if finding.after_step is not None else finding.end_step)


def state_words(finding: Finding) -> str:
    """Return whether a finding lasts as far as the logs go or is over; empty where none tells."""
    if ended := finding.ended_with:
        return f"until {ended}"
    return finding.lasts_until if finding.state == "ongoing" else finding.state


def standing_words(finding: Finding) -> str:
    """Return since when a finding lasts, and until when."""
    since = since_words(finding)
    is_between = finding.slower_from is not None or finding.begun_by is not None
    begun = f"began {since}" if is_between and finding.after_step is None else ""
    if finding.start is None and finding.start_step is None and not finding.state:
        return "when is not known"
    if finding.is_moment:
        return f"at {since}"
    if finding.state == "over":
        from_ = begun or (since if finding.after_step is not None else f"from {since}")
        until = f"{from_} until {end_moment_words(finding)}"
        ended = finding.ended_with
        return f"{until}, when {ended}" if ended else f"over: {until}"
    lasts = begun or (since if finding.after_step is not None else f"since {since}")
    return f"{lasts}, {state_words(finding) or _last_seen(finding) or 'end not known'}"


def _last_seen(finding: Finding) -> str:
    """Say when a finding was last seen of which no log tells whether it is over; or nothing."""
    if finding.end is None and finding.end_step is None:
        return ""
    return f"last seen at {end_moment_words(finding)}"


def until_words(finding: Finding) -> str:
    """Return when a finding ended, or that it lasts as far as the logs go."""
    if finding.state == "ongoing":
        until = finding.lasts_until.removeprefix("until ")
        return f"{until}, {utc(finding.end)}" if finding.until_last_step else until
    until = end_moment_words(finding)
    if finding.is_moment:
        return until
    if finding.state != "over":
        return _last_seen(finding) or until
    ended = finding.ended_with
    if not ended:
        return f"{until}: over, the data go on without it"
    # A job that stood still took its fault along.
    lasts = "" if finding.after_step is not None else "; whether it lasts is not known"
    return f"{until}: {ended} then{lasts}"


def bursts_words(finding: Finding) -> str:
    """Return in which steps a finding that comes and goes acts; empty of one that lasts."""
    spans = [f"{a:,}" if a == b else f"{a:,} to {b:,}" for a, b in finding.bursts]
    return f"steps {at_most(spans, _MOST_BURSTS)}" if spans else ""


def detected_words(finding: Finding) -> str:
    """Return since when the data showed a finding; empty if that is before what it costs begins."""
    known, start = finding.detected_at, finding.start
    return "" if known is None or (start is not None and known < start) else utc(known)


def cost_words(finding: Finding) -> str:
    """Return what a finding costs: throughput while it lasts, GPU hours, share of the run."""
    parts = []
    if finding.loss_share is not None:
        others = counted(len(finding.loss_shared_with), "other cause")
        shared = f", shared with {others}" if finding.loss_shared_with else ""
        parts.append(f"{finding.lost} of the throughput{shared}")
        if finding.run_share == 0 != finding.loss_share:
            return f"{parts[0]}, all of it counted with another finding"
    if finding.gpu_hours_lost is not None:
        worth = money(finding.cost, finding.currency)
        price = f" (worth {worth})" if worth else ""
        parts.append(f"{number(finding.gpu_hours_lost)} GPU hours{price}")
    if finding.run_share is not None:
        run = "the whole run" if finding.of_runs == 1 else "all runs"
        parts.append(f"{percent(finding.run_share)} of {run}")
    return ", ".join(parts) or ("nothing that was measured" if finding.unfelt else "not measured")


def confidence_words(finding: Finding) -> str:
    """Return the confidence, and which kinds of evidence it rests on."""
    named = [_EVIDENCE_NAMES.get(family, family) for family in finding.families]
    agree = f" ({', '.join(named)})" if named else ""
    return f"{finding.confidence:.2f}{agree}"


def culprits_word(finding: Finding) -> str:
    """Return what the entities of a finding are called."""
    if finding.entities and all(entity.type == "job" for entity in finding.entities):
        return "job"
    return "culprits" if finding.role == "culprit" else finding.role


def part_words(finding: Finding) -> str:
    """Return the part that a finding accuses, in few words: of a cable the end at a NIC."""
    entities = finding.entities
    if {"nic", "port"} == {entity.type for entity in entities} and len(entities) == 2:
        entities = tuple(entity for entity in entities if entity.type == "nic")
    return at_most([entity.label for entity in entities], 1)


def _cause_words(finding: Finding) -> str:
    """Return by what something is lost, in few words: by a part, or as a job is."""
    if finding.kind == UNEXPLAINED:
        return "by a slowdown without a known cause"
    if not finding.entities or finding.entities[0].type == "job":
        first = finding.first_clause
        return f"as {first[:1].lower()}{first[1:]}"
    others = " (and others)" if finding.loss_shared_with else ""
    return f"by {part_words(finding)}{others}"


def by_type(entities: Sequence[Entity]) -> dict[str, list[Entity]]:
    """Return the entities under what they are, as `2 hosts`, in order of mention.

    A name stands once: a rank of several runs, or one that a log tells with its GPU, too.
    """
    named: dict[str, dict[str, Entity]] = {}
    for entity in entities:
        named.setdefault(entity.type, {}).setdefault(entity.label, entity)
    return {counted(len(each), kind): list(each.values()) for kind, each in named.items()}


def names_by_type(entities: Sequence[Entity]) -> dict[str, list[str]]:
    """Return the names of the entities under what they are, as `by_type` does."""
    return {kind: [each.label for each in found] for kind, found in by_type(entities).items()}


def seen_words(finding: Finding) -> str:
    """Return a finding that is information only, in a line."""
    since = moment_words(finding.start, finding.start_step) if finding.start is not None else ""
    return f"{finding.title} (id {finding.id}{f', since {since}' if since else ''})"


def what_if_words(each: WhatIf) -> str:
    """Return what a part costs the job, as throughput without that."""
    even = each.entity.type == "job"
    changed = "even work" if even else f"{each.entity.label} like its peers"
    return f"{each.speedup:.2f} times the throughput with {changed} ({each.over}; {each.against})"


def subject_words(diagnosis: Diagnosis) -> str:
    """Return what a diagnosis is about: jobs, cluster, ranks, the time of the data."""
    names = [run.label or run.name for run in diagnosis.runs]
    more = f" and {len(names) - _MOST_SUMMED:,} more" if len(names) > _MOST_SUMMED else ""
    jobs = f"{'Jobs' if len(names) > 1 else 'Job'} {', '.join(names[:_MOST_SUMMED])}{more}"
    parts = [jobs if names else "No job"]
    if diagnosis.cluster:
        parts[0] += f" on {diagnosis.cluster}"
    facts = dict(diagnosis.coverage.facts)
    parts += [f"ranks {facts['ranks']}"] if "ranks" in facts else []
    first, last = diagnosis.coverage.begin, diagnosis.coverage.last_time
    parts += [f"data from {utc(first)} to {utc(last)}"] if first and last else []
    return ", ".join(parts)


def loss_words(diagnosis: Diagnosis) -> str:
    """Return what the whole run lost, as the sum over the findings and what none explains."""
    loss = diagnosis.loss
    lost = amount_words(loss)
    runs = "all runs" if diagnosis.jobs else "the whole run"
    unpriced = sum(
        f.loss_share is None and not f.unfelt and f.severity != "info" for f in diagnosis.findings
    )
    if not lost and unpriced:
        told = f"Lost over {runs}: not known; "
        if loss.unexplained_share is not None or diagnosis.coverage.values.get("steps"):
            return f"{told}no file tells the cost of {counted(unpriced, 'finding')}."
        return f"{told}the logs hold no step times. To know it, provide: {STEPS_WANTED}"
    if not lost:
        return f"Lost over {runs}: not known; {loss.untold}." if loss.untold else ""
    costly = [f for f in diagnosis.findings if f.run_share]
    split = ""
    if costly and loss.unexplained_share == 0 and len(costly) == 1:
        shared = " and others that share it" if costly[0].loss_shared_with else ""
        split = f", all of it by one finding{shared}"
    elif costly and loss.unexplained_share is not None:
        split = f": {_by_cause(costly)}, {percent(loss.unexplained_share)} in no finding"
    more = "other finding" if costly else "finding"
    open_ = f" The cost of {counted(unpriced, more)} is not known." if unpriced else ""
    if loss.untold and not unpriced:
        open_ = f" It may be more: {loss.untold}."
    # A job that was slow from its first step has no pace before it to lose against.
    against = "" if loss.share or costly else ", against its own pace"
    sum_ = f"Lost over {runs}{against}: {lost}{split}.{_at_the_end(diagnosis)}"
    return f"{_by_run(diagnosis)}{sum_}{open_}"


def _by_cause(costly: Sequence[Finding]) -> str:
    """Return what each cause cost of the whole run; of many causes the first by name."""
    shares: dict[str, float] = {}
    for finding in costly:
        cause = _cause_words(finding)
        shares[cause] = shares.get(cause, 0.0) + (finding.run_share or 0.0)
    causes = list(shares)
    each = [f"{percent(shares[cause])} {cause}" for cause in causes[:_MOST_SUMMED]]
    if rest := causes[_MOST_SUMMED:]:
        each.append(f"{percent(sum(shares[cause] for cause in rest))} by {len(rest):,} more")
    return ", ".join(each)


def _at_the_end(diagnosis: Diagnosis) -> str:
    """Return what several findings cost at the last steps, together and each; empty of one."""
    loss = diagnosis.loss
    if loss.at_end is None or len(loss.at_end_of) < 2:
        return ""
    named = {finding.id: _cause_words(finding) for finding in diagnosis.findings}
    each = [f"{percent(share)} {named[id_]}" for id_, share in loss.at_end_of if id_ in named]
    shared = round(sum(share for _, share in loss.at_end_of) - loss.at_end, 3)
    once = "; what they share is counted once" if shared > 0 else ""
    if shared < 0:
        each.append(f"{percent(-shared)} in none of them")
    return f" At the end of the logs {percent(loss.at_end)} is lost: {enumerated(each)}{once}."


def amount_words(loss: Loss) -> str:
    """Return what was lost: throughput, GPU hours of how many; empty where neither is known."""
    most = "up to " if loss.at_most else ""
    parts = [] if loss.share is None else [f"{most}{percent(loss.share)} of the throughput"]
    if loss.gpu_hours is not None:
        hours, whole = loss.gpu_hours, loss.run_gpu_hours
        lost = number(hours) if whole is None else _of_whole(hours, whole)
        worth = money(loss.cost, loss.price.currency)
        parts.append(f"{lost} GPU hours{f' (worth {worth})' if worth else ''}")
    return ", ".join(parts)


def _of_whole(part: float, whole: float) -> str:
    """Return a part of a whole, both with as many decimals."""
    decimals = 2 if abs(whole) < _MOST_WITH_DECIMALS else 0
    if decimals == 0 or round(part, decimals) == 0:
        return f"{number(part)} of {number(whole)}"
    return f"{part:,.{decimals}f} of {whole:,.{decimals}f}"


def _by_run(diagnosis: Diagnosis) -> str:
    """Return what each run lost of its own time, those that lost most first."""
    lost = [
        (each.loss.share, each.run.label or each.run.name, "up to " if each.loss.at_most else "")
        for each in diagnosis.jobs
        if each.loss.share
    ]
    worst = sorted(lost, reverse=True)[:_MOST_SUMMED]
    told = [f"{name} lost {most}{percent(share)} of its own run" for share, name, most in worst]
    return f"{', '.join(told)}. " if told else ""


def break_words(broken: CounterBreak) -> str:
    """Say which counter of what and of which source broke, and what that costs."""
    where = broken.port or counted(broken.ports, "port")
    source = f" ({broken.source})" if broken.source else ""
    told = f"{broken.what}, {counted(broken.times, 'time')}, first {utc(broken.first)}"
    return f"{broken.device} {where} {broken.counter}{source}: {told}{broken_note(broken, '; ')}"


def broken_note(broken: CounterBreak, before: str = "") -> str:
    """Say what one that stopped costs: nothing where another source counts the same."""
    if broken.what != "stopped":
        return ""
    if broken.counted_by is not None:
        return f"{before}{broken.counted_by} counts it on"
    return f"{before}it rose by at least what is told"


def _naive(moment: datetime) -> datetime:
    return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
