"""The simulator: its physics hold, its files are the same every time, and the sample is current."""

import csv
import gzip
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from fabricobs.simulate import workload
from fabricobs.simulate.cluster import LEAVES, UPLINKS_PER_LEAF, build_cluster
from fabricobs.simulate.fabric import Fabric, observe
from fabricobs.simulate.rings import CHANNELS, ring
from fabricobs.simulate.run import FAULT_STEP, Run, simulate
from fabricobs.simulate.sample import DEFAULT_SEED, loss_share, write_sample

COMMITTED = Path(__file__).parent.parent / "sample_data"
NIC_PORTS_PER_LEAF = 16


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("sample")
    write_sample(directory)
    return directory


@pytest.fixture(scope="module")
def faulty() -> Run:
    return simulate(fault=True, seed=DEFAULT_SEED)


@pytest.fixture(scope="module")
def healthy() -> Run:
    return simulate(fault=False, seed=DEFAULT_SEED)


@pytest.fixture(scope="module")
def fabric(faulty: Run) -> Fabric:
    return observe(faulty, seed=DEFAULT_SEED)


def content(path: Path) -> object:
    """What a file says, free of what other releases of zlib or Arrow pack differently."""
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pydict()
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def files(directory: Path) -> dict[Path, Path]:
    """The generated files of a sample by relative path."""
    found = [directory / "answer.json", *(directory / "logs").rglob("*")]
    return {path.relative_to(directory): path for path in found if path.is_file()}


def queue_rows(path: Path) -> Iterator[tuple[int, str, int]]:
    """Port number, queue and bytes of every row of `show queue counters`."""
    for line in gzip.decompress(path.read_bytes()).decode().splitlines():
        if match := re.match(r" *Ethernet(\d+) +(\w+) +[\d,]+ +([\d,]+) ", line):
            yield int(match[1]), match[2], int(match[3].replace(",", ""))


def sent_data(sample: Path, leaf: str) -> tuple[int, int]:
    """Bytes of the data class a leaf sent to NICs and to spines, from its first and last round."""
    rounds = sorted((sample / "logs/switches" / leaf).glob("*show_queue_counters.txt.gz"))
    to_nics = to_spines = 0
    for path, sign in ((rounds[0], -1), (rounds[-1], 1)):
        for port, queue, amount in queue_rows(path):
            if queue == "UC3" and port < 64:
                to_nics += sign * amount
            elif queue == "UC3":
                to_spines += sign * amount
    return to_nics, to_spines


def sent_by_nics(sample: Path, host: str) -> int:
    rounds = sorted((sample / "logs/hosts" / host).glob("sysfs-*.txt.gz"))
    totals = [
        sum(map(int, re.findall(r"port_xmit_data:(\d+)", gzip.decompress(p.read_bytes()).decode())))
        for p in (rounds[0], rounds[-1])
    ]
    return 4 * (totals[1] - totals[0])


def spine_octets(sample: Path, port: int, column: str) -> int:
    total = 0
    for path in (sample / "logs/spines").glob(f"*/FourHundredGigE1_0_{port}.csv"):
        rows = csv.DictReader(io.StringIO(path.read_text(encoding="utf-8")))
        total += sum(int(row[column]) for row in rows)
    return total


def test_bytes_are_conserved_from_nic_to_nic(sample: Path) -> None:
    expected = 16 * workload.STEPS * sum(c.nic_bytes for c in workload.COLLECTIVES)
    from_nics = sent_by_nics(sample, "node01") + sent_by_nics(sample, "node03")
    _, up = sent_data(sample, "leaf01")
    down, _ = sent_data(sample, "leaf02")
    into_spines = sum(spine_octets(sample, port, "InOctets") for port in (1, 2))
    out_of_spines = sum(spine_octets(sample, port, "OutOctets") for port in (3, 4))
    for measured in (from_nics, up, down, into_spines, out_of_spines):
        assert measured == pytest.approx(expected, rel=1e-6)


def test_counters_never_fall(fabric: Fabric, faulty: Run) -> None:
    moments = np.linspace(-60, faulty.duration + 60, 500)
    groups = (fabric.nics, fabric.leaf_nic_ports, fabric.leaf_uplinks, fabric.spine_ports)
    readers = [read for g in groups for read in (g.rx_bytes, g.tx_bytes)]
    readers += [read for g in groups for read in (g.rx_pause_frames, g.tx_pause_microseconds)]
    readers += [fabric.ecn_marked.at, fabric.cnp_sent.at, fabric.cnp_handled.at]
    for read in readers:
        values = np.stack([read(moment) for moment in moments])
        assert (np.diff(values, axis=0) >= 0).all()
        assert (values >= 0).all()


def test_last_arriver_has_the_shortest_collective(faulty: Run) -> None:
    durations = faulty.collective_seconds
    assert (durations.argmin(axis=2) == faulty.arrival.argmax(axis=2)).all()
    pure = faulty.transfer_end - faulty.transfer_start
    np.testing.assert_allclose(durations.min(axis=2), pure)


def test_step_is_the_sum_of_its_parts(faulty: Run) -> None:
    parts = faulty.data + faulty.compute + faulty.collective_seconds.sum(axis=1)
    rest = faulty.step_seconds - parts
    assert (rest > 0).all()
    assert np.median(rest) < 0.02


def test_throughput_falls_by_a_fifth(faulty: Run, healthy: Run) -> None:
    assert 0.18 <= loss_share(faulty, healthy) <= 0.22
    np.testing.assert_array_equal(
        faulty.step_seconds[: FAULT_STEP - 1], healthy.step_seconds[: FAULT_STEP - 1]
    )


def test_healthy_twin_has_no_drop(healthy: Run) -> None:
    slowest = healthy.step_seconds.max(axis=1)
    before, after = np.median(slowest[5 : FAULT_STEP - 1]), np.median(slowest[FAULT_STEP - 1 :])
    assert after == pytest.approx(before, rel=0.005)


def test_one_leaf_is_polarised_upwards_alone(fabric: Fabric, faulty: Run) -> None:
    onset = float(faulty.begin[FAULT_STEP - 1].min())

    def even_share(sent: bool) -> list[float]:
        read = fabric.leaf_uplinks.tx_bytes if sent else fabric.leaf_uplinks.rx_bytes
        crossed = (read(faulty.duration) - read(onset))[3].reshape(LEAVES, UPLINKS_PER_LEAF)
        return list(crossed[:, ::2].sum(axis=1) / crossed.sum(axis=1))

    upwards, downwards = even_share(sent=True), even_share(sent=False)
    assert upwards[0] > 0.95
    assert all(0.35 < share < 0.65 for share in (upwards[1], *downwards))


def test_pauses_rise_with_the_fault_only(fabric: Fabric, faulty: Run) -> None:
    onset = float(faulty.begin[FAULT_STEP - 1].min())

    def pause_share(begin: float, end: float) -> np.ndarray:
        read = fabric.nics.rx_pause_microseconds
        share: np.ndarray = (read(end) - read(begin)) / 1e6 / (end - begin)
        return share

    assert (pause_share(0, onset) < 0.0005).all()
    on_faulty_leaf = np.array([nic.leaf == 0 for nic in build_cluster().nics])
    during = pause_share(onset, faulty.duration)
    assert (during[on_faulty_leaf] > 0.005).all()
    assert (during < 0.04).all()
    assert (during[~on_faulty_leaf] < 0.0005).all()


def test_rings_keep_to_their_rails() -> None:
    for channel in range(CHANNELS):
        order = ring(channel)
        assert sorted(order) == list(range(32))
        hops = zip(order, order[1:] + order[:1], strict=True)
        between_hosts = [(a, b) for a, b in hops if a // 8 != b // 8]
        assert len(between_hosts) == 4
        assert all(a % 8 == b % 8 for a, b in between_hosts)


def test_same_seed_gives_the_same_bytes(sample: Path, tmp_path: Path) -> None:
    write_sample(tmp_path)
    first, second = files(sample), files(tmp_path)
    assert first.keys() == second.keys()
    assert all(first[name].read_bytes() == second[name].read_bytes() for name in first)


def test_committed_sample_is_what_the_simulator_writes(sample: Path) -> None:
    committed, written = files(COMMITTED), files(sample)
    assert committed.keys() == written.keys()
    for name, path in committed.items():
        assert content(path) == content(written[name]), name


def test_committed_sample_is_small() -> None:
    assert sum(p.stat().st_size for p in COMMITTED.rglob("*") if p.is_file()) < 3_000_000


def test_healthy_answer_names_nothing(tmp_path: Path) -> None:
    answer = write_sample(tmp_path, fault=False)
    assert answer["kind"] == "none"
    assert answer["entities"] == []
    assert json.loads((tmp_path / "answer.json").read_text(encoding="utf-8")) == answer
