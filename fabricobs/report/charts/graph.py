"""Drawings of parts and what joins them, in columns; culprits and victims marked.

A mark is a shape, a colour, a word and bold type: it is seen in grey, and read aloud.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import altair as alt

from fabricobs.report.charts.drawing import DASHES, INK, colors, data, layers, tips
from fabricobs.report.charts.source import Row

Across = Callable[[str], alt.X]
Mark = Literal["part", "victim", "culprit"]
MARKS: tuple[Mark, ...] = ("part", "victim", "culprit")
_STROKES: dict[Mark, tuple[list[int], float]] = {
    "part": ([1, 0], 0.45),
    "victim": ([1, 0], 0.9),
    "culprit": (DASHES, 1),
}
_SHAPES = ["circle", "triangle-up", "diamond"]
_SIZES = [60, 130, 190]
_ROW = 22  # pixels between two parts of the first or last column
_ROW_BETWEEN = 36  # and of those between them, whose names stand above
_LEAST_HEIGHT = 130
_LETTER = 7  # pixels that a letter of a name takes at most
_LEAST_MARGIN = 40  # pixels beside the outer columns, for their headings
_LEAST_APART = 70  # pixels from one column to the next


@dataclass(frozen=True, slots=True)
class Node:
    """A part: its column from the left, its mark, and what is written beside and said of it."""

    name: str
    column: int
    mark: Mark = "part"
    label: str = ""
    said: str = ""


@dataclass(frozen=True, slots=True)
class Edge:
    """What joins two parts: `weight` 0 to 1 is its width, `text` stands on it."""

    a: str
    b: str
    weight: float = 0.0
    mark: Mark = "part"
    text: str = ""
    said: str = ""


def draw_graph(
    nodes: Sequence[Node], edges: Sequence[Edge], columns: Sequence[str]
) -> alt.LayerChart:
    """Draw parts in columns under their headings, names outside the first and the last column."""
    places = _places(nodes, len(columns))
    last = len(columns) - 1
    across = _across_of(nodes, last)
    sizes = [sum(node.column == column for node in nodes) for column in range(len(columns))]
    heights = [
        size * (_ROW if column in {0, last} else _ROW_BETWEEN) for column, size in enumerate(sizes)
    ]
    lines = [_line(edge, places) for edge in edges if {edge.a, edge.b} <= places.keys()]
    points = [_point(node, places) for node in nodes]
    return layers(
        *_rules(lines, across),
        *_edge_texts(lines, across),
        *(text for c in range(len(columns)) for text in _names(points, c, len(columns), across)),
        _dots(points, across),
        _headings(columns, across),
    ).properties(
        height=max(*heights, _LEAST_HEIGHT),
        usermeta={"least_width": _least_width(nodes, edges, last)},
    )


def _across_of(nodes: Sequence[Node], last: int) -> Across:
    """Return the axis across: its ends leave room for the names beside the outer columns."""
    left, right = (_LEAST_MARGIN,) * 2 if last == 0 else (_margin(nodes, c) for c in (0, last))
    scale = alt.Scale(domain=[0, 1], rangeMin=left, rangeMax=alt.ExprRef(f"width - {right}"))
    return lambda column: alt.X(f"{column}:Q", scale=scale, axis=None)


def _least_width(nodes: Sequence[Node], edges: Sequence[Edge], last: int) -> int:
    """Return the pixels below which names would be cut or stand on each other."""
    inner = [len(_written_name(node)) for node in nodes if 0 < node.column < last]
    texts = max((len(edge.text) for edge in edges), default=0)
    apart = max(_LEAST_APART, _LETTER * (max(inner, default=0) + 2 * texts))
    return _margin(nodes, 0) + _margin(nodes, last) + last * apart


def _down(column: str) -> alt.Y:
    return alt.Y(f"{column}:Q", scale=alt.Scale(domain=[0, 1]), axis=None)


def _rules(lines: Sequence[Row], across: Across) -> list[alt.Chart]:
    """Draw the edges, those of culprits over the others and dashed."""
    drawn = []
    for mark, (dash, opacity) in _STROKES.items():
        own = [line for line in lines if line["series"] == mark]
        rule = alt.Chart(data(own)).mark_rule(strokeDash=dash, opacity=opacity)
        drawn.append(
            rule.encode(
                x=across("x"),
                y=_down("y"),
                x2="x2:Q",
                y2="y2:Q",
                color=colors(MARKS).legend(None),
                strokeWidth=alt.StrokeWidth("weight:Q", scale=None),
                tooltip=tips(name="link", said="what"),
            )
        )
    return drawn


def _edge_texts(lines: Sequence[Row], across: Across) -> list[alt.Chart]:
    texts = alt.Chart(data([line for line in lines if line["text"]]))
    looks: list[Any] = [{"style": "halo"}, {"color": INK}]
    at = {"x": across("x3"), "y": _down("y3"), "text": "text:N"}
    return [texts.mark_text(**look).encode(**at) for look in looks]


def _dots(points: Sequence[Row], across: Across) -> alt.Chart:
    shapes = alt.Scale(domain=list(MARKS), range=_SHAPES)
    dots = alt.Chart(data(points)).mark_point(filled=True, opacity=1)
    drawn: alt.Chart = dots.encode(
        x=across("x"),
        y=_down("y"),
        color=colors(MARKS).legend(None),
        shape=alt.Shape("series:N", scale=shapes, legend=None),
        size=alt.Size("size:Q", scale=None),
        tooltip=tips(name="part", series="mark", said="what"),
    )
    return drawn


def _names(points: Sequence[Row], column: int, columns: int, across: Across) -> list[alt.Chart]:
    """Write the names of a column, the marked ones bold: at the sides beside, else above."""
    beside = column in {0, columns - 1}
    left = column == 0
    # Between the columns names stand on lines: a halo keeps them legible.
    inks = [INK] if beside else [None, INK]
    drawn = []
    for marked in (False, True):
        own = [p for p in points if p["column"] == column and (p["series"] != "part") == marked]
        for ink in inks:
            text = alt.Chart(data(own)).mark_text(
                align=("right" if left else "left") if beside else "center",
                dx=(-12 if left else 12) if beside else 0,
                dy=0 if beside else -14,
                fontSize=12,
                fontWeight="bold" if marked else "normal",
                color=ink or alt.Undefined,
                style=alt.Undefined if ink else "halo",
            )
            drawn.append(text.encode(x=across("x"), y=_down("y"), text="label:N"))
    return drawn


def _headings(columns: Sequence[str], across: Across) -> alt.Chart:
    heads = [{"x": _x(c, len(columns)), "text": head} for c, head in enumerate(columns)]
    text = alt.Chart(data(heads)).mark_text(color=INK, opacity=0.8, fontStyle="italic", fontSize=12)
    drawn: alt.Chart = text.encode(x=across("x"), y=alt.value(-18), text="text:N")
    return drawn


def _margin(nodes: Sequence[Node], column: int) -> int:
    """Return the pixels that the names beside an outer column need."""
    longest = max((len(_written_name(n)) for n in nodes if n.column == column), default=0)
    return max(_LETTER * longest + 16, _LEAST_MARGIN)


def _written_name(node: Node) -> str:
    return node.label or node.name


def _x(column: int, columns: int) -> float:
    return 0.5 if columns == 1 else round(column / (columns - 1), 4)


def _places(nodes: Sequence[Node], columns: int) -> dict[str, tuple[float, float]]:
    """Return where each part is, 0 to 1 each way: the parts of a column evenly from the top."""
    places = {}
    for column in range(columns):
        own = [node for node in nodes if node.column == column]
        for row, node in enumerate(own):
            places[node.name] = (_x(column, columns), round(1 - (row + 0.5) / len(own), 4))
    return places


def _line(edge: Edge, places: dict[str, tuple[float, float]]) -> Row:
    (x, y), (x2, y2) = places[edge.a], places[edge.b]
    return {
        "x": x,
        "y": y,
        "x2": x2,
        "y2": y2,
        "x3": round((x + x2) / 2, 4),
        "y3": round((y + y2) / 2, 4),
        "series": edge.mark,
        "weight": round((1 if edge.mark == "part" else 2) + 5 * edge.weight, 2),
        "text": edge.text,
        "name": f"{edge.a} - {edge.b}",
        "said": edge.said,
    }


def _point(node: Node, places: dict[str, tuple[float, float]]) -> Row:
    x, y = places[node.name]
    return {
        "x": x,
        "y": y,
        "column": node.column,
        "series": node.mark,
        "size": _SIZES[MARKS.index(node.mark)],
        "name": node.name,
        "label": _written_name(node),
        "said": node.said,
    }
