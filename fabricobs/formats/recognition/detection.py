"""Detection expressions, each behind the texts one of which must be there for it to match.

Looking for plain texts, all at once, is a hundred times as fast as trying the expressions, and most
of the formats are not in a file.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from re import _constants as constants  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from ahocorasick_rs import AhoCorasick, Implementation

from fabricobs.formats.templates import compile_regex

# A single letter is in every file.
_SHORTEST = 2
_MOST = 24
# What a detection expression writes between two texts far apart.
_ANYTHING = r"[\s\S]*"
# A `]` that comes first in a class is one of its characters.
_PARTS = re.compile(r"\\.|\[\^?\]?|[^\\[]", re.DOTALL)


class Detector:
    """A compiled expression, and the texts without which it cannot match.

    Every match holds one text of each of `choices`; the first choice is the most telling.
    """

    def __init__(self, source: str) -> None:
        self.pattern = compile_regex(source)
        self._source = source
        self.in_any_case = bool(self.pattern.flags & re.IGNORECASE)
        choices = _choices(parser.parse(source, self.pattern.flags))
        if self.in_any_case:
            choices = [tuple(text.lower() for text in choice) for choice in choices]
        self.choices = choices
        self._parts = [compile_regex(part) for part in source.split(_ANYTHING)]
        self._marked = [[(_rarest(text), text) for text in choice] for choice in choices]

    @cached_property
    def _by_newlines(self) -> re.Pattern[str] | None:
        """The expression by newlines, compiled where it is tried; None if it asks for no line."""
        source = _by_newlines(self._source)
        return None if source == self._source else compile_regex(source)

    @property
    def telling(self) -> tuple[str, ...]:
        """Return the texts worth looking for before all others; none if every file has them."""
        choice = self.choices[0] if self.choices else ()
        return choice if choice and _shortest(choice) >= _SHORTEST else ()

    def found_in(self, text: str) -> bool:
        """Say whether the expression is found anywhere in the text."""
        searched = _lowered(text) if self.in_any_case else text
        # A single letter is found, or not, in the least time.
        for choice in reversed(self._marked):
            for mark, literal in choice:
                if mark in searched and literal in searched:
                    break
            else:
                return False
        if len(self._parts) > 1:
            return _in_order(self._parts, text)
        if self._by_newlines is not None:
            return self._by_newlines.search(_below_newline(text)) is not None
        return self.pattern.search(text) is not None


class Detectors:
    """Detection expressions by name, tried only where a text holds what they need.

    Any of those of a name will do. One pass over the text finds the most telling texts as they
    are spelled, another those that any case spells.
    """

    def __init__(self, detectors: Mapping[str, Sequence[Detector]]) -> None:
        self._detectors = detectors
        every = [(name, detector) for name, some in detectors.items() for detector in some]
        self._always = frozenset(name for name, detector in every if not detector.telling)
        self._as_spelled = _Texts((n, d) for n, d in every if not d.in_any_case)
        self._in_any_case = _Texts((n, d) for n, d in every if d.in_any_case)

    def candidates(self, text: str) -> set[str]:
        """Return the names of those that may be found in the text; all others are not."""
        lowered = self._in_any_case.found_in(_lowered(text))
        return lowered | self._as_spelled.found_in(text) | self._always

    def found_in(self, name: str, text: str) -> bool:
        """Say whether an expression of that name is found anywhere in the text."""
        return any(detector.found_in(text) for detector in self._detectors[name])


class _Texts:
    """The most telling texts of detectors, all looked for in one pass."""

    def __init__(self, detectors: Iterable[tuple[str, Detector]]) -> None:
        names: dict[str, set[str]] = {}
        for name, detector in detectors:
            for text in detector.telling:
                names.setdefault(text, set()).add(name)
        self._names = list(names.values())
        # The fastest of its forms; the texts are few hundred.
        self._automaton = AhoCorasick(list(names), implementation=Implementation.DFA)

    def found_in(self, text: str) -> set[str]:
        """Return the names of the detectors one of whose texts stands in the text."""
        hits = self._automaton.find_matches_as_indexes(text, overlapping=True)
        return set[str]().union(*(self._names[number] for number in {hit[0] for hit in hits}))


@lru_cache(maxsize=1)
def _lowered(text: str) -> str:
    """Return the text in small letters; one text is looked at by all detectors in turn."""
    return text.lower()


@lru_cache(maxsize=1)
def _below_newline(text: str) -> str:
    """Return the text with a newline before its first line too."""
    return f"\n{text}"


def _in_order(parts: Sequence[re.Pattern[str]], text: str) -> bool:
    """Say whether the parts of an expression are found one after another, in one pass.

    The expression itself would look for the last part again from every place of the first.
    """
    at = 0
    for part in parts:
        found = part.search(text, at)
        if found is None:
            return False
        at = found.end()
    return True


def _by_newlines(source: str) -> str:
    """Return the expression with a newline for each `^` that begins it or one of its branches.

    A newline is found ten times as fast as the beginning of a line. Expressions with comments, or
    for the beginning of the text, stay as they are.
    """
    if "(?x" in source or r"\A" in source:
        return source
    parts: list[str] = []
    depth, in_class = 0, False
    for part in _PARTS.findall(source):
        begins = not parts or (depth == 0 and not in_class and parts[-1] == "|")
        parts.append(r"\n" if part == "^" and begins else part)
        if in_class:
            in_class = part != "]"
        elif part[0] == "[":
            in_class = True
        else:
            depth += (part == "(") - (part == ")")
    return "".join(parts)


def _choices(parsed: Any) -> list[tuple[str, ...]]:
    """Return choices of texts, one of each of which is in whatever the parsed expression matches.

    The one with the longest texts comes first.
    """
    usable = {choice: None for choice in _candidates(parsed) if 0 < len(choice) <= _MOST}
    return sorted(usable, key=lambda choice: -_shortest(choice))


def _candidates(parsed: Any) -> Iterator[tuple[str, ...]]:
    """Yield the choices of texts that the parts of a sequence demand."""
    run = ""
    for op, argument in parsed:
        if op is constants.LITERAL:
            run += chr(argument)
            continue
        if run:
            yield (run,)
        run = ""
        if op is constants.SUBPATTERN and argument[1]:
            continue  # flags of its own
        if op is constants.SUBPATTERN:
            yield from _candidates(argument[3])
        elif op in {constants.MAX_REPEAT, constants.MIN_REPEAT} and argument[0] > 0:
            yield from _candidates(argument[2])
        elif op is constants.BRANCH:
            branches = [max(_candidates(b), key=_shortest, default=()) for b in argument[1]]
            if all(branches):
                yield tuple({text: None for branch in branches for text in branch})
    if run:
        yield (run,)


def _rarest(text: str) -> str:
    """Return the letter of a text that the fewest files have: a sign, or else a capital."""
    return max(
        text, key=lambda c: (not c.isalnum() and not c.isspace(), c.isupper(), not c.isspace())
    )


def _shortest(texts: tuple[str, ...]) -> int:
    return min(map(len, texts))
