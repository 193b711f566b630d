"""What schedulers say of jobs and hosts: read in every shape they print, and the hosts of launches.

Jobs, names, hosts and tables are drawn. No run may be given a host that its job did not have.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from random import Random
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricobs.diagnosis.run import diagnose
from fabricobs.formats.context import Context
from fabricobs.formats.readers.node_lists import hosts_of
from fabricobs.formats.reading import read_file
from fabricobs.formats.recognition.catalogue import load_catalogue
from fabricobs.formats.rows import Rows
from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.store.allocations import Allocation
from fabricobs.store.jobs import Trace, find_runs
from fabricobs.store.parts import Store
from fabricobs.store.session import runs_of

CATALOGUE = load_catalogue()
START = datetime(2026, 1, 14, 3, 10)
NAMES = ("gpt", "gpt13b", "gpt-large", "vit", "moe_8x7b", "ldm", "sft-70b")


def compressed(hosts: tuple[str, ...]) -> str:
    """Write hosts as Slurm does: numbers of one width behind one text in brackets."""
    parts = []
    for (text, width), group in groupby(hosts, key=lambda h: _split(h)[:2]):
        numbers = [int(_split(host)[2] or -1) for host in group]
        if width == 0:
            parts += [text] * len(numbers)
            continue
        ranges: list[list[int]] = []
        for number in numbers:
            if ranges and number == ranges[-1][1] + 1 and len(str(number)) <= width:
                ranges[-1][1] = number
            else:
                ranges.append([number, number])
        inside = ",".join(
            f"{a:0{width}}" if a == b else f"{a:0{width}}-{b:0{width}}" for a, b in ranges
        )
        plain = len(numbers) == 1
        parts.append(f"{text}{inside}" if plain else f"{text}[{inside}]")
    return ",".join(parts)


def _split(host: str) -> tuple[str, int, str]:
    found = re.fullmatch(r"(.*?)(\d*)", host)
    assert found is not None
    return found[1], len(found[2]), found[2]


hosts_drawn = st.lists(
    st.one_of(
        st.builds(
            lambda text, number, width: f"{text}{number:0{width}}",
            st.sampled_from(["g", "kst", "rack1n", "orca-n", "dgx.a", "r2-"]),
            st.integers(0, 1200),
            st.integers(1, 4),
        ),
        st.sampled_from(["login", "a", "gpu-x"]),
    ),
    min_size=1,
    max_size=40,
    unique=True,
).map(tuple)


@given(hosts_drawn)
def test_a_node_list_is_what_it_was_made_of(hosts: tuple[str, ...]) -> None:
    assert hosts_of(compressed(hosts)) == hosts
    ordered = tuple(sorted(hosts))
    assert hosts_of(compressed(ordered)) == ordered


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("kst[01-02,05-06]", "kst01 kst02 kst05 kst06"),
        ("rack[1-2]n[09-10]", "rack1n09 rack1n10 rack2n09 rack2n10"),
        ("a1,b[3-5]", "a1 b3 b4 b5"),
        ("n[8-11]-ib", "n8-ib n9-ib n10-ib n11-ib"),
        *((none, "") for none in ("", "(null)", "None", "(Resources)", "None assigned", "<none>")),
    ],
)
def test_node_lists(text: str, hosts: str) -> None:
    assert hosts_of(text) == tuple(hosts.split())


@pytest.mark.parametrize(
    "text",
    ["kst[01-02,0+", "g[09-", "g[1-99999999]", "a,,b", "a b", "g[3-1]", "g[]", "[1-999][1-999]x"],
)
def test_what_is_no_node_list(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        hosts_of(text)


@dataclass(frozen=True)
class Job:
    """A job of a scheduler as it is drawn; `end` is None while it runs."""

    id: str
    name: str
    hosts: tuple[str, ...]
    begin: datetime
    end: datetime | None

    @property
    def state(self) -> str:
        return "RUNNING" if self.end is None else "COMPLETED"

    @property
    def elapsed(self) -> timedelta:
        return (self.end or CAPTURED) - self.begin


CAPTURED = START + timedelta(hours=30)
Writer = Callable[[list[Job], Random], str]


def _clock(span: timedelta) -> str:
    seconds = int(span.total_seconds())
    days = f"{seconds // 86400}-" if seconds >= 86400 else ""
    return f"{days}{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _time(moment: datetime | None) -> str:
    return "Unknown" if moment is None else f"{moment:%Y-%m-%dT%H:%M:%S}"


def sacct_parsable(jobs: list[Job], chance: Random) -> str:
    columns: dict[str, Callable[[Job], str]] = {
        "JobID": lambda j: j.id,
        "JobName": lambda j: j.name,
        "User": lambda _: "kim",
        "NodeList": lambda j: compressed(j.hosts),
        "Start": lambda j: _time(j.begin),
        "End": lambda j: _time(j.end),
        "Elapsed": lambda j: _clock(j.elapsed),
        "State": lambda j: j.state,
    }
    names = chance.sample(list(columns), len(columns))
    lines = ["|".join(names)]
    for job in jobs:
        lines.append("|".join(columns[name](job) for name in names))
        for step in ("batch", "extern", "0"):
            own = replace(job, id=f"{job.id}.{step}", name=step, hosts=job.hosts[:1])
            lines.append("|".join(columns[name](own) for name in names))
    return "\n".join(lines) + "\n"


def sacct_ruled(jobs: list[Job], chance: Random) -> str:
    widths = {"JobID": 12, "JobName": 14, "NodeList": 60, "Start": 19, "End": 19, "State": 10}
    names = chance.sample(list(widths), len(widths))
    lines = [" ".join(f"{n:>{widths[n]}}" for n in names)]
    lines.append(" ".join("-" * widths[n] for n in names))
    for job in jobs:
        for suffix in ("", ".batch"):
            cells = {
                "JobID": f"{job.id}{suffix}",
                "JobName": job.name,
                "NodeList": compressed(job.hosts),
                "Start": _time(job.begin),
                "End": _time(job.end),
                "State": job.state,
            }
            lines.append(" ".join(f"{cells[n]:>{widths[n]}}" for n in names))
    return "\n".join(lines) + "\n"


def squeue_times(jobs: list[Job], _: Random) -> str:
    lines = ["JOBID PARTITION NAME USER STATE START_TIME END_TIME NODELIST"]
    for job in jobs:
        limit = job.end or CAPTURED + timedelta(days=2)
        hosts = compressed(job.hosts)
        lines.append(
            f"  {job.id} gpu {job.name} kim {job.state} {_time(job.begin)} {_time(limit)} {hosts}"
        )
    return "\n".join(lines) + "\n"


def squeue_default(jobs: list[Job], _: Random) -> str:
    lines = [f"{CAPTURED:%a %b %d %H:%M:%S %Y}"]
    lines.append("  JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)")
    lines += [
        f"{j.id:>7}       gpu {j.name:>8}      kim  R {_clock(j.elapsed):>10} {len(j.hosts):>6} "
        f"{compressed(j.hosts)}"
        for j in jobs
        if j.end is None
    ]
    lines.append(
        "  99999       gpu     wait      kim PD       0:00      4 (Nodes are down, waiting)"
    )
    return "\n".join(lines) + "\n"


def scontrol(jobs: list[Job], _: Random) -> str:
    blocks = [
        f"JobId={j.id} JobName={j.name}\n   UserId=kim(1) GroupId=kim(1)\n"
        f"   JobState={j.state} Reason=None Dependency=(null)\n"
        f"   StartTime={_time(j.begin)} EndTime={_time(j.end or CAPTURED + timedelta(days=1))} "
        f"Deadline=N/A\n   ReqNodeList=(null) ExcNodeList=(null)\n"
        f"   NodeList={compressed(j.hosts)}\n   NumNodes={len(j.hosts)} CPUs/Task=24\n"
        for j in jobs
    ]
    return "\n".join(blocks)


WRITERS = (sacct_parsable, sacct_ruled, squeue_times, squeue_default, scontrol)


def drawn_jobs(chance: Random) -> list[Job]:
    """Draw jobs that have hosts of their own while they run; some ran before on the same hosts."""
    jobs: list[Job] = []
    number = chance.randrange(1000, 90_000)
    place = 0
    for name in chance.sample(NAMES, chance.randrange(1, 6)):
        size = chance.randrange(1, 5)
        hosts = tuple(f"g{place + i:02}" for i in range(size))
        place += size
        begin = START + timedelta(minutes=chance.randrange(300))
        for _ in range(chance.choice([1, 1, 2])):
            number += chance.randrange(1, 9)
            end = begin + timedelta(minutes=chance.randrange(60, 300))
            jobs.append(Job(str(number), name, hosts, begin, end))
            begin = end + timedelta(minutes=chance.randrange(5, 60))
            place += 1
            hosts = (*hosts[1:], f"g{place:02}")  # a failed host is replaced
            place += 1
    return [replace(j, end=None) if chance.random() < 0.3 and j is jobs[-1] else j for j in jobs]


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("seed", range(6))
def test_each_table_tells_the_same(writer: Writer, seed: int, tmp_path: Path) -> None:
    chance = Random(seed)
    zone = ZoneInfo(chance.choice(["UTC", "Europe/Berlin", "America/New_York"]))
    jobs = drawn_jobs(chance)
    if writer is squeue_default:
        jobs = [replace(job, end=None) for job in jobs]
    text = writer(jobs, chance)
    path = tmp_path / "table.txt"
    path.write_text(text)
    recognised = CATALOGUE.recognise(text.encode(), str(path))
    assert recognised.names == ("allocations",)
    rows = Rows()
    read = read_file(path, recognised, Context("f", zone=zone), rows, lambda: None)
    assert read.tally.unparsed == 0

    def utc(moment: datetime | None) -> datetime | None:
        return moment and moment.replace(tzinfo=zone).astimezone(UTC).replace(tzinfo=None)

    told = {
        tuple(row[n] for n in ("job_id", "job_name", "host", "start_time", "end_time"))
        for _, part in rows.drain()
        for row in part.to_pylist()
        if row["host"] is not None
    }
    assert told == {
        (j.id, j.name, host, utc(j.begin), utc(j.end)) for j in jobs for host in j.hosts
    }


@pytest.mark.parametrize(
    "text",
    [
        # A job's own log that begins with what its script asked.
        "JobId=77 JobName=gpt\n   JobState=RUNNING\n   NodeList=g[1-2]\n\nstep 1 loss 2.3\n",
        "JOBID NAME ST TIME NODES NODELIST\n77 gpt R 0:01 2 g[1-2]\n[2026-01-14] step 1 loss 2\n",
        # LSF names its columns alike.
        "JOBID   USER    STAT  QUEUE  FROM_HOST EXEC_HOST JOB_NAME SUBMIT_TIME\n"
        "77      kim     RUN   gpu    login1    g01       gpt      Jan 14 03:10\n",
        "NAME   READY   STATUS    RESTARTS   AGE\npod-0  1/1     Running   0          3m\n",
    ],
)
def test_what_is_no_such_table(text: str) -> None:
    assert "allocations" not in CATALOGUE.recognise(text.encode(), "/logs/x.out").names


def step_trace(path: str, begin: datetime | None, end: datetime | None, host: str | None) -> Trace:
    return Trace(
        told_by="step", file_id=path, given=None, path=path, host=host, pid=None, comm_hash=None,
        nranks=None, rank=None, version=None, first_line=None, last_line=None, first_step=1,
        last_step=50, begin=begin, end=end,
    )  # fmt: skip


def given_to(jobs: list[Job]) -> list[Allocation]:
    return [
        Allocation(j.id, j.name, frozenset(j.hosts), frozenset(), j.begin, j.end, None)
        for j in jobs
    ]


LAYOUTS_BY_ID = (
    "slurm-{id}.out", "{name}-{id}.out", "{id}/train.log", "log-acct_{name}.out_{id}.txt",
    "x/logs/{id}/rank0.log",
)  # fmt: skip
LAYOUTS_BY_NAME = ("C_{name}/train.log", "{name}.pdsh.log", "{name}/rank0.log")


@pytest.mark.parametrize("seed", range(60))
def test_no_run_has_a_host_of_another_job(seed: int) -> None:
    """Each log is found by its id; by its name where one job alone has it at that time."""
    chance = Random(seed)
    jobs = drawn_jobs(chance)
    absent = {job.id for job in jobs if chance.random() < 0.2}
    wanted: dict[str, frozenset[str]] = {}
    by_name: set[str] = set()
    traces = []
    for number, job in enumerate(jobs):
        has_id = chance.random() < 0.5
        layout = chance.choice(LAYOUTS_BY_ID if has_id else LAYOUTS_BY_NAME)
        path = f"/w/{number}/" + layout.format(id=job.id, name=job.name)
        begin = job.begin + timedelta(minutes=3)
        end = begin + timedelta(minutes=40)
        host = chance.choice([None, job.hosts[0]])
        traces.append(step_trace(path, begin, end, host))
        wanted[path] = frozenset(job.hosts)
        if not has_id:
            by_name.add(path)
    known = given_to([job for job in jobs if job.id not in absent])
    for run in find_runs(traces, known):
        truth = frozenset().union(*(wanted[path] for path in run.paths))
        assert {*run.hosts} <= truth, run.paths
        if len(run.paths) > 1:
            # Files of jobs that no table has, or not by this name, may look like one job.
            assert any(jobs[int(path.split("/")[2])].id in absent for path in run.paths)
            continue
        (path,) = run.paths
        job = jobs[int(path.split("/")[2])]
        if job.id not in absent and (path not in by_name or "C_" in path):
            assert {*run.hosts} == truth, path


def test_logs_that_name_other_hosts_are_believed() -> None:
    job = Job("7702", "gpt", ("g1", "g2"), START, None)
    trace = step_trace("/w/slurm-7702.out", START, START + timedelta(hours=1), "ip-10-0-0-7")
    (run,) = find_runs([trace], given_to([job]))
    assert run.hosts == ("ip-10-0-0-7",)


def test_two_jobs_of_one_name_at_one_time_are_not_guessed() -> None:
    end = START + timedelta(hours=1)
    traces = [step_trace("/w/C_vit/train.log", START, end, None)]
    twins = [Job(i, "vit", (f"g{i}",), START, None) for i in ("71000", "71001")]
    assert find_runs(traces, given_to(twins))[0].hosts == ()
    assert find_runs(traces, given_to(twins[:1]))[0].hosts == ("g71000",)
    later = replace(twins[1], begin=end + timedelta(hours=2))
    assert find_runs(traces, given_to([twins[0], later]))[0].hosts == ("g71000",)


@pytest.mark.parametrize("part", ["-rank-11", "-1111-11", "-1111", "_rank_1111", "-log", "-1-"])
def test_a_hostile_name_takes_no_time(part: str) -> None:
    trace = step_trace(f"/w/gpt{part * 40}!/x.log", None, None, None)
    (run,) = find_runs([trace], given_to([Job("7702", "gpt", ("g1",), START, None)]))
    assert run.hosts == ()


@pytest.mark.parametrize("table", ["allocated", "none"])
def test_pods_are_on_their_nodes(table: str) -> None:
    end = START + timedelta(hours=1)
    traces = [
        step_trace(f"/k8s/gpt-{pod}.log", START, end, f"gpt-{pod}")
        for pod in ("master-0", "worker-0")
    ]
    pods = frozenset({"gpt-master-0", "gpt-worker-0"})
    known = [Allocation(None, "gpt", frozenset({"kn-1", "kn-2"}), pods, START, None, None)]
    (run,) = find_runs(traces, known if table == "allocated" else [])
    assert {*run.hosts} == ({"kn-1", "kn-2"} if table == "allocated" else pods)


def write_site(logs: Path, seed: int) -> tuple[str, str, int, float]:
    """Write two jobs whose logs name no host; a GPU of one gets slow in the middle.

    Returned are the job, the host, the GPU and the loss.
    """
    chance = Random(seed)
    names = chance.sample(["gpt", "gpt13b"], 2)
    hosts = {names[0]: ("g01", "g02"), names[1]: ("g03", "g04")}
    ids = {name: str(7702 + 8 * i) for i, name in enumerate(names)}
    slow = chance.choice(names)
    host, gpu = chance.choice(hosts[slow]), chance.randrange(4)
    longer = chance.choice([1.25, 1.4])
    at, half = START, START + timedelta(minutes=60)
    for name in names:
        moment, lines = at, []
        step = 0
        base = chance.uniform(8, 11)
        # Rank 0 alone may name its host.
        place = chance.choice(["", f', "rank": 0, "host": "{hosts[name][0]}.dc.example"'])
        while moment < at + timedelta(minutes=120):
            step += 1
            seconds = base * (longer if name == slow and moment >= half else 1)
            seconds *= chance.uniform(0.995, 1.005)
            moment += timedelta(seconds=seconds)
            lines.append(
                f'{{"step": {step}, "step_time_ms": {seconds * 1000:.1f}, '
                f'"timestamp": "{moment:%Y-%m-%dT%H:%M:%S.%f}Z"{place}}}'
            )
        (logs / name).mkdir(parents=True)
        (logs / name / f"{name}_{ids[name]}.jsonl").write_text("\n".join(lines) + "\n")
    head = (
        "timestamp, index, clocks.current.sm [MHz], clocks.max.sm [MHz], temperature.gpu, "
        "utilization.gpu [%], clocks_throttle_reasons.active\n"
    )
    for name in ("g01", "g02", "g03", "g04"):
        lines = []
        for minute in range(120):
            moment = at + timedelta(minutes=minute)
            for index in range(4):
                hot = (name, index) == (host, gpu) and moment >= half
                told = (
                    "810 MHz, 1410 MHz, 90, 99 %, 0x0000000000000048"
                    if hot
                    else ("1410 MHz, 1410 MHz, 66, 99 %, 0x0000000000000000")
                )
                lines.append(f"{moment:%Y/%m/%d %H:%M:%S}.000, {index}, {told}")
        (logs / "smi").mkdir(exist_ok=True)
        (logs / "smi" / f"{name}.csv").write_text(head + "\n".join(lines) + "\n")
    jobs = [Job(ids[n], n, hosts[n], at - timedelta(minutes=2), None) for n in names]
    (logs / "slurm").mkdir()
    writer = chance.choice(WRITERS)
    (logs / "slurm" / "jobs.txt").write_text(writer(jobs, chance))
    return slow, host, gpu, 1 - 1 / longer


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_a_slow_gpu_costs_the_job_that_the_scheduler_names(seed: int, tmp_path: Path) -> None:
    logs, store = tmp_path / "logs", tmp_path / "store"
    job, host, gpu, loss = write_site(logs, seed)
    ingest([logs], Store(store), Options())
    assert {len(run.hosts) for run in runs_of(store)} == {2}
    judged = diagnose(store)
    found = [f for f in judged.findings if f.severity != "info"]
    assert [f.kind for f in found] == ["gpu_throttle"]
    assert found[0].loss_share == pytest.approx(loss, abs=0.03)
    assert (found[0].entities[0].host, found[0].entities[0].gpu) == (host, gpu)
    told = {each.run.name: found[0].id in each.findings for each in judged.jobs}
    assert [name.rpartition("_")[0] for name, has_it in told.items() if has_it] == [job]
