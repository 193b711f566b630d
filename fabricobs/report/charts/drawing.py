"""The vocabulary of all charts: titles, series, axes, marks.

Colours come from the theme (`range.category`, `range.heatmap`), lines and text take the colour of
the text, and every series differs in dashes, weight, shape or place too: a chart reads in light,
dark and grey. A chart's title says what is drawn in which unit; its subtitle is the caption.
"""

from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Any

import altair as alt

from fabricobs.diagnosis.findings import Finding
from fabricobs.report.charts.positions import position
from fabricobs.report.charts.source import Row
from fabricobs.report.wording import iso, number

HEIGHT = 240
DASHES = [5, 4]
INK = "currentColor"
HEATS = tuple(f"var(--heat-{place})" for place in range(6))  # from nothing to the most
# A tick for every 90 pixels, as far as the width of the plot allows.
TICKS = alt.ExprRef("max(floor(width / 90), 3)")
_GAP = 3.0
_CLOCK = {
    "seconds": "%H:%M:%S",
    "minutes": "%H:%M",
    "hours": "%H:%M",
    "date": "%d %b",
    "month": "%b",
    "year": "%Y",
}
_PERCENT = {"share", "excess"}
_TIMES = {"moment", "ts_before", "ts"}
_TIME_FORMAT = "%Y-%m-%d %H:%M:%S"


def layers(*charts: alt.Chart | alt.LayerChart) -> alt.LayerChart:
    """Lay charts over each other, those without rows left out."""
    return alt.LayerChart(layer=[chart for chart in charts if _has_rows(chart)])


def _has_rows(chart: alt.Chart | alt.LayerChart) -> bool:
    own = chart.data
    return not isinstance(own, dict) or bool(own["values"])


def titled(chart: alt.LayerChart, title: str, caption: str) -> alt.LayerChart:
    """Return the chart in the width it is given, with its words."""
    if chart.height is alt.Undefined:
        chart = chart.properties(height=HEIGHT)
    text = alt.TitleParams(text=title, subtitle=[caption])
    return chart.properties(width="container", title=text, description=title)


def series(values: Sequence[Row], name: str) -> alt.Chart:
    """Begin a chart whose rows all belong to the series `name`, a constant of the module."""
    return alt.Chart(data(values)).transform_calculate(series=repr(name))


def colors(names: Sequence[str]) -> alt.Color:
    """Return the colours of series, in the order of the theme; one without a name is not used."""
    legend = alt.Legend(values=[name for name in names if name])
    scale = alt.Scale(domain=list(names))
    return alt.Color("series:N", scale=scale, title=None, legend=legend)


def data(values: Sequence[Row]) -> dict[str, Any]:
    """Return rows as a plain dictionary: Altair's own class would check each of thousands."""
    return {"values": list(values)}


def time_axis(span: Sequence[str], column: str = "moment") -> alt.X:
    """Return the axis of a time in UTC from the first to the last of `span`."""
    first, last = min(span)[:10], max(span)[:10]
    days = first if first == last else f"{first} to {last}"
    return alt.X(
        f"{column}:T",
        title=f"time (UTC), {days}",
        scale=alt.Scale(type="utc", domain=[min(span), max(span)], nice=False),
        axis=alt.Axis(tickCount=TICKS, format=_CLOCK),
    )


def number_axis(
    column: str, title: str, low: float, high: float, last: float | None = None
) -> alt.X:
    """Return the axis of a whole number, as of steps and ranks, from `low` to `high`.

    Behind `last`, where nothing is counted any more, no number stands.
    """
    words: Any = {} if last is None else {"labelExpr": f"datum.value > {last} ? '' : datum.label"}
    return alt.X(
        f"{column}:Q",
        title=title,
        scale=alt.Scale(domain=[low, high if high > low else low + 1], nice=False, zero=False),
        axis=alt.Axis(tickCount=TICKS, tickMinStep=1, format=",d", **words),
    )


def tips(**titles: str) -> list[alt.Tooltip]:
    """Return the lines of a tooltip, by column: shares in percent, times as UTC, the rest as is."""
    return [_tip(column, title) for column, title in titles.items()]


def _tip(column: str, title: str) -> alt.Tooltip:
    if column in _TIMES:
        return alt.Tooltip(
            field=column,
            type="temporal",
            timeUnit="utcyearmonthdatehoursminutesseconds",
            format=_TIME_FORMAT,
            title=title,
        )
    if column in _PERCENT:
        return alt.Tooltip(field=column, type="quantitative", format=".1%", title=title)
    return alt.Tooltip(field=column, type="nominal", title=title)


def interrupted(points: Sequence[Row], x: str, y: str, part: str | None = None) -> list[Row]:
    """Return the points with one without a value in each gap, so that no line bridges it.

    A gap is longer than three times the usual distance of two points of a part.
    """
    rows: list[Row] = []
    by_part: dict[Any, list[Row]] = {}
    for point in points:
        by_part.setdefault(point[part] if part else None, []).append(point)
    for own in by_part.values():
        places = [position(point[x]) or 0.0 for point in own]
        usual = median([b - a for a, b in pairwise(places)] or [0.0])
        for point, here, after in zip(own, places, [*places[1:], places[-1]], strict=True):
            rows.append(point)
            if after - here > _GAP * usual > 0:
                rows.append({**point, y: None})
    return rows


def start_mark(finding: Finding, span: Sequence[str], column: str = "moment") -> list[alt.Chart]:
    """Mark when the finding starts, if that is within the time of the axis: that of `span`."""
    start = iso(finding.start)
    first, last = min(span), max(span)
    if start is None or not first <= start <= last:
        return []
    step = "" if finding.start_step is None else f", step {finding.start_step:,}"
    mark = alt.Chart(data([{column: start, "label": f"start {start[11:19]}{step}"}]))
    mark = mark.encode(x=time_axis(span, column))
    moments = [position(value) or 0.0 for value in (first, start, last)]
    late = moments[1] - moments[0] > 0.5 * (moments[2] - moments[0])
    text = mark.mark_text(align="right" if late else "left", dx=-5 if late else 5, color=INK)
    return [
        mark.mark_rule(strokeDash=DASHES, strokeWidth=1.5, color=INK),
        text.encode(y=alt.value(-7), text="label:N"),
    ]


def joined(points: Sequence[Row], column: str, what: str) -> str:
    """Say that points join several, where they do."""
    most = max(int(point[column]) for point in points)
    return f"Each point joins up to {most:,} {what}." if most > 1 else ""


def sentences(*parts: str) -> str:
    """Join the parts that say something."""
    return " ".join(part for part in parts if part)


def size_words(count: int) -> str:
    """Return a size in bytes, or MiB from there on."""
    return number(count, "bytes") if count < 1 << 20 else number(count / (1 << 20), "MiB")


def job_of(finding: Finding) -> str | None:
    """Return the job a finding names."""
    return next((entity.job for entity in finding.entities if entity.job), None)
