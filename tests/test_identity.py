"""Whose a file is: layouts and names are drawn from known hosts, ports and times."""

import io
import json
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from fabricobs.cli import app
from fabricobs.exceptions import UserError
from fabricobs.formats.identity.layout import infer
from fabricobs.formats.identity.naming import Naming
from fabricobs.formats.identity.pattern import compile_pattern
from fabricobs.formats.identity.times import time_of_path
from fabricobs.formats.identity.vocabulary import is_surely_a_device
from fabricobs.ingestion import ingest
from fabricobs.inputs import IngestReport, Options
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session

# Numbered names, by the place of the number; and word-like ones, which only folders can tell.
NUMBERED = (
    "gpu-{:02}", "node{:04}", "leaf{:02}", "dc1-r12-tor-{}", "ip-10-20-3-{}", "rack3-n{:02}",
    "h100-2024-{:02}", "GPU{:03}", "a3mega-0-{}", "c{}", "LEAF-{}", "n9k-{:02}", "10.20.3.{}",
    "gpu{}.hpc.example.org", "sw-gpu-1{:02}", "spine{}a",
    # Two switches of one place, told apart by their tier.
    "a{:02}-leaf|a{:02}-spine", "ib-leaf-{:02}|ib-spine-{:02}", "row{}.tor|row{}.agg", "r{}-tor",
    "tor{:03}-l|tor{:03}-s", "sw-l-{:03}|sw-s-{:03}", "node-a-{}|node-b-{}",
)  # fmt: skip
WORDS = ("alpha", "leaf", "mlx", "show", "counters", "beta", "hydra", "node")
PORTS = (
    "eth{}", "ens{}f0np0", "ens{}f1np1", "enp{}s0f1", "mlx5_{}", "ib{}", "bond{}", "rdma{}",
    "bnxt_re{}", "swp{}", "Ethernet{}", "irdma{}",
)  # fmt: skip
TIMES = (
    "%Y%m%d_%H%M%S", "%Y%m%d-%H%M%S", "%Y%m%dT%H%M%SZ", "%Y-%m-%dT%H-%M-%S", "%Y-%m-%dT%H:%M:%S",
    "%Y.%m.%d-%H.%M.%S", "%d%b%Y_%H%M%S", "%Y%m%d%H%M%S", "%Y_%m_%d__%H_%M_%S", "s", "ms", "us",
    "ns", "%Y-%m-%d %H.%M.%S", "%Y%m%dT%H%M%S+0000", "%Y-%m-%d-%H%M%S",
)  # fmt: skip
# {h} host, {t} time, {p} port.
NUMBERED_LAYOUTS = (
    "{h}/{t}/ethtool_S_{p}.txt", "{t}/{h}/ethtool_{p}.txt", "rack3/{h}/{t}/ethtool-S-{p}.log",
    "ethtool_S_{h}_{p}_{t}.txt", "{h}_ethtool_{p}_{t}.txt", "{t}_{h}_ethtool_{p}.txt",
    "{h}__ethtool__{p}__{t}.log", "flat/{t}-{h}-ethtool-{p}.txt", "nics/{p}/{t}/{h}.txt",
    "pssh-{t}/{h}/ethtool_{p}", "host={h}/{t}/{p}.txt", "collected/{t}/{h}.{p}.ethtool",
    "{t}/hosts/{h}/sos_commands/networking/ethtool_-S_{p}", "site a/{h}/{p}/{t}.txt.gz",
    "{h}-{t}.tar.gz/ethtool_{p}.txt", "logs/{h}/ethtool_{p}.{t}.txt",
    "techsupport/{h}-show-tech-{p}-{t}.log", "tech/{p}/{h}-show-tech-{t}.log",
    "case-4711/{h}-{t}-{p}.txt",
)  # fmt: skip
WORD_LAYOUTS = (
    "{h}/{t}/ethtool_S_{p}.txt", "{t}/{h}/ethtool_{p}.txt", "run/{h}/ethtool_{p}_{t}.txt",
)  # fmt: skip
START = datetime(2026, 11, 2, 9, 59, 45, tzinfo=UTC)
STATS = "NIC statistics:\n     rx_bytes_phy: {}\n     tx_bytes_phy: 7\n"


def written(moment: datetime, style: str) -> str:
    units = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
    if style in units:
        return str(int(moment.timestamp()) * units[style])
    return moment.strftime(style)


@st.composite
def sites(draw: st.DrawFn) -> list[tuple[str, str, str, datetime]]:
    """Draw the paths of one site, each with the host, port and time it is of."""
    layout, pattern = draw(
        st.one_of(
            st.tuples(st.sampled_from(NUMBERED_LAYOUTS), st.sampled_from(NUMBERED)),
            st.tuples(st.sampled_from(WORD_LAYOUTS), st.just("")),
        )
    )
    if pattern:
        first = draw(st.integers(1, 60))
        numbers = range(first, first + draw(st.integers(2, 4)))
        hosts = [name.format(number) for name in pattern.split("|") for number in numbers]
    else:
        hosts = ["alpha", "hydra", *draw(st.sets(st.sampled_from(WORDS), max_size=3))]
    port, style = draw(st.sampled_from(PORTS)), draw(st.sampled_from(TIMES))
    ports = [port.format(n) for n in range(draw(st.integers(1, 3)))]
    step = timedelta(seconds=draw(st.sampled_from((10, 3600, 86_400))))
    moments = [START + step * n for n in range(draw(st.integers(1, 3)))]
    return [
        (layout.format(h=host, t=written(moment, style), p=name), host, name, moment)
        for host in dict.fromkeys(hosts)
        for name in ports
        for moment in moments
    ]


@settings(max_examples=300)
@given(sites())
def test_every_path_gives_its_host_port_and_time(
    site: list[tuple[str, str, str, datetime]],
) -> None:
    naming = Naming([path for path, *_ in site], UTC)
    for path, host, port, moment in site:
        told = naming.of(path)
        assert (told.device, told.port) == (host, port), path
        assert told.ts == int(moment.timestamp()) * 1_000_000, path


@settings(max_examples=300)
@given(st.lists(st.sampled_from("a b run1 run2 before after 1 2".split()), min_size=1))
def test_what_nothing_names_is_unknown_and_never_merged(folders: list[str]) -> None:
    paths = sorted({f"{folder}/{n}/ethtool_eth0.txt" for folder in folders for n in "12"})
    naming = Naming(paths, UTC, where="/data")
    devices = [naming.of(path).device for path in paths]
    assert len(set(devices)) == len(paths)
    assert all(device is not None and device.startswith("unknown:/data/") for device in devices)


@given(sites(), st.randoms())
@settings(max_examples=50)
def test_the_order_of_paths_does_not_matter(
    site: list[tuple[str, str, str, datetime]], random: object
) -> None:
    paths = [path for path, *_ in site]
    mixed = [*paths, *paths]
    random.shuffle(mixed)  # type: ignore[attr-defined]
    one, other = infer(paths), infer(mixed)
    assert [one.roles(path) for path in paths] == [other.roles(path) for path in paths]


@pytest.mark.parametrize(
    "path",
    [
        "dmesg_xid.log", "show_interfaces_2.txt", "interface.counters_1", "run1/eth0.log",
        "counters/a/before/infiniband/mlx5_0/ports/1/counters/port_xmit_data", "putty.log",
        "switchdump/20261102_095945/1.txt", "logs/ibdiagnet2/ibdiagnet2.db_csv", "rank5.log",
        "h100/ethtool_eth0.txt", "b200_counters.txt",
    ],
)  # fmt: skip
def test_no_host_is_invented(path: str) -> None:
    assert infer([path]).roles(path).host is None


@pytest.mark.parametrize(
    ("name", "sure"),
    [
        *((name, False) for name in ("s14-torch-watchdog-2.5-2", "torch2", "hosting-5", "nodes-4")),
        *((name, True) for name in ("rack3-tor-2", "tor2", "host-5", "node-4", "computenode-4")),
    ],
)
def test_a_longer_word_that_begins_like_a_kind_is_none(name: str, sure: bool) -> None:
    assert is_surely_a_device(name) is sure


@pytest.mark.parametrize("host", ["node0006", "ip-10-20-3-5", "c3", "a3mega-0-7"])
def test_slurm_puts_the_host_between_job_and_task(host: str) -> None:
    roles = infer([f"slurm/pretrain-109156-{host}-0.log"]).roles(f"slurm/llama-109157-{host}-3.log")
    assert (roles.host, roles.host_source, roles.rank) == (host, "path", None)


def test_numbers_tell_unknown_sources_apart_but_not_rotations() -> None:
    paths = ["typescript.0", "typescript.1", "nic.log", "nic.log.1", "nic.log.2.gz"]
    layout = infer(paths)
    rests = [layout.roles(path).rest for path in paths]
    assert len(set(rests[:2])) == 2 and len(set(rests[2:])) == 1


def test_files_of_one_copied_tree_are_one_sample() -> None:
    tree = "{}/sys/class/infiniband/mlx5_0/ports/1/counters/{}"
    first, later = (int(START.timestamp()) * 1_000_000 + n for n in (0, 70_000_000))
    modified = {
        tree.format("a", "symbol_error"): first,
        tree.format("a", "port_xmit_data"): later,
        tree.format("b", "symbol_error"): later,
    }
    naming = Naming(modified, UTC, modified=modified)
    assert [naming.of(path).ts for path in modified] == [first, first, later]
    assert {naming.of(path).ts_source for path in modified} == {"mtime"}


def test_a_new_file_of_a_known_layout_needs_no_siblings() -> None:
    layout = infer(["c1/20261102_095945/eth0.txt", "c2/20261102_095945/eth0.txt"])
    assert layout.roles("c2/20261103_000000/eth1.txt").host_source == "path"


def test_a_file_in_a_bundle_says_whose_it_is() -> None:
    paths = ["a/dump/x.txt", "a/dump/hostname", "b/dump/x.txt"]
    naming = Naming(paths, UTC, texts={"a/dump/hostname": "leaf01\n"})
    assert (naming.of("a/dump/x.txt").device, naming.of("a/dump/x.txt").device_source) == (
        "leaf01",
        "bundle",
    )
    assert naming.of("b/dump/x.txt").device_source == "unknown"


@pytest.mark.parametrize(
    ("path", "moment"),
    [
        ("2026-11-02/gpu-01/09-59-45.txt", START),
        ("20261102/095945_gpu-01.txt", START),
        ("2026/11/02/gpu-01_09:59:45.log", START),
        ("dt=2026-11-02/hour=09/host=c1/eth0_5945.txt", START),
        ("x_21-11-2026_counters.txt", datetime(2026, 11, 21, tzinfo=UTC)),
        ("x_2026-11-02T15:29:45+05:30.txt", START),
    ],
)
def test_a_time_in_pieces(path: str, moment: datetime) -> None:
    assert time_of_path(tuple(path.split("/")), UTC).ts == int(moment.timestamp()) * 1_000_000


def test_bare_times_are_in_the_zone_given() -> None:
    singapore = timezone(timedelta(hours=8))
    moment = time_of_path(("gpu-01_20261102_175945.txt",), singapore).ts
    assert moment == int(START.timestamp()) * 1_000_000


def test_a_day_that_may_be_two_is_told() -> None:
    naming = Naming(["gpu-01/05-06-2026_eth0.txt"], UTC)
    told = naming.of("gpu-01/05-06-2026_eth0.txt")
    assert told.ts is None and told.doubt is not None and "05-06-2026" in told.doubt


def test_a_pattern_of_the_user_wins() -> None:
    patterns = ["{time}/*-{host}/**"]
    told = Naming(["20261102_095945/x9-foo/gpu-01/eth0.txt"], UTC, patterns=patterns).of(
        "20261102_095945/x9-foo/gpu-01/eth0.txt"
    )
    assert (told.device, told.device_source) == ("foo", "map")


@pytest.mark.parametrize("pattern", ["{node}/**", "leaf/*", "{"])
def test_a_pattern_that_names_nothing_is_refused(pattern: str) -> None:
    with pytest.raises(UserError, match="host-from"):
        compile_pattern(pattern)


def read(folder: Path, store: Path, *patterns: str) -> IngestReport:
    return ingest([folder], Store(store), Options(host_from=patterns))


def rows(store: Path) -> list[tuple[object, ...]]:
    asked = "SELECT device, port, ts, rx_bytes FROM port_samples ORDER BY ALL"
    with open_session(store, asked) as session:
        return session.sql(asked).fetchall()


Site = list[tuple[str, str, str, datetime]]
CONTAINERS = ("tree", "tar", "zip", "tail", "pdsh", "clush")


def put(folder: Path, container: str, site: Site, texts: Sequence[str]) -> None:
    """Write a site as files, as an archive, or as texts that hold the outputs of several hosts."""
    paths = [path.replace(".tar.gz/", "/") for path, *_ in site]
    files = list(zip(paths, texts, strict=True))
    if container == "tar":
        with tarfile.open(folder / "case-4711.tar.gz", "w:gz") as packed:
            for path, text in files:
                member = tarfile.TarInfo(path)
                member.size = len(text)
                packed.addfile(member, io.BytesIO(text.encode()))
    elif container == "zip":
        with zipfile.ZipFile(folder / "case-4711.zip", "w") as zipped:
            for path, text in files:
                zipped.writestr(path, text)
    elif container == "tail":
        joined = "".join(f"==> {path} <==\n{text}\n" for path, text in files)
        (folder / "all.txt").write_text(joined)
    elif container == "tree":
        for path, text in files:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
    else:
        rule = "-" * 15
        for (_, host, port, moment), text in zip(site, texts, strict=True):
            said = f"{rule}\n{host}\n{rule}\n{text}"
            if container == "pdsh":
                said = "".join(f"{host}: {line}\n" for line in text.splitlines())
            with (folder / f"ethtool_{port}_{moment:%Y%m%dT%H%M%SZ}.txt").open("a") as file:
                file.write(said)


@pytest.mark.slow
@settings(max_examples=30, phases=[Phase.explicit, Phase.generate])
@given(drawn=st.lists(st.tuples(st.sampled_from(CONTAINERS), sites()), min_size=10, max_size=10))
def test_every_row_carries_what_its_path_says(
    drawn: list[tuple[str, Site]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Three hundred drawn sites: each row has its host, port and time; no two sources are one."""
    top = tmp_path_factory.mktemp("x")
    expected = []
    for place, (container, drawn_site) in enumerate(drawn):
        site = [entry for entry in drawn_site if not entry[0].endswith(".gz")]
        numbers = range(place * 1000, place * 1000 + len(site))
        (top / str(place)).mkdir()
        put(top / str(place), container, site, [STATS.format(number) for number in numbers])
        expected += [
            (number, (host, port, moment.replace(tzinfo=None)), f"{container} {path}")
            for number, (path, host, port, moment) in zip(numbers, site, strict=True)
        ]
    ingest([top / str(place) for place in range(len(drawn))], Store(top / "s"), Options())
    asked = "SELECT rx_bytes, device, port, ts FROM port_samples"
    with open_session(top / "s", asked) as session:
        rows = session.sql(asked).fetchall()
    found = {number: tuple(told) for number, *told in rows}
    assert len(rows) == len(found) == len(expected)
    wrong = [
        (told, found[number], where) for number, told, where in expected if found[number] != told
    ]
    assert not wrong, wrong[0]


def write(folder: Path, paths: Sequence[str]) -> None:
    for number, path in enumerate(paths):
        file = folder / path.replace(".tar.gz/", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(STATS.format(number), encoding="utf-8")


def test_an_unknown_device_is_told_and_a_pattern_names_it(tmp_path: Path) -> None:
    write(tmp_path / "logs", ["a/ethtool_eth0.txt", "b/ethtool_eth0.txt"])
    report = read(tmp_path / "logs", tmp_path / "s")
    assert len({outcome.unknown_device for outcome in report.unknown_devices}) == 2
    assert all(str(device).startswith("unknown:") for device, *_ in rows(tmp_path / "s"))
    named = read(tmp_path / "logs", tmp_path / "s", "{host}/**")
    assert not named.unknown_devices
    assert [device for device, *_ in rows(tmp_path / "s")] == ["a", "b"]


def test_new_siblings_name_a_file_read_before(tmp_path: Path) -> None:
    write(tmp_path / "logs", ["alpha/eth0.txt"])
    read(tmp_path / "logs", tmp_path / "s")
    write(tmp_path / "logs", ["alpha/eth0.txt", "hydra/eth0.txt"])
    read(tmp_path / "logs", tmp_path / "s")
    assert [device for device, *_ in rows(tmp_path / "s")] == ["alpha", "hydra"]


def test_counters_without_a_port_are_the_files_problem(tmp_path: Path) -> None:
    write(tmp_path / "logs", ["gpu-01/first.txt", "gpu-01/second.txt"])
    report = read(tmp_path / "logs", tmp_path / "s")
    assert len(report.problems) == 2 and "name no port" in str(report.problems[0].problem)
    assert len({port for _, port, *_ in rows(tmp_path / "s")}) == 2


def test_banners_of_clush_and_dshbak_name_the_host(tmp_path: Path) -> None:
    rule = "-" * 15
    blocks = [f"{rule}\n{host}\n{rule}\n{STATS.format(n)}" for n, host in enumerate(("c1", "c2"))]
    (tmp_path / "eth0_20261102_095945.out").write_text("".join(blocks), encoding="utf-8")
    report = read(tmp_path / "eth0_20261102_095945.out", tmp_path / "s")
    moment = START.replace(tzinfo=None)
    assert rows(tmp_path / "s") == [("c1", "eth0", moment, 0), ("c2", "eth0", moment, 1)]
    assert not report.unknown_devices


def test_members_of_an_archive_of_no_name_are_not_one_device(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "case-4711.zip", "w") as zipped:
        for number, folder in enumerate("ab"):
            zipped.writestr(f"counters/{folder}/ethtool_eth0.txt", STATS.format(number))
    read(tmp_path / "case-4711.zip", tmp_path / "s")
    assert len({device for device, *_ in rows(tmp_path / "s")}) == 2


def test_a_stamp_above_an_output_is_in_the_zone_given(tmp_path: Path) -> None:
    (tmp_path / "gpu-01").mkdir()
    (tmp_path / "gpu-01" / "eth0.log").write_text(f"# 20261102-175945\n{STATS.format(1)}")
    options = Options(zone="Asia/Singapore")
    ingest([tmp_path / "gpu-01"], Store(tmp_path / "s"), options)
    assert rows(tmp_path / "s") == [("gpu-01", "eth0", START.replace(tzinfo=None), 1)]


def sources(store: Path) -> set[tuple[str, str]]:
    with open_session(store, "port_samples files") as session:
        return set(
            session.sql(
                "SELECT p.device, f.device_source FROM port_samples p JOIN files f USING (file_id)"
            ).fetchall()
        )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hosts.csv", "ip,hostname\n10.20.3.1,gpu-a\n10.20.3.2,gpu-b\n"),
        ("inventory.ini", "[gpu]\ngpu-a ansible_host=10.20.3.1\ngpu-b ansible_host=10.20.3.2\n"),
        ("etc/hosts", "127.0.0.1 localhost\n10.20.3.1 gpu-a gpu-a.mgmt\n10.20.3.2 gpu-b\n"),
        ("map.yml", "hosts:\n- {host: gpu-a, alias: 10.20.3.1}\n- host: gpu-b\n  alias: 10.20.3.2"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("archive", [False, True])
def test_an_address_in_a_path_is_the_host_that_a_map_beside_it_says(
    name: str, text: str, archive: bool, tmp_path: Path
) -> None:
    folder = tmp_path / "logs"
    write(folder, ["10.20.3.1/ethtool_eth0.txt", "10.20.3.2/ethtool_eth0.txt"])
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    if archive:
        with zipfile.ZipFile(tmp_path / "case.zip", "w") as zipped:
            for file in sorted(folder.rglob("*.*")) + sorted(folder.rglob("hosts")):
                zipped.write(file, file.relative_to(folder))
        folder = tmp_path / "case.zip"
    read(folder, tmp_path / "s")
    assert sources(tmp_path / "s") == {("gpu-a", "map"), ("gpu-b", "map")}


def test_a_map_that_comes_later_names_what_was_read_before(tmp_path: Path) -> None:
    folder, store = tmp_path / "logs", tmp_path / "s"
    write(folder, ["10.20.3.1/ethtool_eth0.txt", "10.20.3.2/ethtool_eth0.txt"])
    read(folder, store)
    (folder / "hosts").write_text("10.20.3.1 gpu-a\n10.20.3.2 gpu-b\n10.20.3.2 gpu-c\n")
    read(folder, store)
    # An address that two hosts have names neither.
    assert sources(store) == {("gpu-a", "map"), ("10.20.3.2", "path")}


def test_an_address_that_lines_state_goes_by_its_host_in_the_views(tmp_path: Path) -> None:
    metric = "node_network_receive_bytes_total"
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "query.json").write_text(
        '{"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"'
        f'{metric}","device":"eth0","instance":"10.20.3.1:9100"}},"value":[1793613585,"7"]}}]}}}}'
    )
    nccl = "gpu-a:1:1 [0] NCCL INFO Bootstrap : Using eth0:10.20.3.1<0>\n"
    (tmp_path / "logs" / "nccl.log").write_text(nccl)
    read(tmp_path / "logs", tmp_path / "s")
    with open_session(tmp_path / "s", "named_samples") as session:
        found = session.sql("SELECT device, port, rx_bytes FROM named_samples").fetchall()
    assert found == [("gpu-a", "eth0", 7)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("rank3.jsonl", '{"step": 1, "rank": 3, "step_time_ms": 7.5}\n'),
        ("rank3.jsonl", '{"step": 1, "rank": 3, "host": null, "step_time_ms": 7.5}\n'),
        ("rank3.csv", "step,rank,host,step_time_ms\n1,3,,7.5\n"),
    ],
)
def test_a_record_is_of_the_host_that_its_path_names(name: str, text: str, tmp_path: Path) -> None:
    for host in ("gpu-01", "gpu-02"):
        (tmp_path / "logs" / host).mkdir(parents=True)
        (tmp_path / "logs" / host / name).write_text(text)
    read(tmp_path / "logs", tmp_path / "s")
    with open_session(tmp_path / "s", "steps") as session:
        found = session.sql("SELECT host, rank, step_time_ms FROM steps ORDER BY ALL").fetchall()
    assert found == [("gpu-01", 3, 7.5), ("gpu-02", 3, 7.5)]


def test_records_of_counters_are_of_the_time_that_their_path_tells(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for minute, text in ((10, ""), (20, "2026-11-02T10:30:00Z")):
        (folder / f"leaf07_20261102T10{minute}00Z.csv").write_text(
            f"device,port,timestamp,rx_bytes\nleaf07,Ethernet0,{text},{minute}\n"
        )
    read(folder, tmp_path / "s")
    with open_session(tmp_path / "s", "port_samples") as session:
        found = session.sql(
            "SELECT strftime(ts, '%H:%M'), ts_source, rx_bytes FROM port_samples ORDER BY rx_bytes"
        ).fetchall()
    assert found == [("10:10", "filename", 10), ("10:30", "inline", 20)]


@pytest.mark.parametrize(
    ("path", "host"),
    [
        ("slurm/moe-109157-rack3-n05-3.log", "rack3-n05"),
        ("node_a3mega-0-5.log", "a3mega-0-5"),
        ("host=h100-2024-05/train.log", "h100-2024-05"),
        ("pods/train_llama-7b-0_00014d99-1111-4222-8333-000000000000/pytorch/0.log", "llama-7b-0"),
        (f"containers/llama-7b-0_train_pytorch-{'0a' * 32}.log", "llama-7b-0"),
        ("ip-10-20-3-5/train.log", "ip-10-20-3-5"),
        # A count of ranks and one of nodes, and the job's number; an experiment.
        ("alps/job-n-00016-N-0004-146865.out", None),
        ("runs/llama-7b-lr3/train.log", None),
    ],
)
def test_the_host_of_a_log_is_one_that_its_path_surely_names(path: str, host: str | None) -> None:
    siblings = [path, path.replace("0-5", "0-6").replace("n05", "n06")]
    assert Naming(siblings, UTC).of(path).of_log.device == host


def test_a_time_of_copying_is_told_and_dates_no_finding(tmp_path: Path) -> None:
    table = (
        "    IFACE    STATE    RX_OK\n---------  -------  -------\nEthernet0        U      410\n"
    )
    files = {f"logs/leaf01/20260302_09{minute:02}00_counters.txt": table for minute in (0, 2)}
    for host in range(1, 5):
        port = f"logs/gpu-{host:02}/sys/class/infiniband/mlx5_0/ports/1"
        files[f"{port}/rate"] = "200 Gb/sec (4X HDR)\n" if host == 3 else "400 Gb/sec (4X NDR)\n"
        files[f"{port}/state"] = "4: ACTIVE\n"
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    store = str(tmp_path / "store")
    told = CliRunner().invoke(app, ["ingest", str(tmp_path / "logs"), "--store", store])
    assert "8 files without a time: that of the last change is taken" in told.output
    assert "outside the times of all others (2026-03-02 09:00:00 to 2026-03-02 09:02:00)" in (
        told.output
    )
    result = CliRunner().invoke(app, ["diagnose", "--store", store, "--format", "json"])
    (finding,) = [f for f in json.loads(result.stdout)["findings"] if f["kind"] == "degraded_link"]
    assert finding["start"] is None
    assert "When it began is not known" in finding["explanation"]


# Files whose inside names no host, in a folder that is the host's: what it says, and its table.
UNNAMED = {
    "gpu_query.csv": (
        "gpu_samples",
        "timestamp, index, clocks.sm [MHz], utilization.gpu [%]\n"
        "2026/03/02 09:00:00.000, 0, {} MHz, 99 %\n",
    ),
    "nvidia-smi_q.txt": (
        "gpu_samples",
        "==============NVSMI LOG==============\n\nTimestamp : Mon Mar  2 09:00:00 2026\n"
        "Attached GPUs : 1\nGPU 00000000:1B:00.0\n    Clocks\n        SM : {} MHz\n",
    ),
    "train.log": ("steps", "step 7 | loss 0.25 | time: {}.0s | lr: 0.1\n"),
}
# Names of which only the first are surely hosts by their looks.
FOLDER_NAMES = ("gpu-{:02}", "x1000c0s{}b0n0", "r{}n", "q{}")


@st.composite
def folders_of_hosts(draw: st.DrawFn) -> tuple[dict[str, str], str]:
    """Draw the folders of a site by host, and the file that lies in each."""
    file = draw(st.sampled_from(sorted(UNNAMED)))
    words = draw(st.booleans())
    many = draw(st.integers(1, 4))
    pattern = draw(st.sampled_from(FOLDER_NAMES))
    hosts = ["alpha", "hydra", "beta", "crux"] if words else [pattern.format(n) for n in range(4)]
    # A log in a folder that no word of the path calls a host's may be that of an experiment.
    outer = ["hosts/", "run7/nodes/", "site/servers/"]
    if file != "train.log" and not (words and many == 1):
        outer += ["", "collected/"]
    above = draw(st.sampled_from(outer))
    return {host: f"{above}{host}/{file}" for host in hosts[:many]}, file


@settings(max_examples=20, deadline=None)
@given(folders_of_hosts())
def test_a_file_that_names_no_host_is_of_the_host_of_its_folder(
    site: tuple[dict[str, str], str],
) -> None:
    paths, file = site
    table, text = UNNAMED[file]
    with tempfile.TemporaryDirectory() as folder:
        for number, path in enumerate(paths.values()):
            place = Path(folder, "logs", path)
            place.parent.mkdir(parents=True)
            # Two hosts may say the very same.
            place.write_text(text.format(1700 + number // 2))
        ingest([Path(folder, "logs")], Store(Path(folder, "store")), Options())
        parts = [pq.read_table(part) for part in Path(folder, "store").rglob(f"{table}*.parquet")]
        found = [host for part in parts for host in part["host"].to_pylist()]
    assert {*found} == {*paths}
    assert len({found.count(host) for host in found}) == 1


@pytest.mark.parametrize(
    "path",
    [
        "hosts/rack3/gpu_query.csv", "switches/show_interfaces.txt", "nodes/run1/gpu_query.csv",
        "hosts/logs/gpu_query.csv", "exp/alpha/gpu_query.csv",
    ],
)  # fmt: skip
def test_a_folder_of_hosts_makes_no_host_of_what_is_none(path: str) -> None:
    assert infer([path]).roles(path).host is None


def test_the_name_that_looks_most_like_a_host_wins_below_a_folder_of_hosts() -> None:
    paths = [
        f"nodes/{group}/gpu-{n:02}/gpu_query.csv" for group in ("alpha", "beta") for n in (1, 2)
    ]
    layout = infer(paths)
    assert [layout.roles(path).host for path in paths] == ["gpu-01", "gpu-02"] * 2


@given(
    devices=st.lists(
        st.sampled_from(["leafA", "leafB", "spineX", "edge-west", "torblue", "corered"]),
        min_size=2,
        unique=True,
    ),
    folder=st.sampled_from(["inventory", "lldp", "2026-03-19", "audit", "wiring"]),
    has_polls=st.booleans(),
)
def test_files_named_after_switches_are_theirs_below_any_folder(
    devices: list[str], folder: str, has_polls: bool
) -> None:
    """A word that names the folder is no switch, if it is none elsewhere."""
    asked = {f"switches/{folder}/{name}_lldp_neighbors.txt": name for name in devices}
    polls = [f"switches/2026-03-19T123{n}Z/{name}/pfc.json" for n in range(3) for name in devices]
    layout = infer([*asked, *(polls if has_polls else [])])
    if has_polls or folder not in {"audit", "wiring"}:
        assert {path: layout.roles(path).host for path in asked} == asked
