"""MLflow's file store: one file a metric, each line `milliseconds value [step]`.

The metric's name is the path below `metrics/`; it may hold slashes.
"""

from fabricobs.formats.readers.scalars import Scalars
from fabricobs.formats.whole import WholeFile


def read_mlflow(file: WholeFile) -> None:
    """Read one metric file; a metric without a column is known and ignored."""
    metric = str(file.context.from_path.get("phase") or "")
    scalars = Scalars(file)
    try:
        for line, text in file.lines():
            _read_line(file, scalars, metric, line, text)
    finally:
        scalars.finish()


def _read_line(file: WholeFile, scalars: Scalars, metric: str, line: int, text: str) -> None:
    words = text.split()
    try:
        ts, value = int(words[0]) * 1000, float(words[1])
        # Before MLflow 1.0 a line had no step: then its place counts.
        step = int(words[2]) if len(words) > 2 else line
        if len(words) > 3 or abs(step) >= 2**63:
            raise ValueError
    except (ValueError, IndexError, OverflowError):
        file.miss(line, "milliseconds value step", text)
        return
    if scalars.add(line, metric, value, step, ts):
        file.tally.read()
    else:
        file.tally.skip()
