"""Where the input tells of a finding: files and lines of its culprits, in its time."""

import gzip
import html
import json
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from conftest import Rows, Run
from fabricobs.diagnosis.findings import Entity, Finding
from fabricobs.diagnosis.run import diagnose
from fabricobs.report.explanation import explain
from fabricobs.report.input_lines import line_naming

pytestmark = pytest.mark.slow

START = datetime(2026, 3, 2, 9)
MINUTES = 60


def finding(entity: Entity, query: str, first: int, last: int) -> Finding:
    return Finding(
        kind="straggler",
        entities=(entity,),
        severity="high",
        confidence=0.8,
        title="It is slow",
        explanation="",
        start=START + timedelta(minutes=first),
        end=START + timedelta(minutes=last),
        detected_at=START + timedelta(minutes=first, seconds=90),
        query=query,
    )


def kind_of(name: str, table: str, counter: str, kind: str = "counter") -> dict[str, str]:
    return {"format": name, "table_name": table, "counter": counter, "kind": kind, "unit": "bytes"}


def test_every_place_of_the_sample_tells_of_a_culprit(sample_store: Path) -> None:
    told = [f for f in diagnose(sample_store).findings if f.severity != "info"]
    assert told
    for each in told:
        owners = {entity.host or entity.switch for entity in each.entities} - {None}
        source = explain(each, sample_store).source
        read = [reading for pair in source.readings for reading in (pair.before, pair.later)]
        assert source.readings or source.files
        for place in (*source.files, *read):
            opened = gzip.open if place.path.endswith(".gz") else open
            with opened(place.path, "rt") as file:
                lines = file.read().splitlines()
            assert place.line is not None
            assert 1 <= place.line <= len(lines)
            assert any(
                owner in place.path or owner in "\n".join(lines) for owner in owners if owner
            )
        for reading in read:
            with opened(reading.path, "rt") as file:
                after = file.read().splitlines()[reading.line - 1 :]  # type: ignore[operator]
            assert f"{reading.value:,}" in "".join(after) or str(reading.value) in "".join(after)


@pytest.mark.parametrize("seed", range(20))
def test_the_files_are_those_of_the_part_in_its_time(
    make_store: Callable[[Rows], Path], seed: int
) -> None:
    """Ranks of another job, ports of another switch and other times have their own files."""
    draw = random.Random(seed)
    rank, port = draw.randrange(8), f"Ethernet{draw.randrange(9)}"
    hosts = draw.sample([f"node{n:02}" for n in range(9)], 2)
    switches = draw.sample([f"leaf{n:02}" for n in range(9)], 2)
    first = draw.randrange(10, 30)
    last = first + draw.randrange(5, 20)
    files, steps, samples = [], [], []
    for number, (host, switch) in enumerate(zip(hosts, switches, strict=True)):
        for kind, name in (("step_records", host), ("sonic_counters", switch)):
            files.append({"file_id": name, "path": f"/logs/{number}/{name}", "formats": kind})
        for minute in range(MINUTES):
            ts = START + timedelta(minutes=minute)
            row = {"line": minute + 1, "ts": ts, "ts_source": "inline"}
            # Steps tell the host on some sites and the rank alone on others.
            where = {"host": f"{host}.example" if draw.random() < 0.5 else host}
            steps += [row | where | {"file_id": host, "rank": r, "step": minute} for r in range(8)]
            for other in (port, "Ethernet99"):
                counted = {"file_id": switch, "device": switch, "port": other, "rx_bytes": minute}
                samples.append(row | counted | {"format": "sonic_counters"})
    kinds = [kind_of("sonic_counters", "port_samples", "rx_bytes")]
    store = make_store(
        {"files": files, "steps": steps, "port_samples": samples, "counter_info": kinds}
    )
    of_rank = finding(Entity("rank", rank=rank, host=hosts[0]), "slow_rank_steps", first, last)
    (told,) = explain(of_rank, store).source.files
    around = range(first - 1, last + 2)  # a minute before and after
    # The first step by which it shows; the files are not there any more.
    assert (told.place, told.text) == (f"/logs/0/{hosts[0]}:{first + 3}", "")
    assert (told.files, told.rows) == (1, len(around))
    cable = Entity("cable", switch=switches[1], port=port)
    source = explain(finding(cable, "nics_that_receive_more", first, last), store).source
    # Counters are compared: of traffic the first two readings that are surely of its time.
    (told,) = source.readings
    assert told.before.place == f"/logs/1/{switches[1]}:{first + 2}"
    assert told.later.place == f"/logs/1/{switches[1]}:{first + 3}"
    words = f"{switches[1]} {port}: rx_bytes rose by 1 byte in 60 s (1.3e-10 Gb/s)"
    assert told.words == words
    assert source.files == ()
    # What names no part is of the whole job: of its steps, not of the fabric.
    of_job = replace(of_rank, entities=(), query="pace_of_steps")
    (told,) = explain(of_job, store).source.files
    assert (told.formats, told.files) == ("step_records", 2)


@pytest.mark.parametrize("seed", range(6))
def test_a_query_says_which_rows_tell(make_store: Callable[[Rows], Path], seed: int) -> None:
    """Of a host without GPUDirect its connections do, not the first line of its log."""
    draw = random.Random(seed)
    hosts, bad, first = [f"node{n}" for n in range(4)], draw.randrange(4), draw.randrange(50, 90)
    files = [{"file_id": h, "path": f"/logs/{h}", "formats": "nccl_debug"} for h in hosts]
    env = [
        {"file_id": h, "host": h, "line": 1, "name": "NCCL_DEBUG", "value": "INFO"} for h in hosts
    ]
    channels = [
        {
            "file_id": host, "host": host, "line": first + n, "transport": "NET",
            "gdr": number != bad, "kind": "connection", "network": "IB",
        }
        for number, host in enumerate(hosts)
        for n in range(8)
    ]  # fmt: skip
    draw.shuffle(channels)
    store = make_store({"files": files, "nccl_env": env, "nccl_channels": channels})
    off = replace(
        finding(Entity("host", host=hosts[bad]), "ranks_without_gpudirect", 0, 9), start=None
    )
    (told,) = explain(off, store).source.files
    assert (told.place, told.rows) == (f"/logs/{hosts[bad]}:{first}", 8)
    # Where none is of the part, those of the job are shown.
    (told,) = explain(replace(off, entities=(Entity("host", host="x"),)), store).source.files
    assert (told.place, told.rows) == (f"/logs/{hosts[bad]}:{first}", 8)


@pytest.mark.parametrize("seed", range(12))
def test_a_cable_is_told_by_either_end(make_store: Callable[[Rows], Path], seed: int) -> None:
    """Of swapped cables the first line shown was a counter of the host, which tells nothing."""
    chance = random.Random(seed)
    hosts = [f"gpu{number:02}" for number in range(4)]
    rows: list[dict[str, object]] = []
    for line, (host, nic) in enumerate(((h, n) for h in hosts for n in range(4)), 1):
        leaf, port, device = f"leaf{nic}", f"Ethernet{8 * hosts.index(host)}", f"enp{nic}s0"
        far = {"remote_device": host, "remote_port": f"b8:3f:d2:{line:02x}"}
        ends: list[dict[str, object]] = [
            {"device": leaf, "port": port, **far, "remote_port_description": device},
            {"device": leaf, "port": port, "remote_device": host, "remote_port": device},
            {"device": host, "port": device, "remote_device": leaf, "remote_port": port},
        ]
        rows.append({**chance.choice(ends), "line": line, "file_id": "f1"})
    store = make_store(
        {
            "links": rows,
            "files": [{"file_id": "f1", "path": "fabric/lldp.txt", "formats": "lldp"}],
            "port_samples": [
                {"device": "gpu00", "port": "enp0s0", "rx_bytes": 1, "file_id": "f1", "line": 99}
            ],
        }
    )
    host, nic = chance.choice(hosts), chance.randrange(4)
    swapped = replace(
        finding(Entity("nic", host=host, nic=f"enp{nic}s0"), "topology", 0, 60), kind="cabling"
    )
    (told,) = explain(swapped, store).source.files
    assert (told.rows, told.line) == (1, 4 * hosts.index(host) + nic + 1)


@pytest.mark.parametrize("seed", range(20))
def test_the_readings_are_those_that_show_it(make_store: Callable[[Rows], Path], seed: int) -> None:
    """Of all counters, ports and priorities those that rose, as one source gives them."""
    draw = random.Random(seed)
    bad, priority, first = f"Ethernet{draw.randrange(4)}", draw.randrange(8), draw.randrange(5, 20)
    paused, every = draw.randrange(10**4, 10**9), draw.choice([1, 2, 3])
    counter, few = draw.sample(["pfc_tx_frames", "pfc_rx_frames"], 2)
    sources = {"full": 1, "half": 0.5}  # one of the two formats misses some of them
    files = [{"file_id": s, "path": f"/logs/{s}.txt", "formats": s} for s in sources]
    samples = [
        {
            "file_id": source, "line": 100 * minute + 10 * port + p, "format": source,
            "ts": START + timedelta(minutes=minute), "ts_source": "inline", "device": "leaf1",
            "port": f"Ethernet{port}", "priority": p,
            counter: 7 + (
                int(seen * paused) * max(minute - first, 0)
                if (f"Ethernet{port}", p) == (bad, priority) else 0
            ),
            few: 3 + minute, "watermark_bytes": 10**12 * minute,
        }
        for source, seen in sources.items()
        for minute in range(0, 40, every)
        for port in range(4)
        for p in range(8)
    ]  # fmt: skip
    draw.shuffle(samples)
    kinds = [kind_of(s, "priority_samples", name) for s in sources for name in (counter, few)]
    store = make_store({"files": files, "priority_samples": samples, "counter_info": kinds})
    port = Entity("port", switch="leaf1", port=bad)
    for culprit in (port, Entity("switch", switch="leaf1")):
        storm = finding(culprit, "pauses_over_time", first, 39)
        told = explain(storm, store).source.readings
        strongest = told[0]
        begins = first - first % every
        assert strongest.part == f"leaf1 {bad} priority {priority}"
        assert (strongest.counter, strongest.format) == (counter, "full")
        shown = begins + every
        line = 10 * int(bad.removeprefix("Ethernet")) + priority
        assert (strongest.before.value, strongest.before.line) == (7, 100 * begins + line)
        assert strongest.later.value == 7 + paused * (shown - first)
        assert strongest.later.place == f"/logs/full.txt:{100 * shown + line}"
        assert few not in {each.counter for each in told}
        # Of a switch with several ports in its rows one is there to compare.
        assert [each.least for each in told[1:]] == [True] * len(told[1:])
        assert culprit is not port or len(told) == 1
        # What is not known to begin has readings, too.
        undated = replace(storm, start=None, end=None, detected_at=None)
        assert counter in {each.counter for each in explain(undated, store).source.readings}


def test_what_stood_still_is_said_to(make_store: Callable[[Rows], Path]) -> None:
    """An uplink that sends nothing: its counter did not rise. What counts rises is no total."""
    samples = [
        {
            "file_id": "f", "line": minute + 1, "format": kind, "device": "leaf1", "port": "Eth1",
            "ts": START + timedelta(minutes=minute), "tx_bytes": min(minute, 10) * 1000,
            "tx_packets": minute,
        }
        for minute in range(30)
        for kind in ("totals", "rises")
    ]  # fmt: skip
    kinds = [
        kind_of("totals", "port_samples", "tx_bytes"),
        kind_of("rises", "port_samples", "tx_packets", "delta"),
    ]
    files = [{"file_id": "f", "path": "/logs/leaf1.txt", "formats": "totals"}]
    store = make_store({"files": files, "port_samples": samples, "counter_info": kinds})
    stopped = finding(Entity("port", switch="leaf1", port="Eth1"), "uplink_balance", 12, 29)
    (told,) = explain(stopped, store).source.readings
    assert told.words == "leaf1 Eth1: tx_bytes did not rise in 960 s"
    assert (told.before.place, told.later.place) == ("/logs/leaf1.txt:14", "/logs/leaf1.txt:30")


def test_explain_and_the_report_name_them(
    fabricobs: Run, sample_store: Path, tmp_path: Path
) -> None:
    store = str(sample_store)
    worst = diagnose(sample_store).findings[0]
    said = fabricobs("explain", worst.id, "--store", store).stdout
    source = explain(worst, sample_store).source
    places = [each.place for each in source.files]
    places += [r.place for each in source.readings for r in (each.before, each.later)]
    assert places
    assert all(place in said for place in places)
    texts = [r.text for each in source.readings for r in (each.before, each.later)]
    assert all(texts)
    page = tmp_path / "report.html"
    fabricobs("report", "--store", store, "--out", str(page))
    text = html.unescape(page.read_text().replace("<wbr>", "").replace("\u200b", ""))
    assert "Counters in the input" in text
    assert all(place in text for place in places)


@pytest.mark.parametrize("seed", range(6))
def test_an_event_is_that_of_the_gpu(make_store: Callable[[Rows], Path], seed: int) -> None:
    """A kernel names it by its PCI address; another GPU of the host failed before."""
    draw = random.Random(seed)
    slots = draw.sample(range(0x0A, 0xF0), 8)
    sick, other = draw.sample(range(8), 2)
    files = [{"file_id": "k", "path": "/logs/dmesg.txt", "formats": "kernel_log"}]
    ranks = [
        {
            "file_id": "n", "line": gpu + 1, "host": "gpu01", "pid": 100 + gpu, "comm": "0xa",
            "comm_id": "0x1", "rank": gpu, "nranks": 8, "nvml_device": gpu,
            "bus_id": f"{slot:x}000",
        }
        for gpu, slot in enumerate(slots)
    ]  # fmt: skip
    events = [
        {
            "file_id": "k", "line": line, "host": "gpu01", "kind": "xid", "code": 63,
            "part": f"0000:{slots[gpu]:02x}:00", "ts": START + timedelta(minutes=10, seconds=line),
        }
        for line, gpu in ((3, other), (4, sick), (5, other), (6, sick))
    ]  # fmt: skip
    store = make_store({"files": files, "nccl_ranks": ranks, "events": events})
    gpu = Entity("gpu", host="gpu01", gpu=sick, rank=sick)
    explained = explain(finding(gpu, "host_events", 10, 20), store)
    (told,) = explained.source.files
    assert (told.place, told.rows) == ("/logs/dmesg.txt:4", 2)
    assert explained.about is not None
    assert explained.about["gpu"].to_list() == [sick]


@pytest.mark.parametrize("seed", range(8))
def test_a_document_is_shown_where_it_names_the_part_and_says_the_value(
    tmp_path: Path, seed: int
) -> None:
    """Of a document only its first bracket was shown."""
    chance = random.Random(seed)
    ports = [f"Ethernet{number}/1" for number in chance.sample(range(1, 60), 12)]
    speeds = {port: chance.choice([100, 200, 400]) for port in ports}
    culprit = chance.choice(ports)
    speeds[culprit] = 50
    unit = chance.choice([1, 1_000, 10**6, 10**9])
    document = {
        port: {"mtu": 9214, "name": port, "lanes": [{"id": lane} for lane in range(4)],
               "bandwidth": speed * unit}
        for port, speed in speeds.items()
    }  # fmt: skip
    path = tmp_path / "show_interfaces.json"
    path.write_text(json.dumps({"interfaces": document}, indent=chance.choice([1, 2, 4])))
    found = line_naming(str(path), 1, [culprit], [50.0])
    assert found is not None
    lines = path.read_text().splitlines()
    assert lines[found.number - 1].strip() == f'"{culprit}": {{'
    assert found.text == f'"{culprit}": {{ … "bandwidth": {50 * unit}'
    assert line_naming(str(path), 1, ["Ethernet61/1"], [50.0]) is None


def test_a_setting_proves_however_long_before_it_was_read(
    make_store: Callable[[Rows], Path], tmp_path: Path
) -> None:
    log = tmp_path / "show_ecn.txt"
    log.write_text("Profile: RDMA\necn                  ecn_all\ngreen_min_threshold  536870912\n")
    read = START - timedelta(days=3)
    names = {2: ("ecn", "ecn_all"), 3: ("green_min_threshold", "536870912")}
    settings = [
        {
            "file_id": "f", "line": line, "device": device, "ts": read, "profile": "RDMA",
            "name": name, "value": value,
        }
        for device in ("leaf1", "leaf2")
        for line, (name, value) in names.items()
    ]  # fmt: skip
    files = [{"file_id": "f", "path": str(log), "formats": "sonic_settings"}]
    pauses = [
        {
            "file_id": "p", "line": minute + 1, "format": "sonic_pfc_counters", "device": "leaf1",
            "port": "Eth1", "priority": 3, "ts": START + timedelta(minutes=minute),
            "pfc_tx_frames": 1000 * minute,
        }
        for minute in range(30)
    ]  # fmt: skip
    files.append({"file_id": "p", "path": "/logs/pfc.txt", "formats": "sonic_pfc_counters"})
    counted = [kind_of("sonic_pfc_counters", "priority_samples", "pfc_tx_frames")]
    rows = {"files": files, "settings": settings, "priority_samples": pauses}
    store = make_store(rows | {"counter_info": counted})
    silent = finding(Entity("switch", switch="leaf1"), "pause_sources", 12, 29)
    source = explain(replace(silent, kind="ecn_misconfigured"), store).source
    assert source.readings
    (told,) = source.files
    assert told.lines == (("", f"{log}:3", "green_min_threshold 536870912"),)
    assert explain(replace(silent, kind="pfc_storm"), store).source.files == ()


def test_a_hang_quotes_what_the_watchdog_of_a_waiting_rank_said(
    make_store: Callable[[Rows], Path], tmp_path: Path
) -> None:
    log = tmp_path / "node01.log"
    log.write_text("[Rank 3] Watchdog caught collective operation timeout\n")
    dump = str(tmp_path / "rank_5.json")
    files = [
        {"file_id": "w", "path": str(log), "formats": "torch_watchdog"},
        {"file_id": "f", "path": dump, "formats": "flight_recorder"},
    ]
    timeout = {
        "file_id": "w", "line": 1, "kind": "watchdog_timeout", "rank": 3, "host": "node01",
        "ts": START + timedelta(minutes=20),
    }  # fmt: skip
    enqueued = {
        "file_id": "f", "line": 1, "kind": "recorder", "rank": 5, "host": "node02",
        "last_enqueued": 360,
    }  # fmt: skip
    store = make_store({"files": files, "nccl_events": [timeout, enqueued]})
    missing = finding(Entity("rank", rank=5, host="node02"), "hang_progress", 10, 20)
    told = explain(replace(missing, kind="hang"), store).source.files
    assert [each.formats for each in told] == ["flight_recorder", "torch_watchdog"]
    assert told[1].lines == (("", f"{log}:1", log.read_text().strip()),)
    other = explain(replace(missing, kind="straggler"), store).source.files
    assert [each.formats for each in other] == ["flight_recorder"]
