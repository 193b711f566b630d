"""Sick links at the level of tables: what must be found, and near misses that must stay silent."""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from conftest import Rows
from fabricobs.diagnosis.findings import Diagnosis, Entity, Finding
from fabricobs.diagnosis.run import diagnose
from fabricobs.report.wording import since_words

pytestmark = pytest.mark.slow

START = datetime(2026, 3, 2, 9)
STEPS = 200
HOSTS = 4
INTERVAL = 10.0  # seconds between two samples
SAMPLES = 24
SINCE = 10  # sample after which the faults here act
Make = Callable[[Rows], Path]
Counters = dict[str, list[int]]


def at(sample: float) -> datetime:
    return START + timedelta(seconds=sample * INTERVAL)


def rising(by: int, *, since: int = SINCE, start: int = 700) -> list[int]:
    """A total that stood at `start` and rises by so much a sample from `since` on."""
    return [start + by * max(0, sample - since) for sample in range(SAMPLES)]


def once(by: int, *, sample: int = SINCE, start: int = 700) -> list[int]:
    """A total that rises in one interval only."""
    return [start + (by if now > sample else 0) for now in range(SAMPLES)]


def samples(device: str, port: str, counters: Counters, *, name: str = "counters") -> Rows:
    rows = [
        {
            "file_id": device,
            "line": sample + 1,
            "format": name,
            "device": device,
            "port": port,
            "ts": at(sample),
            "ts_source": "inline",
            "rx_bytes": sample * 10**11,
            **{counter: values[sample] for counter, values in counters.items()},
        }
        for sample in range(SAMPLES)
    ]
    return {"port_samples": rows}


def cluster(
    *, slower: float = 1.0, gbps: dict[str, float] | None = None, until: float = SAMPLES
) -> Rows:
    """Four hosts of one NIC each below leaf00, a step a second; transfers `slower` since SINCE.

    They are so until the sample `until`.
    """
    chance = np.random.default_rng(1)
    rows: Rows = {name: [] for name in ("steps", "port_status", "links", "port_samples")}
    now = START
    for step in range(1, STEPS + 1):
        late = at(SINCE) <= now < at(until)
        transfer = chance.normal(300, 3) * (slower if late else 1)
        now += timedelta(milliseconds=700 + transfer)
        for host in range(HOSTS):
            rows["steps"].append(
                {
                    "file_id": "s",
                    "line": len(rows["steps"]) + 1,
                    "step": step,
                    "rank": host,
                    "host": f"node{host:02d}",
                    "ts": now,
                    "step_time_ms": 700 + transfer,
                    "compute_ms": 700 + chance.normal(0, 1),
                    "comm_ms": transfer,
                }
            )
    for host in range(HOSTS):
        name, port = f"node{host:02d}", f"Ethernet{8 * host}"
        speeds = gbps or {}
        rows["port_status"] += [
            status(name, "mlx5_0/1", speeds.get(name, 400.0), alias="ens1np0"),
            status("leaf00", port, speeds.get(port, 400.0)),
        ]
        rows["links"].append(
            {
                "file_id": "l",
                "line": host + 1,
                "format": "lldp",
                "device": "leaf00",
                "port": port,
                "remote_device": name,
                "remote_port": "b8:3f:d2:00:00:01",
                "remote_port_description": "ens1np0",
                "ts": START,
            }
        )
    return rows


def status(device: str, port: str, gbps: float | None, **more: object) -> dict[str, object]:
    told = {"file_id": "p", "line": 1, "format": "status", "ts": START, "oper": "up"}
    return {**told, "device": device, "port": port, "speed_gbps": gbps, **more}


def all_at(gbps: float) -> dict[str, float]:
    """The speed of every port and NIC."""
    hosts = range(HOSTS)
    return dict.fromkeys(
        [f"node{h:02d}" for h in hosts] + [f"Ethernet{8 * h}" for h in hosts], gbps
    )


def together(*parts: Rows) -> Rows:
    rows: Rows = {}
    for part in parts:
        for table, more in part.items():
            rows[table] = [*rows.get(table, []), *more]
    return rows


def quiet(counter: str = "rx_errors", *, besides: Iterable[str] = ()) -> Rows:
    """Counters of all ports of the leaf and all NICs that stand still, but for some ports."""
    ports = [("leaf00", f"Ethernet{8 * host}") for host in range(HOSTS)]
    ports += [(f"node{host:02d}", "mlx5_0/1") for host in range(HOSTS)]
    still = [samples(*p, {counter: rising(0)}) for p in ports if " ".join(p) not in besides]
    return together(*still)


def with_unnamed_cable(nics: list[str]) -> Rows:
    """A cluster with a cable to eth2 of node02, and NICs of it of which no log tells the cable."""
    rows = cluster()
    rows["port_status"] += [status("node02", f"{nic}/1", 400.0) for nic in nics]
    rows["links"].append(
        {
            "file_id": "l",
            "line": 99,
            "format": "lldp",
            "device": "leaf00",
            "port": "Ethernet120",
            "remote_device": "node02",
            "remote_port": "eth2",
            "ts": START,
        }
    )
    return rows


def of_links(found: Diagnosis) -> list[Finding]:
    kinds = {"link_errors", "link_flap", "degraded_link", "packet_loss"}
    return [finding for finding in found.findings if finding.kind in kinds]


def answer(found: Diagnosis) -> str:
    return found.verdict.questions[2].answer


class TestErrors:
    def test_the_cable_is_named_by_both_ends_and_costed(self, make_store: Make) -> None:
        nic = samples("node02", "ens1np0", {"symbol_errors": rising(500)})
        port = samples("leaf00", "Ethernet16", {"rx_errors": rising(20)})
        found = diagnose(
            make_store(
                together(cluster(slower=1.5), quiet(besides=["leaf00 Ethernet16"]), nic, port)
            )
        )
        (finding,) = of_links(found)
        assert finding.kind == "link_errors"
        assert [e.label for e in finding.entities] == ["node02 mlx5_0", "leaf00 Ethernet16"]
        assert finding.start == pytest.approx(at(SINCE), abs=timedelta(seconds=INTERVAL))
        assert finding.detected_at == at(SINCE + 1)
        assert finding.loss_share == pytest.approx(150 / 1150, rel=0.15)
        assert answer(found) == "problem"

    @pytest.mark.parametrize("port", ["ens1np0", "eth2", "enp23s0f0np0", "ib0", "mlx5_0"])
    def test_a_host_of_which_only_its_switch_tells_is_no_switch(
        self, make_store: Make, port: str
    ) -> None:
        links = [link | {"remote_port_description": port} for link in cluster()["links"]]
        spine = links[0] | {
            "line": 99, "port": "Ethernet96", "remote_device": "spine00",
            "remote_port": "Ethernet4", "remote_port_description": "to leaf00",
        }  # fmt: skip
        errors = [samples("leaf00", f"Ethernet{n}", {"rx_errors": rising(900)}) for n in (16, 96)]
        rows = together({"links": [*links, spine]}, *errors)
        ends = {e for f in of_links(diagnose(make_store(rows))) for e in f.entities}
        assert Entity("nic", host="node02", nic=port) in ends
        assert Entity("port", switch="spine00", port="Ethernet4") in ends

    @pytest.mark.parametrize(("lone", "findings"), [(["mlx5_2"], 1), (["mlx5_2", "mlx5_3"], 3)])
    def test_a_cable_whose_ends_no_log_joins_is_one_finding(
        self, make_store: Make, lone: list[str], findings: int
    ) -> None:
        """LLDP says eth2, counters mlx5_2: one of each that breaks at one time is one cable."""
        rows = with_unnamed_cable(lone)
        nics = [samples("node02", f"{nic}/1", {"symbol_errors": rising(500)}) for nic in lone]
        port = samples("leaf00", "Ethernet120", {"rx_errors": rising(500)})
        found = of_links(diagnose(make_store(together(rows, quiet(), port, *nics))))
        assert len(found) == findings
        if findings == 1:
            labels = {entity.label for entity in found[0].entities}
            assert labels == {"leaf00 Ethernet120", "node02 eth2", "node02 mlx5_2"}

    @pytest.mark.parametrize(("lone", "findings"), [(["mlx5_2"], 1), (["mlx5_2", "mlx5_3"], 3)])
    def test_a_flap_that_nccl_tells_without_times_is_that_of_the_host(
        self, make_store: Make, lone: list[str], findings: int
    ) -> None:
        """The switch counts it for eth2, NCCL says mlx5_2, and no log tells that both are one."""
        rows = with_unnamed_cable(lone)
        told = {"file_id": "n", "host": "node02", "pid": 7, "kind": "async_event"}
        rows["nccl_events"] = [
            told | {"line": line, "nic": nic, "text": "port error", "ts_source": "none"}
            for nic in lone
            for line in range(3)
        ]
        counted = [4 * sample // SAMPLES for sample in range(SAMPLES)]
        downs = samples("leaf00", "Ethernet120", {"link_downed": counted})
        found = of_links(diagnose(make_store(together(rows, quiet(), downs))))
        assert len(found) == findings
        if findings == 1:
            labels = {entity.label for entity in found[0].entities}
            assert labels == {"leaf00 Ethernet120", "node02 eth2", "node02 mlx5_2"}

    @pytest.mark.parametrize(
        ("apart", "lone", "findings"), [(False, 1, 1), (True, 1, 2), (False, 2, 3)]
    )
    def test_two_ends_without_a_cable_that_break_together_are_one(
        self, make_store: Make, apart: bool, lone: int, findings: int
    ) -> None:
        """No LLDP at all: one NIC and one port of a switch, at one time and no others."""
        rows = cluster()
        rows["port_status"] += [status("node02", f"mlx5_{nic}/1", 400.0) for nic in (2, 3)[:lone]]
        nics = [
            samples("node02", f"mlx5_{nic}/1", {"symbol_errors": rising(500)})
            for nic in (2, 3)[:lone]
        ]
        early = [700 + 500 * min(sample, 5) for sample in range(SAMPLES)]
        counted = {"rx_errors": early if apart else rising(500)}
        port = samples("leaf00", "Ethernet120", counted)
        found = of_links(diagnose(make_store(together(rows, quiet(), port, *nics))))
        assert len(found) == findings
        if findings == 1:
            labels = {entity.label for entity in found[0].entities}
            assert labels == {"leaf00 Ethernet120", "node02 mlx5_2"}
            assert "an end no log names" not in found[0].title

    def test_old_totals_are_normal(self, make_store: Make) -> None:
        found = diagnose(make_store(together(cluster(), quiet())))
        assert of_links(found) == []
        assert answer(found) == "ok"

    def test_three_errors_once_are_no_sick_cable(self, make_store: Make) -> None:
        port = samples("leaf00", "Ethernet16", {"rx_errors": once(3)})
        rows = together(cluster(), quiet(besides=["leaf00 Ethernet16"]), port)
        assert of_links(diagnose(make_store(rows))) == []

    def test_errors_beyond_the_standard_are_told_though_they_cost_nothing(
        self, make_store: Make
    ) -> None:
        port = samples("leaf00", "Ethernet16", {"rx_errors": rising(40, since=SAMPLES - 4)})
        rows = together(cluster(), quiet(besides=["leaf00 Ethernet16"]), port)
        (finding,) = of_links(diagnose(make_store(rows)))
        assert (finding.kind, finding.loss_share) == ("link_errors", None)
        assert finding.severity in {"low", "medium"}

    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize(("gbps", "expected"), [(100.0, 0.8), (400.0, 0.08)])
    def test_ports_within_the_error_rate_of_the_standard_are_sound(
        self, make_store: Make, seed: int, gbps: float, expected: float
    ) -> None:
        # 8e11 bits an interval, of which IEEE 802.3 allows 1e-12 to be wrong, above 100 Gb/s 1e-13.
        chance = np.random.default_rng(seed)
        ports = [("leaf00", f"Ethernet{8 * host}") for host in range(HOSTS)]
        ports += [(f"node{host:02d}", "mlx5_0/1") for host in range(HOSTS)]
        drawn = [
            samples(*port, {"rx_errors": np.cumsum(chance.poisson(expected, SAMPLES)).tolist()})
            for port in ports
        ]
        found = diagnose(make_store(together(cluster(gbps=all_at(gbps)), *drawn)))
        assert of_links(found) == []
        assert answer(found) == "ok"

    def test_errors_of_the_standard_elsewhere_hide_no_lost_packets(self, make_store: Make) -> None:
        noise = samples("leaf00", "Ethernet24", {"rx_errors": rising(1)})
        rows = together(
            cluster(gbps=all_at(100.0)),
            quiet(besides=["leaf00 Ethernet24"]),
            noise,
            TestLoss().resends("node01"),
        )
        assert [f.kind for f in of_links(diagnose(make_store(rows)))] == ["packet_loss"]

    def test_a_counter_at_its_highest_value_tells_nothing(self, make_store: Make) -> None:
        stopped = samples("node02", "mlx5_0/1", {"symbol_errors": [65_535] * SAMPLES}, name="old")
        info = {
            "format": "old",
            "table_name": "port_samples",
            "counter": "symbol_errors",
            "width": 16,
            "overflow": "saturate",
            "kind": "counter",
            "unit": "symbols",
        }
        found = diagnose(
            make_store(together(cluster(), quiet(), stopped, {"counter_info": [info]}))
        )
        assert of_links(found) == []
        assert answer(found) == "unknown"

    def test_unknown_speeds_leave_the_question_open(self, make_store: Make) -> None:
        rows = together(cluster(), quiet())
        for row in rows["port_status"]:
            row["speed_gbps"] = None
        assert answer(diagnose(make_store(rows))) == "unknown"


class TestFlaps:
    def test_a_link_that_went_down_counts_the_steps_it_held(self, make_store: Make) -> None:
        rows = cluster()
        downs = [at(12), at(14), at(18)]
        for down in downs:
            hit = min(int(row["step"]) for row in rows["steps"] if row["ts"] >= down)  # type: ignore[operator, call-overload]
            for row in rows["steps"]:
                if row["step"] == hit:
                    row["step_time_ms"] += 4000  # type: ignore[operator]
                    row["comm_ms"] += 4000  # type: ignore[operator]
        rows["events"] = [
            {
                "file_id": "k",
                "line": n,
                "host": "node01",
                "kind": "link_down",
                "part": "ens1np0",
                "ts": down,
            }
            for n, down in enumerate(downs)
        ]
        (finding,) = of_links(diagnose(make_store(together(rows, quiet()))))
        assert finding.kind == "link_flap"
        assert [e.label for e in finding.entities] == ["node01 mlx5_0", "leaf00 Ethernet8"]
        assert "3 times" in finding.title
        assert finding.detected_at == downs[0]
        assert finding.loss_share == pytest.approx(12 / (60 + 12), rel=0.15)

    @pytest.mark.parametrize("seed", range(6))
    def test_it_is_set_against_the_steps_by_the_clock_of_its_host(
        self, make_store: Make, seed: int
    ) -> None:
        """Each host's kernel and steps have its clock; the job's is that of the median host."""
        chance = np.random.default_rng(seed)
        ahead = {f"node{n:02d}": float(s) for n, s in enumerate(chance.uniform(-20, 20, HOSTS))}
        of_job = sorted(ahead.values())[(HOSTS - 1) // 2]
        rows, downs = cluster(), [at(12), at(14), at(18)]
        for row in rows["steps"]:
            if any(timedelta() <= row["ts"] - down < timedelta(seconds=1) for down in downs):  # type: ignore[operator]
                row["step_time_ms"] += 4000  # type: ignore[operator]
                row["comm_ms"] += 4000  # type: ignore[operator]
            row["ts"] += timedelta(seconds=ahead[str(row["host"])])  # type: ignore[operator]
        rows["events"] = [
            {"file_id": "k", "line": n, "host": "node01", "kind": "link_down", "part": "ens1np0"}
            | {"ts": down + timedelta(seconds=ahead["node01"])}
            for n, down in enumerate(downs)
        ]
        (finding,) = of_links(diagnose(make_store(together(rows, quiet()))))
        assert finding.loss_share == pytest.approx(12 / (60 + 12), rel=0.2)
        assert finding.start is not None
        apart = (finding.start - downs[0]).total_seconds() - of_job
        assert abs(apart) < max(1.5, abs(ahead["node01"] - of_job) * 0.1)

    def test_one_event_that_one_step_waited_for_has_its_cost(self, make_store: Make) -> None:
        rows = cluster()
        down = at(12)
        hit = min(int(row["step"]) for row in rows["steps"] if row["ts"] >= down)  # type: ignore[operator, call-overload]
        for row in rows["steps"]:
            if row["step"] == hit:
                row["step_time_ms"] += 4000  # type: ignore[operator]
                row["comm_ms"] += 4000  # type: ignore[operator]
        port = samples("leaf00", "Ethernet8", {"link_downed": once(1, sample=12, start=2)})
        (finding,) = of_links(
            diagnose(make_store(together(rows, quiet(besides=["leaf00 Ethernet8"]), port)))
        )
        assert (finding.kind, finding.start_step, finding.end_step) == ("link_flap", hit, hit)
        assert finding.loss_share == pytest.approx(0.8, abs=0.02)

    @pytest.mark.parametrize("seed", range(6))
    def test_links_that_go_down_together_are_one_event(self, make_store: Make, seed: int) -> None:
        """A spine was reloaded: eight links of four leaves were eight findings, each medium."""
        chance = np.random.default_rng(seed)
        count = int(chance.integers(2, 13))
        places = chance.choice(60, count, replace=False).tolist()
        went = [f"leaf{1 + place % 4:02d} Ethernet{place}" for place in places]
        ports = [
            samples(*port.split(), {"link_downed": once(1, sample=12, start=2)}) for port in went
        ]
        store = make_store(together(cluster(), quiet(besides=went), *ports))
        found = of_links(diagnose(store))
        named = {f"{e.switch} {e.port}" for finding in found for e in finding.entities}
        assert named == {*went}
        if count < 4:
            assert [f.severity for f in found] == ["medium"] * count
        else:
            (finding,) = found
            assert finding.severity == "low" and finding.title.startswith(f"{count} links of leaf")

    @pytest.mark.parametrize("seed", range(6))
    def test_links_to_one_device_are_one_event_whatever_the_clocks_of_its_neighbours(
        self, make_store: Make, seed: int
    ) -> None:
        """A spine was reloaded; the leaf whose clock was 47 s ahead had two sick links besides."""
        chance = np.random.default_rng(seed)
        leaves, links = int(chance.integers(4, 8)), int(chance.integers(1, 3))
        off = chance.uniform(-45, 45, leaves) * (chance.random(leaves) < 0.4)
        rows = cluster()
        for leaf in range(leaves):
            for link in range(links):
                spine = ("spine2", f"Ethernet{4 * leaf + link}")
                port = f"Ethernet{64 + link}"
                rows["links"].append(
                    {
                        "file_id": "l", "line": 1, "format": "lldp", "device": f"leaf{leaf:02d}",
                        "port": port, "remote_device": spine[0], "remote_port": spine[1],
                    }
                )  # fmt: skip
                rows.setdefault("events", []).append(
                    {
                        "file_id": f"s{leaf}", "line": link, "format": "switch_log",
                        "ts_source": "inline", "host": f"leaf{leaf:02d}", "kind": "port_down",
                        "part": port, "ts": at(12) + timedelta(seconds=float(off[leaf])),
                    }
                )  # fmt: skip
        found = [f for f in of_links(diagnose(make_store(rows))) if f.kind == "link_flap"]
        (finding,) = found
        assert finding.severity == "low"
        assert f"{leaves * links} links of " in finding.title

    def test_a_link_that_went_down_before_the_job_is_none(self, make_store: Make) -> None:
        rows = together(cluster(), quiet())
        rows["events"] = [
            {
                "file_id": "k",
                "line": 1,
                "host": "node01",
                "kind": "link_down",
                "part": "ens1np0",
                "ts": START - timedelta(days=3),
            }
        ]
        assert of_links(diagnose(make_store(rows))) == []

    def test_one_event_of_several_sources_is_one(self, make_store: Make) -> None:
        port = samples("node01", "mlx5_0/1", {"link_downed": once(1, start=2)})
        rows = together(cluster(), quiet(besides=["node01 mlx5_0/1"]), port)
        moment = at(SINCE + 0.5)
        event = {"file_id": "n", "host": "node01", "kind": "async_event", "nic": "mlx5_0"}
        rows["nccl_events"] = [
            {**event, "line": n, "pid": n, "ts": moment, "text": "port error(10)"} for n in range(8)
        ]
        (finding,) = of_links(diagnose(make_store(rows)))
        assert "once" in finding.title
        assert finding.severity == "medium"

    def test_errors_of_a_link_that_trains_anew_are_the_flap(self, make_store: Make) -> None:
        counters = {"link_downed": once(1, start=2), "symbol_errors": once(90)}
        port = samples("node01", "mlx5_0/1", counters)
        rows = together(cluster(), quiet(besides=["node01 mlx5_0/1"]), port)
        assert [f.kind for f in of_links(diagnose(make_store(rows)))] == ["link_flap"]


class TestSpeeds:
    def test_a_port_below_its_role_is_named_with_its_nic(self, make_store: Make) -> None:
        slow = cluster(gbps={"node03": 200.0, "Ethernet24": 200.0})
        found = diagnose(make_store(together(slow, quiet())))
        (finding,) = of_links(found)
        assert finding.kind == "degraded_link"
        assert {e.label for e in finding.entities} == {"node03 mlx5_0", "leaf00 Ethernet24"}
        assert "200 instead of 400" in finding.title
        assert answer(found) == "problem"

    @pytest.mark.parametrize(
        ("node00", "named"),
        [
            ([400, 400, 400, 200], ["node00 mlx5_3"]),
            ([400, 400, 400, 100], []),  # as the other host: a NIC for storage
        ],
    )
    def test_two_hosts_are_compared_nic_by_nic_and_then_over_all_nics(
        self, make_store: Make, node00: list[float], named: list[str]
    ) -> None:
        node01 = [400, 400, 400, 400 if named else 100]
        rows = together(cluster(), quiet())
        rows["links"] = []
        rows["port_status"] = [
            status(host, f"mlx5_{nic}/1", gbps, alias=f"ens{nic}np0")
            for host, speeds in (("node00", node00), ("node01", node01))
            for nic, gbps in enumerate(speeds)
        ]
        found = of_links(diagnose(make_store(rows)))
        assert [e.label for f in found for e in f.entities] == named

    def test_a_port_that_was_slow_for_a_while_is_named_with_the_time(
        self, make_store: Make
    ) -> None:
        rows = together(cluster(), quiet())
        rows["port_status"] += [
            status("leaf00", "Ethernet24", 200.0, ts=at(SINCE)),
            status("leaf00", "Ethernet24", 400.0, ts=at(SINCE + 6)),
        ]
        (finding,) = of_links(diagnose(make_store(rows)))
        assert finding.kind == "degraded_link"
        assert finding.title.endswith(f"until {at(SINCE + 6):%H:%M:%S} UTC")
        assert (finding.start, finding.begun_by) == (START, at(SINCE))
        assert finding.end == at(SINCE + 6)

    def test_what_became_slow_between_two_readings_began_with_the_slowdown(
        self, make_store: Make
    ) -> None:
        rows = together(cluster(slower=1.5), quiet())
        rows["port_status"].append(status("leaf00", "Ethernet24", 200.0, ts=at(SAMPLES - 1)))
        (finding,) = of_links(diagnose(make_store(rows)))
        assert finding.start is not None
        assert abs(finding.start - at(SINCE)) <= timedelta(seconds=5)
        assert finding.detected_at == at(SAMPLES - 1)
        assert finding.loss_share == pytest.approx(150 / 1150, abs=0.01)

    @pytest.mark.parametrize("seed", range(6))
    def test_a_port_that_nothing_is_known_of_is_compared_with_itself(
        self, make_store: Make, seed: int
    ) -> None:
        """Without cables it has no peers: it was slow where it ran faster before and after."""
        draw = np.random.default_rng(seed)
        rows = together(cluster(), quiet())
        rows["links"] = []
        full = float(draw.choice([100.0, 200.0, 400.0, 800.0]))
        first, last = sorted(draw.choice(np.arange(1, SAMPLES - 1), 2, replace=False).tolist())
        speeds = np.full(SAMPLES, full)
        speeds[first : last + 1] = full / float(draw.choice([2, 4]))
        raised = np.where(np.arange(SAMPLES) < first, full / 2, full)
        ports = {"Eth1/9": speeds, "Eth1/10": raised, "Eth1/11": np.full(SAMPLES, full / 4)}
        rows["port_status"] = [
            status("tor-1", port, float(gbps), ts=at(sample), format="text")
            for port, told in ports.items()
            for sample, gbps in enumerate(told)
        ]
        (finding,) = of_links(diagnose(make_store(rows)))
        assert [entity.label for entity in finding.entities] == ["tor-1 Eth1/9"]
        assert f"instead of {full:g} Gb/s until {at(last + 1):%H:%M:%S} UTC" in finding.title
        assert (finding.start, finding.begun_by) == (at(first - 1), at(first))

    def test_what_was_read_sound_first_is_not_from_before(self, make_store: Make) -> None:
        """It was "since 09:00:00 UTC, or before", and was read at full speed then."""
        rows = together(cluster(), quiet())
        rows["port_status"].append(status("leaf00", "Ethernet24", 200.0, ts=at(3)))
        (finding,) = of_links(diagnose(make_store(rows)))
        assert (finding.start, finding.begun_by) == (START, at(3))
        assert since_words(finding) == f"between {START} UTC and {at(3):%H:%M:%S} UTC"
        assert not (finding.from_first_step or finding.from_first_reading)

    def test_two_generations_of_hosts_are_no_fault(self, make_store: Make) -> None:
        mixed = {"node02": 200.0, "node03": 200.0, "Ethernet16": 200.0, "Ethernet24": 200.0}
        assert of_links(diagnose(make_store(together(cluster(gbps=mixed), quiet())))) == []

    def test_the_fabrics_own_word_is_enough(self, make_store: Make) -> None:
        rows = together(cluster(), quiet())
        rows["port_status"].append(
            status("leaf00", "Ethernet24", 400.0, could_be="Could be 4X", format="iblinkinfo")
        )
        (finding,) = of_links(diagnose(make_store(rows)))
        assert finding.kind == "degraded_link"

    def test_it_is_quoted_where_no_log_tells_a_speed(self, make_store: Make) -> None:
        rows = together(cluster(), quiet())
        for row in (*rows["port_status"], *rows.get("nccl_nics", ())):
            row |= {name: None for name in ("speed_gbps", "speed_mbps") if name in row}
        rows["port_status"].append(
            status("leaf00", "Ethernet24", None, could_be="Could be 4X", format="iblinkinfo")
        )
        (finding,) = of_links(diagnose(make_store(rows)))
        assert "the fabric says: Could be 4X" in finding.explanation

    def test_a_nic_that_is_gone(self, make_store: Make) -> None:
        rows = together(cluster(), quiet())
        for host in range(HOSTS):
            if host != 2:
                rows["port_status"].append(
                    status(f"node{host:02d}", "mlx5_1/1", 400.0, alias="ens2np0")
                )
        (finding,) = of_links(diagnose(make_store(rows)))
        assert [e.label for e in finding.entities] == ["node02 mlx5_1"]

    @pytest.mark.parametrize(("limited", "findings"), [(1, 1), (4, 0)])
    def test_pcie_trained_down_on_one_host_but_not_on_all(
        self, make_store: Make, limited: int, findings: int
    ) -> None:
        rows = together(cluster(), quiet())
        rows["events"] = [
            {
                "file_id": "k",
                "line": 1,
                "host": f"node{n:02d}",
                "kind": "link_up",
                "part": "ens1np0",
            }
            for n in range(HOSTS)
        ]
        text = "63 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x8 link"
        rows["events"] += [
            {
                "file_id": "k",
                "line": 2,
                "host": f"node{n:02d}",
                "kind": "pcie_degraded",
                "part": "0000:7f:00.0",
                "text": text,
            }
            for n in range(limited)
        ]
        assert len(of_links(diagnose(make_store(rows)))) == findings


class TestLoss:
    def resends(self, *hosts: str, gaps: bool = True, proof: bool = True) -> Rows:
        """NICs that miss packets, of all hosts what they count."""
        parts = []
        for host in range(HOSTS):
            name = f"node{host:02d}"
            by = 400 if name in hosts else 0
            counters = {
                "out_of_sequence": rising(by if gaps else 0),
                "packet_seq_err": rising(by if proof else 0),
            }
            parts.append(samples(name, "mlx5_0/1", counters, name="verbs"))
        return together(*parts)

    def drops(self, *ports: str, by: int = 400) -> Rows:
        names = [f"Ethernet{8 * host}" for host in range(HOSTS)]
        parts = [
            samples("leaf00", name, {"tx_discards": rising(by if name in ports else 0)}, name="d")
            for name in names
        ]
        return together(*parts)

    def test_a_leaf_that_drops_on_its_ports(self, make_store: Make) -> None:
        ports = [f"Ethernet{8 * host}" for host in range(HOSTS)]
        nics = self.resends("node00", "node01", "node02", "node03")
        rows = together(cluster(slower=1.5), quiet(), self.drops(*ports), nics)
        rows["settings"] = [
            {
                "file_id": "c",
                "line": n,
                "format": "sonic_settings",
                "device": device,
                "port": port,
                "name": "lossless_priorities",
                "value": value,
                "ts": START,
            }
            for n, (device, port, value) in enumerate(
                [*(("leaf00", port, "none") for port in ports), ("leaf01", "Ethernet0", "3")]
            )
        ]
        found = diagnose(make_store(rows))
        (finding,) = of_links(found)
        assert finding.kind == "packet_loss"
        assert [e.as_dict() for e in finding.entities] == [{"type": "switch", "switch": "leaf00"}]
        assert "PFC was enabled for no class on 4 of 4 ports" in finding.explanation
        assert finding.loss_share == pytest.approx(150 / 1150, rel=0.15)
        assert answer(found) == "problem"

    def test_one_port_that_drops_is_named_with_its_nic(self, make_store: Make) -> None:
        rows = together(cluster(), quiet(), self.drops("Ethernet8"), self.resends("node01"))
        (finding,) = of_links(diagnose(make_store(rows)))
        assert [e.label for e in finding.entities] == ["leaf00 Ethernet8", "node01 mlx5_0"]

    def test_drops_that_no_nic_repeats_are_of_another_class(self, make_store: Make) -> None:
        rows = together(cluster(), quiet(), self.drops("Ethernet8"), self.resends())
        assert of_links(diagnose(make_store(rows))) == []

    def test_drops_of_a_paused_port_are_the_storms(self, make_store: Make) -> None:
        rows = together(cluster(), quiet(), self.drops("Ethernet8"), self.resends("node01"))
        rows["priority_samples"] = [
            {
                "file_id": "q",
                "line": sample,
                "format": "pfc",
                "device": "leaf00",
                "port": "Ethernet8",
                "priority": 3,
                "pfc_rx_pause_us": int(sample * INTERVAL * 450_000),
                "ts": at(sample),
            }
            for sample in range(SAMPLES)
        ]
        # What its NIC sends again then is told, but no port is accused of dropping.
        entities = [e.type for f in of_links(diagnose(make_store(rows))) for e in f.entities]
        assert "port" not in entities

    def test_packets_in_another_order_are_no_loss(self, make_store: Make) -> None:
        rows = together(cluster(), quiet(), self.resends("node01", proof=False))
        assert of_links(diagnose(make_store(rows))) == []

    def test_what_only_one_nic_misses_is_told_of_it(self, make_store: Make) -> None:
        rows = together(cluster(), quiet(), self.resends("node01"))
        (finding,) = of_links(diagnose(make_store(rows)))
        assert [e.label for e in finding.entities] == ["node01 mlx5_0"]

    def test_a_broken_cable_explains_what_is_sent_again(self, make_store: Make) -> None:
        port = samples("leaf00", "Ethernet16", {"rx_errors": rising(20)})
        rows = together(
            cluster(), quiet(besides=["leaf00 Ethernet16"]), port, self.resends("node01", "node02")
        )
        assert [f.kind for f in of_links(diagnose(make_store(rows)))] == ["link_errors"]


def alarm(sample: float, *, port: str = "Ethernet16", said: str = "Low Rx Power Alarm") -> Rows:
    """What the leaf's log says of the optics of a port."""
    row = {"file_id": "log", "line": 1, "format": "switch_log", "ts_source": "inline", "text": said}
    return {
        "events": [row | {"host": "leaf00", "kind": "optics_alarm", "part": port, "ts": at(sample)}]
    }


class TestOptics:
    def test_an_alarm_corroborates_the_cable_that_breaks_data(self, make_store: Make) -> None:
        port = samples("leaf00", "Ethernet16", {"rx_errors": rising(20)})
        rows = together(cluster(slower=1.5), quiet(besides=["leaf00 Ethernet16"]), port)
        (finding,) = diagnose(make_store(together(rows, alarm(SINCE + 2)))).findings
        assert finding.kind == "link_errors"
        assert "leaf00 Ethernet16" in [e.label for e in finding.entities]
        assert {"counters", "log"} <= set(finding.families)
        assert "The optics of leaf00 Ethernet16 " in finding.explanation

    def test_an_alarm_of_another_cable_is_an_early_warning_of_its_own(
        self, make_store: Make
    ) -> None:
        port = samples("leaf00", "Ethernet16", {"rx_errors": rising(20)})
        rows = together(cluster(slower=1.5), quiet(besides=["leaf00 Ethernet16"]), port)
        found = diagnose(make_store(together(rows, alarm(SINCE + 2, port="Ethernet8"))))
        assert [f.kind for f in found.findings] == ["link_errors", "optics_alarm"]
        warning = found.findings[1]
        assert warning.severity == "low"
        assert [e.label for e in warning.entities] == ["leaf00 Ethernet8"]
        assert warning.loss_share is None

    def test_a_warning_that_cleared_is_information(self, make_store: Make) -> None:
        said = alarm(2, said="High Temperature Warning")
        cleared = alarm(3, said="High Temperature Warning cleared")
        (finding,) = diagnose(make_store(together(cluster(), quiet(), said, cleared))).findings
        assert (finding.kind, finding.severity, finding.end) == ("optics_alarm", "info", at(3))

    def test_a_dark_port_receives_no_light(self, make_store: Make) -> None:
        dark: Rows = {"port_status": [status("leaf00", "Ethernet96", None, oper="down")]}
        rows = together(cluster(), quiet(), dark, alarm(2, port="Ethernet96"))
        assert not diagnose(make_store(rows)).findings


def uplinks(seed: int, *, returns: bool) -> Rows:
    """Four uplinks that carry the job's traffic; one goes down, for good or for two samples.

    What tells of it is drawn: a status asked often or seldom, a counter, the log of the switch; a
    dead port may still count a few packets, and after the job all are silent.
    """
    chance = np.random.default_rng(seed)
    told = [name for name in ("status", "counter", "log") if chance.random() < 0.6] or ["status"]
    every, trickle = int(chance.choice([1, 3])), int(chance.choice([0, 6_000]))
    down = int(chance.choice([9, 12]))
    up = down + 2 if returns else SAMPLES
    rows: Rows = {name: [] for name in ("port_samples", "port_status", "links", "events")}
    for number in range(4):
        port, sick = f"Ethernet{160 + 8 * number}", number == 2
        sent, totals = 10**12, []
        for sample in range(SAMPLES):
            quiet_now = sample > 20 or (sick and down < sample <= up)
            sent += trickle if quiet_now else int(chance.normal(1e11, 2e9))
            totals.append(sent)
        counters = {"tx_bytes": totals, "rx_bytes": totals}
        if "counter" in told:
            counters["link_downed"] = once(1 if sick else 0, sample=down)
        rows = together(rows, samples("leaf00", port, counters))
        far = {"remote_device": "spine00", "remote_port": f"Ethernet{number}"}
        link = {"file_id": "l", "format": "lldp", "device": "leaf00", "port": port, "ts": START}
        rows["links"].append(link | far)
        if "status" in told:
            rows["port_status"] += [
                status("leaf00", port, 400.0)
                | {"ts": at(sample), "oper": "down" if sick and down < sample <= up else "up"}
                for sample in range(0, SAMPLES, every)
            ]
    if "log" in told:
        event = {"file_id": "e", "host": "leaf00", "part": "Ethernet176", "kind": "port_down"}
        rows["events"].append(event | {"line": 1, "ts": at(down + 0.4)})
    return rows


@pytest.mark.parametrize("seed", range(12))
def test_a_link_that_stays_down_is_ongoing_and_priced(seed: int, make_store: Make) -> None:
    """The steps take longer as long as the link is down."""
    returns = seed % 3 == 0
    job = cluster(slower=1.0 if returns else 1.3)
    found = of_links(diagnose(make_store(together(job, quiet(), uplinks(seed, returns=returns)))))
    if returns and not found:  # a status asked seldom does not see it
        return
    (finding,) = found
    assert finding.entities[0] == Entity("port", switch="leaf00", port="Ethernet176")
    if returns:
        assert "down once" in finding.title
        assert finding.state == "over"
    else:
        assert "is down since" in finding.title
        assert finding.state == "ongoing"
        assert finding.loss_share == pytest.approx(0.083, abs=0.03)


@pytest.mark.parametrize("seed", range(12))
def test_two_ends_that_count_as_many_downs_at_once_are_one_cable(
    seed: int, make_store: Make
) -> None:
    """An exporter read each device by a clock of its own, and no log named the cable: two flaps."""
    chance = np.random.default_rng(seed)
    third, other_count = seed % 4 == 1, seed % 4 == 2
    first, times = int(chance.integers(5, 15)), int(chance.integers(3, 8))
    parts = []
    for place, device in enumerate(["sw-a", "sw-b", *(["sw-c"] if third else [])]):
        downs = times + (2 if other_count and place else 0)
        spread = sorted(chance.choice([first, first + 1], downs).tolist())
        total = [sum(at_ < sample for at_ in spread) for sample in range(SAMPLES)]
        rows = samples(device, f"swp{place + 3}", {"link_downed": total})
        for row in rows["port_samples"]:
            row["ts"] += timedelta(seconds=float(chance.uniform(-4, 4)))  # type: ignore[operator]
        parts.append(rows)
    found = of_links(diagnose(make_store(together(cluster(), quiet(), *parts))))
    ends = sorted(sorted(e.label for e in f.entities) for f in found)
    if third or other_count:
        assert ends == [[f"sw-{name} swp{n + 3}"] for n, name in enumerate("abc"[: 2 + third])]
    else:
        assert ends == [["sw-a swp3", "sw-b swp4"]]
        assert "both ends went down at the same times" in found[0].explanation
