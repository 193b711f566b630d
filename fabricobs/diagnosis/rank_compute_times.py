"""How long each rank works in each step before it calls the collective: steps by ranks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.findings import Entity
from fabricobs.diagnosis.job import WARM_UP_STEPS
from fabricobs.diagnosis.rank_groups import SlowerGroup, slower_group
from fabricobs.diagnosis.slowdowns import PAUSE
from fabricobs.diagnosis.statistics import Array, Integers, nan_median, noise_of

Moments = NDArray[np.datetime64]

_FEWEST_PEERS = 4
# So many of a stage's ranks that work longer move its median.
_MANY = 1 / 3
# Share of a step by which its last collective is noted late at most, less what it is early.
_NOTED_LATE = 0.2


@dataclass(frozen=True)
class RankTimes:
    """Times of one job, warm-up left out: S steps by R ranks, in ms, NaN where nothing tells.

    `own_ms` [S, R] is computation and loading: what a rank does before it calls; `comm_ms` [S, R]
    is exposed communication, waiting included. `stages` [R] numbers groups of ranks with the same
    work. `pids` [R] name ranks whose numbers no log tells: `ranks` then counts their processes by
    host. `measured` is False where `own_ms` is derived from collectives and only its differences
    between ranks mean anything: shares are of the step then. `by_rest` is True where it is the
    step less its communication, of which no record tells what it was. `slower` are ranks that work
    longer than the others, too many for a median of all: the others are then the peers.
    `staged_by` says what tells the stages: a log that names `stages`, or that the `last_ranks` work
    longer in all steps, or `moved_ranks` do: in another run of the job, too, on other hosts.
    """

    job: str | None
    steps: Integers
    ends: Moments
    step_ms: Array
    ranks: Integers
    hosts: tuple[str | None, ...]
    stages: Integers
    own_ms: Array
    comm_ms: Array
    data_ms: Array
    pids: tuple[int | None, ...]
    measured: bool = True
    by_rest: bool = False
    slower: tuple[SlowerGroup, ...] = ()
    staged_by: Literal["stages", "last_ranks", "moved_ranks"] = "stages"

    def entity(self, column: int) -> Entity:
        """Return a rank by its number, or by its process where no log tells the number."""
        pid, host = self.pids[column], self.hosts[column]
        rank = int(self.ranks[column]) if pid is None else None
        return Entity("rank", job=self.job, rank=rank, host=host, pid=pid)

    @cached_property
    def by_host(self) -> dict[str | None, Integers]:
        """The columns of each host's ranks, of those without a known host too."""
        found: dict[str | None, list[int]] = {}
        for column, host in enumerate(self.hosts):
            found.setdefault(host, []).append(column)
        return {host: np.array(columns, dtype=np.int64) for host, columns in found.items()}

    def are_last_part(self, columns: Integers) -> bool:
        """Say whether ranks are the last of equal parts of the job, as a last stage is."""
        count, size = len(self.ranks), len(columns)
        return np.array_equal(columns, np.arange(count - size, count)) and count % size == 0

    @cached_property
    def peer_ms(self) -> Array:
        """Median of a rank's stage in each step, [S, R]: of the faster where many are slower."""
        peers = np.full_like(self.own_ms, np.nan)
        slower = np.isin(np.arange(len(self.ranks)), [c for g in self.slower for c in g.columns])
        for stage in np.unique(self.stages):
            members = self.stages == stage
            if members.sum() >= _FEWEST_PEERS:
                usual = nan_median(self.own_ms[:, members & ~slower], axis=1)
                peers[:, members] = usual[:, None]
        return peers

    @cached_property
    def excess(self) -> Array:
        """Share by which a rank's own time exceeds its stage's median, [S, R].

        Of the step's usual time where only collectives tell: a rank is that much later at them.
        """
        if not self.measured:
            return np.asarray((self.own_ms - self.peer_ms) / nan_median(self.step_ms, axis=0))
        return np.asarray(self.own_ms / self.peer_ms - 1)

    @cached_property
    def noise(self) -> float:
        """By how much single steps of the ranks vary around their peers', as `excess`."""
        return noise_of(self.excess)

    @cached_property
    def spacing(self) -> int:
        """Steps of the job from one step here to the next: records may leave out some."""
        return max(int(np.median(np.diff(np.unique(self.steps)))), 1) if len(self.steps) > 1 else 1

    @cached_property
    def steady(self) -> NDArray[np.bool_]:
        """Steps [S] that no pause stretches, nor one of a rank that the mean of a line hides.

        A step without a time shows neither.
        """
        later = nan_max(self.own_ms - self.peer_ms)
        paused = self.step_ms > PAUSE * nan_median(self.step_ms, axis=0)
        return ~paused & ~(later > self.step_ms)

    def between(self, first: int, last: int) -> NDArray[np.bool_]:
        """Steady steps [S] by number, both ends included."""
        return np.asarray((self.steps >= first) & (self.steps <= last) & self.steady)

    def lost_share(
        self, culprits: Integers, first: int, last: int, priced: Sequence[int] = ()
    ) -> float:
        """Return the throughput, 0 to 1, that peers' times would win back between two steps."""
        won = self.won_back_ms(culprits, first, last, priced)
        total = float(np.nansum(self.step_ms[self.between(first, last)]))
        return max(float(np.nansum(won)) / total, 0.0) if total else 0.0

    def won_back_ms(
        self, culprits: Integers, first: int, last: int, priced: Sequence[int] = ()
    ) -> Array:
        """Return by how much each step between two would be shorter by peers' times.

        Each step ends when the slowest rank has worked: replace the `culprits` (columns) by their
        peers' median and see what the step would take (what-if of arXiv 2505.05713). Those already
        `priced` are replaced before, so that nobody hides behind another slow rank.
        """
        during = self.between(first, last)
        own, peer = self.own_ms[during], self.peer_ms[during]
        if not self.measured:
            own, peer = own - peer, np.zeros_like(peer)
        own = own.copy()
        own[:, priced] = np.fmin(own[:, priced], peer[:, priced])
        without = own.copy()
        without[:, culprits] = np.fmin(own[:, culprits], peer[:, culprits])
        won: Array = nan_max(own) - nan_max(without)
        return won


@lru_cache(maxsize=1)
def rank_compute_times(evidence: Evidence) -> tuple[RankTimes, ...]:
    """Return the times of every job: its step records, or collectives if those tell of more ranks.

    Several methods ask for the same store's: the last answer is kept.
    """
    rows = evidence.frame("rank_steps")
    groups = evidence.frame("rank_groups")
    recorded = [_of_job(_staged(job, groups), measured=True) for job in _jobs(rows)]
    by_job = {times.job: times for times in recorded if times is not None}
    for job in _jobs(evidence.frame("rank_calls")):
        times = _of_calls(job)
        known = by_job.get(job["job"][0])
        if times is not None and (known is None or len(known.ranks) < len(times.ranks)):
            by_job[times.job] = _numbered(times, job, evidence)
    return tuple(by_job.values())


def _numbered(times: RankTimes, rows: pl.DataFrame, evidence: Evidence) -> RankTimes:
    """Give steps of the rhythm the numbers and times of the trainer's lines around them.

    A step's last collective ends a little before the step, and is noted a little after.
    """
    steps = evidence.frame("step_times").filter(
        pl.col("job").eq_missing(pl.lit(times.job)), ~pl.col("source").str.starts_with("collective")
    )
    steps = steps.drop_nulls(["ts", "step_time_ms"]).sort("ts")
    if steps.is_empty() or np.isnat(times.ends).any() or not rows["by_rhythm"].all():
        return times
    ends = steps["ts"].to_numpy().astype("datetime64[us]")
    numbers = steps["step"].to_numpy()
    at = np.minimum(np.searchsorted(ends, times.ends), len(ends) - 1)
    between = np.interp(times.ends.astype(np.int64), ends.astype(np.int64), numbers)
    return replace(
        times,
        steps=np.round(between + _NOTED_LATE).astype(np.int64),
        step_ms=steps["step_time_ms"].to_numpy()[at],
    )


def _jobs(rows: pl.DataFrame) -> list[pl.DataFrame]:
    return rows.drop_nulls("own_ms").partition_by("job", maintain_order=True)


def _staged(rows: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
    """Number the stages by the job's groups where its records tell of one stage only.

    Ranks that sum gradients together, or share tensors, are of one stage: what such groups connect.
    """
    own = groups.filter(pl.col("job").eq_missing(pl.lit(rows["job"][0])))
    if rows["stage"].n_unique() > 1 or own.is_empty():
        return rows
    ranks = rows["rank"].unique().sort()
    own = own.filter(pl.col("rank").is_in(ranks.implode()))
    at_rank = ranks.search_sorted(own["rank"]).to_numpy()
    at_group = own["comm_id"].rank("dense").to_numpy() - 1
    stages = _connected(at_rank, at_group, len(ranks))
    if np.bincount(stages).min() < _FEWEST_PEERS:
        return rows
    of_rank = pl.DataFrame({"rank": ranks, "stage": stages})
    return rows.drop("stage").join(of_rank, on="rank", how="left", maintain_order="left")


def _connected(ranks: Integers, groups: Integers, count: int) -> Integers:
    """Number the parts of `count` ranks that groups connect, in the order of their first ranks."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    nodes = count + int(groups.max()) + 1
    links = coo_matrix((np.ones(len(ranks)), (ranks, groups + count)), shape=(nodes, nodes))
    _, labels = connected_components(links, directed=False)
    _, first, parts = np.unique(labels[:count], return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[parts])


def _of_calls(rows: pl.DataFrame) -> RankTimes | None:
    """Return how late ranks are at their collectives: between hosts, and within them if told."""
    kinds = {
        within: _of_job(own, measured=False)
        for (within,), own in rows.partition_by("within_host", as_dict=True).items()
    }
    between, within = kinds.get(False), kinds.get(True)
    if between is None or within is None:
        return between or within
    if np.isnan(between.peer_ms).all():
        return within
    if not np.isin(within.ranks, between.ranks).all():
        # Hosts that no group of several holds: what is left where hosts are dealt to groups.
        return max(within, between, key=lambda times: len(times.ranks))
    return _of_both(between, within)


def _of_both(between: RankTimes, within: RankTimes) -> RankTimes:
    """Tell late hosts from late ranks: all mates of a late rank are late between hosts with it.

    What a host is late beyond its last rank within, all its ranks are. Ranks that any groups
    connect are peers.
    """
    steps, at_step, of_step = np.intersect1d(between.steps, within.steps, return_indices=True)
    at_rank = np.searchsorted(between.ranks, within.ranks)
    alone = np.zeros((len(steps), len(between.ranks)))
    alone[:, at_rank] = np.nan_to_num((within.own_ms - within.peer_ms)[of_step])
    together = (between.own_ms - between.peer_ms)[at_step]
    late = alone.copy()
    for mates in between.by_host.values():
        whole = nan_median(together[:, mates], axis=1)
        last = alone[:, mates].max(axis=1)
        late[:, mates] += (whole - np.clip(last, 0, np.fmax(whole, 0)))[:, None]
    columns = np.arange(len(between.ranks))
    links = np.concatenate([columns, at_rank])
    groups = np.concatenate([between.stages, within.stages + between.stages.max() + 1])
    step_ms = between.step_ms[at_step]
    own = nan_median(between.own_ms[at_step], axis=1)[:, None] + late
    both = replace(
        between,
        steps=steps,
        ends=between.ends[at_step],
        step_ms=step_ms,
        stages=_connected(links, groups, len(columns)),
        own_ms=own,
        comm_ms=step_ms[:, None] - own,
        data_ms=between.data_ms[at_step],
        slower=(),
    )
    return _grouped(both)


def _of_job(rows: pl.DataFrame, *, measured: bool) -> RankTimes | None:
    """Lay one job's rows out as matrices; None if it has no steps beyond the warm-up."""
    rows = rows.filter(pl.col("step") >= pl.col("step").min() + WARM_UP_STEPS)
    if rows.is_empty():
        return None
    steps, at_step = np.unique(rows["step"].to_numpy(), return_inverse=True)
    ranks, at_rank = np.unique(rows["rank"].to_numpy(), return_inverse=True)

    def matrix(column: str) -> Array:
        values = np.full((len(steps), len(ranks)), np.nan)
        values[at_step, at_rank] = rows[column].cast(pl.Float64).to_numpy()
        return values

    by_rank = rows.group_by("rank").agg(
        pl.col("host", "pid").drop_nulls().last(), pl.col("stage").last()
    )
    by_rank = by_rank.sort("rank")
    # By the median clock, as `step_times`: hosts' clocks may be apart.
    by_step = rows.group_by("step").agg(
        pl.col("ts").quantile(0.5, "lower"), pl.col("step_time_ms").median()
    )
    by_step = by_step.sort("step")
    times = RankTimes(
        job=rows["job"][0],
        steps=steps.astype(np.int64),
        ends=by_step["ts"].to_numpy().astype("datetime64[us]"),
        step_ms=by_step["step_time_ms"].cast(pl.Float64).to_numpy().astype(np.float64),
        ranks=ranks.astype(np.int64),
        hosts=tuple(by_rank["host"].to_list()),
        stages=by_rank["stage"].to_numpy().astype(np.int64),
        own_ms=matrix("own_ms"),
        comm_ms=matrix("comm_ms"),
        data_ms=matrix("data_ms"),
        pids=tuple(by_rank["pid"].to_list()),
        measured=measured,
        by_rest=measured and bool(rows["by_rest"].any()),
    )
    moved = rows.filter("moved")["rank"].unique().to_list() if measured else []
    return _grouped(times, moved)


def _grouped(times: RankTimes, moved: Sequence[int] = ()) -> RankTimes:
    """Find ranks that work longer, many of a stage; if the last in all steps, they are a stage.

    So are those that work longer in all steps on whatever host.

    A pipeline's last stage has the head and the loss: the what-if analysis (arXiv 2505.05713) finds
    uneven stages to be the most frequent cause of stragglers.
    """
    scale = None if times.measured else float(nan_median(times.step_ms, axis=0))
    stages = [np.flatnonzero(times.stages == stage) for stage in np.unique(times.stages)]
    found = [
        (members, group)
        for members in stages
        if (group := slower_group(times.own_ms, members, scale)) is not None
    ]
    throughout = found[0][1].throughout if len(stages) == 1 and found else np.array([], dtype=int)
    hosts = {times.hosts[column] for column in throughout}
    has_moved = bool(len(throughout) and np.isin(times.ranks[throughout], moved).all())
    is_last = len(hosts) > 1 and times.are_last_part(throughout)
    if times.measured and (is_last or has_moved):
        stage = np.isin(np.arange(len(times.ranks)), throughout).astype(np.int64)
        return replace(times, stages=stage, staged_by="moved_ranks" if has_moved else "last_ranks")
    many = (g for members, g in found if len(g.columns) >= _MANY * len(members))
    return replace(times, slower=tuple(many))


def nan_max(values: Array) -> Array:
    """Largest of each row, NaN left out; NaN where nothing is there, without a warning."""
    if not values.shape[1]:
        return np.full(len(values), np.nan)
    return np.asarray(np.fmax.reduce(values, axis=1))
