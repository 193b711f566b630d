"""The matcher's machine code: made by numba once, kept, and loaded without numba afterwards.

Loading numba and what it keeps itself takes a third of a second, this a twentieth.
"""

import ctypes
import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Lock

import llvmlite
import llvmlite.binding as llvm
import numpy as np
import xxhash
from numpy.typing import NDArray

_HERE = Path(__file__).parent
# What the machine code is made of.
_SOURCES = ("bytesearch", "numerals", "programs", "matches", "kernel")

# Threads that begin together shall not compile it twice.
_LOADING = Lock()

_OF_NUMBA = re.compile("numba_|NRT_")

Matcher = Callable[[NDArray[np.int64]], int]


def matcher() -> Matcher:
    """Return the compiled `match_lines`: it takes the addresses and lengths of its arrays."""
    with _LOADING:
        return _matcher()


@cache
def _matcher() -> Matcher:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = _machine()
    name = f"matcher-{_version()}.o"
    code = _kept(name)
    if code is None:
        code = _made(machine)
        _keep(name, code)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(engine.get_function_address("entry"))

    def match(words: NDArray[np.int64]) -> int:
        assert engine  # it owns the code
        return int(call(words.ctypes.data))

    return match


def addresses(*arrays: NDArray[np.generic]) -> NDArray[np.int64]:
    """Return address and length of each array, one after the other."""
    return np.array([(a.ctypes.data, a.size) for a in arrays], np.int64).reshape(-1)


def _machine() -> llvm.TargetMachine:
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
        reloc="pic",
        codemodel="jitdefault",
    )


def _version() -> str:
    """Digest of what decides the machine code: its sources, its compiler and this processor."""
    digest = xxhash.xxh3_128()
    processor = llvm.get_host_cpu_name() + llvm.get_host_cpu_features().flatten()
    digest.update(f"{llvmlite.__version__} {processor}".encode())
    for source in _SOURCES:
        digest.update((_HERE / f"{source}.py").read_bytes())
    return digest.hexdigest()


def _made(machine: llvm.TargetMachine) -> bytes:
    """Compile the matcher; the symbol of its code is `entry`."""
    from fabricobs.formats.compiled.kernel import entry

    module = llvm.parse_assembly(entry.inspect_llvm().replace(entry.native_name, "entry"))
    # numba's own functions report errors of Python, of which the matcher knows none.
    unused = [f.name for f in module.functions if f.is_declaration and _OF_NUMBA.match(f.name)]
    stubs = "\n".join(f"define void @{name}() {{ unreachable }}" for name in unused)
    module.link_in(llvm.parse_assembly(stubs))
    return bytes(machine.emit_object(module))


def _places() -> Iterator[Path]:
    """Yield where machine code may be kept: beside the sources, as Python does, or the user's."""
    yield _HERE / "__pycache__"
    with suppress(RuntimeError):
        cache_home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        yield Path(cache_home) / "fabricobs"


def _kept(name: str) -> bytes | None:
    for place in _places():
        with suppress(OSError):
            digest, code = (place / name).read_bytes().split(b"\n", 1)
            if digest == xxhash.xxh3_128_hexdigest(code).encode():
                return code
    return None


def _keep(name: str, code: bytes) -> None:
    """Keep the machine code where that can be done; without it the next start compiles again."""
    for place in _places():
        with suppress(OSError):
            place.mkdir(parents=True, exist_ok=True)
            unfinished = place / f"{name}.{os.getpid()}"
            unfinished.write_bytes(xxhash.xxh3_128_hexdigest(code).encode() + b"\n" + code)
            unfinished.replace(place / name)
            return
