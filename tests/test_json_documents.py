"""JSON documents: records by their paths, what is above them, and nothing that no path names."""

import json
from pathlib import Path
from typing import Any

import pytest

from fabricobs.formats.recognition.catalogue import load_catalogue
from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session
from fabricobs.store.tables import TABLES

SECRET = "hunter2-do-not-tell"
DEFINITION = load_catalogue().formats["nccl_tests_json"].definition


def document(*, indent: int | None = 1) -> str:
    """Write what nccl-tests -J write, a secret in its environment."""
    half = {"time": 10.5, "alg_bw": 1.0, "bus_bw": 2.0, "nwrong": 0}
    result = {"count": 4, "type": "float", "redop": "sum", "root": "    -1"}
    return json.dumps(
        {
            "version": "2.17.9",
            "start_time": "2026-04-05 06:07:08",
            "args": ["./all_reduce_perf", "-J", "x"],
            "env": [
                "PATH=/bin",
                f"DB_URL=postgres://u:{SECRET}@h/db",
                f"SITE_TOKEN={SECRET}",
                "A=b",
            ],
            "nccl_version": 22704,
            "config": {"aggregated_iterations": 1, "devices": [{"rank": 0, "pid": 5}]},
            "results": [
                {"size": 16 << n, **result, "out_of_place": half, "in_place": half}
                for n in range(4)
            ],
        },
        indent=indent,
    )


def told(path: Path, store: Path) -> dict[str, list[tuple[Any, ...]]]:
    ingest([path], Store(store), Options())
    with open_session(store, " ".join(TABLES)) as session:
        return {name: session.sql(f"SELECT * FROM {name}").fetchall() for name in TABLES}


@pytest.mark.parametrize("indent", [None, 1])
def test_a_secret_of_the_environment_never_reaches_the_store(tmp_path: Path, indent: int) -> None:
    (tmp_path / "out.json").write_text(document(indent=indent))
    rows = told(tmp_path / "out.json", tmp_path / "store")
    assert len(rows["benchmarks"]) == 4
    assert SECRET not in repr(rows)


@pytest.mark.slow
def test_nor_does_one_of_a_file_that_breaks_off(tmp_path: Path) -> None:
    text = document()
    kept = set()
    for number, cut in enumerate(range(text.index('"env"'), len(text) - 1, 97)):
        path = tmp_path / f"{number}.json"
        path.write_text(text[:cut])
        rows = told(path, tmp_path / f"store{number}")
        assert SECRET not in repr(rows), text[:cut][-80:]
        kept.add(len(rows["benchmarks"]))
    assert len(kept) > 2


def test_a_file_that_breaks_off_is_accounted_for(tmp_path: Path) -> None:
    (tmp_path / "out.json").write_text(document()[:-60])
    ingest([tmp_path / "out.json"], Store(tmp_path / "store"), Options())
    with open_session(tmp_path / "store", " ".join(TABLES)) as session:
        ((lines, parsed, ignored, unparsed),) = session.sql(
            "SELECT lines, parsed, ignored, unparsed FROM files"
        ).fetchall()
        ((reason, text),) = session.sql("SELECT reason, text FROM unparsed").fetchall()
    assert (lines, ignored, unparsed) == (parsed + 1, 0, 1)
    assert "breaks off" in reason
    assert text == ""


def test_the_environment_is_named_nowhere() -> None:
    named = [key for block in DEFINITION.block for key in block.columns]
    assert not [key for key in named if "env" in key]


def test_outputs_of_several_commands_stand_in_one_capture(tmp_path: Path) -> None:
    (tmp_path / "leaf21.log").write_text(
        "leaf21#show clock\n10:15:02.000 UTC Tue Mar 04 2025\n"
        "leaf21#show interfaces counters | json\n"
        '{"interfaces": {"Ethernet1": {"inOctets": 5}}}\n'
        "leaf21#show priority-flow-control counters | json\n"
        '{"interfaceCounters": {"Ethernet1": {"rxFrames": 7, "txFrames": "much"}}}\n'
        "leaf21#show weather\nnobody knows\n"
    )
    ingest([tmp_path / "leaf21.log"], Store(tmp_path / "store"), Options())
    with open_session(tmp_path / "store", " ".join(TABLES)) as session:
        samples = session.sql("SELECT device, port, rx_bytes, hour(ts) FROM port_samples")
        assert samples.fetchall() == [("leaf21", "Ethernet1", 5, 10)]
        pfc = session.sql("SELECT device, pfc_rx_frames, pfc_tx_frames FROM priority_samples")
        assert pfc.fetchall() == [("leaf21", 7, None)]
        reasons = session.sql("SELECT line, text FROM unparsed ORDER BY line").fetchall()
    assert reasons == [(6, ""), (8, "nobody knows")]


@pytest.mark.parametrize(
    "text",
    [
        '{"interfaces": {"Ethernet1": {"inOctets": 5, "outOctets":',
        '{"interfaces": ' + '{"interfaces": ' * 900 + '{"inOctets": 1}' + "}" * 901,
        '{"interfaces": {"Ethernet1": [{"inOctets": 5}], "Ethernet2": "inOctets", "inOctets": {}}}',
        '[{"interfaces": {"Ethernet1": {"inOctets": 1e400, "outOctets": -1e30}}}]\n{}\n[]\n',
    ],
)
def test_an_odd_document_is_accounted_for(tmp_path: Path, text: str) -> None:
    (tmp_path / "odd.json").write_text(text)
    ingest([tmp_path / "odd.json"], Store(tmp_path / "store"), Options())
    with open_session(tmp_path / "store", " ".join(TABLES)) as session:
        ((lines, summed, problem),) = session.sql(
            "SELECT lines, parsed + ignored + unparsed, problem FROM files"
        ).fetchall()
    assert lines == summed == max(text.count("\n"), 1)
    assert problem is None
