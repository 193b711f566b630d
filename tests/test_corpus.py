"""Facts taken by hand from real logs; skipped where the corpus is not there."""

import csv
from pathlib import Path

import pytest

from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session

pytestmark = pytest.mark.slow


def asker(inputs: list[Path], store: Path):
    ingest(inputs, Store(store), Options())
    session = open_session(store, keep=True)
    return lambda statement: session.sql(statement).fetchall()


class TestZhejiang:
    """Per-port CSV of a production leaf: increments, not totals."""

    def test_every_row_of_every_file_is_read(self, corpus: Path, tmp_path: Path) -> None:
        ask = asker([corpus / "zhejiang"], tmp_path / "s")
        files = sorted((corpus / "zhejiang").rglob("*.csv"))
        expected = []
        for path in files:
            with path.open(encoding="utf-8", newline="") as file:
                rows = list(csv.DictReader(file))
            expected.append(
                (str(path.resolve()), len(rows), sum(int(row["OutOctets"]) for row in rows))
            )
        got = ask(
            "SELECT path, count(*), sum(tx_bytes)::BIGINT FROM port_samples "
            "JOIN files USING (file_id) GROUP BY path ORDER BY path"
        )
        assert [(str(Path(p).resolve()), n, total) for p, n, total in got] == expected
        assert sum(n for _, n, _ in expected) == 7248

    def test_increments_are_not_subtracted_again(self, corpus: Path, tmp_path: Path) -> None:
        ask = asker([corpus / "zhejiang"], tmp_path / "s")
        assert ask(
            "SELECT rx_bytes, tx_bytes FROM port_rates "
            "WHERE port = 'FourHundredGigE1/0/33' ORDER BY ts LIMIT 1"
        ) == [(158750454, 162555574)]
        assert ask("SELECT DISTINCT device FROM port_samples") == [
            ("NH-DC-NM129-B03-ROCE-Leaf-1.GPU.S9825",)
        ]


def test_nccl_2_14_inside_a_trainers_output(corpus: Path, tmp_path: Path) -> None:
    ask = asker(sorted((corpus / "nccl").glob("v23*")), tmp_path / "s")
    assert ask("SELECT list(DISTINCT nic ORDER BY nic) FROM nccl_nics") == [
        (["mlx5_2", "mlx5_3", "mlx5_8", "mlx5_9"],)
    ]
    assert ask("SELECT value FROM nccl_env WHERE name = 'NCCL_NET_GDR_LEVEL' LIMIT 1") == [("PHB",)]
    assert ask("SELECT max(nranks), any_value(version) FROM ranks") == [(32, "2.14.3+cuda11.7")]


def test_hugging_face_lines_between_progress_bars(corpus: Path, tmp_path: Path) -> None:
    log = corpus / "steps" / "zhejiang_llama2_32gpu" / "llama2-7b-new-5b-2b1ef-master.log"
    ask = asker([log], tmp_path / "s")
    assert ask("SELECT min(step), max(step), any_value(total_steps) FROM steps") == [
        (1, 2436, 2436)
    ]
    assert ask("SELECT loss FROM steps WHERE step = 1 AND ts IS NOT NULL") == [(1.1465,)]
    assert ask("SELECT count(DISTINCT step) FROM steps WHERE ts IS NOT NULL") == [(2436,)]
    # Step 2001 waited for a checkpoint.
    ((usual,),) = ask("SELECT median(step_time_ms) FROM step_times")
    ((slow,),) = ask("SELECT step_time_ms FROM step_times WHERE step = 2001")
    assert usual == pytest.approx(45_800, rel=0.01)
    assert slow == pytest.approx(79_800, rel=0.01)


def test_a_copied_sysfs_tree(corpus: Path, tmp_path: Path) -> None:
    tree = corpus / "switch" / "host" / "sysfs_h100_nodeA"
    ask = asker([tree], tmp_path / "s")
    words = int((tree / "mlx5_4/ports/1/counters/port_rcv_data").read_text())
    assert ask("SELECT max(rx_bytes) FROM port_samples WHERE port = 'mlx5_4/1'") == [(4 * words,)]
    assert ask("SELECT DISTINCT speed_gbps FROM port_status WHERE speed_gbps IS NOT NULL") == [
        (400.0,)
    ]
    assert ask(
        "SELECT width, overflow FROM counter_info WHERE counter = 'link_downed' "
        "AND table_name = 'port_samples'"
    ) == [(8, "saturate")]


def test_sonic_tables(corpus: Path, tmp_path: Path) -> None:
    sonic = corpus / "switch" / "sonic"
    ask = asker(
        [
            sonic / name
            for name in (
                "show_interfaces_counters.realtraffic.txt",
                "show_pfc_counters.txt",
                "show_queue_counters_port.txt",
                "show_interfaces_status.txt",
                "show_lldp_table.txt",
            )
        ],
        tmp_path / "s",
    )
    assert ask("SELECT rx_packets, rx_discards FROM port_samples WHERE port = 'Ethernet0'") == [
        (471_729_839_997, 18_682)
    ]
    assert ask(
        "SELECT pfc_rx_frames, pfc_tx_frames FROM priority_samples "
        "WHERE port = 'Ethernet8' AND priority = 3"
    ) == [(803, 813)]
    assert ask(
        "SELECT tx_packets, drop_bytes FROM priority_samples "
        "WHERE port = 'Ethernet8' AND queue = 'UC9'"
    ) == [(80, 61)]
    assert ask("SELECT speed_gbps, oper, alias FROM port_status WHERE port = 'Ethernet112'") == [
        (40.0, "up", "etp29")
    ]
    assert ask("SELECT count(*) FROM links WHERE remote_device = 'dummy'") == [(2,)]


def test_megatron_with_one_line_timers(corpus: Path, tmp_path: Path) -> None:
    ask = asker([corpus / "steps" / "megatron_v2_perf_n16-1999618.out"], tmp_path / "s")
    assert ask("SELECT count(*), min(step_time_ms) > 0 FROM steps") == [(4, True)]
    assert ask("SELECT step_time_ms FROM steps WHERE step = 1") == [(150891.7,)]
    assert ask("SELECT duration_ms FROM phases WHERE step = 1 AND phase = 'forward-compute'") == [
        (29733.63,)
    ]


@pytest.mark.parametrize("folder", ["nccl", "steps", "switch", "zhejiang"])
def test_no_file_of_the_corpus_is_too_much(corpus: Path, tmp_path: Path, folder: str) -> None:
    ask = asker([corpus / folder], tmp_path / "s")
    assert ask("SELECT count(*) FROM files WHERE lines <> parsed + ignored + unparsed") == [(0,)]
