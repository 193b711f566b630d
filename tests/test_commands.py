"""Commands in what findings say: marked in every model, code on every page."""

import re
from string import Formatter

import pytest

from fabricobs.diagnosis.device_commands import nic_commands_of
from fabricobs.diagnosis.finding_builder import steps_of
from fabricobs.diagnosis.model import Model, load_models
from fabricobs.report.commands import parts_of, with_commands

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
