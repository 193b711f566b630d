"""Properties of random worlds that a user gives instead of having them drawn."""

from collections.abc import Collection, Sequence
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from fabricobs.exceptions import UserError
from fabricobs.simulator.random_worlds.faults import ANY, fault_kinds
from fabricobs.simulator.random_worlds.spec import Spec, distributions, draw_spec


def given_of(texts: Sequence[str]) -> dict[str, str]:
    """Properties given as NAME=VALUE; UserError for a name or value that is none."""
    given: dict[str, str] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if name not in distributions():
            raise UserError(
                f"--given {text}: no property {name!r} of random worlds"
                f"{_near(name, distributions())}"
            )
        known = _texts(name)
        if known and value not in known:
            raise UserError(
                f"--given {text}: {name} is one of {', '.join(map(repr, known))}"
                f"{_near(value, known)}"
            )
        given[name] = value
    try:
        draw_spec(1, **given)
    except ValidationError as error:
        wrong = error.errors()[0]
        said = f"{wrong['loc'][0]}: {wrong['msg']}"
        raise UserError(f"--given {' '.join(texts)}: {said}") from error
    return given


def _texts(name: str) -> tuple[Any, ...]:
    """All values of a property that is a text; none of one that is a number or a yes or no.

    What writes a world knows these texts alone: of another it would write nothing, or fail.
    """
    if name == "fault":
        return (ANY, *fault_kinds())
    is_number = Spec.model_fields[name].annotation in {int, float, bool}
    return () if is_number else distributions()[name].values


def _near(text: str, names: Collection[str]) -> str:
    near = get_close_matches(text, names, 1)
    return f"; did you mean {near[0]!r}?" if near else ""
