"""What tests share: the sample cluster's store, the corpus where it is there, the command line."""

import os
import random
import secrets
import signal
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import settings
from object_server import ObjectServer, object_server
from own_process import run_here

from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.store.arrow import table_schema
from fabricobs.store.parts import Store

# A busy machine may take any time for one example. The same examples in every run, so that a change
# is judged by what it changed; FABRICOBS_RANDOM=1 draws others.
settings.register_profile(
    "fabricobs", deadline=None, derandomize=os.environ.get("FABRICOBS_RANDOM") is None
)
settings.load_profile("fabricobs")

# Started by nohup, the tests ignore hangups, and so would the commands they start.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# xdist tells its workers the width of a terminal that nobody looks at.
os.environ.pop("COLUMNS", None)

ROOT = Path(__file__).parents[1]

Rows = dict[str, list[dict[str, object]]]
Run = Callable[..., subprocess.CompletedProcess[str]]
COMMAND = [sys.executable, "-c", "from fabricobs.cli import main; main()"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--slow-part",
        metavar="K/N",
        help="of the slow tests, run the K-th of N parts alone; the fast ones all the same",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the slow tests of other parts. Which part a test is of, its name alone tells."""
    told = config.getoption("--slow-part")
    if told is None:
        return
    asked, parts = map(int, told.split("/"))
    if not 1 <= asked <= parts:
        raise pytest.UsageError(f"--slow-part {told}: K is 1 to N")

    def is_left_out(item: pytest.Item) -> bool:
        part = zlib.crc32(item.nodeid.encode()) % parts + 1
        return part != asked and item.get_closest_marker("slow") is not None

    left_out = {item for item in items if is_left_out(item)}
    config.hook.pytest_deselected(items=[*left_out])
    items[:] = [item for item in items if item not in left_out]


NOISE = [
    b"\x00",
    b"\r",
    b"\x1b[31m",
    b"\xff\xfe",
    b"\n\n",
    b"18446744073709551615",
    b",,,,",
    b'"',
    b"{",
]


def mutate(text: bytes, seed: int) -> bytes:
    """Damage a sample as logs get damaged: torn, doubled, cut and mixed lines."""
    chance = random.Random(seed)
    damaged = bytearray(text)
    for _ in range(chance.randint(1, 8)):
        at = chance.randrange(len(damaged) + 1)
        match chance.randrange(4):
            case 0:
                damaged[at:at] = chance.choice(NOISE)
            case 1:
                del damaged[at : at + chance.randint(1, 40)]
            case 2:
                damaged[at:at] = damaged[: chance.randint(0, 200)]
            case _:
                del damaged[at:]
                damaged += text
    return bytes(damaged)


@pytest.fixture(scope="session")
def sample_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of sample_data/."""
    path = tmp_path_factory.mktemp("sample") / "store"
    ingest([ROOT / "sample_data" / "logs"], Store(path), Options())
    return path


@pytest.fixture(autouse=True)
def _unchanged_sample(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that writes to the shared sample store would change what the next ones see."""
    if "sample_store" not in request.fixturenames:
        yield
        return
    store = Store(request.getfixturevalue("sample_store"))
    before = store.snapshot().batches.keys()
    yield
    assert store.snapshot().batches.keys() == before, "copy the sample store to write to it"


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Third-party logs: beside the checkout, or where $FABRICOBS_CORPUS says."""
    path = Path(os.environ.get("FABRICOBS_CORPUS", ROOT.parent / "shared" / "corpus"))
    if not path.is_dir():
        pytest.skip("no corpus of third-party logs here")
    return path


@pytest.fixture
def make_store(tmp_path: Path) -> Callable[[Rows], Path]:
    """Make a store that holds the given rows."""

    def make(rows: Rows) -> Path:
        store = Store(tmp_path / "store")
        store.create()
        store.append(
            "given",
            {t: pa.Table.from_pylist(r, schema=table_schema(t)) for t, r in rows.items()},
        )
        return store.path

    return make


def started(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the command line as a user does, in a process of its own."""
    command = [*COMMAND, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


@pytest.fixture(scope="session")
def fabricobs() -> Run:
    """Run the command line in this process, but with options of a process in one of its own.

    A process spends up to three seconds on imports.
    """

    def run(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
        if options.keys() <= {"cwd"}:
            return run_here(list(map(str, arguments)), Path(options.get("cwd", ".")))
        return started(*arguments, **options)

    return run


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectServer]:
    """An S3 server on the loopback interface, for tests that do not harm it."""
    with object_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def s3(s3_server: ObjectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An address that nothing lies at, and the variables that lead to it."""
    for name, value in s3_server.variables().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield f"s3://stores/{secrets.token_hex(8)}/store"
