"""Confidence: what is said is what was right on simulated clusters, less for less evidence."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from fabricobs.bench.calibrating import fit, write
from fabricobs.bench.scoring import Claim
from fabricobs.content import ContentError
from fabricobs.diagnosis.calibration import calibrated, load_calibration
from fabricobs.diagnosis.findings import Finding

pytestmark = pytest.mark.slow

FINDING = Finding("straggler", (), "high", 0.5, "", "")


def claims(confidence: float, right: int, wrong: int) -> list[Claim]:
    return [
        Claim("s", 1, "straggler", "high", confidence, number < right)
        for number in range(right + wrong)
    ]


def test_the_shipped_curve_never_falls() -> None:
    points = load_calibration()
    assert all(a.confidence <= b.confidence for a, b in pairwise(points))
    assert all(0 < point.confidence < 1 and point.findings >= point.right for point in points)


def test_what_was_right_more_often_is_said_with_more_confidence(tmp_path: Path) -> None:
    points = fit([*claims(0.5, 5, 5), *claims(0.75, 2, 0), *claims(0.85, 40, 2)])
    (tmp_path / "models").mkdir()
    write(points, tmp_path / "models" / "confidence.csv")
    curve = load_calibration((tmp_path,))
    said = {
        raw: calibrated([replace(FINDING, confidence=raw)], curve)[0].confidence
        for raw in (0.3, 0.5, 0.8, 0.85, 0.94)
    }
    assert said[0.3] == said[0.5] == 0.5
    assert said[0.5] < said[0.8] <= said[0.85] == said[0.94]
    assert said[0.85] == pytest.approx(40 / 42, abs=0.04)


def test_two_right_of_two_are_no_certainty_and_order_is_kept() -> None:
    low, middle, high = fit([*claims(0.5, 2, 0), *claims(0.6, 0, 2), *claims(0.7, 30, 0)])
    assert low.confidence == middle.confidence == 0.5
    assert middle.confidence < high.confidence < 1


def test_information_accuses_nobody_and_stays_as_it_is() -> None:
    outlier = replace(FINDING, severity="info", confidence=0.2)
    assert calibrated([outlier], load_calibration()) == [outlier]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("agreement,confidence,findings,right\n0.5,high,1,1\n", ":2"),
        ("agreement,right\n0.5,1\n", ":2"),
        ("agreement,confidence,findings,right\n0.5,0.5,1,1\n0.4,0.5,1,1\n", "rising"),
        ("agreement,confidence,findings,right\n", "at least one"),
    ],
)
def test_a_curve_that_is_none_is_refused(text: str, named: str, tmp_path: Path) -> None:
    path = tmp_path / "models" / "confidence.csv"
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(ContentError, match=named) as refused:
        load_calibration((tmp_path,))
    assert str(path) in str(refused.value)
