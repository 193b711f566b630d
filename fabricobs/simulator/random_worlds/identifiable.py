"""Whether the evidence of a random world could show a fault: enough of it, and clear of noise."""

from itertools import pairwise

import numpy as np

from fabricobs.simulator.effects import Floats
from fabricobs.simulator.random_worlds.benchmarks import bad_run
from fabricobs.simulator.random_worlds.faults import BAD_BENCHMARK, Fault
from fabricobs.simulator.random_worlds.gpus import Gpus, throttle_of
from fabricobs.simulator.random_worlds.physics import PACKET_BYTES
from fabricobs.simulator.random_worlds.port_noise import NOISY_ENDS, acting_seconds, code_of
from fabricobs.simulator.random_worlds.ports import acts_at
from fabricobs.simulator.random_worlds.sent_again import usual_share
from fabricobs.simulator.random_worlds.site import Site
from fabricobs.simulator.random_worlds.topology import Device, Topology
from fabricobs.simulator.random_worlds.world import World

SMALLEST_LOSS = 0.02  # losses below are told apart: an operator would not act on them
_CLEAR = 5.0  # standard errors at which a change of step or phase times is beyond doubt
_FEWEST_ROUNDS = 2  # readings within a fault that show what counters do in it
_FEWEST_EVENTS = 5
_FEWEST_STEPS = 20
_FEWEST_CLOCKS = 4  # readings of a GPU that computes: its peers are read at other instants
_FEWEST_HOSTS = 3  # that show what is usual
_MOST_ODD = 0.25  # share of the hosts with another setting above which none is usual
_LOW_CLOCK = 0.95  # of its usual clock: below, a GPU is told from those with worse silicon
_FEWEST_NICS = 2  # of a host: with one there is no other to be taken for it
_FAST_LANES = 2.4e-4  # of the bits: what FEC of lanes of 50 Gb/s and more is made for
_NOISY_ROUNDS = 3
_LEAST_RATE = 30.0  # packets a second without a buffer: ten times what a sound NIC may have
_CLEAR_RESENDS = 20  # times what all NICs send again
_FEWEST_RUNS = 3  # of benchmarks, with a part and without it
_SLOW = 0.3  # of the line: sound sites reach 0.7 and more, half of it beside computation
_LOUD_PAUSES = 0.003  # of the time, over all NICs of a leaf
_MOST_LEAVES = 0.8  # of all, that pause unmarked
_CLEAR_MARKS = 12  # times what a usual port marks
_LEAST_MARKS = 40.0  # a second
_FEWEST_PORTS = 4  # of a switch that marks
_MOST_PORTS = 0.7  # of them, that mark so often
_FEWEST_MARKING_PEERS = 3
_CLEAR_EXCESS = 0.3  # of what a NIC sends, received beyond it


def clocks_show(site: Site, fault: Fault) -> bool:
    """Whether clocks were told while a fault held them low, often enough and low enough to see."""
    if not fault.kind.throttles or throttle_of(site.world, fault)[0] > _LOW_CLOCK:
        return False
    world, gpus, each = site.world, Gpus(site.world), site.spec.gpus_per_host
    return any(
        sum(
            gpus.doing(host, moment)[local] == "computing"
            for moment in site.clocked_at(host)
            if acts_at(world, fault.acts, moment)
        )
        >= _FEWEST_CLOCKS
        for host, local in (divmod(gpu, each) for gpu in fault.gpus(world.topology).tolist())
    )


def blind_evidence(site: Site, fault: Fault) -> set[str]:
    """Names of evidence that cannot show a fault in this world, whatever it shows of others."""
    blind = set() if clocks_show(site, fault) else {"gpu_clocks"}
    if fault.kind.kind == "slow_collectives" and not _are_slow(site.world, fault):
        blind.add("inspector")
    return blind


def is_clear(site: Site, fault: Fault, loss: float, seconds: float) -> bool:
    """Whether there is enough of the fault: above noise in times, or enough readings and events."""
    world = site.world
    if fault.name == "slow_everywhere":
        return loss >= SMALLEST_LOSS and _changes_pace(world, fault)
    if fault.kind.strikes in {"gpu", "host", "job"} and fault.kind.does in {"compute", "loading"}:
        spec = world.spec
        steps = int(fault.acts.sum())
        noise = max(spec.rank_noise, 1e-4) / np.sqrt(max(steps, 1)) + spec.silicon_spread
        return loss >= SMALLEST_LOSS or fault.size > _CLEAR * float(noise)
    if fault.kind.kind == "config_mismatch":
        return _shows_usual(world, fault)
    if fault.name == "narrow_slot":
        return not world.spec.narrow_slots and _shows_usual(world, fault)
    if fault.name == "foreign_nics" and world.spec.nics_per_host < _FEWEST_NICS:
        return False
    if fault.kind.apart == BAD_BENCHMARK:
        return _shows_in_runs(site, fault)
    if fault.kind.does == "unmarked":
        return _pauses_unmarked(site, fault)
    if fault.kind.does in {"eager", "crowded"}:
        rounds = seconds / max(world.spec.switch_interval, world.duration / 500)
        marks = _marks_eagerly if fault.kind.does == "eager" else _marks_alone
        return rounds >= _FEWEST_ROUNDS + 1 and marks(world, fault)
    if fault.kind.does == "served":
        return _shows_excess(site, fault, seconds)
    if fault.name == "full_receiver":
        end = world.topology.ends[fault.parts[0]][0].device
        return _acting_rounds(site, fault, end, _LEAST_RATE / fault.size) >= _NOISY_ROUNDS
    if fault.kind.does == "sent_again":
        return _resent_rounds(site, fault) >= _NOISY_ROUNDS
    if fault.name in NOISY_ENDS:
        return _noisy_rounds(site, fault) >= _NOISY_ROUNDS
    if fault.kind.does in {"hang", "ends", "flap", "nic_rate", "nothing"}:
        return True
    if fault.kind.does == "swapped":
        return _shows_rails(world, fault)
    if fault.kind.does == "half_speed":
        ends = {end.device for part in fault.parts for end in world.topology.ends[part]}
        moments = [moment for end in ends for moment in site.speeds_told(end)]
        return any(acts_at(world, fault.acts, moment) for moment in moments)
    if fault.kind.does == "unused":
        return _dead_intervals(site, fault) >= _FEWEST_ROUNDS
    interval = max(world.spec.switch_interval, world.duration / 500)
    if fault.kind.does == "lost":
        links = np.array([2 * part + way for part in fault.parts for way in (0, 1)])
        packets = max(t.amount[links].sum() for t in world.courses[0].blocks[0].transfers) / 4096
        if packets * fault.size * fault.acts.sum() < _FEWEST_EVENTS:
            return False
    return seconds >= _FEWEST_ROUNDS * interval


def _changes_pace(world: World, fault: Fault) -> bool:
    """Whether step times before and after it differ beyond doubt, with enough steps of both."""
    seconds = np.concatenate([course.seconds for course in world.courses])
    acts = fault.acts[world.steps_made]
    with_it, without = np.log(seconds[acts]), np.log(seconds[~acts])
    if min(len(with_it), len(without)) < _FEWEST_STEPS:
        return False
    noise = np.sqrt(with_it.var() / len(with_it) + without.var() / len(without))
    return bool(with_it.mean() - without.mean() > _CLEAR * float(noise))


def _shows_usual(world: World, fault: Fault) -> bool:
    """Whether enough hosts agree on a setting for those of the fault to be odd."""
    used = set(world.courses[0].launch.hosts)
    odd = len(used & set(fault.parts))
    return len(used) >= _FEWEST_HOSTS and 0 < odd <= _MOST_ODD * len(used)


def _shows_rails(world: World, fault: Fault) -> bool:
    """Whether enough other hosts show which rail the leaves of two swapped NICs serve."""
    topology = world.topology
    rail = np.arange(topology.nics) % topology.nics_per_host
    for nic, other in (fault.parts, fault.parts[::-1]):
        others = (topology.leaf == topology.leaf[other]) & (rail == rail[nic])
        if int(others.sum()) - int(others[other]) < _FEWEST_HOSTS:
            return False
    return True


def _dead_intervals(site: Site, fault: Fault) -> int:
    """Number of intervals between two readings of its leaf in which an uplink sends nothing.

    The job makes steps in them, and none without the fault; a shorter gap is a smaller share.
    """
    world = site.world
    begins, ends = (
        np.concatenate([getattr(course, edge) for course in world.courses])
        for edge in ("begin", "end")
    )
    acts = fault.acts[world.steps_made]
    leaf = world.topology.ends[fault.parts[0]][0].device
    moments = site.counted_at(leaf)
    made_in = [(begins < b) & (ends > a) for a, b in pairwise(moments)]
    return sum(bool(made.any() and acts[made].all()) for made in made_in)


def _shows_in_runs(site: Site, fault: Fault) -> bool:
    """Whether runs of benchmarks with the part are clearly slower than enough runs without it."""
    runs = [r for r in site.benchmark_runs if len(r.hosts) > 1 or fault.name == "wrong_sums"]
    bad = [bad_run(fault, site.world, run) for run in runs]
    if fault.kind.kind != "slow_part":
        return any(bad)
    own, others = (
        np.log([run.busbw for run, is_bad in zip(runs, bad, strict=True) if is_bad == wanted])
        for wanted in (True, False)
    )
    if len(own) < _FEWEST_RUNS or len(others) < _FEWEST_RUNS:
        return False
    noise = np.sqrt(own.var() / len(own) + others.var() / len(others))
    return bool(others.mean() - own.mean() > _CLEAR * float(noise))


def _noisy_rounds(site: Site, fault: Fault) -> int:
    """Most intervals in a row, between two readings of the port that receives, of noise alone.

    None where no output tells that its lanes have 25 Gb/s: those are made for less noise.
    """
    world, cable = site.world, fault.parts[0]
    end = world.topology.ends[cable][NOISY_ENDS[fault.name]]
    device = world.topology.devices[end.device]
    code = code_of(world.topology, cable)
    tells_lanes = device.os == "sonic" and world.spec.port_status
    if fault.size * code.allowed < _FAST_LANES and not tells_lanes:
        return 0
    return _acting_rounds(site, fault, end.device, 1 / fault.size)


def _acting_rounds(site: Site, fault: Fault, device: int, least: float) -> int:
    """Most intervals in a row, between readings of a device, of which a fault acts in a share."""
    moments = np.array(site.counted_at(device))
    if len(moments) < 2:
        return 0
    shares = np.diff(acting_seconds(site.world, fault, moments)) / np.diff(moments)
    longest = run = 0
    for share in shares.tolist():
        run = run + 1 if share > least else 0
        longest = max(longest, run)
    return longest


def _resent_rounds(site: Site, fault: Fault) -> int:
    """Most intervals in a row in which a NIC clearly sends more again than what all NICs do.

    Sent a second in the steps that the fault acts in; of all packets, what the NICs usually do.
    """
    world, nic = site.world, fault.parts[0]
    course = world.courses[0]
    during = [b for b in course.blocks if fault.acts[world.steps_made[b.first]]]
    if not during:
        return 0
    sent = sum(t.amount[2 * nic] for t in during[0].transfers) / PACKET_BYTES
    lost = sum(t.lost_from[nic] for t in during[0].transfers)
    rate = float(lost / np.median(course.seconds[during[0].first :][: during[0].steps]))
    if not sent or lost / sent < _CLEAR_RESENDS * usual_share(world):
        return 0
    device = world.topology.ends[nic][0].device
    return _acting_rounds(site, fault, device, _LEAST_RATE / max(rate, 1e-9))


def _are_slow(world: World, fault: Fault) -> bool:
    """Whether the collective that takes longest moves far less than its NICs could.

    Small ones are bound by latency. What uplinks carry less than NICs is no fault.
    """
    spec, (network, _) = world.spec, world.plans[0]
    if spec.small_messages:
        return False
    line = spec.nic_gbps * 1e9 / 8
    transfers = network.transfers(fault.state(world.topology))
    phases = zip(network.launch.phases, transfers, strict=True)
    taken = {
        float(t.seconds.max()): float(t.amount[: 2 * world.topology.nics : 2].max())
        for phase, t in phases
        if phase.name != "SendRecv"
    }
    longest = max(taken)
    narrow = max(1.0, *(_narrow(world.topology, leaf) for leaf in world.topology.switches(1)))
    return taken[longest] / longest * narrow < _SLOW * line


def _narrow(topology: Topology, leaf: Device) -> float:
    """How many times less the uplinks of a leaf carry than its NICs; 0 without uplinks."""
    down, up = (
        sum(port.gbps for _, side, port in topology.ports_of(leaf.index) if side == wanted)
        for wanted in (1, 0)
    )
    return down / up if up else 0.0


def _pauses_unmarked(site: Site, fault: Fault) -> bool:
    """Whether most leaves pause their NICs loudly, or some whose thresholds are shown do."""
    world = site.world
    course, topology = world.courses[0], world.topology
    paused = np.zeros(topology.nics)
    for block in course.blocks:
        for transfer in block.transfers:
            share = transfer.paused[: 2 * topology.nics : 2]
            paused += block.steps * share * float(transfer.seconds.max())
    paused /= float(course.end[-1] - course.begin[0])
    loud = [
        leaf for leaf in fault.parts if float(paused[topology.leaf == leaf].mean()) > _LOUD_PAUSES
    ]
    leaves = len(topology.switches(1))
    told = site.spec.shows_ecn and site.spec.leaf_os == "sonic"
    return len(loud) >= (1 if told else _MOST_LEAVES * leaves)


def _marks(world: World, fault: Fault) -> Floats:
    """Packets a second [D] that the port sending over each link marks while a fault acts."""
    course = world.courses[0]
    during = [b for b in course.blocks if fault.acts[world.steps_made[b.first]]]
    if not during:
        return np.zeros(world.topology.links)
    block = during[0]
    marked = np.sum([t.marked for t in block.transfers], axis=0)
    return np.asarray(marked / float(np.median(course.seconds[block.first :][: block.steps])))


def _marks_eagerly(world: World, fault: Fault) -> bool:
    """Whether most ports of a leaf mark far more than those of enough other leaves."""
    topology, marks = world.topology, _marks(world, fault)
    own, peers = np.zeros(0), []
    for leaf in topology.switches(1):
        ports = np.array([2 * cable + side for cable, side, _ in topology.ports_of(leaf.index)])
        marking = marks[ports][marks[ports] > 0]
        if leaf.index in fault.parts:
            own = marking
        elif len(marking):
            peers.append(marking)
    if len(peers) < _FEWEST_MARKING_PEERS or len(own) < _FEWEST_PORTS:
        return False
    usual = float(np.median(np.concatenate(peers)))
    return bool((own >= _CLEAR_MARKS * usual).mean() > _MOST_PORTS)


def _marks_alone(world: World, fault: Fault) -> bool:
    """Whether an uplink marks far more than the links between switches do."""
    topology, marks = world.topology, _marks(world, fault)
    between = np.arange(2 * topology.nics, topology.links)
    usual = float(np.median(marks[between]))
    return bool(marks[2 * fault.parts[0]] >= max(_LEAST_MARKS, _CLEAR_MARKS * usual))


def _shows_excess(site: Site, fault: Fault, seconds: float) -> bool:
    """Whether the NICs of the job's hosts receive clearly more than they send while it acts."""
    world = site.world
    foreign = fault.state(world.topology).foreign
    course = world.courses[0]
    nics = np.unique(course.launch.nic)
    sent = sum(t.amount[2 * nics] for t in course.blocks[0].transfers)
    step = float((course.end[-1] - course.begin[0]) / course.steps)
    more = foreign[2 * nics + 1] * step > _CLEAR_EXCESS * sent
    rounds = seconds / max(world.spec.host_interval, world.duration / 500)
    return bool(more.all()) and rounds >= _FEWEST_ROUNDS + 1
