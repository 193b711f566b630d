"""Detection expressions, each behind the texts one of which must be there for it to match.

Looking for a plain text is a hundred times as fast as trying an expression, and most of the formats
are not in a file.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from re import _constants as constants  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from fabricobs.formats.templates import compile_regex

# A single letter is in every file.
_SHORTEST = 2
_MOST = 24


class Detector:
    """A compiled expression; `literals` are texts one of which every match holds, or none known."""

    def __init__(self, source: str) -> None:
        self.pattern = compile_regex(source)
        self._lower = bool(self.pattern.flags & re.IGNORECASE)
        literals = _required(parser.parse(source, self.pattern.flags))
        self.literals = tuple(t.lower() for t in literals) if self._lower else literals

    def found_in(self, text: str) -> bool:
        """Say whether the expression is found anywhere in the text."""
        if self.literals:
            searched = _lowered(text) if self._lower else text
            if not any(literal in searched for literal in self.literals):
                return False
        return self.pattern.search(text) is not None


@lru_cache(maxsize=1)
def _lowered(text: str) -> str:
    """Return the text in small letters; one text is looked at by all detectors in turn."""
    return text.lower()


def _required(parsed: Any) -> tuple[str, ...]:
    """Return texts one of which must be in whatever the parsed expression matches."""
    best: tuple[str, ...] = ()
    for candidate in _candidates(parsed):
        usable = len(candidate) <= _MOST and min(map(len, candidate)) >= _SHORTEST
        if usable and min(map(len, candidate)) > min(map(len, best), default=0):
            best = candidate
    return best


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
                yield tuple(text for branch in branches for text in branch)
    if run:
        yield (run,)


def _shortest(texts: tuple[str, ...]) -> int:
    return min(map(len, texts))
