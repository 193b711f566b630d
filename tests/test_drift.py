"""`fabricobs compare DAY DAY`: what of the fabric and the hosts is not as it was."""

import json
import random
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fabric_days import EOS_KINDS, IB_KINDS, write_eos, write_infiniband
from fabric_dumps import DAY, MOMENT, rail_fabric, swapped, write_lldp

from conftest import Run
from fabricobs.simulator.randomness import stream

Writer = Callable[..., None]
_COLUMNS = "Interface Lanes Speed MTU FEC Alias Vlan Oper Admin Type".split()


def _status(rows: list[list[str]]) -> str:
    """Return a table of `show interfaces status`."""
    lines = [_COLUMNS, ["-" * 12] * len(_COLUMNS), *rows]
    return "\n".join("  ".join(f"{cell:>12}" for cell in line) for line in lines) + "\n"


def _day(moment: int) -> str:
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d}"


def _write(folder: Path, path: str, text: str, moment: int) -> None:
    name = folder / f"{path}-{moment}.txt"
    name.parent.mkdir(parents=True, exist_ok=True)
    name.write_text(text)


KINDS = ("cable", "port", "speed", "firmware", "driver", "setting", "route")


def _dump(folder: Path, moment: int, seed: int, moved: Collection[str] = ()) -> None:
    """Write a fabric and its hosts; one thing of each kind in `moved` is not as it was."""
    random = stream(seed)
    cables = rail_fabric(random)
    hosts = sorted({c.device for c in cables if c.far_port.startswith("ens")})
    leaves = sorted({c.leaf for c in cables})
    ports = [c for c in cables if c.leaf == leaves[0]]
    down, slow = ports[0].port, ports[1].port
    free = [c for c in cables if c.far_port.startswith("ens")][2]
    if "cable" in moved:
        cables = [
            type(c)(c.leaf, "Ethernet504", c.device, c.far_port) if c == free else c for c in cables
        ]
    write_lldp(
        folder,
        [c for c in cables if (c.leaf, c.port) != (leaves[0], down) or "port" not in moved],
        moment,
    )
    rows = []
    for c in ports:
        state = "down" if "port" in moved and c.port == down else "up"
        speed = "200G" if "speed" in moved and c.port == slow else "400G"
        rows.append([c.port, "1,2,3,4", speed, "9100", "rs", "N/A", "routed", state, "up", "OSFP"])
    _write(folder, f"{leaves[0]}/show_interfaces_status", _status(rows), moment)
    for number, host in enumerate(hosts):
        driver, firmware = ("24.10-1.1.4", "28.43.2026")
        if "driver" in moved and number == 0:
            driver = "25.01-0.6.0"
        if "firmware" in moved and number == 1:
            firmware = "28.44.1036"
        text = (
            f"driver: mlx5_core\nversion: {driver}\n"
            f"firmware-version: {firmware} (MT_0000000838)\nbus-info: 0000:1a:00.0\n"
        )
        _write(folder, f"{host}/ethtool_i_ens0np0", text, moment)
    trust = "pcp" if "setting" in moved else "dscp"
    _write(
        folder,
        f"{hosts[2]}/mlnx_qos_ens0np0",
        f"DCBX mode: OS controlled\nPriority trust state: {trust}\n",
        moment,
    )
    fewer = "route" in moved
    via = "" if fewer else "  *                    via 10.0.0.5, Ethernet4, weight 1, 01:02:03\n"
    _write(
        folder,
        f"{leaves[1]}/show_ip_route",
        f"B>* 10.1.0.0/24 [20/0] via 10.0.0.1, Ethernet0, weight 1, 0{1 + fewer}:02:03\n{via}",
        moment,
    )


@pytest.mark.parametrize("seed", [11, 12])
def test_seven_changes_of_seven_kinds_are_told_and_nothing_else(
    fabricobs: Run, tmp_path: Path, seed: int
) -> None:
    _dump(tmp_path / "logs", MOMENT, seed)
    _dump(tmp_path / "logs", MOMENT + DAY, seed, KINDS)
    store = str(tmp_path / "s")
    fabricobs("ingest", str(tmp_path / "logs"), "--store", store)
    days = (_day(MOMENT), _day(MOMENT + DAY))
    said = json.loads(fabricobs("compare", *days, "--store", store, "--format", "json").stdout)
    assert sorted(each["kind"] for each in said["drift"]) == sorted(KINDS), said["drift"]
    by_kind = {each["kind"]: each for each in said["drift"]}
    assert (by_kind["speed"]["before"], by_kind["speed"]["after"]) == ("400 Gb/s", "200 Gb/s")
    assert by_kind["cable"]["after"].endswith("Ethernet504")
    assert by_kind["route"]["after"] == "Ethernet0"


@pytest.mark.parametrize("seed", [14, 15])
@pytest.mark.parametrize(("write", "kinds"), [(write_eos, EOS_KINDS), (write_infiniband, IB_KINDS)])
def test_changes_are_told_once_whatever_follows_from_them(
    fabricobs: Run, tmp_path: Path, write: Writer, kinds: tuple[str, ...], seed: int
) -> None:
    """A cable that moved leaves a port down and another up; a new host brings up ports, too."""
    write(tmp_path / "logs", MOMENT, seed)
    write(tmp_path / "logs", MOMENT + DAY, seed, kinds)
    write(tmp_path / "logs", MOMENT + 2 * DAY, seed, kinds)
    write(tmp_path / "logs", MOMENT + 3 * DAY, seed)
    store = str(tmp_path / "s")
    fabricobs("ingest", str(tmp_path / "logs"), "--store", store)
    days = [_day(MOMENT + day * DAY) for day in range(4)]
    told = [
        json.loads(fabricobs("compare", a, b, "--store", store, "--format", "json").stdout)["drift"]
        for a, b in zip(days, days[1:], strict=False)
    ]
    assert sorted(each["kind"] for each in told[0]) == sorted(kinds), told[0]
    assert told[1] == []
    assert sorted(each["kind"] for each in told[2]) == sorted(kinds), told[2]
    (new,) = (each for each in told[0] if each["kind"] == "device")
    (gone,) = (each for each in told[2] if each["kind"] == "device")
    assert new["part"] == gone["part"] and (new["before"], gone["after"]) == (None, None)
    assert new["after"] == gone["before"] and new["after"].count(",") == 1


@pytest.mark.parametrize("seed", range(4))
def test_a_slowdown_without_a_cause_says_what_is_not_as_it_was(
    fabricobs: Run, tmp_path: Path, seed: int
) -> None:
    """Steps are longer from the middle of the job on; dumps are from before, and from after it."""
    chance = random.Random(seed)
    kinds = chance.sample(["cable", "firmware", "driver", "setting", "route"], seed)
    _dump(tmp_path / "logs", MOMENT, seed)
    _dump(tmp_path / "logs", MOMENT + 3600, seed, kinds)
    now = MOMENT - 300.0
    with (tmp_path / "logs" / "steps.jsonl").open("w") as log:
        for step in range(200):
            taken = chance.gauss(10.0, 0.05) * (1.3 if step >= 100 else 1)
            now += taken
            record = {"step": step, "rank": 0, "step_time_ms": 1000 * taken, "timestamp": now}
            log.write(json.dumps(record) + "\n")
    store = str(tmp_path / "s")
    fabricobs("ingest", str(tmp_path / "logs"), "--store", store)
    told = json.loads(fabricobs("diagnose", "--store", store, "--format", "json").stdout)
    (drop,) = (each for each in told["findings"] if each["kind"] == "throughput_drop")
    _, _, said = drop["explanation"].partition("this was told otherwise than before: ")
    assert [each.split()[0] for each in said.removesuffix(".").split("; ") if each] == [
        kind for kind in ("cable", "route", "setting", "driver", "firmware") if kind in kinds
    ]
    first = [step for step in drop["next_steps"] if "not as it was" in step]
    assert len(first) == bool(kinds)


def test_nothing_moved_is_nothing_told_and_a_swap_is_two_cables(
    fabricobs: Run, tmp_path: Path
) -> None:
    cables = rail_fabric(stream(13))
    for round_ in range(2):
        write_lldp(tmp_path / "logs", cables, MOMENT + round_ * DAY)
    nics = [c for c in cables if c.far_port.startswith("ens")]
    write_lldp(tmp_path / "logs", swapped(cables, nics[0], nics[1]), MOMENT + 2 * DAY)
    store = str(tmp_path / "s")
    fabricobs("ingest", str(tmp_path / "logs"), "--store", store)
    first, second, third = (_day(MOMENT + round_ * DAY) for round_ in range(3))
    same = json.loads(
        fabricobs("compare", first, second, "--store", store, "--format", "json").stdout
    )
    assert same["drift"] == []
    moved = json.loads(
        fabricobs("compare", second, third, "--store", store, "--format", "json").stdout
    )
    assert [each["kind"] for each in moved["drift"]] == ["cable", "cable"]
    text = fabricobs("compare", second, third, "--store", store).stdout
    assert nics[0].device in text
