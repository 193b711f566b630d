"""Which units, ranks or hosts, are last too often for chance: those that pause again and again."""

from collections.abc import Sequence

import numpy as np

from fabricobs.diagnosis.statistics import (
    Array,
    Flags,
    Integers,
    at_least,
    false_discovery,
    nan_median,
)

NEVER = np.iinfo(np.int64).max
# Steps in which a unit must have been last before its share of them means anything.
_FEWEST_LAST = 5


def last_too_often(
    excess: Array, slow: Flags, *, little: float, limits: Sequence[float], q: float
) -> Integers:
    """Return, per unit, the first step index at which it was last too often for chance, or NEVER.

    `excess` is [S, U]; a unit is last in a step where its own is the largest and above a limit. Who
    is found is left out, as are the `slow` ones, and the rest asked again: what is last in all
    steps hides who is last otherwise. High limits are asked first: beside noise, what is late by
    far in few steps does not count. A unit that is ordinarily slower by up to `little` is last more
    often by noise: that is taken off.
    """
    usual = np.clip(np.nan_to_num(nan_median(excess, axis=0)), 0, little)
    left = np.where(slow, np.nan, excess - usual)
    moments = np.full(len(slow), NEVER)
    for limit in limits:
        while (found := _last_among(left, limit, q)).min(initial=NEVER) < NEVER:
            moments = np.minimum(moments, found)
            left[:, found < NEVER] = np.nan
    return moments


def _last_among(excess: Array, limit: float, q: float) -> Integers:
    """Return `last_too_often` of the units that have an excess.

    Alike, each would be last in one of as many of the steps that have a last one as there are
    units. Binomial test; Benjamini-Hochberg over the units.
    """
    steps, units = excess.shape
    moments = np.full(units, NEVER)
    filled = np.nan_to_num(excess, nan=-np.inf)
    late = np.flatnonzero(filled.max(axis=1, initial=-np.inf) > limit)
    known = int(np.isfinite(excess).any(axis=0).sum())
    if known < 2 or not len(late):
        return moments
    last = filled[late].argmax(axis=1)
    counts = np.bincount(last, minlength=units)
    p = at_least(counts, len(late), 1 / known)
    kept = np.array(false_discovery(p)) < q
    for unit in np.flatnonzero(kept & (counts >= _FEWEST_LAST)):
        so_far = np.cumsum(last == unit)
        p_then = at_least(so_far, np.arange(1, len(late) + 1), 1 / known)
        sure = (p_then < q / known) & (so_far >= _FEWEST_LAST)
        moments[unit] = late[int(sure.argmax())] if sure.any() else steps - 1
    return moments
