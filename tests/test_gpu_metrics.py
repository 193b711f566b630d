"""Clocks of GPUs in every shape in which a site has DCGM's metrics, and what is said of them."""

import csv
import io
import json
import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

import fabricobs
from conftest import Rows
from fabricobs.diagnosis.run import diagnose
from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.store.parts import Store

pytestmark = pytest.mark.slow

START = datetime(2026, 3, 3, 8, 11, tzinfo=UTC)
# A series: name, labels, and the values at the times of all.
Series = tuple[str, dict[str, str], list[float]]


class Site:
    """GPUs of some hosts, one of which gets hot in the middle."""

    def __init__(self, seed: int) -> None:
        draw = np.random.default_rng([seed, 9400])
        self.hosts = [
            f"pod{int(draw.integers(1, 9))}-gpu{i:02d}" for i in range(int(draw.integers(1, 4)))
        ]
        self.times = [START + timedelta(seconds=30 * i) for i in range(int(draw.integers(8, 20)))]
        self.hot = (self.hosts[int(draw.integers(len(self.hosts)))], int(draw.integers(8)))
        self.clock = int(draw.choice([1320, 1410, 1110]))
        reasons = str(
            draw.choice(["DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "DCGM_FI_DEV_CLOCKS_EVENT_REASONS"])
        )
        begin = int(draw.integers(2, len(self.times) - 4))
        self.series: list[Series] = []
        for host in self.hosts:
            for gpu in range(8):
                labels = {"gpu": str(gpu), "UUID": f"GPU-{host}-{gpu}", "modelName": "NVIDIA H100"}
                labels |= {"Hostname": host, "instance": f"{host}:9400"}
                hot = [(host, gpu) == self.hot and i >= begin for i in range(len(self.times))]
                for name, cool, warm in (
                    ("DCGM_FI_DEV_SM_CLOCK", 1755.0, float(self.clock)),
                    ("DCGM_FI_DEV_GPU_TEMP", 64.0, 89.0),
                    ("DCGM_FI_DEV_POWER_USAGE", 640.5, 410.25),
                    ("DCGM_FI_DEV_GPU_UTIL", 99.0, 99.0),
                    (reasons, 0.0, 64.0),
                ):
                    self.series.append((name, labels, [warm if is_hot else cool for is_hot in hot]))

    def by_name(self) -> dict[str, list[Series]]:
        """Return the series of each metric."""
        names = dict.fromkeys(name for name, *_ in self.series)
        return {name: [each for each in self.series if each[0] == name] for name in names}


def scrapes(site: Site) -> Iterator[tuple[str, str]]:
    for place, time in enumerate(site.times):
        lines = []
        for name, labels, values in site.series:
            told = ",".join(f'{key}="{value}"' for key, value in labels.items())
            lines.append(f"{name}{{{told}}} {values[place]:g}")
        yield f"dcgm-{int(time.timestamp())}.prom", "\n".join(lines) + "\n"


def results(site: Site, series: list[Series]) -> list[dict[str, object]]:
    return [
        {
            "metric": {"__name__": name, **labels},
            "values": [
                [t.timestamp(), f"{v:.3f}"] for t, v in zip(site.times, values, strict=True)
            ],
        }
        for name, labels, values in series
    ]


def answer_by_metric(site: Site) -> Iterator[tuple[str, str]]:
    for name, series in site.by_name().items():
        data = {"resultType": "matrix", "result": results(site, series)}
        yield f"{name}.json", json.dumps({"status": "success", "data": data})


def answer_of_all(site: Site) -> Iterator[tuple[str, str]]:
    data = {"resultType": "matrix", "result": results(site, site.series)}
    yield "gpus.json", json.dumps({"status": "success", "data": data}, indent=1)


def promtool(site: Site) -> Iterator[tuple[str, str]]:
    for name, series in site.by_name().items():
        lines = []
        for _, labels, values in series:
            told = ", ".join(f'{key}="{value}"' for key, value in labels.items())
            lines.append(f"{name}{{{told}}} =>")
            points = zip(site.times, values, strict=True)
            lines += [f"{value} @[{int(time.timestamp())}]" for time, value in points]
        yield f"{name}.txt", "\n".join(lines) + "\n"


def promtool_json(site: Site) -> Iterator[tuple[str, str]]:
    yield "gpus.json", json.dumps(results(site, site.series))


def victoria_export(site: Site) -> Iterator[tuple[str, str]]:
    lines = [
        json.dumps(
            {
                "metric": {"__name__": name, **labels},
                "values": values,
                "timestamps": [int(t.timestamp() * 1000) for t in site.times],
            }
        )
        for name, labels, values in site.series
    ]
    yield "export.jsonl", "\n".join(lines) + "\n"


def grafana_series(site: Site) -> Iterator[tuple[str, str]]:
    units = {
        "DCGM_FI_DEV_SM_CLOCK": " MHz",
        "DCGM_FI_DEV_GPU_TEMP": " °C",
        "DCGM_FI_DEV_POWER_USAGE": " W",
    }
    for name, series in site.by_name().items():
        named = []
        for _, labels, _ in series:
            told = ", ".join(f'{key}="{value}"' for key, value in labels.items())
            named.append(f"{name}{{{told}}}")
        rows = [
            [
                f"{t:%Y-%m-%d %H:%M:%S}",
                *(f"{values[i]:g}{units.get(name, '')}" for *_, values in series),
            ]
            for i, t in enumerate(site.times)
        ]
        yield f"{name}-data.csv", _csv([["Time", *named], *rows])


def grafana_table(site: Site) -> Iterator[tuple[str, str]]:
    rows = [
        [str(int(t.timestamp() * 1000)), name, *labels.values(), f"{values[i]:g}"]
        for name, labels, values in site.series
        for i, t in enumerate(site.times)
    ]
    yield "table.csv", _csv([["Time", "__name__", *site.series[0][1], "Value"], *rows])


def own_table(site: Site) -> Iterator[tuple[str, str]]:
    names = list(site.by_name())
    by_gpu: dict[tuple[str, str], dict[str, list[float]]] = {}
    for name, labels, values in site.series:
        by_gpu.setdefault((labels["Hostname"], labels["gpu"]), {})[name] = values
    rows = [
        [f"{t:%Y-%m-%dT%H:%M:%SZ}", *gpu, *(f"{values[name][i]:g}" for name in names)]
        for i, t in enumerate(site.times)
        for gpu, values in by_gpu.items()
    ]
    yield "gpus.csv", _csv([["timestamp", "host", "gpu", *names], *rows])


def amd_rows(site: Site) -> Iterator[tuple[str, datetime, list[tuple[int, dict[str, float]]]]]:
    """Clock, heat, power, use and PROCHOT of each GPU of a host at each moment."""
    keys = ("clk", "hotspot", "power", "busy", "prochot")
    for host in site.hosts:
        for i, time in enumerate(site.times):
            by_gpu: dict[int, list[float]] = {}
            for _, labels, values in site.series:
                if labels["Hostname"] == host:
                    by_gpu.setdefault(int(labels["gpu"]), []).append(values[i])
            told = [(gpu, dict(zip(keys, all_, strict=True))) for gpu, all_ in by_gpu.items()]
            yield host, time, told


def amd_text(site: Site) -> Iterator[tuple[str, str]]:
    for host, time, gpus in amd_rows(site):
        lines = []
        for gpu, at in gpus:
            hot = "ACTIVE" if at["prochot"] else "NOT ACTIVE"
            lines += [
                f"GPU: {gpu}", "    USAGE:", f"        GFX_ACTIVITY: {at['busy']:.0f} %",
                "    POWER:", f"        SOCKET_POWER: {at['power']:.0f} W",
                "        THROTTLE_STATUS: N/A", "    CLOCK:", "        GFX_0:",
                f"            CLK: {at['clk']:.0f} MHz", "            MAX_CLK: 2100 MHz",
                "        VCLK_0:", "            CLK: 29 MHz", "    TEMPERATURE:",
                f"        HOTSPOT: {at['hotspot']:.0f} °C", "    THROTTLE:",
                f"        PROCHOT_VIOLATION_STATUS: {hot}",
                "        PPT_VIOLATION_STATUS: NOT ACTIVE", "",
            ]  # fmt: skip
        yield f"{host}/amd_smi_{time:%Y%m%dT%H%M%SZ}.txt", "\n".join(lines)


def amd_csv(site: Site) -> Iterator[tuple[str, str]]:
    head = "timestamp,gpu,gfx_activity,socket_power,throttle_status,gfx_0_clk,gfx_0_max_clk"
    names = [*head.split(","), "hotspot", "ppt_violation_status", "prochot_violation_status"]
    rows: dict[str, list[list[str]]] = {host: [names] for host in site.hosts}
    for host, time, gpus in amd_rows(site):
        rows[host] += [
            [
                f"{time.timestamp():.0f}", str(gpu), f"{at['busy']:.0f}", f"{at['power']:.0f}",
                "N/A", f"{at['clk']:.0f}", "2100", f"{at['hotspot']:.0f}", "NOT ACTIVE",
                "ACTIVE" if at["prochot"] else "NOT ACTIVE",
            ]
            for gpu, at in gpus
        ]  # fmt: skip
    for host, table in rows.items():
        yield f"{host}/amd_smi.csv", _csv(table)


def amd_json(site: Site) -> Iterator[tuple[str, str]]:
    for host, time, gpus in amd_rows(site):
        told = [
            {
                "gpu": gpu,
                "usage": {"gfx_activity": {"value": int(at["busy"]), "unit": "%"}},
                "power": {"socket_power": {"value": int(at["power"]), "unit": "W"}},
                "clock": {"gfx_0": {"clk": {"value": int(at["clk"]), "unit": "MHz"}}},
                "temperature": {"edge": "N/A", "hotspot": {"value": int(at["hotspot"])}},
                "throttle": {
                    "prochot_violation_status": "ACTIVE" if at["prochot"] else "NOT ACTIVE"
                },
            }
            for gpu, at in gpus
        ]
        yield f"{host}/amd_smi_{time:%Y%m%dT%H%M%SZ}.json", json.dumps({"gpu_data": told})


def rocm_json(site: Site) -> Iterator[tuple[str, str]]:
    """Draw the keys of a release and their order; an edge is cooler than the junction."""
    draw = random.Random(site.hosts[0])
    for host, time, gpus in amd_rows(site):
        told: dict[str, dict[str, str]] = {}
        for gpu, at in gpus:
            older = draw.random() < 0.5
            keys = {
                "Temperature (Sensor edge) (C)": "64.0",
                "Temperature (Sensor junction) (C)": f"{at['hotspot']:.1f}",
                "GPU use (%)": f"{at['busy']:.0f}",
                "sclk clock speed:": f"({at['clk']:.0f}Mhz)",
                "sclk clock level:": "1",
                f"{'Average' if older else 'Current Socket'} Graphics Package Power (W)": (
                    f"{at['power']:.1f}"
                ),
                "indep_throttle_status": str(1 << draw.choice([44, 47]) if at["prochot"] else 0),
                "throttle_status": "4294967295",
            }
            if not older:
                keys["current_gfxclk (MHz)"] = f"{at['clk']:.0f}"
            names = draw.sample([*keys], len(keys))
            told[f"card{gpu}"] = {name: keys[name] for name in names}
        cards = draw.sample([*told], len(told))
        record = {card: told[card] for card in cards} | {"system": {"Driver version": "6.2.4"}}
        yield f"{host}/rocm_smi_{time:%Y%m%dT%H%M%SZ}.json", json.dumps(record)


def _csv(rows: list[list[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


SHAPES = [
    scrapes, answer_by_metric, answer_of_all, promtool, promtool_json, victoria_export,
    grafana_series, grafana_table, own_table, amd_text, amd_csv, amd_json,
    rocm_json,
]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
@pytest.mark.parametrize("seed", range(2))
def test_a_hot_gpu_is_named_whatever_its_metrics_are_exported_as(
    tmp_path: Path, shape: Callable[[Site], Iterator[tuple[str, str]]], seed: int
) -> None:
    site = Site(seed)
    logs = tmp_path / "logs"
    logs.mkdir()
    for name, text in shape(site):
        (logs / name).parent.mkdir(exist_ok=True)
        (logs / name).write_text(text)
    report = ingest([logs], Store(tmp_path / "store"), Options())
    assert not report.problems
    store = fabricobs.open(tmp_path / "store")
    clocks = store.query("gpu_clocks").to_arrow_table().to_pylist()
    assert len(clocks) == 8 * len(site.hosts)
    assert {(row["host"], row["gpu"]): row["celsius"] for row in clocks if row["celsius"] > 64} == {
        site.hot: 89.0
    }
    assert {row["lowest_mhz"] for row in clocks} == {1755.0, site.clock}
    assert all(row["samples"] == len(site.times) for row in clocks)
    (finding,) = diagnose(tmp_path / "store").findings
    assert finding.kind == "gpu_throttle"
    host, gpu = site.hot
    assert finding.title.startswith(f"GPU {gpu} of {host} runs at {site.clock} MHz")
    assert "its temperature" in finding.title


def states(hosts: dict[str, tuple[str, float, float | None]], told: int | None) -> Rows:
    """Twenty rounds of 8 GPUs a host: its model, clock and utilization."""
    return {
        "gpu_samples": [
            {
                "file_id": "g",
                "host": host,
                "gpu": gpu,
                "model": model,
                "ts": (START + timedelta(seconds=30 * i)).replace(tzinfo=None),
                "sm_clock_mhz": clock,
                "utilization_percent": busy,
                "throttle_reasons": told,
            }
            for host, (model, clock, busy) in hosts.items()
            for gpu in range(8)
            for i in range(20)
        ]
    }


def ranks(hosts: list[str]) -> Rows:
    return {
        "nccl_ranks": [
            {"file_id": "n", "line": 8 * at + gpu, "comm_id": "0x1", "host": host, "pid": 100 + gpu,
             "rank": 8 * at + gpu, "nranks": 8 * len(hosts), "cuda_device": gpu}
            for at, host in enumerate(hosts)
            for gpu in range(8)
        ]
    }  # fmt: skip


@pytest.mark.parametrize("case", ["another model", "not of the job", "idle"])
def test_a_gpu_that_is_not_comparable_is_not_accused(
    make_store: Callable[[Rows], Path], case: str
) -> None:
    """A site's metrics are of all its GPUs: of other models, of other jobs, and of idle ones."""
    jobs = ["a1", "a2"]
    sound = ("H100", 1755.0, 99.0)
    other = {
        "another model": {"b1": ("A100", 1410.0, 99.0)},
        "not of the job": {"b1": ("H100", 1200.0, None)},
        "idle": {"b1": ("H100", 345.0, 0.0)},
    }[case]
    rows = states({**dict.fromkeys(jobs, sound), **other}, None)
    named = [*jobs, "b1"] if case == "another model" else jobs
    diagnosis = diagnose(make_store({**rows, **ranks(named)}))
    assert not [f for f in diagnosis.findings if f.kind == "gpu_throttle"]


@pytest.mark.parametrize("busy", [99.0, None])
def test_a_low_clock_alone_accuses_only_a_busy_gpu(
    make_store: Callable[[Rows], Path], busy: float | None
) -> None:
    """Without reasons and utilization a GPU with a low clock may be idle."""
    sound = ("H100", 1755.0, busy)
    rows = states({"a1": sound, "a2": sound}, None)
    for row in rows["gpu_samples"]:
        if (row["host"], row["gpu"]) == ("a2", 5):
            row["sm_clock_mhz"] = 1200.0
    found = [f for f in diagnose(make_store(rows)).findings if f.kind == "gpu_throttle"]
    assert len(found) == (busy is not None)


# What each GPU of a fleet tells of its PCIe link: generation and lanes, now and at most.
SOUND = {"pcie_gen": 5, "pcie_gen_max": 5, "pcie_width": 16, "pcie_width_max": 16}
IDLE = {**SOUND, "pcie_gen": 1}


def links(hosts: int, limited: dict[tuple[int, int], dict[str, int]], busy: float) -> Rows:
    """Five samples of 8 GPUs a host, of which some have another link."""
    return {
        "gpu_samples": [
            {
                "file_id": "g",
                "host": f"a{host}",
                "gpu": gpu,
                "bus_id": f"00000000:{0x18 + gpu:02X}:00.0",
                "model": "H200",
                "ts": (START + timedelta(seconds=30 * i)).replace(tzinfo=None),
                "utilization_percent": busy,
                **limited.get((host, gpu), SOUND if busy else IDLE),
            }
            for host in range(hosts)
            for gpu in range(8)
            for i in range(5)
        ]
    }


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "limit", [{"pcie_width": 8}, {"pcie_gen": 1}, {"pcie_gen": 4, "pcie_width": 4}]
)
def test_a_gpu_whose_link_trained_down_under_load_is_named(
    make_store: Callable[[Rows], Path], limit: dict[str, int], seed: int
) -> None:
    draw = np.random.default_rng([seed, 16])
    hosts = int(draw.integers(1, 5))
    place = (int(draw.integers(hosts)), int(draw.integers(8)))
    store = make_store(links(hosts, {place: {**SOUND, **limit}}, busy=99.0))
    (finding,) = diagnose(store).findings
    assert finding.kind == "degraded_link"
    slot = f"0000:{0x18 + place[1]:02x}:00.0"
    assert finding.title == f"PCIe device {slot} of a{place[0]} trained below what it can do"


@pytest.mark.parametrize("case", ["idle", "all alike", "at its best once"])
def test_a_link_that_is_low_for_a_reason_is_not_accused(
    make_store: Callable[[Rows], Path], case: str
) -> None:
    """An idle GPU lowers its link; slots of half the lanes are how a fleet is built."""
    narrow = {**SOUND, "pcie_width": 8}
    every = {(host, gpu): narrow for host in range(2) for gpu in range(8)}
    rows = {
        "idle": links(2, {(0, 3): {**IDLE, "pcie_width": 8}}, busy=0.0),
        "all alike": links(2, every, busy=99.0),
        "at its best once": links(2, {(0, 3): narrow}, busy=99.0),
    }[case]
    if case == "at its best once":
        rows["gpu_samples"][3 * 5]["pcie_width"] = 16
    assert not diagnose(make_store(rows)).findings


@pytest.mark.parametrize(
    ("told", "severity", "words"),
    [
        ({"faults": 1}, "medium", "reports values that cannot be read"),
        ({"faults": 2}, "info", "reports a row of its memory that waits for a reset"),
        ({"faults": 4}, "medium", "reports a row of its memory that could not be remapped"),
        ({"faults": 8}, "info", "reports that it needs a reset"),
        ({"ecc_uncorrected": 3}, "info", "reports uncorrected errors of its memory"),
        ({"faults": 0, "ecc_uncorrected": 0}, None, ""),
    ],
)
def test_faults_of_a_gpu_are_told_by_what_they_ask_for(
    make_store: Callable[[Rows], Path], told: dict[str, int], severity: str | None, words: str
) -> None:
    rows = links(2, {(1, 6): {**SOUND, **told}}, busy=99.0)
    found = diagnose(make_store(rows)).findings
    assert [f.severity for f in found] == ([severity] if severity else [])
    assert all(f"GPU 6 of a1 {words}" in f.title for f in found)


def test_errors_of_memory_that_grow_are_no_wear(make_store: Callable[[Rows], Path]) -> None:
    rows = links(2, {(1, 6): {**SOUND, "ecc_uncorrected": 3}}, busy=99.0)
    next(r for r in rows["gpu_samples"] if r["host"] == "a1" and r["gpu"] == 6)[
        "ecc_uncorrected"
    ] = 2
    (finding,) = diagnose(make_store(rows)).findings
    assert (finding.kind, finding.severity) == ("gpu_error", "medium")


def capped_dmon(
    draw: np.random.Generator, hosts: int, slow: tuple[int, int] | None
) -> dict[str, str]:
    """Return what `nvidia-smi dmon -s pucv -o DT` prints on hosts of H200s that compute.

    At 700 W all of them run at 1455 to 1515 of 1980 MHz (measured, driver 580), and before they
    compute at 345 MHz; one may run at 1200.
    """
    head = "#Date Time gpu pwr gtemp mtemp sm mem enc dec jpg ofa mclk pclk pviol tviol"
    files = {}
    for host in range(hosts):
        lines = [head, "#YYYYMMDD HH:MM:SS Idx W C C % % % % % % MHz MHz % bool"]
        for sample in range(24):
            time = START + timedelta(seconds=5 * sample)
            for gpu in range(8):
                clock = (
                    1200
                    if (host, gpu) == slow
                    else int(draw.choice([1455, 1470, 1485, 1500, 1515]))
                )
                watts, busy = int(draw.integers(686, 701)), int(draw.integers(98, 101))
                state = (
                    (watts, 56, 46, busy, 23, clock, 100)
                    if sample > 3
                    else (79, 34, 35, 0, 0, 345, 0)
                )
                watts, celsius, memory, busy, load, clock, limited = state
                lines.append(
                    f" {time:%Y%m%d %H:%M:%S} {gpu} {watts} {celsius} {memory} {busy} {load} "
                    f"0 0 0 0 3201 {clock} {limited} 0"
                )
        files[f"gpu-a{host:02}/dmon.log"] = "\n".join(lines) + "\n"
    return files


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("differs", [False, True])
def test_a_power_limit_that_holds_all_alike_is_no_fault(
    tmp_path: Path, seed: int, differs: bool
) -> None:
    draw = np.random.default_rng([seed, 700])
    hosts = int(draw.integers(1, 5))
    slow = (int(draw.integers(hosts)), int(draw.integers(8))) if differs else None
    for name, text in capped_dmon(draw, hosts, slow).items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    report = ingest([tmp_path], Store(tmp_path / "store"), Options())
    assert not report.problems
    findings = diagnose(tmp_path / "store").findings
    if slow is None:
        assert not findings
        return
    (finding,) = findings
    assert finding.title.startswith(f"GPU {slow[1]} of gpu-a{slow[0]:02} ")
    assert "its power limit" in finding.title
