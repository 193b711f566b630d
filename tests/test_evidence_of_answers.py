"""What answers rest on: an ok says what would have shown, and nothing is said beyond the data.

Each test writes files as a site has them, and reads the JSON of `fabricobs diagnose`.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from fabricobs.api import ingest, open_store, simulate
from fabricobs.cli import app

pytestmark = pytest.mark.slow

START = datetime(2026, 3, 2, 9)
LINKS, ROUTING, CONGESTION = 2, 3, 6
Told = dict[str, Any]
Tell = Callable[..., Told]


def tell_of(folder: Path, files: Mapping[str, Iterable[str]], *options: str) -> Told:
    """Diagnose files given by name and text."""
    for name, lines in files.items():
        (folder / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "in" / name).write_text("\n".join(lines) + "\n")
    store = str(folder / "store")
    read = CliRunner().invoke(app, ["ingest", str(folder / "in"), "--store", store])
    assert read.exit_code == 0 and "lines unread" not in read.output, read.output
    said = CliRunner().invoke(app, ["diagnose", "--store", store, "--format", "json", *options])
    assert said.stdout, said.output
    return {"code": said.exit_code, **json.loads(said.stdout)}


@pytest.fixture
def tell(tmp_path: Path) -> Tell:
    return partial(tell_of, tmp_path)


def question(told: Told, number: int) -> Told:
    asked: Told = told["verdict"]["questions"][number]
    return asked


def stamp(seconds: float) -> str:
    return f"{(START + timedelta(seconds=seconds)).isoformat(timespec='milliseconds')}Z"


def counters(
    ports: Mapping[tuple[str, str], tuple[float, float]], seconds: int, every: float, seed: int = 1
) -> list[str]:
    """Samples of ports that send and receive so many Gb/s on average, now more and now less."""
    chance = np.random.default_rng(seed)
    totals = {port: chance.integers(10**12, size=2).astype(float) for port in ports}
    lines = ["time,device,port,tx_bytes,rx_bytes"]
    for moment in np.arange(0, seconds + every / 2, every):
        busy = 0.2 + 1.6 * (int(moment / 1.5) % 2) if every < 3 else 1.0
        for (device, port), rates in ports.items():
            sent, received = totals[device, port]
            lines.append(f"{stamp(float(moment))},{device},{port},{sent:.0f},{received:.0f}")
            noise = chance.uniform(0.95, 1.05, 2)
            totals[device, port] += np.array(rates) * noise * busy * every * 1e9 / 8
    return lines


def steps(seconds: int, hosts: int = 8) -> list[str]:
    lines = ["step,rank,host,timestamp,step_time_ms,compute_ms,comm_ms"]
    chance = np.random.default_rng(3)
    for step in range(1, seconds // 2 + 1):
        for rank in range(hosts):
            compute = 1400 + float(chance.normal(0, 3))
            lines.append(
                f"{step},{rank},node{rank:02d},{stamp(2 * step)},2000,{compute:.1f},"
                f"{2000 - compute:.1f}"
            )
    return lines


class TestOneOf32UplinksSendsNothing:
    """0.2 MB against 6.8 TB, without LLDP and without a host: "routing is even" was said."""

    def ports(self, dead: int | None) -> dict[tuple[str, str], tuple[float, float]]:
        chance = np.random.default_rng(2)
        share, back = chance.uniform(0.7, 1.3, 32), chance.uniform(0.8, 1.2, 32)
        rates = {("leaf01", f"Ethernet{4 * i}"): (22.0, 22.0) for i in range(8)}
        for i in range(32):
            sent = 2.4e-6 if i == dead else 22 * share[i]
            rates["leaf01", f"Ethernet{128 + 4 * i}"] = (sent, 22 * back[i])
        # Without a transceiver: unused both ways.
        return rates | {("leaf01", f"Ethernet{256 + 4 * i}"): (0.0, 0.0) for i in range(8)}

    @pytest.mark.parametrize("every", [0.5, 10])
    def test_it_is_named_first_and_unused_ports_are_not(self, tell: Tell, every: float) -> None:
        told = tell({"counters.csv": counters(self.ports(5), 150, every)})
        assert [f["title"].partition(" since")[0] for f in told["findings"]] == [
            "leaf01 sends nothing over Ethernet148"
        ]
        assert "leaf01 sends nothing over Ethernet148" in told["verdict"]["sentence"]
        assert question(told, ROUTING)["answer"] == "problem"
        assert "look like parallel links" in told["findings"][0]["explanation"]

    def test_without_it_nothing_is_named_and_nothing_is_called_even(self, tell: Tell) -> None:
        told = tell({"counters.csv": counters(self.ports(None), 150, 10)})
        assert told["findings"] == []
        assert question(told, ROUTING)["answer"] == "unknown"
        assert (
            "no log tells whether 1 more are parallel links" in question(told, ROUTING)["evidence"]
        )

    def test_ports_read_one_by_one_are_summed_to_minutes(self, tell: Tell) -> None:
        lines = counters(self.ports(5), 300, 10)
        one_by_one = [lines[0]]
        for number, line in enumerate(lines[1:]):
            time, _, rest = line.partition(",")
            moment = datetime.fromisoformat(time.rstrip("Z"))
            read = moment + timedelta(milliseconds=150 * (number % 48))
            one_by_one.append(f"{read.isoformat(timespec='milliseconds')}Z,{rest}")
        told = tell({"counters.csv": one_by_one})
        assert "leaf01 sends nothing over Ethernet148" in told["verdict"]["sentence"]


class TestRoutingIsEven:
    """ "Routing is even" is said only of uplinks that carried enough and were read often enough."""

    def fabric(self, gbps: float, *, seconds: int, every: float) -> dict[str, list[str]]:
        chance = np.random.default_rng(4)
        cables = ["device,port,remote_device,remote_port,speed_gbps"]
        ports: dict[tuple[str, str], tuple[float, float]] = {}
        for leaf in range(2):
            for host in range(4):
                name = f"Ethernet{8 * host}"
                cables.append(f"leaf{leaf:02d},{name},node{4 * leaf + host:02d},mlx5_0,400")
                ports[f"leaf{leaf:02d}", name] = (gbps, gbps)
            for up, share in enumerate(chance.multinomial(4000, [1 / 8] * 8) / 500):
                name = f"Ethernet{64 + 8 * up}"
                cables.append(f"leaf{leaf:02d},{name},spine{up:02d},Ethernet{leaf},400")
                ports[f"leaf{leaf:02d}", name] = (gbps * share, gbps)
        return {
            "cables.csv": cables,
            "counters.csv": counters(ports, seconds, every),
            "steps.csv": steps(seconds),
        }

    @pytest.mark.parametrize(
        ("gbps", "every", "answer", "reason"),
        [
            (40, 30, "ok", "would have shown"),
            (0.05, 30, "unknown", "carry less than 0.1% of their rate"),
            (40, 300, "unknown", "read too rarely"),
        ],
    )
    def test_only_with_what_would_have_shown(
        self, tell: Tell, gbps: float, every: float, answer: str, reason: str
    ) -> None:
        told = tell(self.fabric(gbps, seconds=900, every=every))
        asked = question(told, ROUTING)
        assert (asked["answer"], told["findings"]) == (answer, [])
        assert reason in asked["evidence"]
        if answer == "ok":
            (power,) = asked["would_show"]
            assert 0.2 < power["effect"] < 0.8
            assert power["seconds"] == 60
            assert power["words"] in asked["evidence"]

    def test_counters_of_a_tenth_of_the_run_tell_little(self, tell: Tell) -> None:
        files = self.fabric(40, seconds=150, every=10)
        told = tell(files | {"steps.csv": steps(1500)})
        assert question(told, ROUTING)["answer"] == "unknown"
        assert "10% of the time" in question(told, ROUTING)["evidence"]


def test_a_window_of_a_second_is_too_little(tell: Tell) -> None:
    """ "Nothing wrong in what can be judged" was said of it, with the ranks of the whole store."""
    told = tell({"steps.csv": steps(600)}, "--window", "1s")
    assert told["code"] == 3
    assert told["verdict"]["sentence"].startswith("Cannot tell: there is too little data since")
    assert not told["verdict"]["judged"]
    assert "of the whole store" in str(told["coverage"])


def inspector(
    durations_ms: Sequence[float],
    work_ms: Sequence[float] | None = None,
    ranks: int = 8,
    late_ms: Mapping[int, float] = MappingProxyType({}),
    pauses_s: Mapping[int, float] = MappingProxyType({}),
) -> list[str]:
    """Dumps of NCCL Inspector: one AllReduce a step on every rank, and nothing else.

    Ranks come `late_ms`, and the job pauses after some steps.
    """
    chance = np.random.default_rng(5)
    lines, now = [], START.timestamp()
    for number, (duration, work) in enumerate(
        zip(durations_ms, work_ms or [400.0] * len(durations_ms), strict=True)
    ):
        late = np.abs(chance.normal(0, 2, ranks))
        late += [late_ms.get(rank, 0.0) for rank in range(ranks)]
        pure = duration * (1 + abs(chance.normal(0, 0.01)))
        now += (work + late.max() + pure) / 1e3 + pauses_s.get(number - 1, 0.0)
        lines += [
            json.dumps(
                {
                    "header": {"id": "0xabc", "rank": rank, "n_ranks": ranks, "nnodes": ranks // 2},
                    "metadata": {
                        "inspector_output_format_version": "v4.1",
                        "dump_timestamp_us": int(1e6 * now),
                        "hostname": f"node{rank // 2:02d}",
                        "pid": 100 + rank,
                    },
                    "coll_perf": {
                        "coll": "AllReduce",
                        "coll_sn": number,
                        "coll_msg_size_bytes": 1 << 30,
                        "coll_exec_time_us": round(1e3 * (pure + late.max() - late[rank])),
                        "coll_timing_source": "kernel_gpu",
                        "coll_algobw_gbs": 100,
                        "coll_busbw_gbs": 175,
                    },
                }
            )
            for rank in range(ranks)
        ]
    return lines


class TestCollectivesAlone:
    """NCCL Inspector without steps, 180 to 303 ms: "Nothing wrong" was said."""

    def test_longer_collectives_have_an_onset_and_a_loss(self, tell: Tell) -> None:
        told = tell({"inspector.log": inspector([180.0] * 120 + [303.0] * 120)})
        (finding,) = told["findings"]
        assert finding["kind"] == "throughput_drop"
        assert finding["loss_share"] == pytest.approx(123 / 703, abs=0.02)
        assert finding["start_step"] == pytest.approx(120, abs=3)
        assert "longer collectives" in finding["explanation"]
        assert "No log tells steps" in finding["explanation"]
        assert question(told, 0)["answer"] == "problem"

    def test_longer_work_between_them_is_a_lead_without_a_loss(self, tell: Tell) -> None:
        lines = inspector([180.0] * 240, work_ms=[400.0] * 120 + [600.0] * 120)
        told = tell({"inspector.log": lines})
        (finding,) = told["findings"]
        assert (finding["loss_share"], finding["severity"]) == (None, "low")
        assert "Whether throughput was lost is not known" in finding["explanation"]
        # Arriving alike does not tell who computes longer while collectives run.
        assert question(told, 1)["answer"] == "unknown"
        assert "alike, yet steps take longer since step 12" in question(told, 1)["evidence"]

    def test_a_steady_rhythm_is_ok(self, tell: Tell) -> None:
        told = tell({"inspector.log": inspector([180.0] * 160)})
        assert told["findings"] == []
        asked = question(told, 0)
        assert asked["answer"] == "ok"
        assert asked["evidence"].startswith("The rhythm of the collectives is steady")
        assert question(told, 1)["evidence"].startswith("8 ranks arrive at their collectives alike")
        assert question(told, 1)["answer"] == "unknown"
        assert "computes longer while collectives run would not" in question(told, 1)["evidence"]

    @pytest.mark.parametrize(("late_ms", "named"), [(12.0, [5]), (4.0, [])])
    def test_a_little_late_always_is_slow(
        self, tell: Tell, late_ms: float, named: list[int]
    ) -> None:
        """A slow rank behind overlap arrives little later in every step; chance is 2 of 480 ms."""
        told = tell({"inspector.log": inspector([80.0] * 200, late_ms={5: late_ms})})
        assert [e["rank"] for f in told["findings"] for e in f["entities"]] == named

    def test_long_pauses_are_neither_steps_nor_part_of_their_time(self, tell: Tell) -> None:
        """Checkpoints of 15 s took 60 % of the time: 8 steps were told, and a third of the loss."""
        lines = inspector(
            [80.0] * 160, late_ms={5: 60.0}, pauses_s=dict.fromkeys(range(19, 160, 20), 15.0)
        )
        told = tell({"inspector.log": lines})
        (finding,) = [f for f in told["findings"] if f["kind"] == "straggler"]
        assert [entity["rank"] for entity in finding["entities"]] == [5]
        assert finding["loss_share"] == pytest.approx(60 / 540, abs=0.02)
        assert finding["end_step"] > 150


class TestAStormInSwitchCountersAlone:
    """Pauses come in at one port, none go out there, and they spread: nothing was said of it."""

    def fabric(self, storm: float, slow: float) -> dict[str, list[str]]:
        """Two leaves of 8 hosts and 4 spines: frames a second before the storm, and added by it.

        NICs that are a little slow pause their leaf by `slow`; leaf01 hands the storm on.
        """
        ports: dict[str, dict[str, tuple[float, float, float, float]]] = {}
        for leaf in ("leaf01", "leaf02"):
            ports[leaf] = {f"Ethernet{8 * i}": (slow, 0, 0, 0.8 * storm) for i in range(8)}
            for up in range(4):
                name, here = f"Ethernet{128 + 8 * up}", leaf == "leaf01"
                ports[leaf][name] = (0, 0, 0, 0.9 * storm) if here else (0, 0, 0.9 * storm, 0)
                ports[f"spine{up:02d}"] = {
                    "Ethernet0": (0, 0, 0.9 * storm, 0),
                    "Ethernet8": (0, 0, 0, 0.9 * storm),
                }
        ports["leaf01"]["Ethernet24"] = (slow, 0, storm, 0)
        return {f"{device}/pfc.txt": list(self.reads(rates)) for device, rates in ports.items()}

    def reads(self, ports: Mapping[str, tuple[float, ...]]) -> Iterable[str]:
        """`show pfc counters` every 30 s; the storm begins after five minutes."""
        chance = np.random.default_rng(6)
        totals = np.full((len(ports), 2), 1000.0)
        rates = np.array(list(ports.values()))
        for moment in range(0, 1200, 30):
            yield f"{START + timedelta(seconds=moment):%a %b %d %H:%M:%S} UTC {START.year}"
            for column, way in enumerate(("Rx", "Tx")):
                yield f"{f'Port {way}':>12}  {'PFC0':>8}  {'PFC3':>12}"
                yield f"{'-' * 12}  {'-' * 8}  {'-' * 12}"
                for port, total in zip(ports, totals[:, column], strict=True):
                    yield f"{port:>12}  {0:>8}  {total:>12.0f}"
                yield ""
            now = rates[:, :2] + rates[:, 2:] * (moment >= 300)
            totals += 30 * now * chance.uniform(0.97, 1.03, now.shape)

    def test_the_port_is_named_and_nothing_else(self, tell: Tell) -> None:
        told = tell(self.fabric(storm=6000, slow=900))
        (finding,) = told["findings"]
        assert finding["kind"] == "pfc_storm"
        assert [(e["switch"], e["port"]) for e in finding["entities"]] == [("leaf01", "Ethernet24")]
        assert question(told, CONGESTION)["answer"] == "problem"

    def test_pauses_that_all_receivers_send_are_none(self, tell: Tell) -> None:
        assert tell(self.fabric(storm=0, slow=4500))["findings"] == []


class TestAFaultOfTheWholeRun:
    """A NIC at 100 instead of 400 Gb/s from the first step on had no loss: no steps without it."""

    def rows(self, gbps: float) -> dict[str, list[str]]:
        """8 hosts that transfer for 30 % of each step; NICs then receive so many Gb/s."""
        cables = ["device,port,remote_device,remote_port,speed_gbps"]
        for host in range(8):
            speed = 100 if host == 3 else 400
            cables.append(f"leaf01,Ethernet{8 * host},node{host:02d},mlx5_0,{speed}")
        ports = {("leaf01", f"Ethernet{8 * host}"): (0.3 * gbps, 0.3 * gbps) for host in range(8)}
        states = {
            f"node{host:02d}/ibstatus.txt": [
                "Infiniband device 'mlx5_0' port 1 status:",
                "\tstate:\t\t 4: ACTIVE",
                f"\trate:\t\t {100 if host == 3 else 400} Gb/sec (4X NDR)",
            ]
            for host in range(8)
        }
        return states | {
            "cables.csv": cables,
            "counters.csv": counters(ports, 900, 30),
            "steps.csv": steps(900),
        }

    def test_it_costs_what_the_line_rate_would_allow(self, tell: Tell) -> None:
        told = tell(self.rows(90))
        (finding,) = told["findings"]
        assert finding["kind"] == "degraded_link"
        # 600 of 2,000 ms at 90 Gb/s; at 80 % of 400 Gb/s they take 169 ms.
        assert finding["loss_share"] == pytest.approx(431 / 2000, abs=0.02)
        assert "line rate of the NICs" in finding["explanation"]
        assert question(told, 0)["answer"] == "problem"
        assert "of the throughput is lost" in question(told, 0)["evidence"]

    def test_collectives_alone_do_not_tell_what_computation_hides(self, tell: Tell) -> None:
        rows = self.rows(90) | {"steps.csv": inspector([600.0] * 450, work_ms=[1400.0] * 450)}
        told = tell({name.replace("steps.csv", "inspector.log"): rows[name] for name in rows})
        (finding,) = told["findings"]
        assert (finding["kind"], finding["loss_share"]) == ("degraded_link", None)

    def test_transfers_as_fast_as_the_hardware_allows_cost_nothing(self, tell: Tell) -> None:
        (finding,) = tell(self.rows(330))["findings"]
        assert finding["loss_share"] is None


RANKS = 4


@dataclass(frozen=True)
class Drawn:
    """What logs of four ranks on two hosts, in a job of `size` ranks, happen to say."""

    size: int
    says: tuple[str, ...]  # of each rank: nothing, init, network, channel
    networks: tuple[str, ...]
    gave_up: frozenset[int]
    slower: float  # the second half of the steps
    tokens: bool  # the trainer tells the work of each step

    @property
    def named(self) -> set[str]:
        """Networks that some log names."""
        return {n for n, s in zip(self.networks, self.says, strict=True) if s in NAMING}

    @property
    def hosts(self) -> set[int]:
        """Hosts that the logs show."""
        return {rank // 2 for rank, says in enumerate(self.says) if says != "nothing"}

    def nccl(self, rank: int) -> list[str]:
        before = f"node{rank // 2:02d}:{100 + rank}:{200 + rank} [{rank % 2}] NCCL INFO"
        network, says = self.networks[rank], self.says[rank]
        lines = []
        if says != "nothing":
            lines.append(
                f"{before} ncclCommInitRank comm 0x55d{rank} rank {rank} nranks {self.size} "
                f"cudaDev {rank % 2} nvmlDev {rank % 2} busId 1000 commId 0xabcdef0123456789 - "
                "Init COMPLETE"
            )
        if says == "network":
            lines.append(f"{before} Using network {network}")
        if says == "channel":
            peer = (rank + 2) % RANKS
            lines.append(
                f"{before} Channel 00/0 : {rank}[0] -> {peer}[0] [send] via NET/{network}/0"
            )
        if rank in self.gave_up:
            lines.append(
                f"[rank{rank}]:[E302 09:40:00.000000000 ProcessGroupNCCL.cpp:632] [Rank {rank}] "
                "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=397, "
                "OpType=ALLREDUCE, NumelIn=1024, NumelOut=1024, Timeout(ms)=600000) ran for 600012 "
                "milliseconds before timing out."
            )
        return lines


NAMING = ("network", "channel")
drawn = st.builds(
    Drawn,
    size=st.sampled_from([RANKS, 32]),
    says=st.tuples(*[st.sampled_from(["nothing", "init", *NAMING])] * RANKS),
    networks=st.tuples(*[st.sampled_from(["IB", "Socket"])] * RANKS),
    gave_up=st.frozensets(st.integers(0, RANKS - 1), max_size=RANKS),
    slower=st.sampled_from([0.0, 0.09, 0.3]),
    tokens=st.booleans(),
)


# Each example takes a second: smaller ones are not looked for.
@settings(
    max_examples=10,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(job=drawn)
def test_nothing_said_contradicts_the_data_or_itself(job: Drawn, tmp_path: Path) -> None:
    with TemporaryDirectory(dir=tmp_path) as folder:
        files = {f"nccl.{rank}.log": job.nccl(rank) for rank in range(RANKS)}
        chance = np.random.default_rng(7)
        files["train.csv"] = ["step,timestamp,step_time_ms" + ",tokens_per_second" * job.tokens]
        for step, noise in enumerate(chance.normal(0, 3, 200)):
            ms = 1000 * (1 + job.slower * (step > 100)) + noise
            told = f",{1e9 / ms:.3f}" if job.tokens else ""
            files["train.csv"].append(f"{step},{stamp(2 * step)},{ms:.1f}{told}")
        said = tell_of(Path(folder), {name: lines for name, lines in files.items() if lines})
    asked = [q["evidence"] for q in said["verdict"]["questions"]]
    answers = [q["answer"] for q in said["verdict"]["questions"]]
    serious = [f for f in said["findings"] if f["severity"] != "info"]
    if job.named:
        assert "No NCCL log says" not in asked[4]
        assert set(re.findall("IB|Socket", asked[4])) <= job.named
    if len(job.named) > 1 or ("Socket" in job.named and len(job.hosts) > 1):
        assert answers[4] == "problem"
    if not all(says in NAMING for says in job.says) or job.size > RANKS:
        assert answers[4] != "ok"
    told_size = any(says != "nothing" for says in job.says)
    for text in (*asked, *(f["title"] for f in said["findings"]), said["verdict"]["sentence"]):
        for some, whole in re.findall(r"(\d+) of (\d+) ranks", text):
            assert int(some) <= int(whole)
            assert not told_size or int(whole) == job.size
    if job.gave_up:
        assert any(f["kind"] == "hang" for f in serious)
        assert answers[0] == "problem"
        assert "stands still" in asked[0]
    if job.slower:
        assert answers[0] == "problem" or not (job.tokens or job.gave_up)
        assert answers[0] != "ok"
    # What NCCL chose is answered by what it prints, also where nothing tells what it should choose.
    if "problem" in [answer for place, answer in enumerate(answers) if place not in {4, 5}]:
        assert serious
    for finding in said["findings"]:
        lost = finding["loss_share"]
        told = re.search("did not measurably feel|cannot be told|loss is measured", str(finding))
        assert lost is None or not told
        assert lost is not None or "which costs" not in finding["title"]
    assert not serious or "Nothing wrong" not in said["verdict"]["sentence"]
    assert ("problem" in answers) >= bool(serious)


class TestErrorsWithoutBits:
    """Ports that count errors and no bytes: how many errors would have shown, not which rate."""

    def test_the_answer_says_how_many_errors_would_have_shown(self, tell: Tell) -> None:
        counted = [
            f"{stamp(moment)},leaf01,Ethernet{4 * port},,,{7 * (port == 1)}"
            for moment in range(0, 120, 10)
            for port in range(8)
        ]
        lines = ["time,device,port,tx_bytes,rx_bytes,symbol_errors", *counted]
        said = question(tell({"counters.csv": lines}), LINKS)
        assert (
            "8 ports count few errors or none (no counter tells their traffic, "
            "so no error rate is known)" in (said["evidence"])
        )
        assert [power["words"] for power in said["would_show"]] == [
            "a port that counts 11 errors in 110 s"
        ]


NIC_NAMES = (
    "enp26s0np0", "eth2", "ib0", "mlx5_0", "ens3f1", "b8:3f:d2:4a:10:00", "rdma2", "rocep1s0",
    "bnxt_re1", "ionic_3",
)  # fmt: skip


@pytest.mark.parametrize("name", NIC_NAMES)
def test_switches_alone_tell_which_ports_are_uplinks(tell: Tell, name: str) -> None:
    """LLDP and counters, and no word of a job: "no group of uplinks is known" was said."""
    chance = np.random.default_rng(len(name))
    hosts = [f"Ethernet{8 * i}" for i in range(16)]
    uplinks = [f"Ethernet{8 * i}" for i in range(32, 48)]
    ends = [(port, f"gpu{i // 4}", name, "O") for i, port in enumerate(hosts)]
    ends += [(port, f"spine{i // 2}", f"Ethernet{i}", "BR") for i, port in enumerate(uplinks)]
    head = "LocalPort", "RemoteDevice", "RemotePortID", "Capability", "RemotePortDescr"
    cells = [head, ("-" * 17,) * 5, *((*end, end[2]) for end in ends)]
    table = [f"===== {stamp(0)} =====", *("  ".join(f"{c:<18}" for c in row) for row in cells)]
    rates = {("leaf01", port): (40.0, 36.0) for port in (*hosts, *uplinks)}
    lines = counters(rates, 1200, 15, seed=int(chance.integers(100)))
    told = tell({"leaf01/show_lldp_table.txt": table, "counters.csv": lines})
    assert "of 1 uplink groups are as even" in question(told, ROUTING)["evidence"]
    assert told["findings"] == []


@pytest.mark.parametrize(("scenario", "seed"), [("ecmp_polarisation", 151), ("healthy", 152)])
def test_switches_alone_name_the_leaf_that_skews(tmp_path: Path, scenario: str, seed: int) -> None:
    only = ("switches", "spines")
    (cluster,) = simulate(tmp_path / "cluster", [scenario], gpus=64, seed=seed, only=only)
    ingest(cluster / "logs", tmp_path / "store")
    found = open_store(tmp_path / "store").diagnose()
    truth = json.loads((cluster / "truth.json").read_text())
    named = [finding.entities[0].switch for finding in found.findings if finding.severity != "info"]
    assert named == [fault["culprits"][0]["switch"] for fault in truth["faults"]]
