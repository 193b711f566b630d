"""Logs of switches: links and storms they tell reach the diagnosis, ordinary life does not."""

import json
import os
import random
import shutil
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import fabricobs
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.findings import Diagnosis, Finding
from fabricobs.simulator.random_worlds.ledger import Ledger
from fabricobs.simulator.random_worlds.nccl import write_nccl
from fabricobs.simulator.random_worlds.printing import write_outputs
from fabricobs.simulator.random_worlds.site import Site
from fabricobs.simulator.random_worlds.spec import draw_spec
from fabricobs.simulator.random_worlds.switch_logs import write_switch_logs
from fabricobs.simulator.random_worlds.trainer import write_steps
from fabricobs.simulator.random_worlds.truth import ground_truth
from fabricobs.simulator.random_worlds.world import come_true

SYSTEMS = ("sonic", "eos", "nxos", "cumulus")


def _world(
    folder: Path, seed: int, faults: tuple[str, ...], *, cables: bool = False, **given: object
) -> dict[str, Any]:
    """Write steps, NCCL's and the switches' logs of a small world; return its answer.

    With `cables` the counters and neighbours of the switches too.
    """
    spec = draw_spec(
        seed,
        **{
            "fabric": "ethernet", "hosts": 8, "spare_hosts": 3, "hosts_per_leaf": 2, "tiers": 2,
            "duration_minutes": 15.0, "step_seconds": 4.0, "restarts": 0, "zone": "UTC", "only": "",
            "nccl_level": "info", "steps_from": "rank0", "same_spine_os": True, "compressed": False,
            "switch_counters": "all", "host_form": "none", "port_status": False,
        }
        | given,
    )  # fmt: skip
    site = Site(come_true(spec, faults), folder)
    for write in (write_nccl, write_steps, write_switch_logs):
        write(site)
    if cables:
        write_outputs(site, Ledger(site.world))
    return ground_truth(site)


def _diagnosed(folder: Path, store: Path) -> Diagnosis:
    fabricobs.ingest([folder], store=store)
    return fabricobs.open(store).diagnose()


def _flaps(diagnosis: Diagnosis) -> list[Finding]:
    return [finding for finding in diagnosis.findings if finding.kind == "link_flap"]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["each", "server"])
@pytest.mark.parametrize("fault", ["nic_flap", "uplink_flap"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_flapping_link_is_one_finding_that_names_its_port(
    tmp_path: Path, system: str, fault: str, form: str
) -> None:
    seed = 171 + SYSTEMS.index(system)
    truth = _world(tmp_path / "logs", seed, (fault,), leaf_os=system, switch_log=form)
    (found,) = _flaps(_diagnosed(tmp_path / "logs", tmp_path / "store"))
    culprits = truth["faults"][0]["culprits"]
    ports = {(c["switch"], c["port"]) for c in culprits if c["type"] == "port"}
    named = {(part.switch, part.port) for part in found.entities if part.type == "port"}
    assert named
    assert named <= ports


@pytest.mark.slow
@pytest.mark.parametrize("form", ["each", "server"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_hosts_of_no_job_that_start_again_and_ports_taken_down_by_hand_are_no_flaps(
    tmp_path: Path, system: str, form: str
) -> None:
    _world(tmp_path / "logs", 181, (), leaf_os=system, switch_log=form)
    diagnosis = _diagnosed(tmp_path / "logs", tmp_path / "store")
    downs = (
        fabricobs.open(tmp_path / "store")
        .sql("SELECT count(*) FROM events WHERE kind IN ('port_down', 'link_down')")
        .fetchall()
    )
    assert downs[0][0] >= 3
    assert _flaps(diagnosis) == []


def _without_nccl_of(folder: Path, host: str) -> int:
    """Remove NCCL's logs of a host; return how many they were."""
    own = list(folder.rglob(f"nccl*{host}*"))
    for path in own:
        path.unlink()
    return len(own)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [171, 172, 173])
def test_a_flap_of_a_host_whose_logs_are_missing_stays_a_finding(tmp_path: Path, seed: int) -> None:
    given = {"leaf_os": "eos", "nccl_files": "host", "switch_log": "server", "lldp": True}
    truth = _world(tmp_path / "logs", seed, ("nic_flap",), cables=True, **given)
    culprits = truth["faults"][0]["culprits"]
    (host,) = {part["host"] for part in culprits if part["type"] == "nic"}
    assert _without_nccl_of(tmp_path / "logs", host) > 0
    (found,) = _flaps(_diagnosed(tmp_path / "logs", tmp_path / "store"))
    named = {(part.switch, part.port) for part in found.entities if part.type == "port"}
    assert named & {(c["switch"], c["port"]) for c in culprits if c["type"] == "port"}


@pytest.mark.slow
@pytest.mark.parametrize("system", SYSTEMS)
def test_spare_hosts_that_only_neighbours_name_are_no_flaps(tmp_path: Path, system: str) -> None:
    given = {"leaf_os": system, "nccl_files": "host", "switch_log": "server", "lldp": True}
    _world(tmp_path / "logs", 195, (), cables=True, netdevs="ib{n}", **given)
    diagnosis = _diagnosed(tmp_path / "logs", tmp_path / "store")
    idle = fabricobs.open(tmp_path / "store").sql(
        "SELECT count(*) FROM cable_ends WHERE owner NOT IN (SELECT host FROM training_hosts) "
        "AND far_owner IS NOT NULL"
    )
    assert idle.fetchall()[0][0] > 0
    assert _flaps(diagnosis) == []


@pytest.mark.slow
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_link_that_went_down_once_accuses_nobody_where_no_log_tells_of_a_job(
    tmp_path: Path, system: str
) -> None:
    given = {"leaf_os": system, "switch_log": "server", "lldp": True, "spare_hosts": 3}
    _world(tmp_path / "logs", 203, (), cables=True, netdevs="ib{n}", **given)
    shutil.rmtree(tmp_path / "logs" / "job")
    diagnosis = _diagnosed(tmp_path / "logs", tmp_path / "store")
    flaps = _flaps(diagnosis)
    assert flaps
    assert {flap.severity for flap in flaps} == {"info"}
    (answer,) = (q for q in diagnosis.verdict.questions if "link sick" in q.question)
    assert answer.answer != "problem"


def _storms(begin: datetime, end: datetime, switch: str, port: str) -> str:
    """A storm of 18 s every 40 s, as SONiC's watchdog logs it."""
    says = (
        "{at:%Y %b} {at.day:2d} {at:%H:%M:%S.%f} {switch} NOTICE swss#orchagent: :- {what} on port "
        "{port}, queue index 3, queue id 0x150000000002a1 and port id 0x10000000000a1.\n"
    )
    what = "report_pfc_storm: PFC Watchdog detected PFC storm"
    over = "report_pfc_restored: PFC Watchdog storm restored"
    text = ""
    while begin < end:
        for at, words in ((begin, what), (begin + timedelta(seconds=18), over)):
            text += says.format(at=at, switch=switch, port=port, what=words)
        begin += timedelta(seconds=40)
    return text


@pytest.mark.slow
@pytest.mark.parametrize("stormy", [True, False])
def test_a_storm_that_only_the_watchdogs_log_tells_is_found(tmp_path: Path, stormy: bool) -> None:
    scenario = "pfc_storm_with_watchdog" if stormy else "healthy"
    (case,) = fabricobs.simulate(tmp_path, [scenario], gpus=32, only=["nccl", "steps", "switches"])
    logs = tmp_path / scenario / "logs"
    for path in (logs / "switches").rglob("show_*"):
        if not path.name.startswith(("show_lldp", "show_interfaces_status")):
            path.unlink()
    if stormy:
        (fault,) = json.loads((case / "truth.json").read_text())["faults"]
        nic, port = fault["culprits"]
        span = (datetime.fromisoformat(fault[key]) for key in ("start", "end"))
        (logs / "network.log").write_text(_storms(*span, port["switch"], port["port"]))
    storms = [f for f in _diagnosed(logs, tmp_path / "store").findings if f.kind == "pfc_storm"]
    if not stormy:
        assert storms == []
        return
    (found,) = storms
    assert found.entities[0].host == nic["host"]
    assert (found.entities[1].switch, found.entities[1].port) == (port["switch"], port["port"])
    assert "in a storm since" in found.title
    assert "%" not in found.title
    assert found.loss_share == pytest.approx(fault["loss_share"], abs=0.05)


LINES = {
    "dmesg.txt": "{stamp} gpu07 kernel: mlx5_core 0000:7f:00.0 ens3f0np0: Link down\n",
    "network.log": (
        "{stamp} leaf01 Ebra: %LINEPROTO-5-UPDOWN: "
        "Line protocol on Interface Ethernet7/1, changed state to down\n"
    ),
    "syslog": (
        "{stamp}.250000 leaf01 NOTICE swss#orchagent: :- updatePortOperStatus: "
        "Port Ethernet8 oper state set from up to down\n"
    ),
}


@pytest.mark.parametrize("year", [2019, 2024, 2025])
@pytest.mark.parametrize("name", LINES)
def test_a_time_without_a_year_is_the_last_before_the_file_was_written(
    tmp_path: Path, name: str, year: int
) -> None:
    path = tmp_path / "logs" / "collected" / name
    path.parent.mkdir(parents=True)
    path.write_text(LINES[name].format(stamp="Nov 23 09:15:02"))
    written = datetime(year + 1, 1, 5, tzinfo=UTC).timestamp()
    os.utime(path, (written, written))
    fabricobs.ingest([tmp_path / "logs"], store=tmp_path / "store")
    ((time,),) = fabricobs.open(tmp_path / "store").sql("SELECT ts FROM events").fetchall()
    assert time.replace(microsecond=0, tzinfo=None) == datetime(year, 11, 23, 9, 15, 2)


@dataclass(frozen=True)
class _End:
    """An end of an InfiniBand link, as UFM names it."""

    host: str
    port: int
    guid: str
    is_switch: bool = True

    def older(self) -> str:
        """Return what UFM wrote with the GUID first."""
        kind, name = ("Switch", self.host) if self.is_switch else ("Computer", f"{self.host} HCA-1")
        return f"{self.guid} ({kind}: {name}) : {self.port}"

    def newer(self) -> str:
        """Return what it writes with the name first."""
        kind = f"Switch:{self.host}:1/{self.port}/1"
        if not self.is_switch:
            kind = f"Computer:{self.host} HCA-1:1"
        return f"({kind}){self.guid}:{self.port}"


def _ufm_line(at: datetime, code: int, level: str, what: str) -> str:
    return (
        f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03d} [{at.second}] [{code}] {level} {what}"
    )


QUIET = (
    (64, "GID Address In Service: prefix fe80000000000000,guid 248a0703006d40f0"),
    (65, "GID Address Out of Service: prefix fe80000000000000,guid 248a0703006d40f0"),
    (144, "Capability Mask Modified: lid 7, mask 0x2651e848"),
    (
        123,
        "Port Normalized Transmit BW counter threshold exceeded. Threshold is 95, received value",
    ),
    (256, "Bad M_Key: mkey 00000001 from lid 7  trap 256"),
    (336, "Port x action enable succeeded"),
)
ALARMS = (
    (110, "Symbol-Error counter rate threshold exceeded. Threshold is 200, received value is 900."),
    (130, "Found a 4x link that operates in 1x width mode."),
    (702, "Peer Port ibleaf09:1/19/2 is considered by SM as unhealthy due to FLAPPING."),
    (917, "Symbol BER Error on Port (x)  exceeded critical threshold (1e-14)"),
)


@pytest.mark.parametrize("seed", range(4))
def test_links_that_ufm_lost_and_found_are_ports_that_went_down_and_came_up(
    tmp_path: Path, seed: int
) -> None:
    """Whichever end it names first, in both layouts; members, keys and load are no alarms."""
    chance = random.Random(seed)
    at = datetime(2026, 3, 2, 9, tzinfo=UTC)
    lines, expected = [], []
    for number in range(60):
        at += timedelta(seconds=chance.randint(6, 90), milliseconds=number)
        leaf = _End(f"ib-leaf{chance.randint(1, 4):02d}", chance.randint(1, 40), "f4521403008817f0")
        other = _End(f"gpu{chance.randint(1, 9):03d}", 1, "e41d2d0300a4f482", is_switch=False)
        if chance.random() < 0.5:
            other = _End("ib-spine01", chance.randint(1, 40), "fc6a1c0300244e00")
        ends = chance.sample([leaf, other], 2)
        port = (
            f"IBPort [default(34) / Switch: {leaf.host} / NA / {leaf.port}] [dev_id: {leaf.guid}]"
        )
        match chance.randrange(4):
            case 0 | 1:
                is_up, is_newer = chance.random() < 0.5, chance.random() < 0.5
                told = " - ".join(end.newer() if is_newer else end.older() for end in ends)
                told += ", cable S/N: MT2026X00001" if is_newer else ""
                text = f"{'Link is up' if is_up else 'Link went down'}: {told}"
                where = (
                    f"[Fabric_Topology] Link [Source {ends[0].guid}_1  TO Dest: {ends[1].guid}_2]"
                )
                lines.append(_ufm_line(at, 328 + (not is_up), "WARNING", f"{where}: {text}"))
                kept = next(end for end in ends if end.is_switch)
                expected.append(
                    (kept.host, str(kept.port), "port_up" if is_up else "port_down", at)
                )
            case 2:
                code, text = chance.choice(QUIET)
                lines.append(_ufm_line(at, code, "INFO", f"[Fabric_Notification] {port}: {text}"))
            case 3:
                code, text = chance.choice(ALARMS)
                lines.append(_ufm_line(at, code, "WARNING", f"[Hardware] {port}: {text}"))
                expected.append((leaf.host, str(leaf.port), "port_alarm", at))
    path = tmp_path / "ufm01" / "event.log"
    path.parent.mkdir()
    path.write_text("\n".join(lines) + "\n")
    fabricobs.ingest([path], store=tmp_path / "s")
    told = fabricobs.open(tmp_path / "s").sql("SELECT host, part, kind, ts FROM events ORDER BY ts")
    assert told.fetchall() == [(*rest, ts.replace(tzinfo=None)) for *rest, ts in expected]
    ((unread,),) = fabricobs.open(tmp_path / "s").sql("SELECT sum(unparsed) FROM files").fetchall()
    assert unread == 0


@pytest.mark.parametrize("action", ["disable", "reset", ""])
def test_a_link_that_a_person_took_down_in_ufm_did_not_fail(tmp_path: Path, action: str) -> None:
    at, leaf = datetime(2026, 3, 2, 9, tzinfo=UTC), _End("ib-leaf01", 7, "f4521403008817f0")
    port = f"IBPort [default(34) / Switch: {leaf.host} / NA / {leaf.port}] [dev_id: {leaf.guid}]"
    other = _End("gpu001", 1, "e41d2d0300a4f482", is_switch=False)
    lines = [f"[Fabric_Topology] Site [default]: Link went down: {leaf.older()} - {other.older()}"]
    if action:
        lines.insert(0, f"[Maintenance] {port}: Port x action {action} succeeded")
    text = [
        _ufm_line(at + timedelta(seconds=n), 329, "WARNING", line) for n, line in enumerate(lines)
    ]
    (tmp_path / "event.log").write_text("\n".join(text) + "\n")
    fabricobs.ingest([tmp_path / "event.log"], store=tmp_path / "s")
    with closing(Evidence(tmp_path / "s")) as evidence:
        assert len(evidence.frame("link_downs")) == (not action)
