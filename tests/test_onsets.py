"""A cause that counters tell a reading later begins with the steps that grow longer for it."""

import random
from dataclasses import replace
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from fabricobs.diagnosis.findings import Entity, Finding
from fabricobs.diagnosis.onsets import at_their_onsets
from fabricobs.diagnosis.slowdowns import Slowdown

START = datetime(2026, 3, 2, 9)


def told(finding: Finding, begins: datetime, interval: float | None, first: int = 121) -> Finding:
    longer = Slowdown(None, first, 299, begins, None, 1000, 1300, None, None)
    return with_slowdown(finding, longer, interval)


def with_slowdown(finding: Finding, longer: Slowdown, interval: float | None) -> Finding:
    steps = pl.DataFrame({"step": range(400), "step_time_ms": [1000.0] * 400})
    trends: Any = [SimpleNamespace(slowdowns=[longer], onsets=[longer], steps=steps)]
    frame = pl.DataFrame({"interval_seconds": [interval]}, schema={"interval_seconds": pl.Float64})
    evidence: Any = SimpleNamespace(frame=lambda _: frame)
    (found,) = at_their_onsets([finding], trends, evidence)
    return found


def seen(draw: random.Random, start: datetime, step: int) -> Finding:
    port = Entity("port", switch="leaf1", port=f"Ethernet{draw.randrange(64)}")
    return Finding(
        kind="ecmp_skew", entities=(port,), severity="high", confidence=0.9, start=start,
        start_step=step, end_step=299, loss_share=0.2, families=("counters", "timing"),
        title=f"leaf1 sends nothing since {start:%H:%M:%S} UTC",
        explanation=f"It began at {start:%Y-%m-%d %H:%M:%S} UTC.",
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(20))
def test_within_the_interval_before(seed: int) -> None:
    draw = random.Random(seed)
    interval = draw.choice([5.0, 15.0, 60.0, 300.0])
    begins = START + timedelta(seconds=draw.randrange(3600))
    known = begins + timedelta(seconds=draw.uniform(1, interval))
    finding = seen(draw, known, 121 + draw.randrange(1, 9))
    found = told(finding, begins, interval)
    assert (found.start, found.start_step) == (begins, 121)
    # One onset wherever it stands.
    assert f"since {begins:%H:%M:%S} UTC" in found.title
    assert f"at {begins:%Y-%m-%d %H:%M:%S} UTC" in found.explanation
    assert found.id == finding.id


def test_not_before_it_nor_by_steps_alone_nor_of_what_comes_and_goes() -> None:
    draw = random.Random(1)
    finding = seen(draw, START + timedelta(seconds=40), 130)
    assert told(finding, START, 15.0) == finding
    near = START + timedelta(seconds=30)
    assert told(finding, near, 15.0) != finding
    for other in (
        replace(finding, families=("timing",)),
        replace(finding, bursts=((130, 140), (150, 160))),
        replace(finding, start_step=None),
        replace(finding, start_step=121),
    ):
        assert told(other, near, 15.0) == other
    assert told(finding, near, None) == finding
    # Longer steps that begin later are no onset of it.
    assert told(finding, START + timedelta(seconds=50), 15.0, 140) == finding


@pytest.mark.parametrize("seed", range(20))
def test_it_ends_with_the_steps_of_the_interval_in_which_its_counters_end(seed: int) -> None:
    """ "It ended at step 383" stood above "was lost in the steps 177 to 372"."""
    draw = random.Random(seed)
    interval = draw.choice([5.0, 15.0, 60.0, 300.0])
    over = START + timedelta(seconds=draw.randrange(600, 3600))
    longer = Slowdown(None, 121, 299, START, over, 1000, 1300, None, None)
    read = over + timedelta(seconds=draw.uniform(1, interval))
    finding = replace(seen(draw, START, 121), end=read, end_step=299 + draw.randrange(1, 9))
    ended = with_slowdown(finding, longer, interval)
    assert (ended.end, ended.end_step) == (over, 299)
    # What was lost until then is a larger share of fewer steps.
    assert finding.loss_share is not None and finding.end_step is not None
    lost = finding.loss_share * (finding.end_step - 120) / (299 - 120)
    assert ended.loss_share == pytest.approx(lost)
    late = replace(finding, end=over + timedelta(seconds=interval + 60))
    assert with_slowdown(late, longer, interval) == late
    assert with_slowdown(finding, replace(longer, goes_on=True), interval) == finding
