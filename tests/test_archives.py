"""Archives are read as directories are; what could do harm is refused by name."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from conftest import ROOT
from fabricobs.formats import archive, budget, decompression
from fabricobs.formats.limits import LIMITS
from fabricobs.formats.rows import Rows
from fabricobs.ingestion import ingest
from fabricobs.inputs import IngestReport, Options
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session

LINE = b"h:1:1 [0] NCCL INFO NCCL version 2.20.5+cuda12.4\n"


def write_tar(path: Path, files: dict[str, bytes], *links: str) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text))
        for name in links:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
            tar.addfile(entry)
    return path


def read(path: Path, store: Path) -> IngestReport:
    return ingest([path], Store(store), Options())


def counts(store: Path) -> list[tuple[object, ...]]:
    with open_session(store, "port_samples steps") as session:
        return session.sql(
            "SELECT 'port', count(*), sum(tx_bytes)::BIGINT, min(ts), count(DISTINCT device) "
            "FROM port_samples UNION ALL SELECT 'step', count(*), sum(step)::BIGINT, min(ts), "
            "count(DISTINCT host) FROM steps ORDER BY 1"
        ).fetchall()


@pytest.mark.slow
def test_an_archive_gives_what_its_directory_gives(tmp_path: Path) -> None:
    logs = ROOT / "sample_data" / "logs"
    with tarfile.open(tmp_path / "site.tar.xz", "w:xz") as tar:
        tar.add(logs, "logs")
    with tarfile.open(tmp_path / "site.tar.xz") as tar:
        tar.extractall(tmp_path / "site", filter="data")
    read(tmp_path / "site.tar.xz", tmp_path / "a")
    read(tmp_path / "site", tmp_path / "b")
    assert counts(tmp_path / "a") == counts(tmp_path / "b")


def test_an_unchanged_archive_is_left_alone(tmp_path: Path) -> None:
    archive = write_tar(tmp_path / "a.tar.gz", {"x.log": LINE})
    read(archive, tmp_path / "s")
    assert [outcome.unchanged for outcome in read(archive, tmp_path / "s").outcomes] == [True]


def test_paths_that_lead_outside_are_refused(tmp_path: Path) -> None:
    files = {"../../evil.log": LINE, "/abs.log": LINE, "good/x.log": LINE}
    report = read(write_tar(tmp_path / "e.tar.gz", files, "link"), tmp_path / "s")
    refused = [o.path.name for o in report.problems if "leads out of the archive" in str(o.problem)]
    assert sorted(refused) == ["abs.log", "evil.log"]
    assert [o.path.name for o in report.read if o.rows] == ["x.log"]
    assert not list(tmp_path.parent.rglob("evil.log"))
    assert not list((tmp_path / "s" / ".incoming").iterdir())


def test_an_archive_that_breaks_off_gives_what_it_gave(tmp_path: Path) -> None:
    noise = bytes(range(256)) * 400
    archive = write_tar(tmp_path / "a.tar.gz", {"x.log": LINE, "y.bin": noise * 3})
    archive.write_bytes(archive.read_bytes()[:-300])
    report = read(archive, tmp_path / "s")
    assert any(o.path.name == "x.log" and o.rows for o in report.outcomes)
    assert any(o.path == archive and "breaks off" in str(o.problem) for o in report.problems)


def write_zip(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, data in files.items():
            info = zipfile.ZipInfo(name, (2026, 3, 2, 9, 0, 0))
            zipped.writestr(info, data, zipfile.ZIP_DEFLATED)
    return path


def test_an_archive_inside_an_archive_is_a_folder_of_it(tmp_path: Path) -> None:
    inner = write_tar(tmp_path / "inner.tar.gz", {"x.log": LINE}).read_bytes()
    report = read(write_zip(tmp_path / "outer.zip", {"inner.tar.gz": inner}), tmp_path / "s")
    assert [o.path.name for o in report.read if o.rows] == ["x.log"]
    assert not report.problems


def test_archives_nested_without_end_are_refused(tmp_path: Path) -> None:
    data = write_tar(tmp_path / "0.tar", {"x.log": LINE}).read_bytes()
    for number in range(1, 5):
        data = write_tar(tmp_path / f"{number}.tar", {f"{number}.tar": data}).read_bytes()
    report = read(tmp_path / "4.tar", tmp_path / "s")
    assert any("inside one another" in str(o.problem) for o in report.problems)


@pytest.mark.parametrize("named", [True, False])
def test_counters_of_an_archive_without_a_host_are_not_said_to_name_no_port(
    named: bool, tmp_path: Path
) -> None:
    ports = {f"sys/class/infiniband/mlx5_{n}/ports/1/counters/symbol_error": b"0\n" for n in (0, 1)}
    name = "gpu-07_sysfs.tar" if named else "20260302_090000.tar"
    report = read(write_tar(tmp_path / name, ports), tmp_path / "s")
    assert not report.problems
    assert bool(report.unknown_devices) is not named


def test_a_zip_gives_its_local_time_and_the_hosts_of_its_folders(tmp_path: Path) -> None:
    stats = b"NIC statistics:\n     rx_bytes_phy: 1\n     tx_bytes_phy: 2\n"
    write_zip(tmp_path / "z.zip", {f"x/{host}/eth0.txt": stats for host in ("c1", "c2")})
    singapore = Options(zone="Asia/Singapore")
    ingest([tmp_path / "z.zip"], Store(tmp_path / "s"), singapore)
    with open_session(tmp_path / "s", "port_samples") as session:
        got = session.sql("SELECT device, port, ts::TEXT, ts_source FROM port_samples ORDER BY 1")
        assert got.fetchall() == [
            (host, "eth0", "2026-03-02 01:00:00", "mtime") for host in ("c1", "c2")
        ]


def test_an_archive_has_a_cpu_time_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {f"{number}.log": LINE.replace(b"h", b"h%d" % number) for number in range(20)}
    archive_of_20 = write_tar(tmp_path / "a.tar.gz", files)
    looks = iter([*[False] * 25, *[True] * 100])
    monkeypatch.setattr(budget.Allowance, "is_used_up", lambda _: next(looks))
    report = read(archive_of_20, tmp_path / "s")
    (outcome,) = report.problems
    assert "s of CPU time, the limit for its size" in str(outcome.problem)
    assert sum(o.rows for o in report.outcomes) == 5


def test_a_listing_unpacks_nothing_but_what_names_a_host(tmp_path: Path) -> None:
    files = {"x/hostname": b"gpu-a07\n", "x/a.log": LINE, "x/b.tgz.log": LINE}
    listed = write_tar(tmp_path / "a.tar.gz", files)
    place, unpacked = tmp_path / "place", []
    place.mkdir()
    for member in archive.members(listed, place, unpacks=lambda name: name.endswith("hostname")):
        unpacked.append((member.name, member.path.exists() and member.path.read_bytes()))
        member.path.unlink(missing_ok=True)
    assert unpacked == [("x/hostname", b"gpu-a07\n"), ("x/a.log", False), ("x/b.tgz.log", LINE)]


def test_many_small_frames_are_handed_over() -> None:
    rows = Rows()
    frame = pa.table({"step": [1]})
    for _ in range(1_999):
        rows.add_frame("steps", frame)
    assert not rows.is_full
    rows.add_frame("steps", frame)
    assert rows.is_full
    assert sum(part.num_rows for _, part in rows.drain()) == 2_000
    assert not rows.is_full


def test_a_zip_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "LIMITS", replace(LIMITS, unpacked_free_bytes=1 << 20))
    bomb = write_zip(tmp_path / "b.zip", {"x.log": LINE + b"0" * (20 << 20)})
    assert any("a bomb" in str(o.problem) for o in read(bomb, tmp_path / "s").problems)


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_a_compressed_log_is_read_as_it_is(
    compress: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    (tmp_path / "x.log").write_bytes(compress(LINE))
    assert [o.rows for o in read(tmp_path / "x.log", tmp_path / "s").outcomes] == [1]


def test_a_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decompression, "LIMITS", replace(LIMITS, unpacked_free_bytes=1 << 20))
    bomb = tmp_path / "bomb.xz"
    bomb.write_bytes(lzma.compress(LINE + b"0" * (20 << 20)))
    (outcome,) = read(bomb, tmp_path / "s").problems
    assert "refused as a bomb" in str(outcome.problem)
