"""Rules on drawn logs: the fault is named, its healthy counterpart with the same noise is not."""

import random
from contextlib import closing
from pathlib import Path

import pytest
from sweeps import write_sweep

from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.findings import Finding
from fabricobs.diagnosis.methods.rule import find_by_rule
from fabricobs.diagnosis.model import load_models
from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.store.parts import Store

MODELS = load_models()


def found(folder: Path, model: str) -> tuple[Finding, ...]:
    """Return what a rule finds in the logs of a folder."""
    store = Store(folder.parent / "store")
    ingest([folder], store, Options())
    with closing(Evidence(store.path)) as evidence:
        return find_by_rule(evidence, MODELS[model], []).findings


# Speed of a link, its lanes, and the share of wrong bits that the code of such lanes is made for.
LINKS = ((100, 4, 5e-5), (100, 2, 2.4e-4), (200, 4, 2.4e-4), (400, 8, 2.4e-4), (400, 4, 2.4e-4))
SECONDS = 10


def write_fec(folder: Path, draw: random.Random, sick: str, fault: str) -> None:
    """Write what ethtool tells of the NICs of some hosts, and of FEC at six times."""
    speed, lanes, allowed = draw.choice(LINKS)
    for host in (f"node{n}" for n in range(4)):
        place = folder / host
        place.mkdir(parents=True)
        (place / "ethtool_ens1-1741075200.txt").write_text(
            f"Settings for ens1:\n\tSpeed: {speed}000Mb/s\n\tLanes: {lanes}\n\tLink detected: yes\n"
        )
        corrected = draw.randrange(10**9)
        usual = allowed * 10 ** draw.uniform(-5, -1)
        share = allowed * draw.uniform(1.3, 6) if (host, fault) == (sick, "lasting") else usual
        for at in range(6):
            stamp = 1741075200 + SECONDS * at
            (place / f"ethtool_fec_ens1-{stamp}.txt").write_text(
                "# ethtool -I --show-fec ens1\nFEC parameters for ens1:\nActive FEC encoding: RS\n"
                f"Statistics:\n  corrected_blocks: {corrected}\n  uncorrectable_blocks: 0\n"
            )
            # Two intervals of noise are no sick link.
            burst = (host, fault) == (sick, "short") and at in {2, 3}
            now = 3 * allowed if burst else share * draw.uniform(0.95, 1.05)
            corrected += int(now * speed * 1e9 * SECONDS)


@pytest.mark.parametrize("fault", ["lasting", "short", "none"])
@pytest.mark.parametrize("seed", range(2))
def test_a_link_that_corrects_more_than_its_code_is_made_for(
    tmp_path: Path, fault: str, seed: int
) -> None:
    draw = random.Random(f"fec {seed}")
    sick = f"node{draw.randrange(4)}"
    write_fec(tmp_path / "logs", draw, sick, fault)
    named = [entity.label for f in found(tmp_path / "logs", "fec_margin") for entity in f.entities]
    assert named == ([f"{sick} ens1"] if fault == "lasting" else [])


def write_nccl(folder: Path, draw: random.Random, sick: int, fault: str) -> None:
    """Write the logs of some hosts: what always stands there, and warnings of a fault."""
    hosts = draw.randrange(4, 8)
    nic = f"mlx5_{draw.randrange(8)}"
    folder.mkdir()
    for host in range(hosts):
        before = f"node{host}:{70 + host}:{80 + host} [0] "
        warn = f"{before}transport/net_ib.cc:{draw.randrange(90, 2000)} NCCL WARN "
        lines = [
            f"{before}NCCL INFO Bootstrap : Using eth0:10.0.0.{host + 1}<0>",
            f"{warn}NET/IB : {nic}:1 Got async event : port active",
            f"{before}NCCL INFO misc/socket.cc:88 -> 2 [Proxy Thread]",
        ]
        unanswered = (
            f"{warn}NET/IB: Got completion from peer 10.0.0.{sick + 1}<41000> with status=12 "
            "opcode=32 len=0 vendor err 129 (Send)"
        )
        if fault == "NIC" and host == sick:
            told = "Got async event : local access violation work queue error"
            lines.append(f"{warn}NET/IB : {nic}:1 {told}")
        elif fault != "none" and host != sick:
            lines.append(unanswered)
        (folder / f"node{host}.log").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("fault", ["silent host", "NIC", "none"])
@pytest.mark.parametrize("seed", range(3))
def test_the_host_on_which_nccl_fails_is_named_not_those_that_tell_of_it(
    tmp_path: Path, fault: str, seed: int
) -> None:
    draw = random.Random(f"nccl {seed}")
    sick = draw.randrange(4)
    write_nccl(tmp_path / "logs", draw, sick, fault)
    named = [entity.host for f in found(tmp_path / "logs", "nccl_failure") for entity in f.entities]
    assert named == ([] if fault == "none" else [f"node{sick}"])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("effect", [0.2, 0.0])
def test_a_benchmark_far_below_alike_runs_is_named_with_its_hosts(
    tmp_path: Path, effect: float, seed: int
) -> None:
    """Fewer runs than a sweep has: the slow one itself is told."""
    draw = random.Random(f"benchmark {seed}")
    bad = "host" if effect else ""
    seeded = draw.randrange(1000)
    name = write_sweep(tmp_path / "logs", seeded, bad, effect, runs=7, hosts=8, by_chance=0)
    of_it = found(tmp_path / "logs", "slow_benchmark")
    if effect:
        assert of_it
        assert all(name in {e.host for e in f.related} or name in f.title for f in of_it)
    else:
        assert not of_it
