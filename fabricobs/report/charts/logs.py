"""What logs alone tell: warnings of NCCL, runs of benchmarks."""

import altair as alt

from fabricobs.diagnosis.findings import Finding
from fabricobs.report.charts.bars import bars
from fabricobs.report.charts.drawing import job_of, sentences
from fabricobs.report.charts.source import Source
from fabricobs.report.documents import counted, number

_MOST_ROWS = 12


def nccl_warnings(source: Source, finding: Finding) -> alt.LayerChart | None:
    """Draw how often the hosts of a job warn of what, the most first."""
    rows = source.rows("report/nccl_warnings", job=job_of(finding))
    if not rows:
        return None
    shown = [
        {
            "part": f"{row['host'] or 'host not known'}: {row['what']}",
            "value": row["warnings"],
            "text": number(row["warnings"]),
        }
        for row in rows[:_MOST_ROWS]
    ]
    left = len(rows) - len(shown)
    caption = f"{counted(left, 'bar')} more would be shorter." if left else ""
    return bars(shown, [], "warnings", "Warnings of NCCL by host and kind", caption)


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
        }
        for row in rows[:_MOST_ROWS]
    ]
    caption = sentences(
        "The slowest against alike runs, or against what sound sites reach, first.",
        f"{len(rows) - _MOST_ROWS:,} more runs are not shown." if len(rows) > _MOST_ROWS else "",
    )
    return bars(shown, [], "bus bandwidth (GB/s)", "Runs of benchmarks", caption)
