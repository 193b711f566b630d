"""How long collectives take."""

from statistics import median

import altair as alt

from fabricobs.diagnosis.findings import Finding
from fabricobs.report.charts.drawing import (
    colors,
    interrupted,
    job_of,
    joined,
    layers,
    number_axis,
    sentences,
    series,
    size_words,
    start_mark,
    time_axis,
    tips,
    titled,
)
from fabricobs.report.charts.source import Source

_MOST_CALLS = 600


def collective_times(source: Source, finding: Finding) -> alt.LayerChart | None:
    """Draw transfer and waiting of the collective the job spends most time in."""
    points = source.rows("report/collective_times", job=job_of(finding), most=_MOST_CALLS)
    if not points:
        return None
    unit, scale = ("ms", 1000) if median(p["pure_us"] for p in points) >= 1000 else ("us", 1)
    for point in points:
        for column in ("pure", "low", "high", "wait"):
            point[column] = round(point.pop(f"{column}_us") / scale, 3)
    timed = all(point["moment"] for point in points)
    span = [point["moment"] for point in points]
    axis = (
        time_axis(span)
        if timed
        else number_axis(
            "first_call", "number of the call", points[0]["first_call"], points[-1]["first_call"]
        )
    )
    points = interrupted(points, "moment" if timed else "first_call", "pure")
    for point in points:
        if point["pure"] is None:
            point["wait"] = None
    names = ["mean wait for the last rank", "transfer (pure time)"]
    y = {name: alt.Y(f"{name}:Q", title=f"time per call ({unit})") for name in ("wait", "pure")}
    wait, transfer = (
        series(points, name).encode(
            x=axis,
            color=colors(names),
            tooltip=tips(
                first_call="call",
                pure=f"transfer ({unit})",
                wait=f"mean wait ({unit})",
                moment="measured (UTC)",
            ),
        )
        for name in names
    )
    joins = joined(points, "calls", "calls")
    band = [transfer.mark_area(opacity=0.2).encode(y="low:Q", y2="high:Q")] if joins else []
    chart = layers(
        *band,
        wait.mark_line(strokeWidth=1.2, strokeDash=[4, 3]).encode(y=y["wait"]),
        transfer.mark_line(strokeWidth=1.8).encode(y=y["pure"]),
        *(start_mark(finding, span) if timed else []),
    )
    first = points[0]
    caption = sentences(
        f"{first['op']} of {size_words(first['bytes'])} over {first['nranks']} ranks, "
        "the collective most time is spent in.",
        f"{joins} The band holds the middle 80 % of the transfers." if joins else "",
    )
    return titled(chart, f"Collective time per call ({unit})", caption)
