"""What is known of the GPUs of slow ranks: their numbers, clocks beside their peers', messages."""

from collections.abc import Collection, Sequence
from datetime import datetime

import polars as pl

from fabricobs.diagnosis.cables import CLOCK_SLACK
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.findings import Entity
from fabricobs.diagnosis.model import Model


def gpus_of(culprits: Sequence[Entity], evidence: Evidence) -> dict[str, str]:
    """Return `of_gpu`, nvidia-smi's option for the GPU of the one culprit and one to compare with.

    `own_gpu` and `sibling` say which is which, in words of any GPU of the host where none is known.
    """
    if all(each.type == "host" for each in culprits):
        beside_it = "those of a host that is not slow"
        return {"of_gpu": "", "own_gpu": "its GPUs", "sibling": beside_it}
    told = {"of_gpu": "", "own_gpu": "it", "sibling": "another GPU of the host"}
    if len(culprits) != 1 or culprits[0].rank is None:
        return told
    gpus = evidence.frame("rank_gpus").filter(pl.col("job").eq_missing(pl.lit(culprits[0].job)))
    own = gpus.filter(pl.col("rank") == culprits[0].rank)
    if own.is_empty():
        return told
    gpu, host = int(own["gpu"][0]), culprits[0].host
    others = gpus.filter((pl.col("host") == host) & (pl.col("gpu") != gpu)).sort("gpu")
    if others.is_empty():
        one = {"of_gpu": f" -i {gpu}", "own_gpu": f"GPU {gpu}", "sibling": "one of another host"}
        return told | one
    beside = others.sort((pl.col("gpu") - gpu).abs()).row(0, named=True)
    return {
        "of_gpu": f" -i {gpu},{beside['gpu']}",
        "own_gpu": f"GPU {gpu} (rank {culprits[0].rank})",
        "sibling": f"GPU {beside['gpu']} (rank {beside['rank']}) of the host",
    }


def clocks_of(
    job: str | None,
    ranks: Collection[int],
    begin: datetime | None,
    end: datetime | None,
    model: Model,
    evidence: Evidence,
) -> dict[str, float]:
    """Return `clock` of the busy GPUs of slow ranks meanwhile, `peer_clock` of the others', MHz.

    Nothing where one is not known, or the slow ranks' is lower.
    """
    if begin is None or end is None:
        return {}
    gpus = evidence.frame("busy_gpus").filter(
        pl.col("ts").is_between(begin, end), pl.col("job").eq_missing(pl.lit(job))
    )
    slow = pl.col("rank").is_in(list(ranks))
    clock, peers = (gpus.filter(part)["clock"].median() for part in (slow, ~slow))
    if not isinstance(clock, float) or not isinstance(peers, float):
        return {}
    is_lower = clock < (1 - model.limit("clock")) * peers
    return {} if is_lower else {"clock": clock, "peer_clock": peers}


def kernel_is_silent(
    hosts: Collection[str | None],
    begin: datetime | None,
    end: datetime | None,
    evidence: Evidence,
) -> bool:
    """Say whether the kernel logs of all these hosts are there, and tell of no hardware then."""
    messages = evidence.frame("kernel_messages").filter(pl.col("host").is_in(list(hosts)))
    if begin is None or end is None or set(messages["host"]) != {*hosts}:
        return False
    times = pl.col("ts").is_between(begin - CLOCK_SLACK, end + CLOCK_SLACK)
    return messages.filter(times).is_empty()
