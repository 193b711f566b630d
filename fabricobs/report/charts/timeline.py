"""Step time over the steps, where its pace changes, and what the findings span."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from statistics import median

import altair as alt

from fabricobs.diagnosis.findings import Finding, Segment
from fabricobs.report.charts.drawing import (
    DASHES,
    HEIGHT,
    INK,
    colors,
    data,
    interrupted,
    joined,
    layers,
    number_axis,
    sentences,
    series,
    tips,
    titled,
)
from fabricobs.report.charts.source import Row, Source
from fabricobs.report.wording import counted, iso

_MOST_POINTS = 800  # of a plot of 1,000 pixels
_MOST_LANES = 8
_LANE = 18  # pixels of height a finding's bar takes at the top of the timeline
_ROOM_FOR_NAME = 0.25  # of the width: a bar shorter than that has its name beside it
_LABEL = 0.33  # of the width: what a label needs on a telephone
_LATE = 0.6  # of the width, from which labels stand left of their line
_MOST_ROWS = 4  # of labels, above each other
# Steps longer than this many times the slowest pace (start-up, checkpoints) run out of the frame:
# they would press the rest to a flat line.
_CUT_AT = 1.25


def step_timeline(
    source: Source, segments: Sequence[Segment], findings: Sequence[Finding]
) -> alt.LayerChart | None:
    """Draw step time over the steps, the pace of each segment, and the findings' spans."""
    points = source.rows("report/step_times", most=_MOST_POINTS)
    if not points:
        return None
    spans = _spans(points, findings)
    low, high, cut = _step_time_range(points, segments, min(len(spans), _MOST_LANES))
    names = ["step time", "pace (median of a stretch)", "finding" if spans else ""]
    color = colors(names)
    first, last = (f(point["first_step"] for point in points) for f in (min, max))
    steps = interrupted(points, "first_step", "step_time_ms", "job")
    line = series(steps, names[0]).mark_line(strokeWidth=1, clip=True)
    line = line.encode(
        x=number_axis("first_step", "step", first, last),
        y=alt.Y("step_time_ms:Q", title="step time (ms)", scale=alt.Scale(domain=[low, high])),
        detail="job:N",
        color=color,
        tooltip=tips(
            job="job", first_step="step", step_time_ms="step time (ms)", moment="ended (UTC)"
        ),
    )
    width = max(point["last_step"] for point in points) - points[0]["first_step"]
    lanes = [
        _lane(span, place, names[2], color, first, max(width, 1))
        for place, span in enumerate(spans[:_MOST_LANES])
    ]
    paces, unnamed = _paces(segments, names[1], color, first, max(width, 1))
    chart = layers(line, *paces, *lanes)
    jobs = len({point["job"] for point in points})
    more = len(spans) - _MOST_LANES
    caption = sentences(
        "Dashed lines are changes of pace." if len(segments) > 1 else "",
        f"{unnamed:,} of them have no name here." if unnamed else "",
        "Bars at the top are the spans of the findings." if spans else "",
        f"{more:,} more findings have no bar here." if more > 0 else "",
        f"{counted(cut, 'longer step')} (start-up, checkpoints, waits) beyond the frame."
        if cut
        else "",
        f"{jobs:,} jobs, a line each." if jobs > 1 else "",
        joined(points, "steps", "steps"),
    )
    return titled(chart, "Step time (ms) by step", caption)


def _paces(
    segments: Sequence[Segment], name: str, color: alt.Color, begin: int, width: int
) -> tuple[list[alt.Chart], int]:
    """Draw the pace of each segment, and where and by how much one changes to the next.

    What a change is called stands right of it, of late ones left, in rows where names would meet.
    With the charts comes the number of changes whose name has no room.
    """
    trends = [
        {
            "job": s.job or "",
            "first": s.first_step,
            "last": s.last_step,
            "pace": round(s.step_time_ms, 2),
        }
        for s in segments
    ]
    changes: list[Row] = [
        {
            "first": b.first_step,
            "label": f"step {b.first_step:,}: {b.step_time_ms / a.step_time_ms - 1:+.0%}",
        }
        for a, b in pairwise(segments)
        if b.job == a.job
    ]
    level = series(trends, name).mark_rule(strokeWidth=3, clip=True)
    change = alt.Chart(data(changes)).encode(x="first:Q")
    labels = [_label(*placed) for placed in _placed(changes, begin, width)]
    charts = [
        level.encode(
            x="first:Q",
            x2="last:Q",
            y="pace:Q",
            color=color,
            tooltip=tips(job="job", first="from step", last="to step", pace="pace (ms)"),
        ),
        change.mark_rule(strokeDash=DASHES, color=INK),
        *labels,
    ]
    return charts, len(changes) - len(labels)


def _placed(changes: Sequence[Row], begin: int, width: int) -> Iterator[tuple[Row, bool, int]]:
    """Yield each change whose name has room, whether that stands left, and its row from below."""
    taken: list[float] = []  # by row, up to where it is
    for change in changes:
        is_left = change["first"] > begin + _LATE * width
        start = change["first"] - (_LABEL * width if is_left else 0)
        row = next((n for n, end in enumerate(taken) if end <= start), len(taken))
        if row < _MOST_ROWS:
            taken[row : row + 1] = [start + _LABEL * width]
            yield change, is_left, row


def _label(change: Row, is_left: bool, row: int) -> alt.Chart:
    height = alt.value(HEIGHT - 9 - row * _LANE)
    named = alt.Chart(data([change])).mark_text(
        color=INK, align="right" if is_left else "left", dx=-5 if is_left else 5
    )
    label: alt.Chart = named.encode(x="first:Q", y=height, text="label:N")
    return label


def _spans(points: Sequence[Row], findings: Sequence[Finding]) -> list[Row]:
    """Return first and last step of the findings that have a span, with number and kind."""
    end = max(point["last_step"] for point in points)
    spans: list[Row] = []
    for place, finding in enumerate(findings, start=1):
        first = _step_at(finding.start_step, finding.start, points)
        if first is not None:
            last = _step_at(finding.end_step, finding.end, points)
            last = end if last is None else max(last, first)
            label = f"{place} {finding.kind.replace('_', ' ')}"
            spans.append({"first": first, "last": last, "label": label, "title": finding.title})
    return spans


def _step_at(step: int | None, moment: datetime | None, points: Sequence[Row]) -> int | None:
    """Return the step, or the one that was running at a time."""
    if step is not None or moment is None:
        return step
    text = iso(moment) or ""
    return next((p["first_step"] for p in points if p["moment"] and p["moment"] >= text), None)


def _lane(
    span: Row, place: int, name: str, color: alt.Color, begin: int, width: int
) -> alt.LayerChart:
    """Draw the span of one finding as a bar above the curve, its name in it or beside it."""
    base = series([span], name).encode(x="first:Q", y=alt.value(11 + place * _LANE))
    bar = base.mark_bar(height=14)
    bar = bar.encode(
        x2="last:Q",
        color=color,
        tooltip=tips(title="finding", first="from step", last="to step"),
    )
    inside = span["last"] - span["first"] >= _ROOM_FOR_NAME * width
    if inside:
        label = base.mark_text(align="left", dx=6, style="inside")
    elif span["first"] - begin < 0.5 * width:
        label = base.mark_text(align="left", dx=5, color=INK).encode(x="last:Q")
    else:
        label = base.mark_text(align="right", dx=-5, color=INK)
    return layers(bar, label.encode(text="label:N"))


def _step_time_range(
    points: Sequence[Row], segments: Sequence[Segment], lanes: int
) -> tuple[float, float, int]:
    """Return bottom and top of the step-time axis, and how many points lie above it."""
    times = [float(point["step_time_ms"]) for point in points]
    limit = _CUT_AT * max([median(times), *(segment.step_time_ms for segment in segments)])
    low, high = min(times), max(time for time in times if time <= limit)
    room = 0.08 * (high - low) or 0.05 * high or 1.0
    low, high = max(low - 2 * room, 0.0), high + room
    top = low + (high - low) / (1 - lanes * _LANE / HEIGHT)
    return low, top, sum(time > top for time in times)
