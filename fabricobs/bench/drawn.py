"""Logs drawn from the definitions themselves: what a seed draws, nobody tunes for.

A seed draws host names, launchers' prefixes, versions (which template of a rule is printed), the
share of each kind of line with a heavy tail, the texts of every field, torn and foreign lines, how
many processes write into one file, and how long the files are.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from random import Random

from fabricobs.formats.logs.lines import LineFormat
from fabricobs.formats.recognition.catalogue import load_catalogue
from fabricobs.formats.templates import pieces_of
from fabricobs.formats.values import VALUE_TYPES

NCCL = ("nccl_debug", "nccl_graph", "nccl_ofi")
_LINES_AT_ONCE = 4_000
# What most lines of an ordinary INFO log begin with; the other kinds are the heavy tail.
_COMMON = ("Channel", "Ring", "Trees", "comm", "NET/", "{name:word} set by", "{:word} comm")
_COMMON_WEIGHT = 40.0
_TAIL = 1.2  # exponent of the weights of the kinds, the most frequent first (Zipf)
_TEXTS = (
    "0", "1", "7", "-1", "12", "4096", "0.5", "1.25e-05", "93.74", "0x55d0a1f0",
    "1a2b3c", "15[b7000]", "3[3]", "", "/GDRDMA", "/GDRDMA(PCI)/Shared", "mlx5_0", "rocep1s0", "IB",
    "AllReduce", "Ring", "LL128", "Simple", "10.9.0.7", "fe80::1", "10.9.0.7<4791>", "Enabled",
    "libnccl-net.so", "direct pointer", "0 1 2 3", "4 5 6 7 0 1 ...", "-1/-1/-1", "2/-1/-1", ":1:0",
    "GPU/1b000", "NET/0-1", "src/transport/net_ib.cc:1234", "0x0002c903000e0b72", "..........",
    "2026-03-02 09:00:01", "2026-03-02T09:00:01.250", "1772442000.5", "12.5 ms", "3.2s", "1.00 GB",
    "[0] 1->0->2", "4: ACTIVE", "some words of a message", "forward-backward", "00:55", "1,024",
    "4X", "EDR", "2.5 Gbps", "Mar  2 09:00:01", "09:00:01", "[Mon Mar  2 09:00:01 2026]", "5", "32",
    "pass", "0000:1b:00.0", "2-4MB", "gpu01", "eth0", "Disabled", "mlx5_1/2", "85.0%",
)  # fmt: skip
_HOSTS: tuple[Callable[[Random], str], ...] = (
    lambda r: f"node{r.randrange(999):03d}",
    lambda r: f"gpu-{r.choice('abcd')}{r.randrange(64):02d}",
    lambda r: f"ip-10-{r.randrange(9)}-{r.randrange(255)}-{r.randrange(255)}",
    lambda r: f"trainer-{r.randrange(999)}-worker-{r.randrange(128)}.cluster.local",
    lambda r: f"{r.randrange(16**8):08x}",
)
_PREFIXES: tuple[Callable[[Random, int], str], ...] = (
    lambda r, rank: "",
    lambda r, rank: "",
    lambda r, rank: "",
    lambda r, rank: f"{rank}: ",
    lambda r, rank: f"[1,{rank}]<stdout>:",
    lambda r, rank: f"[rank{rank}]: ",
    lambda r, rank: f"(worker pid={4000 + rank}) ",
    lambda r, rank: f"[pod/job-worker-{rank}/pytorch] ",
    lambda r, rank: f"[2026-03-02 09:{r.randrange(60):02d}:{r.randrange(60):02d}] ",
    lambda r, rank: (
        f"2026-03-02T09:{r.randrange(60):02d}:{r.randrange(60):02d}.{r.randrange(10**6):06d}Z "
    ),
)
_FOREIGN: tuple[Callable[[Random], str], ...] = (
    lambda r: (
        f"/usr/lib/python3/site-packages/torch/{r.randrange(999)}.py: UserWarning: deprecated"
    ),
    lambda r: f"  return func(*args, **kwargs)  # {r.randrange(99)}",
    lambda r: f"WARNING:root:retrying in {r.random():.2f} seconds",
    lambda r: f"loading shard {r.randrange(512)} of 512 … done",
    lambda r: "",
)

_POINTERS = tuple(0x55D000000000 + 4096 * (n * n % 7919) for n in range(256))

Lines = Callable[[Random], str]


@cache
def _texts_of(type_name: str) -> tuple[str, ...]:
    pattern = re.compile(VALUE_TYPES[type_name].pattern)
    return tuple(text for text in _TEXTS if pattern.fullmatch(text)) or ("1",)


def value_of(type_name: str, rng: Random) -> str:
    """Draw a text that a field of the type takes: many numbers, some pointers, few names."""
    if type_name == "int":
        return str(rng.randrange(1 << rng.randrange(1, 34)))
    if type_name == "hex":
        return f"{rng.randrange(1 << rng.randrange(1, 40)):x}"
    if type_name == "ibv_mtu":
        return str(rng.randrange(1, 6))
    if type_name == "number":
        return f"{rng.random() * 10 ** rng.randrange(5):.{rng.randrange(1, 4)}f}"
    if type_name == "word":
        return f"0x{_POINTERS[rng.randrange(len(_POINTERS))]:x}" if rng.random() < 0.9 else "mlx5_0"
    return rng.choice(_texts_of(type_name))


def line_of(template: str, rng: Random, rest: Callable[[], str] = str) -> str:
    """Draw a line that has the shape of a template; `rest` gives what stands in field `rest`."""
    parts: list[str] = []
    said: dict[str, str] = {}
    for literal, type_name, name in pieces_of(template):
        parts.append(said.get(name) or (value_of(type_name, rng) if literal is None else literal))
        if name == "rest":
            parts[-1] = rest() or parts[-1]
        if name:
            said[name] = parts[-1]
    if template.endswith(" ...") and rng.random() < 0.7:
        parts.append(f" {value_of('text', rng)}")
    return "".join(parts)


def kinds(formats: Sequence[str] = NCCL) -> dict[str, Lines]:
    """Return what draws a line of each kind: one for every rule of the formats."""
    catalogue = load_catalogue()
    drawn: dict[str, Lines] = {}
    for name in formats:
        compiled = catalogue.formats[name].compiled
        assert isinstance(compiled, LineFormat)
        for place, rule in enumerate(compiled.rules):
            level = rule.definition.when.get("level", "INFO") if compiled.contains else ""
            drawn[f"{name} {place}: {rule.templates[0]}"] = _kind(
                rule.definition.template, rule.each, f"{level} " if level else ""
            )
    return drawn


def _kind(templates: Sequence[str], each: object, level: str) -> Lines:
    def line(rng: Random) -> str:
        def rest() -> str:
            if each is None:
                return ""
            return " ".join(line_of(str(each), rng) for _ in range(rng.randrange(1, 9)))

        return level + line_of(rng.choice(templates), rng, rest)

    return line


def weights(names: Sequence[str], rng: Random) -> list[float]:
    """Draw how frequent each kind is: heavy-tailed, what is common in ordinary logs before all."""
    order = list(range(len(names)))
    rng.shuffle(order)
    drawn = [0.0] * len(names)
    for position, place in enumerate(order, 1):
        common = any(names[place].partition(": ")[2].startswith(word) for word in _COMMON)
        drawn[place] = (_COMMON_WEIGHT if common else 1.0) / position**_TAIL
    return drawn


def before_nccl(rng: Random) -> Callable[[str], str]:
    """Draw a writer: what it prints before each message."""
    host, rank, pid = rng.choice(_HOSTS)(rng), rng.randrange(64), rng.randrange(1000, 99999)
    prefix = rng.choice(_PREFIXES)

    def line(message: str) -> str:
        thread = pid + rng.randrange(4)
        return f"{prefix(rng, rank)}{host}:{pid}:{thread} [{rank % 8}] NCCL {message}"

    return line


def nccl_log(rng: Random, drawn: dict[str, Lines], *, clean: bool = False) -> Iterator[str]:
    """Yield the lines of one file; `clean` leaves torn and foreign ones out."""
    writers = [before_nccl(rng) for _ in range(rng.choice((1, 1, 8, 64)))]
    names = list(drawn)
    shares = weights(names, rng)
    torn = 0.0 if clean else rng.choice((0.0, 0.001, 0.01))
    foreign = 0.0 if clean else rng.choice((0.0, 0.01, 0.2))
    while True:
        for name in rng.choices(names, shares, k=_LINES_AT_ONCE):
            line = rng.choice(writers)(drawn[name](rng))
            if rng.random() < torn:
                line = line[: rng.randrange(len(line))] + rng.choice(("", line))
            if rng.random() < foreign:
                yield rng.choice(_FOREIGN)(rng)
            yield line


def write(path: Path, lines: Iterator[str], size: int) -> None:
    """Write about `size` bytes; a stretch of them comes again, for drawing takes time too."""
    drawn: list[str] = []
    length = 0
    while length < min(size, 16 << 20):
        drawn.append(next(lines))
        length += len(drawn[-1]) + 1
    text = ("\n".join(drawn) + "\n").encode()
    with path.open("wb") as file:
        for _ in range(max(1, round(size / len(text)))):
            file.write(text)
