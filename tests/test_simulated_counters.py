"""The simulator's logs of switches, NICs and cables: all lines are read, and counters add up."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabricobs.ingestion import IngestReport, ingest
from fabricobs.inputs import Options
from fabricobs.querying import find_query
from fabricobs.simulator.collection import (
    Reader,
    read_host,
    read_leaf,
    saturated,
    thirty_two_bits,
)
from fabricobs.simulator.counters import PortGroup
from fabricobs.simulator.fabric import Fabric, observe
from fabricobs.simulator.links import links_of
from fabricobs.simulator.logs import KINDS
from fabricobs.simulator.output import JOB_START
from fabricobs.simulator.shapes import (
    ClusterShape,
    CollectionShape,
    FaultShape,
    JobShape,
    ScenarioShape,
)
from fabricobs.simulator.world import World, come_true
from fabricobs.simulator.writers.perfquery import watch_fabric
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session

pytestmark = pytest.mark.slow

COUNTERS = [kind for kind in KINDS if kind.family == "counters"]
JOB = JobShape(steps=30, checkpoint_every=0)
NOISY = CollectionShape(
    switch_interval=5,
    host_interval=5,
    jitter=0.2,
    missing=0.1,
    duplicated=0.1,
    clock_spread_seconds=0.8,
    resets=1,
    near_wrap=True,
)
SHAPES: dict[str, dict[str, Any]] = {
    "roce": {},
    "infiniband": {"fabric": "infiniband"},
    "rail": {"wiring": "rail", "nic_gbps": 200, "uplink_gbps": 400},
    "slow": {"nic_gbps": 100, "uplink_gbps": 100, "links_per_spine": 1},
    "slow_infiniband": {"fabric": "infiniband", "nic_gbps": 200, "uplink_gbps": 200},
}


@dataclass(frozen=True)
class Site:
    """A simulated site and what ingest made of its logs."""

    world: World
    fabric: Fabric
    logs: Path
    store: Path
    report: IngestReport

    def ask(self, sql: str, values: dict[str, Any] | None = None) -> list[tuple[Any, ...]]:
        return open_session(self.store, sql).execute(sql, values or {}).fetchall()


Build = Callable[..., Site]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Build]:
    known: dict[tuple[Any, ...], Site] = {}

    def make(shape: str, fault: str | None = None, noisy: bool = False) -> Site:
        if (shape, fault, noisy) not in known:
            directory = tmp_path_factory.mktemp("site")
            known[shape, fault, noisy] = site(directory, shape, fault, noisy)
        return known[shape, fault, noisy]

    yield make


def site(directory: Path, shape: str, fault: str | None, noisy: bool) -> Site:
    cluster = {"gpus": 16, "hosts_per_leaf": 1} | SHAPES[shape]
    scenario = ScenarioShape(
        title="a test",
        teaches="nothing",
        cluster=ClusterShape.model_validate(cluster),
        jobs=(JOB,),
        # Twice as slow: errors enough to fill the old counters.
        faults=(FaultShape(kind=fault, slowdown=2 if fault == "bad_cable" else None),)
        if fault
        else (),
        collection=NOISY if noisy else CollectionShape(host_interval=10),
    )
    world = come_true("test", scenario, 11)
    fabric = observe(world)
    for kind in COUNTERS:
        if world.cluster.shape.fabric in kind.fabrics:
            kind.write(directory / "logs" / kind.name, world, fabric)
    store = Store(directory / "store")
    report = ingest([directory / "logs"], store, Options())
    return Site(world, fabric, directory / "logs", store.path, report)


def switch_formats(site: Site) -> str:
    infiniband = site.world.cluster.infiniband
    return "'perfquery_extended'" if infiniband else "'sonic_counters_db'"


@pytest.mark.parametrize("shape", list(SHAPES))
@pytest.mark.parametrize("noisy", [False, True])
def test_every_line_is_read(build: Build, shape: str, noisy: bool) -> None:
    assert_all_read(build(shape, None, noisy))


@pytest.mark.parametrize("shape", ["roce", "infiniband"])
@pytest.mark.parametrize("fault", ["bad_cable", "link_flap", "degraded_speed", "pfc_storm"])
def test_every_line_about_a_fault_is_read(build: Build, shape: str, fault: str) -> None:
    assert_all_read(build(shape, fault))


@pytest.mark.parametrize("fault", ["pfc_storm_watchdog", "ecn_off", "lossy_class"])
def test_every_line_about_a_fault_of_ethernet_is_read(build: Build, fault: str) -> None:
    assert_all_read(build("roce", fault))


def assert_all_read(site: Site) -> None:
    assert not site.report.unrecognised
    assert not site.report.problems
    unread = {str(o.path): o.unparsed for o in site.report.outcomes if o.unparsed}
    assert not unread
    kinds = [k for k in COUNTERS if site.world.cluster.shape.fabric in k.fabrics]
    read = {outcome.path.relative_to(site.logs).parts[0] for outcome in site.report.outcomes}
    assert read == {kind.name for kind in kinds}


@pytest.mark.parametrize("shape", ["roce", "infiniband"])
def test_same_seed_same_bytes(tmp_path: Path, build: Build, shape: str) -> None:
    first, again = build(shape), site(tmp_path, shape, None, False)
    for path in first.logs.rglob("*"):
        if path.is_file():
            copy = again.logs / path.relative_to(first.logs)
            assert copy.read_bytes() == path.read_bytes()


def moved(site: Site, formats: str, column: str) -> dict[tuple[str, str], int]:
    """Rise of a counter of each port from before the job until after it."""
    rows = site.ask(
        f"SELECT device, port, max({column}) - min({column}) FROM named_samples "
        f"WHERE format IN ({formats}) AND {column} IS NOT NULL GROUP BY device, port"
    )
    return {(device, port): rise for device, port, rise in rows}


@pytest.mark.parametrize("shape", list(SHAPES))
def test_what_a_nic_sends_its_leaf_port_receives(build: Build, shape: str) -> None:
    here = build(shape)
    cluster = here.world.cluster
    hosts = "'sysfs_dump'" if cluster.infiniband else "'ethtool_statistics'"
    for ours, theirs in (("tx_bytes", "rx_bytes"), ("rx_bytes", "tx_bytes")):
        at_hosts = moved(here, hosts, ours)
        at_leaves = moved(here, switch_formats(here), theirs)
        for nic in cluster.nics:
            leaf = cluster.leaf_name(nic.leaf)
            if cluster.infiniband:
                near, far = f"{nic.device}/1", str(cluster.nic_port_number(nic))
            else:
                near, far = nic.netdev, cluster.nic_port(nic)
            sent, received = at_hosts[nic.host_name, near], at_leaves[leaf, far]
            assert sent > 1e9
            assert received == pytest.approx(sent, rel=1e-6)


@pytest.mark.parametrize("shape", ["infiniband", "slow_infiniband"])
def test_what_an_infiniband_leaf_sends_up_its_spine_receives(build: Build, shape: str) -> None:
    here = build(shape)
    cluster = here.world.cluster
    sent, received = (moved(here, "'perfquery_extended'", f"{way}_bytes") for way in ("tx", "rx"))
    for u in cluster.uplinks:
        leaf = cluster.leaf_name(u.leaf), str(cluster.uplink_port_number(u))
        spine = cluster.spine_name(u.spine), str(cluster.spine_port_number(u))
        assert received[spine] == pytest.approx(sent[leaf], rel=1e-6)
        assert received[leaf] == pytest.approx(sent[spine], rel=1e-6)


@pytest.mark.parametrize("shape", ["roce", "rail", "slow"])
def test_what_a_leaf_sends_up_is_in_its_queues_and_in_the_csv_of_the_spines(
    build: Build, shape: str
) -> None:
    here = build(shape)
    cluster = here.world.cluster
    queues = {
        (device, port): rise
        for device, port, rise in here.ask(
            "SELECT device, port, sum(rise) FROM (SELECT device, port, queue, "
            "max(tx_bytes) - min(tx_bytes) AS rise FROM priority_samples "
            "WHERE format = 'sonic_queue_counters' GROUP BY ALL) GROUP BY ALL"
        )
    }
    spines = {
        (device, port): rest
        for device, port, *rest in here.ask(
            "SELECT device, port, sum(rx_bytes), sum(tx_bytes) FROM port_samples "
            "WHERE format = 'port_csv' GROUP BY ALL"
        )
    }
    in_out = np.zeros((cluster.spines, 2))
    for uplink in cluster.uplinks:
        sent = queues[cluster.leaf_name(uplink.leaf), cluster.uplink_port(uplink)]
        both = spines[cluster.spine_name(uplink.spine), cluster.spine_port(uplink)]
        assert both[0] == pytest.approx(sent, rel=1e-6, abs=1e5)
        in_out[uplink.spine] += both
    # On every spine as much goes out as came in.
    np.testing.assert_allclose(in_out[:, 0], in_out[:, 1], rtol=1e-6)


@pytest.mark.parametrize("shape", ["roce", "rail", "infiniband"])
@pytest.mark.parametrize("noisy", [False, True])
def test_counters_fall_only_where_a_device_restarts(build: Build, shape: str, noisy: bool) -> None:
    here = build(shape, None, noisy)
    restarted = {
        reader.device.name
        for leaf in range(here.world.cluster.leaves)
        if (reader := read_leaf(here.world, here.fabric, leaf)).device.restart is not None
    }
    assert len(restarted) == (1 if noisy else 0)
    for column in ("rx_bytes", "tx_bytes", "rx_packets"):
        rows = here.ask(
            f"WITH samples AS (SELECT device, {column} - lag({column}) OVER (PARTITION BY format, "
            f"device, port ORDER BY ts, line) AS rise FROM named_samples "
            f"WHERE format <> 'port_csv' AND {column} IS NOT NULL) "
            "SELECT DISTINCT device FROM samples WHERE rise < 0"
        )
        assert {device for (device,) in rows} == restarted


def test_missing_and_doubled_rounds_are_there(build: Build) -> None:
    here = build("roce", None, True)
    rows = here.ask(
        "SELECT count(*), count(DISTINCT ts) FROM port_samples WHERE device = 'node01' "
        "AND port = 'mlx5_0/1' AND format = 'sysfs_dump'"
    )
    device = read_host(here.world, here.fabric, 0).device
    assert rows == [(len(device.moments), len(np.unique(device.moments)))]
    assert len(device.moments) > len(np.unique(device.moments))
    assert np.diff(np.unique(device.moments)).max() > 1.6 * NOISY.host_interval


def names_of_leaf(world: World, leaf: int) -> list[str]:
    cluster = world.cluster
    nics, uplinks = cluster.nics_of_leaf(leaf), cluster.uplinks_of_leaf(leaf)
    if cluster.infiniband:
        return [str(number + 1) for number in range(len(nics) + len(uplinks))]
    return [*(cluster.nic_port(n) for n in nics), *(cluster.uplink_port(u) for u in uplinks)]


def check_rates(
    here: Site, reader: Reader, names: list[str], formats: str, offset: float
) -> tuple[int, int]:
    """Compare each interval of `port_rates` with the truth; how many hold, how many are unknown."""
    name = reader.device.name
    rows = here.ask(
        "SELECT port, (epoch_ms(ts_before) - epoch_ms($start)) / 1e3 - $offset, "
        "(epoch_ms(ts) - epoch_ms($start)) / 1e3 - $offset, rx_bytes, tx_bytes FROM port_rates "
        f"WHERE device = '{name}' AND format IN ({formats}) ORDER BY ts",
        {"start": JOB_START.replace(tzinfo=None), "offset": offset},
    )
    ports, before, after, *measured = zip(*rows, strict=True)
    moments = np.round(np.array([before, after], dtype=float), 3)
    index, lines = np.array([names.index(port) for port in ports]), np.arange(len(rows))
    restart = np.inf if reader.device.restart is None else reader.device.restart
    over_restart = (moments[0] < restart) & (moments[1] >= restart)
    for counter, shown in zip((PortGroup.rx_bytes, PortGroup.tx_bytes), measured, strict=True):
        then, now = (reader.at(counter, m).sum(axis=1)[lines, index] for m in moments)
        assert [value is None for value in shown] == over_restart.tolist()
        rises = np.array([value or 0 for value in shown])
        # InfiniBand counts in words of four bytes.
        assert np.abs(rises - (now - then))[~over_restart].max() <= 4
    return int((~over_restart).sum()), int(over_restart.sum())


@pytest.mark.parametrize("shape", ["roce", "rail", "infiniband"])
def test_rates_are_right_across_restarts_gaps_and_wrong_clocks(build: Build, shape: str) -> None:
    here = build(shape, None, True)
    cluster = here.world.cluster
    unknown = 0
    for leaf in range(cluster.leaves):
        reader = read_leaf(here.world, here.fabric, leaf)
        names = names_of_leaf(here.world, leaf)
        offset = reader.device.offset
        if cluster.infiniband:
            # One collector asks the whole fabric, by its own clock.
            offset = watch_fabric(here.world).offset
        held, lost = check_rates(here, reader, names, switch_formats(here), offset)
        assert held > 10 * len(names)
        assert lost == (0 if reader.device.restart is None else len(names))
        unknown += lost
    assert unknown
    if not cluster.infiniband:
        reader = read_host(here.world, here.fabric, 1)
        netdevs = [nic.netdev for nic in cluster.nics_of_host(1)]
        check_rates(here, reader, netdevs, "'ethtool_statistics'", reader.device.offset)


@pytest.mark.parametrize("shape", ["roce", "infiniband"])
def test_rises_are_right_where_a_counter_of_32_bits_wraps(build: Build, shape: str) -> None:
    here = build(shape, "bad_cable", True)
    (nic,) = [fact.nic for fact in here.world.facts if hasattr(fact, "nic")]
    culprit = here.world.cluster.nics[nic]
    where = (
        f"WHERE device = '{culprit.host_name}' AND port = '{culprit.device}/1' "
        "AND format = 'sysfs_dump'"
    )
    shown = [
        n for (n,) in here.ask(f"SELECT out_of_sequence FROM port_samples {where} ORDER BY ts")
    ]
    assert shown[0] > 2**31 > shown[-1]
    ((rise, unknown),) = here.ask(
        "SELECT sum(out_of_sequence), count(*) - count(out_of_sequence) FROM port_rates " + where
    )
    truth = here.fabric.out_of_sequence.at(here.world.duration + 60)[nic]
    assert (rise, unknown) == (truth, 0)


def test_a_bad_cable_raises_errors_at_both_ends_alone(build: Build) -> None:
    for shape in ("roce", "infiniband"):
        here = build(shape, "bad_cable")
        cluster = here.world.cluster
        (number,) = [fact.nic for fact in here.world.facts if hasattr(fact, "nic")]
        nic = cluster.nics[number]
        rising = {
            (device, port)
            for device, port in here.ask(
                "SELECT DISTINCT device, port FROM port_rates "
                "WHERE greatest(symbol_errors, fec_uncorrected) > 0 "
                "AND format <> 'ibqueryerrors'"
            )
        }
        far = cluster.nic_port_number(nic) if cluster.infiniband else cluster.nic_port(nic)
        expected = {(nic.host_name, f"{nic.device}/1"), (cluster.leaf_name(nic.leaf), str(far))}
        if not cluster.infiniband:
            expected.add((nic.host_name, nic.netdev))
        assert rising == expected


@pytest.mark.parametrize("shape", ["roce", "infiniband", "slow_infiniband"])
def test_a_cable_that_came_up_slow_shows_at_both_ends(build: Build, shape: str) -> None:
    here = build(shape, "degraded_speed")
    cluster = here.world.cluster
    (number,) = [fact.nic for fact in here.world.facts if hasattr(fact, "nic")]
    nic = cluster.nics[number]
    question = find_query("degraded_links")
    told = here.ask(f"SELECT device, port, speed_gbps FROM ({question.sql.rstrip().rstrip(';')})")
    far = cluster.nic_port_number(nic) if cluster.infiniband else cluster.nic_port(nic)
    assert (cluster.leaf_name(nic.leaf), str(far), cluster.shape.nic_gbps / 2) in told
    assert {speed for _, _, speed in told} == {cluster.shape.nic_gbps / 2}
    rates = here.ask(
        f"SELECT DISTINCT speed_gbps FROM named_status WHERE device = '{nic.host_name}' "
        f"AND port = '{nic.device}/1' AND speed_gbps IS NOT NULL"
    )
    assert rates == [(cluster.shape.nic_gbps / 2,)]


@pytest.mark.parametrize("shape", ["roce", "infiniband"])
def test_a_flapping_link_is_counted_and_seen_down_when_looked_at(build: Build, shape: str) -> None:
    here = build(shape, "link_flap")
    links = links_of(here.world)
    ((number, spans),) = links.down.items()
    nic = here.world.cluster.nics[number]
    where = f"device = '{nic.host_name}' AND port = '{nic.device}/1'"
    downs = here.ask(
        f"SELECT sum(link_downed) FROM port_rates WHERE {where} AND format = 'sysfs_dump'"
    )
    assert downs == [(len(spans),)]
    seen = here.ask(
        f"SELECT oper FROM port_status WHERE {where} AND format = 'sysfs_dump' ORDER BY ts"
    )
    moments = read_host(here.world, here.fabric, nic.host).device.moments.tolist()
    truth = ["up" if links.is_up(number, moment) else "down" for moment in moments]
    assert [oper for (oper,) in seen] == truth


def test_a_watchdog_tells_of_storms_and_what_it_dropped(build: Build) -> None:
    here = build("roce", "pfc_storm_watchdog")
    (number,) = [fact.nic for fact in here.world.facts if hasattr(fact, "nic")]
    nic = here.world.cluster.nics[number]
    port = here.world.cluster.nic_port(nic)
    stormed = here.ask(
        "SELECT DISTINCT device, port, priority FROM priority_samples WHERE pfcwd_detected > 0"
    )
    assert stormed == [(here.world.cluster.leaf_name(nic.leaf), port, 3)]
    dropping = here.ask("SELECT DISTINCT port, queue FROM priority_rates WHERE drop_packets > 0")
    assert set(dropping) == {(port, "UC3"), (port, "3")}
    warned = here.ask(
        "SELECT DISTINCT device, port FROM port_samples WHERE pause_storm_warnings > 0"
    )
    assert warned == [(nic.host_name, nic.netdev)]


def test_where_a_storm_lasts_there_is_no_watchdog(build: Build) -> None:
    here = build("roce", "pfc_storm")
    assert not list(here.logs.rglob("*pfcwd*"))
    assert list(build("roce").logs.rglob("*pfcwd*"))


def test_settings_tell_what_is_wrong_with_them(build: Build) -> None:
    healthy, off, lossy = (build("roce", fault) for fault in (None, "ecn_off", "lossy_class"))
    (leaf,) = [fact.leaf for fact in lossy.world.facts if hasattr(fact, "leaf")]
    name = lossy.world.cluster.leaf_name(leaf)
    for path in (healthy.logs / "switches").rglob("show_pfc_priority.txt"):
        assert "N/A" not in path.read_text()
        text = (lossy.logs / "switches" / path.parent.name / path.name).read_text()
        assert ("N/A" in text) == (path.parent.name == name)
        ecn = f"switches/{path.parent.name}/show_ecn.txt"
        assert "red_max_threshold        2097152\n" in (healthy.logs / ecn).read_text()
        assert "red_max_threshold        1073741824\n" in (off.logs / ecn).read_text()


def test_old_counters_of_infiniband_stop_at_their_highest_value(build: Build) -> None:
    here = build("infiniband", "bad_cable")
    highest = here.ask(
        "SELECT max(symbol_errors) FROM port_samples "
        "WHERE format IN ('ibqueryerrors', 'sysfs_dump')"
    )
    wide = here.ask("SELECT max(symbol_errors) FROM port_samples WHERE format LIKE 'perfquery%'")
    assert wide[0][0] > 65535
    assert highest == [(65535,)]
    assert saturated(np.array([3, 300]), 8).tolist() == [3, 255]
    assert thirty_two_bits(build("roce").world, np.array([7])).tolist() == [7]
