"""Kernel logs of the hosts, and files of a site that have nothing to do with the fabric."""

import numpy as np

from fabricobs.simulator.random_worlds.failure_logs import kernel_events
from fabricobs.simulator.random_worlds.faults import Fault
from fabricobs.simulator.random_worlds.gpus import driver_of
from fabricobs.simulator.random_worlds.run import Course
from fabricobs.simulator.random_worlds.site import Site
from fabricobs.simulator.random_worlds.topology import GPU_BUSES, Device

_XID = 63  # a remapped row
_XIDS = 5
_PROGRAM_XIDS = (
    "31, pid=4012, name=python3, Ch 00000012, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_"
    "T1_0 faulted @ 0x7f2a_b8000000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ",
    "43, pid=4012, name=python3, Ch 00000010",
    "13, pid=4012, name=python3, Graphics SM Warp Exception on (GPC 2, TPC 1, SM 0): Out Of Range "
    "Address",
)
_FLAP_SECONDS = 4.0
_BOOT = (
    "Linux version 6.8.0-85-generic (buildd@lcy02-amd64-071)",
    "Command line: BOOT_IMAGE=/vmlinuz-6.8.0-85-generic root=/dev/md0 ro iommu=pt",
    "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  {driver}",
    "systemd[1]: Started Journal Service.",
)
_FOREIGN = {
    "README.md": "# Collected files\n\nAsk the operations team before deleting anything.\n",
    "requirements.txt": "torch==2.6.0\nnumpy==2.1.3\n",
    "job.sbatch": "#!/bin/bash\n#SBATCH --nodes=16\nsrun python train.py --config pretrain.yaml\n",
    "notes.txt": "monday: moved rack 4 to the new PDU\ntuesday: nothing\n",
    "app.log": "INFO worker pool is warm\nWARNING cache is cold, reading 312 shards\n",
}


def write_kernel_logs(site: Site) -> None:
    """Write `dmesg -T` of every host of the job, where the site collects it."""
    if not site.spec.kernel_log:
        return
    topology = site.world.topology
    used = sorted({host for course in site.world.courses for host in course.launch.hosts})
    for host in used:
        device = topology.devices[host]
        lines = [
            (-86_400.0 + place, text.format(driver=driver_of(site.spec, host)))
            for place, text in enumerate(_BOOT)
        ]
        for fault in site.world.faults:
            lines += kernel_events(site, fault, host)
            for course in site.world.courses:
                lines += _events(site, fault, course, device)
        clock = site.clock(device)
        lines += _program_errors(site, device)
        text = "".join(
            f"[{at:%a %b} {at.day:2d} {at:%H:%M:%S %Y}] {message}\n"
            for at, message in ((clock.local(moment), message) for moment, message in sorted(lines))
        )
        site.write(device, "dmesg", "dmesg.txt", text)


def _program_errors(site: Site, host: Device) -> list[tuple[float, str]]:
    """What the driver says of programs that crash before a restart: codes that accuse no GPU."""
    if not site.spec.program_xids:
        return []
    found = []
    for course in site.world.courses[:-1]:
        if host.index not in course.launch.hosts:
            continue
        random = site.spec.stream("program errors", course.launch.number, host.index)
        gpu, end = int(random.randint(site.spec.gpus_per_host)), float(course.end[-1])
        bus = f"PCI:0000:{GPU_BUSES[gpu]:02x}:00"
        found.append((end + 0.2, f"NVRM: Xid ({bus}): {_PROGRAM_XIDS[random.randint(3)]}"))
    return found


def write_foreign(site: Site) -> None:
    """Write a few files that tell nothing of the fabric."""
    if site.spec.foreign_files:
        for name, text in _FOREIGN.items():
            site.write_run("notes", name, text)


def _events(site: Site, fault: Fault, course: Course, host: Device) -> list[tuple[float, str]]:
    """What the kernel says of a fault while one launch runs."""
    spec, topology = site.spec, site.world.topology
    before = site.world.made_before(course.launch.number)
    steps = np.flatnonzero(fault.acts[before : before + course.steps])
    if not len(steps) or host.index not in course.launch.hosts:
        return []
    if fault.name == "gpu_error":
        gpus = [
            g % spec.gpus_per_host for g in fault.parts if g // spec.gpus_per_host == host.index
        ]
        return [
            (
                float(course.begin[step]) + 0.1,
                f"NVRM: Xid (PCI:0000:{GPU_BUSES[gpu]:02x}:00): {_XID}, pid=4012, name=python3, "
                f"Row Remapper: New row (0x{int(step) * 4096 + 77:016x}) marked for remapping, "
                "reset gpu to activate.",
            )
            for gpu in gpus
            for step in steps[:: max(1, len(steps) // _XIDS)]
        ]
    if fault.name != "nic_flap":
        return []
    events = []
    for nic in fault.parts:
        _, _, port = topology.ports_of(host.index)[nic % topology.nics_per_host]
        if nic not in topology.nics_of(host.index):
            continue
        for step in steps:
            down = float(course.start[step, 0].min())
            card = f"mlx5_core 0000:{0x1A + port.number:02x}:00.0 {port.netdev}"
            if spec.infiniband:
                ready = f"IPv6: ADDRCONF(NETDEV_CHANGE): {port.netdev}: link becomes ready"
                events.append((down + min(fault.size, _FLAP_SECONDS), ready))
            else:
                events.append((down, f"{card}: Link down"))
                events.append((down + min(fault.size, _FLAP_SECONDS), f"{card}: Link up"))
    return events
