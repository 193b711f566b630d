"""What the cause that a rule found cost a job, in the ways that the rule names."""

from collections.abc import Sequence
from datetime import datetime

import numpy as np
import polars as pl

from fabricobs.diagnosis.cost import Cost, cost_of
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.job import StepTimeTrend
from fabricobs.diagnosis.methods.rule_parts import Wrong, last
from fabricobs.diagnosis.model import Model, Rule
from fabricobs.diagnosis.rank_compute_times import RankTimes, rank_compute_times
from fabricobs.diagnosis.windows import interval_of, spans


def price(
    wrong: Wrong,
    evidence: Evidence,
    model: Model,
    rule: Rule,
    own: Sequence[StepTimeTrend],
) -> Cost | None:
    """Return the first cost that is felt, else the first that is known; that of ranks decides.

    `own` are the step times of the jobs that the finding may be about.
    """
    known = None
    for way in rule.price:
        cost = None
        if way == "rank":
            cost = _cost_of_ranks(wrong, evidence, model, rule)
        elif way == "run":
            hosts = _hosts(wrong.rows)
            cost = cost_of(evidence, own, spans(wrong.stretches), whole_run=True, hosts=hosts)
        elif way in {"intervals", "outside"} and _spans(wrong, rule):
            expected = way == "intervals"
            cost = cost_of(
                evidence,
                own,
                _spans(wrong, rule),
                by_expectation=expected,
                read_every=interval_of(wrong.stretches),
                dose=_dose(wrong, rule),
            )
        if cost is not None and (cost.felt or way == "rank"):
            return cost
        known = known or cost
    return known


def price_since(
    wrong: Wrong, evidence: Evidence, rule: Rule, own: Sequence[StepTimeTrend]
) -> Cost | None:
    """Return the cost against the steps before it, where it is felt and the rule goes by steps."""
    if not {"intervals", "outside"} & {*rule.price}:
        return None
    cost = cost_of(
        evidence,
        own,
        _spans(wrong, rule),
        by_expectation=False,
        since=True,
        read_every=interval_of(wrong.stretches),
        dose=_dose(wrong, rule),
    )
    return cost if cost is not None and cost.felt else None


def is_priced(wrong: Wrong, evidence: Evidence, model: Model, rule: Rule) -> bool:
    """Say whether the loss is its own, and not left to what names its cause."""
    if not rule.priced_where:
        return True
    asked = f"SELECT {rule.priced_where} FROM evidence.rows"
    return bool(evidence.ask_of(wrong.rows, asked, model.limits).item())


def _dose(wrong: Wrong, rule: Rule) -> pl.DataFrame | None:
    """Return how strongly a cause acted in its intervals, where the rule has a column for it."""
    if not rule.dose:
        return None
    return wrong.rows.select(
        "ts_before", "ts", dose=pl.col(rule.dose).cast(pl.Float64)
    ).drop_nulls()


def _hosts(rows: pl.DataFrame) -> set[str]:
    """Return the hosts that rows name."""
    return set(rows["host"].drop_nulls()) if "host" in rows.columns else set()


def goes_on(wrong: Wrong, rule: Rule) -> bool:
    """Say whether the cause acts after its last row."""
    return rule.lasts and last(wrong.rows, "ended") is None


def _spans(wrong: Wrong, rule: Rule) -> list[tuple[datetime, datetime]]:
    """Return when the cause acted; nothing where no row has a time.

    A cause that began between two readings acted from then on, not from the first reading.
    """
    if wrong.start is None:
        return []
    if goes_on(wrong, rule):
        return [(wrong.start, datetime.max)]
    if wrong.stretches:
        acted = spans(wrong.stretches)
        return [(max(begin, wrong.start), end) for begin, end in acted if end > wrong.start]
    return [(wrong.start, wrong.end)] if wrong.end is not None else []


def _cost_of_ranks(wrong: Wrong, evidence: Evidence, model: Model, rule: Rule) -> Cost | None:
    """Return what the ranks of a finding cost the job that lost most; None without their times.

    All at once are replaced by their peers: with one alone the next slow one would be last.
    """
    ranks = _ranks_by_job(wrong.rows)
    costs = (
        _cost_of_job(times, ranks[times.job], wrong, model, rule)
        for times in rank_compute_times(evidence)
        if times.job in ranks
    )
    return max(filter(None, costs), key=lambda cost: cost.loss_share, default=None)


def _ranks_by_job(rows: pl.DataFrame) -> dict[str | None, list[int]]:
    """Return the ranks that rows name by job, none where they name no rank."""
    if not {"job", "rank"} <= {*rows.columns}:
        return {}
    by_job = rows.drop_nulls("rank").group_by("job").agg(pl.col("rank").unique())
    return dict(by_job.iter_rows())


def _cost_of_job(
    times: RankTimes, ranks: Sequence[int], wrong: Wrong, model: Model, rule: Rule
) -> Cost | None:
    culprits = np.flatnonzero(np.isin(times.ranks, ranks))
    if not len(culprits):
        return None
    begin = _index(times, wrong.start, 0)
    end = _index(times, None if goes_on(wrong, rule) else wrong.end, len(times.steps) - 1)
    if np.isnat(times.ends[[begin, end]]).any():
        return None
    steps = int(times.steps[begin]), int(times.steps[end])
    loss = times.lost_share(culprits, *steps)
    start, stop = times.ends[[begin, end]].astype("datetime64[us]").tolist()
    felt = loss >= model.limit("least_loss")
    against = "the rank's peers" if len(culprits) == 1 else "the peers of these ranks"
    return Cost(times.job, round(loss, 4), *steps, start, stop, felt, against)


def _index(times: RankTimes, moment: datetime | None, otherwise: int) -> int:
    """Index of the step that ran at a moment; `otherwise` where the moment is not known."""
    if moment is None or np.isnat(times.ends).all():
        return otherwise
    return min(int(np.searchsorted(times.ends, np.datetime64(moment))), len(times.steps) - 1)
