"""Standouts: an isolation forest ranks what no rule names; it never accuses.

Judged are ranks by their times, NICs and switch ports by their counters. The forest's own cut-off
flags healthy ones, so a part is shown only if a single number of it is also far from its peers, and
always as information.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.finding_builder import refutations_of, steps_of
from fabricobs.diagnosis.findings import Driver, Entity, Finding, MethodResult
from fabricobs.diagnosis.model import Model
from fabricobs.diagnosis.rank_compute_times import RankTimes, rank_compute_times
from fabricobs.diagnosis.statistics import MAD_FLOOR, MAD_TO_SIGMA, Array, nan_median

if TYPE_CHECKING:
    from sklearn.ensemble import IsolationForest

_CLIP = 20.0
_CONFIDENCE = 0.2
_WHOLE_FROM = 1_000  # from which a rate is told in whole numbers


@dataclass(frozen=True, slots=True)
class _Feature:
    """A number of a part: what it is called, its unit, and the least difference worth a look."""

    name: str
    words: str
    unit: str
    least: float = 0.0


@dataclass(frozen=True, slots=True)
class _Subject:
    """What is compared: parts of one sort, their features, and the entity of a row.

    `query` shows their numbers to a person; empty: that of the model.
    """

    name: str
    family: str
    features: tuple[_Feature, ...]
    entity: Callable[[dict[str, Any]], Entity]
    query: str = ""


_RANKS = _Subject(
    "ranks",
    "timing",
    (
        _Feature("compute_ms", "computation", "ms"),
        _Feature("compute_p95_ms", "95th percentile of computation", "ms"),
        _Feature("comm_ms", "exposed communication", "ms"),
        _Feature("data_ms", "waiting for data", "ms"),
    ),
    lambda row: Entity("rank", rank=int(row["rank"]), host=row["host"], job=row["job"]),
)
_NICS = _Subject(
    "NICs",
    "counters",
    (
        _Feature("traffic_gbps", "traffic", "Gb/s", 1.0),
        _Feature("out_of_sequence_per_gb", "packets out of sequence", "per GB", 1.0),
        _Feature("cnp_sent_per_second", "congestion notifications sent", "per s", 10.0),
        _Feature("cnp_handled_per_second", "congestion notifications obeyed", "per s", 10.0),
        _Feature("errors_per_gb", "errors", "per GB", 0.1),
        _Feature("tx_pause_share", "share of time it paused its leaf", "", 0.001),
        _Feature("rx_pause_share", "share of time it was paused", "", 0.001),
    ),
    lambda row: Entity("nic", host=row["host"], nic=row["nic"]),
    "ports_with_rising_errors",
)
_PORTS = _Subject(
    "ports",
    "counters",
    (
        _Feature("sent_gbps", "traffic sent", "Gb/s", 1.0),
        _Feature("sent_kpps", "packets sent", "thousand per s", 10.0),
        _Feature("errors_per_second", "errors", "per s", 0.1),
        _Feature("discards_per_second", "discards", "per s", 1.0),
        _Feature("pause_tx_per_second", "pause frames sent", "per s", 10.0),
        _Feature("pause_rx_per_second", "pause frames received", "per s", 10.0),
    ),
    lambda row: Entity("port", switch=row["switch"], port=row["port"]),
    "ports_with_rising_errors",
)


def find_outliers(evidence: Evidence, model: Model) -> MethodResult:
    """Return the parts that stand out in several numbers at once, as information."""
    compared = (
        *((_RANKS, _rank_features(job)) for job in rank_compute_times(evidence) if job.measured),
        (_NICS, evidence.frame("nic_features")),
        (_PORTS, evidence.frame("port_features")),
    )
    found: list[Finding] = []
    for subject, parts in compared:
        for peers in parts.partition_by("job", "stage", maintain_order=True):
            if len(peers) >= model.limit("fewest_ranks"):
                found.extend(_outliers(peers, subject, model))
    return MethodResult(tuple(found), sum(len(parts) for _, parts in compared))


def _rank_features(times: RankTimes) -> pl.DataFrame:
    """One row a rank: medians over the steps, and the 95th percentile of computation."""
    compute = times.own_ms - np.nan_to_num(times.data_ms)
    return pl.DataFrame(
        {
            "job": [times.job] * len(times.ranks),
            "stage": times.stages,
            "rank": times.ranks,
            "host": times.hosts,
            "compute_ms": nan_median(compute, axis=0),
            "compute_p95_ms": np.nanquantile(compute, 0.95, axis=0),
            "comm_ms": nan_median(times.comm_ms, axis=0),
            "data_ms": nan_median(times.data_ms, axis=0),
        },
        schema_overrides={"job": pl.String, "host": pl.String},
    ).fill_nan(None)


@dataclass(frozen=True, slots=True)
class _Scores:
    """Numbers of parts of one sort; arrays are parts x features, `isolation` is by part."""

    features: tuple[_Feature, ...]
    values: Array
    medians: Array
    z: Array
    far: NDArray[np.bool_]
    isolation: Array


def _outliers(parts: pl.DataFrame, subject: _Subject, model: Model) -> list[Finding]:
    told = tuple(f for f in subject.features if parts[f.name].null_count() == 0)
    if not told:
        return []
    values = parts.select([f.name for f in told]).cast(pl.Float64).to_numpy()
    medians = np.median(values, axis=0)
    # A counter that is 0 nearly everywhere has no spread: the least difference worth a look is it.
    least = np.array([f.least for f in told]) / model.limit("z")
    spread = MAD_TO_SIGMA * np.median(np.abs(values - medians), axis=0)
    spread = np.maximum.reduce(
        [spread, MAD_FLOOR * np.abs(medians), least, np.full(len(told), 1e-12)]
    )
    z = (values - medians) / spread
    excess = np.abs(values / np.maximum(medians, 1e-9) - 1)
    far = (np.abs(z) > model.limit("z")) & (excess > model.limit("excess"))
    if not far.any():
        return []
    # Loading it takes a CPU second; where nothing is far, as in most sound clusters, it has no use.
    from sklearn.ensemble import IsolationForest

    # One forest of 100 trees: scores have converged by then (Liu, Ting, Zhou 2008, 4.3).
    clipped = np.clip(z, -_CLIP, _CLIP)
    forest = IsolationForest(n_estimators=100, random_state=0).fit(clipped)
    scores = _Scores(told, values, medians, z, far, -forest.score_samples(clipped))
    order = [int(i) for i in np.argsort(-scores.isolation) if far[i].any()]
    shown = order[: int(model.limit("most"))]
    shares = [_shares(forest, clipped[i], scores.isolation[i]) for i in shown]
    return [
        _finding(parts, i, by_feature, scores, subject, model)
        for i, by_feature in zip(shown, shares, strict=True)
    ]


def _shares(forest: "IsolationForest", z: Array, score: float) -> Array:
    """Return what each feature adds to a part's score: its fall with the peers' median instead."""
    usual = np.where(np.eye(len(z), dtype=bool), 0.0, z)
    shares: Array = score + forest.score_samples(usual)
    return shares


def _finding(
    parts: pl.DataFrame,
    i: int,
    shares: Array,
    scores: _Scores,
    subject: _Subject,
    model: Model,
) -> Finding:
    who = subject.entity(parts.row(i, named=True))
    drivers = tuple(
        Driver(
            feature=scores.features[k].words,
            value=round(float(scores.values[i, k]), 3),
            peer=round(float(scores.medians[k]), 3),
            unit=scores.features[k].unit,
            robust_z=round(float(scores.z[i, k]), 1),
            threshold=None,
            source=model.threshold["z"].source,
        )
        for k in np.argsort(-shares)
        if scores.far[i, k]
    )
    words = {
        "who": who.label,
        "host": who.host or who.switch or "its host",
        "peers": f"{len(parts) - 1} {subject.name}",
        "features": ", ".join(
            f"{d.feature} {_plain(d.value)} {d.unit} against {_plain(d.peer or 0.0)}"
            for d in drivers
        ),
        "score": float(scores.isolation[i]),
        "usual": float(np.median(scores.isolation)),
    }
    return Finding(
        kind=model.kind,
        entities=(who,),
        severity="info",
        confidence=_CONFIDENCE,
        families=(subject.family,),
        title=model.wording.title.format(**words),
        explanation=model.wording.explanation.format(**words),
        drivers=drivers,
        query=subject.query or model.query,
        refuted_by=refutations_of(model, words),
        next_steps=steps_of(model, words),
    )


def _plain(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= _WHOLE_FROM else f"{value:.3g}"
