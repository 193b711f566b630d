"""Disjoint sets, united by what their members have in common."""


class DisjointSets:
    """Disjoint sets of numbers, united by what their members are tied to."""

    def __init__(self, size: int) -> None:
        self._parents = list(range(size))
        self._tied: dict[object, int] = {}

    def tie(self, number: int, key: object) -> None:
        """Unite a number with all others of that key."""
        self.unite(number, self._tied.setdefault(key, number))

    def unite(self, a: int, b: int) -> None:
        """Unite the sets of two numbers."""
        self._parents[self._root(a)] = self._root(b)

    def _root(self, number: int) -> int:
        while self._parents[number] != number:
            self._parents[number] = self._parents[self._parents[number]]
            number = self._parents[number]
        return number

    def groups(self) -> list[list[int]]:
        """Return the sets, each in order, by their first numbers."""
        found: dict[int, list[int]] = {}
        for number in range(len(self._parents)):
            found.setdefault(self._root(number), []).append(number)
        return sorted(found.values())
