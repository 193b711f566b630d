"""Standouts: an isolation forest ranks what no rule names; it never accuses.

Its own cut-off flags healthy ranks, so a rank is shown only if a single number of it is also far
from its peers, and always as information.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.findings import Driver, Entity, Finding, Judgement
from fabricobs.diagnosis.model import Model
from fabricobs.diagnosis.statistics import Array, robust_z

_FEATURES = {
    "compute_ms": "computation",
    "compute_p95_ms": "95th percentile of computation",
    "comm_ms": "exposed communication",
    "data_ms": "waiting for data",
}
_CLIP = 20.0
_CONFIDENCE = 0.2


def find_standouts(evidence: Evidence, model: Model) -> Judgement:
    """Return the ranks that stand out in several numbers at once, as information."""
    ranks = _features(evidence.frame("rank_steps"))
    found: list[Finding] = []
    for job in ranks.partition_by("job", "stage", maintain_order=True):
        if len(job) >= model.limit("fewest_ranks"):
            found.extend(_standouts(job, model))
    return Judgement(tuple(found), len(ranks))


def _features(steps: pl.DataFrame) -> pl.DataFrame:
    return (
        steps.drop_nulls("compute_ms")
        .group_by("job", "stage", "rank", maintain_order=True)
        .agg(
            pl.col("host").first(),
            pl.col("compute_ms").quantile(0.95).alias("compute_p95_ms"),
            pl.col("compute_ms", "comm_ms", "data_ms").median(),
        )
    )


@dataclass(frozen=True, slots=True)
class _Scores:
    """Numbers of the ranks of one stage; arrays are ranks x features, `isolation` is by rank."""

    names: list[str]
    values: Array
    medians: Array
    z: Array
    far: NDArray[np.bool_]
    isolation: Array
    parts: Array


def _standouts(ranks: pl.DataFrame, model: Model) -> list[Finding]:
    names = [name for name in _FEATURES if ranks[name].null_count() == 0]
    values = ranks.select(names).to_numpy().astype(np.float64)
    z = np.column_stack([robust_z(values[:, i]) for i in range(len(names))])
    medians = np.median(values, axis=0)
    excess = np.abs(values / np.maximum(medians, 1e-9) - 1)
    far = (np.abs(z) > model.limit("z")) & (excess > model.limit("excess"))
    if not far.any():
        return []
    scores = _Scores(names, values, medians, z, far, *_forest(np.clip(z, -_CLIP, _CLIP)))
    order = [int(i) for i in np.argsort(-scores.isolation) if far[i].any()]
    return [_finding(ranks, i, scores, model) for i in order[: int(model.limit("most"))]]


def _forest(z: Array) -> tuple[Array, Array]:
    """Return each rank's isolation score (0 to 1) and what each feature adds to it.

    A feature's part is the fall of the score when the peers' median takes its place.
    """
    from sklearn.ensemble import IsolationForest

    forest = IsolationForest(n_estimators=200, random_state=0).fit(z)
    scores: Array = -forest.score_samples(z)
    shares = np.zeros_like(z)
    for feature in range(z.shape[1]):
        usual = z.copy()
        usual[:, feature] = 0.0
        shares[:, feature] = scores + forest.score_samples(usual)
    return scores, shares


def _finding(ranks: pl.DataFrame, i: int, scores: _Scores, model: Model) -> Finding:
    row = ranks.row(i, named=True)
    who = Entity("rank", rank=int(row["rank"]), host=row["host"], job=row["job"])
    drivers = tuple(
        Driver(
            feature=_FEATURES[scores.names[k]],
            value=round(float(scores.values[i, k]), 1),
            peer=round(float(scores.medians[k]), 1),
            unit="ms",
            robust_z=round(float(scores.z[i, k]), 1),
            threshold=None,
            source=model.threshold["z"].source,
        )
        for k in np.argsort(-scores.parts[i])
        if scores.far[i, k]
    )
    features = ", ".join(f"{d.feature} {d.value:.0f} ms against {d.peer:.0f} ms" for d in drivers)
    words = {
        "who": who.label,
        "host": row["host"] or "its host",
        "peers": len(ranks) - 1,
        "features": features,
        "score": float(scores.isolation[i]),
        "usual": float(np.median(scores.isolation)),
    }
    return Finding(
        kind=model.kind,
        entities=(who,),
        severity="info",
        confidence=_CONFIDENCE,
        families=("timing",),
        title=model.wording.title.format(**words),
        explanation=model.wording.explanation.format(**words),
        drivers=drivers,
        query=model.query,
        refuted_by=model.refuted_by,
        next_steps=tuple(text.format(**words) for text in model.next_steps),
    )
