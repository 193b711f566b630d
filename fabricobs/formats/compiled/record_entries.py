"""What `pieces` calls: the compiled readers of records, which get arrays as address and length."""

from typing import Any

import numpy as np
from numba import carray, cfunc  # type: ignore[attr-defined]

from fabricobs.formats.compiled.bytesearch import address
from fabricobs.formats.compiled.cell_kernel import (
    csv_cells,
    is_plain,
    number_cells,
    time_cells,
    whole_cells,
)
from fabricobs.formats.compiled.json_kernel import json_values
from fabricobs.formats.compiled.swar import intern, line_bounds

_entry = cfunc("int64(CPointer(int64))")


@_entry
def _line_bounds(words: Any) -> int:
    w = carray(words, 4)
    return line_bounds(carray(address(w[0]), w[1], np.uint8), carray(address(w[2]), w[3], np.int64))


@_entry
def _intern(words: Any) -> int:
    w = carray(words, 10)
    return intern(
        carray(address(w[0]), w[1], np.uint8),
        carray(address(w[2]), w[3], np.int64),
        carray(address(w[4]), w[5], np.int32),
        carray(address(w[6]), w[7], np.int64),
        carray(address(w[8]), w[9], np.int64),
    )


@_entry
def _is_plain(words: Any) -> int:
    w = carray(words, 3)
    return int(is_plain(carray(address(w[0]), w[1], np.uint8), w[2]))


@_entry
def _csv_cells(words: Any) -> int:
    w = carray(words, 12)
    lines = w[3] - 1
    csv_cells(
        carray(address(w[0]), w[1], np.uint8),
        carray(address(w[2]), w[3], np.int64),
        w[4] != 0,
        w[5],
        carray(address(w[6]), w[7], np.int64),
        carray(address(w[8]), (w[9] // max(lines, 1), lines), np.int64),
        carray(address(w[10]), w[11], np.uint8),
    )
    return 0


@_entry
def _whole_cells(words: Any) -> int:
    w = carray(words, 8)
    return whole_cells(
        carray(address(w[0]), w[1], np.uint8),
        carray(address(w[2]), w[3], np.int64),
        carray(address(w[4]), w[5], np.int64),
        carray(address(w[6]), w[7], np.uint8),
    )


@_entry
def _number_cells(words: Any) -> int:
    w = carray(words, 8)
    return number_cells(
        carray(address(w[0]), w[1], np.uint8),
        carray(address(w[2]), w[3], np.int64),
        carray(address(w[4]), w[5], np.float64),
        carray(address(w[6]), w[7], np.uint8),
    )


@_entry
def _time_cells(words: Any) -> int:
    w = carray(words, 11)
    return time_cells(
        carray(address(w[0]), w[1], np.uint8),
        carray(address(w[2]), w[3], np.int64),
        w[4] != 0,
        w[5],
        w[6],
        carray(address(w[7]), w[8], np.int64),
        carray(address(w[9]), w[10], np.uint8),
    )


@_entry
def _json_values(words: Any) -> int:
    w = carray(words, 18)
    lines = w[17]
    json_values(
        carray(address(w[0]), w[1], np.uint8),
        carray(address(w[2]), w[3], np.int64),
        carray(address(w[4]), w[5], np.int64),
        carray(address(w[6]), w[7], np.uint8),
        carray(address(w[8]), w[9], np.int64),
        carray(address(w[10]), w[11], np.int64),
        carray(address(w[12]), w[13], np.int64),
        carray(address(w[14]), (w[15] // max(lines, 1), lines), np.int64),
        carray(address(w[16]), lines, np.int32),
    )
    return 0


ENTRIES = {
    "line_bounds": _line_bounds,
    "intern": _intern,
    "is_plain": _is_plain,
    "csv_cells": _csv_cells,
    "whole_cells": _whole_cells,
    "number_cells": _number_cells,
    "time_cells": _time_cells,
    "json_values": _json_values,
}
