"""Saying what is wrong in a file a person wrote: where, what was expected, and the nearest key."""

import difflib
from collections.abc import Callable, Iterable
from typing import Any, get_args

from pydantic import BaseModel, ValidationError


def nearest(word: str, known: Iterable[str], *, else_all: bool = False) -> str:
    """Return `; did you mean 'x'?`; where no known word is near nothing, or all of them."""
    words = list(known)
    close = difflib.get_close_matches(word, words, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; one of {', '.join(words)}" if else_all else ""


def explain(
    error: ValidationError, model: type[BaseModel], where_from: Callable[[str], str]
) -> str:
    """Say what is wrong, one line a mistake; `where_from` names the source of a dotted key."""
    lines = []
    for mistake in error.errors():
        where = ".".join(str(part) for part in mistake["loc"])
        text = mistake["msg"].removeprefix("Value error, ")
        if mistake["type"] == "extra_forbidden":
            text = f"unknown key{nearest(str(mistake['loc'][-1]), _keys_of(model))}"
        source = where_from(where)
        key = "" if source.startswith("option ") else f"{where}: "  # an option names its key
        lines.append(f"{source}: {key}{text}")
    return "\n".join(lines)


def _keys_of(model: type[BaseModel]) -> set[str]:
    """Collect the keys of a model and of the models inside it."""
    keys = set(model.model_fields)
    for field in model.model_fields.values():
        for part in _models_in(field.annotation):
            keys |= _keys_of(part)
    return keys


def _models_in(annotation: Any) -> Iterable[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)
