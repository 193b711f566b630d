"""`dmesg -T` of every host: how it booted, and what its GPUs and links did during the run."""

from collections.abc import Iterator
from pathlib import Path

from fabricobs.simulator.cluster import Nic
from fabricobs.simulator.fabric import Fabric
from fabricobs.simulator.facts import GpuError, LinkFlap
from fabricobs.simulator.links import flap_moments
from fabricobs.simulator.output import clock, write_lines
from fabricobs.simulator.randomness import stream
from fabricobs.simulator.world import World
from fabricobs.simulator.writers.processes import host_offset, process_ids

_UP_SECONDS = 3 * 86400.0  # before the first job
_DRIVER = "580.95.05"
_FIRMWARE = "28.45.1200"

Line = tuple[float, str]


def write_kernel_logs(directory: Path, world: World, fabric: Fabric) -> None:
    """Write one file a host."""
    for host in range(world.cluster.shape.hosts):
        nics = world.cluster.nics_of_host(host)
        booted = -_UP_SECONDS - float(stream(world.seed, 700, host).random_sample()) * 3600
        lines = [*_boot(nics, booted, infiniband=world.cluster.infiniband), *_events(world, host)]
        offset = host_offset(world, host)
        shown = (f"[{_ctime(when + offset)}] {text}" for when, text in lines)
        write_lines(directory / world.cluster.host_name(host) / "dmesg.txt", shown)


def _ctime(moment: float) -> str:
    time = clock(moment)
    return f"{time:%a %b} {time.day:2d} {time:%H:%M:%S %Y}"


def _boot(nics: tuple[Nic, ...], booted: float, *, infiniband: bool) -> Iterator[Line]:
    yield (
        booted,
        "Linux version 6.8.0-85-generic (buildd@lcy02-amd64-071) (x86_64-linux-gnu-gcc-13)",
    )
    yield booted, "Command line: BOOT_IMAGE=/vmlinuz-6.8.0-85-generic root=/dev/md0 ro iommu=pt"
    for nic in nics:
        card = f"mlx5_core {nic.pci_address}"
        yield booted + 9, f"{card}: firmware version: {_FIRMWARE}"
        yield booted + 9, f"{card}: 504.112 Gb/s available PCIe bandwidth (32.0 GT/s PCIe x16 link)"
    for nic in nics:
        if infiniband:
            yield booted + 24, f"IPv6: ADDRCONF(NETDEV_CHANGE): ib{nic.local}: link becomes ready"
        else:
            yield booted + 24, f"mlx5_core {nic.pci_address} {nic.netdev}: Link up"
    yield booted + 31, f"NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  {_DRIVER}"
    yield booted + 32, "nvidia-modeset: Loading NVIDIA UNIX Open Kernel Mode Setting Driver"


def _events(world: World, host: int) -> list[Line]:
    lines: list[Line] = []
    for fact in world.facts:
        if isinstance(fact, GpuError) and world.cluster.nics[fact.gpu].host == host:
            lines += _gpu_errors(world, fact)
        if isinstance(fact, LinkFlap) and world.cluster.nics[fact.nic].host == host:
            lines += _link_flaps(world, fact)
    return sorted(lines)


def _gpu_errors(world: World, fact: GpuError) -> Iterator[Line]:
    """An Xid while its GPU computes; 63 is the code of a remapped row."""
    run = world.courses[0].run
    gpu, rank = world.cluster.nics[fact.gpu], fact.gpu - run.job.first_gpu
    pid = int(process_ids(run.job, world.seed)[rank])
    random = stream(world.seed, 701, fact.gpu)
    for step in fact.steps:
        if step < run.steps:
            row = int(random.randint(2**20, 2**24))
            when = float(run.begin[step, rank] + 0.5 * run.compute[step, rank])
            yield (
                when,
                f"NVRM: Xid (PCI:{gpu.gpu_pci_address[:-2]}): {fact.xid}, pid={pid}, name=python3, "
                f"Row Remapper: New row (0x{row:016x}) marked for remapping, "
                "reset gpu to activate.",
            )


def _link_flaps(world: World, fact: LinkFlap) -> Iterator[Line]:
    """Of a port that only InfiniBand uses the kernel says no more than that it is ready again."""
    nic = world.cluster.nics[fact.nic]
    for moment in flap_moments(world.courses[0].run, fact):
        up = moment + fact.seconds
        if world.cluster.infiniband:
            yield up, f"IPv6: ADDRCONF(NETDEV_CHANGE): ib{nic.local}: link becomes ready"
        else:
            yield moment, f"mlx5_core {nic.pci_address} {nic.netdev}: Link down"
            yield up, f"mlx5_core {nic.pci_address} {nic.netdev}: Link up"
