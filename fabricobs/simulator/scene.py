"""Where a fault strikes and what it is: the scene of a scenario, and the fault put into it."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fabricobs.simulator.cluster import Cluster, Nic
from fabricobs.simulator.effects import Effect, Floats
from fabricobs.simulator.facts import (
    Fact,
)
from fabricobs.simulator.job import Job
from fabricobs.simulator.network import (
    DATA_PACKET_BYTES,
    LOST_PACKET_SECONDS,
    NIC_EFFICIENCY,
    Network,
    bytes_per_second,
)
from fabricobs.simulator.randomness import Random
from fabricobs.simulator.run import OPTIMIZER_SECONDS, OTHER_SECONDS
from fabricobs.simulator.shapes import FaultShape

Entity = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Scene:
    """Where a fault may strike: the cluster, the job it is aimed at, and that job undisturbed."""

    cluster: Cluster
    job: Job
    network: Network
    shape: FaultShape
    random: Random

    @property
    def transfer_seconds(self) -> float:
        """Time a step transfers data."""
        sent = sum(c.nic_bytes for c in self.job.collectives)
        return float(sent * self.network.pace.max())

    @property
    def step_seconds(self) -> float:
        """Step time without noise."""
        job = self.job.shape
        filling = 1 + (job.pipeline - 1) / job.microbatches
        computing = job.compute_seconds * filling + job.data_seconds
        return computing + OPTIMIZER_SECONDS + OTHER_SECONDS + self.transfer_seconds

    def compute_factor(self, usual: float) -> float:
        """Factor on computing time that gives the slowdown aimed at."""
        excess = (self.shape.slowdown or usual) - 1
        return 1 + excess * self.step_seconds / self.job.shape.compute_seconds

    def transfer_factor(self, usual: float) -> float:
        """Factor on transfer time that gives the slowdown aimed at."""
        return 1 + ((self.shape.slowdown or usual) - 1) * self.step_seconds / self.transfer_seconds

    def nic_rate(self, natural: float) -> float:
        """Factor on a NIC's rate: the natural one, or what gives the slowdown aimed at."""
        if self.shape.slowdown is None:
            return natural
        undisturbed = 1 / bytes_per_second(self.cluster.shape.nic_gbps, NIC_EFFICIENCY)
        return float(undisturbed / (self.network.pace.max() * self.transfer_factor(1)))

    def lost_share(self, usual: float) -> float:
        """Share of lost packets on one cable that gives the slowdown aimed at."""
        packet = DATA_PACKET_BYTES / bytes_per_second(self.cluster.shape.nic_gbps, NIC_EFFICIENCY)
        pairs = self.cluster.shape.queue_pairs
        return (self.transfer_factor(usual) - 1) * packet * pairs / LOST_PACKET_SECONDS

    def any_nic(self) -> Nic:
        """A NIC of the job, by chance."""
        return self.cluster.nics[int(self.random.choice(self.job.gpus))]

    def any_host(self) -> int:
        """A host of the job, by chance."""
        return int(self.random.choice(np.array(self.job.hosts)))

    def on_nics(self, nics: list[int], value: float, otherwise: float) -> Floats:
        """Values [N]: one for some NICs, another for the rest."""
        values = np.full(len(self.cluster.nics), otherwise, dtype=float)
        values[nics] = value
        return values

    def nics_of(self, host: int) -> list[int]:
        """NIC indices of a host."""
        return [nic.index for nic in self.cluster.nics_of_host(host)]

    def spells(self) -> np.ndarray:
        """Steps [S] in which the fault acts: all of its time, or bursts of 5 to 15 steps."""
        steps = self.job.shape.steps
        begin, end = round(self.shape.at * steps), round(self.shape.until * steps)
        active = np.zeros(steps, dtype=bool)
        if self.shape.bursts == 1:
            active[begin:end] = True
            return active
        now = begin
        while now < end:
            length = int(self.random.randint(5, 16))
            active[now : min(now + length, end)] = True
            now += round(length / self.shape.bursts)
        return active


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault in place. `kind` is the finding's; `relief` is what its absence would change.

    `relief` acts on the cluster, `without` on the job's shape; both only in the twin that tells
    what the fault costs. `acts` [S] marks the steps in which it does.
    """

    name: str
    kind: str
    culprits: tuple[Entity, ...]
    effect: Effect
    acts: np.ndarray
    victims: tuple[Entity, ...] = ()
    facts: tuple[Fact, ...] = ()
    relief: Effect | None = None
    without: dict[str, Any] = field(default_factory=dict)


def rank_entity(scene: Scene, gpu: int) -> Entity:
    """A rank of the job by its GPU."""
    nic = scene.cluster.nics[gpu]
    return {"type": "rank", "rank": gpu - scene.job.first_gpu, "host": nic.host_name}


def host_entity(scene: Scene, host: int) -> Entity:
    """A host."""
    return {"type": "host", "host": scene.cluster.host_name(host)}


def job_entity(scene: Scene) -> Entity:
    """The job."""
    return {"type": "job", "job": scene.job.label}


def switch_entity(scene: Scene, leaf: int) -> Entity:
    """A leaf."""
    return {"type": "switch", "switch": scene.cluster.leaf_name(leaf)}


def nic_entity(nic: Nic) -> Entity:
    """A NIC of a host."""
    return {"type": "nic", "host": nic.host_name, "nic": nic.device}


def port_entity(scene: Scene, nic: Nic) -> Entity:
    """The leaf port a NIC is cabled to."""
    cluster = scene.cluster
    port = str(cluster.nic_port_number(nic)) if cluster.infiniband else cluster.nic_port(nic)
    return {"type": "port", "switch": cluster.leaf_name(nic.leaf), "port": port}


def uplink_port(cluster: Cluster, index: int) -> str:
    """The name of an uplink's port at its leaf."""
    uplink = cluster.uplinks[index]
    if cluster.infiniband:
        return str(cluster.uplink_port_number(uplink))
    return cluster.uplink_port(uplink)


def hosts_of_leaf(scene: Scene, leaf: int) -> list[Entity]:
    """The hosts of the job that have a NIC at a leaf."""
    hosts = sorted({nic.host for nic in scene.cluster.nics_of_leaf(leaf)} & set(scene.job.hosts))
    return [host_entity(scene, host) for host in hosts]


def fault_of(
    scene: Scene,
    kind: str,
    culprits: list[Entity],
    effect: Effect,
    *,
    victims: list[Entity] | None = None,
    facts: list[Any] | None = None,
    relief: Effect | None = None,
    acts: np.ndarray | None = None,
) -> Fault:
    """Put a fault in place: it acts in the spells of the scenario unless `acts` says when."""
    return Fault(
        name=scene.shape.kind,
        kind=kind,
        culprits=tuple(culprits),
        effect=effect,
        acts=scene.spells() if acts is None else acts,
        victims=tuple(victims or ()),
        facts=tuple(facts or ()),
        relief=relief,
    )
