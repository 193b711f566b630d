"""What a random world is, drawn from a seed: each property from a stream of its own."""

import tomllib
import zlib
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from fabricobs.simulator.randomness import Random, stream

_DRAWS = Path(__file__).with_name("draws.toml")
_PURPOSE = 40  # of all streams of random worlds; apart from those of the scenarios

TUNING_SEEDS = range(1, 10_000)
SCORING_SEEDS = range(10_000, 2**31)

# Sizes above which a world would take minutes to write; the number of steps and rounds gives way.
MOST_RANK_STEPS = 40_000
MOST_PORT_ROUNDS = 20_000
FEWEST_STEPS, FEWEST_ROUNDS = 60, 12

# What a site lacks that collects one kind of evidence only.
_NO_COUNTERS = {
    "switch_counters": "none", "host_form": "none", "lldp": False, "port_status": False,
    "switch_log": "none", "switch_settings": False, "optics": False, "host_settings": "none",
    "lspci": False,
}  # fmt: skip
_LACKS: dict[str, dict[str, Any]] = {
    "": {},
    "switches": {
        "host_form": "none", "nccl_level": "none", "inspector": False, "steps_from": "none",
        "kernel_log": False, "gpu_form": "none", "host_settings": "none", "lspci": False,
    },
    "timing": _NO_COUNTERS | {"nccl_level": "none", "kernel_log": False, "gpu_form": "none"},
    "no_network": _NO_COUNTERS,
}  # fmt: skip
# What a site lacks by its NICs: outputs of ConnectX, and the switches of a vendor's own fabric.
_NO_CONNECTX = {"port_status": False, "host_settings": "none", "lspci": False}
_NO_SWITCH = {
    "switch_counters": "none", "lldp": False, "switch_log": "none", "switch_settings": False,
    "optics": False, "nccl_variables": "",
}  # fmt: skip
_OF_NICS: dict[str, dict[str, Any]] = {
    "mlx5": {},
    "efa": _NO_CONNECTX | _NO_SWITCH,
    "cxi": _NO_CONNECTX | _NO_SWITCH,
    "ionic": _NO_CONNECTX,
}


class Distribution(BaseModel):
    """One property of `draws.toml`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    values: tuple[Any, ...] = ()
    weights: tuple[float, ...] = ()
    log: tuple[float, float] | None = None
    uniform: tuple[float, float] | None = None
    chance: float | None = None
    whole: bool = False

    def draw(self, random: Random) -> Any:
        """Draw one value."""
        if self.chance is not None:
            return bool(random.random_sample() < self.chance)
        if self.values:
            weights = np.array(self.weights or [1.0] * len(self.values))
            return self.values[int(random.choice(len(self.values), p=weights / weights.sum()))]
        if self.log is not None:
            number = float(np.exp(random.uniform(*np.log(self.log))))
        else:
            assert self.uniform is not None
            number = float(random.uniform(*self.uniform))
        return round(number) if self.whole else number


class Spec(BaseModel):
    """All that is drawn of a world; `draws.toml` says how, and what each property means.

    Intervals and times in seconds unless named otherwise; noises are shares of computing time.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    seed: int
    fabric: Literal["ethernet", "infiniband"]
    tiers: int
    hosts: int
    gpus_per_host: int
    nics_per_host: int
    rails: bool
    hosts_per_leaf: int
    nic_gbps: int
    uplink_ratio: int
    oversubscription: float
    parallel_links: int
    balancing: Literal["static", "flowlet", "adaptive"]
    priority: int
    queue_pairs: int
    placement: Literal["packed", "scattered"]
    uplinks_first: bool
    breakouts: bool
    spare_hosts: int
    host_names: str
    switch_names: str
    netdevs: str
    rdma_devices: str
    nic_driver: Literal["mlx5", "efa", "cxi", "ionic"]
    job_name: str
    leaf_os: str
    same_spine_os: bool
    sonic_form: str
    eos_form: str
    nxos_form: str
    cumulus_form: str
    infiniband_form: str
    host_form: str
    gpu_form: str
    trainer: str
    nccl_version: str
    nccl_prefix: str
    layout: Literal["appended", "rounds", "timed"]
    folders: Literal["by_kind", "by_device", "flat"]
    compressed: bool
    stamp: Literal["iso", "date", "epoch", "banner"]
    foreign_files: bool
    switch_interval: float
    host_interval: float
    jitter: float
    missing: float
    clock_spread: float
    clock_drift_ppm: float
    zone: str
    start_hour: int
    only: Literal["", "switches", "timing", "no_network"]
    switch_counters: Literal["all", "leaves", "none"]
    lldp: bool
    port_status: bool
    optics: bool
    switch_settings: bool
    host_settings: Literal["none", "mlnx_qos", "dcb"]
    host_mtu: int
    lspci: bool
    narrow_slots: bool
    other_driver: bool
    nccl_variables: str
    nccl_unusual: str
    nccl_level: Literal["info", "coll", "warn", "truncated", "none"]
    nccl_files: Literal["rank", "host", "job"]
    nccl_timestamps: bool
    inspector: bool
    steps_from: Literal["ranks", "rank0", "none"]
    kernel_log: bool
    switch_log: Literal["none", "each", "server"]
    job_kind: Literal["dp", "fsdp", "3d", "moe", "rl"]
    tensor: int
    pipeline: int
    step_seconds: float
    communication: float
    overlap: float
    duration_minutes: float
    accumulation: int
    pxn: bool
    rollout_spread: float
    noise_law: Literal["lognormal", "t"]
    rank_noise: float
    step_noise: float
    silicon_spread: float
    drift: float
    diurnal: float
    gc_tails: float
    evaluation_every: int
    checkpoint: Literal["none", "all", "one"]
    checkpoint_every: int
    restarts: int
    other_world_size: bool
    ramp_up: bool
    curriculum: bool
    warm_up: bool
    tenants: float
    counter_resets: int
    old_errors: float
    background_errors: float
    worn_lines: bool
    symbols_before_fec: bool
    gpu_model: str
    gpu_driver: str
    clock_bound: Literal["none", "power", "setting"]
    bound_clock: float
    gpu_celsius: float
    gpu_utilization: int
    fault: str
    fault_count: int
    fault_effect: float
    fault_size: Literal["drawn", "large"]
    fault_span: str
    fault_parts: str
    setting_fault: bool
    line_fault: bool
    receiver_fault: bool
    few_buffers: bool
    resending_fault: bool
    sent_again: Literal["few", "many", "bursts"]
    pace_fault: bool
    program_xids: bool
    unused_networks: bool
    failure: bool
    launcher_log: Literal["none", "torchrun", "stderr"]
    harmless_warnings: bool
    benchmarks: Literal["none", "hosts", "pairs", "rails"]
    benchmark_fault: bool
    job_setting: bool
    marking_fault: bool
    storage_fault: bool
    threshold_fault: bool
    crowd_fault: bool
    few_marks: bool
    small_messages: bool
    own_class_storage: bool
    ecn_thresholds: Literal["untold", "usual", "various"]

    @property
    def infiniband(self) -> bool:
        """Whether the fabric is InfiniBand."""
        return self.fabric == "infiniband"

    @property
    def job_hosts(self) -> int:
        """Hosts of the job at first; the others are spare."""
        return max(2, self.hosts - self.spare_hosts)

    @property
    def bad_benchmark(self) -> bool:
        """Whether one of the benchmarks' parts is bad, where the site keeps benchmarks."""
        return self.benchmark_fault and self.benchmarks != "none"

    @property
    def steps(self) -> int:
        """Steps the job makes, each counted once: as many as fit, within what may be written."""
        wanted = round(self.duration_minutes * 60 / self.step_seconds)
        most = MOST_RANK_STEPS // (self.job_hosts * self.gpus_per_host)
        return max(FEWEST_STEPS, min(wanted, most))

    @property
    def old_driver(self) -> bool:
        """Whether the driver is of a branch before 535, which renamed throttle reasons."""
        return int(self.gpu_driver.split(".")[0]) < 535

    @property
    def new_driver(self) -> bool:
        """Whether the driver is of branch 535 or later."""
        return not self.old_driver

    @property
    def asks_modules(self) -> bool:
        """Whether the site keeps what ethtool prints of the modules of Ethernet NICs."""
        return not self.infiniband and self.optics

    @property
    def asks_link(self) -> bool:
        """Whether the site keeps what `ip link` prints of Ethernet NICs."""
        return not self.infiniband and self.host_settings != "none"

    @property
    def asks_mlnx_qos(self) -> bool:
        """Whether the site keeps what mlnx_qos prints of Ethernet NICs."""
        return not self.infiniband and self.host_settings == "mlnx_qos"

    @property
    def asks_dcb(self) -> bool:
        """Whether the site keeps what `dcb` prints of Ethernet NICs."""
        return not self.infiniband and self.host_settings == "dcb"

    @property
    def libfabric(self) -> bool:
        """Whether NCCL reaches the NICs by its plugin for libfabric, not by verbs."""
        return self.nic_driver in {"efa", "cxi"}

    @property
    def shows_ecn(self) -> bool:
        """Whether leaves of SONiC show from how many bytes in a queue they mark packets."""
        return self.switch_settings and self.ecn_thresholds != "untold"

    @property
    def nccl_release(self) -> str:
        """The release of NCCL: one that has the Inspector where the site uses it."""
        old = tuple(map(int, self.nccl_version.split(".")))[:2] < (2, 28)
        return "2.28.7" if self.inspector and old else self.nccl_version

    def stream(self, *purpose: object) -> Random:
        """Random numbers for one purpose, named by words and numbers."""
        return stream(self.seed, _PURPOSE, zlib.crc32(repr(purpose).encode()))


@cache
def distributions() -> dict[str, Distribution]:
    """How each property is drawn, by name."""
    document = tomllib.loads(_DRAWS.read_text(encoding="utf-8"))
    return {name: Distribution.model_validate(drawn) for name, drawn in document.items()}


@cache
def plain_site() -> dict[str, Any]:
    """Properties of a plain site, on which nothing but a fault happens."""
    text = Path(__file__).with_name("plain.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def draw_spec(seed: int, **given: Any) -> Spec:
    """Draw the world of a seed, but for the properties given."""
    drawn = {
        name: distribution.draw(stream(seed, _PURPOSE, zlib.crc32(name.encode())))
        for name, distribution in distributions().items()
    }
    if given.get("fabric", drawn["fabric"]) == "infiniband":
        given["nic_driver"] = "mlx5"
    only, driver = (given.get(name, drawn[name]) for name in ("only", "nic_driver"))
    lacks = _OF_NICS.get(driver, {}) | _LACKS[only]
    return Spec.model_validate(drawn | lacks | given | {"seed": seed})


def fault_draw(spec: Spec, name: str, number: int) -> Any:
    """Draw a property of one of several faults, as `draws.toml` says of the first."""
    if number == 0:
        return getattr(spec, name)
    return distributions()[name].draw(spec.stream(name, number))
