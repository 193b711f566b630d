"""What an administrator notes of every host once: `nvidia-smi topo -m` and `lsmod`."""

from collections.abc import Iterator
from pathlib import Path

from fabricobs.simulator.fabric import Fabric
from fabricobs.simulator.facts import GpuDirectOff
from fabricobs.simulator.output import epoch_microseconds, write_lines
from fabricobs.simulator.shapes import GPUS_PER_HOST
from fabricobs.simulator.world import World
from fabricobs.simulator.writers.processes import host_offset

_BEFORE_JOB_SECONDS = 600.0
_AFFINITIES = ("0-55,112-167", "56-111,168-223")  # cores of each NUMA node

# Name, size and users of the modules that GPUs and NICs need.
_MODULES = (
    ("nvidia_uvm", 2113536, "4"),
    ("nvidia_drm", 135168, "0"),
    ("nvidia_modeset", 1638400, "1 nvidia_drm"),
    ("nvidia", 104062976, "62 nvidia_uvm,nvidia_modeset"),
    ("rdma_ucm", 32768, "0"),
    ("rdma_cm", 147456, "1 rdma_ucm"),
    ("ib_umad", 45056, "8"),
    ("mlx5_ib", 520192, "0"),
    ("ib_uverbs", 200704, "66 rdma_ucm,mlx5_ib"),
    ("ib_core", 532480, "5 rdma_cm,rdma_ucm,ib_umad,mlx5_ib,ib_uverbs"),
    ("mlx5_core", 2412544, "1 mlx5_ib"),
    ("bonding", 237568, "0"),
)

_LEGEND = """
Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes \
(e.g., QPI/UPI)
  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges \
within a NUMA node
  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)
  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)
  PIX  = Connection traversing at most a single PCIe bridge
  NV#  = Connection traversing a bonded set of # NVLinks

NIC Legend:
""".splitlines()


def write_host_facts(directory: Path, world: World, fabric: Fabric) -> None:
    """Write both outputs of each host, named after the time by the host's clock."""
    for host in range(world.cluster.shape.hosts):
        folder = directory / world.cluster.host_name(host)
        shown = epoch_microseconds(host_offset(world, host) - _BEFORE_JOB_SECONDS) // 1_000_000
        peer_memory = GpuDirectOff(host) not in world.facts
        write_lines(folder / f"topo-{shown}.txt", _topology())
        write_lines(folder / f"lsmod-{shown}.txt", _modules(peer_memory=peer_memory))


def _topology() -> Iterator[str]:
    """GPUs meet over NVLink; each has the NIC of its number behind the same PCIe switch."""
    names = [f"{kind}{index}" for kind in ("GPU", "NIC") for index in range(GPUS_PER_HOST)]
    yield "\t".join(["", *names, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"])
    for row, name in enumerate(names):
        cells = [_path(row, column) for column in range(len(names))]
        node = _numa_node(row)
        notes = [_AFFINITIES[node], str(node), "", "N/A"] if name.startswith("GPU") else []
        yield "\t".join([name, *cells, *notes])
    yield from _LEGEND
    yield ""
    for index in range(GPUS_PER_HOST):
        yield f"  NIC{index}: mlx5_{index}"


def _path(one: int, other: int) -> str:
    """Path between two of a host's devices, counted GPUs first, then NICs."""
    if one == other:
        return " X "
    if max(one, other) < GPUS_PER_HOST:
        return "NV18"
    if one % GPUS_PER_HOST == other % GPUS_PER_HOST:
        return "PIX"
    return "NODE" if _numa_node(one) == _numa_node(other) else "SYS"


def _numa_node(device: int) -> int:
    return device % GPUS_PER_HOST // (GPUS_PER_HOST // 2)


def _modules(*, peer_memory: bool) -> Iterator[str]:
    """Module nvidia_peermem is what lets a NIC read GPU memory."""
    yield "Module                  Size  Used by"
    loaded = (("nvidia_peermem", 16384, "0"), *_MODULES) if peer_memory else _MODULES
    for name, size, users in loaded:
        yield f"{name:<19} {size:8d}  {users}"
