"""How a switch shares its traffic among its uplinks, beside what hashing explains."""

from collections.abc import Sequence

import altair as alt

from fabricobs.diagnosis.findings import Finding
from fabricobs.diagnosis.statistics import hits_between
from fabricobs.report.charts.drawing import (
    colors,
    data,
    joined,
    layers,
    sentences,
    series,
    start_mark,
    time_axis,
    tips,
    titled,
)
from fabricobs.report.charts.source import Source

_MOST_POINTS = 2000
_MOST_PORTS_NAMED = 6
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
    related = [e.port for e in finding.related if e.switch == switch and e.port is not None]
    hot = [port for port in related if port in present]
    names = ["other links", "even share", _ports(hot)]
    for point in points:
        point["series"] = names[2] if point["port"] in hot else names[0]
    color = colors(names)
    dashes = alt.Scale(domain=names, range=[[4, 3], [1, 3], [1, 0]])
    lines = alt.Chart(data(points)).mark_line(point=alt.OverlayMarkDef(size=14))
    lines = lines.encode(
        x=time_axis(),
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
        "Intervals of little traffic are left out.",
        joined(points, "intervals", "counter intervals"),
    )
    chart = layers(*_band(flows, links, names[1], color), lines, even, *start_mark(finding, points))
    return titled(chart, f"Share of the uplink traffic of {switch} by link (%)", caption)


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


def _ports(ports: Sequence[str]) -> str:
    named = ", ".join(ports) if len(ports) <= _MOST_PORTS_NAMED else f"{len(ports)} links"
    return named or "links of the finding"
