"""Parts of a diagnosis, tried one by one: one that fails is told, and the others are done."""

from collections.abc import Callable, Set
from typing import TypeVar

from fabricobs.diagnosis.findings import Failure
from fabricobs.errors import UserError, unexpected

_Made = TypeVar("_Made")


class Attempts:
    """What was tried and failed so far."""

    def __init__(self) -> None:
        self.failures: list[Failure] = []

    def attempt(
        self,
        part: str,
        act: Callable[[], _Made],
        otherwise: _Made,
        *kinds: str,
        shared: bool = False,
    ) -> _Made:
        """Return what the act gives, or `otherwise` if it fails; a UserError is raised.

        `kinds` and `shared` say of a Failure what may be missing because of it.
        """
        try:
            return act()
        except UserError:
            raise
        except Exception as error:
            self.failures.append(Failure(part, unexpected(error), kinds, shared))
            return otherwise

    def reason(self, kinds: Set[str]) -> str | None:
        """Return why findings of these kinds could not be looked for, None if they could."""
        failed = [str(failure) for failure in self.failures if kinds & {*failure.kinds}]
        return "; ".join(failed) or None
