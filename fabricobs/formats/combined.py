"""Outputs of commands on several hosts, combined in one text: taken apart into a file for each.

`pdsh` and `parallel --tag` write the host before every line, and their writers interleave; `tail`
and `find -exec tail` write `==> PATH <==` above each file; Ansible, Nornir and scripts write JSON
with outputs as texts in it. Each part gets a path, as the member of an archive has one, so that
all that holds for files of a folder holds for parts: whose they are, which port, which format.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fabricobs.formats.archive import Member, open_new
from fabricobs.formats.decompression import open_text
from fabricobs.formats.documents.jsontext import documents
from fabricobs.formats.identity.layout import counter_tree
from fabricobs.formats.limits import LIMITS
from fabricobs.formats.logs.meanings import fields_by_meaning
from fabricobs.formats.logs.prefixes import Labels, label_pattern
from fabricobs.formats.source import read_document, without_colours

Kind = Literal["hosts", "files", "texts"]

_FILE = re.compile(r"^==> (\S.*) <==\r?$", re.MULTILINE)
# What Ansible prints before the document of a host.
_OF_HOST = re.compile(
    r"^(?:\w+: \[(?P<host>[\w.-]+)[^\]]*\](?: => \([^\n]*?\))? => |(?P<name>[\w.-]+) \| \w+!? => )"
    r"(?=\{)",
    re.MULTILINE,
)
_HOST_LABELS = frozenset({"host", "tab", "word"})
_NO_NAME = re.compile(r"[/\x00-\x1f]+")
_LONGEST_NAME = 200
_LINES_OF_A_VALUE = 4  # those between two headings: the value and what stands around it
_DEEPEST = 12


@dataclass(frozen=True, slots=True)
class Combination:
    """How the parts of a text are combined; `labels` are those before the lines of hosts."""

    kind: Kind
    labels: Labels = ()


def combination_of(
    text: str, labels: Labels, holds_outputs: Callable[[str], bool]
) -> Combination | None:
    """Say how a text combines outputs of commands, from its ends; None if it does not.

    `holds_outputs` says whether a text shows outputs of commands and no log.
    """
    if _HOST_LABELS.intersection(labels):
        label = label_pattern(labels[0])
        bare = "\n".join(label.sub("", line, count=1) for line in text.split("\n"))
        return Combination("hosts", labels) if holds_outputs(bare) else None
    if _FILE.match(text.lstrip()) and _FILE.search(text, text.find("\n")):
        return Combination("files")
    if text.lstrip()[:1] in {"{", "["} or _OF_HOST.search(text):
        texts = [part for _, part in _texts_of(text)]
        return Combination("texts") if texts and holds_outputs("\n".join(texts)) else None
    return None


def parts(
    path: Path, combination: Combination, folder: Path, modified_us: int | None
) -> Iterator[Member]:
    """Yield the parts of a combined text, each in `folder` until the next one is asked for.

    SourceError if the text is too long to be taken apart.
    """
    with open_text(path) as stream:
        text = read_document(stream, LIMITS.document_bytes).decode("utf-8", "replace")
    text = without_colours(text)
    place = folder / "part"
    try:
        for name, part in _PARTS[combination.kind](text, combination.labels).items():
            with open_new(place) as file:
                file.write(part.encode())
            yield Member(name, place, modified_us)
    finally:
        place.unlink(missing_ok=True)


def _of_hosts(text: str, labels: Labels) -> dict[str, str]:
    """Return the lines of each host; those without a host are one part."""
    label = label_pattern(labels[0])
    lines: dict[str, list[str]] = {}
    for line in text.removesuffix("\n").split("\n"):
        found = label.match(line)
        name = "unlabelled" if found is None else f"host={found['host']}"
        lines.setdefault(name, []).append(line if found is None else line[found.end() :])
    return {name: "\n".join(some) + "\n" for name, some in lines.items()}


def _of_files(text: str, _: Labels) -> dict[str, str]:
    """Return what stands below each heading; parts of one path are one.

    The values of a tree of counters are one part, written as `grep -r` prints them.
    """
    pieces = _FILE.split(text)
    found: dict[str, str] = {"above": pieces[0]} if pieces[0].strip() else {}
    for name, part in zip(pieces[1::2], pieces[2::2], strict=True):
        plain = name.strip().lstrip("./")
        tree = counter_tree(plain)
        if tree is not None and len(part.split("\n")) <= _LINES_OF_A_VALUE:
            plain, part = f"{tree}/values.txt".lstrip("/"), f"/{plain}:{part.strip()}\n"
        found[plain] = found.get(plain, "") + part.lstrip("\r\n")
    return found


def _of_texts(text: str, _: Labels) -> dict[str, str]:
    """Return the outputs that documents hold, each by the keys that lead to it."""
    found: dict[str, str] = {}
    count: dict[str, int] = {}
    for name, part in _texts_of(text):
        count[name] = number = count.get(name, 0) + 1
        found[name if number == 1 else f"{name}.{number}"] = f"{part}\n"
    return found


_PARTS: dict[Kind, Callable[[str, Labels], dict[str, str]]] = {
    "hosts": _of_hosts,
    "files": _of_files,
    "texts": _of_texts,
}


def _texts_of(text: str) -> Iterator[tuple[str, str]]:
    """Yield the texts of several lines in the documents of a text, each with its path.

    What Ansible gives as a text and as a list of its lines counts once.
    """
    headings = list(_OF_HOST.finditer(text))
    bounds = [0, *(heading.end() for heading in headings), len(text)]
    for number, begin in enumerate(bounds[:-1]):
        heading = headings[number - 1] if number else None
        end = headings[number].start() if number < len(headings) else len(text)
        above = () if heading is None else (f"host={heading['host'] or heading['name']}",)
        known: set[str] = set()
        for document in documents(text[begin:end]):
            for path, part in _walk(document.value, above, 0):
                if part.strip() not in known:
                    known.add(part.strip())
                    yield "/".join(path) or "text", part


def _walk(value: Any, path: tuple[str, ...], depth: int) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the texts of several lines below a value, and the names on the way to them."""
    part = _text_in(value)
    if part is not None:
        yield path, part
    elif depth > _DEEPEST:
        return
    elif isinstance(value, list):
        for item in value:
            yield from _walk(item, path, depth + 1)
    elif isinstance(value, dict):
        plain = ((str(k), v) for k, v in value.items() if not isinstance(v, dict | list))
        told = fields_by_meaning(plain)
        host = told.get("node") or told.get("host")
        here = (*path, *((f"host={host}",) if host else ()))
        if "ts" in told:
            here = (*here, f"time={_name(told['ts'])}")
        for key, below in value.items():
            yield from _walk(below, (*here, _name(str(key))), depth + 1)


def _text_in(value: Any) -> str | None:
    """Return an output: a text of several lines, or a list of its lines."""
    if isinstance(value, str):
        return value if "\n" in value.strip() else None
    if isinstance(value, list) and len(value) > 1 and all(isinstance(v, str) for v in value):
        return "\n".join(value)
    return None


def _name(key: str) -> str:
    return _NO_NAME.sub("_", key)[:_LONGEST_NAME]
