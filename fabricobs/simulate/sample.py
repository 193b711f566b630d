"""A small cluster with one known fault: a leaf that hashes nearly all flows onto half its uplinks.

Run as `python -m fabricobs.simulate.sample DIRECTORY [--healthy] [--seed N]`.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from fabricobs.simulate import workload
from fabricobs.simulate.cluster import HOSTS, RANKS, Cluster, build_cluster, leaf_name
from fabricobs.simulate.fabric import observe
from fabricobs.simulate.host_counters import write_hosts
from fabricobs.simulate.inspector import write_inspector
from fabricobs.simulate.megatron import write_megatron
from fabricobs.simulate.nccl import write_nccl
from fabricobs.simulate.output import clock, iso_milliseconds
from fabricobs.simulate.port_csv import write_spines
from fabricobs.simulate.routes import even_uplinks
from fabricobs.simulate.run import FAULT_STEP, FAULTY_LEAF, Run, simulate
from fabricobs.simulate.sonic import CLOCK_OFFSETS, write_switches
from fabricobs.simulate.step_records import write_step_records

DEFAULT_SEED = 20260302


def write_sample(
    directory: Path, *, fault: bool = True, seed: int = DEFAULT_SEED
) -> dict[str, object]:
    """Write `logs/` and `answer.json` into a directory and return the answer.

    Without `fault` the files are those of the healthy twin: same seed, same noise, no fault.
    Files of the same names are replaced; nothing is deleted.
    """
    cluster = build_cluster()
    run = simulate(fault=fault, seed=seed)
    _write_logs(directory / "logs", cluster, run, seed)
    answer = _answer(cluster, run, fault=fault, seed=seed)
    (directory / "answer.json").write_text(json.dumps(answer, indent=2) + "\n", encoding="utf-8")
    return answer


def loss_share(faulty: Run, healthy: Run) -> float:
    """Share of throughput lost since the fault began, from the two runs' mean step times."""
    steps = np.arange(1, workload.STEPS + 1)
    judged = (steps >= FAULT_STEP) & ~np.isin(steps, workload.CHECKPOINT_STEPS)
    means = [run.step_seconds.max(axis=1)[judged].mean() for run in (healthy, faulty)]
    return float(1 - means[0] / means[1])


def main() -> None:
    """Read the command line and write the sample."""
    parser = argparse.ArgumentParser(description="Write a simulated cluster's logs and the answer.")
    parser.add_argument("directory", type=Path, help="where logs/ and answer.json are written")
    parser.add_argument("--healthy", action="store_true", help="write the twin without the fault")
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED, help="default: %(default)s")
    arguments = parser.parse_args()
    answer = write_sample(arguments.directory, fault=not arguments.healthy, seed=arguments.seed)
    print(json.dumps(answer, indent=2))


def _write_logs(logs: Path, cluster: Cluster, run: Run, seed: int) -> None:
    fabric = observe(run, seed=seed)
    write_nccl(logs / "nccl", cluster, seed=seed)
    write_inspector(logs / "inspector", cluster.nics, run, seed=seed)
    write_megatron(logs / "train" / "node04.log", run, seed=seed)
    write_step_records(logs / "steps", run)
    write_switches(logs / "switches", cluster, fabric, end=run.duration, seed=seed)
    write_spines(logs / "spines", cluster, fabric, end=run.duration, seed=seed)
    write_hosts(logs / "hosts", cluster, fabric, end=run.duration, seed=seed)


def _answer(cluster: Cluster, run: Run, *, fault: bool, seed: int) -> dict[str, object]:
    job: dict[str, object] = {
        "steps": workload.STEPS,
        "ranks": RANKS,
        "hosts": HOSTS,
        "seed": seed,
        "clock_offsets": CLOCK_OFFSETS,
    }
    if not fault:
        return {"schema_version": 1, "kind": "none", "entities": []} | job
    uplinks = cluster.uplinks_of_leaf(FAULTY_LEAF)
    truth = {
        "schema_version": 1,
        "kind": "ecmp_skew",
        "entities": [{"type": "switch", "switch": leaf_name(FAULTY_LEAF)}],
        "hot_ports": [uplinks[index].port for index in even_uplinks()],
        "start_step": FAULT_STEP,
        "start": iso_milliseconds(clock(float(run.begin[FAULT_STEP - 1].min()))),
        "loss_share": round(loss_share(run, simulate(fault=False, seed=seed)), 4),
    }
    return truth | job


if __name__ == "__main__":
    main()
