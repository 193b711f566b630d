"""The command line run in the process of the tests, which has its libraries loaded already.

All that a process has of its own and that a run could find or leave changed is set here.
"""

import contextlib
import gc
import os
import subprocess
import sys
import warnings
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from unittest import mock

from fabricobs import cache_files, stopping
from fabricobs.cli import main
from fabricobs.store import parts, storage

# What a process remembers of places that another process, or a test, may have changed.
_MEMORIES = (storage.storage_of, parts._log_of, cache_files._warn_once)
_SILENT = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)


def run_here(words: list[str], folder: Path = Path()) -> subprocess.CompletedProcess[str]:
    """Run a command line in this process; the signals stay with the tests."""
    out, err = (TextIOWrapper(BytesIO(), "utf-8", newline="") for _ in range(2))
    code: object = None
    for memory in _MEMORIES:
        memory.cache_clear()
    collecting = gc.get_threshold()
    with (
        mock.patch.dict(os.environ),
        mock.patch.multiple(
            sys, argv=["fabricobs", *words], stdin=StringIO(), stdout=out, stderr=err
        ),
        mock.patch.multiple(stopping, listen=lambda: None, _status=None),
        warnings.catch_warnings(),
        contextlib.chdir(folder),
    ):
        warnings.simplefilter("default")
        for category in _SILENT:
            warnings.simplefilter("ignore", category)
        try:
            main()
        except SystemExit as ended:
            code = ended.code
        finally:
            gc.set_threshold(*collecting)
    assert isinstance(code, int)
    told = []
    for stream in (out, err):
        stream.flush()
        told.append(stream.detach().getvalue().decode())
    return subprocess.CompletedProcess(words, code, *told)
