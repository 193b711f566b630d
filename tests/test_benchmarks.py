"""Runs of benchmarks against each other: which are alike, and which ran before which."""

import json
import os
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from conftest import Run
from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.querying import stored_queries
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session

pytestmark = pytest.mark.slow

SIZE = 1 << 30
BASE = datetime(2026, 3, 1, 9, tzinfo=UTC)


@dataclass(frozen=True)
class Sweep:
    """One run of all_reduce_perf as its output tells it."""

    hosts: tuple[str, ...] = ("node1", "node2")
    gpus: int = 4
    model: str = "NVIDIA H100 80GB HBM3"
    version: str = "22807"
    busbw: float = 90.0
    stamp: datetime | None = None
    with_ranks: bool = True
    wrong: int = 0
    nics: str = ""

    def output(self) -> str:
        """Return what nccl-tests would print."""
        nranks = self.gpus * len(self.hosts)
        factor = 2 * (nranks - 1) / nranks
        rates = f"{self.busbw / factor:.2f} {self.busbw:.2f}"
        half = f"{factor * SIZE / self.busbw / 1e3:.1f} {rates} {self.wrong}"
        stamp = f" {self.stamp:%Y-%m-%d %H:%M:%S}" if self.stamp else ""
        ranks = [
            f"#  Rank {r:2} Group  0 Pid {900 + r} on {self.hosts[r // self.gpus]} "
            f"device {r % self.gpus:2} [0x{r:02x}] {self.model}"
            for r in range(nranks)
        ]
        lines = [
            *(
                [f"a:9:9 [0] NCCL INFO NCCL_IB_HCA set by environment to {self.nics}"]
                * bool(self.nics)
            ),
            f"# nccl-tests version 2.17.6 (0f1e2d3) nccl-headers={self.version} "
            f"nccl-library={self.version}",
            "# Collective test starting: all_reduce_perf",
            *(ranks if self.with_ranks else []),
            "#       size         count      type   redop    root     time   algbw   busbw #wrong"
            "     time   algbw   busbw #wrong" + ("  timestamp" if stamp else ""),
            f"{SIZE:12} {SIZE // 4:12} float sum -1 {half} {half}{stamp}",
            f"# Out of bounds values : {2 * self.wrong} {'FAILED' if self.wrong else 'OK'}",
        ]
        return "\n".join(lines) + "\n"


def _write(path: Path, run: Sweep, changed: datetime) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(run.output())
    os.utime(path, (changed.timestamp(),) * 2)


def _accepted(store: Store) -> dict[str, tuple[float | None, str]]:
    """Return share of the run before, and verdict, by file; the same whenever it is asked."""
    query = stored_queries()["acceptance"]
    answers = []
    session = open_session(store.path, query.sql)
    for _ in range(5):
        cursor = session.execute(query.sql)
        names = [column[0] for column in cursor.description or ()]
        rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        answers.append({row["path"]: (row["share_of_before"], row["verdict"]) for row in rows})
    assert all(answer == answers[0] for answer in answers)
    return answers[0]


Place = Callable[[Path, int, str, Sweep], tuple[Path, Sweep, datetime]]


def _stated(folder: Path, number: int, name: str, run: Sweep) -> tuple[Path, Sweep, datetime]:
    """A time on each row; names and changes of the files say nothing."""
    return folder / name, replace(run, stamp=BASE + timedelta(hours=number)), BASE


def _by_day(folder: Path, number: int, name: str, run: Sweep) -> tuple[Path, Sweep, datetime]:
    """A folder a day, all copied at once, long after."""
    day = BASE + timedelta(days=number)
    return folder / f"{day:%Y-%m-%d}" / name, run, BASE + timedelta(days=300)


def _by_name(folder: Path, number: int, name: str, run: Sweep) -> tuple[Path, Sweep, datetime]:
    """A moment in the file's name, some within a minute of each other."""
    moment = BASE + timedelta(seconds=40 * number)
    return folder / f"{name}_{moment:%Y%m%d_%H%M%S}.out", run, BASE


def _by_change(folder: Path, number: int, name: str, run: Sweep) -> tuple[Path, Sweep, datetime]:
    """Nothing but the times at which the files were last changed."""
    return folder / name, run, BASE + timedelta(minutes=7 * number)


def _by_nothing(folder: Path, number: int, name: str, run: Sweep) -> tuple[Path, Sweep, datetime]:
    """Files of one copy, in one folder."""
    return folder / name, run, BASE + timedelta(seconds=number)


def _by_one_day(folder: Path, number: int, name: str, run: Sweep) -> tuple[Path, Sweep, datetime]:
    """A folder of one day, copied later."""
    return folder / f"{BASE:%Y-%m-%d}" / name, run, BASE + timedelta(days=9, minutes=9 * number)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("place", "ordered"),
    [
        (_stated, True),
        (_by_day, True),
        (_by_name, True),
        (_by_change, True),
        (_by_nothing, False),
        (_by_one_day, False),
    ],
)
def test_the_run_before_is_the_last_earlier_one_as_far_as_times_tell(
    tmp_path: Path, place: Place, ordered: bool, seed: int
) -> None:
    chance = random.Random(seed)
    names = chance.sample([f"{letter}.txt" for letter in "abcdefgh"], 4)
    speeds = [90 * chance.uniform(0.6, 1) for _ in names]
    drawn = [place(tmp_path / "logs", n, names[n], Sweep(busbw=speeds[n])) for n in range(4)]
    for each in drawn:
        _write(*each)
    store = Store(tmp_path / "s")
    paths = [path for path, *_ in drawn]
    for one in chance.sample(paths, 4) if seed else [tmp_path / "logs"]:
        ingest([one], store, Options())
    shares = [_accepted(store)[str(path)][0] for path in paths]
    if not ordered:
        assert shares == [None] * 4
        return
    assert shares[0] is None
    for n in range(1, 4):
        assert shares[n] == pytest.approx(speeds[n] / speeds[n - 1], abs=0.002)


OTHERS = {
    "hosts": {"hosts": ("node1", "node3")},
    "ranks": {"gpus": 8},
    "nodes": {"hosts": ("node1", "node2", "node3")},
    "model": {"model": "NVIDIA A100-SXM4-80GB"},
    "version": {"version": "22304"},
    "no ranks told": {"with_ranks": False},
}


@pytest.mark.parametrize("other", OTHERS)
def test_what_differs_or_is_not_stated_is_never_the_run_before(tmp_path: Path, other: str) -> None:
    """Also two runs that both state no hosts: they may be of two clusters."""
    runs = [Sweep(), replace(Sweep(busbw=40), **OTHERS[other])]
    if other == "no ranks told":
        runs[0] = replace(runs[0], with_ranks=False)
    for number, run in enumerate(runs):
        day = BASE + timedelta(days=number)
        _write(tmp_path / "logs" / f"{day:%Y-%m-%d}" / "a.txt", run, day)
    store = Store(tmp_path / "s")
    ingest([tmp_path / "logs"], store, Options())
    told = _accepted(store)
    assert [share for share, _ in told.values()] == [None, None]
    verdicts = {verdict for _, verdict in told.values()}
    assert verdicts == ({"ok", "slower than alike runs"} if other == "hosts" else {"not judged"})


@pytest.mark.parametrize("seed", range(4))
def test_the_run_before_used_the_same_nics(tmp_path: Path, seed: int) -> None:
    """A sweep over rails: another rail is no earlier state of this one."""
    chance = random.Random(seed)
    rails = ["mlx5_0", "mlx5_1:1", "=mlx5_2,mlx5_3", ""]
    order = rails * 2
    chance.shuffle(order)
    speeds = [90 * chance.uniform(0.6, 1) for _ in order]
    for number, (nics, busbw) in enumerate(zip(order, speeds, strict=True)):
        run = Sweep(nics=nics, busbw=busbw, stamp=BASE + timedelta(minutes=number))
        _write(tmp_path / "logs" / f"{number}.out", run, BASE)
    store = Store(tmp_path / "s")
    ingest([tmp_path / "logs"], store, Options())
    told = _accepted(store)
    for number, nics in enumerate(order):
        share, _ = told[str(tmp_path / "logs" / f"{number}.out")]
        before = order.index(nics)
        expected = (
            None if before == number else pytest.approx(speeds[number] / speeds[before], abs=0.002)
        )
        assert share == expected


@pytest.mark.parametrize(("count", "bad"), [(4, 1), (7, 4), (9, 7)])
def test_runs_that_a_finding_over_all_names_have_a_problem(
    tmp_path: Path, fabricobs: Run, count: int, bad: int
) -> None:
    """ "0 with a problem" was said of outputs, some of them wrong; each was a job of its own."""
    wrong = set(random.Random(count).sample(range(count), bad))
    for number in range(count):
        hosts = (f"gpu{2 * number:03}", f"gpu{2 * number + 1:03}")
        _write(
            tmp_path / "logs" / f"job-{number}.out",
            Sweep(hosts=hosts, wrong=3 * (number in wrong)),
            BASE,
        )
    store = tmp_path / "store"
    fabricobs("ingest", tmp_path / "logs", "--store", store)
    told = fabricobs("diagnose", "--store", store)
    assert told.returncode == 2
    assert told.stdout.startswith(
        "1 job: 1 with a problem. Worst is benchmarks: AllReduce computes"
    )
    document = json.loads(fabricobs("diagnose", "--store", store, "--format", "json").stdout)
    (finding,) = (each for each in document["findings"] if each["kind"] == "wrong_results")
    seen = finding["id"]
    assert seen in told.stdout
    assert {entity["job"] for entity in finding["entities"]} == {f"job-{n}" for n in wrong}
    named = [int(number) for number in re.findall(r"job-(\d+)\.out", finding["explanation"])]
    assert named == sorted(wrong)[: len(named)] and len(named) >= min(bad, 4)
    (job,) = document["jobs"]
    assert job["name"] == "benchmarks" and len(job["hosts"]) == 2 * count
    for name in (f"job-{min(wrong)}", "benchmarks"):
        asked = fabricobs("diagnose", "--store", store, "--job", name)
        assert asked.returncode == 2 and seen in asked.stdout
    if right := set(range(count)) - wrong:
        asked = fabricobs("diagnose", "--store", store, "--job", f"job-{min(right)}")
        assert asked.returncode == 3 and seen not in asked.stdout


def test_runs_of_one_file_are_ordered_by_the_file(tmp_path: Path) -> None:
    text = "".join(Sweep(busbw=speed).output() for speed in (90, 60, 75))
    (tmp_path / "all.txt").write_text(text)
    store = Store(tmp_path / "s")
    ingest([tmp_path / "all.txt"], store, Options())
    query = stored_queries()["acceptance"]
    rows = open_session(store.path, query.sql, keep=True).sql(
        f"SELECT share_of_before FROM ({query.sql.rstrip().rstrip(';')}) ORDER BY run"
    )
    assert [share for (share,) in rows.fetchall()] == [
        None, pytest.approx(60 / 90, abs=0.002), pytest.approx(75 / 60, abs=0.002),
    ]  # fmt: skip


@dataclass(frozen=True)
class Pair:
    """One run of perftest between two hosts, as the output of one of them tells it."""

    test: str = "ib_write_bw"
    rate_gbps: int = 400
    share: float = 0.97  # of the rate, or none of a latency test
    micros: float = 2.0
    infiniband: bool = True
    queue_pairs: int = 1
    nic: str = "mlx5_0"
    local: int = 1  # number of the host, and its LID
    remote: int = 2
    in_gbits: bool = True

    def output(self) -> str:
        """Return what perftest would print."""
        ends = [("local", self.local), ("remote", self.remote)]
        lines = [
            "-" * 80,
            f"                    {TESTS[self.test]} Test",
            f" Dual-port       : OFF\t\tDevice         : {self.nic}",
            f" Number of qps   : {self.queue_pairs}\t\tTransport type : IB",
            " Connection type : RC\t\tUsing SRQ      : OFF",
            " Mtu             : 4096[B]",
            f" Link type       : {'IB' if self.infiniband else 'Ethernet'}",
            "-" * 80,
        ]
        for side, number in ends:
            lid = f"0x{number:02x}" if self.infiniband else "0000"
            lines.append(f" {side} address: LID {lid} QPN 0x0154 PSN 0x76f7ac RKey 0x1bdfdf")
            if not self.infiniband:
                lines.append(f" GID: {'00:' * 10}255:255:10:00:00:{number:02d}")
        if self.test.endswith("_lat"):
            least, most = self.micros * 0.9, self.micros * 3
            lines += [
                " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]",
                f" 2       1000          {least:.2f}  {most:.2f}  {self.micros:.2f}",
            ]
        else:
            ways = 2 if "bidirectional" in self.test else 1
            gbits = self.share * self.rate_gbps * ways
            unit = "Gb/sec" if self.in_gbits else "MB/sec"
            value = gbits if self.in_gbits else gbits * 1e9 / 8 / 2**20
            lines += [
                f" #bytes     #iterations    BW peak[{unit}]    BW average[{unit}]   MsgRate[Mpps]",
                f" 65536      5000           {value * 1.001:.2f}      {value:.2f}      0.7",
            ]
        return "\n".join(lines) + "\n"


TESTS = {
    "ib_write_bw": "RDMA_Write BW",
    "ib_send_bw": "Send BW",
    "ib_read_bw": "RDMA_Read BW",
    "ib_write_bw bidirectional": "RDMA_Write Bidirectional BW",
    "ib_write_lat": "RDMA_Write Latency",
    "ib_read_lat": "RDMA_Read Latency",
    "ib_send_lat": "Send Latency",
}


def _write_ibstat(folder: Path, number: int, rate_gbps: int, infiniband: bool = True) -> None:
    """Write ibstat of a host: its rate and LID."""
    host = folder / f"gpu-a{number:02d}"
    host.mkdir(parents=True, exist_ok=True)
    (host / "ibstat.txt").write_text(
        f"CA 'mlx5_0'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tNode GUID: 0x{number:016x}\n"
        f"\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\tRate: {rate_gbps}\n"
        f"\t\tBase lid: {number if infiniband else 0}\n\t\tPort GUID: 0x{number:016x}\n"
        f"\t\tLink layer: {'InfiniBand' if infiniband else 'Ethernet'}\n"
    )


def _judged(folder: Path, store: Path) -> list[dict[str, object]]:
    made = Store(store)
    ingest([folder], made, Options())
    query = stored_queries()["acceptance"]
    with open_session(store, query.sql) as session:
        cursor = session.execute(query.sql)
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


# What sound ports reach at least and at most, by drawn shares of the rate.
LEAST = {"ib_read_bw": 0.72, "ib_write_bw bidirectional": 0.82}


@pytest.mark.parametrize("seed", range(12))
def test_perftest_is_judged_by_the_rate_of_the_slower_port(tmp_path: Path, seed: int) -> None:
    """Sound pairs are ok, slow ones below, those of unknown rate or host not judged, and why."""
    chance = random.Random(seed)
    state = ("sound", "slow", "no rate", "no host")[seed % 4]
    test = chance.choice([name for name in TESTS if "_bw" in name])
    rates = [chance.choice([100, 200, 400]), chance.choice([200, 400])]
    infiniband = chance.random() < 0.7
    slower = min(rates) if infiniband else rates[0]  # no output tells who has the other address
    share = chance.uniform(LEAST.get(test, 0.91), 0.98)
    if state == "slow":
        share = chance.uniform(0.1, 0.6)
    pair = Pair(
        test, slower, share, infiniband=infiniband, in_gbits=chance.random() < 0.5,
        queue_pairs=chance.choice([1, 4]),
    )  # fmt: skip
    site = tmp_path / "site"
    for number, rate in enumerate(rates, 1):
        if state != "no rate" and not (state == "no host" and infiniband):
            _write_ibstat(site, number, rate, infiniband)
    place = site / "results" if state == "no host" else site / "gpu-a01"
    place.mkdir(parents=True, exist_ok=True)
    (place / "perftest.txt").write_text(pair.output())
    (row,) = _judged(site, tmp_path / "s")
    if state in ("no rate", "no host"):
        assert (row["verdict"], row["limit_gbytes_per_s"]) == ("not judged", None)
        assert "ibstat" in str(row["settled_by"])
        assert ("whose output" in str(row["settled_by"])) == (state == "no host")
        return
    assert row["verdict"] == ("ok" if state == "sound" else "below"), row
    assert row["limit_gbytes_per_s"] == slower / 8 * (2 if "bidirectional" in test else 1)
    assert row["settled_by"] is None


@pytest.mark.parametrize("seed", range(6))
def test_the_time_of_small_messages_of_perftest_is_judged(
    fabricobs: Run, tmp_path: Path, seed: int
) -> None:
    """A clear outlier is a finding; the hosts at both ends are named by their LIDs."""
    chance = random.Random(seed)
    slow = seed % 2 == 1
    test = chance.choice(["ib_write_lat", "ib_read_lat", "ib_send_lat"])
    times = 2 if "read" in test else 1
    usual = [chance.uniform(0.8, 5) * times for _ in range(2)]
    micros = [chance.uniform(25, 90) * times if slow else usual[0], usual[1]]
    for number in (1, 2, 3):
        _write_ibstat(tmp_path / "site", number, 400)
    for number, each in enumerate(micros):
        text = Pair(test, micros=each, local=1, remote=2 + number).output()
        (tmp_path / "site" / "gpu-a01" / f"lat{number}.txt").write_text(text)
    verdicts = [row["verdict"] for row in _judged(tmp_path / "site", tmp_path / "s")]
    assert verdicts == ["slow small messages" if slow else "ok", "ok"]
    said = fabricobs("diagnose", "--store", str(tmp_path / "s"), "--format", "json")
    found = [f for f in json.loads(said.stdout)["findings"] if f["kind"] == "slow_benchmark"]
    assert len(found) == slow
    if slow:
        assert found[0]["title"].startswith(f"{test} on gpu-a01, gpu-a02 takes")


def test_a_slow_pair_of_a_sweep_of_perftest_is_told_by_its_hosts(
    fabricobs: Run, tmp_path: Path
) -> None:
    """Each output is one host's; the server is the one that has the other LID."""
    for number in range(1, 9):
        _write_ibstat(tmp_path / "site", number, 400)
    for local in range(1, 9):
        for remote in range(1, 9):
            if local != remote:
                share = 0.6 if 5 in (local, remote) else 0.96
                text = Pair(share=share, local=local, remote=remote).output()
                (tmp_path / "site" / f"gpu-a{local:02d}" / f"to{remote}.txt").write_text(text)
    fabricobs("ingest", str(tmp_path / "site"), "--store", str(tmp_path / "s"))
    said = fabricobs("diagnose", "--store", str(tmp_path / "s"), "--format", "json")
    findings = json.loads(said.stdout)["findings"]
    (part,) = (f for f in findings if f["kind"] == "slow_part")
    assert part["entities"] == [{"type": "host", "host": "gpu-a05"}]


def test_runs_of_one_file_over_several_nics_are_runs_of_their_own(tmp_path: Path) -> None:
    _write_ibstat(tmp_path / "site", 1, 400)
    text = "".join(
        Pair(share=share, nic="mlx5_0", test=test).output()
        for test, share in (("ib_write_bw", 0.5), ("ib_write_bw", 0.96), ("ib_read_bw", 0.9))
    )
    (tmp_path / "site" / "gpu-a01" / "all.txt").write_text(text)
    rows = _judged(tmp_path / "site", tmp_path / "s")
    assert [(row["run"], row["verdict"]) for row in rows] == [(1, "below"), (2, "ok"), (3, "ok")]
