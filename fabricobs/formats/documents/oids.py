"""Names of object ids: a counter database also holds objects {name: id}."""

from collections.abc import Iterator, Mapping
from typing import Any

from fabricobs.formats.templates import compile_template


class NameMaps:
    """The `names` of a block: templates of names, and the keys of the objects that give them."""

    def __init__(self, names: Mapping[str, tuple[str, ...]]) -> None:
        self._maps = [
            (compile_template(template), key) for template, keys in names.items() for key in keys
        ]

    def objects(self, document: Any) -> Iterator[Any]:
        """Yield the objects of a document that give names."""
        for _, key in self._maps:
            if isinstance(document, dict) and key in document:
                yield document[key]

    def of(self, document: Any) -> dict[str, dict[str, Any]]:
        """Return what the names of a document tell, by id."""
        found: dict[str, dict[str, Any]] = {}
        for template, key in self._maps:
            held = document.get(key) if isinstance(document, dict) else None
            if isinstance(held, dict) and isinstance(held.get("value"), dict):
                held = held["value"]
            for name, number in held.items() if isinstance(held, dict) else ():
                match = template.pattern.match(str(name))
                if match is not None:
                    found[str(number)] = template.read(match)
        return found
