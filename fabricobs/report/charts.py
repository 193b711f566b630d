"""The charts of the report: evidence over time, as Vega-Lite specifications.

Colours come from the page's theme (`range.category`, `range.heatmap`), lines and text take the
colour of the text, and every series differs in dashes, weight or place too: a chart reads in light,
dark and grey. A chart's title says what is drawn in which unit; its subtitle is the caption.
"""

import math
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import altair as alt

from fabricobs import content
from fabricobs.diagnosis.findings import Finding, Segment
from fabricobs.report.documents import iso, number

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Row = dict[str, Any]

_MOST_POINTS = 2000
_MOST_CALLS = 600
_STEP_BINS = 60
_RANK_BINS = 128
_MOST_LANES = 8
_LANE = 15  # pixels of height a finding's bar takes at the top of the timeline
_HEIGHT = 240
# Steps longer than this many times the slowest pace (start-up, checkpoints) run out of the frame:
# they would press the rest to a flat line.
_CUT_AT = 1.25
_MOST_PORTS_NAMED = 6
_DASHES = [5, 4]
_INK = "currentColor"
_CLOCK = {
    "seconds": "%H:%M:%S",
    "minutes": "%H:%M",
    "hours": "%H:%M",
    "date": "%d %b",
    "month": "%b",
    "year": "%Y",
}


def rows(
    connection: "DuckDBPyConnection",
    name: str,
    extra: Sequence[Path] = (),
    **parameters: str | int | None,
) -> list[Row]:
    """Return the rows of `queries/report/NAME.sql`, fit for JSON: times as ISO 8601, no NaN."""
    path = content.files("queries", ".sql", extra)[f"report/{name}"]
    answer = connection.execute(path.read_text(encoding="utf-8"), parameters)
    columns = [column[0] for column in answer.description or ()]
    return [
        {column: _plain(value) for column, value in zip(columns, row, strict=True)}
        for row in answer.fetchall()
    ]


def step_timeline(
    connection: "DuckDBPyConnection",
    segments: Sequence[Segment],
    findings: Sequence[Finding],
    extra: Sequence[Path] = (),
) -> alt.LayerChart | None:
    """Draw step time over the steps, the pace of each segment, and the findings' spans."""
    points = rows(connection, "step_times", extra, most=_MOST_POINTS)
    if not points:
        return None
    spans = _spans(points, findings)
    low, high, cut = _step_time_range(points, segments, len(spans))
    names = ["step time", "pace (median of a stretch)", "finding"]
    color = _colors(names)
    line = _series(points, names[0]).mark_line(strokeWidth=1, clip=True)
    line = line.encode(
        x=alt.X("first_step:Q", title="step", scale=alt.Scale(zero=False)),
        y=alt.Y("step_time_ms:Q", title="step time (ms)", scale=alt.Scale(domain=[low, high])),
        detail="job:N",
        color=color,
        tooltip=_tips(
            job="job", first_step="step", step_time_ms="step time (ms)", moment="ended (UTC)"
        ),
    )
    lanes = [_lane(span, place, names[2], color) for place, span in enumerate(spans)]
    chart = _layers(line, *_paces(segments, names[1], color), *lanes)
    jobs = len({point["job"] for point in points})
    caption = _sentences(
        "Dashed lines are changes of pace." if len(segments) > 1 else "",
        "Bars at the top are the spans of the findings." if spans else "",
        f"{cut:,} longer steps (start-up, checkpoints) run out of the frame." if cut else "",
        f"{jobs:,} jobs, a line each." if jobs > 1 else "",
        _joined(points, "steps", "steps"),
    )
    return _titled(chart, "Step time (ms) by step", caption)


def uplink_shares(
    connection: "DuckDBPyConnection", finding: Finding, extra: Sequence[Path] = ()
) -> alt.LayerChart | None:
    """Draw the share of each uplink of the accused switch over time, and the even share.

    Where none is accused, the switch whose uplinks are the least even is drawn.
    """
    accused = next((entity.switch for entity in finding.entities if entity.switch), None)
    points = rows(connection, "uplink_shares", extra, switch=accused, most=_MOST_POINTS)
    if not points:
        return None
    switch, links = points[0]["switch"], int(points[0]["links"])
    present = {point["port"] for point in points}
    related = [e.port for e in finding.related if e.switch == switch and e.port is not None]
    hot = [port for port in related if port in present]
    names = ["other links", _ports(hot), "even share"]
    for point in points:
        point["series"] = names[1] if point["port"] in hot else names[0]
    color = _colors(names)
    dashes = alt.Scale(domain=names, range=[[4, 3], [1, 0], [1, 3]])
    lines = alt.Chart(_data(points)).mark_line(point=alt.OverlayMarkDef(size=14))
    lines = lines.encode(
        x=_time_axis(),
        y=alt.Y("share:Q", title="share of uplink traffic (%)", axis=alt.Axis(format=".0%")),
        detail="port:N",
        color=color,
        strokeDash=alt.StrokeDash("series:N", scale=dashes, title=None),
        tooltip=_tips(port="port", share="share", moment="until (UTC)"),
    )
    even = _series([{"share": 1 / links}], names[2]).mark_rule(strokeWidth=1.5, strokeDash=[1, 3])
    even = even.encode(y="share:Q", color=color)
    caption = _sentences(
        f"{points[0]['uplink_group']}, {links} links; even would be {1 / links:.1%} each.",
        "Intervals of little traffic are left out.",
        _joined(points, "intervals", "counter intervals"),
    )
    chart = _layers(lines, even, *_start_mark(finding, points))
    return _titled(chart, f"Share of the uplink traffic of {switch} by link (%)", caption)


def rank_compute(
    connection: "DuckDBPyConnection", finding: Finding, extra: Sequence[Path] = ()
) -> alt.LayerChart | None:
    """Draw how much longer than its peers each rank computes: a heat map of rank by step."""
    bins: dict[str, str | int | None] = {"step_bins": _STEP_BINS, "rank_bins": _RANK_BINS}
    cells = rows(connection, "rank_compute", extra, job=_job(finding), **bins)
    if not cells:
        return None
    for cell in cells:
        first, last = cell.pop("first_rank"), cell.pop("last_rank")
        cell["ranks"] = f"{first}" if first == last else f"{first} to {last}"
        cell["excess"] = round(cell["excess"] or 0.0, 4)
    order = list(dict.fromkeys(cell["ranks"] for cell in cells))
    worst = max(cell["excess"] for cell in cells)
    steps = alt.X(
        "first_step:Q",
        title="step",
        axis=alt.Axis(grid=False),
        scale=alt.Scale(zero=False, nice=False),
    )
    shade = alt.Color(
        "excess:Q",
        title="longer than peers (%)",
        scale=alt.Scale(domain=[0, max(worst, 0.02)], clamp=True, interpolate="rgb"),
        legend=alt.Legend(format=".0%"),
    )
    heat = alt.Chart(_data(cells)).mark_rect().transform_calculate(end="datum.last_step + 1")
    heat = heat.encode(
        x=steps,
        x2="end:Q",
        y=alt.Y("ranks:O", title="rank", sort=order, axis=alt.Axis(labelOverlap=True)),
        color=shade,
        tooltip=_tips(
            rank="rank",
            host="host",
            first_step="from step",
            last_step="to step",
            excess="longer than peers",
        ),
    )
    start = [] if finding.start_step is None else [{"first_step": finding.start_step}]
    mark = alt.Chart(_data(start)).mark_rule(strokeDash=_DASHES, strokeWidth=1.5, color=_INK)
    widest = max(cell["last_step"] - cell["first_step"] + 1 for cell in cells)
    caption = _sentences(
        "Compared with the median of the ranks of the same stage at the same step.",
        f"A cell is the median of up to {widest:,} steps." if widest > 1 else "",
        "A row is a group of ranks, shown by its slowest." if "to" in " ".join(order) else "",
        "The dashed line is where the finding starts." if start else "",
    )
    chart = _layers(heat, mark.encode(x="first_step:Q"))
    chart = chart.properties(height=min(max(9 * len(order), 120), 520))
    return _titled(chart, "Computation time of each rank over that of its peers (%)", caption)


def collective_times(
    connection: "DuckDBPyConnection", finding: Finding, extra: Sequence[Path] = ()
) -> alt.LayerChart | None:
    """Draw transfer and waiting of the collective the job spends most time in."""
    points = rows(connection, "collective_times", extra, job=_job(finding), most=_MOST_CALLS)
    if not points:
        return None
    unit, scale = ("ms", 1000) if median(p["pure_us"] for p in points) >= 1000 else ("us", 1)
    for point in points:
        for column in ("pure", "low", "high", "wait"):
            point[column] = round(point.pop(f"{column}_us") / scale, 3)
    timed = all(point["moment"] for point in points)
    names = ["mean wait for the last rank", "transfer (pure time)"]
    y = {name: alt.Y(f"{name}:Q", title=f"time per call ({unit})") for name in ("wait", "pure")}
    wait, transfer = (
        _series(points, name).encode(
            x=_time_axis() if timed else alt.X("first_call:Q", title="number of the call"),
            color=_colors(names),
            tooltip=_tips(
                first_call="call",
                pure=f"transfer ({unit})",
                wait=f"mean wait ({unit})",
                moment="measured (UTC)",
            ),
        )
        for name in names
    )
    joined = _joined(points, "calls", "calls")
    band = [transfer.mark_area(opacity=0.2).encode(y="low:Q", y2="high:Q")] if joined else []
    chart = _layers(
        *band,
        wait.mark_line(strokeWidth=1.2, strokeDash=[4, 3]).encode(y=y["wait"]),
        transfer.mark_line(strokeWidth=1.8).encode(y=y["pure"]),
        *(_start_mark(finding, points) if timed else []),
    )
    first = points[0]
    caption = _sentences(
        f"{first['op']} of {_size(first['bytes'])} over {first['nranks']} ranks, "
        "the collective most time is spent in.",
        f"{joined} The band holds the middle 80 % of the transfers." if joined else "",
    )
    return _titled(chart, f"Collective time per call ({unit})", caption)


def _job(finding: Finding) -> str | None:
    return next((entity.job for entity in finding.entities if entity.job), None)


def _paces(segments: Sequence[Segment], name: str, color: alt.Color) -> list[alt.Chart]:
    """Draw the pace of each segment, and where one pace changes to the next."""
    paces = [
        {"first": s.first_step, "last": s.last_step, "pace": round(s.step_time_ms, 2)}
        for s in segments
    ]
    # The first segment of another job starts over; it is no change.
    changes = [{"first": b.first_step} for a, b in pairwise(segments) if b.first_step > a.last_step]
    level = _series(paces, name).mark_rule(strokeWidth=3, clip=True)
    change = alt.Chart(_data(changes)).mark_rule(strokeDash=_DASHES, color=_INK)
    return [
        level.encode(x="first:Q", x2="last:Q", y="pace:Q", color=color),
        change.encode(x="first:Q"),
    ]


def _spans(points: Sequence[Row], findings: Sequence[Finding]) -> list[Row]:
    """Return first and last step of the first findings that have a span, with their number."""
    end = max(point["last_step"] for point in points)
    spans: list[Row] = []
    for place, finding in enumerate(findings, start=1):
        first = _step_at(finding.start_step, finding.start, points)
        if first is not None and len(spans) < _MOST_LANES:
            last = _step_at(finding.end_step, finding.end, points)
            last = end if last is None else max(last, first)
            spans.append({"first": first, "last": last, "label": f"finding {place}"})
    return spans


def _step_at(step: int | None, moment: datetime | None, points: Sequence[Row]) -> int | None:
    """Return the step, or the one that was running at a time."""
    if step is not None or moment is None:
        return step
    text = iso(moment) or ""
    return next((p["first_step"] for p in points if p["moment"] and p["moment"] >= text), None)


def _lane(span: Row, place: int, name: str, color: alt.Color) -> alt.LayerChart:
    """Draw the span of one finding as a bar with its number, above the curve."""
    base = _series([span], name).encode(x="first:Q", y=alt.value(9 + place * _LANE))
    bar = base.mark_bar(height=9, opacity=0.85).encode(x2="last:Q", color=color)
    label = base.mark_text(align="right", dx=-5, color=_INK).encode(text="label:N")
    return _layers(bar, label)


def _step_time_range(
    points: Sequence[Row], segments: Sequence[Segment], lanes: int
) -> tuple[float, float, int]:
    """Return bottom and top of the step-time axis, and how many points lie above it."""
    times = [float(point["step_time_ms"]) for point in points]
    limit = _CUT_AT * max([median(times), *(segment.step_time_ms for segment in segments)])
    low, high = min(times), max(time for time in times if time <= limit)
    room = 0.08 * (high - low) or 0.05 * high or 1.0
    low, high = max(low - room, 0.0), high + room
    top = low + (high - low) / (1 - lanes * _LANE / _HEIGHT)
    return low, top, sum(time > top for time in times)


def _start_mark(finding: Finding, points: Sequence[Row]) -> list[alt.Chart]:
    """Mark when the finding starts, if that is within the chart's time."""
    start = iso(finding.start)
    moments = [point["moment"] for point in points]
    if start is None or not min(moments) <= start <= max(moments):
        return []
    step = "" if finding.start_step is None else f", step {finding.start_step:,}"
    mark = alt.Chart(_data([{"moment": start, "label": f"start {start[11:19]}{step}"}]))
    mark = mark.encode(x=_time_axis())
    late = start > sorted(moments)[len(moments) // 4]
    text = mark.mark_text(align="right" if late else "left", dx=-5 if late else 5, color=_INK)
    return [
        mark.mark_rule(strokeDash=_DASHES, strokeWidth=1.5, color=_INK),
        text.encode(y=alt.value(-7), text="label:N"),
    ]


def _tips(**titles: str) -> list[alt.Tooltip]:
    """Return the lines of a tooltip, by column; shares in percent, the rest as it is."""
    return [
        alt.Tooltip(field=column, type="quantitative", format=".1%", title=title)
        if column in {"share", "excess"}
        else alt.Tooltip(field=column, type="nominal", title=title)
        for column, title in titles.items()
    ]


def _time_axis() -> alt.X:
    axis = alt.Axis(tickCount=8, format=_CLOCK)
    return alt.X("moment:T", title="time (UTC)", scale=alt.Scale(type="utc"), axis=axis)


def _size(count: int) -> str:
    return number(count, "bytes") if count < 1 << 20 else number(count / (1 << 20), "MiB")


def _ports(ports: Sequence[str]) -> str:
    named = ", ".join(ports) if len(ports) <= _MOST_PORTS_NAMED else f"{len(ports)} links"
    return named or "links of the finding"


def _joined(points: Sequence[Row], column: str, what: str) -> str:
    """Say that points join several, where they do."""
    most = max(int(point[column]) for point in points)
    return f"Each point joins up to {most:,} {what}." if most > 1 else ""


def _sentences(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def _layers(*charts: alt.Chart | alt.LayerChart) -> alt.LayerChart:
    return alt.LayerChart(layer=list(charts))


def _titled(chart: alt.LayerChart, title: str, caption: str) -> alt.LayerChart:
    if chart.height is alt.Undefined:
        chart = chart.properties(height=_HEIGHT)
    text = alt.TitleParams(text=title, subtitle=[caption])
    return chart.properties(width="container", title=text, description=title)


def _series(values: Sequence[Row], name: str) -> alt.Chart:
    """Begin a chart whose rows all belong to the series `name`, a constant of this module."""
    return alt.Chart(_data(values)).transform_calculate(series=repr(name))


def _colors(names: Sequence[str]) -> alt.Color:
    return alt.Color("series:N", scale=alt.Scale(domain=list(names)), title=None)


def _data(values: Sequence[Row]) -> dict[str, Any]:
    # As a plain dictionary: Altair's own class would check each of thousands of rows.
    return {"values": list(values)}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return iso(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value
