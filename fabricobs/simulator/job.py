"""A training job on the cluster: which GPU is which rank, who talks to whom, and how much."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fabricobs.simulator.cluster import Cluster
from fabricobs.simulator.shapes import GPUS_PER_HOST, JobShape

Integers = NDArray[np.int64]
Scope = Literal["data", "tensor"]

_SINGLE, _HALF = 7, 9  # NCCL's numbers of float32 and bfloat16
_TENSOR_MESSAGE_BYTES = 4096 * 8192 * 2  # one sequence of 4,096 tokens, 8,192 wide, in bfloat16


@dataclass(frozen=True, slots=True)
class Collective:
    """One collective of every step on every communicator of a scope.

    `count` is in elements and `message_bytes` in bytes, both as NCCL counts them: of one rank's
    part for AllGather. `nic_bytes` is what each NIC sends to the next host of its ring.
    """

    name: str
    scope: Scope
    ranks: int
    count: int
    datatype: int
    message_bytes: int
    nic_bytes: int

    @property
    def algorithm_bytes(self) -> int:
        """Bytes the algorithm bandwidth is counted from."""
        return self.message_bytes * (self.ranks if self.name == "AllGather" else 1)

    @property
    def bus_factor(self) -> float:
        """Bus bandwidth over algorithm bandwidth."""
        return (2 if self.name == "AllReduce" else 1) * (self.ranks - 1) / self.ranks


@dataclass(frozen=True)
class Job:
    """Ranks are laid out as Megatron does: tensor fastest, then data, then pipeline.

    Rank r runs on GPU `first_gpu + r` of the cluster.
    """

    shape: JobShape
    index: int
    cluster: Cluster
    first_gpu: int
    ranks: int

    @property
    def replicas(self) -> int:
        """Number of data-parallel replicas of the model."""
        return self.ranks // self.shape.tensor // self.shape.pipeline

    @cached_property
    def gpus(self) -> Integers:
        """GPU (and NIC) index [R] of each rank."""
        return self.first_gpu + np.arange(self.ranks)

    @property
    def hosts(self) -> range:
        """Hosts of the job."""
        return range(
            self.first_gpu // GPUS_PER_HOST, (self.first_gpu + self.ranks) // GPUS_PER_HOST
        )

    @cached_property
    def tensor_index(self) -> Integers:
        """Place [R] of each rank in its tensor group."""
        return np.arange(self.ranks) % self.shape.tensor

    @cached_property
    def replica(self) -> Integers:
        """Replica [R] of each rank."""
        return np.arange(self.ranks) // self.shape.tensor % self.replicas

    @cached_property
    def stage(self) -> Integers:
        """Pipeline stage [R] of each rank."""
        return np.arange(self.ranks) // (self.shape.tensor * self.replicas)

    @cached_property
    def data_group(self) -> Integers:
        """Data-parallel communicator [R] of each rank, from 0."""
        return self.stage * self.shape.tensor + self.tensor_index

    @cached_property
    def tensor_group(self) -> Integers:
        """Tensor-parallel communicator [R] of each rank, from 0."""
        return np.arange(self.ranks) // self.shape.tensor

    def group(self, scope: Scope) -> Integers:
        """Communicator [R] of each rank within a scope."""
        return self.data_group if scope == "data" else self.tensor_group

    def members(self, scope: Scope, group: int) -> Integers:
        """Ranks of one communicator, in order."""
        return np.flatnonzero(self.group(scope) == group)

    @cached_property
    def channels(self) -> int:
        """Ranks of a data-parallel communicator on one host: its NICs there, a channel each."""
        first = self.members("data", 0)
        return int((first // GPUS_PER_HOST == first[0] // GPUS_PER_HOST).sum())

    @cached_property
    def next_rank(self) -> Integers:
        """Rank [R] to which each rank's NIC sends on its ring: same place on the next host."""
        following = np.empty(self.ranks, dtype=np.int64)
        for group in range(int(self.data_group.max()) + 1):
            members = self.members("data", group)
            following[members] = np.roll(members, -self.channels)
        return following

    @cached_property
    def collectives(self) -> tuple[Collective, ...]:
        """The collectives of a step, in order: tensor (one of many), gradients, new weights."""
        own = self.shape.parameters // (self.shape.tensor * self.shape.pipeline)
        ranks = self.replicas
        tensor = Collective(
            name="AllReduce",
            scope="tensor",
            ranks=self.shape.tensor,
            count=_TENSOR_MESSAGE_BYTES // 2,
            datatype=_HALF,
            message_bytes=_TENSOR_MESSAGE_BYTES,
            nic_bytes=0,
        )
        gradients = Collective(
            name="AllReduce",
            scope="data",
            ranks=ranks,
            count=own,
            datatype=_SINGLE,
            message_bytes=4 * own,
            nic_bytes=self._nic_bytes(2 * 4 * own),
        )
        weights = Collective(
            name="AllGather",
            scope="data",
            ranks=ranks,
            count=own // ranks,
            datatype=_HALF,
            message_bytes=2 * own // ranks,
            nic_bytes=self._nic_bytes(2 * own),
        )
        return (*([tensor] if self.shape.tensor > 1 else []), gradients, weights)

    @property
    def label(self) -> str:
        """Name of the job."""
        return self.shape.name

    def _nic_bytes(self, bus_bytes: int) -> int:
        if self.replicas == self.channels:
            return 0  # the whole communicator is inside one host
        return bus_bytes * (self.replicas - 1) // self.replicas // self.channels


def place_jobs(shapes: tuple[JobShape, ...], cluster: Cluster) -> tuple[Job, ...]:
    """Give each job its hosts, one after another; ValueError if that cannot be."""
    names = [shape.name for shape in shapes]
    if len(set(names)) < len(names):
        raise ValueError(f"jobs need names of their own: {', '.join(names)}")
    jobs: list[Job] = []
    used = 0
    for index, shape in enumerate(shapes):
        left = cluster.shape.hosts - used
        last = index == len(shapes) - 1
        hosts = left if last else round(cluster.shape.hosts * shape.share)
        ranks = hosts * GPUS_PER_HOST
        if not 2 <= hosts <= left:
            raise ValueError(
                f"job {shape.name}: needs 2 hosts or more, gets {hosts} of {left} left"
            )
        if ranks % (shape.tensor * shape.pipeline):
            raise ValueError(
                f"job {shape.name}: {ranks} ranks do not divide by tensor {shape.tensor} "
                f"times pipeline {shape.pipeline}"
            )
        jobs.append(Job(shape, index, cluster, used * GPUS_PER_HOST, ranks))
        used += hosts
    return tuple(jobs)
