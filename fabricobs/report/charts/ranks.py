"""How long the ranks compute, beside their peers."""

from collections.abc import Iterator, Sequence
from itertools import groupby

import altair as alt

from fabricobs.diagnosis.findings import Finding
from fabricobs.report.charts.drawing import (
    DASHES,
    HEATS,
    INK,
    data,
    job_of,
    layers,
    number_axis,
    sentences,
    tips,
    titled,
)
from fabricobs.report.charts.source import Row, Source

_STEP_BINS = 60
_RANK_BINS = 128
_MOST_NAMED = 3
_LEAST_SHOWN = 0.05  # the darkest shade: noise of a per cent must not look like a finding


def rank_compute(source: Source, finding: Finding) -> alt.LayerChart | None:
    """Draw how much longer than its peers each rank takes by itself: a heat map of rank by step."""
    bins = {"step_bins": _STEP_BINS, "rank_bins": _RANK_BINS}
    cells = source.rows("report/rank_compute", job=job_of(finding), **bins)
    if not cells:
        return None
    for cell in cells:
        first, last = cell["first_rank"], cell["last_rank"]
        cell["ranks"] = f"{first}" if first == last else f"{first} to {last}"
        cell["excess"] = max(cell["excess"] or 0.0, 0.0)
    order = list(dict.fromkeys(cell["ranks"] for cell in cells))
    most = max(_LEAST_SHOWN, *(cell["excess"] for cell in cells))
    shade = alt.Color(
        "excess:Q",
        title="longer than peers (%)",
        scale=alt.Scale(type="quantize", domain=[0, most], range=list(HEATS)),
        legend=alt.Legend(
            format=".1%" if most < 0.06 else ".0%",
            titleOrient="top",
        ),
    )
    areas = sorted(_areas(cells, most / len(HEATS)), key=lambda area: -area["excess"])
    heat = alt.Chart(data(areas)).mark_rect().transform_calculate(end="datum.last_step + 1")
    begin = min(cell["first_step"] for cell in cells)
    end = max(cell["last_step"] for cell in cells) + 1
    rank_axis = alt.Y("ranks:O", title="rank", sort=order, axis=alt.Axis(labelOverlap=True))
    heat = heat.encode(
        x=number_axis("first_step", "step", begin, end),
        x2="end:Q",
        y=rank_axis,
        color=shade,
        tooltip=tips(
            rank="rank",
            host="host",
            first_step="from step",
            last_step="to step",
            excess="longer than peers",
        ),
    )
    widest = max(cell["last_step"] - cell["first_step"] + 1 for cell in cells)
    caption = sentences(
        "Compared with the median of the ranks of the same stage at the same step.",
        f"Medians of up to {widest:,} steps." if widest > 1 else "",
        "A row is a group of ranks, shown by its slowest." if "to" in " ".join(order) else "",
        "" if finding.entities else _slowest(cells),
        "The dashed line is where the finding starts." if finding.start_step is not None else "",
    )
    chart = layers(heat, *_marks(finding, cells, rank_axis))
    chart = chart.properties(height=min(max(9 * len(order), 120), 480))
    return titled(
        chart, "Computation and data loading of each rank over that of its peers (%)", caption
    )


def _slowest(cells: Sequence[Row]) -> str:
    """Name the rank that took longest beside its peers."""
    worst = max(cells, key=lambda cell: cell["excess"])
    where = f" on {worst['host']}" if worst["host"] else ""
    steps = f"steps {worst['first_step']:,} to {worst['last_step']:,}"
    return f"The most: rank {worst['rank']}{where}, {worst['excess']:.1%} longer ({steps})."


def _areas(cells: Sequence[Row], shade: float) -> Iterator[Row]:
    """Yield the cells, those beside each other that have one shade as one."""
    by_row = sorted(cells, key=lambda cell: (cell["first_rank"], cell["first_step"]))
    for _, alike in groupby(by_row, lambda cell: (cell["ranks"], int(cell["excess"] / shade))):
        area = list(alike)
        slowest = max(area, key=lambda cell: cell["excess"])
        yield {
            "ranks": slowest["ranks"],
            "rank": slowest["rank"],
            "host": slowest["host"],
            "first_step": area[0]["first_step"],
            "last_step": area[-1]["last_step"],
            "excess": round(slowest["excess"], 4),
        }


def _marks(finding: Finding, cells: Sequence[Row], rank_axis: alt.Y) -> list[alt.Chart]:
    """Mark where the finding starts, and name the ranks it accuses beside that."""
    begin, end = cells[0]["first_step"], max(cell["last_step"] for cell in cells)
    start = finding.start_step
    rule = alt.Chart(data([] if start is None else [{"first_step": start}]))
    early = start is None or start < begin + 0.2 * (end - begin)
    accused = {entity.rank: entity.label for entity in finding.entities if entity.rank is not None}
    rows = {
        rank: cell["ranks"]
        for cell in cells
        for rank in accused
        if cell["first_rank"] <= rank <= cell["last_rank"]
    }
    names = [
        {"first_step": end + 1 if early else start, "ranks": row, "label": accused[rank]}
        for rank, row in list(rows.items())[:_MOST_NAMED]
    ]
    text = alt.Chart(data(names)).mark_text(
        align="right", dx=-6, dy=-10 if early else 0, fontWeight="bold", color=INK
    )
    return [
        rule.mark_rule(strokeDash=DASHES, strokeWidth=1.5, color=INK).encode(x="first_step:Q"),
        text.encode(x="first_step:Q", y=rank_axis, text="label:N"),
    ]
