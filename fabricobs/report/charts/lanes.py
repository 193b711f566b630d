"""Counters over time, a lane each: every lane has a scale of its own, and says its peak."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from fabricobs.diagnosis.findings import Finding
from fabricobs.report.charts.drawing import (
    INK,
    colors,
    data,
    layers,
    series,
    start_mark,
    time_axis,
    tips,
)
from fabricobs.report.charts.source import Row
from fabricobs.report.wording import number

_HEIGHT = 46  # pixels of a lane
_FILLED = 0.56  # of a lane's height, at its peak; its words stand above
_PEAK_WIDTH = 105  # pixels of the words for a peak, at the right
_KINDS = ("traffic", "other", "culprit")


@dataclass(frozen=True, slots=True)
class Lane:
    """One counter of one part: rows hold `ts_before`, `ts` and `value` in `unit`."""

    part: str
    name: str
    unit: str
    culprit: bool
    traffic: bool
    rows: list[Row]

    @property
    def kind(self) -> str:
        """What its colour tells: traffic, or a counter of the culprit or of another part."""
        return _KINDS[0] if self.traffic else _KINDS[2 if self.culprit else 1]


def draw_lanes(lanes: Sequence[Lane], finding: Finding) -> alt.LayerChart:
    """Draw bars over time, lane below lane; the culprit is named, traffic is grey."""
    color = colors(_KINDS).legend(None)
    points = [row for lane in lanes for row in lane.rows]
    span = [min(row["ts_before"] for row in points), max(row["ts"] for row in points)]
    axis = time_axis(span, "ts_before")
    word = f" ({finding.role})"
    drawn: list[alt.Chart] = []
    words: list[Row] = []
    for place, lane in enumerate(lanes):
        floor = len(lanes) - 1 - place
        peak = max(row["value"] for row in lane.rows)
        bars = [
            {
                **row,
                "from": floor,
                "to": round(floor + _FILLED * row["value"] / (peak or 1.0), 4),
                "said": number(row["value"], lane.unit),
                "lane": f"{lane.part}: {lane.name}",
            }
            for row in lane.rows
            if row["value"] > 0
        ]
        bar = series(bars, lane.kind).mark_bar(clip=True)
        y = alt.Y("from:Q", axis=None, scale=alt.Scale(domain=[0, len(lanes)]))
        drawn.append(
            bar.encode(
                x=axis,
                x2="ts:T",
                y=y,
                y2="to:Q",
                color=color,
                tooltip=tips(lane="counter", said="value", ts_before="from (UTC)", ts="until"),
            )
        )
        words.append(
            {
                "ts_before": span[0],
                "ts": span[1],
                "floor": floor,
                "top": floor + 0.93,
                "label": f"{lane.part}{word if lane.culprit else ''}: {lane.name}",
                "peak": f"peak {number(peak, lane.unit)}" if peak else "none",
            }
        )
    told = alt.Chart(data(words))
    floors = told.mark_rule(color=INK, opacity=0.35).encode(x=axis, x2="ts:T", y="floor:Q")
    room = alt.ExprRef(f"width - {_PEAK_WIDTH}")
    left: Any = {"align": "left", "baseline": "top", "limit": room}
    right: Any = {"align": "right", "baseline": "top", "fontWeight": "bold"}
    at_left: Any = {"x": alt.value(2), "y": "top:Q", "text": "label:N"}
    at_right: Any = {"x": alt.value("width"), "y": "top:Q", "text": "peak:N"}
    # The words cover the line that marks the start.
    return layers(
        *drawn,
        floors,
        *start_mark(finding, span, "ts_before"),
        told.mark_text(style="halo", **left).encode(**at_left),
        told.mark_text(color=INK, **left).encode(**at_left),
        told.mark_text(style="halo", **right).encode(**at_right),
        told.mark_text(color=INK, **right).encode(**at_right),
    ).properties(height=_HEIGHT * len(lanes))
