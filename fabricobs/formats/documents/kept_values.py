"""Which values of a JSON document its blocks keep, so that all others can be named."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

_Fits = Callable[[str], bool]
# Whether a record keeps the value at a path, and where in a path from the top its paths begin.
_MOST_LEVELS = 64  # far more than any tool writes; Python's own stack ends at 1,000
_Keepers = tuple[tuple[_Fits, int], ...]


@dataclass(slots=True)
class KeptValues:
    """What the blocks read of one document; its objects by identity, so it must stay alive."""

    from_top: set[str] = field(default_factory=set)  # paths such as `.time` that fill columns
    _records: dict[int, list[_Fits]] = field(default_factory=dict)
    _data_keys: dict[int, list[_Fits]] = field(default_factory=dict)
    _values: dict[int, list[_Fits]] = field(default_factory=dict)

    def add_record(self, record: Any, keeps: _Fits) -> None:
        """Note an object that gave a row, and which paths below it fill columns."""
        self._records.setdefault(id(record), []).append(keeps)

    def add_data_keys(self, node: Any, fits: _Fits) -> None:
        """Note an object some of whose keys are data, such as ports."""
        known = self._data_keys.setdefault(id(node), [])
        if fits not in known:
            known.append(fits)

    def add_values(self, node: Any, fits: _Fits) -> None:
        """Note an object some of whose values are records themselves."""
        self._values.setdefault(id(node), []).append(fits)

    def others(self, document: Any) -> Iterator[str]:
        """Yield the path of each value that nothing keeps, without the keys that are data.

        Of an object in which nothing is kept its own path stands for all it holds.
        """
        for node in _objects(document):
            yield from self._below(node, "", "", ())[1]

    def _below(
        self, node: dict[Any, Any], path: str, name: str, keepers: _Keepers
    ) -> tuple[bool, list[str]]:
        """Say whether anything below an object is kept, and name what is not."""
        if path.count(".") > _MOST_LEVELS:
            return True, [f"more than {_MOST_LEVELS} levels deep"]
        start = len(path) + 1
        keepers = (*keepers, *((keeps, start) for keeps in self._records.get(id(node), ())))
        data_keys, values = self._data_keys.get(id(node), ()), self._values.get(id(node), ())
        kept, others = False, list[str]()
        for key, value in node.items():
            key = str(key)
            whole = f"{path}.{key}"
            held = list(_objects(value)) if isinstance(value, dict | list) else []
            if not held and (value is None or value in ("", [], {})):
                continue
            if not held and self._keeps(key, whole, values, keepers):
                kept = True
                continue
            named = name if any(fits(key) for fits in data_keys) else f"{name}.{key}".lstrip(".")
            below = [self._below(item, whole, named, keepers) for item in held]
            if any(found for found, _ in below):
                kept = True
                for found, names in below:
                    others.extend(names if found else [named or key])
            else:
                others.append(named or key)
        return kept, others

    def _keeps(self, key: str, whole: str, values: Sequence[_Fits], keepers: _Keepers) -> bool:
        """Say whether the plain value at a path from the top is kept; asked of every value."""
        if whole in self.from_top:
            return True
        for fits in values:
            if fits(key):
                return True
        for keeps, at in keepers:  # noqa: SIM110 - a generator takes twice the time
            if keeps(whole[at:]):
                return True
        return False


def _objects(value: Any) -> Iterator[dict[Any, Any]]:
    """Yield an object that holds something, or those in a list."""
    if isinstance(value, dict):
        if value:
            yield value
    elif isinstance(value, list):
        for item in value:
            yield from _objects(item)
