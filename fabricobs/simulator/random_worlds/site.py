"""How a site collects: when it asks which device, what the clocks say, and where files lie."""

import io
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np

from fabricobs.simulator.effects import Floats
from fabricobs.simulator.output import write_text
from fabricobs.simulator.random_worlds.benchmarks import Run, runs_of
from fabricobs.simulator.random_worlds.spec import FEWEST_ROUNDS, MOST_PORT_ROUNDS, Spec
from fabricobs.simulator.random_worlds.topology import Device
from fabricobs.simulator.random_worlds.world import World

_DAY = datetime(2026, 3, 2, tzinfo=UTC)
_MOST_FILES = 400  # of one kind, where each round is a file


@dataclass(frozen=True, slots=True)
class Clock:
    """A device's clock: `offset` seconds ahead at the start, gaining `drift` seconds a second."""

    start: datetime
    offset: float
    drift: float
    zone: ZoneInfo

    def epoch(self, moment: float) -> float:
        """Unix time the clock shows at a moment in seconds since the world began."""
        return self.start.timestamp() + moment * (1 + self.drift) + self.offset

    def local(self, moment: float) -> datetime:
        """Time the clock shows, in the zone of the site."""
        return datetime.fromtimestamp(self.epoch(moment), self.zone)


class Site:
    """Where a world's files go, and the clocks of its devices."""

    def __init__(self, world: World, root: Path) -> None:
        self.world = world
        self.spec: Spec = world.spec
        self.root = root
        self.start = _DAY + timedelta(hours=self.spec.start_hour)
        self.zone = ZoneInfo(self.spec.zone)
        self._speeds_told: dict[int, list[float]] = {}
        self._counted: dict[int, set[float]] = {}
        self._clocks_told: dict[int, list[float]] = {}
        self._clocks = {device.index: self._draw_clock(device) for device in world.topology.devices}

    @cached_property
    def true_clock(self) -> Clock:
        """The clock that is right."""
        return Clock(self.start, 0.0, 0.0, self.zone)

    @cached_property
    def benchmark_runs(self) -> tuple[Run, ...]:
        """The runs of benchmarks before the job."""
        return runs_of(self.world)

    def speed_told(self, device: Device, moments: Floats) -> None:
        """Keep when a device's output told the speed of its ports."""
        self._speeds_told.setdefault(device.index, []).extend(moments.tolist())

    def speeds_told(self, device: int) -> list[float]:
        """When the outputs written told the speed of a device's ports."""
        return self._speeds_told.get(device, [])

    def counters_told(self, device: Device, moments: Floats) -> None:
        """Keep when a device's output told the counters of its ports."""
        self._counted.setdefault(device.index, set()).update(moments.tolist())

    def counted_at(self, device: int) -> list[float]:
        """When the outputs written told the counters of a device's ports, in order of time."""
        return sorted(self._counted.get(device, ()))

    def clocks_told(self, host: Device, moments: Floats) -> None:
        """Keep when an output told the clocks of a host's GPUs."""
        self._clocks_told.setdefault(host.index, []).extend(moments.tolist())

    def clocked_at(self, host: int) -> list[float]:
        """When the outputs written told the clocks of a host's GPUs."""
        return self._clocks_told.get(host, [])

    def clock(self, device: Device) -> Clock:
        """A device's clock."""
        return self._clocks[device.index]

    def _draw_clock(self, device: Device) -> Clock:
        """Draw a device's clock; those of hosts keep better time."""
        random = self.spec.stream("clock", device.index)
        spread = self.spec.clock_spread * (0.2 if device.tier == 0 else 1.0)
        offset = round(float(spread * random.standard_normal()), 3)
        drift = 1e-6 * self.spec.clock_drift_ppm * float(random.uniform(-1, 1))
        return Clock(self.start, offset, drift, self.zone)

    def rounds(self, device: Device, ports: int, *, files: int) -> Floats:
        """When a device is read [M], from before the job to after its end.

        `ports` are all that are read of the kind, `files` the files each round writes of it.
        """
        spec = self.spec
        drawn = spec.host_interval if device.tier == 0 else spec.switch_interval
        length = self.world.duration
        interval = max(drawn, length * ports / MOST_PORT_ROUNDS, length * files / _MOST_FILES)
        interval = min(interval, length / FEWEST_ROUNDS)
        random = spec.stream("rounds", device.index)
        number = np.arange(-2, int(length / interval) + 3)
        moments = interval * (number + spec.jitter * random.uniform(-0.5, 0.5, len(number)))
        kept: Floats = moments[random.random_sample(len(number)) >= spec.missing]
        return np.round(kept, 3)

    def one_file_a_round(self, *, document: bool) -> bool:
        """Whether each round is a file of its own; documents always are."""
        return document or self.spec.layout != "appended"

    def write_rounds(
        self, device: Device, kind: str, moments: Floats, texts: Sequence[str], *,
        extension: str = "txt", document: bool = False, self_timed: bool = False,
    ) -> None:  # fmt: skip
        """Write what a device printed in each round."""
        clock = self.clock(device)
        stem = kind.replace(" ", "_").replace("-", "")
        if self_timed:
            self.write(device, stem, f"{stem}.{extension}", "".join(texts))
        elif self.one_file_a_round(document=document):
            for moment, text in zip(moments, texts, strict=True):
                self._write_round(device, stem, clock, moment, text, extension)
        else:
            parts = [
                f"{self._stamp(clock, m, device.name, kind)}\n{text}"
                for m, text in zip(moments, texts, strict=True)
            ]
            self.write(device, stem, f"{stem}.log", "".join(parts))

    def _write_round(
        self, device: Device, stem: str, clock: Clock, moment: float, text: str, extension: str
    ) -> None:
        local = clock.local(moment)
        if self.spec.layout == "rounds":
            folder = self.root / "snapshots" / f"{local:%Y-%m-%dT%H-%M-%S}" / device.name
            self._write(folder / f"{stem}.{extension}", text)
        else:
            self.write(device, stem, f"{local:%Y%m%d_%H%M%S}_{stem}.{extension}", text)

    def write(self, device: Device, kind: str, name: str, text: str) -> None:
        """Write a file of a device's."""
        folder = {
            "by_kind": self.root / kind / device.name,
            "by_device": self.root / device.name / kind,
            "flat": self.root / ("hosts" if device.tier == 0 else "switches") / device.name,
        }[self.spec.folders]
        self._write(folder / name, text)

    def write_job(self, name: str, text: str) -> None:
        """Write a file of the job's."""
        self._write(self.root / "job" / name, text)

    def write_run(self, folder: str, name: str, text: str) -> None:
        """Write a file of one run of a tool for the whole fabric."""
        self._write(self.root / "fabric" / folder / name, text)

    def _write(self, path: Path, text: str) -> None:
        if path.suffix == ".tar":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(_packed(text))
            return
        big = self.spec.compressed and len(text) > 20_000
        write_text(path.with_name(path.name + ".gz") if big else path, text)

    def _stamp(self, clock: Clock, moment: float, device: str, kind: str) -> str:
        local = clock.local(moment)
        return {
            "iso": f"===== {local.isoformat(timespec='milliseconds')} =====",
            "date": f"{local:%a %b} {local.day:2d} {local:%H:%M:%S} UTC {local.year}"
            if self.spec.zone == "UTC"
            else local.isoformat(timespec="seconds"),
            "epoch": f"--- {int(clock.epoch(moment))} ---",
            "banner": f"### {device} {kind} {local:%Y%m%d-%H%M%S}",
        }[self.spec.stamp]


def host_address(host: int) -> str:
    """Return the address of a host in the management network."""
    return f"10.4.{host // 200}.{host % 200 + 10}"


def _packed(lines: str) -> bytes:
    """A tar of the files that `path:value` lines tell of, the same for the same lines."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for line in lines.splitlines():
            path, _, value = line.partition(":")
            content = f"{value}\n".encode()
            member = tarfile.TarInfo(path.removeprefix("/"))
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()
