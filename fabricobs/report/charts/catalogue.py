"""The charts of findings by name, as `models/*.toml` names them; what a store has data for."""

from collections.abc import Callable, Mapping, Sequence

import altair as alt

from fabricobs.diagnosis.findings import Finding
from fabricobs.report.charts.benchmarks import benchmark_runs, runs_with_part
from fabricobs.report.charts.collectives import collective_times
from fabricobs.report.charts.pauses import pause_tree
from fabricobs.report.charts.ports import link_ends, queue_signals
from fabricobs.report.charts.progress import hang_progress
from fabricobs.report.charts.ranks import rank_compute
from fabricobs.report.charts.settings import settings_compared
from fabricobs.report.charts.source import Source
from fabricobs.report.charts.uplinks import uplink_shares
from fabricobs.report.charts.warnings import nccl_warnings

Draw = Callable[[Source, Finding], alt.LayerChart | None]

CHARTS: Mapping[str, Draw] = {
    draw.__name__: draw
    for draw in (
        benchmark_runs,
        collective_times,
        hang_progress,
        link_ends,
        nccl_warnings,
        pause_tree,
        queue_signals,
        rank_compute,
        runs_with_part,
        settings_compared,
        uplink_shares,
    )
}
# What shows a loss whatever its cause, where no chart of the model has data.
FALLBACK = "collective_times"


def chart_of(source: Source, finding: Finding) -> tuple[str, alt.LayerChart] | None:
    """Return name and drawing of the first chart of a finding's model that has data."""
    model = source.model_of(finding)
    for name in _once((*(model.charts if model else ()), FALLBACK)):
        chart = CHARTS[name](source, finding) if name in CHARTS else None
        if chart is not None:
            return name, chart
    return None


def _once(names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(names))
