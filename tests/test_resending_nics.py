"""NICs of EFA and Slingshot: one that sends far more again than its peers, and what all do."""

import random
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import fabricobs

pytestmark = pytest.mark.slow

BEGIN, SECONDS, READINGS = 1_741_075_200, 10, 8
Counters = Mapping[str, int]
Write = Callable[[Path, Mapping[str, Counters], int, random.Random], None]
SYSFS = "/sys/class/infiniband/{nic}/ports/1/hw_counters/{key}:{value}"
EXPORTED = 'node_amazonefa_{key}{{device="{nic}",port="1"}} {value}.0'


def _efa(counters: Counters) -> dict[str, int]:
    return {
        "tx_bytes": counters["sent"] * 8000, "tx_pkts": counters["sent"],
        "rx_bytes": counters["sent"] * 8000, "rx_pkts": counters["sent"], "rx_drops": 0,
        "retrans_bytes": counters["again"] * 8000, "retrans_pkts": counters["again"],
        "retrans_timeout_events": counters["timeouts"], "unresponsive_remote_events": 0,
        "impaired_remote_conn_events": 0,
    }  # fmt: skip


def _rdma_lines(place: Path, nics: Mapping[str, Counters], at: int, _: random.Random) -> None:
    text = "".join(
        f"link {nic}/1\n" + "".join(f"    {key} {value}\n" for key, value in _efa(of).items())
        for nic, of in nics.items()
    )
    (place / f"rdma_statistic_p-{at}.txt").write_text(text)


def _rdma_line(place: Path, nics: Mapping[str, Counters], at: int, _: random.Random) -> None:
    text = "".join(
        f"link {nic}/1 " + " ".join(f"{key} {value}" for key, value in _efa(of).items()) + "\n"
        for nic, of in nics.items()
    )
    (place / f"rdma_statistic-{at}.txt").write_text(text)


def _in_any_order(line: str, name: str) -> Write:
    """Return what writes a line a counter, in any order."""

    def write(place: Path, nics: Mapping[str, Counters], at: int, draw: random.Random) -> None:
        lines = [
            line.format(nic=nic, key=key, value=value) + "\n"
            for nic, of in nics.items()
            for key, value in _efa(of).items()
        ]
        draw.shuffle(lines)
        (place / name.format(at=at)).write_text("".join(lines))

    return write


def _slingshot(place: Path, nics: Mapping[str, Counters], at: int, draw: random.Random) -> None:
    lines = []
    for nic, of in nics.items():
        told = {
            "pct_retry_srb_requests": of["again"], "pct_spt_timeouts": 0, "pct_sct_timeouts": 0,
            "hni_pcs_uncorrected_cw": 0, "hni_pcs_corrected_cw": of["sent"] // 100,
            "hni_pkts_sent_by_tc_0": of["sent"], "hni_pause_recv_0": 0, "hni_rx_paused_0": 7,
        }  # fmt: skip
        stamp = f"{at}.{draw.randrange(10**9):09d}"
        lines += [
            f"/sys/class/cxi/{nic}/device/telemetry/{key}:{value}@{stamp}\n"
            for key, value in told.items()
        ]
    draw.shuffle(lines)
    (place / f"cxi-{at}.txt").write_text("".join(lines))


FORMS: dict[str, tuple[str, Write]] = {
    "rdma lines": ("rdmap{}s27", _rdma_lines),
    "rdma line": ("rdmap{}s27", _rdma_line),
    "sysfs": ("rdmap{}s0", _in_any_order(SYSFS, "sysfs_ib-{at}.txt")),
    "exporter": ("rdmap{}s0", _in_any_order(EXPORTED, "metrics-{at}.prom")),
    "slingshot": ("cxi{}", _slingshot),
}


def _write(folder: Path, draw: random.Random, form: str, fault: str) -> str:
    """Write the counters of some hosts; return the NIC that is at fault, or would be."""
    name, write = FORMS[form]
    hosts = [f"{draw.choice(['gpu', 'nid00'])}{n}" for n in draw.sample(range(10, 99), 5)]
    nics = [name.format(n) for n in sorted(draw.sample(range(16), draw.randint(1, 4)))]
    bad = (draw.choice(hosts), draw.choice(nics))
    usual, packets = draw.choice([0, 3, 40]), draw.randint(10**5, 10**6)
    if fault == "even":
        usual = draw.randint(200, 2000)
    began = draw.randint(1, READINGS - 4)
    totals = {
        (host, nic): {"sent": 10**9, "again": draw.randrange(10**6), "timeouts": draw.randrange(99)}
        for host in hosts
        for nic in nics
    }
    for reading in range(READINGS):
        for host in hosts:
            (folder / host).mkdir(parents=True, exist_ok=True)
            write(
                folder / host,
                {nic: totals[host, nic] for nic in nics},
                BEGIN + SECONDS * reading,
                draw,
            )
        for part, of in totals.items():
            is_bad = part == bad and {"lasting": reading >= began, "short": reading == began}.get(
                fault
            )
            times = 10 if part == bad and fault == "busy" else 1
            rate = usual * draw.uniform(0.7, 1.3) * times
            if is_bad:
                rate = max(usual, 1) * draw.uniform(40, 90)
            of["sent"] += int(packets * draw.uniform(0.9, 1.1)) * SECONDS * times
            of["again"] += int(rate * SECONDS)
            of["timeouts"] += int(rate * SECONDS) // 20
    return " ".join(bad)


@pytest.mark.parametrize("fault", ["lasting", "short", "even", "busy"])
@pytest.mark.parametrize("form", FORMS)
def test_a_nic_that_sends_far_more_again_than_its_peers_is_told(
    tmp_path: Path, form: str, fault: str
) -> None:
    """What all send again, one burst, and what ten times the traffic sends again are not."""
    if (form, fault) == ("slingshot", "busy"):
        pytest.skip("its packets are counted by class of traffic only")
    draw = random.Random(f"{form} {fault}")
    bad = _write(tmp_path / "logs", draw, form, fault)
    fabricobs.ingest([tmp_path / "logs"], store=tmp_path / "s")
    findings = fabricobs.open(tmp_path / "s").diagnose().findings
    told = [
        (f.kind, entity.label)
        for f in findings
        if f.kind in {"resending_nic", "packet_loss"}
        for entity in f.entities
    ]
    assert told == ([("resending_nic", bad)] if fault == "lasting" else [])


@pytest.mark.parametrize("seed", range(6))
def test_nics_that_send_a_little_again_beside_others_are_affected(
    seed: int, tmp_path: Path
) -> None:
    """A host's neighbours in the ring lost a fifteenth of what its NICs did: 12 were named."""
    draw = random.Random(seed)
    hosts = [f"ip-10-1-{n}-7" for n in draw.sample(range(10, 99), draw.randint(7, 9))]
    nics = [f"rdmap{n}s0" for n in sorted(draw.sample(range(16, 200), 8))]
    group = draw.sample(nics, draw.randint(1, 4))
    culprits = {(hosts[0], nic) for nic in group}
    affected = {(host, nic) for host in hosts[1:3] for nic in group if draw.random() < 0.8}
    began, most = draw.randint(1, READINGS - 4), draw.uniform(300, 900)
    totals = {
        (host, nic): {"sent": 10**9, "again": draw.randrange(10**6), "timeouts": 3}
        for host in hosts
        for nic in nics
    }
    for reading in range(READINGS):
        for host in hosts:
            (tmp_path / "logs" / host).mkdir(parents=True, exist_ok=True)
            own = {nic: totals[host, nic] for nic in nics}
            at = BEGIN + SECONDS * reading + draw.randint(0, 2)
            _rdma_lines(tmp_path / "logs" / host, own, at, draw)
        for part, of in totals.items():
            rate = draw.uniform(0, 0.2)
            if reading >= began and part in culprits | affected:
                share = draw.uniform(0.6, 1) if part in culprits else draw.uniform(0.04, 0.1)
                rate = most * share
            of["sent"] += 10**6 * SECONDS
            of["again"] += int(rate * SECONDS)
    fabricobs.ingest([tmp_path / "logs"], store=tmp_path / "s")
    findings = fabricobs.open(tmp_path / "s").diagnose().findings
    (finding,) = (f for f in findings if f.kind == "resending_nic")
    assert {(e.host, e.nic) for e in finding.entities} == culprits
    assert {(e.host, e.nic) for e in finding.related} <= affected
    assert finding.related or not affected
    if len(group) > 1:
        assert finding.title.startswith(f"{len(group)} NICs of {hosts[0]} (")
        assert hosts[1] not in finding.title
