"""The table of configuration checks says of whom each is read: as the samples of formats tell."""

import base64
import tomllib
from pathlib import Path
from typing import Any

import pytest

from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session

pytestmark = pytest.mark.slow
INGEST = Path(__file__).parents[1] / "ingest"
# The column of the table, and how the names of the formats that are its begin.
VENDORS = {
    "sonic": ("sonic_",),
    "eos": ("eos_", "running_config", "cli_"),
    "nxos": ("nxos_", "running_config", "cli_"),
    "cumulus": ("nvue_", "cumulus_"),
    "junos": ("junos_",),
    "sr_linux": ("srl_",),
    "infiniband": ("ibdiagnet", "ibswinfo", "iblinkinfo", "ibnet"),
}
# Read by formats that samples of several vendors share.
SHARED = {"running_config", "cli_interfaces_status", "cli_interface_counters"}


def _samples(folder: Path, name: str) -> None:
    definition: dict[str, Any] = tomllib.loads((INGEST / f"{name}.toml").read_text("utf-8"))
    for number, sample in enumerate(definition["sample"]):
        path = folder / f"{name}_{number}" / sample.get("path", f"{name}.txt").lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        data = sample.get("text", "").removeprefix("\n").encode()
        path.write_bytes(base64.b64decode(sample["base64"]) if "base64" in sample else data)


def _checks(folder: Path, names: list[str]) -> set[str]:
    for name in names:
        _samples(folder / "logs", name)
    ingest([folder / "logs"], Store(folder / "store"), Options())
    with open_session(folder / "store", "configuration_parts") as session:
        return {
            row[0]
            for row in session.sql("FROM configuration_parts SELECT DISTINCT name").fetchall()
        }


def _stated(tmp_path: Path, vendor: str) -> set[str]:
    (tmp_path / "logs").mkdir(exist_ok=True)
    (tmp_path / "logs" / "steps.csv").write_text("step,rank,host,step_time_ms\n1,0,a,5\n")
    ingest([tmp_path / "logs" / "steps.csv"], Store(tmp_path / "empty"), Options())
    with open_session(tmp_path / "empty", "configuration_checks") as session:
        sql = f"FROM configuration_checks SELECT name WHERE {vendor} IS NOT NULL"
        return {row[0] for row in session.sql(sql).fetchall()}


@pytest.mark.parametrize("vendor", [*VENDORS, "hosts"])
def test_each_check_is_read_from_the_outputs_that_the_table_names(
    tmp_path: Path, vendor: str
) -> None:
    """The manual said that uname is not covered, and that EOS tells the firmware of modules."""
    formats = sorted(path.stem for path in INGEST.glob("*.toml"))
    of_switches = tuple(prefix for prefixes in VENDORS.values() for prefix in prefixes)
    own = [
        name
        for name in formats
        if (name.startswith(VENDORS[vendor]) if vendor != "hosts" else True)
        and (vendor != "hosts" or not name.startswith(of_switches))
    ]
    # Variables of NCCL are read whatever their names.
    (tmp_path / "logs").mkdir()
    line = "node1:7:7 [0] NCCL INFO NCCL_IB_ADAPTIVE_ROUTING set by environment to 1.\n"
    (tmp_path / "logs" / "nccl.log").write_text(line if vendor == "hosts" else "")
    read, stated = _checks(tmp_path, own), _stated(tmp_path, vendor)
    assert stated <= read, f"stated, not read: {sorted(stated - read)}"
    if vendor != "hosts":
        alone = _checks(tmp_path / "own", [name for name in own if name not in SHARED])
        assert alone <= stated, f"read, not stated: {sorted(alone - stated)}"
