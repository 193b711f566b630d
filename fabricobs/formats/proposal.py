"""Draft of a definition: reader, detection and typed templates from lines of a file."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest

from fabricobs.formats.documents.jsontext import loads
from fabricobs.formats.outputs.ruled import RULER, columns_of
from fabricobs.formats.records.csv_records import split_header
from fabricobs.formats.templates import Template, compile_template
from fabricobs.formats.typed_text import Piece, kind_of, pieces_in

# A line of a dump of counters or settings: one short value behind its name.
_PAIR = re.compile(r"\s*([A-Za-z][\w .()/-]*?)(\s*[:=]\s*)(\S+(?: \S+)?)\s*")
_NUMBER = re.compile(r"(?<!\w)-?\d+(?!\w)")
_NUMERIC = {"int", "count", "amount", "number"}
# A word that has as many forms in otherwise equal lines is a value.
_LEAST_FORMS = 3
_MOST_DETECTORS = 3
_LEAST_PAIRS = 3
_NO_TABLE = '# Without a table its rows are known and ignored.\n# table = "steps"\n'
_DETECTING_KEYS = 5


@dataclass(frozen=True, slots=True)
class Proposal:
    """A template, and the lines it was made of."""

    template: str
    lines: tuple[str, ...]


def definition_text(name: str, path: str, lines: Sequence[str]) -> str:
    """Return the beginning of a definition of the lines, which are its sample too.

    It is sound as it stands: it claims these lines, which are known and ignored. Named fields, a
    table and the rows of the sample are what is left to fill in.
    """
    sample = "\n".join(lines)
    quoted = f"'''\n{sample}\n'''" if _is_literal(sample) else _quoted(sample + "\n")
    return (
        f"# What the input is, who writes it, and what its numbers mean.\n"
        f"title = {_quoted(name)}\n{_body(lines)}\n"
        "# Replace names and addresses: samples are public. Then say what rows they give.\n"
        f"[[sample]]\npath = {_quoted(path)}\ntext = {quoted}\n"
        "# One entry for each row: steps = [{ step = 1, step_time_ms = 812.5 }, ...]\n"
        "[sample.rows]\n"
    )


def proposals(lines: Iterable[str]) -> list[Proposal]:
    """Return templates that fit the lines, the ones with most text first."""
    groups: dict[tuple[str, ...], list[tuple[str, list[Piece]]]] = {}
    for line in dict.fromkeys(line.strip() for line in lines if line.strip()):
        pieces = _words(pieces_in(line))
        groups.setdefault(tuple(_signature(piece) for piece in pieces), []).append((line, pieces))
    merged = _merged([list(group) for group in groups.values()])
    found = [_proposal(group) for group in merged]
    return sorted(found, key=lambda proposal: -len(re.sub(r"\{[^}]*\}", "", proposal.template)))


def _words(pieces: Iterable[Piece]) -> list[Piece]:
    """Cut the text between values into words and what parts them."""
    return [
        Piece(text, piece.kind)
        for piece in pieces
        for text in ([piece.text] if piece.kind else re.findall(r"\w+|\W", piece.text))
    ]


def _signature(piece: Piece) -> str:
    """Return what lines of one template have in common at a place."""
    if piece.kind:
        return "{number}" if piece.kind in _NUMERIC else f"{{{piece.kind}}}"
    return piece.text


def _merged(
    groups: list[list[tuple[str, list[Piece]]]],
) -> list[list[tuple[str, list[Piece]]]]:
    """Join groups that differ in one word alone, if that word has several forms."""
    alike: dict[tuple[int, tuple[str, ...]], list[int]] = {}
    for number, group in enumerate(groups):
        signature = tuple(_signature(piece) for piece in group[0][1])
        for place, part in enumerate(signature):
            if part[0] == "{" or part.isalnum():
                rest = (*signature[:place], *signature[place + 1 :])
                alike.setdefault((place, rest), []).append(number)
    taken: set[int] = set()
    joined = []
    for numbers in sorted(alike.values(), key=len, reverse=True):
        if len(numbers) >= _LEAST_FORMS and taken.isdisjoint(numbers):
            taken.update(numbers)
            joined.append([entry for number in numbers for entry in groups[number]])
    return [*joined, *(group for number, group in enumerate(groups) if number not in taken)]


def _proposal(group: Sequence[tuple[str, Sequence[Piece]]]) -> Proposal:
    lines = tuple(line for line, _ in group)
    columns = list(zip(*(pieces for _, pieces in group), strict=True))
    source = "".join(_part(column) for column in columns)
    # Where a type does not take a value after all, any word does.
    template = compile_template(re.sub(r" +", " ", source))
    if not all(_reads(template, line) for line in lines):
        source = re.sub(r"(?<!\{)\{:\w+\}", "{:text}", source)
    return Proposal(re.sub(r" +", " ", source), lines)


def _part(column: Sequence[Piece]) -> str:
    """Return what stands in the template where lines have these pieces."""
    kinds = {piece.kind for piece in column}
    texts = {piece.text for piece in column}
    if kinds == {""} and len(texts) == 1:
        return column[0].text.replace("{", "{{").replace("}", "}}")
    if len(kinds) == 1 and "" not in kinds:
        return f"{{:{column[0].kind}}}"
    if kinds <= _NUMERIC:
        return "{:amount}" if kinds & {"count", "amount"} else "{:number}"
    return "{:word}"


def _reads(template: Template, line: str) -> bool:
    found = template.pattern.match(line)
    if found is None:
        return False
    try:
        template.read(found)
    except ValueError:
        return False
    return True


def _body(lines: Sequence[str]) -> str:
    """Return reader, detection and rules as far as the lines tell."""
    first = lines[0]
    record = _record(first) if first.lstrip().startswith("{") else {}
    if record:
        keys = (f"{re.escape(_quoted(key))}\\s*:" for key in list(record)[:_DETECTING_KEYS])
        values = {key: str(value) for key, value in record.items()}
        return _records("jsonl", ".*".join(keys), values)
    for header, ruler in pairwise(lines):
        if RULER.match(ruler):
            return _table(header, ruler)
    columns, _ = split_header(first)
    if len(columns) >= 3 and all(
        re.fullmatch(r"[A-Za-z_][\w ./()%-]*", column) for column in columns
    ):
        cells = split_header(lines[1])[0] if len(lines) > 1 else ()
        values = dict(zip_longest(columns, cells[: len(columns)], fillvalue=""))
        return _records("csv", f"^{re.escape(first)}", values)
    return _pairs(lines) or _log(lines)


def _log(lines: Sequence[str]) -> str:
    found = proposals(lines)
    usual = sorted(found, key=lambda proposal: -len(proposal.lines))[:_MOST_DETECTORS]
    detectors = ", ".join(
        _quoted(compile_template(proposal.template).expression) for proposal in usual
    )
    rules = "\n".join(
        f'[[line]]\ntemplate = {_quoted(proposal.template)}\n# table = "steps"\n'
        for proposal in found
    )
    return (
        f'reader = "lines"\n\n# What only this format prints.\n[detect]\ntext = [{detectors}]\n\n'
        "# Name the values you need as columns, {step:int}, and give the rule its table. What stays"
        "\n"
        "# {:int} is dropped; lines of a rule without a table are known and ignored. Types are in\n"
        f"# the README of ingest/, columns in `fabricobs schema`.\n{rules}"
    )


def _table(header: str, ruler: str) -> str:
    names = [name for _, _, name in columns_of(header, ruler)]
    return (
        f'reader = "table"\n\n[detect]\ntext = {_quoted(_blanks(header))}\n\n'
        f"[[block]]\n{_NO_TABLE}header = {_quoted(_template(header))}\n"
        f"[block.columns]\n{_columns(dict.fromkeys(names, ''))}"
    )


def _pairs(lines: Sequence[str]) -> str:
    """Return the body of a dump of names and values; nothing if the lines are none."""
    found = [pair for line in lines if (pair := _PAIR.fullmatch(line)) is not None]
    pairs = {pair[1]: pair[3] for pair in found}
    forms = {f"{{key}}{' '.join(pair[2].split(' '))}{{value}}" for pair in found}
    forms = {re.sub(r"\s+", " ", form) for form in forms}
    marks = {pair[2].strip() for pair in found}
    # The names of a dump differ: a log says the same of other values.
    names = {_NUMBER.sub("#", name) for name in pairs}
    if len(names) < max(_LEAST_PAIRS, len(lines)) or len(marks) > 1:
        return ""
    return (
        f'reader = "keyvalue"\n\n[detect]\ntext = {_quoted(_blanks(next(iter(pairs))))}\n\n'
        f"[[block]]\n{_NO_TABLE}pair = {json.dumps(sorted(forms))}\n"
        f'ignore = ["{{:text}}"]\n[block.columns]\n{_columns(pairs)}'
    )


def _records(reader: str, detector: str, values: dict[str, str]) -> str:
    return (
        f'reader = "{reader}"\n\n# Better than text: columns = [...], those that must be filled.\n'
        f"[detect]\ntext = {_quoted(detector)}\n\n"
        f"[[block]]\n{_NO_TABLE}[block.columns]\n{_columns(values)}"
    )


def _columns(values: dict[str, str]) -> str:
    """Return a commented line for each key: its column is to be filled in, its type is known."""
    typed = ((key, value, kind_of(value) if value else "") for key, value in values.items())
    return "".join(
        f'# {_quoted(key)} = "column{f":{kind}" if kind else ""}"'
        + (f"  # as {value[:40]}\n" if value.isprintable() and value else "\n")
        for key, value, kind in typed
    )


def _record(line: str) -> dict[str, object]:
    try:
        record = loads(line)
    except ValueError:
        return {}
    return dict(record) if isinstance(record, dict) else {}


def _template(text: str) -> str:
    return re.sub(r" +", " ", text.strip()).replace("{", "{{").replace("}", "}}")


def _blanks(text: str) -> str:
    """Return an expression for a text in which blanks may be more or fewer."""
    return " +".join(re.escape(word) for word in text.split())


def _is_literal(text: str) -> bool:
    """Say whether a text can stand in TOML as it is, between three quotes."""
    return "'''" not in text and all(c.isprintable() or c in "\n\t" for c in text)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
