"""Step time over the steps, where its pace changes, and what the findings span."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
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
from fabricobs.report.wording import counted, iso, number

_MOST_POINTS = 800  # of a plot of 1,000 pixels
_MOST_LANES = 8
_LANE = 18  # pixels of height a finding's bar takes at the top of the timeline
_ROOM_FOR_NAME = 0.25  # of the width: a bar shorter than that has its name beside it
_LABEL = 0.33  # of the width: what a label needs on a telephone
_LATE = 0.6  # of the width, from which labels stand left of their line
_MOST_ROWS = 4  # of labels, above each other
# Steps longer than this many times the slowest pace, or nine tenths of all, run out of the frame
# (start-up, checkpoints): they would press the rest to a flat line.
_CUT_AT = 1.25
# Those in which a cause acts that comes and goes are what the chart is for, up to as many medians.
_MOST_SHOWN = 3
_NEARLY_ALL = 0.9
# Of the width of the steps: a standstill is seen however short, and leaves room however long.
_LEAST_STANDING, _MOST_STANDING = 0.05, 1.5


def step_timeline(
    source: Source, segments: Sequence[Segment], findings: Sequence[Finding]
) -> alt.LayerChart | None:
    """Draw step time over the steps, the pace of each segment, and the findings' spans."""
    points = source.rows("report/step_times", most=_MOST_POINTS)
    if not points:
        return None
    spans = _spans(points, findings)
    bursts = [burst for finding in findings for burst in finding.bursts]
    low, high, cut = _step_time_range(points, segments, bursts, min(len(spans), _MOST_LANES))
    names = ["step time", "pace (median of a stretch)", "finding" if spans else ""]
    color = colors(names)
    first, last = (f(point["first_step"] for point in points) for f in (min, max))
    stands = [span for span in spans if span["stands"]]
    end = max(last, *(span["last"] for span in stands)) if stands else last
    steps = interrupted(points, "first_step", "step_time_ms", "job")
    line = series(steps, names[0]).mark_line(strokeWidth=1, clip=True)
    line = line.encode(
        x=number_axis("first_step", "step", first, end, last if end > last else None),
        y=alt.Y("step_time_ms:Q", title="step time (ms)", scale=alt.Scale(domain=[low, high])),
        detail="job:N",
        color=color,
        tooltip=tips(
            job="job", first_step="step", step_time_ms="step time (ms)", moment="ended (UTC)"
        ),
    )
    width = max(end, *(point["last_step"] for point in points)) - points[0]["first_step"]
    lanes = [
        _lane(span, place, names[2], color, first, max(width, 1))
        for place, span in enumerate(spans[:_MOST_LANES])
    ]
    paces, unnamed = _paces(segments, names[1], color, first, max(width, 1))
    chart = layers(*_standing(stands, names[2], color, max(width, 1)), line, *paces, *lanes)
    jobs = len({point["job"] for point in points})
    more = len(spans) - _MOST_LANES
    caption = sentences(
        "Dashed lines are changes of pace." if len(segments) > 1 else "",
        f"{unnamed:,} of them have no name here." if unnamed else "",
        "Bars at the top are the spans of the findings." if spans else "",
        f"{more:,} more findings have no bar here." if more > 0 else "",
        "In the shaded part no step ends." if stands else "",
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
    """Return first and last step of the findings that have a span, with number and kind.

    Of a job that stands still, the last is where as many usual steps would have ended.
    """
    end = max(point["last_step"] for point in points)
    spans: list[Row] = []
    for place, finding in enumerate(findings, start=1):
        label = f"{place} {finding.kind.replace('_', ' ')}"
        span: Row = {"label": label, "title": finding.title, "stands": ""}
        first = _step_at(finding.start_step, finding.start, points)
        if finding.after_step is not None:
            spans.append(span | _standstill(finding, finding.after_step, points))
        elif first is not None:
            last = _step_at(finding.end_step, finding.end, points)
            last = end if last is None else max(last, first)
            spans.append(span | {"first": first, "last": last, "from": first, "to": last})
    return spans


def _standstill(finding: Finding, after: int, points: Sequence[Row]) -> Row:
    """Return the span of a job that stands still after a step, and for how long in words."""
    steps = max(point["last_step"] for point in points) - points[0]["first_step"] + 1
    usual = median(point["step_time_ms"] for point in points) / 1000
    lasts = finding.end - finding.start if finding.start and finding.end else None
    missed = lasts.total_seconds() / usual if lasts and usual else 0.0
    missed = min(max(missed, _LEAST_STANDING * steps), _MOST_STANDING * steps)
    words = "no step" + (f" for {_rounded(lasts)}" if lasts else "")
    last = after + round(missed, 1)
    return {"first": after, "last": last, "from": after, "to": words, "stands": words}


def _rounded(lasts: timedelta) -> str:
    minutes = lasts.total_seconds() / 60
    if minutes < 2:
        return f"{lasts.total_seconds():,.0f} s"
    return f"{minutes:,.0f} min" if minutes < 120 else f"{number(round(minutes / 60, 1))} h"


def _standing(stands: Sequence[Row], name: str, color: alt.Color, width: float) -> list[alt.Chart]:
    """Shade where no step ends, and say so in it, or left of it where it is narrow."""
    drawn = []
    for span in stands:
        base = series([span], name).encode(x="first:Q")
        fits = span["last"] - span["first"] >= _LABEL * width
        words = base.mark_text(
            align="left" if fits else "right", dx=6 if fits else -6, color=INK
        ).encode(y=alt.value(HEIGHT / 2), text="stands:N")
        shade = base.mark_rect(opacity=0.16, clip=True).encode(x2="last:Q", color=color)
        drawn += [shade, words]
    return drawn


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
        tooltip=tips(title="finding", **{"from": "from step", "to": "to step"}),
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
    points: Sequence[Row],
    segments: Sequence[Segment],
    bursts: Sequence[tuple[int, int]],
    lanes: int,
) -> tuple[float, float, int]:
    """Return bottom and top of the step-time axis, and how many points lie above it."""
    times = [float(point["step_time_ms"]) for point in points]
    middle, usual = median(times), sorted(times)[int(_NEARLY_ALL * (len(times) - 1))]
    limit = _CUT_AT * max([middle, usual, *(segment.step_time_ms for segment in segments)])
    own = [
        float(point["step_time_ms"])
        for point in points
        if any(
            first <= point["last_step"] and point["first_step"] <= last for first, last in bursts
        )
    ]
    limit = max([limit, *(time for time in own if time <= _MOST_SHOWN * middle)])
    low, high = min(times), max(time for time in times if time <= limit)
    room = 0.08 * (high - low) or 0.05 * high or 1.0
    low, high = max(low - 2 * room, 0.0), high + room
    top = low + (high - low) / (1 - lanes * _LANE / HEIGHT)
    return low, top, sum(time > top for time in times)
