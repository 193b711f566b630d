"""`rdma -j` tells what `rdma` tells: the same rows from the same counters, however written."""

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fabricobs.formats.recognition.catalogue import load_catalogue
from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session

(BLOCK,) = load_catalogue().formats["rdma_statistic_json"].definition.block
COUNTERS = sorted({column: name for name, column in BLOCK.columns.items()}.values())
PORTS = st.tuples(
    st.sampled_from(("mlx5_0", "mlx5_bond_0", "rdmap0s6", "ionic_3")), st.integers(1, 4)
)
COUNTED = st.dictionaries(st.sampled_from(COUNTERS), st.integers(0, 2**63 - 1), min_size=2)


def rows(name: str, text: str, select: str) -> list[tuple[Any, ...]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "gpu-a07", name)
        path.parent.mkdir()
        path.write_text(text)
        ingest([path.parent], Store(Path(folder, "store")), Options())
        with open_session(Path(folder, "store"), f"{select} files") as session:
            found = session.sql(f"{select} ORDER BY ALL").fetchall()
            assert session.sql("SELECT sum(unparsed) FROM files").fetchall() == [(0,)]
    return found


@settings(max_examples=15)
@given(st.dictionaries(PORTS, COUNTED, min_size=1, max_size=4), st.sampled_from((None, 4)))
def test_counters_are_those_of_the_text(
    ports: dict[tuple[str, int], dict[str, int]], indent: int | None
) -> None:
    records = [{"ifname": nic, "port": port, **counted} for (nic, port), counted in ports.items()]
    lines = [
        f"link {nic}/{port} " + " ".join(f"{name} {n}" for name, n in counted.items()) + " "
        for (nic, port), counted in ports.items()
    ]
    select = "SELECT * EXCLUDE (file_id, line, format) FROM port_samples"
    told = rows("rdma_statistic-1741083302.json", json.dumps(records, indent=indent), select)
    assert told == rows("rdma_statistic-1741083302.txt", "\n".join(lines) + "\n", select)
    assert len(told) == len(ports)


@settings(max_examples=10)
@given(
    st.dictionaries(PORTS, st.sampled_from(("ACTIVE", "DOWN")), min_size=1, max_size=4),
    st.sampled_from((None, 4)),
)
def test_links_are_those_of_the_text(ports: dict[tuple[str, int], str], indent: int | None) -> None:
    records = [
        {"ifindex": n, "ifname": nic, "port": port, "state": state, "physical_state": "LINK_UP",
         "netdev": f"ens{n}f0", "netdev_index": n}
        for n, ((nic, port), state) in enumerate(ports.items())
    ]  # fmt: skip
    lines = [
        f"link {r['ifname']}/{r['port']} state {r['state']} physical_state LINK_UP netdev "
        f"{r['netdev']} netdev_index {r['netdev_index']}"
        for r in records
    ]
    select = "SELECT * EXCLUDE (file_id, line, format) FROM port_status"
    told = rows("rdma_link-1741083302.json", json.dumps(records, indent=indent), select)
    assert told == rows("rdma_link-1741083302.txt", "\n".join(lines) + "\n", select)
    assert len(told) == len(ports)
