"""Fits the confidence findings say to how often such findings were right."""

import csv
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from fabricobs.bench.scoring import Claim
from fabricobs.diagnosis.calibration import COLUMNS, Point

# One finding right and one wrong are added to every group: ten of ten are not certainty.
_PRIOR = 1


def fit(claims: Iterable[Claim]) -> tuple[Point, ...]:
    """Return, by agreement of evidence, the share that was right: isotonic, weighted by number."""
    from sklearn.isotonic import IsotonicRegression

    groups: dict[float, list[bool]] = {}
    for claim in claims:
        groups.setdefault(claim.confidence, []).append(claim.right)
    agreements = sorted(groups)
    found = np.array([len(groups[a]) for a in agreements])
    right = np.array([sum(groups[a]) for a in agreements])
    shares = (right + _PRIOR) / (found + 2 * _PRIOR)
    rising = IsotonicRegression().fit_transform(agreements, shares, sample_weight=found)
    return tuple(
        Point(agreement, round(float(confidence), 3), int(n), int(ok))
        for agreement, confidence, n, ok in zip(agreements, rising, found, right, strict=True)
    )


def write(points: Iterable[Point], path: Path) -> None:
    """Write the points as the CSV that `models/` ships."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows((p.agreement, p.confidence, p.findings, p.right) for p in points)
