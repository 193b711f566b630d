"""Single steps that are longer than those around them: a steady pace hides what they cost."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from fabricobs.diagnosis.job import StepTimeTrend
from fabricobs.diagnosis.slowdowns import PAUSE

# A judgement: sound steps vary by up to 5 %, so that one in a thousand is 15 % longer by chance.
_LONGER = 0.15
# In such a step one rank alone computes so much longer than every other, as a share of the median.
_ALONE = 0.1
_LEAST_SHARE = 0.02  # of the time: as for every loss
_MOSTLY = 0.5  # of them, and of the ranks of a turn


@dataclass(frozen=True, slots=True)
class LongSteps:
    """How many of `steps` are longer than their pace, and what of the time that takes.

    In `of_one_rank` of them one rank alone computed longer, `ranks` different ones of `of_ranks`;
    None where no records of ranks tell.
    """

    number: int
    steps: int
    share: float
    of_one_rank: int | None
    ranks: int
    of_ranks: int

    @property
    def words(self) -> str:
        """Return it as part of a sentence."""
        takes = f"{self.number:,} single steps took {_LONGER:.0%} longer and more"
        told = f"{takes}, {self.share:.1%} of the time in all"
        if self.of_one_rank is None or self.of_one_rank <= _MOSTLY * self.number:
            return told
        most = min(self.of_one_rank, self.of_ranks)
        turns = ", and not always the same one" if self.ranks > _MOSTLY * most else ""
        count = "all" if self.of_one_rank == self.number else f"{self.of_one_rank:,}"
        return f"{told}; in {count} of them one rank alone computed longer{turns}"


def long_steps(pace: StepTimeTrend, rank_steps: pl.DataFrame) -> LongSteps | None:
    """Return the long steps of a job; None where they take too little of its time to matter.

    Pauses of the whole job, as for checkpoints, are none of them. `rank_steps` has `own_ms` of each
    rank and step, the time in ms that it did not wait for others.
    """
    steps = _usual_times(pace)
    longer = steps.filter(pl.col("time") > (1 + _LONGER) * pl.col("usual"))
    own = rank_steps.filter(pl.col("job").eq_missing(pl.lit(pace.job)))
    alone = _alone(own, longer["step"].to_list())
    is_pause = pl.col("time") > PAUSE * pl.col("usual")
    longer = longer.filter(~is_pause | pl.col("step").is_in(alone["step"].to_list()))
    alone = alone.filter(pl.col("step").is_in(longer["step"].to_list()))
    total = float(steps["time"].sum())
    share = float((longer["time"] - longer["usual"]).sum()) / total if total else 0.0
    if share < _LEAST_SHARE:
        return None
    known = None if own.is_empty() else len(alone)
    ranks = alone["rank"].n_unique(), own["rank"].n_unique()
    return LongSteps(len(longer), len(steps), share, known, *ranks)


def _usual_times(pace: StepTimeTrend) -> pl.DataFrame:
    """Return the time of each step after the warm-up with that of its pace."""
    usual = pl.DataFrame(
        {
            "step": [segment.first_step for segment in pace.segments],
            "usual": [segment.step_time_ms for segment in pace.segments],
        },
        schema={"step": pl.Int64, "usual": pl.Float64},
    )
    times = pace.steps.select(pl.col("step").cast(pl.Int64), pl.col("step_time_ms").alias("time"))
    timed = times.filter(pl.col("time") > 0).sort("step")
    return timed.join_asof(usual.sort("step"), on="step").drop_nulls()


def _alone(rank_steps: pl.DataFrame, steps: Sequence[int]) -> pl.DataFrame:
    """Return the steps in which one rank alone computed longer, with that rank."""
    own = rank_steps.filter(pl.col("step").is_in(steps)).drop_nulls("own_ms")
    ranked = own.group_by("step").agg(
        pl.col("rank").sort_by("own_ms").last(),
        pl.col("own_ms").median().alias("median"),
        pl.col("own_ms").max().alias("most"),
        pl.col("own_ms").top_k(2).min().alias("second"),
        pl.len().alias("ranks"),
    )
    apart = pl.col("most") - pl.col("second") > _ALONE * pl.col("median")
    return ranked.filter((pl.col("ranks") > 1) & apart).select("step", "rank")
