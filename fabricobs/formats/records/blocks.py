"""Blocks of records are read by Arrow; what it refuses is read line by line, never dropped."""

from collections.abc import Callable, Iterator
from functools import cache

import numpy as np

from fabricobs.formats.source import LineBlock

# Of a refused block only the parts that are refused too are read by line; a smaller block always.
PART_BYTES = 1 << 16
_NEWLINE = 10


def read_block(
    block: LineBlock, in_bulk: Callable[[LineBlock], bool], by_line: Callable[[LineBlock], None]
) -> None:
    """Read a block of lines by columns, or what `in_bulk` refuses by lines.

    `in_bulk` returns False if a line of the block may mean something else to it than to `by_line`,
    and has then done nothing.
    """
    if block.overlong or len(block.data) < PART_BYTES:
        by_line(block)
    elif not in_bulk(block):
        for part in _parts(block):
            if not in_bulk(part):
                by_line(part)


def _parts(block: LineBlock) -> Iterator[LineBlock]:
    at, number = 0, block.first
    while at < len(block.data):
        end = block.data.find(b"\n", at + PART_BYTES) + 1 or len(block.data)
        part = block.data[at:end]
        yield LineBlock(number, part)
        number += line_count(part)
        at = end


def line_count(data: bytes) -> int:
    """Count lines, of which the last one may lack its newline."""
    ended = np.count_nonzero(np.frombuffer(data, np.uint8) == _NEWLINE)
    return int(ended) + (not data.endswith(b"\n"))


def lines_of(block: LineBlock) -> list[bytes]:
    """Split a block as its numbers count: only a newline ends a line, whatever else is in it."""
    lines = block.data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return lines


def text_of(block: LineBlock, plain: Callable[[bytes], str]) -> Callable[[int], str]:
    """Return what gives the text of a line by its number."""
    lines = cache(lambda: lines_of(block))
    return lambda number: plain(lines()[number - block.first])
