"""Big logs are read by the compiled matcher: the rows must be those of reading line by line."""

import re
from itertools import zip_longest
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabricobs import cache_files
from fabricobs.bench import drawn
from fabricobs.formats.compiled import jit_cache, matches
from fabricobs.formats.compiled.expressions import Compiler
from fabricobs.formats.context import Context
from fabricobs.formats.logs import bulk
from fabricobs.formats.reading import read_file
from fabricobs.formats.recognition.catalogue import Catalogue, load_catalogue
from fabricobs.formats.recognition.format import Recognised
from fabricobs.formats.rows import Rows, Tally

CATALOGUE: Catalogue = load_catalogue()
LOGS = [
    f
    for f in CATALOGUE.formats.values()
    if bulk.can_read(f.compiled, bulk.LEAST_BYTES) and f.definition.identity_from_path is None
]
# What stands in one file together.
TOGETHER = [
    ("nccl_debug", "nccl_graph", "nccl_ofi", "nccl_version"),
    ("megatron", "nccl_debug", "nccl_version", "torch_watchdog", "torchrun", "tqdm"),
    ("deepspeed", "deepspeed_log", "nccl_debug", "nccl_version"),
    ("nanogpt", "nccl_debug", "torchrun", "training_loop"),
]


def formats_of(names: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(f for f in LOGS if f.name in names)


def lines_of(formats: tuple[Any, ...]) -> list[str]:
    samples = [s.text.split("\n") for f in formats for s in f.definition.sample]
    rows = zip_longest(*samples)
    return [line for row in rows for line in row if line is not None]


NCCL = formats_of(TOGETHER[0])
LINES = lines_of(NCCL)
ALL_SETS = [(f,) for f in LOGS] + [formats_of(names) for names in TOGETHER]


def read(path: Path, formats: tuple[Any, ...]) -> tuple[dict[str, list[Any]], Tally]:
    rows = Rows()
    result = read_file(path, Recognised("text", formats), Context("f"), rows, lambda: None)
    tables: dict[str, list[Any]] = {}
    for table, part in rows.drain():
        tables.setdefault(table, []).extend(part.to_pylist())
    assert result.problem is None
    return {t: sorted(r, key=str) for t, r in tables.items()}, result.tally


def assert_same(text: str, folder: Path, formats: tuple[Any, ...] = NCCL) -> None:
    path = folder / "log"
    path.write_text(text, encoding="utf-8", newline="")
    expected = read(path, formats)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bulk, "LEAST_BYTES", 0)
        got = read(path, formats)
    assert got == expected


@settings(max_examples=30)
@given(seed=st.randoms(use_true_random=False))
def test_rooms_that_are_soon_full(seed: Any, tmp_path_factory: Any) -> None:
    lines = [seed.choice(LINES) for _ in range(60)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matches, "_ROWS", 5)
        patch.setattr(matches, "_LEFT_LINES", 3)
        patch.setattr(matches, "_TEXTS", 32)
        assert_same("\n".join(lines), tmp_path_factory.mktemp("bulk"))


def test_overlong_lines(tmp_path: Path) -> None:
    overlong = LINES[0] + "x" * (1 << 20)
    assert_same("\n".join([LINES[0], overlong, LINES[1]]), tmp_path)


def test_machine_code_that_cannot_be_kept_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(cache_files, "_places", lambda _: [tmp_path / "file", tmp_path / "kept"])
    cache_files.keep("matcher.o", b"code", tmp_path)
    assert cache_files.kept("matcher.o", tmp_path) == b"code"
    (tmp_path / "kept" / "matcher.o").write_bytes(b"torn\ncode")
    assert cache_files.kept("matcher.o", tmp_path) is None
    monkeypatch.setattr(cache_files, "_places", lambda _: [tmp_path / "file"])
    cache_files.keep("matcher.o", b"code", tmp_path)
    assert cache_files.kept("matcher.o", tmp_path) is None


@pytest.mark.parametrize("module", jit_cache.SOURCES)
def test_the_llvm_code_is_that_of_the_sources(module: str) -> None:
    assert jit_cache.is_current(module), "run `make kernels`"


def test_an_expression_of_more_groups_than_an_instruction_names_has_no_program() -> None:
    groups = [rf"(\d+) x{i} " for i in range(129)]
    assert Compiler().add("".join(groups[:-1])) is not None
    assert Compiler().add("".join(groups)) is None


@pytest.mark.parametrize("formats", ALL_SETS, ids=lambda formats: "+".join(f.name for f in formats))
def test_the_samples(formats: tuple[Any, ...], tmp_path: Path) -> None:
    assert_same("\n".join(lines_of(formats)), tmp_path, formats)


def test_what_one_line_says_holds_for_those_below_alone(tmp_path: Path) -> None:
    start = "h:1:1 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 busId 1000 - Init START"
    text = f"{start}\nh:1:1 [0] NCCL INFO NCCL version 2.20.5+cuda12.4\n{start}\n"
    assert_same(text, tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        lambda line: line + "\r",
        lambda line: "2026-03-02 09:00:00 " + line,
        lambda line: f"2026-03-02T09:{len(line) % 60:02d}:01.{len(line)}Z " + line,
        lambda line: f"[pod/train-{len(line) % 7}/main] 3: " + line,
        lambda line: "Mar  2 09:00:01 gpu01 slurmd[123]: " + line,
        lambda line: "\x1b[32m" + line + "\x1b[0m",
        lambda line: line + " [repeated 3x across cluster]",
        lambda line: line.replace(" ", "\xa0"),
        lambda line: line + "\u2003end",
        lambda line: line + " " + line,
        lambda line: line.replace(" ", "  "),
        lambda line: line + "   ",
        lambda line: line.replace("0", "0é"),
        lambda line: line.replace("1", "123456789012345678901"),
        lambda line: line.replace(":", "::", 1),
        lambda line: line[: len(line) // 2],
        lambda line: "",
    ],
)
def test_lines_of_every_shape(change: Any, tmp_path: Path) -> None:
    for formats in map(formats_of, TOGETHER):
        mixed = [text for line in lines_of(formats) for text in (line, change(line))]
        assert_same("\n".join(mixed) + "\n", tmp_path, formats)


@settings(max_examples=15)
@given(seed=st.integers(0, 1 << 32), names=st.sampled_from(TOGETHER))
def test_drawn_lines_of_every_kind(
    seed: int, names: tuple[str, ...], tmp_path_factory: Any
) -> None:
    rng = Random(seed)
    formats = formats_of(names)
    lines: list[str] = []
    for format_ in formats:
        before = drawn.before_nccl(rng) if format_.definition.contains == " NCCL " else str
        for draw in drawn.kinds((format_.name,)).values():
            lines += (before(draw(rng)) for _ in range(3))
    rng.shuffle(lines)
    torn = [line[: rng.randrange(len(line) + 1)] for line in rng.sample(lines, len(lines) // 9)]
    big = [re.sub(r"\d+", lambda found: found[0] * 7, line) for line in rng.sample(lines, 9)]
    lines += torn + big
    rng.shuffle(lines)
    assert_same("\n".join(lines), tmp_path_factory.mktemp("bulk"), formats)


@settings(max_examples=100)
@given(data=st.data())
def test_lines_with_pieces_changed(data: st.DataObject, tmp_path_factory: Any) -> None:
    formats = formats_of(data.draw(st.sampled_from(TOGETHER)))
    lines = []
    for line in data.draw(st.lists(st.sampled_from(lines_of(formats)), min_size=1, max_size=8)):
        words = line.split(" ")
        place = data.draw(st.integers(0, len(words) - 1))
        odd = st.sampled_from(["", "-1", "0x", "NCCL", "n/a", "1e5", "3.25", "INFO", ": ", "…"])
        words[place] = data.draw(odd | st.text(max_size=6))
        lines.append(" ".join(words))
    assert_same("\n".join(lines), tmp_path_factory.mktemp("bulk"), formats)


def test_lines_that_messages_of_several_formats_share(tmp_path: Path) -> None:
    call = next(line for line in LINES if "opCount" in line and "stream" in line)
    watchdog = (
        "[rank1]:[E307 01:02:03.004500600 ProcessGroupNCCL.cpp:620] [Rank 1] Watchdog caught "
        "collective operation timeout: WorkNCCL(SeqNum=90, OpType=ALLREDUCE, Timeout(ms)=600000) "
        "ran for 600102 milliseconds before timing out."
    )
    bar = " 35%|###5      | 210/600 [10:02<18:11, 2.80s/it]"
    lines = [call, call + watchdog, call, bar + call, bar + watchdog, call + call, call]
    path = tmp_path / "log"
    path.write_text("\n".join([*lines, watchdog, bar]))
    formats = CATALOGUE.recognise(path.read_bytes(), "log").formats
    assert {"nccl_debug", "torch_watchdog", "tqdm"} <= {f.name for f in formats}
    assert_same(path.read_text(), tmp_path, formats)
    tables, tally = read(path, formats)
    assert (tally.parsed, tally.unparsed) == (9, 0)
    assert [len(tables[t]) for t in ("nccl_calls", "nccl_events", "steps")] == [7, 3, 3]
