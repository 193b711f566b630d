"""Rules: a diagnosis that a model states alone, without a method of its own.

The evidence has one row a part and interval. The rule says which rows are wrong, for how
long they must be, which parts are one finding, and how the loss is priced.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import polars as pl

from fabricobs.content import ContentError
from fabricobs.diagnosis.cables import CLOCK_SLACK
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.finding_builder import build_finding, driver, with_phrases
from fabricobs.diagnosis.findings import Driver, Entity, Finding, MethodResult, NotJudged
from fabricobs.diagnosis.job import StepTimeTrend
from fabricobs.diagnosis.methods.rule_parts import (
    Wrong,
    as_findings,
    first,
    having,
    last,
    wrong_parts,
)
from fabricobs.diagnosis.methods.rule_price import goes_on, is_priced, price, price_since
from fabricobs.diagnosis.model import Model, Rule
from fabricobs.diagnosis.naming import listed, numbered, place_of
from fabricobs.diagnosis.slowdowns import Slowdown
from fabricobs.store.inspection import one_line
from fabricobs.store.sandbox import QueryError

_FIELDS = ("job", "rank", "host", "gpu", "nic", "switch", "port")
# What a text of a rule may name beside its facts and the columns of its evidence.
WORDS_OF_RULES = ("intervals", "severity", "who", "minor", "place", "ranks", "start", "since")

# Change points are as far off at most: what began within so many steps of another began with it.
_ONSET_STEPS = 10


def find_by_rule(evidence: Evidence, model: Model, trends: Sequence[StepTimeTrend]) -> MethodResult:
    """Return the findings of the model's `[rule]`; ContentError if its SQL does more than read."""
    if model.rule is None:
        return MethodResult()
    try:
        return _found(evidence, model, model.rule, trends)
    except QueryError as error:
        raise ContentError(f"models/{model.name}.toml: {one_line(error)}") from error


def _found(
    evidence: Evidence, model: Model, rule: Rule, trends: Sequence[StepTimeTrend]
) -> MethodResult:
    """Return the findings and how many parts could be judged."""
    rows = evidence.frame(model.evidence, model.limits)
    columns = list(rule.part) or [name for name in _FIELDS if name in rows.columns]
    parts_told = f"count(DISTINCT ({', '.join(columns)}))"
    judged = rule.judged or parts_told
    counts = f"SELECT {judged}, {rule.of or judged}, count(*) FROM evidence.rows"
    told, of, _ = evidence.ask_of(rows, counts, model.limits).row(0)
    asked = f"FROM evidence.rows WHERE {rule.when}"
    wrong = rows if rows.is_empty() else evidence.ask_of(rows, asked, model.limits)
    parts = having([*wrong_parts(wrong, columns, model, rule)], columns, evidence, model, rule)
    found = [
        _finding(_begun(one, trends), evidence, model, rule, trends)
        for one in as_findings(parts, columns, evidence, model, rule)
    ]
    return MethodResult(
        tuple(each for each in found if isinstance(each, Finding)),
        told,
        max((of or 0) - told, 0),
        open=tuple(each for each in found if isinstance(each, NotJudged)),
    )


def _finding(
    wrong: Wrong, evidence: Evidence, model: Model, rule: Rule, trends: Sequence[StepTimeTrend]
) -> Finding | NotJudged:
    """Return the finding; what has no severity and no cost that is felt is left open."""
    parts = _entities(wrong.rows, rule)
    entities = _with_wholes(parts, wrong.rows, model, rule)
    minor = () if wrong.minor.is_empty() else _entities(wrong.minor, rule)
    own = [trend.beside(model.kind, entities) for trend in _own(trends, parts)]
    since = _slower_since(wrong, own)
    has_price = is_priced(wrong, evidence, model, rule) or _came_and_went(wrong, since)
    cost = price(wrong, evidence, model, rule, own) if has_price else None
    priced = cost is not None and cost.would_show
    # The steps of a job may be longer for another reason; a rank's own work is not.
    settled = cost is not None and (cost.felt or (priced and "rank" in rule.price))
    slower = None if settled else since
    if slower is not None:
        # The steps outside it are slow for another reason, or by it: those before it are not.
        by_transfers = has_price and slower.is_by_transfers
        cost = price_since(wrong, evidence, rule, own) if by_transfers else None
    felt = cost is not None and cost.felt
    told = {
        "priced": priced,
        "slower": slower is not None,
        "as_expected": cost is not None and cost.reached is not None and not felt,
    }
    facts = _facts(wrong, evidence, model, rule, told)
    words = {
        **facts,
        "who": listed(parts),
        "minor": listed(minor) if minor else None,
        "place": place_of((part.host for part in parts), evidence),
        **_ranks(parts),
        **_times(wrong),
    }
    if facts["severity"] is None and not felt:
        title = model.wording.title.format(**with_phrases(model, words))
        return NotJudged(title, rule.settled_by)
    families = {name for name in rule.corroboration if facts[f"corroboration {name}"]}
    finding = build_finding(
        model,
        evidence,
        words,
        entities=entities,
        related=[*_related(wrong.rows, parts, entities), *minor],
        families=families | ({"timing"} if felt else set()),
        drivers=[*_drivers(model, rule, with_phrases(model, words))],
        start=wrong.start,
        end=None if felt and goes_on(wrong, rule) else wrong.end,
        # What has no time holds for the whole run: it is known from the first step on.
        detected_at=wrong.sure or _first_step(own),
        cost=cost,
        unmeasured=facts["severity"] or "info",
        most=facts["most severity"],
    )
    finding = replace(finding, begun_by=_begun_by(wrong), first_read=first(wrong.rows, "ts"))
    return replace(finding, bursts=()) if goes_on(wrong, rule) else finding


def _begun_by(wrong: Wrong) -> datetime | None:
    """Return when a part was first read wrong that was sound when it was read at the start."""
    sound_at: datetime | None = first(wrong.rows, "sound_at")
    begun_by: datetime | None = first(wrong.rows, "begun_by")
    return begun_by if sound_at is not None and sound_at == wrong.start else None


def _begun(wrong: Wrong, trends: Sequence[StepTimeTrend]) -> Wrong:
    """Return what is wrong from the slowdown that began between two readings, where one did."""
    begun_by = first(wrong.rows, "begun_by")
    if begun_by is None or wrong.start is None:
        return wrong
    slower = (s.start for trend in trends for s in trend.onsets if s.start is not None)
    begins = [start for start in slower if wrong.start <= start <= begun_by + CLOCK_SLACK]
    return replace(wrong, start=min(begins)) if begins else wrong


def _slower_since(wrong: Wrong, trends: Sequence[StepTimeTrend]) -> Slowdown | None:
    """Return the slowdown that begins when it does, if no log says that steps do more work."""
    if wrong.start is None:
        return None
    for trend in trends:
        timed = trend.steps.drop_nulls("ts").sort("ts")
        before = int((timed["ts"] < wrong.start).sum())
        near = timed["step"].slice(max(before - _ONSET_STEPS, 0), 2 * _ONSET_STEPS).to_list()
        for slowdown in trend.onsets:
            if slowdown.first_step in near and not slowdown.more_work:
                return slowdown
    return None


def _came_and_went(wrong: Wrong, slower: Slowdown | None) -> bool:
    """Say whether the longer steps that begin with it end in its last interval, too.

    What only begins with longer steps may have come with their cause.
    """
    if slower is None or slower.end is None or slower.goes_on:
        return False
    before, after = last(wrong.rows, "ts_before"), last(wrong.rows, "ts")
    if before is None or after is None:
        return False
    over: bool = before - CLOCK_SLACK <= slower.end <= after + CLOCK_SLACK
    return over


def _entities(rows: pl.DataFrame, rule: Rule) -> tuple[Entity, ...]:
    if "entities" in rows.columns:
        several = (rule.finding or rule.part) if rule.at_once else ()
        own = rows.unique(several, keep="first", maintain_order=True) if several else rows.head(1)
        return tuple(dict.fromkeys(Entity(**row) for row in own["entities"].explode()))
    told = [name for name in ("type", *_FIELDS) if name in rows.columns]
    named = rows.select(told).unique(maintain_order=True).iter_rows(named=True)
    return tuple(dict.fromkeys(Entity(**{"type": rule.entity, **row}) for row in named))


def _with_wholes(
    parts: tuple[Entity, ...], rows: pl.DataFrame, model: Model, rule: Rule
) -> tuple[Entity, ...]:
    """Return the parts, or what holds them where enough of its parts are wrong."""
    whole = rule.whole
    if whole is None:
        return parts
    counts = dict(rows.select(whole.by, pl.col(whole.of)).unique(whole.by).iter_rows())
    wrong = Counter(getattr(part, whole.by) for part in parts)

    def holder(part: Entity) -> Entity:
        name = getattr(part, whole.by)
        of = counts.get(name)
        if of is None or of < 2 or wrong[name] < model.limit(whole.share) * of:
            return part
        return Entity(whole.entity, job=part.job, **{whole.by: name})

    return tuple(dict.fromkeys(map(holder, parts)))


def _ranks(parts: Sequence[Entity]) -> dict[str, str | None]:
    """Return what the wording may say of the ranks of GPUs."""
    ranks = {part.rank for part in parts if part.type != "rank" and part.rank is not None}
    named = f"Rank{'s' if len(ranks) > 1 else ''} {numbered(ranks)}" if ranks else None
    return {"ranks": named}


def _related(
    rows: pl.DataFrame, parts: Sequence[Entity], entities: Sequence[Entity]
) -> list[Entity]:
    """Return parts of which the whole is named, what `related` lists, and the ranks of GPUs."""
    held = [part for part in parts if part not in entities]
    ranks = [
        Entity("rank", rank=part.rank, host=part.host)
        for part in parts
        if part.type != "rank" and part.rank is not None
    ]
    if "related" not in rows.columns:
        return [*held, *ranks]
    named = rows["related"].drop_nulls().explode().drop_nulls().unique()
    related = {Entity(**row) for row in named} - {*entities}
    return [*held, *ranks, *sorted(related, key=lambda entity: entity.label)]


def _facts(
    wrong: Wrong, evidence: Evidence, model: Model, rule: Rule, told: Mapping[str, bool]
) -> dict[str, Any]:
    """Return what the wording may name: the columns of the rows, and the facts of the rule."""
    facts: dict[str, Any] = {"intervals": len(wrong.rows)}
    for name in wrong.rows.columns:
        known = wrong.rows[name].drop_nulls()
        is_number = known.dtype.is_numeric() and name not in _FIELDS
        fact: Any = None if known.is_empty() else known.median() if is_number else known[0]
        whole = known.dtype.is_integer() and fact is not None
        facts[name] = int(fact) if whole and fact == int(fact) else fact
    asked = {
        **rule.facts,
        **{f"corroboration {name}": sql for name, sql in rule.corroboration.items()},
        "severity": rule.severity,
        "most severity": rule.most,
    }
    columns = ", ".join(f'{sql} AS "{name}"' for name, sql in asked.items())
    limits = {**model.limits, **{name: float(holds) for name, holds in told.items()}}
    answer = evidence.ask_of(wrong.rows, f"SELECT {columns} FROM evidence.rows", limits)
    return {**facts, **answer.row(0, named=True)}


def _times(wrong: Wrong) -> dict[str, str]:
    start = wrong.start
    return {
        "start": f"{start:%Y-%m-%d %H:%M:%S} UTC" if start else "an unknown time",
        "since": f"{start:%H:%M:%S} UTC" if start else "an unknown time",
    }


def _drivers(model: Model, rule: Rule, words: Mapping[str, Any]) -> Iterator[Driver]:
    for told in rule.driver:
        if words.get(told.value) is None:
            continue
        peer = words.get(told.peer) if isinstance(told.peer, str) else told.peer
        value = float(words[told.value])
        # A share of the bits is a few in ten thousand.
        value = round(value, 3) if abs(value) >= 1 else float(f"{value:.4g}")
        feature = told.feature.format(**words)
        yield driver(model, told.threshold, feature, value, peer=peer, unit=told.unit)


def _own(trends: Sequence[StepTimeTrend], parts: Sequence[Entity]) -> Sequence[StepTimeTrend]:
    """Return the steps of the jobs that parts name, of all where one names none."""
    jobs = {part.job for part in parts}
    return trends if None in jobs else [each for each in trends if each.job in jobs]


def _first_step(trends: Sequence[StepTimeTrend]) -> datetime | None:
    times: list[Any] = [trend.steps["ts"].min() for trend in trends]
    return min((time for time in times if time is not None), default=None)
