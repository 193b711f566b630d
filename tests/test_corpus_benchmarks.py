"""What is said of real nccl-tests: Alps (GH200, Slingshot) in two settings, A100 and H100 hosts."""

import io
import re
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from fabricobs.cli import app

pytestmark = pytest.mark.slow

FAILED = re.compile(r"Out of bounds values : \d+ FAILED")
PLAIN = "nccl-tests_nccl-2.23.4-1-aws-1.13.0-v0"
ONE_HOST = {
    "v01-nccltests-errorcol-allreduce-a100x8.log": 235,
    "v02-nccltests-errorcol-reduce-a100x8.log": 228,
    "v03-nccltests-errorcol-alltoall-a100x8.log": 224,
    "v09-nccltests-2.13plus-srun-graph1-h100x8.log": 459,
}


def stored(path: Path, store: Path) -> Path:
    told = CliRunner().invoke(app, ["ingest", str(path), "--store", str(store)])
    assert told.exit_code in {0, 1, 3}, told.output
    return store


def verdicts(store: Path) -> pl.DataFrame:
    arguments = ["query", "acceptance", "--store", str(store), "--format", "csv"]
    rows = pl.read_csv(io.StringIO(CliRunner().invoke(app, arguments).output), infer_schema=None)
    return rows.with_columns(file=pl.col("path").str.split("/").list.get(-1))


@pytest.fixture(scope="module")
def alps(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stored(corpus / "benchmarks" / "alps", tmp_path_factory.mktemp("alps") / "store")


def test_wrong_results_are_those_that_the_outputs_call_failed(corpus: Path, alps: Path) -> None:
    outputs = list((corpus / "benchmarks" / "alps").glob("*/*.out"))
    failed = {path.name for path in outputs if FAILED.search(path.read_text(errors="replace"))}
    rows = verdicts(alps)
    assert rows["file"].n_unique() == len(outputs) == 20
    assert set(rows.filter(pl.col("verdict") == "wrong results")["file"]) == failed
    assert len(failed) == 9


def test_half_of_what_alike_hosts_reach_is_no_ok(alps: Path) -> None:
    """256 ranks on 64 hosts: 47 GB/s with one setting, 92 with the other."""
    rows = verdicts(alps).filter(pl.col("nranks") == "256")
    by_setting = {row["path"].split("/")[-2] == PLAIN: row for row in rows.iter_rows(named=True)}
    assert by_setting[True]["verdict"] == "ok"
    assert by_setting[False]["verdict"] == "unstable"
    assert by_setting[False]["share_of_best"][:4] == "0.51"
    told = CliRunner().invoke(app, ["diagnose", "--store", str(alps)]).output
    assert "reaches 49% less than the best alike" in told
    assert "1 job: 1 with a problem. Worst is benchmarks: AllReduce" in " ".join(told.split())
    assert "problem  Do collectives reach what the hardware allows?" in told
    assert "AllReduce computes wrong results in 9 of 20 runs" in " ".join(told.split())


def test_several_hosts_of_unknown_nics_are_not_judged_alone(corpus: Path, tmp_path: Path) -> None:
    alone = corpus / "benchmarks" / "alps" / PLAIN / "job-n-00128-N-0032-143000.out"
    (row,) = verdicts(stored(alone, tmp_path / "store")).iter_rows(named=True)
    assert (row["verdict"], row["nranks"], row["nodes"]) == ("not judged", "128", "32")
    assert "NCCL_DEBUG=INFO" in row["settled_by"]


@pytest.mark.parametrize("name", ONE_HOST)
def test_sound_hosts_are_ok(corpus: Path, tmp_path: Path, name: str) -> None:
    """Their authors published these as what such hosts reach."""
    (row,) = verdicts(stored(corpus / "nccl" / name, tmp_path / "store")).iter_rows(named=True)
    assert row["verdict"] == "ok"
    assert float(row["busbw_gbytes_per_s"]) == pytest.approx(ONE_HOST[name], rel=0.01)
