"""Command outputs of switches and hosts: `outputs.toml` says how each looks, this prints it."""

import json
import tomllib
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from fabricobs.simulator.random_worlds.ledger import Ledger
from fabricobs.simulator.random_worlds.optics import optics_fields
from fabricobs.simulator.random_worlds.ports import (
    Fields,
    counted_fields,
    fixed_fields,
    speed_fields,
    speeds,
)
from fabricobs.simulator.random_worlds.site import Site
from fabricobs.simulator.random_worlds.topology import Device
from fabricobs.simulator.writers.ruled import ruled_table

# Fields that tell the speed of a port.
_SPEEDS = ("gbps}", "mbps}", "bits}", "lane_gbps", "rate_text}", "bytes_per_second")


class Output(BaseModel):
    """One output of `outputs.toml`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    of: str
    name: str
    style: Literal["rows", "table", "document"]
    form: str | None = None
    nics: str = "mlx5"
    needs: str | None = None
    when: Literal["rounds", "life", "once"] = "rounds"
    extension: str = ""
    per_port: bool = False
    self_timed: bool = False
    head_once: bool = False
    head: str = ""
    row: str = ""
    foot: str = ""
    then: str = ""
    then_row: str = ""
    columns: tuple[tuple[str, str], ...] = ()
    where: str = ""
    second: tuple[tuple[str, str], ...] = ()
    at: str = ""
    key: str = ""
    part: dict[str, Any] = {}
    maps: dict[str, str] = {}
    wrapped: dict[str, str] = {}
    within: tuple[str, ...] = ()
    listed: bool = False

    @property
    def tells_optics(self) -> bool:
        """Whether the output says what the module of a port receives."""
        return "{rx1" in self.row

    @property
    def tells_speed(self) -> bool:
        """Whether the output says how fast ports run."""
        text = self.model_dump_json()
        return any(f"{{{name}" in text for name in _SPEEDS)

    def text(self, ports: list[Fields], *, head: bool = True) -> str:
        """The output for some ports at one moment."""
        if self.style == "document":
            return json.dumps(self._document(ports), indent=1) + "\n"
        if self.style == "table":
            tables = [
                _table(self.columns, [p for p in ports if not self.where or p[self.where]]),
                *([_table(self.second, ports)] if self.second else []),
            ]
            return "\n".join(tables)
        blocks = [(self.head * head, self.row, self.foot), (self.then, self.then_row, "")]
        lines = []
        for above, row, foot in blocks:
            lines += [above.format_map(ports[0]).removeprefix("\n")] if above else []
            lines += [row.strip("\n").format_map(port) for port in ports] if row else []
            lines += [foot.format_map(ports[0]).removeprefix("\n")] if foot else []
        return "\n".join(lines) + "\n"

    def _document(self, ports: list[Fields]) -> Any:
        parts = {self.key.format_map(port): _filled(self.part, port) for port in ports}
        if self.maps:
            names = {
                name: dict(text.format_map(port).split("=") for port in ports)
                for name, text in self.maps.items()
            }
            return names | parts
        if self.wrapped:
            head = _filled(self.wrapped, ports[0])
            return head | {"updates": [{"Path": k, "values": {k: v}} for k, v in parts.items()]}
        whole: Any = [{key: part} for key, part in parts.items()] if self.listed else parts
        for key in reversed(self.within or ((self.at,) if self.at else ())):
            whole = {key: whole}
        return whole


@cache
def outputs(file: str = "outputs.toml") -> tuple[Output, ...]:
    """All outputs of one kind of parts."""
    text = Path(__file__).with_name(file).read_text(encoding="utf-8")
    return tuple(Output.model_validate(entry) for entry in tomllib.loads(text)["output"])


def write_outputs(site: Site, ledger: Ledger) -> set[str]:
    """Write all that switches and hosts print; the names of what was written."""
    written = set()
    for output in outputs():
        devices = [device for device in _asked(site) if _prints(site, output, device)]
        ports = sum(len(site.world.topology.ports_of(device.index)) for device in devices)
        for device in devices:
            _write(site, ledger, output, device, ports, len(devices))
            written.add(output.name)
    return written


def restart_of(site: Site, device: Device) -> float | None:
    """When a device's counters are cleared, None if never."""
    random = site.spec.stream("resets")
    chosen = random.permutation(len(site.world.topology.devices))[: site.spec.counter_resets]
    share = float(random.uniform(0.2, 0.8))
    return site.world.duration * share if device.index in chosen else None


def _asked(site: Site) -> list[Device]:
    """The devices that are collected from."""
    highest = {"all": 9, "leaves": 1, "none": 0}[site.spec.switch_counters]
    used = {host for course in site.world.courses for host in course.launch.hosts}
    return [
        device
        for device in site.world.topology.devices
        if (device.tier == 0 and device.index in used) or 0 < device.tier <= highest
    ]


def _prints(site: Site, output: Output, device: Device) -> bool:
    spec = site.spec
    own = {device.os} | ({"ethernet"} if device.tier and not spec.infiniband else set())
    if output.of not in own:
        return False
    form = spec.host_form if device.tier == 0 else getattr(spec, f"{device.os}_form")
    # A copied tree holds what `grep -r .` of it prints.
    if output.form is not None and output.form != form.removesuffix("_tree"):
        return False
    if output.form is not None and device.tier == 0 and output.nics != spec.nic_driver:
        return False
    if output.needs in {"ethernet", "infiniband"}:
        return spec.fabric == output.needs
    return output.needs is None or bool(getattr(spec, output.needs))


def _write(
    site: Site, ledger: Ledger, output: Output, device: Device, ports: int, devices: int
) -> None:
    topology = site.world.topology
    own = len(topology.ports_of(device.index)) if output.per_port else 1
    tree = device.tier == 0 and site.spec.host_form == f"{output.form}_tree"
    document = tree or output.style == "document" or output.extension == "prom"
    apart = site.one_file_a_round(document=document) and not output.self_timed
    length = site.world.duration
    moments = {
        "rounds": site.rounds(device, ports, files=devices * own if apart else 0),
        "life": np.array([-30.0, length / 2, length + 10]),
        "once": np.array([-40.0]),
    }[output.when]
    if output.when == "rounds":
        site.counters_told(device, moments)
    if output.tells_speed:
        site.speed_told(device, moments)
    fields = _fields(site, ledger, device, moments, counted=output.when == "rounds")
    if output.tells_optics:
        for moment, row in zip(moments.tolist(), fields, strict=True):
            for port, light in zip(row, optics_fields(site.world, device, moment), strict=True):
                port |= light
    extension = output.extension or ("json" if output.style == "document" else "txt")
    extension = "tar" if tree else extension
    write = partial(
        site.write_rounds, device, moments=moments,
        extension=extension, document=document, self_timed=output.self_timed,
    )  # fmt: skip
    if not output.per_port:
        write(output.name, texts=[output.text(row) for row in fields])
        return
    for place in range(own):
        name = fields[0][place]["netdev"] or fields[0][place]["name"]
        write(f"{output.name} {name}", texts=[output.text([row[place]]) for row in fields])


def _fields(
    site: Site, ledger: Ledger, device: Device, moments: np.ndarray, *, counted: bool
) -> list[list[Fields]]:
    """All fields of each port [moments][ports]."""
    topology, clock = site.world.topology, site.clock(device)
    fixed = fixed_fields(site.world, device)
    restart = restart_of(site, device)
    rows: list[list[Fields]] = (
        counted_fields(topology, ledger, device, moments, restart)
        if counted
        else [[{} for _ in fixed] for _ in moments]
    )
    bought = [port.gbps for _, _, port in topology.ports_of(device.index)]
    found = []
    for moment, row in zip(moments.tolist(), rows, strict=True):
        now = speeds(site.world, device, moment)
        epoch = clock.epoch(moment)
        common = {
            "epoch": epoch,
            "epoch_ns": int(epoch * 1e9),
            "uptime": int((moment + 1_000_000) * 100),
            "ports": len(fixed),
        }
        found.append(
            [
                common | still | port | speed_fields(speed, port, asked)
                for still, port, speed, asked in zip(fixed, row, now, bought, strict=True)
            ]
        )
    return found


def _table(columns: tuple[tuple[str, str], ...], ports: list[Fields]) -> str:
    cells = [[cell.format_map(port) for port in ports] for _, cell in columns]
    return ruled_table([header for header, _ in columns], cells)


def _filled(part: Any, port: Fields) -> Any:
    """A document's part with its texts filled in; a text that begins with # becomes a number."""
    if isinstance(part, dict):
        return {key.format_map(port): _filled(value, port) for key, value in part.items()}
    text = str(part).format_map(port)
    return json.loads(text[1:]) if text.startswith("#") else text
