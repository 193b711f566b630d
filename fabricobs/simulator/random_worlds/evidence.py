"""Which evidence the files of a random world hold, by the names that `faults.toml` uses."""

from fabricobs.simulator.random_worlds.hang_logs import hang_evidence
from fabricobs.simulator.random_worlds.site import Site
from fabricobs.simulator.random_worlds.trainer import prints_phases, prints_times


def evidence_of(site: Site) -> set[str]:
    """Names of the evidence that the world's files hold."""
    spec = site.spec
    hang = hang_evidence(site)
    found = {"watchdog"} if hang.watchdog else set()
    info = spec.nccl_level in {"info", "coll"}
    timing = {
        "ras_counts": hang.ras == "json",
        "inspector": spec.inspector,
        "phases_of_ranks": spec.steps_from == "ranks" and prints_phases(site),
        "phases_of_rank0": spec.steps_from == "rank0" and prints_phases(site),
        "steps": spec.steps_from != "none",
        "step_times": spec.steps_from != "none" and prints_times(site),
        "gpu_clocks": spec.gpu_form != "none",
        "cables": _tells_cables(site),
        "kernel_log": spec.kernel_log,
        "switch_log": spec.switch_log != "none" and not spec.infiniband,
        "nccl_channels": info,
        "nccl_settings": info or spec.nccl_level == "truncated",
        "nic_optics": spec.asks_modules,
        "leaf_optics": spec.asks_modules
        and spec.leaf_os == "nxos"
        and spec.switch_counters != "none",
        "leaf_optics_log": spec.switch_log != "none" and spec.leaf_os == "nxos",
        "host_mtu": spec.asks_link,
        "host_pcie": spec.lspci,
        "host_pfc": spec.asks_mlnx_qos or spec.asks_dcb,
        "leaf_pfc": _tells_priorities(site),
        "leaf_watchdog": _tells_priorities(site) and spec.leaf_os == "sonic",
        "nccl_warnings": spec.nccl_level != "none",
        "nic_told_speed": spec.port_status,
        "launcher_log": spec.launcher_log != "none" and site.world.hang is None,
        f"benchmark_{spec.benchmarks}": spec.benchmarks != "none",
        "leaf_ecn": spec.shows_ecn and spec.leaf_os == "sonic" and spec.switch_counters != "none",
    }
    found |= {name for name, there in timing.items() if there}
    found |= _nic_evidence(site)
    if spec.switch_counters != "none":
        found |= _switch_evidence(site, 1, "leaf")
    if spec.switch_counters == "all":
        found |= _switch_evidence(site, 2, "spine")
    return found


# Counters of NICs that are not ConnectX, by driver and form.
_OTHER_NICS = {
    "efa": {
        "sysfs": {"nic_sent_again", "nic_status"},
        "rdma": {"nic_sent_again"},
        "node_exporter": {"nic_sent_again"},
        "telegraf": {"nic_sent_again"},
    },
    "cxi": {"sysfs": {"nic_sent_again", "nic_errors", "nic_pauses"}},
    "ionic": {
        "sysfs": {"nic_sent_again", "nic_buffers", "nic_losses", "nic_marks", "nic_status"},
        "rdma": {"nic_sent_again", "nic_buffers", "nic_losses", "nic_marks"},
    },
}


def _nic_evidence(site: Site) -> set[str]:
    spec, nic = site.spec, site.spec.host_form
    if spec.nic_driver != "mlx5":
        return _OTHER_NICS[spec.nic_driver].get(nic.removesuffix("_tree"), set())
    found = set()
    if spec.port_status or nic in {"sysfs", "sysfs_tree", "node_exporter"}:
        found.add("nic_status")
    if not spec.infiniband and nic in {"sysfs", "sysfs_tree", "telegraf"}:
        found.add("nic_marks")
    if not spec.infiniband and nic == "ethtool":
        found.add("nic_classes")
    if nic in {"ethtool", "sysfs", "sysfs_tree", "node_exporter", "telegraf"} and (
        nic != "ethtool" or not spec.infiniband
    ):
        found |= {"nic_errors", "nic_downs"}
        if nic == "ethtool":
            found.add("nic_corrected")
        # Of an Ethernet NIC, ethtool alone counts pauses by priority.
        if spec.infiniband or nic == "ethtool":
            found.add("nic_pauses")
    if nic in {"sysfs", "sysfs_tree", "rdma"} or (nic == "ethtool" and not spec.infiniband):
        found |= {"nic_buffers"}
    if nic in {"sysfs", "sysfs_tree", "telegraf", "rdma"}:
        found |= {"nic_losses"}
    return found


def _switch_evidence(site: Site, tier: int, name: str) -> set[str]:
    switches = site.world.topology.switches(tier)
    if not switches:
        return set()
    system = switches[0].os
    status = {f"{name}_status"} if site.spec.port_status and system != "cumulus" else set()
    if system == "infiniband":
        return status | {f"{name}_{w}" for w in ("bytes", "errors", "downs", "pauses", "drops")}
    form = getattr(site.spec, f"{system}_form")
    found = status | {f"{name}_bytes", f"{name}_errors", f"{name}_drops"}
    if form in {"json", "snmp", "snmp_exporter"}:
        found.add(f"{name}_status")
    if not form.startswith("snmp"):
        found.add(f"{name}_pauses")
    if (system, form) in {("sonic", "cli"), ("sonic", "counters_db")}:
        found |= {f"{name}_corrected", f"{name}_marks"}
    if (system, form) in {("eos", "json"), ("cumulus", "nvue")}:
        found.add(f"{name}_marks")
    if (system, form) == ("eos", "json"):
        found.add(f"{name}_downs")
    return found


def _tells_cables(site: Site) -> bool:
    """Whether an output tells which port of a leaf a NIC is cabled to."""
    spec = site.spec
    read = spec.switch_counters != "none"
    if not spec.infiniband:
        return spec.lldp and read
    return spec.lldp or (read and (spec.port_status or spec.infiniband_form == "ibdiagnet"))


def _tells_priorities(site: Site) -> bool:
    """Whether leaves tell on which priorities they pause."""
    spec = site.spec
    if spec.infiniband or spec.switch_counters == "none":
        return False
    nxos = spec.leaf_os == "nxos" and spec.nxos_form == "cli"
    return nxos or (spec.leaf_os == "sonic" and spec.switch_settings)
