"""What if a rank, a host, a NIC or a link were like its peers: the throughput that would bring.

Ranks and hosts by replay: a step ends when the slowest rank has worked, so replace one's own time
by its stage's median and see what is left (arXiv 2505.05713). Whatever else a finding names, by its
measured cost.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from fabricobs.diagnosis.findings import Entity, Finding, WhatIf
from fabricobs.diagnosis.rank_compute_times import RankTimes
from fabricobs.diagnosis.statistics import Array, Integers

# Below a hundredth of the step, what a rank adds is the chance of who comes last.
_LEAST_SHARE = 0.01
_ONE_RANK = 0.9  # of what its whole host would save: the rank is the matter, not the host
_MOST = 10


def what_if(times: Sequence[RankTimes], findings: Iterable[Finding]) -> tuple[WhatIf, ...]:
    """Return what would speed the job up by a hundredth and more, the most first."""
    told = list(_of_findings(findings))
    named = {entity.host for each in told if (entity := each.entity).host is not None}
    told += [each for job in times for each in _of_job(job) if each.entity.host not in named]
    told = [each for each in told if each.saved_share >= _LEAST_SHARE]
    return tuple(sorted(told, key=lambda each: -each.saved_share)[:_MOST])


def _of_findings(findings: Iterable[Finding]) -> Iterator[WhatIf]:
    for finding in findings:
        # Of a job that stands still nothing can be multiplied.
        moves = finding.loss_share is not None and 0 < finding.loss_share < 1
        # Nor is it known what one of several causes takes of a loss that they share.
        moves = moves and not finding.loss_shared_with
        is_part = bool(finding.entities) and finding.entities[0].type != "job"
        if is_part and moves and finding.severity != "info":
            first, last = finding.start_step, finding.end_step
            over = f"steps {first:,} to {last:,}" if first is not None and last else "its time"
            parts = len(finding.entities)
            whose = (
                "its measured cost" if parts == 1 else f"the measured cost of all {parts:,} parts"
            )
            against = f"{whose}, finding {finding.id}"
            yield WhatIf(finding.entities[0], finding.loss_share or 0.0, over, against)


def _of_job(times: RankTimes) -> Iterator[WhatIf]:
    """Yield one entry a host: its slowest rank, or all of it where one rank is not the matter."""
    by_rank = _saved_shares(times, np.arange(len(times.ranks)))
    names = [host or f"rank {rank}" for rank, host in zip(times.ranks, times.hosts, strict=True)]
    hosts, of_rank = np.unique(names, return_inverse=True)
    by_host = _saved_shares(times, of_rank)
    for number, share in enumerate(by_host):
        members = np.flatnonzero(of_rank == number)
        worst = int(members[np.argmax(by_rank[members])])
        if by_rank[worst] >= _ONE_RANK * share or times.hosts[worst] is None:
            yield _replayed(times.entity(worst), by_rank[worst])
        else:
            yield _replayed(Entity("host", job=times.job, host=str(hosts[number])), share)


def _replayed(entity: Entity, share: float) -> WhatIf:
    return WhatIf(entity, float(share), "all steps", "the median of its stage")


def _saved_shares(times: RankTimes, groups: Integers) -> Array:
    """Return, by group of ranks, the share of all steady steps that its peers' times would save."""
    own, peer = times.own_ms[times.steady], times.peer_ms[times.steady]
    if not times.measured:
        own, peer = own - peer, np.zeros_like(peer)
    own = np.where(np.isnan(own), -np.inf, own)
    count = int(groups.max()) + 1
    slowest, replaced = (np.full((len(own), count), -np.inf) for _ in range(2))
    for rank, group in enumerate(groups):
        np.maximum(slowest[:, group], own[:, rank], out=slowest[:, group])
        like_peers = np.fmin(own[:, rank], peer[:, rank])
        np.maximum(replaced[:, group], like_peers, out=replaced[:, group])
    total = float(np.nansum(times.step_ms[times.steady]))
    if count < 2 or not len(own) or not total:
        return np.zeros(count)
    # Only the group that holds a step up can shorten it, at most to the second slowest.
    last = np.argmax(slowest, axis=1)
    at = np.arange(len(own))
    second = np.partition(slowest, -2, axis=1)[:, -2]
    rest = np.maximum(second, replaced[at, last])
    # Steps of which no rank's time, or that of one group alone, is known tell nothing.
    known = np.isfinite(slowest[at, last]) & np.isfinite(rest)
    saved = np.zeros(len(own))
    saved[known] = np.maximum(slowest[at, last][known] - rest[known], 0.0)
    return np.bincount(last, weights=saved, minlength=count) / total
