"""py-spy's dump as JSON: a list of threads, each with its frames, the innermost first."""

from typing import Any

from fabricobs.formats.decompression import SourceError
from fabricobs.formats.documents.jsontext import loads
from fabricobs.formats.whole import WholeFile, text, whole_cell


def read_py_spy(file: WholeFile) -> None:
    """Read one dump, a thread counting as a line; SourceError if it is broken."""
    data = file.read_all()
    try:
        threads = loads(data)
    except (ValueError, RecursionError) as error:
        file.miss(1, str(error), "")
        raise SourceError(f"py-spy dump: {error}") from error
    for line, thread in enumerate(threads if isinstance(threads, list) else [threads], 1):
        frames = thread.get("frames") if isinstance(thread, dict) else None
        if not isinstance(frames, list) or not all(isinstance(frame, dict) for frame in frames):
            file.miss(line, "thread without frames", str(thread))
            continue
        _add_frames(file, thread, frames, line)
        file.tally.read()
        file.flush()


def _add_frames(
    file: WholeFile, thread: dict[str, Any], frames: list[dict[str, Any]], line: int
) -> None:
    state = {(True, True): "active+gil", (True, False): "active", (False, False): "idle"}
    number_of = thread.get("os_thread_id") or thread.get("thread_id")
    said = {
        "pid": whole_cell(thread.get("pid")),
        "thread": None if number_of is None else str(number_of),
        "thread_name": text(thread.get("thread_name")),
        "state": state.get((thread.get("active") is True, thread.get("owns_gil") is True)),
    }
    file.add_frames(
        [
            # Native code has the line 0.
            (f.get("name"), f.get("short_filename") or f.get("filename"), f.get("line") or None)
            for f in frames
        ],
        said,
        line,
    )
