"""Damaged inputs of every format: a seed makes one, and says all that is wrong with how it is read.

The damage knows what it damages: numbers become huge, brackets nest, keys and lines come twice,
formats interleave, encodings change, packed files break.
"""

import bz2
import gzip
import io
import lzma
import random
import re
import tarfile
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

import pyarrow as pa

from conftest import mutate
from fabricobs.formats.archive import Member, members
from fabricobs.formats.budget import Allowance
from fabricobs.formats.combined import parts
from fabricobs.formats.context import Context
from fabricobs.formats.decompression import SourceError
from fabricobs.formats.reading import FileResult, count_lines, read_file
from fabricobs.formats.recognition.catalogue import Catalogue, load_catalogue
from fabricobs.formats.recognition.format import CONTAINERS
from fabricobs.formats.rows import Rows
from fabricobs.identities import Identities, identities_within
from fabricobs.inputs import FileOutcome, InputFile, Options
from fabricobs.planning import PlannedFile, plan_files, plan_member
from fabricobs.store.arrow import coded_schema

MOST_CPU_SECONDS = 30.0  # for inputs that take milliseconds: what takes longer has no end
_NUMBER = re.compile(rb"\d+(?:\.\d+)?")
_NUMBERS = (
    b"-1", b"0", b"1e308", b"1e400", b"-1e308", b"NaN", b"Infinity", b"-inf", b"2147483648",
    b"9223372036854775807", b"9223372036854775808", b"18446744073709551616", b"0x" + b"f" * 40,
    b"9" * 400, b"9" * 5_000, b"1_000", b"\xc2\xb2", b"\xd9\xa3", b"", b"null",
    b"1.2.3", b"4294967296",
)  # fmt: skip
_TEXTS = (
    b'"\\ud800"', b'"\\u0000"', b"\\", b"\xed\xa0\x80", b"\xf0\x9f\x92\xa5", b"../../etc/passwd",
    b"=1+1", b"<script>", b"\x1b]0;x\x07", b"'; DROP TABLE steps; --", b"%s%n", b"{0}", b"\x85",
    b"\xe2\x80\xa8",
)  # fmt: skip
_SEPARATORS = (b" ", b",", b"\t", b":", b";", b"=", b"|", b"\n", b'"', b"/", b"-", b"[", b"{", b"(")
_ENDS = (b"\r\n", b"\r", b"\r\r\n", b"\n\n", b"\0\n", b"\x0b\n", b"\x00")

Damage = Callable[[bytes, random.Random], bytes]


def torn(data: bytes, chance: random.Random) -> bytes:
    return mutate(data, chance.randrange(1 << 32))


def numbers_changed(data: bytes, chance: random.Random) -> bytes:
    share = chance.choice((0.02, 0.2, 1.0))
    return _NUMBER.sub(lambda f: chance.choice(_NUMBERS) if chance.random() < share else f[0], data)


def digits_flipped(data: bytes, chance: random.Random) -> bytes:
    return re.sub(rb"\d", lambda f: b"%d" % chance.randrange(10), data)


def texts_inserted(data: bytes, chance: random.Random) -> bytes:
    for _ in range(chance.randint(1, 5)):
        at = chance.randrange(len(data) + 1)
        data = data[:at] + chance.choice(_TEXTS) + data[at:]
    return data


def nested(data: bytes, chance: random.Random) -> bytes:
    places = [found.start() for found in re.finditer(rb"[\[{(\"]", data)] or [0]
    at, depth = chance.choice(places), chance.choice((2, 50, 500, 20_000))
    opening = chance.choice((b"[", b"{", b'{"a":', b"[[", b"- ", b"("))
    return data[:at] + opening * depth + data[at:]


def lines_moved(data: bytes, chance: random.Random) -> bytes:
    lines = data.split(b"\n")
    for _ in range(chance.randint(1, 10)):
        line = lines.pop(chance.randrange(len(lines)))
        lines.insert(chance.randrange(len(lines) + 1), line)
    return b"\n".join(lines)


def lines_dropped(data: bytes, chance: random.Random) -> bytes:
    return b"\n".join(line for line in data.split(b"\n") if chance.random() < 0.8)


def lines_joined(data: bytes, chance: random.Random) -> bytes:
    lines = data.split(b"\n")
    return b"".join(line + (b"\n" if chance.random() < 0.5 else b" ") for line in lines)


def repeated(data: bytes, chance: random.Random) -> bytes:
    return data * min(chance.choice((2, 10, 100)), max(1, 100_000 // max(len(data), 1)))


def separators_changed(data: bytes, chance: random.Random) -> bytes:
    old, new = chance.choice(_SEPARATORS), chance.choice(_SEPARATORS)
    return data.replace(old, new * chance.choice((1, 1, 2, 300)), chance.choice((1, 10, -1)))[
        :200_000
    ]


def piece_repeated(data: bytes, chance: random.Random) -> bytes:
    """Repeat a short piece many times in its line: what expressions try again and again."""
    at = chance.randrange(len(data) + 1)
    piece = data[at : at + chance.choice((1, 1, 2, 5, 20))] or b" "
    return data[:at] + piece * (chance.choice((100, 3_000, 30_000)) // len(piece)) + data[at:]


def interleaved(data: bytes, chance: random.Random) -> bytes:
    other = chance.choice(inputs())[1].split(b"\n")
    mixed: list[bytes] = []
    for line in data.split(b"\n"):
        mixed.append(line)
        if chance.random() < 0.3:
            mixed.append(chance.choice(other))
    return b"\n".join(mixed)


def keys_doubled(data: bytes, chance: random.Random) -> bytes:
    pairs = list(re.finditer(rb'"[^"\n]{1,40}"\s*:\s*[^,{}\[\]\n]{1,40}', data))
    if not pairs:
        return lines_moved(data, chance)
    pair = chance.choice(pairs)
    return data[: pair.start()] + pair[0] + b"," + data[pair.start() :]


def cut(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def bytes_flipped(data: bytes, chance: random.Random) -> bytes:
    damaged = bytearray(data)
    for _ in range(chance.randint(1, 20)):
        if damaged:
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
    return bytes(damaged)


def encoded(data: bytes, chance: random.Random) -> bytes:
    text = data.decode("utf-8", "replace")
    encoding = chance.choice(("utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "latin-1", "utf-32"))
    return text.encode(encoding, "replace")


def ends_changed(data: bytes, chance: random.Random) -> bytes:
    return data.replace(
        b"\n", chance.choice((b"\r\n", b"\r", b"\r\r\n", b"\n\n", b"\0\n", b"\x0b\n", b"\x00"))
    )


def packed(data: bytes, chance: random.Random) -> bytes:
    data = chance.choice((gzip.compress, bz2.compress, lzma.compress))(data)
    return chance.choice((_as_it_is, cut, bytes_flipped))(data, chance)


def archived(data: bytes, chance: random.Random) -> bytes:
    room = io.BytesIO()
    kind = chance.choice((tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT))
    with tarfile.open(fileobj=room, mode="w", format=kind) as tar:
        for number in range(chance.randint(1, 3)):
            entry = tarfile.TarInfo(f"dir/{number}/sample.log")
            entry.size, entry.mtime = len(data), chance.choice((0, 1_767_225_600, 2**33 - 1))
            tar.addfile(entry, io.BytesIO(data))
    return chance.choice((_as_it_is, cut, bytes_flipped, numbers_changed))(room.getvalue(), chance)


def _as_it_is(data: bytes, chance: random.Random) -> bytes:
    return data


_DAMAGES: tuple[Damage, ...] = (
    torn, numbers_changed, digits_flipped, texts_inserted, nested, lines_moved, lines_dropped,
    lines_joined, repeated, separators_changed, piece_repeated, interleaved, keys_doubled, cut,
    bytes_flipped, encoded, ends_changed,
)  # fmt: skip
_PACKINGS: tuple[Damage, ...] = (packed, archived)


@cache
def catalogue() -> Catalogue:
    return load_catalogue()


@cache
def inputs() -> tuple[tuple[str, bytes], ...]:
    """Return path and bytes of every sample of every definition."""
    return tuple(
        (sample.path, sample.data)
        for format_ in catalogue().formats.values()
        for sample in format_.definition.sample
    )


def damaged_input(seed: int) -> tuple[str, bytes, list[str]]:
    """Return path and bytes of the input of a seed, and the names of what was done to it."""
    chance = random.Random(seed)
    # Samples in turn: so many seeds as there are samples meet every format.
    path, data = inputs()[seed % len(inputs())]
    done = chance.sample(_DAMAGES, chance.choice((1, 1, 2, 3)))
    if chance.random() < 0.08:
        done.append(chance.choice(_PACKINGS))
    for damage in done:
        data = damage(data, chance)[: 1 << 20]
    return path, data, [damage.__name__ for damage in done]


def complaints(seed: int, folder: Path) -> list[str]:
    """Read the input of a seed, and return what is wrong with how it was read."""
    name, data, done = damaged_input(seed)
    found = complaints_about(name, data, folder)
    return [f"seed {seed}, {name} ({', '.join(done)}): {each}" for each in found]


def complaints_about(name: str, data: bytes, folder: Path) -> list[str]:
    """Read an input, and return what is wrong with how it was read."""
    path = folder / "in" / name.lstrip("/")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    began = time.thread_time()
    try:
        found = [*_read(folder / "in", path, folder)]
    except Exception as error:
        found = [f"raised {type(error).__name__}: {error}"]
    taken = time.thread_time() - began
    path.unlink()
    if taken > MOST_CPU_SECONDS:
        found.append(f"took {taken:.1f} s of CPU time")
    return found


def _read(root: Path, path: Path, folder: Path) -> Iterator[str]:
    options = Options()
    file = InputFile(str(root), str(path.relative_to(root)))
    told = Identities([file], options).of(file)
    (planned,) = plan_files([(file, told)], catalogue(), options)
    if isinstance(planned, FileOutcome):
        yield from _unexpected(planned)
        return
    if planned.recognised.syntax not in CONTAINERS:
        yield from _wrong(planned, path)
        return
    try:
        given = partial(_members, planned, path, folder)
        within = identities_within(
            given, path, planned.identity, catalogue(), options, Allowance(path)
        )
        for member in given(lambda name: True):
            told = within.of(member.name)
            inner = plan_member(planned, member, told, catalogue(), options)
            if isinstance(inner, FileOutcome):
                yield from _unexpected(inner)
            else:
                yield from _wrong(inner, member.path)
    except SourceError:
        return  # it breaks off, and says so


def _members(
    planned: PlannedFile, path: Path, folder: Path, unpacks: Callable[[str], bool]
) -> Iterator[Member]:
    combination = planned.recognised.combination
    if combination is None:
        return members(path, folder, unpacks=unpacks)
    return parts(path, combination, folder, None)


def _unexpected(outcome: FileOutcome | FileResult) -> Iterator[str]:
    if outcome.unexpected:
        yield f"an error of fabricobs: {outcome.problem}"


def _wrong(planned: PlannedFile, path: Path) -> Iterator[str]:
    """Read a planned file and yield what is wrong with its account and its rows."""
    rows = Rows()
    parts: list[tuple[str, pa.Table]] = []
    context = Context(planned.file_id, None, planned.identity)
    context.modified_us = planned.modified_us
    context.from_path.update(planned.from_path)
    if planned.recognised.formats:
        result = read_file(
            path, planned.recognised, context, rows, lambda: parts.extend(rows.drain())
        )
    else:
        result = count_lines(path)
    parts.extend(rows.drain())
    yield from _unexpected(result)
    tally = result.tally
    if tally.lines != tally.parsed + tally.ignored + tally.unparsed:
        yield f"{tally.lines} lines are not {tally.parsed} + {tally.ignored} + {tally.unparsed}"
    if min(tally.parsed, tally.ignored, tally.unparsed - tally.unclaimed) < 0:
        yield f"a count below zero: {tally}"
    if result.rows != sum(part.num_rows for _, part in parts):
        yield f"{result.rows} rows are said to be {sum(part.num_rows for _, part in parts)}"
    for table, part in parts:
        part.validate(full=True)
        if part.schema.names != coded_schema(table).names:
            yield f"{table} has the columns {part.schema.names}"
        for row in part.to_pylist():
            if row["file_id"] != planned.file_id:
                yield f"{table} has a row of file {row['file_id']}"
            if row.get("line") is not None and row["line"] < 1:
                yield f"{table} has a row of line {row['line']}"
