"""Lists of hosts and their ranks are read as a host map, and nothing else is taken for one."""

from pathlib import Path
from typing import Any

import pytest

from fabricobs.formats.context import Context
from fabricobs.formats.reading import read_file
from fabricobs.formats.recognition.catalogue import load_catalogue
from fabricobs.formats.rows import Rows
from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session

CATALOGUE = load_catalogue()


def read(text: str, folder: Path) -> list[tuple[Any, ...]]:
    path = folder / "hosts.txt"
    path.write_text(text)
    rows = Rows()
    recognised = CATALOGUE.recognise(text.encode(), str(path))
    assert recognised.names == ("rank_hosts",)
    read_file(path, recognised, Context("f"), rows, lambda: None)
    parts = [part for table, part in rows.drain() if table == "host_map"]
    names = ("host", "first_rank", "last_rank")
    return [tuple(row[name] for name in names) for part in parts for row in part.to_pylist()]


@pytest.mark.parametrize(
    "line",
    [
        "{host} slots={n}",
        "{host}  slots = {n} max_slots={n}",
        "{host} slots={n} # spare",
        "{host} rack=R01 ranks={first}-{last}",
        "{host}: ranks [{first}-{last}]",
        "{host} ranks {first}-{last}",
        "ranks {first}-{last}: {host}",
        "ranks={first}-{last} -> {host}",
        "{first}-{last} {host}",
        "{first}-{last}: {host}",
        "{host} {first}-{last}",
        "{host}, {first}-{last}",
    ],
)
@pytest.mark.parametrize("remark", ["", "# by the scheduler\n\n"])
def test_each_host_gets_its_ranks(line: str, remark: str, tmp_path: Path) -> None:
    sizes = {"gpu-a07": 8, "b2.dc.example": 4, "node_3": 8}
    expected = []
    first = 0
    for host, size in sizes.items():
        expected.append((host, first, first + size - 1))
        first += size
    lines = [line.format(host=h, n=b - a + 1, first=a, last=b) for h, a, b in expected]
    assert read(remark + "\n".join(lines) + "\n", tmp_path) == expected


@pytest.mark.parametrize(
    "text",
    [
        "gpu-a07: rank 3 finished step 9\ngpu-a07: rank 4 finished step 9\n",
        "rank 0: started\nrank 1: started\n",
        "train rank 0 step 3 loss 2.1\ntrain rank 1 step 3 loss 2.1\n",
        "ranks 0-7: step 3\nranks 8-15: step 3\n",
        "8-15 trn-002\n16-23 trn-003\n",
        "slots=8\n",
        "0-7 cores of gpu-a07\n8-15 cores of gpu-a07\n",
    ],
)
def test_what_is_no_such_list(text: str) -> None:
    assert "rank_hosts" not in CATALOGUE.recognise(text.encode(), "/logs/hosts.txt").names


def test_a_hostfile_names_the_hosts_of_records_without_one(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "hostfile").write_text("gpu-a07 slots=2\ngpu-a08 slots=2\n")
    for rank in range(4):
        lines = [f'{{"step": {n}, "rank": {rank}, "step_ms": 5}}\n' for n in range(3)]
        (logs / f"rank_{rank}.jsonl").write_text("".join(lines))
    ingest([logs], Store(tmp_path / "store"), Options(job="j"))
    connection = open_session(tmp_path / "store")
    told = connection.execute("SELECT rank, host FROM job_ranks ORDER BY rank").fetchall()
    connection.close()
    assert told == [(0, "gpu-a07"), (1, "gpu-a07"), (2, "gpu-a08"), (3, "gpu-a08")]
