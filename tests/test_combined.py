"""Outputs of several hosts combined in one text: each row is its host's."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import Run
from fabricobs.formats.combined import combination_of
from fabricobs.ingestion import ingest
from fabricobs.inputs import IngestReport, Options
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session

pytestmark = pytest.mark.slow

HOSTS = ("gpu-01", "node0007", "c3", "a3mega-0-5", "10.20.3.4", "LEAF-2", "h100-2024-05")
Outputs = dict[str, dict[str, list[str]]]  # by host and port, the lines of `ethtool -S`


def output(number: int) -> list[str]:
    return ["NIC statistics:", f"     rx_bytes_phy: {number}", "     tx_bytes_phy: 7"]


def interleaved(outputs: Outputs, between: str) -> str:
    """Write the host before each line; writers take turns, each keeps its order."""
    (port,) = {port for ports in outputs.values() for port in ports}
    queues = {host: list(ports[port]) for host, ports in outputs.items()}
    lines = []
    turns = random.Random(len(outputs))
    while left := [host for host, queue in queues.items() if queue]:
        host = turns.choice(left)
        lines.append(f"{host}{between}{queues[host].pop(0)}")
    return "\n".join(lines) + "\n"


def command(port: str) -> str:
    return f"ethtool -S {port}"


def nornir(outputs: Outputs) -> str:
    told = {h: {command(p): "\n".join(x) for p, x in some.items()} for h, some in outputs.items()}
    return json.dumps(told, indent=2)


def records(outputs: Outputs) -> str:
    return "\n".join(
        json.dumps({"host": host, "command": command(port), command(port): "\n".join(lines)})
        for host, some in outputs.items()
        for port, lines in some.items()
    )


def ansible_log(outputs: Outputs) -> str:
    text = "\nTASK [counters] ****\n"
    for host, some in outputs.items():
        for port, lines in some.items():
            said = {"stdout": "\n".join([f"# {command(port)}", *lines])}
            said["stdout_lines"] = [[f"# {command(port)}", *lines]]  # type: ignore[assignment]
            text += f"ok: [{host}] => {json.dumps(said, indent=4)}\n"
    return text + "\nPLAY RECAP ****\n"


def ansible_json(outputs: Outputs) -> str:
    hosts = {
        host: {"stdout_lines": [line for p, x in some.items() for line in (f"# {command(p)}", *x)]}
        for host, some in outputs.items()
    }
    return json.dumps({"plays": [{"tasks": [{"task": {"name": "counters"}, "hosts": hosts}]}]})


def tail(outputs: Outputs) -> str:
    return "".join(
        f"==> ./collected/{host}/ethtool_{port}.txt <==\n" + "\n".join(lines) + "\n\n"
        for host, some in outputs.items()
        for port, lines in some.items()
    )


# By the name of the file that holds them: how they are combined, and of how many ports.
WAYS: dict[str, tuple[Callable[[Outputs], str], int]] = {
    "pdsh_ethtool_eth0.txt": (lambda outputs: interleaved(outputs, ": "), 1),
    "parallel/eth0.out": (lambda outputs: interleaved(outputs, "\t"), 1),
    "nornir.json": (nornir, 2),
    "answers.jsonl": (records, 2),
    "ansible.log": (ansible_log, 2),
    "ansible.json": (ansible_json, 2),
    "all.txt": (tail, 2),
}


def read(folder: Path, store: Path) -> tuple[IngestReport, list[tuple[object, ...]]]:
    report = ingest([folder], Store(store), Options())
    asked = "SELECT device, port, rx_bytes FROM port_samples ORDER BY ALL"
    with open_session(store, asked) as session:
        return report, session.sql(asked).fetchall()


@pytest.mark.parametrize("name", WAYS)
@settings(max_examples=6)
@given(hosts=st.lists(st.sampled_from(HOSTS), min_size=2, max_size=4, unique=True))
def test_each_row_is_its_hosts(
    name: str, hosts: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    way, ports = WAYS[name]
    outputs = {
        host: {f"eth{port}": output(100 * place + port) for port in range(ports)}
        for place, host in enumerate(hosts)
    }
    folder = tmp_path_factory.mktemp("x")
    path = folder / "logs" / name
    path.parent.mkdir(parents=True)
    path.write_text(way(outputs), encoding="utf-8")
    report, rows = read(folder / "logs", folder / "s")
    assert rows == sorted(
        (host, f"eth{port}", 100 * place + port)
        for place, host in enumerate(hosts)
        for port in range(ports)
    )
    assert not report.problems and not report.unknown_devices


def test_values_below_headings_of_their_paths_are_a_sysfs_tree(tmp_path: Path) -> None:
    tree = "/sys/class/infiniband/mlx5_0/ports/1"
    for host, number in (("gpu-01", 25), ("gpu-02", 50)):
        path = tmp_path / "logs" / host / "counters.txt"
        path.parent.mkdir(parents=True)
        values = {"counters/port_xmit_data": number, "hw_counters/np_cnp_sent": 3}
        text = "".join(f"==> {tree}/{key} <==\n{value}\n\n" for key, value in values.items())
        path.write_text(text, encoding="utf-8")
    ingest([tmp_path / "logs"], Store(tmp_path / "s"), Options())
    with open_session(tmp_path / "s", "port_samples") as session:
        rows = session.sql(
            "SELECT device, port, max(tx_bytes), max(np_cnp_sent), count(DISTINCT ts) "
            "FROM port_samples GROUP BY ALL ORDER BY ALL"
        ).fetchall()
    assert rows == [("gpu-01", "mlx5_0/1", 100, 3, 1), ("gpu-02", "mlx5_0/1", 200, 3, 1)]


def test_parts_of_no_name_are_not_one_device(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    text = "".join(
        f"==> {folder}/eth0.txt <==\n" + "\n".join(output(number)) + "\n"
        for number, folder in enumerate("ab")
    )
    (tmp_path / "logs" / "x.txt").write_text(text, encoding="utf-8")
    _, rows = read(tmp_path / "logs", tmp_path / "s")
    assert len({device for device, *_ in rows}) == 2


def test_parts_are_accounted_for_and_the_same_again_changes_nothing(
    fabricobs: Run, tmp_path: Path
) -> None:
    (tmp_path / "logs").mkdir()
    text = interleaved({host: {"eth0": output(5)} for host in HOSTS}, ": ")
    (tmp_path / "logs" / "eth0.txt").write_text(text, encoding="utf-8")
    for _ in range(2):
        result = fabricobs("ingest", tmp_path / "logs", "--store", tmp_path / "s")
        assert result.returncode == 0, result.stderr
    sql = (
        "SELECT sum(lines), sum(parsed) + sum(ignored), count(DISTINCT device) FROM files "
        "WHERE lines > 0"
    )
    told = fabricobs("sql", sql, "--store", tmp_path / "s", "--format", "csv")
    lines = text.count("\n")
    assert told.stdout.splitlines()[1] == f"{lines},{lines},{len(HOSTS)}"


@pytest.mark.parametrize(
    "text",
    [
        "==> a <==\n",  # one heading combines nothing
        '{"a": "one line", "b": "two"}',
        '{"text": "several\\nlines\\nof prose"}',
        "INFO: a\nINFO: b\nINFO: c\n",
    ],
)
def test_what_combines_no_outputs_is_left_alone(text: str) -> None:
    assert combination_of(text, (), lambda text: "statistics" in text) is None


def test_colours_hide_no_counter_of_an_export(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    text = "host,device,port,rx_bytes\ngpu-01,mlx5_0,1,25\n".replace("\n", "\x1b[0m\x1b[K\n")
    (tmp_path / "logs" / "x.csv").write_text(text, encoding="utf-8")
    _, rows = read(tmp_path / "logs", tmp_path / "s")
    assert rows == [("gpu-01", "mlx5_0/1", 25)]
