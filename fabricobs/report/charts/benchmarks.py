"""Runs of benchmarks beside each other."""

from statistics import median

import altair as alt

from fabricobs.diagnosis.findings import Finding
from fabricobs.report.charts.bars import bars
from fabricobs.report.charts.drawing import (
    colors,
    layers,
    number_axis,
    sentences,
    series,
    tips,
    titled,
)
from fabricobs.report.charts.source import Row, Source

# Dots of a sweep, and bars of runs.
_MOST_RUNS = 400
_MOST_BARS = 12


def runs_with_part(source: Source, finding: Finding) -> alt.LayerChart | None:
    """Draw the runs of a sweep, the slowest first, those with the accused part in a colour."""
    if not finding.entities:
        return None
    part = finding.entities[0]
    asked = {"host": part.host, "nic": part.nic, "switch": part.switch}
    rows = source.rows("report/runs_with_part", **asked)
    own = [row for row in rows if row["own"]]
    others = [row for row in rows if not row["own"]]
    if not own or not others:
        return None
    name = part.host or part.switch or f"every {part.nic}"
    for place, row in enumerate(rows, start=1):
        row["place"] = place
    # Of a long sweep every nth run without the part is enough: none with it is left out.
    every = -(-len(others) // _MOST_RUNS)
    shown = {f"runs with {name}": own, "other runs": others[::every]}
    names = ["other runs", "", f"runs with {name}"]
    axis = number_axis("place", "run, the slowest first", 0, len(rows) + 1)
    y = alt.Y("share:Q", title="bus bandwidth over the usual (%)", axis=alt.Axis(format=".0%"))
    y = y.scale(zero=False, nice=True)
    drawn: list[alt.Chart] = []
    for label, points in shown.items():
        usual: list[Row] = [{"share": median(row["share"] for row in points), "label": label}]
        dots = series(points, label).mark_point(
            filled=True, size=70, opacity=1, shape="circle" if label == names[0] else "diamond"
        )
        drawn += [
            dots.encode(
                x=axis,
                y=y,
                color=colors(names),
                tooltip=tips(
                    test="test", hosts="hosts", busbw="bus bandwidth (GB/s)", share="of the usual"
                ),
            ),
            series(usual, label)
            .mark_rule(strokeDash=[5, 4], strokeWidth=1.5)
            .encode(
                y="share:Q",
                color=colors(names),
                tooltip=tips(label="median of", share="of the usual"),
            ),
        ]
    lost = 1 - median(row["share"] for row in own) / median(row["share"] for row in others)
    caption = sentences(
        f"{len(own):,} runs with {name}, {len(others):,} without; each beside the median of alike "
        f"runs. Dashed: their medians, {lost:.1%} apart.",
        f"Of the runs without it one in {every:,} is shown." if every > 1 else "",
    )
    return titled(
        layers(*drawn), f"Bus bandwidth of benchmark runs with {name} and without (%)", caption
    )


def benchmark_runs(source: Source, finding: Finding) -> alt.LayerChart | None:
    """Draw the bus bandwidth of benchmark runs, the slowest against alike runs first."""
    rows = source.rows("report/benchmark_runs")
    if not rows:
        return None
    shown = [
        {
            "part": row["run"],
            "value": row["busbw_gbytes_per_s"],
            "text": f"{row['busbw_gbytes_per_s']:,.1f}, {row['verdict']}",
            "accused": row["accused"],
        }
        for row in rows[:_MOST_BARS]
    ]
    caption = sentences(
        "The slowest against alike runs, or against what sound sites reach, first.",
        f"{len(rows) - _MOST_BARS:,} more runs are not shown." if len(rows) > _MOST_BARS else "",
    )
    return bars(shown, [], "bus bandwidth (GB/s)", "Runs of benchmarks", caption)
