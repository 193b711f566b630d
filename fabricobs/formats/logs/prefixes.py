"""Prefixes that launchers and log services write: found, removed, and their fields kept.

A line may bear several (`0: [1,3]<stdout>:2026-01-05T10:00:00Z text`); they are taken off one after
the other. A format whose own lines begin with a time or a number sees them whole first.

`3: `, `gpu01: ` or `[3] ` may be a label or the beginning of a trainer's own line. What such a
label says counts only if the file shows that it is one (`labels_of`); else it is taken off and
tells nothing.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import tzinfo
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from fabricobs.formats.identity.vocabulary import likeness
from fabricobs.formats.limits import LIMITS
from fabricobs.formats.logs.meanings import host_of_stream, labels_by_meaning
from fabricobs.formats.recognition.detection import Detector
from fabricobs.formats.values import Unfit, parse_whole, parse_without_year, time_of

# What stands around lines says by these names: host, pod, node, rank (of a launcher), torch_rank
# (PyTorch's, always global), local_rank, ts, stream (of a log service).
Told = Mapping[str, str]
Labels = tuple[str, ...]
NOTHING: Told = MappingProxyType({})

_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_DAY = r"\d{4}-\d\d-\d\d"
_ZONE = r"(?:Z|[+-]\d\d:?\d\d)"
_ISO = rf"{_DAY}[T ]{_CLOCK}{_ZONE}?"
_SHORT = r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d"
_NAME = r"[A-Za-z0-9][\w.-]*"
_TAG = r"[A-Za-z0-9][\w./@-]*"  # of syslog: a program, or the id of a container
_LEVEL = r"(?:DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL)"
_LAUNCHERS = (
    r"\[\d+,mpirank:(?P<rank>\d{1,7}),(?P<host>[\w-]+)\]<std\w+>: ?",  # SageMaker
    # Open MPI --tag-output; 5 names the job and, in detail, the process.
    rf"\[[\w.@-]+,(?P<rank>\d{{1,7}})\](?:\[(?P<host>{_NAME}):\d+\])?<std\w+>: ?",
    r"\[(?P<rank>\d{1,7})\]<std\w+>: ?",  # Horovod
    r"\[rank[= ]?(?P<torch_rank>\d{1,7})\]:? ?",  # PyTorch, Determined
    r"\[default(?P<local_rank>\d{1,7})\]:? ?",  # torchrun
    r"\((?:[\w.:-]+ )?pid=\d+(?:, ip=(?P<host>[\d.]+))?\) ",  # Ray
    # SkyPilot: the rank is the node's.
    r"\([\w.:-]+, rank=\d+, pid=\d+(?:, ip=(?P<host>[\d.]+))?\) ",
    rf"\[pod/(?P<pod>{_NAME})/[\w.-]+\] ",  # kubectl logs --prefix
    rf"[a-z0-9-]+/(?P<pod>{_NAME})\[[\w.-]+\]: ",  # kail
    r"(?P<host>\d{1,3}(?:\.\d{1,3}){3}): ",  # pdsh
    # These may be labels or not.
    r"\[\d{1,7}\]:? ?",
    r" *\d{1,7}: ",
    r"[A-Za-z][\w.-]*\d: ",
)
_SERVICES = (
    r"<\d{1,3}>1 (?P<ts>\S+) (?P<host>\S+) \S+ \S+ \S+ (?:-|(?:\[[^\]]*\])+) ?",  # RFC 5424
    # RFC 3164, journalctl.
    rf"(?:<\d{{1,3}}>)?(?P<ts>{_SHORT})(?:\.\d+)? (?P<host>{_NAME}) {_TAG}\[\d+\]: ?",
    rf"(?P<ts>{_ISO}) (?P<host>{_NAME}) {_TAG}\[\d+\]: ?",
    rf"[A-Z][a-z]{{2}} (?P<ts>{_DAY} {_CLOCK} UTC) (?P<host>{_NAME}) {_TAG}\[\d+\]: ?",
    rf"(?P<ts>\d{{10}}\.\d{{6}}) (?P<host>{_NAME}) {_TAG}\[\d+\]: ?",
    rf"\[ *\d+\.\d{{6}}\] (?P<host>{_NAME}) {_TAG}\[\d+\]: ?",
    rf"(?P<ts>{_ISO}) \{{(?P<labels>[^}}]*)\}} ",  # logcli
    rf"(?P<ts>{_ISO}) std(?:out|err) F ",  # containerd
    rf"(?P<ts>{_ISO}) (?P<stream>[\w.-]+(?:/[\w.=-]+)+) ",  # aws logs tail
    # Airflow, Determined, Python's logging, loguru.
    rf"\[(?P<ts>{_DAY}, {_CLOCK} UTC|{_ISO})\] \{{[\w.]+:\d+\}} [A-Z]+ - ",
    rf"\[(?P<ts>{_ISO})\] [0-9a-f]{{8}} (?:\[[A-Z]+\] )?\|\| (?:\[rank=(?P<torch_rank>\d+)\] )?"
    rf"(?:{_LEVEL}: )?",
    rf"(?P<ts>{_ISO}) - [\w.]+ - {_LEVEL} - ",
    rf"(?P<ts>{_ISO}) \[?{_LEVEL}\]? +(?:\[[^\]]+\] )?",
    rf"(?P<ts>{_ISO}) \| {_LEVEL} +\| \S+ - ",
    rf"{_LEVEL}:[\w.]+:",
    rf"(?P<ts>{_ISO}):?[ \t]",
    rf" *\| (?P<ts>{_ISO}) \| ",  # pasted from CloudWatch
    # mpirun --timestamp-output, alone or with the tag.
    r"(?P<ts>[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})"
    r"(?:\[\d+,(?P<rank>\d{1,7})\])?<std\w+>: ?",
    # NCCL 2.26 and newer, and other brackets.
    rf"\[(?P<ts>{_DAY}[ T_]{_CLOCK}{_ZONE}?)\] ",
    rf"(?P<ts>{_SHORT}) ",  # ts
    r"EVENTS\t(?P<ts>\d{13})\t",  # aws logs get-log-events --output text
    r"> ",  # quoted
)


def unnamed(expression: str) -> str:
    """Return an expression without the names of its groups, which make no captures then."""
    return re.sub(r"\?P<\w+>", "?:", expression)


# Labels only where the file shows that they are: most lines bear them, and few differ.
_LABELS = {
    "word": r"(?P<host>[A-Za-z][A-Za-z-]+): ",  # pdsh, above outputs of commands alone
    "task": r" *(?P<rank>\d{1,7}): ",  # srun --label, right-aligned
    "bracket": r"\[(?P<rank>\d{1,7})\](?!<std):? ?",  # mpiexec -prepend-rank, not Horovod
    "rank": r"[Rr]ank[ _-]?(?P<rank>\d{1,7})(?: *[:|] ?| )",
    "host": r"(?P<host>[A-Za-z][\w.-]*\d[\w.-]*|\d+(?:\.\d+){3}): ",  # pdsh, clush, DeepSpeed
    # syslog of a program that tells no process: what stands there may be a trainer's own words.
    "tag": rf"(?P<ts>{_SHORT}(?:\.\d+)?|{_DAY}T{_CLOCK}{_ZONE}) "
    rf"(?P<host>[A-Za-z][\w.-]*\d[\w.-]*|\d+(?:\.\d+){{3}}) {_TAG}: ",
    "tab": r"(?P<host>[A-Za-z][\w.-]*\d[\w.-]*|\d+(?:\.\d+){3})\t",  # parallel --tag
    "column": r"(?P<host>[A-Za-z][\w.@-]*\d[\w.@-]*) +\| ",  # docker compose
    "stern": r"(?P<pod>[a-z][a-z0-9.]*(?:-[a-z0-9.]+)+) (?:› )?[a-z][a-z0-9.-]* (?:› )?",
    "number": r" *(?P<number>\d{1,9})(?:\t| (?! )|:)",  # cat -n, less -N, grep -n
    "file": r"(?P<file>[\w./-]+\.(?:log|out|err|txt)):(?:\d+:)?",  # grep -H
}
_HOST_LABELS, _RANK_LABELS = ("host", "tag", "tab", "column", "stern"), ("task", "rank")
# A line that begins with a label or with anything below which one may stand.
_BEGINNING = re.compile(
    "\n(?=" + "|".join(map(unnamed, (*_LABELS.values(), *_LAUNCHERS, *_SERVICES))) + ")"
)
# Of anchored labels, a step's or a device's is none of a host.
_NO_HOST = re.compile(
    r"(?:step|epoch|iter|iteration|rank|layer|batch|stage|loss|eth|mlx5_|hca|ib|nccl|v|gen|device|"
    r"cpu|core|numa|test|val|train|eval|fold|trial|python)[_-]?\d[\d.]*|(?:gpu|cuda)_?\d",
    re.IGNORECASE,
)
_LABELLED = Detector(unnamed("|".join(rf"^{e}" for e in (*_LAUNCHERS, *_SERVICES))))
_ZONED = re.compile(r"(?:Z|UTC|[+-]\d\d:?\d\d|^\d+(?:\.\d+)?)$")
_MOST = 4  # prefixes on one line
_LOOKED_AT = 1 << 18
_SHOWN_LINES = 2_000
_COUNTED_AT_ONCE = 32
_FEWEST_LABELS = 3
_RANKS_PER_SHOWN = 64
_PAIRED_LINES = 400
# Between two messages that share a line only what cannot be part of the first is a prefix.
_INNER = re.compile("(?:" + "|".join(map(unnamed, (*_LAUNCHERS[:9], *_SERVICES[-5:-3]))) + ")+$")


def prefix_expressions(labels: Labels) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what finds a prefix, in order: labels that a file shows, what any file may bear."""
    return tuple(_LABELS[name] for name in labels), (*_LAUNCHERS, *_SERVICES)


Peel = Callable[[str], "re.Match[str] | None"]


@lru_cache(maxsize=64)
def _peel(labels: Labels) -> Peel:
    """Return what finds the first prefix of a line, for a file that shows these labels."""
    shown = [_LABELS[name] for name in labels]
    # The many lines that bear none cost one look.
    patterns = [re.compile(e) for e in (*shown, *_LAUNCHERS, *_SERVICES)]
    any_of_them = re.compile("|".join(f"({unnamed(p.pattern)})" for p in patterns))

    def first(line: str) -> re.Match[str] | None:
        begin = line[: LIMITS.prefix_chars]
        found = any_of_them.match(begin)
        if found is None or found.lastindex is None:
            return None
        return patterns[found.lastindex - 1].match(begin)

    return first


def strip_prefix(line: str, labels: Labels = ()) -> Iterator[tuple[str, Told]]:
    """Yield the line without its first prefix, its first two, ..., and what those told.

    One by one, because a format's own lines may begin like a prefix, with a time.
    """
    told: dict[str, str] = {}
    for depth in range(_MOST):
        # In the middle of a line a number in brackets is a process.
        found = _peel(labels if depth == 0 or labels != ("bracket",) else ())(line)
        if found is None or not found[0]:
            return
        told = merged(told, {k: v for k, v in found.groupdict().items() if v is not None})
        line = line[found.end() :]
        yield line, told


def merged(outer: Told, inner: Told) -> dict[str, str]:
    """Return what both tell: the inner, but rather a time with a zone than one without."""
    both = {**outer, **inner}
    if "ts" in outer and "ts" in inner and _ZONED.search(outer["ts"]):
        both["ts"] = inner["ts"] if _ZONED.search(inner["ts"]) else outer["ts"]
    return both


@lru_cache(maxsize=4096)
def before_message(before: str, labels: Labels = ()) -> tuple[Told, bool]:
    """Return what stands before a message tells, and whether nothing but prefixes does."""
    *_, (rest, told) = (before, NOTHING), *strip_prefix(before, labels)
    return (NOTHING, False) if rest.strip() else (told, True)


def inner_prefix(text: str) -> int:
    """Return where the prefixes begin that end a text, its length if it ends in none."""
    found = _INNER.search(text)
    return len(text) if found is None else found.start()


def prefix_columns(told: Told, zone: tzinfo, written_us: int | None) -> dict[str, Any]:
    """Return the columns that prefixes fill: `host`, `launch_rank`, and `ts` in microseconds.

    The rank of a launcher above torchrun's local rank is the node's. `written_us` is when the
    file was written: syslog's times have no year.
    """
    columns: dict[str, Any] = {}
    if "labels" in told:
        told = {**labels_by_meaning(told["labels"]), **told}
    host = told.get("pod") or told.get("host") or host_of_stream(told.get("stream", ""))
    host = host or told.get("node")
    if host:
        columns["host"] = host
    rank = told.get("torch_rank") or (None if "local_rank" in told else told.get("rank"))
    if rank is not None:
        columns["launch_rank"] = parse_whole(rank)
    if "ts" in told:
        with suppress(ValueError):
            columns["ts"] = _moment(told["ts"], zone, written_us)
    return columns


@lru_cache(maxsize=4096)
def _moment(text: str, zone: tzinfo, written_us: int | None) -> int | Unfit:
    if text[0].isalpha() and len(text.split()) == 3:
        return parse_without_year(text, zone, written_us)
    return time_of(text.replace(", ", " ").replace(" UTC", "Z"), zone)


def without_prefixes(text: str, labels: Labels, *, always: bool) -> str:
    """Return the first lines of a text as they are below their prefixes, for recognition.

    Nothing if no launcher or service labelled them, unless `always`.
    """
    head = text[:_LOOKED_AT]
    if not always and not labels and not _LABELLED.found_in(head):
        return ""
    return "\n".join(rest for line in head.split("\n") for rest, _ in strip_prefix(line, labels))


def labels_of(text: str) -> Labels:
    """Return which labels the lines of a text bear, from its first ones.

    Half of the lines bear it, and it says the same again, or goes up and down: the number of a
    step only goes up, the number of a line by one.
    """
    head = text[:_LOOKED_AT]
    lines = [line for line in head.split("\n", _SHOWN_LINES) if line.strip()]
    bare = 0
    for begin in range(0, len(lines), _COUNTED_AT_ONCE):
        some = lines[begin : begin + _COUNTED_AT_ONCE]
        begins = "".join([f"\n{line[: LIMITS.prefix_chars]}" for line in some])
        bare += len(some) - len(_BEGINNING.findall(begins))
        if 2 * bare > len(lines):
            return ()
    rests = [[line, *(rest for rest, _ in strip_prefix(line))][:_MOST] for line in lines]
    shown = (
        name
        for name in _LABELS
        if name != "word" and _is_shown(name, _values(name, rests), len(lines))
    )
    first = next(shown, None)
    return () if first is None else _with_second(first, lines[:_PAIRED_LINES])


def _with_second(first: str, lines: Sequence[str]) -> Labels:
    """Return a label with the one beside it: that of the hosts of its ranks, or of their ranks.

    A number that stands behind several hosts counts each host's own: it is no rank of the job.
    """
    others = (
        _HOST_LABELS if first in _RANK_LABELS else _RANK_LABELS if first in _HOST_LABELS else ()
    )
    for other in others:
        pair = (other, first) if first in _RANK_LABELS else (first, other)
        if 2 * len(_host_and_rank(pair, lines[:_COUNTED_AT_ONCE])) < len(lines[:_COUNTED_AT_ONCE]):
            continue
        told = _host_and_rank(pair, lines)
        by_label = zip(pair, zip(*told, strict=True), strict=True)
        if not all(_is_shown(name, values, len(lines)) for name, values in by_label):
            continue
        return pair if len(set(told)) == len({rank for _, rank in told}) else pair[:1]
    return (first,)


def _host_and_rank(pair: Labels, lines: Sequence[str]) -> list[tuple[str, str]]:
    """Return what the lines say of both, of those that do."""
    said = ((NOTHING, *(told for _, told in strip_prefix(line, pair)))[-1] for line in lines)
    return [
        (told.get("pod") or told["host"], told["rank"])
        for told in said
        if "rank" in told and ("pod" in told or "host" in told)
    ]


def words_before(text: str) -> Labels:
    """Return the label of a text in which names without a digit stand before nearly all lines.

    They may be hosts, or whatever a log begins its lines with.
    """
    if label_pattern("word").match(text) is None:
        return ()
    lines = [line for line in text[:_LOOKED_AT].split("\n", _SHOWN_LINES) if line.strip()]
    values = _values("word", [[line] for line in lines])
    hosts = len(set(values)) > 1 and any(likeness(value) > 1 for value in set(values))
    return ("word",) if hosts and _is_shown("word", values, len(lines)) else ()


def label_pattern(name: str) -> re.Pattern[str]:
    """Return what finds a label at the beginning of a line."""
    return re.compile(_LABELS[name])


def _values(name: str, rests: Sequence[Sequence[str]]) -> list[str]:
    label = label_pattern(name)

    def match(rest: str) -> re.Match[str] | None:
        return label.match(rest[: LIMITS.prefix_chars])

    most = 1 if name == "bracket" else _MOST
    found = (next(filter(None, map(match, some[:most])), None) for some in rests)
    return [hit[hit.lastgroup or 1] for hit in found if hit is not None]


def _is_shown(name: str, values: Sequence[str], lines: int) -> bool:
    if len(values) < _FEWEST_LABELS or 2 * len(values) < lines:
        return False
    if name == "number":
        numbers = [int(value) for value in values]
        return 5 * len(values) >= 4 * lines and all(b == a + 1 for a, b in pairwise(numbers))
    repeated = 2 * len(set(values)) <= len(values) + 1
    if name in {"task", "bracket", "rank"}:
        ranks = [int(value) for value in values]
        # A process id is no rank: those are few and small.
        small = max(ranks) < _RANKS_PER_SHOWN * (len(set(ranks)) + 1)
        return small and (repeated or any(b < a for a, b in pairwise(ranks)))
    named = not any(_NO_HOST.fullmatch(value) for value in set(values))
    return repeated and named and 5 * len(values) >= 4 * lines


class HostNames:
    """The hosts of one file. Where writers share a pipe, a host may bear a torn-off piece.

    `busId 97gpu1:17:17 [2] NCCL INFO ...` is gpu1 if lines before begin with gpu1.
    """

    def __init__(self) -> None:
        self._known: set[str] = set()

    def clean(self, host: str, before: str, labels: Labels = ()) -> str:
        """Return the host's name, given what stands before it in the line."""
        if host in self._known:
            return host
        if not before or before_message(before, labels)[1]:
            self._known.add(host)
            return host
        glued = [known for known in self._known if host.endswith(known)]
        return max(glued, key=len, default=host)
