"""CPU time per line of each kind that the definitions describe, read alone in one warm process.

python -m fabricobs.bench.kinds [--lines N] [--seed N] [FORMAT ...]
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from fabricobs.bench import drawn
from fabricobs.formats.context import Context
from fabricobs.formats.logs import bulk
from fabricobs.formats.reading import FileResult, read_file
from fabricobs.formats.recognition.catalogue import Format, Recognised, load_catalogue
from fabricobs.formats.rows import Rows


def _read(path: Path, formats: tuple[Format, ...]) -> tuple[float, FileResult]:
    rows = Rows()

    def flush() -> None:
        for _ in rows.drain():
            pass

    before = time.process_time()
    result = read_file(path, Recognised("text", formats), Context("bench"), rows, flush)
    flush()
    return time.process_time() - before, result


def measure(names: Sequence[str], lines: int, seed: int, show: Callable[[str], None]) -> None:
    """Print the CPU time of each kind of line of some formats, the fastest first."""
    catalogue = load_catalogue()
    formats = tuple(catalogue.formats[name] for name in names)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kind.log"
        for name, draw in [*list(drawn.kinds(names).items())[:1], *drawn.kinds(names).items()]:
            rng = Random(seed)
            before = drawn.before_nccl(rng) if catalogue.formats[names[0]].definition.mark else str
            path.write_text("\n".join(before(draw(rng)) for _ in range(lines)) + "\n")
            seconds, result = _read(path, formats)
            found.append((seconds / lines * 1e6, result.rows, result.tally.unparsed, name))
    show(
        f"{'us/line':>8} {'rows':>8} {'unread':>7}  kind, read alone ({lines:,} lines, seed {seed})"
    )
    for micros, rows, unread, name in sorted(found[1:]):
        show(f"{micros:8.2f} {rows:8} {unread:7}  {name}")


def main() -> None:
    """Measure the kinds of line of NCCL, or of the formats that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("formats", nargs="*", default=drawn.NCCL)
    parser.add_argument("--lines", type=int, default=40_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    bulk.LEAST_BYTES = 0
    measure(options.formats, options.lines, options.seed, print)


if __name__ == "__main__":
    main()
