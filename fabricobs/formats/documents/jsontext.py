"""JSON documents in a text, one after another, perhaps with a prompt or date before each."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fabricobs.formats.decompression import SourceError
from fabricobs.formats.limits import LIMITS
from fabricobs.formats.values.kinds import LONGEST_NUMBER

# A line that begins a document: a prompt such as [admin@leaf01 ~]$ does not.
BEGINS = re.compile(r'^[ \t\ufeff]*(?:\{\s*(?:["}]|$)|\[\s*(?:["\[{\]]|$))', re.MULTILINE)
_HERE = re.compile(r"[\s\ufeff,]*(?=[\[{])")
TOO_DEEP = "nested too deeply"
_MOST_LINES_ABOVE = 10
_MARK = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Document:
    """A document and where it stands; with a `problem`, its value is what is whole of it."""

    value: Any | None
    start: int
    end: int
    problem: str = ""


def _whole(digits: str) -> int | str:
    """Return a whole number; as text where it has more digits than Python reads."""
    return int(digits) if len(digits) <= LONGEST_NUMBER else digits


_DECODER = json.JSONDecoder(strict=False)
_STRICT = json.JSONDecoder()
# A fifth slower: for documents with a number of more digits than Python reads.
_PATIENT = json.JSONDecoder(strict=False, parse_int=_whole)


def loads(text: str | bytes, *, strict: bool = False) -> Any:
    """Read one JSON value; ValueError if it is none, or holds control characters if `strict`.

    A whole number of hundreds of digits is a text.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8-sig", "surrogatepass")
    try:
        return (_STRICT if strict else _DECODER).decode(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        return _PATIENT.decode(text)
    except RecursionError as error:
        raise ValueError(TOO_DEEP) from error


def _raw_decode(text: str, start: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, start)
    except json.JSONDecodeError:
        raise
    except ValueError:
        return _PATIENT.raw_decode(text, start)


def documents(text: str) -> Iterator[Document]:
    """Yield the documents of a text; one that cannot be read to its end is the last.

    SourceError if they hold more values than memory is meant for.
    """
    refuse_excess(text)
    position = 0
    while True:
        start = _begin(text, position)
        if start is None:
            return
        try:
            value, position = _raw_decode(text, start)
        except RecursionError:
            yield Document(None, start, len(text), TOO_DEEP)
            return
        except ValueError:
            mended = _mended(text[start:])
            yield Document(mended, start, len(text), "breaks off or is no JSON here")
            return
        yield Document(value, start, position)


def below_banner(text: str) -> str:
    """Return a text from its first line that begins a record, if few lines stand above it.

    A login banner may stand above the records of a file; it is the text itself if none begins one.
    """
    at = 0
    for _ in range(_MOST_LINES_ABOVE):
        if text.startswith(("{", "["), at):
            return text[at:]
        at = text.find("\n", at) + 1
        if at == 0:
            break
    return text


def refuse_excess(text: str) -> None:
    """Raise SourceError if a text of JSON holds too many values; commas in texts count too."""
    values = sum(map(text.count, ",:[{"))
    if values > LIMITS.document_values:
        raise SourceError(f"more than {LIMITS.document_values:,} values")


def _begin(text: str, position: int) -> int | None:
    # Right behind a document another may follow on its line.
    here = _HERE.match(text, position) if position else None
    if here is not None:
        return here.end()
    found = BEGINS.search(text, position)
    if found is None:
        return None
    brackets = [at for mark in "[{" if (at := text.find(mark, found.start())) >= 0]
    return min(brackets)


def _mended(text: str) -> Any | None:
    """Return what a document holds that breaks off: cut behind its last whole object or list."""
    closers: list[str] = []
    cut = still_open = 0
    for found in _MARK.finditer(text):
        mark = found[0]
        if mark in "[{":
            closers.append("]" if mark == "[" else "}")
        elif mark in "]}":
            if not closers or closers[-1] != mark:
                break
            closers.pop()
            # What is open there stays open to the end: only a bracket that closes takes it away.
            cut, still_open = found.end(), len(closers)
    if cut == 0:
        return None
    try:
        return loads(text[:cut] + "".join(reversed(closers[:still_open])))
    except ValueError:
        return None


def unfolded(document: Any) -> Any:
    """Turn Cisco's telemetry, lists of named fields, into objects; leave others as they are."""
    rows = document.get("dataGpbkv") if isinstance(document, dict) else None
    if not isinstance(rows, list):
        return document
    return {**document, "dataGpbkv": [_object(row) for row in rows]}


def _object(field: Any) -> Any:
    """Return what a field holds: an object of its fields, a list where they have no names."""
    if not isinstance(field, dict):
        return field
    fields = field.get("fields")
    if not isinstance(fields, list):
        return next((value for key, value in field.items() if key.endswith("Value")), None)
    found: dict[str, Any] = {}
    for inner in fields:
        name = str(inner.get("name", "")) if isinstance(inner, dict) else ""
        found.setdefault(name, []).append(_object(inner))
    if list(found) == [""]:
        return found[""]
    return {name: held[0] if len(held) == 1 else held for name, held in found.items()}
