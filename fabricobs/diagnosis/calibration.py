"""How often findings whose evidence agreed this much were right: the confidence that is said.

`models/confidence.csv` was measured on simulated clusters (`fabricobs bench diagnosis
--calibrate`), with tuning seeds. What stands between two of its rows is interpolated.
"""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from fabricobs import content
from fabricobs.content import ContentError
from fabricobs.diagnosis.findings import Finding

COLUMNS = ("agreement", "confidence", "findings", "right")
_NAME = "confidence"


@dataclass(frozen=True, slots=True)
class Point:
    """Of `findings` with this agreement of evidence (0 to 1), `right` were right.

    `confidence` (0 to 1) is their share, smoothed and never falling with agreement.
    """

    agreement: float
    confidence: float
    findings: int
    right: int


def load_calibration(extra: Sequence[Path] = ()) -> tuple[Point, ...]:
    """Return the measured points by rising agreement; ContentError names file and row."""
    path = content.files("models", ".csv", extra)[_NAME]
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    points = []
    for number, row in enumerate(rows, start=2):
        try:
            points.append(
                Point(
                    float(row["agreement"]),
                    float(row["confidence"]),
                    int(row["findings"]),
                    int(row["right"]),
                )
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ContentError(
                f"{path}:{number}: expected {', '.join(COLUMNS)}, numbers all: {error}"
            ) from error
    if not points or any(a.agreement >= b.agreement for a, b in pairwise(points)):
        raise ContentError(f"{path}: expected rows by rising agreement, at least one")
    return tuple(points)


def calibrated(findings: Iterable[Finding], points: Sequence[Point]) -> list[Finding]:
    """Return the findings with the confidence that was measured; outliers accuse nobody."""
    agreements = [point.agreement for point in points]
    confidences = [point.confidence for point in points]
    return [
        finding
        if finding.severity == "info"
        else replace(
            finding,
            confidence=round(float(np.interp(finding.confidence, agreements, confidences)), 2),
        )
        for finding in findings
    ]
