"""Formats are recognised by texts looked for at once: never other than by their expressions."""

import re

from hypothesis import given
from hypothesis import strategies as st

from fabricobs.formats.recognition.catalogue import load_catalogue
from fabricobs.formats.recognition.detection import Detector, Detectors

SOURCES = {
    name: format_.definition.detect.text
    for name, format_ in load_catalogue().formats.items()
    if format_.definition.detect.text
}
TEXTS = [
    sample.text
    for format_ in load_catalogue().formats.values()
    for sample in format_.definition.sample
]


def found(detectors: Detectors, text: str) -> set[str]:
    return {name for name in detectors.candidates(text) if detectors.found_in(name, text)}


def test_every_sample_shows_what_the_expressions_find() -> None:
    detectors = Detectors({n: tuple(map(Detector, sources)) for n, sources in SOURCES.items()})
    plain = {
        name: [re.compile(source, re.MULTILINE) for source in sources]
        for name, sources in SOURCES.items()
    }
    for sample in TEXTS:
        # In small letters the second one is longer than the text.
        for text in (sample, "İ" + sample, sample.upper(), sample.lower()):
            shown = {n for n, some in plain.items() if any(p.search(text) for p in some)}
            assert found(detectors, text) == shown


@given(text=st.text(alphabet="aAbBc1 :|^\n", max_size=12))
def test_expressions_with_choices_cases_and_repeats(text: str) -> None:
    sources = {
        "case": "(?i)ab+ c",
        "choice": "^(?:ab|Bc): ?1",
        "repeat": "(?:AB){2}",
        "optional": "(?:ab)?c1",
        "anything": "^.$",
        "within": "(a(b|B)c)+",
        "lines": "^a|^ *b(\n|^)1|:$",
        "class": r"^[]|^]+\|a|c[(|^]b",
        "commented": "(?x) ^a  # (\n |^b",
    }
    detectors = Detectors({name: (Detector(source),) for name, source in sources.items()})
    plain = {n for n, source in sources.items() if re.search(source, text, re.MULTILINE)}
    assert found(detectors, text) == plain
