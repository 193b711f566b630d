"""Warnings of NCCL by host."""

import altair as alt

from fabricobs.diagnosis.findings import Finding
from fabricobs.report.charts.bars import bars
from fabricobs.report.charts.drawing import job_of
from fabricobs.report.charts.source import Source
from fabricobs.report.wording import counted, number

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
