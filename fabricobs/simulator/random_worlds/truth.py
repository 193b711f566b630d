"""The answer of a random world: each fault, what it costs, and which evidence could show it."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from fabricobs.simulator.random_worlds.benchmarks import span_of_bad_runs
from fabricobs.simulator.random_worlds.evidence import evidence_of
from fabricobs.simulator.random_worlds.faults import BAD_BENCHMARK, ENDS, Fault
from fabricobs.simulator.random_worlds.identifiable import blind_evidence, is_clear
from fabricobs.simulator.random_worlds.physics import State, calm
from fabricobs.simulator.random_worlds.ports import unwatched_ports
from fabricobs.simulator.random_worlds.run import plain_seconds
from fabricobs.simulator.random_worlds.site import Site, host_address
from fabricobs.simulator.random_worlds.spec import Spec
from fabricobs.simulator.random_worlds.storage import usual_state
from fabricobs.simulator.random_worlds.trainer import prints_times, prints_work
from fabricobs.simulator.random_worlds.world import (
    World,
    tenants_alone,
    without,
    without_tenants,
)
from fabricobs.simulator.truth import span_of

_ASKED_LAST = 60.0  # seconds after the job until which devices are asked
_SOUND_STEPS = 20  # without a fault, warm-up included, that tell the pace without it
_PACE_CHANGES = 0.05  # share of the step time by which ordinary life changes the pace
# What other tenants cost may be told of the steps, of the ports that fill, or of their class.
_TENANTS = "Other tenants send."
_TENANTS_ARE = ["throughput_drop", "congestion", "pausing_switch", "ecn_misconfigured"]
_SHARED = 0.03  # of the line rate that runs of benchmarks lack for sharing links
_QUEUES = 0.01  # share of the transfer time that a link stands still without any fault


def ground_truth(site: Site) -> dict[str, Any]:
    """The answer as JSON; in the form of the scenarios' answers, with more for each fault."""
    world, spec = site.world, site.spec
    first = world.courses[0].launch
    made = sum(course.steps for course in world.courses)
    shown = evidence_of(site)
    return {
        "schema_version": 1,
        "scenario": f"random-{spec.seed}",
        "title": f"Random world {spec.seed}",
        "seed": spec.seed,
        "gpus": world.topology.hosts * spec.gpus_per_host,
        "fabric": spec.fabric,
        "zone": spec.zone,
        "spec": spec.model_dump(mode="json"),
        "evidence": sorted(shown),
        "duration_seconds": round(world.duration, 3),
        "jobs": [
            {
                "job": spec.job_name,
                "ranks": first.ranks,
                "steps": made,
                "step_seconds": round(float(np.median(world.courses[0].seconds)), 4),
                "hosts": [world.topology.devices[host].name for host in first.hosts],
            }
        ],
        "faults": [_fault(site, fault, shown) for fault in world.faults],
        "by_design": [*_by_design(world), *_of_benchmarks(site)],
        "by_chance": ["ecmp_skew", "hash_collisions", "full_uplink"]
        if _is_hashed(world.spec)
        else [],
        "benign": _ordinary(world),
        "pace_changes": _pace_changes(site),
    }


def loss_of(world: World, fault: Fault) -> float:
    """Share of throughput lost in the steps from the fault's first to its last, 0 to 1."""
    if fault.kind.does in ENDS:
        return 1.0
    made = world.steps_made
    span = span_of(fault.acts)[made]
    if not span.any():
        return 0.0
    twin = without(world, fault)
    faulty, sound = (np.concatenate([c.seconds for c in w.courses]) for w in (world, twin))
    return float(max(0.0, 1 - sound[: len(span)][span].mean() / faulty[span].mean()))


def _fault(site: Site, fault: Fault, shown: set[str]) -> dict[str, Any]:
    world = site.world
    made = world.steps_made
    begins = np.concatenate([course.begin for course in world.courses])
    ends = np.concatenate([course.end for course in world.courses])
    acting = np.flatnonzero(fault.acts[made])
    loss = loss_of(world, fault)
    if fault.kind.does in ENDS or not len(acting):
        first = last = len(made) - 1
        begin, end = float(ends[-1]), world.duration
    else:
        first, last = int(acting[0]), int(acting[-1])
        begin, end = float(begins[first]), float(ends[last])
    if fault.kind.does == "ends":
        begin = float(begins[-1])
    if fault.kind.lasts or fault.kind.does == "ends":
        end = world.duration + _ASKED_LAST
    if fault.kind.apart == BAD_BENCHMARK:
        begin, end = span_of_bad_runs(world, fault, site.benchmark_runs) or (begin, end)
    shown = shown - blind_evidence(site, fault)
    sets = [names for names in fault.kind.shown_by if set(names) <= shown]
    clear = is_clear(site, fault, loss, end - begin)
    true = site.true_clock
    return {
        "fault": fault.name,
        "kind": fault.kind.kind,
        "also": list(fault.kind.also),
        "culprits": culprits_of(site, fault),
        "parts": len(fault.parts),
        "size": round(fault.size, 8),
        "start": _utc(true.epoch(begin)),
        "end": _utc(true.epoch(end)),
        "start_step": int(_numbers(world)[first]) + 1,
        "end_step": int(_numbers(world)[last]) + 1,
        "loss_share": round(loss, 4),
        "loss_shown": _shows_loss(site, fault, shown),
        "shown_by": [list(names) for names in sets],
        "identifiable": bool(sets) and clear,
    }


def culprits_of(site: Site, fault: Fault) -> list[dict[str, Any]]:
    """Every entity that a finding may rightly name, a port under each of its names."""
    world, spec = site.world, site.spec
    topology = world.topology
    names = [device.name for device in topology.devices]
    if fault.name == "slow_swept_rail":
        return [{"type": "nic", "nic": topology.ends[fault.parts[0]][0].name}]
    if fault.kind.strikes == "job":
        return [{"type": "job", "job": spec.job_name}]
    if fault.name == "wrong_sums":  # the smallest run that is wrong may have several hosts
        return [*({"type": "host", "host": names[host]} for host in fault.parts), {"type": "job"}]
    if fault.kind.strikes == "host":
        hosts = [{"type": "host", "host": names[host]} for host in fault.parts]
        if fault.kind.kind == "path_mismatch":  # of both ends of a path either may be named
            hosts += _ports_named(site, fault.cables(topology).tolist())
        return hosts + (_gpus_named(site, fault) if fault.kind.throttles else [])
    # Where no log tells the leaf, its hosts are all that can be named.
    if fault.name == "slow_swept_leaf" and not spec.lldp:
        leaf = fault.parts[0]
        below = [h for h in range(topology.hosts) if leaf in topology.leaf[topology.nics_of(h)]]
        own = [{"type": "host", "host": names[host]} for host in below]
        return [*own, {"type": "switch", "switch": names[leaf]}]
    if fault.kind.strikes == "leaves":
        return [{"type": "switch", "switch": names[leaf]} for leaf in fault.parts]
    if fault.kind.strikes == "spare":  # that serve: who reads from them shows it, and their leaves
        nics = np.unique(np.concatenate([course.launch.nic for course in world.courses]))
        leaves = np.unique(topology.leaf[nics]).tolist()
        readers = sorted({host for course in world.courses for host in course.launch.hosts})
        return [
            *({"type": "host", "host": names[host]} for host in readers),
            *({"type": "switch", "switch": names[leaf]} for leaf in leaves),
        ]
    if fault.kind.strikes == "leaf":
        leaf = fault.parts[0]
        cables: Iterable[int] = []
        if fault.name == "no_watchdog":
            cables = unwatched_ports(world, fault)
        elif fault.kind.does == "dropped":  # few ports of the leaf may have dropped anything
            cables = [cable for cable, _, _ in topology.ports_of(leaf)]
        return [{"type": "switch", "switch": names[leaf]}, *_ports_named(site, cables)]
    if fault.kind.strikes == "gpu":
        ended = {gpu // spec.gpus_per_host for gpu in fault.parts if fault.kind.does == "ends"}
        of_hosts = [{"type": "host", "host": names[host]} for host in sorted(ended)]
        return [*of_hosts, *_gpus_named(site, fault)]
    ports = _ports_named(site, fault.parts)
    if fault.kind.does == "crowded":  # of the group of links the switch may be named
        leaf = topology.ends[fault.parts[0]][0].device
        return [*ports, {"type": "switch", "switch": names[leaf]}]
    if fault.name == "failed_nic":  # its host may be told alone
        host = topology.ends[fault.parts[0]][0].device
        told = (names[host], host_address(host))  # peers know its address alone
        return [*({"type": "host", "host": name} for name in told), *ports]
    return ports


def _ports_named(site: Site, cables: Iterable[int]) -> list[dict[str, Any]]:
    """Both ends of cables, each under all its names."""
    topology = site.world.topology
    found: list[dict[str, Any]] = []
    for cable in cables:
        for port in topology.ends[cable]:
            device = topology.devices[port.device]
            if device.tier == 0:
                found.append({"type": "nic", "host": device.name, "nic": port.name})
                found.append({"type": "nic", "host": device.name, "nic": port.netdev})
                continue
            found += [
                {"type": "port", "switch": device.name, "port": name}
                for name in dict.fromkeys((port.name, port.alias))
                if name
            ]
    return found


def _gpus_named(site: Site, fault: Fault) -> list[dict[str, Any]]:
    """The GPUs that a fault strikes, and the ranks on them."""
    world, found = site.world, list[dict[str, Any]]()
    for gpu in fault.gpus(world.topology).tolist():
        host, local = divmod(gpu, site.spec.gpus_per_host)
        where = {"type": "rank", "host": world.topology.devices[host].name}
        for launch in (course.launch for course in world.courses):
            for rank in np.flatnonzero(launch.gpu == gpu).tolist():
                found.append(where | {"rank": rank})
                # Where no log tells the number, a rank is named by its process.
                found.append(where | {"pid": int(launch.pids[rank])})
        found.append(where | {"type": "gpu", "gpu": local})
    return found


def _shows_loss(site: Site, fault: Fault, shown: set[str]) -> bool:
    """Whether the evidence can show what a fault costs: the pace without it, or each rank's work.

    Where the work of a step changes and no log tells it, the pace says nothing.

    Collectives show how late a rank begins them, which is not all that it holds others up: what it
    computes while they run, and the rollouts before them, show in the pace alone.
    """
    world = site.world
    if fault.kind.does == "ends":
        return False  # the steps of the job tell nothing of the time after it
    if "phases_of_ranks" in shown or fault.kind.does in ENDS:
        return True
    if (world.spec.ramp_up or world.spec.curriculum) and not prints_work(site):
        return False
    has_sound_steps = int((~fault.acts[world.steps_made]).sum()) >= _SOUND_STEPS
    if fault.kind.does not in {"compute", "loading"}:
        # What counters tell is joined to the pace by time alone.
        timed = "inspector" in shown or ("steps" in shown and prints_times(site))
        return timed and has_sound_steps
    if has_sound_steps:
        return bool({"steps", "inspector"} & shown)
    begins_whole = world.spec.overlap == 0 and world.spec.job_kind != "rl"
    return "inspector" in shown and fault.kind.strikes != "job" and begins_whole


def _numbers(world: World) -> np.ndarray:
    return np.concatenate([c.launch.first + np.arange(c.steps) for c in world.courses])


def _utc(epoch: float) -> str:
    return f"{np.datetime64(round(epoch * 1e3), 'ms')}Z"


def _by_design(world: World) -> list[str]:
    """Kinds of finding that are true of the cluster as it is: its uplinks, or other tenants, queue.

    What tenants send fills ports from time to time; whoever says so of a port is right. So is who
    says that the uplinks carry less than the NICs, or that flows that share links fill them.
    """
    network, _ = world.plans[0]
    spec = world.spec
    is_narrow = spec.tiers > 1 and spec.oversubscription > 1
    narrow = ["oversubscription", "slow_collectives"] if is_narrow else []

    def queues(state: State) -> bool:
        return max(float(t.paused.max()) for t in network.transfers(state)) >= _QUEUES

    if queues(usual_state(world.topology, tuple(n.launch for n, _ in world.plans))):
        shared = ["hash_collisions"] if _is_hashed(spec) else []
        return ["congestion", "pausing_switch", "oversubscription", "slow_collectives", *shared]
    busy = world.busy[world.steps_made].any()
    filled = ["congestion", "pausing_switch"] if busy and queues(tenants_alone(world)) else []
    return [*narrow, *filled]


def _of_benchmarks(site: Site) -> list[str]:
    """What is true of benchmarks that no fault slows: something else ran, or links are narrow."""
    topology = site.world.topology
    line = float(topology.capacity[0]) / 1e9
    for run in site.benchmark_runs if site.spec.benchmarks != "none" else ():
        nics = 1 if run.rail is not None else topology.nics_per_host
        is_narrow = len(run.hosts) > 1 and run.reachable < (1 - _SHARED) * nics * line
        if run.disturbed or is_narrow:
            return ["slow_benchmark"]
    return []


def _is_hashed(spec: Spec) -> bool:
    """Whether flows share links by chance: whoever says so without alarm is right.

    Leaves alone balance: spines always hash, among parallel links and to the tier above.
    """
    return spec.balancing == "static" or spec.parallel_links > 1 or spec.tiers > 2


def _ordinary(world: World) -> list[str]:
    """What happened that is no fault."""
    spec = world.spec
    happened = {
        f"The job starts {len(world.courses)} times and repeats steps.": len(world.courses) > 1,
        "It evaluates now and then.": spec.evaluation_every > 0,
        "It saves checkpoints.": spec.checkpoint != "none",
        "The batch doubles after a while.": spec.ramp_up,
        "Sequences grow.": spec.curriculum,
        _TENANTS: spec.tenants > 0,
        "Counters start again at 0.": spec.counter_resets > 0,
        "One host has another release of the driver.": spec.other_driver,
        "The first slot of each host has eight lanes.": spec.narrow_slots,
        "Error counters hold errors of earlier times.": spec.old_errors > 0,
        "Messages are small.": spec.small_messages,
        "NCCL tells of networks that it does not use.": spec.unused_networks,
        "Hosts read from storage in a class of its own.": _reads_aside(world),
        "Leaves mark from other thresholds on.": spec.ecn_thresholds == "various",
    }
    return [text for text, true in happened.items() if true]


def _reads_aside(world: World) -> bool:
    return any(state.aside.any() for state in world.states)


def _pace_changes(site: Site) -> list[dict[str, Any]]:
    """When ordinary life makes steps longer: a finding may say so, but not that it is a loss.

    What other tenants cost is one: findings of the kinds `is` are right about it.
    """
    world, true = site.world, site.true_clock
    spec, made = world.spec, world.steps_made
    begins = np.concatenate([course.begin for course in world.courses])
    ends = np.concatenate([course.end for course in world.courses])
    longer = {
        "The batch doubles.": np.concatenate([c.noise.batch[: c.steps] for c in world.courses]),
        "Sequences grow.": np.concatenate([c.noise.sequence[: c.steps] for c in world.courses]),
    }
    slow = {why: (share == 1) & bool((share < 1).any()) for why, share in longer.items()}
    if spec.tenants:
        busy = world.busy[made]
        others, alone = (
            np.concatenate([c.seconds for c in w.courses])[: len(made)]
            for w in (world, without_tenants(world))
        )
        costs = busy.any() and others[busy].mean() > (1 + _PACE_CHANGES) * alone[busy].mean()
        slow[_TENANTS] = busy & bool(costs)
    paces = [plain_seconds(network, calm(world.topology)) for network, _ in world.plans]
    least = np.minimum.accumulate(paces)
    slow["The job starts again on other paths."] = np.concatenate(
        [
            np.full(course.steps, pace > (1 + _PACE_CHANGES) * best)
            for course, pace, best in zip(world.courses, paces, least, strict=False)
        ]
    )
    return [
        {
            "why": why,
            "is": _TENANTS_ARE if why == _TENANTS else [],
            "start": _utc(true.epoch(float(begins[during][0]))),
            "end": _utc(true.epoch(float(ends[during][-1]))),
        }
        for why, during in slow.items()
        if during.any()
    ]
