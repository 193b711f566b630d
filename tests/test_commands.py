"""Commands in what findings say: marked in every model, code on every page."""

import csv
import os
import re
from datetime import UTC, datetime
from pathlib import Path
from string import Formatter

import pytest

from fabricobs import content
from fabricobs.diagnosis.command_outputs import formats_of, with_outputs
from fabricobs.diagnosis.device_commands import nic_commands_of
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.finding_builder import steps_of
from fabricobs.diagnosis.findings import Entity, Finding
from fabricobs.diagnosis.model import Model, load_models
from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.report.commands import parts_of, with_commands
from fabricobs.store.parts import Store

MODELS = load_models()
# Programs whose names are words, too.
WORDS = {"env", "fabricobs", "ip", "ls", "show", "top", "ulimit"}


def said(model: Model) -> list[str]:
    """The next steps of a model with each of its phrases, and what refutes it."""
    texts = list(model.refuted_by)
    for step in model.next_steps:
        named = [name for _, name, _, _ in Formatter().parse(step) if name]
        phrases = [text for name in named for text in model.wording.phrase.get(name, ())]
        texts += [step, *phrases]
    return texts


@pytest.mark.parametrize("kind", MODELS)
def test_commands_are_marked_and_nothing_else(kind: str) -> None:
    model = MODELS[kind]
    for text in said(model):
        assert text.count("`") % 2 == 0, text
        assert "`" not in "".join(part for part, is_command in parts_of(text) if not is_command)
        assert all(part == part.strip() for part, is_command in parts_of(text) if is_command)
    others = [model.wording.title, model.wording.explanation, model.question]
    others += [t for texts in model.wording.phrase.values() for t in texts if t not in said(model)]
    assert [text for text in others if "`" in text] == []


def test_no_program_that_one_step_runs_is_prose_in_another() -> None:
    parts = [part for model in MODELS.values() for text in said(model) for part in parts_of(text)]
    programs = {text.split()[0] for text, is_command in parts if is_command and "=" not in text}
    assert len(programs - WORDS) > 20
    words = {word for text, code in parts if not code for word in re.findall(r"[\w.-]+", text)}
    assert words & (programs - WORDS) == set()


def test_a_name_of_a_log_is_no_command() -> None:
    model = next(model for model in MODELS.values() if model.kind == "link_flap")
    names = {"port": "`reboot now`", "nic_host": "`rm -rf /`", "nic": "mlx5_0", "drain": ""}
    device = nic_commands_of("mlx5_0")
    first, second, *_ = steps_of(model, names | {"ends": "a and b"} | device, device)
    commands = [part for step in (first, second) for part, code in parts_of(step) if code]
    assert commands[:2] == ["dmesg -T | grep -i 'link down'", "mlxlink -d mlx5_0 -m"]
    assert not any("reboot" in command or "rm" in command.split() for command in commands)


@pytest.mark.parametrize(
    ("text", "page"),
    [
        ("a&b: `ls <x>`", 'a&amp;b: <code class="copy">ls &lt;x&gt;</code>'),
        ("is `top` there", "is <code>top</code> there"),
        ("one ` alone", "one ` alone"),
        ("", ""),
    ],
)
def test_a_page_shows_commands_as_code(text: str, page: str) -> None:
    assert with_commands(text) == page


def test_outputs_of_commands_are_of_formats_that_are_read() -> None:
    known = content.files("ingest", ".toml")
    with content.files("models", ".csv")["command_outputs"].open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert [f for row in rows for f in row["formats"].split() if f not in known] == []
    assert all(re.compile(row["command"]) and re.compile(row["settings"]) for row in rows)
    assert formats_of("On a: `ethtool -g eth0`, `lsmod | grep -e gdrdrv`") == {"lsmod"}
    assert formats_of("On a: `ethtool eth0`; ethtool -S") == {"ethtool_settings"}


def test_a_step_names_the_file_that_holds_its_output(tmp_path: Path) -> None:
    noon = datetime(2026, 3, 1, 12)
    for host, hour in (("gpu-01", 11), ("gpu-02", 13), ("gpu-03", 13)):
        log = tmp_path / "logs" / host / "ethtool.txt"
        log.parent.mkdir(parents=True)
        log.write_text("Settings for eth0:\n\tSpeed: 400000Mb/s\n\tLink detected: yes\n")
        moment = noon.replace(hour=hour, tzinfo=UTC).timestamp()
        os.utime(log, (moment, moment))
    ingest([tmp_path / "logs"], Store(tmp_path / "store"), Options())
    steps = ("On gpu-02: `ethtool eth0`.", "Reseat the cable.", "On gpu-01: `ethtool eth0`.")

    def told(start: datetime | None) -> tuple[str, ...]:
        finding = Finding(
            kind="degraded_link",
            entities=(Entity("host", host="gpu-01"), Entity("host", host="gpu-02")),
            severity="medium",
            confidence=0.5,
            title="",
            explanation="",
            start=start,
            next_steps=steps,
        )
        return with_outputs([finding], Evidence(tmp_path / "store"))[0].next_steps

    files = {host: tmp_path / "logs" / host / "ethtool.txt" for host in ("gpu-01", "gpu-02")}
    second = f"{steps[0]} Already in the logs: {files['gpu-02']}."
    assert told(noon) == (second, *steps[1:])  # gpu-01 was asked before it began
    assert told(None) == (second, steps[1], f"{steps[2]} Already in the logs: {files['gpu-01']}.")


def test_a_file_of_another_nic_holds_no_output_of_this_one(tmp_path: Path) -> None:
    """The newest file of the host was that of eth4; the cable is at eth1."""
    folder = tmp_path / "logs" / "gpu-01"
    folder.mkdir(parents=True)
    for number in (1, 10, 4):
        text = f"Settings for eth{number}:\n\tSpeed: 400000Mb/s\n\tLink detected: yes\n"
        (folder / f"ethtool_eth{number}-0900.txt").write_text(text)
        counted = f"NIC statistics:\n     rx_packets: {number}\n     rx_bytes: 9\n"
        (folder / f"ethtool-S_eth{number}-0900.txt").write_text(counted)
    (folder / "lspci.txt").write_text("3b:00.0 Ethernet controller: Broadcom\n")
    ingest([tmp_path / "logs"], Store(tmp_path / "store"), Options())
    finding = Finding(
        kind="link_errors",
        entities=(Entity("nic", host="gpu-01", nic="eth1"),),
        severity="medium",
        confidence=0.5,
        title="",
        explanation="",
        next_steps=("On gpu-01: `ethtool eth1`.",),
    )
    evidence = Evidence(tmp_path / "store")
    names = evidence.frame("names_of_nics")["name"].to_list()
    (step,) = with_outputs([finding], evidence)[0].next_steps
    assert {"eth1", "eth4", "eth10"} <= {*names}, names
    assert step.endswith("ethtool_eth1-0900.txt.")


def test_of_outputs_that_one_format_reads_a_step_names_that_of_its_command(tmp_path: Path) -> None:
    texts = {
        "show_ecn": "Profile: RDMA\n-----------------------  ---------\n"
        "red_min_threshold        536870912\necn                      ecn_all\n",
        "show_pfc_priority": "Interface    Lossless priorities\n-----------  -------------------\n"
        "Ethernet0    3,4\n",
        "show_pfcwd_config": "Changed polling interval to 400ms\n",
    }
    folder = tmp_path / "logs" / "switches" / "leaf01"
    folder.mkdir(parents=True)
    for name, text in texts.items():
        (folder / f"{name}.txt").write_text(f"===== 2026-03-02T09:00:00Z =====\n\n{text}")
    ingest([tmp_path / "logs"], Store(tmp_path / "store"), Options())
    commands = [name.replace("_", " ") for name in texts]
    finding = Finding(
        kind="ecn_misconfigured",
        entities=(Entity("switch", switch="leaf01"),),
        severity="medium",
        confidence=0.5,
        title="",
        explanation="",
        next_steps=(
            *(f"On leaf01: `{command}`." for command in commands),
            "On leaf01: `show buffer configuration`.",
            "On leaf01: `show pfc priority` and `show ecn`.",
        ),
    )
    *single, none, both = with_outputs([finding], Evidence(tmp_path / "store"))[0].next_steps
    for name, step in zip(texts, single, strict=True):
        assert step.endswith(f"Already in the logs: {folder / name}.txt.")
    assert "Already" not in none
    assert f": {folder}/show_pfc_priority.txt, {folder}/show_ecn.txt." in both
