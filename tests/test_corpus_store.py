"""The whole corpus as one store: the jobs of many sites stay apart, each with its own facts."""

import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fabricobs.cli import app
from fabricobs.store.session import open_session

pytestmark = pytest.mark.slow

# Jobs of several files; every other one is what one file says. The log of a pod of one data set is
# that of the rank 0 whose NCCL log another data set holds.
JOINED = {
    "bytedance_ST": {"steps/bytedance_ST"},
    "flight_recorder_gpu_error_1st": {"steps/flight_recorder_gpu_error_1st"},
    "kineto_dlrm_8rank": {"steps/kineto_dlrm_8rank"},
    "llama2-7b-new-5b-2b1ef": {"nccl", "steps/zhejiang_llama2_32gpu"},
}
VERSIONS = {
    "flight_recorder_gpu_error_1st": "2.27.3",
    "kineto_modded_nanogpt_8xh100_rank00_before": "2.27.5",
    "kineto_nccl_args_2rank_rank0": "2.17.1",
    "llama2-7b-new-5b-2b1ef": "2.14.3",
    "megatron_v2_perf_n16-1999618": "2.7.8",
    "rccl_v2283_text_healthy": "2.28.3",
    "rccl_v2289_json_healthy": "2.28.9",
    "s17-nccltests-json-unmerged-fork": "2.26.6",
    "s18-nccl-2.4.8-no-ibverbs": "2.4.8",
    "v04-nccl-2.7.8-opa-1node-4ranks": "2.7.8",
    "v05-nccl-2.10.3-opa-4nodes-16ranks": "2.10.3",
    "v06-nccl-2.10.3-opa-4nodes-32ranks-a100": "2.10.3",
    "v07-nccl-opa-16nodes-64ranks": "2.7.8",
    "v08-nccl-2.18.5-roce-ibext-2nodes-slurm-prefix": "2.18.5",
    "v10-nccl-2.22.3-socket-1node-p2p-cumem": "2.22.3",
    "v14-torch-fsdp-slurm-label-mixed-step-and-nccl": "2.26.2",
    "v15-nccl-2.30-docs-subsystem-lines": "2.30.3",
    "v15-nccl-2.30-docs-subsystem-lines#2": "2.30.3",
}
# The number of nodes stands in the names of these jobs.
OF_NODES = re.compile(r"job-n-(?P<ranks>\d+)-N-(?P<hosts>\d+)-\d+")


@pytest.fixture(scope="module")
def store(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "store"
    told = CliRunner().invoke(app, ["ingest", str(corpus), "--store", str(path)])
    assert told.exit_code in {0, 1, 3}, told.output
    return path


@pytest.fixture(scope="module")
def ask(store: Path) -> Any:
    session = open_session(store, keep=True)
    return lambda statement: session.sql(statement).fetchall()


def test_no_job_is_joined_of_two_data_sets(ask: Any, corpus: Path) -> None:
    folders: dict[str, set[str]] = {}
    files: dict[str, int] = {}
    for job, path in ask("SELECT DISTINCT j.job, path FROM job_files j JOIN files USING (file_id)"):
        folder = str(Path(path).parent.resolve().relative_to(corpus.resolve()))
        folders.setdefault(job, set()).add(folder)
        files[job] = files.get(job, 0) + 1
    assert {job: folders[job] for job, count in files.items() if count > 1} == JOINED
    assert len(files) == 86


def test_each_job_has_the_nccl_version_of_its_own_files(ask: Any) -> None:
    told = ask(
        "SELECT DISTINCT job, split_part(version, '+', 1) FROM nccl_ranks WHERE version IS NOT NULL"
    )
    assert len(told) == len(VERSIONS)
    assert dict(told) == VERSIONS
    assert dict(ask("SELECT job, nccl_version FROM jobs WHERE nccl_version <> ''")) == VERSIONS


def test_a_benchmark_of_n_nodes_has_the_hosts_and_ranks_of_its_name(ask: Any) -> None:
    seen = 0
    for job, hosts, ranks in ask("SELECT job, hosts, ranks FROM jobs"):
        named = OF_NODES.fullmatch(job)
        if named is not None:
            seen += 1
            assert (hosts, ranks) == (int(named["hosts"]), int(named["ranks"])), job
    assert seen == 20


def test_runs_of_one_file_are_runs_of_one_job(ask: Any) -> None:
    assert ask("SELECT name, run FROM jobs WHERE run > 1") == [
        ("v15-nccl-2.30-docs-subsystem-lines", 2)
    ]


def test_the_jobs_are_listed_and_one_is_diagnosed_alone(store: Path) -> None:
    listed = CliRunner().invoke(app, ["diagnose", "--store", str(store), "--list-jobs"])
    assert listed.exit_code == 0
    said = " ".join(listed.output.split())
    for job, version in VERSIONS.items():
        assert re.search(rf"{re.escape(job)}: [^;]*NCCL {re.escape(version)}\b", said), job
    one = CliRunner().invoke(
        app,
        ["diagnose", "--store", str(store), "--job", "v07-nccl-opa-16nodes-64ranks"],
    )
    assert "2.7.8" in one.output
    assert not [v for v in set(VERSIONS.values()) - {"2.7.8"} if v in one.output]
