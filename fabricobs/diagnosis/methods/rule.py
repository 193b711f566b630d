"""Rules: a diagnosis that a model states alone, without a method of its own.

The evidence has one row a part and interval. The rule says which rows are wrong, for how
long they must be, which parts are one finding, and how the loss is priced.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import polars as pl

from fabricobs.content import ContentError
from fabricobs.diagnosis.cables import CLOCK_SLACK
from fabricobs.diagnosis.cost import Cost, cost_of
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.finding_builder import build_finding, driver, with_phrases
from fabricobs.diagnosis.findings import Driver, Entity, Finding, MethodResult, NotJudged
from fabricobs.diagnosis.job import StepTimeTrend
from fabricobs.diagnosis.model import Model, Rule
from fabricobs.diagnosis.rank_compute_times import RankTimes, rank_compute_times
from fabricobs.diagnosis.windows import (
    Stretch,
    earliest,
    overlapping,
    shared_time,
    spans,
    stretches,
)
from fabricobs.store.inspection import one_line
from fabricobs.store.sandbox import QueryError

# Parts wrong for more of the same time than of times apart share a cause.
_AT_ONCE = 0.5
_FIELDS = ("job", "rank", "host", "gpu", "nic", "switch", "port")

# Change points are as far off at most: what began within so many steps of another began with it.
_ONSET_STEPS = 10


@dataclass(frozen=True, slots=True)
class _Wrong:
    """What is wrong of one finding: its rows, when, and when that was first sure."""

    rows: pl.DataFrame
    stretches: tuple[Stretch, ...]
    start: datetime | None
    end: datetime | None
    sure: datetime | None


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
    wrong = evidence.ask_of(rows, f"FROM evidence.rows WHERE {rule.when}", model.limits)
    parts = _having([*_parts(wrong, columns, model, rule)], columns, evidence, model, rule)
    found = [
        _finding(_begun(one, trends), evidence, model, rule, trends)
        for one in _findings(parts, columns, evidence, model, rule)
    ]
    return MethodResult(
        tuple(each for each in found if isinstance(each, Finding)),
        told,
        max((of or 0) - told, 0),
        open=tuple(each for each in found if isinstance(each, NotJudged)),
    )


def _parts(rows: pl.DataFrame, columns: list[str], model: Model, rule: Rule) -> Iterator[_Wrong]:
    """Yield each part that is wrong for long enough, with the rows of that time."""
    for own in rows.partition_by(columns, maintain_order=True):
        if not rule.for_:
            yield _of_any_time(own)
            continue
        found = _lasting(own, model, rule)
        if found:
            yield _Wrong(overlapping(own, found), tuple(found), *earliest(found))


def _of_any_time(rows: pl.DataFrame) -> _Wrong:
    """Return rows that are wrong however short: `sure` says when that was clear, else the first."""
    begin, end = _first(rows, "ts_before"), _last(rows, "ts")
    times = begin is not None and end is not None
    found = tuple(stretches(rows, 1)) if times else ()
    # The ends of a cable are read at other times: the one that was sure first tells the begin.
    begin = found[0].begin if found else begin
    sure = _first(rows, "sure") or _first(rows, "begun_by") or begin
    return _Wrong(rows, found, begin, end, sure)


def _lasting(rows: pl.DataFrame, model: Model, rule: Rule) -> list[Stretch]:
    threshold = model.threshold[rule.for_]
    if threshold.unit != "s":
        return stretches(rows, int(threshold.value))
    enough = timedelta(seconds=threshold.value)
    return [
        replace(each, detected_at=each.begin + enough)
        for each in stretches(rows, 1)
        if each.end - each.begin >= enough
    ]


def _first(rows: pl.DataFrame, column: str) -> Any:
    return rows[column].min() if column in rows.columns else None


def _last(rows: pl.DataFrame, column: str) -> Any:
    return rows[column].max() if column in rows.columns else None


def _having(
    parts: list[_Wrong], columns: list[str], evidence: Evidence, model: Model, rule: Rule
) -> list[_Wrong]:
    """Return the parts whose rows satisfy `having`."""
    if not rule.having or not parts:
        return parts
    rows = pl.concat([part.rows for part in parts])
    names = ", ".join(columns)
    sql = f"SELECT {names} FROM evidence.rows GROUP BY {names} HAVING {rule.having}"
    kept = set(evidence.ask_of(rows, sql, model.limits).rows())
    return [part for part in parts if part.rows.select(columns).row(0) in kept]


def _findings(
    parts: list[_Wrong], columns: list[str], evidence: Evidence, model: Model, rule: Rule
) -> list[_Wrong]:
    """Join the parts of one finding."""
    if rule.together is not None:
        return _together(parts, evidence, model, rule)
    shared: dict[tuple[Any, ...], list[_Wrong]] = {}
    for part in parts:
        key = part.rows.select(rule.finding or columns).row(0)
        shared.setdefault(key, []).append(part)
    found = [_joined(own, 1) for own in shared.values()]
    return _at_once(found, evidence, model, rule) if rule.at_once else found


def _at_once(found: list[_Wrong], evidence: Evidence, model: Model, rule: Rule) -> list[_Wrong]:
    """Join what is wrong at the same times as the largest of it, largest first."""

    def size(wrong: _Wrong) -> float:
        sql = f"SELECT {rule.at_once} FROM evidence.rows"
        return float(evidence.ask_of(wrong.rows, sql, model.limits).item() or 0.0)

    groups: list[list[_Wrong]] = []
    for each in sorted(found, key=size, reverse=True):
        same = (g for g in groups if shared_time(g[0].stretches, each.stretches) >= _AT_ONCE)
        group = next(same, None)
        if group is None:
            groups.append([each])
        else:
            group.append(each)
    return [_joined(group, 1) for group in groups]


def _together(parts: list[_Wrong], evidence: Evidence, model: Model, rule: Rule) -> list[_Wrong]:
    """Return one finding of all parts if enough of them are wrong at one time."""
    together = rule.together
    if together is None or not parts:
        return []
    total = int(_last(parts[0].rows, together.of))
    needed = max(math.ceil(model.limit(together.share) * total), 1)
    if together.fewest:
        needed = max(needed, int(model.limit(together.fewest)))
    rows = pl.concat([part.rows for part in parts])
    if together.unless:
        sql = f"SELECT {together.unless} FROM evidence.rows"
        if evidence.ask_of(rows, sql, model.limits).item():
            return [_joined(parts, len(parts))]
    if len(parts) < needed:
        return []
    joined = _joined(parts, needed)
    sure = joined.sure
    # Parts that are wrong one after another do not share a cause.
    at_once = sum(
        sure is None or part.end is None or part.end >= sure - CLOCK_SLACK for part in parts
    )
    return [joined] if at_once >= needed else []


def _joined(parts: Sequence[_Wrong], needed: int) -> _Wrong:
    """Return parts as one, sure when the `needed` ones are, begun when half of them have."""
    if len(parts) == 1:
        return parts[0]
    begins = sorted(part.start for part in parts if part.start is not None)
    ends = [part.end for part in parts if part.end is not None]
    sure = sorted(part.sure for part in parts if part.sure is not None)
    start = begins[len(begins) // 2 if needed > 1 else 0] if begins else None
    found = (each for part in parts for each in part.stretches)
    return _Wrong(
        rows=pl.concat([part.rows for part in parts]),
        stretches=tuple(s for s in found if start is None or s.end >= start),
        start=start,
        end=max(ends, default=None),
        sure=sure[min(needed, len(sure)) - 1] if sure else None,
    )


def _finding(
    wrong: _Wrong, evidence: Evidence, model: Model, rule: Rule, trends: Sequence[StepTimeTrend]
) -> Finding | NotJudged:
    """Return the finding; what has no severity and no cost that is felt is left open."""
    entities = _entities(wrong.rows, rule)
    cost = _cost(wrong, entities, evidence, model, rule, trends)
    priced = cost is not None
    slower = not priced and _slower_since(wrong, _own(trends, entities[0]))
    told = {"priced": priced, "slower": slower}
    facts = _facts(wrong, evidence, model, rule, told)
    felt = cost is not None and cost.felt
    words = {**facts, "who": _listed(entities), **_times(wrong)}
    if facts["severity"] is None and not felt:
        title = model.wording.title.format(**with_phrases(model, words))
        return NotJudged(title, rule.settled_by)
    families = {name for name in rule.corroboration if facts[f"corroboration {name}"]}
    finding = build_finding(
        model,
        evidence,
        words,
        entities=entities,
        related=_related(wrong.rows, entities),
        families=families | ({"timing"} if felt else set()),
        drivers=[*_drivers(model, rule, with_phrases(model, words))],
        start=wrong.start,
        end=None if felt and _goes_on(wrong, rule) else wrong.end,
        # What has no time holds for the whole run: it is known from the first step on.
        detected_at=wrong.sure or _first_step(_own(trends, entities[0])),
        cost=cost,
        unmeasured=facts["severity"] or "info",
    )
    return replace(finding, bursts=()) if _goes_on(wrong, rule) else finding


def _begun(wrong: _Wrong, trends: Sequence[StepTimeTrend]) -> _Wrong:
    """Return what is wrong from the slowdown that began between two readings, where one did."""
    begun_by = _first(wrong.rows, "begun_by")
    if begun_by is None or wrong.start is None:
        return wrong
    slower = (s.start for trend in trends for s in trend.slowdowns if s.start is not None)
    begins = [start for start in slower if wrong.start <= start <= begun_by + CLOCK_SLACK]
    return replace(wrong, start=min(begins)) if begins else wrong


def _slower_since(wrong: _Wrong, trends: Sequence[StepTimeTrend]) -> bool:
    """Say whether steps became longer when it began, and no log says that they did more work."""
    if wrong.start is None:
        return False
    for trend in trends:
        timed = trend.steps.drop_nulls("ts").sort("ts")
        before = int((timed["ts"] < wrong.start).sum())
        near = timed["step"].slice(max(before - _ONSET_STEPS, 0), 2 * _ONSET_STEPS).to_list()
        if any(s.first_step in near and not s.more_work for s in trend.slowdowns):
            return True
    return False


def _goes_on(wrong: _Wrong, rule: Rule) -> bool:
    return rule.lasts and _last(wrong.rows, "ended") is None


def _entities(rows: pl.DataFrame, rule: Rule) -> tuple[Entity, ...]:
    if "entities" in rows.columns:
        several = (rule.finding or rule.part) if rule.at_once else ()
        own = rows.unique(several, keep="first", maintain_order=True) if several else rows.head(1)
        return tuple(dict.fromkeys(Entity(**row) for row in own["entities"].explode()))
    told = [name for name in ("type", *_FIELDS) if name in rows.columns]
    named = rows.select(told).unique(maintain_order=True).iter_rows(named=True)
    return tuple(dict.fromkeys(Entity(**{"type": rule.entity, **row}) for row in named))


def _related(rows: pl.DataFrame, entities: Sequence[Entity]) -> list[Entity]:
    """Return what `related` lists, and the ranks of GPUs."""
    ranks = [
        Entity("rank", rank=e.rank, host=e.host)
        for e in entities
        if e.type != "rank" and e.rank is not None
    ]
    if "related" not in rows.columns:
        return ranks
    listed = rows["related"].drop_nulls().explode().drop_nulls().unique()
    related = {Entity(**row) for row in listed} - {*entities}
    return [*ranks, *sorted(related, key=lambda entity: entity.label)]


def _facts(
    wrong: _Wrong, evidence: Evidence, model: Model, rule: Rule, told: Mapping[str, bool]
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
    }
    columns = ", ".join(f'{sql} AS "{name}"' for name, sql in asked.items())
    limits = {**model.limits, **{name: float(holds) for name, holds in told.items()}}
    answer = evidence.ask_of(wrong.rows, f"SELECT {columns} FROM evidence.rows", limits)
    return {**facts, **answer.row(0, named=True)}


def _times(wrong: _Wrong) -> dict[str, str]:
    start = wrong.start
    return {
        "start": f"{start:%Y-%m-%d %H:%M:%S} UTC" if start else "an unknown time",
        "since": f"{start:%H:%M:%S} UTC" if start else "an unknown time",
    }


def _listed(entities: Sequence[Entity], most: int = 3) -> str:
    # The job is named where it is the culprit; a host of it has a name of its own.
    parts = [replace(e, job=None) if e.host is not None else e for e in entities]
    names = [part.label for part in parts]
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join(names)


def _drivers(model: Model, rule: Rule, words: Mapping[str, Any]) -> Iterator[Driver]:
    for told in rule.driver:
        if words.get(told.value) is None:
            continue
        peer = words.get(told.peer) if isinstance(told.peer, str) else told.peer
        value = round(float(words[told.value]), 3)
        feature = told.feature.format(**words)
        yield driver(model, told.threshold, feature, value, peer=peer, unit=told.unit)


def _cost(
    wrong: _Wrong,
    entities: Sequence[Entity],
    evidence: Evidence,
    model: Model,
    rule: Rule,
    trends: Sequence[StepTimeTrend],
) -> Cost | None:
    """Return the first cost that is felt, else the first that is known; a rank's own decides."""
    entity = entities[0]
    own = _own(trends, entity)
    known = None
    for way in rule.price:
        cost = None
        if way == "rank":
            cost = _cost_of_rank(entity, wrong, evidence, model, rule)
        elif way == "run":
            hosts = {e.host for e in entities if e.host is not None}
            cost = cost_of(evidence, own, spans(wrong.stretches), whole_run=True, hosts=hosts)
        elif way == "intervals" and _spans(wrong, rule):
            cost = cost_of(evidence, own, _spans(wrong, rule))
        if cost is not None and (cost.felt or way == "rank"):
            return cost
        known = known or cost
    return known


def _own(trends: Sequence[StepTimeTrend], entity: Entity) -> Sequence[StepTimeTrend]:
    return trends if entity.job is None else [each for each in trends if each.job == entity.job]


def _first_step(trends: Sequence[StepTimeTrend]) -> datetime | None:
    times: list[Any] = [trend.steps["ts"].min() for trend in trends]
    return min((time for time in times if time is not None), default=None)


def _spans(wrong: _Wrong, rule: Rule) -> list[tuple[datetime, datetime]]:
    """Return when the cause acted; nothing where no row has a time."""
    if wrong.start is None:
        return []
    if _goes_on(wrong, rule):
        return [(wrong.start, datetime.max)]
    if wrong.stretches:
        return spans(wrong.stretches)
    return [(wrong.start, wrong.end)] if wrong.end is not None else []


def _cost_of_rank(
    entity: Entity, wrong: _Wrong, evidence: Evidence, model: Model, rule: Rule
) -> Cost | None:
    """Return what the part's rank cost its job while it was wrong; None without its times."""
    for job in rank_compute_times(evidence) if entity.rank is not None else ():
        if job.job != entity.job or entity.rank not in job.ranks:
            continue
        last = len(job.steps) - 1
        begin = _index(job, wrong.start, 0)
        end = _index(job, None if _goes_on(wrong, rule) else wrong.end, last)
        if np.isnat(job.ends[[begin, end]]).any():
            return None
        steps = int(job.steps[begin]), int(job.steps[end])
        loss = job.lost_share(np.flatnonzero(job.ranks == entity.rank), *steps)
        start, stop = job.ends[[begin, end]].astype("datetime64[us]").tolist()
        felt = loss >= model.limit("least_loss")
        return Cost(job.job, round(loss, 4), *steps, start, stop, felt, "the rank's peers")
    return None


def _index(times: RankTimes, moment: datetime | None, otherwise: int) -> int:
    """Index of the step that ran at a moment; `otherwise` where the moment is not known."""
    if moment is None or np.isnat(times.ends).all():
        return otherwise
    return min(int(np.searchsorted(times.ends, np.datetime64(moment))), len(times.steps) - 1)
