"""How far each rank came: the last collective it launched and the last that ended."""

import math

import altair as alt

from fabricobs.diagnosis.findings import Finding
from fabricobs.report.charts.drawing import (
    INK,
    colors,
    data,
    job_of,
    layers,
    number_axis,
    sentences,
    tips,
    titled,
)
from fabricobs.report.charts.source import Row, Source
from fabricobs.report.wording import counted

_MOST_NAMED = 6
_MOST_TICKS = 10


def hang_progress(source: Source, finding: Finding) -> alt.LayerChart | None:
    """Draw the number of the last collective by rank; ranks in a row that are alike as one bar."""
    rows = source.rows("report/last_collectives", job=job_of(finding))
    if not rows:
        return None
    accused = {entity.rank for entity in finding.entities if entity.rank is not None}
    names = ["", "ranks that wait", "missing ranks"]
    for row in rows:
        missing = row["first_rank"] in accused and row["ranks"] == 1
        row["series"] = names[2] if missing else names[1]
        row["from"], row["to"] = row["first_rank"] - 0.4, row["last_rank"] + 0.4
        row["label"] = f"rank {row['first_rank']}" + (f" on {row['host']}" if row["host"] else "")
    known = [row for row in rows if row["launched"] is not None]
    silent = [row for row in rows if row["launched"] is None]
    if not known:
        return None
    if all(row["series"] != names[2] for row in known):
        names[2] = ""  # it told nothing: no mark of it in the chart
    base = alt.Chart(data(known))
    first, last = min(row["from"] for row in rows), max(row["to"] for row in rows)
    x = number_axis("from", "rank", first, last)
    low, high = _range(known)
    # A step of ticks below one would print the same number twice.
    whole = list(range(math.ceil(low), math.floor(high) + 1))
    ticks = {"values": whole} if len(whole) <= _MOST_TICKS else {"tickMinStep": 1}
    y = alt.Y(
        "launched:Q",
        title="number of the collective",
        scale=alt.Scale(domain=[low, high]),
        axis=alt.Axis(format=",d", **ticks),
    )
    tip = tips(
        label="first rank",
        ranks="ranks in a row",
        launched="launched last",
        completed="completed last",
        said="watchdog",
    )
    bars = base.mark_rule(strokeWidth=5).encode(
        x=x, x2="to:Q", y=y, color=colors(names), tooltip=tip
    )
    marked = [row for row in known if row["series"] == names[2]][:_MOST_NAMED]
    diamonds = alt.Chart(data(marked)).mark_point(shape="diamond", size=170, filled=True, opacity=1)
    diamonds = diamonds.encode(x=alt.X("first_rank:Q"), y=y, color=colors(names), tooltip=tip)
    named = alt.Chart(data(marked)).mark_text(dy=16, fontWeight="bold", color=INK)
    caption = sentences(
        f"Of process group {known[0]['process_group']}." if known[0]["process_group"] else "",
        "A rank below the others has not launched what they wait in.",
        _reported_nothing(silent),
    )
    chart = layers(
        bars, diamonds, named.encode(x=alt.X("first_rank:Q"), y=y, text="label:N")
    ).properties(height=180)
    return titled(chart, "Last collective launched by each rank (number)", caption)


def _reported_nothing(silent: list[Row]) -> str:
    """Name the ranks of which nothing is known where they are few, else count them."""
    ranks = sum(row["ranks"] for row in silent)
    if not ranks:
        return ""
    few = len(silent) == ranks <= _MOST_NAMED
    named = ", ".join(row["label"] for row in silent) if few else counted(ranks, "rank")
    return f"{named} reported nothing."


def _range(rows: list[Row]) -> list[float]:
    numbers = [row["launched"] for row in rows]
    room = max(1.0, 0.25 * (max(numbers) - min(numbers)))
    return [min(numbers) - room, max(numbers) + room]
