"""One name of a path taken apart by meaning: time, interface, rank, words, and what is left."""

import re
from dataclasses import dataclass
from functools import lru_cache

from fabricobs.formats.identity.times import time_in
from fabricobs.formats.identity.vocabulary import (
    ADDRESS,
    INTERFACE,
    RANK,
    is_host_key,
    is_kind,
    is_tier,
    is_word,
    likeness,
)

_SUFFIX = re.compile(
    r"\.(?:gz|zst|xz|bz2|lz4|tgz|tbz2?|txz|tar|zip|txt|text|log|out|err|json|jsonl|csv|tsv|prom|raw|"
    r"walk|dat|dump|cfg|conf|html?|xml|ya?ml|md|line|metrics|stdout|stderr|capture|bak|old|orig|"
    r"\d{1,3})$|~$| \(\d+\)$",
    re.IGNORECASE,
)
_ARCHIVE = re.compile(r"\.(?:tar(?:\.(?:gz|xz|bz2|zst))?|tgz|tbz2?|txz|zip)$", re.IGNORECASE)
# Bundles of tools that put the host between words and numbers of their own.
_BUNDLES = (
    re.compile(r"sosreport-(?P<host>.+?)(?:-\d{5,})?-(?P<time>\d{4}-\d\d-\d\d)-[a-z]{7}(?:-\w+)?"),
    re.compile(r"(?:scc|nts)_(?P<host>.+)_(?P<time>\d{6}_\d{4})(?:_\d+)?"),
    re.compile(r"sonic_dump_(?P<host>.+)_(?P<time>\d{8}_\d{6})"),
)
# Names of logs that say where the host, or the pod, stands.
_LOGS = (
    # Slurm's --output=%x-%j-%N-%t: job name, job, host, task.
    re.compile(r"[\w.-]+?-[1-9]\d{4,}-(?P<host>.+)-\d{1,4}"),
    # /var/log/pods/NAMESPACE_POD_UID and /var/log/containers/POD_NAMESPACE_CONTAINER-ID.
    re.compile(r"[a-z0-9-]+_(?P<host>[a-z0-9.-]+)_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    re.compile(r"(?P<host>[a-z0-9.-]+)_[a-z0-9-]+_[a-z0-9.-]+-[0-9a-f]{64}"),
    re.compile(r"(?:node|host|hostname)_(?P<host>[A-Za-z][A-Za-z0-9.-]*)"),
)
_KEY = re.compile(r"([A-Za-z_]\w*)=(.+)")
_FABRICS = frozenset({"ib", "roce"})
_SEPARATORS = "-_., +@#()[]{}"
_TOKEN = re.compile(r"[^-_., +@#()\[\]{}]+")
# Stands for what differs from sibling to sibling.
TIME_MARK, PORT_MARK, NAME_MARK, NUMBER_MARK = "{time}", "{port}", "{name}", "{n}"


@dataclass(frozen=True, slots=True)
class Name:
    """What one component of a path says.

    `skeleton` is the component with all that differs between siblings as marks; `rest` without
    time, interface and suffix: what an unknown device goes by. `is_stated` means that the
    component itself says that the name is a host's (`host=gpu-01`).
    """

    skeleton: str
    rest: str
    name: str | None = None
    is_stated: bool = False
    port: str | None = None
    rank: int | None = None


@lru_cache(maxsize=1 << 16)
def take_apart(component: str, is_file: bool = False) -> Name:
    """Take a component of a path apart; `is_file` allows for suffixes, as of archives too."""
    stem = component
    if is_file or _ARCHIVE.search(stem):
        stem = _without_suffixes(stem)
    key = _KEY.fullmatch(stem)
    if key is not None:
        return _keyed(stem, key[1], key[2])
    bundle = next(filter(None, (b.fullmatch(stem) for b in _BUNDLES)), None)
    if bundle is not None:
        skeleton = f"{stem[: bundle.start('host')]}{NAME_MARK}{TIME_MARK}"
        return Name(skeleton, stem.replace(bundle["time"], ""), bundle["host"], is_stated=True)
    for place, log in enumerate(_LOGS):
        found = log.fullmatch(stem)
        if found is not None and time_in(stem) is None and likeness(found["host"]) >= 3:
            return Name(f"log{place}-{NAME_MARK}", stem, found["host"], is_stated=True)
    return _parts(stem)


def dated(component: str) -> str:
    """Return a component with a bundle's own way to write a year as two digits made plain."""
    found = _BUNDLES[1].match(component)
    if found is None:
        return component
    return f"{component[: found.start('time')]}20{component[found.start('time') :]}"


def _keyed(component: str, key: str, value: str) -> Name:
    if is_host_key(key) and not INTERFACE.fullmatch(value):
        return Name(f"{key}={NAME_MARK}", component, value, is_stated=True)
    if time_in(value) is not None or value.isdecimal():
        return Name(f"{key}={TIME_MARK}", "")
    port = value if INTERFACE.fullmatch(value) else None
    return Name(f"{key}={PORT_MARK if port else value}", component, None, port=port)


def _without_suffixes(name: str) -> str:
    address = ADDRESS.search(name)
    told = time_in(name)
    least = max(address.end() if address else 0, told.end if told else 0, 1)
    while (found := _SUFFIX.search(name)) is not None and found.start() >= least:
        name = name[: found.start()]
    return name


def _parts(stem: str) -> Name:
    """Cut time, interface and rank out; the most host-like piece of what is left is the name."""
    marks: list[tuple[int, int, str]] = []
    told = time_in(stem)
    bare = stem
    if told is not None and not ADDRESS.fullmatch(stem):
        marks.append((told.begin, told.end, TIME_MARK))
        # A blank ends a name as the time does.
        bare = f"{stem[: told.begin]}{' ' * (told.end - told.begin)}{stem[told.end :]}"
    port = rank = None
    found = INTERFACE.search(bare)
    if found is not None:
        port = _interface(found[0])
        marks.append((found.start(), found.end(), PORT_MARK))
    found = next((found for found in RANK.finditer(bare) if not found["part"]), None)
    if found is not None:
        rank = int(found["rank"])
        marks.append((found.start(), found.end(), NUMBER_MARK))
    marks.sort()
    pieces: list[str] = []
    at = 0
    for begin, end, _ in marks:
        pieces.append(stem[at:begin])
        at = end
    pieces.append(stem[at:])
    cores = [_core(piece) for piece in pieces]
    best = max(range(len(cores)), key=lambda place: likeness(cores[place]))
    name = cores[best] if likeness(cores[best]) >= 2 else None
    skeleton: list[str] = []
    rest: list[str] = []
    for place, piece in enumerate(pieces):
        chosen = name is not None and place == best
        before, _, after = piece.partition(cores[place]) if chosen else (piece, "", "")
        skeleton.append(f"{_numbered(before)}{NAME_MARK if chosen else ''}{_numbered(after)}")
        rest.append(piece.strip(_SEPARATORS))
        if place < len(marks):
            skeleton.append(marks[place][2])
            if marks[place][2] == NUMBER_MARK:
                rest.append(f"rank{rank}")
    return Name("".join(skeleton), "_".join(filter(None, rest)), name, port=port, rank=rank)


def _interface(text: str) -> str:
    """Return an interface as its device prints it: a file name has no slash."""
    if text.startswith(("Eth", "Et")) or "GigE" in text:
        return re.sub(r"(?<=\d)[-_](?=\d)", "/", text)
    return text.replace("-", "_") if text.startswith("mlx") else text


def _core(piece: str) -> str:
    """Return a piece without the words at its ends; an underscore parts names from words.

    Names of hosts hold no underscore, so a part between underscores that has letters and digits is
    the name, and parts of letters alone beside it are words nobody has listed.
    """
    address = ADDRESS.search(piece)
    if address is not None:
        return address[0]
    piece = _without_words(piece)
    parts = [part for part in piece.split("_") if part]
    if len(parts) < 2:
        return piece
    parts = [core for core in map(_without_words, parts) if core and not core.isdecimal()]
    best = max(map(likeness, parts), default=0)
    if best >= 3:
        kept = [part for part in parts if likeness(part) >= 3]
        return "_".join(kept) if len(kept) > 1 else kept[0]
    return piece


def _without_words(piece: str) -> str:
    tokens = [(found[0], found.start(), found.end()) for found in _TOKEN.finditer(piece)]
    while tokens and is_word(tokens[-1][0]) and not tokens[-1][0].isdecimal():
        if _closes_a_name(tokens, piece):
            break
        tokens.pop()
    while len(tokens) > 1 and tokens[-1][0].isdecimal() and _is_plain(tokens[-2][0]):
        if len(tokens[-2][0]) == 1 and len(tokens) > 2 and is_kind(tokens[-3][0]):
            break  # the letter of a tier: `sw-l-001`
        tokens.pop()  # the number of a command's output
        tokens.pop()
    while tokens and is_word(tokens[0][0]) and not _opens_a_name(tokens, piece):
        tokens.pop(0)
    return piece[tokens[0][1] : tokens[-1][2]] if tokens else ""


def _is_plain(token: str) -> bool:
    return is_word(token) and not token.isdecimal() and not is_kind(token)


def _opens_a_name(tokens: list[tuple[str, int, int]], piece: str) -> bool:
    """Say whether a kind of device and what follows are one name: `node-01`, `sw-gpu-101`.

    So are a kind of fabric and a tier of it: `ib-leaf-02`.
    """
    if len(tokens) < 2:
        return False
    of_fabric = tokens[0][0].lower() in _FABRICS and is_tier(tokens[1][0].rstrip("0123456789"))
    if not of_fabric and not is_kind(tokens[0][0]):
        return False
    run = re.match(r"[^_ +@#()\[\]{}]+", piece[tokens[0][1] : tokens[-1][2]])
    return run is not None and run[0] != tokens[0][0] and likeness(run[0]) == 4


def _closes_a_name(tokens: list[tuple[str, int, int]], piece: str) -> bool:
    """Say whether a tier or a letter and what stands before it are one name: `a02-leaf`, `tor03-l`.

    `a02-spine` and `tor03-s` beside them are other switches.
    """
    last = tokens[-1][0]
    if len(tokens) < 2 or not (is_tier(last) or (len(last) == 1 and last.isalpha())):
        return False
    before, _, end = tokens[-2]
    joined = piece[end : tokens[-1][1]] in {"-", "."}
    return joined and any(character.isdecimal() for character in before)


def _numbered(piece: str) -> str:
    return re.sub(r"\d+", NUMBER_MARK, piece)
