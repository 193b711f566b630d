"""Which files are of which job: drawn sites whose truth is known, and each class of mistake alone.

No file may be given to a job that did not write it. What proves a launch (a communicator hash, a
process, host and time) must join its files, and a file that may be of several jobs says so.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import count, pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabricobs.diagnosis.scopes import merged, window_of
from fabricobs.store.jobs import Run, Trace, find_runs
from fabricobs.store.scoping import Window

START = datetime(2026, 3, 2, 9)
GPUS = 2
STEPS = 60
SECONDS = 10  # a step takes


@dataclass(frozen=True)
class Launch:
    """One start of a job as it is drawn."""

    job: str
    run: int
    hosts: tuple[str, ...]
    begin: datetime
    first_step: int
    number: int  # of all launches of the site

    @property
    def end(self) -> datetime:
        return self.begin + timedelta(seconds=STEPS * SECONDS)


@dataclass(frozen=True)
class Site:
    """How a site names and collects what its jobs print."""

    layout: str  # scheduler, folders, flat or hosts
    hashes: bool  # NCCL prints communicator hashes
    nccl_times: bool
    step_times: bool
    step_hosts: bool  # each host has a log of its steps; else rank 0 has the only one
    same_pids: bool  # containers: each launch begins at the same process id


def path_of(site: Site, launch: Launch, name: str, host: str) -> str:
    """Where the site keeps a file of a launch."""
    return {
        "scheduler": f"/logs/slurm-{4000 + launch.number}/{name}.{host}.log",
        "folders": f"/logs/{launch.job}/run{launch.run}/{name}.{host}.log",
        "flat": f"/logs/{name}.{host}.{launch.number}.log",
        "hosts": f"/logs/{host}/{name}-{launch.begin:%d%H%M%S}-{launch.number}.log",
    }[site.layout]


def nccl_traces(site: Site, launch: Launch) -> list[Trace]:
    """What the log of NCCL of each host shows: its processes with their ranks."""
    world = len(launch.hosts) * GPUS
    moment = launch.begin - timedelta(seconds=20) if site.nccl_times else None
    return [
        Trace(
            told_by="process",
            file_id=f"nccl-{launch.number}-{host}",
            given=None,
            path=path_of(site, launch, "nccl", host),
            host=host,
            pid=100 + local + (0 if site.same_pids else 1000 * launch.number),
            comm_hash=f"0x{launch.number:016x}" if site.hashes else None,
            nranks=world,
            rank=index * GPUS + local,
            version="2.21.5",
            first_line=1 + local,
            last_line=1 + local,
            first_step=None,
            last_step=None,
            begin=moment,
            end=moment,
            comm=f"0x{launch.number + 1:04x}{index * GPUS + local:08x}",
        )
        for index, host in enumerate(launch.hosts)
        for local in range(GPUS)
    ]


def step_traces(site: Site, launch: Launch) -> list[Trace]:
    """What the trainer's logs show: the ranks of each host, or rank 0 without its host."""
    ranks = range(len(launch.hosts) * GPUS) if site.step_hosts else [None]
    found = []
    for rank in ranks:
        host = launch.hosts[0 if rank is None else rank // GPUS]
        found.append(
            Trace(
                told_by="step",
                file_id=f"steps-{launch.number}-{host}",
                given=None,
                path=path_of(site, launch, "train", host if site.step_hosts else "main"),
                host=host if site.step_hosts else None,
                pid=None,
                comm_hash=None,
                nranks=None,
                rank=rank,
                version=None,
                first_line=None,
                last_line=None,
                first_step=launch.first_step,
                last_step=launch.first_step + STEPS - 1,
                begin=launch.begin if site.step_times else None,
                end=launch.end if site.step_times else None,
            )
        )
    return found


@st.composite
def drawn_launches(draw: st.DrawFn) -> list[Launch]:
    """Jobs at once on other hosts or one after another on the same, restarted or not."""
    numbers = count()
    launches: list[Launch] = []
    now = START
    for index in range(draw(st.integers(1, 3))):
        at_once = bool(launches) and draw(st.booleans())
        if launches and not at_once:
            last = max(each.end for each in launches)
            now = last + timedelta(minutes=draw(st.sampled_from([1, 20, 300])))
        own = f"{'abc'[index]}node" if at_once or draw(st.booleans()) else "node"
        hosts = tuple(f"{own}{number}" for number in range(draw(st.integers(1, 3))))
        launch = Launch(f"job{'xyz'[index]}", 1, hosts, now, 1, next(numbers))
        launches.append(launch)
        if draw(st.booleans()):
            # One host fewer, where there is one to spare, and from a checkpoint.
            smaller = hosts[:-1] if len(hosts) > 1 and draw(st.booleans()) else hosts
            begin = launch.end + timedelta(minutes=draw(st.sampled_from([2, 90])))
            launches.append(replace(launch, run=2, hosts=smaller, begin=begin, first_step=41))
            launches[-1] = replace(launches[-1], number=next(numbers))
    return launches


sites = st.builds(
    Site,
    layout=st.sampled_from(["scheduler", "folders", "flat", "hosts"]),
    hashes=st.booleans(),
    nccl_times=st.booleans(),
    step_times=st.booleans(),
    step_hosts=st.booleans(),
    same_pids=st.booleans(),
)


def launch_of(file_id: str | None) -> int:
    return int(str(file_id).split("-")[1])


@settings(max_examples=150, deadline=None)
@given(launches=drawn_launches(), site=sites, order=st.randoms(use_true_random=False))
def test_no_file_is_given_to_another_job(launches: list[Launch], site: Site, order: Random) -> None:
    traces = [t for each in launches for t in (*nccl_traces(site, each), *step_traces(site, each))]
    order.shuffle(traces)
    runs = find_runs(traces)
    by_launch: dict[int, list[Run]] = {}
    for run in runs:
        writers = {launch_of(part.file_id) for part in run.parts}
        assert len(writers) == 1, f"files of {len(writers)} launches are one run: {run.paths}"
        by_launch.setdefault(writers.pop(), []).append(run)
    for launch in launches:
        found = by_launch[launch.number]
        with_nccl = [run for run in found if run.processes]
        if site.hashes:
            assert len(with_nccl) == 1, "a communicator hash joins the hosts"
        if site.hashes and site.layout in {"scheduler", "folders"}:
            assert len(found) == 1, "a folder of one launch joins its files"
        if site.hashes and site.step_hosts and site.step_times and site.nccl_times:
            assert len(found) == 1, "host and time join steps and NCCL"
        for run in found:
            if len(launches) > 1 and not run.processes and site.hashes:
                assert run.candidates, "files without a job say of how many they may be"


@settings(max_examples=100, deadline=None)
@given(launches=drawn_launches(), site=sites, data=st.data())
def test_a_restart_that_no_step_tells_of_is_the_next_run(
    launches: list[Launch], site: Site, data: st.DataObject
) -> None:
    """Restarts replace a host, or go on without one: each was a job of its own."""
    restarted = []
    for launch in launches:
        if launch.run == 2 and len(launch.hosts) > 2 and data.draw(st.booleans(), "replaced"):
            launch = replace(launch, hosts=(*launch.hosts[:-1], f"{launch.job}spare9"))
        restarted.append(launch)
    site = replace(site, hashes=True)
    runs = {
        launch_of(run.parts[0].file_id): run
        for run in find_runs([t for each in restarted for t in timed_traces(site, each)])
    }
    names = {(runs[each.number].name, each.job) for each in restarted}
    if site.layout in {"folders", "scheduler"}:
        assert len({name for name, _ in names}) == len(names), "a name is of one job"
    for first, second in pairwise(restarted):
        soon = second.begin - first.end < timedelta(minutes=30)
        if second.run == 2 and soon and site.layout != "scheduler":
            assert runs[second.number].name == runs[first.number].name
            assert runs[second.number].number == runs[first.number].number + 1


def timed_traces(site: Site, launch: Launch) -> list[Trace]:
    """What the Inspector shows of the communicator of all ranks from begin to end."""
    return [
        replace(
            trace,
            told_by="collective",
            rank=None,
            version=None,
            first_line=None,
            last_line=None,
            comm=None,
            begin=launch.begin,
            end=launch.end,
        )
        for trace in nccl_traces(site, launch)
    ]


@settings(max_examples=100, deadline=None)
@given(
    launches=drawn_launches(),
    site=sites,
    name=st.sampled_from(["nccl.{host}.{pid}.log", "{host}-pid{pid}.txt", "w_{pid}_{host}.log"]),
    order=st.randoms(use_true_random=False),
)
def test_a_file_named_after_a_process_is_of_its_launch(
    launches: list[Launch], site: Site, name: str, order: Random
) -> None:
    """The watchdog of torch writes into the file that %h and %p name, and tells no process."""
    site = replace(site, hashes=True, same_pids=False, layout="flat")
    traces = []
    for launch in launches:
        for trace in timed_traces(site, launch):
            trace = replace(trace, pid=(trace.pid or 0) + 2000)
            path = "/watchdog/" + name.format(host=trace.host, pid=trace.pid)
            file = f"watchdog-{launch.number}-{trace.host}-{trace.pid}"
            told = replace(trace, told_by="process", file_id=file, path=path, pid=None, nranks=None)
            traces += [trace, replace(told, comm_hash=None, begin=None, end=None)]
    order.shuffle(traces)
    runs = find_runs(traces)
    assert len(runs) == len(launches)
    for run in runs:
        assert len({launch_of(part.file_id) for part in run.parts}) == 1


@settings(max_examples=50, deadline=None)
@given(launches=drawn_launches(), site=sites)
def test_names_and_runs_follow_the_truth(launches: list[Launch], site: Site) -> None:
    told = replace(site, hashes=True, nccl_times=True, step_times=True, step_hosts=True)
    traces = [t for each in launches for t in (*nccl_traces(told, each), *step_traces(told, each))]
    runs = {launch_of(run.parts[0].file_id): run for run in find_runs(traces)}
    assert len(runs) == len(launches)
    for launch in launches:
        run = runs[launch.number]
        assert run.hosts == launch.hosts
        assert run.ranks == run.nranks == len(launch.hosts) * GPUS
        assert (run.first_step, run.last_step) == (launch.first_step, launch.first_step + 59)
        if launch.run == 2 and site.layout != "scheduler":
            first = runs[launch.number - 1]
            assert run.name == first.name, "a restart is the next run of its job"
            assert run.number == first.number + 1
            assert run.replayed_steps >= 20


def group_traces(site: Site, launch: Launch) -> list[Trace]:
    """What the Inspector shows of a job without a communicator of all ranks: a group a rail."""
    calls = 50 + launch.number
    found = []
    for local in range(GPUS):
        for index, host in enumerate(launch.hosts):
            found.append(
                Trace(
                    told_by="collective",
                    file_id=f"inspector-{launch.number}-{host}-{local}",
                    given=None,
                    path=path_of(site, launch, f"inspector{local}", host),
                    host=host,
                    pid=100 + local + (0 if site.same_pids else 1000 * launch.number),
                    comm_hash=f"0x{launch.number:08x}{local:08x}",
                    nranks=len(launch.hosts),
                    rank=None,
                    version=None,
                    first_line=None,
                    last_line=None,
                    first_step=None,
                    last_step=None,
                    begin=launch.begin + timedelta(seconds=index),
                    end=launch.end - timedelta(seconds=local),
                    calls=calls,
                )
            )
    return found


@settings(max_examples=100, deadline=None)
@given(launches=drawn_launches(), site=sites, order=st.randoms(use_true_random=False))
def test_groups_of_one_job_are_one_run(launches: list[Launch], site: Site, order: Random) -> None:
    launches = [each for each in launches if len(each.hosts) > 1]
    told = replace(site, hashes=True)
    traces = [t for each in launches for t in group_traces(told, each)]
    order.shuffle(traces)
    runs = find_runs(traces)
    assert sorted(run.hosts for run in runs) == sorted(each.hosts for each in launches)
    for run in runs:
        assert len({launch_of(part.file_id) for part in run.parts}) == 1


def rail_traces(site: Site, launch: Launch, timed: int) -> list[Trace]:
    """What NCCL logs of a job whose communicators are one a rail; `timed` of them say when."""
    found = []
    for trace in group_traces(site, launch):
        local = int(str(trace.file_id).rpartition("-")[2])
        moment = launch.begin if local < timed else None
        rank = launch.hosts.index(str(trace.host))
        gpu = f"{0x1A + 16 * local:x}000"
        told = replace(trace, told_by="process", rank=rank, begin=moment, end=moment, gpu=gpu)
        found.append(replace(told, calls=None))
    return found


@settings(max_examples=100, deadline=None)
@given(
    launches=drawn_launches(),
    site=sites,
    timed=st.integers(0, 1),
    order=st.randoms(use_true_random=False),
)
def test_groups_without_times_are_one_run_by_their_gpus(
    launches: list[Launch], site: Site, timed: int, order: Random
) -> None:
    launches = [each for each in launches if len(each.hosts) > 1]
    traces = [t for each in launches for t in rail_traces(site, each, timed)]
    order.shuffle(traces)
    runs = find_runs(traces)
    for run in runs:
        assert len({launch_of(part.file_id) for part in run.parts}) == 1
    if site.layout in {"scheduler", "folders"} or len(launches) == 1:
        assert sorted(run.hosts for run in runs) == sorted(each.hosts for each in launches)


@settings(max_examples=100, deadline=None)
@given(launches=drawn_launches(), site=sites, data=st.data())
def test_logs_with_the_same_losses_are_of_one_run(
    launches: list[Launch], site: Site, data: st.DataObject
) -> None:
    layout = data.draw(st.sampled_from(["pods", "processes"]))
    traces = []
    for launch in launches:
        (first, *_) = step_traces(replace(site, step_hosts=False), launch)
        for copy in range(data.draw(st.integers(1, 4))):
            folder = f"/logs/{launch.job}/run{launch.run}"
            name = f"worker-{copy}.log" if layout == "pods" else f"{copy}/stderr.log"
            # Processes in folders of their own say when: nothing else tells them from other seeds.
            begin = launch.begin if site.step_times or layout == "processes" else None
            copied = replace(
                first, file_id=f"steps-{launch.number}-{copy}", path=f"{folder}/{name}"
            )
            end = launch.end if begin is not None else None
            losses = f"60:{launch.first_step}"  # every job has the same seed
            traces.append(replace(copied, begin=begin, end=end, printed=losses))
    runs = find_runs(traces)
    for run in runs:
        same_time = {launches[launch_of(part.file_id)].begin for part in run.parts}
        assert len(same_time) == 1
    if layout == "pods":
        folders = {frozenset(path.rsplit("/", 1)[0] for path in run.paths) for run in runs}
        assert len(folders) == len(runs)


@settings(max_examples=50, deadline=None)
@given(launches=drawn_launches())
def test_a_row_of_a_host_belongs_to_one_run_at_most(launches: list[Launch]) -> None:
    site = Site("folders", True, True, True, True, False)
    traces = [t for each in launches for t in (*nccl_traces(site, each), *step_traces(site, each))]
    runs = find_runs(traces)
    truth = {each.number: each for each in launches}
    for host in {host for each in launches for host in each.hosts}:
        own = [run for run in runs if host in run.hosts]
        for minute in range(-30, 1200):
            moment = START + timedelta(minutes=minute, seconds=7)
            owners = [run for run in own if _covers(run, runs, moment)]
            assert len(owners) <= 1, f"{host} at {moment} is of {len(owners)} runs"
            running = [
                run
                for run in own
                if (each := truth[launch_of(run.parts[0].file_id)]).begin <= moment <= each.end
            ]
            assert running in ([], owners)


def _covers(run: Run, runs: tuple[Run, ...], moment: datetime) -> bool:
    window = window_of(run, runs)
    if window is None:
        return False
    after = window.begin is None or window.begin <= moment
    return after and (window.end is None or moment < window.end)


_WINDOWS = st.builds(
    lambda begin, minutes, openness: Window(
        None if openness == "begin" else START + timedelta(minutes=begin),
        None if openness == "end" else START + timedelta(minutes=begin + minutes),
    ),
    st.integers(0, 500),
    st.integers(0, 60),
    st.sampled_from(["", "", "", "", "begin", "end"]),
)


@settings(max_examples=100, deadline=None)
@given(windows=st.lists(_WINDOWS, max_size=12))
def test_windows_of_a_sweep_are_merged_to_the_same_times(windows: list[Window]) -> None:
    def holds(window: Window, moment: datetime) -> bool:
        after = window.begin is None or window.begin <= moment
        return after and (window.end is None or moment <= window.end)

    fewer = merged(windows)
    assert len(fewer) <= len(windows)
    for second in range(-60, 34_000, 31):
        moment = START + timedelta(seconds=second)
        assert sum(holds(window, moment) for window in fewer) == any(
            holds(window, moment) for window in windows
        )


# Seconds to hours a clock is wrong by; whole hours where a log is in a zone it does not name.
OFFSETS = [timedelta(seconds=90), timedelta(minutes=-11), timedelta(hours=8), timedelta(days=-1)]


def set_wrong(traces: list[Trace], clocks: dict[str, timedelta]) -> list[Trace]:
    """Return traces as hosts with wrong clocks, or trainers that log local time, write them."""
    return [
        replace(trace, begin=trace.begin + off, end=trace.end + off)
        if trace.begin and trace.end and (off := clocks.get(f"{trace.told_by} {trace.host}"))
        else trace
        for trace in traces
    ]


@settings(max_examples=150, deadline=None)
@given(launches=drawn_launches(), site=sites, data=st.data())
def test_wrong_clocks_and_zones_join_no_two_jobs(
    launches: list[Launch], site: Site, data: st.DataObject
) -> None:
    """A wrong clock may part files that folders and hashes join, never join those of two jobs."""
    site = replace(site, hashes=True)
    traces = [t for each in launches for t in (*nccl_traces(site, each), *step_traces(site, each))]
    writers = sorted({f"{trace.told_by} {trace.host}" for trace in traces})
    wrong = st.dictionaries(st.sampled_from(writers), st.sampled_from(OFFSETS))
    runs = find_runs(set_wrong(traces, data.draw(wrong)))
    placed = site.layout in {"scheduler", "folders"}
    for run in runs:
        files = {part.file_id for part in run.parts}
        proven = files if placed else {file for file in files if file.startswith("nccl")}
        assert len(set(map(launch_of, proven))) <= 1, run.paths
    assert len([run for run in runs if run.processes]) == len(launches)


def device_list(file: str, pid: int) -> list[Trace]:
    """The device list that nccl-tests prints: one process with eight ranks on `localhost`."""
    blank = nccl_traces(Site("flat", False, False, False, False, True), TOLD)[0]
    return [
        replace(blank, file_id=file, path=f"/logs/{file}.log", host="localhost", pid=pid, rank=rank,
                nranks=None, comm=None, version=None)
        for rank in range(8)
    ]  # fmt: skip


TOLD = Launch("job", 1, ("n1",), START, 1, 0)


def test_runs_of_nccl_tests_in_one_folder_are_apart() -> None:
    traces = [*device_list("allreduce", 11), *device_list("alltoall", 12)]
    assert [run.name for run in find_runs(traces)] == ["allreduce", "alltoall"]


def test_a_folder_of_several_jobs_proves_nothing() -> None:
    site = Site("flat", False, False, True, False, False)
    other = replace(TOLD, hosts=("m1", "m2"), number=1)
    alone = replace(TOLD, begin=START + timedelta(days=30), number=2)
    traces = [*nccl_traces(site, TOLD), *nccl_traces(site, other), *step_traces(site, alone)]
    runs = find_runs([replace(t, path=f"/logs/{t.file_id}.log") for t in traces])
    (steps,) = (run for run in runs if run.first_step is not None)
    assert len(steps.paths) == 1
    assert steps.candidates == 2, "either of the two jobs may have run then"
    told = find_runs([replace(t, path=f"/logs/{launch_of(t.file_id)}/x.log") for t in traces])
    assert len(told) == 3


@pytest.mark.parametrize(("later", "launches"), [(timedelta(0), 1), (timedelta(hours=2), 2)])
def test_files_of_other_communicators_are_joined_by_their_processes(
    later: timedelta, launches: int
) -> None:
    """NCCL's log tells of the world, Inspector of the smaller communicators: two jobs were told."""
    site = Site("flat", True, True, False, False, True)
    world = nccl_traces(site, replace(TOLD, hosts=("n1", "n2")))
    begin = START + later
    inspector = [
        replace(trace, told_by="collective", file_id="i", path="/i/inspector.log",
                comm_hash="0xabcdef0123", comm=None, nranks=None, rank=None, version=None,
                begin=begin, end=begin + timedelta(minutes=5))
        for trace in world
    ]  # fmt: skip
    runs = find_runs([*world, *inspector])
    assert len(runs) == launches


@settings(max_examples=100, deadline=None)
@given(launches=drawn_launches(), site=sites, order=st.randoms(use_true_random=False))
def test_a_log_without_times_is_of_the_job_of_its_processes(
    launches: list[Launch], site: Site, order: Random
) -> None:
    """NCCL's log has no times, Inspector tells of groups within hosts: a job was two or more."""
    site = replace(site, hashes=True, nccl_times=False)
    launches = [each for each in launches if len(each.hosts) > 1]
    traces = []
    for launch in launches:
        for trace in nccl_traces(site, launch):
            # Hosts number their processes on their own, containers alike.
            own = 0 if site.same_pids else 10_000 * launch.hosts.index(str(trace.host))
            world = replace(trace, pid=(trace.pid or 0) + own)
            timed = replace(
                world, told_by="collective", file_id=f"inspector-{launch.number}-{trace.host}",
                path=f"/logs/inspector/{trace.host}-pid{world.pid}.log",
                comm_hash=f"0xabc{launch.number:08x}{launch.hosts.index(str(trace.host)):05x}",
                nranks=None, rank=None, version=None, comm=None, first_line=None, last_line=None,
                begin=launch.begin, end=launch.end,
            )  # fmt: skip
            traces += [world, timed]
    order.shuffle(traces)
    runs = find_runs(traces)
    for run in runs:
        assert len({launch_of(part.file_id) for part in run.parts}) == 1
    if not site.same_pids:
        assert sorted(run.hosts for run in runs) == sorted(each.hosts for each in launches)
