"""Settings of EOS, NX-OS and Cumulus switches: exactly the odd ports and switches are told."""

import random
import re
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest
from switch_configurations import (
    CHECKS,
    ECN,
    HASH,
    IN_PERCENT,
    JUNOS,
    KINDS,
    MINIMUM,
    PFC,
    STAMP,
    TRUST,
    VENDORS,
    WATCHDOG,
    WRITERS,
    Odd,
    draw_switches,
    make_odd,
    write_bare_switch,
    write_switch,
)

from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.methods.rule import find_by_rule
from fabricobs.diagnosis.model import load_models
from fabricobs.formats.definition import load_definitions
from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.querying import stored_queries
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session

pytestmark = pytest.mark.slow

AUDIT = stored_queries()["configuration_audit"].sql
SITES = [
    *((vendor,) for vendor in WRITERS),
    ("eos", "nxos"),
    ("nxos", "nvue"),
    ("sonic", "eos"),
    VENDORS,
    JUNOS,
]


def read(folder: Path) -> Path:
    """Ingest a folder and return its store."""
    store = Store(folder.parent / "store")
    ingest([folder], store, Options())
    return store.path


def told(store: Path) -> set[Odd]:
    """Return what the audit tells of odd parts."""
    with open_session(store, AUDIT) as session:
        rows = session.sql(f'SELECT "check", odd FROM ({AUDIT.rstrip().rstrip(";")})').fetchall()
    found = set[Odd]()
    for check, odd in rows:
        for each in (odd or "").split("; ") if check in CHECKS else ():
            if each:
                part, _, value = each.rpartition(": ")
                found.add((check, part, value))
    return found


@pytest.mark.parametrize("vendors", SITES, ids=" and ".join)
@pytest.mark.parametrize("seed", range(4))
def test_odd_ports_and_switches_are_told(
    vendors: tuple[str, ...], seed: int, tmp_path: Path
) -> None:
    draw = random.Random(f"{vendors} {seed}")
    switches = draw_switches([draw.choice(vendors) for _ in range(8)])
    expected = set[Odd]()
    # Seed 0 is a healthy site. Of each kind there is one, so that most are usual.
    for kind in draw.sample(KINDS, min(3 * seed, len(KINDS))):
        switch = draw.choice(switches)
        if kind == "priority" and switch.vendor == "nxos":
            switch = next((s for s in switches if s.vendor != "nxos"), switch)
            if switch.vendor == "nxos":  # the listing of odd ports ends at five
                continue
        if kind in ("hash", "no hash") and any(check == HASH for check, _, _ in expected):
            continue  # of one switch both cannot be
        systems = [s.vendor.split()[0] for s in switches]
        is_alone = systems.count(switch.vendor.split()[0]) == 1
        if kind in ("no hash", "no adaptive routing") and is_alone:
            continue  # none of its system tells what it could set
        used = {part for _, part, _ in expected}
        free = [p for p in switch.ports if f"{switch.name} {p.name}" not in used]
        expected.update(make_odd(switch, draw.choice(free), kind))
    for switch in switches:
        write_switch(tmp_path / "site", switch, draw)
    assert told(read(tmp_path / "site")) == expected


# What other switches of a kind tell; ports of NX-OS have no trust.
BARE_CHECKS = {
    PFC: WRITERS.keys(),
    WATCHDOG: WRITERS.keys(),
    ECN: WRITERS.keys(),
    TRUST: WRITERS.keys() - {"nxos", "srl"},
    # What EOS maps by default is known, and what the others set.
    "DSCP maps: DSCP 26": ("nxos", "sonic", "nvue", "nvue commands", "nvue json"),
}


@pytest.mark.parametrize("vendor", WRITERS)
@pytest.mark.parametrize("seed", range(2))
def test_a_switch_that_sets_nothing_of_qos_is_told(vendor: str, seed: int, tmp_path: Path) -> None:
    draw = random.Random(f"bare {vendor} {seed}")
    switches = draw_switches([vendor] * 5)
    bare = draw.choice(switches)
    for switch in switches:
        write_switch(tmp_path / "site", switch, draw)
    write_bare_switch(tmp_path / "site", bare, draw)
    found = told(read(tmp_path / "site"))
    assert {part.split()[0] for _, part, _ in found} == {bare.name}
    assert {value for _, _, value in found} == {"not set"}
    wanted = {check for check, vendors in BARE_CHECKS.items() if vendor in vendors}
    assert wanted - {check for check, _, _ in found} == set()


@pytest.mark.parametrize("vendor", VENDORS)
def test_thresholds_above_any_buffer_reach_the_rule(vendor: str, tmp_path: Path) -> None:
    draw = random.Random(vendor)
    switches = draw_switches([vendor] * 4)
    (check, part, _), *_ = make_odd(switches[2], switches[2].ports[5], "thresholds")
    assert check == MINIMUM
    for switch in switches:
        write_switch(tmp_path / "site", switch, draw)
    store = read(tmp_path / "site")
    most = load_models()["ecn_misconfigured"].threshold["most_bytes"].value
    with closing(Evidence(store)) as evidence:
        rows = evidence.frame("ecn_settings").filter(pl.col("min_threshold_bytes") > most)
    assert set(rows["device"]) == {part.split()[0]}


ROCE_COMMANDS = """\
nv set interface swp1s0,swp1s1,swp2s0-1,swp3 type swp
nv set interface swp1s0,swp1s1,swp2s0-1 bridge domain br_default access 900
nv set interface swp1s0,swp1s1,swp2s0-1 qos pfc-watchdog state enable
nv set interface swp3 link state down
{}nv set system hostname {}
"""
LOSSLESS = "nv set qos roce state enabled\nnv set qos roce mode lossless\n"


def write_roce_site(folder: Path, odd: dict[str, str]) -> None:
    """Write the commands of six switches that `qos roce` sets up, but for what the odd have."""
    for name in (f"leaf{n}" for n in range(1, 7)):
        (folder / name).mkdir(parents=True)
        text = ROCE_COMMANDS.format(odd.get(name, LOSSLESS), name)
        (folder / name / f"commands-{STAMP}.txt").write_text(text)


def test_what_roce_of_cumulus_sets_is_compared(tmp_path: Path) -> None:
    odd = {
        "leaf2": "",
        "leaf3": "nv set qos roce\n",  # lossless by default
        "leaf4": LOSSLESS + "nv set qos mapping default-global dscp 26 switch-priority 0\n",
    }
    write_roce_site(tmp_path / "site", odd)
    store = read(tmp_path / "site")
    ports = ("swp1s0", "swp1s1", "swp2s0", "swp2s1")
    assert settings(store, "RoCE mode") == {(None, None, "lossless"), (None, None, "not set")}
    found = told(store)
    assert {f for f in found if f[0] == PFC} <= {(PFC, f"leaf2 {p}", "not set") for p in ports}
    assert found - {f for f in found if f[1].split()[0] == "leaf2"} == {
        ("DSCP maps: DSCP 26", "leaf4", "0")
    }
    assert {check for check, part, _ in found if part.split()[0] == "leaf2"} >= {ECN, TRUST}


def test_lossy_switches_have_no_pfc(tmp_path: Path) -> None:
    write_roce_site(tmp_path / "site", {"leaf5": "nv set qos roce mode lossy\n"})
    assert told(read(tmp_path / "site")) == {(PFC, "leaf5", "none")}


def test_a_host_that_pauses_fits_no_switch_whose_roce_is_lossy(tmp_path: Path) -> None:
    write_roce_site(tmp_path / "site", {"leaf1": "nv set qos roce mode lossy\n"})
    write_hosts(tmp_path / "site", {"node1": "swp1s0", "node2": "swp2s1"}, "")
    with closing(Evidence(read(tmp_path / "site"))) as evidence:
        wrong = evidence.frame("path_settings").filter("wrong").select("what", "switch", "port")
    assert set(wrong.rows()) == {("PFC", "leaf1", "swp1s0"), ("PFC", "leaf1", "swp2s1")}


def test_maps_that_eos_has_by_default_need_not_be_printed(tmp_path: Path) -> None:
    draw = random.Random(3)
    switches = draw_switches(["eos"] * 5)
    for switch in switches:
        write_switch(tmp_path / "site", switch, draw)
    (file,) = (tmp_path / "site" / "leaf2").iterdir()
    lines = [line for line in file.read_text().splitlines() if not line.startswith("qos map")]
    file.write_text("\n".join(lines))
    store = read(tmp_path / "site")
    assert told(store) == set()
    assert {value for _, _, value in settings(store, "DSCP 3")} == {"1"}


def write_hosts(folder: Path, names: dict[str, str], odd: str) -> None:
    """Write cables to the ports of `leaf1`, and PFC of the host behind each; one pauses on 4."""
    rows = ["device,port,remote_device,remote_port"]
    for host, port in names.items():
        rows.append(f"leaf1,{port},{host},ens1")
        (folder / host).mkdir()
        states = " ".join(
            f"{p}:{'on' if p == (4 if host == odd else 3) else 'off'}" for p in range(8)
        )
        (folder / host / f"dcb_pfc-{STAMP}.txt").write_text(
            f"pfc-cap 8 macsec-bypass off delay 0\nprio-pfc {states}\n"
        )
    (folder / "cables.csv").write_text("\n".join(rows) + "\n")


@pytest.mark.parametrize("vendor", (*VENDORS, *IN_PERCENT))
@pytest.mark.parametrize("sick", [True, False])
def test_paths_that_do_not_fit(vendor: str, sick: bool, tmp_path: Path) -> None:
    draw = random.Random(f"{vendor} {sick}")
    (switch,) = draw_switches([vendor])
    hosts = {f"node{n}": port.name for n, port in enumerate(switch.ports)}
    wrong, unwatched = draw.sample(sorted(hosts), 2)
    expected = set[tuple[str, str]]()
    if sick:
        port = next(p for p in switch.ports if p.name == hosts[unwatched])
        make_odd(switch, port, "watchdog off")
        expected = {("PFC", hosts[wrong]), ("watchdog", hosts[unwatched])}
    folder = tmp_path / "site"
    write_switch(folder, switch, draw)
    write_hosts(folder, hosts, wrong if sick else "")
    with closing(Evidence(read(folder))) as evidence:
        wrong_ones = evidence.frame("path_settings").filter("wrong").select("what", "port")
        assert set(wrong_ones.rows()) == expected
        found = find_by_rule(evidence, load_models()["path_mismatch"], []).findings
    assert len(found) == len(expected)


@pytest.mark.parametrize(
    ("written", "ports"),
    [
        ("swp1-4,swp6", "swp1 swp2 swp3 swp4 swp6"),
        ("swp1-2,5-6", "swp1 swp2 swp5 swp6"),
        ("swp1-swp3", "swp1 swp2 swp3"),
        ("swp1s0-2", "swp1s0 swp1s1 swp1s2"),
        ("swp1-2s0-1", "swp1s0 swp1s1 swp2s0 swp2s1"),
        ("Ethernet1/31-33", "Ethernet1/31 Ethernet1/32 Ethernet1/33"),
        ("Eth1/1,Et1/2", "Ethernet1/1 Ethernet1/2"),
        ("Port-Channel10", "Port-Channel10"),
        ("swp1-99999", "swp1-99999"),
    ],
)
def test_names_of_several_ports(written: str, ports: str, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "leaf1.txt").write_text(f"nv set interface {written} link mtu 9000\n")
    assert {port for port, _, _ in settings(read(tmp_path / "site"), "mtu")} == set(ports.split())


@pytest.mark.parametrize("vendor", WRITERS)
def test_a_configuration_tells_the_system_of_its_switch(vendor: str, tmp_path: Path) -> None:
    """Its commands are proposed then; those of Junos and SR Linux are not known."""
    draw = random.Random(vendor)
    switches = draw_switches([vendor] * 2)
    for switch in switches:
        write_switch(tmp_path / "site", switch, draw)
    write_bare_switch(tmp_path / "site", switches[1], draw)
    with closing(Evidence(read(tmp_path / "site"))) as evidence:
        systems = dict(evidence.frame("switch_systems").select("device", "system").rows())
    expected = {"eos": "eos", "nxos": "nxos", "nvue": "cumulus", "sonic": "sonic"}
    system = expected.get(vendor.split()[0])
    assert systems == ({"leaf1": system, "leaf2": system} if system else {})


def settings(store: Path, name: str) -> set[tuple[str | None, str | None, str]]:
    """Return port, profile and value of a setting."""
    sql = f"SELECT port, profile, value FROM switch_settings WHERE name = '{name}'"
    with open_session(store, sql) as session:
        return set(session.sql(sql).fetchall())


def show_eos(switch: str, odd: dict[str, str]) -> str:
    """Return `show priority-flow-control` of EOS."""
    rows = [f"{switch}#show priority-flow-control", "Port       Enabled  Priorities  Active  Note"]
    rows.append("---------  -------  ----------  ------  -------------")
    for number in range(1, 9):
        classes = odd.get(f"{switch} Ethernet{number}/1", "3")
        enabled = "No " if classes == "none" else "Yes"
        shown = "" if classes == "none" else classes.replace(",", " ")
        rows.append(f"Et{number}/1      {enabled}      {shown:10}  {enabled}     DCBX disabled")
    return "\n".join(rows)


def show_nxos(switch: str, odd: dict[str, str]) -> str:
    """Return `show interface priority-flow-control` of NX-OS."""
    rows = [
        f"{switch}# show interface priority-flow-control",
        "RxPause: No. of pause frames received",
        "TxPause: No. of pause frames transmitted",
        "=" * 60,
        "Port               Mode Oper(VL bmap)  RxPPP      TxPPP",
        "=" * 60,
    ]
    for number in range(1, 9):
        classes = odd.get(f"{switch} Ethernet{number}/1", "3")
        bits = sum(1 << int(c) for c in classes.split(",")) if classes != "none" else 0
        shown = f"On   On  ({bits})" if bits else "Auto Off    "
        rows.append(f"Ethernet{number}/1        {shown}        0          0")
    return "\n".join(rows)


@pytest.mark.parametrize("shows", [(show_eos,), (show_nxos,), (show_eos, show_nxos)])
@pytest.mark.parametrize("seed", range(3))
def test_priorities_that_commands_show(shows: tuple, seed: int, tmp_path: Path) -> None:
    draw = random.Random(f"{shows} {seed}")
    switches = {f"leaf{n}": draw.choice(shows) for n in range(1, 5)}
    parts = [f"{name} Ethernet{port}/1" for name in switches for port in range(1, 9)]
    odd = {part: draw.choice(["none", "0,3"]) for part in draw.sample(parts, 2 * seed)}
    for name, show in switches.items():
        (tmp_path / "site" / name).mkdir(parents=True)
        (tmp_path / "site" / name / f"pfc-{STAMP}.txt").write_text(show(name, odd))
    assert told(read(tmp_path / "site")) == {(PFC, part, value) for part, value in odd.items()}


ROCE = """\
cumulus@{0}:mgmt:~$ nv show qos roce
                    operational  applied
------------------  -----------  --------
enable                           on
mode                lossless     lossless
pfc
  pfc-priority      {1}            {1}
congestion-control
  congestion-mode   ECN
  enabled-tc        3
  min-threshold     {2}
  max-threshold     1.43 MB
  probability       100
trust
  trust-mode        {3}
RoCE PCP/DSCP->SP mapping configurations
===========================================
       pcp  dscp         switch-prio
    -  ---  -----------  -----------
    {4}  {4}    24,25,26,27  {4}
"""


def test_what_nvue_shows_of_roce_is_comparable_with_a_configuration(tmp_path: Path) -> None:
    draw = random.Random(0)
    switches = draw_switches(["nvue"] * 3)
    for switch in switches:
        write_switch(tmp_path / "site", switch, draw)
    shown = {"leaf4": ("3", "146.48 KB", "dscp", "3"), "leaf5": ("-", "4.00 MB", "pcp,dscp", "0")}
    for name, values in shown.items():
        (tmp_path / "site" / name).mkdir()
        text = ROCE.format(name, *values)
        (tmp_path / "site" / name / f"roce-{STAMP}.txt").write_text(text)
    assert told(read(tmp_path / "site")) == {
        (PFC, "leaf5", "none"),
        (MINIMUM, "leaf5", "4190000"),
        (TRUST, "leaf5", "pcp,dscp"),
        ("DSCP maps: DSCP 26", "leaf5", "0"),
    }


FORMATS_OF = {
    "sonic": (
        "SONiC",
        (
            "sonic_config_db",
            "sonic_settings",
            "sonic_pfcwd_config",
            "sonic_switch_hash",
            "sonic_switch_hash_json",
            "sonic_interfaces_status",
        ),
    ),
    "junos": ("Junos", ("junos_config",)),
    "sr_linux": ("SR Linux", ("srl_settings_json",)),
    "eos": ("EOS", ("running_config", "eos_pfc_status", "eos_qos", "eos_interfaces")),
    "nxos": (
        "NX-OS",
        ("running_config", "nxos_settings", "nxos_settings_json", "nxos_pfc", "nxos_interface"),
    ),
    "cumulus": (
        "Cumulus",
        ("nvue_config", "nvue_settings_json", "nvue_roce", "cumulus_qos_files", "nvue_interfaces"),
    ),
}
# Told by formats of modules and of the state of ports, whose samples are not among these.
ELSEWHERE = {"firmware", "FEC"}


@pytest.mark.parametrize("vendor", FORMATS_OF)
def test_the_manual_names_what_is_read_of_each_vendor(vendor: str, tmp_path: Path) -> None:
    """Every check that the samples of a vendor tell has a cell in the manual, and no other one."""
    mark, names = FORMATS_OF[vendor]
    definitions = load_definitions()
    for name in names:
        for number, sample in enumerate(definitions[name].sample):
            theirs = "NX-OS" if "version 10" in sample.text else "EOS"
            if name == "running_config" and theirs != mark:
                continue
            path = tmp_path / "site" / name / str(number) / sample.path
            path.parent.mkdir(parents=True)
            path.write_text(sample.text)
    audit = AUDIT.rstrip().rstrip(";")
    sql = (
        f"SELECT DISTINCT split_part(\"check\", ':', 1) AS name FROM ({audit}) "
        "WHERE verdict <> 'not seen'"
    )
    with open_session(read(tmp_path / "site"), AUDIT) as session:
        seen = {name for (name,) in session.sql(sql).fetchall()} - ELSEWHERE
        cells = session.sql(f"SELECT name FROM configuration_checks WHERE {vendor} IS NOT NULL")
        assert {name for (name,) in cells.fetchall()} - ELSEWHERE == seen


@pytest.mark.parametrize("vendor", (*VENDORS, *IN_PERCENT))
def test_a_hop_without_pfc_is_wrong_where_that_is_known(vendor: str, tmp_path: Path) -> None:
    """A port that sets no PFC, or says that it has none, drops what its host pauses for."""
    draw = random.Random(f"hop {vendor}")
    (switch,) = draw_switches([vendor])
    port = draw.choice(switch.ports)
    make_odd(switch, port, "no PFC")
    write_switch(tmp_path / "site", switch, draw)
    hosts = {f"node{n}": port.name for n, port in enumerate(switch.ports)}
    write_hosts(tmp_path / "site", hosts, "")
    with closing(Evidence(read(tmp_path / "site"))) as evidence:
        wrong = evidence.frame("path_settings").filter("wrong").select("what", "port", "value")
    assert set(wrong.rows()) == {("PFC", port.name, "none")}


# Settings of routes.
OTHER_SETTINGS = {"frr_routes"}


def test_every_format_of_settings_belongs_to_a_vendor_of_the_manual() -> None:
    of_vendors = {name for _, names in FORMATS_OF.values() for name in names}
    filling = {
        name
        for name, definition in load_definitions().items()
        if "settings" in {part.table for part in (*definition.line, *definition.block)}
    }
    assert filling - of_vendors == OTHER_SETTINGS


def test_two_switches_of_a_cable_protect_different_priorities(tmp_path: Path) -> None:
    draw = random.Random(1)
    leaf, spine = draw_switches(["eos", "nvue"])
    make_odd(leaf, leaf.ports[4], "priority")
    rows = [f"leaf1,{a.name},leaf2,{b.name}" for a, b in zip(leaf.ports, spine.ports, strict=True)]
    for switch in (leaf, spine):
        write_switch(tmp_path / "site", switch, draw)
    header = "device,port,remote_device,remote_port\n"
    (tmp_path / "site" / "cables.csv").write_text(header + "\n".join(rows) + "\n")
    with closing(Evidence(read(tmp_path / "site"))) as evidence:
        wrong = evidence.frame("path_settings").filter("wrong").select("what", "port", "said")
    said = "leaf1 Ethernet1/5 protects priority 4, leaf2 swp5 at the other end 3"
    assert wrong.rows() == [("PFC between switches", "Ethernet1/5", said)]


NXOS_PORTS = """\
!Command: show running-config interface
hostname leaf1
interface Ethernet1/1
  priority-flow-control mode on
interface Ethernet1/2
  priority-flow-control mode off
interface Ethernet1/3
  mtu 9216
interface Ethernet1/3.100
  mtu 9216
"""


def test_priorities_that_a_part_of_a_configuration_does_not_tell(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "leaf1.txt").write_text(NXOS_PORTS)
    assert settings(read(tmp_path / "site"), "lossless_priorities") == {
        ("Ethernet1/1", None, "on"),
        ("Ethernet1/2", None, "none"),
        ("Ethernet1/3", None, "not set"),
    }


NXOS_POLICIES = """\
!Command: show running-config
policy-map type queuing ALL
  class type queuing c-out-8q-q3
    random-detect minimum-threshold 150 kbytes maximum-threshold 300 kbytes ecn
policy-map type queuing ONE
  class type queuing c-out-8q-q3
    random-detect minimum-threshold 500 kbytes maximum-threshold 900 kbytes ecn
system qos
  service-policy type queuing output ALL
interface Ethernet1/1
  mtu 9216
  service-policy type queuing output ONE
interface Ethernet1/2
  mtu 9216
"""


def test_a_policy_of_the_system_holds_for_the_other_ports(tmp_path: Path) -> None:
    (tmp_path / "site" / "leaf1").mkdir(parents=True)
    (tmp_path / "site" / "leaf1" / "running.txt").write_text(NXOS_POLICIES)
    store = read(tmp_path / "site")
    assert settings(store, "min_threshold") == {
        (None, "queue 3", "150000"),
        ("Ethernet1/1", "queue 3", "500000"),
    }
    assert {value for _, _, value in settings(store, "ecn")} == {"on"}


DAMAGE = ("", "-", "9" * 40, "1.2.3", "nan", "swp1-99999999999s0-1", "0-99999999999", ",,", "é")


@pytest.mark.parametrize("seed", range(3))
def test_damaged_values_stop_no_audit(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    for name in sorted({n for _, names in FORMATS_OF.values() for n in names}):
        for number, sample in enumerate(load_definitions()[name].sample):
            path = tmp_path / "site" / f"leaf{number}" / name / Path(sample.path).name
            path.parent.mkdir(parents=True)
            words = re.split(r"(\s+)", sample.text)
            for place in draw.sample(range(len(words)), len(words) // 10):
                if words[place].strip() and "\n" not in words[place]:
                    words[place] = draw.choice(DAMAGE)
            path.write_text("".join(words))
    told(read(tmp_path / "site"))


TWO_DEVICES = """\
! Command: show running-config
! device: leaf1 (DCS-7060DX5-64S, EOS-4.31.2F)
interface Ethernet1/1
   mtu 9214
!
priority-flow-control pause watchdog default timeout 0.2
end
!Command: show running-config
hostname leaf2
interface Ethernet1/1
  mtu 9216
"""


def test_configurations_of_two_devices_in_one_file(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "all.txt").write_text(TWO_DEVICES)
    sql = (
        "SELECT device, port, name, value FROM switch_settings "
        "WHERE name NOT LIKE 'DSCP %' ORDER BY ALL"
    )
    with open_session(read(tmp_path / "site"), sql) as session:
        rows = session.sql(sql).fetchall()
    assert rows == [
        ("leaf1", "Ethernet1/1", "mtu", "9214"),
        ("leaf1", None, "DETECTION TIME", "200"),
        ("leaf2", "Ethernet1/1", "mtu", "9216"),
    ]


def test_a_configuration_ends_at_the_next_prompt(tmp_path: Path) -> None:
    (tmp_path / "site" / "leaf1").mkdir(parents=True)
    (tmp_path / "site" / "leaf1" / "outputs.txt").write_text(
        "leaf1#show running-config\ninterface Ethernet1/1\n   mtu 9214\nend\n"
        "leaf1#show something\nmtu is what nobody knows\nunread line\n"
    )
    with open_session(read(tmp_path / "site"), "SELECT FROM files") as session:
        assert session.sql("SELECT unparsed FROM files").fetchall() == [(2,)]
