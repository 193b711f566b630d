"""Ranks in two groups of which one works longer: the median of all is then nobody's peer."""

from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from fabricobs.diagnosis.statistics import Array, Integers, nan_median

# Ranks on either side: fewer are single slow ones.
_FEWEST = 4
# Steps whose median tells of a rank, and so many windows on end must agree: as for stragglers.
WINDOW_STEPS = 20
_AGREE = 2
# Half of the 10 % from which the what-if analysis (arXiv 2505.05713) calls a job straggling.
LEAST_EXCESS = 0.05
# Of the distance between the groups' medians so much is empty: else one group only varies widely.
_EMPTY = 0.5
# In so many of the windows, it is so from the first step to the last.
_THROUGHOUT = 0.9


@dataclass(frozen=True, slots=True)
class SlowerGroup:
    """Ranks, by `columns`, that work longer than the others alike, in windows on end.

    `detected` is the index of the step at whose end it was clear. `throughout` are the columns of
    those that do from the first step to the last: others may be as slow for a while.
    """

    columns: Integers
    throughout: Integers
    detected: int


def slower_group(own_ms: Array, members: Integers, scale_ms: float | None) -> SlowerGroup | None:
    """Return the members that work longer than the others by a clear gap, for longest; or None.

    `own_ms` is [S, R]; the excess is a share of `scale_ms`, of the faster ranks' time if None.
    """
    count = len(own_ms) // WINDOW_STEPS
    if len(members) < 2 * _FEWEST or count < _AGREE:
        return None
    blocks = own_ms[: count * WINDOW_STEPS, members].reshape(count, WINDOW_STEPS, -1)
    middles = nan_median(blocks, axis=1)
    sides = [_slower(middle, scale_ms) for middle in middles]
    runs: list[tuple[int, int, frozenset[int]]] = []
    for side, same in groupby(enumerate(sides), key=lambda each: each[1]):
        places = [place for place, _ in same]
        if side:
            runs.append((len(places), places[0], side))
    if not runs:
        return None
    length, first, side = max(runs, key=lambda run: (run[0], -run[1]))
    if length < _AGREE:
        return None
    return SlowerGroup(
        columns=members[np.array(sorted(side))],
        throughout=members[_throughout(middles, sides, scale_ms)],
        detected=(first + _AGREE) * WINDOW_STEPS - 1,
    )


def _throughout(
    middles: Array, sides: list[frozenset[int]], scale_ms: float | None
) -> NDArray[np.bool_]:
    """Mark the places [R] of ranks among the slower of nearly all windows; none if too few are.

    A window in which others begin to be slow shows no gap: there the medians decide.
    """
    told = [side for side in sides if side]
    often = np.array(
        [
            sum(place in side for side in told) >= _THROUGHOUT * len(told)
            for place in range(middles.shape[1])
        ]
    )
    if min(often.sum(), (~often).sum()) < _FEWEST:
        return np.zeros_like(often)
    others = nan_median(middles[:, ~often], axis=1)
    scale = others if scale_ms is None else scale_ms
    slower = nan_median(middles[:, often], axis=1) - others >= LEAST_EXCESS * scale
    return often & bool(slower.mean() >= _THROUGHOUT)


def _slower(times: Array, scale_ms: float | None) -> frozenset[int]:
    """Return the places of the slower ones of two groups; empty where there are none.

    Most ranks are no slower than their peers: they are the peers. Where few ranks take less, the
    others may wait for them in what is counted as their own work.
    """
    if np.isnan(times).any():
        return frozenset()
    order = np.argsort(times)
    gaps = np.diff(times[order])[_FEWEST - 1 : len(times) - _FEWEST]
    cut = _FEWEST + int(np.argmax(gaps))
    faster, slower = times[order[:cut]], times[order[cut:]]
    if len(slower) > len(faster):
        return frozenset()
    apart = float(np.median(slower) - np.median(faster))
    scale = float(np.median(faster)) if scale_ms is None else scale_ms
    if apart < LEAST_EXCESS * scale or slower[0] - faster[-1] < _EMPTY * apart:
        return frozenset()
    return frozenset(order[cut:].tolist())
