"""Line templates: a line as the log prints it, with `{column:type}` where values stand.

`Channel {channel:int} : {from_rank:int}[{:word}] -> ...` reads like the log and compiles to one
regular expression of the kind Rust's engine accepts. A blank stands for one or more blanks, a
field without a name is matched and dropped, a field named again must read the same text again, a
closing ` ...` lets anything follow, and `{{` is a brace.
"""

import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, tzinfo
from functools import cached_property

from fabricobs.formats.values import (
    VALUE_TYPES,
    ZONED,
    Value,
    parse_show_clock,
    parse_stamp,
    time_of,
)

_FIELD = re.compile(r"\{\{|\}\}|\{(?P<name>\w*)(?::(?P<type>\w+))?\}")
# Look-around and back-references: what Rust's regex engine refuses.
_NOT_RUST = re.compile(r"\(\?(?:[=!]|<[=!])|\\[1-9]|\(\?P=")


class TemplateError(ValueError):
    """A template or regular expression that cannot be used."""


@dataclass(frozen=True)
class Template:
    """A template: `fields` maps each captured name to its type, in order.

    `literal` is the longest text a matching line must hold: looking for it is far cheaper than
    trying the expression.
    """

    source: str
    expression: str
    fields: tuple[tuple[str, str], ...]
    first_word: str | None
    literal: str
    open_ended: bool = False

    def __str__(self) -> str:
        return self.source

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Return the compiled expression; most templates of a format meet no line of a file."""
        return re.compile(self.expression)

    def read(
        self,
        found: re.Match[str],
        zone: tzinfo = UTC,
        written_us: int | None = None,
        *,
        as_text: Container[str] = (),
    ) -> dict[str, Value]:
        """Return the fields of a match, some just as they are written.

        `zone` holds for times that name none, `written_us` (when the file was last written) tells
        the year of those that leave it out. ValueError if a text cannot be meant.
        """
        fields: dict[str, Value] = {}
        for (name, type_name), text in zip(self.fields, found.groups(), strict=True):
            if name in as_text:
                fields[name] = text
            elif type_name in ZONED:
                fields[name] = time_of(text, zone, written_us)
            elif type_name == "stamp":
                fields[name] = parse_stamp(text, zone)
            elif type_name == "show_clock":
                fields[name] = parse_show_clock(text, zone)
            else:
                fields[name] = VALUE_TYPES[type_name].parse(text)
        return fields


def first_match(templates: Iterable[Template], text: str) -> tuple[Template, re.Match[str]] | None:
    """Return the first template that fits a text, and what it captured."""
    for template in templates:
        if template.literal in text:
            found = template.pattern.match(text)
            if found is not None:
                return template, found
    return None


def compile_template(source: str, *, whole: bool = True, default_type: str = "word") -> Template:
    """Read the template `source`; `whole` anchors it at both ends (else it is searched for)."""
    body, open_ended = _body(source)
    parts: list[str] = []
    fields: list[tuple[str, str]] = []
    literals: list[str] = []
    position = 0
    for match in _FIELD.finditer(body):
        literals.append(body[position : match.start()])
        parts.append(_literal(literals[-1]))
        parts.append(_field(match, fields, source, default_type))
        position = match.end()
    literals.append(body[position:])
    parts.append(_literal(literals[-1]))
    pattern = "".join(parts)
    if whole:
        pattern = f"^{pattern}(?:\\s.*)?$" if open_ended else f"^{_to_the_end(pattern)}$"
    # A blank stands for several: only what lies between blanks is sure to be in the line.
    literal = max((word for text in literals for word in text.split(" ")), key=len)
    first_word = _first_word(body)
    return Template(source, pattern, tuple(fields), first_word, literal, open_ended)


def pieces_of(source: str) -> Iterator[tuple[str | None, str, str]]:
    """Yield the pieces of a line's template: a literal text, or a field's type and name.

    Each is (literal, "", "") or (None, type, name); a field that is dropped has no name.
    """
    body, _ = _body(source)
    literal = ""
    position = 0
    for match in _FIELD.finditer(body):
        literal += body[position : match.start()]
        position = match.end()
        if match[0] in {"{{", "}}"}:
            literal += match[0][0]
            continue
        if literal:
            yield literal, "", ""
        literal = ""
        yield None, match["type"] or "word", match["name"]
    if literal + body[position:]:
        yield literal + body[position:], "", ""


def _body(source: str) -> tuple[str, bool]:
    """Return the template without a closing ` ...`, and whether it had one."""
    open_ended = source.endswith(" ...")
    return (source[: -len(" ...")] if open_ended else source), open_ended


def compile_regex(source: str) -> re.Pattern[str]:
    """Compile a hand-written expression, refusing what Rust's engine would refuse."""
    if _NOT_RUST.search(source):
        raise TemplateError(f"{source!r} uses look-around or a back-reference; write it without")
    try:
        return re.compile(source, re.MULTILINE)
    except re.error as error:
        raise TemplateError(f"{source!r} is no regular expression: {error}") from error


def _to_the_end(pattern: str) -> str:
    """Let blanks follow a whole line; a text before them is not tried again at each of them."""
    if pattern.endswith("(?:.*?)"):
        return pattern.removesuffix("?)") + ")"
    if pattern.endswith("(.*?)"):
        return pattern.removesuffix(".*?)") + r".*\S|)\s*"
    return rf"{pattern}\s*"


def _literal(text: str) -> str:
    return re.sub(r"(?:\\ )+", " +", re.escape(text))


def _field(match: re.Match[str], fields: list[tuple[str, str]], source: str, default: str) -> str:
    if match[0] in {"{{", "}}"}:
        return re.escape(match[0][0])
    type_name = match["type"] or default
    if type_name not in VALUE_TYPES:
        known = ", ".join(VALUE_TYPES)
        raise TemplateError(f"{source!r}: unknown type {type_name!r}; one of {known}")
    pattern = VALUE_TYPES[type_name].pattern
    if not match["name"]:
        return f"(?:{pattern})"
    for group, (name, first_type) in enumerate(fields, 1):
        if name != match["name"]:
            continue
        if type_name != first_type:
            raise TemplateError(f"{source!r} reads {name!r} as {first_type} and as {type_name}")
        return f"(?:\\{group})"
    fields.append((match["name"], type_name))
    return f"({pattern})"


def _first_word(body: str) -> str | None:
    """Return the literal first word: rules are looked up by it before any is tried."""
    word = body.split(" ", 1)[0]
    return word if word and " " in body and "{" not in word and "}" not in word else None
