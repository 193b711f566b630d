"""`fabricobs schedule`: units their schedulers take, checked by the schedulers' own programs."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jsonschema
import pytest
import yaml
from loopback import get_json, prometheus, receiver, tool, wait_for
from small_store import steps, write_days

from conftest import ROOT, Run
from fabricobs.diagnosis.findings import Entity, Finding
from fabricobs.diagnosis.incidents import Incident, Raised
from fabricobs.operate.textfile import Health, write_textfile
from fabricobs.store.parts import Store

NOW = datetime(2026, 3, 2, 9)
LEAF = Entity("switch", switch="leaf01")
FINDING = Finding("ecmp_skew", (LEAF,), "high", 0.9, "leaf01 is uneven", "", loss_share=0.2)
INCIDENT = Incident(FINDING, "firing", NOW, (Raised("high", NOW),))


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A site: a program called fabricobs on the search path, logs with a blank in their name."""
    program = tmp_path / "bin" / "fabricobs"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "$@" >> "$(dirname "$0")/called"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    (tmp_path / "my logs").mkdir()
    return tmp_path


def unit(fabricobs: Run, path: Path, scheduler: str, *more: object) -> str:
    result = fabricobs(
        "schedule", scheduler, path / "my logs", "--store", path / "store", *more, cwd=ROOT
    )
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stderr
    return str(result.stdout)


@pytest.mark.parametrize("every", ["1m", "5m", "1h", "6h", "1d"])
def test_cron_takes_the_line(fabricobs: Run, path: Path, every: str) -> None:
    program = tool("crontab")
    subprocess.run([program, "-l"], capture_output=True)  # makes its spool if there is none yet
    (path / "tab").write_text(unit(fabricobs, path, "cron", "--every", every))
    checked = subprocess.run([program, "-n", path / "tab"], capture_output=True, text=True)
    assert "successfully checked" in checked.stderr, checked.stderr


def test_crons_line_runs_one_round_and_never_two(fabricobs: Run, path: Path) -> None:
    (path / "100%").mkdir()
    text = unit(fabricobs, path, "cron", path / "100%")
    schedule, command = text[:11], text[12:].rstrip("\n").replace("\\%", "%")
    assert schedule == "*/5 * * * *"
    command = command.replace("logger -t fabricobs", "cat")
    lock = subprocess.Popen(["flock", path / "store.lock", "sleep", "60"], start_new_session=True)
    try:
        while subprocess.run(["flock", "-n", path / "store.lock", "true"]).returncode == 0:
            time.sleep(0.05)
        subprocess.run(["sh", "-c", command], check=True)
        assert not (path / "bin" / "called").exists()
    finally:
        os.killpg(lock.pid, signal.SIGKILL)
        lock.wait()
    # `sleep` holds the lock too, and may outlive `flock` for a moment.
    subprocess.run(["flock", "-w", "30", path / "store.lock", "true"], check=True)
    subprocess.run(["sh", "-c", command], check=True)
    assert f"{path}/my logs {path}/100%\n" in (path / "bin" / "called").read_text()


def test_systemd_takes_service_and_timer(fabricobs: Run, path: Path) -> None:
    program = tool("systemd-analyze")
    unit(fabricobs, path, "systemd", "--out", path / "units", "--every", "10m")
    files = sorted((path / "units").iterdir())
    assert [file.name for file in files] == ["fabricobs.service", "fabricobs.timer"]
    checked = subprocess.run([program, "verify", *files], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr
    assert not [line for line in checked.stderr.splitlines() if "fabricobs" in line]
    service, timer = (file.read_text() for file in files)
    assert "SuccessExitStatus=1 2" in service
    assert f'"{path}/my logs"' in service
    assert "Persistent=true" in timer


@pytest.mark.parametrize("every", ["30s", "1m", "10m", "1h", "12h", "1d"])
def test_systemd_takes_the_calendar(fabricobs: Run, path: Path, every: str) -> None:
    program = tool("systemd-analyze")
    text = unit(fabricobs, path, "systemd", "--every", every)
    (calendar,) = [line for line in text.splitlines() if line.startswith("OnCalendar=")]
    command = [program, "calendar", "--iterations=2", calendar.partition("=")[2]]
    checked = subprocess.run(command, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr


def test_kubernetes_takes_the_cron_job(fabricobs: Run, path: Path) -> None:
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    config = path / "site.toml"
    config.write_text('gpu_hour_price = 2\n[watch]\nevery = "15m"\n')
    text = unit(fabricobs, path, "kubernetes", "--image", "site/fabricobs:1", "--config", config)
    document = yaml.safe_load(text)
    kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)
    spec = document["spec"]
    assert spec["concurrencyPolicy"] == "Forbid"
    assert spec["schedule"] == "*/15 * * * *"
    assert spec["jobTemplate"]["spec"]["backoffLimit"] == 0
    (container,) = spec["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert container["command"][-3:] == ["--fail-on", "never", f"{path}/my logs"]
    mounted = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounted == {f"{path}/store", f"{path}/my logs", str(config)}


def test_slurms_epilog_is_sound_and_judges_the_logs_of_the_job(fabricobs: Run, path: Path) -> None:
    result = fabricobs(
        "schedule", "slurm", path / "my logs" / "%j", "--store", path / "store",
        "--out", path, cwd=ROOT,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    script = path / "fabricobs-epilog.sh"
    subprocess.run([tool("shellcheck"), "--severity=style", script], check=True)
    environment = {**os.environ, "SLURM_JOB_ID": "4711"}
    subprocess.run([script], env=environment, check=True)
    assert not (path / "bin" / "called").exists(), "no logs of that job, no round"
    (path / "my logs" / "4711").mkdir()
    subprocess.run([script], env=environment, check=True, timeout=20)
    called = path / "bin" / "called"
    give_up = time.monotonic() + 30
    while not called.exists() and time.monotonic() < give_up:
        time.sleep(0.05)
    assert f"--job 4711 {path}/my logs/4711\n" in called.read_text()


def objects(
    fabricobs: Run, scheduler: str, *more: object, logs: object = "s3://site/logs"
) -> list[dict[str, Any]]:
    """Return the documents for logs and a store in an object store, each as Kubernetes takes it."""
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    result = fabricobs("schedule", scheduler, logs, "--store", "s3://site/store", *more, cwd=ROOT)
    assert result.returncode == 0, result.stderr
    documents = list(yaml.safe_load_all(result.stdout))
    for document in documents:
        kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)
    return documents


def pod_of(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = document["spec"]["template"]["spec"]
    return found


def test_kubernetes_watches_an_object_store(fabricobs: Run) -> None:
    (document,) = objects(fabricobs, "kubernetes", "--image", "site/fabricobs:1", "--every", "90s")
    assert (document["kind"], document["spec"]["replicas"]) == ("Deployment", 1)
    assert document["spec"]["strategy"] == {"type": "Recreate"}, "one watch at a time"
    (container,) = pod_of(document)["containers"]
    assert container["command"] == [
        "fabricobs", "watch", "--store", "s3://site/store", "--every", "1m30s", "s3://site/logs",
    ]  # fmt: skip
    (mount,) = container["volumeMounts"]
    assert {"name": "XDG_CACHE_HOME", "value": mount["mountPath"]} in container["env"]
    assert pod_of(document)["volumes"] == [{"name": mount["name"], "emptyDir": {}}]


def test_kubernetes_starts_a_cluster_that_reads(fabricobs: Run, path: Path) -> None:
    documents = objects(
        fabricobs, "kubernetes", "--image", "site/fabricobs:1", "--workers", 12,
        logs=path / "my logs",
    )  # fmt: skip
    watch, service, scheduler, worker = documents
    assert [each["kind"] for each in documents] == [
        "Deployment", "Service", "Deployment", "Deployment",
    ]  # fmt: skip
    address = f"{service['metadata']['name']}:{service['spec']['ports'][0]['port']}"
    (container,) = pod_of(watch)["containers"]
    assert f"dask://{address}" in container["command"]
    assert service["spec"]["selector"] == scheduler["spec"]["template"]["metadata"]["labels"]
    assert worker["spec"]["replicas"] == 12
    (reader,) = pod_of(worker)["containers"]
    assert f"tcp://{address}" in reader["command"]
    # A worker reads what the watch lists, under the same path and with the same keys.
    assert reader["volumeMounts"] == container["volumeMounts"]
    assert reader["envFrom"] == container["envFrom"]
    assert {mount["mountPath"] for mount in reader["volumeMounts"]} == {f"{path}/my logs", "/cache"}


def test_a_directory_store_is_read_by_a_cluster_too(fabricobs: Run, path: Path) -> None:
    text = unit(
        fabricobs, path, "kubernetes", "--image", "site/fabricobs:1",
        "--executor", "dask://dask.site:8786",
    )  # fmt: skip
    (document,) = yaml.safe_load_all(text)
    assert document["kind"] == "CronJob"
    (container,) = document["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    at = container["command"].index("--executor")
    assert container["command"][at + 1] == "dask://dask.site:8786"


def test_slurms_epilog_judges_logs_in_an_object_store(fabricobs: Run, path: Path) -> None:
    result = fabricobs(
        "schedule", "slurm", "s3://site/logs/%j", "--store", "s3://site/store", "--out", path,
        cwd=ROOT,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    script = path / "fabricobs-epilog.sh"
    subprocess.run([tool("shellcheck"), "--severity=style", script], check=True)
    called, keys = path / "bin" / "called", path / "environment"
    keys.write_text("AWS_REGION=somewhere\n")
    program = path / "bin" / "fabricobs"
    program.write_text(program.read_text().replace('"$@"', '"$AWS_REGION" "$@"'))
    environment = {**os.environ, "SLURM_JOB_ID": "4711", "FABRICOBS_ENVIRONMENT": str(keys)}
    subprocess.run([script], env=environment, check=True, timeout=20)
    wait_for(called.exists, "the round", 30)
    assert called.read_text().startswith("somewhere watch --once --store s3://site/store ")
    assert called.read_text().endswith(" --job 4711 s3://site/logs/4711\n")


@pytest.mark.slow
def test_slurms_job_reads_with_workers_of_its_own(
    fabricobs: Run, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    real = Path(sys.executable).parent
    program = path / "bin" / "fabricobs"
    program.write_text(
        f"#!{sys.executable}\nfrom fabricobs.cli import main\nmain()\n"  # as installed
    )
    (path / "bin" / "dask").symlink_to(real / "dask")
    # What Slurm does with the tasks of a step, on one node.
    srun = path / "bin" / "srun"
    srun.write_text(
        "#!/bin/bash\ntrap 'kill -9 $(jobs -p)' TERM\nfor _ in 1 2; do \"$@\" & done\nwait\n"
    )
    srun.chmod(0o755)
    write_days(path / "my logs", 3)
    unit(fabricobs, path, "slurm", "--workers", 2, "--out", path)
    script = path / "fabricobs-round.sh"
    subprocess.run([tool("shellcheck"), "--severity=style", script], check=True)
    environment = {**os.environ, "SLURM_SUBMIT_DIR": str(path), "PYTHONPATH": str(ROOT)}
    with (path / "said").open("w") as said:
        command = ["timeout", "300", script]
        done = subprocess.run(command, env=environment, stdout=said, stderr=said)
    assert done.returncode == 1, "three steps can be judged by no model: exit code 3 of the round"
    assert "3 files read" in (path / "said").read_text()
    assert steps(Store(path / "store")) == [1, 2, 3]
    assert not list(path.glob(".fabricobs-*")), "nothing stays behind"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["cron", "--workers", 4], "schedule cron starts no workers; kubernetes and slurm do"),
        (["slurm", "--workers", 4, "%j"], "with --workers a round reads the logs of all jobs"),
        (
            ["kubernetes", "--workers", 4, "--executor", "dask://a:1"],
            "--executor names a cluster that runs; leave --workers out",
        ),
        (["kubernetes", "--executor", "a:1"], "expected dask://HOST:PORT"),
        (["cron", "--every", "7m"], "the scheduler knows only what divides an hour or a day"),
        (["cron", "--every", "30s"], "as 1m, 5m"),
        (["systemd", "--every", "25h"], "the scheduler knows only"),
        (["kubernetes"], "kubernetes needs --image"),
        (["jenkins"], "no scheduler 'jenkins'; one of cron, systemd, kubernetes, slurm"),
    ],
)
def test_what_cannot_be_scheduled(
    fabricobs: Run, path: Path, arguments: list[object], said: str
) -> None:
    result = fabricobs("schedule", *arguments, path / "my logs", cwd=ROOT)
    assert result.returncode == 3
    assert said in result.stderr


@pytest.mark.parametrize("address", ["", "https://host/it's/", "http://host:8080"])
def test_prometheus_takes_the_rules(fabricobs: Run, tmp_path: Path, address: str) -> None:
    rules, own = tmp_path / "rules.yaml", tmp_path / "own.toml"
    own.write_text(f'[notify]\nbase_url = "{address}"\n' if address else "")
    told = fabricobs("schedule", "prometheus", "--every", "10m", "--config", own, cwd=tmp_path)
    rules.write_text(told.stdout)
    (first, *_) = yaml.safe_load(told.stdout)["groups"][0]["rules"]
    page = f"{address.rstrip('/')}/incidents/{{{{ $labels.id }}}}.html"
    assert first["annotations"].get("runbook_url") == (page if address else None)
    checked = subprocess.run([tool("promtool"), "check", "rules", rules], capture_output=True)
    assert checked.returncode == 0, checked.stderr


def test_rules_and_dashboard_ask_for_metrics_that_the_watch_writes(
    fabricobs: Run, tmp_path: Path
) -> None:
    write_textfile(tmp_path / "a.prom", (INCIDENT,), Health(NOW, 3.5, True, NOW, {"webhook": 2}))
    written = set(re.findall(r"^(fabricobs_\w+)", (tmp_path / "a.prom").read_text(), re.M))
    rules = yaml.safe_load(fabricobs("schedule", "prometheus", cwd=tmp_path).stdout)
    asked = [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    made = fabricobs("schedule", "grafana", "--out", "g", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    dashboard = json.loads((tmp_path / "g" / "fabricobs-dashboard.json").read_text())
    asked += [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert set(re.findall(r"fabricobs_\w+", " ".join(asked))) <= written
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    provider = yaml.safe_load((tmp_path / "g" / "fabricobs-grafana.yaml").read_text())
    assert provider["providers"][0]["type"] == "file"


def test_a_scheduler_needs_logs(fabricobs: Run, tmp_path: Path) -> None:
    result = fabricobs("schedule", "cron", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (3, "")
    assert "schedule cron needs the logs" in result.stderr


# What Grafana's schema of dashboards says of what ours has (schemaVersion 39, Grafana 10.4 and
# later). Nothing else may stand in it: Grafana drops a misspelled key without a word.
SOURCE = {
    "type": "object",
    "required": ["type", "uid"],
    "additionalProperties": False,
    "properties": {"type": {"const": "prometheus"}, "uid": {"const": "${source}"}},
}
TARGET = {
    "type": "object",
    "required": ["refId", "expr"],
    "additionalProperties": False,
    "properties": {
        "refId": {"type": "string", "pattern": "^[A-Z]$"},
        "expr": {"type": "string"},
        "legendFormat": {"type": "string"},
        "format": {"enum": ["time_series", "table", "heatmap"]},
        "instant": {"type": "boolean"},
    },
}
FIELDS = {
    "type": "object",
    "required": ["defaults", "overrides"],
    "additionalProperties": False,
    "properties": {
        "overrides": {"type": "array", "maxItems": 0},
        "defaults": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "unit": {"enum": ["percentunit", "s"]},
                "min": {"type": "number"},
                "mappings": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["type", "options"],
                        "properties": {"type": {"enum": ["value", "range", "regex", "special"]}},
                    },
                },
                "thresholds": {
                    "type": "object",
                    "required": ["mode", "steps"],
                    "additionalProperties": False,
                    "properties": {
                        "mode": {"enum": ["absolute", "percentage"]},
                        "steps": {
                            "type": "array",
                            "items": {
                                "type": "object",
                                "required": ["color", "value"],
                                "properties": {"value": {"type": ["number", "null"]}},
                            },
                        },
                    },
                },
            },
        },
    },
}
PANEL = {
    "type": "object",
    "required": ["id", "title", "type", "gridPos", "datasource", "targets"],
    "additionalProperties": False,
    "properties": {
        "id": {"type": "integer", "minimum": 1},
        "title": {"type": "string", "minLength": 1},
        "type": {"enum": ["stat", "timeseries", "table"]},
        "gridPos": {
            "type": "object",
            "required": ["x", "y", "w", "h"],
            "additionalProperties": False,
            "properties": {
                "x": {"type": "integer", "minimum": 0, "maximum": 23},
                "y": {"type": "integer", "minimum": 0},
                "w": {"type": "integer", "minimum": 1, "maximum": 24},
                "h": {"type": "integer", "minimum": 1},
            },
        },
        "datasource": SOURCE,
        "targets": {"type": "array", "minItems": 1, "items": TARGET},
        "fieldConfig": FIELDS,
        "options": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "colorMode": {"enum": ["none", "value", "background", "background_solid"]}
            },
        },
        "transformations": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["id", "options"],
                "additionalProperties": False,
                "properties": {"id": {"const": "organize"}, "options": {"type": "object"}},
            },
        },
    },
}
DASHBOARD = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "required": ["uid", "title", "schemaVersion", "panels", "templating"],
    "additionalProperties": False,
    "properties": {
        "uid": {"type": "string", "maxLength": 40, "pattern": "^[A-Za-z0-9_-]+$"},
        "title": {"type": "string", "minLength": 1},
        "tags": {"type": "array", "items": {"type": "string"}},
        "timezone": {"enum": ["utc", "browser"]},
        "schemaVersion": {"type": "integer", "minimum": 36},
        "refresh": {"type": "string", "pattern": "^[0-9]+[smhd]$"},
        "time": {"type": "object", "required": ["from", "to"]},
        "templating": {
            "type": "object",
            "required": ["list"],
            "properties": {
                "list": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["name", "type", "query"],
                        "properties": {
                            "type": {"enum": ["query", "datasource", "custom", "interval"]}
                        },
                    },
                }
            },
        },
        "panels": {"type": "array", "items": PANEL},
    },
}


@pytest.fixture
def dashboard(fabricobs: Run, tmp_path: Path) -> Any:
    made = fabricobs("schedule", "grafana", "--out", "made", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    return json.loads((tmp_path / "made" / "fabricobs-dashboard.json").read_text())


def test_the_dashboard_is_what_grafana_takes(dashboard: Any) -> None:
    jsonschema.Draft202012Validator.check_schema(DASHBOARD)
    jsonschema.validate(dashboard, DASHBOARD)
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, "panels do not overlap"
        taken |= cells


@pytest.mark.parametrize(
    "spoil",
    [
        lambda d: d["panels"][0].update(tittle="x"),
        lambda d: d["panels"][0]["targets"][0].pop("refId"),
        lambda d: d["panels"][1]["gridPos"].update(w=25),
        lambda d: d.update(schemaVersion="39"),
    ],
)
def test_a_spoiled_dashboard_is_not(dashboard: Any, spoil: Callable[[Any], object]) -> None:
    spoil(dashboard)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(dashboard, DASHBOARD)


@pytest.mark.slow
def test_prometheus_answers_every_expression(
    fabricobs: Run, dashboard: Any, tmp_path: Path
) -> None:
    """Over the textfile of a watch that has an incident, a failed round and events that wait."""
    rules = yaml.safe_load(fabricobs("schedule", "prometheus", cwd=tmp_path).stdout)
    asked = [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    asked += [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    path = tmp_path / "a.prom"
    write_textfile(path, (INCIDENT,), Health(NOW, 3.5, False, NOW, {"webhook": 2}))
    with receiver() as kept, prometheus(tmp_path, kept.url.removeprefix("http://")) as address:
        kept.served = path.read_bytes

        def answer(expression: str) -> Any:
            found = get_json(f"{address}/api/v1/query?query={quote(expression)}")
            assert found["status"] == "success"
            return found["data"]["result"]

        wait_for(lambda: answer("fabricobs_round_success"), "Prometheus to have scraped")
        assert [expression for expression in asked if not answer(expression)] == []
