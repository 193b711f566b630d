"""Benchmarks of the days before a job: nccl-tests of all hosts and of each, or sweeps of pairs.

They reach what the network carries between their hosts. A part that was bad then is bad in the runs
with it alone: it is repaired before the job.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from fabricobs.simulator.random_worlds.faults import BAD_BENCHMARK, Fault
from fabricobs.simulator.random_worlds.physics import Network, calm
from fabricobs.simulator.random_worlds.workload import Launch
from fabricobs.simulator.random_worlds.world import World
from fabricobs.simulator.randomness import Random

_DAY = 86_400.0
_DAYS = 6  # on which all hosts run together
_RUN_SECONDS = 300.0
_MOST_RUNS = 64
_LEAST_RUNS_OF_A_HOST = 4
_FIRST_LAUNCH = 1000  # number of launches that are runs of benchmarks
_NOISE = 0.006  # public runs of Alps vary by 0.1 to 1 %
_CHANCE, _LEAST_BY_CHANCE = 0.04, 0.85  # of runs that something else slows, and how much
# Bus bandwidth in GB/s that AllReduce reaches inside one host: public runs of nccl-tests.
_INSIDE = {"A100-SXM4-80GB": 232.0, "H100 80GB HBM3": 470.0, "H200": 475.0, "B200": 740.0}
_WRONG = (1, 4000)  # elements


@dataclass(frozen=True, slots=True)
class Run:
    """One start of all_reduce_perf: its hosts, the only NIC it may use of each, and when it began.

    `busbw` is what its largest message reached, in GB/s; `wrong` elements were found. One that
    was `disturbed` is slow because something else ran; `reachable` is what the network carries.
    """

    name: str
    hosts: tuple[int, ...]
    rail: int | None
    moment: float
    busbw: float = 0.0
    wrong: int = 0
    disturbed: bool = False
    reachable: float = 0.0


def bad_run(fault: Fault, world: World, run: Run) -> bool:
    """Whether a run of benchmarks has a part of the fault."""
    topology = world.topology
    match fault.name:
        case "slow_again":
            return len(run.hosts) > 1 and run.moment >= _since(world)
        case "slow_swept_rail":
            return run.rail == fault.parts[0] % topology.nics_per_host
        case "slow_swept_leaf":
            nics = [n for host in run.hosts for n in topology.nics_of(host)]
            own = [n for n in nics if run.rail in {None, n % topology.nics_per_host}]
            return fault.parts[0] in topology.leaf[own]
    return bool(set(fault.parts) & set(run.hosts))


def runs_of(world: World) -> tuple[Run, ...]:
    """All runs of benchmarks of a world, in order of time."""
    spec = world.spec
    random = spec.stream("benchmarks")
    faults = [fault for fault in world.faults if fault.kind.apart == BAD_BENCHMARK]
    found = []
    for number, run in enumerate(_planned(world, random)):
        run = replace(run, reachable=_reached(world, run, number))
        reached = run.reachable * float(random.lognormal(0, _NOISE))
        disturbed = bool(random.random_sample() < _CHANCE)
        if disturbed:
            reached *= float(random.uniform(_LEAST_BY_CHANCE, 1))
        wrong = 0
        for fault in faults:
            if not bad_run(fault, world, run):
                continue
            if fault.name == "wrong_sums":
                wrong = int(random.randint(*_WRONG))
            else:
                reached *= 1 - fault.size
        found.append(replace(run, busbw=reached, wrong=wrong, disturbed=disturbed))
    return tuple(found)


def span_of_bad_runs(world: World, fault: Fault, runs: Sequence[Run]) -> tuple[float, float] | None:
    """From when to when runs of benchmarks had a part of the fault, if any had."""
    moments = [run.moment for run in runs if bad_run(fault, world, run)]
    return (min(moments), max(moments) + _RUN_SECONDS) if moments else None


def _since(world: World) -> float:
    """From when on all hosts together are slow: the second day or later."""
    day = int(world.spec.stream("slow since").randint(1, _DAYS))
    return -_DAY * (_DAYS - day) - _DAY / 2


def _planned(world: World, random: Random) -> Iterator[Run]:
    spec = world.spec
    hosts = tuple(range(spec.job_hosts))
    if spec.benchmarks == "hosts":
        for day in range(_DAYS):
            moment = -_DAY * (_DAYS - day) + int(random.randint(int(_DAY / 4)))  # as rows print it
            yield Run(f"all_hosts_{day}", hosts, None, moment)
        for host in hosts:
            moment = -_DAY * _DAYS - 7200 + host * _RUN_SECONDS
            yield Run(f"alone_{world.topology.devices[host].name}", (host,), None, moment)
        return
    rails = world.topology.nics_per_host if spec.benchmarks == "rails" else 0
    wanted = max(len(hosts) * _LEAST_RUNS_OF_A_HOST // 2, 4 * rails, 16)
    order: list[int] = []
    for number in range(min(wanted, _MOST_RUNS)):
        if len(order) < 2:
            order = random.permutation(hosts).tolist()
        pair, order = tuple(sorted(order[:2])), order[2:]
        rail = int(random.randint(rails)) if rails else None
        moment = -_DAY + number * _RUN_SECONDS
        yield Run(f"sweep_{number:03d}", pair, rail, moment)


def _reached(world: World, run: Run, number: int) -> float:
    """Bus bandwidth of a run in GB/s where nothing is wrong: what its ring of hosts carries."""
    spec, topology = world.spec, world.topology
    if len(run.hosts) == 1:
        return _INSIDE[spec.gpu_model]
    if run.rail is not None:
        return float(topology.capacity[0]) / 1e9  # nobody shares its links
    plain = spec.model_copy(update={"job_kind": "dp"})
    launch = Launch(plain, topology, _FIRST_LAUNCH + number, run.hosts, 0, 1, 0.0)
    (phase,) = launch.phases
    (transfer,) = Network(launch).transfers(calm(topology))
    return phase.bus_factor * phase.message_bytes / float(transfer.seconds[0]) / 1e9
