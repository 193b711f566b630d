"""Machine code of the kernels: made from LLVM code on first use, and kept.

The LLVM code is made from the sources by numba and kept in the repository (`ir/`, `make kernels`):
numba takes up to 30 s for it, LLVM 0.7 s for machine code of it. Where it is not that of the
sources, or the installed LLVM does not read it, numba makes it anew.
"""

import ctypes
import lzma
import re
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
import xxhash
from numpy.typing import NDArray

from fabricobs.cache_files import keep, kept
from fabricobs.formats.budget import uncounted

if TYPE_CHECKING:
    import llvmlite.binding as llvm

_HERE = Path(__file__).parent
# The modules with functions to call, their `ENTRIES`, and what the machine code is made of.
SOURCES = {
    "kernel": (
        "bytesearch", "numerals", "expressions", "backtracking", "programs", "matches",
        "kernel_rows", "kernel",
    ),
    "ruled_kernel": ("bytesearch", "cuts", "ruled_kernel"),
}  # fmt: skip

# Threads that begin together shall not compile it twice.
_LOADING = Lock()

_IR = _HERE / "ir"
_TARGET = re.compile(r"^target .*\n", re.MULTILINE)
_OF_NUMBA = re.compile("numba_|NRT_")

# Takes whole numbers, and arrays as address and length: what `words_of` gives.
Entry = Callable[[NDArray[np.int64]], int]


def entry(module: str, name: str) -> Entry:
    """Return a function of a module; it runs without the interpreter's lock."""
    with _LOADING:
        return _entry(module, name)


def pays(module: str, size_bytes: int, *, loading: int, compiling: int) -> bool:
    """Say whether so many bytes pay for loading a module, or compiling it where none ever did."""
    return size_bytes >= compiling or (size_bytes >= loading and _is_made(module))


@cache
def _is_made(module: str) -> bool:
    return kept(_file_name(module), _HERE) is not None


@cache
def _entry(module: str, name: str) -> Entry:
    engine = _engine(module)
    call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(engine.get_function_address(name))

    def run(words: NDArray[np.int64]) -> int:
        assert engine  # it owns the code
        return int(call(words.ctypes.data))

    return run


@cache
def _engine(module: str) -> "llvm.ExecutionEngine":
    # Loading LLVM takes longer than a small ingest has to wait for anything else.
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = _machine()
    name = _file_name(module)
    code = kept(name, _HERE)
    if code is None:
        with uncounted():
            code = _made(module, machine)
        keep(name, code, _HERE)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine


def words_of(*given: NDArray[np.generic] | int) -> NDArray[np.int64]:
    """Return numbers as they are, and address and length of each array, one after the other."""
    words: list[int] = []
    for each in given:
        if isinstance(each, int):
            words.append(each)
        else:
            assert each.flags.c_contiguous
            words += each.ctypes.data, each.size
    return np.array(words, np.int64)


def _machine() -> "llvm.TargetMachine":
    import llvmlite.binding as llvm

    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
        reloc="pic",
        codemodel="jitdefault",
    )


def _file_name(module: str) -> str:
    """Name the file by what decides it: its sources, its compiler and this processor."""
    import llvmlite
    import llvmlite.binding as llvm

    digest = xxhash.xxh3_128()
    processor = llvm.get_host_cpu_name() + llvm.get_host_cpu_features().flatten()
    digest.update(f"{llvmlite.__version__} {processor}".encode())
    digest.update(_source_digest(module).encode())
    return f"{module}-{digest.hexdigest()}.o"


def _made(module: str, machine: "llvm.TargetMachine") -> bytes:
    """Make the machine code of a module; the symbols of its code are the names of its entries."""
    import llvmlite.binding as llvm

    text = _kept_ir(module)
    if text is not None:
        # The code uses nothing of a processor by name: that of another is right on this one.
        text = _TARGET.sub("", text)
        head = f'target datalayout = "{machine.target_data}"\ntarget triple = "{machine.triple}"\n'
        with suppress(RuntimeError):
            return bytes(machine.emit_object(llvm.parse_assembly(head + text)))
    return bytes(machine.emit_object(llvm.parse_assembly(compile_ir(module))))


def compile_ir(module: str) -> str:
    """Compile a module by numba to LLVM code."""
    import llvmlite.binding as llvm

    made = llvm.parse_assembly("")
    for name, compiled in import_module(f"fabricobs.formats.compiled.{module}").ENTRIES.items():
        text = compiled.inspect_llvm().replace(compiled.native_name, name)
        made.link_in(llvm.parse_assembly(text))
    # numba's own functions report errors of Python, of which the compiled code knows none.
    unused = [f.name for f in made.functions if f.is_declaration and _OF_NUMBA.match(f.name)]
    stubs = "\n".join(f"define void @{name}() {{ unreachable }}" for name in unused)
    made.link_in(llvm.parse_assembly(stubs))
    return str(made)


def keep_ir(module: str, text: str) -> None:
    """Keep the LLVM code of a module in the repository."""
    _IR.mkdir(exist_ok=True)
    content = f"; {_source_digest(module)}\n{text}".encode()
    (_IR / f"{module}.ll.xz").write_bytes(lzma.compress(content, preset=9 | lzma.PRESET_EXTREME))


def is_current(module: str) -> bool:
    """Say whether the LLVM code in the repository is that of the sources."""
    return _kept_ir(module) is not None


def _kept_ir(module: str) -> str | None:
    with suppress(OSError, lzma.LZMAError):
        text = lzma.decompress((_IR / f"{module}.ll.xz").read_bytes()).decode()
        digest, _, code = text.partition("\n")
        if digest == f"; {_source_digest(module)}":
            return code
    return None


def _source_digest(module: str) -> str:
    digest = xxhash.xxh3_128()
    for source in SOURCES[module]:
        digest.update((_HERE / f"{source}.py").read_bytes())
    return digest.hexdigest()
