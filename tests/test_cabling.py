"""Cables that are not where the other hosts, the other leaves or the plan have them."""

from contextlib import closing
from pathlib import Path

import pytest
from fabric_dumps import DAY, MOMENT, Cable, rail_fabric, swapped, write_lldp

from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.findings import Finding
from fabricobs.diagnosis.methods.rule import find_by_rule
from fabricobs.diagnosis.model import load_models
from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.simulator.randomness import Random, stream
from fabricobs.store.parts import Store


def _found(logs: Path, store: Path) -> tuple[Finding, ...]:
    ingest([logs], Store(store), Options())
    with closing(Evidence(store)) as evidence:
        return find_by_rule(evidence, load_models()["cabling"], []).findings


def _pick(random: Random, cables: list[Cable], like: str) -> Cable:
    """Draw a cable whose far port is called like this."""
    own = [cable for cable in cables if cable.far_port.startswith(like)]
    return own[random.randint(len(own))]


@pytest.mark.parametrize("seed", range(4))
def test_swapped_rails_and_a_missing_link_are_named_and_nothing_else(
    seed: int, tmp_path: Path
) -> None:
    random = stream(seed)
    cables = rail_fabric(random)
    write_lldp(tmp_path / "sound", cables)
    assert _found(tmp_path / "sound", tmp_path / "s1") == ()
    a, b = _pick(random, cables, "ens0"), _pick(random, cables, "ens1")
    write_lldp(tmp_path / "swapped", swapped(cables, a, b))
    (finding,) = _found(tmp_path / "swapped", tmp_path / "s2")
    assert {(e.host, e.nic) for e in finding.entities} == {(c.device, c.far_port) for c in (a, b)}
    assert all(f"{x.leaf} {x.port}" in finding.title for x in (a, b))
    uplinks = [cable for cable in cables if cable.far_port.startswith("Ethernet")]
    pairs = {(c.leaf, c.device) for c in uplinks}
    gone = uplinks[random.randint(len(uplinks))]
    write_lldp(tmp_path / "fewer", [cable for cable in cables if cable != gone])
    found = _found(tmp_path / "fewer", tmp_path / "s3")
    # Of fewer than four pairs three quarters cannot agree.
    if len(pairs) >= 4:
        assert [[e.switch for e in f.entities] for f in found] == [[gone.leaf, gone.device]]


def test_a_plan_is_compared_with_what_devices_tell(tmp_path: Path) -> None:
    random = stream(7)
    cables = rail_fabric(random)
    a, b = _pick(random, cables, "ens0"), _pick(random, cables, "ens1")
    logs = tmp_path / "logs"
    write_lldp(logs, swapped(cables, a, b))
    rows = [f"{c.leaf},{c.port},{c.device},{c.far_port}" for c in cables]
    (logs / "plan.csv").write_text(
        "\n".join(["device,port,remote_device,remote_port", *rows]) + "\n"
    )
    (finding,) = _found(logs, tmp_path / "s")
    assert "swapped" in finding.title
    assert {(e.switch, e.port) for e in finding.entities} == {(a.leaf, a.port), (b.leaf, b.port)}


def test_a_cable_that_moved_counts_where_it_is_now(tmp_path: Path) -> None:
    random = stream(8)
    cables = rail_fabric(random)
    a, b = _pick(random, cables, "ens0"), _pick(random, cables, "ens1")
    write_lldp(tmp_path / "logs", swapped(cables, a, b), MOMENT)
    write_lldp(tmp_path / "logs", cables, MOMENT + DAY)
    assert _found(tmp_path / "logs", tmp_path / "s") == ()
    with closing(Evidence(tmp_path / "s")) as evidence:
        ends = evidence.frame("cable_ends")
    now = {(r["owner"], r["part"]): (r["far_owner"], r["far_part"]) for r in ends.to_dicts()}
    assert now[a.leaf, a.port] == (a.device, a.far_port)
    assert now[a.device, a.far_port] == (a.leaf, a.port)


def test_a_real_fabric_has_one_host_with_swapped_rails(corpus: Path, tmp_path: Path) -> None:
    """What each leaf of a real InfiniBand fabric tells; read by hand."""
    found = _found(corpus / "switch/ib/ibnetdiscover_topology.txt", tmp_path / "s")
    (swap,) = (f for f in found if f.entities[0].type == "nic")
    assert [(e.host, e.nic) for e in swap.entities] == [
        ("b08-p1-dgx-08-c01", "HCA-5"),
        ("b08-p1-dgx-08-c01", "HCA-6"),
    ]
