"""The faults a scenario can have: where each strikes, what it does, and what the truth is then."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fabricobs.simulate.cluster import Cluster, Nic
from fabricobs.simulate.effects import Effect, Floats, neutral
from fabricobs.simulate.facts import (
    BadCable,
    DeadUplink,
    EcnOff,
    Fact,
    ForeignNics,
    GpuDirectOff,
    GpuError,
    Hang,
    LinkFlap,
    LossyClass,
    PauseStorm,
    SlowPort,
    SocketTransport,
)
from fabricobs.simulate.job import Job
from fabricobs.simulate.network import (
    DATA_PACKET_BYTES,
    LOST_PACKET_SECONDS,
    NIC_EFFICIENCY,
    Network,
    bytes_per_second,
)
from fabricobs.simulate.randomness import Random
from fabricobs.simulate.run import OPTIMIZER_SECONDS, OTHER_SECONDS
from fabricobs.simulate.shapes import FaultShape

Entity = dict[str, Any]

POLARISED_SHARE = 0.97  # of the flows of the odd uplinks that a hash without its lowest bit moves
WITHOUT_GPU_DIRECT = 0.5  # of a NIC's rate: 40 to 60 % are lost (METHODS 9)
ACROSS_NUMA_NODES = 0.7  # of a NIC's rate: 20 to 40 % are lost (METHODS 9)
OVER_SOCKETS = 0.2  # of a NIC's rate: TCP on a host without tuning
STORM_PAUSE_SHARE = 0.45  # above the 20 % at which a storm is suspected (METHODS 5)
FOREIGN_SHARE = 0.35  # of a NIC's line rate that storage takes in the RDMA class
_FLAP_SECONDS = 4.0
_HANG_SECONDS = 600.0  # PyTorch's watchdog
_XID_ROW_REMAPPED = 63


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


Maker = Callable[[Scene], Fault]


def straggling_rank(scene: Scene) -> Fault:
    """One GPU computes slower."""
    gpu = scene.any_nic().index
    compute = scene.on_nics([gpu], scene.compute_factor(1.2), 1)
    effect = neutral(scene.cluster, compute=compute)
    return _fault(scene, "straggler", [rank_entity(scene, gpu)], effect)


def straggling_host(scene: Scene) -> Fault:
    """All GPUs of a host compute slower."""
    host = scene.any_host()
    compute = scene.on_nics(scene.nics_of(host), scene.compute_factor(1.2), 1)
    return _fault(
        scene, "straggler", [host_entity(scene, host)], neutral(scene.cluster, compute=compute)
    )


def slow_last_stage(scene: Scene) -> Fault:
    """The pipeline's stages are uneven (in the job's shape): nobody's hardware is at fault."""
    return _workload(scene, {"stage_weights": ()})


def uneven_sequences(scene: Scene) -> Fault:
    """Replicas get sequences of uneven length (in the job's shape)."""
    return _workload(scene, {"sequence_spread": 0.0})


def slow_data_loading(scene: Scene) -> Fault:
    """All ranks wait for data."""
    excess = ((scene.shape.slowdown or 1.2) - 1) * scene.step_seconds
    data = np.full(len(scene.cluster.nics), excess)
    effect = neutral(scene.cluster, data_seconds=data)
    return _fault(scene, "workload_imbalance", [job_entity(scene)], effect)


def ecmp_polarisation(scene: Scene) -> Fault:
    """A leaf's hash loses its lowest bit: nearly all flows fold onto every other uplink."""
    leaf = scene.any_nic().leaf
    usable = np.ones(len(scene.cluster.uplinks))
    odd = [u.index for u in scene.cluster.uplinks_of_leaf(leaf) if u.position % 2]
    usable[odd] = 1 - POLARISED_SHARE
    effect = neutral(scene.cluster, up_usable=usable)
    victims = _hosts_of_leaf(scene, leaf)
    return _fault(scene, "ecmp_skew", [switch_entity(scene, leaf)], effect, victims=victims)


def one_way_dead_uplink(scene: Scene) -> Fault:
    """An uplink that is up and receives, but over which its leaf sends nothing."""
    leaf = scene.any_nic().leaf
    uplink = scene.cluster.uplinks_of_leaf(leaf)[
        int(scene.random.randint(scene.cluster.uplinks_per_leaf))
    ]
    usable = np.ones(len(scene.cluster.uplinks))
    usable[uplink.index] = 0
    port = scene.cluster.uplink_port(uplink)
    culprit = {"type": "port", "switch": scene.cluster.leaf_name(leaf), "port": port}
    return _fault(
        scene,
        "ecmp_skew",
        [culprit],
        neutral(scene.cluster, up_usable=usable),
        victims=_hosts_of_leaf(scene, leaf),
        facts=[DeadUplink(uplink.index)],
    )


def bad_cable(scene: Scene) -> Fault:
    """Bits flip on a NIC's cable: packets are lost and sent again."""
    nic = scene.any_nic()
    lost = scene.on_nics([nic.index], scene.lost_share(1.2), 0)
    return _fault(
        scene,
        "link_errors",
        [nic_entity(nic), port_entity(scene, nic)],
        neutral(scene.cluster, nic_lost=lost),
        facts=[BadCable(nic.index, None)],
    )


def bad_uplink_cable(scene: Scene) -> Fault:
    """Bits flip on a cable between leaf and spine."""
    nic = scene.any_nic()
    choices = scene.cluster.uplinks_of_leaf(nic.leaf)
    uplink = choices[int(scene.random.randint(len(choices)))]
    lost = np.zeros(len(scene.cluster.uplinks))
    lost[uplink.index] = scene.lost_share(1.2)
    culprit = {
        "type": "port",
        "switch": scene.cluster.leaf_name(nic.leaf),
        "port": _uplink_port(scene.cluster, uplink.index),
    }
    return _fault(
        scene,
        "link_errors",
        [culprit],
        neutral(scene.cluster, uplink_lost=lost),
        victims=_hosts_of_leaf(scene, nic.leaf),
        facts=[BadCable(None, uplink.index)],
    )


def link_flap(scene: Scene) -> Fault:
    """A NIC's link goes down for seconds, several times; its connections wait and retry."""
    nic = scene.any_nic()
    spells = np.flatnonzero(scene.spells())
    chosen = np.sort(scene.random.choice(spells, size=min(5, len(spells)), replace=False))
    acts = np.zeros(scene.job.shape.steps, dtype=bool)
    acts[chosen] = True
    slower = 1 + _FLAP_SECONDS / scene.transfer_seconds
    rate = scene.on_nics([nic.index], 1 / slower, 1)
    return _fault(
        scene,
        "link_flap",
        [nic_entity(nic), port_entity(scene, nic)],
        neutral(scene.cluster, nic_rate=rate),
        facts=[LinkFlap(nic.index, tuple(int(step) for step in chosen), _FLAP_SECONDS)],
        acts=acts,
    )


def pfc_storm(scene: Scene) -> Fault:
    """A NIC pauses its leaf port for most of the time; no watchdog ends it."""
    return _storm(scene, watchdog=False)


def pfc_storm_watchdog(scene: Scene) -> Fault:
    """A NIC's storm on a leaf whose watchdog drops what waits for it."""
    return _storm(scene, watchdog=True)


def incast(scene: Scene) -> Fault:
    """Many foreign senders fill the leaf port of one NIC."""
    nic = scene.any_nic()
    share = 1 - scene.nic_rate(0.5)
    foreign = share * bytes_per_second(scene.cluster.shape.nic_gbps, 1)
    mixed = scene.on_nics([nic.index], foreign, 0)
    return _fault(
        scene,
        "congestion",
        [port_entity(scene, nic)],
        neutral(scene.cluster, mixed_bytes_per_second=mixed),
        victims=[nic_entity(nic)],
    )


def degraded_speed(scene: Scene) -> Fault:
    """A NIC's cable came up at half its speed."""
    nic = scene.any_nic()
    rate = scene.on_nics([nic.index], 0.5, 1)
    return _fault(
        scene,
        "degraded_link",
        [nic_entity(nic), port_entity(scene, nic)],
        neutral(scene.cluster, nic_rate=rate),
        facts=[SlowPort(nic.index, scene.cluster.shape.nic_gbps // 2)],
    )


def gpudirect_off(scene: Scene) -> Fault:
    """A host fell back from GPUDirect: data goes through its memory."""
    host = scene.any_host()
    return _slow_nics(scene, host, "gdr_disabled", WITHOUT_GPU_DIRECT, GpuDirectOff(host))


def socket_fallback(scene: Scene) -> Fault:
    """A host fell back from RDMA to TCP."""
    host = scene.any_host()
    return _slow_nics(scene, host, "socket_fallback", OVER_SOCKETS, SocketTransport(host))


def foreign_nics(scene: Scene) -> Fault:
    """A host's GPUs use the NICs of the other NUMA node."""
    host = scene.any_host()
    return _slow_nics(scene, host, "nic_affinity", ACROSS_NUMA_NODES, ForeignNics(host))


def oversubscription(scene: Scene) -> Fault:
    """The leaves have fewer uplinks than their NICs can fill (in the cluster's shape)."""
    ratio = scene.cluster.shape.oversubscription
    wider = np.full(len(scene.cluster.uplinks), ratio)
    leaves = [switch_entity(scene, leaf) for leaf in range(scene.cluster.leaves)]
    relief = neutral(scene.cluster, up_rate=wider, down_rate=wider)
    return _fault(scene, "oversubscription", leaves, neutral(scene.cluster), relief=relief)


def ecn_off(scene: Scene) -> Fault:
    """Marking thresholds far too high: nobody slows down before PFC stops everybody."""
    rate = np.full(len(scene.cluster.nics), scene.nic_rate(0.7))
    leaves = tuple(range(scene.cluster.leaves))
    return _fault(
        scene,
        "ecn_misconfigured",
        [switch_entity(scene, leaf) for leaf in leaves],
        neutral(scene.cluster, nic_rate=rate, marking=np.zeros(1), congestion=np.full(1, 4.0)),
        facts=[EcnOff(leaves)],
    )


def mixed_traffic(scene: Scene) -> Fault:
    """Storage shares the RDMA class on every host."""
    share = FOREIGN_SHARE if scene.shape.slowdown is None else 1 - scene.nic_rate(1)
    foreign = share * bytes_per_second(scene.cluster.shape.nic_gbps, 1)
    mixed = np.full(len(scene.cluster.nics), foreign)
    hosts = [host_entity(scene, host) for host in scene.job.hosts]
    effect = neutral(scene.cluster, mixed_bytes_per_second=mixed)
    return _fault(scene, "ecn_misconfigured", hosts, effect)


def lossy_class(scene: Scene) -> Fault:
    """A leaf without PFC for the RDMA class drops what its NIC ports cannot take at once."""
    leaf = scene.any_nic().leaf
    nics = [nic.index for nic in scene.cluster.nics_of_leaf(leaf)]
    dropped = scene.on_nics(nics, scene.lost_share(1.25), 0)
    return _fault(
        scene,
        "packet_loss",
        [switch_entity(scene, leaf)],
        neutral(scene.cluster, dropped=dropped),
        victims=_hosts_of_leaf(scene, leaf),
        facts=[LossyClass(leaf)],
    )


def hang(scene: Scene) -> Fault:
    """One rank never arrives at a collective; the others wait until the watchdog gives up."""
    rank = int(scene.random.randint(scene.job.ranks))
    step = round(scene.shape.at * scene.job.shape.steps)
    culprit = rank_entity(scene, int(scene.job.gpus[rank]))
    acts = np.zeros(scene.job.shape.steps, dtype=bool)
    acts[step:] = True
    facts = [Hang(rank, step, _HANG_SECONDS)]
    return _fault(scene, "hang", [culprit], neutral(scene.cluster), facts=facts, acts=acts)


def gpu_error(scene: Scene) -> Fault:
    """A GPU's memory fails row by row: the driver says so, and the GPU computes slower."""
    nic = scene.any_nic()
    spells = np.flatnonzero(scene.spells())
    steps = tuple(int(step) for step in spells[:: max(1, len(spells) // 4)])
    compute = scene.on_nics([nic.index], scene.compute_factor(1.15), 1)
    culprit = {"type": "gpu", "host": nic.host_name, "gpu": nic.local}
    return _fault(
        scene,
        "gpu_error",
        [culprit],
        neutral(scene.cluster, compute=compute),
        victims=[rank_entity(scene, nic.index)],
        facts=[GpuError(nic.index, _XID_ROW_REMAPPED, steps)],
    )


FAULTS: dict[str, Maker] = {
    maker.__name__: maker
    for maker in (
        straggling_rank,
        straggling_host,
        slow_last_stage,
        uneven_sequences,
        slow_data_loading,
        ecmp_polarisation,
        one_way_dead_uplink,
        bad_cable,
        bad_uplink_cable,
        link_flap,
        pfc_storm,
        pfc_storm_watchdog,
        incast,
        degraded_speed,
        gpudirect_off,
        socket_fallback,
        foreign_nics,
        oversubscription,
        ecn_off,
        mixed_traffic,
        lossy_class,
        hang,
        gpu_error,
    )
}


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


def _uplink_port(cluster: Cluster, index: int) -> str:
    uplink = cluster.uplinks[index]
    if cluster.infiniband:
        return str(cluster.uplink_port_number(uplink))
    return cluster.uplink_port(uplink)


def _hosts_of_leaf(scene: Scene, leaf: int) -> list[Entity]:
    hosts = sorted({nic.host for nic in scene.cluster.nics_of_leaf(leaf)} & set(scene.job.hosts))
    return [host_entity(scene, host) for host in hosts]


def _workload(scene: Scene, without: dict[str, Any]) -> Fault:
    fault = _fault(scene, "workload_imbalance", [job_entity(scene)], neutral(scene.cluster))
    return Fault(
        name=fault.name,
        kind=fault.kind,
        culprits=fault.culprits,
        effect=fault.effect,
        acts=np.ones(scene.job.shape.steps, dtype=bool),
        without=without,
    )


def _storm(scene: Scene, *, watchdog: bool) -> Fault:
    nic = scene.any_nic()
    share = STORM_PAUSE_SHARE if scene.shape.slowdown is None else 1 - scene.nic_rate(1)
    pausing = scene.on_nics([nic.index], share, 0)
    dropped = scene.on_nics([nic.index], scene.lost_share(1.05) if watchdog else 0, 0)
    return _fault(
        scene,
        "pfc_storm",
        [nic_entity(nic), port_entity(scene, nic)],
        neutral(scene.cluster, nic_pausing=pausing, dropped=dropped),
        victims=_hosts_of_leaf(scene, nic.leaf),
        facts=[PauseStorm(nic.index, watchdog)],
    )


def _slow_nics(scene: Scene, host: int, kind: str, natural: float, fact: Fact) -> Fault:
    rate = scene.on_nics(scene.nics_of(host), scene.nic_rate(natural), 1)
    culprits = [host_entity(scene, host)]
    return _fault(scene, kind, culprits, neutral(scene.cluster, nic_rate=rate), facts=[fact])


def _fault(
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
