"""Horizontal bars: parts by name, the first on top, with a text beside each."""

from collections.abc import Sequence

import altair as alt

from fabricobs.report.charts.drawing import (
    DASHES,
    INK,
    TICKS,
    colors,
    data,
    layers,
    series,
    tips,
    titled,
)
from fabricobs.report.charts.source import Row

_MEASURED = "measured"
_ACCUSED = "accused"
_SERIES = (_MEASURED, "", _ACCUSED)
_ROW_HEIGHT = 20  # pixels
_SHORT = 7  # letters of a number; words beside a bar need more room on a telephone


def percent_sign(unit: str) -> str:
    """Return what stands behind a number of this unit: the sign of percent, or nothing."""
    return "%" if unit.endswith("(%)") else ""


def bars(
    rows: Sequence[Row], limits: Sequence[Row], unit: str, title: str, caption: str
) -> alt.LayerChart:
    """Draw a bar for each row (part, value, text beside it), dashed lines at the limits' values.

    A row that is `accused` has a colour of its own; the text beside it says why.
    Ticks of percent bear its sign, as the texts do. In the room for texts, behind the longest bar,
    no tick has a number.
    """
    most = max([float(row["value"]) for row in (*rows, *limits)]) or 1.0
    order = [row["part"] for row in rows]
    y = alt.Y("part:N", title=None, sort=order, axis=alt.Axis(labelLimit=170, labelOverlap=False))
    room = 1.35 if max(len(row["text"]) for row in rows) <= _SHORT else 2.5
    scale = alt.Scale(domain=[0, room * most], nice=False)
    label = f"datum.value > {most} ? '' : datum.label + '{percent_sign(unit)}'"
    ticks = alt.Axis(tickCount=TICKS, labelExpr=label)
    x = alt.X("value:Q", title=unit, scale=scale, axis=ticks)
    own = [row for row in rows if row.get("accused")]
    others = [row for row in rows if not row.get("accused")]
    drawn = [
        series(some, name)
        .mark_bar(height={"band": 0.6})
        .encode(x=x, y=y, color=colors(_SERIES).legend(None), tooltip=tips(part="name", text=unit))
        for name, some in ((_MEASURED, others), (_ACCUSED, own))
        if some
    ]
    text = alt.Chart(data(rows)).mark_text(align="left", dx=4, color=INK)
    text = text.encode(x=x, y=y, text="text:N")
    rule = alt.Chart(data(limits)).mark_rule(strokeDash=DASHES, strokeWidth=1.5, color=INK)
    chart = layers(*drawn, text, rule.encode(x=x))
    return titled(chart.properties(height=_ROW_HEIGHT * len(rows) + 10), title, caption)
