"""Where a template stops matching an unread line: for authors of formats.

A template is cut into its parts: single characters of its text, and fields. A line that takes a
template's first n parts takes fewer of them too, so the place where it stops is found by halving.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from fabricobs.formats.definition import Definition
from fabricobs.formats.logs.prefixes import strip_prefix
from fabricobs.formats.templates import TemplateError, compile_regex, pieces_of
from fabricobs.formats.values import VALUE_TYPES

# Fields that any text fits say nothing about how much of a line is known.
_ANYTHING = frozenset({"text", "quoted"})
# Less than a word in common is chance.
_LEAST_KNOWN = 3


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A template and the place where a line leaves it.

    `column` counts the characters of the line before that place, `known` the characters of text and
    the typed fields of the template before it. `expected` is what stands there in the template.
    """

    where: str
    template: str
    column: int
    known: int
    expected: str


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a template: its expression, and what it reads like."""

    pattern: str
    shown: str
    is_field: bool
    is_anything: bool = False


def near_misses(definition: Definition, line: str, most: int = 3) -> list[NearMiss]:
    """Return the templates that go furthest into a line, the best first."""
    best: dict[tuple[str, str], NearMiss] = {}
    for start, message in _messages(definition, line):
        for where, source in templates_of(definition):
            miss = _miss(where, source, message, start)
            before = best.get((where, source))
            if miss.known >= _LEAST_KNOWN and (before is None or before.known < miss.known):
                best[where, source] = miss
    return sorted(best.values(), key=lambda miss: (-miss.known, len(miss.template)))[:most]


def templates_of(definition: Definition) -> Iterator[tuple[str, str]]:
    """Yield every template that a line may fit, and the place of the definition where it stands."""
    for number, rule in enumerate(definition.line, 1):
        where = f"{definition.name} [[line]] {number}"
        yield from ((where, source) for source in rule.template)
    for number, block in enumerate(definition.block, 1):
        for key in ("title", "header", "pair", "line", "skip"):
            sources: Sequence[str] = getattr(block, key)
            where = f"{definition.name} [[block]] {number} {key}"
            yield from ((where, source) for source in sources)


def _messages(definition: Definition, line: str) -> Iterator[tuple[int, str]]:
    """Yield what a format is offered of a line, and where in the line it begins."""
    offered = [line, *(rest for rest, _ in strip_prefix(line))]
    for text in dict.fromkeys(offered):
        start = len(line) - len(text)
        if definition.anchor is not None:
            found = compile_regex(definition.anchor).search(text)
            if found is None:
                continue
            start, text = start + found.end(), text[found.end() :]
        message = text.lstrip()
        yield start + len(text) - len(message), message.rstrip()


def _miss(where: str, source: str, message: str, start: int) -> NearMiss:
    parts = _parts(source)
    low, high = 0, len(parts)
    while low < high:
        middle = (low + high + 1) // 2
        if _prefix(source, middle).match(message):
            low = middle
        else:
            high = middle - 1
    found = _prefix(source, low).match(message)
    assert found is not None  # the empty prefix fits everything
    # What any text fits goes on to the end of the line: it stops where that text begins.
    open_end = bool(low) and parts[low - 1].is_anything and low < len(parts)
    end = found.start("rest") if open_end else found.end()
    fits = low == len(parts) and end == len(message)
    expected = (
        "no more: its `when`, a value or a field named again is not met"
        if fits
        else _expected(parts, low)
    )
    known = sum(not part.is_anything and not part.pattern.isspace() for part in parts[:low])
    return NearMiss(where, source, start + end, known, expected)


@cache
def _parts(source: str) -> tuple[_Part, ...]:
    parts: list[_Part] = []
    for literal, kind, name in pieces_of(source):
        if literal is None:
            if kind not in VALUE_TYPES:
                raise TemplateError(f"{source!r}: unknown type {kind!r}")
            pattern = f"(?:{VALUE_TYPES[kind].pattern})"
            parts.append(_Part(pattern, f"{{{name}:{kind}}}", True, kind in _ANYTHING))
            continue
        parts.extend(
            _Part(" +" if text[0] == " " else re.escape(text), text, False)
            for text in re.findall(r" +|.", literal)
        )
    return tuple(parts)


@cache
def _prefix(source: str, count: int) -> re.Pattern[str]:
    """Return the expression of a template's first parts, the last field taking all it can."""
    patterns = [part.pattern for part in _parts(source)[:count]]
    if patterns and patterns[-1].endswith(("+?)", "*?)")):
        patterns[-1] = f"{patterns[-1].removesuffix('?)')})"
    if patterns:
        patterns[-1] = f"(?P<rest>{patterns[-1]})"
    return re.compile("".join(patterns))


def _expected(parts: Sequence[_Part], place: int) -> str:
    """Return what a template expects at a place: a field, or the text up to the next one."""
    if place == len(parts):
        return "the end of the line"
    if parts[place].is_field:
        return parts[place].shown
    text = ""
    for part in parts[place:]:
        if part.is_field:
            break
        text += part.shown
    return repr(text)
