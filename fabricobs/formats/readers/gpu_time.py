"""Which step a kernel belongs to, and how a step's GPU time splits: intervals, not sums."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def steps_of_launches(
    steps: Sequence[tuple[float, float]],
    starts: ArrayLike,
    correlations: ArrayLike,
    launch_ids: ArrayLike,
    launch_times: ArrayLike,
) -> list[int]:
    """Return for each kernel the position of the step that launched it, -1 for none.

    `steps` are begins and ends in order. A kernel whose launch was not recorded counts by its
    own start.
    """
    times = np.array(starts, np.float64)
    ids, moments = np.array(launch_ids, np.int64), np.array(launch_times, np.float64)
    if len(ids) and len(times):
        order = np.argsort(ids, kind="stable")
        wanted = np.array(correlations, np.int64)
        found = np.minimum(np.searchsorted(ids[order], wanted), len(ids) - 1)
        launched = ids[order][found] == wanted
        times = np.where(launched, moments[order][found], times)
    if not steps:
        return [-1] * len(times)
    begins = np.array([begin for begin, _ in steps])
    ends = np.array([end for _, end in steps])
    position = np.searchsorted(begins, times, "right") - 1
    inside = (position >= 0) & (times < ends[np.maximum(position, 0)])
    result: list[int] = np.where(inside, position, -1).tolist()
    return result


class StepTimes:
    """GPU time of steps, in ms."""

    def __init__(
        self, starts: ArrayLike, durations: ArrayLike, is_nccl: ArrayLike, step_of: ArrayLike
    ) -> None:
        self._starts = np.array(starts, np.float64)
        self._ends = self._starts + np.array(durations, np.float64)
        self._nccl = np.array(is_nccl, np.bool_)
        self._step_of: NDArray[Any] = np.array(step_of, np.int64)

    def of(self, step: int) -> tuple[float | None, float | None, float | None]:
        """Return compute, communication that no computation hides, and all communication.

        All None for a step without kernels: the GPU was not recorded.
        """
        mine = self._step_of == step
        if not mine.any():
            return None, None, None
        compute = self._covered(mine & ~self._nccl)
        exposed = round(self._covered(mine) - compute, 6)
        return compute, exposed, self._covered(mine & self._nccl)

    def _covered(self, chosen: NDArray[np.bool_]) -> float:
        """Return how long at least one of the chosen kernels ran."""
        order = np.argsort(self._starts[chosen], kind="stable")
        starts, ends = self._starts[chosen][order], self._ends[chosen][order]
        if not len(starts):
            return 0.0
        reached = np.maximum.accumulate(ends)
        before = np.concatenate(([starts[0]], reached[:-1]))
        covered = np.sum(np.maximum(0.0, reached - np.maximum(starts, before)))
        return round(float(covered) / 1000, 6)
