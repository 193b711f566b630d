"""How a switch shares its traffic among its uplinks, beside what hashing explains."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from fabricobs.diagnosis.findings import Finding
from fabricobs.diagnosis.name_lists import at_most
from fabricobs.diagnosis.statistics import hits_between
from fabricobs.report.charts.drawing import (
    HEIGHT,
    INK,
    colors,
    data,
    interrupted,
    joined,
    layers,
    sentences,
    series,
    start_mark,
    time_axis,
    tips,
    titled,
)
from fabricobs.report.charts.source import Row, Source

_MOST_POINTS = 800  # as many rows as the table behind a chart shows
_MOST_PORTS_NAMED = 6
_MOST_OF_A_NAME = 2  # ports in one name of several lines
_LAST_POINTS = 4  # of a line, above which its name stands
_ROUND = 1.25  # an axis ends at a round number up to so many times the largest value
_LABEL_HEIGHT = 14  # pixels from one name of a line to the next
_BAND = 0.99  # of the links lie in the band if every flow is hashed by itself


def uplink_shares(source: Source, finding: Finding) -> alt.LayerChart | None:
    """Draw the share of each uplink of the accused switch over time, and the band of hashing.

    Where none is accused, the switch whose uplinks are the least even is drawn.
    """
    accused = next((entity.switch for entity in finding.entities if entity.switch), None)
    points = source.rows("report/uplink_shares", switch=accused, most=_MOST_POINTS)
    if not points:
        return None
    switch, links = points[0]["switch"], int(points[0]["links"])
    present = {point["port"] for point in points}
    own, related = (
        [e.port for e in parts if e.switch == switch and e.port in present]
        for parts in (finding.entities, finding.related)
    )
    hot = [port for port in own or related if port]
    names = ["other links", "even share", "links of the finding" if hot else ""]
    for point in points:
        point["marked"] = point["port"] in hot
        point["series"] = names[2] if point["marked"] else names[0]
    color = colors(names)
    dashes = alt.Scale(domain=names, range=[[4, 3], [1, 3], [1, 0]])
    span = [point["moment"] for point in points]
    axis = time_axis(span)
    rows = interrupted(points, "moment", "share", "port")
    lines = alt.Chart(data(rows)).mark_line(point=alt.OverlayMarkDef(size=14))
    lines = lines.encode(
        x=axis,
        y=alt.Y("share:Q", title="share of uplink traffic (%)", axis=alt.Axis(format=".0%")),
        detail="port:N",
        color=color,
        strokeDash=alt.StrokeDash("series:N", scale=dashes, title=None),
        tooltip=tips(port="port", share="share", moment="until (UTC)"),
    )
    even = series([{"share": 1 / links}], names[1]).mark_rule(strokeWidth=1.5, strokeDash=[1, 3])
    even = even.encode(y="share:Q", color=color)
    flows = _flows(source, switch)
    caption = sentences(
        f"{points[0]['uplink_group']}, {links} links; even would be {1 / links:.1%} each.",
        f"The band holds {_BAND:.0%} of the links where {flows:,} flows are hashed one by one."
        if flows
        else "",
        "" if finding.entities else _farthest(points, 1 / links),
        "Intervals of little traffic are left out.",
        joined(points, "intervals", "counter intervals"),
    )
    chart = layers(
        *_band(flows, links, names[1], color),
        lines,
        even,
        *start_mark(finding, span),
        *_labels(points, hot, axis),
    )
    return titled(chart, f"Share of the uplink traffic of {switch} by link (%)", caption)


def _farthest(points: Sequence[Row], even: float) -> str:
    """Name the link that is farthest from an even share."""
    worst = max(points, key=lambda point: abs(point["share"] - even))
    at = f" at {worst['moment'][11:19]} UTC" if worst["moment"] else ""
    return f"The farthest from even: {worst['port']} with {worst['share']:.1%}{at}."


def _labels(points: Sequence[Row], hot: Sequence[str], axis: alt.X) -> list[alt.Chart]:
    """Write the names of the lines above their right ends: all of few, else those in question.

    Lines that end too near each other for a name each share one, above the highest of them.
    """
    by_port: dict[str, list[float]] = {}
    for point in points:
        by_port.setdefault(point["port"], []).append(point["share"])
    chosen = list(by_port) if len(by_port) <= _MOST_PORTS_NAMED else hot
    # A name stands above the last points of its line.
    ends = sorted(((max(by_port[p][-_LAST_POINTS:]), p) for p in chosen), reverse=True)
    # The axis begins at zero, and may end above the largest share.
    least = _LABEL_HEIGHT / HEIGHT * _ROUND * max(point["share"] for point in points)
    groups: list[list[tuple[float, str]]] = []
    for end in ends:
        if groups and groups[-1][-1][0] - end[0] < least:
            groups[-1].append(end)
        else:
            groups.append([end])
    moment = points[-1]["moment"]
    rows = [
        {
            "moment": moment,
            "at": group[0][0],
            "name": at_most([port for _, port in group], _MOST_OF_A_NAME),
        }
        for group in groups
    ]
    names = alt.Chart(data(rows)).encode(x=axis, y="at:Q", text="name:N")
    look: Any = {"align": "right", "dx": -4, "dy": -9}
    return [names.mark_text(style="halo", **look), names.mark_text(color=INK, **look)]


def _flows(source: Source, switch: str) -> int:
    """Return how many flows cross the switch's uplinks, 0 where no log tells."""
    rows = source.rows("evidence/crossing_flows")
    return next((int(row["flows"]) for row in rows if row["device"] == switch), 0)


def _band(flows: int, links: int, name: str, color: alt.Color) -> list[alt.Chart]:
    """Draw the shares a link has by chance: flows of one size over links of one speed."""
    if not flows:
        return []
    low, high = (count / flows for count in hits_between(_BAND, flows, 1 / links))
    band = series([{"low": low, "high": high}], name).mark_rect(opacity=0.16)
    return [band.encode(y="low:Q", y2="high:Q", color=color)]
