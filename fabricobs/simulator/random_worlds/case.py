"""Writing a random world: its files as the site has them, and the answer beside them."""

import json
from pathlib import Path
from typing import Any

from fabricobs.simulator.random_worlds.benchmark_logs import write_benchmarks
from fabricobs.simulator.random_worlds.failure_logs import write_failure
from fabricobs.simulator.random_worlds.gpu_logs import write_gpus
from fabricobs.simulator.random_worlds.hang_logs import hang_evidence, write_hang_logs
from fabricobs.simulator.random_worlds.host_logs import write_foreign, write_kernel_logs
from fabricobs.simulator.random_worlds.inspector import write_inspector
from fabricobs.simulator.random_worlds.ledger import Ledger
from fabricobs.simulator.random_worlds.nccl import write_nccl, write_watchdog
from fabricobs.simulator.random_worlds.printing import write_outputs
from fabricobs.simulator.random_worlds.site import Site
from fabricobs.simulator.random_worlds.spec import Spec
from fabricobs.simulator.random_worlds.subnet import write_subnet
from fabricobs.simulator.random_worlds.switch_logs import write_switch_logs
from fabricobs.simulator.random_worlds.trainer import write_steps
from fabricobs.simulator.random_worlds.truth import ground_truth
from fabricobs.simulator.random_worlds.world import come_true

ANSWER = "truth.json"


def write_world(directory: Path, spec: Spec) -> dict[str, Any]:
    """Write `logs/` and `truth.json` of a world into a directory; return the answer.

    Same specification, same bytes. Files of the same names are replaced; nothing is deleted.
    """
    truth = write_logs(directory, spec)
    directory.mkdir(parents=True, exist_ok=True)
    text = json.dumps(truth, indent=2) + "\n"
    (directory / ANSWER).write_text(text, encoding="utf-8")
    return truth


def write_logs(directory: Path, spec: Spec) -> dict[str, Any]:
    """Write `logs/` of a world into a directory; return the answer."""
    world = come_true(spec)
    site, ledger = Site(world, directory / "logs"), Ledger(world)
    write_outputs(site, ledger)
    write_subnet(site, ledger)
    write_steps(site)
    write_nccl(site)
    write_inspector(site)
    if hang_evidence(site).watchdog:
        write_watchdog(site)
    write_hang_logs(site)
    write_kernel_logs(site)
    write_gpus(site)
    write_switch_logs(site)
    write_foreign(site)
    write_benchmarks(site)
    write_failure(site)
    return ground_truth(site)
