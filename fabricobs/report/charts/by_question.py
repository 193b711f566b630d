"""The chart of a question, drawn on its own: for notebooks and files."""

from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from fabricobs.diagnosis.findings import Entity, Finding
from fabricobs.exceptions import UserError
from fabricobs.report.charts import catalogue
from fabricobs.report.charts.source import Source
from fabricobs.report.charts.theme import on_its_own
from fabricobs.report.charts.timeline import step_timeline
from fabricobs.report.charts.topology import draw_topology
from fabricobs.validation import nearest

if TYPE_CHECKING:
    import altair as alt

_WIDTH = 720

# The questions that can be drawn, each by a chart of the catalogue or one of the page's own.
CHARTS = {
    "collective_wait": "collective_times",
    "pause_sources": "pause_tree",
    "slowest_ranks": "rank_compute",
    "steps_that_stand_out": "step_timeline",
    "pace_of_steps": "step_timeline",
    "topology": "topology",
    "uplink_balance": "uplink_shares",
}


class ChartError(UserError):
    """A chart that does not exist, or has no data in this store."""


def draw(
    question: str,
    connection: duckdb.DuckDBPyConnection,
    content: tuple[Path, ...] = (),
    finding: Finding | None = None,
    switch: str | None = None,
    job: str | None = None,
) -> "alt.LayerChart":
    """Draw the answer to one of CHARTS, with a finding marked or of the switch and job given."""
    if question not in CHARTS:
        raise ChartError(f"no chart {question!r}{nearest(question, CHARTS, else_all=True)}")
    source = Source(connection, content)
    marked = [] if finding is None else [finding]
    drawn: alt.LayerChart | None
    if CHARTS[question] == "step_timeline":
        drawn = step_timeline(source, [], marked)
    elif CHARTS[question] == "topology":
        fabric = draw_topology(source, marked)
        drawn = None if fabric is None else fabric.chart
    else:
        subject = finding or Finding(
            kind=question,
            entities=(Entity("switch", switch=switch, job=job),),
            severity="info",
            confidence=0.0,
            title="",
            explanation="",
        )
        drawn = catalogue.CHARTS[CHARTS[question]](source, subject)
    if drawn is None:
        raise ChartError(
            f"{question}: the store has no data for this chart; job= or switch= choose"
        )
    return on_its_own(drawn, _WIDTH)
