"""Pauses, congestion and uplinks at the level of tables: what must be found, and near misses."""

from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from test_link_diagnosis import (
    HOSTS,
    INTERVAL,
    SAMPLES,
    SINCE,
    at,
    cluster,
    rising,
    samples,
    status,
    together,
)

from conftest import Rows
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.findings import Diagnosis, Finding
from fabricobs.diagnosis.methods.ecmp_skew import find_ecmp_skew
from fabricobs.diagnosis.methods.one_way_uplink import find_one_way_uplinks
from fabricobs.diagnosis.model import load_models
from fabricobs.diagnosis.rule_cases import rows_of
from fabricobs.diagnosis.run import diagnose

pytestmark = pytest.mark.slow

Make = Callable[[Rows], Path]
KINDS = {"pfc_storm", "congestion", "ecn_misconfigured", "oversubscription", "ecmp_skew"}
NICS = [f"node{host:02d}" for host in range(HOSTS)]
PORTS = [f"Ethernet{8 * host}" for host in range(HOSTS)]


def priority(device: str, port: str, counters: dict[str, list[int]], **more: object) -> Rows:
    """Samples of priority 3 of a port."""
    rows = [
        {
            "file_id": f"{device} priorities",
            "line": sample + 1,
            "format": "priorities",
            "device": device,
            "port": port,
            "priority": 3,
            "ts": at(sample),
            "ts_source": "inline",
            **more,
            **{name: values[sample] for name, values in counters.items()},
        }
        for sample in range(SAMPLES)
    ]
    return {"priority_samples": rows}


def pauses(device: str, port: str, *, sent: float, got: float, measured: bool = True) -> Rows:
    """Frames a second sent and received since SINCE, each 11 us long where `measured`."""
    tx, rx = rising(round(sent * INTERVAL)), rising(round(got * INTERVAL))
    counters = {"pfc_tx_frames": tx, "pfc_rx_frames": rx}
    if measured:
        counters["pfc_tx_pause_us"] = [11 * value for value in tx]
        counters["pfc_rx_pause_us"] = [11 * value for value in rx]
    return priority(device, port, counters)


def received(ratios: Sequence[float]) -> Rows:
    """What each NIC's leaf port sends it since SINCE, in units of 50 GB an interval."""
    parts = []
    for port, ratio in zip(PORTS, ratios, strict=True):
        total = [
            5 * 10**10 * sample + round((ratio - 1) * 5 * 10**10) * max(0, sample - SINCE)
            for sample in range(SAMPLES)
        ]
        parts.append(samples("leaf00", port, {"tx_bytes": total}))
    return together(*parts)


def marks(rates: Sequence[float]) -> Rows:
    """CNPs a second that each NIC sends since SINCE."""
    parts = []
    for host, rate in zip(NICS, rates, strict=True):
        by = round(rate * INTERVAL)
        counters = {"np_cnp_sent": rising(by), "rx_bytes": [0] * SAMPLES}
        parts.append(samples(host, "mlx5_0/1", counters, name="marks"))
    return together(*parts)


def balance(ratios: Sequence[float]) -> Rows:
    """What each NIC receives over what it sends, in its class, since SINCE."""
    parts = []
    for host, ratio in zip(NICS, ratios, strict=True):
        sent = [10**10 * sample for sample in range(SAMPLES)]
        extra = rising(round((ratio - 1) * 10**10), start=0)
        got = [a + b for a, b in zip(sent, extra, strict=True)]
        parts.append(priority(host, "mlx5_0/1", {"rx_bytes": got, "tx_bytes": sent}))
    return together(*parts)


def told(found: Diagnosis) -> list[Finding]:
    return [finding for finding in found.findings if finding.kind in KINDS]


def uncabled_switch(draw: np.random.Generator, *, but: str = "") -> tuple[Rows, str]:
    """A job slower since SINCE; of a switch without a known cable one port sends more then.

    The switch pauses the others meanwhile; `but` makes it no sign of a full queue at that port, as
    where the job was restarted or the flows of the other ports went elsewhere.
    Other ports carry what they may, at the pace of the job.
    """
    rows = cluster(slower=1.5)
    rows["links"] = []
    number = int(draw.integers(3, 40))
    culprit, other = draw.choice(number, 2, replace=False)
    grows, pace = draw.uniform(1.6, 6.0), draw.uniform(0.6, 1.0)
    if but == "the others are idle":
        pace = 10 ** draw.uniform(-8, -1.5)
        grows = 0.8 / pace
    if but == "the job was restarted":
        rows["steps"] = [
            row | {"step": row["step"] - 9} if row["ts"] > at(SINCE) else row  # type: ignore[operator]
            for row in rows["steps"]
        ]
    least = 0 if but == "pauses are as before" else SINCE
    parts = []
    for place in range(number):
        port = f"{place + 1}/1"
        usual = 10 ** draw.uniform(10.3, 11)
        more = place == culprit or (but == "two grow" and place == other)
        now = usual * pace * (grows if more else 1.0) * draw.normal(1, 0.002, SAMPLES)
        rates = np.where(np.arange(SAMPLES) > SINCE, now, usual)
        parts.append(samples("sw-x7", port, {"tx_bytes": np.cumsum(rates).astype(int).tolist()}))
        sent = 0 if place == culprit else round(draw.uniform(40, 4000)) * INTERVAL
        got = 500 * INTERVAL if place == culprit and but == "it is paused itself" else 0
        counters = {"pfc_tx_frames": int(sent), "pfc_rx_frames": int(got)}
        totals = {name: rising(by, since=least) for name, by in counters.items()}
        parts.append(priority("sw-x7", port, totals))
    return together(rows, *parts), f"{culprit + 1}/1"


class TestStorms:
    def test_the_nic_that_pauses_and_is_not_paused_is_named(self, make_store: Make) -> None:
        storm = pauses("node02", "ens1np0", sent=40_000, got=5)
        victim = pauses("node01", "ens1np0", sent=2, got=2_000)
        (finding,) = told(diagnose(make_store(together(cluster(slower=1.5), storm, victim))))
        assert finding.kind == "pfc_storm"
        assert [e.label for e in finding.entities] == ["node02 mlx5_0", "leaf00 Ethernet16"]
        assert {e.host for e in finding.related if e.type == "host"} == {"node01"}
        assert finding.detected_at == at(SINCE + 2)
        assert finding.loss_share == pytest.approx(0.13, abs=0.02)

    @pytest.mark.parametrize("nic", ["ens58f0np0", "enp27s0", "eth4", "mlx5_2", "bnxt_re7"])
    @pytest.mark.parametrize("processes", [True, False])
    def test_a_host_is_no_switch_where_no_log_tells_its_ranks(
        self, make_store: Make, nic: str, *, processes: bool
    ) -> None:
        """ "gpu-14-02 pauses its neighbours: one of its queues is full" of a NIC that storms.

        NCCL's logs were cut, and told no communicator, or none was collected.
        """
        rows: Rows = {"steps": cluster(slower=1.5)["steps"]}
        rows["steps"] = [
            {**row, "host": None, "compute_ms": None, "comm_ms": None}
            for row in rows["steps"]
            if row["rank"] == 0
        ]
        rows["nccl_channels"] = [
            {"file_id": "n", "line": 1, "host": host, "pid": 7, "transport": "NET", "network": "IB"}
            for host in NICS
            if processes
        ]
        seen = [pauses(host, nic, sent=1, got=5) for host in NICS if host != "node02"]
        storm = pauses("node02", nic, sent=40_000, got=5)
        (finding,) = told(diagnose(make_store(together(rows, storm, *seen))))
        assert finding.kind == "pfc_storm"
        assert [e.label for e in finding.entities] == [f"node02 {nic}"]

    @pytest.mark.parametrize("with_it", [True, False])
    @pytest.mark.parametrize("last", [16, 18, 20])
    def test_pauses_that_end_with_the_job_are_said_to(
        self, make_store: Make, last: int, *, with_it: bool
    ) -> None:
        """ "No storm: the receiver is slow" was what would disprove it, and nobody looked."""
        rows = cluster(slower=1.5)
        rows["steps"] = [row for row in rows["steps"] if row["ts"] <= at(last)]  # type: ignore[operator]
        totals = [
            700 + 400_000 * max(0, min(n, last if with_it else SAMPLES) - SINCE)
            for n in range(SAMPLES)
        ]
        counters = {"pfc_tx_frames": totals, "pfc_rx_frames": [0] * SAMPLES}
        counters["pfc_tx_pause_us"] = [11 * total for total in totals]
        storm = priority("node02", "ens1np0", counters)
        (finding,) = told(diagnose(make_store(together(rows, storm))))
        said = "The pauses ended with the job's last step" in finding.explanation
        assert (finding.kind, said) == ("pfc_storm", with_it)

    def test_its_leaf_port_alone_tells_it_too(self, make_store: Make) -> None:
        seen = pauses("leaf00", "Ethernet16", sent=5, got=40_000)
        (finding,) = told(diagnose(make_store(together(cluster(), seen))))
        assert finding.entities[0].label == "node02 mlx5_0"

    @pytest.mark.parametrize(("frames", "share"), [(4_000, "34%"), (40_000, "100%")])
    def test_a_port_that_no_log_names_is_told_by_frames_alone(
        self, make_store: Make, frames: int, share: str
    ) -> None:
        """Frames alone tell no time, but of one port among quiet ones that they are a storm's."""
        rows = cluster()
        rows["links"] = []
        seen = [
            pauses("leaf00", port, sent=1, got=frames if port == PORTS[2] else 1, measured=False)
            for port in PORTS
        ]
        (finding,) = told(diagnose(make_store(together(rows, *seen))))
        assert [e.label for e in finding.entities] == ["leaf00 Ethernet16"]
        assert f"up to {share}" in finding.title
        assert "upper estimate" in finding.explanation

    @pytest.mark.parametrize("seed", range(6))
    def test_a_switch_that_no_log_shows_pauses_all_links_to_it(
        self, make_store: Make, seed: int
    ) -> None:
        """42 uplinks of leaves below spines without logs were 42 devices that storm."""
        draw = np.random.default_rng(seed)
        rows = cluster()
        rows["links"] = []
        links, frames = int(draw.integers(2, 9)), draw.uniform(3_000, 40_000)
        paused = set(draw.choice(40, links, replace=False).tolist())
        seen = [
            pauses(
                "leaf00",
                f"Ethernet{8 * port}",
                sent=0,
                got=frames * draw.uniform(0.8, 1.2) if port in paused else 0,
                measured=bool(seed % 2),
            )
            for port in range(40)
        ]
        assert told(diagnose(make_store(together(rows, *seen)))) == []

    @pytest.mark.parametrize("peer", ["storage01", "node99"])
    def test_a_host_that_no_job_uses_is_named_by_its_cable(
        self, make_store: Make, peer: str
    ) -> None:
        link = cluster()["links"][0] | {"line": 99, "port": "Ethernet96", "remote_device": peer}
        asked = link | {"line": 100, "device": "leaf01", "remote_device": "node98"}
        seen = [pauses("leaf00", port, sent=1, got=1) for port in PORTS]
        storm = pauses("leaf00", "Ethernet96", sent=5, got=40_000)
        rows = together(cluster(slower=1.5), {"links": [link, asked]}, storm, *seen)
        (finding,) = told(diagnose(make_store(rows)))
        assert [e.label for e in finding.entities] == [f"{peer} ens1np0", "leaf00 Ethernet96"]
        assert finding.loss_share == pytest.approx(0.13, abs=0.02)

    @pytest.mark.parametrize("port", ["mlx5_0/1", "rocep1s0/1", "ens1np0"])
    @pytest.mark.parametrize("status", [True, False])
    def test_a_nic_has_one_name_however_counters_spell_its_port(
        self, make_store: Make, port: str, status: bool
    ) -> None:
        rows = cluster()
        if not status:
            rows["port_status"] = []
        storm = pauses("node02", port, sent=40_000, got=5)
        bytes_of = samples("node02", port, {"rx_bytes": [0] * SAMPLES})
        (finding,) = told(diagnose(make_store(together(rows, storm, bytes_of))))
        device = port.split("/")[0]
        name = "mlx5_0" if device == "ens1np0" and status else device
        assert [e.nic for e in finding.entities if e.type == "nic"] == [name]

    @pytest.mark.parametrize(("seconds", "kinds"), [(120, ["pfc_storm"]), (10, [])])
    def test_one_interval_is_enough_if_it_is_long(
        self, make_store: Make, seconds: int, kinds: list[str]
    ) -> None:
        storm = pauses("leaf00", "Ethernet16", sent=5, got=40_000)
        kept = [row for row in storm["priority_samples"] if row["ts"] <= at(SINCE)]  # type: ignore[operator]
        last = {**storm["priority_samples"][SINCE + seconds // 10], "line": 99}
        rows = together(cluster(), {"priority_samples": [*kept, last]})
        assert [f.kind for f in told(diagnose(make_store(rows)))] == kinds

    def test_frames_of_all_receivers_alike_are_no_storm(self, make_store: Make) -> None:
        frames = np.random.default_rng(3).uniform(3_000, 6_000, HOSTS)
        seen = [
            pauses("leaf00", port, sent=1, got=got, measured=False)
            for port, got in zip(PORTS, frames, strict=True)
        ]
        assert told(diagnose(make_store(together(cluster(), *seen)))) == []

    def test_pauses_that_another_switch_sends_are_its_own(self, make_store: Make) -> None:
        rows = cluster()
        rows["links"] = []
        seen = [
            pauses("leaf00", port, sent=1, got=4_000 if port == PORTS[2] else 1, measured=False)
            for port in PORTS
        ]
        spine = pauses("spine00", "Ethernet0", sent=4_000, got=1, measured=False)
        assert told(diagnose(make_store(together(rows, spine, *seen)))) == []

    @pytest.mark.parametrize(
        ("sent", "got", "measured"),
        [
            (5.0, 40_000.0, True),  # paused, and pauses nobody
            (40_000.0, 30_000.0, True),  # hands on what it gets
            (9_000.0, 5.0, True),  # 10 % of the time
            (4_000.0, 5.0, False),  # a third of the time at most, by the longest frames
        ],
    )
    def test_less_than_that_is_no_storm(
        self, make_store: Make, sent: float, got: float, measured: bool
    ) -> None:
        seen = pauses("node02", "ens1np0", sent=sent, got=got, measured=measured)
        assert told(diagnose(make_store(together(cluster(), seen)))) == []

    def test_a_watchdog_needs_no_second_interval(self, make_store: Make) -> None:
        risen = [3 if sample > SINCE else 0 for sample in range(SAMPLES)]
        acted = priority("leaf00", "Ethernet16", {"pfcwd_detected": risen})
        (finding,) = told(diagnose(make_store(together(cluster(), acted))))
        assert finding.kind == "pfc_storm"
        assert finding.detected_at == at(SINCE + 1)
        assert "watchdog of leaf00 detected 3 storms" in finding.explanation


class TestCongestion:
    def test_more_bytes_and_marks_for_one_nic(self, make_store: Make) -> None:
        rows = together(cluster(slower=1.5), received([1, 1, 3, 1]), marks([1, 1, 900, 1]))
        (finding,) = told(diagnose(make_store(rows)))
        assert finding.kind == "congestion"
        assert [e.label for e in finding.entities] == ["leaf00 Ethernet16", "node02 mlx5_0"]

    @pytest.mark.parametrize("seed", range(6))
    def test_a_port_that_no_log_names_is_told_by_what_it_sends_while_its_switch_pauses(
        self, make_store: Make, seed: int
    ) -> None:
        rows, port = uncabled_switch(np.random.default_rng(seed))
        (finding,) = told(diagnose(make_store(rows)))
        assert finding.kind == "congestion"
        assert [e.label for e in finding.entities] == [f"sw-x7 {port}"]
        assert "times what came before" in finding.title
        assert finding.start_step is not None and (finding.loss_share or 0) > 0.05

    @pytest.mark.parametrize("seed", range(2))
    @pytest.mark.parametrize(
        "but",
        [
            "it is paused itself",
            "two grow",
            "pauses are as before",
            "the others are idle",
            "the job was restarted",
        ],
    )
    def test_a_port_that_no_log_names_may_lead_to_the_full_queue_or_away_from_it(
        self, make_store: Make, seed: int, but: str
    ) -> None:
        """That the switch pauses more is known all the same."""
        rows, _ = uncabled_switch(np.random.default_rng(100 + seed), but=but)
        found = diagnose(make_store(rows))
        assert told(found) == []
        (drop,) = (f for f in found.findings if f.kind == "throughput_drop")
        hints = [f.title for f in found.findings if f.kind == "pausing_switch"]
        leads = ("pause frames of switches", "most at sw-x7")
        rose = but != "pauses are as before"
        assert all((lead in drop.explanation) == rose for lead in leads), drop.explanation
        assert (
            any("sw-x7 pauses its neighbours: one of its queues" in hint for hint in hints) == rose
        )

    @pytest.mark.parametrize(
        ("ratios", "cnps", "slower"),
        [
            ([1, 1, 3, 1], [1, 1, 1, 1], 1.0),  # another kind of rank: no queue is full
            ([1, 1, 3, 1], [1, 1, 1, 1], 1.5),  # nor is it when steps become longer
            ([1, 1, 3, 1], [0, 0, 14, 0], 1.0),  # a few marks slow nobody
            ([1, 1, 1.2, 1], [1, 1, 900, 1], 1.0),
            ([1, 3, 3, 1], [1, 900, 900, 1], 1.0),  # half of them: other peers
        ],
    )
    def test_near_misses(
        self, make_store: Make, ratios: Sequence[float], cnps: Sequence[float], slower: float
    ) -> None:
        rows = together(cluster(slower=slower), received(ratios), marks(cnps))
        assert told(diagnose(make_store(rows))) == []

    @pytest.mark.parametrize(
        ("ratio", "marked", "answer", "says"),
        [
            (3.0, 0, "unknown", "arrive for mlx5_0 of node02"),
            (3.0, 1, "ok", "no queue fills where a NIC receives more than its peers"),
            # All send so many CNPs that none could send ten times as many.
            (3.0, 3_000, "unknown", "arrive for mlx5_0 of node02"),
            (1.0, 0, "ok", "NICs receive alike"),
        ],
    )
    def test_nics_that_receive_more_are_never_said_to_receive_alike(
        self, make_store: Make, ratio: float, marked: int, answer: str, says: str
    ) -> None:
        """Without a cable that tells the leaf, and without marks, nothing tells of a full queue."""
        parts = [cluster() | {"links": []}]
        for place, host in enumerate(NICS):
            more = rising(round((ratio - 1) * 5 * 10**10) if place == 2 else 0)
            bytes_ = [5 * 10**10 * sample + extra for sample, extra in enumerate(more)]
            counters = {"rx_bytes": bytes_} | (
                {"np_cnp_sent": rising(10 * marked)} if marked else {}
            )
            parts += [samples(host, "mlx5_0/1", counters), pauses(host, "ens1np0", sent=0, got=1)]
        found = diagnose(make_store(together(*parts)))
        asked = found.verdict.questions[6]
        assert told(found) == []
        assert asked.answer == answer and says in asked.evidence, asked.evidence
        assert ("CNPs of every NIC" in asked.settled_by) == (answer == "unknown")

    @pytest.mark.parametrize(("ratio", "kinds"), [(3.0, ["congestion"]), (1.1, [])])
    def test_hosts_of_one_nic_that_are_read_apart_are_compared_over_minutes(
        self, make_store: Make, ratio: float, kinds: list[str]
    ) -> None:
        """No snapshot holds four NICs: each host is read by its own clock."""
        parts = []
        for place, host in enumerate(NICS):
            more = ratio if place == 2 else 1.0
            total = [
                5 * 10**10 * sample + round((more - 1) * 5 * 10**10) * max(0, sample - SINCE)
                for sample in range(SAMPLES)
            ]
            cnps = rising(9_000 if place == 2 else 10)
            rows = samples(host, "mlx5_0/1", {"rx_bytes": total, "np_cnp_sent": cnps})
            for row in rows["port_samples"]:
                row["ts"] += timedelta(seconds=2.5 * place)  # type: ignore[operator]
            parts.append(rows)
        found = told(diagnose(make_store(together(cluster(slower=1.5), *parts))))
        assert [f.kind for f in found] == kinds
        assert all(f.entities[0].label == "leaf00 Ethernet16" for f in found)

    @pytest.mark.parametrize("later", [0, 1, 5, 8])
    @pytest.mark.parametrize("bursts", [False, True])
    def test_a_storm_beside_more_bytes_for_another_nic_is_told_of_its_own(
        self, make_store: Make, later: int, bursts: bool
    ) -> None:
        """It was told as what more bytes for another NIC of its leaf bring with them.

        The leaf paused its neighbours for both, and that named the NIC of the storm.
        """
        begins = SINCE + later
        frames, total = [], 0
        for sample in range(SAMPLES):
            acts = sample > begins and not (bursts and sample % 4 == 3)
            total += 40_000 * INTERVAL if acts else 0
            frames.append(total)
        counters = {"pfc_tx_frames": frames, "pfc_tx_pause_us": [11 * value for value in frames]}
        storm = priority("node01", "ens1np0", {"pfc_rx_frames": [0] * SAMPLES, **counters})
        victims = [pauses(host, "ens1np0", sent=0, got=300) for host in (NICS[0], NICS[3])]
        rows = together(cluster(), received([1, 1, 3, 1]), storm, *victims)
        found = told(diagnose(make_store(rows)))
        named = {f.kind: [e.label for e in f.entities] for f in found}
        assert named["pfc_storm"] == ["node01 mlx5_0", "leaf00 Ethernet8"]
        assert named.get("congestion") in (None, ["leaf00 Ethernet16", "node02 mlx5_0"])

    def test_an_ok_does_not_deny_a_queue_that_fills(self, make_store: Make) -> None:
        """Where no step is longer for it, it is information."""
        calm = [pauses(host, "ens1np0", sent=0, got=1) for host in NICS]
        rows = together(cluster(), received([1, 1, 3, 1]), marks([1, 1, 900, 1]), *calm)
        found = diagnose(make_store(rows))
        assert [(f.kind, f.severity) for f in found.findings] == [("congestion", "info")]
        asked = found.verdict.questions[6]
        assert asked.answer == "ok"
        assert "no step is longer for the queue of a NIC that receives more" in asked.evidence

    @pytest.mark.parametrize("told_of_ranks", [True, False])
    @pytest.mark.parametrize("slower", [1.0, 1.5])
    def test_steps_that_become_longer_with_it_and_stay_so_tell_its_cost_by_their_transfers(
        self, make_store: Make, slower: float, told_of_ranks: bool
    ) -> None:
        """No counter tells of a queue, and another cause takes over when it ends.

        Where no log tells whether transfers or the work grew it is a hint.
        """
        rows = together(cluster(slower=slower), received([1, 1, 3, 1]))
        last = SINCE + 4
        for sample in rows["port_samples"]:
            if sample.get("tx_bytes") and sample["ts"] > at(last):  # type: ignore[operator]
                sample["tx_bytes"] = 5 * 10**10 * (3 * SAMPLES + sample["line"])  # type: ignore[operator]
        rows["steps"] = [step for step in rows["steps"] if step["step"] > 40]  # type: ignore[operator]
        for step in rows["steps"]:
            if slower > 1 and step["ts"] > at(last):  # type: ignore[operator]
                step["comm_ms"] += 200  # type: ignore[operator]
                step["step_time_ms"] += 200  # type: ignore[operator]
            if not told_of_ranks:
                step["comm_ms"] = step["compute_ms"] = None
        found = diagnose(make_store(rows))
        costs = [(f.severity, f.loss_share) for f in found.findings if f.kind == "congestion"]
        if slower == 1:
            assert costs == []
        elif told_of_ranks:
            # Of the steps while it lasts, against those before it.
            assert costs == [("medium", pytest.approx(1 - 1 / 1.15, abs=0.01))]
        else:
            assert costs == [("low", None)]

    @pytest.mark.parametrize("slower", [1.0, 1.1, 1.5])
    @pytest.mark.parametrize("seed", [1, 2])
    def test_what_steps_vary_by_is_no_loss(
        self, make_store: Make, slower: float, seed: int
    ) -> None:
        rows = together(cluster(slower=slower), received([1, 1, 3, 1]), marks([1, 1, 900, 1]))
        chance = np.random.default_rng(seed)
        for own in rows["steps"]:
            noise = float(chance.normal(0, 60))
            own["comm_ms"] += noise  # type: ignore[operator]
            own["step_time_ms"] += noise  # type: ignore[operator]
        (finding,) = diagnose(make_store(rows)).findings
        true = 300 * (slower - 1) / (700 + 300 * slower)
        assert (finding.loss_share or 0.0) == pytest.approx(true, abs=0.02)


class TestClass:
    def test_bytes_nobody_of_the_job_sent(self, make_store: Make) -> None:
        (finding,) = told(diagnose(make_store(together(cluster(slower=1.5), balance([2] * 4)))))
        assert finding.kind == "ecn_misconfigured"
        assert [e.host for e in finding.entities] == NICS
        assert finding.detected_at == at(SINCE + 1)

    @pytest.mark.parametrize("ratios", [[1, 1, 1, 1], [1, 1, 2, 1], [1.1, 1.1, 1.1, 1.1]])
    def test_one_host_or_a_little_is_not_the_class(
        self, make_store: Make, ratios: Sequence[float]
    ) -> None:
        assert told(diagnose(make_store(together(cluster(), balance(ratios))))) == []

    def test_counters_of_whole_ports_tell_no_class(self, make_store: Make) -> None:
        sent = [10**10 * sample for sample in range(SAMPLES)]
        parts = [
            samples(h, "mlx5_0/1", {"rx_bytes": rising(2 * 10**10, start=0), "tx_bytes": sent})
            for h in NICS
        ]
        assert told(diagnose(make_store(together(cluster(slower=1.5), *parts)))) == []

    def test_pauses_without_marks(self, make_store: Make) -> None:
        loud = [pauses(host, "ens1np0", sent=1, got=2_000) for host in NICS]
        (finding,) = told(diagnose(make_store(together(cluster(), *loud, marks([0] * 4)))))
        assert finding.kind == "ecn_misconfigured"
        assert [e.switch for e in finding.entities] == ["leaf00"]

    def test_a_threshold_no_queue_reaches_is_named(self, make_store: Make) -> None:
        loud = [pauses(host, "ens1np0", sent=1, got=2_000) for host in NICS]
        setting = {
            "file_id": "e",
            "line": 1,
            "format": "settings",
            "device": "leaf00",
            "profile": "AZURE_LOSSLESS",
            "name": "green_min_threshold",
            "value": "536870912",
        }
        rows = together(cluster(), *loud, marks([0] * 4), {"settings": [setting]})
        (finding,) = told(diagnose(make_store(rows)))
        assert "log" in finding.families
        assert "537 MB" in finding.explanation

    @pytest.mark.parametrize("cnps", [[500.0] * 4, None])
    def test_pauses_with_marks_or_unknown_marks_accuse_nobody(
        self, make_store: Make, cnps: list[float] | None
    ) -> None:
        loud = [pauses(host, "ens1np0", sent=1, got=2_000) for host in NICS]
        told_of = [marks(cnps)] if cnps else []
        assert told(diagnose(make_store(together(cluster(), *loud, *told_of)))) == []


def uplinks(gbps: Sequence[float], *, empty: int | None = None, comes_in: bool = True) -> Rows:
    """Uplinks of leaf00, 400 Gb/s each, that send so many on average; `empty` stops at SINCE."""
    rows: Rows = {"links": [], "port_status": []}
    parts = [rows]
    for number, rate in enumerate(gbps):
        port, spine = f"Ethernet{100 + 8 * number}", f"spine{number:02d}"
        by = round(rate * INTERVAL / 8e-9)
        stopped = number == empty
        sent = [by * (min(s, SINCE) if stopped else s) + 1000 * s for s in range(SAMPLES)]
        got = [by * (s if comes_in or not stopped else min(s, SINCE)) for s in range(SAMPLES)]
        parts.append(samples("leaf00", port, {"tx_bytes": sent, "rx_bytes": got}))
        rows["port_status"].append(status("leaf00", port, 400.0))
        rows["links"].append(
            {
                "file_id": "u",
                "line": number + 1,
                "format": "lldp",
                "device": "leaf00",
                "port": port,
                "remote_device": spine,
                "remote_port": "Ethernet0",
                "ts": at(0),
            }
        )
        parts.append(samples(spine, "Ethernet0", {"tx_bytes": got, "rx_bytes": sent}))
    return together(*parts)


Row = dict[str, object]


def rails(sends: int, receives: int | None, *, ranks: int = 4) -> Rows:
    """Two hosts of two ranks and a NIC on each of two leaves: ranks 1 and 2, 0 and 3 are peers.

    Rank 1 sends through the NIC `sends`, and rank 2 receives that through `receives` (None: no log
    tells) and sends through the other one; all else stays on its rail.
    """

    def channel(
        host: int, rank: int, to: tuple[int, int], side: str, nic: int
    ) -> dict[str, object]:
        told = {"from_rank": to[0], "to_rank": to[1], "side": side, "nic_index": nic, "gdr": True}
        kind = {"kind": "connection", "channel": 0, "transport": "NET", "network": "IB"}
        return {"file_id": "n", "host": NICS[host], "pid": 100 + rank, **kind, **told}

    hosts = [(host, nic) for host in range(2) for nic in range(2)]
    return {
        "nccl_ranks": [
            {"file_id": "n", "line": rank + 1, "host": NICS[rank // 2], "pid": 100 + rank}
            | {"rank": rank, "nranks": ranks, "nodes": 2, "comm": f"0x{rank}", "comm_id": "0xabc"}
            for rank in range(4)
        ],
        "nccl_nics": [
            {"file_id": "n", "host": NICS[rank // 2], "pid": 100 + rank, "plugin": "IB"}
            | {"nic_index": nic, "nic": f"mlx5_{nic}", "nic_port": 1}
            for rank in range(4)
            for nic in range(2)
        ],
        "nccl_channels": [
            channel(0, 1, (1, 2), "send", sends),
            *([] if receives is None else [channel(1, 2, (1, 2), "receive", receives)]),
            channel(1, 2, (2, 1), "send", 1 - sends),
            channel(0, 1, (2, 1), "receive", 1 - sends),
            channel(0, 0, (0, 3), "send", 1 - sends),
            channel(1, 3, (0, 3), "receive", 1 - sends),
            channel(1, 3, (3, 0), "send", sends),
            channel(0, 0, (3, 0), "receive", sends),
        ],
        "port_status": [
            status(NICS[host], f"mlx5_{nic}/1", 400.0, alias=f"ens{nic}np0") for host, nic in hosts
        ],
        "links": [
            {"file_id": "l", "line": 2 * host + nic + 1, "format": "lldp", "device": f"leaf0{nic}"}
            | {"port": f"Ethernet{host}", "remote_device": NICS[host], "ts": at(0)}
            | {"remote_port": f"ens{nic}np0"}
            for host, nic in hosts
        ],
    }


class TestFlows:
    @pytest.mark.parametrize(
        ("rows", "flows"),
        [
            # The ranks send on different rails, but each connection stays on one: none crosses.
            (rails(0, 0), {"leaf00": 0, "leaf01": 0}),
            (rails(1, 1), {"leaf00": 0, "leaf01": 0}),
            (rails(0, 1), {"leaf00": 1, "leaf01": 0}),
            # That of the rank is taken: where it sends.
            (rails(0, None), {"leaf00": 1, "leaf01": 0}),
            # Four ranks more may send anything.
            (rails(0, 0, ranks=8), {}),
            (rails(0, 1, ranks=8), {"leaf00": 1}),
        ],
        ids=["one rail", "the other", "across", "one end", "ranks untold", "across untold"],
    )
    def test_flows_cross_between_the_nics_of_a_connection(
        self, make_store: Make, rows: Rows, flows: dict[str, int]
    ) -> None:
        with closing(Evidence(make_store(rows))) as evidence:
            counted = evidence.frame("crossing_flows").select("device", "flows")
        assert dict(counted.iter_rows()) == flows

    @pytest.mark.parametrize("seed", range(6))
    def test_ranks_are_those_of_the_communicator_a_line_is_of(
        self, make_store: Make, seed: int
    ) -> None:
        """Rank 1 of a pair was taken for rank 1 of the job. Only one kind is counted."""
        draw = np.random.default_rng(seed)
        number = 2 * int(draw.integers(2, 5))
        leaf_of = [0, 1, *draw.integers(0, 2, number - 2).tolist()]
        members = draw.permutation(number)
        pairs = [members[n : n + 2].tolist() for n in range(0, number, 2)]
        crossing = {f"leaf0{leaf}": [0, 0] for leaf in range(2)}
        rows: Rows = {"nccl_ranks": [], "nccl_nics": [], "nccl_channels": [], "links": []}
        for line, (kind, group) in enumerate([(0, list(range(number))), *((1, p) for p in pairs)]):
            for place, rank in enumerate(group):
                to = group[(place + 1) % len(group)]
                from_ = group[place - 1]
                crossing[f"leaf0{leaf_of[rank]}"][kind] += leaf_of[rank] != leaf_of[to]
                own = {"file_id": f"n{rank}", "host": f"host{rank}", "pid": 100 + rank}
                rows["nccl_ranks"].append(
                    own | {"line": 100 * line, "rank": place, "nranks": len(group)}
                    | {"nodes": len(group), "comm": f"0x{line}", "comm_id": f"0xabcdef0{line}"}
                )  # fmt: skip
                ends = (place, group.index(to), "send"), (group.index(from_), place, "receive")
                rows["nccl_channels"] += [
                    own | {"line": 100 * line + 1, "kind": "connection", "channel": 0}
                    | {"transport": "NET", "network": "IB", "nic_index": 0, "gdr": True}
                    | {"from_rank": begin, "to_rank": end, "side": side}
                    for begin, end, side in ends
                ]  # fmt: skip
        for rank in range(number):
            host = {"file_id": f"n{rank}", "host": f"host{rank}", "pid": 100 + rank}
            nic = {"plugin": "IB", "nic_index": 0, "nic": "mlx5_0", "nic_port": 1}
            rows["nccl_nics"].append(host | nic)
            cable = {"file_id": "l", "line": rank + 1, "format": "lldp", "ts": at(0)}
            near = {"device": f"leaf0{leaf_of[rank]}", "port": f"Ethernet{rank}"}
            far = {"remote_device": f"host{rank}", "remote_port": "mlx5_0"}
            rows["links"].append(cable | near | far)
        with closing(Evidence(make_store(rows))) as evidence:
            counted = evidence.frame("crossing_flows").select("device", "flows")
        assert dict(counted.iter_rows()) == {leaf: max(both) for leaf, both in crossing.items()}


class TestSenders:
    @pytest.mark.parametrize("seed", range(8))
    def test_nics_that_send_what_comes_on_top_are_named(self, make_store: Make, seed: int) -> None:
        """As long as their sum is what comes on top: else it comes from elsewhere, too."""
        draw = np.random.default_rng(seed)
        place, number = int(draw.integers(HOSTS)), int(draw.integers(1, HOSTS - 1))
        senders = draw.choice([n for n in range(HOSTS) if n != place], number, replace=False)
        ring, each = 5e10, float(draw.uniform(3e9, 1e10))
        told = float(draw.choice([1.0, 0.4]))  # of what comes on top, by the senders
        parts = []
        for host, name in enumerate(NICS):
            got = ring + (each * number / told + ring if host == place else 0.0)
            sent = ring + (each + (ring * told / number) if host in senders else 0.0)
            if told < 1:
                sent = ring + (each if host in senders else 0.0)
            counters = {
                "rx_bytes": rising(round(got), start=0),
                "tx_bytes": rising(round(sent), start=0),
            }
            parts.append(samples(name, "mlx5_0/1", counters, name="bytes"))
        store = make_store(together(cluster(), *parts))
        with closing(Evidence(store)) as evidence:
            rows = evidence.frame("congested_nics", load_models()["congestion"].limits)
        assert set(rows["host"].drop_nulls()) == {NICS[place]}
        named = rows["senders"].drop_nulls().unique().to_list()
        if told < 1:
            assert named == []
        else:
            assert len(named) == 1 and named[0].count(" of ") == min(number, 3)
            assert {part.split(" of ")[1] for part in named[0].split(", ")} <= {
                NICS[n] for n in senders
            }
            assert rows["more_senders"].max() == (number - 3 if number > 3 else None)


class TestUplinks:
    def test_links_more_even_than_the_known_flows_carry_flowlets(self, make_store: Make) -> None:
        """NCCL opens one flow, yet all links carry alike: one that stops is no hash of one flow."""
        rates = np.random.default_rng(4).normal(60, 3, 12).tolist()
        store = make_store(together(cluster(), uplinks(rates, empty=2)))
        with closing(Evidence(store)) as evidence:
            known = evidence.with_rows({"crossing_flows": rows_of("device  flows\nleaf00  1")}, {})
            (finding,) = find_one_way_uplinks(known, load_models()["one_way_uplink"], []).findings
        assert finding.entities[0].label == "leaf00 Ethernet116"
        assert "estimated from the other links" in finding.explanation

    @pytest.mark.parametrize(("flows", "found"), [(64, 1), (0, 0)])
    def test_a_skew_of_flows_that_are_not_the_jobs_accuses_nobody(
        self, make_store: Make, flows: int, found: int
    ) -> None:
        store = make_store(together(cluster(), uplinks([90] * 4 + [2] * 4)))
        rows = rows_of(f"device  flows\nleaf00  {flows}")
        with closing(Evidence(store)) as evidence:
            known = evidence.with_rows({"crossing_flows": rows}, {})
            judged = find_ecmp_skew(known, load_models()["ecmp_skew"], [])
        assert (len(judged.findings), judged.judged) == (found, found)
        reasons = [each.reason for each in judged.open]
        assert (
            "leaf00: none of the job's flows crosses it, so its traffic is of others" in reasons
        ) == (not found)

    def test_an_uplink_that_lets_nothing_out_is_named(self, make_store: Make) -> None:
        rows = together(cluster(slower=1.5), uplinks([60, 60, 60, 60], empty=2))
        (finding,) = told(diagnose(make_store(rows)))
        assert finding.kind == "ecmp_skew"
        assert finding.entities[0].label == "leaf00 Ethernet116"
        assert "sends nothing over Ethernet116" in finding.title
        assert finding.loss_share is not None

    def test_one_that_falls_silent_both_ways_may_have_been_drained(self, make_store: Make) -> None:
        rates = np.random.default_rng(4).normal(60, 3, 12).tolist()
        rows = together(cluster(), uplinks(rates, empty=2, comes_in=False))
        (finding,) = [f for f in told(diagnose(make_store(rows))) if f.entities[0].type == "port"]
        assert finding.title.endswith("though it is up and sent its share before")
        assert finding.severity == "low"

    @pytest.mark.parametrize("seed", range(3))
    def test_an_uplink_that_few_flows_leave_empty_is_not_named(
        self, make_store: Make, seed: int
    ) -> None:
        chance = np.random.default_rng(seed)
        hashed = chance.multinomial(30, [1 / 11] * 11)
        rows = uplinks([*(10.0 * np.maximum(hashed, 1)), 10.0], empty=11)
        found = told(diagnose(make_store(together(cluster(), rows))))
        assert [f.title for f in found if f.entities[0].type == "port"] == []

    def test_a_dead_uplink_is_named_where_the_others_are_even(self, make_store: Make) -> None:
        rates = np.random.default_rng(4).normal(60, 3, 12).tolist()
        found = told(diagnose(make_store(together(cluster(), uplinks(rates, empty=2)))))
        (finding,) = [f for f in found if f.entities[0].type == "port"]
        assert finding.entities[0].label == "leaf00 Ethernet116"
        assert "estimated from the other links" in finding.explanation

    def test_half_as_many_uplinks_as_nics_fill(self, make_store: Make) -> None:
        # A transfer takes 30 % of a step: 110 Gb/s on average are 92 % while it lasts.
        (finding,) = told(diagnose(make_store(together(cluster(), uplinks([110, 110])))))
        assert finding.kind == "oversubscription"
        assert [e.switch for e in finding.entities] == ["leaf00"]
        assert "2:1" in finding.title

    def test_a_narrow_leaf_that_is_full_on_one_link_says_that_the_hash_fills_it(
        self, make_store: Make
    ) -> None:
        found = told(diagnose(make_store(together(cluster(), uplinks([110.0, 70.0])))))
        (finding,) = (f for f in found if f.kind == "oversubscription")
        assert "full where the hash puts most: 2:1 by design" in finding.title

    @pytest.mark.parametrize(
        "gbps",
        [
            [60.0, 60.0],  # narrow, and half full
            [110.0, 110.0, 110.0, 110.0],  # as wide up as down
        ],
    )
    def test_uplinks_with_room_are_not_oversubscribed(
        self, make_store: Make, gbps: Sequence[float]
    ) -> None:
        found = told(diagnose(make_store(together(cluster(), uplinks(gbps)))))
        assert not [f for f in found if f.kind == "oversubscription"]
