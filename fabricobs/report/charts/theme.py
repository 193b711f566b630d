"""How charts look: one configuration of Vega-Lite, whose colours are custom properties of CSS.

So a page changes them with the reader's scheme, and on paper, without drawing anew. The three
categories are told apart in grey too: a middle, a dark (or light, on dark) and a warm one.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Literal

import altair as alt

from fabricobs.report.charts.drawing import HEATS, INK

Scheme = Literal["light", "dark"]

COLOURS: Mapping[Scheme, Mapping[str, str]] = {
    "light": {
        "paper": "#ffffff",
        "ink": "#1b1f24",
        "chart-1": "#87919d",
        "chart-2": "#12508f",
        "chart-3": "#b4451a",
        "heat-0": "#f3f1ed",
        "heat-1": "#f6dcb8",
        "heat-2": "#eeb273",
        "heat-3": "#d97b35",
        "heat-4": "#a9481a",
        "heat-5": "#5c1f0a",
    },
    "dark": {
        "paper": "#14171a",
        "ink": "#e4e8ec",
        "chart-1": "#7f8b98",
        "chart-2": "#8fc1f7",
        "chart-3": "#f0975a",
        "heat-0": "#1f2429",
        "heat-1": "#46291a",
        "heat-2": "#7d3c16",
        "heat-3": "#bf6124",
        "heat-4": "#f0a566",
        "heat-5": "#ffe7c7",
    },
}
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"
_PROPERTY = re.compile(r"var\(--([a-z0-9-]+)\)")

CONFIG: Mapping[str, Any] = {
    "background": None,
    "aria": False,
    "font": _FONT,
    "view": {"stroke": None},
    "mark": {"invalid": "break-paths-filter-domains"},
    "axis": {
        "labelColor": INK,
        "titleColor": INK,
        "titleFontWeight": "normal",
        "domainColor": INK,
        "domainOpacity": 0.5,
        "tickColor": INK,
        "tickOpacity": 0.5,
        "gridColor": INK,
        "gridOpacity": 0.1,
        "labelFontSize": 11,
        "titleFontSize": 12,
        "labelOverlap": True,
        "labelSeparation": 10,
    },
    "axisX": {"labelFlush": 20},  # pixels from an end at which a label is moved inwards
    "text": {"color": INK, "fontSize": 11},
    "range": {
        "category": [f"var(--chart-{place})" for place in (1, 2, 3)],
        "heatmap": list(HEATS),
    },
    "style": {
        "inside": {"color": "var(--paper)", "fontWeight": "bold"},
        "halo": {
            "color": "var(--paper)",
            "stroke": "var(--paper)",
            "strokeWidth": 5,
            "strokeJoin": "round",
        },
    },
    "legend": {
        "orient": "top",
        "labelColor": INK,
        "titleColor": INK,
        "titleFontWeight": "normal",
        "titleOrient": "left",
        "labelFontSize": 11,
        "titleFontSize": 11,
        "labelLimit": 300,
        "columns": {"expr": "width < 500 ? 1 : 4"},
        "symbolOpacity": 1,
        "symbolType": "stroke",
        "symbolSize": 260,
        "symbolStrokeWidth": 2.5,
        "columnPadding": 16,
    },
}


def properties(scheme: Scheme) -> str:
    """Return the colours as declarations of CSS."""
    return " ".join(f"--{name}: {value};" for name, value in COLOURS[scheme].items())


def on_its_own(chart: alt.LayerChart, width: int, scheme: Scheme = "light") -> alt.LayerChart:
    """Return a chart with size and colours, for a notebook or a file of its own."""
    return alt.LayerChart.from_dict(coloured(chart.to_dict(), width, scheme), validate=False)


def coloured(spec: Mapping[str, Any], width: int, scheme: Scheme = "light") -> dict[str, Any]:
    """Return a specification with size and colours where no page gives them."""
    colours = COLOURS[scheme]
    title = {"anchor": "start", "fontSize": 15, "subtitleFontSize": 11, "offset": 22}
    title |= {"color": INK, "subtitleColor": INK, "subtitlePadding": 5}
    own = {**CONFIG, "background": colours["paper"], "padding": 16, "title": title}
    text = json.dumps({**spec, "width": width, "config": own})
    # A file has no text whose colour it could take, and no CSS.
    text = text.replace(f'"{INK}"', f'"{colours["ink"]}"')
    document: dict[str, Any] = json.loads(_PROPERTY.sub(lambda match: colours[match[1]], text))
    return document
