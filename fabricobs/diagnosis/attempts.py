"""Parts of a diagnosis, tried one by one: one that fails is told, and the others are done."""

from collections.abc import Callable, Set
from typing import TypeVar

from fabricobs.diagnosis.findings import Failure
from fabricobs.exceptions import UserError, unexpected
from fabricobs.store.inspection import of_a_part

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
        """Return what the act gives, or `otherwise` if it fails.

        A UserError is raised, and so is an error of DuckDB over a part of the store: who holds the
        store names the damage.

        `kinds` and `shared` say of a Failure what may be missing because of it.
        """
        try:
            return act()
        except UserError:
            raise
        except Exception as error:
            if of_a_part(error):
                raise
            self.failures.append(Failure(part, unexpected(error), kinds, shared))
            return otherwise

    def reason(self, kinds: Set[str]) -> str | None:
        """Return why findings of these kinds could not be looked for, None if they could."""
        failed = [str(failure) for failure in self.failures if kinds & {*failure.kinds}]
        return "; ".join(failed) or None
