"""Uneven work: the job waits for itself, and neither the network nor any part is at fault.

Three forms: a pipeline stage with more to compute, another rank last in every step, and all ranks
waiting for their data alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.finding_builder import driver, refutations_of, steps_of
from fabricobs.diagnosis.findings import (
    SEVERITIES,
    Driver,
    Entity,
    Finding,
    MethodResult,
    Severity,
    confidence_of,
    severity_of_loss,
)
from fabricobs.diagnosis.job import StepTimeTrend
from fabricobs.diagnosis.methods.straggler import moment_of
from fabricobs.diagnosis.model import Model
from fabricobs.diagnosis.naming import ranges
from fabricobs.diagnosis.rank_compute_times import RankTimes, nan_max, rank_compute_times
from fabricobs.diagnosis.standing import in_past
from fabricobs.diagnosis.statistics import (
    Array,
    Flags,
    Integers,
    change_points,
    nan_median,
    noise_of,
)

# Hosts below this number are too few to say that another one is last each time; then ranks do.
_FEWEST_HOSTS = 4
_UNNAMED = "No log names pipeline stages: hosts of another kind would look the same."
_MOVED = (
    "In another run of the job the same ranks took longer on other hosts: what moves with ranks is "
    "their work, unless what those hosts share makes them slow (a rack, a firmware)."
)
# What shows waits for data of all ranks; the query of the model shows who waits for whom.
_LOADING_QUERY = "parts_of_steps"


@dataclass(frozen=True, slots=True)
class _Form:
    """One form of uneven work: what is uneven, from which step index to which, and the numbers.

    `name` is that of the form in the phrase `advice` of the model. `loss` is the share of
    throughput lost, `explained` the share of the wait that the form explains, both 0 to 1; `what`
    and `proof` are sentences. `most` is the highest severity: a job whose ranks take turns is as it
    was built, and so is one that always waits a little for its data. `least_loss` and
    `least_explained` name the thresholds from which the form is told.
    """

    name: Literal["stages", "last_ranks", "moved_ranks", "turns", "loading"]
    what: str
    proof: str
    loss: float
    explained: float
    first: int
    last: int
    drivers: tuple[Driver, ...]
    most: Severity = "critical"
    least_loss: Literal["loss", "stage_loss"] = "loss"
    least_explained: Literal["explained", "stage_explained"] = "explained"

    @property
    def severity(self) -> Severity:
        """Return the severity of the loss, `most` at most."""
        return min(severity_of_loss(self.loss), self.most, key=SEVERITIES.index)


def find_workload_imbalance(
    evidence: Evidence, model: Model, trends: Sequence[StepTimeTrend]
) -> MethodResult:
    """Return one finding a job whose own work holds it up; a unit is a rank."""
    findings: list[Finding] = []
    judged = 0
    for times in rank_compute_times(evidence):
        if len(times.steps) < model.limit("least_steps"):
            continue
        judged += len(times.ranks)
        forms = [
            form
            for form in (_stages(times, model), _dealing(times, model), _loading(times, model))
            if form is not None
            and form.loss >= model.limit(form.least_loss)
            and form.explained >= model.limit(form.least_explained)
        ]
        if forms:
            forms.sort(key=lambda form: (-SEVERITIES.index(form.severity), -form.loss))
            findings.append(_finding(times, forms, model, evidence))
    ranks = int(evidence.frame("rank_steps").select("job", "rank").n_unique())
    return MethodResult(tuple(findings), judged, max(ranks - judged, 0))


def _stages(times: RankTimes, model: Model) -> _Form | None:
    """A stage that computes longer than the mean stage throughout, or than the others unnamed.

    It explains the wait of the ranks for each other that lasts: they vary from step to step, too.
    """
    stages = np.unique(times.stages[np.isfinite(times.own_ms).any(axis=0)])
    if len(stages) < 2 or not times.measured:
        return None
    by_stage = np.column_stack([nan_median(times.own_ms[:, times.stages == s], 1) for s in stages])
    # What is no stage for sure is priced as if it were like the others.
    is_named = times.staged_by == "stages"
    others = by_stage.mean(axis=1) if is_named else by_stage.min(axis=1)
    whole = np.isfinite(others)
    if not whole.any():
        return None
    usual = np.median(by_stage[whole], axis=0)
    slowest, other = int(np.argmax(usual)), float(np.median(others[whole]))
    longer = float(usual[slowest] / other - 1)
    if longer < model.limit("stage_excess"):
        return None
    explained = _explained(nan_median(times.own_ms, axis=0), times.stages == stages[slowest], other)
    added = by_stage[times.steady, slowest] - others[times.steady]
    ranks = ranges(times.ranks[times.stages == stages[slowest]])
    if is_named:
        name = f"pipeline stage {stages[slowest]} (ranks {ranks})"
        what = f"{name} computes {longer:.0%} longer than the mean stage"
        needed = f"The stages needed {', '.join(f'{ms:,.0f}' for ms in usual)} ms"
    else:
        moved = times.staged_by == "moved_ranks"
        name = f"ranks {ranks}" if moved else f"the last ranks ({ranks})"
        what = f"{name} compute {longer:.0%} longer than the others"
        needed = (
            f"{_MOVED if moved else _UNNAMED} These ranks needed {usual[slowest]:,.0f} ms, "
            f"the others {other:,.0f}"
        )
    return _Form(
        name=times.staged_by,
        what=what,
        proof=f"{needed}; that explained {explained:.0%} of what the slowest rank needed more",
        loss=_share(float(np.nansum(added)), float(np.nansum(times.step_ms[times.steady]))),
        explained=explained,
        first=0,
        last=len(times.steps) - 1,
        drivers=(
            driver(
                model,
                "stage_excess",
                "computation of the slowest stage over that of the others, less 1"
                if not is_named
                else "computation of the slowest stage over the mean stage's, less 1",
                round(longer, 3),
            ),
            driver(
                model, "stage_explained", "share of the slowest rank's excess", round(explained, 3)
            ),
        ),
        least_loss="stage_loss",
        least_explained="stage_explained",
    )


def _explained(of_rank: Array, slower: Flags, others_ms: float) -> float:
    """Return how much less than the others the slowest rank would be behind, were all stages alike.

    The stage's metric of the what-if analysis (arXiv 2505.05713), of the ranks' medians.
    """
    alike = np.where(slower, of_rank - (np.nanmedian(of_rank[slower]) - others_ms), of_rank)
    worst, left = (float(np.nanmax(each)) - others_ms for each in (of_rank, alike))
    return _share(worst - left, worst)


def _dealing(times: RankTimes, model: Model) -> _Form | None:
    """Another rank last in every step, in a stretch or all the time: nobody is slow for long."""
    ahead = times.own_ms - times.peer_ms
    known = np.flatnonzero(times.steady & np.isfinite(ahead).any(axis=1))
    if not len(known):
        return None
    begin, end = _varying(nan_max(ahead[known]), times.excess[known], model)
    known = known[begin:end]
    ahead = ahead[known]
    lasting = np.nan_to_num(nan_median(ahead, axis=0))
    wait, passing = nan_max(ahead), nan_max(ahead - lasting)
    explained = _share(float(np.sum(passing)), float(np.sum(wait)))
    last = np.nanargmax(np.where(np.isnan(ahead), -np.inf, ahead), axis=1)
    units, names = _units(times)
    blame = np.bincount(units[last], weights=np.clip(wait, 0, None), minlength=len(names))
    shares = blame / max(float(blame.sum()), 1e-9)
    turns = 1 / max(float(np.sum(shares**2)), 1e-9)
    loss = _share(float(np.sum(wait)), float(np.nansum(times.step_ms[known])))
    spread = noise_of(times.excess[known])
    if (
        turns < model.limit("turns") * len(names)
        or loss < model.limit("turns_loss")
        or spread < model.limit("spread")
    ):
        return None
    usual = float(np.median(np.nanmedian(times.peer_ms[known], axis=1)))
    return _Form(
        name="turns",
        what=(
            "ranks vary from step to step"
            + (f" since step {times.steps[known[0]]}" if begin else "")
            + ": another one is last each time, the slowest "
            f"{np.median(wait) / usual:.0%} behind the median"
        ),
        proof=(
            f"The wait was caused by {turns:.0f} of {len(names)} {_kind(times)} in turn; "
            f"{explained:.0%} of it changed from step to step, no rank was slow for long"
        ),
        loss=loss,
        explained=explained,
        first=int(known[0]) if begin else 0,
        last=int(known[-1]),
        drivers=(
            driver(
                model,
                "turns",
                f"{_kind(times)} that cause the wait in turn, share of all",
                round(turns / len(names), 3),
            ),
            driver(model, "spread", "variation of the ranks in a step", round(spread, 3)),
            driver(
                model,
                "explained",
                "share of the wait that changes from step to step",
                round(explained, 3),
            ),
        ),
        most="critical" if begin else "low",
    )


def _varying(wait: Array, excess: Array, model: Model) -> tuple[int, int]:
    """Return the range of steps in which the slowest rank is further behind; all if there is none.

    In the others ranks vary as little as sound ones, and by much less: more work for all makes the
    slowest wait longer too. What varied at first and then no more is how the job begins.
    """
    cuts = change_points(wait, smallest=int(model.limit("least_steps")))
    begin, end = _worst_stretch(wait, [0, *cuts, len(wait)])
    others = noise_of(np.delete(excess, np.s_[begin:end], axis=0))
    during = noise_of(excess[begin:end])
    most = min(model.limit("spread"), during / model.limit("spread_rise"))
    return (begin, end) if begin and others < most else (0, len(wait))


def _loading(times: RankTimes, model: Model) -> _Form | None:
    """All ranks wait longer for their data, in a stretch or all the time.

    The job waits for the slowest of them, another one each time where storage varies: what that one
    waits longer than the slowest did before is what it costs.
    """
    if np.isnan(times.data_ms).all():
        return None
    loading = nan_median(times.data_ms, axis=1)
    known = times.steady & np.isfinite(loading)
    if known.sum() < 2 * model.limit("least_steps"):
        return None
    index = np.flatnonzero(known)
    values = loading[index]
    cuts = change_points(values, smallest=int(model.limit("least_steps")))
    worst = _worst_stretch(values, [0, *cuts, len(values)])
    begin, end = worst
    rest = np.concatenate([values[:begin], values[end:]])
    steps = times.step_ms[index]
    usual = float(np.median(rest)) if len(rest) else 0.0
    during = index[begin:end]
    of_rank = nan_median(times.data_ms[during], axis=0)
    slow = of_rank > usual + (np.median(values[begin:end]) - usual) / 2
    alike = float(np.nanmean(np.where(np.isnan(of_rank), np.nan, slow)))
    if alike < model.limit("alike"):
        return None
    slowest = nan_max(times.data_ms[index])
    before = np.delete(slowest, np.s_[begin:end])
    # Without other steps to compare with: what the steps would take without loading.
    share = _share(float(np.sum(values[begin:end])), float(np.sum(steps[begin:end])))
    if not len(rest) and share < model.limit("loss"):
        return None
    waited = nan_max(times.own_ms[during]) - nan_max((times.own_ms - times.data_ms)[during])
    added = float(
        np.sum(slowest[begin:end] - np.median(before)) if len(rest) else np.nansum(waited)
    )
    longer = (
        float(np.sum(steps[begin:end] - np.median(np.delete(steps, np.s_[begin:end]))))
        if len(rest)
        else added
    )
    explained = _share(added, longer)
    value = float(np.median(values[begin:end]))
    return _Form(
        name="loading",
        what=f"all ranks wait {value:,.0f} ms a step for their data"
        + (f" since step {times.steps[index[begin]]}" if begin else ""),
        proof=(
            f"Loading took {usual:,.0f} ms in the other steps; it was longer on {alike:.0%} of the "
            f"ranks. The slowest rank took {np.median(slowest[begin:end]):,.0f} ms a step, in the "
            f"other steps {np.median(before):,.0f} ms: {explained:.0%} of the added time"
            if len(rest)
            else f"The median rank waited for {share:.0%} of every step, {alike:.0%} of the ranks "
            "as long; the slowest of each step is waited for"
        ),
        loss=_share(added, float(np.sum(steps[begin:end]))),
        explained=explained,
        first=int(index[begin]),
        last=int(index[end - 1]),
        drivers=(
            driver(model, "alike", "share of the ranks with long loading", round(alike, 3)),
            Driver(
                "waiting for data per step",
                round(value, 1),
                round(usual, 1),
                "ms",
                None,
                None,
                "median over the ranks, against the steps without it",
            ),
        ),
        most="critical" if len(rest) or share >= model.limit("loading_loss") else "low",
    )


def _worst_stretch(values: Array, bounds: list[int]) -> tuple[int, int]:
    """Index range of the stretch that adds most to the smallest median."""
    parts = list(zip(bounds, bounds[1:], strict=False))
    medians = [float(np.median(values[a:b])) for a, b in parts]
    least = min(medians)
    if len(parts) == 1:
        return parts[0]
    added = [(m - least) * (b - a) for m, (a, b) in zip(medians, parts, strict=True)]
    first = int(np.argmax(added))
    last = first
    # What follows and is long too belongs to it.
    half = least + (medians[first] - least) / 2
    while last + 1 < len(parts) and medians[last + 1] > half:
        last += 1
    while first > 0 and medians[first - 1] > half:
        first -= 1
    return parts[first][0], parts[last][1]


def _units(times: RankTimes) -> tuple[Integers, list[str]]:
    """Unit of each rank [R] and the units' names: hosts where there are several, else ranks."""
    hosts = sorted({str(host) for host in times.hosts})
    if len(hosts) >= _FEWEST_HOSTS:
        return np.array([hosts.index(str(host)) for host in times.hosts]), hosts
    return np.arange(len(times.ranks)), [str(rank) for rank in times.ranks]


def _kind(times: RankTimes) -> str:
    return "hosts" if len({str(host) for host in times.hosts}) >= _FEWEST_HOSTS else "ranks"


def _share(part: float, whole: float) -> float:
    # Rounded once: the text and the finding tell one share.
    return round(float(min(max(part / whole, 0.0), 1.0)), 4) if whole > 0 else 0.0


def _finding(times: RankTimes, forms: Sequence[_Form], model: Model, evidence: Evidence) -> Finding:
    form = forms[0]
    begin, end = int(times.steps[form.first]), int(times.steps[form.last])
    words: dict[str, Any] = {
        "what": form.what,
        "What": form.what[0].upper() + form.what[1:],
        "proof": form.proof,
        "loss": form.loss,
        form.name: "",
        "uneven": None if form.name == "loading" else "",
    }
    families = {"timing"}
    explanation = model.wording.explanation.format(**words)
    if len(forms) > 1:
        others = (in_past(other.what, model.wording.past) for other in forms[1:])
        explanation += f" Besides, {'; '.join(others)}."
    known = min(form.first + int(model.limit("least_steps")) - 1, form.last)
    return Finding(
        kind=model.kind,
        entities=(Entity("job", job=times.job),),
        severity=form.severity,
        confidence=confidence_of(families),
        families=tuple(sorted(families)),
        title=model.wording.title.format(**words),
        explanation=explanation,
        start=moment_of(times, form.first),
        end=moment_of(times, form.last),
        start_step=begin,
        end_step=end,
        detected_at=moment_of(times, known),
        loss_share=form.loss,
        drivers=form.drivers,
        query=_LOADING_QUERY if form.name == "loading" else model.query,
        refuted_by=refutations_of(model, words),
        next_steps=steps_of(model, words),
    )
