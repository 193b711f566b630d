"""A run of the command line that may be killed at a call that changes the store."""

import contextlib
import faulthandler
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

_CALLS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.scandir"}
_HANGS_AFTER_S = 200


def run(folder: Path, command: tuple[str, ...], last: int) -> None:
    """Run a command on `folder/store`; kill it at the call number `last`, if that is not 0.

    `folder/began` is there when it has begun; `folder/told` holds its exit code, seconds and calls.
    """
    store = str(folder / "store")
    calls = 0

    def count(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal calls
        if event in _CALLS and any(store in str(argument) for argument in arguments):
            calls += 1
            if calls == last:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    run_anywhere(folder, (*command, "--store", store), {}, lambda: calls)


def run_anywhere(
    folder: Path,
    command: tuple[str, ...],
    variables: Mapping[str, str],
    calls: Callable[[], int] = int,
) -> None:
    """Run a command with some variables; what it says goes to `folder/output`."""
    from fabricobs import ingestion, planning
    from fabricobs.cli import main
    from fabricobs.store import objects

    objects._RETRIES = 60  # a busy machine starts a server slowly
    if {"--workers", "--executor"} & {*command} or "s3://" in " ".join(command):
        # Has work to share: many batches of few files.
        ingestion._PARALLEL_FILES, planning._BATCH_FILES = 10, 5
    os.environ.update(variables)
    os.chdir(folder)
    output = os.open("output", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    faulthandler.dump_traceback_later(_HANGS_AFTER_S, exit=True, file=2)
    sys.argv = ["fabricobs", *command]
    (folder / "began").touch()
    began = time.monotonic()
    code: object = 0
    with contextlib.suppress(BaseException):
        try:
            main()
        except SystemExit as end:
            code = end.code
    told = {"code": code, "seconds": time.monotonic() - began, "calls": calls()}
    (folder / "told").write_text(json.dumps(told))
