"""Rules: a diagnosis that a model states alone, without a method of its own.

The evidence has one row per part and interval. The rule says which rows are wrong, how many in a
row count, what part they name, and how the loss is priced.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
import polars as pl

from fabricobs.diagnosis.cost import Cost, cost_of
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.finding_builder import build_finding, driver
from fabricobs.diagnosis.findings import Entity, Finding, MethodResult
from fabricobs.diagnosis.job import StepTimeTrend
from fabricobs.diagnosis.model import Model, Rule
from fabricobs.diagnosis.rank_compute_times import RankTimes, rank_compute_times
from fabricobs.diagnosis.windows import Stretch, earliest, spans, stretches

_FIELDS = ("job", "rank", "host", "gpu", "nic", "switch", "port")


def find_by_rule(evidence: Evidence, model: Model, trends: Sequence[StepTimeTrend]) -> MethodResult:
    """Return one finding per part whose rows satisfy the model's `[rule]`; a unit is a part."""
    rule = model.rule
    if rule is None:
        return MethodResult()
    rows = evidence.frame(model.evidence)
    parts = [name for name in _FIELDS if name in rows.columns]
    judged, not_checked = rows.select(parts).n_unique(), 0
    if rule.judged:
        judged, of = evidence.frame(rule.judged).row(0)
        not_checked = max(of - judged, 0)
    limits = {name: threshold.value for name, threshold in model.threshold.items()}
    wrong = rows.filter(pl.sql_expr(rule.when.format(**limits)))
    found = []
    for own in wrong.partition_by(parts, maintain_order=True):
        least = int(model.limit(rule.intervals)) if rule.intervals else 1
        lasting = stretches(own, least) if rule.intervals else []
        if lasting or not rule.intervals:
            found.append(_finding(own, lasting, model, rule, evidence, trends))
    return MethodResult(tuple(found), judged, not_checked)


def _finding(
    rows: pl.DataFrame,
    lasting: Sequence[Stretch],
    model: Model,
    rule: Rule,
    evidence: Evidence,
    trends: Sequence[StepTimeTrend],
) -> Finding:
    first, last, detected = (
        earliest(lasting)
        if lasting
        else (rows["ts_before"][0], rows["ts"][-1], rows["ts_before"][0])
    )
    entity = Entity(rule.entity, **{k: rows[k][0] for k in _FIELDS if k in rows.columns})
    cost = _cost_of_rank(entity, first, None if rule.lasts else last, model, evidence)
    if cost is None and lasting:
        cost = cost_of(evidence, trends, spans(lasting))
    numbers = _words(rows)
    words = {
        **numbers,
        "who": entity.label,
        "rank": f"Rank {entity.rank} runs on it."
        if entity.rank is not None
        else "The rank on it is not known.",
        "because": f", for {numbers['reason']}" if numbers.get("reason") else "",
        "start": f"{first:%Y-%m-%d %H:%M:%S} UTC" if first else "an unknown time",
        "intervals": len(rows),
    }
    felt = cost is not None and cost.felt
    related = (
        [Entity("rank", rank=entity.rank, host=entity.host)] if entity.rank is not None else []
    )
    finding = build_finding(
        model,
        evidence,
        words,
        entities=[entity],
        related=related,
        families={*rule.families, "timing"} if felt else set(rule.families),
        drivers=[
            driver(
                model,
                told.threshold,
                told.feature,
                round(float(numbers[told.value]), 3),
                peer=numbers.get(told.peer),
                unit=told.unit,
            )
            for told in rule.driver
            if numbers.get(told.value) is not None
        ],
        start=first,
        end=None if felt and rule.lasts else last,
        detected_at=detected,
        cost=cost,
        unmeasured="medium" if numbers.get("severe", True) else "info",
    )
    return replace(finding, bursts=())


def _words(rows: pl.DataFrame) -> dict[str, Any]:
    """Return what a rule's wording may name: medians of numbers, else the first value told."""
    words: dict[str, Any] = {}
    for name in rows.columns:
        told = rows[name].drop_nulls()
        whole = name in _FIELDS or not told.dtype.is_numeric()
        words[name] = None if told.is_empty() else told[0] if whole else told.median()
    return words


def _cost_of_rank(
    entity: Entity,
    first: datetime | None,
    last: datetime | None,
    model: Model,
    evidence: Evidence,
) -> Cost | None:
    """Return what the part's rank cost its job between two moments; None without its times."""
    for job in rank_compute_times(evidence) if entity.rank is not None else ():
        if job.job != entity.job or entity.rank not in job.ranks:
            continue
        begin, end = _index(job, first, 0), _index(job, last, len(job.steps) - 1)
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
