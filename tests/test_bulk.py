"""Big logs are read by the compiled matcher: the rows must be those of reading line by line."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabricobs.formats.compiled import machine, matches
from fabricobs.formats.context import Context
from fabricobs.formats.logs import bulk
from fabricobs.formats.reading import read_file
from fabricobs.formats.recognition.catalogue import Catalogue, Recognised, load_catalogue
from fabricobs.formats.rows import Rows, Tally

CATALOGUE: Catalogue = load_catalogue()
MARKED = [f for f in CATALOGUE.formats.values() if bulk.can_read(f.compiled, bulk.LEAST_BYTES)]
LINES = [
    line
    for format_ in MARKED
    for sample in format_.definition.sample
    for line in sample.text.split("\n")
]


def read(path: Path, formats: tuple[Any, ...]) -> tuple[dict[str, list[Any]], Tally]:
    rows = Rows()
    result = read_file(path, Recognised("text", formats), Context("f"), rows, lambda: None)
    tables: dict[str, list[Any]] = {}
    for table, part in rows.drain():
        tables.setdefault(table, []).extend(part.to_pylist())
    return {t: sorted(r, key=str) for t, r in tables.items()}, result.tally


def assert_same(text: str, folder: Path, formats: tuple[Any, ...] = tuple(MARKED)) -> None:
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
    assert_same("\n".join([LINES[0], overlong, LINES[1]]), tmp_path, tuple(MARKED[:1]))


def test_machine_code_that_cannot_be_kept_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(machine, "_places", lambda: [tmp_path / "file", tmp_path / "kept"])
    machine._keep("matcher.o", b"code")
    assert machine._kept("matcher.o") == b"code"
    (tmp_path / "kept" / "matcher.o").write_bytes(b"torn\ncode")
    assert machine._kept("matcher.o") is None
    monkeypatch.setattr(machine, "_places", lambda: [tmp_path / "file"])
    machine._keep("matcher.o", b"code")
    assert machine._kept("matcher.o") is None


def test_the_samples(tmp_path: Path) -> None:
    assert MARKED
    assert_same("\n".join(LINES), tmp_path)


def test_what_one_line_says_holds_for_those_below_alone(tmp_path: Path) -> None:
    start = "h:1:1 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 busId 1000 - Init START"
    text = f"{start}\nh:1:1 [0] NCCL INFO NCCL version 2.20.5+cuda12.4\n{start}\n"
    assert_same(text, tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        lambda line: line + "\r",
        lambda line: "2026-03-02 09:00:00 " + line,
        lambda line: "\x1b[32m" + line + "\x1b[0m",
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
    mixed = [text for line in LINES for text in (line, change(line))]
    assert_same("\n".join(mixed) + "\n", tmp_path)


@settings(max_examples=150)
@given(data=st.data())
def test_lines_with_pieces_changed(data: st.DataObject, tmp_path_factory: Any) -> None:
    lines = []
    for line in data.draw(st.lists(st.sampled_from(LINES), min_size=1, max_size=8)):
        words = line.split(" ")
        place = data.draw(st.integers(0, len(words) - 1))
        odd = st.sampled_from(["", "-1", "0x", "NCCL", "n/a", "1e5", "3.25", "INFO", ": ", "…"])
        words[place] = data.draw(odd | st.text(max_size=6))
        lines.append(" ".join(words))
    assert_same("\n".join(lines), tmp_path_factory.mktemp("bulk"))


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
