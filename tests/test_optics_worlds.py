"""Alarms of optics in random worlds: those of bad cables are told, those of dark ports are not."""

from pathlib import Path

import pytest

from fabricobs.diagnosis.run import diagnose
from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.simulator.random_worlds.site import Site
from fabricobs.simulator.random_worlds.spec import draw_spec
from fabricobs.simulator.random_worlds.switch_logs import write_switch_logs
from fabricobs.simulator.random_worlds.world import come_true
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session

WORLD = {
    "fabric": "ethernet", "leaf_os": "nxos", "switch_log": "server", "only": "", "hosts": 8,
    "hosts_per_leaf": 2, "tiers": 2, "duration_minutes": 15.0, "step_seconds": 4.0,
    "fault_span": "to_end", "fault_parts": "one", "restarts": 0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("fault", "spares"),
    [("bad_nic_cable", 2), ("bad_uplink_cable", 0), ("uplink_flap", 2), ("", 4)],
)
def test_only_the_port_of_a_bad_cable_is_warned_of(fault: str, spares: int, tmp_path: Path) -> None:
    seen, logged = 0, 0
    for seed in range(301, 305):
        spec = draw_spec(seed, **(WORLD | {"spare_hosts": spares}))
        world = come_true(spec, (fault,) if fault else ())
        topology, folder = world.topology, tmp_path / str(seed)
        write_switch_logs(Site(world, folder / "logs"))
        ingest([folder / "logs"], Store(folder / "store"), Options(zone=spec.zone))
        with open_session(folder / "store", "events") as session:
            alarms = "SELECT count(*) FROM events WHERE kind = 'optics_alarm'"
            logged += session.sql(alarms).fetchall()[0][0]
        found = diagnose(folder / "store").findings
        warned = {(e.switch, e.port) for f in found if f.kind == "optics_alarm" for e in f.entities}
        bad = [f for f in world.faults if f.kind.does == "lost"]
        ends = {
            (device.name, port.name)
            for device in topology.devices
            for cable, _, port in topology.ports_of(device.index)
            if any(cable in f.cables(topology) for f in bad)
        }
        assert warned <= ends
        seen += len(warned)
    assert (seen > 0) == (fault in {"bad_nic_cable", "bad_uplink_cable"})
    assert logged > 0
