"""Uplink groups in windows of single counter intervals: what seconds can tell, and where.

Static hashing keeps each flow on its link, so every interval shows the same shares. Where flowlets
move them about, seconds are uneven by themselves, and only minutes tell.
"""

from collections.abc import Iterable

import numpy as np
import polars as pl

from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.statistics import Array, jain, jain_of_hashing

_FEWEST = 3
_MOST_UNEVEN = 0.1  # of the intervals may be less even than hashing makes all but 1 in 100
_QUANTILE = 0.01
_QUIET = 0.25  # of the busy median: intervals before and after the job


def short_windows(evidence: Evidence, group: str) -> pl.DataFrame:
    """Return the busy intervals of an uplink group, as short as its counters allow."""
    rows = evidence.frame("uplink_windows").filter(pl.col("uplink_group") == group).sort("ts")
    return rows.filter(pl.col("sent") >= _QUIET * pl.col("sent").median())


def hashing_holds(rows: pl.DataFrame, flows: float, *, left_out: int = 0) -> bool:
    """Say whether hashing `flows` explains nearly all of these intervals, each on its own.

    The `left_out` links that carry least are left out of each.
    """
    if len(rows) < _FEWEST or flows < 1:
        return False
    loads = [np.sort(each)[left_out:] for each in _loads(rows)]
    expected = jain_of_hashing(len(loads[0]), int(flows), _QUANTILE)
    uneven = sum(jain(each) < expected for each in loads)
    return uneven <= _MOST_UNEVEN * len(loads)


def _loads(rows: pl.DataFrame) -> Iterable[Array]:
    return (np.asarray(each, dtype=np.float64) for each in rows["loads"].to_list())
