"""What the GPUs of a random world do at any moment: clock, why it is low, heat, power, load.

A GPU computes until it is done and has joined the first collective, then it exchanges. What bounds
the clock of all GPUs is drawn: nothing, their power limit, or a clock that the site has set. A
fault holds some lower.
"""

import uuid
from dataclasses import dataclass

import numpy as np

from fabricobs.simulator.effects import Floats
from fabricobs.simulator.random_worlds.faults import Fault
from fabricobs.simulator.random_worlds.ports import Fields, acts_at
from fabricobs.simulator.random_worlds.run import Course
from fabricobs.simulator.random_worlds.spec import Spec
from fabricobs.simulator.random_worlds.topology import GPU_BUSES, Device
from fabricobs.simulator.random_worlds.world import World

# Bits as NVML numbers them (nvmlClocksEventReason*).
IDLE, SETTING, POWER_CAP, HW_SLOWDOWN, SW_THERMAL, HW_THERMAL, BRAKE = 1, 2, 4, 8, 32, 64, 128
_REASONS = {
    "idle": IDLE, "setting": SETTING, "power_cap": POWER_CAP, "hw_slowdown": HW_SLOWDOWN,
    "sw_thermal": SW_THERMAL, "hw_thermal": HW_THERMAL, "brake": BRAKE,
}  # fmt: skip
# What holds a GPU's clock down: its reasons, whether it is hot, and whether its limit is lower.
_CAUSES = {
    "heat": (SW_THERMAL, True, False),
    "overheat": (HW_SLOWDOWN | HW_THERMAL, True, False),
    "brake": (HW_SLOWDOWN | BRAKE, False, False),
    "limit": (POWER_CAP, False, True),
}
_FOLLOWS = (0.7, 1.0)  # share of the computing time that follows the clock; the rest waits for HBM
_CLOCK_STEP = 15  # MHz
_JITTER = 0.01  # of the clock from sample to sample where power bounds it
_START_SECONDS = 12.0
_OTHER_RELEASE = "90.12"  # of a branch of drivers
_SLOT_CELSIUS = 7.0  # the rear GPUs get air that the front ones have warmed
_HOST_CELSIUS, _GPU_CELSIUS = 2.5, 1.5


@dataclass(frozen=True, slots=True)
class GpuModel:
    """What a model of GPU is made for: clocks in MHz, power in watts, heat in degrees Celsius."""

    max_clock: int
    idle_clock: int
    memory_clock: int
    limit: int
    idle_watts: int
    slowdown: int
    memory: int


@dataclass(frozen=True, slots=True)
class Held:
    """A fault that holds the clock of some GPUs at a ratio of what it would be, and the cause."""

    fault: Fault
    gpus: frozenset[int]
    ratio: float
    cause: str


MODELS = {
    "A100-SXM4-80GB": GpuModel(1410, 210, 1593, 400, 62, 89, 81920),
    "H100 80GB HBM3": GpuModel(1980, 345, 2619, 700, 72, 87, 81559),
    "H200": GpuModel(1980, 345, 3201, 700, 76, 87, 143771),
    "B200": GpuModel(1965, 120, 3996, 1000, 140, 88, 183359),
}


def driver_of(spec: Spec, host: int) -> str:
    """The driver of a host: that of all, but on one host of some sites, which was reinstalled."""
    odd = int(spec.stream("other driver").randint(spec.hosts))
    if not spec.other_driver or host != odd:
        return spec.gpu_driver
    return f"{spec.gpu_driver.split('.')[0]}.{_OTHER_RELEASE}"


def throttle_of(world: World, fault: Fault) -> tuple[float, str]:
    """Clock under a fault over that without it, and what holds it down.

    Computing takes 1 + size times as long; only the part of it that follows the clock does.
    """
    random = world.spec.stream("throttle", fault.name)
    follows = float(random.uniform(*_FOLLOWS))
    cause = str(random.choice(list(_CAUSES)))
    return follows / (follows + fault.size), cause


class Gpus:
    """The GPUs of a world, as their driver shows them."""

    def __init__(self, world: World) -> None:
        self.world = world
        spec = self.spec = world.spec
        self.model = MODELS[spec.gpu_model]
        count = world.topology.hosts * spec.gpus_per_host
        random = spec.stream("gpus")
        slot = np.arange(count) % spec.gpus_per_host
        host = np.repeat(random.standard_normal(world.topology.hosts), spec.gpus_per_host)
        self._warmer = (
            _SLOT_CELSIUS * (slot >= spec.gpus_per_host / 2)
            + _HOST_CELSIUS * host
            + _GPU_CELSIUS * random.standard_normal(count)
        )
        # The worse silicon computes slower, and at a limit of power it is its clock that is lower.
        silicon = 1 + spec.silicon_spread * np.abs(spec.stream("silicon").standard_normal(4096))
        self._silicon = silicon[:count]
        self._throttled = [
            Held(fault, frozenset(fault.gpus(world.topology).tolist()), *throttle_of(world, fault))
            for fault in world.faults
            if fault.kind.throttles
        ]

    def read(self, host: Device, moments: Floats) -> list[list[Fields]]:
        """All that is told of each GPU of a host [moments][GPUs]."""
        random = self.spec.stream("gpu readings", host.index)
        draws = random.standard_normal((len(moments), self.spec.gpus_per_host, 4))
        fixed = self._fixed(host)
        found = []
        for moment, drawn in zip(moments.tolist(), draws, strict=True):
            doing = self.doing(host.index, moment)
            held = [h for h in self._throttled if acts_at(self.world, h.fault.acts, moment)]
            found.append(
                [
                    still | self._now(host.index, local, what, held, noise)
                    for local, (still, what, noise) in enumerate(
                        zip(fixed, doing, drawn, strict=True)
                    )
                ]
            )
        return found

    def _fixed(self, host: Device) -> list[Fields]:
        spec, model = self.spec, self.model
        random = spec.stream("gpu ids", host.index)
        return [
            {
                "host": host.name,
                "gpu": local,
                "gpus": spec.gpus_per_host,
                "uuid": f"GPU-{uuid.UUID(bytes=random.bytes(16))}",
                "serial": int(random.randint(10**9, 2 * 10**9)),
                "bus": f"{GPU_BUSES[local]:02X}",
                "product": f"NVIDIA {spec.gpu_model}",
                "driver": driver_of(spec, host.index),
                "cuda": _CUDA[spec.gpu_driver.split(".")[0]],
                "word": "throttle" if spec.old_driver else "event",
                "max_clock": model.max_clock,
                "set_clock": self._set_clock(),
                "memory_clock": model.memory_clock,
                "default_limit": model.limit,
                "slowdown": model.slowdown,
                "shutdown": model.slowdown + 5,
                "memory_total": model.memory,
            }
            for local in range(spec.gpus_per_host)
        ]

    def _set_clock(self) -> int:
        share = self.spec.bound_clock if self.spec.clock_bound == "setting" else 1.0
        return _stepped(self.model.max_clock * share)

    def doing(self, host: int, moment: float) -> list[str]:
        """What each GPU of a host does: idle, computing, exchanging, or pausing between steps."""
        each = self.spec.gpus_per_host
        courses = self.world.courses
        for course in reversed(courses):
            begun = float(course.begin[0]) - _START_SECONDS
            if moment < begun or host not in course.launch.hosts:
                continue
            if moment > float(course.end[-1]):
                hung = self.world.hang is not None and course is courses[-1]
                stays = hung and moment <= self.world.duration
                return ["exchanging" if stays else "idle"] * each
            return _in_launch(course, host, moment, each)
        return ["idle"] * each

    def _now(self, host: int, local: int, doing: str, held: list[Held], noise: Floats) -> Fields:
        model, spec = self.model, self.spec
        place = host * spec.gpus_per_host + local
        limit = float(model.limit)
        clock, watts, reasons, utilization = self._set_clock(), 0.45 * limit, 0, 100.0
        if spec.clock_bound == "setting":
            reasons |= SETTING
        celsius = spec.gpu_celsius + self._warmer[place]
        if doing == "computing":
            watts = 0.78 * limit
            utilization = spec.gpu_utilization
            if spec.clock_bound == "power":
                watts, reasons = 0.985 * limit, reasons | POWER_CAP
                share = spec.bound_clock / self._silicon[place] * (1 + _JITTER * noise[0])
                clock = _stepped(min(1.0, share) * model.max_clock)
        elif doing == "pausing":
            watts, utilization, celsius = 0.25 * limit, 12.0, celsius - 8
        elif doing == "idle":
            clock, watts, reasons, utilization = model.idle_clock, model.idle_watts, IDLE, 0.0
            celsius = 30 + 0.4 * self._warmer[place]
        for each in held if doing != "idle" else ():
            if place not in each.gpus:
                continue
            ratio, (why, hot, lower) = each.ratio, _CAUSES[each.cause]
            if lower:
                limit = round(limit * (0.55 + 0.35 * ratio) / 5) * 5.0
                watts = min(watts, 0.99 * limit)
            if not lower or doing == "computing":
                clock, reasons = _stepped(clock * ratio), reasons & ~SETTING | why
                watts *= 1.0 if lower else 0.4 + 0.6 * ratio
            celsius = model.slowdown - 1 if hot else celsius
        celsius += 0.7 * noise[1]
        told = {name: "Active" if reasons & bit else "Not Active" for name, bit in _REASONS.items()}
        return told | {
            "doing": doing,
            "clock": clock,
            "memory_now": model.memory_clock,
            "celsius": round(celsius),
            "headroom": model.slowdown - round(celsius),
            "memory_celsius": round(celsius + 6),
            "watts": max(model.idle_watts, min(watts * (1 + 0.02 * noise[2]), 1.02 * limit)),
            "limit": limit,
            "utilization": int(np.clip(utilization + noise[3], 0, 100)),
            "memory_load": int(0.4 * utilization),
            "memory_used": int((0.02 if doing == "idle" else 0.85) * model.memory),
            "pstate": "P0",
            "reasons": reasons,
            "power_violation": int(100 * bool(reasons & POWER_CAP)),
            "thermal_violation": int(bool(reasons & (SW_THERMAL | HW_THERMAL))),
        }


_CUDA = {"525": "12.0", "535": "12.2", "550": "12.4", "570": "12.8"}


def _in_launch(course: Course, host: int, moment: float, each: int) -> list[str]:
    step = int(np.searchsorted(course.begin, moment, side="right")) - 1
    if step < 0 or moment > course.end[step]:
        return ["pausing"] * each
    ranks = np.flatnonzero(course.launch.host == host)
    # Collectives that overlap with computing begin before it ends.
    parts = (course.data, course.compute, course.rollout)
    busy = course.begin[step] + sum(part[step, ranks] for part in parts)
    come = np.maximum(course.arrival[step, 0, ranks], busy)
    return ["exchanging" if moment >= at else "computing" for at in come.tolist()]


def _stepped(clock: float) -> int:
    return int(clock / _CLOCK_STEP) * _CLOCK_STEP
