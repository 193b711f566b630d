"""Definitions: every one reads its samples; mistakes in them are named with the remedy."""

from pathlib import Path

import pytest

from conftest import ROOT
from fabricobs.content import ContentError
from fabricobs.formats.definition import load_definition
from fabricobs.formats.recognition.catalogue import Catalogue, load_catalogue
from fabricobs.formats.samples import check_format
from fabricobs.formats.templates import TemplateError, compile_template

CATALOGUE = load_catalogue()

SOUND = """
title = "T"
reader = "lines"
[detect]
text = 'step'
[[line]]
template = 'step {step:int}'
table = "steps"
[[sample]]
text = 'step 3'
rows.steps = [{ step = 3 }]
"""


@pytest.mark.parametrize("name", CATALOGUE.formats)
def test_every_definition_reads_its_samples(name: str) -> None:
    assert list(check_format(CATALOGUE.formats[name], CATALOGUE)) == []


def test_every_definition_reads_its_samples_with_line_ends_of_windows() -> None:
    definitions = {}
    for name, format_ in CATALOGUE.formats.items():
        texts = [s for s in format_.definition.sample if s.text and "\r" not in s.text]
        samples = tuple(s.model_copy(update={"text": s.text.replace("\n", "\r\n")}) for s in texts)
        definitions[name] = format_.definition.model_copy(update={"sample": samples})
    catalogue = Catalogue(definitions)
    wrong = [said for f in catalogue.formats.values() for said in check_format(f, catalogue)]
    assert wrong == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("[[sample]]\ntext = 'step 3'\nrows.steps = [{ step = 3 }]", ""), "no [[sample]]"),
        (("template = 'step", "tamplate = 'step"), "did you mean 'template'?"),
        (('reader = "lines"', 'reader = "line"'), "reader"),
        (('table = "steps"', 'table = "stepz"'), "did you mean 'steps'?"),
        (("{step:int}", "{stepp:int}"), "did you mean 'step'?"),
        (("{step:int}", "{loss:text}"), "a text cannot fill it"),
        (("{step:int}", "{step:integer}"), "unknown type 'integer'"),
        (("text = 'step'", "text = '(?=step)'"), "look-around"),
    ],
)
def test_a_mistake_is_named_with_its_remedy(
    tmp_path: Path, change: tuple[str, str], said: str
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(SOUND.replace(*change))
    with pytest.raises(ContentError, match=r"mine\.toml") as error:
        definition = load_definition(path)
        _ = Catalogue({"mine": definition}).formats["mine"].compiled
    assert said in str(error.value)


def test_a_sample_that_does_not_hold_is_told(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(SOUND.replace("step = 3 }", "step = 4 }"))
    mine = Catalogue({"mine": load_definition(path)})
    (mistake,) = check_format(mine.formats["mine"], mine)
    assert mistake.endswith("steps row 1: step is 3, not 4")


def test_a_users_definition_takes_the_place_of_the_shipped_one(tmp_path: Path) -> None:
    folder = tmp_path / "ingest"
    folder.mkdir()
    (folder / "torchtitan.toml").write_text(SOUND)
    assert load_catalogue([tmp_path]).formats["torchtitan"].definition.title == "T"


@pytest.mark.parametrize(
    ("line", "fits"), [("7 of 7", True), ("7 of 70", False), ("7 of 8", False)]
)
def test_a_field_named_again_reads_the_same_text_again(line: str, fits: bool) -> None:
    template = compile_template("{step:int} of {step:int}")
    found = template.pattern.match(line)
    assert (found and template.read(found)) == ({"step": 7} if fits else None)


def test_a_field_is_named_again_with_its_type() -> None:
    with pytest.raises(TemplateError, match="reads 'step' as int and as word"):
        compile_template("{step:int} {step:word}")


HAND_WRITTEN = b"step 7 loss 2.5 time 0.5s\n"


def test_a_format_gives_way_where_another_one_fills_its_table() -> None:
    alone = CATALOGUE.recognise(HAND_WRITTEN, "/logs/run.log")
    assert [f.name for f in alone.formats] == ["training_loop"]
    both = CATALOGUE.recognise(
        HAND_WRITTEN + b"completed step: 7, seconds: 0.5, loss: 2.5\n", "/logs/run.log"
    )
    assert [f.name for f in both.formats] == ["maxtext"]


def test_a_coloured_line_is_recognised() -> None:
    line = b"\x1b[31mstep:  7  \x1b[32mloss:  5.1  \x1b[34mtps: 12,345\x1b[39m\n"
    assert "torchtitan" in {f.name for f in CATALOGUE.recognise(line, "/logs/run.log").formats}


KEPT = """
title = "T"
reader = "lines"
isolated = true
[detect]
text = 'begin'
[[line]]
template = 'begin {step:int}'
context = ["step", "block"]
set = { block = "on" }
[[line]]
template = 'part {duration_ms:number}'
when = { block = "on" }
table = "phases"
[[line]]
template = 'end'
when = { block = "on" }
each = 'end'
table = "phases"
increment = ["step"]
[[sample]]
text = '''
part 1
begin 3
part 2
end
part 4
'''
unparsed = 1
[sample.rows]
phases = [{ step = 3, duration_ms = 2.0 }, { step = 3 }, { step = 4, duration_ms = 4.0 }]
"""


def test_kept_fields_decide_on_rules_and_count_on(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(KEPT)
    mine = Catalogue({"mine": load_definition(path)})
    assert list(check_format(mine.formats["mine"], mine)) == []


def test_the_example_of_the_guide_is_sound(tmp_path: Path) -> None:
    guide = (ROOT / "ingest" / "README.md").read_text(encoding="utf-8")
    path = tmp_path / "example.toml"
    path.write_text(guide.partition("```toml\n")[2].partition("```")[0])
    mine = Catalogue({"example": load_definition(path)})
    assert list(check_format(mine.formats["example"], mine)) == []
