"""The keys of a scenario: the shape of the cluster, of the jobs, of the faults, of collection.

Read from `scenarios/*.toml`; a wrong key or value is named with its file.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

GPUS_PER_HOST = 8
MOST_GPUS = 16_384  # a size typed with a few zeros too many would fill memory and disk


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ClusterShape(_Shape):
    """Hosts of eight GPUs with a NIC each, leaves, spines and the cables between them.

    `fat-tree` cables all NICs of a host to one leaf, `rail` every NIC to the leaf of its rail.
    `oversubscription` is the capacity of a leaf's NIC ports over that of its uplinks.
    `swapped_nics` are two NICs, by index, that are cabled to the leaf ports of each other.
    """

    gpus: int = Field(default=128, multiple_of=GPUS_PER_HOST, ge=16, le=MOST_GPUS)
    fabric: Literal["roce", "infiniband"] = "roce"
    wiring: Literal["fat-tree", "rail"] = "fat-tree"
    hosts_per_leaf: int = Field(default=4, ge=1)
    placement: Literal["scattered", "packed"] = "scattered"
    nic_gbps: Literal[100, 200, 400] = 400
    uplink_gbps: Literal[100, 200, 400, 800] = 800
    oversubscription: float = Field(default=1.0, gt=0)
    links_per_spine: int = Field(default=2, ge=1)
    swapped_nics: tuple[int, int] | None = None
    balancing: Literal["flowlet", "static"] = "flowlet"
    queue_pairs: int = Field(default=8, ge=1)

    @model_validator(mode="after")
    def _has_swapped_nics(self) -> "ClusterShape":
        if (
            self.swapped_nics
            and not 0 <= min(self.swapped_nics) < max(self.swapped_nics) < self.gpus
        ):
            raise ValueError(f"swapped_nics: give two of the {self.gpus} NICs, numbered from 0")
        return self

    @property
    def hosts(self) -> int:
        """Number of hosts."""
        return self.gpus // GPUS_PER_HOST


class JobShape(_Shape):
    """A training job: how it is cut over GPUs, how long it computes, how much it exchanges.

    `share` is its share of the cluster's hosts; the last job takes all that are left.
    `stage_weights` are the relative computing times of the pipeline's stages; `sequence_spread` is
    the spread (standard deviation over mean) of the replicas' work from step to step.
    """

    name: str = "pretrain"
    share: float = Field(default=1.0, gt=0, le=1)
    steps: int = Field(default=300, ge=20)
    tensor: int = Field(default=1, ge=1, le=GPUS_PER_HOST)
    pipeline: int = Field(default=1, ge=1)
    microbatches: int = Field(default=16, ge=1)
    parameters: int = Field(default=24_000_000_000, ge=1_000_000)
    compute_seconds: float = Field(default=1.9, gt=0)
    data_seconds: float = Field(default=0.012, gt=0)
    checkpoint_every: int = Field(default=100, ge=0)
    stage_weights: tuple[float, ...] = ()
    sequence_spread: float = Field(default=0.0, ge=0)

    @model_validator(mode="after")
    def _stages_have_weights(self) -> "JobShape":
        if self.stage_weights and len(self.stage_weights) != self.pipeline:
            raise ValueError(f"stage_weights: give {self.pipeline}, one a stage of the pipeline")
        return self


class FaultShape(_Shape):
    """A fault: `kind` is a name of `faults.FAULTS`; `at` and `until` are shares of the first job.

    `slowdown` is the step time aimed at over that without the fault; without it the fault has the
    size it has in life. `bursts` is the share of its time in which it acts, in spells of steps.
    """

    kind: str
    at: float = Field(default=0.4, ge=0, lt=1)
    until: float = Field(default=1.0, gt=0, le=1)
    slowdown: float | None = Field(default=None, gt=1)
    bursts: float = Field(default=1.0, gt=0, le=1)


class CollectionShape(_Shape):
    """How a site collects counters, with what goes wrong as it does so.

    Intervals in seconds; `missing` and `duplicated` are shares of snapshots; `clock_spread_seconds`
    is the standard deviation of the devices' clock offsets; `resets` counts devices whose counters
    are cleared or that restart during the run.
    """

    switch_interval: float = Field(default=15.0, ge=0.5, le=60)
    host_interval: float = Field(default=30.0, ge=0.5, le=120)
    jitter: float = Field(default=0.03, ge=0, le=0.3)
    missing: float = Field(default=0.0, ge=0, lt=0.5)
    duplicated: float = Field(default=0.0, ge=0, lt=0.5)
    clock_spread_seconds: float = Field(default=0.0, ge=0)
    resets: int = Field(default=0, ge=0)
    near_wrap: bool = False
    old_errors: bool = True


class ScenarioShape(_Shape):
    """One practice case: what is built, what runs, what goes wrong, and what it teaches."""

    title: str
    teaches: str
    cluster: ClusterShape = ClusterShape()
    jobs: tuple[JobShape, ...] = (JobShape(),)
    faults: tuple[FaultShape, ...] = ()
    collection: CollectionShape = CollectionShape()
    storage_gbps: float = Field(default=0.0, ge=0)
    benign: tuple[str, ...] = ()
