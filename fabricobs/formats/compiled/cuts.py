"""The compiled cutter of ruled tables: how it is told what to cut, and the call."""

import numpy as np
from numpy.typing import NDArray

from fabricobs.formats.compiled.jit_cache import entry, words_of

Whole = NDArray[np.int64]
Flags = NDArray[np.bool_]
Bytes = NDArray[np.uint8]

# What a column is to the cutter; a value from 0 on says which place of the row its number takes.
TEXT = -1
PASSED = -2


def cut_lines(
    data: Bytes, at: int, columns: Whole, values: Whole, missing: Flags, texts: Bytes
) -> tuple[int, int, int, int]:
    """Cut lines from `at` on until one is in doubt, or the room is full.

    `columns` [3, n] says where each column begins and ends, the last one at the end of the line,
    and its place: TEXT, PASSED, or the number's place in a row of `values` and `missing`
    [rows, width]. Before the begin of the next column there must be blanks. Texts are written to
    `texts`, each with a newline behind it. Returns rows, the end of the last one, the length of the
    texts, and how many values are missing.
    """
    told = np.empty(4, np.int64)
    words = words_of(data, at, columns, values, missing, texts, values.shape[1], told)
    entry("ruled_kernel", "cut_lines")(words)
    rows, end, written, absent = told.tolist()
    return rows, end, written, absent
