"""The charts of findings: each kind is drawn from the rows that show it, and names its culprit."""

import random
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import altair as alt
import pytest
from report_case import START, Row, big_store, finding, make_store
from sweeps import write_sweep

from fabricobs.content_check import check_content
from fabricobs.diagnosis.findings import Diagnosis, Entity, Finding, Power, Question, Verdict
from fabricobs.diagnosis.model import load_models
from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.report.charts.answers import ANSWERS
from fabricobs.report.charts.bars import bars
from fabricobs.report.charts.catalogue import CHARTS, chart_of
from fabricobs.report.charts.drawing import time_axis
from fabricobs.report.charts.source import Source
from fabricobs.report.charts.svg import draw_svg, marks
from fabricobs.report.charts.timeline import step_timeline
from fabricobs.report.charts.topology import draw_topology
from fabricobs.report.charts.uplinks import _labels
from fabricobs.report.figures import draw_figures, save_figures
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session

HOSTS = ("node1", "node2", "node3", "node4")


def at(minute: int) -> datetime:
    return START + timedelta(minutes=minute)


def cables() -> list[Row]:
    """Two leaves with two hosts each, and a spine above them."""
    rows = []
    for number, host in enumerate(HOSTS):
        leaf = f"leaf{number // 2 + 1}"
        rows.append((leaf, f"Ethernet{number}", host, "mlx5_0"))
    rows += [(f"leaf{n}", "Ethernet64", "spine1", f"Ethernet{n}") for n in (1, 2)]
    names = ("device", "port", "remote_device", "remote_port")
    return [dict(zip(names, row, strict=True)) for row in rows]


def trained() -> list[Row]:
    return [
        {"step": step, "rank": rank, "host": host, "step_time_ms": 1e3, "ts": at(step)}
        for step in range(10)
        for rank, host in enumerate(HOSTS)
    ]


def rule(table: str, counter: str) -> Row:
    return {
        **{"format": "f", "table_name": table, "counter": counter},
        **{"width": 64, "overflow": "wrap", "kind": "counter"},
    }


def pauses() -> list[Row]:
    """node1 pauses its leaf, which pauses the spine, which pauses the other leaf and its hosts."""
    told = [("leaf1", "Ethernet0", 0, 9000), ("leaf1", "Ethernet64", 4000, 0)]
    told += [("leaf2", "Ethernet64", 0, 3000), ("leaf2", "Ethernet2", 2000, 0)]
    told += [("leaf2", "Ethernet3", 10, 0)]
    return [
        {
            **{"ts": at(minute), "device": device, "port": port, "format": "f", "priority": 3},
            **{"pfc_tx_frames": 60 * sent * minute, "pfc_rx_frames": 60 * received * minute},
        }
        for minute in range(8)
        for device, port, sent, received in told
    ]


def errors() -> list[Row]:
    """The host's end of a cable counts errors from minute 4 on, the switch's end none."""
    names = [("leaf1", "Ethernet0", 0), ("node1", "mlx5_0", 500)]
    return [
        {
            **{"ts": at(minute), "device": device, "port": port, "format": "f"},
            **{"rx_errors": many * max(0, minute - 4), "rx_bytes": minute * 10**10},
        }
        for minute in range(10)
        for device, port, many in names
    ]


def settings() -> list[Row]:
    return [
        {"host": host, "name": "NCCL_IB_TC", "value": "0" if host == "node2" else "106"}
        for host in HOSTS
    ]


def hanging() -> list[Row]:
    """All ranks have launched call 7 but rank 2, which ended call 6."""
    return [
        {
            **{
                "global_rank": rank,
                "rank": rank,
                "nranks": 4,
                "comm_name": "dp",
                "op": "AllReduce",
            },
            **{"seq": seq, "state": "completed" if seq < 7 else "started"},
        }
        for rank in range(4)
        for seq in range(5, 8)
        if not (rank == 2 and seq == 7)
    ]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Source]:
    store = make_store(
        tmp_path_factory.mktemp("charts") / "store",
        steps=trained(),
        links=cables(),
        port_samples=errors(),
        priority_samples=pauses(),
        nccl_env=settings(),
        collectives=hanging(),
        counter_info=[
            rule("port_samples", "rx_errors"),
            rule("port_samples", "rx_bytes"),
            rule("priority_samples", "pfc_tx_frames"),
            rule("priority_samples", "pfc_rx_frames"),
        ],
    )
    with open_session(store, keep=True) as connection:
        yield Source(connection)


def of(kind: str, query: str, *entities: Entity, **rest: Any) -> Finding:
    given = {"start": at(1), "end": at(9), "severity": "high", "confidence": 0.5, **rest}
    return Finding(kind, entities, title=kind, explanation="", query=query, **given)


def drawn(chart: alt.LayerChart) -> tuple[str, list[Row]]:
    """Title and all rows of a chart."""
    spec = chart.to_dict()
    return spec["title"]["text"], [row for rows in spec["datasets"].values() for row in rows]


def test_every_chart_a_model_names_is_there() -> None:
    for model in load_models().values():
        assert set(model.charts) <= CHARTS.keys(), model.name
        assert model.charts, model.name


def test_a_model_that_names_an_unknown_chart_is_unsound(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    text = Path("models/straggler.toml").read_text(encoding="utf-8")
    text = text.replace('charts = ["rank_compute"]', 'charts = ["rank_computer"]')
    (tmp_path / "models" / "straggler.toml").write_text(text, encoding="utf-8")
    mistakes = list(check_content((tmp_path,)))
    assert any("no 'rank_computer'; one of" in mistake for mistake in mistakes)


def test_a_storm_is_drawn_as_the_tree_of_its_pauses(source: Source) -> None:
    storm = of("pfc_storm", "pause_sources", Entity("nic", host="node1", nic="mlx5_0"))
    chosen = chart_of(source, storm)
    assert chosen is not None
    name, chart = chosen
    title, rows = drawn(chart)
    assert name == "pause_tree"
    assert "from node1 on" in title
    columns = {row["name"]: row["column"] for row in rows if "column" in row}
    assert columns == {"node1": 0, "leaf1": 1, "spine1": 2, "leaf2": 3, "node3": 4}
    marks = {row["name"]: row["series"] for row in rows if "column" in row}
    assert marks["node1"] == "culprit"
    assert marks["node3"] == "victim"
    assert any(row.get("text") == "9,000/s" for row in rows)


def test_without_a_culprit_the_tree_begins_where_pauses_begin(source: Source) -> None:
    chart = CHARTS["pause_tree"](source, of("pfc_storm", "", start=None, end=None))
    assert chart is not None
    assert "from node1 on" in drawn(chart)[0]


def test_a_sick_link_shows_both_ends(source: Source) -> None:
    link = of("link_errors", "ports_with_rising_errors", Entity("nic", host="node1", nic="mlx5_0"))
    chosen = chart_of(source, link)
    assert chosen is not None
    name, chart = chosen
    _, rows = drawn(chart)
    assert name == "link_ends"
    words = {row["label"]: row["peak"] for row in rows if "peak" in row}
    assert words["node1 mlx5_0 (culprit): receive errors"] == "peak 8.333 /s"
    assert "leaf1 Ethernet0: received" in words
    bars = [row for row in rows if row.get("lane") == "node1 mlx5_0: receive errors"]
    assert min(bar["ts_before"] for bar in bars) == "2026-03-02T09:04:00.000Z"


def test_what_only_stands_out_is_called_no_culprit(source: Source) -> None:
    odd = of("outlier", "slowest_ranks", Entity("nic", host="node1", nic="mlx5_0"), severity="info")
    chosen = chart_of(source, odd)
    assert chosen is not None
    labels = [row["label"] for row in drawn(chosen[1])[1] if "peak" in row]
    assert not any("culprit" in label for label in labels)


def test_full_queues_are_drawn_for_the_accused_switch(source: Source) -> None:
    full = of("congestion", "nics_that_receive_more", Entity("switch", switch="leaf1"))
    chosen = chart_of(source, full)
    assert chosen is not None
    name, chart = chosen
    words = {row["label"]: row["peak"] for row in drawn(chart)[1] if "peak" in row}
    assert name == "queue_signals"
    assert words["leaf1 (culprit): pauses received"] == "peak 9,000 /s"
    assert words["leaf1 (culprit): pauses sent"] == "peak 4,000 /s"


def test_the_host_that_is_set_otherwise_stands_apart(source: Source) -> None:
    odd = of("config_mismatch", "what_nccl_chose", Entity("host", host="node2"))
    chosen = chart_of(source, odd)
    assert chosen is not None
    name, chart = chosen
    assert name == "settings_compared"
    cells = {(r["host"], r["fact"]): r["label"] for r in drawn(chart)[1]}
    assert cells == {("node2", "NCCL_IB_TC"): "≠ 0", ("3 other hosts", "NCCL_IB_TC"): "106"}


def test_a_hang_shows_who_is_behind(source: Source) -> None:
    hang = of("hang", "hang_progress", Entity("rank", rank=2, host="node3"))
    chosen = chart_of(source, hang)
    assert chosen is not None
    name, chart = chosen
    assert name == "hang_progress"
    rows = {row["first_rank"]: row for row in drawn(chart)[1]}
    assert {first: row["launched"] for first, row in rows.items()} == {0: 7, 2: 6, 3: 7}
    assert rows[0]["ranks"] == 2
    assert rows[2]["label"] == "rank 2 on node3"


@pytest.mark.parametrize(
    ("seconds", "last", "words"),
    [(6, 15.0, "6 s"), (3600, 24.0, "60 min"), (0.1, 9.5, "0 s"), (36_000, 24.0, "10 h")],
)
def test_the_steps_are_followed_by_the_time_in_which_a_job_stands_still(
    source: Source, seconds: float, last: float, words: str
) -> None:
    hang = of(
        "hang", "hang_progress", start_step=10, end_step=10, after_step=9,
        end=at(1) + timedelta(seconds=seconds),
    )  # fmt: skip
    chart = step_timeline(source, (), [hang])
    assert chart is not None
    span = next(row for row in drawn(chart)[1] if "stands" in row)
    assert (span["first"], span["last"], span["stands"]) == (9, last, f"no step for {words}")
    (axis,) = {str(layer["encoding"]["x"].get("scale")) for layer in marks(chart.to_dict())
               if "domain" in str(layer["encoding"]["x"].get("scale"))}  # fmt: skip
    assert f"'domain': [0, {last}]" in axis


@pytest.mark.parametrize("bad", ["host", "nic", "switch"])
def test_a_sweep_shows_the_runs_with_the_slow_part_apart(tmp_path: Path, bad: str) -> None:
    name = write_sweep(tmp_path / "logs", 147, bad, runs=16, hosts=8, effect=0.15)
    ingest([tmp_path / "logs"], Store(tmp_path / "store"), Options())
    part = Entity(bad, **{bad: name})
    with open_session(tmp_path / "store", keep=True) as connection:
        chosen = chart_of(Source(connection), of("slow_part", "acceptance", part, start=None))
    assert chosen is not None
    assert chosen[0] == "runs_with_part"
    title, rows = drawn(chosen[1])
    assert name in title
    runs = [row for row in rows if "place" in row]
    assert sorted(row["place"] for row in runs) == list(range(1, len(runs) + 1))
    own, others = ([r["share"] for r in runs if r["own"] is has] for has in (True, False))
    assert own and others
    assert median(own) < 0.9 * median(others)


def test_a_finding_without_data_for_its_charts_has_none(tmp_path: Path) -> None:
    with open_session(make_store(tmp_path / "store"), keep=True) as connection:
        empty = Source(connection)
        for name, draw in CHARTS.items():
            assert draw(empty, of("straggler", "slowest_ranks")) is None, name
        assert draw_topology(empty, []) is None


def test_the_topology_marks_culprits_and_victims(source: Source) -> None:
    victims = (Entity("host", host="node3"), Entity("switch", switch="leaf2"))
    culprits = (Entity("nic", host="node1", nic="mlx5_0"),)
    culprits += (Entity("port", switch="leaf1", port="Ethernet0"),)
    storm = of("pfc_storm", "pause_sources", *culprits, related=victims)
    only_odd = of("outlier", "", Entity("host", host="node4"), severity="info")
    fabric = draw_topology(source, [storm, only_odd])
    assert fabric is not None
    _, rows = drawn(fabric.chart)
    labels = {row["name"]: row["label"] for row in rows if "column" in row}
    assert labels == {
        **{"node1": "node1 (culprit)", "node2": "node2", "node3": "node3 (victim)"},
        **{"node4": "node4", "leaf1": "leaf1", "leaf2": "leaf2 (on the path)", "spine1": "spine1"},
    }
    (cable,) = (r for r in rows if r.get("series") == "culprit" and "x2" in r)
    assert cable["name"] == "node1 - leaf1"
    assert {part.name: part.role for part in fabric.marked} == {
        "leaf2": "on the path of finding 1",
        "node1": "culprit of finding 1",
        "node3": "victim of finding 1",
    }
    assert fabric.marked[1].neighbours == ("leaf1",)


def test_a_cable_between_switches_accuses_their_ports(source: Source) -> None:
    ends = (Entity("port", switch="leaf1", port="Ethernet64"),)
    ends += (Entity("port", switch="spine1", port="Ethernet1"),)
    fabric = draw_topology(source, [of("link_errors", "ports_with_rising_errors", *ends)])
    assert fabric is not None
    assert {part.name: part.role for part in fabric.marked} == {
        "spine1": "culprit port of finding 1",
        "leaf1": "culprit port of finding 1",
    }


def test_a_big_fabric_is_drawn_in_groups_and_leaves_nothing_out(tmp_path: Path) -> None:
    culprit = finding("straggler", Entity("rank", rank=9, host="node1"))
    with open_session(big_store(tmp_path / "store"), keep=True) as connection:
        fabric = draw_topology(Source(connection), [culprit])
    assert fabric is not None
    _, rows = drawn(fabric.chart)
    labels = {row["label"] for row in rows if "column" in row}
    assert sorted(label for label in labels if "host" in label) == ["63 hosts", "64 hosts"]
    assert "node1 (culprit)" in labels
    assert "32 spines" in labels
    assert len(labels) < 24


def test_figures_are_saved_as_pictures(source: Source, tmp_path: Path) -> None:
    store = make_store(tmp_path / "store", steps=trained(), links=cables())
    figures = draw_figures(Diagnosis(Verdict("", (), True), ()), store)
    written, failures = save_figures(figures, tmp_path / "charts")
    assert not failures
    assert [path.name for path in written] == [
        *("step-time.png", "step-time.svg", "topology.png", "topology.svg")
    ]
    for path in written[::2]:
        assert path.read_bytes().startswith(b"\x89PNG")
    for path in written[1::2]:
        text = path.read_text(encoding="utf-8")
        assert text.startswith("<svg")
        assert "var(" not in text
        assert "currentColor" not in text


@pytest.mark.parametrize("key", ["sick_link", "congested"])
def test_an_answer_names_its_worst_part_and_what_would_have_shown(source: Source, key: str) -> None:
    power = Power(2.0, "errors per 10^12 bits", "a port that receives {}", 60)
    asked = Question("", "ok", "", would_show=(power,))
    chart = ANSWERS[key](source, asked)
    assert chart is not None
    (caption,) = chart.to_dict()["title"]["subtitle"]
    assert "The most: " in caption
    assert f"The dashed line: {power.words} would have shown." in caption
    limits = [m for m in marks(chart.to_dict()) if m["mark"]["type"] == "rule"]
    assert len(limits) == 1


def test_an_answer_without_data_has_no_chart(source: Source) -> None:
    asked = Question("", "unknown", "")
    assert ANSWERS["choice"](source, asked) is None
    assert ANSWERS["gpudirect"](source, asked) is None


@pytest.mark.parametrize("seed", range(12))
def test_a_name_stands_above_its_own_line_and_above_no_other_name(seed: int) -> None:
    draw = random.Random(seed)
    links = draw.randrange(1, 7)
    shares = [draw.choice((0.05, 0.1, 0.2)) + draw.uniform(0, 0.02) for _ in range(links)]
    moment = "2026-03-02T09:00:00"
    points = [
        {"port": f"Ethernet{8 * n}", "share": share, "moment": moment}
        for n, share in enumerate(shares)
    ]
    of_port = {point["port"]: point["share"] for point in points}
    for name in _labels(points, [], time_axis([moment]))[:1]:
        rows = name.data["values"]
        least = 14 / 240 * max(shares)
        assert sum(row["name"].count("Ethernet") for row in rows) >= len(rows) > 0
        for row, lower in zip(rows, [*rows[1:], None], strict=True):
            assert row["at"] == of_port[row["name"].split(",")[0].split(" and ")[0]]
            if lower:
                assert row["at"] - lower["at"] >= least
        tops = [row["at"] for row in rows]
        for share in shares:
            assert min(top - share for top in tops if top >= share) < 6 * 1.25 * least


def test_no_number_of_an_axis_is_larger_than_what_is_drawn() -> None:
    rows = [{"part": "IB, NCCL 2.30.3", "value": 128, "text": "128 ranks on 16 hosts"}]
    chart = bars(rows, [], "ranks", "Network that ranks use", "")
    svg = draw_svg(chart.to_dict(), "c").svg["wide"]
    numbers = [int(text) for text in re.findall(r">(\d+)</text>", svg)]
    assert max(numbers) in range(64, 129)


def test_the_line_of_the_start_is_drawn_below_the_names_of_lanes(source: Source) -> None:
    link = of("link_errors", "ports_with_rising_errors", Entity("nic", host="node1", nic="mlx5_0"))
    chart = CHARTS["link_ends"](source, replace(link, start=at(3)))
    assert chart is not None
    layers = chart.to_dict()["layer"]
    (start,) = (n for n, each in enumerate(layers) if each["mark"].get("strokeDash"))
    words = [each["mark"].get("style") for each in layers if each["encoding"].get("text")]
    assert words == [None, "halo", None, "halo", None]
    assert "text" not in str([each["encoding"] for each in layers[: start + 1]])
